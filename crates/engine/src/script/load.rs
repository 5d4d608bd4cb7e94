//! Samples of a script into a source.

use super::parse::Point;
use crate::MemorySource;
use histogram::{ClassicHistogram, Histogram, ResetHint};
use model::sample::NANOS_PER_MILLI;
use model::{Labels, METRIC_NAME};
use std::collections::BTreeMap;

/// The label that holds a classic bucket's upper bound.
const BUCKET_LABEL: &str = "le";

/// Loads series; classic histograms as native ones with custom bounds too if `is_with_native`.
///
/// # Errors
/// Buckets that make no histogram.
pub(super) fn load(
    source: &mut MemorySource,
    series: Vec<(Labels, Vec<(i64, Point)>)>,
    is_with_native: bool,
) -> Result<(), String> {
    let natives = if is_with_native { natives(&series)? } else { Vec::new() };
    for (labels, points) in series.into_iter().chain(natives) {
        let mut before: Option<Histogram> = None;
        for (at_ms, point) in points {
            let timestamp = at_ms * NANOS_PER_MILLI;
            match point {
                Point::Number(value) => {
                    before = None;
                    source.append(&labels, timestamp, value);
                }
                Point::Histogram(noted) => {
                    let written = noted.histogram;
                    let reset_hint = hint_when_read(before.as_ref(), &written);
                    let read = Histogram { reset_hint, ..written.clone() };
                    source.append_histogram(&labels, timestamp, read);
                    before = Some(written);
                }
            }
        }
    }
    Ok(())
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
fn natives(
    series: &[(Labels, Vec<(i64, Point)>)],
) -> Result<Vec<(Labels, Vec<(i64, Point)>)>, String> {
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
