//! Classic histograms: series that differ in `le` are the cumulative buckets of one histogram.
//! Native ones may be among them.

use crate::annotations::{Monotonicity, short};
use crate::call::CallContext;
use crate::context::Context;
use crate::error::Result;
use crate::gap::{ABSENT, is_absent};
use crate::histograms::cells::has_numbers;
use crate::histograms::functions::{self, Natives};
use crate::histograms::totals::{Reading, ReadingScope};
use crate::names::Key;
use crate::scalar::Scalar;
use crate::transform::math;
use crate::vector::Vector;
use histogram::Histogram;
use model::LabelsBuilder;
use promql::Span;
use std::collections::{BTreeSet, HashMap};

/// The label that holds a bucket's upper bound.
const BUCKET_LABEL: &str = "le";
/// Relative difference of two buckets' counts that is rounding, not counting.
const SMALL_DIFFERENCE: f64 = 1e-12;

/// A number of each native histogram, of which `reading` says what is needed.
pub(crate) fn each(
    call: &CallContext<'_>,
    reading: Reading,
    value_of: fn(&Histogram) -> f64,
) -> Result<Vector> {
    let _scope = ReadingScope::begin(&call.context.reading, reading);
    let vector = call.vector(0)?;
    call.without_names(functions::map(call.context, &vector, value_of)?)
}

/// `histogram_quantile`.
pub(crate) fn quantile(call: &CallContext<'_>) -> Result<Vector> {
    let (context, span) = (call.context, call.span(1));
    let _scope = ReadingScope::begin(&context.reading, Reading::Buckets);
    let q = call.scalar(0)?;
    warn_of_quantiles(context, &q, call.span(0));
    let buckets = call.vector(1)?;
    let classic = |step, buckets: &mut Vec<Bucket>| {
        told_quantile(context, span, call.grid.at_ms(step), q.at(step), buckets)
    };
    over_histograms(context, &buckets, span, classic, |step, name, histogram| {
        Some(functions::told_quantile(context, span, name, q.at(step), histogram))
    })
}

/// `histogram_fraction`.
pub(crate) fn fraction(call: &CallContext<'_>) -> Result<Vector> {
    let (context, span) = (call.context, call.span(2));
    let _scope = ReadingScope::begin(&context.reading, Reading::Buckets);
    let (lower, upper) = (call.scalar(0)?, call.scalar(1)?);
    let buckets = call.vector(2)?;
    let bounds = |step| (lower.at(step), upper.at(step));
    let classic = |step, buckets: &mut Vec<Bucket>| bucket_fraction(bounds(step), buckets);
    over_histograms(context, &buckets, span, classic, |step, name, histogram| {
        Some(functions::told_fraction(context, span, name, bounds(step), histogram))
    })
}

/// `histogram_quantiles`: as many quantiles as arguments, told apart by a label.
pub(crate) fn quantiles(call: &CallContext<'_>) -> Result<Vector> {
    let CallContext { context, grid, .. } = *call;
    let _scope = ReadingScope::begin(&context.reading, Reading::Buckets);
    let buckets = call.vector(0)?;
    let label = call.evaluator.string(call.argument(1))?;
    let span = call.span(0);
    let mut out = Vector::new(context, grid.len);
    for idx in 2..call.call.arguments.len() {
        let q = call.scalar(idx)?;
        warn_of_quantiles(context, &q, call.span(idx));
        let wanted: BTreeSet<u64> = q.values().iter().map(|value| value.to_bits()).collect();
        // The label's value is the quantile, so each one that occurs makes rows of its own.
        for bits in wanted {
            let value = f64::from_bits(bits);
            let is_asked = |step: usize| q.at(step).to_bits() == bits;
            let classic = |step, buckets: &mut Vec<Bucket>| match is_asked(step) {
                true => told_quantile(context, span, grid.at_ms(step), value, buckets),
                false => ABSENT,
            };
            let native = |step, name: &str, histogram: &Histogram| {
                let told = || functions::told_quantile(context, span, name, value, histogram);
                is_asked(step).then(told)
            };
            let rows = over_histograms(context, &buckets, span, classic, native)?;
            for (key, row) in rows.rows() {
                let mut builder = key.labels.to_builder();
                builder.set(&label, &quantile_text(value));
                let key = Key { labels: builder.finish(), drops_name: key.drops_name };
                out.push(context, key, row)?;
            }
        }
    }
    out.merge_same_labels()
}

