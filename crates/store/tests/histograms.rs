//! Native histograms: what goes in comes out, and nobody sees the series that hold them.

use crate::rows;
use crate::rows::Rows;
use histogram::{Bucket, Histogram, ResetHint};
use model::{Labels, MatchOp, Matcher, TimeRange};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use store::{
    CardinalityRequest, Durability, Error, LimitScope, SelectLimits, SeriesLimit, Store,
    StoreConfig,
};
use vfs::SimVfs;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const LIMITS: SelectLimits =
    SelectLimits { series_max: 1_000_000, deadline: None, cancelled: None, cost_max: u64::MAX };
/// 2020-02-01.
const START: i64 = 18_293 * DAY;

fn config() -> StoreConfig {
    StoreConfig {
        background: false,
        free_disk_min: 0,
        retention_clock_wait_ns: 0,
        ..StoreConfig::standard()
    }
}

fn open_with(config: StoreConfig) -> (SimVfs, Arc<Store>) {
    let disk = SimVfs::new(1);
    disk.set_now(START + 10 * DAY);
    let store = Store::open(Arc::new(disk.clone()), Path::new("/data"), config).unwrap();
    (disk, store)
}

fn open() -> (SimVfs, Arc<Store>) {
    open_with(config())
}

fn labels(metric: &str, job: &str) -> Labels {
    Labels::from_pairs(&[("__name__", metric), ("job", job)])
}

#[track_caller]
fn put(store: &Store, list: &[(Labels, i64, Histogram)]) {
    let appended = store.append_histograms(&rows::histograms(list), Durability::Synced).unwrap();
    assert_eq!((appended.samples as usize, appended.rejected), (list.len(), 0), "{appended:?}");
}

#[track_caller]
fn put_floats(store: &Store, list: &[(Labels, i64, f64)]) {
    let batch = rows::floats(&store.hasher(), list);
    let appended = store.append(&batch, Durability::Synced).unwrap();
    assert_eq!((appended.samples as usize, appended.rejected), (list.len(), 0), "{appended:?}");
}

/// Bits of floats, and histograms, by time.
type Found = BTreeMap<Labels, (Vec<(i64, u64)>, Vec<(i64, Histogram)>)>;

#[track_caller]
fn read(store: &Store, sets: &[Vec<Matcher>], range: TimeRange) -> Found {
    let selection = store.select(sets, range, &LIMITS).unwrap();
    let mut found = Found::new();
    selection
        .read_mixed(0..selection.len(), &mut |idx, times, values, histogram_times, histograms| {
            assert_eq!((times.len(), histogram_times.len()), (values.len(), histograms.len()));
            let floats = times.iter().zip(values).map(|(t, v)| (*t, v.to_bits())).collect();
            let histograms =
                histogram_times.iter().copied().zip(histograms.iter().cloned()).collect();
            let labels = selection.labels(idx).unwrap();
            assert!(found.insert(labels, (floats, histograms)).is_none());
        })
        .unwrap();
    let mut next = 0;
    selection
        .read(0..selection.len(), &mut |idx, times, values| {
            assert_eq!(idx, next);
            next += 1;
            let floats: Vec<(i64, u64)> =
                times.iter().zip(values).map(|(t, v)| (*t, v.to_bits())).collect();
            assert_eq!(found[&selection.labels(idx).unwrap()].0, floats);
        })
        .unwrap();
    let has_any = found.values().any(|(_, histograms)| !histograms.is_empty());
    assert!(selection.has_histograms() || !has_any);
    found
}

fn job(value: &str) -> Vec<Vec<Matcher>> {
    vec![vec![Matcher::equal("job", value)]]
}

