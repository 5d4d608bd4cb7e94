//! A hash: fields with values, some of which may expire.

use super::element::Element;
use super::entries::{Entries, Named};
use super::{Stored, boxed_variant, put_bytes, read_bytes, read_len};
use codec::bytes::{Reader, put_varint};
use std::collections::{BTreeSet, HashMap};

/// Fields of a hash that is called `listpack`, at most.
const LISTPACK_LEN_MAX: usize = 128;
/// The longest field and value of such a hash, in bytes.
const LISTPACK_SIZE_MAX: usize = 64;
/// Bytes that a field's expiry takes besides its name, twice: in a tree and in a table.
const EXPIRY_COST: usize = 96;

/// Fields that expire which are copied at a time.
const FROZEN_EXPIRIES_MAX: usize = 10_000;

/// A hash.
#[derive(Clone, Debug, Default)]
pub struct Hash {
    entries: Entries<Pair>,
    /// Bytes of fields and values on the heap.
    pair_size: usize,
    /// Whether it is too large for what Redis calls `listpack`, or was.
    is_table: bool,
    /// When fields expire, if any does.
    expiries: Option<Box<Expiries>>,
}

#[derive(Clone, Debug)]
struct Pair {
    field: Element,
    value: Element,
}

impl Named for Pair {
    #[inline]
    fn name(&self) -> &[u8] {
        self.field.bytes()
    }
}

impl Pair {
    fn heap_size(&self) -> usize {
        self.field.heap_size() + self.value.heap_size()
    }
}

/// A field and its value.
pub type FieldAndValue<'a> = (&'a [u8], &'a [u8]);

/// Times in milliseconds since the epoch.
#[derive(Clone, Debug, Default)]
struct Expiries {
    by_field: HashMap<Box<[u8]>, i64>,
    by_time: BTreeSet<(i64, Box<[u8]>)>,
    /// Bytes of the fields' names.
    name_size: usize,
    /// Expired fields that clients of a replica do not see. They stay among the others here, and come
    /// back for commands of the primary.
    hidden: Vec<Pair>,
    /// The time of the last one of those.
    hidden_until_ms: Option<i64>,
}

impl Hash {
    /// The latest time at which a field may expire, in milliseconds since the epoch: what the formats
    /// of Redis can say.
    pub const EXPIRY_MAX_MS: i64 = (1 << 48) - 1;
    /// The latest time that commands take, as in Redis, which keeps two bits free.
    pub const SET_EXPIRY_MAX_MS: i64 = Hash::EXPIRY_MAX_MS >> 2;

