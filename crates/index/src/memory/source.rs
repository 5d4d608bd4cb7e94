//! What a segment's writer reads from the memory index.

use super::dictionary::Dictionary;
use super::{MemoryIndex, NONE};
use crate::narrow::to_u32;
use crate::segment::piece::PieceBlock;
use crate::subset::full_bits;

impl MemoryIndex {
    /// The first ordinal that this index may hold.
    pub fn series_start(&self) -> u32 {
        self.series_start
    }

    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    pub(crate) fn group_len(&self) -> u32 {
        to_u32(self.groups.len())
    }

    /// The blocks of a group; their numbers are indexes into the list of all.
    pub(crate) fn blocks_of_group(&self, group: u32) -> impl Iterator<Item = PieceBlock> + '_ {
        let mut next = self.groups[group as usize].first_block;
        std::iter::from_fn(move || {
            let number = next;
            let block = self.blocks.get(number as usize)?;
            next = block.next;
            let live = full_bits(u32::from(block.len));
            Some(PieceBlock { number, block: self.block_ref(block), live })
        })
    }

    /// Group and number of the block that starts with an entity.
    pub(crate) fn locate_block(&self, entity_start: u32) -> Option<(u32, u32)> {
        let number = self.block_idx_of(entity_start)?;
        Some((self.blocks[number].group, to_u32(number)))
    }

    /// Writes the value ids of a block's first slots for the tag at `position` of its group.
    pub(crate) fn copy_column(&self, block: u32, position: usize, out: &mut [u32]) {
        debug_assert!(block != NONE);
        let block = &self.blocks[block as usize];
        let column = self.columns[block.columns_start as usize + position];
        self.cells.copy(column, out);
    }

    /// Appends the table of entities, hash above id.
    pub(crate) fn copy_hashes(&self, out: &mut Vec<u64>) {
        let entries = self.entities.iter();
        out.extend(entries.map(|one| u64::from(one.hash) << 32 | u64::from(one.entity)));
    }
}
