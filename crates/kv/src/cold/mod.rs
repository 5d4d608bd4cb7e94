//! Values on disk: immutable segments of records, one of them being filled in memory.
//!
//! ```text
//! put ─► filling (memory) ─► sealing (memory, waits for the keeper) ─► segment file
//!            └──────── all three are read by address ────────┘
//! ```
//!
//! A segment file is written once, whole, and synced before a checkpoint names it. It knows how many
//! of its records the index still points to; when few are, the keeper moves those and drops it. Once it
//! has rested, the keeper copies what counts into another, the values coded (`kv/coding`).
//!
//! What counts in bytes is told by the number of records. So large records are in segments of their
//! own, apart from small ones, and one as large as a whole segment is alone: else a thousand counters
//! beside a string of 100 MB that is overwritten would keep its room for as long as they live.

pub(crate) mod dictionary;
pub(crate) mod file;
pub(crate) mod manifest;
mod meter;
mod reading;
pub(crate) mod record;
pub(crate) mod snapshot;
pub(crate) mod tail;

pub use dictionary::{CompressionStats, DictionaryStats};
pub(crate) use manifest::StoredManifest;
pub use manifest::{MANIFEST_COPY_NAME, MANIFEST_NAME, Manifest, SegmentInfo};
pub use meter::{LARGE_SIZE, Meter, ReadMeter, RecordSizes, SIZE_BOUNDS, Totals};
pub(crate) use reading::Reading;
pub use record::Record;
pub(crate) use snapshot::{IndexSnapshot, SnapshotWriter, index_name};

use crate::error::{Error, Result};
use crate::index::{Address, RECORD_ALIGNMENT, SEGMENT_MAX};
use crate::slots::Slot;
use dictionary::Dictionaries;
use file::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{ReadFile, Vfs};

/// Sealed segments that may wait for the disk before no more keys go cold; as many times a segment's
/// usual size if some are larger.
const SEALING_MAX: usize = 4;
/// Records are large from a segment's usual size on, divided by this.
const LARGE_SHARE: usize = 256;
/// How long a segment that could not be read is left alone, in milliseconds.
const RETRY_MS: i64 = 60_000;

/// The cold values of a keyspace.
pub struct ColdStore {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    segments: BTreeMap<u32, Segment>,
    /// The segments that records go to: small ones, and large ones.
    filling: [Filling; 2],
    /// The number of the next new segment, if it is free.
    next_number: u32,
    segment_size: usize,
    /// How long a segment rests before its values are coded, in milliseconds.
    coding_rest_ms: i64,
    /// What records on disk are coded with.
    pub(crate) dictionaries: Arc<Dictionaries>,
    /// Bytes of the sealed segments that are not on disk yet.
    sealing_size: usize,
    /// How many those are.
    sealing_count: usize,
    /// Sizes of records that were written.
    pub(crate) sizes: RecordSizes,
    /// Reads of records.
    pub(crate) reads: Arc<ReadMeter>,
    /// Set by what a checkpoint under way cannot describe: it is begun anew.
    pub(crate) is_snapshot_stale: bool,
}

/// A segment that records go to.
#[derive(Default)]
struct Filling {
    bytes: Vec<u8>,
    /// Its number, once it has a record.
    number: Option<u32>,
}

/// Which of the segments being filled a record goes to.
#[derive(Clone, Copy)]
enum Kind {
    Small,
    Large,
}

/// A segment.
struct Segment {
    source: Source,
    /// Bytes.
    size: u64,
    /// Records in it.
    record_count: u32,
    /// Records that the index points to.
    live_count: u32,
    /// Bytes of records whose values might get shorter once they are coded.
    plain_size: u64,
    /// When it was written, in milliseconds since the epoch.
    written_ms: i64,
    /// When the disk last failed to give it, in milliseconds since the epoch.
    failed_ms: Option<i64>,
    /// Whether what still counts of it rotted, and stays where it is.
    is_rotten: bool,
}

impl Segment {
    /// One without records.
    fn new(source: Source, size: u64, record_count: u32) -> Segment {
        Segment {
            source,
            size,
            record_count,
            live_count: 0,
            plain_size: 0,
            written_ms: 0,
            failed_ms: None,
            is_rotten: false,
        }
    }

