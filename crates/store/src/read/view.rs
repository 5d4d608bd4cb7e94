//! A partition frozen for one query: the matched blocks and everything that holds their samples.
//!
//! Taken under the partition's read lock and used without it. Parts are kept by reference; of the
//! arena the full chunks are kept by reference and the last one is copied; chain heads of the matched
//! entities are copied, because later rows would move them.

use crate::partition::disk::live_part::LivePart;
use crate::partition::disk::manifest::Tombstone;
use crate::partition::head::arena::{Arena, ArenaView, NO_ROW};
use crate::partition::{Partition, PartitionState};
use hashbrown::HashMap;
use index::BlockMatch;
use model::{TimeRange, Timestamp};
use std::sync::Arc;

/// Bytes of an entry of [`Heads::last_singles`], about.
const SINGLE_SIZE: usize = 16;

/// A part and the deletions it has not applied.
pub struct ViewedPart {
    /// The part.
    pub part: Arc<LivePart>,
    /// Tombstones to apply while reading.
    pub tombstones: Vec<Tombstone>,
    /// Whether the part is a file.
    pub is_on_disk: bool,
}

/// The newest rows of one matched block.
pub struct Heads {
    /// By slot, the id of the newest row.
    pub last_rows: Vec<u32>,
    /// By (slot, column), the newest single; only where there is one.
    pub last_singles: HashMap<(u16, u16), u32>,
}

/// One partition's share of a selection.
pub struct PartitionView {
    /// For labels, which are read from the live index: ids never change their meaning.
    pub partition: Arc<Partition>,
    /// The matched blocks that may have samples in the range.
    pub groups: Vec<BlockMatch>,
    /// Parts that overlap the range, oldest first.
    pub sources: Vec<ViewedPart>,
    /// Rows not sealed yet, newest first.
    pub rows: Vec<Arc<ArenaView>>,
    /// For each of those, how late the rows behind it are.
    pub latest_behind: Vec<Timestamp>,
    /// By group; `None` when the group has no unsealed row.
    pub heads: Vec<Option<Heads>>,
}

impl PartitionView {
    /// Freezes what `state` holds of the matched blocks in `range`. The rows of a view made under
    /// the same lock, if there is one, need not be copied again.
    pub fn new(
        partition: &Arc<Partition>,
        state: &PartitionState,
        matches: Vec<BlockMatch>,
        range: &TimeRange,
        beside: Option<&PartitionView>,
    ) -> PartitionView {
        let sources = sources_in(state, range);
        let first_row = state.head.first_unsealed_row();
        let has_rows = state.head.arena.samples() != 0 || !state.head.taken().is_empty();
        let (mut groups, mut heads) = (Vec::new(), Vec::new());
        for group in matches {
            let head = if has_rows { heads_of(&state.head.arena, first_row, &group) } else { None };
            if head.is_some() || sources.iter().any(|s| has_slice(s, &group, range)) {
                groups.push(group);
                heads.push(head);
            }
        }
        let mut rows = Vec::new();
        let known = beside.map_or(&[][..], |view| &view.rows);
        if heads.iter().any(Option::is_some) && !known.is_empty() {
            rows.extend_from_slice(known);
        } else if heads.iter().any(Option::is_some) {
            rows.push(Arc::new(state.head.arena.view()));
            rows.extend(state.head.taken().iter().rev().map(|taken| Arc::clone(&taken.view)));
        }
        assert_eq!(groups.len(), heads.len(), "each group has its heads, or none");
        let latest_behind = latest_behind(&rows);
        PartitionView {
            partition: Arc::clone(partition),
            groups,
            sources,
            rows,
            latest_behind,
            heads,
        }
    }
}

impl PartitionView {
    /// Bytes of memory that the view has for itself, about: parts and full chunks of rows are shared.
    pub fn memory_size(&self) -> usize {
        let tombstones = self.sources.iter().flat_map(|source| &source.tombstones);
        let tombstones: usize = tombstones.map(|one| one.series.serialized_size()).sum();
        let heads = self.heads.iter().flatten();
        let heads: usize = heads
            .map(|heads| 4 * heads.last_rows.len() + SINGLE_SIZE * heads.last_singles.len())
            .sum();
        let groups = self.groups.len() * (size_of::<BlockMatch>() + size_of::<Option<Heads>>());
        let slots: usize = self.groups.iter().map(|group| group.memory_size()).sum();
        // The first rows are the arena's, of which the end was copied.
        self.rows.first().map_or(0, |rows| rows.copied_size())
            + size_of_val(self.sources.as_slice())
            + tombstones
            + heads
            + groups
            + slots
    }
}

fn latest_behind(rows: &[Arc<ArenaView>]) -> Vec<Timestamp> {
    let mut latest = Timestamp::MIN;
    let mut behind: Vec<Timestamp> = rows
        .iter()
        .rev()
        .map(|view| {
            let before = latest;
            latest = latest.max(view.time_min_max().map_or(Timestamp::MIN, |(_, max)| max));
            before
        })
        .collect();
    behind.reverse();
    behind
}

/// All parts with samples in the range, oldest first.
pub fn sources_in(state: &PartitionState, range: &TimeRange) -> Vec<ViewedPart> {
    let on_disk =
        state.disk.parts().iter().map(|part| (part, state.disk.tombstones_for(&part.entry), true));
    let in_memory = state.head.parts().map(|part| (part, Vec::new(), false));
    on_disk
        .chain(in_memory)
        .filter(|(part, _, _)| range.overlaps(&part.span()))
        .map(|(part, tombstones, is_on_disk)| ViewedPart {
            part: Arc::clone(part),
            tombstones,
            is_on_disk,
        })
        .collect()
}

fn has_slice(source: &ViewedPart, group: &BlockMatch, range: &TimeRange) -> bool {
    let part = &source.part.part;
    let mut slices = part.slices_of(group.block.series_start);
    slices.any(|slice| range.overlaps(&TimeRange::new(slice.min_ts, slice.max_ts)))
}

/// `first_row` is the oldest that is not sealed: older ones are in parts.
fn heads_of(arena: &Arena, first_row: u32, group: &BlockMatch) -> Option<Heads> {
    let mut last_rows = Vec::new();
    for slot in group.slots.iter() {
        let last = arena.last_row(group.block.entity(slot));
        if first_row <= last {
            last_rows.resize(group.block.capacity as usize, NO_ROW);
            last_rows[usize::from(slot)] = last;
        }
    }
    let mut last_singles = HashMap::new();
    if arena.has_singles() {
        for slot in group.slots.iter() {
            for column in group.columns.iter() {
                let last = arena.last_single(group.block.entity(slot), column);
                if last != 0 {
                    last_singles.insert((slot, column), last);
                }
            }
        }
    }
    if last_rows.is_empty() && last_singles.is_empty() {
        return None;
    }
    Some(Heads { last_rows, last_singles })
}
