//! The slow work of an index, done without holding any lock: writing segments.
//!
//! The directory must be there: a job that is late must not make one anew that was removed.
//! A job holds what it reads from. Its result is a file that is complete and synced but unknown
//! to all; the caller names it in the manifest, then hands it to [`crate::Index::install`].

use crate::entity::EntityId;
use crate::error::Result;
use crate::format::segment_name;
use crate::memory::MemoryIndex;
use crate::segment::Segment;
use crate::segment::entry::SegmentEntry;
use crate::segment::piece::Piece;
use crate::segment::writer::{IsDead, Written, write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes sealed memory indexes to one segment.
pub struct FreezeJob {
    pub(crate) vfs: Arc<dyn vfs::Vfs>,
    pub(crate) dir: PathBuf,
    pub(crate) memories: Vec<Arc<MemoryIndex>>,
    pub(crate) sequence: u32,
}

/// Joins neighbouring segments to one.
pub struct MergeJob {
    pub(crate) vfs: Arc<dyn vfs::Vfs>,
    pub(crate) dir: PathBuf,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) sequence: u32,
}

/// A segment that is on disk but not yet part of the index.
pub struct NewSegment {
    pub(crate) segment: Arc<Segment>,
    /// Names of the segments that it takes the place of; none after a freeze.
    pub(crate) replaces: Vec<String>,
    /// How many sealed memory indexes it takes the place of.
    pub(crate) frozen_count: usize,
}

impl NewSegment {
    /// The name of the new file, for the manifest.
    pub fn name(&self) -> &str {
        self.segment.name()
    }

    /// What the manifest is to say of the new file.
    pub fn entry(&self) -> SegmentEntry {
        self.segment.entry()
    }

    /// The segments that the manifest must not name any more; to be removed after it is written.
    pub fn replaces(&self) -> &[String] {
        &self.replaces
    }

    /// The new segment.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }
}

impl FreezeJob {
    /// The name of the file that it writes.
    pub fn name(&self) -> String {
        let first = self.memories.first().map_or(0, |memory| memory.entities_start());
        let end = self.memories.last().map_or(0, |memory| memory.next_entity());
        segment_name(first..end, self.sequence)
    }

    /// Writes and syncs the file.
    ///
    /// # Errors
    /// When the disk fails; a file that was begun is left behind, known to nobody.
    pub fn run(&self) -> Result<NewSegment> {
        let pieces: Vec<&dyn Piece> = self.memories.iter().map(|m| &**m as &dyn Piece).collect();
        let written = write(&pieces, None)?;
        let segment = write_file(&*self.vfs, &self.dir, &written, self.sequence)?;
        debug_assert_eq!(segment.name(), self.name());
        Ok(NewSegment { segment, replaces: Vec::new(), frozen_count: self.memories.len() })
    }
}

impl MergeJob {
    /// The name of the file that it writes.
    pub fn name(&self) -> String {
        let first = self.segments.first().map_or(0, |segment| segment.entities().start);
        let end = self.segments.last().map_or(0, |segment| segment.entities().end);
        segment_name(first..end, self.sequence)
    }

    /// Bytes of what it reads: what it writes is no larger, but for a little.
    pub fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size()).sum()
    }

    /// Writes and syncs the file, without the entities that `is_dead` names. The others keep
    /// their ids.
    ///
    /// # Errors
    /// As [`FreezeJob::run`], and when a segment is corrupt.
    pub fn run(&self, is_dead: Option<&dyn Fn(EntityId) -> bool>) -> Result<NewSegment> {
        // Rot must never get a fresh checksum, wherever it came since the segment was last read.
        self.segments.iter().try_for_each(|segment| segment.verify_sections())?;
        let pieces: Vec<&dyn Piece> = self.segments.iter().map(|s| &**s as &dyn Piece).collect();
        let mut written = write(&pieces, is_dead as Option<IsDead<'_>>);
        for segment in &self.segments {
            written = segment.settle(written).map_err(|error| error.in_file(segment.name()));
        }
        let written = written?;
        let segment = write_file(&*self.vfs, &self.dir, &written, self.sequence)?;
        debug_assert_eq!(segment.name(), self.name());
        let replaces = self.segments.iter().map(|segment| segment.name().to_string()).collect();
        Ok(NewSegment { segment, replaces, frozen_count: 0 })
    }
}

fn write_file(
    vfs: &dyn vfs::Vfs,
    dir: &Path,
    written: &Written,
    sequence: u32,
) -> Result<Arc<Segment>> {
    let name = segment_name(written.counts.entities_start..written.counts.next_entity, sequence);
    let path = dir.join(&name);
    // No manifest names it: left over from a crash.
    if vfs.exists(&path)? {
        vfs.remove(&path)?;
    }
    let mut file = vfs.create(&path)?;
    for part in written.parts() {
        file.append(&part)?;
    }
    file.sync()?;
    drop(file);
    vfs.sync_dir(dir)?;
    Ok(Arc::new(Segment::open(&name, vfs.map(&path)?)?))
}

/// The bytes of a segment with everything in a memory index.
///
/// # Errors
/// [`crate::Error::Full`] when a label's values need more than 4 GiB.
pub fn freeze_bytes(memory: &MemoryIndex) -> Result<Vec<u8>> {
    Ok(write(&[memory as &dyn Piece], None)?.parts().concat())
}
