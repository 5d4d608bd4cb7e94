//! Numbers about histograms, whose buckets are series that differ in `le` or `vmrange`.

use super::super::arguments::{format_shortest, with_label};
use super::super::{Argument, CallContext, Series};
use super::buckets::{Bucket, by_bound, ranges_to_bounds};
use crate::error::Result;
use model::{Labels, METRIC_NAME};

/// A number with the bounds that it lies between for sure.
#[derive(Clone, Copy)]
struct Bounded {
    value: f64,
    lower: f64,
    upper: f64,
}

impl Bounded {
    fn new(value: f64, lower: f64, upper: f64) -> Bounded {
        Bounded { value, lower, upper }
    }

    /// A number that is known exactly.
    fn exactly(value: f64) -> Bounded {
        Bounded::new(value, value, value)
    }
}

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    match context.name {
        "histogram_quantile" => with_bounds(context, arguments, quantile),
        "histogram_share" => with_bounds(context, arguments, share),
        "histogram_quantiles" => quantiles(context, arguments),
        "histogram_fraction" => fraction(context, arguments),
        "histogram_avg" => moments(context, arguments, |(mean, _)| mean),
        "histogram_stddev" => moments(context, arguments, |(_, variance)| variance.sqrt()),
        "histogram_stdvar" => moments(context, arguments, |(_, variance)| variance),
        _ => context.fail("no such function"),
    }
}

/// Histograms by their labels without the metric's name, buckets in order.
fn histograms(series: Vec<Series>) -> Vec<(Labels, Vec<Bucket>)> {
    by_bound(ranges_to_bounds(series), |name| name != "le" && name != METRIC_NAME)
}

/// A function of a number and a histogram, whose bounds are shown if a label for them is given.
fn with_bounds(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    function: fn(f64, &Column) -> Bounded,
) -> Result<Vec<Series>> {
    context.expect_count(arguments, 2, 3)?;
    let series = context.take(arguments, 1)?;
    let parameters = context.numbers(arguments, 0)?;
    let bounds_label = match arguments.len() {
        3 => context.text(arguments, 2)?,
        _ => "",
    };
    let mut out = Vec::new();
    for (labels, buckets) in histograms(series) {
        let buckets = merge_same_bounds(buckets);
        let mut column = Column::new(&buckets);
        let points: Vec<Bounded> = parameters
            .iter()
            .enumerate()
            .map(|(point, parameter)| {
                column.read(&buckets, point);
                function(*parameter, &column)
            })
            .collect();
        let row = |labels: Labels, part: fn(&Bounded) -> f64| Series {
            labels,
            values: points.iter().map(part).collect(),
        };
        out.push(row(labels.clone(), |point| point.value));
        if !bounds_label.is_empty() {
            out.push(row(with_label(&labels, bounds_label, "lower"), |point| point.lower));
            out.push(row(with_label(&labels, bounds_label, "upper"), |point| point.upper));
        }
    }
    Ok(out)
}

/// Several quantiles at once, told apart by a label.
fn quantiles(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 3)?;
    let last = arguments.len() - 1;
    let buckets = context.take(arguments, last)?;
    let label = context.text(arguments, 0)?;
    let found = histograms(buckets.clone()).len();
    context.check_made(found.saturating_mul(last))?;
    let mut out = Vec::new();
    for idx in 1..last {
        let mut arguments = [arguments[idx].clone(), Argument::Series(buckets.clone())];
        let name = format_shortest(context.number(&arguments, 0)?);
        for mut one in with_bounds(context, &mut arguments, quantile)? {
            one.labels = with_label(&one.labels, label, &name);
            out.push(one);
        }
    }
    Ok(out)
}

fn fraction(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 3, 3)?;
    let series = context.take(arguments, 2)?;
    let (lows, highs) = (context.numbers(arguments, 0)?, context.numbers(arguments, 1)?);
    if let (Some(low), Some(high)) = (lows.first(), highs.first())
        && high <= low
    {
        return context.fail(format!("the lower bound {low} is not below the upper one, {high}"));
    }
    let mut out = Vec::new();
    for (labels, buckets) in histograms(series) {
        let buckets = merge_same_bounds(buckets);
        let mut column = Column::new(&buckets);
        let points = lows.iter().zip(highs).enumerate();
        let values = points.map(|(point, (low, high))| {
            column.read(&buckets, point);
            share(*high, &column).value - share(*low, &column).value
        });
        out.push(Series { labels, values: values.collect() });
    }
    Ok(out)
}

/// A function of each histogram's average and variance.
fn moments(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    part: fn((f64, f64)) -> f64,
) -> Result<Vec<Series>> {
    let series = context.take_only(arguments)?;
    let row = |(labels, buckets): (Labels, Vec<Bucket>)| Series {
        labels,
        values: (0..context.grid.len).map(|point| part(moments_at(&buckets, point))).collect(),
    };
    Ok(histograms(series).into_iter().map(row).collect())
}

