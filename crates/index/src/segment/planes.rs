//! Bit-sliced columns: the value ids of a block's slots, one bitmap per bit of the id.
//!
//! ```text
//! ids - min     5 3 0 6            plane 0  1 1 0 0     each plane has a bit per slot,
//!           =  101 011 000 110     plane 1  0 1 0 1     rounded up to bytes
//!                                  plane 2  1 0 0 1
//! ```
//!
//! Comparing 1,024 ids with a constant is one AND per plane and machine word, a range is two or
//! three: some ten nanoseconds for a column of seven bits, and no more bytes than bit-packing.

use crate::error::{Result, corrupt};
use crate::subset::{SLOT_WORDS, SlotBits};

/// Bits that ids up to `span` above the least need.
pub(crate) fn width_of(span: u32) -> u32 {
    32 - span.leading_zeros()
}

/// Bytes of one plane.
pub(crate) fn plane_size(len: usize) -> usize {
    len.div_ceil(8)
}

/// Appends the planes of `ids`, each at least `min` and less than `min + 2^width`.
// Inlined by its one hot caller; left to the compiler, that came and went with unrelated changes,
// and a sixth of the instructions of a segment's writing with it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a byte at a time is taken out")]
pub(crate) fn put_planes(ids: &[u32], min: u32, width: u32, out: &mut Vec<u8>) {
    let size = plane_size(ids.len());
    let start = out.len();
    out.resize(start + size * width as usize, 0);
    let planes = &mut out[start..];
    for (byte_idx, eight) in ids.chunks(8).enumerate() {
        for first_plane in (0..width).step_by(8) {
            let mut rows = 0u64;
            for (slot, id) in eight.iter().enumerate() {
                let bits = ((id - min) >> first_plane) as u8;
                rows |= u64::from(bits) << (8 * slot);
            }
            let columns = transpose(rows);
            for plane in first_plane..width.min(first_plane + 8) {
                planes[plane as usize * size + byte_idx] =
                    (columns >> (8 * (plane - first_plane))) as u8;
            }
        }
    }
}

/// Swaps rows and columns of an 8 by 8 matrix of bits: bit i of byte j becomes bit j of byte i.
fn transpose(x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    let x = x ^ t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    let x = x ^ t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

/// A column of a block, in place.
#[derive(Clone, Copy)]
pub(crate) struct Planes<'a> {
    /// The least id.
    pub min: u32,
    /// Planes; without any, every slot has the least id.
    pub width: u32,
    len: usize,
    bytes: &'a [u8],
}

impl<'a> Planes<'a> {
    /// Bytes of all planes.
    pub(crate) fn size(&self) -> usize {
        plane_size(self.len) * self.width as usize
    }

