//! Field lists of a request: recognised by comparing raw bytes, unescaped and hashed once each.
//!
//! ```text
//! line:      usage_user=58i,usage_system=2i          ends
//! raw:       usage_user=usage_system=                [11, 24]     one list
//! predicted: the list that followed this one last time
//! ```
//!
//! The name of a field of strings stands there with the string's quote, `state="`: so no number is
//! taken for one, nor the other way round.

use super::fault::Fault;
use super::keys::{InfluxKeys, TAG_ESCAPES};
use super::long::LONG_SUFFIX;
use super::texts::TEXT_SUFFIX;
use crate::narrow::body_offset;
use model::{KeyHasher, Shape};
use std::collections::HashMap;

/// No list yet.
pub(super) const NONE: u32 = u32::MAX;

/// The numeric fields of a kind of line, as they stand.
pub(super) struct RawShape {
    /// The names, each with its `=`.
    pub raw: Vec<u8>,
    /// Where each name ends in `raw`.
    pub ends: Vec<u32>,
    /// Index into the batch's shapes; meaningless when nothing is kept.
    pub shape: u32,
    /// Hash of that shape.
    pub hash: u64,
    /// Which values are kept, when not all are: of equal names the last, none named `time`.
    pub kept: Option<Box<[u32]>>,
    /// Whether a field has strings.
    pub has_texts: bool,
    /// The list that came after this one the last time.
    pub follower: u32,
}

impl RawShape {
    /// The name at `place`, as it stands, with its `=`.
    fn raw_name(&self, place: u32) -> Option<&[u8]> {
        let end = *self.ends.get(place as usize)? as usize;
        let start = match (place as usize).checked_sub(1) {
            Some(before) => *self.ends.get(before)? as usize,
            None => 0,
        };
        self.raw.get(start..end)
    }

    /// Whether the value at `place` is stored.
    pub fn keeps(&self, place: u32) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.binary_search(&place).is_ok())
    }
}

/// A list of fields of a batch.
#[derive(Clone, Copy)]
pub(super) struct KnownShape {
    /// Index into the batch's shapes.
    pub shape: u32,
    pub hash: u64,
}

/// All field lists of a request.
pub(super) struct Shapes<'a> {
    hasher: &'a KeyHasher,
    keys: &'a InfluxKeys,
    /// In order of appearance.
    known: Vec<RawShape>,
    /// By the hash of `raw`.
    by_hash: HashMap<u128, u32>,
    /// Lists of low bits, by the list that they belong to and the places there.
    of_longs: HashMap<(u32, Vec<u32>), KnownShape>,
    /// Names in all lists.
    field_count: usize,
}

impl<'a> Shapes<'a> {
    pub fn new(hasher: &'a KeyHasher, keys: &'a InfluxKeys) -> Shapes<'a> {
        let (by_hash, of_longs) = (HashMap::new(), HashMap::new());
        Shapes { hasher, keys, known: Vec::new(), by_hash, of_longs, field_count: 0 }
    }

    /// Names in all lists so far.
    pub fn field_count(&self) -> usize {
        self.field_count
    }

    pub fn get(&self, idx: u32) -> Option<&RawShape> {
        self.known.get(idx as usize)
    }

    /// Remembers that `next` came after `previous`.
    pub fn follow(&mut self, previous: u32, next: u32) {
        if let Some(shape) = self.known.get_mut(previous as usize) {
            shape.follower = next;
        }
    }

    /// The list with these names, new or known.
    pub fn find(
        &mut self,
        raw: &[u8],
        ends: &[u32],
        shapes: &mut Vec<Shape>,
    ) -> Result<u32, Fault> {
        let hash = self.hasher.hash(raw, 0);
        if let Some(&idx) = self.by_hash.get(&hash) {
            return Ok(idx);
        }
        let (fields, mut created) = describe(self.keys, raw, ends)?;
        let idx = body_offset(self.known.len());
        created.follower = idx;
        created.shape = body_offset(shapes.len());
        if !fields.is_empty() {
            created.hash = self.hasher.shape(self.keys.context(), &fields);
            shapes.push(Shape { fields, hash: created.hash });
        }
        self.field_count += ends.len();
        self.known.push(created);
        self.by_hash.insert(hash, idx);
        Ok(idx)
    }
}

