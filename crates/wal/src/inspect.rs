//! Looks at a whole log without changing it, and goes on behind what is broken; for verification
//! and repair. Opening a log, in `recover`, stops at the first fault instead.
//!
//! ```text
//! segments in order ─► records, marks left out
//!                   └► faults: gaps, headers, bytes that are no record, a torn end
//! ```
//!
//! Behind broken bytes it goes on where the broken record's size says that the next one is, else at
//! the next mark: every record has its place in its checksum, so one found there is one.

use crate::end::{self, END_NAME, LostEnd, SyncedEnds};
use crate::error::{Error, Result};
use crate::format::{HEADER_SIZE, Header, KIND_MARK, segment_name};
use crate::segments::{RecordRef, first_segment, list_segments, open_reader};
use crate::start::{self, LogStart, START_NAME};
use std::path::{Path, PathBuf};
use vfs::Vfs;

/// What [`inspect`] comes across.
#[derive(Debug)]
pub enum Found<'a> {
    /// A sound record.
    Record(RecordRef<'a>),
    /// Something else.
    Fault(Fault),
}

/// A place where a log is not as it was written.
#[derive(Debug)]
pub struct Fault {
    /// The segment's file.
    pub file: PathBuf,
    /// Its number.
    pub segment: u64,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What is wrong with a log.
#[derive(Debug)]
pub enum FaultKind {
    /// This segment and those up to `last` are missing, though they, or later ones, were begun.
    Missing {
        /// The last one of the gap.
        last: u64,
    },
    /// Bytes from `offset` up to `end` hold no record, and had been synced.
    Damage {
        /// Where they start.
        offset: u64,
        /// Where the next record starts, or the file ends.
        end: u64,
        /// What was expected.
        what: &'static str,
    },
    /// The header is damaged; its records may be readable all the same.
    Header {
        /// What was expected.
        what: &'static str,
    },
    /// A write that a crash interrupted, at the very end: nothing of it was acknowledged. Opening
    /// cuts it off.
    TornEnd {
        /// Where it starts.
        offset: u64,
        /// Its size.
        size: u64,
    },
    /// Records from `offset` up to `end` are gone, which had been synced.
    Short {
        /// End of the sound records, in bytes.
        offset: u64,
        /// End of the records at the last sync, in bytes.
        end: u64,
    },
    /// The file cannot be read.
    Unreadable {
        /// What the system said.
        error: vfs::Error,
    },
}

/// What there is in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// Segments there.
    pub segment_count: u64,
    /// Their bytes.
    pub size: u64,
    /// Sound records.
    pub record_count: u64,
}