#[test]
fn histograms_come_back_from_rows_and_parts_and_the_log() {
    let (disk, store) = open();
    let series = labels("h", "a");
    let all: Vec<(i64, Histogram)> =
        (0..200).map(|i| (START + i * 15 * SECOND, rows::histogram(i as u64))).collect();
    for (idx, some) in all.chunks(7).enumerate() {
        let list: Vec<_> = some.iter().map(|(t, h)| (series.clone(), *t, h.clone())).collect();
        put(&store, &list);
        if idx % 9 == 3 {
            store.flush().unwrap();
        }
    }
    let check = |store: &Store| {
        let found = read(store, &job("a"), TimeRange::ALL);
        assert_eq!(found, Found::from([(series.clone(), (Vec::new(), all.clone()))]));
        let range = TimeRange::new(all[50].0, all[120].0 - 1);
        let found = read(store, &job("a"), range);
        assert_eq!(found[&series].1, all[50..120]);
    };
    check(&store);
    let crashed = Store::open(Arc::new(disk.crash()), Path::new("/data"), config()).unwrap();
    check(&crashed);
    store.force_merge("").unwrap();
    check(&store);
    store.close().unwrap();
    drop(store);
    let store = Store::open(Arc::new(disk), Path::new("/data"), config()).unwrap();
    check(&store);
}

/// Some histograms of two metrics and two jobs, and floats beside them.
fn put_some(store: &Store) -> Found {
    let mut expected = Found::new();
    let (mut histograms, mut floats) = (Vec::new(), Vec::new());
    for (metric, job) in [("h", "a"), ("h", "b"), ("i", "a")] {
        let series = labels(metric, job);
        let own: &mut (Vec<_>, Vec<_>) = expected.entry(series.clone()).or_default();
        for i in 0..20 {
            let time = START + i * 60 * SECOND;
            let number = i as u64 + 100 * metric.len() as u64 + u64::from(job.as_bytes()[0]);
            if i % 5 == 0 {
                floats.push((series.clone(), time, i as f64));
                own.0.push((time, (i as f64).to_bits()));
            } else {
                histograms.push((series.clone(), time, rows::histogram(number)));
                own.1.push((time, rows::histogram(number)));
            }
        }
    }
    put(store, &histograms);
    put_floats(store, &floats);
    expected
}

#[test]
fn nobody_sees_the_series_that_hold_histograms() {
    let (_, store) = open();
    let expected = put_some(&store);
    let all: Vec<Labels> = expected.keys().cloned().collect();
    for round in 0..3 {
        let any = |name: &str, value: &str| vec![Matcher::new(name, MatchOp::Regex, value)];
        for sets in [
            vec![],
            vec![vec![]],
            vec![any("__name__", ".+")],
            vec![any("job", ".*"), any("job", ".+")],
            vec![vec![Matcher::new("__graphite__", MatchOp::Equal, "*")]],
            vec![vec![Matcher::equal("__quipu_histogram__", "")]],
            vec![vec![Matcher::new("__quipu_run__", MatchOp::NotEqual, "p0")]],
        ] {
            assert_eq!(read(&store, &sets, TimeRange::ALL), expected, "{sets:?}");
            assert_eq!(
                store.strict().series(&sets, TimeRange::ALL, &LIMITS).unwrap(),
                all,
                "{sets:?}"
            );
            let names = store.strict().label_names(&sets, TimeRange::ALL, &LIMITS).unwrap();
            assert_eq!(names, ["__name__", "job"], "{sets:?}");
            let values = |name: &str| {
                store.strict().label_values(name, &sets, TimeRange::ALL, &LIMITS).unwrap()
            };
            assert_eq!(values("__name__"), ["h", "i"], "{sets:?}");
            assert_eq!(values("__quipu_histogram__"), Vec::<String>::new(), "{sets:?}");
            assert_eq!(values("__quipu_run__"), Vec::<String>::new(), "{sets:?}");
        }
        for matcher in [
            Matcher::equal("__quipu_histogram__", "h"),
            Matcher::new("__quipu_histogram__", MatchOp::Regex, ".+"),
            Matcher::new("__quipu_run__", MatchOp::NotEqual, ""),
            Matcher::equal("__name__", "count"),
            Matcher::equal("__name__", "b0"),
        ] {
            let sets = [vec![matcher]];
            assert_eq!(read(&store, &sets, TimeRange::ALL), Found::new(), "{sets:?}");
            assert!(store.strict().series(&sets, TimeRange::ALL, &LIMITS).unwrap().is_empty());
        }
        assert_eq!(store.stats().series_current, 3);
        assert_eq!(store.stats().series_active, 3);
        assert_eq!(store.stats().series_new_total, 3);
        assert_eq!(store.stats().samples_appended_total, 60, "a histogram is a sample");
        check_counts(&store);
        match round {
            0 => store.flush().unwrap(),
            _ => store.force_merge("").unwrap(),
        }
    }
}

