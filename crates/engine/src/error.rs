//! Why a query has no answer, sorted by what the client should do about it.

use promql::ParseError;

/// A query that failed. [`QueryError::error_type`] is the `errorType` of Prometheus' API.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// The text is no expression.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The request asks for what cannot be: a step of zero, too many steps, a range vector.
    #[error("{0}")]
    BadData(String),
    /// The expression has no value over this data.
    #[error("{0}")]
    Execution(String),
    /// It takes more than a limit allows.
    #[error("{message}")]
    Limit {
        /// Which.
        limit: Limit,
        /// The limit, what it allows, and what to do.
        message: String,
    },
    /// The query was only to be tried, and may be more than little work.
    #[error("the expression is not brief for sure")]
    NotBrief,
    /// The deadline passed.
    #[error(
        "query timed out in {0} (query.timeout). Select fewer series or a shorter range, or raise \
         --query.timeout"
    )]
    Timeout(&'static str),
    /// Somebody cancelled it.
    #[error("query was canceled in {0}")]
    Canceled(&'static str),
    /// Series were deleted while they were read, each time it was tried.
    #[error("series were deleted while the query read them; ask again")]
    Changed,
    /// Not everything can be read, and a part is not wanted.
    #[error("the answer would not be whole, and partial answers are denied: {0}")]
    Partial(String),
    /// The store failed.
    #[error("{0}")]
    Storage(String),
}

impl QueryError {
    /// Prometheus' word for the kind of error.
    pub fn error_type(&self) -> &'static str {
        match self {
            QueryError::Parse(_) | QueryError::BadData(_) => "bad_data",
            QueryError::Execution(_) | QueryError::Limit { .. } | QueryError::NotBrief => {
                "execution"
            }
            QueryError::Timeout(_) => "timeout",
            QueryError::Canceled(_) => "canceled",
            QueryError::Changed | QueryError::Partial(_) => "unavailable",
            QueryError::Storage(_) => "internal",
        }
    }

    /// Two series of one result have the same labels.
    pub(crate) fn same_labels() -> QueryError {
        QueryError::Execution("vector cannot contain metrics with the same labelset".to_string())
    }
}

/// The limits that a query can run into; each is set by a flag of the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Samples held at once.
    Samples,
    /// Series that one selector matches.
    Series,
    /// Memory of one query.
    QueryMemory,
    /// Memory of the whole process, of which a query gets a share.
    Memory,
    /// Samples from legacy backends.
    ElsewhereSamples,
    /// Bytes from legacy backends.
    ElsewhereSize,
    /// What a selector may cost when the query is only tried; no flag.
    Cost,
}

impl Limit {
    /// The flag that sets it.
    pub fn flag(self) -> &'static str {
        match self {
            Limit::Samples => "query.max-samples",
            Limit::Series => "query.max-series",
            Limit::QueryMemory => "query.max-memory",
            Limit::Memory => "memory-limit",
            Limit::ElsewhereSamples => "legacy-max-samples",
            Limit::ElsewhereSize => "legacy-max-size",
            Limit::Cost => "select.cost",
        }
    }
}

/// What every step of an evaluation returns.
pub(crate) type Result<T> = std::result::Result<T, QueryError>;
