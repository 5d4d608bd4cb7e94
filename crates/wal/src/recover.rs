//! What opening does: finds the segments, replays them, cuts what a crash tore.
//!
//! ```text
//!            first .. last-1                      last
//! complete   every record replayed                every record replayed
//! broken     Error::Corrupt                       a mark behind it?  yes: Error::Corrupt
//!                                                                    no:  cut there, sync
//! header     Error::Corrupt                       nothing behind it? torn creation: removed
//! ```
//!
//! All segments but the last were synced before their successor was created, and a header before
//! the first record, so only the end of the last segment can be torn.

use crate::error::{Error, Result};
use crate::format::{HEADER_SIZE, HeaderError, KIND_MARK, VERSION};
use crate::format::{parse_segment_name, segment_name};
use crate::reader::{Invalid, SegmentReader};
use std::path::{Path, PathBuf};
use vfs::Vfs;

/// A record that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// The segment it is in.
    pub segment: u64,
    /// Where in the segment it starts.
    pub offset: u64,
    /// What the appender called it, 1 to 254.
    pub kind: u8,
    /// What was appended.
    pub payload: &'a [u8],
}

/// What whoever replays the log says about a record it cannot take.
pub type ReplayError = Box<dyn std::error::Error + Send + Sync>;

/// What takes the records while the log opens.
pub type OnRecord<'a> = dyn FnMut(RecordRef<'_>) -> std::result::Result<(), ReplayError> + 'a;

/// What opening found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Segments replayed.
    pub segment_count: u64,
    /// Records replayed.
    pub record_count: u64,
    /// Bytes of their payloads.
    pub payload_size: u64,
    /// Bytes of unfinished writes that were cut off; none of them had been acknowledged.
    pub cut_size: u64,
}

/// A segment that is on the disk, and its size.
pub(crate) type FoundSegment = (u64, u64);

/// The state of the directory after replay.
pub(crate) struct Recovered {
    pub(crate) recovery: Recovery,
    /// All segments there, those before the first replayed one included.
    pub(crate) segments: Vec<FoundSegment>,
}

/// The oldest segment in a log's directory; `None` when there is none.
///
/// # Errors
/// When the directory cannot be listed.
pub fn first_segment(vfs: &dyn Vfs, directory: &Path) -> Result<Option<u64>> {
    Ok(list_segments(vfs, directory)?.first().copied())
}

/// Reads the whole log of a directory as opening it would, and changes nothing: what a crash tore
/// is counted in [`Recovery::cut_size`] and left as it is.
///
/// # Errors
/// As [`crate::Wal::open`].
pub fn check(vfs: &dyn Vfs, directory: &Path, on_record: &mut OnRecord<'_>) -> Result<Recovery> {
    let first = first_segment(vfs, directory)?.unwrap_or(0);
    Ok(replay(vfs, directory, first, TornEnd::Leave, on_record)?.recovery)
}

/// Replays all segments from `from_segment` on and repairs what a crash tore.
pub(crate) fn recover(
    vfs: &dyn Vfs,
    directory: &Path,
    from_segment: u64,
    on_record: &mut OnRecord<'_>,
) -> Result<Recovered> {
    replay(vfs, directory, from_segment, TornEnd::Cut, on_record)
}

fn replay(
    vfs: &dyn Vfs,
    directory: &Path,
    from_segment: u64,
    torn_end: TornEnd,
    on_record: &mut OnRecord<'_>,
) -> Result<Recovered> {
    let names = list_segments(vfs, directory)?;
    check_complete(directory, &names, from_segment)?;
    let mut recovered = Recovered { recovery: Recovery::default(), segments: Vec::new() };
    for (i, &segment) in names.iter().enumerate() {
        let path = directory.join(segment_name(segment));
        if from_segment <= segment {
            let place = if i + 1 == names.len() { Place::Last } else { Place::Inner };
            let mut replay = Replay { vfs, path: &path, segment, place, torn_end, on_record };
            if replay.run(&mut recovered.recovery)? == Outcome::Removed {
                continue;
            }
        }
        recovered.segments.push((segment, vfs.size(&path)?));
    }
    Ok(recovered)
}

/// Numbers of the segments there, ascending.
pub(crate) fn list_segments(vfs: &dyn Vfs, directory: &Path) -> Result<Vec<u64>> {
    let names = vfs.list(directory)?;
    let mut segments: Vec<u64> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    segments.sort_unstable();
    Ok(segments)
}

