//! No file handle is left to begin a segment with: the log waits, and goes on once there is one.

use super::*;
use crate::start;
use vfs::sim::{Call, Errno};

/// The calls that open a file while a segment is begun: the segment, its directory, `START` and the
/// directory again.
const OPENINGS: [(Call, u64); 4] =
    [(Call::Create, 0), (Call::SyncDir, 0), (Call::Create, 1), (Call::SyncDir, 1)];

/// A log with one durable record, whose next one begins a segment.
fn before_a_segment(vfs: &SimVfs, committer: Committer) -> Wal {
    let (wal, _) = open(vfs, committer, 0).unwrap();
    wal.wait_durable(wal.append(1, b"first").unwrap()).unwrap();
    wal.rotate();
    wal
}

fn replayed(vfs: &SimVfs) -> Vec<Record> {
    open(vfs, Committer::Waiter, 0).unwrap().1
}

fn is_stalled<T: std::fmt::Debug>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Stalled { .. }))
}

fn records(payloads: &[&[u8]]) -> Vec<Record> {
    payloads.iter().map(|payload| (1, payload.to_vec())).collect()
}

#[test]
fn a_segment_without_a_file_handle_begins_later() {
    for (call, number) in OPENINGS {
        let vfs = SimVfs::new(1);
        let wal = before_a_segment(&vfs, Committer::Waiter);
        vfs.fail_call(call, number, Errno::Files);
        let second = wal.append(1, b"second").unwrap();
        let error = wal.wait_durable(second).unwrap_err();
        assert!(matches!(error, Error::Stalled { .. }), "{call:?} {number}: {error}");
        assert!(error.to_string().contains("raise the file limit"), "{error}");
        // A crash now costs what was not acknowledged, and nothing else.
        assert_eq!(replayed(&vfs.crash())[..1], records(&[b"first"]), "{call:?} {number}");
        let third = wal.append(1, b"third").unwrap();
        wal.wait_durable(third).unwrap();
        wal.wait_durable(second).unwrap();
        let all = records(&[b"first", b"second", b"third"]);
        assert_eq!(replayed(&vfs.crash()), all, "{call:?} {number}");
        wal.close().unwrap();
        let (wal, replayed) = open(&vfs.crash(), Committer::Waiter, 0).unwrap();
        assert_eq!((replayed, wal.recovery().cut_size), (all, 0), "{call:?} {number}");
    }
}

#[test]
fn many_vain_attempts_lose_nothing_and_keep_the_order() {
    let vfs = SimVfs::new(2);
    let wal = before_a_segment(&vfs, Committer::Waiter);
    let mut expected = records(&[b"first"]);
    for round in 0..40u8 {
        if round % 4 == 3 {
            wal.rotate();
        }
        let (call, number) = OPENINGS[usize::from(round) % OPENINGS.len()];
        vfs.fail_call(call, number, Errno::Files);
        expected.push((1, vec![round; 90]));
        let lsn = wal.append(1, &[round; 90]).unwrap();
        // Some of them begin no segment, or one of those that were put off.
        if !is_stalled(wal.wait_durable(lsn)) {
            assert_eq!(replayed(&vfs.crash()), expected, "round {round}");
        }
    }
    while wal.wait_durable(wal.end()).is_err() {}
    assert_eq!(replayed(&vfs.crash()), expected);
}

#[test]
fn a_group_over_several_segments_goes_on_where_it_stalled() {
    for number in 0..8 {
        let vfs = SimVfs::new(3);
        let wal = before_a_segment(&vfs, Committer::Waiter);
        vfs.fail_call(Call::Create, number, Errno::Files);
        let mut expected = records(&[b"first"]);
        for value in 0..40u8 {
            wal.append(1, &[value; 91]).unwrap();
            expected.push((1, vec![value; 91]));
        }
        let end = wal.end();
        assert!(is_stalled(wal.wait_durable(end)), "the {number}th file");
        let crashed = replayed(&vfs.crash());
        assert_eq!(crashed, expected[..crashed.len()], "a beginning of it is there");
        wal.wait_durable(end).unwrap();
        assert_eq!(replayed(&vfs.crash()), expected, "the {number}th file");
    }
}

#[test]
fn the_commit_thread_tries_again_by_itself() {
    let vfs = SimVfs::new(4);
    let wal = before_a_segment(&vfs, Committer::Thread);
    vfs.fail_call(Call::Create, 0, Errno::Files);
    let lsn = wal.append(1, b"second").unwrap();
    wal.wait_durable(lsn).unwrap();
    assert_eq!(replayed(&vfs.crash()), records(&[b"first", b"second"]));
}

