//! A stream: entries in the order of their numbers, and groups of consumers that share them.

mod entries;
mod group;
mod id;

pub use entries::{BlockLimits, ENTRY_SIZE_MAX, Entries, Fields, Keep, pack};
pub use group::{Consumer, Group, Pending};
pub use id::{Id, parse_u64};

use super::{Stored, boxed_variant, put_bytes, read_bytes, read_len};
use codec::bytes::{Reader, put_varint};
use std::collections::BTreeMap;

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Its entries.
    pub entries: Entries,
    /// The number of the last entry ever, or as it was set.
    pub last_id: Id,
    /// The greatest number of an entry that was taken out of the middle.
    pub max_deleted_id: Id,
    /// Entries ever added.
    pub entries_added: u64,
    groups: BTreeMap<Box<[u8]>, Group>,
    groups_size: usize,
}

impl Stream {
    /// Adds an entry of a number that is greater than all before.
    pub fn push(&mut self, id: Id, entry: &[u8], limits: BlockLimits) {
        assert!(self.last_id < id, "the caller has checked it");
        self.entries.push(id, entry, limits);
        self.last_id = id;
        self.entries_added = self.entries_added.saturating_add(1);
    }

    /// Takes an entry out. Returns whether it was there.
    pub fn remove(&mut self, id: Id) -> bool {
        let is_there = self.entries.remove(id);
        if is_there {
            self.max_deleted_id = self.max_deleted_id.max(id);
        }
        is_there
    }

    /// Its groups.
    pub fn groups(&self) -> &BTreeMap<Box<[u8]>, Group> {
        &self.groups
    }

    /// The group of that name.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// Adds a group. Returns false if it is there.
    pub fn add_group(&mut self, name: &[u8], group: Group) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        self.groups_size += name.len() + group.size();
        self.groups.insert(name.into(), group);
        true
    }

    /// Takes a group out. Returns whether it was there.
    pub fn remove_group(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.groups.remove(name) else { return false };
        self.groups_size -= name.len() + group.size();
        true
    }

    /// Changes the group of that name, with the stream beside it; none if it is not there.
    pub fn change_group<R>(
        &mut self,
        name: &[u8],
        change: impl FnOnce(&mut Group, &Position<'_>) -> R,
    ) -> Option<R> {
        let group = self.groups.get_mut(name)?;
        let before = group.size();
        let position = Position {
            entries: &self.entries,
            last_id: self.last_id,
            max_deleted_id: self.max_deleted_id,
            entries_added: self.entries_added,
        };
        let result = change(group, &position);
        self.groups_size = self.groups_size + group.size() - before;
        Some(result)
    }

    /// The stream without its groups.
    pub fn position(&self) -> Position<'_> {
        Position {
            entries: &self.entries,
            last_id: self.last_id,
            max_deleted_id: self.max_deleted_id,
            entries_added: self.entries_added,
        }
    }
}

/// A stream without its groups: what tells how far they have read.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// Its entries.
    pub entries: &'a Entries,
    last_id: Id,
    max_deleted_id: Id,
    entries_added: u64,
}

impl Position<'_> {
    /// How many entries were ever added up to that one, if it can be told: at both ends, and where
    /// nothing was taken out behind.
    pub fn entries_up_to(&self, id: Id) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.entries.is_empty() && id <= self.last_id {
            return Some(self.entries_added);
        }
        if id == self.last_id {
            return Some(self.entries_added);
        }
        let first = self.entries.first_id().filter(|_| id < self.last_id)?;
        let is_whole = self.max_deleted_id < first;
        let before_first = self.entries_added.saturating_sub(self.entries.len());
        match id.cmp(&first) {
            std::cmp::Ordering::Less if is_whole => Some(before_first),
            std::cmp::Ordering::Equal if is_whole => Some(before_first + 1),
            _ => None,
        }
    }

    /// Whether an entry may have been taken out from that number on, of those that could be there.
    pub fn has_gaps_from(&self, id: Id) -> bool {
        let first = self.entries.first_id();
        id <= self.max_deleted_id && first.is_some_and(|first| first <= self.max_deleted_id)
    }

    /// How many entries a group has still to read, if that can be told. Below zero where somebody
    /// set the counts so.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if !self.has_gaps_from(group.last_id) => Some(read),
            _ => self.entries_up_to(group.last_id),
        };
        read.map(|read| self.entries_added.wrapping_sub(read).cast_signed())
    }

    /// What a group's count of read entries becomes when it reads that entry next.
    pub fn read_after(&self, entries_read: Option<u64>, id: Id) -> Option<u64> {
        match entries_read {
            Some(read) if !self.has_gaps_from(id) => Some(read.saturating_add(1)),
            before if self.entries_added == 0 => before,
            _ => self.entries_up_to(id),
        }
    }
}

impl Stored for Stream {
    boxed_variant!(Stream);

    fn encode(&self, out: &mut Vec<u8>) {
        self.last_id.put(out);
        self.max_deleted_id.put(out);
        put_varint(out, self.entries_added);
        self.entries.encode(out);
        put_varint(out, self.groups.len() as u64);
        for (name, group) in &self.groups {
            put_bytes(out, name);
            group.encode(out);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Stream, codec::Error> {
        let mut stream = Stream {
            last_id: Id::read(reader)?,
            max_deleted_id: Id::read(reader)?,
            entries_added: reader.varint()?,
            entries: Entries::decode(reader)?,
            ..Stream::default()
        };
        if stream.entries.last_id().is_some_and(|last| stream.last_id < last) {
            return Err(reader.corrupt("an entry beyond the last one"));
        }
        for _ in 0..read_len(reader)? {
            let name = read_bytes(reader)?;
            if !stream.add_group(name, Group::decode(reader)?) {
                return Err(reader.corrupt("a group twice"));
            }
        }
        Ok(stream)
    }

    fn heap_size(&self) -> usize {
        size_of::<Stream>() + self.entries.size() + self.groups_size
    }

    fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
