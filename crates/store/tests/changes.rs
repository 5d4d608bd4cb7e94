//! What changed since a version: random histories against the naive difference of two readings.
//!
//! `SEED=n cargo test -p store --test all changes` replays one history.

use crate::rows;
use crate::rows::Rows;
use crate::stores;
use model::{MatchOp, Matcher, TimeRange};
use rng::Random;
use std::collections::BTreeMap;
use std::path::Path;
use store::{Durability, SelectLimits, Store};
use vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 2020-01-30: histories cross into February.
const START: i64 = 18_291 * DAY;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

/// All samples, by series and time: the bits of a float, a histogram in words.
type Reading = BTreeMap<(String, i64), String>;

fn reading(store: &Store) -> Reading {
    let selection = store.select(&[], TimeRange::ALL, &LIMITS).unwrap();
    let mut out = Reading::new();
    selection
        .read_mixed(0..selection.len(), &mut |idx, times, values, histogram_times, histograms| {
            let labels = selection.labels(idx).unwrap().to_string();
            let floats = times.iter().zip(values.iter().map(|v| format!("{:x}", v.to_bits())));
            let histograms =
                histogram_times.iter().zip(histograms.iter().map(|h| format!("{h:?}")));
            let samples = floats.chain(histograms);
            out.extend(samples.map(|(time, value)| ((labels.clone(), *time), value)));
        })
        .unwrap();
    out
}

/// Appends rows of some hosts, so many seconds before `now`; of some only one of two fields.
fn append(store: &Store, random: &mut Random, now: i64, back: u64) {
    let mut rows = Rows::default();
    for _ in 0..1 + random.below(8) {
        let host = format!("h{}", random.below(5));
        let time = now - random.below(back) as i64 * SECOND;
        let fields = [("a", random.below(9) as f64), ("b", 1.0)];
        let fields = &fields[..1 + random.below(2) as usize];
        rows.push(&store.hasher(), &[("host", host.as_str())], time, fields);
    }
    store.append(&rows.batch(), Durability::Synced).unwrap();
}

/// Appends histograms of some hosts, so many seconds before `now`.
fn append_histograms(store: &Store, random: &mut Random, now: i64, back: u64) {
    let list: Vec<_> = (0..1 + random.below(4))
        .map(|_| {
            let host = format!("h{}", random.below(5));
            let time = now - random.below(back) as i64 * SECOND;
            let labels = rows::labels(&[("host", host.as_str())], "a");
            (labels, time, rows::histogram(random.below(50)))
        })
        .collect();
    let appended = store.append_histograms(&rows::histograms(&list), Durability::Synced).unwrap();
    assert_eq!(appended.rejected, 0);
}

fn delete(store: &Store, random: &mut Random, now: i64) {
    let set = vec![Matcher::equal("host", format!("h{}", random.below(5)))];
    let start = now - random.below(20 * 86_400) as i64 * SECOND;
    let end = start + random.below(86_400) as i64 * SECOND;
    store.delete(&[set], TimeRange::new(start, end)).unwrap();
}

/// Fails when a sample reads differently at a time that did not change, as the store says.
fn check(store: &Store, version: u64, before: &Reading) -> Vec<TimeRange> {
    let now = reading(store);
    let changed = store.changed_since(version, &TimeRange::ALL);
    for key in before.keys().chain(now.keys()) {
        let is_told = changed.iter().any(|range| range.contains(key.1));
        assert!(is_told || before.get(key) == now.get(key), "{key:?} changed unseen");
    }
    changed
}

fn run(seed: u64) {
    println!("SEED={seed}");
    let mut random = Random(seed);
    let disk = SimVfs::new(seed);
    let mut now = START;
    disk.set_now(now);
    let retention = seed.is_multiple_of(3).then_some(10 * DAY);
    let mut store = stores::open_keeping(&disk, retention);
    let mut kept: Vec<(u64, Reading)> = Vec::new();
    for _ in 0..80 {
        let before = (store.take_version(), reading(&store));
        kept.push(before);
        now += random.below(7200) as i64 * SECOND;
        disk.set_now(now);
        match random.below(20) {
            0 | 1 => store.flush().unwrap(),
            2 => store.force_merge("").unwrap(),
            3 => delete(&store, &mut random, now),
            4 => append(&store, &mut random, now, 9 * 86_400),
            7..=9 => append_histograms(&store, &mut random, now, 9 * 86_400),
            5 => store.expire().unwrap(),
            6 => {
                store.close().unwrap();
                kept.clear();
                // Releases the lock before the new one takes it.
                store = stores::open_keeping(&SimVfs::new(0), None);
                store.close().unwrap();
                store = stores::open_keeping(&disk, retention);
            }
            _ => append(&store, &mut random, now, 60),
        }
        if let Some((version, before)) = kept.last() {
            check(&store, *version, before);
        }
        if !kept.is_empty() {
            let (version, before) = &kept[random.below(kept.len() as u64) as usize];
            check(&store, *version, before);
        }
    }
}

