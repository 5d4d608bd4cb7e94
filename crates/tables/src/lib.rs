//! Ordinary tables: rows of business data that SQL joins with samples. This room keeps them, in memory
//! and durably, and knows no SQL.
//!
//! ```text
//!  SQL ─► Change ─► Transaction ─► Tables ─► the shared log (kind TABLES), a record a statement
//!                    staged on a     │  │
//!                    copy            │  └─► TableSet, published once it is durable ─► readers
//!                                    ▼
//!                        keeper: a file a table, and a manifest
//! ```
//!
//! What holds:
//! - A statement is there whole or not at all, before and after a crash, and nobody sees it before it
//!   is durable.
//! - What is wrong with a statement is found before anything of it is logged.
//! - Readers have a [`TableSet`] of one moment, which never changes and locks nobody out.
//! - Records of the log are numbered without gaps. A checkpoint says which it shows; the others are
//!   replayed, and one that is missing in between keeps the tables from opening.
//! - A file is never changed; it goes when a manifest that does not name it is durable.
//!
//! Formats: `docs/format/tables.md`. Decisions: `docs/decisions/0029-ordinary-tables.md`.

mod calendar;
pub mod change;
pub mod config;
pub mod datum;
pub mod error;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod keeper;
mod key;
pub mod limits;
mod manifest;
mod numeric;
mod pieces;
mod record;
pub mod repair;
mod row;
mod salvage;
pub mod schema;
pub mod set;
pub mod table;
pub mod tables;
mod tree;
pub mod verify;

pub use change::{Change, Counts, Savepoint, Source, Transaction};
pub use config::TablesConfig;
pub use datum::{ColumnType, Datum, Interval, Scalar};
pub use error::{Error, Result};
pub use schema::{Column, Constraint, ConstraintKind, Schema};
pub use set::TableSet;
pub use table::{Row, RowId, Rows, Table};
pub use tables::{TABLES_DIR, Tables, TablesOpening};
