//! A list of things which, when there are many, keeps them in pieces that are shared with its copies: a
//! copy costs a count for each piece, and who changes a piece that a copy has makes one of its own. So
//! a large collection is encoded while commands change it.
//!
//! ```text
//! small    thing │ thing │ ...                              in one piece of memory
//! large    piece ─► thing × 128   piece ─► thing × 128 ...   all full but the last one
//! ```

use std::sync::Arc;

/// Things up to which all are in one piece of memory.
const SMALL_LEN_MAX: usize = 4096;
/// Things down to which a large list stays one; far below, or it would be made anew again and again.
const LARGE_LEN_MIN: usize = 1024;
/// Things of a piece: so many are copied at most when one is changed that a copy has.
const PIECE_LEN: usize = 128;
/// Bytes of a piece besides its things, about.
const PIECE_COST: usize = 64;

/// Things in an order.
#[derive(Clone, Debug)]
pub struct Shared<T>(Form<T>);

#[derive(Clone, Debug)]
enum Form<T> {
    Small(Vec<T>),
    Large { pieces: Vec<Arc<Vec<T>>>, len: usize },
}

impl<T> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared(Form::Small(Vec::new()))
    }
}

impl<T: Clone> Shared<T> {
    /// None, with room for so many.
    pub fn with_capacity(count: usize) -> Shared<T> {
        Shared(match count <= SMALL_LEN_MAX {
            true => Form::Small(Vec::with_capacity(count)),
            false => Form::Large { pieces: Vec::with_capacity(count.div_ceil(PIECE_LEN)), len: 0 },
        })
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Small(list) => list.len(),
            Form::Large { len, .. } => *len,
        }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a copy costs far less than its things.
    pub fn is_large(&self) -> bool {
        matches!(self.0, Form::Large { .. })
    }

    /// The one of that number.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        match &self.0 {
            Form::Small(list) => list.get(at),
            Form::Large { pieces, .. } => pieces.get(at / PIECE_LEN)?.get(at % PIECE_LEN),
        }
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        match &mut self.0 {
            Form::Small(list) => list.get_mut(at),
            Form::Large { pieces, .. } => {
                let piece = pieces.get_mut(at / PIECE_LEN)?;
                // Nothing is copied for what is not there.
                piece.get(at % PIECE_LEN)?;
                own(piece).get_mut(at % PIECE_LEN)
            }
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let (small, pieces): (&[T], &[Arc<Vec<T>>]) = match &self.0 {
            Form::Small(list) => (list, Default::default()),
            Form::Large { pieces, .. } => (Default::default(), pieces),
        };
        small.iter().chain(pieces.iter().flat_map(|piece| piece.iter()))
    }

    /// Adds one at the end.
    pub fn push(&mut self, thing: T) {
        if let Form::Small(list) = &mut self.0 {
            if list.len() < SMALL_LEN_MAX {
                return list.push(thing);
            }
            self.0 = in_pieces(std::mem::take(list));
        }
        let Form::Large { pieces, len } = &mut self.0 else { return };
        *len += 1;
        match pieces.last_mut().filter(|piece| piece.len() < PIECE_LEN) {
            Some(last) => own(last).push(thing),
            None => {
                let mut piece = Vec::with_capacity(PIECE_LEN);
                piece.push(thing);
                pieces.push(Arc::new(piece));
            }
        }
    }

    /// Takes the last one out.
    pub fn pop(&mut self) -> Option<T> {
        let popped = match &mut self.0 {
            Form::Small(list) => list.pop(),
            Form::Large { pieces, len } => {
                let popped = pieces.last_mut().and_then(|last| own(last).pop());
                *len -= usize::from(popped.is_some());
                if pieces.last().is_some_and(|last| last.is_empty()) {
                    pieces.pop();
                }
                popped
            }
        };
        self.draw_together();
        popped
    }

    /// Takes the one of that number out, which is there; the last one gets its number.
    pub fn swap_remove(&mut self, at: usize) -> T {
        assert!(at < self.len(), "the caller has seen it");
        let last = self.pop().expect("there is one");
        match self.get_mut(at) {
            Some(place) => std::mem::replace(place, last),
            None => last,
        }
    }

    /// Gives memory back after some have gone.
    fn draw_together(&mut self) {
        match &mut self.0 {
            Form::Small(list) if list.len() * 4 < list.capacity() => {
                list.shrink_to(list.len() * 2);
            }
            Form::Large { pieces, len } if *len < LARGE_LEN_MIN => {
                let pieces = std::mem::take(pieces);
                let things = pieces.into_iter().map(Arc::unwrap_or_clone);
                self.0 = Form::Small(things.flatten().collect());
            }
            _ => {}
        }
    }

    /// Bytes of memory besides the struct itself and what things own.
    pub fn heap_size(&self) -> usize {
        match &self.0 {
            Form::Small(list) => list.capacity() * size_of::<T>(),
            Form::Large { pieces, .. } => {
                pieces.capacity() * size_of::<Arc<Vec<T>>>()
                    + pieces.len() * (PIECE_COST + PIECE_LEN * size_of::<T>())
            }
        }
    }
}

