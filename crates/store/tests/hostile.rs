//! Orders of events that a hostile reader thought of: each of them once lost something, or said too
//! little of it.

use crate::rows::Rows;
use crate::stores;
use model::{Exemplar, ExemplarRow, Labels, Matcher, TimeRange};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{DamagePlace, Durability, Error, Missing, SelectLimits, Store, StoreConfig};
use vfs::{SimVfs, Vfs};

const HOUR: i64 = 3_600_000_000_000;
const DAY: i64 = 24 * HOUR;
/// 2024-10-04.
const NOW: i64 = 20_000 * DAY;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

fn disk() -> SimVfs {
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    disk
}

fn put(store: &Store, host: &str, time: i64, value: f64) -> Result<(), Error> {
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("host", host)], time, &[("m", value)]);
    store.append(&rows.batch(), Durability::Synced).map(drop)
}

/// The samples of a host.
fn of(store: &Store, host: &str) -> Vec<(i64, f64)> {
    let set = vec![Matcher::equal("host", host)];
    let selection = store.select(&[set], TimeRange::ALL, &LIMITS).unwrap();
    let mut found = Vec::new();
    let mut sink = |_: usize, times: &[i64], values: &[f64]| {
        found.extend(times.iter().copied().zip(values.iter().copied()));
    };
    selection.read(0..selection.len(), &mut sink).unwrap();
    found
}

fn files(disk: &SimVfs, folder: &str) -> Vec<PathBuf> {
    let all = disk.files().into_iter().map(|(path, _)| path);
    all.filter(|path| path.parent().is_some_and(|parent| parent.ends_with(folder))).collect()
}

/// Both months of a prepared rollover are dropped and made anew: ids that were carried over before are of
/// other series now.
#[test]
fn a_turn_prepared_for_dropped_months_leads_no_key_to_another_series() {
    let disk = disk();
    let rollover = NOW + 28 * DAY;
    disk.set_now(rollover - 4 * HOUR);
    let store = stores::open_keeping(&disk, Some(90 * DAY));
    put(&store, "a", store.now(), 1.0).unwrap();
    store.prepare_rollover().unwrap();
    // The clock is a year ahead while retention looks, and right again.
    disk.jump(365 * DAY);
    store.expire().unwrap();
    disk.jump(-365 * DAY);
    put(&store, "b", store.now(), 2.0).unwrap();
    put(&store, "c", rollover, 3.0).unwrap();
    for _ in 0..400 {
        store.prepare_rollover().unwrap();
    }
    put(&store, "b", rollover + 1, 4.0).unwrap();
    assert_eq!(of(&store, "c"), [(rollover, 3.0)]);
    assert_eq!(of(&store, "b"), [(rollover - 4 * HOUR, 2.0), (rollover + 1, 4.0)]);
}

/// A header on which nothing depends is reported; the part is merged all the same, also by the next
/// process.
#[test]
fn a_rotten_header_keeps_no_part_from_being_merged() {
    let disk = disk();
    let store = stores::open(&disk, stores::config());
    for second in 0..3 {
        put(&store, "a", NOW + second, 1.0).unwrap();
        store.flush().unwrap();
    }
    drop(store);
    let parts = files(&disk, "parts");
    assert_eq!(parts.len(), 3);
    disk.flip_bit(&parts[1], 1, 2).unwrap();
    for _ in 0..2 {
        let store = stores::open(&disk, stores::config());
        assert_eq!(store.damage().len(), 1);
        store.close().unwrap();
    }
    let store = stores::open(&disk, stores::config());
    store.force_merge("").unwrap();
    assert_eq!(files(&disk, "parts").len(), 1);
    assert_eq!(of(&store, "a").len(), 3);
}

