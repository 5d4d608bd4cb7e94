//! A list: a deque of chunks, each with many elements in one piece of memory.
//!
//! ```text
//! list     chunk │ chunk │ chunk
//! chunk    data  one after another: "first" "second" "third"
//!          ends  5 11 16            where each ends
//! ```
//! A chunk grows at the end of its data only. One that was begun at the list's head is kept backwards,
//! so that pushing is appending there, too. What is popped at the other end is skipped (`gone`), and
//! cut off when it is half of the chunk.

use super::{Stored, boxed_variant, put_bytes, read_bytes, read_len};
use codec::bytes::{Reader, put_varint};
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a chunk's elements, at most; a longer element has one for itself.
const CHUNK_SIZE_MAX: usize = 4096;
/// Elements of a chunk, at most.
const CHUNK_LEN_MAX: usize = 512;
/// Bytes of a chunk besides its elements.
const CHUNK_COST: usize = size_of::<Chunk>() + 32;
/// Bytes of a list that is called `listpack`, at most; less than half make it one again.
const LISTPACK_SIZE_MAX: usize = 8 << 10;

/// A list.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// None of them is empty.
    chunks: VecDeque<Chunk>,
    len: usize,
    /// Bytes of all elements.
    size: usize,
    is_quicklist: bool,
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The head.
    Left,
    /// The tail.
    Right,
}

#[derive(Clone, Debug, Default)]
struct Chunk {
    data: Vec<u8>,
    /// Where each element ends in `data`.
    ends: Vec<u32>,
    /// Elements at the start of `data` that were popped.
    gone: usize,
    /// Whether the list's order is from the last to the first.
    is_backwards: bool,
}

impl Chunk {
    fn len(&self) -> usize {
        self.ends.len() - self.gone
    }

    /// Where the element of that place in `ends` lies.
    #[inline]
    fn range(&self, place: usize) -> Range<usize> {
        let start = if place == 0 { 0 } else { self.ends[place - 1] as usize };
        start..self.ends[place] as usize
    }

    /// The place of the element `at` in the list's order.
    #[inline]
    fn place(&self, at: usize) -> usize {
        match self.is_backwards {
            true => self.ends.len() - 1 - at,
            false => self.gone + at,
        }
    }

    #[inline]
    fn get(&self, at: usize) -> &[u8] {
        &self.data[self.range(self.place(at))]
    }

    /// Whether pushing at that end is appending.
    fn grows_at(&self, end: End) -> bool {
        self.is_backwards == (end == End::Left)
    }

    fn has_room(&self, size: usize) -> bool {
        self.data.len() + size <= CHUNK_SIZE_MAX && self.ends.len() < CHUNK_LEN_MAX
    }

    fn append(&mut self, element: &[u8]) {
        self.data.extend_from_slice(element);
        let end = u32::try_from(self.data.len()).expect("elements are bounded");
        self.ends.push(end);
    }

    /// Takes the element at that end out; there is one.
    fn pop(&mut self, end: End) {
        if self.grows_at(end) {
            let range = self.range(self.ends.len() - 1);
            self.data.truncate(range.start);
            self.ends.pop();
            return;
        }
        self.gone += 1;
        if self.ends.len() < self.gone * 2 {
            self.cut_gone();
        }
    }

    fn cut_gone(&mut self) {
        if self.gone == 0 {
            return;
        }
        let size = self.ends[self.gone - 1];
        self.data.drain(..size as usize);
        self.ends.drain(..self.gone);
        self.ends.iter_mut().for_each(|end| *end -= size);
        self.gone = 0;
    }

    /// Puts an element before the one at `at`, or in its place.
    fn splice(&mut self, at: usize, element: &[u8], is_new: bool) {
        self.cut_gone();
        let place = match (is_new, self.is_backwards) {
            // Before it in the list's order is behind it in the data.
            (true, true) => self.ends.len() - at,
            _ => self.place(at),
        };
        let start = if place == 0 { 0 } else { self.ends[place - 1] as usize };
        let end = if is_new { start } else { self.ends[place] as usize };
        self.data.splice(start..end, element.iter().copied());
        if is_new {
            self.ends.insert(place, end as u32);
        }
        let (grown, shrunk) = (element.len() as u32, (end - start) as u32);
        for end in &mut self.ends[place..] {
            *end = *end + grown - shrunk;
        }
    }

