//! History as one OpenMetrics text: families whole, one after the other, samples with their times.
//!
//! `/metrics` and `/federate` write what is true now; here a series has many samples, and a reader wants
//! each of the millisecond, or nanosecond, that it had. What the text has no way to say is left to whoever
//! asks: [`has_plain_names`], markers of a series' end, native histograms.

use super::decode::Format;
use super::encode::{is_label_name, is_metric_name, push_family, push_series};
use crate::prom_json::number::{push_exposition_value, push_millis};
use model::sample::NANOS_PER_MILLI;
use model::{Labels, METRIC_NAME, Metadata, MetricKind, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Nanoseconds of a second.
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Floats that are tried for one that means a millisecond.
const NEIGHBOURS_MAX: usize = 4;

/// What is known of metrics, by their names.
pub type Known = BTreeMap<String, Metadata>;

/// Appends what a family begins with that has the samples of one metric alone.
///
/// A counter's family is its name without `_total`, unless another metric would be within it then; what is
/// called otherwise is no counter for OpenMetrics. Parts of a histogram or a summary are families of
/// their own: told as one, all parts of a time would have to stand together, and those of a year would be
/// in memory.
pub fn push_metric(out: &mut Vec<u8>, metric: &str, known: &Known, metrics: &BTreeSet<String>) {
    push_family(out, &family(metric, known, metrics), Format::OpenMetrics);
}

fn family(metric: &str, known: &Known, metrics: &BTreeSet<String>) -> Metadata {
    let of = |kind: MetricKind, name: &str, found: &Metadata| {
        // A unit is the end of the name, or none.
        let is_unit = |unit: &str| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_'));
        let unit = if is_unit(&found.unit) { found.unit.clone() } else { String::new() };
        Metadata { metric: name.to_string(), kind, help: found.help.clone(), unit }
    };
    let base = metric.strip_suffix("_total").filter(|base| !base.is_empty());
    let found = known.get(metric).or_else(|| known.get(base?));
    let Some(found) = found else { return of(MetricKind::Unknown, metric, &Metadata::default()) };
    let is_taken = |base: &str| {
        let other = |suffix: &str| metrics.contains(&format!("{base}{suffix}"));
        other("") || other("_created")
    };
    match (found.kind, base) {
        (MetricKind::Counter, Some(base)) if !is_taken(base) => {
            of(MetricKind::Counter, base, found)
        }
        (MetricKind::Gauge, _) if found.metric == metric => of(MetricKind::Gauge, metric, found),
        _ => of(MetricKind::Unknown, metric, found),
    }
}

/// Whether the names of a series are those that OpenMetrics 1.0 knows; others stand in quotes, which
/// Prometheus 3 reads.
pub fn has_plain_names(labels: &Labels) -> bool {
    let mut names = labels.iter().filter(|(name, _)| *name != METRIC_NAME);
    is_metric_name(labels.metric_name()) && names.all(|(name, _)| is_label_name(name))
}

/// What the lines of a series begin with.
pub fn line_head(labels: &Labels) -> Vec<u8> {
    let mut head = Vec::new();
    push_series(&mut head, labels);
    head.push(b' ');
    head
}

/// Appends a line.
pub fn push_line(out: &mut Vec<u8>, head: &[u8], value: f64, timestamp: Timestamp) {
    out.extend_from_slice(head);
    push_exposition_value(out, value);
    out.push(b' ');
    push_seconds(out, timestamp);
    out.push(b'\n');
}

/// Appends a time as seconds.
///
/// Prometheus takes the thousandfold of the float for milliseconds and cuts off what is behind the point.
/// Of some times, none of them between 2004 and 2038, the millisecond before is left: those get the digits
/// of the nearest float of which that is not so, less than two microseconds away.
fn push_seconds(out: &mut Vec<u8>, timestamp: Timestamp) {
    if timestamp % NANOS_PER_MILLI != 0 {
        return push_nanos(out, timestamp);
    }
    let millis = timestamp / NANOS_PER_MILLI;
    let exact = millis as f64 / 1000.0;
    let mut seconds = exact;
    for _ in 0..NEIGHBOURS_MAX {
        if (seconds * 1000.0).trunc() == millis as f64 {
            break;
        }
        seconds = if seconds < 0.0 { seconds.next_down() } else { seconds.next_up() };
    }
    match seconds == exact {
        true => push_millis(out, millis),
        false => out.extend_from_slice(zmij::Buffer::new().format_finite(seconds).as_bytes()),
    }
}

fn push_nanos(out: &mut Vec<u8>, timestamp: Timestamp) {
    if timestamp < 0 {
        out.push(b'-');
    }
    let nanos = timestamp.unsigned_abs();
    let (seconds, rest) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
    let text = format!("{seconds}.{rest:09}");
    out.extend_from_slice(text.trim_end_matches('0').as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;

    #[track_caller]
    fn check(timestamp: Timestamp, expected: &str) {
        let mut out = Vec::new();
        push_seconds(&mut out, timestamp);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn times_are_seconds() {
        check(0, "0");
        check(1_788_048_000_123_000_000, "1788048000.123");
        check(1_788_048_000_123_000_001, "1788048000.123000001");
        check(-1_500_000_000, "-1.500");
        check(-10, "-0.00000001");
        check(i64::MAX, "9223372036.854775807");
    }

    #[test]
    fn prometheus_finds_the_millisecond() {
        let mut random = Random::seeded(0x0e5);
        for _ in 0..100_000 {
            let millis = random.next() as i64 >> (21 + random.below(42));
            let mut out = Vec::new();
            push_seconds(&mut out, millis.saturating_mul(NANOS_PER_MILLI));
            if millis.saturating_mul(NANOS_PER_MILLI) / NANOS_PER_MILLI != millis {
                continue;
            }
            let seconds: f64 = std::str::from_utf8(&out).unwrap().parse().unwrap();
            assert_eq!((seconds * 1000.0).trunc(), millis as f64, "{millis}");
            assert!((seconds - millis as f64 / 1000.0).abs() < 2e-6, "{millis}");
        }
    }

    #[test]
    fn families_are_what_is_known_and_allowed() {
        let known: Known = [
            ("a_total", MetricKind::Counter, ""),
            ("b", MetricKind::Counter, ""),
            ("c", MetricKind::Counter, ""),
            ("d_seconds", MetricKind::Gauge, "seconds"),
            ("e", MetricKind::Gauge, "bytes"),
            ("f", MetricKind::Histogram, ""),
        ]
        .into_iter()
        .map(|(metric, kind, unit)| {
            let (metric, help, unit) = (metric.to_string(), "h\\\"".to_string(), unit.to_string());
            (metric.clone(), Metadata { metric, kind, help, unit })
        })
        .collect();
        let names = ["a_total", "b_total", "b", "c", "d_seconds", "e", "f_bucket", "g_total"];
        let metrics: BTreeSet<String> = names.map(str::to_string).into();
        let mut out = Vec::new();
        names.iter().for_each(|name| push_metric(&mut out, name, &known, &metrics));
        let text = String::from_utf8(out).unwrap();
        let types: Vec<&str> = text.lines().filter(|line| !line.contains("HELP")).collect();
        let expected = [
            "# TYPE a counter",
            "# TYPE b_total unknown",
            "# TYPE b unknown",
            "# TYPE c unknown",
            "# TYPE d_seconds gauge",
            "# UNIT d_seconds seconds",
            "# TYPE e gauge",
            "# TYPE f_bucket unknown",
            "# TYPE g_total unknown",
        ];
        assert_eq!(types, expected);
        assert!(text.contains("# HELP a h\\\\\\\"\n"), "{text}");
        assert!(has_plain_names(&Labels::from_pairs(&[("__name__", "a:b"), ("c_1", "é")])));
        assert!(!has_plain_names(&Labels::from_pairs(&[("__name__", "a"), ("c.d", "e")])));
    }
}
