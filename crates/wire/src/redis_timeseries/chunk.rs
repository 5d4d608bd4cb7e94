//! Chunks of a key: samples as they are, or differences between them in a few bits.
//!
//! ```text
//! plain        { time u64, value f64 }
//! compressed   first time and value stand in the head; then for each sample
//!   time   difference of differences: 0 none | 10 5 bits | 110 8 | 1110 11 | 11110 15 | 111110 32 | 111111 64
//!   value  0 the same | 10 bits of the same place as before | 11 zeros before 5 bits, size - 1 6 bits, bits
//! ```
//! All is little endian, bits come from the lowest of a byte on. The head says how it ends: with which time,
//! value and bit. What does not end so is rotten.

use crate::Error;
use crate::remote_write::encode::MillisSample;

/// Bytes of a chunk: the module takes 1 MiB, and lets it grow a little before it splits it.
const CHUNK_SIZE_MAX: usize = 4 << 20;
const SAMPLE_SIZE: usize = 16;
/// Bits that a sample takes at least.
const SAMPLE_BITS_MIN: u64 = 2;
/// Sizes of differences of differences.
const DELTA_BITS: [u32; 5] = [5, 8, 11, 15, 32];

/// What stands before the bits of a chunk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    /// Samples.
    pub count: u64,
    /// Bits that were written.
    pub bits: u64,
    pub first_value: u64,
    pub first_time: u64,
    pub last_time: u64,
    pub last_delta: u64,
    pub last_value: u64,
}

fn bad<T>(offset: usize, reason: &'static str) -> Result<T, Error> {
    Err(Error::malformed("chunk of TSDB-TYPE", offset, reason))
}

/// Samples as they are.
///
/// # Errors
/// When there are fewer, or their times do not ascend.
pub fn plain(bytes: &[u8], count: u64) -> Result<Vec<MillisSample>, Error> {
    let (all, _) = bytes.as_chunks::<SAMPLE_SIZE>();
    let count = usize::try_from(count).ok();
    let Some(all) = count.and_then(|count| all.get(..count)) else {
        return bad(bytes.len(), "as many samples as the chunk says");
    };
    let mut samples: Vec<MillisSample> = Vec::with_capacity(all.len());
    for (at, sample) in all.iter().enumerate() {
        let (time, value) = sample.split_at(8);
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        push(&mut samples, word(time), word(value), at * SAMPLE_SIZE)?;
    }
    Ok(samples)
}

fn push(samples: &mut Vec<MillisSample>, time: u64, bits: u64, offset: usize) -> Result<(), Error> {
    let millis = i64::try_from(time).ok();
    match millis.filter(|millis| samples.last().is_none_or(|last| last.millis < *millis)) {
        Some(millis) => {
            samples.push(MillisSample { millis, value: f64::from_bits(bits) });
            Ok(())
        }
        None => bad(offset, "times that ascend"),
    }
}

/// Samples that are differences.
///
/// # Errors
/// When the bits are not those of as many samples, which end as the head says.
pub fn compressed(head: &Head, bytes: &[u8]) -> Result<Vec<MillisSample>, Error> {
    if CHUNK_SIZE_MAX < bytes.len() {
        return bad(0, "up to 4 MiB");
    }
    if bytes.len() as u64 * 8 < head.bits {
        return bad(bytes.len(), "as many bits as its head says");
    }
    let Some(others) = head.count.checked_sub(1) else { return Ok(Vec::new()) };
    if head.bits / SAMPLE_BITS_MIN < others {
        return bad(0, "no more samples than bits for them");
    }
    let mut samples = Vec::new();
    let mut bits = Bits { bytes, at: 0, end: head.bits };
    let (mut time, mut delta, mut value) = (head.first_time, 0u64, head.first_value);
    let mut place = Place { size: 0, trailing: 0 };
    push(&mut samples, time, value, 0)?;
    for _ in 0..others {
        let before = bits.offset();
        delta = delta.wrapping_add(bits.delta()?);
        time = time.wrapping_add(delta);
        value ^= bits.change(&mut place)?;
        push(&mut samples, time, value, before)?;
    }
    if (time, value, delta) != (head.last_time, head.last_value, head.last_delta) {
        return bad(bits.offset(), "the last time, difference and value that the head says");
    }
    match bits.at == head.bits {
        true => Ok(samples),
        false => bad(bits.offset(), "the end where the head says"),
    }
}

