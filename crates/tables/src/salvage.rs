//! Recovery of the sound blocks of a damaged table file, for repairs.
//!
//! ```text
//! block 1 ─► block 2 ─► damaged ─► block 4 ─► end
//!                          │          └ proven with the checksum that stands in the damaged one
//!                          └ its rows are lost
//! ```
//!
//! A block's checksum covers the one before it. So a good block is proven by what stands before it, even
//! if that block is damaged; where its size or checksum is, the next two blocks that fit each other are
//! looked for. The end has the head once more.

use crate::file::{
    BLOCK_SIZE_MAX, END, FIRST_FORMAT, FORMAT, HEAD, MAGIC, ROWS, START_SIZE, crc_of, read_head,
    read_rows,
};
use crate::manifest::FileInfo;
use crate::table::Table;
use codec::{Reader, crc32};
use std::path::Path;

/// Bytes before a block's body: size, checksum, kind.
const BLOCK_HEADER_SIZE: usize = 9;

/// The rows of the good blocks of a file.
pub(crate) struct SalvagedTable {
    /// The number of the last record of the log that it shows.
    pub seq: u64,
    pub table: Table,
    /// Number of lost rows.
    pub lost_rows: u64,
}

/// A block as its header says it is.
#[derive(Clone, Copy)]
struct Block<'a> {
    crc: u32,
    kind: u8,
    body: &'a [u8],
    end: usize,
}

/// A block whose bytes are those that were written.
struct GoodBlock<'a> {
    kind: u8,
    body: &'a [u8],
    /// Whether blocks before it are lost.
    follows_gap: bool,
}

impl<'a> Block<'a> {
    /// The block that may begin at a place.
    fn at(bytes: &'a [u8], at: usize) -> Option<Block<'a>> {
        let header = bytes.get(at..)?.first_chunk::<BLOCK_HEADER_SIZE>()?;
        let [a, b, c, d, e, f, g, h, kind] = *header;
        let size = u32::from_le_bytes([a, b, c, d]) as usize;
        let start = at + BLOCK_HEADER_SIZE;
        let is_possible = (HEAD..=END).contains(&kind) && size < BLOCK_SIZE_MAX;
        let body = bytes.get(start..start.checked_add(size)?).filter(|_| is_possible)?;
        Some(Block { crc: u32::from_le_bytes([e, f, g, h]), kind, body, end: start + size })
    }

    /// Checksum of the block after one with checksum `before`.
    fn crc_behind(&self, before: u32) -> u32 {
        crc_of(before, self.kind, self.body)
    }

    fn is_good_behind(&self, before: u32) -> bool {
        self.crc == self.crc_behind(before)
    }
}

/// The blocks whose bytes are whole, in order.
fn good_blocks(bytes: &[u8]) -> Vec<GoodBlock<'_>> {
    let mut good = Vec::new();
    // The bytes before the first block may be damaged, too.
    let start = |format: u32| [MAGIC.as_slice(), &format.to_le_bytes()].concat();
    let starts = (FIRST_FORMAT..=FORMAT).map(|format| crc32(&start(format)));
    let mut befores: Vec<u32> = starts.collect();
    befores.push(crc32(bytes.get(..START_SIZE).unwrap_or_default()));
    let (mut at, mut follows_gap) = (START_SIZE, false);
    while at < bytes.len() {
        if let Some(block) = Block::at(bytes, at) {
            let next = Block::at(bytes, block.end);
            let is_next_behind = |crc: u32| next.is_some_and(|next| next.is_good_behind(crc));
            let is_good = befores.iter().any(|before| block.is_good_behind(*before));
            // The checksum itself may be damaged.
            let found = befores.iter().map(|before| block.crc_behind(*before));
            let found = found.collect::<Vec<_>>().into_iter().find(|crc| is_next_behind(*crc));
            if is_good || found.is_some() {
                good.push(GoodBlock { kind: block.kind, body: block.body, follows_gap });
                befores = vec![if is_good { block.crc } else { found.unwrap_or(block.crc) }];
                (at, follows_gap) = (block.end, false);
                continue;
            }
            if is_next_behind(block.crc) {
                (befores, at, follows_gap) = (vec![block.crc], block.end, true);
                continue;
            }
        }
        let Some((next, before)) = find_next(bytes, at) else { break };
        (befores, at, follows_gap) = (vec![before], next, true);
    }
    good
}

/// Offset at which blocks continue behind a damaged header, and the checksum before it.
fn find_next(bytes: &[u8], damaged: usize) -> Option<(usize, u32)> {
    let stored = bytes.get(damaged + 4..).and_then(|rest| rest.first_chunk::<4>());
    let stored = stored.map(|crc| u32::from_le_bytes(*crc));
    (damaged + 1..bytes.len()).find_map(|at| {
        let block = Block::at(bytes, at)?;
        if let Some(stored) = stored.filter(|stored| block.is_good_behind(*stored)) {
            return Some((at, stored));
        }
        let next = Block::at(bytes, block.end)?;
        next.is_good_behind(block.crc).then_some((block.end, block.crc))
    })
}