#[track_caller]
fn check_counts(store: &Store) {
    let request = CardinalityRequest {
        top_n: 10,
        day: None,
        sets: Vec::new(),
        focus_label: None,
        limits: LIMITS,
    };
    let found = store.strict().cardinality(&request).unwrap();
    assert_eq!((found.series, found.label_pairs), (3, 4));
    let names = |list: &[store::NameCount]| -> Vec<String> {
        list.iter().map(|row| row.name.clone()).collect()
    };
    assert_eq!(names(&found.by_metric), ["h", "i"]);
    assert_eq!(names(&found.by_label), ["__name__", "job"]);
    let hidden = names(&found.hidden_by_metric);
    assert_eq!(hidden, ["h", "i"], "what they cost is told under the metrics' own names");
    assert!(found.hidden_by_metric[0].count > 100, "{:?}", found.hidden_by_metric);
    let on_disk = store.stats().part_bytes;
    if on_disk != 0 {
        assert_eq!(names(&found.disk_bytes_by_metric).len(), 2);
        let by_metric: u64 = found.disk_bytes_by_metric.iter().map(|row| row.count).sum();
        // What is shared out among series is rounded.
        let all = found.disk_bytes;
        assert!(all * 99 / 100 <= by_metric && by_metric <= all, "{by_metric} of {all}");
        assert!(on_disk / 2 < all && all <= on_disk, "{all} of {on_disk}");
        let all = [&found.disk_bytes_by_pair, &found.index_bytes_by_label];
        assert!(all.iter().all(|list| list.iter().all(|row| !row.name.contains("quipu"))));
    }
    let new = store.new_series(&request, 1).unwrap();
    assert_eq!(new.series.series, 3);
    assert_eq!(new.hours.iter().map(|(_, count)| count).sum::<u64>(), 3);
    let unqueried = store.strict().unqueried(&request).unwrap();
    assert_eq!((unqueried.series, unqueried.hidden_by_metric.len()), (0, 0));
}

#[test]
fn reserved_labels_are_refused() {
    let (_, store) = open();
    for name in ["__quipu_histogram__", "__quipu_run__"] {
        let series = Labels::from_pairs(&[("__name__", "h"), (name, "x")]);
        let floats = rows::floats(&store.hasher(), &[(series.clone(), START, 1.0)]);
        let histograms = rows::histograms(&[(series, START, rows::histogram(1))]);
        for appended in [
            store.append(&floats, Durability::Synced).unwrap(),
            store.append_histograms(&histograms, Durability::Synced).unwrap(),
        ] {
            assert_eq!((appended.samples, appended.rejected), (0, 1));
            let reason = &appended.rejections[0].reason;
            assert!(reason.contains(name) && reason.contains("reserved"), "{reason}");
        }
    }
    assert!(read(&store, &[], TimeRange::ALL).is_empty());
}

/// A float with the bits of the marker of `histogram`.
fn forged(histogram: &Histogram) -> f64 {
    let (disk, store) = open();
    let series = labels("h", "a");
    put(&store, &[(series, START, histogram.clone())]);
    store.flush().unwrap();
    drop(disk);
    let mut lowered = store::inside::Lowered::default();
    lowered.push(0, histogram).unwrap();
    let value = lowered.histograms[0].value;
    assert!(store::inside::Marker::of(value).is_some());
    value
}

