//! Parts of dates in UTC, and how far other zones are from it.

use super::super::{Argument, CallContext, Series};
use super::rows::map_rows;
use crate::error::Result;
use crate::functions::{self, Kernel};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    if context.name == "timezone_offset" {
        return timezone_offset(context, arguments);
    }
    context.expect_count(arguments, 0, 1)?;
    let dates = if arguments.is_empty() {
        let grid = context.grid;
        vec![context.nameless((0..grid.len).map(|idx| grid.at_ms(idx) as f64 / 1e3).collect())]
    } else {
        context.take(arguments, 0)?
    };
    let Some(Kernel::Date(part)) = functions::find(context.name).map(|found| found.kernel) else {
        return context.fail(format!("unknown function {:?}", context.name));
    };
    Ok(map_rows(context, dates, |values| {
        for value in values.iter_mut().filter(|value| !value.is_nan()) {
            *value = part(*value as i64);
        }
    }))
}

/// Seconds that clocks of a zone are ahead of UTC at each step. The zones are those that the
/// binary brings along, so answers do not depend on what a machine has installed.
fn timezone_offset(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 1, 1)?;
    let name = context.text(arguments, 0)?;
    let zone = match name {
        "" | "UTC" => TimeZone::UTC,
        _ => match TimeZoneDatabase::bundled().get(name) {
            Ok(zone) => zone,
            Err(_) => return context.fail(format!("no time zone {name:?}")),
        },
    };
    let grid = context.grid;
    let offset = |idx: usize| {
        let at = Timestamp::from_second(grid.at_ms(idx) / 1000);
        at.map_or(f64::NAN, |at| f64::from(zone.to_offset(at).seconds()))
    };
    Ok(vec![context.nameless((0..grid.len).map(offset).collect())])
}
