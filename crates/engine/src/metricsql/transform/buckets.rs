//! Buckets of histograms: from ranges to cumulative bounds, and fewer of them.
//!
//! ```text
//! vmrange="0.1...0.2"  3          le="0.1"   0      a bound below, where none is yet
//! vmrange="0.2...0.5"  4   ──>    le="0.2"   3      each bound counts
//! vmrange="1...2"      1          le="0.5"   7      all below it
//!                                 le="1"     7
//!                                 le="2"     8
//!                                 le="+Inf"  8
//! ```

use super::super::arguments::{filter_labels, parse_float, with_label};
use super::super::{Argument, CallContext, Series};
use crate::error::Result;
use model::Labels;
use std::collections::HashMap;

/// Hits below this are a rounding error.
const HITS_MIN: f64 = 1e-9;
/// The first and the last bucket, which keep the range, and one between them.
const LIMIT_MIN: usize = 3;
/// Points that two series may both have while they are taken for one, and the number of points
/// up to which they never are.
const OVERLAP_MAX: usize = 2;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    if context.name == "prometheus_buckets" {
        return Ok(ranges_to_bounds(context.take_only(arguments)?));
    }
    context.expect_count(arguments, 2, 2)?;
    let limit = context.integer(arguments, 0)?;
    if limit <= 0 {
        return context.fail(format!("limit {limit} is not positive"));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(LIMIT_MIN);
    let series = ranges_to_bounds(context.take(arguments, 1)?);
    let mut out = Vec::new();
    for (_, buckets) in by_bound(series, |name| name != "le") {
        limit_buckets(buckets, limit, &mut out);
    }
    Ok(out)
}

/// One bucket of a histogram.
pub(super) struct Bucket {
    /// Its upper bound.
    pub bound: f64,
    /// The series that counts it.
    pub series: Series,
}

/// Histograms by the labels that `is_kept` holds for, in the order of their first bucket. What
/// has no bound is left out.
pub(super) fn by_bound(
    series: Vec<Series>,
    is_kept: fn(&str) -> bool,
) -> Vec<(Labels, Vec<Bucket>)> {
    let mut known: HashMap<Labels, usize> = HashMap::new();
    let mut histograms: Vec<(Labels, Vec<Bucket>)> = Vec::new();
    for one in series {
        let Some(bound) = one.labels.get("le").and_then(parse_float) else { continue };
        let labels = filter_labels(&one.labels, is_kept);
        let idx = *known.entry(labels.clone()).or_insert_with(|| {
            histograms.push((labels, Vec::new()));
            histograms.len() - 1
        });
        histograms[idx].1.push(Bucket { bound, series: one });
    }
    for (_, buckets) in &mut histograms {
        buckets.sort_by(|a, b| a.bound.total_cmp(&b.bound));
    }
    histograms
}

/// Leaves out those of a histogram's ordered buckets that tell the least.
fn limit_buckets(mut buckets: Vec<Bucket>, limit: usize, out: &mut Vec<Series>) {
    if limit < buckets.len() {
        let mut hits = hits(&buckets);
        // Empty buckets at the ends say less of the range than full ones.
        while limit < buckets.len() && hits.last().is_some_and(|hits| hits.abs() < HITS_MIN) {
            buckets.pop();
            hits.pop();
        }
        let empty = hits.iter().take_while(|hits| hits.abs() < HITS_MIN).count();
        let surplus = empty.min(buckets.len().saturating_sub(limit));
        buckets.drain(..surplus);
        hits.drain(..surplus);
        while limit < buckets.len() {
            let merged = least_merge(&hits);
            hits[merged + 1] += hits[merged];
            hits.remove(merged);
            buckets.remove(merged);
        }
    }
    out.extend(buckets.into_iter().map(|bucket| bucket.series));
}

/// What each bucket counts alone, over all points.
fn hits(buckets: &[Bucket]) -> Vec<f64> {
    let mut hits = vec![0.0; buckets.len()];
    let points = buckets.first().map_or(0, |bucket| bucket.series.values.len());
    for point in 0..points {
        let mut below = 0.0;
        for (hits, bucket) in hits.iter_mut().zip(buckets) {
            *hits += bucket.series.values[point] - below;
            below = bucket.series.values[point];
        }
    }
    hits
}