/// Hands all records and all faults of a log to `on_found`, in their order. A log without a
/// directory is an empty one.
///
/// # Errors
/// [`Error::UnknownVersion`], and when the directory cannot be listed.
pub fn inspect(
    vfs: &dyn Vfs,
    directory: &Path,
    on_found: &mut dyn FnMut(Found<'_>),
) -> Result<Inspected> {
    let mut inspected = Inspected::default();
    if !vfs.exists(directory)? {
        return Ok(inspected);
    }
    let mut segments = list_segments(vfs, directory)?;
    let start = start::read(vfs, directory)?;
    if let LogStart::Known(range) = start {
        // Those below are what a removal left.
        segments.retain(|segment| range.first <= *segment);
    }
    let end = match start {
        LogStart::Known(range) => range.end,
        LogStart::Unknown | LogStart::Damaged => 0,
    };
    // Skip damaged notes: `END` reports them as a damaged side file.
    let noted = end::read(vfs, directory).unwrap_or_default();
    // Only the end of the last one can be torn.
    let last = segments.last().copied().unwrap_or(0).max(end.saturating_sub(1));
    let mut expected = first_segment(vfs, directory)?.unwrap_or(0);
    for &segment in &segments {
        if expected < segment {
            let kind = FaultKind::Missing { last: segment - 1 };
            let file = directory.join(segment_name(expected));
            on_found(Found::Fault(Fault { file, segment: expected, kind }));
        }
        expected = segment + 1;
        let file = directory.join(segment_name(segment));
        let torn = match (segment == last, start.is_begun(segment)) {
            (false, _) => MayBeTorn::Nothing,
            (true, true) => MayBeTorn::Records,
            (true, false) => MayBeTorn::All,
        };
        let looked = SegmentLook { vfs, file: &file, segment, torn, noted: &noted };
        inspect_segment(&looked, on_found, &mut inspected)?;
    }
    if expected < end {
        let kind = FaultKind::Missing { last: end - 1 };
        let file = directory.join(segment_name(expected));
        on_found(Found::Fault(Fault { file, segment: expected, kind }));
    }
    Ok(inspected)
}

/// Whether what a log's directory says about its first segment can be read, if it says anything.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::UnknownVersion`], and when the directory cannot be read.
pub fn check_start(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    if !vfs.exists(directory)? {
        return Ok(());
    }
    match start::read(vfs, directory)? {
        LogStart::Known(_) | LogStart::Unknown => Ok(()),
        LogStart::Damaged => {
            let file = directory.join(START_NAME);
            Err(Error::Corrupt { file, offset: 0, what: "what the log says about its start" })
        }
    }
}

/// Whether what a log's directory says about the ends of its segments can be read, if it says anything.
///
/// # Errors
/// As [`check_start`].
pub fn check_end(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    match end::read(vfs, directory) {
        Err(Error::Io(error)) if !error.is_passing() => {
            let what = "what the log says about its end cannot be read";
            Err(Error::Corrupt { file: directory.join(END_NAME), offset: 0, what })
        }
        read => read.map(drop),
    }
}

/// What of a segment a crash may have interrupted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayBeTorn {
    /// All of it was synced.
    Nothing,
    /// Its end.
    Records,
    /// Its header, too.
    All,
}

/// A segment that is looked at.
struct SegmentLook<'a> {
    vfs: &'a dyn Vfs,
    file: &'a Path,
    segment: u64,
    torn: MayBeTorn,
    /// Up to where segments had been synced.
    noted: &'a SyncedEnds,
}

