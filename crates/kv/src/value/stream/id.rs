//! Numbers of entries: a time in milliseconds and a number within it.

use codec::bytes::{Reader, put_varint};

/// The number of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Milliseconds since the epoch, by whoever made it.
    pub ms: u64,
    /// Among those of the same millisecond.
    pub seq: u64,
}

impl Id {
    /// The least one, which no entry has.
    pub const MIN: Id = Id { ms: 0, seq: 0 };
    /// The greatest one.
    pub const MAX: Id = Id { ms: u64::MAX, seq: u64::MAX };

    /// The next one, if there is any.
    pub fn next(self) -> Option<Id> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => Some(Id { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The one before, if there is any.
    pub fn previous(self) -> Option<Id> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => Some(Id { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// `ms-seq`, or `ms` with that number within it.
    pub fn parse(text: &[u8], seq: u64) -> Option<Id> {
        match text.iter().position(|byte| *byte == b'-') {
            None => Some(Id { ms: parse_u64(text)?, seq }),
            Some(dash) => {
                Some(Id { ms: parse_u64(&text[..dash])?, seq: parse_u64(&text[dash + 1..])? })
            }
        }
    }

    /// As clients see it.
    pub fn text(self) -> String {
        let (mut ms, mut seq) = (itoa::Buffer::new(), itoa::Buffer::new());
        format!("{}-{}", ms.format(self.ms), seq.format(self.seq))
    }

    /// Appends what [`Id::read`] reads.
    pub fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.ms);
        put_varint(out, self.seq);
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn read(reader: &mut Reader<'_>) -> Result<Id, codec::Error> {
        Ok(Id { ms: reader.varint()?, seq: reader.varint()? })
    }
}

/// The longest text of an identifier's part that is looked at.
const TEXT_SIZE_MAX: usize = 64;

/// Digits, with zeros before them or a plus if somebody likes that.
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= TEXT_SIZE_MAX)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for (text, expected) in [
            ("1-2", Some(Id { ms: 1, seq: 2 })),
            ("1", Some(Id { ms: 1, seq: 9 })),
            ("18446744073709551615-18446744073709551615", Some(Id::MAX)),
            ("18446744073709551616", None),
            ("1-", None),
            ("-1", None),
            ("1-2-3", None),
            ("", None),
        ] {
            assert_eq!(Id::parse(text.as_bytes(), 9), expected, "{text}");
        }
        assert_eq!(Id::MAX.next(), None);
        assert_eq!(Id::MIN.previous(), None);
        assert_eq!(Id { ms: 1, seq: u64::MAX }.next(), Some(Id { ms: 2, seq: 0 }));
        assert_eq!(Id { ms: 2, seq: 0 }.previous(), Some(Id { ms: 1, seq: u64::MAX }));
    }
}