    fn shrink(&mut self) {
        self.data.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

impl List {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element at an end.
    pub fn push(&mut self, end: End, element: &[u8]) {
        self.len += 1;
        self.size += element.len();
        if LISTPACK_SIZE_MAX < self.listpack_size() {
            self.is_quicklist = true;
        }
        let chunk = match end {
            End::Left => self.chunks.front_mut(),
            End::Right => self.chunks.back_mut(),
        };
        if let Some(chunk) = chunk {
            if chunk.len() == 1 && !chunk.grows_at(end) {
                chunk.cut_gone();
                chunk.is_backwards = end == End::Left;
            }
            if chunk.grows_at(end) && chunk.has_room(element.len()) {
                chunk.append(element);
                return;
            }
            chunk.shrink();
        }
        let mut chunk = Chunk { is_backwards: end == End::Left, ..Chunk::default() };
        chunk.append(element);
        match end {
            End::Left => self.chunks.push_front(chunk),
            End::Right => self.chunks.push_back(chunk),
        }
    }

    /// The element at an end.
    pub fn peek(&self, end: End) -> Option<&[u8]> {
        match end {
            End::Left => self.chunks.front().map(|chunk| chunk.get(0)),
            End::Right => self.chunks.back().map(|chunk| chunk.get(chunk.len() - 1)),
        }
    }

    /// Takes the element at an end out, if there is one.
    pub fn pop(&mut self, end: End) {
        let Some(size) = self.peek(end).map(<[u8]>::len) else { return };
        let chunk = match end {
            End::Left => self.chunks.front_mut(),
            End::Right => self.chunks.back_mut(),
        };
        let Some(chunk) = chunk else { return };
        chunk.pop(end);
        if chunk.len() == 0 {
            match end {
                End::Left => self.chunks.pop_front(),
                End::Right => self.chunks.pop_back(),
            };
        }
        self.lost(1, size);
    }

    fn lost(&mut self, len: usize, size: usize) {
        self.len -= len;
        self.size -= size;
        if self.listpack_size() * 2 < LISTPACK_SIZE_MAX {
            self.is_quicklist = false;
        }
    }

    /// The chunk of an element and its place there, from the nearer end.
    fn locate(&self, at: usize) -> Option<(usize, usize)> {
        if self.len <= at {
            return None;
        }
        if at <= self.len / 2 {
            let mut left = at;
            for (number, chunk) in self.chunks.iter().enumerate() {
                if left < chunk.len() {
                    return Some((number, left));
                }
                left -= chunk.len();
            }
            return None;
        }
        let mut behind = self.len - at;
        for (number, chunk) in self.chunks.iter().enumerate().rev() {
            if behind <= chunk.len() {
                return Some((number, chunk.len() - behind));
            }
            behind -= chunk.len();
        }
        None
    }

    /// The element at that index.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let (chunk, at) = self.locate(at)?;
        Some(self.chunks[chunk].get(at))
    }

    /// The elements from an index on.
    pub fn iter_from(&self, at: usize) -> impl Iterator<Item = &[u8]> {
        let (first, skipped) = self.locate(at).unwrap_or((self.chunks.len(), 0));
        let chunks = self.chunks.range(first..).enumerate();
        chunks.flat_map(move |(nth, chunk)| {
            let start = if nth == 0 { skipped } else { 0 };
            (start..chunk.len()).map(move |at| chunk.get(at))
        })
    }

    /// The elements from the last to the first.
    pub fn iter_back(&self) -> impl Iterator<Item = &[u8]> {
        let chunks = self.chunks.iter().rev();
        chunks.flat_map(|chunk| (0..chunk.len()).rev().map(move |at| chunk.get(at)))
    }

    /// Replaces the element at an index, which is there.
    pub fn set(&mut self, at: usize, element: &[u8]) {
        let Some((chunk, place)) = self.locate(at) else { return };
        let before = self.chunks[chunk].get(place).len();
        self.chunks[chunk].splice(place, element, false);
        self.size += element.len();
        self.lost(0, before);
        self.grown(chunk);
    }

    /// Puts an element before the one at an index, or at the end.
    pub fn insert(&mut self, at: usize, element: &[u8]) {
        if at == 0 {
            return self.push(End::Left, element);
        }
        let Some((chunk, place)) = self.locate(at) else {
            return self.push(End::Right, element);
        };
        self.chunks[chunk].splice(place, element, true);
        self.len += 1;
        self.size += element.len();
        self.grown(chunk);
    }

    /// A chunk has grown in its middle: it is split if it is too large.
    fn grown(&mut self, number: usize) {
        if LISTPACK_SIZE_MAX < self.listpack_size() {
            self.is_quicklist = true;
        }
        let chunk = &self.chunks[number];
        let is_large = CHUNK_SIZE_MAX * 2 < chunk.data.len() || CHUNK_LEN_MAX * 2 < chunk.len();
        if !is_large || chunk.len() < 2 {
            return;
        }
        let mut parts: Vec<Chunk> = vec![Chunk::default()];
        for at in 0..chunk.len() {
            let element = chunk.get(at);
            let last = parts.len() - 1;
            if 0 < parts[last].len() && !parts[last].has_room(element.len()) {
                parts.push(Chunk::default());
            }
            let last = parts.len() - 1;
            parts[last].append(element);
        }
        self.chunks.remove(number);
        for part in parts.into_iter().rev() {
            self.chunks.insert(number, part);
        }
    }

    /// Takes out up to `count` elements that are equal to that one, the first or the last ones.
    /// Returns how many.
    pub fn remove_equal(&mut self, element: &[u8], count: usize, from: End) -> usize {
        let mut removed = 0;
        for nth in 0..self.chunks.len() {
            let number = if from == End::Left { nth } else { self.chunks.len() - 1 - nth };
            let chunk = &self.chunks[number];
            let is_equal = |at: &usize| chunk.get(*at) == element;
            let all = 0..chunk.len();
            let found: Vec<usize> = match from {
                End::Left => all.filter(is_equal).take(count - removed).collect(),
                End::Right => all.rev().filter(is_equal).take(count - removed).collect(),
            };
            if found.is_empty() {
                continue;
            }
            removed += found.len();
            let mut left = Chunk::default();
            let mut next = found.iter().copied();
            let mut skipped = match from {
                End::Left => next.next(),
                End::Right => next.next_back(),
            };
            for at in 0..chunk.len() {
                if skipped == Some(at) {
                    skipped = if from == End::Left { next.next() } else { next.next_back() };
                } else {
                    left.append(chunk.get(at));
                }
            }
            left.shrink();
            self.chunks[number] = left;
            if removed == count {
                break;
            }
        }
        self.chunks.retain(|chunk| 0 < chunk.len());
        self.lost(removed, removed * element.len());
        removed
    }

    /// Takes out so many elements at an end.
    pub fn cut(&mut self, end: End, count: usize) {
        let mut left = count.min(self.len);
        while 0 < left {
            let chunk = match end {
                End::Left => self.chunks.front(),
                End::Right => self.chunks.back(),
            };
            let Some(chunk) = chunk else { return };
            let len = chunk.len();
            if left < len {
                break;
            }
            let size = (0..len).map(|at| chunk.get(at).len()).sum();
            match end {
                End::Left => self.chunks.pop_front(),
                End::Right => self.chunks.pop_back(),
            };
            self.lost(len, size);
            left -= len;
        }
        (0..left).for_each(|_| self.pop(end));
    }

    /// Bytes that it would have as one piece, about as Redis counts them.
    fn listpack_size(&self) -> usize {
        self.size + self.len * 2 + 7
    }

    /// How it is kept, in the words of `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        if self.is_quicklist { "quicklist" } else { "listpack" }
    }
}

