//! A sorted set: members with scores, found by their bytes and by their rank. A small one is one piece
//! of memory, a large one a table of members with an order beside it.
//!
//! ```text
//! small    0 u8 │ members varint │ (score f64 │ size varint │ bytes) each, in order
//! large    1 u8 │ places varint │ (0 │ size + 1 varint │ bytes │ score f64) each
//! ```

mod members;
mod order;
mod packed;

use super::{Stored, boxed_variant, read_bytes, read_len};
use codec::bytes::{Reader, put_u64, put_varint};
pub use members::compare_scores;
use members::{Item, Members};
use order::Order;
use packed::{PACKED_LEN_MAX, PACKED_MEMBER_SIZE_MAX, Packed};
use std::ops::Range;

const TAG_PACKED: u8 = 0;
const TAG_LARGE: u8 = 1;

/// A sorted set. Its scores are numbers all.
#[derive(Clone, Debug)]
pub struct Zset(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Packed(Packed),
    Large(Box<Large>),
}

#[derive(Clone, Debug)]
struct Large {
    members: Members,
    order: Order,
}

impl Default for Zset {
    fn default() -> Zset {
        Zset(Repr::Packed(Packed::default()))
    }
}

/// What became of a member that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// Its score is another one.
    Moved,
    /// It was so before.
    None,
}

impl Zset {
    /// Of members with their scores, in any order; of those that come twice the last one counts.
    pub fn from_scores<'a>(scores: impl IntoIterator<Item = (&'a [u8], f64)>) -> Zset {
        let mut zset = Zset::default();
        let mut large: Option<Members> = None;
        for (member, score) in scores {
            // The order of many is made at once.
            if let Some(members) = &mut large {
                match members.find(member) {
                    Some(item) => members.set_score(item.place, score),
                    None => {
                        members.add(member, score);
                    }
                }
                continue;
            }
            zset.insert(member, score);
            if let Repr::Large(inner) = &mut zset.0 {
                large = Some(std::mem::take(&mut inner.members));
            }
        }
        match large {
            Some(members) => Zset(Repr::Large(Box::new(Large::of(members)))),
            None => zset,
        }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => packed.len(),
            Repr::Large(large) => large.members.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// It as it is now, for who encodes it later; see `Members::freeze`.
    pub fn freeze(&self) -> Option<Zset> {
        let Repr::Large(large) = &self.0 else { return None };
        let (members, order) = (large.members.freeze()?, Order::build(&[]));
        Some(Zset(Repr::Large(Box::new(Large { members, order }))))
    }

    /// How it is kept, in the words of `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Repr::Packed(_) => "listpack",
            Repr::Large(_) => "skiplist",
        }
    }

    /// The score of a member.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.0 {
            Repr::Packed(packed) => packed.find(member).map(|found| found.score),
            Repr::Large(large) => large.members.find(member).map(|item| item.score),
        }
    }

    /// Sets the score of a member, which is added if it is not there.
    pub fn insert(&mut self, member: &[u8], score: f64) -> Change {
        assert!(!score.is_nan(), "commands refuse what is not a number");
        match &mut self.0 {
            Repr::Packed(packed) => {
                let before = packed.find(member).map(|found| found.score);
                match before {
                    Some(before) if before == score => return Change::None,
                    Some(_) => {
                        packed.remove(member);
                    }
                    None if PACKED_LEN_MAX <= packed.len()
                        || PACKED_MEMBER_SIZE_MAX < member.len() =>
                    {
                        self.enlarge();
                        return self.insert(member, score);
                    }
                    None => {}
                }
                packed.add(member, score);
                if before.is_some() { Change::Moved } else { Change::Added }
            }
            Repr::Large(large) => large.insert(member, score),
        }
    }

    fn enlarge(&mut self) {
        let Repr::Packed(packed) = &self.0 else { return };
        let mut members = Members::default();
        for found in packed.iter() {
            members.add(found.member, found.score);
        }
        self.0 = Repr::Large(Box::new(Large::of(members)));
    }

    /// Takes a member out. Returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.0 {
            Repr::Packed(packed) => packed.remove(member),
            Repr::Large(large) => {
                // The order is told first: it compares members, who must be in their places.
                let item = large.members.find(member)?;
                large.order.remove(item, &large.members);
                large.members.remove(member);
                Some(item.score)
            }
        }
    }

    /// Takes the members of those ranks out. Returns them, in order.
    pub fn remove_ranks(&mut self, ranks: Range<usize>) -> Vec<(Vec<u8>, f64)> {
        let mut removed = Vec::new();
        self.each(ranks, false, |member, score| removed.push((member.to_vec(), score)));
        for (member, _) in &removed {
            self.remove(member);
        }
        removed
    }

    /// How many members are before one, and its score.
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match &self.0 {
            Repr::Packed(packed) => packed.find(member).map(|found| (found.rank, found.score)),
            Repr::Large(large) => {
                let item = large.members.find(member)?;
                let is_before = |other| large.members.compare(other, item).is_lt();
                Some((large.order.count_while(is_before), item.score))
            }
        }
    }

    /// How many members there are before the first for which `is_before` does not hold, which holds
    /// for none after it.
    pub fn count_while(&self, is_before: impl Fn(&[u8], f64) -> bool) -> usize {
        match &self.0 {
            Repr::Packed(packed) => {
                packed.iter().take_while(|found| is_before(found.member, found.score)).count()
            }
            Repr::Large(large) => {
                let Large { members, order } = &**large;
                order.count_while(|item| is_before(members.member(item.place), item.score))
            }
        }
    }

    /// How many members have scores for which `is_before` holds; the same without the members.
    pub fn count_scores_while(&self, is_before: impl Fn(f64) -> bool) -> usize {
        match &self.0 {
            Repr::Packed(packed) => {
                packed.iter().take_while(|found| is_before(found.score)).count()
            }
            Repr::Large(large) => large.order.count_while(|item| is_before(item.score)),
        }
    }

    /// Calls with the members of those ranks in order, or from the last to the first.
    pub fn each(&self, ranks: Range<usize>, is_reverse: bool, mut with: impl FnMut(&[u8], f64)) {
        let ranks = ranks.start..ranks.end.min(self.len());
        let large = match &self.0 {
            Repr::Packed(packed) => return packed.each(ranks, is_reverse, with),
            Repr::Large(large) => large,
        };
        let Large { members, order } = &**large;
        let mut show = |item: &Item| with(members.member(item.place), item.score);
        let Range { mut start, mut end } = ranks;
        while start < end {
            let at = if is_reverse { end - 1 } else { start };
            let Some((leaf, at)) = order.leaf_at(at) else { return };
            if is_reverse {
                let count = (at + 1).min(end - start);
                leaf[at + 1 - count..=at].iter().rev().for_each(&mut show);
                end -= count;
            } else {
                let count = (leaf.len() - at).min(end - start);
                leaf[at..at + count].iter().for_each(&mut show);
                start += count;
            }
        }
    }

    /// The member of that rank.
    pub fn at(&self, rank: usize) -> Option<(Vec<u8>, f64)> {
        let mut found = None;
        self.each(rank..rank.saturating_add(1), false, |member, score| {
            found = Some((member.to_vec(), score));
        });
        found
    }

    /// Calls with some members from a cursor on, about `count`. Returns where to go on, 0 at the end.
    /// Whoever is there throughout is seen.
    pub fn scan(&self, cursor: u64, count: usize, mut with: impl FnMut(&[u8], f64)) -> u64 {
        let large = match &self.0 {
            Repr::Packed(packed) => {
                packed.iter().for_each(|found| with(found.member, found.score));
                return 0;
            }
            Repr::Large(large) => large,
        };
        let start = usize::try_from(cursor).unwrap_or(usize::MAX);
        let places = large.members.places_from(start);
        let left = places.len();
        places.take(count).flatten().for_each(|(member, score)| with(member, score));
        if left <= count { 0 } else { cursor + count as u64 }
    }
}

