//! Writes a segment from pieces: one for a freeze, several for a merge.
//!
//! First groups and blocks are planned, then the labels are written one after the other: merge
//! the pieces' dictionaries, translate every block's ids, slice them into planes and note
//! which blocks a value occurs in. So memory holds the output and one label's tables.

use super::dictionaries::{Merged, NO_ID, merge_dictionaries};
use super::piece::{Piece, PieceBlock, Space};
use super::planes::{put_planes, width_of};
use super::postings::PostingsWriter;
use super::{ALL_LIVE, planes};
use crate::entity::{BLOCK_SLOTS_MAX, BlockRef, EntityId};
use crate::error::{Error, Result, corrupt};
use crate::format::{COLUMN_SIZE, Counts, SECTION_COUNT, Section, encode_footer, header};
use crate::narrow::{low_half, to_u32, to_usize};
use crate::subset::{SlotBits, count_bits, full_bits};
use codec::{put_u32, put_u64, put_varint};
use std::collections::BTreeMap;

/// Tells whether an entity is to be left out.
pub(crate) type IsDead<'a> = &'a dyn Fn(EntityId) -> bool;

/// A segment, not yet in one piece.
pub(crate) struct Written {
    pub counts: Counts,
    pub sections: [Vec<u8>; SECTION_COUNT],
}

impl Written {
    /// Header, sections and footer, in the order of the file.
    pub(crate) fn parts(&self) -> Vec<std::borrow::Cow<'_, [u8]>> {
        let mut parts = vec![header().to_vec().into()];
        parts.extend(self.sections.iter().map(|section| section.as_slice().into()));
        parts.push(encode_footer(&self.counts, &self.sections).into());
        parts
    }
}

/// Writes what lives in the pieces, which hold increasing ranges of ids.
pub(crate) fn write(pieces: &[&dyn Piece], is_dead: Option<IsDead<'_>>) -> Result<Written> {
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
        return Err(corrupt("no piece to write"));
    };
    let counts = Counts {
        entities_start: first.entities().start,
        next_entity: last.entities().end,
        series_start: first.series().start,
        next_series: last.series().end,
        ..Counts::default()
    };
    let mut writer = Writer {
        pieces,
        is_dead,
        counts,
        sections: Default::default(),
        groups: Vec::new(),
        blocks: Vec::new(),
    };
    let tags = writer.plan()?;
    writer.write_groups_and_blocks()?;
    writer.write_tags(&tags)?;
    writer.write_hashes()?;
    Ok(Written { counts: writer.counts, sections: writer.sections })
}

struct Writer<'a> {
    pieces: &'a [&'a dyn Piece],
    is_dead: Option<IsDead<'a>>,
    counts: Counts,
    sections: [Vec<u8>; SECTION_COUNT],
    groups: Vec<PlannedGroup>,
    /// By group, then by entity.
    blocks: Vec<PlannedBlock>,
}

struct PlannedGroup {
    names: Vec<u32>,
    tags: Vec<u32>,
    block_start: u32,
    block_count: u32,
    column_start: u64,
    entity_count: u32,
}

struct PlannedBlock {
    piece: usize,
    /// The piece's number of the block.
    number: u32,
    group: u32,
    /// With the dead slots at its end cut off.
    block: BlockRef,
    /// The live slots, when there are dead ones among them.
    live: Option<Box<SlotBits>>,
}

/// A group of a piece with the blocks that live on.
struct Survivor {
    piece: usize,
    names: Vec<u32>,
    tags: Vec<u32>,
    blocks: Vec<PlannedBlock>,
}

