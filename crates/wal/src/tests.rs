//! A naive list of records against the log: crashes at every change, damage at every byte.

use crate::fuzzing::fuzz_wal_segment;
use crate::*;
use rng::Random;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{RealVfs, SimVfs, Vfs};

mod crashes;
mod damage;
mod ends;
mod holes;
mod reservations;
mod shared;
mod stalls;
mod starts;

const DIRECTORY: &str = "/data/wal";

/// What was appended: kind and payload.
type Record = (u8, Vec<u8>);

fn any_record(dice: &mut Random) -> Record {
    let size = if dice.below(8) == 0 { dice.below(700) } else { dice.below(40) };
    let payload = (0..size).map(|_| dice.next() as u8).collect();
    (1 + dice.below(254) as u8, payload)
}

fn config(committer: Committer) -> WalConfig {
    WalConfig {
        segment_size_max: 1000,
        pending_size_max: 1 << 20,
        committer,
        ..WalConfig::default()
    }
}

/// Opens and collects what is replayed.
fn open(vfs: &SimVfs, committer: Committer, from: u64) -> Result<(Wal, Vec<Record>)> {
    let mut replayed = Vec::new();
    let mut place = (0, 0);
    let wal = Wal::open(
        Arc::new(vfs.clone()),
        Path::new(DIRECTORY),
        config(committer),
        from,
        &mut |record| {
            assert!(from <= record.segment);
            assert!(place < (record.segment, record.offset), "in order");
            place = (record.segment, record.offset);
            replayed.push((record.kind, record.payload.to_vec()));
            Ok(())
        },
    )?;
    assert_eq!(wal.recovery().record_count, replayed.len() as u64);
    Ok((wal, replayed))
}

fn segment_path(segment: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{segment:010}.wal"))
}

#[test]
fn records_come_back_after_a_restart() {
    for committer in [Committer::Thread, Committer::Waiter] {
        let vfs = SimVfs::new(1);
        let (wal, replayed) = open(&vfs, committer, 0).unwrap();
        assert!(replayed.is_empty());
        assert_eq!(wal.size(), 0);
        wal.append(1, b"one").unwrap();
        let lsn = wal.append_parts(254, &[b"t", b"", b"wo"]).unwrap();
        wal.wait_durable(lsn).unwrap();
        assert_eq!(wal.end(), lsn);
        wal.append(7, b"").unwrap();
        assert!(lsn < wal.end());
        wal.close().unwrap();
        wal.close().unwrap();
        assert!(matches!(wal.append(1, b"late"), Err(Error::Closed)));
        let expected = vec![(1, b"one".to_vec()), (254, b"two".to_vec()), (7, Vec::new())];
        let (wal, replayed) = open(&vfs.crash(), committer, 0).unwrap();
        assert_eq!(replayed, expected);
        assert_eq!(wal.recovery().cut_size, 0);
        assert_eq!(wal.recovery().segment_count, 1);
    }
}

#[test]
fn dropping_a_log_writes_what_is_pending() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Thread, 0).unwrap();
    wal.append(1, b"pending").unwrap();
    drop(wal);
    let (_, replayed) = open(&vfs.crash(), Committer::Thread, 0).unwrap();
    assert_eq!(replayed, [(1, b"pending".to_vec())]);
}

#[test]
fn full_segments_are_left_and_old_ones_removed() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    assert_eq!(wal.rotate(), 0, "an empty segment goes on");
    for _ in 0..30 {
        wal.append(1, &[0; 91]).unwrap();
    }
    assert_eq!(wal.stats().segment, 3, "nine records of 100 bytes fit 1000 bytes");
    assert_eq!(wal.size(), 4 * 32 + 3000);
    let next = wal.rotate();
    assert_eq!((next, wal.rotate()), (4, 4));
    // Nothing is on the disk yet; removal must not overtake it.
    wal.remove_before(3).unwrap();
    assert_eq!(vfs.list(Path::new(DIRECTORY)).unwrap(), ["0000000003.wal", "END", "START"]);
    assert_eq!(wal.size(), 32 + 300);
    wal.append(2, b"new").unwrap();
    wal.close().unwrap();
    let (wal, replayed) = open(&vfs.crash(), Committer::Waiter, 4).unwrap();
    assert_eq!(replayed, [(2, b"new".to_vec())]);
    assert_eq!(wal.stats().segment, 5, "every start begins a segment");
    wal.remove_before(4).unwrap();
    wal.remove_before(4).unwrap();
    assert_eq!(wal.size(), 32 + 12 + 9, "header, record, last mark");
}

#[test]
fn a_large_record_has_its_own_segment() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    for size in [10, 5000, 10] {
        wal.append(1, &vec![1; size]).unwrap();
    }
    wal.close().unwrap();
    let sizes = [0, 1, 2].map(|segment| vfs.size(&segment_path(segment)).unwrap());
    assert_eq!(sizes, [32 + 19, 32 + 5009, 32 + 19 + 9]);
    assert_eq!(open(&vfs, Committer::Waiter, 0).unwrap().1.len(), 3);
}