/// A quantile as OpenMetrics writes the label of a summary: with a point.
fn quantile_text(q: f64) -> String {
    let text = short(if q == 0.0 { 0.0 } else { q });
    if q.is_finite() && !text.contains(['.', 'e']) { format!("{text}.0") } else { text }
}

/// A quantile of ordered buckets; what had to be repaired for it is noted.
fn told_quantile(
    context: &Context<'_>,
    span: Span,
    at_ms: i64,
    q: f64,
    buckets: &mut Vec<Bucket>,
) -> f64 {
    let (value, repair) = bucket_quantile(q, buckets);
    if let Some(repair) = repair {
        let found = Monotonicity { first_ms: at_ms, last_ms: at_ms, ..repair };
        context.annotations.monotonicity(span, found);
    }
    value
}

/// Warns of quantiles that are no numbers between 0 and 1.
fn warn_of_quantiles(context: &Context<'_>, q: &Scalar, span: Span) {
    for value in q.values() {
        warn_of_quantile(context, *value, span);
    }
}

/// Warns of a quantile that is no number between 0 and 1.
pub(crate) fn warn_of_quantile(context: &Context<'_>, value: f64, span: Span) {
    if !is_share(value) {
        let value = short(value);
        let message = format!("quantile value should be between 0 and 1, got {value}");
        context.annotations.warn(span, message);
    }
}

/// Warns of the largest, the smallest and any NaN of an aggregation's quantiles. Where there is a NaN
/// it is also the largest and the smallest, but for infinities.
pub(crate) fn warn_of_extreme_quantiles(context: &Context<'_>, q: &Scalar, span: Span) {
    let values = || q.values().iter().copied();
    if values().any(f64::is_nan) {
        warn_of_quantile(context, f64::NAN, span);
    }
    for extreme in [values().fold(0.0, math::max), values().fold(1.0, math::min)] {
        warn_of_quantile(context, extreme, span);
    }
}

/// Whether a number is between 0 and 1.
pub(crate) fn is_share(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

/// One bucket: observations up to a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bucket {
    upper: f64,
    count: f64,
}

/// Groups the rows by histogram and calls `value_of` with each histogram's buckets at each step,
/// ordered by bound, and `native_of` with the metric's name and each native histogram.
fn over_histograms(
    context: &Context<'_>,
    vector: &Vector,
    span: Span,
    mut value_of: impl FnMut(usize, &mut Vec<Bucket>) -> f64,
    native_of: impl FnMut(usize, &str, &Histogram) -> Option<f64>,
) -> Result<Vector> {
    let histograms = classic_histograms(context, vector, span);
    let mut natives = Natives::of(vector);
    let mut out = Vector::new(context, vector.steps());
    let mut row = vec![ABSENT; vector.steps()];
    let mut buckets = Vec::new();
    for (key, mut rows) in histograms {
        context.check()?;
        // Bounds that are written in two ways are added up in an order that is always the same.
        let written = |row: &(f64, usize)| vector.key(row.1).labels.get(BUCKET_LABEL).unwrap_or("");
        rows.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| written(a).cmp(written(b))));
        for (step, value) in row.iter_mut().enumerate() {
            buckets.clear();
            for (upper, idx) in &rows {
                let count = vector.row(*idx)[step];
                if !is_absent(count) && vector.histogram(*idx, step).is_none() {
                    buckets.push(Bucket { upper: *upper, count });
                }
            }
            let is_alone = !buckets.is_empty() && !natives.clash(&key, step);
            *value = if is_alone { value_of(step, &mut buckets) } else { ABSENT };
        }
        out.push(context, key, &row)?;
    }
    natives.push_rows(context, span, native_of, &mut out)?;
    out.without_names(context.options.name_removal)
}

