//! A record of the log that is too large for one, in pieces.
//!
//! ```text
//! piece   0 varint, which is no record's number │ place u8: 1 first, 2 last │ bytes of the record
//! ```
//!
//! What belongs together is replayed whole or not at all: a record whose last piece is missing was
//! never acknowledged. No checkpoint begins between two pieces, for both hold the keyspace's lock.

const FIRST: u8 = 1;
const LAST: u8 = 2;

/// What stands before the bytes of the piece `at` of so many.
pub fn head(at: usize, count: usize) -> [u8; 2] {
    let first = if at == 0 { FIRST } else { 0 };
    let last = if at + 1 == count { LAST } else { 0 };
    [0, first | last]
}

/// Pieces that were read of a record.
#[derive(Debug, Default)]
pub struct Pieces(Option<Vec<u8>>);

impl Pieces {
    /// Takes what the log has next. Returns a whole record once there is one.
    pub fn take<'a>(&'a mut self, payload: &'a [u8]) -> Option<Whole<'a>> {
        let [0, place, bytes @ ..] = payload else {
            // What came before has no end: its writer died.
            self.0 = None;
            return Some(Whole::AsItCame(payload));
        };
        if place & FIRST != 0 {
            self.0 = Some(Vec::new());
        }
        self.0.as_mut()?.extend_from_slice(bytes);
        match place & LAST {
            0 => None,
            _ => self.0.take().map(Whole::Joined),
        }
    }
}

/// A whole record.
#[derive(Debug)]
pub enum Whole<'a> {
    /// It was one of the log.
    AsItCame(&'a [u8]),
    /// It was several.
    Joined(Vec<u8>),
}

impl Whole<'_> {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Whole::AsItCame(bytes) => bytes,
            Whole::Joined(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(at: usize, count: usize, bytes: &[u8]) -> Vec<u8> {
        [&head(at, count), bytes].concat()
    }

    #[test]
    fn what_has_no_end_is_left_out() {
        let mut pieces = Pieces::default();
        let mut whole = |payload: &[u8]| pieces.take(payload).map(|whole| whole.bytes().to_vec());
        assert_eq!(whole(&piece(0, 3, b"ab")), None);
        assert_eq!(whole(&piece(1, 3, b"cd")), None);
        assert_eq!(whole(&piece(2, 3, b"e")), Some(b"abcde".to_vec()));
        assert_eq!(whole(&piece(2, 3, b"e")), None, "an end without a beginning");
        assert_eq!(whole(&piece(0, 2, b"lost")), None);
        assert_eq!(whole(b"\x07record"), Some(b"\x07record".to_vec()));
        assert_eq!(whole(&piece(1, 2, b"end")), None);
        assert_eq!(whole(&piece(0, 2, b"lost")), None);
        assert_eq!(whole(&piece(0, 1, b"whole")), Some(b"whole".to_vec()));
    }
}