/// ```text
/// count varint │ (size varint │ bytes) each
/// ```
impl Stored for List {
    boxed_variant!(List);

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len as u64);
        self.iter_from(0).for_each(|element| put_bytes(out, element));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<List, codec::Error> {
        let len = read_len(reader)?;
        let mut list = List::default();
        for _ in 0..len {
            list.push(End::Right, read_bytes(reader)?);
        }
        Ok(list)
    }

    fn heap_size(&self) -> usize {
        let ends = self.len * size_of::<u32>();
        size_of::<List>() + self.size + ends + self.chunks.len() * CHUNK_COST
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use rng::Random;

    #[track_caller]
    fn check(list: &List, model: &VecDeque<Vec<u8>>) {
        assert_eq!(list.len(), model.len());
        assert!(list.iter_from(0).eq(model.iter().map(Vec::as_slice)));
        assert!(list.iter_back().eq(model.iter().rev().map(Vec::as_slice)));
        assert_eq!(list.size, model.iter().map(Vec::len).sum::<usize>());
        assert!(list.chunks.iter().all(|chunk| 0 < chunk.len()));
    }

    fn element(dice: &mut Random) -> Vec<u8> {
        let len = match dice.index(50) {
            0 => 5000,
            1..10 => 200,
            _ => dice.index(4),
        };
        vec![b'a' + dice.index(3) as u8; len]
    }

    #[test]
    fn a_list_is_as_a_deque() {
        let mut dice = Random(3);
        let (mut list, mut model) = (List::default(), VecDeque::<Vec<u8>>::new());
        for step in 0..30_000 {
            let one = element(&mut dice);
            match dice.index(12) {
                0..3 => {
                    list.push(End::Left, &one);
                    model.push_front(one);
                }
                3..6 => {
                    list.push(End::Right, &one);
                    model.push_back(one);
                }
                6 | 7 => {
                    list.pop(End::Left);
                    model.pop_front();
                }
                8 | 9 => {
                    list.pop(End::Right);
                    model.pop_back();
                }
                10 => {
                    let at = dice.index(model.len() + 1);
                    list.insert(at, &one);
                    model.insert(at, one);
                }
                _ if !model.is_empty() => {
                    let at = dice.index(model.len());
                    assert_eq!(list.get(at), Some(model[at].as_slice()));
                    list.set(at, &one);
                    model[at] = one;
                }
                _ => {}
            }
            if step % 500 == 0 {
                check(&list, &model);
                let at = dice.index(model.len() + 1);
                assert!(list.iter_from(at).eq(model.range(at..).map(Vec::as_slice)));
            }
            if step % 5000 == 4999 {
                let (left, right) = (dice.index(model.len() / 2), dice.index(model.len() / 2));
                list.cut(End::Left, left);
                list.cut(End::Right, right);
                model.drain(..left);
                model.truncate(model.len() - right);
            }
        }
        check(&list, &model);
        let mut encoded = Vec::new();
        list.clone().into_value().encode(&mut encoded);
        let decoded = Value::decode(&encoded).expect("own encoding");
        check(List::of(&decoded).expect("a list"), &model);
        list.cut(End::Left, usize::MAX);
        assert_eq!((list.size, list.chunks.len()), (0, 0));
    }

    #[test]
    fn equal_elements_go_from_either_end() {
        for (count, from, left) in [
            (2, End::Left, "bcbacadaa"),
            (2, End::Right, "aabacbcad"),
            (usize::MAX, End::Left, "bcbcd"),
        ] {
            let mut list = List::default();
            let text = match from {
                End::Left => "aabcbacadaa",
                End::Right => "aabacbcadaa",
            };
            text.bytes().for_each(|byte| list.push(End::Right, &[byte]));
            list.remove_equal(b"a", count, from);
            let found: Vec<u8> = list.iter_from(0).flatten().copied().collect();
            let expected = if count == 2 { left } else { "bcbcd" };
            assert_eq!(String::from_utf8_lossy(&found), expected);
        }
        let mut list = List::default();
        (0..5000).for_each(|n| list.push(End::Left, &[b'a' + (n % 3) as u8]));
        assert_eq!(list.remove_equal(b"a", usize::MAX, End::Right), 1667);
        assert!(list.iter_from(0).all(|element| element != b"a"));
        assert_eq!(list.len(), 5000 - 1667);
    }

    #[test]
    fn names_of_encodings() {
        let mut list = List::default();
        (0..8).for_each(|_| list.push(End::Right, &[0; 1000]));
        assert_eq!(list.encoding(), "listpack");
        list.push(End::Right, &[0; 1000]);
        assert_eq!(list.encoding(), "quicklist");
        list.cut(End::Left, 4);
        assert_eq!(list.encoding(), "quicklist");
        list.cut(End::Left, 1);
        assert_eq!(list.encoding(), "listpack");
    }
}
