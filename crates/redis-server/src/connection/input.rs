//! What a client has sent and nobody has executed yet.
//!
//! A client may send far more than it reads of the answers, so what is executed leaves from the front
//! without the rest being moved each time.

/// Bytes that are read at a time.
pub const READ_SIZE: usize = 16 << 10;
/// A buffer larger than this is given back when it is empty.
pub const KEPT_SIZE_MAX: usize = 64 << 10;

/// A buffer up to this size is doubled when it is full; a larger one grows by a quarter.
const DOUBLED_SIZE_MAX: usize = 16 << 20;

/// Bytes that came, in order.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    /// How many at the front are done with; never more than there are.
    done: usize,
}

impl Input {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.done
    }

    /// Bytes of memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those from a place on; none behind the end.
    pub fn get(&self, at: usize) -> &[u8] {
        self.bytes.get(self.done.saturating_add(at)..).unwrap_or_default()
    }

    /// Where more may be put, behind them.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() - self.bytes.len() < READ_SIZE / 4 {
            let growth = match self.len() {
                len if len < DOUBLED_SIZE_MAX => len,
                len => len / 4,
            };
            self.bytes.reserve_exact(READ_SIZE.max(growth));
        }
        &mut self.bytes
    }

    /// Makes room for so many.
    pub fn reserve(&mut self, size: usize) {
        self.bytes.reserve(size);
    }

    /// Drops the first so many.
    pub fn drop_front(&mut self, size: usize) {
        self.done += size.min(self.len());
        if self.is_empty() && KEPT_SIZE_MAX < self.bytes.capacity() {
            *self = Input::default();
        } else if self.len() <= self.done {
            // Moves no more than was dropped since the last time.
            self.bytes.drain(..self.done);
            self.done = 0;
        }
    }

    /// Puts bytes before all others.
    pub fn put_before(&mut self, first: &[u8]) {
        match self.done.checked_sub(first.len()) {
            Some(start) => {
                self.bytes[start..self.done].copy_from_slice(first);
                self.done = start;
            }
            None => {
                self.bytes.splice(..self.done, first.iter().copied());
                self.done = 0;
            }
        }
    }

    /// Takes all of them.
    pub fn take(&mut self) -> Vec<u8> {
        let mut taken = std::mem::take(self);
        taken.bytes.drain(..taken.done);
        taken.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: &[u8]) -> Input {
        let mut input = Input::default();
        input.room().extend_from_slice(bytes);
        input
    }

    #[test]
    fn what_is_dropped_leaves_from_the_front() {
        let mut input = input(b"abcdefgh");
        input.drop_front(2);
        assert_eq!(
            (input.get(0), input.get(5), input.get(9)),
            (&b"cdefgh"[..], &b"h"[..], &[][..])
        );
        input.room().extend_from_slice(b"i");
        input.drop_front(4);
        assert_eq!((input.len(), input.get(0)), (3, &b"ghi"[..]));
        input.drop_front(99);
        assert!(input.is_empty());
    }

    #[test]
    fn what_is_put_before_comes_first() {
        for dropped in [0, 1, 3] {
            let mut input = input(b"....4567");
            input.drop_front(dropped);
            input.put_before(b"ab");
            let expected = [b"ab".as_slice(), &b"....4567"[dropped..]].concat();
            assert_eq!(input.get(0), expected);
            input.drop_front(1);
            assert_eq!(input.take(), expected[1..]);
            assert!(input.is_empty());
        }
    }

    #[test]
    fn a_large_buffer_is_given_back() {
        let mut input = input(&vec![0; KEPT_SIZE_MAX + 1]);
        input.drop_front(KEPT_SIZE_MAX);
        assert_eq!(input.len(), 1);
        input.drop_front(1);
        assert_eq!(input.bytes.capacity(), 0);
    }
}