impl Large {
    fn of(members: Members) -> Large {
        let order = Order::build(&members.sorted());
        Large { members, order }
    }

    fn insert(&mut self, member: &[u8], score: f64) -> Change {
        let Large { members, order } = self;
        match members.find(member) {
            Some(before) if compare_scores(before.score, score).is_eq() => Change::None,
            Some(before) => {
                order.remove(before, members);
                members.set_score(before.place, score);
                order.insert(Item { score, place: before.place }, members);
                Change::Moved
            }
            None => {
                let item = members.add(member, score);
                order.insert(item, members);
                Change::Added
            }
        }
    }
}

impl Stored for Zset {
    boxed_variant!(Zset);

    fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Packed(packed) => {
                out.push(TAG_PACKED);
                put_varint(out, packed.len() as u64);
                for found in packed.iter() {
                    put_u64(out, found.score.to_bits());
                    super::put_bytes(out, found.member);
                }
            }
            Repr::Large(large) => {
                out.push(TAG_LARGE);
                let places = large.members.places_from(0);
                put_varint(out, places.len() as u64);
                for place in places {
                    let Some((member, score)) = place else {
                        out.push(0);
                        continue;
                    };
                    put_varint(out, member.len() as u64 + 1);
                    out.extend_from_slice(member);
                    put_u64(out, score.to_bits());
                }
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Zset, codec::Error> {
        match reader.u8()? {
            TAG_PACKED => decode_packed(reader),
            TAG_LARGE => decode_large(reader),
            _ => Err(reader.corrupt("unknown kind of sorted set")),
        }
    }

    fn heap_size(&self) -> usize {
        match &self.0 {
            Repr::Packed(packed) => size_of::<Zset>() + packed.heap_size(),
            Repr::Large(large) => {
                size_of::<Zset>()
                    + size_of::<Large>()
                    + large.members.heap_size()
                    + large.order.heap_size()
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn read_score(reader: &mut Reader<'_>) -> Result<f64, codec::Error> {
    let score = f64::from_bits(reader.u64()?);
    if score.is_nan() { Err(reader.corrupt("a score that is not a number")) } else { Ok(score) }
}

fn decode_packed(reader: &mut Reader<'_>) -> Result<Zset, codec::Error> {
    let mut zset = Zset::default();
    for _ in 0..read_len(reader)? {
        let score = read_score(reader)?;
        if zset.insert(read_bytes(reader)?, score) != Change::Added {
            return Err(reader.corrupt("a member twice"));
        }
    }
    Ok(zset)
}

fn decode_large(reader: &mut Reader<'_>) -> Result<Zset, codec::Error> {
    let mut members = Members::default();
    for _ in 0..read_len(reader)? {
        let Some(size) = read_len(reader)?.checked_sub(1) else {
            members.restore(None);
            continue;
        };
        let member = reader.slice(size)?;
        let score = read_score(reader)?;
        if !members.restore(Some((member, score))) {
            return Err(reader.corrupt("a member twice"));
        }
    }
    Ok(Zset(Repr::Large(Box::new(Large::of(members)))))
}

#[cfg(test)]
mod tests;
