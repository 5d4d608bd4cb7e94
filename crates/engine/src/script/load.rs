//! Samples of a script as a [`Subject`](super::Subject) takes them.

use super::parse::Point;
use super::subject::{Loaded, LoadedSample, LoadedSeries};
use histogram::{ClassicHistogram, Histogram, ResetHint};
use model::{Labels, METRIC_NAME};
use std::collections::BTreeMap;

/// The label that holds a classic bucket's upper bound.
const BUCKET_LABEL: &str = "le";

/// A series as the script has it: milliseconds and values.
type WrittenSeries = (Labels, Vec<(i64, Point)>);

/// Start timestamps of a series as the script has them, by the time of the sample; milliseconds.
type WrittenStarts = (Labels, Vec<(i64, i64)>);

/// The samples of series with their start timestamps; of classic histograms also native ones with
/// custom bounds if `is_with_native`. A start timestamp of no sample has nothing that it could tell
/// of and is left out, as is one of zero, which stands for none.
///
/// # Errors
/// Buckets that make no histogram.
pub(super) fn loaded(
    series: Vec<WrittenSeries>,
    starts: Vec<WrittenStarts>,
    is_with_native: bool,
) -> Result<Vec<LoadedSeries>, String> {
    let natives = if is_with_native { natives(&series)? } else { Vec::new() };
    let mut starts_by_labels: BTreeMap<Labels, BTreeMap<i64, i64>> = BTreeMap::new();
    for (labels, starts) in starts {
        let told = starts.into_iter().filter(|(_, start_ms)| *start_ms != 0);
        starts_by_labels.entry(labels).or_default().extend(told);
    }
    let none = BTreeMap::new();
    let all = series.into_iter().chain(natives).map(|(labels, points)| {
        let samples = as_read(points, starts_by_labels.get(&labels).unwrap_or(&none));
        (labels, samples)
    });
    Ok(all.collect())
}

/// The samples of one series, histograms with the reset hints of a reader.
fn as_read(points: Vec<(i64, Point)>, starts: &BTreeMap<i64, i64>) -> Vec<LoadedSample> {
    let mut before: Option<Histogram> = None;
    let mut samples = Vec::with_capacity(points.len());
    for (at_ms, point) in points {
        let loaded = match point {
            Point::Number(value) => {
                before = None;
                Loaded::Number(value)
            }
            Point::Histogram(noted) => {
                let written = noted.histogram;
                let reset_hint = hint_when_read(before.as_ref(), &written);
                let read = Histogram { reset_hint, ..written.clone() };
                before = Some(written);
                Loaded::Histogram(Box::new(read))
            }
        };
        let start_ms = starts.get(&at_ms).copied();
        samples.push(LoadedSample { at_ms, start_ms, loaded });
    }
    samples
}

/// What Prometheus' store tells about resets when it is read, which its scripts count on: it knows
/// of none within a chunk and begins a new one, of which it tells nothing, with each reset and each
/// change of the buckets' layout.
fn hint_when_read(before: Option<&Histogram>, written: &Histogram) -> ResetHint {
    if written.is_gauge() {
        return ResetHint::Gauge;
    }
    let compared =
        |histogram: &Histogram| Histogram { reset_hint: ResetHint::Unknown, ..histogram.clone() };
    let goes_on = before.is_some_and(|before| {
        !before.is_gauge()
            && written.reset_hint != ResetHint::Reset
            && before.schema == written.schema
            && before.zero_threshold == written.zero_threshold
            && before.custom_bounds == written.custom_bounds
            && !compared(written).is_reset_after(&compared(before))
    });
    if goes_on { ResetHint::NoReset } else { ResetHint::Unknown }
}

/// The native histograms that the classic ones of some series make.
fn natives(series: &[WrittenSeries]) -> Result<Vec<WrittenSeries>, String> {
    let mut found: BTreeMap<Labels, BTreeMap<i64, ClassicHistogram>> = BTreeMap::new();
    for (labels, points) in series {
        let Some((name, part)) = part_of_histogram(labels) else { continue };
        let mut builder = labels.to_builder();
        builder.set(METRIC_NAME, name);
        builder.remove(BUCKET_LABEL);
        let histograms = found.entry(builder.finish()).or_default();
        for (at_ms, point) in points {
            let Point::Number(value) = point else { continue };
            let histogram = histograms.entry(*at_ms).or_default();
            match part {
                Part::Bucket(bound) => histogram.set_bucket(bound, *value),
                Part::Count => histogram.set_count(*value),
                Part::Sum => histogram.set_sum(*value),
            }
        }
    }
    let convert = |(at_ms, histogram): (i64, ClassicHistogram)| {
        let histogram = histogram.convert().map_err(|error| error.to_string())?;
        let noted = histogram::Noted { histogram, hint: None };
        Ok((at_ms, Point::Histogram(Box::new(noted))))
    };
    let all = found.into_iter().map(|(labels, histograms)| {
        let points: Result<Vec<_>, String> = histograms.into_iter().map(convert).collect();
        Ok((labels, points?))
    });
    all.collect()
}

/// What a series is of a classic histogram.
#[derive(Clone, Copy)]
enum Part {
    Bucket(f64),
    Count,
    Sum,
}

/// The histogram's name and what the series is of it.
fn part_of_histogram(labels: &Labels) -> Option<(&str, Part)> {
    let name = labels.metric_name();
    if let Some(name) = name.strip_suffix("_bucket") {
        let bound: f64 = labels.get(BUCKET_LABEL)?.parse().ok()?;
        return (!bound.is_nan()).then_some((name, Part::Bucket(bound)));
    }
    if let Some(name) = name.strip_suffix("_count") {
        return Some((name, Part::Count));
    }
    Some((name.strip_suffix("_sum")?, Part::Sum))
}
