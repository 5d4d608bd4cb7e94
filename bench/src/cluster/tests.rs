//! The data set is what it says it is, whoever sends which share.

use super::*;
use crate::instant::{HOUR_NS, SECOND_NS};
use crate::payload::protobuf::{Field, fields};
use std::collections::BTreeMap;

fn scale() -> Scale {
    let start_ns = 1_767_225_600 * SECOND_NS;
    Scale {
        nodes: 41,
        pods: 60,
        interval_ns: 1200 * SECOND_NS,
        start_ns,
        end_ns: start_ns + 30 * HOUR_NS,
        seed: 5,
    }
}

type Series = BTreeMap<Vec<(String, String)>, Vec<(i64, u64)>>;

/// Everything that so many workers send, by labels; times of a series must increase.
fn sent(cluster: &Cluster, workers: u64) -> (Series, u64) {
    let (mut all, mut count) = (Series::new(), 0);
    for idx in 0..workers {
        let share = Share { idx, count: workers };
        let format =
            RequestFormat { protocol: Protocol::RemoteWrite, lines_max: 1, samples_max: 1000 };
        let (mut requests, mut plain) = (cluster.requests(share, format), Vec::new());
        while let Some(samples) = requests.next(&mut plain) {
            count += samples;
            for (_, series) in fields(&plain) {
                let Field::Bytes(series) = series else { panic!("{series:?}") };
                put_series(&fields(series), &mut all);
            }
        }
    }
    (all, count)
}

fn put_series(parts: &[(u32, Field<'_>)], all: &mut Series) {
    let text = |field: &Field<'_>| match field {
        Field::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    let (mut labels, mut points) = (Vec::new(), Vec::new());
    for (number, part) in parts {
        let Field::Bytes(part) = part else { panic!("{part:?}") };
        let part = fields(part);
        match (number, &part[0].1, &part[1].1) {
            (1, name, value) => labels.push((text(name), text(value))),
            (2, Field::Fixed(value), Field::Varint(time)) => points.push((*time as i64, *value)),
            other => panic!("{other:?}"),
        }
    }
    assert!(labels.windows(2).all(|pair| pair[0].0 < pair[1].0), "{labels:?}");
    let known = all.entry(labels).or_default();
    known.extend(points);
    assert!(known.windows(2).all(|pair| pair[0].0 < pair[1].0), "{known:?}");
}

#[test]
fn counts_are_what_is_sent_and_shares_make_the_whole() {
    let cluster = Cluster::new(scale()).unwrap();
    let (one, count) = sent(&cluster, 1);
    assert_eq!((one.len() as u64, count), (cluster.series(), cluster.samples()));
    let (three, _) = sent(&cluster, 3);
    assert!(one == three);
    let again = Cluster::new(Scale { seed: 6, ..scale() }).unwrap();
    assert!(sent(&again, 1).0 != one);
}

#[test]
fn series_end_with_a_marker_and_nodes_come_back() {
    let (all, _) = sent(&Cluster::new(scale()).unwrap(), 1);
    let stale = 0x7ff0_0000_0000_0002;
    let is_of = |labels: &[(String, String)], wanted: &str| {
        labels.iter().any(|(name, value)| name == "__name__" && value == wanted)
    };
    let pods = all.iter().filter(|(labels, _)| is_of(labels, "kube_pod_info"));
    let ended = pods.filter(|(_, points)| points.last().unwrap().1 == stale).count();
    assert!(ended > 5, "{ended} pods ended");
    let boots = all.iter().filter(|(labels, _)| is_of(labels, "node_boot_time_seconds"));
    let returned = boots.filter(|(_, points)| {
        points.iter().position(|point| point.1 == stale).is_some_and(|at| at + 1 < points.len())
    });
    assert!(returned.count() > 0);
    let up = all.iter().filter(|(labels, _)| is_of(labels, "up")).collect::<Vec<_>>();
    assert!(up.iter().all(|(_, points)| points.len() as i64 == scale().rows()));
    assert!(up.iter().any(|(_, points)| points.iter().any(|point| point.1 == 0)));
}

#[test]
fn counters_fall_only_when_they_start_anew_and_buckets_grow_with_their_bound() {
    let (all, _) = sent(&Cluster::new(scale()).unwrap(), 1);
    let (mut falls, mut rises) = (0, 0);
    let mut buckets: BTreeMap<_, Vec<(f64, Vec<f64>)>> = BTreeMap::new();
    for (labels, points) in &all {
        let name = &labels.iter().find(|(name, _)| name == "__name__").unwrap().1;
        let values = points.iter().map(|(_, bits)| f64::from_bits(*bits)).collect::<Vec<_>>();
        if name.ends_with("_total") {
            falls += values.windows(2).filter(|pair| pair[1] < pair[0]).count();
            rises += values.windows(2).filter(|pair| pair[1] > pair[0]).count();
        }
        if let Some((_, bound)) = labels.iter().find(|(name, _)| name == "le") {
            let others = labels.iter().filter(|(name, _)| name != "le").collect::<Vec<_>>();
            buckets.entry(others).or_default().push((bound.parse().unwrap(), values));
        }
    }
    assert!(falls > 10 && falls * 100 < rises, "{falls} falls, {rises} rises");
    assert!(buckets.len() > 100);
    for mut histogram in buckets.into_values() {
        histogram.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in histogram.windows(2) {
            let is_grown = pair[0].1.iter().zip(&pair[1].1).all(|(low, high)| low <= high);
            assert!(is_grown, "{pair:?}");
        }
    }
}