/// Many things in pieces.
fn in_pieces<T>(list: Vec<T>) -> Form<T> {
    let (len, mut things) = (list.len(), list.into_iter());
    let mut pieces = Vec::with_capacity(2 * len.div_ceil(PIECE_LEN));
    while 0 < things.len() {
        let mut piece = Vec::with_capacity(PIECE_LEN);
        piece.extend(things.by_ref().take(PIECE_LEN));
        pieces.push(Arc::new(piece));
    }
    Form::Large { pieces, len }
}

/// A piece to be changed: copied if a copy of the list has it, too.
#[inline]
fn own<T: Clone>(piece: &mut Arc<Vec<T>>) -> &mut Vec<T> {
    if Arc::get_mut(piece).is_none() {
        let mut copy = Vec::with_capacity(PIECE_LEN);
        copy.extend_from_slice(piece);
        *piece = Arc::new(copy);
    }
    Arc::get_mut(piece).expect("it was just made, or is nobody else's")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_one_list_and_copies_stay_as_they_were() {
        let mut dice = rng::Random::seeded(3);
        let (mut list, mut model): (Shared<u64>, Vec<u64>) = (Shared::default(), Vec::new());
        let mut copies: Vec<(Shared<u64>, Vec<u64>)> = Vec::new();
        for step in 0..60_000_u64 {
            // It grows to thrice what is small, and then shrinks to nothing.
            let is_growing = step < 30_000;
            match dice.below(10) {
                0..=5 if is_growing => {
                    list.push(step);
                    model.push(step);
                }
                0..=6 if !is_growing && !model.is_empty() => {
                    let at = dice.below(model.len() as u64) as usize;
                    assert_eq!(list.swap_remove(at), model.swap_remove(at));
                }
                7 => assert_eq!(list.pop(), model.pop()),
                8 if !model.is_empty() => {
                    let at = dice.below(model.len() as u64) as usize;
                    *list.get_mut(at).expect("there") = step;
                    model[at] = step;
                }
                _ => {
                    let at = dice.below(model.len() as u64 + 2) as usize;
                    assert_eq!(list.get(at), model.get(at));
                }
            }
            assert_eq!(list.len(), model.len());
            if step % 5000 == 0 {
                copies.push((list.clone(), model.clone()));
            }
        }
        assert!(copies.iter().any(|(copy, _)| copy.is_large()));
        for (copy, model) in copies.iter().chain([&(list, model)]) {
            assert!(copy.iter().eq(model));
        }
    }

    #[test]
    fn memory_goes_when_things_do() {
        let mut list = Shared::default();
        (0..100_000_u64).for_each(|n| list.push(n));
        assert!(list.heap_size() < 1_000_000, "{}", list.heap_size());
        assert!(list.get_mut(100_000).is_none());
        while list.pop().is_some() {}
        assert!(!list.is_large() && list.heap_size() < 1000, "{}", list.heap_size());
    }
}
