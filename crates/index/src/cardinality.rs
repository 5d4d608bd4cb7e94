//! Counts for those who ask what costs so many series: per metric, per label, per value.
//!
//! Nothing is kept for it: the columns of the matched series are read once, label by label, and
//! the sorted dictionaries of all parts are walked side by side, so memory holds the counts of
//! one label and the winners.

use crate::BLOCK_SLOTS_MAX;
use crate::error::{Result, corrupt};
use crate::narrow::to_u32;
use crate::segment::piece::{Piece, PieceCursor, Space};
use crate::subset::BlockMatch;
use model::METRIC_NAME;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A text and how many series (or values) it stands for.
pub type Counted = (String, u64);

/// Bytes that a match takes: of each of its columns all its slots together.
pub type BytesOf<'a> = &'a dyn Fn(&BlockMatch) -> Vec<u64>;

/// What is to be counted.
#[derive(Clone, Copy, Default)]
pub struct CardinalityQuestion<'a> {
    /// Entries of each list, at most.
    pub top: usize,
    /// A label whose values get a list of their own.
    pub focus: Option<&'a str>,
    /// Where lists by bytes are wanted, the bytes.
    pub bytes: Option<BytesOf<'a>>,
}

/// What [`crate::Index::cardinality`] found. Lists are by decreasing count, then by text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cardinality {
    /// Series in all.
    pub series_count: u64,
    /// Labels that they have, the metric's name included.
    pub label_count: u64,
    /// Distinct pairs of label and value.
    pub pair_count: u64,
    /// Labels of all series together.
    pub series_label_count: u64,
    /// Metrics with most series.
    pub metrics: Vec<Counted>,
    /// Labels that most series have.
    pub labels: Vec<Counted>,
    /// Labels with most distinct values.
    pub label_values: Vec<Counted>,
    /// Pairs, as `label=value`, that most series have.
    pub pairs: Vec<Counted>,
    /// Values of the label asked about that most series have.
    pub focus_values: Vec<Counted>,
    /// Values of the label asked about whose series take most bytes.
    pub focus_bytes: Vec<Counted>,
    /// Metrics whose series take most bytes.
    pub metric_bytes: Vec<Counted>,
    /// Pairs, as `label=value`, whose series take most bytes.
    pub pair_bytes: Vec<Counted>,
}

/// Series, and the bytes they take.
#[derive(Clone, Copy, Default)]
struct Weight {
    series: u64,
    bytes: u64,
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        self.series += other.series;
        // Bytes are what a corrupt part says.
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// One part of the index, and which of its series count.
pub(crate) struct CountedPart<'a> {
    pub piece: &'a dyn Piece,
    pub matches: &'a [BlockMatch],
}

/// Counts the matched series.
pub(crate) fn count(
    parts: &[CountedPart<'_>],
    question: &CardinalityQuestion<'_>,
) -> Result<Cardinality> {
    let CardinalityQuestion { top, focus, bytes } = *question;
    let tally = |part| Tally::new(part, bytes);
    let mut tallies = parts.iter().map(tally).collect::<Result<Vec<_>>>()?;
    let byte_top = if bytes.is_some() { top } else { 0 };
    let mut totals = Totals {
        counts: Cardinality::default(),
        metrics: TopList::new(top),
        labels: TopList::new(top),
        label_values: TopList::new(top),
        pairs: TopList::new(top),
        focus: focus.unwrap_or_default(),
        focus_values: TopList::new(top),
        focus_bytes: TopList::new(byte_top),
        metric_bytes: TopList::new(byte_top),
        pair_bytes: TopList::new(byte_top),
    };
    totals.counts.series_count =
        parts.iter().flat_map(|part| part.matches).map(BlockMatch::series_count).sum();
    let metrics = tallies.iter_mut().map(|tally| {
        let counts = std::mem::take(&mut tally.names);
        Ok(Some((tally.part.piece.cursor(Space::MetricNames)?, counts)))
    });
    totals.add_label(METRIC_NAME, metrics.collect::<Result<Vec<_>>>()?)?;
    let mut tags = Walk::open(&tallies, Space::TagNames)?;
    while let Some((name, ids)) = tags.next()? {
        let mut values = Vec::with_capacity(tallies.len());
        for (tally, id) in tallies.iter().zip(&ids) {
            values.push(match id {
                Some(tag) => tally.count_values(*tag)?,
                None => None,
            });
        }
        totals.add_label(&name, values)?;
    }
    Ok(totals.finish())
}

/// What is known of one part after a look at its groups.
struct Tally<'a> {
    part: &'a CountedPart<'a>,
    /// By match, the bytes of a slot, when bytes count.
    slot_bytes: Vec<u64>,
    /// By name id.
    names: Vec<Weight>,
    /// Tag, index of the match, number of the block, position of the tag: sorted.
    places: Vec<(u32, u32, u32, u32)>,
}

