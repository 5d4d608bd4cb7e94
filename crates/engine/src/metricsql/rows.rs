//! Rows of rollups that are made where their samples are read: by several threads when there are
//! many series (`engine/rows`).

use super::rollup::RollupCall;
use super::without_name;
use crate::context::Context;
use crate::error::Result;
use crate::options::QueryOptions;
use crate::row::Wanted;
use crate::rows::RowMaker;
use model::Labels;
use promql::metricsql::Selector;

/// A thread's own copy of a call that makes one row of each series.
struct Rows<'a> {
    call: RollupCall,
    options: &'a QueryOptions,
}

impl RowMaker for Rows<'_> {
    fn make(&mut self, timestamps: &[i64], values: &[f64], row: &mut [f64]) -> Result<()> {
        self.call.fill_row(timestamps, values, &|| self.options.check(), row)
    }
}

/// Calls `visit` with the row that `call`, which makes one, makes of each series of a selector, in
/// the source's order. Rows without any point may be among them, labels that are not `wanted` may
/// be missing.
///
/// # Errors
/// A limit, the deadline, a failed read, or what `visit` fails with.
pub(super) fn stream_rows(
    context: &Context<'_>,
    call: &RollupCall,
    selector: &Selector,
    wanted: Wanted<'_>,
    mut visit: impl FnMut(&Labels, &[f64]) -> Result<()>,
) -> Result<()> {
    let (options, range) = (context.options, call.time_range());
    let begin = || Rows { call: call.clone(), options };
    let (sets, steps) = ((&*selector.sets, range), call.steps());
    context.read_number_rows(sets, wanted, steps, &begin, |labels, row| {
        if call.keeps_name() || labels.metric_name().is_empty() {
            visit(labels, row)
        } else {
            visit(&without_name(labels), row)
        }
    })
}