impl Writer<'_> {
    fn section(&mut self, section: Section) -> &mut Vec<u8> {
        &mut self.sections[section as usize]
    }

    /// Plans groups and blocks; writes the dictionaries of metric names and tag names.
    /// Returns how the pieces number the tags.
    fn plan(&mut self) -> Result<Merged> {
        let survivors = self.survivors()?;
        let names = self.merge_used(Space::MetricNames, &survivors, |group| &group.names)?;
        let tags = self.merge_used(Space::TagNames, &survivors, |group| &group.tags)?;
        self.counts.tag_names_offset = tags.offset;
        self.counts.label_count = tags.count + 1;
        let mut by_lists: BTreeMap<(Vec<u32>, Vec<u32>), Vec<PlannedBlock>> = BTreeMap::new();
        for Survivor { piece, names: name_ids, tags: tag_ids, blocks } in survivors {
            let name_ids: Vec<u32> =
                name_ids.iter().map(|id| names.ids[piece][*id as usize]).collect();
            if has_repeats(&name_ids) {
                return Err(corrupt("a metric's name twice in a group"));
            }
            let tag_ids: Vec<u32> =
                tag_ids.iter().map(|id| tags.ids[piece][*id as usize]).collect();
            if !tag_ids.is_sorted_by(|a, b| a < b) {
                return Err(corrupt("order of a group's tags"));
            }
            by_lists.entry((name_ids, tag_ids)).or_default().extend(blocks);
        }
        let mut column_start = 0;
        for ((names, tags), blocks) in by_lists {
            if !blocks.is_sorted_by(|a, b| a.block.entity_start < b.block.entity_start) {
                return Err(corrupt("order of a group's blocks"));
            }
            self.plan_group(names, tags, blocks, &mut column_start);
        }
        self.counts.column_count = column_start;
        self.write_label(&names, |writer| {
            let mut postings = PostingsWriter::default();
            for (number, group) in writer.groups.iter().enumerate() {
                group.names.iter().for_each(|id| postings.push(*id, to_u32(number)));
            }
            (postings, to_u32(writer.groups.len()))
        });
        Ok(tags)
    }

    /// The groups of all pieces, without what is dead.
    fn survivors(&self) -> Result<Vec<Survivor>> {
        let mut out = Vec::new();
        for (piece_idx, piece) in self.pieces.iter().enumerate() {
            for group in 0..piece.group_count() {
                let blocks = piece.group_blocks(group)?;
                let blocks: Vec<PlannedBlock> =
                    blocks.iter().filter_map(|block| self.plan_block(piece_idx, block)).collect();
                if !blocks.is_empty() {
                    let (names, tags) = piece.group_lists(group)?;
                    out.push(Survivor { piece: piece_idx, names, tags, blocks });
                }
            }
        }
        Ok(out)
    }

    /// The block without its dead; `None` when nothing lives.
    fn plan_block(&self, piece: usize, source: &PieceBlock) -> Option<PlannedBlock> {
        let mut live = source.live;
        if let Some(is_dead) = self.is_dead {
            crate::subset::for_each_bit(&source.live, |slot| {
                if is_dead(source.block.entity(slot)) {
                    live[usize::from(slot) / 64] &= !(1 << (slot % 64));
                }
            });
        }
        let last_word = live.iter().rposition(|word| *word != 0)?;
        let len = to_u32(last_word * 64) + 64 - live[last_word].leading_zeros();
        let is_whole = count_bits(&live) == len;
        Some(PlannedBlock {
            piece,
            number: source.number,
            group: 0,
            block: BlockRef { len, ..source.block },
            live: (!is_whole).then(|| Box::new(live)),
        })
    }

    fn plan_group(
        &mut self,
        names: Vec<u32>,
        tags: Vec<u32>,
        mut blocks: Vec<PlannedBlock>,
        column_start: &mut u64,
    ) {
        let group = to_u32(self.groups.len());
        let mut entity_count = 0;
        for block in &mut blocks {
            block.group = group;
            entity_count += block.live.as_ref().map_or(block.block.len, |bits| count_bits(bits));
        }
        self.counts.entity_count += u64::from(entity_count);
        self.counts.series_count += u64::from(entity_count) * names.len() as u64;
        let block_count = to_u32(blocks.len());
        let block_start = to_u32(self.blocks.len());
        let columns = tags.len() as u64 * u64::from(block_count);
        self.groups.push(PlannedGroup {
            names,
            tags,
            block_start,
            block_count,
            column_start: *column_start,
            entity_count,
        });
        *column_start += columns;
        self.blocks.append(&mut blocks);
    }

    /// Merges the pieces' dictionaries of names, without those that nothing uses any more.
    fn merge_used(
        &mut self,
        space: Space,
        survivors: &[Survivor],
        ids_of: impl Fn(&Survivor) -> &Vec<u32>,
    ) -> Result<Merged> {
        let mut is_used = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces {
            is_used.push(vec![false; piece.id_count(space)? as usize]);
        }
        for survivor in survivors {
            ids_of(survivor).iter().for_each(|id| is_used[survivor.piece][*id as usize] = true);
        }
        let spaces = vec![Some(space); self.pieces.len()];
        let pieces = self.pieces;
        merge_dictionaries(pieces, &spaces, Some(&is_used), self.section(Section::Strings))
    }

    /// Writes the record and the postings of a label whose dictionary is written.
    fn write_label(
        &mut self,
        label: &Merged,
        postings: impl FnOnce(&Self) -> (PostingsWriter, u32),
    ) {
        let (postings, number_count) = postings(self);
        let offset = postings.finish(label.count, number_count, self.section(Section::Postings));
        let record = self.section(Section::Labels);
        put_u64(record, label.offset);
        put_u64(record, offset);
        put_u32(record, label.count);
        put_u32(record, number_count);
    }

    fn write_groups_and_blocks(&mut self) -> Result<()> {
        self.counts.group_count = to_u32(self.groups.len());
        self.counts.block_count = to_u32(self.blocks.len());
        for group in &self.groups {
            let lists_offset = self.sections[Section::Lists as usize].len() as u64;
            let lists = &mut self.sections[Section::Lists as usize];
            group.names.iter().chain(&group.tags).for_each(|id| put_varint(lists, u64::from(*id)));
            let record = &mut self.sections[Section::Groups as usize];
            put_u64(record, lists_offset);
            put_u64(record, group.column_start);
            put_u32(record, group.block_start);
            put_u32(record, group.block_count);
            put_u32(record, group.entity_count);
            put_u16(record, group.names.len())?;
            put_u16(record, group.tags.len())?;
        }
        let mut by_entity = Vec::with_capacity(self.blocks.len());
        for (number, planned) in self.blocks.iter().enumerate() {
            let PlannedBlock { group, block, live, .. } = planned;
            by_entity.push((block.entity_start, to_u32(number)));
            let live = match live {
                None => ALL_LIVE,
                Some(bits) => {
                    put_live(bits, block.len, &mut self.sections[Section::Planes as usize])
                }
            };
            let record = &mut self.sections[Section::Blocks as usize];
            put_u32(record, block.entity_start);
            put_u32(record, block.series_start);
            put_u32(record, *group);
            put_u16(record, block.capacity as usize)?;
            put_u16(record, block.len as usize)?;
            put_u64(record, live);
        }
        by_entity.sort_unstable();
        if !by_entity.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(corrupt("two blocks of the same entities"));
        }
        let records = self.section(Section::EntityBlocks);
        for (entity_start, number) in by_entity {
            put_u32(records, entity_start);
            put_u32(records, number);
        }
        Ok(())
    }

    /// Writes dictionary, columns and postings of every tag.
    fn write_tags(&mut self, tags: &Merged) -> Result<()> {
        let mut postings = PostingsWriter::default();
        // Which groups have a tag, and where: by tag, then by group.
        let mut places: Vec<(u32, u32, u32)> = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            for (position, tag) in group.tags.iter().enumerate() {
                postings.push(*tag, to_u32(number));
                places.push((*tag, to_u32(number), to_u32(position)));
            }
        }
        places.sort_unstable();
        let group_count = self.counts.group_count;
        self.counts.tag_postings_offset =
            postings.finish(tags.count, group_count, self.section(Section::Postings));
        let columns_size = to_usize(self.counts.column_count) * COLUMN_SIZE;
        self.section(Section::Columns).resize(columns_size, 0);
        let tag_ids = tags.inverse();
        let mut rest = places.as_slice();
        for tag in 0..tags.count {
            let (own, tail) = rest.split_at(rest.partition_point(|place| place.0 <= tag));
            rest = tail;
            let spaces: Vec<Option<Space>> = tag_ids
                .iter()
                .map(|ids| Some(ids[tag as usize]).filter(|id| *id != NO_ID).map(Space::Values))
                .collect();
            self.write_tag(own, &spaces)?;
        }
        Ok(())
    }

    /// Writes one tag, which the groups at `places` have.
    fn write_tag(&mut self, places: &[(u32, u32, u32)], spaces: &[Option<Space>]) -> Result<()> {
        let is_used = match self.is_dead {
            None => None,
            Some(_) => Some(self.used_values(places, spaces)?),
        };
        let pieces = self.pieces;
        let strings = self.section(Section::Strings);
        let values = merge_dictionaries(pieces, spaces, is_used.as_deref(), strings)?;
        let mut postings = PostingsWriter::default();
        // The block that each value was last seen in.
        let mut last_seen = vec![u32::MAX; values.count as usize];
        let mut ids = [0; BLOCK_SLOTS_MAX];
        let mut block_count = 0;
        for (_, group, position) in places {
            let PlannedGroup { block_start, block_count: in_group, column_start, .. } =
                self.groups[*group as usize];
            block_count += in_group;
            let first_column = column_start + u64::from(*position) * u64::from(in_group);
            for number in block_start..block_start + in_group {
                let planned = &self.blocks[number as usize];
                let ids = &mut ids[..planned.block.len as usize];
                read_ids(pieces, planned, *position as usize, &values, ids)?;
                for id in ids.iter() {
                    let seen = &mut last_seen[*id as usize];
                    if *seen != number {
                        *seen = number;
                        postings.push(*id, number);
                    }
                }
                let column = first_column + u64::from(number - block_start);
                self.put_column(to_usize(column), ids)?;
            }
        }
        self.write_label(&values, |_| (postings, block_count));
        Ok(())
    }

    /// Which values of each piece live entities have.
    fn used_values(
        &self,
        places: &[(u32, u32, u32)],
        spaces: &[Option<Space>],
    ) -> Result<Vec<Vec<bool>>> {
        let mut is_used = Vec::with_capacity(spaces.len());
        for (piece, space) in self.pieces.iter().zip(spaces) {
            let count = space.map_or(Ok(0), |space| piece.id_count(space))?;
            is_used.push(vec![false; count as usize]);
        }
        let mut ids = [0; BLOCK_SLOTS_MAX];
        for (_, group, position) in places {
            let PlannedGroup { block_start, block_count, .. } = self.groups[*group as usize];
            for planned in &self.blocks[block_start as usize..][..block_count as usize] {
                let ids = &mut ids[..planned.block.len as usize];
                self.pieces[planned.piece].column_ids(planned.number, *position as usize, ids)?;
                let is_used = &mut is_used[planned.piece];
                let mut is_known = true;
                crate::subset::for_each_bit(&planned.live_bits(), |slot| {
                    match is_used.get_mut(ids[usize::from(slot)] as usize) {
                        Some(used) => *used = true,
                        None => is_known = false,
                    }
                });
                if !is_known {
                    return Err(corrupt("value id in a column"));
                }
            }
        }
        Ok(is_used)
    }

    fn put_column(&mut self, column: usize, ids: &[u32]) -> Result<()> {
        let (least, largest) = (ids.iter().copied().min(), ids.iter().copied().max());
        let (min, max) = least.zip(largest).ok_or_else(|| corrupt("a block without slots"))?;
        let width = width_of(max - min);
        let planes = &mut self.sections[Section::Planes as usize];
        let offset = if width == 0 { 0 } else { planes.len() as u64 };
        put_planes(ids, min, width, planes);
        let record = &mut self.sections[Section::Columns as usize][column * COLUMN_SIZE..];
        record[..4].copy_from_slice(&min.to_le_bytes());
        record[4..12].copy_from_slice(&(offset | u64::from(width) << 56).to_le_bytes());
        Ok(())
    }

    fn write_hashes(&mut self) -> Result<()> {
        let mut entries = Vec::with_capacity(2 * to_usize(self.counts.entity_count));
        self.pieces.iter().try_for_each(|piece| piece.hashes(&mut entries))?;
        if let Some(is_dead) = self.is_dead {
            entries.retain(|entry| !is_dead(low_half(*entry)));
        }
        entries.sort_unstable();
        self.counts.hash_count = entries.len() as u64;
        // About eight entries per bucket.
        let bits = (entries.len() / 8).checked_ilog2().unwrap_or(0);
        self.counts.bucket_bits = bits;
        let out = self.section(Section::Hashes);
        out.reserve_exact((1usize << bits) * 4 + 4 + entries.len() * 8);
        let mut position = 0;
        for bucket in 0..1u64 << bits {
            put_u32(out, to_u32(position));
            let end = (bucket + 1) << (32 - bits);
            position += entries[position..].partition_point(|entry| entry >> 32 < end);
        }
        assert_eq!(position, entries.len(), "each hash is in a bucket");
        put_u32(out, to_u32(position));
        entries.iter().for_each(|entry| put_u64(out, entry.rotate_left(32)));
        Ok(())
    }
}

