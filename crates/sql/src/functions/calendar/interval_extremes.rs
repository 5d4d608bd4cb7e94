//! `greatest` and `least` of intervals, which are in the order of what they are worth: `1 day` is less than `30 hours`.

use crate::types::function::function;
use crate::types::time::intervals::{INTERVAL, worth};
use datafusion::arrow::array::types::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

/// The greatest interval of several that is not NULL.
pub static GREATEST: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| extreme("pg_interval_greatest", Ordering::Greater));
/// The least interval of several that is not NULL.
pub static LEAST: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| extreme("pg_interval_least", Ordering::Less));

fn extreme(name: &'static str, wins: Ordering) -> Arc<ScalarUDF> {
    let signature = Signature::variadic_any(Volatility::Immutable);
    let work = move |args: &[ArrayRef], rows: usize| extremes(args, rows, wins);
    Arc::new(function(name, signature, |_| INTERVAL, work))
}

fn extremes(args: &[ArrayRef], rows: usize, wins: Ordering) -> Result<ArrayRef> {
    let columns = args.iter().map(|one| cast(one, &INTERVAL)).collect::<Result<Vec<_>, _>>()?;
    let columns: Vec<_> =
        columns.iter().map(|one| one.as_primitive::<IntervalMonthDayNanoType>()).collect();
    let better = |one: IntervalMonthDayNano, other: IntervalMonthDayNano| {
        // The first of those that are worth the same.
        if worth(&other).cmp(&worth(&one)) == wins { other } else { one }
    };
    let made: IntervalMonthDayNanoArray = (0..rows)
        .map(|row| {
            let values = columns.iter().filter(|one| one.is_valid(row)).map(|one| one.value(row));
            values.reduce(better)
        })
        .collect();
    Ok(Arc::new(made))
}
