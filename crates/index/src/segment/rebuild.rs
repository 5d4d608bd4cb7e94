//! What can be saved of a damaged segment; for `quipu verify --repair`.
//!
//! ```text
//! header, footer    known: the header is always the same; of a footer in which one bit turned, that
//!                   bit is found, and the checksums of ten sections confirm it
//! sections          those with a sound checksum are believed. Of others the bit is looked for that
//!                   makes the checksum right; without one they are read as they are. Either way an
//!                   entity is believed if its labels have the hash that the table of entities says
//! places            a damaged record of a block may lie about ordinals, which no hash covers: it is
//!                   believed if the block ends where the next one begins
//! ```
//!
//! What is believed is registered in an index in memory under the ids it had, and written anew. So
//! entity blocks, postings and hashes are always made again from labels, and memory holds all label
//! sets of the segment. Who is lost leaves a dead slot; ids are not given out again.

use super::entry::SegmentEntry;
use super::piece::{Piece, PieceBlock, PieceCursor, Space};
use super::strings::utf8;
use super::writer::write;
use super::{BlockRecord, GroupRecord, Lists, Segment};
use crate::entity::{BlockRef, EntityHash, EntityId};
use crate::error::{Result, corrupt};
use crate::format::{
    Checks, FOOTER_SIZE, HASH_SIZE, HEADER_SIZE, SECTION_COUNT, SECTIONS, Section, header,
    read_frame, segment_name,
};
use crate::memory::MemoryIndex;
use crate::memory::log::{Placement, put_block, put_entity};
use crate::narrow::to_u16;
use crate::subset::for_each_bit;
use codec::crc32;
use roaring::RoaringBitmap;
use std::ops::Range;

/// A segment made of what was saved.
pub struct Salvaged {
    /// Name of the file to be.
    pub name: String,
    /// Its bytes; sound.
    pub bytes: Vec<u8>,
    /// Entities in it.
    pub kept: u64,
    /// Entities of the damaged one that are not.
    pub lost: u64,
}

impl Segment {
    /// The ordinals of all series of living entities.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn live_ordinals(&self) -> Result<RoaringBitmap> {
        let mut out = RoaringBitmap::new();
        for group in 0..self.group_count() {
            for found in self.group_blocks(group)? {
                for column in 0..to_u16(found.block.columns as usize) {
                    for_each_run(&found.live, |first, last| {
                        out.insert_range(
                            found.block.ordinal(column, first)..=found.block.ordinal(column, last),
                        );
                    });
                }
            }
        }
        Ok(out)
    }

    /// The block that has this entity's slot, dead or alive.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn block_around(&self, entity: EntityId) -> Result<Option<BlockRef>> {
        let Some(number) = self.block_number(entity)? else { return Ok(None) };
        let block = self.block_record(number)?;
        self.block_ref(&block, &self.group_record(block.group)?).map(Some)
    }

    fn section_is_sound(&self, section: Section) -> bool {
        let place = &self.footer.sections[section as usize];
        self.bytes.get(place.range.clone()).is_some_and(|bytes| crc32(bytes) == place.crc)
    }
}

/// Calls `on_run` with the first and last slot of each run of set bits.
fn for_each_run(bits: &crate::subset::SlotBits, mut on_run: impl FnMut(u16, u16)) {
    let mut run: Option<(u16, u16)> = None;
    for_each_bit(bits, |slot| match &mut run {
        Some((_, last)) if *last + 1 == slot => *last = slot,
        _ => {
            if let Some((first, last)) = run.replace((slot, slot)) {
                on_run(first, last);
            }
        }
    });
    if let Some((first, last)) = run {
        on_run(first, last);
    }
}

/// Saves what can be saved of the segment in `bytes`, under the name of the `sequence`-th segment;
/// `None` when nothing can, or when it is another segment than the one named: its entities would
/// take the place of others.
pub fn salvage(entry: &SegmentEntry, bytes: vfs::Bytes, sequence: u32) -> Option<Salvaged> {
    let (name, bytes) = (entry.name.as_str(), with_sound_frame(bytes)?);
    Segment::open(name, bytes.clone()).and_then(|segment| segment.check_entry(entry)).ok()?;
    let corrected = with_bits_turned_back(name, &bytes);
    let best = corrected
        .and_then(|corrected| salvage_from(name, corrected, Places::FromNeighbours, sequence));
    if best.as_ref().is_some_and(|best| best.lost == 0) {
        return best;
    }
    let segment = Segment::open_with(name, bytes.clone(), Checks::Skipped).ok()?;
    let places = match segment.section_is_sound(Section::Blocks) {
        true => Places::FromBlocks,
        false => Places::FromNeighbours,
    };
    let as_it_is = salvage_from(name, bytes, places, sequence);
    best.into_iter().chain(as_it_is).max_by_key(|saved| saved.kept)
}

