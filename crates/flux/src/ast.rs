//! The tree of a text.

use crate::error::Span;
use crate::time::Duration;
use std::sync::Arc;

/// A statement and its place.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum StatementKind {
    Import {
        path: Arc<str>,
        name: Arc<str>,
    },
    /// `name = value`, with or without `option` before it.
    Assign {
        name: Arc<str>,
        value: Expr,
    },
    /// `option package.name = value`
    SetOption {
        package: Arc<str>,
        name: Arc<str>,
        value: Expr,
    },
    Expr(Expr),
    Return(Expr),
}

/// An expression, its place, and how many levels it has.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    pub(crate) height: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Integer(i64),
    Float(f64),
    Text(Arc<str>),
    Duration(Duration),
    Time(i64),
    Regex(Arc<influxql::Pattern>),
    Parts(Vec<Expr>),
    Name(Arc<str>),
    Array(Vec<Expr>),
    /// `[key: value, ..]`
    Dictionary(Vec<(Expr, Expr)>),
    Record {
        with: Option<Box<Expr>>,
        fields: Vec<(Arc<str>, Expr)>,
    },
    Function(Arc<Function>),
    Call {
        callee: Box<Expr>,
        args: Vec<(Arc<str>, Expr)>,
    },
    /// `head |> call |> call`
    Pipe {
        head: Box<Expr>,
        calls: Vec<Expr>,
    },
    Member {
        object: Box<Expr>,
        name: Arc<str>,
    },
    Index {
        object: Box<Expr>,
        index: Box<Expr>,
    },
    Unary {
        op: &'static str,
        operand: Box<Expr>,
    },
    Binary {
        op: &'static str,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `a and b and c`: all terms side by side, as there may be hundreds.
    Logical {
        op: Logic,
        terms: Vec<Expr>,
    },
    If {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
}

/// `(a, b=1, tables=<-) => body`
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) params: Vec<Param>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) name: Arc<str>,
    pub(crate) default: Option<Expr>,
    /// Whether what stands before `|>` comes here.
    pub(crate) is_pipe: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Expr(Expr),
    Block(Vec<Statement>),
}