    /// The column of `len` slots that starts at `offset` of the section.
    #[inline]
    pub(crate) fn open(
        section: &'a [u8],
        offset: u64,
        min: u32,
        width: u32,
        len: usize,
    ) -> Result<Planes<'a>> {
        if 32 < width || (width < 32 && u32::MAX - min < (1 << width) - 1) {
            return Err(corrupt("width of a column"));
        }
        if width == 0 {
            return Ok(Planes { min, width, len, bytes: &[] });
        }
        let size = plane_size(len) * width as usize;
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|start| section.get(start..start.checked_add(size)?))
            .ok_or_else(|| corrupt("column past its section"))?;
        Ok(Planes { min, width, len, bytes })
    }

    /// No id is above.
    pub(crate) fn max(&self) -> u32 {
        match self.width {
            32 => u32::MAX,
            width => self.min + ((1u32 << width) - 1),
        }
    }

    #[inline]
    fn plane(&self, plane: usize) -> SlotBits {
        let size = plane_size(self.len);
        let bytes = &self.bytes[plane * size..(plane + 1) * size];
        let mut bits = [0; SLOT_WORDS];
        let (words, rest) = bytes.as_chunks::<8>();
        for (bits, word) in bits.iter_mut().zip(words) {
            *bits = u64::from_le_bytes(*word);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            bits[words.len()] = u64::from_le_bytes(last);
        }
        bits
    }

    /// The id of one slot.
    pub(crate) fn get(&self, slot: usize) -> u32 {
        let size = plane_size(self.len);
        let mut offset = 0u32;
        for plane in 0..self.width as usize {
            let byte = self.bytes[plane * size + slot / 8];
            offset |= u32::from(byte >> (slot % 8) & 1) << plane;
        }
        self.min.wrapping_add(offset)
    }

    /// The ids of all slots.
    #[expect(clippy::cast_possible_truncation, reason = "a byte at a time is taken out")]
    pub(crate) fn decode(&self, out: &mut [u32]) {
        assert_eq!(out.len(), self.len);
        out.fill(self.min);
        let size = plane_size(self.len);
        for first_plane in (0..self.width as usize).step_by(8) {
            let end = (self.width as usize).min(first_plane + 8);
            for (byte_idx, eight) in out.chunks_mut(8).enumerate() {
                let mut columns = 0u64;
                for plane in first_plane..end {
                    let byte = self.bytes[plane * size + byte_idx];
                    columns |= u64::from(byte) << (8 * (plane - first_plane));
                }
                let rows = transpose(columns);
                for (slot, id) in eight.iter_mut().enumerate() {
                    let bits = (rows >> (8 * slot)) as u8;
                    *id = id.wrapping_add(u32::from(bits) << first_plane);
                }
            }
        }
    }

    /// The slots whose id is `id`.
    pub(crate) fn equal(&self, id: u32) -> SlotBits {
        let offset = id - self.min;
        let mut equal = [u64::MAX; SLOT_WORDS];
        for plane in 0..self.width as usize {
            let flip = if offset >> plane & 1 == 1 { 0 } else { u64::MAX };
            let bits = self.plane(plane);
            for (equal, bits) in equal.iter_mut().zip(bits) {
                *equal &= bits ^ flip;
            }
        }
        equal
    }

    /// The slots whose id is between `low` and `high`, both included and in `min..=max`.
    pub(crate) fn between(&self, low: u32, high: u32) -> SlotBits {
        debug_assert!(self.min <= low && low <= high && high <= self.max());
        if low == high {
            return self.equal(low);
        }
        let (low, high) = (low - self.min, high - self.min);
        // Slots that are known to be above `low` or below `high`, and those still equal to it.
        let (mut above, mut below) = ([0; SLOT_WORDS], [0; SLOT_WORDS]);
        let (mut is_low, mut is_high) = ([u64::MAX; SLOT_WORDS], [u64::MAX; SLOT_WORDS]);
        for plane in (0..self.width as usize).rev() {
            let bits = self.plane(plane);
            compare(&bits, low >> plane & 1, &mut above, &mut is_low, 0);
            compare(&bits, high >> plane & 1, &mut below, &mut is_high, u64::MAX);
        }
        std::array::from_fn(|word| (above[word] | is_low[word]) & (below[word] | is_high[word]))
    }
}

/// One step of a comparison from the highest bit down. With `flip` 0 it looks for slots above
/// the constant, with `flip` all ones for those below.
#[inline]
fn compare(bits: &SlotBits, bit: u32, decided: &mut SlotBits, equal: &mut SlotBits, flip: u64) {
    // Seen flipped, "below" is "above" with every bit turned.
    let constant = u64::from(bit).wrapping_neg() ^ flip;
    for word in 0..SLOT_WORDS {
        let seen = bits[word] ^ flip;
        decided[word] |= equal[word] & seen & !constant;
        equal[word] &= !(seen ^ constant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;

    #[test]
    fn planes_compare_as_numbers() {
        let mut prng = Random::seeded(3);
        for (len, min, span) in [
            (1024, 0, 1),
            (1024, 5, 100),
            (1024, 1000, 1 << 20),
            (1, 7, 3),
            (100, 0, u32::MAX),
            (513, 1 << 31, 300),
            (1000, 9, 0),
        ] {
            let ids: Vec<u32> =
                (0..len).map(|_| min + (prng.next() % (u64::from(span) + 1)) as u32).collect();
            let min = *ids.iter().min().unwrap();
            let width = width_of(ids.iter().max().unwrap() - min);
            let mut section = b"before".to_vec();
            put_planes(&ids, min, width, &mut section);
            let planes = Planes::open(&section, 6, min, width, len).unwrap();
            let mut out = vec![0; len];
            planes.decode(&mut out);
            assert_eq!(out, ids);
            for _ in 0..50 {
                let mut ends = [*prng.pick(&ids), *prng.pick(&ids)];
                ends.sort_unstable();
                let found = planes.between(ends[0], ends[1]);
                for (slot, id) in ids.iter().enumerate() {
                    assert_eq!(planes.get(slot), *id);
                    let is_found = found[slot / 64] >> (slot % 64) & 1 == 1;
                    assert_eq!(is_found, ends[0] <= *id && *id <= ends[1], "{id} {ends:?}");
                }
            }
            assert!(Planes::open(&section, 7, min, width, len).is_err() || width == 0);
        }
    }
}
