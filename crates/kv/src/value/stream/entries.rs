//! The entries of a stream, in blocks of about a hundred.
//!
//! ```text
//! blocks    number of the first entry ever in it ─► heads: number, offset, size of each entry
//!                                                   bytes: the entries one behind the other
//! entry     number of fields and values varint │ (size varint │ bytes) each
//! ```
//! A block ends where Redis would end its own, for trims that are approximate take whole blocks: so
//! each counts the bytes that it would have there. What is taken out of a block's middle leaves a
//! gap, until gaps are worth closing.

use super::Id;
use crate::number::parse_i64;
use crate::value::{put_bytes, read_bytes, read_len};
use codec::bytes::{Reader, put_varint};
use std::collections::BTreeMap;

/// Bytes of a block besides its heads and entries, about.
const BLOCK_COST: usize = size_of::<Block>() + 48;
/// Bytes of gaps that are worth closing.
const GAPS_SIZE_MAX: usize = 4096;
/// The largest entry.
pub const ENTRY_SIZE_MAX: usize = 1 << 30;

/// Where blocks end.
#[derive(Clone, Copy, Debug)]
pub struct BlockLimits {
    /// Entries; 0 for any number.
    pub entries_max: usize,
    /// Bytes; 0 for any number.
    pub size_max: usize,
}

impl Default for BlockLimits {
    fn default() -> BlockLimits {
        BlockLimits { entries_max: 100, size_max: 4096 }
    }
}

/// Where an entry lies in its block.
#[derive(Clone, Copy, Debug)]
struct Head {
    id: Id,
    offset: u32,
    size: u32,
}

/// Some entries that follow each other.
#[derive(Clone, Debug, Default)]
struct Block {
    heads: Vec<Head>,
    bytes: Vec<u8>,
    /// The number of the last entry ever in it.
    last_ever: Id,
    /// Entries ever in it.
    ever: u32,
    /// Bytes that a block of Redis would have.
    packed_size: u32,
    /// Of the names of its first entry's fields.
    names_hash: u64,
    /// Bytes of entries that are gone.
    gaps: usize,
}

/// What a trim leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// So many of the newest.
    Len(u64),
    /// Those from a number on.
    From(Id),
}

/// The entries of a stream.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    blocks: BTreeMap<Id, Block>,
    len: u64,
    size: usize,
}

impl Entries {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many blocks there are.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes of memory, about.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The number of the oldest one.
    pub fn first_id(&self) -> Option<Id> {
        self.blocks.values().next().and_then(|block| block.heads.first()).map(|head| head.id)
    }

    /// The number of the newest one.
    pub fn last_id(&self) -> Option<Id> {
        self.blocks.values().next_back().and_then(|block| block.heads.last()).map(|head| head.id)
    }

    /// Adds one behind all others. Its bytes are what [`pack`] wrote.
    pub fn push(&mut self, id: Id, entry: &[u8], limits: BlockLimits) {
        assert!(self.last_id().is_none_or(|last| last < id), "entries are in order");
        assert!(entry.len() <= ENTRY_SIZE_MAX, "the caller has checked it");
        let names_hash = names_hash(entry);
        let values_size = Fields::new(entry).map(<[u8]>::len).sum();
        let start = match self.blocks.last_key_value() {
            Some((first, block)) if !block.is_full(values_size, limits) => *first,
            _ => {
                let (packed_size, last_ever) = (packed_start(entry), id);
                let block = Block { packed_size, names_hash, last_ever, ..Block::default() };
                self.size += BLOCK_COST;
                self.blocks.insert(id, block);
                id
            }
        };
        let Some(block) = self.blocks.get_mut(&start) else { return };
        block.packed_size = block.packed_size.saturating_add(packed_size(
            entry,
            id,
            start,
            names_hash == block.names_hash,
        ));
        block.push(id, entry);
        (block.last_ever, block.ever) = (id, block.ever.saturating_add(1));
        self.size += entry.len() + size_of::<Head>();
        self.len += 1;
    }

    /// The bytes of one.
    pub fn get(&self, id: Id) -> Option<&[u8]> {
        let (_, block) = self.blocks.range(..=id).next_back()?;
        let at = block.heads.binary_search_by_key(&id, |head| head.id).ok()?;
        block.heads.get(at).map(|head| block.entry(head))
    }

    /// Takes one out. Returns whether it was there.
    pub fn remove(&mut self, id: Id) -> bool {
        let Some((start, block)) = self.blocks.range_mut(..=id).next_back() else { return false };
        let Ok(at) = block.heads.binary_search_by_key(&id, |head| head.id) else { return false };
        self.size -= block.remove(at);
        self.len -= 1;
        if block.heads.is_empty() {
            let start = *start;
            self.blocks.remove(&start);
            self.size -= BLOCK_COST;
        }
        true
    }

