//! What a start takes over from a process that died in the middle: numbers that were given, names that
//! are seen and not yet durable.

use crate::rows::Rows;
use crate::stores;
use model::{MatchOp, Matcher, Metadata, TimeRange};
use std::path::Path;
use std::sync::Arc;
use store::{DamagePlace, Durability, SelectLimits, Store, StoreConfig};
use vfs::sim::{Call, Errno};
use vfs::{SimVfs, Vfs};

const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 20_000 * DAY;

fn disk(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(NOW);
    disk
}

fn put(store: &Store, time: i64, durability: Durability) {
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("host", "a")], time, &[("m", 1.0)]);
    store.append(&rows.batch(), durability).unwrap();
}

/// Writes a file anew, with some bytes behind its end.
fn put_behind(disk: &SimVfs, path: &Path, tail: &[u8]) {
    let mut bytes = disk.read(path).unwrap();
    bytes.extend_from_slice(tail);
    disk.remove(path).unwrap();
    let mut file = disk.create(path).unwrap();
    file.append(&bytes).unwrap();
    file.sync().unwrap();
    disk.sync_dir(path.parent().unwrap()).unwrap();
}

fn count(store: &Store) -> usize {
    let limits = SelectLimits {
        series_max: usize::MAX,
        deadline: None,
        cancelled: None,
        cost_max: u64::MAX,
    };
    let set = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    let selection = store.select(&[set], TimeRange::ALL, &limits).unwrap();
    let mut count = 0;
    selection.read(0..selection.len(), &mut |_, times, _| count += times.len()).unwrap();
    count
}

/// A manifest says from which log segment on records count. Where the segment that it names was never
/// written, the next start must not give that number, or a lower one, to another segment: what is
/// acknowledged in it would be passed over by the start after that.
#[test]
fn a_segment_number_that_a_manifest_has_seen_is_never_given_again() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, NOW, Durability::Synced);
    // A flush that finds no room leaves segment 0 behind and begins another.
    disk.fail_call(Call::Create, 0, Errno::Full);
    store.flush().expect_err("no room");
    // In segment 1, which nobody has written yet when the next flush has its samples in a part.
    put(&store, NOW + 1, Durability::Relaxed);
    disk.fail_call(Call::Map, 1, Errno::Other);
    let flushed = store.flush();
    drop(store);
    let disk = disk.kill();
    let store = stores::open(&disk, stores::config());
    // The second one was acknowledged by no sync: it is there if the manifest was written.
    let found = count(&store);
    assert!((1..=2).contains(&found), "{found}, {flushed:?}");
    put(&store, NOW + 2, Durability::Synced);
    drop(store);
    let store = stores::open(&disk.kill(), stores::config());
    assert_eq!(count(&store), found + 1, "acknowledged");
}

/// A manifest that was renamed into place is seen by the next process though its name may not be
/// durable. Who removes log segments because of it must make it durable first.
#[test]
fn a_manifest_is_durable_before_the_log_is_shortened_because_of_it() {
    for seed in rng::seeds(0..20) {
        for number in 0..8 {
            let disk = disk(seed);
            let store = stores::open(&disk, stores::config());
            put(&store, NOW, Durability::Synced);
            disk.fail_call(Call::SyncDir, number, Errno::Io);
            if store.flush().is_ok() {
                break;
            }
            drop(store);
            let disk = disk.kill();
            let store = stores::open(&disk, stores::config());
            put(&store, NOW - 60 * DAY, Durability::Synced);
            store.flush().unwrap();
            drop(store);
            let store = stores::open(&disk.crash(), stores::config());
            assert_eq!(count(&store), 2, "SEED={seed} {number}: acknowledged");
        }
    }
}

