//! Bits of chunks, the highest of a byte first, and the values that both kinds of chunk write.

use crate::narrow::{body_offset, low_byte};

/// Leading zeros that five bits can tell.
const LEADING_MAX: u32 = 31;

/// Where the bits of an xor stand that are not zero.
#[derive(Clone, Copy)]
pub struct Window {
    leading: u32,
    trailing: u32,
}

impl Window {
    fn len(self) -> u32 {
        64 - self.leading - self.trailing
    }
}

/// Appends bits to bytes.
pub struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits of the last byte that are not written yet.
    free: u32,
}

impl<'a> BitWriter<'a> {
    /// Appends behind whole bytes.
    pub fn new(out: &'a mut Vec<u8>) -> BitWriter<'a> {
        BitWriter { out, free: 0 }
    }

    /// Bytes so far, those before the bits too.
    pub fn size(&self) -> usize {
        self.out.len()
    }

    /// Appends the lowest `len` bits of `value`. A whole byte at a byte's border leaves an empty
    /// byte behind, as it does in Prometheus, so that chunks are the same byte for byte.
    pub fn put(&mut self, value: u64, len: u32) {
        let mut left = len;
        while 8 <= left {
            left -= 8;
            let byte = low_byte(value >> left);
            self.or(byte);
            self.out.push(byte.checked_shl(self.free).unwrap_or(0));
        }
        while 0 < left {
            let count = left.min(if self.free == 0 { 8 } else { self.free });
            left -= count;
            self.or(low_byte(value >> left) << (8 - count));
            self.free -= count;
        }
    }

    /// Writes the highest bits of `byte` into the last byte, as many as are free there.
    fn or(&mut self, byte: u8) {
        if self.free == 0 {
            self.out.push(0);
            self.free = 8;
        }
        if let Some(last) = self.out.last_mut() {
            *last |= byte >> (8 - self.free);
        }
    }

    /// Appends a varint's bytes.
    pub fn put_varint(&mut self, mut value: u64) {
        while 0x80 <= value {
            self.put(value | 0x80, 8);
            value >>= 7;
        }
        self.put(value, 8);
    }

    /// Writes what a value has in common with the one before and what not.
    pub fn put_xor(&mut self, window: &mut Option<Window>, xor: u64) {
        if xor == 0 {
            return self.put(0, 1);
        }
        let leading = xor.leading_zeros().min(LEADING_MAX);
        let trailing = xor.trailing_zeros();
        if let Some(known) = window.filter(|w| w.leading <= leading && w.trailing <= trailing) {
            self.put(0b10, 2);
            return self.put(xor >> known.trailing, known.len());
        }
        let new = Window { leading, trailing };
        *window = Some(new);
        self.put(0b11, 2);
        self.put(u64::from(leading), 5);
        self.put(u64::from(new.len()), 6);
        self.put(xor >> trailing, new.len());
    }
}

/// Takes bits from bytes.
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits taken.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// Takes from the first byte on.
    pub fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, at: 0 }
    }

    /// The next `len` bits as a number; `None` when there are fewer.
    pub fn take(&mut self, len: u32) -> Option<u64> {
        let mut value = 0u64;
        let mut left = len;
        while 0 < left {
            let byte = *self.bytes.get(self.at / 8)?;
            let there = 8 - body_offset(self.at % 8);
            let count = left.min(there);
            let piece = byte >> (there - count) & (0xff >> (8 - count));
            value = value << count | u64::from(piece);
            left -= count;
            self.at += count as usize;
        }
        Some(value)
    }

    /// The next varint.
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for idx in 0..10 {
            let byte = self.take(8)?;
            value |= (byte & 0x7f) << (7 * idx);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// What [`BitWriter::put_xor`] wrote.
    pub fn xor(&mut self, window: &mut Option<Window>) -> Option<u64> {
        if self.take(1)? == 0 {
            return Some(0);
        }
        if self.take(1)? == 1 {
            let leading = u32::from(low_byte(self.take(5)?));
            let len = match u32::from(low_byte(self.take(6)?)) {
                0 => 64,
                len => len,
            };
            let trailing = 64u32.checked_sub(leading + len)?;
            *window = Some(Window { leading, trailing });
        }
        let window = (*window)?;
        Some(self.take(window.len())? << window.trailing)
    }
}