#[test]
fn limits_are_errors() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    let piece = vec![0; 1 << 20];
    let error = wal.append_parts(1, &[&piece[..]; 257]).unwrap_err();
    assert!(matches!(error, Error::RecordTooLarge { size: 269_484_032, .. }), "{error}");
    wal.append(1, &piece).expect("a lone record may exceed the limit of what is pending");
    let error = wal.append(1, b"x").unwrap_err();
    assert!(matches!(error, Error::Busy { record_size: 10, .. }), "{error}");
    wal.wait_durable(Lsn::default()).unwrap();
    wal.append(1, b"x").expect("it passes");
}

#[test]
fn a_failed_sync_latches() {
    let vfs = SimVfs::new(1);
    // The waiter notes the synced end itself: the sync that fails is that of the record.
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    let early = wal.append(1, b"early").unwrap();
    wal.wait_durable(early).unwrap();
    vfs.fail_syncs(1);
    let lsn = wal.append(1, b"x").unwrap();
    let error = wal.wait_durable(lsn).unwrap_err();
    assert!(matches!(&error, Error::Latched { reason } if reason.contains("sync")), "{error}");
    // Syncs would work again, but nobody asks.
    let operations = vfs.operations();
    assert!(matches!(wal.append(1, b"y"), Err(Error::Latched { .. })));
    assert!(wal.wait_durable(lsn).is_err());
    wal.wait_durable(early).expect("what was durable is");
    assert!(wal.close().is_err());
    assert_eq!(vfs.operations(), operations);
    let (_, replayed) = open(&vfs.crash(), Committer::Thread, 0).unwrap();
    assert_eq!(replayed[0].1, b"early");
}

#[test]
fn a_log_that_opens_on_a_full_disk_is_latched() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    // A header, `START` beside the old one, whose room is free then, and eight bytes more.
    vfs.set_free_space(32 + 32 + 8);
    let lsn = wal.append(1, &[1; 40]).unwrap();
    let waited = wal.wait_durable(lsn);
    assert!(matches!(waited, Err(Error::Stalled { is_disk_full: true, .. })), "{waited:?}");
    drop(wal);
    let (wal, replayed) = open(&vfs, Committer::Thread, 0).unwrap();
    assert!(replayed.is_empty());
    assert_eq!(wal.recovery().cut_size, 32 + 8);
    // What was replayed cannot be written anew without room, so nothing is built on it.
    assert_eq!(vfs.list(Path::new(DIRECTORY)).unwrap(), ["0000000000.wal", "END", "START"]);
    assert!(matches!(wal.append(1, b"x"), Err(Error::Latched { .. })));
    drop(wal);
    vfs.set_free_space(1 << 20);
    let (wal, _) = open(&vfs, Committer::Thread, 0).unwrap();
    let lsn = wal.append(1, b"it fits").unwrap();
    wal.wait_durable(lsn).unwrap();
}

#[test]
fn threads_append_to_a_real_disk() {
    const THREADS: u64 = 8;
    const RECORDS: u64 = 200;
    let directory = tempfile::tempdir().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new());
    let config = WalConfig { segment_size_max: 4096, ..WalConfig::default() };
    let wal = Wal::open(vfs.clone(), directory.path(), config.clone(), 0, &mut |_| Ok(())).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let wal = &wal;
            scope.spawn(move || {
                for i in 0..RECORDS {
                    let lsn = wal.append(1 + thread as u8, &i.to_le_bytes()).unwrap();
                    if i % 10 == 0 {
                        wal.wait_durable(lsn).unwrap();
                    }
                }
            });
        }
    });
    wal.close().unwrap();
    let mut next = [0; THREADS as usize];
    let reopened = Wal::open(vfs, directory.path(), config, 0, &mut |record| {
        let expected = &mut next[usize::from(record.kind) - 1];
        assert_eq!(record.payload, u64::to_le_bytes(*expected), "each thread's records in order");
        *expected += 1;
        Ok(())
    });
    assert_eq!(reopened.unwrap().recovery().record_count, THREADS * RECORDS);
    assert_eq!(next, [RECORDS; THREADS as usize]);
}

#[test]
fn arbitrary_bytes_are_read_without_panic() {
    let mut dice = Random(1);
    for _ in 0..5000 {
        let size = dice.below(200);
        let data: Vec<u8> = (0..size).map(|_| dice.next() as u8).collect();
        fuzz_wal_segment(&data);
        // Sizes and positions that hit.
        let small: Vec<u8> = data.iter().map(|byte| byte % 24).collect();
        fuzz_wal_segment(&small);
    }
}