    /// Number of fields without hidden ones.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A field's value.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        let at = self.entries.find(field)?;
        self.entries.get(at).map(|pair| pair.value.bytes())
    }

    /// Sets a field, and leaves when it expires as it is. Returns whether it is new.
    pub fn insert(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.is_table |= LISTPACK_SIZE_MAX < field.len().max(value.len());
        let value = Element::new(value);
        let found = self.entries.find(field);
        if let Some(pair) = found.and_then(|at| self.entries.get_mut(at)) {
            self.pair_size = self.pair_size + value.heap_size() - pair.value.heap_size();
            pair.value = value;
            return false;
        }
        let pair = Pair { field: Element::new(field), value };
        self.pair_size += pair.heap_size();
        self.entries.push(pair);
        self.is_table |= LISTPACK_LEN_MAX < self.len();
        true
    }

    /// Takes a field out. Returns whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let Some(at) = self.entries.find(field) else { return false };
        let pair = self.entries.swap_remove(at);
        self.pair_size -= pair.heap_size();
        self.set_expiry(field, None);
        true
    }

    /// The field and value of that number.
    pub fn get_at(&self, at: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(at).map(|pair| (pair.field.bytes(), pair.value.bytes()))
    }

    /// All fields and values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|pair| (pair.field.bytes(), pair.value.bytes()))
    }

    /// Some fields with their values from a cursor on, and where to go on; see [`Entries::scan`].
    /// Small hashes are given at once.
    pub fn scan(&self, cursor: u64, count: usize) -> (u64, Vec<FieldAndValue<'_>>) {
        if !self.is_table {
            return (0, self.iter().collect());
        }
        let (next, found) = self.entries.scan(cursor, count);
        (next, found.into_iter().map(|pair| (pair.field.bytes(), pair.value.bytes())).collect())
    }

    // ---- expiry of fields ----

    /// When a field expires, in milliseconds since the epoch, if ever.
    pub fn expiry_of(&self, field: &[u8]) -> Option<i64> {
        self.expiries.as_ref()?.by_field.get(field).copied()
    }

    /// When fields expire, in milliseconds since the epoch, with the fields, the first one first.
    pub fn expiries(&self) -> impl Iterator<Item = (i64, &[u8])> {
        let by_time = self.expiries.iter().flat_map(|expiries| &expiries.by_time);
        by_time.map(|(at, field)| (*at, &**field))
    }

    /// Bytes of memory that the expiry of a field takes, about.
    pub fn expiry_cost(field: &[u8]) -> usize {
        EXPIRY_COST + 2 * field.len()
    }

    /// Sets when a field expires that is there, or that it does not.
    pub fn set_expiry(&mut self, field: &[u8], expire_ms: Option<i64>) {
        if self.expiries.is_none() && expire_ms.is_none() {
            return;
        }
        let expiries = self.expiries.get_or_insert_default();
        if let Some((name, before)) = expiries.by_field.remove_entry(field) {
            expiries.name_size -= name.len();
            expiries.by_time.remove(&(before, name));
        }
        if let Some(at) = expire_ms {
            let name: Box<[u8]> = field.into();
            expiries.name_size += name.len();
            expiries.by_time.insert((at, name.clone()));
            expiries.by_field.insert(name, at);
        }
        if expiries.by_field.is_empty() {
            self.expiries = None;
        }
    }

    /// When the first field expires, if any does.
    #[inline]
    pub fn next_expiry(&self) -> Option<i64> {
        self.expiries.as_ref()?.by_time.first().map(|(at, _)| *at)
    }

    /// Whether a field has expired by then, or is hidden.
    #[inline]
    pub fn has_due_fields(&self, now_ms: i64) -> bool {
        self.expiries.as_ref().is_some_and(|expiries| {
            let first = expiries.by_time.first();
            first.is_some_and(|(at, _)| *at <= now_ms) || !expiries.hidden.is_empty()
        })
    }

    /// Hides the fields that have expired by then. They stay in all that is written of the hash.
    pub fn hide_expired(&mut self, now_ms: i64) {
        let Some(expiries) = self.expiries.as_deref_mut() else { return };
        let from = expiries.hidden_until_ms.map_or(i64::MIN, |until| until.saturating_add(1));
        let end = now_ms.saturating_add(1);
        if end <= from {
            return;
        }
        for (_, field) in expiries.by_time.range((from, Box::default())..(end, Box::default())) {
            if let Some(at) = self.entries.find(field) {
                expiries.hidden.push(self.entries.swap_remove(at));
            }
        }
        expiries.hidden_until_ms = Some(now_ms);
    }

    /// Shows the fields again that are hidden.
    pub fn show_hidden(&mut self) {
        let Some(expiries) = self.expiries.as_deref_mut() else { return };
        expiries.hidden_until_ms = None;
        for pair in std::mem::take(&mut expiries.hidden) {
            self.entries.push(pair);
        }
    }

    /// All fields and values, hidden or not, in no order: what is kept of the hash.
    pub fn stored(&self) -> impl Iterator<Item = FieldAndValue<'_>> {
        let hidden = self.expiries.iter().flat_map(|expiries| &expiries.hidden);
        self.entries.iter().chain(hidden).map(|pair| (pair.field.bytes(), pair.value.bytes()))
    }

    /// Number of fields, hidden ones included.
    pub fn stored_len(&self) -> usize {
        let hidden = self.expiries.as_ref().map_or(0, |expiries| expiries.hidden.len());
        self.len() + hidden
    }

    /// Takes out the fields that have expired, and returns them.
    pub fn take_expired(&mut self, now_ms: i64) -> Vec<Box<[u8]>> {
        self.show_hidden();
        let mut expired = Vec::new();
        loop {
            let first = self.expiries.as_ref().and_then(|expiries| expiries.by_time.first());
            let Some((_, field)) = first.filter(|(at, _)| *at <= now_ms) else { break };
            let field = field.clone();
            self.remove(&field);
            expired.push(field);
        }
        expired
    }

    /// It as it is now, for who encodes it later; see [`Entries::freeze`]. None where it has very
    /// many fields that expire: their times are copied one by one.
    pub fn freeze(&self) -> Option<Hash> {
        let expiring = self.expiries.as_ref().map_or(0, |expiries| expiries.by_field.len());
        if FROZEN_EXPIRIES_MAX < expiring {
            return None;
        }
        let (pair_size, is_table) = (self.pair_size, self.is_table);
        let entries = self.entries.freeze()?;
        Some(Hash { entries, pair_size, is_table, expiries: self.expiries.clone() })
    }

    /// How it is kept, in the words of `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        match (self.is_table, self.expiries.is_some()) {
            (true, _) => "hashtable",
            (false, true) => "listpackex",
            (false, false) => "listpack",
        }
    }
}