/// What a start cannot read because the system lacks something just now is not damaged: it is
/// refused, and the next one has everything. What cannot be read for good costs itself.
#[test]
fn a_start_without_files_to_spare_is_refused_and_takes_nothing_for_damage() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    store.put_metadata(&[Metadata { metric: "m".into(), ..Metadata::default() }]).unwrap();
    put(&store, NOW, Durability::Synced);
    store.flush().unwrap();
    put(&store, NOW + 1, Durability::Synced);
    drop(store);
    let calls = [Call::Map, Call::Read, Call::List, Call::Exists, Call::Size];
    for (call, errno) in calls.into_iter().flat_map(|call| {
        [Errno::Files, Errno::Full, Errno::Other, Errno::Io].map(|errno| (call, errno))
    }) {
        for number in 0.. {
            let disk = disk.kill();
            disk.fail_call(call, number, errno);
            let opened = Store::open(Arc::new(disk.clone()), Path::new("/data"), stores::config());
            let has_failed = disk.counts().events == 1;
            if let Ok(store) = &opened
                && errno != Errno::Io
            {
                let damage = store.damage();
                assert_eq!((count(store), damage), (2, Vec::new()), "{call:?} {number} {errno:?}");
            }
            drop(opened);
            let store = stores::open(&disk.kill(), stores::config());
            assert_eq!(count(&store), 2, "{call:?} {number} {errno:?}");
            assert_eq!(store.metadata(None, 9).len(), 1, "{call:?} {number} {errno:?}");
            if !has_failed {
                break;
            }
        }
    }
}

/// Segments of an index that are written at one time have numbers of their own: of what a crash
/// leaves, it is always known that it may go.
#[test]
fn no_file_of_an_index_is_left_that_nobody_knows() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    for host in ["a", "b"] {
        let mut rows = Rows::default();
        rows.push(&store.hasher(), &[("host", host)], NOW, &[("m", 1.0)]);
        store.append(&rows.batch(), Durability::Synced).unwrap();
        store.flush().unwrap();
    }
    let everything = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    store.delete(&[everything], TimeRange::ALL).unwrap();
    drop(store);
    for death in 0.. {
        let disk = disk.kill();
        let store = stores::open(&disk, stores::config());
        disk.fail_after(disk.operations() + death);
        let merged = store.force_merge("");
        drop(store);
        let disk = disk.kill();
        drop(stores::open(&disk, stores::config()));
        let mut problems = Vec::new();
        let report = store::verify(Arc::new(disk.kill()), Path::new("/data"), &mut |_| ()).unwrap();
        problems.extend(report.problems);
        assert!(problems.is_empty(), "death at {death}: {problems:?}");
        if merged.is_ok() {
            break;
        }
    }
}

/// A start tells what it cut off the log, and that nobody knows whether the log's first segments are
/// there.
#[test]
fn a_start_says_what_it_cut_and_that_the_logs_start_was_not_known() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, NOW, Durability::Synced);
    assert_eq!((store.stats().log_cut_bytes, store.damage()), (0, Vec::new()));
    drop(store);
    let torn = disk.kill();
    put_behind(&torn, Path::new("/data/wal/0000000000.wal"), b"abc");
    let store = stores::open(&torn, stores::config());
    assert_eq!((count(&store), store.stats().log_cut_bytes), (1, 3));
    drop(store);
    let store = stores::open(&torn.kill(), stores::config());
    assert_eq!(store.stats().log_cut_bytes, 0, "once");
    drop(store);
    let disk = torn.kill();
    disk.flip_bit(Path::new("/data/wal/START"), 14, 2).unwrap();
    let store = stores::open(&disk, stores::config());
    let damage = store.damage();
    assert_eq!(count(&store), 1);
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!((damage[0].place, damage[0].file.as_str()), (DamagePlace::Log, "wal/START"));
}

