//! Aggregates of TimescaleDB and its Toolkit over samples
//! (<https://docs.tigerdata.com/api/latest/hyperfunctions/>).
//!
//! ```text
//! rows ─ counter_agg, time_weight (points) ─► points by time ─ summaries ─► a row of all answers
//!      ─ stats_agg ─► PostgreSQL's own aggregates in a row      rate, average .. (accessors) ─► one of them
//!      ─ uddsketch (sketch) ─► counts of what lies near powers ─ approx_percentile ─► a number
//!      ─ histogram ─► counts
//!      ─ lttb ─► fewer points that look the same
//!      ─ percentile, mode ─► PostgreSQL's percentile_cont and mode
//! ```

pub(crate) mod accessors;
pub(crate) mod histogram;
pub(crate) mod lttb;
pub(crate) mod mode;
pub(crate) mod percentile;
pub(crate) mod points;
pub(crate) mod sketch;
pub(crate) mod summaries;

use crate::types::error::SqlError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::prelude::SessionContext;

/// Gives a session these functions.
pub fn register(context: &SessionContext) {
    points::functions().for_each(|one| context.register_udaf(one));
    context.register_udaf(histogram::histogram());
    context.register_udaf(lttb::lttb());
    context.register_udaf(sketch::uddsketch());
    percentile::functions().for_each(|one| context.register_udaf(one));
    mode::functions().for_each(|one| context.register_udaf(one));
    accessors::functions().for_each(|one| context.register_udf(one));
}

/// That a function takes each of equal values: those here do not know which they had.
fn not_distinct(name: &str, args: &AccumulatorArgs<'_>) -> Result<()> {
    if !args.is_distinct {
        return Ok(());
    }
    let words = format!("{name}(DISTINCT ..) is not known here");
    let hint = "SELECT DISTINCT in a subquery leaves one of equal rows.";
    Err(DataFusionError::External(Box::new(SqlError::unsupported(words).with_hint(hint))))
}
