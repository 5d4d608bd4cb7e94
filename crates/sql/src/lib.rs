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
//!
//! Its folders are layers. A file uses its own folder and those below it, never those above:
//!
//! | layer | contents |
//! |---|---|
//! | `session` | sessions, statements by kind, prepared statements, threads, advisory locks |
//! | `copy` | `COPY`: its statements, values of rows, Parquet |
//! | `ddl_dml` | statements that change tables and rows |
//! | `plan` | passes over plans in one list (`plan/passes`), planning and running of queries |
//! | `parse` | tokens, rewrites of the syntax tree, queries as they are planned |
//! | `catalog` | PostgreSQL's own tables and functions about them |
//! | `tables` | samples (`metrics`), `hypertables`, ordinary tables (`heap`) |
//! | `functions` | functions by family, and their register |
//! | `types` | errors, text input and output, casts, the dialect, cancellation and memory |

mod catalog;
pub mod copy;
mod ddl_dml;
mod functions;
mod parse;
mod plan;
mod session;
pub mod tables;
mod types;

pub use crate::catalog::names::ROLE as OWNER;
pub use crate::catalog::regproc::{REGPROC, regproc_texts};
pub use crate::catalog::settings::{KnownSetting, known_setting, known_settings};
pub use crate::parse::declared_types::Declared;
pub use crate::parse::rewrite::types::is_oids_parameter;
pub use crate::plan::ready::Statement;
pub use crate::session::batches::Batches;
pub use crate::session::database::{Answer, Database, Limits, Session};
pub use crate::session::prepared::Template;
pub use crate::types::casts::special_arrays::read_jsonb;
pub use crate::types::error::{ErrorObject, SqlError};
pub use crate::types::error_position::error_position;
pub use crate::types::facts::Facts;
pub use crate::types::json::jsonb::check_json;
pub use crate::types::names::shown_name;
pub use crate::types::numeric::conversions::numeric_value;
pub use crate::types::numeric::value::NUMERIC;
pub use crate::types::parameter_types::JSONB_PARAMETER;
pub use crate::types::parameter_types::NUMERIC_PARAMETER;
pub use crate::types::parameter_types::UUID_PARAMETER;
pub use crate::types::special_fields::BPCHAR;
pub use crate::types::special_fields::JSON;
pub use crate::types::special_fields::JSONB;
pub use crate::types::special_fields::TYPE_KEY;
pub use crate::types::special_fields::UUID;
pub use crate::types::special_fields::VARCHAR;
pub use crate::types::text::array_literals::array_of;
pub use crate::types::text::literals::is_float_out_of_range;
pub use crate::types::time::instants::{
    clock_of, date_of_text, instant_of, time_of_day, wrong_time,
};
pub use crate::types::time::interval_texts::interval_text;
pub use crate::types::time::zones::ZONE;
pub use crate::types::uuids::{read as read_uuid, uuid_of};
pub use copy::{copy_rows, copy_values, parquet};
pub use datafusion;
pub use ddl_dml::{insert, upkeep};
pub use session::{fuzzing, ordinary, statements};
pub use types::text::bytea_text as bytea;
pub use types::text::shown;
pub use types::time::zones;