/// The bucket, neither the first nor the last nor the one before it, that has the fewest hits
/// together with the next.
fn least_merge(hits: &[f64]) -> usize {
    let mut least = 1;
    for idx in 1..hits.len() - 2 {
        if hits[idx] + hits[idx + 1] < hits[least] + hits[least + 1] {
            least = idx;
        }
    }
    least
}

/// A bucket with both its bounds, as a `vmrange` names it.
struct Range {
    start: f64,
    start_text: String,
    end: f64,
    end_text: String,
    /// Its counts; the labels are without the bounds.
    series: Series,
}

/// Makes cumulative buckets with `le` of those with `vmrange`. Series with `le` stay, others are
/// left out.
pub(in super::super) fn ranges_to_bounds(series: Vec<Series>) -> Vec<Series> {
    let mut out = Vec::new();
    let mut known: HashMap<Labels, usize> = HashMap::new();
    let mut histograms: Vec<Vec<Range>> = Vec::new();
    for one in series {
        if one.labels.get("vmrange").is_none() {
            if one.labels.get("le").is_some() {
                out.push(one);
            }
            continue;
        }
        let Some(range) = parse_range(one) else { continue };
        let idx = *known.entry(range.series.labels.clone()).or_insert_with(|| {
            histograms.push(Vec::new());
            histograms.len() - 1
        });
        histograms[idx].push(range);
    }
    for ranges in histograms {
        out.append(&mut cumulate(ranges));
    }
    out
}

fn parse_range(series: Series) -> Option<Range> {
    let (start_text, end_text) = series.labels.get("vmrange")?.split_once("...")?;
    let (start, end) = (parse_float(start_text)?, parse_float(end_text)?);
    let (start_text, end_text) = (start_text.to_string(), end_text.to_string());
    let labels = filter_labels(&series.labels, |name| name != "le" && name != "vmrange");
    Some(Range { start, start_text, end, end_text, series: Series { labels, ..series } })
}

/// The buckets of one histogram with `le`, each counting all below its bound.
fn cumulate(mut ranges: Vec<Range>) -> Vec<Series> {
    ranges.retain(|range| range.series.values.iter().any(|count| 0.0 < *count));
    ranges.sort_by(|a, b| a.end.total_cmp(&b.end));
    let Some(last) = ranges.last() else { return Vec::new() };
    let empty =
        Series { labels: last.series.labels.clone(), values: vec![0.0; last.series.values.len()] };
    let ends_below_infinity = last.end != f64::INFINITY;
    let mut bounds = merge_ranges(ranges, &empty);
    if ends_below_infinity {
        bounds.push(with_bound(empty.clone(), "+Inf"));
    }
    let mut counts = empty.values;
    for bucket in &mut bounds {
        for (count, value) in counts.iter_mut().zip(&mut bucket.values) {
            if 0.0 < *value {
                *count += *value;
            }
            *value = *count;
        }
    }
    bounds
}

/// Counts by upper bound, not yet cumulative, with a bound of nothing where a gap begins.
fn merge_ranges(ranges: Vec<Range>, empty: &Series) -> Vec<Series> {
    let mut bounds: Vec<Series> = Vec::new();
    let mut by_bound: HashMap<String, usize> = HashMap::new();
    let mut end_before = 0.0;
    for range in ranges {
        if range.start != end_before && !by_bound.contains_key(&range.start_text) {
            bounds.push(with_bound(empty.clone(), &range.start_text));
            by_bound.insert(range.start_text, bounds.len() - 1);
        }
        end_before = range.end;
        match by_bound.get(&range.end_text) {
            Some(known) => merge(&mut bounds[*known].values, &range.series.values),
            None => {
                by_bound.insert(range.end_text.clone(), bounds.len());
                bounds.push(with_bound(range.series, &range.end_text));
            }
        }
    }
    bounds
}

fn with_bound(series: Series, bound: &str) -> Series {
    Series { labels: with_label(&series.labels, "le", bound), ..series }
}

/// Puts the points of `from` into `into`, if these can be two parts of one series.
fn merge(into: &mut [f64], from: &[f64]) {
    let overlap = into.iter().zip(from).filter(|(a, b)| !a.is_nan() && !b.is_nan()).count();
    if OVERLAP_MAX < overlap || from.len() <= OVERLAP_MAX {
        return;
    }
    for (into, from) in into.iter_mut().zip(from).filter(|(_, from)| !from.is_nan()) {
        *into = *from;
    }
}