#[test]
fn a_forged_marker_stays_a_float() {
    let histogram = (0..).map(rows::histogram).find(|one| !one.negative.is_empty()).unwrap();
    let forged = forged(&histogram);
    let (_, store) = open();
    let series = labels("h", "a");
    let only_floats = labels("f", "a");
    put_floats(&store, &[(only_floats.clone(), START, forged), (series.clone(), START, forged)]);
    put(&store, &[(series.clone(), START + SECOND, histogram.clone())]);
    put_floats(&store, &[(series.clone(), START + 2 * SECOND, forged)]);
    // In the place of a histogram, but of another layout.
    let last = START + 3 * SECOND;
    let other = Histogram { negative: Vec::new(), ..histogram.clone() };
    assert_ne!(other, histogram);
    put(&store, &[(series.clone(), last, other)]);
    put_floats(&store, &[(series.clone(), last, forged)]);
    for _ in 0..2 {
        let found = read(&store, &job("a"), TimeRange::ALL);
        let bits = forged.to_bits();
        assert_eq!(found[&only_floats].0, [(START, bits)]);
        let (floats, histograms) = &found[&series];
        assert_eq!(floats, &[(START, bits), (START + 2 * SECOND, bits), (last, bits)]);
        assert_eq!(histograms, &[(START + SECOND, histogram.clone())]);
        store.force_merge("").unwrap();
    }
}

#[test]
fn the_last_write_of_an_instant_wins() {
    let (_, store) = open();
    let series = labels("h", "a");
    let at = |i: i64| START + i * SECOND;
    // Kinds with other runs, more and fewer.
    let numbers: Vec<u64> = (0..40).collect();
    let mut expected = BTreeMap::new();
    for (round, number) in numbers.iter().enumerate() {
        let list: Vec<_> = (0..10)
            .filter(|i| !(*i as usize + round).is_multiple_of(3))
            .map(|i| (series.clone(), at(i), rows::histogram(number * 31 + i as u64)))
            .collect();
        put(&store, &list);
        list.iter().for_each(|(_, time, one)| drop(expected.insert(*time, one.clone())));
        match round % 8 {
            3 => store.flush().unwrap(),
            5 => store.force_merge("").unwrap(),
            _ => {}
        }
        let found = read(&store, &job("a"), TimeRange::ALL);
        let wanted: Vec<_> = expected.iter().map(|(t, h)| (*t, h.clone())).collect();
        assert_eq!(found[&series].1, wanted, "round {round}");
    }
    // A float in the place of a histogram, and the other way round.
    put_floats(&store, &[(series.clone(), at(1), 5.0), (series.clone(), at(11), 6.0)]);
    put(&store, &[(series.clone(), at(11), rows::histogram(5))]);
    put(&store, &[(series.clone(), at(2), Histogram::stale())]);
    for _ in 0..2 {
        let found = read(&store, &job("a"), TimeRange::ALL);
        let (floats, histograms) = &found[&series];
        assert_eq!(floats, &[(at(1), 5f64.to_bits()), (at(2), model::STALE_NAN_BITS)]);
        assert_eq!(histograms.last(), Some(&(at(11), rows::histogram(5))));
        assert!(histograms.iter().all(|(time, _)| ![at(1), at(2)].contains(time)));
        store.force_merge("").unwrap();
    }
}