#[test]
fn no_change_is_missed() {
    rng::seeds(1..=12).into_iter().for_each(run);
}

#[test]
fn what_did_not_change_is_not_told() {
    let disk = SimVfs::new(1);
    disk.set_now(START);
    let store = stores::open_keeping(&disk, None);
    let mut random = Random(7);
    append(&store, &mut random, START - DAY, 3600);
    append(&store, &mut random, START, 60);
    let (version, before) = (store.take_version(), reading(&store));
    store.flush().unwrap();
    append(&store, &mut random, START, 1);
    // A backfill beside what is now, in one batch with it.
    let mut rows = Rows::default();
    for back in [0, 5 * 3600, 20 * DAY / SECOND] {
        rows.push(&store.hasher(), &[("host", "x")], START - back * SECOND, &[("a", 1.0)]);
    }
    store.append(&rows.batch(), Durability::Synced).unwrap();
    let changed = check(&store, version, &before);
    assert_eq!(changed.len(), 3, "{changed:?}");
    assert!(changed.iter().all(|range| range.end - range.start < 20 * SECOND), "{changed:?}");
    let version = store.take_version();
    store.flush().unwrap();
    store.force_merge("").unwrap();
    assert_eq!(store.changed_since(version, &TimeRange::ALL), []);
}

#[test]
fn samples_that_are_lost_or_hidden_are_told() {
    let disk = SimVfs::new(3);
    disk.set_now(START);
    let store = stores::open_keeping(&disk, Some(10 * DAY));
    append(&store, &mut Random(1), START - 9 * DAY, 3600);
    append(&store, &mut Random(2), START, 60);
    let (version, before) = (store.take_version(), reading(&store));
    disk.set_now(START + 5 * DAY);
    let changed = check(&store, version, &before);
    assert_eq!(changed, [TimeRange::new(i64::MIN, START - 5 * DAY - 1)]);
    // The clock goes back: what is seen again was hidden from others meanwhile.
    let (version, before) = (store.take_version(), reading(&store));
    disk.set_now(START);
    check(&store, version, &before);

    store.flush().unwrap();
    let before = reading(&store);
    store.close().unwrap();
    drop(store);
    let folder = Path::new("/data/partitions/2020-01/parts");
    let part = folder.join(disk.list(folder).unwrap().remove(0));
    disk.flip_bit(&part, 40, 3).unwrap();
    let store = stores::open_keeping(&disk, Some(10 * DAY));
    assert_eq!(store.damage(), [], "nobody has read it yet");
    let version = store.take_version();
    let set = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    let selection = store.select(&[set], TimeRange::ALL, &LIMITS).unwrap();
    let read = selection.read(0..selection.len(), &mut |_, _, _| ());
    assert!(matches!(read, Err(store::Error::Corrupt { .. })), "{read:?}");
    // It stays where it is: what was read of it before it rotted is as true as ever.
    assert_eq!(store.damage().len(), 1);
    let changed = store.changed_since(version, &TimeRange::ALL);
    assert!(changed.iter().all(|range| range.end < START - 10 * DAY), "only what expired");
    assert!(!before.is_empty());
}

#[test]
fn selections_of_one_month_keep_their_order() {
    let disk = SimVfs::new(4);
    disk.set_now(START);
    let store = stores::open_keeping(&disk, None);
    let both = TimeRange::new(START - 40 * DAY, START);
    assert!(store.keeps_order(&both), "there is nothing");
    append(&store, &mut Random(1), START, 60);
    assert!(store.keeps_order(&both), "there is one month");
    append(&store, &mut Random(1), START - 40 * DAY, 60);
    assert!(!store.keeps_order(&both));
    assert!(store.keeps_order(&TimeRange::new(START - 20 * DAY, START)));
}