/// The classic histograms of a vector: their labels, and the bounds and rows of their buckets.
fn classic_histograms(
    context: &Context<'_>,
    vector: &Vector,
    span: Span,
) -> Vec<(Key, Vec<(f64, usize)>)> {
    let mut by_key: HashMap<Key, usize> = HashMap::new();
    let mut histograms: Vec<(Key, Vec<(f64, usize)>)> = Vec::new();
    for (idx, (key, row)) in vector.rows().enumerate() {
        let cells = vector.cells(idx);
        if !cells.is_empty() && !has_numbers(row, cells) {
            continue;
        }
        let bound = key.labels.get(BUCKET_LABEL).unwrap_or("");
        let Some(upper) = parse_bound(bound) else {
            let bound = promql::quote(bound);
            let message =
                format!("bucket label \"le\" is missing or has a malformed value of {bound}");
            let name = functions::late_name(context, key);
            context.annotations.warn(span, functions::named(message, name));
            continue;
        };
        let histogram = without_bound(key);
        let at = *by_key.entry(histogram.clone()).or_insert_with(|| {
            histograms.push((histogram, Vec::new()));
            histograms.len() - 1
        });
        histograms[at].1.push((upper, idx));
    }
    histograms
}

/// A bound as Go parses floats, which accepts a little less than Rust.
fn parse_bound(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn without_bound(key: &Key) -> Key {
    let mut builder = LabelsBuilder::new();
    for (name, value) in key.labels.iter().filter(|(name, _)| *name != BUCKET_LABEL) {
        builder.push(name, value);
    }
    Key { labels: builder.finish(), drops_name: key.drops_name }
}

/// The quantile of ordered buckets, and what had to be repaired to tell it.
fn bucket_quantile(q: f64, buckets: &mut Vec<Bucket>) -> (f64, Option<Monotonicity>) {
    if q.is_nan() {
        return (f64::NAN, None);
    }
    if q < 0.0 {
        return (f64::NEG_INFINITY, None);
    }
    if 1.0 < q {
        return (f64::INFINITY, None);
    }
    if !ends_in_infinity(buckets) {
        return (f64::NAN, None);
    }
    coalesce(buckets);
    let repair = make_monotonic(buckets);
    let last = buckets.len() - 1;
    let observations = buckets[last].count;
    if buckets.len() < 2 || observations == 0.0 {
        return (f64::NAN, repair);
    }
    let mut rank = q * observations;
    let at = buckets[..last].partition_point(|bucket| below(bucket.count, rank));
    let value = if at == last {
        buckets[last - 1].upper
    } else if at == 0 && buckets[0].upper <= 0.0 {
        buckets[0].upper
    } else {
        let mut start = 0.0;
        let Bucket { upper: end, mut count } = buckets[at];
        if 0 < at {
            start = buckets[at - 1].upper;
            count -= buckets[at - 1].count;
            rank -= buckets[at - 1].count;
        }
        start + (end - start) * (rank / count)
    };
    (value, repair)
}

/// Whether `count` does not reach `rank`; NaN reaches nothing.
fn below(count: f64, rank: f64) -> bool {
    count.is_nan() || rank.is_nan() || count < rank
}

/// The share of observations between two bounds, of ordered buckets.
fn bucket_fraction((lower, upper): (f64, f64), buckets: &mut Vec<Bucket>) -> f64 {
    if !ends_in_infinity(buckets) {
        return f64::NAN;
    }
    coalesce(buckets);
    let count = buckets[buckets.len() - 1].count;
    if count == 0.0 || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if upper <= lower {
        return 0.0;
    }
    (rank_of(upper, buckets) - rank_of(lower, buckets)) / count
}

/// How many observations lie below `value`, interpolated within its bucket.
fn rank_of(value: f64, buckets: &[Bucket]) -> f64 {
    let total = buckets[buckets.len() - 1].count;
    // The first bucket begins at zero when it ends above.
    let mut start = if buckets[0].upper <= 0.0 { f64::NEG_INFINITY } else { 0.0 };
    let mut rank = 0.0;
    for bucket in buckets {
        if value <= start {
            return if total < rank { total } else { rank };
        }
        if value < bucket.upper {
            let inside = if start == f64::NEG_INFINITY {
                bucket.count
            } else {
                rank + (bucket.count - rank) * (value - start) / (bucket.upper - start)
            };
            return if total < inside { total } else { inside };
        }
        rank = bucket.count;
        start = bucket.upper;
    }
    total
}

fn ends_in_infinity(buckets: &[Bucket]) -> bool {
    buckets.last().is_some_and(|bucket| bucket.upper == f64::INFINITY)
}

/// Adds up buckets of equal bounds.
fn coalesce(buckets: &mut Vec<Bucket>) {
    buckets.dedup_by(|next, kept| {
        let is_same = next.upper == kept.upper;
        if is_same {
            kept.count += next.count;
        }
        is_same
    });
}

/// Lifts buckets that count less than one before them; small differences are lifted silently.
fn make_monotonic(buckets: &mut [Bucket]) -> Option<Monotonicity> {
    let mut repair: Option<Monotonicity> = None;
    let mut before = buckets[0].count;
    for bucket in &mut buckets[1..] {
        let count = bucket.count;
        if count == before {
            continue;
        }
        if nearly_equal(before, count) {
            bucket.count = before;
        } else if count < before {
            bucket.count = before;
            let found = repair.get_or_insert(Monotonicity {
                first_ms: 0,
                last_ms: 0,
                bucket_min: bucket.upper,
                bucket_max: bucket.upper,
                difference_max: 0.0,
                count: 1,
            });
            found.bucket_min = found.bucket_min.min(bucket.upper);
            found.bucket_max = found.bucket_max.max(bucket.upper);
            found.difference_max = found.difference_max.max(before - count);
        } else {
            before = count;
        }
    }
    repair
}

fn nearly_equal(a: f64, b: f64) -> bool {
    if a == b || (a.is_nan() && b.is_nan()) {
        return true;
    }
    let sum = a.abs() + b.abs();
    let difference = (a - b).abs();
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < SMALL_DIFFERENCE * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < SMALL_DIFFERENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(list: &[(f64, f64)]) -> Vec<Bucket> {
        list.iter().map(|(upper, count)| Bucket { upper: *upper, count: *count }).collect()
    }

    #[test]
    fn quantiles_are_interpolated() {
        let list = [(1.0, 10.0), (2.0, 30.0), (f64::INFINITY, 40.0)];
        let quantile = |q| bucket_quantile(q, &mut buckets(&list)).0;
        assert_eq!(quantile(0.5), 1.5);
        assert_eq!(quantile(0.125), 0.5);
        assert_eq!(quantile(0.9), 2.0);
        assert_eq!(quantile(-1.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.1), f64::INFINITY);
        assert!(quantile(f64::NAN).is_nan());
        assert!(bucket_quantile(0.5, &mut buckets(&[(1.0, 5.0)])).0.is_nan());
    }

    #[test]
    fn falls_are_repaired_and_told() {
        let list = [(1.0, 10.0), (2.0, 7.0), (f64::INFINITY, 20.0)];
        let (value, repair) = bucket_quantile(0.25, &mut buckets(&list));
        assert_eq!(value, 0.5);
        let repair = repair.unwrap();
        assert_eq!((repair.bucket_min, repair.difference_max), (2.0, 3.0));
    }

    #[test]
    fn fractions() {
        let list = [(1.0, 10.0), (2.0, 30.0), (f64::INFINITY, 40.0)];
        let fraction = |low, high| bucket_fraction((low, high), &mut buckets(&list));
        assert_eq!(fraction(0.0, 1.0), 0.25);
        assert_eq!(fraction(1.5, 2.0), 0.25);
        assert_eq!(fraction(2.0, f64::INFINITY), 0.25);
        assert_eq!(fraction(f64::NEG_INFINITY, f64::INFINITY), 1.0);
        assert_eq!(fraction(2.0, 1.0), 0.0);
        assert!(fraction(f64::NAN, 1.0).is_nan());
    }
}