/// What only the log has of a month that cannot be read is in a snapshot, too.
#[test]
fn a_snapshot_has_the_records_of_a_month_that_cannot_be_read() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, NOW, Durability::Synced);
    put(&store, NOW - 60 * DAY, Durability::Synced);
    store.flush().unwrap();
    put(&store, NOW + 1, Durability::Synced);
    put(&store, NOW - 60 * DAY + 1, Durability::Synced);
    drop(store);
    let mut has_damaged = false;
    for number in 0..20 {
        let disk = disk.kill();
        disk.fail_call(Call::Map, number, Errno::Io);
        let Ok(store) = Store::open(Arc::new(disk.clone()), Path::new("/data"), stores::config())
        else {
            continue;
        };
        has_damaged |= store.damaged_partitions().len() == 1;
        // The fault may come only now.
        let Ok(name) = store.create_snapshot() else { continue };
        drop(store);
        let dir = Path::new("/data/snapshots").join(name);
        for disk in [disk.kill(), disk.crash()] {
            let store = Store::open(Arc::new(disk), &dir, stores::config()).unwrap();
            assert_eq!(count(&store), 4, "{number}");
        }
    }
    assert!(has_damaged);
}

/// Before, a fault while the files of such a month were linked was noted, and the snapshot was said to
/// be made: without some of them.
#[test]
fn a_snapshot_has_all_of_a_month_that_cannot_be_read_or_fails() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, NOW, Durability::Synced);
    store.flush().unwrap();
    put(&store, NOW + 1, Durability::Synced);
    drop(store);
    let calls = [Call::Link, Call::CreateDir, Call::SyncDir, Call::List, Call::Exists];
    let (mut made, mut failed) = (0, 0);
    for (call, number) in calls.iter().flat_map(|call| (0..12).map(move |number| (*call, number))) {
        let disk = disk.kill();
        disk.fail_call(Call::Map, 0, Errno::Io);
        disk.fail_call(Call::Map, 1, Errno::Io);
        let store = stores::open(&disk, stores::config());
        assert_eq!(store.damaged_partitions().len(), 1);
        disk.fail_call(call, number, Errno::Full);
        let snapshot = store.create_snapshot();
        drop(store);
        let Ok(name) = snapshot else {
            failed += 1;
            continue;
        };
        made += 1;
        let dir = Path::new("/data/snapshots").join(name);
        let store = Store::open(Arc::new(disk.crash()), &dir, stores::config()).unwrap();
        assert_eq!(count(&store), 2, "{call:?} {number}");
    }
    assert!(10 < made && 10 < failed, "{made} {failed}");
}

/// A clock that was wrong when the store was made, or for a while, and is set right is not trusted by
/// a later start because of a file that nobody wrote again in time.
#[test]
fn a_clock_that_was_set_right_is_not_believed_when_it_jumps_again() {
    for has_future_sample in [false, true] {
        let disk = disk(1);
        disk.set_now(NOW + 900 * DAY);
        let retention_clock_wait_ns = StoreConfig::standard().retention_clock_wait_ns;
        let retention_ns = Some(70 * DAY);
        let config = StoreConfig { retention_ns, retention_clock_wait_ns, ..stores::config() };
        let store = stores::open(&disk, config.clone());
        if has_future_sample {
            put(&store, NOW + 900 * DAY, Durability::Synced);
        }
        store.expire().unwrap();
        drop(store);
        let disk = disk.kill();
        disk.set_now(NOW);
        let store = stores::open(&disk, config.clone());
        put(&store, NOW, Durability::Synced);
        drop(store);
        let disk = disk.kill();
        disk.set_now(NOW + 800 * DAY);
        let store = stores::open(&disk, config.clone());
        store.flush().unwrap();
        store.expire().unwrap();
        drop(store);
        let disk = disk.kill();
        disk.set_now(NOW);
        let store = stores::open(&disk, config);
        assert_eq!(count(&store), 1 + usize::from(has_future_sample), "{has_future_sample}");
    }
}

