//! A consumer group: how far it has read, who reads, and what each has not acknowledged yet.

use super::Id;
use crate::value::{put_bytes, read_bytes, read_len};
use codec::bytes::{Reader, put_i64_zigzag, put_varint, unzigzag};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of an entry that is pending, twice noted, about.
const PENDING_COST: usize = 96;
/// Bytes of a consumer besides its name, about.
const CONSUMER_COST: usize = 128;
/// On disk: a consumer that never got an entry.
const NEVER_ACTIVE: i64 = -1;

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug)]
pub struct Pending {
    /// To whom.
    pub consumer: Arc<[u8]>,
    /// When last, in milliseconds since the epoch.
    pub delivered_ms: i64,
    /// How often.
    pub count: u64,
}

/// Somebody who reads.
#[derive(Clone, Debug, Default)]
pub struct Consumer {
    /// When last heard of, in milliseconds since the epoch.
    pub seen_ms: i64,
    /// When it last got or claimed an entry; none if it never did.
    pub active_ms: Option<i64>,
    /// What it has not acknowledged.
    pub pending: BTreeSet<Id>,
}

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The number of the last entry that was delivered.
    pub last_id: Id,
    /// How many entries were read, if that is known.
    pub entries_read: Option<u64>,
    pending: BTreeMap<Id, Pending>,
    consumers: BTreeMap<Arc<[u8]>, Consumer>,
    names_size: usize,
}

impl Group {
    /// One that has read up to a number.
    pub fn new(last_id: Id, entries_read: Option<u64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// Bytes of memory, about.
    pub fn size(&self) -> usize {
        size_of::<Group>()
            + self.names_size
            + self.pending.len() * PENDING_COST
            + self.consumers.len() * CONSUMER_COST
    }

    /// What nobody has acknowledged.
    pub fn pending(&self) -> &BTreeMap<Id, Pending> {
        &self.pending
    }

    /// Who reads.
    pub fn consumers(&self) -> &BTreeMap<Arc<[u8]>, Consumer> {
        &self.consumers
    }

    /// The consumer of that name.
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(name)
    }

    /// Notes that a consumer was heard of, and makes it if it is new: returns whether it was.
    pub fn see(&mut self, name: &[u8], now_ms: i64) -> bool {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.seen_ms = now_ms;
            return false;
        }
        self.names_size += name.len();
        let consumer = Consumer { seen_ms: now_ms, ..Consumer::default() };
        self.consumers.insert(name.into(), consumer);
        true
    }

    /// Notes that a consumer got something.
    pub fn activate(&mut self, name: &[u8], now_ms: i64) {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.active_ms = Some(now_ms);
        }
    }

    /// Takes a consumer out with what it has not acknowledged: returns how much that was.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        self.names_size -= name.len();
        consumer.pending.iter().for_each(|id| {
            self.pending.remove(id);
        });
        Some(consumer.pending.len())
    }

    /// Makes an entry pending with a consumer, whoever had it. The consumer must be there.
    pub fn assign(&mut self, id: Id, name: &[u8], delivered_ms: i64, count: u64) {
        let Some((name, consumer)) = self.consumers.get_key_value(name) else { return };
        let name = Arc::clone(name);
        let is_its_own = consumer.pending.contains(&id);
        let pending = Pending { consumer: Arc::clone(&name), delivered_ms, count };
        let before = self.pending.insert(id, pending);
        if is_its_own {
            return;
        }
        if let Some(owner) = before.and_then(|one| self.consumers.get_mut(&one.consumer)) {
            owner.pending.remove(&id);
        }
        if let Some(consumer) = self.consumers.get_mut(&name) {
            consumer.pending.insert(id);
        }
    }

    /// Notes another delivery of what is pending.
    pub fn deliver_again(&mut self, id: Id, now_ms: i64) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.delivered_ms = now_ms;
            pending.count = pending.count.saturating_add(1);
        }
    }

    /// Takes out what is pending. Returns whether it was.
    pub fn acknowledge(&mut self, id: Id) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        true
    }

    /// Appends what [`Group::decode`] reads.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.last_id.put(out);
        put_varint(out, self.entries_read.map_or(0, |count| count.saturating_add(1)));
        put_varint(out, self.consumers.len() as u64);
        for (name, consumer) in &self.consumers {
            put_bytes(out, name);
            put_i64_zigzag(out, consumer.seen_ms);
            put_i64_zigzag(out, consumer.active_ms.unwrap_or(NEVER_ACTIVE));
            put_varint(out, consumer.pending.len() as u64);
            for id in &consumer.pending {
                id.put(out);
                let pending = self.pending.get(id);
                put_i64_zigzag(out, pending.map_or(0, |pending| pending.delivered_ms));
                put_varint(out, pending.map_or(0, |pending| pending.count));
            }
        }
    }

    /// Reads a group; the bytes may be anything.
    ///
    /// # Errors
    /// When they are none.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Group, codec::Error> {
        let last_id = Id::read(reader)?;
        let mut group = Group::new(last_id, reader.varint()?.checked_sub(1));
        for _ in 0..read_len(reader)? {
            let name = read_bytes(reader)?;
            let seen_ms = unzigzag(reader.varint()?);
            let active_ms = unzigzag(reader.varint()?);
            if !group.see(name, seen_ms) {
                return Err(reader.corrupt("a consumer twice"));
            }
            if active_ms != NEVER_ACTIVE {
                group.activate(name, active_ms);
            }
            for _ in 0..read_len(reader)? {
                let id = Id::read(reader)?;
                let delivered_ms = unzigzag(reader.varint()?);
                let count = reader.varint()?;
                if group.pending.contains_key(&id) {
                    return Err(reader.corrupt("an entry pending twice"));
                }
                group.assign(id, name, delivered_ms, count);
            }
        }
        Ok(group)
    }
}
