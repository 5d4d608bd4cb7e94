//! Tree and samples to values: the evaluation of queries.
//!
//! ```text
//! text ─ promql ─> Expr ─ eval ─┬─ selector ─ rollup ─> rows ─┬─ aggregate ─> groups ─┬─> result
//!                               │   (samples of one series    │                       │
//!                  Source ──────┘    at a time)               └─ transform, binary ───┘
//! ```
//!
//! Read in this order: [`mod@query`] (what goes in and comes out), `eval` (the match over the
//! tree), `selector` (which samples each step sees), `rollup`, `aggregate`, `binary`,
//! `transform`; native histograms have a folder of their own, `histograms`. Numbers are
//! Prometheus 3's: windows open on the left, its extrapolation, its compensated sums, its error
//! texts.
//!
//! The order of additions is fixed: series in the source's order, samples by time. The source
//! promises that its order does not depend on what was flushed or merged, so the same data give
//! the same bits.

mod aggregate;
mod annotations;
mod binary;
mod brief;
pub mod cache;
mod call;
mod context;
mod date;
mod error;
mod eval;
mod fill;
mod folded;
mod functions;
#[doc(hidden)]
pub mod fuzzing;
mod gap;
mod histograms;
mod matching;
mod memory_source;
mod metricsql;
mod names;
mod names_kept;
mod operators;
mod options;
mod order;
pub mod query;
mod read_ahead;
mod reservation;
mod result;
mod rollup;
mod row;
mod rows;
mod scalar;
pub mod script;
mod selector;
mod source;
mod starts;
mod staleness;
mod step_samples;
mod store_source;
mod time;
mod transform;
mod vector;
mod windows;

pub use cache::{CacheLimits, CacheStats, ResultCache, range_cached};
pub use error::{Limit, QueryError};
pub use memory_source::MemorySource;
pub use options::{
    MetricsQlOptions, NameRemoval, Partial, QueryLimits, QueryOptions, StartTimestamps, StepStats,
};
pub use query::{instant, instant_expr, range, range_expr};
pub use result::{Matrix, QueryResult, QueryStats, Sample, Timings, Value};
pub use source::{
    ChangeClock, LabelSink, MixedSink, SampleSink, SelectLimits, SeriesSet, Source, SourceError,
};
pub use time::StepRange;
