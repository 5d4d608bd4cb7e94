//! Which ids of a dictionary's space satisfy the matchers of one label.

use super::dictionary::Dictionary;
use crate::error::Result;
use crate::interrupt::Pace;
use crate::matcher::pattern::Pattern;
use crate::matcher::{CompiledMatcher, LabelMatchers};

/// A set of ids of one space.
pub(super) enum Ids {
    All,
    None,
    One(u32),
    Except(u32),
    Bits(IdBits),
}

/// A set of ids, one bit each. Ids beyond the last word are not in the set.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdBits {
    words: Vec<u64>,
}

impl IdBits {
    /// No id, with room for those below `count`.
    pub(crate) fn with_room_for(count: u32) -> IdBits {
        IdBits { words: vec![0; (count as usize).div_ceil(64)] }
    }

    /// Every id below `count`.
    fn all(count: u32) -> IdBits {
        let mut words = vec![u64::MAX; (count as usize).div_ceil(64)];
        if let Some(last) = words.last_mut().filter(|_| !count.is_multiple_of(64)) {
            *last = (1 << (count % 64)) - 1;
        }
        IdBits { words }
    }

    #[inline]
    pub(crate) fn insert(&mut self, id: u32) {
        let word = id as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (id % 64);
    }

    #[inline]
    fn remove(&mut self, id: u32) {
        if let Some(word) = self.words.get_mut(id as usize / 64) {
            *word &= !(1 << (id % 64));
        }
    }

    #[inline]
    fn contains(&self, id: u32) -> bool {
        self.words.get(id as usize / 64).is_some_and(|word| (word >> (id % 64)) & 1 == 1)
    }

    fn intersect(&mut self, other: &IdBits) {
        self.words.truncate(other.words.len());
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }
}

impl Ids {
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Ids::None)
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        match self {
            Ids::All => true,
            Ids::None => false,
            Ids::One(one) => id == *one,
            Ids::Except(one) => id != *one,
            Ids::Bits(bits) => bits.contains(id),
        }
    }

    /// The ids of the strings of a space that satisfy all matchers of a label.
    pub(super) fn of(
        label: LabelMatchers<'_>,
        dictionary: &Dictionary,
        space: u32,
        pace: &mut Pace<'_>,
    ) -> Result<Ids> {
        let count = dictionary.count(space);
        let is_looked_up = |one: &CompiledMatcher| one.lookups().is_some_and(|n| n < count.max(2));
        if let [one] = label.all
            && is_looked_up(one)
        {
            return Ok(one_looked_up(one, dictionary, space));
        }
        let looked_up = label.all.iter().filter(|one| is_looked_up(one));
        let looked_up = Ids::looked_up(looked_up, dictionary, space);
        let tried: Vec<&CompiledMatcher> =
            label.all.iter().filter(|one| !is_looked_up(one)).collect();
        if tried.is_empty() {
            return Ok(looked_up);
        }
        let is_match = |id: u32| {
            let value = dictionary.get(space, id);
            tried.iter().all(|matcher| matcher.matches(value))
        };
        match looked_up {
            Ids::None => Ok(Ids::None),
            Ids::One(id) => Ok(if is_match(id) { Ids::One(id) } else { Ids::None }),
            _ => {
                let mut bits = IdBits::with_room_for(count);
                for (word, first) in bits.words.iter_mut().zip((0..).step_by(64)) {
                    let ids = first..count.min(first + 64);
                    pace.add((ids.len() * tried.len()) as u64)?;
                    for id in ids {
                        if looked_up.contains(id) && is_match(id) {
                            *word |= 1 << (id % 64);
                        }
                    }
                }
                Ok(Ids::from_bits(bits, count))
            }
        }
    }

    /// The ids of the strings that satisfy all these matchers, each of which names its values.
    pub(super) fn looked_up<'a>(
        matchers: impl Iterator<Item = &'a CompiledMatcher>,
        dictionary: &Dictionary,
        space: u32,
    ) -> Ids {
        let count = dictionary.count(space);
        matchers.fold(Ids::All, |ids, matcher| {
            ids.and(one_looked_up(matcher, dictionary, space), count)
        })
    }

    /// The ids of `bits`, of a space that has `count` ids.
    pub(super) fn from_bits(bits: IdBits, count: u32) -> Ids {
        match bits.len() {
            0 => Ids::None,
            found if found == count => Ids::All,
            _ => Ids::Bits(bits),
        }
    }

    /// The ids of both sets, of a space that has `count` ids.
    pub(super) fn and(self, other: Ids, count: u32) -> Ids {
        match (self, other) {
            (Ids::All, ids) | (ids, Ids::All) => ids,
            (Ids::None, _) | (_, Ids::None) => Ids::None,
            (Ids::One(id), ids) | (ids, Ids::One(id)) => {
                if ids.contains(id) {
                    Ids::One(id)
                } else {
                    Ids::None
                }
            }
            (Ids::Except(a), Ids::Except(b)) => {
                let mut bits = IdBits::all(count);
                [a, b].into_iter().for_each(|id| bits.remove(id));
                Ids::Bits(bits)
            }
            (Ids::Bits(mut bits), Ids::Except(id)) | (Ids::Except(id), Ids::Bits(mut bits)) => {
                bits.remove(id);
                Ids::Bits(bits)
            }
            (Ids::Bits(mut bits), Ids::Bits(others)) => {
                bits.intersect(&others);
                Ids::Bits(bits)
            }
        }
    }
}

