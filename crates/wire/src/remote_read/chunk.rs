//! Chunks as Prometheus stores them: times by delta of delta, values by XOR with the one before.
//!
//! ```text
//! chunk    u16 samples, then bits, the highest of a byte first
//! sample 0 varint(zigzag time) value:64
//! sample 1 varint(delta) xor
//! others   delta of delta: 0 | 10 d:14 | 110 d:17 | 1110 d:20 | 1111 d:64     then xor
//! xor      0 same value
//!          10 bits        in the window of the xor before
//!          11 leading:5 len:6 bits:len        a new window; a length of 64 is written as 0
//! ```
//!
//! Every bit pattern of a value comes back, stale markers too.

use super::CHUNK_SAMPLES_MAX;
use crate::Error;
use crate::remote_write::encode::MillisSample;

/// Bytes of the number of samples.
const HEAD_SIZE: usize = 2;
/// Leading zeros that five bits can tell.
const LEADING_MAX: u32 = 31;
/// Prefix, its length, and the length of what follows, for each size of a delta of delta.
const DELTA_CLASSES: [(u64, u32, u32); 3] = [(0b10, 2, 14), (0b110, 3, 17), (0b1110, 4, 20)];

const _: () = assert!(CHUNK_SAMPLES_MAX <= u16::MAX as usize);

/// Where the bits of an xor stand that are not zero.
#[derive(Clone, Copy)]
struct Window {
    leading: u32,
    trailing: u32,
}

impl Window {
    fn len(self) -> u32 {
        64 - self.leading - self.trailing
    }
}

/// Appends the samples as one chunk; those beyond [`CHUNK_SAMPLES_MAX`] are left out. Times rise.
pub fn push_chunk(out: &mut Vec<u8>, samples: &[MillisSample]) {
    let samples = samples.get(..CHUNK_SAMPLES_MAX).unwrap_or(samples);
    out.extend_from_slice(&(samples.len() as u16).to_be_bytes());
    let mut bits = BitWriter { out, free: 0 };
    let Some(first) = samples.first() else { return };
    bits.put_varint((first.millis << 1 ^ first.millis >> 63) as u64);
    bits.put(first.value.to_bits(), 64);
    let (mut delta, mut window) = (0i64, None);
    for (idx, pair) in samples.windows(2).enumerate() {
        let [before, sample] = pair else { continue };
        let next = sample.millis.wrapping_sub(before.millis);
        match idx {
            0 => bits.put_varint(next as u64),
            _ => put_delta(&mut bits, next.wrapping_sub(delta)),
        }
        delta = next;
        put_xor(&mut bits, &mut window, sample.value.to_bits() ^ before.value.to_bits());
    }
}

fn put_delta(bits: &mut BitWriter<'_>, delta: i64) {
    if delta == 0 {
        return bits.put(0, 1);
    }
    for (prefix, prefix_len, len) in DELTA_CLASSES {
        let half = 1i64 << (len - 1);
        if -half < delta && delta <= half {
            bits.put(prefix, prefix_len);
            return bits.put(delta as u64, len);
        }
    }
    bits.put(0b1111, 4);
    bits.put(delta as u64, 64);
}

fn put_xor(bits: &mut BitWriter<'_>, window: &mut Option<Window>, xor: u64) {
    if xor == 0 {
        return bits.put(0, 1);
    }
    let leading = xor.leading_zeros().min(LEADING_MAX);
    let trailing = xor.trailing_zeros();
    if let Some(known) = window.filter(|w| w.leading <= leading && w.trailing <= trailing) {
        bits.put(0b10, 2);
        return bits.put(xor >> known.trailing, known.len());
    }
    let new = Window { leading, trailing };
    *window = Some(new);
    bits.put(0b11, 2);
    bits.put(u64::from(leading), 5);
    bits.put(u64::from(new.len()), 6);
    bits.put(xor >> trailing, new.len());
}

/// Appends bits to bytes.
struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits of the last byte that are not written yet.
    free: u32,
}