#[test]
fn deletion_takes_the_hidden_series_along() {
    let (_, store) = open();
    let expected = put_some(&store);
    let stale = store.select(&job("a"), TimeRange::ALL, &LIMITS).unwrap();
    let half = TimeRange::new(START, START + 9 * 60 * SECOND);
    let set = vec![Matcher::equal("__name__", "h"), Matcher::new("job", MatchOp::NotEqual, "b")];
    assert_eq!(store.delete(&[set], half).unwrap(), 1, "series that people see are counted");
    let mut left = expected.clone();
    let own = left.get_mut(&labels("h", "a")).unwrap();
    own.0.retain(|(time, _)| !half.contains(*time));
    own.1.retain(|(time, _)| !half.contains(*time));
    for round in 0..2 {
        assert_eq!(read(&store, &[], TimeRange::ALL), left, "round {round}");
        store.force_merge("").unwrap();
    }
    // What was deleted may be written again, with another layout.
    put(&store, &[(labels("h", "a"), START + 60 * SECOND, rows::histogram(77))]);
    left.get_mut(&labels("h", "a"))
        .unwrap()
        .1
        .insert(0, (START + 60 * SECOND, rows::histogram(77)));
    assert_eq!(read(&store, &[], TimeRange::ALL), left);
    let any = vec![vec![Matcher::new("__name__", MatchOp::Regex, "[hi]")]];
    assert_eq!(store.delete(&any, TimeRange::ALL).unwrap(), 3);
    assert!(read(&store, &[], TimeRange::ALL).values().all(|(f, h)| f.len() + h.len() == 0));
    store.force_merge("").unwrap();
    let stats = store.stats();
    assert_eq!((stats.part_samples, stats.series_current, stats.parts), (0, 0, 0));
    let gone = stale.read_mixed(0..stale.len(), &mut |_, _, _, _, _| ());
    assert!(matches!(gone, Err(Error::SeriesDropped)), "{gone:?}");
    assert_eq!(put_some(&store), expected);
    assert_eq!(read(&store, &[], TimeRange::ALL), expected);
}

#[test]
fn what_is_too_large_or_wrong_is_refused_with_the_limit() {
    let (_, store) = open();
    let series = labels("h", "a");
    let buckets = |count: i32| -> Vec<Bucket> {
        (0..count).map(|index| Bucket { index, count: 1.0 }).collect()
    };
    let good = Histogram { positive: buckets(16_384), sum: 1.5, ..Histogram::default() };
    let bad = [
        (Histogram { positive: buckets(16_385), ..Histogram::default() }, "the limit is 16384"),
        (Histogram { custom_bounds: vec![0.5; 16_385], ..Histogram::default() }, "custom bounds"),
        (Histogram { schema: 9, ..Histogram::default() }, "schema 9"),
        (
            Histogram {
                negative: vec![Bucket { index: 3, count: 1.0 }, Bucket { index: 3, count: 2.0 }],
                ..Histogram::default()
            },
            "increasing order",
        ),
    ];
    let edges = Histogram {
        positive: vec![
            Bucket { index: i32::MIN, count: -0.0 },
            Bucket { index: i32::MAX, count: f64::INFINITY },
        ],
        reset_hint: ResetHint::Gauge,
        ..Histogram::default()
    };
    let mut list: Vec<_> =
        bad.iter().map(|(one, _)| (series.clone(), START, one.clone())).collect();
    list.push((series.clone(), START + SECOND, good.clone()));
    list.push((series.clone(), START + 2 * SECOND, edges.clone()));
    list.push((series.clone(), START + 100 * DAY, good.clone()));
    list.push((Labels::from_pairs(&[("job", "a")]), START, good.clone()));
    let appended = store.append_histograms(&rows::histograms(&list), Durability::Synced).unwrap();
    assert_eq!((appended.samples, appended.rejected), (2, 6));
    for (idx, (_, reason)) in bad.iter().enumerate() {
        let told = appended.rejections.iter().find(|one| one.position == idx as u32).unwrap();
        assert!(told.reason.contains(reason), "{told:?}");
    }
    let reasons: Vec<&str> = appended.rejections.iter().map(|one| one.reason.as_str()).collect();
    assert!(reasons.iter().any(|one| one.contains("too far in the future")), "{reasons:?}");
    assert!(reasons.iter().any(|one| one.contains("missing metric name")), "{reasons:?}");
    let found = read(&store, &[], TimeRange::ALL);
    assert_eq!(found[&series].1, [(START + SECOND, good), (START + 2 * SECOND, edges)]);
}