    /// Whether it may be read as a whole: others wait for what comes after it, so one that fails is
    /// tried again after a while. A clock that was set back does not make that longer.
    fn can_be_read(&self, now_ms: i64) -> bool {
        let is_left_alone = |failed_ms| (0..RETRY_MS).contains(&(now_ms - failed_ms));
        self.is_on_disk() && !self.failed_ms.is_some_and(is_left_alone)
    }

    /// Whether coding its values may make it much shorter.
    fn is_plain(&self) -> bool {
        self.size < 2 * self.plain_size
    }

    fn is_on_disk(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// The bytes of its live records, as far as one can tell without reading it.
    fn live_size(&self) -> u64 {
        self.size * u64::from(self.live_count) / u64::from(self.record_count.max(1))
    }
}

/// How much there is on disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct ColdStats {
    /// Segments, those included that are still written.
    pub segments: u64,
    /// Bytes in them.
    pub size: u64,
    /// Bytes of records that count, about.
    pub live_size: u64,
    /// Records that count.
    pub live_records: u64,
    /// Bytes of records that count, about, in segments whose values are still to be coded.
    pub plain_size: u64,
    /// Records that count in segments whose records have [`LARGE_SIZE`] or more, on average.
    pub large_records: u64,
    /// Bytes of those segments.
    pub large_size: u64,
    /// Segments on disk without live records. The next checkpoint removes them.
    pub empty_segments: u64,
}

