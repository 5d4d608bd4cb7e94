//! What may go wrong, with the code that PostgreSQL's clients know it by.

use datafusion::error::DataFusionError;
use thiserror::Error;

/// Why a statement has no answer.
#[derive(Debug, Error)]
pub enum SqlError {
    /// The text is no statement, or one that makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A statement that is not known here.
    #[error("{0}")]
    Unsupported(String),
    /// It is larger than it may be.
    #[error("{0}")]
    Limit(String),
    /// It would take more memory than it may.
    #[error("{0}")]
    Memory(String),
    /// The store cannot answer, or would take too long.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// It failed on its way.
    #[error("{0}")]
    Failed(String),
}

impl SqlError {
    /// PostgreSQL's code for it (<https://www.postgresql.org/docs/15/errcodes-appendix.html>).
    pub fn code(&self) -> &'static str {
        match self {
            SqlError::Invalid(_) => "42601",
            SqlError::Unsupported(_) => "0A000",
            SqlError::Limit(_) => "54000",
            SqlError::Memory(_) => "53200",
            SqlError::Store(store::Error::DeadlineExceeded) => "57014",
            SqlError::Store(store::Error::LimitExceeded { .. }) => "54000",
            SqlError::Store(_) | SqlError::Failed(_) => "XX000",
        }
    }
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> SqlError {
        let error = match error.find_root() {
            DataFusionError::External(inner) => {
                return match inner.downcast_ref::<store::Error>() {
                    Some(store::Error::DeadlineExceeded) => store::Error::DeadlineExceeded.into(),
                    _ => SqlError::Failed(inner.to_string()),
                };
            }
            root => root,
        };
        let text = error.strip_backtrace();
        match error {
            DataFusionError::SQL(..) | DataFusionError::Plan(_) => SqlError::Invalid(text),
            DataFusionError::SchemaError(..) => SqlError::Invalid(text),
            DataFusionError::NotImplemented(_) => SqlError::Unsupported(text),
            DataFusionError::ResourcesExhausted(_) => SqlError::Memory(text),
            _ => SqlError::Failed(text),
        }
    }
}