#[test]
fn series_limits_refuse_a_histogram_whole() {
    let limit = SeriesLimit {
        name: "test".into(),
        scope: LimitScope::EachMetric,
        active_max: 10,
        new_hourly_max: u64::MAX,
        new_daily_max: u64::MAX,
    };
    let (disk, store) = open_with(StoreConfig { series_limits: vec![limit], ..config() });
    // A plain series, one entity of what all have, one run: three a histogram.
    let one = Histogram { positive: vec![Bucket { index: 1, count: 1.0 }], ..Histogram::default() };
    let list: Vec<_> =
        (0..5).map(|i| (labels("h", &format!("j{i}")), START, one.clone())).collect();
    let appended = store.append_histograms(&rows::histograms(&list), Durability::Synced).unwrap();
    assert_eq!((appended.samples, appended.rejected), (3, 2));
    let reason = &appended.rejections[0].reason;
    let expected = "new series refused: 9 active series of h, the limit is 10 (test)";
    assert!(reason.starts_with(expected), "{reason}");
    put(&store, &[(labels("h", "j0"), START + SECOND, one.clone())]);
    // A run more has room, two have not; what is refused leaves nothing.
    let wide = |indexes: &[i32]| Histogram {
        positive: indexes.iter().map(|index| Bucket { index: *index, count: 2.0 }).collect(),
        ..Histogram::default()
    };
    let list = [
        (labels("h", "j0"), START + 2 * SECOND, wide(&[1, 20, 40])),
        (labels("h", "j0"), START + 3 * SECOND, wide(&[1, 20])),
    ];
    let appended = store.append_histograms(&rows::histograms(&list), Durability::Synced).unwrap();
    assert_eq!((appended.samples, appended.rejected), (1, 1));
    let found = read(&store, &[], TimeRange::ALL);
    assert_eq!(found.len(), 3);
    let own = &found[&labels("h", "j0")];
    let wanted =
        [(START, one.clone()), (START + SECOND, one), (START + 3 * SECOND, wide(&[1, 20]))];
    assert_eq!(own, &(Vec::new(), wanted.to_vec()));
    let after = Store::open(Arc::new(disk.crash()), Path::new("/data"), config()).unwrap();
    assert_eq!(read(&after, &[], TimeRange::ALL), found);
    // The hour after, all that is known counts again.
    disk.set_now(store.now() + 3600 * SECOND);
    put(&store, &[(labels("h", "j0"), START + 4 * SECOND, wide(&[1, 20]))]);
    assert_eq!(store.stats().series_active, 3);
}

#[test]
fn a_column_of_a_line_may_hold_histograms_too() {
    let (_, store) = open();
    let mut rows = Rows::default();
    for i in 0..3 {
        let fields = [("h", i as f64), ("other", 1.0)];
        rows.push(&store.hasher(), &[("job", "a")], START + i * SECOND, &fields);
    }
    store.append(&rows.batch(), Durability::Synced).unwrap();
    put(&store, &[(labels("h", "a"), START + SECOND, rows::histogram(8))]);
    for _ in 0..2 {
        let found = read(&store, &[], TimeRange::ALL);
        let floats = [(START, 0f64.to_bits()), (START + 2 * SECOND, 2f64.to_bits())];
        let wanted = (floats.to_vec(), vec![(START + SECOND, rows::histogram(8))]);
        assert_eq!(found[&labels("h", "a")], wanted);
        assert_eq!(found[&labels("other", "a")].0.len(), 3);
        store.force_merge("").unwrap();
    }
}