/// Where the bits of a value stand that change.
struct Place {
    size: u32,
    /// Zeros behind them.
    trailing: u32,
}

/// Bits, one after the other.
struct Bits<'a> {
    bytes: &'a [u8],
    at: u64,
    end: u64,
}

impl Bits<'_> {
    /// The byte that is read.
    fn offset(&self) -> usize {
        usize::try_from(self.at / 8).unwrap_or(usize::MAX)
    }

    /// So many, 64 at most.
    fn take(&mut self, count: u32) -> Result<u64, Error> {
        let (at, shift) = (self.offset(), self.at % 8);
        self.at += u64::from(count);
        if self.end < self.at {
            return bad(at, "more bits");
        }
        // Nine bytes have 64 bits wherever they begin.
        let mut window = [0; 16];
        let some = self.bytes.get(at..).unwrap_or_default();
        let some = some.get(..9).unwrap_or(some);
        window.iter_mut().zip(some).for_each(|(to, from)| *to = *from);
        let bits = (u128::from_le_bytes(window) >> shift) & ((1 << count) - 1);
        // The mask leaves no more than 64.
        Ok(u64::try_from(bits).unwrap_or_default())
    }

    /// By how much the difference of times differs from the one before.
    fn delta(&mut self) -> Result<u64, Error> {
        if self.take(1)? == 0 {
            return Ok(0);
        }
        for size in DELTA_BITS {
            if self.take(1)? == 0 {
                let bits = self.take(size)?;
                // Its highest bit is the sign.
                return Ok(((bits << (64 - size)) as i64 >> (64 - size)) as u64);
            }
        }
        self.take(64)
    }

    /// The bits by which a value differs from the one before.
    fn change(&mut self, place: &mut Place) -> Result<u64, Error> {
        if self.take(1)? == 0 {
            return Ok(0);
        }
        if self.take(1)? == 1 {
            let before = self.offset();
            let (leading, size) = (self.take(5)?, self.take(6)? + 1);
            let Some(trailing) = 64u64.checked_sub(leading + size) else {
                return bad(before, "no more than 64 bits of a value");
            };
            // Both are below 64.
            *place = Place { size: (size & 0x7f) as u32, trailing: (trailing & 0x3f) as u32 };
        } else if place.size == 0 {
            return bad(self.offset(), "the place of bits before it is used again");
        }
        Ok(self.take(place.size)? << place.trailing)
    }
}

