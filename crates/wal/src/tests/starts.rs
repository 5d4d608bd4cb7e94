//! Where a log begins and what is durable once it is open.

use super::*;
use crate::start;

const START: &str = "/data/wal/START";

fn known_start(vfs: &SimVfs) -> LogStart {
    start::read(vfs, Path::new(DIRECTORY)).unwrap()
}

fn known(first: u64, end: u64) -> LogStart {
    LogStart::Known(LogRange { first, end })
}

/// A log whose segments 2 to 4 have a record each.
fn three_segments() -> SimVfs {
    let vfs = SimVfs::new(5);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    for number in 0..5u8 {
        wal.append(1, &[number]).unwrap();
        wal.rotate();
    }
    wal.remove_before(2).unwrap();
    wal.close().unwrap();
    vfs
}

fn open_at(vfs: &SimVfs, next_segment_min: u64) -> Result<Wal> {
    let config = WalConfig { next_segment_min, ..config(Committer::Waiter) };
    Wal::open(Arc::new(vfs.clone()), Path::new(DIRECTORY), config, 0, &mut |_| Ok(()))
}

/// What a log of `vfs` replays from its own beginning.
fn replayed(vfs: &SimVfs) -> Result<Vec<Record>> {
    let first = first_segment(vfs, Path::new(DIRECTORY))?.unwrap_or(0);
    open(vfs, Committer::Waiter, first).map(|(_, replayed)| replayed)
}

#[test]
fn the_beginning_of_the_log_is_written_down() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    assert_eq!(wal.recovery().start, LogStart::Unknown);
    assert_eq!(known_start(&vfs), known(0, 0));
    let lsn = wal.append(1, b"x").unwrap();
    wal.wait_durable(lsn).unwrap();
    assert_eq!(known_start(&vfs.crash()), known(0, 1));
    let vfs = three_segments();
    assert_eq!(known_start(&vfs.crash()), known(2, 5));
    assert_eq!(first_segment(&vfs, Path::new(DIRECTORY)).unwrap(), Some(2));
    assert_eq!(replayed(&vfs).unwrap(), [(1, vec![2]), (1, vec![3]), (1, vec![4])]);
    let (wal, _) = open(&vfs, Committer::Waiter, 2).unwrap();
    wal.remove_before(wal.rotate()).unwrap();
    drop(wal);
    assert_eq!(vfs.list(Path::new(DIRECTORY)).unwrap(), ["END", "START"]);
    // Numbers are never given out twice, even if no file tells of them.
    assert_eq!(open(&vfs.crash(), Committer::Waiter, 0).unwrap().0.stats().segment, 5);
}

#[test]
fn a_lost_segment_is_an_error() {
    for lost in [2, 3, 4] {
        let vfs = three_segments();
        vfs.remove(&segment_path(lost)).unwrap();
        let missing = |error: &Error| matches!(error, Error::MissingSegment { file } if *file == segment_path(lost));
        let error = replayed(&vfs).unwrap_err();
        assert!(missing(&error), "{error}");
        let error = check(&vfs, Path::new(DIRECTORY), &mut |_| Ok(())).unwrap_err();
        assert!(missing(&error), "{error}");
    }
}

#[test]
fn what_an_interrupted_removal_left_goes_at_the_next_start() {
    let vfs = three_segments();
    start::write(&vfs, Path::new(DIRECTORY), LogRange { first: 4, end: 5 }).unwrap();
    for name in ["0000000002.wal.tmp", "START.tmp", "notes.tmp"] {
        vfs.create(&Path::new(DIRECTORY).join(name)).unwrap();
    }
    let files = vfs.list(Path::new(DIRECTORY)).unwrap();
    let recovery = check(&vfs, Path::new(DIRECTORY), &mut |_| Ok(())).unwrap();
    assert_eq!((recovery.record_count, recovery.start), (1, known(4, 5)));
    assert_eq!(vfs.list(Path::new(DIRECTORY)).unwrap(), files, "a look changes nothing");
    assert_eq!(replayed(&vfs).unwrap(), [(1, vec![4])]);
    let left = vfs.crash().list(Path::new(DIRECTORY)).unwrap();
    assert_eq!(left, ["0000000004.wal", "END", "START", "notes.tmp"]);
}

#[test]
fn a_damaged_start_costs_only_what_it_knows() {
    for offset in 0..32 {
        let vfs = three_segments();
        vfs.flip_bit(Path::new(START), offset, 3).unwrap();
        assert_eq!(known_start(&vfs), LogStart::Damaged);
        let (wal, replayed) = open(&vfs, Committer::Waiter, 2).unwrap();
        assert_eq!((replayed.len(), wal.recovery().start), (3, LogStart::Damaged));
        assert_eq!(known_start(&vfs.crash()), known(2, 5), "it is written anew");
    }
    for size in 0..32 {
        let vfs = three_segments();
        vfs.truncate(Path::new(START), size).unwrap();
        assert_eq!(replayed(&vfs).unwrap().len(), 3);
    }
}

