//! Aggregates of TimescaleDB and its Toolkit over samples
//! (<https://docs.tigerdata.com/api/latest/hyperfunctions/>).
//!
//! ```text
//! rows ─ counter_agg, time_weight (points) ─► points by time ─ summaries ─► a row of all answers
//!      ─ stats_agg ─► PostgreSQL's own aggregates in a row      rate, average .. (accessors) ─► one of them
//!      ─ uddsketch (sketch) ─► counts of what lies near powers ─ approx_percentile ─► a number
//!      ─ histogram ─► counts
//! ```

mod accessors;
mod histogram;
mod points;
mod sketch;
mod summaries;

use datafusion::prelude::SessionContext;

pub use accessors::STATS;

/// Gives a session these functions.
pub fn register(context: &SessionContext) {
    points::functions().for_each(|one| context.register_udaf(one));
    context.register_udaf(histogram::histogram());
    context.register_udaf(sketch::uddsketch());
    accessors::functions().for_each(|one| context.register_udf(one));
}