/// What a start set aside is missing from then on, though the file that took its place is sound.
#[test]
fn lost_exemplars_are_told_after_a_scrub_too() {
    let disk = disk();
    let config = || StoreConfig { scrub_interval_ns: DAY, ..stores::config() };
    let store = stores::open(&disk, config());
    put(&store, "a", NOW, 1.0).unwrap();
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("host", "a")], NOW, &[("m", 0.0)]);
    let batch = rows.batch();
    let labels = Labels::from_pairs(&[("trace_id", "1")]);
    let exemplar = Exemplar { labels, value: 1.0, timestamp: NOW, has_timestamp: true };
    let row = ExemplarRow { row: batch.rows[0], exemplar, may_be_first: false };
    store.append_exemplars(&batch, &[row], Durability::Synced).unwrap();
    store.close().unwrap();
    drop(store);
    disk.flip_bit(Path::new("/data/exemplars"), 12, 3).unwrap();
    let store = stores::open(&disk, config());
    let is_told = |store: &Store| {
        let missing = Missing::new();
        let sets = [vec![Matcher::equal("host", "a")]];
        let found = store.noting(&missing).exemplars(&sets, TimeRange::ALL, &LIMITS).unwrap();
        found.is_empty() && !missing.is_empty()
    };
    assert!(is_told(&store));
    while 0 < store.scrub_some(u64::MAX) {}
    assert_eq!(store.scrub_stats().passes_total, 1);
    assert!(is_told(&store), "after the scrub");
    store.close().unwrap();
    drop(store);
    let store = stores::open(&disk, config());
    assert!(is_told(&store), "after a restart");
    assert_eq!(store.damage()[0].place, DamagePlace::SideFile);
}

/// An index that rots under its month keeps that month's rows in memory: they must not fill the head
/// that all months share.
#[test]
fn a_month_whose_index_rots_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let config = || StoreConfig { head_size_max: 1 << 20, ..stores::config() };
    let vfs: Arc<dyn Vfs> = Arc::new(vfs::RealVfs::new());
    let store = Store::open(vfs, dir.path(), config()).unwrap();
    let now = store.now();
    put(&store, "a", now, 0.0).unwrap();
    store.flush().unwrap();
    rot_index(dir.path());
    let mut refused = None;
    for number in 1..200_000 {
        if number % 1000 == 0 {
            store.flush().expect_err("the index is rotten");
        }
        match put(&store, "a", now + number, 1.0) {
            Ok(()) => {}
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    assert!(matches!(refused, Some(Error::Damaged { .. })), "{refused:?}");
    put(&store, "a", now - 60 * DAY, 1.0).unwrap();
}

/// Overwrites what lies between the first and the last bytes of index segments.
fn rot_index(dir: &Path) {
    use std::os::unix::fs::FileExt;
    for month in std::fs::read_dir(dir.join("partitions")).unwrap() {
        for file in std::fs::read_dir(month.unwrap().path().join("index")).unwrap() {
            let path = file.unwrap().path();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let size = file.metadata().unwrap().len();
            file.write_all_at(&vec![0x55; size as usize / 2], 64).unwrap();
        }
    }
}

/// What a start wrote anew is known to be synced: rot in it is no torn write.
#[test]
fn rot_in_a_log_that_a_start_wrote_anew_is_not_passed_over() {
    let disk = disk();
    let store = stores::open(&disk, stores::config());
    put(&store, "a", NOW, 1.0).unwrap();
    drop(store);
    let disk = disk.kill();
    drop(stores::open(&disk, stores::config()));
    let disk = disk.kill();
    disk.flip_bit(Path::new("/data/wal/0000000000.wal"), 60, 1).unwrap();
    let opened = Store::open(Arc::new(disk.clone()), Path::new("/data"), stores::config());
    assert!(opened.is_err(), "acknowledged, and gone without a word");
}

/// Manifest and a part are both rotten: what is lost with the part is said.
#[test]
fn a_repair_without_manifest_says_which_part_it_gives_up() {
    let disk = disk();
    let store = stores::open(&disk, stores::config());
    for day in 0..2 {
        put(&store, "a", NOW - day * DAY, 1.0).unwrap();
        store.flush().unwrap();
    }
    store.close().unwrap();
    drop(store);
    let parts = files(&disk, "parts");
    disk.truncate(&parts[1], 40).unwrap();
    disk.flip_bit(Path::new("/data/partitions/2024-10/MANIFEST"), 12, 1).unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let plan = store::plan_repair(vfs, Path::new("/data"), &mut |_| ()).unwrap();
    let mut is_told = false;
    plan.losses().for_each(&mut |line| is_told |= line.file == parts[1]);
    let steps: Vec<&str> = plan.steps().collect();
    assert!(is_told, "{steps:?}");
}
