//! Little-endian integers and varints, appended to a `Vec<u8>` and read back with bounds checks.

use crate::error::Error;

/// Appends `value` in 7-bit groups, least significant first (LEB128); 1 to 10 bytes.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while 0x80 <= value {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer as the varint of its zigzag form.
#[inline]
pub fn put_i64_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, zigzag(value));
}

/// Appends four bytes, little endian.
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends eight bytes, little endian.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Maps small magnitudes of either sign to small unsigned numbers: 0, -1, 1, -2 to 0, 1, 2, 3.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// A cursor over bytes that may be anything. Every method fails instead of reading past the end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, offset: 0 }
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Whether everything has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// An error at the cursor.
    pub fn corrupt(&self, what: &'static str) -> Error {
        Error { offset: self.offset, what }
    }

    /// The next `size` bytes.
    #[inline]
    pub fn slice(&mut self, size: usize) -> Result<&'a [u8], Error> {
        let end = self.offset.checked_add(size).ok_or_else(|| self.corrupt("size overflows"))?;
        let slice = self.bytes.get(self.offset..end).ok_or_else(|| self.corrupt("cut short"))?;
        self.offset = end;
        Ok(slice)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Error> {
        let byte = *self.bytes.get(self.offset).ok_or_else(|| self.corrupt("cut short"))?;
        self.offset += 1;
        Ok(byte)
    }

    /// The next four bytes, little endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Error> {
        let mut array = [0; 4];
        array.copy_from_slice(self.slice(4)?);
        Ok(u32::from_le_bytes(array))
    }

    /// The next eight bytes, little endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Error> {
        let mut array = [0; 8];
        array.copy_from_slice(self.slice(8)?);
        Ok(u64::from_le_bytes(array))
    }

    /// The next varint; more than ten bytes or more than 64 bits is corrupt.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Error> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        self.varint_tail(first)
    }

    fn varint_tail(&mut self, first: u8) -> Result<u64, Error> {
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if 64 <= shift || (shift == 63 && 1 < bits) {
                return Err(self.corrupt("varint over 64 bits"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// The next varint as a `u32`.
    #[inline]
    pub fn varint_u32(&mut self) -> Result<u32, Error> {
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| self.corrupt("number over 32 bits"))
    }

    /// The next varint as a size, at most `max`: the guard against sizes that lie.
    #[inline]
    pub fn varint_size(&mut self, max: usize) -> Result<usize, Error> {
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(size) if size <= max => Ok(size),
            _ => Err(self.corrupt("size over its limit")),
        }
    }

    /// The next zigzag varint.
    #[inline]
    pub fn i64_zigzag(&mut self) -> Result<i64, Error> {
        Ok(unzigzag(self.varint()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 300, 1 << 32, u64::MAX - 1, u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            put_varint(&mut bytes, number);
            put_i64_zigzag(&mut bytes, number as i64);
        }
        let mut reader = Reader::new(&bytes);
        for number in numbers {
            assert_eq!(reader.varint(), Ok(number));
            assert_eq!(reader.i64_zigzag(), Ok(number as i64));
        }
        assert!(reader.is_empty());
        assert!(reader.u8().is_err());
    }

    #[test]
    fn overlong_varints_are_corrupt() {
        assert!(Reader::new(&[0xff; 10]).varint().is_err());
        assert!(Reader::new(&[0x80; 11]).varint().is_err());
        assert!(Reader::new(&[0x80]).varint().is_err());
        assert!(Reader::new(&[5]).varint_size(4).is_err());
    }
}
