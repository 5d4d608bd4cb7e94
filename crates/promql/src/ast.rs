//! The tree that an expression is parsed into.
//!
//! Every node knows where it stands in the text ([`Expr::span`]), so that errors and warnings
//! of the evaluation can point at it. Times are milliseconds, as everywhere in PromQL.
//! The tree is at most [`crate::NESTING_MAX`] deep, so walking it by recursion is safe.

use crate::error::Span;
use crate::functions::Function;
use crate::quote::quote_bytes;
pub use crate::value_type::ValueType;
use model::Matcher;

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `1.5`, `0x1f`, `Inf`, `5m`
    Number(NumberLiteral),
    /// `"text"`
    String(StringLiteral),
    /// `name{label="value"}`
    Vector(VectorSelector),
    /// `name{label="value"}[5m]`
    Matrix(MatrixSelector),
    /// `expression[1h:5m]`
    Subquery(Box<Subquery>),
    /// `function(arguments)`
    Call(Call),
    /// `sum by (label) (expression)`
    Aggregate(Box<Aggregate>),
    /// `left + right`
    Binary(Box<Binary>),
    /// `-expression`
    Unary(Box<Unary>),
    /// `(expression)`
    Paren(Box<Paren>),
}

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberLiteral {
    /// Its value; a duration's in seconds.
    pub value: f64,
    /// Whether it was written as a duration.
    pub is_duration: bool,
    /// Where it stands.
    pub span: Span,
}

/// A string.
#[derive(Clone, Debug, PartialEq)]
pub struct StringLiteral {
    /// Its value, unescaped.
    pub value: String,
    /// The value's bytes where they are not UTF-8, and `value` is not all of it. Only
    /// `count_values` may be given such a string, and refuses it when it is evaluated, as
    /// Prometheus does.
    pub odd_bytes: Option<Box<[u8]>>,
    /// Where it stands.
    pub span: Span,
}

impl StringLiteral {
    /// The double-quoted literal that stands for the value, odd bytes included.
    pub fn quoted(&self) -> String {
        quote_bytes(self.odd_bytes.as_deref().unwrap_or(self.value.as_bytes()))
    }
}

/// The moment that `@` names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// `@ 1609746000`, in milliseconds since the epoch.
    Timestamp(i64),
    /// `@ start()`: the start of the query.
    Start,
    /// `@ end()`: the end of the query.
    End,
}

/// Where the values at the edges of a window come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edges {
    /// The samples inside are all there is.
    #[default]
    Samples,
    /// `anchored`: the last sample before the window stands at its start.
    Anchored,
    /// `smoothed`: interpolated between the samples inside and those around.
    Smoothed,
}

impl Edges {
    /// The modifier, empty for none.
    pub fn as_str(self) -> &'static str {
        match self {
            Edges::Samples => "",
            Edges::Anchored => "anchored",
            Edges::Smoothed => "smoothed",
        }
    }
}

/// A selector of series.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSelector {
    /// The metric's name where it stands outside the braces; `matchers` has it too.
    pub name: Option<String>,
    /// All conditions, the name's last.
    pub matchers: Vec<Matcher>,
    /// `offset 5m`: how far back to look, negative for forward.
    pub offset_ms: i64,
    /// What the offset is calculated from, where it is: see [`crate::settle_durations`].
    pub offset_expr: Option<Box<DurationExpr>>,
    /// `@ ...`
    pub at: Option<At>,
    /// `anchored`, `smoothed`
    pub edges: Edges,
    /// Where it stands.
    pub span: Span,
}

/// A selector of windows of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixSelector {
    /// Whose samples; offset and `@` are kept there.
    pub selector: VectorSelector,
    /// The window's length.
    pub range_ms: i64,
    /// What it is calculated from, where it is.
    pub range_expr: Option<Box<DurationExpr>>,
    /// Where it stands.
    pub span: Span,
}

/// An instant expression evaluated at many moments, to make windows of.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// What is evaluated.
    pub expr: Expr,
    /// The window's length.
    pub range_ms: i64,
    /// What it is calculated from, where it is.
    pub range_expr: Option<Box<DurationExpr>>,
    /// Between evaluations; `None` for the default.
    pub step_ms: Option<i64>,
    /// What it is calculated from, where it is.
    pub step_expr: Option<Box<DurationExpr>>,
    /// As for a selector.
    pub offset_ms: i64,
    /// As for a selector.
    pub offset_expr: Option<Box<DurationExpr>>,
    /// As for a selector.
    pub at: Option<At>,
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
    /// Where it stands.
    pub span: Span,
}

