//! What the log owes the store: memory changes only by what it has accepted, and what was
//! acknowledged opens again after every order of stall, failed sync, kill, restart and power loss.

use crate::faults::FaultyVfs;
use crate::rows::Rows;
use crate::stores;
use model::{MatchOp, Matcher, TimeRange};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use store::{Durability, Error, SelectLimits, Store};
use vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const NOW: i64 = 20_000 * DAY;
const LIMITS: SelectLimits =
    SelectLimits { series_max: 1_000_000, deadline: None, cancelled: None, cost_max: u64::MAX };

/// Samples of all hosts.
fn count(store: &Store) -> Result<usize, Error> {
    count_in(store, TimeRange::ALL)
}

fn count_in(store: &Store, range: TimeRange) -> Result<usize, Error> {
    let set = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    let selection = store.select(&[set], range, &LIMITS)?;
    let mut count = 0;
    selection.read(0..selection.len(), &mut |_, times, _| count += times.len())?;
    Ok(count)
}

fn put(store: &Store, hosts: Range<u32>, time: i64, d: Durability) -> Result<u64, Error> {
    let mut rows = Rows::default();
    for host in hosts {
        rows.push(&store.hasher(), &[("host", &format!("h{host}"))], time, &[("m", 1.5)]);
    }
    store.append(&rows.batch(), d).map(|a| a.samples)
}

/// Hosts with a label of 4,000 bytes.
fn put_fat(store: &Store, hosts: Range<u32>, time: i64, d: Durability) -> Result<u64, Error> {
    let mut rows = Rows::default();
    for host in hosts {
        let fat = format!("{host:04000}");
        rows.push(&store.hasher(), &[("host", &fat)], time, &[("m", 1.5)]);
    }
    store.append(&rows.batch(), d).map(|a| a.samples)
}

fn try_open(disk: &(impl Vfs + Clone)) -> Result<Arc<Store>, Error> {
    Store::open(Arc::new(disk.clone()), Path::new("/data"), stores::config())
}

