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

mod advisory;
mod alternatives;
mod array_sets;
mod array_slices;
mod arrays;
mod batches;
mod bits;
mod bounded;
mod bounded_batches;
pub mod bytea;
mod calendar;
mod cancellable_joins;
mod cancellation;
mod catalog;
mod common_functions;
mod context;
mod correlated;
mod charged_aggregates;
mod checked;
mod checked_floats;
mod constant_folding;
pub mod copy;
mod copy_parquet;
pub mod copy_rows;
pub mod copy_values;
mod database;
mod decorrelation;
mod declared;
mod dialect;
mod direct;
mod error;
mod expansion;
mod explain;
mod extremes;
mod filters;
mod first_rows;
mod floats;
mod formatted;
mod function;
pub mod fuzzing;
mod gapfill;
mod guards;
mod hidden;
mod generate_series;
mod hypertables;
mod in_lists;
pub mod insert;
mod instants;
mod interval_products;
mod intervals;
mod json_gathered;
mod jsonb;
mod jsonb_changed;
mod jsonb_functions;
mod jsonb_makers;
mod jsonb_parts;
mod kept_order;
mod laterals;
mod levenshtein;
mod like_patterns;
mod listed;
mod markers;
mod md5;
mod memory;
mod metric_tables;
mod moving_floats;
mod names;
mod nested_rows;
mod newest;
mod operators;
mod now;
mod ntile;
mod null_arrays;
mod numeric;
pub mod ordinary;
pub mod parquet;
mod paired_floats;
mod patterns;
mod physical_order;
mod prepared;
mod policies;
mod prom;
mod prom_info;
mod prometheus;
mod promql_tables;
mod ready;
mod regexps;
mod rewrite;
mod rows;
mod runs;
mod serial;
mod set_operations;
mod samples;
mod scan;
pub mod shown;
mod sleep;
mod statement_scope;
pub mod statements;
mod steps;
mod straight;
mod string_agg;
pub mod tables;
mod taken;
mod templates;
mod texts;
mod text_search;
mod threads;
mod timescale_options;
mod ties;
mod toolkit;
mod typed;
pub mod upkeep;
mod uuids;
mod vectors;
mod width_bucket;
mod written;
mod views;
mod volatile;
mod yielding;
mod zone_abbreviations;
pub mod zones;

pub use crate::tables::ZONE;
pub use batches::Batches;
pub use catalog::functions::Facts;
pub use database::{Answer, Database, Limits, Session};
pub use datafusion;
pub use declared::Declared;
pub use error::SqlError;
pub use instants::{clock_of, instant_of, time_of_day};
pub use jsonb_functions::{JSONB, TYPE_KEY};
pub use names::shown_name;
pub use numeric::{NUMERIC, numeric_value};
pub use prepared::Template;
pub use ready::Statement;
pub use rewrite::{
    JSONB_PARAMETER, NUMERIC_PARAMETER, UUID_PARAMETER, array_of, interval_text, is_oids_parameter,
};