/// The aggregation operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateOp {
    /// `sum`
    Sum,
    /// `avg`
    Avg,
    /// `count`
    Count,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `group`
    Group,
    /// `stddev`
    Stddev,
    /// `stdvar`
    Stdvar,
    /// `topk`
    Topk,
    /// `bottomk`
    Bottomk,
    /// `count_values`
    CountValues,
    /// `quantile`
    Quantile,
    /// `limitk`
    Limitk,
    /// `limit_ratio`
    LimitRatio,
}

impl AggregateOp {
    /// Every operator.
    pub const ALL: [AggregateOp; 14] = [
        AggregateOp::Sum,
        AggregateOp::Avg,
        AggregateOp::Count,
        AggregateOp::Min,
        AggregateOp::Max,
        AggregateOp::Group,
        AggregateOp::Stddev,
        AggregateOp::Stdvar,
        AggregateOp::Topk,
        AggregateOp::Bottomk,
        AggregateOp::CountValues,
        AggregateOp::Quantile,
        AggregateOp::Limitk,
        AggregateOp::LimitRatio,
    ];

    /// The operator of that name, in lower case.
    pub fn parse(name: &str) -> Option<AggregateOp> {
        AggregateOp::ALL.into_iter().find(|op| op.as_str() == name)
    }

    /// The operator's name.
    pub fn as_str(self) -> &'static str {
        match self {
            AggregateOp::Sum => "sum",
            AggregateOp::Avg => "avg",
            AggregateOp::Count => "count",
            AggregateOp::Min => "min",
            AggregateOp::Max => "max",
            AggregateOp::Group => "group",
            AggregateOp::Stddev => "stddev",
            AggregateOp::Stdvar => "stdvar",
            AggregateOp::Topk => "topk",
            AggregateOp::Bottomk => "bottomk",
            AggregateOp::CountValues => "count_values",
            AggregateOp::Quantile => "quantile",
            AggregateOp::Limitk => "limitk",
            AggregateOp::LimitRatio => "limit_ratio",
        }
    }

    /// The type of the parameter before the vector, for those that have one.
    pub fn parameter(self) -> Option<ValueType> {
        match self {
            AggregateOp::Topk
            | AggregateOp::Bottomk
            | AggregateOp::Quantile
            | AggregateOp::Limitk
            | AggregateOp::LimitRatio => Some(ValueType::Scalar),
            AggregateOp::CountValues => Some(ValueType::String),
            _ => None,
        }
    }

    /// Whether Prometheus calls it experimental.
    pub fn is_experimental(self) -> bool {
        matches!(self, AggregateOp::Limitk | AggregateOp::LimitRatio)
    }
}

/// Which labels make a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Grouping {
    /// Those of the list; an empty list makes one group.
    By(Vec<String>),
    /// All but those of the list and the metric's name.
    Without(Vec<String>),
}

/// An aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which operator.
    pub op: AggregateOp,
    /// `k`, the quantile or the label, where the operator has one.
    pub parameter: Option<Expr>,
    /// What is aggregated.
    pub expr: Expr,
    /// Into which groups.
    pub grouping: Grouping,
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
    /// `</`: a native histogram without what lies above
    TrimUpper,
    /// `>/`: a native histogram without what lies below
    TrimLower,
    /// `and`
    And,
    /// `or`
    Or,
    /// `unless`
    Unless,
}

impl BinaryOp {
    /// How it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
            BinaryOp::Pow => "^",
            BinaryOp::Atan2 => "atan2",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::LessEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterEqual => ">=",
            BinaryOp::TrimUpper => "</",
            BinaryOp::TrimLower => ">/",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Unless => "unless",
        }
    }

    /// Whether it compares.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Equal
                | BinaryOp::NotEqual
                | BinaryOp::Less
                | BinaryOp::LessEqual
                | BinaryOp::Greater
                | BinaryOp::GreaterEqual
        )
    }

    /// Whether it cuts a native histogram off.
    pub fn is_trim(self) -> bool {
        matches!(self, BinaryOp::TrimUpper | BinaryOp::TrimLower)
    }

    /// Whether it combines sets of series.
    pub fn is_set(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or | BinaryOp::Unless)
    }

    /// How tightly it binds: higher is tighter.
    pub(crate) fn precedence(self) -> u8 {
        match self {
            BinaryOp::Or => 1,
            BinaryOp::And | BinaryOp::Unless => 2,
            BinaryOp::Add | BinaryOp::Sub => 4,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod | BinaryOp::Atan2 => 5,
            BinaryOp::Pow => 6,
            _ => 3,
        }
    }
}

