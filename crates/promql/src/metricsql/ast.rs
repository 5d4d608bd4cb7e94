//! The tree of a MetricsQL expression, after its `WITH` templates are expanded.
//!
//! MetricsQL has one type where PromQL has four: everything is a list of series, a scalar is one
//! series without labels. So the tree knows no types, and selectors, windows and functions nest
//! freely.

use crate::ast::Grouping;
use crate::error::Span;
use crate::metricsql::functions::Function;
use model::Matcher;

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `1.5`, `1Ki`, `0x1f`, `Inf`
    Number(Number),
    /// `"text"`, concatenated where it was written in pieces.
    String(Text),
    /// A duration where a number may stand: its seconds.
    Duration(DurationLiteral),
    /// `name{label="value" or other="value"}`
    Selector(Selector),
    /// `expression[window:step] offset x @ y`, of which at least one is there.
    Rollup(Box<Rollup>),
    /// `function(arguments) keep_metric_names`
    Call(Call),
    /// `sum(expressions) by (label) limit 5`
    Aggregate(Aggregate),
    /// `left + right`
    Binary(Box<Binary>),
    /// `(a, b)`: the union of several; one expression in parentheses is that expression.
    Union(Union),
}

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Its value.
    pub value: f64,
    /// Where it stands.
    pub span: Span,
}

/// A string.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Its value, unescaped.
    pub value: String,
    /// Where it stands.
    pub span: Span,
}

/// A length of time: a fixed one and a multiple of the query's step, such as `1h30m` and `5i`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Duration {
    /// The fixed part in milliseconds; may be negative.
    pub ms: f64,
    /// How many steps besides.
    pub steps: f64,
}

impl Duration {
    /// Whole milliseconds under a step.
    pub fn at_step(self, step_ms: i64) -> i64 {
        (self.ms + self.steps * step_ms as f64) as i64
    }
}

/// A duration where a number may stand.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationLiteral {
    /// Its length.
    pub duration: Duration,
    /// Where it stands.
    pub span: Span,
}

/// A selector of series.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    /// Conditions, of which all of one set must hold; the metric's name is `__name__`.
    pub sets: Vec<Vec<Matcher>>,
    /// Where it stands.
    pub span: Span,
}

/// Where and how far an expression looks.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollup {
    /// What is looked at.
    pub expr: Expr,
    /// `[5m]`; without it the function decides.
    pub window: Option<Duration>,
    /// `[5m:1m]`: between evaluations of a subquery.
    pub step: Option<Duration>,
    /// `[5m:]`: a subquery whose step is the query's.
    pub has_colon: bool,
    /// `offset 5m`: how far back to look, negative for forward.
    pub offset: Option<Duration>,
    /// `@ end()`: any expression of one value.
    pub at: Option<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// A function call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Which function.
    pub function: &'static Function,
    /// With what.
    pub arguments: Vec<Expr>,
    /// Whether the result keeps the metrics' names.
    pub keep_metric_names: bool,
    /// Where it stands.
    pub span: Span,
}

/// An aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which one.
    pub function: &'static Function,
    /// Parameters and the expressions whose series are aggregated together.
    pub arguments: Vec<Expr>,
    /// Into which groups; `None` for one of all.
    pub grouping: Option<Grouping>,
    /// `limit 5`: at most so many groups; 0 is no limit.
    pub limit: u64,
    /// Where it stands.
    pub span: Span,
}

/// The binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `^`
    Pow,
    /// `atan2`
    Atan2,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `and`
    And,
    /// `or`
    Or,
    /// `unless`
    Unless,
    /// `if`: points of the left where the right has one.
    If,
    /// `ifnot`: points of the left where the right has none.
    IfNot,
    /// `default`: gaps of the left filled from the right.
    Default,
}

/// Which labels series must share to match.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching {
    /// `on (...)` rather than `ignoring (...)`.
    pub is_on: bool,
    /// The labels.
    pub labels: Vec<String>,
}

/// `group_left (labels) prefix "x"` and `group_right`.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// `group_left`: many on the left.
    pub is_left: bool,
    /// Labels taken from the "one" side; `*` stands for all.
    pub labels: Vec<String>,
    /// What their names get in front.
    pub prefix: String,
}

/// A binary operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Binary {
    /// Which operator.
    pub op: BinaryOp,
    /// Left operand.
    pub left: Expr,
    /// Right operand.
    pub right: Expr,
    /// `bool`: a comparison that answers 0 or 1 instead of filtering.
    pub returns_bool: bool,
    /// Whether the result keeps the metrics' names.
    pub keep_metric_names: bool,
    /// `on` or `ignoring`.
    pub matching: Option<Matching>,
    /// `group_left` or `group_right`.
    pub join: Option<Join>,
    /// `fill_left(v)`, or `fill(v)`: what stands for a missing left side.
    pub fill_left: Option<f64>,
    /// `fill_right(v)`, or `fill(v)`.
    pub fill_right: Option<f64>,
    /// Where it stands.
    pub span: Span,
}

/// Several expressions in parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct Union {
    /// The expressions.
    pub expressions: Vec<Expr>,
    /// Where it stands.
    pub span: Span,
}

impl Expr {
    /// Calls `visit` with each expression directly below this one, in the order of the text.
    pub fn for_each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Number(_) | Expr::String(_) | Expr::Duration(_) | Expr::Selector(_) => {}
            Expr::Rollup(rollup) => {
                visit(&mut rollup.expr);
                rollup.at.iter_mut().for_each(visit);
            }
            Expr::Call(call) => call.arguments.iter_mut().for_each(visit),
            Expr::Aggregate(aggregate) => aggregate.arguments.iter_mut().for_each(visit),
            Expr::Union(union) => union.expressions.iter_mut().for_each(visit),
            Expr::Binary(binary) => {
                visit(&mut binary.left);
                visit(&mut binary.right);
            }
        }
    }

    /// Where the expression stands in its text, or in the text of the template it is from.
    pub fn span(&self) -> Span {
        match self {
            Expr::Number(node) => node.span,
            Expr::String(node) => node.span,
            Expr::Duration(node) => node.span,
            Expr::Selector(node) => node.span,
            Expr::Rollup(node) => node.span,
            Expr::Call(node) => node.span,
            Expr::Aggregate(node) => node.span,
            Expr::Binary(node) => node.span,
            Expr::Union(node) => node.span,
        }
    }
}