fn one_looked_up(matcher: &CompiledMatcher, dictionary: &Dictionary, space: u32) -> Ids {
    match &matcher.pattern {
        Pattern::Exact(set) if set.len() == 1 => {
            match (dictionary.find(space, &set[0]), matcher.is_negated) {
                (Some(id), false) => Ids::One(id),
                (Some(id), true) => Ids::Except(id),
                (None, false) => Ids::None,
                (None, true) => Ids::All,
            }
        }
        Pattern::Exact(set) => {
            let count = dictionary.count(space);
            let found = set.iter().filter_map(|one| dictionary.find(space, one));
            let mut bits = match matcher.is_negated {
                true => IdBits::all(count),
                false => IdBits::with_room_for(count),
            };
            found.for_each(|id| if matcher.is_negated { bits.remove(id) } else { bits.insert(id) });
            Ids::from_bits(bits, count)
        }
        // No tag has an empty value; metrics without a name have.
        Pattern::NonEmpty => match (dictionary.find(space, ""), matcher.is_negated) {
            (Some(id), false) => Ids::Except(id),
            (Some(id), true) => Ids::One(id),
            (None, false) => Ids::All,
            (None, true) => Ids::None,
        },
        Pattern::Anything if matcher.is_negated => Ids::None,
        Pattern::Anything => Ids::All,
        _ => unreachable!("a pattern that is looked up"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(ids: &[u32]) -> Ids {
        let mut bits = IdBits::default();
        ids.iter().for_each(|id| bits.insert(*id));
        Ids::Bits(bits)
    }

    #[test]
    fn sets_intersect_in_every_form() {
        const COUNT: u32 = 130;
        let forms: [fn() -> Ids; 7] = [
            || Ids::All,
            || Ids::None,
            || Ids::One(64),
            || Ids::Except(64),
            || Ids::Except(3),
            || bits(&[3, 64, 129]),
            || bits(&[0, 3]),
        ];
        for a in forms {
            for b in forms {
                let both = a().and(b(), COUNT);
                for id in 0..COUNT {
                    assert_eq!(both.contains(id), a().contains(id) && b().contains(id), "{id}");
                }
            }
        }
        assert!(!Ids::Bits(IdBits::all(COUNT)).contains(COUNT), "an id that came later");
        assert!(matches!(Ids::from_bits(IdBits::all(COUNT), COUNT), Ids::All));
        assert!(matches!(Ids::from_bits(IdBits::default(), COUNT), Ids::None));
    }
}
