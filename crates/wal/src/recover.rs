//! What opening does: finds the segments, replays them, cuts what a crash tore.
//!
//! ```text
//!            first .. last-1                      last
//! complete   every record replayed                every record replayed
//! broken     Error::Corrupt                       a mark behind it?  yes: Error::Corrupt
//!                                                                    no:  left out
//! header     Error::Corrupt                       nothing behind it, and not in START?
//!                                                 torn creation: removed
//! ```
//!
//! What the disk does not give (a map that faulted) is corrupt, whichever segment it is in.
//! All segments but the last were synced before their successor was created, and a header before
//! the first record, so only the end of the last segment can be torn.
//!
//! What is read of the last one may be nowhere but in the system's cache: the process died before
//! the sync, or the sync failed and dropped the bytes, after which a second one proves nothing. So
//! it is written anew, with a mark at its end, synced and renamed into place, before anything is built
//! on it.

use crate::end::{self, END_NAME, LostEnd, SyncedEnd, SyncedEnds};
use crate::error::{Error, ReplayError, Result};
use crate::format::{
    HEADER_SIZE, Header, HeaderError, KIND_MARK, RECORD_HEADER_SIZE, SEGMENT_MAX, VERSION,
};
use crate::format::{parse_segment_name, put_record, segment_name};
use crate::reader::{Invalid, SegmentReader};
use crate::rewrite::fill_gap;
use crate::segments::{RecordRef, first_segment, list_segments};
use crate::start::{self, LogRange, LogStart, START_NAME};
use std::path::{Path, PathBuf};
use vfs::atomic::TEMPORARY_SUFFIX;
use vfs::{Bytes, Vfs};

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
    /// Bytes of the last segment, which were written anew.
    pub rewritten_size: u64,
    /// What the directory said about its segments.
    pub start: LogStart,
    /// The first segment that had been synced further than its sound records reach.
    pub lost_end: Option<LostEnd>,
    /// Whether the notes of what was synced are damaged, so that a loss is not noticed.
    pub is_end_damaged: bool,
}

/// Where a log that is opened begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    /// The first segment to replay.
    pub(crate) from_segment: u64,
    /// As [`crate::WalConfig::next_segment_min`].
    pub(crate) next_segment_min: u64,
}

/// A segment that is on the disk, and its size.
pub(crate) type FoundSegment = (u64, u64);

/// The state of the directory after replay.
#[derive(Default)]
pub(crate) struct Recovered {
    pub(crate) recovery: Recovery,
    /// All segments there, those before the first replayed one included.
    pub(crate) segments: Vec<FoundSegment>,
    /// The last replayed one, and where its records end.
    last: Option<FoundSegment>,
    /// The one that records go to.
    pub(crate) next_segment: u64,
    /// Those that `START` names.
    pub(crate) range: LogRange,
    /// Up to where the segments are synced once all is mended.
    pub(crate) ends: SyncedEnds,
    /// Why the log must not be written to.
    pub(crate) latched: Option<String>,
}

/// Reads the whole log of a directory as opening it would, and changes nothing: what a crash tore
/// is counted in [`Recovery::cut_size`] and left as it is. A directory that is not there, as in a
/// snapshot, is an empty log.
///
/// # Errors
/// As [`crate::Log::open`], but for the kinds of records, of which nobody is asked.
pub fn check(vfs: &dyn Vfs, directory: &Path, on_record: &mut OnRecord<'_>) -> Result<Recovery> {
    if !vfs.exists(directory)? {
        return Ok(Recovery::default());
    }
    let first = first_segment(vfs, directory)?.unwrap_or(0);
    Ok(replay(vfs, directory, first, Finding::Look, on_record)?.recovery)
}

/// Replays all segments from `begin.from_segment` on, makes what was replayed durable, and clears
/// away what crashes left.
pub(crate) fn recover(
    vfs: &dyn Vfs,
    directory: &Path,
    begin: Begin,
    on_record: &mut OnRecord<'_>,
) -> Result<Recovered> {
    let mut recovered = replay(vfs, directory, begin.from_segment, Finding::Mend, on_record)?;
    remove_leftovers(vfs, directory, recovered.recovery.start)?;
    match mend(vfs, directory, begin, &mut recovered) {
        // Better a store that can be read than none.
        Err(Error::Io(error)) if error.is_disk_full() => {
            remove_leftovers(vfs, directory, recovered.recovery.start)?;
            recovered.latched = Some(format!(
                "no room to make what was logged before durable (free some, then restart): {error}"
            ));
        }
        mended => mended?,
    }
    Ok(recovered)
}