impl<'a> Tally<'a> {
    fn new(part: &'a CountedPart<'a>, bytes: Option<BytesOf<'_>>) -> Result<Tally<'a>> {
        let name_count = part.piece.id_count(Space::MetricNames)?;
        let names = vec![Weight::default(); name_count as usize];
        let mut tally = Tally { part, slot_bytes: Vec::new(), names, places: Vec::new() };
        let mut last_group = None;
        let (mut names, mut tags) = (Vec::new(), Vec::new());
        for (match_idx, found) in part.matches.iter().enumerate() {
            let (group, number) = part.piece.locate(&found.block)?;
            if last_group != Some(group) {
                (names, tags) = part.piece.group_lists(group)?;
                last_group = Some(group);
            }
            let column_bytes = bytes.map_or_else(Vec::new, |bytes| bytes(found));
            let mut column_bytes = column_bytes.iter().copied();
            let mut all_bytes = 0u64;
            for column in &found.columns {
                let bytes = column_bytes.next().unwrap_or(0);
                all_bytes = all_bytes.saturating_add(bytes);
                let id = names.get(usize::from(column)).copied();
                let count = id.and_then(|id| tally.names.get_mut(id as usize));
                *count.ok_or_else(|| corrupt("name of a group"))? +=
                    Weight { series: found.slots.len() as u64, bytes };
            }
            tally.slot_bytes.push(all_bytes / found.slots.len().max(1) as u64);
            for (position, tag) in tags.iter().enumerate() {
                tally.places.push((*tag, to_u32(match_idx), number, to_u32(position)));
            }
        }
        tally.places.sort_unstable();
        Ok(tally)
    }

    /// Series by value id of a tag, if a matched series has it.
    fn count_values(&self, tag: u32) -> Result<Option<(PieceCursor<'a>, Vec<Weight>)>> {
        let start = self.places.partition_point(|place| place.0 < tag);
        let end = self.places.partition_point(|place| place.0 <= tag);
        if start == end {
            return Ok(None);
        }
        let piece = self.part.piece;
        let mut counts = vec![Weight::default(); piece.id_count(Space::Values(tag))? as usize];
        let mut ids = [0; BLOCK_SLOTS_MAX];
        for (_, match_idx, number, position) in &self.places[start..end] {
            let found = &self.part.matches[*match_idx as usize];
            let len = (found.block.len as usize).min(BLOCK_SLOTS_MAX);
            let ids = &mut ids[..len];
            piece.column_ids(*number, *position as usize, ids)?;
            let weight = Weight {
                series: found.columns.len() as u64,
                bytes: self.slot_bytes[*match_idx as usize],
            };
            for slot in &found.slots {
                let id = ids.get(usize::from(slot)).copied();
                let count = id.and_then(|id| counts.get_mut(id as usize));
                *count.ok_or_else(|| corrupt("value id in a column"))? += weight;
            }
        }
        Ok(Some((piece.cursor(Space::Values(tag))?, counts)))
    }
}

/// Walks over one space of all parts in the order of the strings.
struct Walk<'a> {
    cursors: Vec<Option<PieceCursor<'a>>>,
}

