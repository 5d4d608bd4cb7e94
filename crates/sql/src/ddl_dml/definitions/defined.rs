//! Results of statements that define tables.

use crate::tables::metrics::tables::TABLES;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defined {
    /// What is answered.
    pub tag: &'static str,
    /// Rows that a new table was filled with.
    pub rows: Option<u64>,
    /// What a client is told beside it.
    pub notices: Vec<String>,
    /// The one text that is answered, if there is one.
    pub answer: Option<String>,
    /// Hypertables whose rows go.
    pub(crate) emptied: Vec<String>,
}

/// Whether a name is that of a table that is there without anybody making it.
pub fn is_written(name: &str) -> bool {
    TABLES.iter().any(|one| one.name == name)
}