impl BitWriter<'_> {
    /// Appends the lowest `len` bits of `value`. A whole byte at a byte's border leaves an empty
    /// byte behind, as it does in Prometheus, so that chunks are the same byte for byte.
    fn put(&mut self, value: u64, len: u32) {
        let mut left = len;
        while 8 <= left {
            left -= 8;
            let byte = (value >> left) as u8;
            self.or(byte);
            self.out.push(byte.checked_shl(self.free).unwrap_or(0));
        }
        while 0 < left {
            let count = left.min(if self.free == 0 { 8 } else { self.free });
            left -= count;
            self.or(((value >> left) as u8) << (8 - count));
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

    fn put_varint(&mut self, mut value: u64) {
        while 0x80 <= value {
            self.put(value | 0x80, 8);
            value >>= 7;
        }
        self.put(value, 8);
    }
}

/// The samples of a chunk.
///
/// # Errors
/// The bytes end before the samples do.
pub fn decode_chunk(bytes: &[u8]) -> Result<Vec<MillisSample>, Error> {
    let short = || Error::malformed("chunk", bytes.len(), "as many samples as it says");
    let (head, body) = bytes.split_first_chunk::<HEAD_SIZE>().ok_or_else(short)?;
    let count = usize::from(u16::from_be_bytes(*head));
    // Two bits are the shortest sample.
    if body.len() * 8 < count * 2 {
        return Err(short());
    }
    let mut reader = Reader { bits: BitReader { bytes: body, at: 0 }, delta: 0, window: None };
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let sample = reader.sample(&samples).ok_or_else(short)?;
        samples.push(sample);
    }
    Ok(samples)
}

/// Reads samples one after the other.
struct Reader<'a> {
    bits: BitReader<'a>,
    delta: i64,
    window: Option<Window>,
}

impl Reader<'_> {
    fn sample(&mut self, before: &[MillisSample]) -> Option<MillisSample> {
        let Some(last) = before.last() else {
            let zigzag = self.bits.varint()?;
            let millis = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
            return Some(MillisSample { millis, value: f64::from_bits(self.bits.take(64)?) });
        };
        self.delta = match before.len() {
            1 => self.bits.varint()? as i64,
            _ => self.delta.wrapping_add(self.delta_of_delta()?),
        };
        let millis = last.millis.wrapping_add(self.delta);
        let value = f64::from_bits(last.value.to_bits() ^ self.xor()?);
        Some(MillisSample { millis, value })
    }

    fn delta_of_delta(&mut self) -> Option<i64> {
        if self.bits.take(1)? == 0 {
            return Some(0);
        }
        for (_, _, len) in DELTA_CLASSES {
            if self.bits.take(1)? == 0 {
                let found = self.bits.take(len)? as i64;
                let is_negative = 1i64 << (len - 1) < found;
                return Some(if is_negative { found - (1 << len) } else { found });
            }
        }
        self.bits.take(64).map(|found| found as i64)
    }

    fn xor(&mut self) -> Option<u64> {
        if self.bits.take(1)? == 0 {
            return Some(0);
        }
        if self.bits.take(1)? == 1 {
            let leading = self.bits.take(5)? as u32;
            let len = match self.bits.take(6)? as u32 {
                0 => 64,
                len => len,
            };
            let trailing = 64u32.checked_sub(leading + len)?;
            self.window = Some(Window { leading, trailing });
        }
        let window = self.window?;
        Some(self.bits.take(window.len())? << window.trailing)
    }
}

/// Takes bits from bytes.
struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits taken.
    at: usize,
}

impl BitReader<'_> {
    fn take(&mut self, len: u32) -> Option<u64> {
        let mut value = 0u64;
        let mut left = len;
        while 0 < left {
            let byte = *self.bytes.get(self.at / 8)?;
            let there = 8 - (self.at % 8) as u32;
            let count = left.min(there);
            let piece = byte >> (there - count) & (0xff >> (8 - count));
            value = value << count | u64::from(piece);
            left -= count;
            self.at += count as usize;
        }
        Some(value)
    }

    fn varint(&mut self) -> Option<u64> {
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
}
