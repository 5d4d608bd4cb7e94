//! Which entities a merge may leave out.

use super::Segment;
use super::piece::Piece;
use crate::entity::BlockRef;
use crate::error::Result;
use crate::narrow::to_u16;
use crate::subset::{count_bits, for_each_bit};
use roaring::RoaringBitmap;

impl Segment {
    /// The entities of which no series is in `ordinals`.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn entities_without(&self, ordinals: &RoaringBitmap) -> Result<RoaringBitmap> {
        let without = self.those_without(ordinals);
        self.settle(without)
    }

    fn those_without(&self, ordinals: &RoaringBitmap) -> Result<RoaringBitmap> {
        let mut without = RoaringBitmap::new();
        for group in 0..self.group_count() {
            for found in self.group_blocks(group)? {
                let block = found.block;
                let in_block = series_among(&block, ordinals);
                // Mostly all series of a block are there, or none.
                if in_block == u64::from(count_bits(&found.live)) * u64::from(block.columns) {
                    continue;
                }
                for_each_bit(&found.live, |slot| {
                    let mut series =
                        (0..to_u16(block.columns as usize)).map(|c| block.ordinal(c, slot));
                    if in_block == 0 || !series.any(|ordinal| ordinals.contains(ordinal)) {
                        without.insert(block.entity(slot));
                    }
                });
            }
        }
        Ok(without)
    }
}

/// How many series of a block are in `ordinals`.
fn series_among(block: &BlockRef, ordinals: &RoaringBitmap) -> u64 {
    ordinals.range_cardinality(block.series_start..block.series_end())
}
