//! Each shape keeps its promises: so many series, so many samples, none twice, labels sorted.

use super::*;
use crate::instant::{HOUR_NS, SECOND_NS};
use crate::payload::{Protocol, remote_write_v2};
use std::collections::{BTreeMap, BTreeSet};

const SCALE: ShapeScale = ShapeScale {
    series: 57,
    samples_each: 300,
    interval_ns: 60 * SECOND_NS,
    start_ns: 1 << 60,
    seed: 5,
};

fn text(shape: &dyn Shape, series: u64) -> String {
    let mut labels = LabelSet::default();
    shape.labels(series, &mut labels);
    let tags = labels.tags().collect::<Vec<_>>();
    assert!(tags.windows(2).all(|pair| pair[0].0 < pair[1].0), "{tags:?}");
    assert!(tags.iter().all(|(name, value)| !name.is_empty() && !value.is_empty()), "{tags:?}");
    format!("{} {tags:?}", labels.metric_name())
}

#[track_caller]
fn check(name: &str) -> Vec<Point> {
    let workload = ShapeWorkload::new(name, SCALE).unwrap();
    let shape = workload.shape.as_ref();
    let points = (0..shape.samples()).map(|n| shape.point(n)).collect::<Vec<_>>();
    let mut label_sets = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for point in &points {
        let labels = label_sets.entry(point.series).or_insert_with(|| text(shape, point.series));
        assert!(seen.insert((labels.clone(), point.timestamp_ns)), "{name}: {point:?} twice");
        assert!(
            point.value.is_finite() && point.timestamp_ns % 1_000_000 == SCALE.start_ns % 1_000_000
        );
    }
    let times = points.iter().map(|point| point.timestamp_ns);
    assert_eq!((times.clone().min().unwrap(), times.max().unwrap()), shape.span_ns(), "{name}");
    let mut begun = BTreeSet::new();
    for (n, point) in points.iter().enumerate() {
        // Counted from above: a row's new series may all count with its first sample.
        begun.insert(point.series);
        let told = shape.series_of(n as u64 + 1);
        assert!(told >= begun.len() as u64, "{name}: {told} of {} after {n}", begun.len());
    }
    assert_eq!(shape.series_of(shape.samples()), shape.series(), "{name}");
    let distinct = label_sets.values().collect::<BTreeSet<_>>();
    assert_eq!(distinct.len() as u64, workload.series(), "{name}");
    assert_eq!(label_sets.len(), distinct.len(), "{name}: two series with equal labels");
    points
}

#[test]
fn random_labels_have_ten_labels_of_changing_names() {
    check("random-labels");
    let workload = ShapeWorkload::new("random-labels", SCALE).unwrap();
    let mut names = BTreeSet::new();
    for series in 0..SCALE.series {
        let mut labels = LabelSet::default();
        workload.shape.labels(series, &mut labels);
        assert_eq!(labels.tags().count(), 10);
        names.insert(labels.tags().map(|(name, _)| name.to_string()).collect::<Vec<_>>());
    }
    assert_eq!(names.len() as u64, SCALE.series);
}

#[test]
fn churn_replaces_a_tenth_every_hour() {
    let points = check("churn");
    let series_of_hour = |hour: i64| {
        let in_hour = |point: &&Point| (point.timestamp_ns - SCALE.start_ns) / HOUR_NS == hour;
        points.iter().filter(in_hour).map(|point| point.series).collect::<BTreeSet<_>>()
    };
    for hour in 1..5 {
        let (before, now) = (series_of_hour(hour - 1), series_of_hour(hour));
        assert_eq!(now.len() as u64, SCALE.series);
        let new = now.difference(&before).count();
        assert!((5..=6).contains(&new), "{new} of 57 replaced in hour {hour}");
    }
}

#[test]
fn one_sample_has_one_sample_a_series() {
    assert_eq!(check("one-sample").len() as u64, SCALE.series);
}

#[test]
fn long_values_are_200_bytes() {
    check("long-values");
    let workload = ShapeWorkload::new("long-values", SCALE).unwrap();
    let mut labels = LabelSet::default();
    workload.shape.labels(1, &mut labels);
    assert_eq!(labels.tags().filter(|(_, value)| value.len() == 200).count(), 5);
}

#[test]
fn out_of_order_is_late_by_less_than_an_hour() {
    let points = check("out-of-order");
    let mut newest = BTreeMap::new();
    let mut late_max = 0;
    for point in &points {
        let newest = newest.entry(point.series).or_insert(point.timestamp_ns);
        late_max = late_max.max(*newest - point.timestamp_ns);
        *newest = (*newest).max(point.timestamp_ns);
    }
    assert!(late_max > HOUR_NS / 2 && late_max < HOUR_NS, "late by {late_max} ns");
}

#[test]
fn backfill_spans_five_years() {
    let points = check("backfill");
    let (first, last) = (points[0].timestamp_ns, points[299].timestamp_ns);
    assert!(last - first > 1800 * 24 * HOUR_NS, "{} ns", last - first);
    assert!(points[..300].iter().all(|point| point.series == 0));
}

#[test]
fn workers_share_all_points() {
    let protocols =
        [Protocol::Influx, Protocol::RemoteWrite, Protocol::RemoteWriteV2, Protocol::Exposition];
    for protocol in protocols {
        let workload = ShapeWorkload::new("churn", SCALE).unwrap();
        let format = RequestFormat { protocol, lines_max: 100, samples_max: 100 };
        let (mut samples, mut plain) = (0, Vec::new());
        for idx in 0..3 {
            let mut requests = workload.requests(Share { idx, count: 3 }, format);
            while let Some(count) = requests.next(&mut plain) {
                samples += count;
                if protocol == Protocol::RemoteWriteV2 {
                    assert_eq!(remote_write_v2::decode(&plain).len() as u64, count);
                }
            }
        }
        assert_eq!(samples, workload.samples(), "{protocol:?}");
    }
}
