//! SQL over samples: Apache DataFusion plans and runs it, this room says what the tables are and
//! which conditions the store answers by itself.
//!
//! ```text
//! text ─ statements, rewrite ─► statement ─ DataFusion, on threads of its own ─► plan ─┬─ conditions ─► matchers, times (filters) ─► store
//!                                 └─ operators on labels ─► functions (jsonb)
//! samples ─► columns (rows) ─► DataFusion ─► [`Answer`]
//! ```
//!
//! It knows no sockets and no wire types.

mod catalog;
pub mod copy;
mod ddl_dml;
mod functions;
mod parse;
mod plan;
mod session;
pub mod tables;
mod types;

pub use crate::catalog::functions::Facts;
pub use crate::catalog::regproc::{REGPROC, regproc_texts};
pub use crate::catalog::relations::ROLE as OWNER;
pub use crate::catalog::settings::{KnownSetting, known_setting, known_settings};
pub use crate::functions::json::jsonb_functions::{JSON, JSONB, TYPE_KEY, check_json};
pub use crate::parse::rewrite::types::{array_of, is_oids_parameter};
pub use crate::parse::rewrite::{JSONB_PARAMETER, NUMERIC_PARAMETER, UUID_PARAMETER};
pub use crate::plan::declared::Declared;
pub use crate::plan::ready::Statement;
pub use crate::plan::typing::checked_casts::is_float_out_of_range;
pub use crate::plan::typing::special_types::{BPCHAR, UUID, VARCHAR};
pub use crate::session::batches::Batches;
pub use crate::session::database::{Answer, Database, Limits, Session};
pub use crate::session::prepared::Template;
pub use crate::tables::metrics::tables::ZONE;
pub use crate::types::casts::special_arrays::read_jsonb;
pub use crate::types::error::{ErrorObject, SqlError};
pub use crate::types::error_position::error_position;
pub use crate::types::names::shown_name;
pub use crate::types::numeric::conversions::numeric_value;
pub use crate::types::numeric::value::NUMERIC;
pub use crate::types::time::instants::{
    clock_of, date_of_text, instant_of, time_of_day, wrong_time,
};
pub use crate::types::time::interval_texts::interval_text;
pub use crate::types::uuids::{read as read_uuid, uuid_of};
pub use copy::{copy_rows, copy_values, parquet};
pub use datafusion;
pub use ddl_dml::{insert, upkeep};
pub use functions::text::bytea;
pub use session::{fuzzing, ordinary, statements};
pub use types::text::shown;
pub use types::time::zones;
