//! A log that comes back shorter than it was synced is noticed, and a crash never looks like one.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Where the records of a segment end, marks included.
fn record_ends(vfs: &SimVfs, segment: u64) -> Vec<u64> {
    let bytes = vfs.read(&segment_path(segment)).unwrap();
    let (mut reader, _) = reader::SegmentReader::open(&bytes).unwrap();
    let mut ends = Vec::new();
    while let Ok(Some(record)) = reader.next() {
        ends.push(record.offset);
    }
    ends
}

fn append(wal: &Wal, count: u8) {
    for number in 0..count {
        let lsn = wal.append(1, &[number; 50]).unwrap();
        wal.wait_durable(lsn).unwrap();
    }
}

fn faults(vfs: &SimVfs) -> Vec<String> {
    let mut faults = Vec::new();
    inspect(vfs, Path::new(DIRECTORY), &mut |found| {
        if let Found::Fault(fault) = found {
            faults.push(format!("{} {:?}", fault.segment, fault.kind));
        }
    })
    .unwrap();
    faults
}

#[test]
fn a_segment_that_was_cut_between_two_records_is_noticed_once() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    append(&wal, 4);
    vfs.advance(2 * SECOND);
    append(&wal, 1);
    let noted = vfs.size(&segment_path(0)).unwrap();
    // Within the same second: in doubt.
    append(&wal, 3);
    drop(wal);
    let whole = vfs.kill();
    assert_eq!(faults(&whole), Vec::<String>::new());
    for offset in record_ends(&whole, 0) {
        let cut = whole.kill();
        cut.truncate(&segment_path(0), offset).unwrap();
        let expected = (offset < noted).then_some(LostEnd { segment: 0, offset, end: noted });
        let found = faults(&cut);
        assert_eq!(found.len(), usize::from(expected.is_some()), "{offset}: {found:?}");
        let (wal, replayed) = open(&cut, Committer::Waiter, 0).unwrap();
        assert_eq!(wal.recovery().lost_end, expected);
        assert!(replayed.len() <= 8);
        append(&wal, 1);
        drop(wal);
        let again = cut.kill();
        assert_eq!(faults(&again), Vec::<String>::new());
        let (wal, _) = open(&again, Committer::Waiter, 0).unwrap();
        assert_eq!(wal.recovery().lost_end, None, "said once");
    }
}

#[test]
fn an_earlier_segment_that_was_cut_is_noticed() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    append(&wal, 4);
    wal.rotate();
    append(&wal, 1);
    drop(wal);
    let whole = vfs.kill();
    let ends = record_ends(&whole, 0);
    whole.truncate(&segment_path(0), ends[2]).unwrap();
    assert_eq!(faults(&whole).len(), 1);
    let (wal, replayed) = open(&whole, Committer::Waiter, 0).unwrap();
    let lost = wal.recovery().lost_end.expect("noticed");
    assert_eq!((lost.segment, lost.offset), (0, ends[2]));
    assert!(replayed.len() < 5);
}

#[test]
fn a_note_that_is_damaged_or_gone_costs_itself() {
    let vfs = SimVfs::new(1);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    append(&wal, 3);
    wal.close().unwrap();
    drop(wal);
    let path = Path::new(DIRECTORY).join(END_NAME);
    for is_removed in [false, true] {
        let disk = vfs.kill();
        match is_removed {
            true => disk.remove(&path).unwrap(),
            false => disk.flip_bit(&path, 9, 1).unwrap(),
        }
        assert_eq!(check_end(&disk, Path::new(DIRECTORY)).is_err(), !is_removed);
        let (wal, replayed) = open(&disk, Committer::Waiter, 0).unwrap();
        assert_eq!((replayed.len(), wal.recovery().lost_end), (3, None));
        assert_eq!(wal.recovery().is_end_damaged, !is_removed);
        drop(wal);
        assert!(check_end(&disk, Path::new(DIRECTORY)).is_ok(), "written anew");
    }
}

/// Appends, lets time pass, rotates and removes until the disk fails.
fn live(vfs: &SimVfs) -> Result<()> {
    let (wal, _) = open(vfs, Committer::Waiter, 0)?;
    for round in 0..6u8 {
        let lsn = wal.append(1, &[round; 200])?;
        wal.wait_durable(lsn)?;
        vfs.advance(SECOND * u64::from(round % 3));
        if round % 4 == 3 {
            wal.remove_before(wal.rotate())?;
        }
    }
    wal.close()
}

#[test]
fn no_crash_looks_like_a_loss() {
    for seed in rng::seeds(0..4) {
        for operation in 1.. {
            let vfs = SimVfs::new(seed);
            vfs.fail_after(operation);
            let lived = live(&vfs);
            for after in [vfs.crash(), vfs.kill()] {
                let found = faults(&after);
                let is_loss = |one: &String| one.contains("Short") || one.contains("Damage");
                assert!(!found.iter().any(is_loss), "SEED={seed} {operation}: {found:?}");
                let (wal, _) = open(&after, Committer::Waiter, 0).unwrap();
                let Recovery { lost_end, is_end_damaged, .. } = wal.recovery();
                assert_eq!((lost_end, is_end_damaged), (None, false), "SEED={seed} {operation}");
            }
            if lived.is_ok() {
                break;
            }
        }
    }
}
