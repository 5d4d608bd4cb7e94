//! Ordinary tables in SQL: `CREATE TABLE`, `INSERT`, `UPDATE`, `DELETE`, and their rows in queries beside
//! samples. The rows themselves, and what makes them durable, are the room `tables`.
//!
//! ```text
//! DDL ─► definitions ──────────────────────────────┐
//! INSERT ─► inserts, conflicts ─► values (Datum) ──┼─► View's transaction ─► tables
//! UPDATE, DELETE ─► changes ─► query of row numbers ┘         │
//! SELECT ─► DataFusion ─► scan ─► View ◄──────────────────────┘
//! ```
//! A statement outside a transaction is one of its own. Statements that write take turns, so that none of
//! them finds that another one has changed its table; a transaction may, at its `COMMIT`.

pub use crate::catalog::schemas::{Client, OwnCatalogs, State as PlanningState};
pub use crate::copy::rows_in::RowsInto;
pub use crate::ddl_dml::definitions::define::Definition;
pub use crate::ddl_dml::definitions::defined::Defined;
pub use crate::ddl_dml::rows::writes::{PlannedWrite, Write};
pub use crate::tables::heap::binary::{numeric_bytes, numeric_text, plain_numeric_text};
pub use crate::tables::heap::lookups::Lookups;
pub use crate::tables::heap::stored_settings::Setting;
pub use crate::tables::heap::view::{Fate, View};

pub use crate::tables::heap::values::array_texts;