    /// All from `start` to `end`, both included.
    pub fn range(&self, start: Id, end: Id) -> impl DoubleEndedIterator<Item = (Id, &[u8])> {
        let before = self.blocks.range(..=start).next_back();
        let first = before.map_or(start, |(first, _)| *first);
        // An empty range is written so that it is one.
        let (start, first, end) = match start <= end {
            true => (start, first, end),
            false => (Id::MAX, Id::MIN, Id::MIN),
        };
        self.blocks.range(first..=end).flat_map(move |(_, block)| {
            let from = block.heads.partition_point(|head| head.id < start);
            let to = block.heads.partition_point(|head| head.id <= end).max(from);
            let heads = block.heads.get(from..to).unwrap_or_default();
            heads.iter().map(|head| (head.id, block.entry(head)))
        })
    }

    /// Takes the oldest out, at most `count` of them if given, until what is left is what is to be
    /// kept; only whole blocks, if `is_rough`. Returns how many went.
    pub fn trim(&mut self, keep: Keep, is_rough: bool, count: Option<u64>) -> u64 {
        let mut removed = 0;
        while let Some(mut first) = self.blocks.first_entry() {
            if matches!(keep, Keep::Len(len) if self.len <= len) {
                break;
            }
            let block = first.get_mut();
            let live = block.heads.len() as u64;
            if count.is_some_and(|count| count < removed + live) {
                break;
            }
            let goes = match keep {
                Keep::Len(len) => len <= self.len - live,
                Keep::From(id) => block.last_ever < id,
            };
            if goes {
                self.size -= block.size() + BLOCK_COST;
                self.len -= live;
                removed += live;
                first.remove();
                continue;
            }
            if is_rough {
                break;
            }
            let gone = match keep {
                Keep::Len(len) => usize::try_from(self.len - len).unwrap_or(usize::MAX),
                Keep::From(id) => block.heads.partition_point(|head| head.id < id),
            };
            for _ in 0..gone.min(block.heads.len()) {
                self.size -= block.remove(0);
                self.len -= 1;
                removed += 1;
            }
            if block.heads.is_empty() {
                self.size -= BLOCK_COST;
                first.remove();
            }
            break;
        }
        removed
    }

    /// The entries of each block, for writers of formats that have blocks, too.
    pub fn blocks(&self) -> impl Iterator<Item = impl Iterator<Item = (Id, &[u8])>> {
        self.blocks
            .values()
            .map(|block| block.heads.iter().map(move |head| (head.id, block.entry(head))))
    }

    /// Appends what [`Entries::decode`] reads.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.blocks.len() as u64);
        for (start, block) in &self.blocks {
            start.put(out);
            block.last_ever.put(out);
            put_varint(out, u64::from(block.ever));
            put_varint(out, u64::from(block.packed_size));
            out.extend_from_slice(&block.names_hash.to_le_bytes());
            put_varint(out, block.heads.len() as u64);
            for head in &block.heads {
                Id { ms: head.id.ms - start.ms, seq: head.id.seq }.put(out);
                put_bytes(out, block.entry(head));
            }
        }
    }

    /// Reads entries; the bytes may be anything.
    ///
    /// # Errors
    /// When they are none.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Entries, codec::Error> {
        let mut entries = Entries::default();
        let mut before = None;
        for _ in 0..read_len(reader)? {
            let start = Id::read(reader)?;
            let mut block = Block { last_ever: Id::read(reader)?, ..Block::default() };
            block.ever = reader.varint_u32()?;
            block.packed_size = reader.varint_u32()?;
            block.names_hash = reader.u64()?;
            if before.is_some_and(|before| start <= before) {
                return Err(reader.corrupt("blocks of a stream out of order"));
            }
            for _ in 0..read_len(reader)? {
                let delta = Id::read(reader)?;
                let ms = start.ms.checked_add(delta.ms);
                let id = Id {
                    ms: ms.ok_or_else(|| reader.corrupt("a time overflows"))?,
                    seq: delta.seq,
                };
                let entry = read_bytes(reader)?;
                if id < start || block.last_ever < id || before.is_some_and(|before| id <= before) {
                    return Err(reader.corrupt("entries of a stream out of order"));
                }
                if ENTRY_SIZE_MAX < entry.len() || !is_packed(entry) {
                    return Err(reader.corrupt("an entry without its fields"));
                }
                block.push(id, entry);
                entries.len += 1;
                before = Some(id);
            }
            if block.heads.is_empty() {
                return Err(reader.corrupt("a block without entries"));
            }
            before = before.max(Some(block.last_ever));
            entries.size += block.size() + BLOCK_COST;
            entries.blocks.insert(start, block);
        }
        Ok(entries)
    }
}

impl Block {
    fn entry(&self, head: &Head) -> &[u8] {
        let start = head.offset as usize;
        self.bytes.get(start..start + head.size as usize).unwrap_or_default()
    }