#[test]
fn months_are_joined_and_their_turn_prepared() {
    let (disk, store) = open();
    let series = [labels("h", "a"), labels("h", "b"), labels("i", "a")];
    // Five hours before March.
    let near = 18_322 * DAY - 5 * 3600 * SECOND;
    disk.set_now(near);
    let mut expected = Found::new();
    for i in -30..10i64 {
        let time = near + i * 3600 * SECOND;
        if i == 1 {
            store.prepare_rollover_fully().unwrap();
        }
        disk.set_now(time);
        let list: Vec<_> = series
            .iter()
            .map(|labels| (labels.clone(), time, rows::histogram(i.unsigned_abs() / 4)))
            .collect();
        put(&store, &list);
        for (labels, time, one) in list {
            expected.entry(labels).or_default().1.push((time, one));
        }
    }
    let both = vec![
        vec![Matcher::equal("__name__", "h")],
        vec![Matcher::new("job", MatchOp::Regex, "a|b")],
    ];
    assert_eq!(read(&store, &both, TimeRange::ALL), expected);
    let after = Store::open(Arc::new(disk.crash()), Path::new("/data"), config()).unwrap();
    assert_eq!(read(&after, &both, TimeRange::ALL), expected);
    store.close().unwrap();
    let report = store::verify(Arc::new(disk.crash()), Path::new("/data"), &mut |_| ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn snapshots_and_retention_know_no_difference() {
    let (disk, store) = open_with(StoreConfig { retention_ns: Some(100 * DAY), ..config() });
    let expected = put_some(&store);
    let name = store.create_snapshot().unwrap();
    put(&store, &[(labels("h", "a"), START + 9 * DAY, rows::histogram(1))]);
    let path = format!("/data/snapshots/{name}");
    let frozen = Store::open(Arc::new(disk.clone()), Path::new(&path), config()).unwrap();
    assert_eq!(read(&frozen, &[], TimeRange::ALL), expected);
    disk.set_now(START + 105 * DAY);
    store.expire().unwrap();
    let mut found = read(&store, &[], TimeRange::ALL);
    found.retain(|_, (floats, histograms)| floats.len() + histograms.len() != 0);
    let wanted = (Vec::new(), vec![(START + 9 * DAY, rows::histogram(1))]);
    assert_eq!(found, Found::from([(labels("h", "a"), wanted)]));
    disk.set_now(START + 300 * DAY);
    store.expire().unwrap();
    assert_eq!((store.stats().partitions, store.stats().series_current), (0, 0));
}

#[test]
fn limits_of_queries_hold_for_hidden_series_too() {
    let (_, store) = open();
    put_some(&store);
    let limits = SelectLimits { series_max: 3, ..LIMITS };
    let selection = store.select(&[], TimeRange::ALL, &limits).unwrap();
    assert_eq!(selection.len(), 3, "hidden series are none to people");
    let past = std::time::Instant::now();
    let limits = SelectLimits { cost_max: 3 * 1000 + 100, ..LIMITS };
    let refused = store.select(&[], TimeRange::ALL, &limits).err();
    assert!(matches!(refused, Some(Error::LimitExceeded { .. })), "{refused:?}");
    let limits = SelectLimits { deadline: Some(past), ..LIMITS };
    let refused = store.select(&[], TimeRange::ALL, &limits).err();
    assert!(matches!(refused, Some(Error::DeadlineExceeded)), "{refused:?}");
}

#[test]
fn many_series_are_read_in_batches() {
    let (_, store) = open();
    let mut expected = Found::new();
    for i in 0..12u64 {
        let list: Vec<_> = (0..700u64)
            .map(|series| {
                let time = START + i as i64 * 15 * SECOND;
                let number = series % 50 + i * 1000;
                (labels("h", &format!("j{series:04}")), time, rows::histogram(number))
            })
            .collect();
        put(&store, &list);
        if i == 7 {
            store.flush().unwrap();
        }
        for (labels, time, one) in list {
            expected.entry(labels).or_default().1.push((time, one));
        }
    }
    assert_eq!(read(&store, &[], TimeRange::ALL), expected);
    // Any range of a selection can be read for itself.
    let selection = store.select(&[], TimeRange::ALL, &LIMITS).unwrap();
    let mut seen = Vec::new();
    selection
        .read_mixed(333..337, &mut |idx, _, _, times, histograms| {
            assert_eq!((times.len(), histograms.len()), (12, 12));
            seen.push(idx);
        })
        .unwrap();
    assert_eq!(seen, [333, 334, 335, 336]);
}