/// Segments have no gaps; those to replay begin with `from_segment`.
fn check_complete(directory: &Path, segments: &[u64], from_segment: u64) -> Result<()> {
    let replayed = segments.iter().filter(|segment| from_segment <= **segment);
    for (expected, &segment) in (from_segment..).zip(replayed) {
        if segment != expected {
            let file = directory.join(segment_name(expected));
            return Err(Error::MissingSegment { file });
        }
    }
    Ok(())
}

/// Whether a segment may be torn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Inner,
    Last,
}

/// What happens to an unfinished write at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TornEnd {
    /// It is cut off, durably.
    Cut,
    /// It stays: the log is only looked at.
    Leave,
}

/// Whether the file is still there.
#[derive(PartialEq, Eq)]
enum Outcome {
    Kept,
    Removed,
}

/// The replay of one segment.
struct Replay<'a, 'b> {
    vfs: &'a dyn Vfs,
    path: &'a Path,
    segment: u64,
    place: Place,
    torn_end: TornEnd,
    on_record: &'a mut OnRecord<'b>,
}

impl Replay<'_, '_> {
    fn run(&mut self, recovery: &mut Recovery) -> Result<Outcome> {
        let bytes = self.vfs.map(self.path)?;
        let (mut reader, header) = match SegmentReader::open(&bytes) {
            Ok(opened) => opened,
            Err(HeaderError::UnknownVersion(version)) => {
                let file = self.path.to_path_buf();
                return Err(Error::UnknownVersion { file, version, max: VERSION });
            }
            Err(HeaderError::Invalid(what)) => {
                let size = bytes.len() as u64;
                drop(bytes);
                return self.drop_torn_creation(size, what, recovery);
            }
        };
        if header.segment != self.segment {
            return Err(self.corrupt(12, "number of the segment differs from the file's name"));
        }
        recovery.segment_count += 1;
        let Some(invalid) = self.replay_records(&mut reader, recovery)? else {
            return Ok(Outcome::Kept);
        };
        if self.place == Place::Inner || reader.find_mark().is_some() {
            return Err(self.corrupt(invalid.offset, invalid.what));
        }
        recovery.cut_size += bytes.len() as u64 - invalid.offset;
        // No map of the file may be alive when it is cut.
        drop(bytes);
        if self.torn_end == TornEnd::Cut {
            self.vfs.truncate(self.path, invalid.offset)?;
        }
        Ok(Outcome::Kept)
    }

    /// Hands over all records up to the end, or to the first that is none.
    fn replay_records(
        &mut self,
        reader: &mut SegmentReader<'_>,
        recovery: &mut Recovery,
    ) -> Result<Option<Invalid>> {
        loop {
            match reader.next() {
                Ok(Some(record)) if record.kind == KIND_MARK => {}
                Ok(Some(record)) => {
                    let (offset, kind, payload) = (record.offset, record.kind, record.payload);
                    let record = RecordRef { segment: self.segment, offset, kind, payload };
                    self.hand_over(record, recovery)?;
                }
                Ok(None) => return Ok(None),
                Err(invalid) => return Ok(Some(invalid)),
            }
        }
    }

    fn hand_over(&mut self, record: RecordRef<'_>, recovery: &mut Recovery) -> Result<()> {
        recovery.record_count += 1;
        recovery.payload_size += record.payload.len() as u64;
        (self.on_record)(record).map_err(|source| Error::Replay {
            file: self.path.to_path_buf(),
            offset: record.offset,
            source,
        })
    }

    /// Removes a segment whose creation a crash interrupted: its header was not synced, so it has
    /// no records yet.
    fn drop_torn_creation(
        &mut self,
        size: u64,
        what: &'static str,
        recovery: &mut Recovery,
    ) -> Result<Outcome> {
        if self.place == Place::Inner || HEADER_SIZE < size {
            return Err(self.corrupt(0, what));
        }
        recovery.cut_size += size;
        if self.torn_end == TornEnd::Leave {
            return Ok(Outcome::Kept);
        }
        self.vfs.remove(self.path)?;
        self.vfs.sync_dir(self.path.parent().expect("a file in a directory"))?;
        Ok(Outcome::Removed)
    }

    fn corrupt(&self, offset: u64, what: &'static str) -> Error {
        let file: PathBuf = self.path.to_path_buf();
        Error::Corrupt { file, offset, what }
    }
}
