//! Why tables do not open, or do not change, named for what the caller must do.

use std::path::PathBuf;

/// Why tables do not open, or do not change. Unless it says otherwise nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is a table of that name.
    #[error("there is a table {table:?} already")]
    DuplicateTable {
        /// Its name.
        table: String,
    },
    /// There is none of that name.
    #[error("there is no table {table:?}")]
    NoSuchTable {
        /// The name.
        table: String,
    },
    /// A table cannot be so.
    #[error("table {table:?}: {reason}")]
    InvalidSchema {
        /// Its name.
        table: String,
        /// Why.
        reason: String,
    },
    /// A row with too many values, or too few.
    #[error("a row of {found} values for the {expected} columns of table {table:?}")]
    ColumnCount {
        /// Its name.
        table: String,
        /// Columns of the table.
        expected: usize,
        /// Values of the row.
        found: usize,
    },
    /// A value of another type than its column.
    #[error("column {column:?} of table {table:?} is {expected}, not {found}")]
    WrongType {
        /// Its name.
        table: String,
        /// The column's.
        column: String,
        /// The column's type.
        expected: String,
        /// The value's.
        found: &'static str,
    },
    /// A text that is none of its column's type.
    #[error("column {column:?} of table {table:?}: {value:?} is no {expected}")]
    InvalidValue {
        /// Its name.
        table: String,
        /// The column's.
        column: String,
        /// The column's type.
        expected: String,
        /// The text, or its beginning.
        value: String,
    },
    /// A null where there must be none.
    #[error("null value in column {column:?} of table {table:?}")]
    NotNull {
        /// Its name.
        table: String,
        /// The column's.
        column: String,
    },
    /// Two rows have a key that only one may have.
    #[error("duplicate key of constraint {constraint:?} of table {table:?}: {key}")]
    UniqueViolation {
        /// Its name.
        table: String,
        /// The constraint's.
        constraint: String,
        /// Columns and values, such as `(id, day)=(7, 2024-02-29)`.
        key: String,
    },
    /// A row that is to be changed is not there.
    #[error("table {table:?} has no row {row}")]
    NoSuchRow {
        /// Its name.
        table: String,
        /// The row's number.
        row: u64,
    },
    /// Somebody has changed a table since the transaction began: begin anew.
    #[error("table {table:?} has changed meanwhile")]
    Conflict {
        /// Its name.
        table: String,
    },
    /// More than there may be.
    #[error("{what}: {size}, the limit is {max}")]
    TooLarge {
        /// Of what, in words.
        what: &'static str,
        /// How large, or how many.
        size: u64,
        /// The limit.
        max: u64,
    },
    /// All tables together would take too much memory.
    #[error("tables would take {size} bytes of memory, the limit is {max}")]
    Full {
        /// What they would take.
        size: u64,
        /// [`crate::TablesConfig::memory_max`].
        max: u64,
    },
    /// Nothing may be written now.
    #[error("tables are read-only: {reason}")]
    ReadOnly {
        /// Why, and what to do.
        reason: String,
    },
    /// The log does not take or keep records. Whether a change that ended so is there after a restart is
    /// not known if it is [`wal::Error::Latched`]; nobody sees it before.
    #[error(transparent)]
    Wal(#[from] wal::Error),
    /// A file could not be read or written.
    #[error(transparent)]
    Vfs(#[from] vfs::Error),
    /// A file does not hold what it should.
    #[error("{path}: {reason}", path = path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("{path} has format {found}, this program knows up to {known}", path = path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known.
        known: u32,
    },
    /// A newer program wrote a record of the log.
    #[error("{path}: the record at byte {offset}: {what}", path = path.display())]
    NewerRecord {
        /// Which segment.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is not known of it.
        what: String,
    },
}

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether a newer program wrote what keeps tables from opening: nothing is damaged then.
    pub fn is_newer(&self) -> bool {
        matches!(self, Error::Newer { .. } | Error::NewerRecord { .. })
    }

    /// The file that it is about, or else the given one, and what is wrong with it.
    pub(crate) fn into_finding(self, file: PathBuf) -> (PathBuf, String) {
        match self {
            Error::Corrupt { path, reason } => (path, reason),
            other => (file, other.to_string()),
        }
    }
}

/// Fails when there is more of something than there may be.
pub(crate) fn check_limit(what: &'static str, size: usize, max: usize) -> Result<()> {
    match size <= max {
        true => Ok(()),
        false => Err(Error::TooLarge { what, size: size as u64, max: max as u64 }),
    }
}