    fn push(&mut self, id: Id, entry: &[u8]) {
        let offset = u32::try_from(self.bytes.len()).expect("a full block takes nothing");
        let size = u32::try_from(entry.len()).expect("entries are bounded");
        self.bytes.extend_from_slice(entry);
        self.heads.push(Head { id, offset, size });
    }

    /// Takes one out. Returns the bytes that it took.
    fn remove(&mut self, at: usize) -> usize {
        let head = self.heads.remove(at);
        self.gaps += head.size as usize;
        if GAPS_SIZE_MAX < self.gaps {
            let mut bytes = Vec::with_capacity(self.bytes.len() - self.gaps);
            for head in &mut self.heads {
                let start = head.offset as usize;
                head.offset = u32::try_from(bytes.len()).expect("it shrinks");
                bytes.extend_from_slice(&self.bytes[start..start + head.size as usize]);
            }
            (self.bytes, self.gaps) = (bytes, 0);
        }
        head.size as usize + size_of::<Head>()
    }

    /// Whether an entry whose names and values have so many bytes begins a new block.
    fn is_full(&self, values_size: usize, limits: BlockLimits) -> bool {
        let size_max = match limits.size_max {
            0 => ENTRY_SIZE_MAX,
            size => size.min(ENTRY_SIZE_MAX),
        };
        size_max <= (self.packed_size as usize).saturating_add(values_size)
            || ENTRY_SIZE_MAX <= self.bytes.len()
            || 0 < limits.entries_max && limits.entries_max <= self.ever as usize
    }

    /// Bytes of what is in it.
    fn size(&self) -> usize {
        self.bytes.len() - self.gaps + self.heads.len() * size_of::<Head>()
    }
}

/// Writes fields and values as the bytes of an entry.
pub fn pack(fields: &[&[u8]]) -> Vec<u8> {
    let size: usize = fields.iter().map(|field| field.len() + 5).sum();
    let mut out = Vec::with_capacity(size + 5);
    put_varint(&mut out, fields.len() as u64);
    fields.iter().for_each(|field| put_bytes(&mut out, field));
    out
}

/// Whether bytes are those of an entry.
fn is_packed(entry: &[u8]) -> bool {
    let mut reader = Reader::new(entry);
    let Ok(count) = read_len(&mut reader) else { return false };
    (0..count).all(|_| read_bytes(&mut reader).is_ok()) && reader.is_empty() && count % 2 == 0
}

/// The fields and values of an entry, one after the other.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Fields<'a> {
    /// Those of an entry.
    pub fn new(entry: &'a [u8]) -> Fields<'a> {
        let mut reader = Reader::new(entry);
        let left = read_len(&mut reader).unwrap_or(0);
        Fields { reader, left }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        read_bytes(&mut self.reader).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Fields<'_> {}

fn names_hash(entry: &[u8]) -> u64 {
    let mut names = Vec::new();
    Fields::new(entry).step_by(2).for_each(|name| put_bytes(&mut names, name));
    xxhash_rust::xxh3::xxh3_64(&names)
}

// ---- what a block takes in Redis ----

/// Bytes of a listpack's element that is an integer.
fn int_size(value: i64) -> u32 {
    match value {
        0..=127 => 2,
        -4096..=4095 => 3,
        -32768..=32767 => 4,
        -8_388_608..=8_388_607 => 5,
        _ if i32::try_from(value).is_ok() => 6,
        _ => 10,
    }
}

/// Bytes of a listpack's element.
fn element_size(bytes: &[u8]) -> u32 {
    if let Some(value) = parse_i64(bytes) {
        return int_size(value);
    }
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let body = len.saturating_add(match len {
        0..=63 => 1,
        64..=4095 => 2,
        _ => 5,
    });
    let back = match body {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    };
    body.saturating_add(back)
}

/// Bytes of an empty block whose first entry will be that one: frame, counts, names, an end.
fn packed_start(entry: &[u8]) -> u32 {
    let fields = Fields::new(entry);
    let names = fields.len() as i64 / 2;
    let sizes = fields.step_by(2).map(element_size);
    sizes.fold(7 + 2 + 2 + int_size(names) + 2, u32::saturating_add)
}

/// Bytes that an entry adds: flags, its number from the block's, names if they differ, values, count.
fn packed_size(entry: &[u8], id: Id, start: Id, has_same_names: bool) -> u32 {
    let fields = Fields::new(entry);
    let names = fields.len() as i64 / 2;
    let mut size = 2 + int_size(id.ms.wrapping_sub(start.ms) as i64);
    size += int_size(id.seq.wrapping_sub(start.seq) as i64);
    let (step, count) = match has_same_names {
        true => (2, names + 3),
        false => {
            size += int_size(names);
            (1, names * 2 + 4)
        }
    };
    let values = fields.skip(step - 1).step_by(step).map(element_size);
    values.fold(size + int_size(count), u32::saturating_add)
}