/// ```text
/// count varint │ (size varint │ field │ size varint │ value) each
///              │ count varint │ (size varint │ field │ expiry varint) each that expires
/// ```
impl Stored for Hash {
    boxed_variant!(Hash);

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.stored_len() as u64);
        self.stored().for_each(|(field, value)| {
            put_bytes(out, field);
            put_bytes(out, value);
        });
        let expiries = self.expiries.as_deref();
        put_varint(out, expiries.map_or(0, |expiries| expiries.by_time.len() as u64));
        for (at, field) in expiries.into_iter().flat_map(|expiries| &expiries.by_time) {
            put_bytes(out, field);
            put_varint(out, u64::try_from(*at).unwrap_or(0));
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Hash, codec::Error> {
        let len = read_len(reader)?;
        let mut hash = Hash { entries: Entries::with_capacity(len), ..Hash::default() };
        for _ in 0..len {
            let (field, value) = (read_bytes(reader)?, read_bytes(reader)?);
            if !hash.insert(field, value) {
                return Err(reader.corrupt("a field twice"));
            }
        }
        for _ in 0..read_len(reader)? {
            let field = read_bytes(reader)?;
            let at = reader.varint()?;
            let at = i64::try_from(at).map_err(|_| reader.corrupt("a time beyond all"))?;
            if hash.entries.find(field).is_none() {
                return Err(reader.corrupt("the expiry of no field"));
            }
            hash.set_expiry(field, Some(at));
        }
        Ok(hash)
    }

    fn heap_size(&self) -> usize {
        let expiries = self.expiries.as_deref();
        let expiries = expiries.map_or(0, |one| {
            let hidden = one.hidden.len() * size_of::<Pair>();
            one.by_field.len() * EXPIRY_COST + 2 * one.name_size + hidden
        });
        size_of::<Hash>() + self.entries.heap_size() + self.pair_size + expiries
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn what_is_encoded_comes_back() {
        for len in [0usize, 1, 16, 17, 300] {
            let mut hash = Hash::default();
            for n in 0..len {
                let field = n.to_string();
                assert!(hash.insert(field.as_bytes(), "v".repeat(n % 70).as_bytes()));
                if n % 3 == 0 {
                    hash.set_expiry(field.as_bytes(), Some(1000 - n as i64));
                }
            }
            let mut encoded = Vec::new();
            hash.clone().into_value().encode(&mut encoded);
            let decoded = Value::decode(&encoded).expect("own encoding");
            let decoded = Hash::of(&decoded).expect("a hash");
            assert_eq!(decoded.len(), len);
            for (field, value) in hash.iter() {
                assert_eq!(decoded.get(field), Some(value));
                assert_eq!(decoded.expiry_of(field), hash.expiry_of(field));
            }
            assert_eq!(decoded.heap_size(), decoded.clone().heap_size());
            for cut in 0..encoded.len() {
                assert!(Value::decode(&encoded[..cut]).is_err());
            }
        }
        assert!(Value::decode(&[4, 0, 1, 1, b'a', 5]).is_err());
    }

    #[test]
    fn fields_expire_in_order() {
        let mut hash = Hash::default();
        for (field, at) in [("a", 30), ("b", 10), ("c", 20)] {
            hash.insert(field.as_bytes(), b"v");
            hash.set_expiry(field.as_bytes(), Some(at));
        }
        hash.insert(b"stays", b"v");
        assert_eq!((hash.next_expiry(), hash.encoding()), (Some(10), "listpackex"));
        hash.set_expiry(b"a", Some(40));
        let expired: Vec<Box<[u8]>> = hash.take_expired(25);
        assert_eq!(expired, [Box::from(*b"b"), Box::from(*b"c")]);
        assert_eq!((hash.len(), hash.next_expiry()), (2, Some(40)));
        hash.set_expiry(b"a", None);
        assert_eq!((hash.next_expiry(), hash.encoding()), (None, "listpack"));
    }
}