/// Makes what was replayed durable and the directory ready for the next segment.
fn mend(vfs: &dyn Vfs, directory: &Path, begin: Begin, recovered: &mut Recovered) -> Result<()> {
    let start = recovered.recovery.start;
    let after_last = match (recovered.segments.last(), start) {
        (Some(&(last, _)), _) => last + 1,
        (None, LogStart::Known(range)) => range.first,
        (None, _) => 0,
    };
    let next = after_last.max(begin.from_segment).max(begin.next_segment_min);
    if SEGMENT_MAX < next {
        let (directory, max) = (directory.to_path_buf(), SEGMENT_MAX);
        return Err(Error::NoSuchSegment { directory, segment: next, max });
    }
    recovered.next_segment = next;
    if let Some((segment, size)) = recovered.last {
        let path = directory.join(segment_name(segment));
        let mapped = vfs.map(&path)?;
        let bytes = with_mark(&mapped[..size as usize]);
        check_given(&mapped, &path)?;
        vfs::write_atomic(vfs, &path, &bytes)?;
        let size = bytes.len() as u64;
        recovered.recovery.rewritten_size = size;
        recovered.segments.last_mut().expect("it was found").1 = size;
        if let Some(end) = recovered.ends.get_mut(&segment) {
            end.size = size;
        }
    }
    if !recovered.segments.is_empty() {
        fill_gaps(vfs, directory, after_last..next, &mut recovered.segments)?;
    }
    let segments = &recovered.segments;
    recovered.range = LogRange {
        first: segments.first().map_or(next, |&(segment, _)| segment),
        end: segments.last().map_or(next, |&(segment, _)| segment + 1),
    };
    if start != LogStart::Known(recovered.range) {
        start::write(vfs, directory, recovered.range)?;
    }
    Ok(vfs.sync_dir(directory)?)
}

/// Fails when the disk did not give all that was read of a map: zeros stand there then, which are no
/// torn write.
fn check_given(bytes: &Bytes, path: &Path) -> Result<()> {
    match bytes.has_faulted() {
        true => {
            let what = "bytes that the disk gives";
            Err(Error::Corrupt { file: path.to_path_buf(), offset: 0, what })
        }
        false => Ok(()),
    }
}

/// A segment's valid bytes, and a mark behind them: under the segment's name they are only once all
/// of them are synced, so what breaks there later is no torn write.
fn with_mark(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let Ok(header) = Header::decode(bytes) else { return out };
    let salt = header.salt();
    let mut mark = Vec::new();
    let before = bytes.len().saturating_sub(RECORD_HEADER_SIZE);
    put_record(&mut mark, salt, before as u64, KIND_MARK, &[]);
    if HEADER_SIZE < bytes.len() as u64 && !bytes.ends_with(&mark) {
        put_record(&mut out, salt, bytes.len() as u64, KIND_MARK, &[]);
    }
    out
}

/// Removes segments below the first one, and files that were being written under other names.
fn remove_leftovers(vfs: &dyn Vfs, directory: &Path, start: LogStart) -> Result<()> {
    for name in vfs.list(directory)? {
        let segment = parse_segment_name(&name);
        let is_done_with = match (segment, start) {
            (Some(segment), LogStart::Known(range)) => segment < range.first,
            _ => false,
        };
        let is_temporary = name.strip_suffix(TEMPORARY_SUFFIX).is_some_and(|name| {
            [START_NAME, END_NAME].contains(&name) || parse_segment_name(name).is_some()
        });
        if is_done_with || is_temporary {
            vfs.remove(&directory.join(name))?;
        }
    }
    Ok(())
}

/// Numbers that a process may have given out before it came to write any: far over what happens.
const GAP_MAX: u64 = 100_000;

/// Numbers that were given out, to segments that never reached the disk, get empty ones: then a
/// number without a file always means a loss.
fn fill_gaps(
    vfs: &dyn Vfs,
    directory: &Path,
    gap: std::ops::Range<u64>,
    segments: &mut Vec<FoundSegment>,
) -> Result<()> {
    if GAP_MAX < gap.end.saturating_sub(gap.start) {
        return Err(Error::MissingSegment { file: directory.join(segment_name(gap.start)) });
    }
    for segment in gap {
        segments.push((segment, fill_gap(vfs, directory, segment)?));
    }
    Ok(())
}

fn replay(
    vfs: &dyn Vfs,
    directory: &Path,
    from_segment: u64,
    finding: Finding,
    on_record: &mut OnRecord<'_>,
) -> Result<Recovered> {
    let start = start::read(vfs, directory)?;
    let mut names = list_segments(vfs, directory)?;
    let mut from_segment = from_segment;
    if let LogStart::Known(range) = start {
        names.retain(|segment| range.first <= *segment);
        from_segment = from_segment.max(range.first);
    }
    check_complete(directory, &names, from_segment, start)?;
    let (noted, is_end_damaged) = read_ends(vfs, directory)?;
    let recovery = Recovery { start, is_end_damaged, ..Recovery::default() };
    let mut recovered = Recovered { recovery, ..Recovered::default() };
    for (i, &segment) in names.iter().enumerate() {
        let path = directory.join(segment_name(segment));
        if from_segment <= segment {
            let place = if i + 1 == names.len() { Place::Last } else { Place::Inner };
            let mut replay = Replay { vfs, path: &path, segment, place, finding, on_record };
            match replay.run(&mut recovered.recovery)? {
                Outcome::Kept { valid_size, header } => {
                    recovered.last = Some((segment, valid_size));
                    recovered.note_end(&noted, header, valid_size);
                }
                Outcome::Removed => continue,
            }
        }
        recovered.segments.push((segment, vfs.size(&path)?));
    }
    Ok(recovered)
}

