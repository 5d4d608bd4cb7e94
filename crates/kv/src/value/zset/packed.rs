//! A small sorted set: its members in order, one behind the other in one piece of memory.
//!
//! ```text
//! member    score f64 │ size u8 │ bytes
//! ```

use super::members::compare_scores;
use std::cmp::Ordering;
use std::ops::Range;

/// Members, at most.
pub const PACKED_LEN_MAX: usize = 128;
/// Bytes of a member, at most.
pub const PACKED_MEMBER_SIZE_MAX: usize = 64;
/// Bytes of a member besides its own.
const HEAD_SIZE: usize = 9;

/// Members in order.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    bytes: Vec<u8>,
    len: usize,
}

/// A member, where it is and how it is ranked.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its bytes.
    pub member: &'a [u8],
    /// Its score.
    pub score: f64,
    /// How many are before it.
    pub rank: usize,
    offset: usize,
}

impl Packed {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory.
    pub fn heap_size(&self) -> usize {
        self.bytes.capacity()
    }

    /// All members in order.
    pub fn iter(&self) -> impl Iterator<Item = Found<'_>> {
        let mut offset = 0;
        (0..self.len).map_while(move |rank| {
            let found = self.at(offset, rank)?;
            offset += HEAD_SIZE + found.member.len();
            Some(found)
        })
    }

    fn at(&self, offset: usize, rank: usize) -> Option<Found<'_>> {
        let (score, rest) = self.bytes.get(offset..)?.split_first_chunk()?;
        let (size, rest) = rest.split_first()?;
        let member = rest.get(..usize::from(*size))?;
        Some(Found { member, score: f64::from_le_bytes(*score), rank, offset })
    }

    /// A member.
    pub fn find(&self, member: &[u8]) -> Option<Found<'_>> {
        self.iter().find(|found| found.member == member)
    }

    /// Adds a member that is not there and not too long, while there are not too many.
    pub fn add(&mut self, member: &[u8], score: f64) {
        // Zero has no sign here, as clients of Redis see it in small ones.
        let score = score + 0.0;
        let is_before = |found: &Found<'_>| {
            compare_scores(found.score, score).then_with(|| found.member.cmp(member))
                == Ordering::Less
        };
        let after = self.iter().find(|found| !is_before(found));
        let offset = after.map_or(self.bytes.len(), |found| found.offset);
        let size = u8::try_from(member.len()).unwrap_or(u8::MAX);
        let member = &member[..usize::from(size)];
        let head = score.to_le_bytes().into_iter().chain([size]);
        self.bytes.splice(offset..offset, head.chain(member.iter().copied()));
        self.len += 1;
    }

    /// Takes a member out that [`Packed::find`] found.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let Found { offset, score, .. } = self.find(member)?;
        self.bytes.drain(offset..offset + HEAD_SIZE + member.len());
        self.len -= 1;
        Some(score)
    }

    /// Calls with the members of those ranks.
    pub fn each(&self, ranks: Range<usize>, is_reverse: bool, mut with: impl FnMut(&[u8], f64)) {
        let shown = self.iter().skip(ranks.start).take(ranks.len());
        if !is_reverse {
            shown.for_each(|found| with(found.member, found.score));
            return;
        }
        let mut offsets = [0; PACKED_LEN_MAX];
        let mut count = 0;
        for (found, offset) in shown.zip(&mut offsets) {
            *offset = found.offset;
            count += 1;
        }
        for offset in offsets[..count].iter().rev() {
            if let Some(found) = self.at(*offset, 0) {
                with(found.member, found.score);
            }
        }
    }
}