#[test]
fn a_log_that_closes_says_what_it_could_not_write() {
    for committer in [Committer::Waiter, Committer::Thread] {
        let vfs = SimVfs::new(5);
        let wal = before_a_segment(&vfs, committer);
        // Creating never succeeds any more.
        (0..200).for_each(|number| vfs.fail_call(Call::Create, number, Errno::Files));
        wal.append_lazily(1, &[b"second"]).unwrap();
        match committer {
            Committer::Waiter => assert!(is_stalled(wal.close())),
            Committer::Thread => drop(wal),
        }
        assert_eq!(replayed(&vfs.crash()), records(&[b"first"]));
    }
}

/// Opens a log with a durable record, fills the disk, and appends to it and beyond.
fn full_disk(seed: u64, room: u64, committer: Committer) -> (SimVfs, Wal, Vec<Record>) {
    let vfs = SimVfs::new(seed);
    let (wal, _) = open(&vfs, committer, 0).unwrap();
    wal.wait_durable(wal.append(1, b"first").unwrap()).unwrap();
    vfs.set_free_space(room);
    let mut expected = records(&[b"first"]);
    for value in 0..30u8 {
        wal.append(1, &[value; 91]).unwrap();
        expected.push((1, vec![value; 91]));
    }
    (vfs, wal, expected)
}

#[test]
fn append_on_a_full_disk_goes_on_once_there_is_room() {
    // In the middle of a record, of a later segment, of its header.
    for room in [0, 1, 50, 500, 968, 975, 1000, 1500, 2900] {
        let (vfs, wal, expected) = full_disk(11, room, Committer::Waiter);
        for _ in 0..3 {
            let error = wal.wait_durable(wal.end()).unwrap_err();
            assert!(matches!(error, Error::Stalled { is_disk_full: true, .. }), "{room}: {error}");
            assert!(wal.refusal().unwrap().contains("free some disk space"), "{room}");
        }
        // A crash now costs what was not acknowledged, and nothing else.
        for crashed in [vfs.crash(), vfs.kill()] {
            crashed.set_free_space(1 << 20);
            let found = replayed(&crashed);
            assert_eq!(found, expected[..found.len()], "{room}");
            assert!(!found.is_empty(), "{room}");
        }
        vfs.set_free_space(1 << 20);
        wal.append(1, b"last").unwrap();
        wal.wait_durable(wal.end()).unwrap();
        assert_eq!(wal.refusal(), None);
        let expected = [&expected[..], &records(&[b"last"])].concat();
        assert_eq!(replayed(&vfs.crash()), expected, "{room}");
        wal.close().unwrap();
        let (wal, found) = open(&vfs.crash(), Committer::Waiter, 0).unwrap();
        assert_eq!((found, wal.recovery().cut_size), (expected, 0), "{room}");
    }
}

#[test]
fn commit_thread_goes_on_by_itself_once_there_is_room() {
    let (vfs, wal, expected) = full_disk(12, 500, Committer::Thread);
    while wal.refusal().is_none() {
        std::thread::yield_now();
    }
    vfs.set_free_space(1 << 20);
    wal.wait_durable(wal.end()).unwrap();
    assert_eq!((replayed(&vfs.crash()), wal.refusal()), (expected, None));
}

#[test]
fn a_failed_sync_still_makes_the_log_read_only() {
    for (call, number) in [(Call::Sync, 0), (Call::SyncDir, 0), (Call::Sync, 1), (Call::Sync, 2)] {
        let vfs = SimVfs::new(6);
        let wal = before_a_segment(&vfs, Committer::Waiter);
        vfs.fail_call(call, number, Errno::Io);
        let lsn = wal.append(1, b"second").unwrap();
        let result = wal.wait_durable(lsn);
        assert!(matches!(result, Err(Error::Latched { .. })), "{call:?} {number}: {result:?}");
        assert!(matches!(wal.append(1, b"third"), Err(Error::Latched { .. })));
    }
}

#[test]
fn a_removal_without_a_file_handle_is_tried_again() {
    let vfs = SimVfs::new(7);
    let wal = before_a_segment(&vfs, Committer::Waiter);
    wal.wait_durable(wal.append(1, b"second").unwrap()).unwrap();
    vfs.fail_call(Call::Create, 0, Errno::Files);
    assert!(matches!(wal.remove_before(1), Err(Error::Io(error)) if error.is_file_limit()));
    assert!(vfs.exists(&segment_path(0)).unwrap());
    wal.remove_before(1).unwrap();
    assert!(!vfs.exists(&segment_path(0)).unwrap());
    let start = start::read(&vfs.crash(), Path::new(DIRECTORY)).unwrap();
    assert_eq!(start, LogStart::Known(LogRange { first: 1, end: 2 }));
}