impl ColdStore {
    /// A store without segments, whose first one gets that number.
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        config: &crate::KvConfig,
        next_segment: u32,
    ) -> ColdStore {
        let segment_size = config.segment_size;
        ColdStore {
            vfs,
            dir: dir.to_path_buf(),
            segments: BTreeMap::new(),
            filling: Default::default(),
            next_number: next_segment,
            segment_size,
            coding_rest_ms: i64::try_from(config.coding_rest.as_millis()).unwrap_or(i64::MAX),
            dictionaries: Arc::default(),
            sealing_size: 0,
            sealing_count: 0,
            sizes: RecordSizes::default(),
            reads: Arc::default(),
            is_snapshot_stale: false,
        }
    }

    /// Adds a segment that a manifest names; its live records are counted later.
    pub(crate) fn open_segment(&mut self, info: &SegmentInfo) -> Result<()> {
        let path = self.path_of(info.number);
        let size = self.vfs.size(&path)?;
        if size != info.size {
            let reason = format!("has {size} bytes, the manifest says {}", info.size);
            return Err(Error::Corrupt { path, reason });
        }
        let source = Source::open(self.vfs.as_ref(), &path)?;
        let mut segment = Segment::new(source, size, info.record_count);
        // Nobody knows; who would code it looks at its beginning first.
        segment.plain_size = size;
        self.segments.insert(info.number, segment);
        Ok(())
    }

    /// Counts a record as live, at a start. Returns whether its segment is there.
    pub(crate) fn count_live(&mut self, address: Address) -> bool {
        let segment = self.segments.get_mut(&address.segment);
        if let Some(segment) = segment {
            segment.live_count += 1;
            return true;
        }
        false
    }

    pub(crate) fn path_of(&self, number: u32) -> PathBuf {
        self.dir.join(segment_name(number))
    }

    /// Writes a hot key down. Returns its address, which can be read at once.
    pub(crate) fn put(&mut self, slot: &Slot) -> Address {
        let kind = self.kind_of(slot.cost as usize);
        let bytes = &mut self.filling[kind as usize].bytes;
        let offset = bytes.len();
        record::put(bytes, slot);
        let size = bytes.len() - offset;
        self.sizes.add(size);
        let plain_size = size as u64;
        self.filled(kind, offset, plain_size)
    }

    /// Writes a record down that was read from another segment.
    pub(crate) fn put_raw(&mut self, record: &[u8]) -> Address {
        let kind = self.kind_of(record.len());
        let bytes = &mut self.filling[kind as usize].bytes;
        let offset = bytes.len();
        bytes.extend_from_slice(record);
        let plain_size = if record::is_plain(record) { record.len() as u64 } else { 0 };
        self.filled(kind, offset, plain_size)
    }

    fn kind_of(&self, size: usize) -> Kind {
        if size < self.segment_size / LARGE_SHARE { Kind::Small } else { Kind::Large }
    }

    /// Notes the record that was just written at `offset` of a segment being filled, and how much of it
    /// might get shorter.
    fn filled(&mut self, kind: Kind, offset: usize, plain_size: u64) -> Address {
        let offset = self.leave_alone(kind, offset);
        let number = match self.filling[kind as usize].number {
            Some(number) => number,
            None => self.new_number(),
        };
        let filling = &mut self.filling[kind as usize];
        filling.number = Some(number);
        filling.bytes.resize(filling.bytes.len().next_multiple_of(RECORD_ALIGNMENT), 0);
        let segments = &mut self.segments;
        let segment = segments.entry(number).or_insert_with(|| Segment::new(Source::Filling, 0, 0));
        segment.record_count += 1;
        segment.plain_size += plain_size;
        segment.live_count += 1;
        segment.size = filling.bytes.len() as u64;
        if self.segment_size <= filling.bytes.len() {
            self.seal_kind(kind);
        }
        let offset = u32::try_from(offset / RECORD_ALIGNMENT).expect("segments are bounded");
        Address { segment: number, offset }
    }

    /// Has a record as large as a whole segment, which was just written at `offset`, be in one without
    /// others. Returns where it is now.
    fn leave_alone(&mut self, kind: Kind, offset: usize) -> usize {
        let bytes = &mut self.filling[kind as usize].bytes;
        if offset == 0 || bytes.len() - offset < self.segment_size {
            return offset;
        }
        let record = bytes.split_off(offset);
        self.seal_kind(kind);
        self.filling[kind as usize].bytes = record;
        0
    }

    /// Ends the segments that are being filled; the keeper writes them.
    pub(crate) fn seal(&mut self) {
        self.seal_kind(Kind::Small);
        self.seal_kind(Kind::Large);
    }

    fn seal_kind(&mut self, kind: Kind) {
        let Filling { mut bytes, number } = std::mem::take(&mut self.filling[kind as usize]);
        let Some(segment) = number.and_then(|number| self.segments.get_mut(&number)) else {
            return;
        };
        if 2 * self.segment_size < bytes.capacity() {
            // Room to grow is worth something here.
            bytes.shrink_to_fit();
        }
        self.sealing_size += bytes.len();
        self.sealing_count += 1;
        segment.source = Source::Sealing(Arc::new(bytes));
    }

    /// The bytes of a segment that is being filled.
    fn filling_of(&self, number: u32) -> &[u8] {
        let filling = self.filling.iter().find(|filling| filling.number == Some(number));
        filling.map_or(&[], |filling| filling.bytes.as_slice())
    }

    /// The number of a new segment. After the last one that addresses have room for the first ones are
    /// given out again, as far as nobody has them: who writes 100 MB a second comes there in a month.
    fn new_number(&mut self) -> u32 {
        for _ in 0..=SEGMENT_MAX {
            let number = if SEGMENT_MAX < self.next_number { 0 } else { self.next_number };
            self.next_number = number + 1;
            if !self.segments.contains_key(&number) {
                return number;
            }
        }
        panic!("more segments than addresses have room for: 268 TB of 16 MiB each");
    }

    /// The number of a segment that will be on disk before anything points to it, for its file.
    pub(crate) fn number_for_copy(&mut self) -> u32 {
        self.new_number()
    }

    /// Adds a copy of a segment that was written under [`ColdStore::number_for_copy`].
    pub(crate) fn add_copy(&mut self, number: u32, source: Source, size: u64, record_count: u32) {
        self.segments.insert(number, Segment::new(source, size, record_count));
    }

    /// The same of one that was not copied, whose values are still to be coded.
    pub(crate) fn add_plain(
        &mut self,
        number: u32,
        source: Source,
        size: u64,
        record_count: u32,
        now_ms: i64,
    ) {
        let plain = Segment::new(source, size, record_count);
        self.segments.insert(number, Segment { plain_size: size, written_ms: now_ms, ..plain });
    }

    /// Counts the record of a copy as live, and that which it was copied from no more.
    pub(crate) fn relocate(&mut self, from: Address, to: Address) {
        self.release(from);
        if let Some(segment) = self.segments.get_mut(&to.segment) {
            segment.live_count += 1;
        }
    }

    /// Adds a dictionary.
    pub(crate) fn insert_dictionary(&mut self, number: u64, bytes: &[u8]) -> std::io::Result<()> {
        Arc::make_mut(&mut self.dictionaries).insert(number, bytes)
    }

    /// Notes that a segment waits no more for the disk, if it did.
    fn leave_memory(&mut self, source: &Source) {
        if let Source::Sealing(bytes) = source {
            self.sealing_size -= bytes.len();
            self.sealing_count -= 1;
        }
    }

    /// The sealed segments that are not on disk yet.
    pub(crate) fn sealing(&self) -> Vec<(u32, Arc<Vec<u8>>)> {
        let sealing = self.segments.iter().filter_map(|(number, segment)| match &segment.source {
            Source::Sealing(bytes) => Some((*number, bytes.clone())),
            _ => None,
        });
        sealing.collect()
    }

    /// Notes that a sealed segment is on disk, at that time.
    pub(crate) fn sealed(&mut self, number: u32, source: Source, now_ms: i64) {
        if let Some(segment) = self.segments.get_mut(&number) {
            segment.written_ms = now_ms;
            let before = std::mem::replace(&mut segment.source, source);
            self.leave_memory(&before);
        }
    }

    /// Says that a record counts no more.
    pub(crate) fn release(&mut self, address: Address) {
        if let Some(segment) = self.segments.get_mut(&address.segment) {
            assert!(0 < segment.live_count, "a record is released once");
            segment.live_count -= 1;
        }
    }

    /// Reads a record, whoever waits for it.
    pub(crate) fn read(&self, address: Address) -> Result<Record> {
        let Some(segment) = self.segments.get(&address.segment) else {
            return Err(self.corrupt(address, "the segment is not there"));
        };
        let place = reading::Place::of(address, segment.size);
        let means = (self.dictionaries.as_ref(), self.reads.as_ref());
        let read = reading::read(place, usize::MAX, means, |offset, into| {
            segment.source.read_at(self.filling_of(address.segment), offset, into).map(Some)
        });
        match read {
            Ok(Some(record)) => Ok(record),
            Ok(None) => Err(self.corrupt(address, "cut short")),
            Err(reading::Failure::Disk(error)) => Err(error),
            Err(reading::Failure::Corrupt(reason)) => Err(self.corrupt(address, &reason)),
        }
    }

    /// What is needed to read a record while others have the keys; none if it is in memory.
    pub(crate) fn reading(&self, address: Address) -> Option<Reading> {
        let segment = self.segments.get(&address.segment)?;
        let Source::File(file) = &segment.source else { return None };
        Some(Reading {
            place: reading::Place::of(address, segment.size),
            file: file.clone(),
            dictionaries: self.dictionaries.clone(),
            reads: self.reads.clone(),
        })
    }

    fn corrupt(&self, address: Address, reason: &str) -> Error {
        let offset = u64::from(address.offset) * RECORD_ALIGNMENT as u64;
        let reason = format!("at offset {offset}: {reason}");
        Error::Corrupt { path: self.path_of(address.segment), reason }
    }

    /// The segment on disk with the least that counts, if there is much that does not, and half of it
    /// does not. Those of which nothing counts only wait for a checkpoint.
    pub(crate) fn to_compact(&self, now_ms: i64) -> Option<u32> {
        let is_in_use = |one: &Segment| one.live_count != 0 && !one.is_rotten;
        let in_use = || self.segments.iter().filter(|(_, one)| is_in_use(one));
        let size: u64 = in_use().map(|(_, one)| one.size).sum();
        let live_size: u64 = in_use().map(|(_, one)| one.live_size()).sum();
        if size <= live_size + live_size / 2 {
            return None;
        }
        let on_disk = in_use().filter(|(_, one)| one.can_be_read(now_ms));
        let worth = on_disk.filter(|(_, one)| one.live_size() * 2 <= one.size);
        worth.min_by_key(|(_, one)| one.live_size()).map(|(number, _)| *number)
    }

    /// Notes that all was moved out of a segment that could be. Returns how many records could not: they
    /// rotted.
    pub(crate) fn note_compacted(&mut self, number: u32) -> u32 {
        let Some(segment) = self.segments.get_mut(&number) else { return 0 };
        segment.is_rotten = 0 < segment.live_count;
        segment.live_count
    }

    /// Notes that the disk failed to give a segment.
    pub(crate) fn note_failed(&mut self, number: u32, now_ms: i64) {
        if let Some(segment) = self.segments.get_mut(&number) {
            segment.failed_ms = Some(now_ms);
        }
    }

    /// The oldest segment on disk whose values are not coded and have rested: most of those that are
    /// overwritten are so soon.
    pub(crate) fn to_code(&self, now_ms: i64) -> Option<u32> {
        let rest_ms = 0..self.coding_rest_ms;
        // A clock that was set back does not make it rest for longer.
        let has_rested = |one: &Segment| !rest_ms.contains(&(now_ms - one.written_ms));
        let may_be = |one: &Segment| one.is_plain() && one.can_be_read(now_ms) && has_rested(one);
        let mut plain = self.segments.iter().filter(|(_, one)| 0 < one.live_count && may_be(one));
        plain.next().map(|(number, _)| *number)
    }

    /// Notes that a segment's values are coded as far as that is worth it.
    pub(crate) fn note_coded(&mut self, number: u32) {
        if let Some(segment) = self.segments.get_mut(&number) {
            segment.plain_size = 0;
        }
    }

    /// A segment's file, to go through its records while others have the keys, and its bytes.
    pub(crate) fn file_of(&self, number: u32) -> Option<(Arc<dyn ReadFile>, u64)> {
        let segment = self.segments.get(&number)?;
        let Source::File(file) = &segment.source else { return None };
        Some((file.clone(), segment.size))
    }

    /// The segments on disk of which nothing counts.
    pub(crate) fn empty_segments(&self) -> Vec<u32> {
        let is_empty = |one: &Segment| one.live_count == 0 && one.is_on_disk();
        let empty = self.segments.iter().filter(|(_, segment)| is_empty(segment));
        empty.map(|(number, _)| *number).collect()
    }

    /// Bytes of those.
    pub(crate) fn empty_size(&self) -> u64 {
        let is_empty = |one: &&Segment| one.live_count == 0 && one.is_on_disk();
        self.segments.values().filter(is_empty).map(|one| one.size).sum()
    }

    /// Takes segments out; their files are removed by the caller, once no manifest names them. Returns
    /// their bytes.
    pub(crate) fn drop_segments(&mut self, numbers: &[u32]) -> u64 {
        let mut size = 0;
        self.segments.retain(|number, segment| {
            let goes = numbers.contains(number);
            assert!(!goes || segment.live_count == 0, "nobody points into a segment that goes");
            size += if goes { segment.size } else { 0 };
            !goes
        });
        size
    }

    /// All segments that are on disk, but those.
    pub(crate) fn segment_infos(&self, without: &[u32]) -> Vec<SegmentInfo> {
        let on_disk = self
            .segments
            .iter()
            .filter(|(number, segment)| segment.is_on_disk() && !without.contains(number));
        let info = |(number, segment): (&u32, &Segment)| SegmentInfo {
            number: *number,
            size: segment.size,
            record_count: segment.record_count,
        };
        on_disk.map(info).collect()
    }

    /// The number that the next new segment gets.
    pub(crate) fn next_segment(&self) -> u32 {
        self.next_number
    }

    /// Bytes that wait in memory for the disk.
    pub(crate) fn memory_used(&self) -> usize {
        let filling: usize = self.filling.iter().map(|one| one.bytes.capacity()).sum();
        filling + self.sealing_size
    }

    /// Whether so much waits for the disk that no more should.
    pub(crate) fn is_behind(&self) -> bool {
        SEALING_MAX < self.sealing_count || SEALING_MAX * self.segment_size < self.sealing_size
    }

    /// How much there is.
    pub fn stats(&self) -> ColdStats {
        let mut stats = ColdStats::default();
        for segment in self.segments.values() {
            stats.segments += 1;
            stats.size += segment.size;
            stats.live_size += segment.live_size();
            stats.live_records += u64::from(segment.live_count);
            stats.plain_size += if segment.is_plain() { segment.live_size() } else { 0 };
            if LARGE_SIZE * u64::from(segment.record_count) <= segment.size {
                stats.large_records += u64::from(segment.live_count);
                stats.large_size += segment.size;
            }
            stats.empty_segments += u64::from(segment.live_count == 0 && segment.is_on_disk());
        }
        stats
    }
}