impl<'a> Walk<'a> {
    fn open(tallies: &[Tally<'a>], space: Space) -> Result<Walk<'a>> {
        let cursors = tallies.iter().map(|tally| tally.part.piece.cursor(space).map(Some));
        Ok(Walk { cursors: cursors.collect::<Result<Vec<_>>>()? })
    }

    /// The next string and each part's id of it.
    fn next(&mut self) -> Result<Option<(String, Vec<Option<u32>>)>> {
        let current = self.cursors.iter().flatten().filter_map(|cursor| cursor.current());
        let Some(least) = current.map(|(string, _)| string).min().map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        let mut ids = Vec::with_capacity(self.cursors.len());
        for cursor in &mut self.cursors {
            let at = cursor.as_ref().and_then(|cursor| cursor.current());
            let id = at.filter(|(string, _)| *string == least).map(|(_, id)| id);
            if let (Some(_), Some(cursor)) = (id, cursor) {
                cursor.advance()?;
            }
            ids.push(id);
        }
        let string = String::from_utf8(least).map_err(|_| corrupt("UTF-8 of a label"))?;
        Ok(Some((string, ids)))
    }
}

/// The answer as it grows.
struct Totals<'a> {
    counts: Cardinality,
    metrics: TopList,
    labels: TopList,
    label_values: TopList,
    pairs: TopList,
    focus: &'a str,
    focus_values: TopList,
    focus_bytes: TopList,
    metric_bytes: TopList,
    pair_bytes: TopList,
}

impl Totals<'_> {
    /// Adds the values of one label with their series, part by part.
    fn add_label(
        &mut self,
        label: &str,
        parts: Vec<Option<(PieceCursor<'_>, Vec<Weight>)>>,
    ) -> Result<()> {
        let (cursors, counts): (Vec<_>, Vec<_>) = parts.into_iter().map(Option::unzip).unzip();
        let counts: Vec<Vec<Weight>> = counts.into_iter().map(Option::unwrap_or_default).collect();
        let mut walk = Walk { cursors };
        let (mut series, mut values) = (0, 0);
        while let Some((value, ids)) = walk.next()? {
            let mut weight = Weight::default();
            for (id, counts) in ids.iter().zip(&counts) {
                weight += id.and_then(|id| counts.get(id as usize).copied()).unwrap_or_default();
            }
            let Weight { series: count, bytes } = weight;
            // Values of other series, and the name of metrics without a name.
            if count == 0 || value.is_empty() {
                continue;
            }
            series += count;
            values += 1;
            if label == METRIC_NAME {
                self.metrics.push(count, || value.clone());
                self.metric_bytes.push(bytes, || value.clone());
            }
            if label == self.focus {
                self.focus_values.push(count, || value.clone());
                self.focus_bytes.push(bytes, || value.clone());
            }
            self.pairs.push(count, || format!("{label}={value}"));
            self.pair_bytes.push(bytes, || format!("{label}={value}"));
        }
        if values != 0 {
            self.counts.label_count += 1;
            self.counts.pair_count += values;
            self.counts.series_label_count += series;
            self.labels.push(series, || label.to_string());
            self.label_values.push(values, || label.to_string());
        }
        Ok(())
    }

    fn finish(self) -> Cardinality {
        Cardinality {
            metrics: self.metrics.finish(),
            labels: self.labels.finish(),
            label_values: self.label_values.finish(),
            pairs: self.pairs.finish(),
            focus_values: self.focus_values.finish(),
            focus_bytes: self.focus_bytes.finish(),
            metric_bytes: self.metric_bytes.finish(),
            pair_bytes: self.pair_bytes.finish(),
            ..self.counts
        }
    }
}

/// Keeps the entries with the largest counts, of equal ones those with the least text.
struct TopList {
    len_max: usize,
    heap: BinaryHeap<Reverse<(u64, Reverse<String>)>>,
}

impl TopList {
    fn new(len_max: usize) -> TopList {
        TopList { len_max, heap: BinaryHeap::new() }
    }

    fn push(&mut self, count: u64, text: impl FnOnce() -> String) {
        if self.heap.len() < self.len_max {
            self.heap.push(Reverse((count, Reverse(text()))));
            return;
        }
        let Some(mut least) = self.heap.peek_mut() else { return };
        if least.0.0 <= count {
            let entry = Reverse((count, Reverse(text())));
            if entry < *least {
                *least = entry;
            }
        }
    }

    fn finish(self) -> Vec<Counted> {
        let entries = self.heap.into_sorted_vec();
        entries.into_iter().map(|Reverse((count, Reverse(text)))| (text, count)).collect()
    }
}
