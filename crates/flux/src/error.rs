//! Why a query has no answer, with its place in the text.

use std::sync::Arc;

/// A piece of the text: bytes from `start` to `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The first byte behind it.
    pub end: usize,
}

/// What kind of wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is no Flux.
    Syntax,
    /// A name that nobody defined, a function or an argument that is not there.
    Name,
    /// A value that an expression or a function cannot take.
    Runtime,
    /// A bucket that is not there.
    NotFound,
    /// More than a limit allows.
    Limit,
    /// The store could not be asked.
    Read,
}

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind of wrong.
    pub kind: ErrorKind,
    /// In words.
    pub message: Arc<str>,
    /// Where, once somebody knows.
    pub span: Option<Span>,
}

/// The outcome of most functions here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: Arc::from(message.into()), span: None }
    }

    pub(crate) fn syntax(span: Span, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Syntax, message).at(span)
    }

    pub(crate) fn name(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Name, message)
    }

    pub(crate) fn runtime(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Runtime, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotFound, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Limit, message)
    }

    pub(crate) fn read(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Read, message)
    }

    /// The same with a place, unless it has a nearer one.
    pub(crate) fn at(mut self, span: Span) -> Error {
        self.span.get_or_insert(span);
        self
    }

    /// As InfluxDB 2 words it, with lines and characters of `text`.
    pub fn words(&self, text: &str) -> String {
        let place = self.span.map(|span| {
            format!(" @{}-{}", position(text, span.start), position(text, span.end.max(span.start)))
        });
        let place = place.unwrap_or_default();
        match self.kind {
            ErrorKind::Syntax => format!("compilation failed: error{place}: {}", self.message),
            ErrorKind::Name => format!("error{place}: {}", self.message),
            _ => format!("runtime error{place}: {}", self.message),
        }
    }
}

impl From<influxql::EvalError> for Error {
    fn from(error: influxql::EvalError) -> Error {
        Error::read(error.0)
    }
}

/// Line and character, both from 1, of a byte.
fn position(text: &str, offset: usize) -> String {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    format!("{line}:{}", before.len() - start + 1)
}
