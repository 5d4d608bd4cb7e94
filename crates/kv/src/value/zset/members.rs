//! The members of a large sorted set with their scores, in numbered places, found by their bytes.
//!
//! What holds: a member keeps its place as long as it is in the set, whatever its score becomes, also
//! over the disk. So `ZSCAN` goes through the places.

use crate::value::shared::Shared;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::cmp::Ordering;
use std::hash::BuildHasher;

/// A place: a member with its score, or free.
#[derive(Clone, Debug)]
pub struct Place {
    member: Box<[u8]>,
    /// Not a number where the place is free, which no score is.
    score: f64,
}

/// The score of a free place.
const FREE: f64 = f64::NAN;

impl Place {
    fn is_free(&self) -> bool {
        self.score.is_nan()
    }
}

/// A place in the order: the score, and where the member is.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The score.
    pub score: f64,
    /// Its place.
    pub place: u32,
}

/// Members in places.
#[derive(Clone, Debug, Default)]
pub struct Members {
    places: Shared<Place>,
    /// Places that may be free: some have been given up or taken since.
    free: Vec<u32>,
    by_member: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Bytes of all members.
    size: usize,
}

/// How scores are ordered; they are numbers all.
pub fn compare_scores(one: f64, other: f64) -> Ordering {
    one.partial_cmp(&other).unwrap_or(Ordering::Equal)
}

fn member_of(places: &Shared<Place>, place: u32) -> &[u8] {
    places.get(place as usize).map_or(&[], |place| &place.member)
}

impl Members {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_member.len()
    }

    /// Bytes of memory, about.
    pub fn heap_size(&self) -> usize {
        self.size
            + self.len() * ALLOCATION_COST
            + self.places.heap_size()
            + self.free.capacity() * size_of::<u32>()
            + self.by_member.capacity() * (size_of::<u32>() + 1)
    }

    /// The member in a place.
    pub fn member(&self, place: u32) -> &[u8] {
        member_of(&self.places, place)
    }

    /// Where a member is.
    pub fn find(&self, member: &[u8]) -> Option<Item> {
        let hash = self.hasher.hash_one(member);
        let is_it = |place: &u32| self.member(*place) == member;
        let place = *self.by_member.find(hash, is_it)?;
        Some(Item { score: self.places.get(place as usize)?.score, place })
    }

    /// Gives a member another score.
    pub fn set_score(&mut self, place: u32, score: f64) {
        if let Some(place) = self.places.get_mut(place as usize) {
            place.score = score;
        }
    }

    /// Adds a member that is not there.
    pub fn add(&mut self, member: &[u8], score: f64) -> Item {
        let filled = Place { member: member.into(), score };
        let place = loop {
            let Some(place) = self.free.pop() else {
                self.places.push(filled);
                break u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX);
            };
            if let Some(free) = self.places.get_mut(place as usize).filter(|it| it.is_free()) {
                *free = filled;
                break place;
            }
        };
        self.index(place);
        Item { score, place }
    }

    /// Has a member that was put into a place found by its bytes.
    fn index(&mut self, place: u32) {
        let (places, hasher) = (&self.places, &self.hasher);
        let member_at = |place: u32| member_of(places, place);
        self.size += member_at(place).len();
        let hash = hasher.hash_one(member_at(place));
        self.by_member.insert_unique(hash, place, |place| hasher.hash_one(member_at(*place)));
    }

    /// Takes a member out. Returns where it was.
    pub fn remove(&mut self, member: &[u8]) -> Option<Item> {
        let hash = self.hasher.hash_one(member);
        let places = &self.places;
        let is_it = |place: &u32| member_of(places, *place) == member;
        let place = self.by_member.find_entry(hash, is_it).ok()?.remove().0;
        let emptied = Place { member: Box::default(), score: FREE };
        let gone = std::mem::replace(self.places.get_mut(place as usize)?, emptied);
        self.size -= gone.member.len();
        match place as usize + 1 == self.places.len() {
            true => while self.ends_with_free() && self.places.pop().is_some() {},
            false => self.free.push(place),
        }
        Some(Item { score: gone.score, place })
    }

    fn ends_with_free(&self) -> bool {
        let last = self.places.len().checked_sub(1).and_then(|last| self.places.get(last));
        last.is_some_and(Place::is_free)
    }

    /// They as they are now, for who goes through their places later, while others change them here:
    /// nothing is found in that. None where each would be copied.
    pub fn freeze(&self) -> Option<Members> {
        let places = self.places.is_large().then(|| self.places.clone())?;
        Some(Members { places, ..Members::default() })
    }

    /// The order of two members: by score, then by bytes.
    pub fn compare(&self, one: Item, other: Item) -> Ordering {
        compare_scores(one.score, other.score)
            .then_with(|| self.member(one.place).cmp(self.member(other.place)))
    }

    /// All members in order.
    pub fn sorted(&self) -> Vec<Item> {
        let mut items: Vec<Item> = (0..)
            .zip(self.places.iter())
            .filter(|(_, it)| !it.is_free())
            .map(|(place, it)| Item { score: it.score, place })
            .collect();
        items.sort_unstable_by(|one, other| self.compare(*one, *other));
        items
    }

    /// All places from one on, the free ones as nothing.
    pub fn places_from(&self, at: usize) -> impl ExactSizeIterator<Item = Option<(&[u8], f64)>> {
        (at.min(self.places.len())..self.places.len()).map(move |at| {
            let place = self.places.get(at).filter(|it| !it.is_free())?;
            Some((&*place.member, place.score))
        })
    }

    /// Appends a place, as [`Members::places_from`] shows it. Returns false if the member is there
    /// already.
    pub fn restore(&mut self, place: Option<(&[u8], f64)>) -> bool {
        let number = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let Some((member, score)) = place else {
            self.places.push(Place { member: Box::default(), score: FREE });
            self.free.push(number);
            return true;
        };
        if self.find(member).is_some() {
            return false;
        }
        self.places.push(Place { member: member.into(), score });
        self.index(number);
        true
    }
}

/// Bytes that the allocator adds to a member, about.
const ALLOCATION_COST: usize = 8;
