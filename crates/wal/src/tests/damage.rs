//! Bytes that are not what was written: torn, rotten, missing, of another version.

use super::*;
use crate::format::{Header, put_record};

/// A log of two segments: `aaaa bbbb` synced in two groups, then `cccc` `dddd` likewise, and in
/// the second one no closing mark, as after a kill.
fn two_segments() -> SimVfs {
    let vfs = SimVfs::new(9);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    for (payload, is_last) in [(b"aaaa", false), (b"bbbb", true), (b"cccc", false), (b"dddd", true)]
    {
        let lsn = wal.append(3, payload).unwrap();
        wal.wait_durable(lsn).unwrap();
        if is_last {
            wal.rotate();
        }
    }
    drop(wal);
    vfs
}

/// Sizes in each segment of [`two_segments`]: header 32, record 13, mark 9, record 13.
const SEGMENT_SIZE: u64 = 67;

/// Where the mark ends that proves the first record to be synced.
const PROVEN_SIZE: u64 = 54;

#[test]
fn a_flipped_bit_in_an_earlier_segment_is_an_error_that_names_it() {
    for offset in 0..SEGMENT_SIZE {
        let vfs = two_segments();
        vfs.flip_bit(&segment_path(0), offset, (offset % 8) as u8).unwrap();
        let error = open(&vfs, Committer::Waiter, 0).unwrap_err();
        let Error::Corrupt { file, offset: found, .. } = &error else { panic!("{error}") };
        assert_eq!(file, &segment_path(0));
        let record = [0, 32, 45, 54].into_iter().rfind(|start| *start <= offset);
        assert_eq!(Some(*found), record, "{error}");
        open(&vfs, Committer::Waiter, 1).expect("it does not matter once it is flushed");
    }
}

