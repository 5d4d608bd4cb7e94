//! Every limit of this room. Reaching one is [`crate::Error::TooLarge`], with the limit and the value.

/// Tables of a data directory.
pub const TABLES_MAX: usize = 10_000;
/// Columns of a table, as in PostgreSQL.
pub const COLUMNS_MAX: usize = 1600;
/// Constraints of a table, its primary key among them.
pub const CONSTRAINTS_MAX: usize = 64;
/// Properties of a table.
pub const PROPERTIES_MAX: usize = 1024;
/// Bytes of a name.
pub const NAME_SIZE_MAX: usize = 255;
/// Bytes of a default, of a property.
pub const TEXT_SIZE_MAX: usize = 16 << 10;
/// Bytes of an encoded row.
pub const ROW_SIZE_MAX: usize = 64 << 20;
/// Bytes of an encoded key: it is in memory once more.
pub const KEY_SIZE_MAX: usize = 8 << 10;
/// Elements of an array.
pub const ELEMENTS_MAX: usize = 1 << 20;
/// Digits of a number that is kept as text, before the point and behind it together: PostgreSQL's own.
pub const DIGITS_MAX: usize = 131_072 + 16_383;
/// What a row takes in memory beside its bytes: number, pointer, two counts, size.
pub const ROW_OVERHEAD: u64 = 48;
/// What an entry of a constraint takes beside its key.
pub const ENTRY_OVERHEAD: u64 = 48;
/// Bytes of what a statement, or a transaction, has done: a record of the log at most.
pub const STATEMENT_SIZE_MAX: usize = wal::RECORD_SIZE_MAX;
/// What a table takes beside its rows and its schema.
pub const TABLE_OVERHEAD: u64 = 1024;

// A row that is in a table has a record of the log, and a block of a file, that can hold it.
const _: () = assert!(ROW_SIZE_MAX < wal::RECORD_SIZE_MAX / 2);
const _: () = assert!(KEY_SIZE_MAX < ROW_SIZE_MAX);
// The largest schema is below the largest row.
const _: () = assert!(
    COLUMNS_MAX * (TEXT_SIZE_MAX + 2 * NAME_SIZE_MAX + 16)
        + PROPERTIES_MAX * (TEXT_SIZE_MAX + NAME_SIZE_MAX + 16)
        + CONSTRAINTS_MAX * (NAME_SIZE_MAX + 2 * COLUMNS_MAX + 16)
        < ROW_SIZE_MAX
);