fn problems(disk: &SimVfs) -> Vec<String> {
    let report = store::verify(Arc::new(disk.clone()), Path::new("/data"), &mut |_| ()).unwrap();
    report.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_full_queue_poisons_nothing() {
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    let store = stores::open(&disk, stores::config());
    // 12 MB of log wait for the disk (another client's batch, its sync under way)...
    assert_eq!(put_fat(&store, 0..3_000, NOW, Durability::Relaxed).unwrap(), 3_000);
    // ...and 56 MB come: one record, 14,000 new series.
    let refused = put_fat(&store, 10_000..24_000, NOW, Durability::Synced);
    assert!(matches!(refused, Err(Error::Wal(wal::Error::Busy { .. }))), "{refused:?}");
    // The client sends it again, as told, in smaller pieces; all are acknowledged.
    for at in 0..7 {
        let hosts = 10_000 + at * 2_000..12_000 + at * 2_000;
        assert_eq!(put_fat(&store, hosts, NOW + 1, Durability::Synced).unwrap(), 2_000);
    }
    drop(store); // kill -9: all was synced
    let after = disk.crash();
    assert_eq!(problems(&after), Vec::<String>::new());
    let store = try_open(&after).expect("it opens");
    let found = count(&store).unwrap();
    assert!((17_000..=31_000).contains(&found), "{found} samples");
}

#[test]
fn restart_after_a_failed_sync_then_power_loss() {
    let mut bad = Vec::new();
    for seed in 0..60 {
        let disk = SimVfs::new(seed);
        disk.set_now(NOW);
        let machine = FaultyVfs::new(&disk);
        let store = try_open(&machine).unwrap();
        put(&store, 0..5, NOW, Durability::Synced).unwrap();
        disk.fail_syncs(1);
        put(&store, 0..40, NOW + 1, Durability::Synced).expect_err("not synced");
        drop(store); // "read-only until a restart": the operator restarts; the machine stays up
        let store = try_open(&machine).unwrap();
        put(&store, 0..40, NOW + 2, Durability::Synced).unwrap(); // acknowledged
        drop(store);
        match try_open(&disk.crash()).and_then(|store| count(&store)) {
            Ok(found) if 45 <= found => {}
            other => bad.push(format!("seed {seed}: {other:?}")),
        }
    }
    assert!(bad.is_empty(), "{} of 60: {}", bad.len(), bad[0]);
}

#[test]
fn a_lack_of_file_handles_passes() {
    use vfs::sim::{Call, Errno};
    // Whatever is opened while the log begins a file: the file, its directory, `START`, that again.
    for (call, number) in
        [(Call::Create, 0), (Call::SyncDir, 0), (Call::Create, 1), (Call::SyncDir, 1)]
    {
        let disk = SimVfs::new(1);
        disk.set_now(NOW);
        let store = stores::open(&disk, stores::config());
        disk.fail_call(call, number, Errno::Files);
        let refused = put(&store, 0..5, NOW, Durability::Synced);
        let is_stalled = matches!(refused, Err(Error::Wal(wal::Error::Stalled { .. })));
        assert!(is_stalled, "{call:?} {number}: {refused:?}");
        // The client sends it again; nothing is read-only, and nothing is there twice.
        put(&store, 0..5, NOW, Durability::Synced).unwrap();
        assert_eq!(count(&store).unwrap(), 5);
        drop(store); // kill -9
        let store = try_open(&disk.crash()).unwrap();
        assert_eq!(count(&store).unwrap(), 5, "{call:?} {number}");
    }
}

#[test]
fn a_flush_without_a_file_handle_is_tried_again() {
    use vfs::sim::{Call, Errno};
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    let store = stores::open(&disk, stores::config());
    put(&store, 0..5, NOW, Durability::Synced).unwrap();
    disk.fail_call(Call::Create, 0, Errno::Files);
    store.flush().expect_err("no file handle");
    put(&store, 5..9, NOW, Durability::Synced).expect("it is not read-only");
    store.flush().unwrap();
    assert_eq!(count(&store).unwrap(), 9);
    drop(store);
    assert_eq!(count(&try_open(&disk.crash()).unwrap()).unwrap(), 9);
}

/// Appends, flushes and merges until the process is killed.
fn history(vfs: &FaultyVfs, acked: &mut usize) -> Result<(), Error> {
    let store = try_open(vfs)?;
    for round in 0..12u32 {
        put(&store, 0..10 + round, NOW + i64::from(round), Durability::Synced)?;
        *acked += 10 + round as usize;
        if round % 3 == 2 {
            store.flush()?;
        }
        if round % 6 == 5 {
            store.force_merge("")?;
        }
    }
    Ok(())
}

/// A process that dies after so many changes, one that goes on after it, and the power fails.
fn kill_and_crash(changes: i64, seed: u64, is_done: &mut bool) -> Result<(), String> {
    let disk = SimVfs::new(seed * 1000 + changes as u64);
    disk.set_now(NOW);
    let machine = FaultyVfs::new(&disk);
    let mut acked = 0;
    *is_done = history(&machine.process(changes), &mut acked).is_ok();
    let again = try_open(&machine).map_err(|error| format!("after the kill alone: {error}"))?;
    put(&again, 0..30, NOW + 100, Durability::Synced).unwrap();
    acked += 30;
    if seed % 2 == 1 {
        again.flush().unwrap();
        put(&again, 0..30, NOW + 101, Durability::Synced).unwrap();
        acked += 30;
    }
    drop(again);
    let found = try_open(&disk.crash()).and_then(|store| count(&store));
    match found {
        Ok(found) if acked <= found => Ok(()),
        other => Err(format!("{acked} acknowledged, found {other:?}")),
    }
}

#[test]
fn kill_then_restart_then_power_loss() {
    let (mut runs, mut bad) = (0, Vec::new());
    for changes in 3.. {
        let mut is_done = false;
        for seed in 0..4 {
            runs += 1;
            if let Err(what) = kill_and_crash(changes, seed, &mut is_done) {
                bad.push(format!("killed at change {changes}, seed {seed}: {what}"));
            }
        }
        if is_done {
            break;
        }
    }
    assert!(400 < runs, "the history has changes to die at, {runs}");
    assert!(bad.is_empty(), "{} of {runs}: {}", bad.len(), bad[0]);
}

/// 2024-11-01.
const NEXT: i64 = 20_028 * DAY;
/// Fields in the order in which lines have them.
const ALL: [&str; 3] = ["a", "b", "c"];

fn put_fields(store: &Store, fields: &[&str], time: i64) {
    let fields: Vec<(&str, f64)> = fields.iter().map(|name| (*name, 1.0)).collect();
    let mut rows = Rows::default();
    for host in 0..3 {
        rows.push(&store.hasher(), &[("host", &format!("h{host}"))], time, &fields);
    }
    let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
    assert_eq!(appended.samples, 3 * fields.len() as u64);
}

/// Every series of the next month must be there once, with all its samples.
fn check_next_month(store: &Store, times: usize, context: &str) {
    let range = TimeRange::new(NEXT, NEXT + DAY);
    let selection = store.select(&[], range, &LIMITS).unwrap();
    let mut seen = BTreeSet::new();
    let read = &mut |idx: usize, found: &[i64], _: &[f64]| {
        let labels = selection.labels(idx).unwrap().to_string();
        assert!(found.len() <= times, "{context}: {labels} at {found:?}");
        assert!(seen.insert(labels.clone()), "{context}: {labels} is there twice");
    };
    selection.read(0..selection.len(), read).unwrap();
}

#[test]
fn the_turn_registers_no_series_twice() {
    // Fields of October's lines, of November's early ones, and of those after midnight.
    let lists: [&[&str]; 6] = [&ALL[..2], &ALL, &ALL[..1], &["b", "a"], &["c"], &["b", "c"]];
    for old in lists {
        for early in lists {
            for late in lists {
                for is_after_midnight in [false, true] {
                    rollover(old, early, late, is_after_midnight);
                }
            }
        }
    }
}

/// A preparation before (or with a late pass: after) samples of the new month with other fields.
fn rollover(old: &[&str], early: &[&str], late: &[&str], is_after_midnight: bool) {
    let context = format!("{old:?} then {early:?} then {late:?}, late pass: {is_after_midnight}");
    let disk = SimVfs::new(1);
    disk.set_now(NEXT - 3600 * SECOND);
    let store = stores::open(&disk, stores::config());
    put_fields(&store, old, NEXT - 3600 * SECOND);
    if is_after_midnight {
        store.prepare_rollover_fully().unwrap();
        disk.set_now(NEXT + SECOND);
        // Who came in the last second of the old month, with other fields than in the new one.
        put_fields(&store, late, NEXT - SECOND);
    }
    put_fields(&store, early, NEXT + 10 * SECOND);
    store.prepare_rollover_fully().unwrap();
    put_fields(&store, old, NEXT + 20 * SECOND);
    store.prepare_rollover_fully().unwrap();
    put_fields(&store, late, NEXT + 30 * SECOND);
    check_next_month(&store, 3, &context);
    drop(store);
    check_next_month(&try_open(&disk.crash()).unwrap(), 3, &context);
}

/// A log of several segments, each with samples of another month: each start begins a new one.
fn several_segments() -> SimVfs {
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    for round in 0..3 {
        let store = try_open(&disk).unwrap();
        put(&store, 0..10, NOW - round * 40 * DAY, Durability::Synced).unwrap();
    }
    disk
}

#[test]
fn a_lost_oldest_segment_of_the_log_is_noticed() {
    let disk = several_segments();
    assert_eq!(count(&try_open(&disk).unwrap()).unwrap(), 30);
    disk.remove(Path::new("/data/wal/0000000000.wal")).unwrap();
    let found = try_open(&disk).and_then(|store| count(&store));
    let error = found.expect_err("ten acknowledged samples are lost");
    assert!(error.to_string().contains("0000000000.wal"), "{error}");
    assert!(problems(&disk)[0].contains("0000000000.wal"), "{:?}", problems(&disk));
}

/// Rot in the index is never told as a fault of rows: senders would drop them.
#[test]
fn a_rotten_index_is_no_fault_of_rows() {
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    let store = stores::open(&disk, stores::config());
    put(&store, 0..5, NOW, Durability::Synced).unwrap();
    store.close().unwrap();
    drop(store);
    let index = Path::new("/data/partitions/2024-10/index");
    let segment = index.join(disk.list(index).unwrap().remove(0));
    let (mut refused, size) = (0, disk.size(&segment).unwrap());
    for offset in 0..size {
        let disk = disk.crash();
        disk.flip_bit(&segment, offset, (offset % 8) as u8).unwrap();
        // A head that is damaged is another matter.
        let Ok(store) = try_open(&disk) else { continue };
        let mut rows = Rows::default();
        for host in 0..8 {
            let host = format!("h{host}");
            rows.push(&store.hasher(), &[("host", &host)], NOW + 1, &[("m", 1.5)]);
        }
        match store.append(&rows.batch(), Durability::Synced) {
            Ok(appended) => assert_eq!(appended.rejected, 0, "{:?}", appended.rejections),
            Err(Error::NewSeriesRefused { count, reason }) => {
                assert!(reason.contains("corrupt") && 0 < count, "{count}: {reason}");
                refused += 1;
            }
            // Without its footer the segment does not open, and the month takes nothing.
            Err(Error::Damaged { what }) => assert!(what.contains(".seg is corrupt"), "{what}"),
            Err(error) => panic!("byte {offset}: {error}"),
        }
    }
    assert!(0 < refused, "of {size} bytes");
}

/// A flush that outruns the log leaves a manifest that has seen a number which no segment has: what
/// is acknowledged after a restart must not go to a segment that the manifest counts as flushed.
#[test]
fn a_flush_that_outran_the_log_hides_no_later_record() {
    let mut steps = 1;
    for step in 0.. {
        if steps <= step {
            break;
        }
        let disk = SimVfs::new(step);
        disk.set_now(NOW);
        let store = stores::open(&disk, stores::config());
        put(&store, 0..10, NOW, Durability::Synced).unwrap();
        disk.set_free_space(10);
        store.flush().expect_err("the disk is full");
        disk.set_free_space(1 << 30);
        put(&store, 0..10, NOW + 1, Durability::Relaxed).unwrap();
        let changes = disk.operations();
        disk.fail_after(changes + if step == 0 { u64::from(u32::MAX) } else { step });
        let _ = store.flush();
        if step == 0 {
            steps = disk.operations() - changes;
        }
        drop(store);
        let disk = disk.crash();
        let store = try_open(&disk).unwrap();
        put(&store, 0..10, NOW + 2, Durability::Synced).unwrap();
        drop(store);
        let store = try_open(&disk.crash()).unwrap();
        let found = count_in(&store, TimeRange::new(NOW + 2, NOW + 2)).unwrap();
        assert_eq!(found, 10, "power lost at step {step}, of 10 acknowledged samples");
    }
    assert!(10 < steps);
}
