//! A reader of protobuf's wire format: tags, varints, fixed numbers, length-delimited bytes.
//!
//! ```text
//! message = { varint(field << 3 | type) value }*
//! type 0: varint   1: 8 bytes   2: varint(size) bytes   5: 4 bytes      3, 4: groups, refused
//! ```
//!
//! It hands out slices of the message and never trusts a length.

use crate::Error;
use crate::narrow::low_byte;

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Type 0.
    Varint(u64),
    /// Type 1, little endian.
    Fixed64(u64),
    /// Type 2.
    Bytes(&'a [u8]),
    /// Type 5, little endian.
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// The bytes of a length-delimited field.
    ///
    /// # Errors
    /// The field has another wire type.
    pub fn bytes(self) -> Result<&'a [u8], Error> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(wrong_type("a length-delimited field")),
        }
    }

    /// A varint as the two's complement number it stands for.
    ///
    /// # Errors
    /// The field has another wire type.
    pub fn signed(self) -> Result<i64, Error> {
        match self {
            Value::Varint(bits) => Ok(bits as i64),
            _ => Err(wrong_type("a varint")),
        }
    }

    /// The double of a 64-bit field.
    ///
    /// # Errors
    /// The field has another wire type.
    pub fn double(self) -> Result<f64, Error> {
        match self {
            Value::Fixed64(bits) => Ok(f64::from_bits(bits)),
            _ => Err(wrong_type("a 64-bit number")),
        }
    }

    /// The string of a length-delimited field, bytes that are not UTF-8 replaced.
    ///
    /// # Errors
    /// The field has another wire type.
    pub fn text(self) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

#[cold]
fn wrong_type(expected: &'static str) -> Error {
    Error::malformed("wire type", 0, expected)
}

/// Reads the fields of one message in their order.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Message<'a> {
    /// The message that `bytes` are.
    pub fn new(bytes: &'a [u8]) -> Message<'a> {
        Message { bytes, at: 0 }
    }

    /// Where the next field starts.
    #[inline(always)]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Whether all fields were read.
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        self.bytes.len() <= self.at
    }

    /// The next field's number and value, or `None` at the end.
    ///
    /// # Errors
    /// The bytes end inside a field, or the field is of no known type.
    #[inline(always)]
    pub fn next_field(&mut self) -> Result<Option<(u32, Value<'a>)>, Error> {
        if self.is_done() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).unwrap_or(0);
        if number == 0 {
            return Err(self.malformed("field number"));
        }
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Value::Bytes(self.sized()?),
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(self.malformed("field type")),
        };
        Ok(Some((number, value)))
    }

    /// If the next field is length-delimited with the one-byte tag `tag`, its bytes.
    ///
    /// # Errors
    /// The length goes beyond the message.
    #[inline(always)]
    pub fn next_if(&mut self, tag: u8) -> Result<Option<&'a [u8]>, Error> {
        if self.bytes.get(self.at) != Some(&tag) {
            return Ok(None);
        }
        self.at += 1;
        self.sized().map(Some)
    }

    /// A bare varint, as in packed fields.
    ///
    /// # Errors
    /// More than ten bytes, or the bytes end.
    #[inline(always)]
    pub fn varint(&mut self) -> Result<u64, Error> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    #[inline]
    fn long_varint(&mut self) -> Result<u64, Error> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut value = 0u64;
        for (idx, &byte) in rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * idx);
            if byte < 0x80 {
                self.at += idx + 1;
                return Ok(value);
            }
        }
        Err(self.malformed("varint"))
    }

    /// Bytes behind their number, as in strings that follow each other.
    ///
    /// # Errors
    /// The length goes beyond the message.
    #[inline(always)]
    pub fn sized(&mut self) -> Result<&'a [u8], Error> {
        let size = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        let end = self.at.checked_add(size);
        let Some(bytes) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(self.malformed("a length within the message"));
        };
        self.at += size;
        Ok(bytes)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let Some(bytes) = found else {
            return Err(self.malformed("a fixed number"));
        };
        self.at += N;
        Ok(*bytes)
    }

    #[cold]
    fn malformed(&self, expected: &'static str) -> Error {
        Error::malformed("protobuf", self.at, expected)
    }
}

/// Appends a varint.
#[inline(always)]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while 0x80 <= value {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Appends a length-delimited field; a field number below 16.
pub fn put_bytes(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a varint field; a field number below 16.
pub fn put_number(out: &mut Vec<u8>, number: u8, value: u64) {
    out.push(number << 3);
    put_varint(out, value);
}

/// Appends a double field; a field number below 16.
pub fn put_double(out: &mut Vec<u8>, number: u8, value: f64) {
    out.push(number << 3 | 1);
    out.extend_from_slice(&value.to_bits().to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back() {
        let mut bytes = Vec::new();
        put_number(&mut bytes, 1, 300);
        put_double(&mut bytes, 2, -1.5);
        put_bytes(&mut bytes, 3, b"abc");
        bytes.extend_from_slice(&[4 << 3 | 5, 1, 0, 0, 0]);
        put_number(&mut bytes, 5, -1i64 as u64);
        let mut message = Message::new(&bytes);
        assert_eq!(message.next_field().unwrap(), Some((1, Value::Varint(300))));
        assert_eq!(message.next_field().unwrap().unwrap().1.double(), Ok(-1.5));
        assert_eq!(message.next_field().unwrap(), Some((3, Value::Bytes(b"abc"))));
        assert_eq!(message.next_field().unwrap(), Some((4, Value::Fixed32(1))));
        assert_eq!(message.next_field().unwrap().unwrap().1.signed(), Ok(-1));
        assert_eq!(message.next_field().unwrap(), None);
    }

    #[test]
    fn another_wire_type_is_an_error() {
        for value in [Value::Varint(1), Value::Fixed64(1), Value::Bytes(b"a"), Value::Fixed32(1)] {
            assert_eq!(value.signed().is_ok(), matches!(value, Value::Varint(_)));
            assert_eq!(value.double().is_ok(), matches!(value, Value::Fixed64(_)));
            assert_eq!(value.bytes().is_ok(), matches!(value, Value::Bytes(_)));
            assert_eq!(value.text().is_ok(), matches!(value, Value::Bytes(_)));
        }
    }

    #[test]
    fn lies_are_errors() {
        for bytes in [
            &[0x0a, 5, 1][..],
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x80; 11],
            &[0x09, 1, 2],
            &[0x0b],
            &[0x00, 0x00],
            &[0x08],
        ] {
            assert!(Message::new(bytes).next_field().is_err(), "{bytes:x?}");
        }
    }
}
