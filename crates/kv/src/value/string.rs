//! Strings: bytes, or an integer in its only spelling.

use super::{Stored, Value, put_bytes, read_bytes};
use crate::number::parse_i64;
use codec::bytes::{Reader, put_i64_zigzag, unzigzag};
use std::borrow::Cow;

/// A string.
#[derive(Clone, Debug)]
pub struct Str(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Int(i64),
    Bytes(Vec<u8>),
}

const TAG_INT: u8 = 0;
const TAG_BYTES: u8 = 1;
/// The longest text of an integer.
const INT_TEXT_MAX: usize = 20;

impl Str {
    /// Those bytes.
    #[inline]
    pub fn new(bytes: &[u8]) -> Str {
        match bytes.len() <= INT_TEXT_MAX {
            true => match parse_i64(bytes) {
                Some(int) => Str(Repr::Int(int)),
                None => Str(Repr::Bytes(bytes.to_vec())),
            },
            false => Str(Repr::Bytes(bytes.to_vec())),
        }
    }

    /// Those bytes, which were built already.
    pub fn from_vec(bytes: Vec<u8>) -> Str {
        match parse_i64(&bytes) {
            Some(int) if bytes.len() <= INT_TEXT_MAX => Str(Repr::Int(int)),
            _ => Str(Repr::Bytes(bytes)),
        }
    }

    /// That integer.
    pub fn from_int(int: i64) -> Str {
        Str(Repr::Int(int))
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match &self.0 {
            Repr::Int(int) => Cow::Owned(itoa::Buffer::new().format(*int).as_bytes().to_vec()),
            Repr::Bytes(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// Calls `with` with its bytes; nothing is allocated.
    #[inline]
    pub fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        match &self.0 {
            Repr::Int(int) => with(itoa::Buffer::new().format(*int).as_bytes()),
            Repr::Bytes(bytes) => with(bytes),
        }
    }

    /// The integer that it spells, if it does.
    pub fn int(&self) -> Option<i64> {
        match &self.0 {
            Repr::Int(int) => Some(*int),
            Repr::Bytes(bytes) => parse_i64(bytes),
        }
    }

    /// Its bytes, to be changed and grown.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        if let Repr::Int(int) = self.0 {
            self.0 = Repr::Bytes(itoa::Buffer::new().format(int).as_bytes().to_vec());
        }
        match &mut self.0 {
            Repr::Bytes(bytes) => bytes,
            Repr::Int(_) => unreachable!("made bytes above"),
        }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.with_bytes(<[u8]>::len)
    }

    /// How it is kept, in the words of `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Repr::Int(_) => "int",
            Repr::Bytes(bytes) if bytes.len() <= 44 => "embstr",
            Repr::Bytes(_) => "raw",
        }
    }
}

impl Default for Str {
    fn default() -> Str {
        Str(Repr::Bytes(Vec::new()))
    }
}

impl Stored for Str {
    fn of(value: &Value) -> Option<&Str> {
        match value {
            Value::Str(inner) => Some(inner),
            _ => None,
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Str> {
        match value {
            Value::Str(inner) => Some(inner),
            _ => None,
        }
    }

    fn into_value(self) -> Value {
        Value::Str(self)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Int(int) => {
                out.push(TAG_INT);
                put_i64_zigzag(out, *int);
            }
            Repr::Bytes(bytes) => {
                out.push(TAG_BYTES);
                put_bytes(out, bytes);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Str, codec::Error> {
        match reader.u8()? {
            TAG_INT => Ok(Str(Repr::Int(unzigzag(reader.varint()?)))),
            TAG_BYTES => Ok(Str(Repr::Bytes(read_bytes(reader)?.to_vec()))),
            _ => Err(reader.corrupt("unknown kind of string")),
        }
    }

    fn heap_size(&self) -> usize {
        match &self.0 {
            Repr::Int(_) => 0,
            Repr::Bytes(bytes) => bytes.capacity(),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_as_it_was() {
        for text in ["", "007", "1.10", "1e3", "-0", "12", "-7", "9223372036854775807", " 1", "+1"]
        {
            let value = Str::new(text.as_bytes());
            assert_eq!(&*value.bytes(), text.as_bytes());
            let mut encoded = Vec::new();
            value.clone().into_value().encode(&mut encoded);
            let decoded = Value::decode(&encoded).expect("own encoding");
            assert_eq!(&*Str::of(&decoded).expect("a string").bytes(), text.as_bytes());
        }
        assert_eq!(size_of::<Value>(), 24);
    }
}