/// Writes a sealed segment to its file, durably but for its name.
pub(crate) fn write_segment(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Result<Source> {
    // Left by a process that died before a manifest named it.
    if vfs.exists(path)? {
        vfs.remove(path)?;
    }
    let mut file = vfs.create(path)?;
    file.append(bytes)?;
    file.sync()?;
    drop(file);
    Source::open(vfs, path)
}

/// The file of a segment.
pub fn segment_name(number: u32) -> String {
    format!("{number:08}.cold")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Place;
    use vfs::SimVfs;

    const RECORDS: usize = 4;

    /// A store with segments on disk, and the addresses of each one's records.
    fn store(segments: usize) -> (ColdStore, Vec<Vec<Address>>) {
        let disk: Arc<dyn Vfs> = Arc::new(SimVfs::new(1));
        disk.create_dir_all(Path::new("/keys")).expect("a good disk");
        let config = crate::KvConfig { segment_size: RECORDS * 64, ..crate::KvConfig::default() };
        let mut store = ColdStore::new(disk.clone(), Path::new("/keys"), &config, 1);
        let record = |store: &mut ColdStore| store.put_raw(&[b'x'; 64]);
        let all = (0..segments).map(|_| (0..RECORDS).map(|_| record(&mut store)).collect());
        let all = all.collect();
        for (number, bytes) in store.sealing() {
            let path = store.path_of(number);
            let source = write_segment(disk.as_ref(), &path, &bytes).expect("a good disk");
            store.sealed(number, source, 0);
        }
        (store, all)
    }

    #[test]
    fn what_is_empty_is_not_compacted_again_and_again() {
        let (mut store, all) = store(3);
        assert_eq!(store.to_compact(0), None);
        all[0].iter().for_each(|address| store.release(*address));
        assert_eq!(store.to_compact(0), None, "it waits for a checkpoint");
        all[1][1..].iter().for_each(|address| store.release(*address));
        assert_eq!(store.to_compact(0), Some(all[1][0].segment));
        store.release(all[1][0]);
        assert_eq!(store.to_compact(0), None);
    }

    #[test]
    fn what_rotted_or_cannot_be_read_stops_nobody_else() {
        let (mut store, all) = store(4);
        all[..3].iter().flat_map(|one| &one[1..]).for_each(|address| store.release(*address));
        let number = |at: usize| all[at][0].segment;
        assert_eq!(store.to_compact(0), Some(number(0)));
        assert_eq!(store.note_compacted(number(0)), 1, "nothing was moved");
        assert_eq!(store.to_compact(0), Some(number(1)));
        store.note_failed(number(1), 1000);
        assert_eq!(store.to_compact(1000), Some(number(2)));
        store.release(all[2][0]);
        assert_eq!(store.to_compact(1000), None);
        assert_eq!(store.to_compact(1000 + RETRY_MS), Some(number(1)), "tried again");
        assert_eq!(store.to_compact(999), Some(number(1)), "the clock was set back");
    }

    #[test]
    fn numbers_are_given_out_again_unless_somebody_has_them() {
        let disk: Arc<dyn Vfs> = Arc::new(SimVfs::new(1));
        let config = crate::KvConfig { segment_size: 64, ..crate::KvConfig::default() };
        let mut store = ColdStore::new(disk, Path::new("/keys"), &config, 0);
        let mut put = |from: u32| {
            store.next_number = from;
            store.put_raw(&[b'x'; 64]).segment
        };
        assert_eq!((put(0), put(1), put(SEGMENT_MAX)), (0, 1, SEGMENT_MAX));
        assert_eq!(put(SEGMENT_MAX + 1), 2);
        assert_eq!(put(0), 3);
        let far = Place::Cold(Address { segment: SEGMENT_MAX, offset: 0 });
        assert_eq!(Place::from_bits(far.to_bits()), far);
    }

    #[test]
    fn large_records_are_apart_from_small_ones_and_the_largest_are_alone() {
        let disk: Arc<dyn Vfs> = Arc::new(SimVfs::new(1));
        let config = crate::KvConfig { segment_size: 25_600, ..crate::KvConfig::default() };
        let mut store = ColdStore::new(disk, Path::new("/keys"), &config, 0);
        let sizes = [64, 99, 100, 64, 5000, 25_600, 100, 64, 30_000];
        let all = sizes.map(|size| store.put_raw(&vec![b'x'; size]));
        let segments = all.map(|address| address.segment);
        let (small, large) = (segments[0], segments[2]);
        assert_eq!([segments[1], segments[3], segments[7]], [small; 3]);
        assert_eq!(segments[4], large);
        assert!(![small, large].contains(&segments[5]) && all[5].offset == 0);
        assert!(!segments[..6].contains(&segments[6]) && segments[6] != segments[8]);
        store.seal();
        assert_eq!(store.memory_used(), store.stats().size as usize);
        for (address, size) in all.iter().zip(sizes) {
            let segment = &store.segments[&address.segment];
            let mut bytes = vec![0; size];
            let offset = address.offset as usize * RECORD_ALIGNMENT;
            let got = segment.source.read_at(&[], offset, &mut bytes).expect("in memory");
            assert_eq!((got, bytes), (size, vec![b'x'; size]));
        }
    }
}
