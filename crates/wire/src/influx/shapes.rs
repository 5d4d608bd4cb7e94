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
use super::texts::TEXT_SUFFIX;
use crate::narrow::to_u32;
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
    /// Whether a field is named `time`, which is reported.
    pub has_time: bool,
    /// Whether a field has strings.
    pub has_texts: bool,
    /// The list that came after this one the last time.
    pub follower: u32,
}

/// All field lists of a request.
pub(super) struct Shapes<'a> {
    hasher: &'a KeyHasher,
    keys: &'a InfluxKeys,
    /// In order of appearance.
    known: Vec<RawShape>,
    /// By the hash of `raw`.
    by_hash: HashMap<u128, u32>,
    /// Names in all lists.
    field_count: usize,
}

impl<'a> Shapes<'a> {
    pub fn new(hasher: &'a KeyHasher, keys: &'a InfluxKeys) -> Shapes<'a> {
        Shapes { hasher, keys, known: Vec::new(), by_hash: HashMap::new(), field_count: 0 }
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
        let idx = to_u32(self.known.len());
        created.follower = idx;
        created.shape = to_u32(shapes.len());
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
            None => name.into(),
        });
        start = end as usize;
    }
    let mut last: HashMap<&str, usize> = HashMap::with_capacity(names.len());
    for (idx, name) in names.iter().enumerate() {
        last.insert(name, idx);
    }
    let has_time = last.remove("time").is_some();
    let mut kept: Vec<u32> = last.values().map(|idx| to_u32(*idx)).collect();
    kept.sort_unstable();
    let fields: Vec<Box<str>> =
        kept.iter().filter_map(|idx| names.get(*idx as usize).cloned()).collect();
    let kept = (kept.len() < names.len()).then(|| kept.into_boxed_slice());
    let (raw, ends) = (raw.to_vec(), ends.to_vec());
    let shape =
        RawShape { raw, ends, shape: 0, hash: 0, kept, has_time, has_texts, follower: NONE };
    Ok((fields, shape))
}