impl Shapes<'_> {
    /// The list of the low bits of the fields at these places of a known list.
    pub fn of_longs(
        &mut self,
        idx: u32,
        places: Vec<u32>,
        shapes: &mut Vec<Shape>,
    ) -> Result<KnownShape, Fault> {
        let key = (idx, places);
        if let Some(&known) = self.of_longs.get(&key) {
            return Ok(known);
        }
        let mut fields: Vec<Box<str>> = Vec::with_capacity(key.1.len());
        let mut buffer = String::new();
        for place in &key.1 {
            let raw = self.get(idx).and_then(|list| list.raw_name(*place)).unwrap_or_default();
            let name = raw.strip_suffix(b"=").unwrap_or_default();
            let name = self.keys.unescape(name, TAG_ESCAPES, &mut buffer);
            let name = name.map_err(|_| Fault::InvalidUtf8)?;
            fields.push(format!("{name}{LONG_SUFFIX}").into());
        }
        self.field_count += fields.len();
        let known = KnownShape {
            shape: body_offset(shapes.len()),
            hash: self.hasher.shape(self.keys.context(), &fields),
        };
        shapes.push(Shape { fields, hash: known.hash });
        self.of_longs.insert(key, known);
        Ok(known)
    }
}

/// Unescapes the names and decides which are kept.
fn describe(
    keys: &InfluxKeys,
    raw: &[u8],
    ends: &[u32],
) -> Result<(Vec<Box<str>>, RawShape), Fault> {
    let is_kept = keys.texts().is_some();
    let mut has_texts = false;
    let mut names: Vec<Box<str>> = Vec::with_capacity(ends.len());
    let mut start = 0;
    let mut buffer = String::new();
    for &end in ends {
        let written = raw.get(start..end as usize).unwrap_or_default();
        let of_text = written.strip_suffix(b"=\"");
        has_texts |= of_text.is_some();
        let name = of_text.or(written.strip_suffix(b"=")).unwrap_or_default();
        let name = keys.unescape(name, TAG_ESCAPES, &mut buffer);
        let name = name.map_err(|_| Fault::InvalidUtf8)?;
        names.push(match of_text {
            Some(_) => format!("{name}{TEXT_SUFFIX}").into(),
            None if is_kept && name.ends_with(TEXT_SUFFIX) => return Err(Fault::ReservedName),
            None if keys.keeps_longs() && name.ends_with(LONG_SUFFIX) => {
                return Err(Fault::ReservedForLongs);
            }
            None => name.into(),
        });
        start = end as usize;
    }
    let mut last: HashMap<&str, usize> = HashMap::with_capacity(names.len());
    for (idx, name) in names.iter().enumerate() {
        // A string and a number of one name are one field in a line.
        let of_text = name.strip_suffix(TEXT_SUFFIX).filter(|_| has_texts);
        last.insert(of_text.unwrap_or(name), idx);
    }
    last.retain(|name, _| *name != "time");
    let mut kept: Vec<u32> = last.values().map(|idx| body_offset(*idx)).collect();
    kept.sort_unstable();
    let fields: Vec<Box<str>> =
        kept.iter().filter_map(|idx| names.get(*idx as usize).cloned()).collect();
    let kept = (kept.len() < names.len()).then(|| kept.into_boxed_slice());
    let (raw, ends) = (raw.to_vec(), ends.to_vec());
    let shape = RawShape { raw, ends, shape: 0, hash: 0, kept, has_texts, follower: NONE };
    Ok((fields, shape))
}
