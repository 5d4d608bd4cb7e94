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
        lists: Vec::new(),
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
    /// Names and tags of all groups.
    lists: Vec<u32>,
    groups: Vec<PlannedGroup>,
    /// By group, then by entity.
    blocks: Vec<PlannedBlock>,
}

/// Where a group's lists are: its names, and behind them its tags.
#[derive(Clone, Copy)]
struct GroupLists {
    start: usize,
    name_count: u32,
    tag_count: u32,
}

struct PlannedGroup {
    lists: GroupLists,
    block_start: u32,
    block_count: u32,
    column_start: u64,
    entity_count: u32,
}

struct PlannedBlock {
    piece: u32,
    /// The piece's number of the block.
    number: u32,
    group: u32,
    /// With the dead slots at its end cut off.
    block: BlockRef,
    /// The live slots, when there are dead ones among them.
    live: Option<Box<SlotBits>>,
}

/// The groups of all pieces with the blocks that live on. A million odd series are as many groups, so
/// there is no object for each.
#[derive(Default)]
struct Survivors {
    lists: Vec<u32>,
    groups: Vec<Survivor>,
    blocks: Vec<PlannedBlock>,
}

/// A group of a piece.
#[derive(Clone, Copy)]
struct Survivor {
    piece: u32,
    lists: GroupLists,
    blocks_start: u32,
    block_count: u32,
}

impl GroupLists {
    fn names<'a>(&self, lists: &'a [u32]) -> &'a [u32] {
        &lists[self.start..][..self.name_count as usize]
    }

    fn tags<'a>(&self, lists: &'a [u32]) -> &'a [u32] {
        &lists[self.start + self.name_count as usize..][..self.tag_count as usize]
    }
}

impl Survivors {
    /// Replaces the pieces' ids by those of the merged dictionaries.
    fn translate(&mut self, names: &Merged, tags: &Merged) -> Result<()> {
        for Survivor { piece, lists: place, .. } in &self.groups {
            let lists = &mut self.lists[place.start..];
            let (own_names, rest) = lists.split_at_mut(place.name_count as usize);
            let own_tags = &mut rest[..place.tag_count as usize];
            let piece = *piece as usize;
            own_names.iter_mut().for_each(|id| *id = names.ids[piece][*id as usize]);
            own_tags.iter_mut().for_each(|id| *id = tags.ids[piece][*id as usize]);
            if has_repeats(own_names) {
                return Err(corrupt("a metric's name twice in a group"));
            }
            if !own_tags.is_sorted_by(|a, b| a < b) {
                return Err(corrupt("order of a group's tags"));
            }
        }
        Ok(())
    }

    fn lists_of(&self, group: u32) -> (&[u32], &[u32]) {
        let lists = self.groups[group as usize].lists;
        (lists.names(&self.lists), lists.tags(&self.lists))
    }

    /// Groups in the order of their lists, those of equal lists in the order of the pieces.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..to_u32(self.groups.len())).collect();
        order.sort_unstable_by(|a, b| self.lists_of(*a).cmp(&self.lists_of(*b)).then(a.cmp(b)));
        order
    }
}

