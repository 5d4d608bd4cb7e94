//! `histogram`, the bounds of its bins, and `histogramQuantile`.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::table::{Column, Table};
use crate::value::{Kind, Value};

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "histogram", histogram),
    function("", "histogramQuantile", histogram_quantile),
    function("", "linearBins", bins),
    function("", "logarithmicBins", bins),
];

/// Bins of one histogram.
const BINS_MAX: usize = 10_000;

fn required_float(call: &Call<'_>, name: &'static str) -> Result<f64> {
    let missing = || Error::name(format!("{}: missing required argument {name}", call.name));
    call.float(name)?.ok_or_else(missing)
}

/// `linearBins(start, width, count)` and `logarithmicBins(start, factor, count)`
fn bins(call: Call<'_>) -> Result<Value> {
    let is_linear = call.name == "linearBins";
    let start = required_float(&call, "start")?;
    let step = required_float(&call, if is_linear { "width" } else { "factor" })?;
    let missing = || Error::name(format!("{}: missing required argument count", call.name));
    let count = call.count("count")?.ok_or_else(missing)?;
    let has_last = call.switch("infinity")?.unwrap_or(true);
    call.done()?;
    if BINS_MAX < count {
        return Err(Error::limit(format!("{}: more than {BINS_MAX} bins", call.name)));
    }
    let next = |bound: &f64| Some(if is_linear { bound + step } else { bound * step });
    let bounds = std::iter::successors(Some(start), next).take(count);
    let last = has_last.then_some(f64::INFINITY);
    Ok(Value::list(bounds.chain(last).map(Value::Float).collect()))
}

fn bounds_of(call: &Call<'_>) -> Result<Vec<f64>> {
    let value = call.required("bins")?;
    let Value::Array(items) = &value else {
        return Err(call.wrong("bins", "array of floats", &value));
    };
    if BINS_MAX < items.len() {
        return Err(Error::limit(format!("histogram: more than {BINS_MAX} bins")));
    }
    let mut bounds = Vec::with_capacity(items.len());
    for item in items.iter() {
        match item {
            Value::Float(bound) => bounds.push(*bound),
            other => return Err(call.wrong("bins", "array of floats", other)),
        }
    }
    bounds.sort_by(f64::total_cmp);
    Ok(bounds)
}

/// How many values are at most as large as each bound.
fn histogram(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let bounds = bounds_of(&call)?;
    let name = call.text_or("column", "_value")?;
    let bound_name = call.text_or("upperBoundColumn", "le")?;
    let count_name = call.text_or("countColumn", "_value")?;
    let is_share = call.switch("normalize")?.unwrap_or(false);
    call.done()?;
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let column = table.column(&name).ok_or_else(|| no_column(&name))?;
        if column.kind != Kind::Float {
            let words = column.kind.words();
            return Err(Error::runtime(format!("column {name:?} must be a float got {words}")));
        }
        let mut counts = vec![0_u64; bounds.len()];
        for value in (0..table.rows).filter_map(|row| column.number(row)) {
            let at = bounds.partition_point(|bound| *bound < value);
            let beyond = || Error::runtime(format!("found value greater than any bin: {value}"));
            *counts.get_mut(at).ok_or_else(beyond)? += 1;
        }
        let all: u64 = counts.iter().sum();
        let share = if is_share { all as f64 } else { 1.0 };
        let mut sum = 0;
        let cells = counts.into_iter().map(|count| {
            sum += count;
            sum as f64 / share
        });
        let cells = cells.collect();
        let mut made = table.key_alone(bounds.len());
        made.set(Column::floats(&bound_name, bounds.clone()));
        made.set(Column::floats(&count_name, cells));
        out.push(made)
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

/// Bounds and counts of a histogram, sorted.
type Counts = Vec<(f64, f64)>;

/// The histogram of a table; nothing if it is dropped because a count is lower than that of a
/// smaller bound.
fn histogram_of(
    table: &Table,
    (bound_name, count_name): (&str, &str),
    policy: &str,
) -> Result<Option<Counts>> {
    let bounds = table.column(bound_name).ok_or_else(|| no_column(bound_name))?;
    let counts = table.column(count_name).ok_or_else(|| no_column(count_name))?;
    let null = || Error::runtime("unexpected null in a histogram");
    let mut pairs = Vec::with_capacity(table.rows);
    for row in 0..table.rows {
        let bound = bounds.number(row).ok_or_else(null)?;
        pairs.push((bound, counts.number(row).ok_or_else(null)?));
    }
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    if pairs.is_sorted_by(|one, other| one.1 <= other.1) {
        return Ok(Some(pairs));
    }
    match policy {
        "drop" => Ok(None),
        "force" => {
            let mut most = f64::NEG_INFINITY;
            for (_, count) in &mut pairs {
                most = most.max(*count);
                *count = most;
            }
            Ok(Some(pairs))
        }
        _ => Err(Error::runtime("histogram records counts are not monotonic")),
    }
}

/// The value that a part of the counted are at most as large as, on a line between two bounds.
fn quantile_of(pairs: &[(f64, f64)], quantile: f64, least: f64) -> Result<Value> {
    let Some((highest, all)) = pairs.last().copied() else {
        return Err(Error::runtime("histogram is empty"));
    };
    if all == 0.0 {
        return Ok(Value::Null);
    }
    let rank = quantile * all;
    let above = pairs.iter().rposition(|(_, count)| *count <= rank).map_or(0, |at| at + 1);
    let Some((high, high_count)) = pairs.get(above).copied() else {
        return Ok(Value::Float(highest));
    };
    let (low, low_count) = above.checked_sub(1).map_or((least, 0.0), |below| pairs[below]);
    let part = (rank - low_count) / (high_count - low_count);
    Ok(Value::Float(match (low, high) {
        (low, _) if rank == low_count => low,
        (f64::NEG_INFINITY, high) => high,
        (low, f64::INFINITY) => low,
        (low, high) => low + (high - low) * part,
    }))
}

fn histogram_quantile(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let quantile = required_float(&call, "quantile")?;
    let count_name = call.text_or("countColumn", "_value")?;
    let bound_name = call.text_or("upperBoundColumn", "le")?;
    let to = call.text_or("valueColumn", "_value")?;
    let least = call.float("minValue")?.unwrap_or(0.0);
    let policy = call.text_or("onNonmonotonic", "error")?;
    call.done()?;
    if !matches!(&*policy, "error" | "force" | "drop") {
        let message = format!("invalid onNonmonotonic {policy:?}: use error, force or drop");
        return Err(Error::runtime(message));
    }
    let mut out = call.evaluation.collector();
    call.evaluation.each(&stream, &mut |table| {
        let names = (&*bound_name, &*count_name);
        let Some(pairs) = histogram_of(&table, names, &policy)? else { return Ok(()) };
        let value = quantile_of(&pairs, quantile, least)?;
        let column = Column::values(&to, Kind::Float, vec![value]);
        out.push(super::aggregates::one_row(&table, column))
    })?;
    Ok(Value::Stream(out.finish().stream()))
}