#[test]
fn a_flipped_bit_in_the_last_segment_is_an_error_where_a_mark_proves_it() {
    for offset in 0..SEGMENT_SIZE {
        let vfs = two_segments();
        vfs.flip_bit(&segment_path(1), offset, (offset % 8) as u8).unwrap();
        match open(&vfs, Committer::Waiter, 0) {
            Err(Error::Corrupt { file, .. }) => {
                assert!(offset < 45, "{offset}");
                assert_eq!(file, segment_path(1));
            }
            Err(error) => panic!("{error}"),
            // Cannot be told from a torn write.
            Ok((wal, replayed)) => {
                assert!(45 <= offset, "{offset}");
                assert_eq!(replayed.len(), 3);
                let kept = if offset < PROVEN_SIZE { 45 } else { PROVEN_SIZE };
                assert_eq!(wal.recovery().cut_size, SEGMENT_SIZE - kept);
                // Behind what was kept there is a mark now.
                assert_eq!(vfs.size(&segment_path(1)).unwrap(), PROVEN_SIZE);
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_what_was_written_anew_is_an_error() {
    for offset in 0..SEGMENT_SIZE {
        let vfs = two_segments();
        drop(open(&vfs, Committer::Waiter, 0).unwrap());
        assert_eq!(vfs.size(&segment_path(1)).unwrap(), SEGMENT_SIZE + 9);
        drop(open(&vfs, Committer::Waiter, 0).unwrap());
        assert_eq!(vfs.size(&segment_path(1)).unwrap(), SEGMENT_SIZE + 9, "one mark is enough");
        vfs.flip_bit(&segment_path(1), offset, (offset % 8) as u8).unwrap();
        let error = open(&vfs, Committer::Waiter, 0).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{offset}: {error}");
    }
}

#[test]
fn a_last_segment_cut_anywhere_is_read_up_to_there() {
    for size in 0..SEGMENT_SIZE {
        let vfs = two_segments();
        vfs.truncate(&segment_path(1), size).unwrap();
        if size < 32 {
            // The header was synced before `START` named the segment, so no crash tore it.
            let error = open(&vfs, Committer::Waiter, 0).unwrap_err();
            assert!(matches!(error, Error::Corrupt { offset: 0, .. }), "{error}");
            continue;
        }
        let (wal, replayed) = open(&vfs, Committer::Waiter, 0).unwrap();
        let (count, kept) = match size {
            32..45 => (2, 32),
            45..54 => (3, 45),
            _ => (3, 54),
        };
        assert_eq!((replayed.len(), wal.recovery().cut_size), (count, size - kept));
        assert_eq!(wal.stats().segment, 2);
        let lsn = wal.append(1, b"eeee").unwrap();
        wal.wait_durable(lsn).unwrap();
        let (_, again) = open(&vfs.crash(), Committer::Waiter, 0).unwrap();
        assert_eq!(again.len(), count + 1);
    }
}

#[test]
fn a_closed_log_forgives_no_bit() {
    let vfs = SimVfs::new(2);
    let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
    wal.append(1, b"closed").unwrap();
    wal.close().unwrap();
    for offset in 0..vfs.size(&segment_path(0)).unwrap() - 9 {
        let damaged = vfs.crash();
        damaged.flip_bit(&segment_path(0), offset, 7).unwrap();
        let error = open(&damaged, Committer::Waiter, 0).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
}

#[test]
fn a_missing_segment_is_an_error() {
    let vfs = two_segments();
    vfs.remove(&segment_path(0)).unwrap();
    let error = open(&vfs, Committer::Waiter, 0).unwrap_err();
    assert!(matches!(&error, Error::MissingSegment { file } if *file == segment_path(0)));
    assert_eq!(open(&vfs, Committer::Waiter, 1).unwrap().1.len(), 2);
    let (wal, replayed) = open(&vfs, Committer::Waiter, 5).unwrap();
    assert_eq!((replayed.len(), wal.stats().segment), (0, 5));
}

#[test]
fn a_segment_under_another_name_is_an_error() {
    let vfs = two_segments();
    vfs.rename(&segment_path(1), &segment_path(2)).unwrap();
    vfs.rename(&segment_path(0), &segment_path(1)).unwrap();
    let error = open(&vfs, Committer::Waiter, 1).unwrap_err();
    assert!(matches!(error, Error::Corrupt { offset: 12, .. }), "{error}");
}

#[test]
fn files_of_others_are_left_alone() {
    let vfs = two_segments();
    for name in ["1.wal", "99999999999999999999.wal", "0000000001.wal.bak", "-000000001.wal"] {
        vfs.create(&Path::new(DIRECTORY).join(name)).unwrap();
    }
    let (wal, replayed) = open(&vfs, Committer::Waiter, 0).unwrap();
    assert_eq!((replayed.len(), wal.stats().segment), (4, 2));
}

#[test]
fn a_later_version_is_refused_by_number() {
    let mut header = Header { segment: 0, nonce: 1 }.encode();
    header[8] = 2;
    let crc = codec::crc32(&header[..28]);
    header[28..].copy_from_slice(&crc.to_le_bytes());
    let vfs = SimVfs::new(1);
    vfs.create_dir_all(Path::new(DIRECTORY)).unwrap();
    vfs.create(&segment_path(0)).unwrap().append(&header).unwrap();
    let error = open(&vfs, Committer::Waiter, 0).unwrap_err();
    assert!(matches!(error, Error::UnknownVersion { version: 2, max: 1, .. }), "{error}");
}

#[test]
fn a_refused_record_stops_the_opening() {
    let vfs = two_segments();
    let opened =
        Wal::open(Arc::new(vfs), Path::new(DIRECTORY), config(Committer::Waiter), 0, &mut |r| {
            if r.payload == b"bbbb" { Err("no such partition".into()) } else { Ok(()) }
        });
    let text = opened.unwrap_err().to_string();
    assert_eq!(text, "/data/wal/0000000000.wal at byte 54: no such partition");
}

/// A file of format version 1, byte by byte; must open for ever.
#[test]
fn the_format_is_what_the_documentation_says() {
    let header = Header { segment: 3, nonce: 0x0807_0605_0403_0201 };
    let mut bytes = header.encode();
    put_record(&mut bytes, header.salt(), 32, 5, &[b"quipu"]);
    put_record(&mut bytes, header.salt(), 46, 255, &[]);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN_V1);
    let vfs = SimVfs::new(1);
    vfs.create_dir_all(Path::new(DIRECTORY)).unwrap();
    vfs.create(&segment_path(3)).unwrap().append(&bytes).unwrap();
    assert_eq!(open(&vfs, Committer::Waiter, 3).unwrap().1, [(5, b"quipu".to_vec())]);
}

const GOLDEN_V1: &str = concat!(
    "515549505557414c01000000030000000000000001020304050607",
    "08be9a755a",
    "910ff01a0500000005",
    "7175697075",
    "b5b0bb7400000000ff"
);