fn inspect_segment(
    looked: &SegmentLook<'_>,
    on_found: &mut dyn FnMut(Found<'_>),
    inspected: &mut Inspected,
) -> Result<()> {
    let SegmentLook { vfs, file, segment, torn, noted } = *looked;
    let fault = |kind| Found::Fault(Fault { file: file.to_path_buf(), segment, kind });
    let bytes = match vfs.map(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            on_found(fault(FaultKind::Unreadable { error }));
            return Ok(());
        }
    };
    let size = bytes.len() as u64;
    inspected.segment_count += 1;
    inspected.size += size;
    let Some((mut reader, what)) = open_reader(&bytes, file, segment)? else {
        let is_torn = torn == MayBeTorn::All && size <= HEADER_SIZE && !bytes.has_faulted();
        let kind = match is_torn {
            true => FaultKind::TornEnd { offset: 0, size },
            false => FaultKind::Damage { offset: 0, end: size, what: "header of the segment" },
        };
        on_found(fault(kind));
        return Ok(());
    };
    if let Some(what) = what {
        on_found(fault(FaultKind::Header { what }));
    }
    let header = Header::decode(&bytes).ok();
    let lost_behind = |size: u64| end::lost_end(noted, header.as_ref()?, size);
    loop {
        match reader.next() {
            Ok(None) => {
                if let Some(LostEnd { offset, end, .. }) = lost_behind(size) {
                    on_found(fault(FaultKind::Short { offset, end }));
                }
                return Ok(());
            }
            Ok(Some(record)) if record.kind == KIND_MARK => {}
            Ok(Some(record)) => {
                inspected.record_count += 1;
                let (offset, kind, payload) = (record.offset, record.kind, record.payload);
                on_found(Found::Record(RecordRef { segment, offset, kind, payload }));
            }
            // What the disk does not give is no torn write.
            Err(invalid)
                if torn != MayBeTorn::Nothing
                    && lost_behind(invalid.offset).is_none()
                    && reader.find_mark().is_none()
                    && !bytes.has_faulted() =>
            {
                let size = size - invalid.offset;
                on_found(fault(FaultKind::TornEnd { offset: invalid.offset, size }));
                return Ok(());
            }
            Err(invalid) => {
                let end = reader.skip_damage();
                let (offset, what) = (invalid.offset, invalid.what);
                on_found(fault(FaultKind::Damage { offset, end, what }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::put_record;
    use crate::rewrite::{Kept, fill_gap, rewrite};
    use vfs::SimVfs;

    const DIR: &str = "/log";

    /// A segment of records `kind` 5, with a mark after the third.
    fn segment(number: u64) -> Vec<u8> {
        let header = Header { segment: number, nonce: 99 + number };
        let mut bytes = header.encode();
        for record in 0..6u8 {
            let offset = bytes.len() as u64;
            put_record(&mut bytes, header.salt(), offset, 5, &[&[record; 20]]);
            if record == 2 {
                let offset = bytes.len() as u64;
                put_record(&mut bytes, header.salt(), offset, KIND_MARK, &[]);
            }
        }
        bytes
    }

    fn disk(segments: &[(u64, Vec<u8>)]) -> SimVfs {
        let disk = SimVfs::new(1);
        disk.create_dir_all(Path::new(DIR)).unwrap();
        for (number, bytes) in segments {
            let mut file = disk.create(&Path::new(DIR).join(segment_name(*number))).unwrap();
            file.append(bytes).unwrap();
            file.sync().unwrap();
        }
        disk.sync_dir(Path::new(DIR)).unwrap();
        disk
    }

    /// First bytes of the records, and the faults as text.
    fn look(disk: &SimVfs) -> (Vec<(u64, u8)>, Vec<String>) {
        let (mut records, mut faults) = (Vec::new(), Vec::new());
        inspect(disk, Path::new(DIR), &mut |found| match found {
            Found::Record(record) => records.push((record.segment, record.payload[0])),
            Found::Fault(fault) => faults.push(format!("{} {:?}", fault.segment, fault.kind)),
        })
        .unwrap();
        (records, faults)
    }

    #[test]
    fn records_behind_damage_are_found_again() {
        let (whole, none) = look(&disk(&[(7, segment(7)), (8, segment(8))]));
        assert_eq!((whole.len(), none), (12, Vec::new()));
        for byte in 0..segment(7).len() {
            let mut bytes = segment(7);
            bytes[byte] ^= 0x10;
            let (records, faults) = look(&disk(&[(7, bytes), (8, segment(8))]));
            assert_eq!(faults.len(), 1, "byte {byte}: {faults:?}");
            assert!(8 <= records.len() && records.iter().all(|r| whole.contains(r)), "byte {byte}");
            assert!(byte < 32 || records.len() <= 12);
        }
    }

    #[test]
    fn a_torn_end_a_gap_and_a_lost_file_are_told_apart() {
        let torn = segment(7)[..100].to_vec();
        let (records, faults) = look(&disk(&[(7, torn.clone())]));
        assert_eq!(records.len(), 2);
        assert_eq!(faults, ["7 TornEnd { offset: 90, size: 10 }"]);
        let (_, faults) = look(&disk(&[(7, torn), (10, segment(10))]));
        assert_eq!(
            faults,
            [
                "7 Damage { offset: 90, end: 100, what: \"record cut short\" }",
                "8 Missing { last: 9 }"
            ]
        );
        let (_, faults) = look(&disk(&[(7, segment(7)), (8, b"QUIPU".to_vec())]));
        assert_eq!(faults, ["8 TornEnd { offset: 0, size: 5 }"]);
    }

    #[test]
    fn a_rewritten_segment_holds_what_was_kept() {
        let mut bytes = segment(7);
        bytes[50] ^= 1;
        let disk = disk(&[(7, bytes), (9, segment(9))]);
        let path = rewrite(&disk, Path::new(DIR), 7, &mut |record| match record.payload[0] {
            1 => Kept::Whole,
            3 => Kept::Changed(vec![33; 5]),
            _ => Kept::Not,
        })
        .unwrap();
        disk.rename(&path, &Path::new(DIR).join(segment_name(7))).unwrap();
        fill_gap(&disk, Path::new(DIR), 8).unwrap();
        let (records, faults) = look(&disk);
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!(records[..2], [(7, 1), (7, 33)]);
        assert_eq!(records.len(), 8);
    }
}