/// Notes of the segments' ends, and whether they are damaged.
fn read_ends(vfs: &dyn Vfs, directory: &Path) -> Result<(SyncedEnds, bool)> {
    match end::read(vfs, directory) {
        Ok(ends) => Ok((ends, false)),
        Err(Error::Io(error)) if error.is_passing() => Err(error.into()),
        Err(Error::Io(_) | Error::Corrupt { .. }) => Ok((SyncedEnds::new(), true)),
        Err(error) => Err(error),
    }
}

impl Recovered {
    /// Compares the end of a segment's sound records with what was noted of it.
    fn note_end(&mut self, noted: &SyncedEnds, header: Option<Header>, size: u64) {
        let Some(header) = header else { return };
        let lost = end::lost_end(noted, &header, size);
        self.recovery.lost_end = self.recovery.lost_end.or(lost);
        self.ends.insert(header.segment, SyncedEnd { nonce: header.nonce, size });
    }
}

/// Segments have no gaps; those to replay begin with `from_segment` and end where the log says.
fn check_complete(
    directory: &Path,
    segments: &[u64],
    from_segment: u64,
    start: LogStart,
) -> Result<()> {
    let replayed = segments.iter().filter(|segment| from_segment <= **segment);
    let mut expected = from_segment;
    for &segment in replayed {
        if segment != expected {
            break;
        }
        expected += 1;
    }
    let is_later_there = segments.last().is_some_and(|last| expected <= *last);
    match is_later_there || start.is_begun(expected) {
        true => Err(Error::MissingSegment { file: directory.join(segment_name(expected)) }),
        false => Ok(()),
    }
}

/// Hands on the records of a segment all of which is durable.
pub(crate) fn read_ended(
    vfs: &dyn Vfs,
    path: &Path,
    segment: u64,
    on_record: &mut OnRecord<'_>,
) -> Result<()> {
    let (place, finding) = (Place::Inner, Finding::Look);
    let mut replay = Replay { vfs, path, segment, place, finding, on_record };
    replay.run(&mut Recovery::default()).map(drop)
}

/// Whether a segment may be torn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Inner,
    Last,
}

/// What happens to the end of the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    /// What is whole is made durable, what is torn goes.
    Mend,
    /// It stays as it is: the log is only looked at.
    Look,
}

/// Whether the file is still there.
#[derive(PartialEq, Eq)]
enum Outcome {
    /// Yes, with records up to here; without a header if that is torn.
    Kept { valid_size: u64, header: Option<Header> },
    /// No.
    Removed,
}

/// The replay of one segment.
struct Replay<'a, 'b> {
    vfs: &'a dyn Vfs,
    path: &'a Path,
    segment: u64,
    place: Place,
    finding: Finding,
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
                check_given(&bytes, self.path)?;
                drop(bytes);
                return self.drop_torn_creation(size, what, recovery);
            }
        };
        if header.segment != self.segment {
            return Err(self.corrupt(12, "number of the segment differs from the file's name"));
        }
        recovery.segment_count += 1;
        let mut valid_size = bytes.len() as u64;
        let end = self.replay_records(&mut reader, recovery)?;
        check_given(&bytes, self.path)?;
        if let Some(invalid) = end {
            if self.place == Place::Inner || reader.find_mark().is_some() {
                return Err(self.corrupt(invalid.offset, invalid.what));
            }
            recovery.cut_size += valid_size - invalid.offset;
            valid_size = invalid.offset;
        }
        Ok(Outcome::Kept { valid_size, header: Some(header) })
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

    /// Removes a segment whose creation a crash interrupted: `START` does not have it, so it has no
    /// records yet.
    fn drop_torn_creation(
        &mut self,
        size: u64,
        what: &'static str,
        recovery: &mut Recovery,
    ) -> Result<Outcome> {
        let is_begun = recovery.start.is_begun(self.segment);
        if self.place == Place::Inner || is_begun || HEADER_SIZE < size {
            return Err(self.corrupt(0, what));
        }
        recovery.cut_size += size;
        if self.finding == Finding::Look {
            return Ok(Outcome::Kept { valid_size: 0, header: None });
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