/// The same samples as bits: what tests read.
#[cfg(test)]
pub fn encode(samples: &[(i64, f64)]) -> (Head, Vec<u8>) {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |value: u64, count: u32| bits.extend((0..count).map(|at| value >> at & 1 == 1));
    let (first_time, first) = samples[0];
    let mut head = Head {
        count: samples.len() as u64,
        first_value: first.to_bits(),
        first_time: first_time as u64,
        last_time: first_time as u64,
        last_value: first.to_bits(),
        ..Head::default()
    };
    let mut place = None;
    for (time, value) in &samples[1..] {
        let delta = *time as u64 - head.last_time;
        let change = delta.wrapping_sub(head.last_delta) as i64;
        let fits = |size: u32| (-(1i64 << (size - 1))..1i64 << (size - 1)).contains(&change);
        match DELTA_BITS.iter().position(|size| fits(*size)) {
            _ if change == 0 => put(0, 1),
            Some(at) => {
                put((1 << (at + 1)) - 1, at as u32 + 2);
                put(change as u64, DELTA_BITS[at]);
            }
            None => {
                put(0x3f, 6);
                put(change as u64, 64);
            }
        }
        (head.last_time, head.last_delta) = (*time as u64, delta);
        let xor = value.to_bits() ^ head.last_value;
        head.last_value = value.to_bits();
        let (leading, trailing) = (xor.leading_zeros().min(31), xor.trailing_zeros());
        match place {
            _ if xor == 0 => put(0, 1),
            Some((l, t)) if l <= leading && t <= trailing => {
                put(1, 2);
                put(xor >> t, 64 - l - t);
            }
            _ => {
                let size = 64 - leading - trailing;
                put(3, 2);
                put(u64::from(leading), 5);
                put(u64::from(size) - 1, 6);
                put(xor >> trailing, size);
                place = Some((leading, trailing));
            }
        }
    }
    head.bits = bits.len() as u64;
    let mut data = vec![0; bits.len().div_ceil(64).max(1) * 8];
    for (at, bit) in bits.iter().enumerate() {
        data[at / 8] |= u8::from(*bit) << (at % 8);
    }
    (head, data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;

    fn samples(seed: u64) -> Vec<(i64, f64)> {
        let mut random = Random::seeded(seed);
        let (mut time, mut all) = (random.below(1 << 40) as i64, Vec::new());
        for _ in 0..1 + random.below(300) {
            let bits = if random.below(50) == 0 { 50 } else { 18 };
            let bound = 1 << (1 + random.below(bits));
            time += 1 + random.below(bound) as i64;
            let value = match random.below(4) {
                0 => random.below(100) as f64,
                1 => f64::from_bits(random.next()),
                2 => random.below(1000) as f64 / 7.0,
                _ => all.last().map_or(0.0, |(_, value)| *value),
            };
            all.push((time, value));
        }
        all
    }

    #[test]
    fn what_was_written_is_read() {
        for seed in 0..300 {
            let all = samples(seed);
            let (head, data) = encode(&all);
            let found = compressed(&head, &data).unwrap();
            let bits = |(time, value): &(i64, f64)| (*time, value.to_bits());
            let same = found.iter().map(|one| (one.millis, one.value.to_bits()));
            assert!(same.eq(all.iter().map(bits)), "SEED={seed}");
        }
        assert!(compressed(&Head::default(), &[0; 8]).unwrap().is_empty());
    }

    #[test]
    fn a_bit_that_rotted_is_found() {
        let all = samples(7);
        let (head, data) = encode(&all);
        for at in 0..head.bits as usize {
            let mut rotten = data.clone();
            rotten[at / 8] ^= 1 << (at % 8);
            assert!(compressed(&head, &rotten).is_err(), "bit {at}");
        }
        let is_bad = |head: Head| compressed(&head, &data).is_err();
        assert!(is_bad(Head { count: head.count + 1, ..head }));
        assert!(is_bad(Head { count: head.count - 1, ..head }));
        assert!(is_bad(Head { count: u64::MAX, ..head }));
        assert!(is_bad(Head { bits: head.bits + 1, ..head }));
        assert!(is_bad(Head { bits: u64::MAX, ..head }));
        assert!(is_bad(Head { first_time: u64::MAX, ..head }));
    }

    #[test]
    fn samples_as_they_are() {
        let of = |pairs: &[(u64, f64)]| -> Vec<u8> {
            let bytes = pairs.iter().flat_map(|(time, value)| {
                [time.to_le_bytes(), value.to_bits().to_le_bytes()].concat()
            });
            bytes.collect()
        };
        let bytes = of(&[(1, 0.5), (2, -1.0), (0, 0.0)]);
        assert_eq!(plain(&bytes, 2).unwrap()[1], MillisSample { millis: 2, value: -1.0 });
        assert!(plain(&bytes, 3).unwrap_err().to_string().contains("ascend"));
        assert!(plain(&bytes, 4).is_err() && plain(&bytes, u64::MAX).is_err());
        assert!(plain(&of(&[(u64::MAX, 0.5)]), 1).is_err());
    }
}
