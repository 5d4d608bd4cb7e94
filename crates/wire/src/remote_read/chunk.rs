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
use super::bits::{BitReader, BitWriter, Window};
use crate::Error;
use crate::remote_write::encode::MillisSample;

/// Bytes of the number of samples.
const HEAD_SIZE: usize = 2;
/// Prefix, its length, and the length of what follows, for each size of a delta of delta.
const DELTA_CLASSES: [(u64, u32, u32); 3] = [(0b10, 2, 14), (0b110, 3, 17), (0b1110, 4, 20)];

const _: () = assert!(CHUNK_SAMPLES_MAX <= u16::MAX as usize);

/// Appends the samples as one chunk; those beyond [`CHUNK_SAMPLES_MAX`] are left out. Times rise.
pub fn push_chunk(out: &mut Vec<u8>, samples: &[MillisSample]) {
    let samples = samples.get(..CHUNK_SAMPLES_MAX).unwrap_or(samples);
    out.extend_from_slice(&u16::try_from(samples.len()).unwrap_or(u16::MAX).to_be_bytes());
    let mut bits = BitWriter::new(out);
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
        bits.put_xor(&mut window, sample.value.to_bits() ^ before.value.to_bits());
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
    let mut reader = Reader { bits: BitReader::new(body), delta: 0, window: None };
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
        let value = f64::from_bits(last.value.to_bits() ^ self.bits.xor(&mut self.window)?);
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
}
