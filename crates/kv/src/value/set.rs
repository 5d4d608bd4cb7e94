//! A set: members in no order.

use super::element::Element;
use super::entries::Entries;
use super::{Stored, boxed_variant, put_bytes, read_bytes, read_len};
use crate::number::parse_i64;
use codec::bytes::{Reader, put_varint};

/// Members of a set of integers that is called `intset`, at most.
const INTSET_LEN_MAX: usize = 512;
/// Members of a set that is called `listpack`, at most.
const LISTPACK_LEN_MAX: usize = 128;
/// The longest member of such a set, in bytes.
const LISTPACK_MEMBER_SIZE_MAX: usize = 64;

/// A set.
#[derive(Clone, Debug, Default)]
pub struct Set {
    entries: Entries<Element>,
    /// Bytes of members on the heap.
    member_size: usize,
    shape: Shape,
}

/// What Redis would keep such a set in: clients may ask. A set never goes back to one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    #[default]
    Ints,
    Listpack,
    Table,
}

impl Set {
    /// How many members there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether that is a member.
    pub fn contains(&self, member: &[u8]) -> bool {
        self.entries.find(member).is_some()
    }

    /// Adds a member. Returns whether it is new.
    pub fn insert(&mut self, member: &[u8]) -> bool {
        if self.contains(member) {
            return false;
        }
        self.shape = self.shape.max(self.shape_with(member));
        let element = Element::new(member);
        self.member_size += element.heap_size();
        self.entries.push(element);
        true
    }

    /// The shape that a new member asks for.
    fn shape_with(&self, member: &[u8]) -> Shape {
        let len = self.len() + 1;
        let is_int = self.shape == Shape::Ints && parse_i64(member).is_some();
        if is_int && len <= INTSET_LEN_MAX {
            return Shape::Ints;
        }
        match len <= LISTPACK_LEN_MAX && member.len() <= LISTPACK_MEMBER_SIZE_MAX {
            true => Shape::Listpack,
            false => Shape::Table,
        }
    }

    /// Takes a member out. Returns whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        let found = self.entries.find(member);
        found.map(|at| self.remove_at(at)).is_some()
    }

    /// Takes the member of that number out; the last one gets its number.
    pub fn remove_at(&mut self, at: usize) -> Element {
        let element = self.entries.swap_remove(at);
        self.member_size -= element.heap_size();
        element
    }

    /// The member of that number.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        self.entries.get(at).map(Element::bytes)
    }

    /// All members, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(Element::bytes)
    }

    /// All members: integers in order, as clients see them, others in none.
    pub fn listed(&self) -> Vec<&[u8]> {
        let mut members: Vec<&[u8]> = self.iter().collect();
        if self.shape == Shape::Ints {
            members.sort_unstable_by_key(|member| parse_i64(member).unwrap_or(0));
        }
        members
    }

    /// Some members from a cursor on, and where to go on; see [`Entries::scan`]. Small sets are
    /// given at once.
    pub fn scan(&self, cursor: u64, count: usize) -> (u64, Vec<&[u8]>) {
        if self.shape < Shape::Table {
            return (0, self.listed());
        }
        let (next, found) = self.entries.scan(cursor, count);
        (next, found.into_iter().map(Element::bytes).collect())
    }

    /// It as it is now, for who encodes it later; see [`Entries::freeze`].
    pub fn freeze(&self) -> Option<Set> {
        let (member_size, shape) = (self.member_size, self.shape);
        Some(Set { entries: self.entries.freeze()?, member_size, shape })
    }

    /// How it is kept, in the words of `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        match self.shape {
            Shape::Ints => "intset",
            Shape::Listpack => "listpack",
            Shape::Table => "hashtable",
        }
    }
}

impl<'a> FromIterator<&'a [u8]> for Set {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(members: I) -> Set {
        let mut set = Set::default();
        members.into_iter().for_each(|member| {
            set.insert(member);
        });
        set
    }
}

/// ```text
/// count varint │ (size varint │ bytes) each
/// ```
impl Stored for Set {
    boxed_variant!(Set);

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        self.iter().for_each(|member| put_bytes(out, member));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Set, codec::Error> {
        let len = read_len(reader)?;
        let mut set = Set { entries: Entries::with_capacity(len), ..Set::default() };
        for _ in 0..len {
            let member = read_bytes(reader)?;
            if !set.insert(member) {
                return Err(reader.corrupt("a member twice"));
            }
        }
        Ok(set)
    }

    fn heap_size(&self) -> usize {
        size_of::<Set>() + self.entries.heap_size() + self.member_size
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
        for len in [0usize, 1, 16, 17, 600] {
            let names: Vec<String> =
                (0..len).map(|n| format!("{n}{}", "x".repeat(n % 90))).collect();
            let set: Set = names.iter().map(|name| name.as_bytes()).collect();
            let mut encoded = Vec::new();
            set.clone().into_value().encode(&mut encoded);
            let decoded = Value::decode(&encoded).expect("own encoding");
            let decoded = Set::of(&decoded).expect("a set");
            assert_eq!(decoded.len(), len);
            assert!(names.iter().all(|name| decoded.contains(name.as_bytes())));
            assert_eq!(decoded.encoding(), set.encoding());
            for cut in 0..encoded.len() {
                assert!(Value::decode(&encoded[..cut]).is_err());
            }
        }
        assert!(Value::decode(&[3, 2, 1, b'a', 1, b'a']).is_err());
    }

    #[test]
    fn names_of_encodings() {
        let ints = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let encoding =
            |names: &[String]| names.iter().map(|name| name.as_bytes()).collect::<Set>().encoding();
        assert_eq!(encoding(&ints(512)), "intset");
        assert_eq!(encoding(&ints(513)), "hashtable");
        let mut mixed = ints(127);
        mixed.push("x".to_owned());
        assert_eq!(encoding(&mixed), "listpack");
        mixed.push("y".to_owned());
        assert_eq!(encoding(&mixed), "hashtable");
        assert_eq!(encoding(&["x".repeat(65)]), "hashtable");
    }

    #[test]
    fn memory_is_counted_back_to_nothing() {
        let mut set = Set::default();
        for n in 0..1000usize {
            set.insert(format!("{n}{}", "x".repeat(n % 50)).as_bytes());
        }
        while !set.is_empty() {
            set.remove_at(set.len() / 2);
        }
        assert_eq!(set.member_size, 0);
        assert!(set.heap_size() < 2000, "{}", set.heap_size());
    }
}