impl PlannedBlock {
    fn live_bits(&self) -> SlotBits {
        self.live.as_ref().map_or_else(|| full_bits(self.block.len), |bits| **bits)
    }
}

/// Reads a column and translates its ids; dead slots get the id of a live one.
fn read_ids(
    pieces: &[&dyn Piece],
    planned: &PlannedBlock,
    position: usize,
    values: &Merged,
    ids: &mut [u32],
) -> Result<()> {
    pieces[planned.piece].column_ids(planned.number, position, ids)?;
    if let Some(live) = &planned.live {
        let is_live = |slot: usize| live[slot / 64] >> (slot % 64) & 1 == 1;
        let id = ids[ids.len() - 1];
        ids.iter_mut().enumerate().filter(|(slot, _)| !is_live(*slot)).for_each(|(_, x)| *x = id);
    }
    let translation = &values.ids[planned.piece];
    for id in ids {
        *id = match translation.get(*id as usize) {
            Some(new) if *new != NO_ID => *new,
            _ => return Err(corrupt("value id in a column")),
        };
    }
    Ok(())
}

fn has_repeats(ids: &[u32]) -> bool {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

fn put_live(bits: &SlotBits, len: u32, planes: &mut Vec<u8>) -> u64 {
    let offset = planes.len() as u64;
    let bytes = bits.iter().flat_map(|word| word.to_le_bytes());
    planes.extend(bytes.take(planes::plane_size(len as usize)));
    offset
}

fn put_u16(out: &mut Vec<u8>, number: usize) -> Result<()> {
    let number = u16::try_from(number)
        .map_err(|_| Error::Full { what: "labels of one entity", max: u64::from(u16::MAX) })?;
    out.extend_from_slice(&number.to_le_bytes());
    Ok(())
}