/// How many series of each side may share a match group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// One on each side.
    OneToOne,
    /// `group_left`: many on the left.
    ManyToOne,
    /// `group_right`: many on the right.
    OneToMany,
    /// Set operators: many on each side.
    ManyToMany,
}

/// Which labels series must share to match.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorMatching {
    /// How many of each side.
    pub cardinality: Cardinality,
    /// `on (...)` rather than `ignoring (...)`.
    pub is_on: bool,
    /// The labels of `on` or `ignoring`.
    pub labels: Vec<String>,
    /// The labels of `group_left` or `group_right`, taken from the "one" side.
    pub include: Vec<String>,
    /// What stands in for series that have no partner.
    pub fill: Fill,
}

/// Values for the side of an operation on which a series is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fill {
    /// `fill_left (v)`
    pub left: Option<f64>,
    /// `fill_right (v)`
    pub right: Option<f64>,
}

impl Fill {
    /// Whether there is any.
    pub fn is_any(self) -> bool {
        self.left.is_some() || self.right.is_some()
    }
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
    /// How series are matched; `None` unless both sides are instant vectors.
    pub matching: Option<VectorMatching>,
}

/// The unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+`
    Plus,
    /// `-`
    Minus,
}

/// A unary operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Unary {
    /// Which operator.
    pub op: UnaryOp,
    /// Its operand.
    pub expr: Expr,
    /// Where it stands.
    pub span: Span,
}

/// An expression in parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct Paren {
    /// What is inside.
    pub expr: Expr,
    /// Where it stands.
    pub span: Span,
}

impl Expr {
    /// Where the expression stands in its text.
    pub fn span(&self) -> Span {
        match self {
            Expr::Number(node) => node.span,
            Expr::String(node) => node.span,
            Expr::Vector(node) => node.span,
            Expr::Matrix(node) => node.span,
            Expr::Subquery(node) => node.span,
            Expr::Call(node) => node.span,
            Expr::Aggregate(node) => node.span,
            Expr::Binary(node) => node.left.span().to(node.right.span()),
            Expr::Unary(node) => node.span,
            Expr::Paren(node) => node.span,
        }
    }

    /// What kind of value it has.
    pub fn value_type(&self) -> ValueType {
        match self {
            Expr::Number(_) => ValueType::Scalar,
            Expr::String(_) => ValueType::String,
            Expr::Vector(_) | Expr::Aggregate(_) => ValueType::Vector,
            Expr::Matrix(_) | Expr::Subquery(_) => ValueType::Matrix,
            Expr::Call(node) => node.function.returns,
            Expr::Binary(node) => {
                let both = [node.left.value_type(), node.right.value_type()];
                let is_scalar = both == [ValueType::Scalar; 2];
                if is_scalar { ValueType::Scalar } else { ValueType::Vector }
            }
            Expr::Unary(node) => node.expr.value_type(),
            Expr::Paren(node) => node.expr.value_type(),
        }
    }

    /// The expression without the parentheses around it.
    pub fn without_parens(&self) -> &Expr {
        let mut expr = self;
        while let Expr::Paren(paren) = expr {
            expr = &paren.expr;
        }
        expr
    }
}

/// A duration that depends on the query, or is written as a calculation.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationExpr {
    /// What it is.
    pub kind: DurationKind,
    /// Where it stands.
    pub span: Span,
}

/// The shapes of a [`DurationExpr`].
#[derive(Clone, Debug, PartialEq)]
pub enum DurationKind {
    /// A number of seconds, or a duration.
    Literal(NumberLiteral),
    /// `step()`: the query's step.
    Step,
    /// `range()`: from the query's start to its end.
    Range,
    /// `-duration`
    Negative(Box<DurationExpr>),
    /// `(duration)`
    Paren(Box<DurationExpr>),
    /// `duration + duration`; also `-`, `*`, `/`, `%` and `^`.
    Binary(BinaryOp, Box<[DurationExpr; 2]>),
    /// `max_of(duration, duration)`
    Max(Box<[DurationExpr; 2]>),
    /// `min_of(duration, duration)`
    Min(Box<[DurationExpr; 2]>),
}