#[test]
fn a_start_of_a_later_version_stops_the_opening() {
    let mut bytes = start::encode(LogRange { first: 2, end: 5 });
    bytes[8] = 9;
    let crc = codec::crc32(&bytes[..28]);
    bytes[28..].copy_from_slice(&crc.to_le_bytes());
    let vfs = three_segments();
    vfs.remove(Path::new(START)).unwrap();
    vfs.create(Path::new(START)).unwrap().append(&bytes).unwrap();
    let error = replayed(&vfs).unwrap_err();
    assert!(matches!(error, Error::UnknownVersion { version: 9, max: 1, .. }), "{error}");
    assert_eq!(vfs.read(Path::new(START)).unwrap(), bytes);
}

/// A header that is rotten is no torn creation once the segment is known to have been begun. Before,
/// the file was removed and nothing said.
#[test]
fn a_segment_that_was_begun_is_never_torn() {
    let vfs = three_segments();
    vfs.truncate(&segment_path(4), 31).unwrap();
    assert!(matches!(replayed(&vfs), Err(Error::Corrupt { .. })));
    vfs.remove(&segment_path(4)).unwrap();
    vfs.create(&segment_path(4)).unwrap();
    assert!(matches!(replayed(&vfs), Err(Error::Corrupt { .. })));
    // One that no record was written to yet may be.
    start::write(&vfs, Path::new(DIRECTORY), LogRange { first: 2, end: 4 }).unwrap();
    assert_eq!(replayed(&vfs).unwrap().len(), 2);
    assert_eq!(known_start(&vfs), known(2, 4));
}

/// A file of format version 1, byte by byte; must open for ever.
#[test]
fn the_format_of_the_start_is_what_the_documentation_says() {
    let hex: String = start::encode(LogRange { first: 3, end: 7 })
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hex, "51554950555753540100000003000000000000000700000000000000505ce9e3");
}

#[test]
fn a_directory_that_is_not_there_is_an_empty_log_to_look_at() {
    let vfs = SimVfs::new(1);
    let recovery = check(&vfs, Path::new(DIRECTORY), &mut |_| Ok(())).unwrap();
    assert_eq!(recovery, Recovery::default());
    assert!(!vfs.exists(Path::new(DIRECTORY)).unwrap());
}

#[test]
fn a_look_reports_a_torn_end_and_leaves_it() {
    let vfs = three_segments();
    // The last record loses a byte.
    let size = vfs.size(&segment_path(4)).unwrap();
    vfs.truncate(&segment_path(4), size - 1).unwrap();
    let recovery = check(&vfs, Path::new(DIRECTORY), &mut |_| Ok(())).unwrap();
    assert_eq!((recovery.record_count, recovery.cut_size), (2, 9));
    assert_eq!(vfs.size(&segment_path(4)).unwrap(), size - 1);
}

#[test]
fn numbers_that_manifests_have_seen_are_not_given_out_again() {
    let vfs = three_segments();
    let wal = open_at(&vfs, 9).unwrap();
    assert_eq!(wal.stats().segment, 9);
    let lsn = wal.append(1, &[9]).unwrap();
    wal.wait_durable(lsn).unwrap();
    drop(wal);
    // Numbers without a file would look like a loss.
    assert_eq!(replayed(&vfs.crash()).unwrap().len(), 4);
    let error = open_at(&vfs, 1 << 30).map(drop).unwrap_err();
    assert!(matches!(error, Error::MissingSegment { .. }), "{error}");
    let empty = SimVfs::new(1);
    assert_eq!(open_at(&empty, 1 << 30).unwrap().stats().segment, 1 << 30);
    assert_eq!(known_start(&empty), known(1 << 30, 1 << 30));
}

/// A machine that dies at any change of an opening, or of the commit before: no byte that an
/// opening replayed is lost by a crash after it.
#[test]
fn what_was_replayed_is_durable() {
    for seed in rng::seeds(0..40) {
        for dead in 0..14 {
            let vfs = SimVfs::new(seed ^ dead << 32);
            let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
            let synced = wal.append(1, b"synced").unwrap();
            wal.wait_durable(synced).unwrap();
            // The process dies in a commit, by itself or for a sync that failed.
            match dead % 2 {
                0 => vfs.fail_syncs(1),
                _ => vfs.fail_after(vfs.operations() + dead / 2),
            }
            let lsn = wal.append(1, b"not synced").unwrap();
            let _ = wal.wait_durable(lsn);
            drop(wal);
            vfs.fail_after(u64::MAX);
            vfs.fail_syncs(0);
            let (wal, before) = open(&vfs, Committer::Waiter, 0).unwrap();
            let lsn = wal.append(1, b"later").unwrap();
            wal.wait_durable(lsn).unwrap();
            let (_, after) = open(&vfs.crash(), Committer::Waiter, 0)
                .unwrap_or_else(|error| panic!("SEED={seed} dead {dead}: {error}"));
            assert_eq!(after[..before.len()], before, "SEED={seed} dead {dead}");
            assert_eq!(after.len(), before.len() + 1);
        }
    }
}

/// Files beside the log say where it goes on, and may say anything.
#[test]
fn a_segment_that_there_cannot_be_is_an_error() {
    for next in [10_000_000_000, u64::MAX] {
        for vfs in [SimVfs::new(1), three_segments()] {
            let error = open_at(&vfs, next).unwrap_err();
            assert!(matches!(error, Error::NoSuchSegment { .. }), "{error}");
            open_at(&vfs, 0).unwrap();
        }
    }
    open_at(&SimVfs::new(1), 9_999_999_999).unwrap();
}