/// Average and variance, with all of a bucket at its middle. Infinite bounds have none.
fn moments_at(buckets: &[Bucket], point: usize) -> (f64, f64) {
    let (mut bound_before, mut count_before) = (0.0, 0.0);
    let (mut sum, mut squares, mut total) = (0.0, 0.0, 0.0);
    for bucket in buckets.iter().filter(|bucket| !bucket.bound.is_infinite()) {
        let middle = (bucket.bound + bound_before) / 2.0;
        let count = bucket.series.values[point];
        let weight = count - count_before;
        sum += middle * weight;
        squares += middle * middle * weight;
        total += weight;
        (bound_before, count_before) = (bucket.bound, count);
    }
    if total == 0.0 {
        return (f64::NAN, f64::NAN);
    }
    let mean = sum / total;
    let variance = squares / total - mean * mean;
    // The difference of nearly equal numbers may come out below zero.
    (mean, if variance < 0.0 { 0.0 } else { variance })
}

/// Adds up buckets of equal bounds.
fn merge_same_bounds(buckets: Vec<Bucket>) -> Vec<Bucket> {
    let mut merged: Vec<Bucket> = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        match merged.last_mut() {
            Some(last) if last.bound == bucket.bound => {
                let counts = last.series.values.iter_mut().zip(&bucket.series.values);
                counts.for_each(|(count, more)| *count += more);
            }
            _ => merged.push(bucket),
        }
    }
    merged
}

/// The buckets of a histogram at one point.
struct Column {
    bounds: Vec<f64>,
    /// Never falling.
    counts: Vec<f64>,
}

impl Column {
    fn new(buckets: &[Bucket]) -> Column {
        Column { bounds: buckets.iter().map(|bucket| bucket.bound).collect(), counts: Vec::new() }
    }

    /// Reads the counts. One that is missing or below the one before it is taken for that one.
    fn read(&mut self, buckets: &[Bucket], point: usize) {
        self.counts.clear();
        self.counts.extend(buckets.iter().map(|bucket| bucket.series.values[point]));
        if self.counts.len() < 2 {
            return;
        }
        let mut before = 0.0;
        for (idx, count) in self.counts.iter_mut().enumerate() {
            if count.is_nan() || (0 < idx && *count < before) {
                *count = before;
            }
            before = *count;
        }
    }

    /// The number of all observations; 0 without buckets.
    fn total(&self) -> f64 {
        self.counts.last().copied().unwrap_or(0.0)
    }

    fn buckets(&self) -> impl Iterator<Item = (f64, f64)> {
        self.bounds.iter().copied().zip(self.counts.iter().copied())
    }
}

/// The value below which a share of all observations lies.
fn quantile(q: f64, column: &Column) -> Bounded {
    let total = column.total();
    if q.is_nan() || total == 0.0 {
        return Bounded::exactly(f64::NAN);
    }
    if q < 0.0 {
        return Bounded::new(f64::NEG_INFINITY, f64::NEG_INFINITY, column.counts[0]);
    }
    if 1.0 < q {
        return Bounded::new(f64::INFINITY, total, f64::INFINITY);
    }
    let wanted = total * q;
    let (mut bound_before, mut count_before) = (0.0, 0.0);
    for (bound, count) in column.buckets() {
        if count <= 0.0 {
            bound_before = bound;
        } else if count < wanted {
            (bound_before, count_before) = (bound, count);
        } else if bound.is_infinite() {
            break;
        } else if count == count_before {
            return Bounded::new(bound_before, bound_before, count);
        } else {
            let inside = (wanted - count_before) / (count - count_before);
            let value = bound_before + (bound - bound_before) * inside;
            return Bounded::new(value, bound_before, bound);
        }
    }
    let finite = column.bounds.iter().rev().find(|bound| !bound.is_infinite());
    let value = finite.copied().unwrap_or(f64::NAN);
    Bounded::new(value, value, f64::INFINITY)
}

/// The share of all observations that lies up to a value.
fn share(up_to: f64, column: &Column) -> Bounded {
    if up_to.is_nan() {
        return Bounded::exactly(f64::NAN);
    }
    if up_to < 0.0 {
        return Bounded::exactly(0.0);
    }
    if up_to == f64::INFINITY {
        return Bounded::exactly(1.0);
    }
    let total = column.total();
    let (mut bound_before, mut count_before) = (0.0, 0.0);
    for (bound, count) in column.buckets() {
        if bound <= up_to {
            (bound_before, count_before) = (bound, count);
            continue;
        }
        let lower = count_before / total;
        if bound == f64::INFINITY {
            return Bounded::new(lower, lower, 1.0);
        }
        if bound_before == up_to {
            return Bounded::exactly(lower);
        }
        let inside = (up_to - bound_before) / (bound - bound_before);
        let value = lower + (count - count_before) / total * inside;
        return Bounded::new(value, lower, count / total);
    }
    Bounded::exactly(1.0)
}
