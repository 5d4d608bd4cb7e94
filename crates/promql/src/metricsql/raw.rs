//! The tree as it was written, before templates are expanded: names stand for templates, metrics
//! or functions, which only the expansion tells apart.

use crate::ast::Grouping;
use crate::error::Span;
use crate::metricsql::ast::{BinaryOp, Duration, Matching};
use model::MatchOp;

/// A node of the tree. What is large is boxed, since every level of the parser holds some nodes
/// on its stack.
pub(crate) enum Raw {
    Number(f64, Span),
    String(String, Span),
    Duration(Duration, Span),
    Selector(Box<Selector>),
    Rollup(Box<Rollup>),
    Call(Box<Call>),
    Binary(Box<Binary>),
    /// None, or several expressions in parentheses.
    Union(Vec<Raw>, Span),
    With(Box<With>),
}

/// A piece of a string: `"a" + b + "c"` has three.
pub(crate) enum Piece {
    Literal(String),
    /// The name of a template.
    Name(String, Span),
}

/// `name{filters or filters}`
pub(crate) struct Selector {
    /// The name before the braces, which belongs to each set.
    pub name: Option<(String, Span)>,
    pub sets: Vec<Vec<Filter>>,
    pub span: Span,
}

/// A part of a selector.
pub(crate) enum Filter {
    /// `label="value"`
    Matcher { label: String, op: MatchOp, value: Vec<Piece>, span: Span },
    /// The name of a metric, in quotes.
    Metric(String, Span),
    /// The name of a template.
    Template(String, Span),
}

/// A duration or the name of a template.
pub(crate) enum Length {
    Fixed(Duration, Span),
    Template(String, Span),
}

/// `expr[window:step] offset x @ y`
pub(crate) struct Rollup {
    pub expr: Raw,
    pub window: Option<Length>,
    pub step: Option<Length>,
    pub has_colon: bool,
    pub offset: Option<Length>,
    pub at: Option<Raw>,
    pub span: Span,
}

/// A call of a function, an aggregation or a template.
pub(crate) struct Call {
    pub name: String,
    pub name_span: Span,
    pub arguments: Vec<Raw>,
    pub keep_metric_names: bool,
    /// `by` or `without`.
    pub grouping: Option<Grouping>,
    pub limit: u64,
    pub span: Span,
}

/// `group_left (labels) prefix "x"`
pub(crate) struct Join {
    pub is_left: bool,
    pub labels: Vec<String>,
    pub prefix: Vec<Piece>,
}

/// What stands between the operands of a binary operation.
pub(crate) struct Operator {
    pub op: BinaryOp,
    pub returns_bool: bool,
    pub keep_metric_names: bool,
    pub matching: Option<Matching>,
    pub join: Option<Join>,
    pub fill_left: Option<f64>,
    pub fill_right: Option<f64>,
}

/// `left op right`
pub(crate) struct Binary {
    pub operator: Operator,
    pub left: Raw,
    pub right: Raw,
}

/// `WITH (definitions) body`
pub(crate) struct With {
    pub definitions: Vec<Definition>,
    pub body: Raw,
}

/// `name = body` or `name(parameters) = body`
pub(crate) struct Definition {
    pub name: String,
    pub parameters: Vec<String>,
    pub body: Raw,
}

impl Raw {
    /// Where it stands.
    pub(crate) fn span(&self) -> Span {
        match self {
            Raw::Number(_, span) | Raw::String(_, span) | Raw::Duration(_, span) => *span,
            Raw::Union(_, span) => *span,
            Raw::Selector(node) => node.span,
            Raw::Rollup(node) => node.span,
            Raw::Call(node) => node.span,
            Raw::Binary(node) => node.left.span().to(node.right.span()),
            Raw::With(node) => node.body.span(),
        }
    }
}
