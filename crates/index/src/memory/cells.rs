//! The label columns of the blocks in memory: value ids, as narrow as they can be.
//!
//! A column starts *constant* (one id for all slots, no cells at all), which is what most labels
//! of a block stay; the first other value gives it a cell per slot of one byte, and ids past 255
//! and 65,535 widen it to two and four. Old cells are abandoned; a column widens at most thrice.
//! Cells live in chunks that never move.

use crate::narrow::to_u32;

/// Bytes of a chunk; the largest column has 4 KiB.
const CHUNK_SIZE: usize = 256 << 10;
/// Bits of an offset inside a chunk.
const OFFSET_BITS: u32 = CHUNK_SIZE.trailing_zeros();

/// Where the value ids of one tag of one block are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// The id of every slot when `width` is 0, else where the cells are: chunk and offset.
    place: u32,
    /// Bytes per cell: 0, 1, 2 or 4.
    width: u8,
}

/// The cells of one column.
pub(crate) enum Cells<'a> {
    /// Every slot has this id.
    Constant(u32),
    /// One byte per slot.
    Bytes(&'a [u8]),
    /// Two bytes per slot, little endian.
    Pairs(&'a [[u8; 2]]),
    /// Four bytes per slot, little endian.
    Quads(&'a [[u8; 4]]),
}

#[derive(Default)]
pub(crate) struct CellPool {
    chunks: Vec<Vec<u8>>,
}

impl Column {
    /// A column whose first slot has this id.
    pub(crate) fn constant(id: u32) -> Column {
        Column { place: id, width: 0 }
    }
}

impl CellPool {
    /// Bytes that columns can still take before `place` overflows.
    pub(crate) fn has_room(&self, size: usize) -> bool {
        let chunks_max = 1usize << (32 - OFFSET_BITS);
        self.chunks.len() + size.div_ceil(CHUNK_SIZE / 2) < chunks_max
    }

    /// The ids of the first `len` slots.
    #[inline]
    pub(crate) fn cells(&self, column: Column, len: usize) -> Cells<'_> {
        if column.width == 0 {
            return Cells::Constant(column.place);
        }
        let bytes = self.bytes(column, len);
        match column.width {
            1 => Cells::Bytes(bytes),
            2 => Cells::Pairs(bytes.as_chunks().0),
            _ => Cells::Quads(bytes.as_chunks().0),
        }
    }

    fn bytes(&self, column: Column, len: usize) -> &[u8] {
        let offset = column.place as usize & (CHUNK_SIZE - 1);
        let size = len * usize::from(column.width);
        &self.chunks[(column.place >> OFFSET_BITS) as usize][offset..offset + size]
    }

    /// The id in one slot.
    #[inline]
    pub(crate) fn get(&self, column: Column, slot: usize) -> u32 {
        match self.cells(column, slot + 1) {
            Cells::Constant(id) => id,
            Cells::Bytes(cells) => u32::from(cells[slot]),
            Cells::Pairs(cells) => u32::from(u16::from_le_bytes(cells[slot])),
            Cells::Quads(cells) => u32::from_le_bytes(cells[slot]),
        }
    }

    /// Copies the ids of the first slots.
    pub(crate) fn copy(&self, column: Column, out: &mut [u32]) {
        match self.cells(column, out.len()) {
            Cells::Constant(id) => out.fill(id),
            Cells::Bytes(cells) => {
                out.iter_mut().zip(cells).for_each(|(id, cell)| *id = u32::from(*cell));
            }
            Cells::Pairs(cells) => {
                let ids = cells.iter().map(|cell| u32::from(u16::from_le_bytes(*cell)));
                out.iter_mut().zip(ids).for_each(|(id, cell)| *id = cell);
            }
            Cells::Quads(cells) => {
                let ids = cells.iter().map(|cell| u32::from_le_bytes(*cell));
                out.iter_mut().zip(ids).for_each(|(id, cell)| *id = cell);
            }
        }
    }

    /// Writes the id of `slot`, the first unused one of a block of `capacity` slots.
    #[inline]
    pub(crate) fn push(&mut self, column: &mut Column, slot: usize, capacity: usize, id: u32) {
        debug_assert!(slot < capacity && 0 < slot);
        if column.width == 0 && column.place == id {
            return;
        }
        let wanted = width_of(id);
        if column.width < wanted || column.width == 0 {
            let wider = match column.width {
                0 => wanted.max(width_of(column.place)),
                _ => wanted,
            };
            *column = self.widen(*column, slot, capacity, wider);
        }
        let offset = column.place as usize & (CHUNK_SIZE - 1);
        let chunk = &mut self.chunks[(column.place >> OFFSET_BITS) as usize];
        write_cell(&mut chunk[offset..], slot, column.width, id);
    }

    #[cold]
    fn widen(&mut self, old: Column, len: usize, capacity: usize, width: u8) -> Column {
        let place = self.allocate(capacity * usize::from(width));
        let new = Column { place, width };
        for slot in 0..len {
            let id = self.get(old, slot);
            let offset = place as usize & (CHUNK_SIZE - 1);
            let chunk = &mut self.chunks[(place >> OFFSET_BITS) as usize];
            write_cell(&mut chunk[offset..], slot, width, id);
        }
        new
    }

    fn allocate(&mut self, size: usize) -> u32 {
        assert!(size <= CHUNK_SIZE, "a column of {size} bytes");
        if self.chunks.last().is_none_or(|chunk| CHUNK_SIZE < chunk.len() + size) {
            self.chunks.push(Vec::with_capacity(CHUNK_SIZE));
        }
        let chunk_idx = self.chunks.len() - 1;
        let chunk = &mut self.chunks[chunk_idx];
        let offset = chunk.len();
        chunk.resize(offset + size, 0);
        to_u32(chunk_idx) << OFFSET_BITS | to_u32(offset)
    }

    /// Bytes of memory held.
    pub(crate) fn memory_size(&self) -> usize {
        self.chunks.len() * (CHUNK_SIZE + 24)
    }
}

fn width_of(id: u32) -> u8 {
    match id {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

fn write_cell(cells: &mut [u8], slot: usize, width: u8, id: u32) {
    let width = usize::from(width);
    cells[slot * width..(slot + 1) * width].copy_from_slice(&id.to_le_bytes()[..width]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_widen_as_ids_grow() {
        for ids in [
            vec![7; 16],
            vec![1, 2, 3, 255, 256, 65_535, 65_536, 70_000, 1],
            vec![70_000, 1, 2],
            vec![300, 1, 90_000],
            vec![5, 5, 5, 6],
        ] {
            let mut pool = CellPool::default();
            let mut column = Column::constant(ids[0]);
            for (slot, id) in ids.iter().enumerate().skip(1) {
                pool.push(&mut column, slot, 16, *id);
            }
            let got: Vec<u32> = (0..ids.len()).map(|slot| pool.get(column, slot)).collect();
            let mut copied = vec![u32::MAX; ids.len()];
            pool.copy(column, &mut copied);
            assert_eq!(copied, got);
            assert_eq!(got, ids);
        }
    }

    #[test]
    fn many_columns_share_chunks() {
        let mut pool = CellPool::default();
        let mut columns = vec![Column::constant(0); 3000];
        for slot in 1..1024 {
            for (idx, column) in columns.iter_mut().enumerate() {
                pool.push(column, slot, 1024, (slot * idx % 251) as u32);
            }
        }
        for (idx, column) in columns.iter().enumerate() {
            assert!((0..1024).all(|slot| pool.get(*column, slot) == (slot * idx % 251) as u32));
        }
        assert!(pool.memory_size() < 4 << 20);
    }
}
