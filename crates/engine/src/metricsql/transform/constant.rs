//! Functions that give a number, of the query rather than of series.

use super::super::arguments::parse_float;
use super::super::{Argument, CallContext, Series};
use crate::error::Result;
use model::Labels;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    if context.name == "scalar" {
        return scalar(context, arguments);
    }
    context.expect_count(arguments, 0, 0)?;
    let grid = context.grid;
    let at = |idx: usize| grid.at_ms(idx) as f64 / 1e3;
    Ok(match context.name {
        "pi" => context.constant(std::f64::consts::PI),
        "now" => context.constant(context.now_ms as f64 / 1e3),
        "start" => context.constant(at(0)),
        "end" => context.constant(context.end_ms as f64 / 1e3),
        "step" => context.constant(grid.step_ms as f64 / 1e3),
        _ => vec![context.nameless((0..grid.len).map(at).collect())],
    })
}

/// The number that a string says or that the only series is; gaps if there is none.
fn scalar(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 1, 1)?;
    if let Argument::Text(_) = &arguments[0] {
        let text = context.text(arguments, 0)?;
        return Ok(context.constant(parse_float(text).unwrap_or(f64::NAN)));
    }
    let mut series = context.take(arguments, 0)?;
    if let [one] = series.as_mut_slice() {
        one.labels = Labels::default();
        return Ok(series);
    }
    Ok(context.constant(f64::NAN))
}