/// A snapshot whose deletion was interrupted is gone or whole, whatever becomes of the start that goes
/// on with it.
#[test]
fn a_start_that_ends_a_deletion_leaves_no_half_of_a_snapshot() {
    for seed in rng::seeds(0..4) {
        let first = disk(seed);
        let store = stores::open(&first, stores::config());
        put(&store, NOW, Durability::Synced);
        let name = store.create_snapshot().unwrap();
        first.fail_call(Call::SyncDir, 0, Errno::Io);
        store.delete_snapshot(&name).expect_err("not durable");
        drop(store);
        for death in 0..40 {
            let disk = first.kill();
            disk.fail_after(disk.operations() + death);
            drop(Store::open(Arc::new(disk.clone()), Path::new("/data"), stores::config()));
            let disk = disk.crash();
            let store = stores::open(&disk, stores::config());
            for name in store.snapshots().unwrap() {
                let dir = Path::new("/data/snapshots").join(name);
                let store = Store::open(Arc::new(disk.kill()), &dir, stores::config()).unwrap();
                assert_eq!(count(&store), 1, "SEED={seed} {death}");
            }
        }
    }
}

/// A store that died while it was made is as good as none, or an empty one.
#[test]
fn a_store_that_died_while_it_was_made_has_no_problems() {
    let mut is_whole = false;
    for death in 0.. {
        let disk = disk(death);
        disk.fail_after(death);
        let opened = Store::open(Arc::new(disk.clone()), Path::new("/data"), stores::config());
        let is_open = opened.is_ok();
        if let Ok(store) = opened {
            let mut rows = Rows::default();
            rows.push(&store.hasher(), &[("host", "a")], NOW, &[("m", 1.0)]);
            is_whole = store.append(&rows.batch(), Durability::Synced).is_ok();
        }
        for disk in [disk.kill(), disk.crash()] {
            if disk.exists(Path::new("/data/partitions")).unwrap() {
                let dir = Path::new("/data");
                let report = store::verify(Arc::new(disk.kill()), dir, &mut |_| ()).unwrap();
                assert!(report.problems.is_empty(), "{death} {is_open}: {:?}", report.problems);
            }
            let found = count(&stores::open(&disk, stores::config()));
            assert!(found == 1 || !is_whole, "{death}: {found}");
        }
        if is_whole {
            break;
        }
    }
}

/// A month that cannot go does not keep others that are too old.
#[test]
fn a_month_that_cannot_expire_does_not_keep_the_others() {
    let disk = disk(1);
    let config = StoreConfig { retention_ns: Some(100 * DAY), ..stores::config() };
    let config = StoreConfig { retention_clock_wait_ns: 0, ..config };
    let store = stores::open(&disk, config);
    for days in [90, 60] {
        put(&store, NOW - days * DAY, Durability::Synced);
    }
    store.flush().unwrap();
    store.expire().unwrap();
    disk.set_now(NOW + 150 * DAY);
    disk.fail_call(Call::Create, 0, Errno::Full);
    store.expire().expect_err("the first one found no room");
    assert_eq!(store.stats().partitions, 1);
    store.expire().unwrap();
    assert_eq!(store.stats().partitions, 0);
}

/// Writers wait for a log whose disk is frozen; then the process is killed. What was acknowledged
/// before is there; of what waited, each sample is there or not.
#[test]
fn a_kill_in_a_stall_loses_nothing_acknowledged() {
    const WRITERS: usize = 3;
    for seed in rng::seeds(0..6) {
        let disk = disk(seed);
        let config = StoreConfig { committer: wal::Committer::Thread, ..stores::config() };
        let store = stores::open(&disk, config);
        for round in 0..20 {
            put(&store, NOW + round, Durability::Synced);
            if round % 8 == 7 {
                store.flush().unwrap();
            }
        }
        let after = std::thread::scope(|scope| {
            disk.stall();
            for writer in 0..WRITERS as i64 {
                let store = &store;
                // Ends only once the stall does: then on a disk that nobody reads any more.
                scope.spawn(move || put(store, NOW + 100 + writer, Durability::Synced));
            }
            // The log's own thread is the one that meets the disk.
            disk.wait_for_stalled(1);
            disk.kill()
        });
        for found in [after.clone(), after.crash()] {
            let found = count(&stores::open(&found, stores::config()));
            assert!((20..=20 + WRITERS).contains(&found), "SEED={seed}: {found}");
        }
    }
}