fn salvage_from(name: &str, bytes: vfs::Bytes, places: Places, sequence: u32) -> Option<Salvaged> {
    let segment = Segment::open_with(name, bytes, Checks::Skipped).ok()?;
    let saver = Saver::new(&segment, places)?;
    let (memory, kept) = saver.save()?;
    if kept.is_empty() {
        return None;
    }
    let piece = Ranged { memory, entities: segment.entities(), series: segment.series() };
    let is_lost = |entity| !kept.contains(entity);
    let bytes = write(&[&piece], Some(&is_lost)).ok()?.parts().concat();
    let name = segment_name(segment.entities(), sequence);
    let again = Segment::open(&name, vfs::Bytes::from_vec(bytes.clone())).ok()?;
    again.verify().ok()?;
    let lost = segment.entity_count().saturating_sub(kept.len());
    Some(Salvaged { name, bytes, kept: kept.len(), lost })
}

/// The same bytes with header and footer as they were written; `None` when that is not known.
fn with_sound_frame(bytes: vfs::Bytes) -> Option<vfs::Bytes> {
    if read_frame(&bytes, Checks::Enforced).is_ok() {
        return Some(bytes);
    }
    let footer_start = bytes.len().checked_sub(FOOTER_SIZE)?;
    if footer_start < HEADER_SIZE {
        return None;
    }
    let mut patched = bytes.to_vec();
    drop(bytes);
    patched[..HEADER_SIZE].copy_from_slice(&header());
    if read_frame(&patched, Checks::Enforced).is_ok() {
        return Some(patched.into());
    }
    for byte in footer_start..patched.len() {
        for bit in 0..8 {
            patched[byte] ^= 1 << bit;
            if is_confirmed(&patched) {
                return Some(patched.into());
            }
            patched[byte] ^= 1 << bit;
        }
    }
    None
}

/// Whether the footer is sound and so are all sections that it names.
fn is_confirmed(bytes: &[u8]) -> bool {
    let Ok(footer) = read_frame(bytes, Checks::Enforced) else { return false };
    footer.sections.iter().all(|place| crc32(&bytes[place.range.clone()]) == place.crc)
}

/// The same bytes where in each damaged section one bit is turned that makes its checksum right;
/// `None` when there is no such section. It may be another bit than the one that rotted if there
/// were several, so all that is read from it needs another proof.
fn with_bits_turned_back(name: &str, bytes: &vfs::Bytes) -> Option<vfs::Bytes> {
    let segment = Segment::open_with(name, bytes.clone(), Checks::Skipped).ok()?;
    if !segment.section_is_sound(Section::Hashes) {
        return None;
    }
    let mut corrected = None;
    for section in SECTIONS {
        let place = &segment.footer.sections[section as usize];
        let rotten = &segment.bytes[place.range.clone()];
        if let Some(bit) = turned_bit(rotten, place.crc) {
            let corrected = corrected.get_or_insert_with(|| bytes.to_vec());
            corrected[place.range.start + bit / 8] ^= 1 << (bit % 8);
        }
    }
    corrected.map(vfs::Bytes::from_vec)
}

/// The one bit that has to turn for the bytes to have this checksum, if there is one and the
/// checksum is not right already.
fn turned_bit(bytes: &[u8], crc: u32) -> Option<usize> {
    /// The polynomial of CRC-32, its bits in reverse.
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let wanted = crc32(bytes) ^ crc;
    if wanted == 0 {
        return None;
    }
    // What a turned bit does to the checksum, from the last bit to the first.
    let mut effect = POLYNOMIAL;
    for bit in (0..bytes.len() * 8).rev() {
        if effect == wanted {
            return Some(bit);
        }
        effect = effect >> 1 ^ if effect & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    None
}

/// Why an entity is believed.
enum Proof {
    /// All sections that labels come from are sound.
    Checksums,
    /// The table of entities is: hash above id, sorted.
    Hashes(Vec<u64>),
}

struct Saver<'a> {
    segment: &'a Segment,
    proof: Proof,
    places: Places,
}

/// Why the place of a block is believed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    /// The records of blocks are sound.
    FromBlocks,
    /// It ends where the next one begins.
    FromNeighbours,
}