impl Writer<'_> {
    fn section(&mut self, section: Section) -> &mut Vec<u8> {
        &mut self.sections[section as usize]
    }

    /// Plans groups and blocks; writes the dictionaries of metric names and tag names.
    /// Returns how the pieces number the tags.
    fn plan(&mut self) -> Result<Merged> {
        let mut found = self.survivors()?;
        let names = self.merge_used(Space::MetricNames, &found, GroupLists::names)?;
        let tags = self.merge_used(Space::TagNames, &found, GroupLists::tags)?;
        self.counts.tag_names_offset = tags.offset;
        self.counts.label_count = tags.count + 1;
        found.translate(&names, &tags)?;
        let order = found.order();
        let mut column_start = 0;
        let Survivors { lists, groups, mut blocks } = found;
        let lists_of = |group: u32| {
            let place = groups[group as usize].lists;
            (place.names(&lists), place.tags(&lists))
        };
        for same in order.chunk_by(|a, b| lists_of(*a) == lists_of(*b)) {
            let same = same.iter().map(|group| &groups[*group as usize]);
            self.plan_group(same, &mut blocks, &mut column_start)?;
        }
        blocks.sort_unstable_by_key(|block| (block.group, block.block.entity_start));
        (self.lists, self.blocks) = (lists, blocks);
        self.counts.column_count = column_start;
        self.write_label(&names, |writer| {
            let mut postings = PostingsWriter::default();
            for (number, group) in writer.groups.iter().enumerate() {
                let names = group.lists.names(&writer.lists);
                names.iter().for_each(|id| postings.push(*id, to_u32(number)));
            }
            (postings, to_u32(writer.groups.len()))
        });
        Ok(tags)
    }

    /// The groups of all pieces, without what is dead.
    fn survivors(&self) -> Result<Survivors> {
        let mut out = Survivors::default();
        for (piece_idx, piece) in self.pieces.iter().enumerate() {
            for group in 0..piece.group_count() {
                let blocks_start = out.blocks.len();
                let blocks = piece.group_blocks(group)?;
                let blocks = blocks.iter().filter_map(|block| self.plan_block(piece_idx, block));
                out.blocks.extend(blocks);
                if blocks_start == out.blocks.len() {
                    continue;
                }
                let (names, tags) = piece.group_lists(group)?;
                let lists = GroupLists {
                    start: out.lists.len(),
                    name_count: to_u32(names.len()),
                    tag_count: to_u32(tags.len()),
                };
                out.lists.extend(names.into_iter().chain(tags));
                out.groups.push(Survivor {
                    piece: to_u32(piece_idx),
                    lists,
                    blocks_start: to_u32(blocks_start),
                    block_count: to_u32(out.blocks.len() - blocks_start),
                });
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
            piece: to_u32(piece),
            number: source.number,
            group: 0,
            block: BlockRef { len, ..source.block },
            live: (!is_whole).then(|| Box::new(live)),
        })
    }

    /// Plans one group of what pieces have of it; its blocks learn its number.
    fn plan_group<'s>(
        &mut self,
        same: impl Iterator<Item = &'s Survivor>,
        blocks: &mut [PlannedBlock],
        column_start: &mut u64,
    ) -> Result<()> {
        let number = to_u32(self.groups.len());
        let block_start = self.groups.last().map_or(0, |last| last.block_start + last.block_count);
        let (mut lists, mut last_entity) = (None, None);
        let (mut block_count, mut entity_count) = (0, 0);
        for survivor in same {
            lists.get_or_insert(survivor.lists);
            let range = survivor.blocks_start as usize..;
            for block in &mut blocks[range][..survivor.block_count as usize] {
                if Some(block.block.entity_start) <= last_entity {
                    return Err(corrupt("order of a group's blocks"));
                }
                last_entity = Some(block.block.entity_start);
                block.group = number;
                block_count += 1;
                entity_count +=
                    block.live.as_ref().map_or(block.block.len, |bits| count_bits(bits));
            }
        }
        let Some(lists) = lists else { return Ok(()) };
        self.counts.entity_count += u64::from(entity_count);
        self.counts.series_count += u64::from(entity_count) * u64::from(lists.name_count);
        let column_start_here = *column_start;
        *column_start += u64::from(lists.tag_count) * u64::from(block_count);
        self.groups.push(PlannedGroup {
            lists,
            block_start,
            block_count,
            column_start: column_start_here,
            entity_count,
        });
        Ok(())
    }

    /// Merges the pieces' dictionaries of names, without those that nothing uses any more.
    fn merge_used(
        &mut self,
        space: Space,
        found: &Survivors,
        ids_of: for<'l> fn(&GroupLists, &'l [u32]) -> &'l [u32],
    ) -> Result<Merged> {
        let mut is_used = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces {
            is_used.push(vec![false; piece.id_count(space)? as usize]);
        }
        for Survivor { piece, lists, .. } in &found.groups {
            let is_used = &mut is_used[*piece as usize];
            ids_of(lists, &found.lists).iter().for_each(|id| is_used[*id as usize] = true);
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
            let (names, tags) = (group.lists.names(&self.lists), group.lists.tags(&self.lists));
            names.iter().chain(tags).for_each(|id| put_varint(lists, u64::from(*id)));
            let record = &mut self.sections[Section::Groups as usize];
            put_u64(record, lists_offset);
            put_u64(record, group.column_start);
            put_u32(record, group.block_start);
            put_u32(record, group.block_count);
            put_u32(record, group.entity_count);
            put_u16(record, names.len())?;
            put_u16(record, tags.len())?;
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
            for (position, tag) in group.lists.tags(&self.lists).iter().enumerate() {
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
                self.pieces[planned.piece as usize].column_ids(
                    planned.number,
                    *position as usize,
                    ids,
                )?;
                let is_used = &mut is_used[planned.piece as usize];
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
    pieces[planned.piece as usize].column_ids(planned.number, position, ids)?;
    if let Some(live) = &planned.live {
        let is_live = |slot: usize| live[slot / 64] >> (slot % 64) & 1 == 1;
        let id = ids[ids.len() - 1];
        ids.iter_mut().enumerate().filter(|(slot, _)| !is_live(*slot)).for_each(|(_, x)| *x = id);
    }
    let translation = &values.ids[planned.piece as usize];
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
