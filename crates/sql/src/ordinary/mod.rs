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

mod alters;
mod arrays;
mod assignments;
mod binary;
mod changes;
mod columns;
mod conflicts;
mod copies;
mod defaults;
mod definitions;
mod indexes;
mod inserts;
mod kept;
mod lookups;
mod maintenance;
mod numbers;
mod role_settings;
mod rows_in;
mod scan;
mod schemas;
mod shown_defaults;
mod values;
mod view;
mod writes;

pub use binary::{numeric_bytes, numeric_text, plain_numeric_text};
pub(crate) use copies::column_for;
pub use definitions::{Defined, Definition};
pub(crate) use definitions::{define, is_written};
pub(crate) use kept::{Kept, text as kept_text, text_of as text_kept};
pub use lookups::Lookups;
pub use role_settings::Setting;
pub(crate) use role_settings::settings_of;
pub use rows_in::RowsInto;
pub(crate) use rows_in::store;
pub use schemas::{Client, OwnCatalogs, State as PlanningState};
pub use view::{Fate, View};
pub(crate) use writes::{
    Parameters, Runner, Written, add_parameters, insert_target, plan_write, quoted, row_size,
    selecting, table_name, write,
};
pub use writes::{PlannedWrite, Write};

pub(crate) use alters::same_columns;
pub(crate) use arrays::array_of;
pub(crate) use columns::{
    INTERVAL_FIELDS, column_type, field_of as table_field, type_oid_and_modifier,
};
pub(crate) use defaults::{identity_of, is_numbered, is_serial};
pub(crate) use indexes::is_index;
pub(crate) use numbers::text_of;
pub(crate) use scan::Ordinary;
pub(crate) use shown_defaults::shown_default;
pub use values::array_texts;
pub(crate) use values::{of_scalar as datum_of, read as read_text, shown_type};