/// A block as it was read.
struct FoundBlock {
    number: u32,
    record: BlockRecord,
    group: GroupRecord,
    block: BlockRef,
}

impl<'a> Saver<'a> {
    fn new(segment: &'a Segment, places: Places) -> Option<Saver<'a>> {
        let mut is_sound = [false; SECTION_COUNT];
        SECTIONS.iter().for_each(|s| is_sound[*s as usize] = segment.section_is_sound(*s));
        use Section::{Blocks, Columns, Groups, Hashes, Labels, Lists, Planes, Strings};
        let labels = [Labels, Strings, Groups, Lists, Blocks, Columns, Planes];
        let proof = if is_sound[Hashes as usize] {
            Proof::Hashes(sorted_hashes(segment))
        } else if labels.iter().all(|section| is_sound[*section as usize]) {
            Proof::Checksums
        } else {
            return None;
        };
        Some(Saver { segment, proof, places })
    }

    /// All that is believed, and which entities these are.
    fn save(&self) -> Option<(MemoryIndex, RoaringBitmap)> {
        let counts = self.segment.counts();
        let mut memory = MemoryIndex::new(counts.entities_start, counts.series_start);
        let mut kept = RoaringBitmap::new();
        let mut log = Vec::new();
        for found in self.believed_blocks() {
            log.clear();
            let mut entities = Vec::new();
            if self.save_block(&found, &mut log, &mut entities).is_err() || entities.is_empty() {
                continue;
            }
            memory.replay(&log).ok()?;
            kept.extend(entities);
        }
        Some((memory, kept))
    }

    /// The blocks whose place is known, by entity.
    fn believed_blocks(&self) -> Vec<FoundBlock> {
        let numbers = 0..self.segment.counts().block_count;
        let mut blocks: Vec<FoundBlock> =
            numbers.filter_map(|number| self.block(number).ok()).collect();
        blocks.sort_unstable_by_key(|found| found.block.entity_start);
        if self.places == Places::FromBlocks {
            return blocks;
        }
        let counts = self.segment.counts();
        let starts = blocks.iter().map(|b| (b.block.entity_start, b.block.series_start));
        let nexts: Vec<(u32, u32)> =
            starts.skip(1).chain([(counts.next_entity, counts.next_series)]).collect();
        let mut nexts = nexts.into_iter();
        blocks.retain(|found| {
            let end = (found.block.entity_start + found.block.capacity, found.block.series_end());
            nexts.next() == Some(end)
        });
        blocks
    }

    fn block(&self, number: u32) -> Result<FoundBlock> {
        let record = self.segment.block_record(number)?;
        let group = self.segment.group_record(record.group)?;
        let block = self.segment.block_ref(&record, &group)?;
        Ok(FoundBlock { number, record, group, block })
    }

    /// Appends the registrations of a block's believed entities to `log`, with entities that nobody
    /// has in the slots between, and the ids of the believed ones to `entities`.
    fn save_block(
        &self,
        found: &FoundBlock,
        log: &mut Vec<u8>,
        entities: &mut Vec<EntityId>,
    ) -> Result<()> {
        let mut lists = Lists::default();
        self.segment.lists(&found.group, &mut lists)?;
        let names =
            self.texts(&lists.names, |id, out| self.segment.metric_names()?.get(id, out))?;
        let tags = self.texts(&lists.tags, |id, out| self.segment.tag_names()?.get(id, out))?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        let BlockRef { entity_start, series_start, capacity, .. } = found.block;
        let placement = Placement { entity_start, series_start, capacity };
        put_block(log, placement, &names, tags.iter().copied());
        let mut slots = Vec::new();
        for_each_bit(&self.segment.live_bits(&found.record)?, |slot| slots.push(slot));
        let mut next_slot = 0;
        for slot in slots {
            let Ok(values) = self.values_of(found, &lists, slot) else { continue };
            let pairs = tags.iter().copied().zip(values.iter().map(String::as_str));
            let pairs: Vec<(&str, &str)> = pairs.collect();
            let entity = found.block.entity(slot);
            if !self.is_believed(entity, &names, &pairs) {
                continue;
            }
            for slot in next_slot..slot {
                put_nobody(log, found.block.entity(slot), &tags)?;
            }
            put_entity(log, entity, &pairs);
            entities.push(entity);
            next_slot = slot + 1;
        }
        Ok(())
    }

    fn is_believed(&self, entity: EntityId, names: &[&str], tags: &[(&str, &str)]) -> bool {
        match &self.proof {
            Proof::Checksums => true,
            Proof::Hashes(hashes) => {
                let hash = u64::from(EntityHash::of(names, tags).entity());
                hashes.binary_search(&(hash << 32 | u64::from(entity))).is_ok()
            }
        }
    }

    fn texts(
        &self,
        ids: &[u32],
        read: impl Fn(u32, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Vec<String>> {
        let mut text = Vec::new();
        let read_one = |id: &u32| {
            read(*id, &mut text)?;
            Ok(utf8(&text)?.to_string())
        };
        ids.iter().map(read_one).collect()
    }

    /// The values of a slot's tags.
    fn values_of(&self, found: &FoundBlock, lists: &Lists, slot: u16) -> Result<Vec<String>> {
        let mut text = Vec::new();
        let mut values = Vec::with_capacity(lists.tags.len());
        for (position, tag) in lists.tags.iter().enumerate() {
            let column =
                self.segment.column(&found.group, found.number, &found.record, position)?;
            self.segment.values(*tag)?.get(column.get(usize::from(slot)), &mut text)?;
            values.push(utf8(&text)?.to_string());
        }
        Ok(values)
    }
}

/// Registers an entity that takes a slot and is left out when the index is written.
fn put_nobody(log: &mut Vec<u8>, entity: EntityId, tags: &[&str]) -> Result<()> {
    if tags.is_empty() {
        // There is one such entity for each list of names, so nothing tells two apart.
        return Err(corrupt("a dead slot among entities without tags"));
    }
    let value = format!("\u{1}{entity}");
    let pairs: Vec<(&str, &str)> = tags.iter().map(|tag| (*tag, value.as_str())).collect();
    put_entity(log, entity, &pairs);
    Ok(())
}

fn sorted_hashes(segment: &Segment) -> Vec<u64> {
    let place = &segment.footer.sections[Section::Hashes as usize];
    let entries = &segment.bytes[place.range.clone()];
    let entries = entries.get(segment.bucket_count() * 4 + 4..).unwrap_or_default();
    let entries = entries.as_chunks::<HASH_SIZE>().0.iter();
    let mut hashes: Vec<u64> = entries.map(|e| u64::from_le_bytes(*e).rotate_left(32)).collect();
    hashes.sort_unstable();
    hashes
}

/// An index in memory that answers for the ids of the segment it was saved from.
struct Ranged {
    memory: MemoryIndex,
    entities: Range<EntityId>,
    series: Range<u32>,
}

impl Piece for Ranged {
    fn entities(&self) -> Range<EntityId> {
        self.entities.clone()
    }

    fn series(&self) -> Range<u32> {
        self.series.clone()
    }

    fn id_count(&self, space: Space) -> Result<u32> {
        self.memory.id_count(space)
    }

    fn cursor(&self, space: Space) -> Result<PieceCursor<'_>> {
        self.memory.cursor(space)
    }

    fn group_count(&self) -> u32 {
        Piece::group_count(&self.memory)
    }

    fn group_lists(&self, group: u32) -> Result<(Vec<u32>, Vec<u32>)> {
        self.memory.group_lists(group)
    }

    fn group_blocks(&self, group: u32) -> Result<Vec<PieceBlock>> {
        self.memory.group_blocks(group)
    }

    fn locate(&self, block: &BlockRef) -> Result<(u32, u32)> {
        self.memory.locate(block)
    }

    fn column_ids(&self, block: u32, position: usize, out: &mut [u32]) -> Result<()> {
        self.memory.column_ids(block, position, out)
    }

    fn hashes(&self, out: &mut Vec<u64>) -> Result<()> {
        self.memory.hashes(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::parse_segment_name;
    use super::*;
    use crate::NewEntity;
    use crate::jobs::freeze_bytes;
    use rng::Random;

    /// Entities of three lists of names and three of tags.
    fn sample() -> MemoryIndex {
        let mut memory = MemoryIndex::new(100, 2000);
        for idx in 0..400u32 {
            let host = format!("h{}", idx / 2);
            let zone = format!("z{}", idx % 7);
            let tags = [("host", host.as_str()), ("zone", zone.as_str())];
            let names: &[&str] = if idx % 2 == 0 { &["a", "b"] } else { &["c"] };
            let tags = &tags[..1 + (idx % 3 != 0) as usize];
            memory.register(&NewEntity::new(names, tags), &mut Vec::new()).unwrap();
        }
        memory.register(&NewEntity::new(&["alone"], &[]), &mut Vec::new()).unwrap();
        memory
    }

    /// By ordinal, the labels.
    fn contents(segment: &Segment) -> std::collections::BTreeMap<u32, String> {
        let mut out = std::collections::BTreeMap::new();
        let live = segment.live_ordinals().unwrap();
        for ordinal in live {
            let block = segment.block_of_ordinal(ordinal).unwrap().unwrap();
            let (column, slot) = block.place(ordinal);
            let mut labels = model::LabelsBuilder::new();
            segment.labels(&block, column, slot, &mut labels).unwrap();
            out.insert(ordinal, format!("{:?}", labels.iter().collect::<Vec<_>>()));
        }
        out
    }

    fn named() -> SegmentEntry {
        SegmentEntry::unchecked("s".to_string())
    }

    #[test]
    fn names_are_parsed() {
        assert_eq!(parse_segment_name("00000010-00abcdef-00004d.seg"), Some((16..0xabcdef, 77)));
        for name in ["10-20-1.seg", "00000010-00abcdef.seg", "x.seg", "00000010-00abcdef-00004d"] {
            assert_eq!(parse_segment_name(name), None, "{name}");
        }
    }

    #[test]
    fn whatever_bit_turns_what_is_saved_is_true() {
        let bytes = freeze_bytes(&sample()).unwrap();
        let whole = Segment::open("s", bytes.clone().into()).unwrap();
        let truth = contents(&whole);
        assert_eq!(truth.len() as u64, whole.series_count());
        let (mut complete, mut lost, mut hopeless) = (0, 0, 0);
        for byte in (0..bytes.len()).step_by(31) {
            let mut rotten = bytes.clone();
            rotten[byte] ^= 1 << (byte % 8);
            let Some(saved) = salvage(&named(), rotten.into(), 9) else {
                hopeless += 1;
                continue;
            };
            let segment = Segment::open(&saved.name, saved.bytes.into()).unwrap();
            assert_eq!((segment.entities(), segment.series()), (whole.entities(), whole.series()));
            let found = contents(&segment);
            assert!(found.iter().all(|(ordinal, labels)| truth[ordinal] == *labels), "{byte}");
            assert_eq!(saved.kept + saved.lost, whole.entity_count());
            match saved.lost {
                0 => complete += 1,
                count => lost = count.max(lost),
            }
        }
        println!(
            "{} flips: {complete} lose nothing, {hopeless} all, others up to {lost}",
            bytes.len()
        );
        assert_eq!(hopeless, 0);
        assert_eq!((complete, lost), (bytes.len().div_ceil(31), 0));
    }

    #[test]
    fn two_bits_cost_whom_they_hit() {
        let bytes = freeze_bytes(&sample()).unwrap();
        let whole = Segment::open("s", bytes.clone().into()).unwrap();
        let truth = contents(&whole);
        let (mut complete, mut hopeless) = (0, 0);
        for byte in (0..bytes.len()).step_by(23) {
            let mut rotten = bytes.clone();
            rotten[byte] ^= 0x21;
            match salvage(&named(), rotten.into(), 9) {
                Some(saved) => {
                    let found = contents(&Segment::open(&saved.name, saved.bytes.into()).unwrap());
                    assert!(found.iter().all(|(ordinal, labels)| truth[ordinal] == *labels));
                    complete += usize::from(saved.lost == 0);
                }
                None => hopeless += 1,
            }
        }
        let count = bytes.len().div_ceil(23);
        println!("{count} places: {complete} lose nothing, {hopeless} all");
        // The footer is hopeless then, and what all entities share.
        assert!(count < complete * 2 && hopeless * 10 < count);
    }

    #[test]
    fn much_damage_is_no_panic() {
        let bytes = freeze_bytes(&sample()).unwrap();
        let truth = contents(&Segment::open("s", bytes.clone().into()).unwrap());
        let mut random = Random::seeded(5);
        for _ in 0..500 {
            let mut rotten = bytes.clone();
            for _ in 0..1 + random.next() % 20 {
                let at = random.next() as usize % rotten.len();
                rotten[at] = random.next() as u8;
            }
            if random.next().is_multiple_of(8) {
                rotten.truncate(random.next() as usize % bytes.len());
            }
            if let Some(saved) = salvage(&named(), rotten.into(), 9) {
                let found = contents(&Segment::open(&saved.name, saved.bytes.into()).unwrap());
                assert!(found.iter().all(|(ordinal, labels)| truth[ordinal] == *labels));
            }
        }
        assert!(salvage(&named(), Vec::new().into(), 1).is_none());
    }
}