/// The table of a damaged file with that number, without the rows of its damaged blocks; none if
/// its head is lost.
pub(crate) fn salvage(path: &Path, bytes: &[u8], file: u64) -> Option<SalvagedTable> {
    let blocks = good_blocks(bytes);
    let end = blocks.iter().find(|block| block.kind == END);
    let head = blocks.iter().find(|block| block.kind == HEAD).or(end)?;
    let mut reader = Reader::new(head.body);
    let (_, seq, id) = (reader.varint().ok()?, reader.varint().ok()?, reader.varint().ok()?);
    let info = FileInfo { table: id, file, size: bytes.len() as u64, end_crc: 0 };
    let (mut table, row_count) = read_head(path, head.body, &info).ok()?;
    let format = match end {
        // Only format 1 has nothing there.
        Some(end) => {
            if end.body.is_empty() {
                FIRST_FORMAT
            } else {
                FORMAT
            }
        }
        None => u32::from_le_bytes(*bytes.get(MAGIC.len()..)?.first_chunk::<4>()?),
    };
    for block in blocks.iter().filter(|block| block.kind == ROWS) {
        // Numbers of rows go on from block to block there.
        if format == FIRST_FORMAT && block.follows_gap {
            break;
        }
        let before = table.clone();
        if read_rows(path, &mut table, block.body, format).is_err() {
            table = before;
        }
    }
    let lost_rows = row_count.saturating_sub(table.row_count() as u64);
    Some(SalvagedTable { seq, table, lost_rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::table;
    use crate::file::write;
    use crate::manifest::file_name;
    use vfs::{SimVfs, Vfs};

    /// A file of several blocks of rows, and its table.
    fn written() -> (Vec<u8>, Table) {
        let (vfs, table) = (SimVfs::new(1), table(4000, 300));
        write(&vfs, Path::new("/"), 7, 1, &table).expect("a good disk");
        (vfs.read(&Path::new("/").join(file_name(7))).expect("a good disk"), table)
    }

    /// Offset of the first block of a sound file.
    fn starts(bytes: &[u8]) -> Vec<usize> {
        let next = |at: &usize| Block::at(bytes, *at).map(|block| block.end);
        let all = std::iter::successors(Some(START_SIZE), next);
        all.take_while(|at| *at < bytes.len()).collect()
    }

    /// The rows that are there are as they were, and no more blocks are lost than expected.
    #[track_caller]
    fn check(bytes: &[u8], table: &Table, lost_blocks: u64, what: &str) {
        let found = salvage(Path::new("t"), bytes, 7).unwrap_or_else(|| panic!("{what}: lost"));
        // A block has 256 KiB.
        let lost_max = lost_blocks * 900;
        assert!(found.lost_rows <= lost_max, "{what}: {} rows are lost", found.lost_rows);
        let all = table.row_count() as u64;
        assert_eq!(found.table.row_count() as u64 + found.lost_rows, all, "{what}");
        for row in found.table.rows() {
            let before = table.row(row.id).unwrap_or_else(|| panic!("{what}: row {:?}", row.id));
            assert_eq!(row.values(), before.values(), "{what}");
        }
        assert_eq!((found.seq, found.table.next_row()), (1, table.next_row()));
    }

    #[test]
    fn a_flipped_bit_costs_its_block_at_most() {
        let (good, table) = written();
        check(&good, &table, 0, "whole");
        let mut places: Vec<usize> = (0..START_SIZE).collect();
        for start in starts(&good) {
            places.extend(start..start + BLOCK_HEADER_SIZE);
            places.push((start + BLOCK_HEADER_SIZE + 40).min(good.len() - 1));
        }
        for place in places {
            let mut bad = good.clone();
            bad[place] ^= 1 << (place % 8);
            check(&bad, &table, 1, &format!("byte {place}"));
        }
    }

    #[test]
    fn lost_sectors_and_a_lost_end_cost_what_they_hit() {
        let (good, table) = written();
        for sector in (0..good.len() / 512).step_by(97) {
            let mut bad = good.clone();
            bad[sector * 512..sector * 512 + 512].fill(0);
            check(&bad, &table, 2, &format!("sector {sector}"));
        }
        let starts = starts(&good);
        for (lost, end) in starts.iter().rev().take(3).enumerate() {
            check(&good[..*end], &table, lost as u64, &format!("cut at {end}"));
        }
        assert!(salvage(Path::new("t"), &good[..40], 7).is_none());
        assert!(salvage(Path::new("t"), &[], 7).is_none());
    }
}
