//! The newest rows, in order of arrival, before they are sealed.
//!
//! Rows lie one after the other in chunks of 64-bit words. A chunk that is full never changes, so
//! a query keeps it by reference and copies only the last, unfinished one. Each row points to the
//! row of the same entity before it, which makes every sample visible at once without any sorting:
//!
//! ```text
//! last_row[entity] ──► row ──► row ──► ... ──► 0
//! row = [ entity u32 | row before u32 ][ timestamp ][ value count ][ value bits ]*
//! row id = number of the row's first word since the head began; never 0
//! ```
//!
//! Rows come about in order of time, so each full chunk says how late the rows are that it and the
//! chunks before it hold: who wants the newest need not follow a chain into what is older.
//!
//! Values that belong to a part of an entity's columns (rare: the same tags once arrived with
//! another list of fields) are *singles*, chained by entity and column.

use crate::base::config::ARENA_WORDS_MAX;
use crate::base::narrow::{low_half, to_u32, to_usize};
use hashbrown::HashMap;
use model::Timestamp;
use std::sync::Arc;

/// Words of a chunk: 256 KiB, so that the copy a query makes of the last one stays small.
pub const CHUNK_WORDS: usize = 32 * 1024;
/// Words before a row's values.
const HEADER_WORDS: usize = 3;
/// Columns an entity may have, so that a row always fits a chunk.
pub const COLUMNS_MAX: usize = 4096;
/// The end of a chain.
pub const NO_ROW: u32 = 0;
/// The span of no timestamp.
const NO_SPAN: (Timestamp, Timestamp) = (Timestamp::MAX, Timestamp::MIN);

const _: () = assert!(HEADER_WORDS + COLUMNS_MAX <= CHUNK_WORDS);
const _: () = assert!(COLUMNS_MAX == model::limits::FIELDS_PER_LINE_MAX);
const _: () = assert!(ARENA_WORDS_MAX + 2 * CHUNK_WORDS <= u32::MAX as usize);

/// A value of one series alone.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    /// The entity.
    pub entity: u32,
    /// The column of the entity's block.
    pub column: u16,
    /// Index plus one of the single of that series before this one; 0 when there is none.
    pub before: u32,
    /// The id that the next row had when the single arrived: rows below it are older.
    pub mark: u32,
    /// When.
    pub timestamp: Timestamp,
    /// Bits of the value.
    pub bits: u64,
}

/// The rows of a head that are not sealed yet.
pub struct Arena {
    /// Row id of the first word of `chunks[0]`; a multiple of `CHUNK_WORDS`, at least one.
    base: usize,
    /// Full chunks, each with fewer than `CHUNK_WORDS` words if the next row did not fit.
    chunks: Vec<Chunk>,
    /// The chunk being filled.
    tail: Vec<u64>,
    /// By entity, the id of its newest row, also of rows that have been sealed since.
    last_row: Vec<u32>,
    singles: Vec<Single>,
    last_single: HashMap<(u32, u16), u32>,
    samples: u64,
    /// Earliest and latest timestamp held; min above max when there is none.
    span: (Timestamp, Timestamp),
}

/// Rows that do not change any more.
#[derive(Clone)]
struct Chunk {
    words: Arc<Vec<u64>>,
    /// No row of this chunk, or of one before it, is later.
    latest: Timestamp,
}

/// Rows as they stood at one moment.
#[derive(Clone)]
pub struct ArenaView {
    base: usize,
    chunks: Vec<Chunk>,
    singles: Arc<Vec<Single>>,
    samples: u64,
    span: (Timestamp, Timestamp),
}

impl ArenaView {
    /// Bytes of memory that the view of an arena has for itself: the copy of the unfinished chunk and
    /// of the singles.
    pub fn copied_size(&self) -> usize {
        let tail = self.chunks.last().map_or(0, |chunk| size_of_val(chunk.words.as_slice()));
        tail + size_of_val(self.singles.as_slice()) + size_of_val(self.chunks.as_slice())
    }
}

impl Default for Arena {
    fn default() -> Arena {
        Arena::new()
    }
}

impl Arena {
    /// An empty arena.
    pub fn new() -> Arena {
        Arena {
            base: CHUNK_WORDS,
            chunks: Vec::new(),
            tail: Vec::with_capacity(CHUNK_WORDS),
            last_row: Vec::new(),
            singles: Vec::new(),
            last_single: HashMap::new(),
            samples: 0,
            span: NO_SPAN,
        }
    }

    /// Samples held.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Bytes of rows held.
    pub fn rows_size(&self) -> usize {
        (self.chunks.len() * CHUNK_WORDS + self.tail.len()) * 8
            + self.singles.len() * size_of::<Single>()
    }

    /// Row ids used since the head began.
    pub fn words_used(&self) -> usize {
        self.base + self.chunks.len() * CHUNK_WORDS
    }

    /// Makes room for entities below `count`.
    pub fn reserve_entities(&mut self, count: usize) {
        let count = count.next_multiple_of(1024);
        match self.last_row.len() {
            // Pages that nobody writes to are never in memory, as in partitions that are over.
            0 => self.last_row = vec![NO_ROW; count],
            len if len < count => self.last_row.resize(count, NO_ROW),
            _ => {}
        }
    }

    /// Reads the newest row id of an entity, to warm the cache before [`Arena::push`].
    #[inline]
    pub fn last_row(&self, entity: u32) -> u32 {
        self.last_row.get(entity as usize).copied().unwrap_or(NO_ROW)
    }

    /// Appends a row of an entity for which room was reserved.
    #[inline]
    pub fn push(&mut self, entity: u32, timestamp: Timestamp, values: &[f64]) {
        debug_assert!(values.len() <= COLUMNS_MAX, "a row fits a chunk");
        debug_assert!((entity as usize) < self.last_row.len(), "room was reserved");
        if CHUNK_WORDS < self.tail.len() + HEADER_WORDS + values.len() {
            self.finish_chunk();
        }
        let id = self.next_row();
        let before = std::mem::replace(&mut self.last_row[entity as usize], id);
        self.tail.extend_from_slice(&[
            u64::from(entity) | u64::from(before) << 32,
            timestamp as u64,
            values.len() as u64,
        ]);
        self.tail.extend(values.iter().map(|value| value.to_bits()));
        self.samples += values.len() as u64;
        self.widen(timestamp);
    }

    /// Appends a value of one series.
    pub fn push_single(&mut self, entity: u32, column: u16, timestamp: Timestamp, value: f64) {
        debug_assert!(usize::from(column) < COLUMNS_MAX, "a column of an entity");
        let id = to_u32(self.singles.len() + 1);
        let before = self.last_single.insert((entity, column), id).unwrap_or(0);
        let mark = self.next_row();
        let bits = value.to_bits();
        self.singles.push(Single { entity, column, before, mark, timestamp, bits });
        self.samples += 1;
        self.widen(timestamp);
    }

    /// The newest single of a series, for [`ArenaView::singles_from`].
    pub fn last_single(&self, entity: u32, column: u16) -> u32 {
        self.last_single.get(&(entity, column)).copied().unwrap_or(0)
    }

    /// Whether there is any single.
    pub fn has_singles(&self) -> bool {
        !self.singles.is_empty()
    }

    /// The row of that id, or `None` when it is older than the arena.
    pub fn row(&self, id: u32) -> Option<RowView<'_>> {
        let word = (id as usize).checked_sub(self.base)?;
        let (chunk, at) = (word / CHUNK_WORDS, word % CHUNK_WORDS);
        let words = match chunk == self.chunks.len() {
            true => self.tail.get(at..)?,
            false => self.chunks.get(chunk)?.words.get(at..)?,
        };
        Some(read_row(id, words))
    }

    /// The rows as they stand; copies the unfinished chunk.
    pub fn view(&self) -> ArenaView {
        let mut chunks = self.chunks.clone();
        chunks.push(Chunk { words: Arc::new(self.tail.clone()), latest: self.span.1 });
        let singles = Arc::new(self.singles.clone());
        ArenaView { base: self.base, chunks, singles, samples: self.samples, span: self.span }
    }

    /// Whether row ids will soon run out: everything must be sealed and [`Arena::renew`] called.
    pub fn is_worn(&self, words_max: usize) -> bool {
        assert!(words_max <= ARENA_WORDS_MAX);
        words_max <= self.words_used()
    }

    /// Begins again with the first row id. All rows must have been taken and sealed: no chain leads
    /// to them any more.
    pub fn renew(&mut self) {
        assert!(self.samples == 0 && self.chunks.is_empty(), "rows were taken");
        self.base = CHUNK_WORDS;
        self.last_row.fill(NO_ROW);
    }

    /// Takes all rows out for sealing; chains of later rows still lead into what was taken.
    pub fn take(&mut self) -> ArenaView {
        self.finish_chunk();
        let chunks = std::mem::take(&mut self.chunks);
        let base = self.base;
        self.base += chunks.len() * CHUNK_WORDS;
        debug_assert!(self.tail.is_empty() && self.base.is_multiple_of(CHUNK_WORDS));
        self.last_single.clear();
        let span = std::mem::replace(&mut self.span, NO_SPAN);
        let singles = Arc::new(std::mem::take(&mut self.singles));
        ArenaView { base, chunks, singles, samples: std::mem::take(&mut self.samples), span }
    }

    /// The id of the oldest row that is held, or would be: [`Arena::last_row`] below it was taken.
    pub fn first_row(&self) -> u32 {
        row_id(self.base)
    }

    /// All singles, by arrival.
    pub fn singles(&self) -> &[Single] {
        &self.singles
    }

    /// Earliest and latest timestamp held.
    pub fn time_min_max(&self) -> Option<(Timestamp, Timestamp)> {
        (self.span.0 <= self.span.1).then_some(self.span)
    }

    #[inline]
    fn widen(&mut self, timestamp: Timestamp) {
        self.span = (self.span.0.min(timestamp), self.span.1.max(timestamp));
    }

    /// The id that the next row will have, if it fits the chunk being filled.
    #[inline]
    pub fn next_row(&self) -> u32 {
        row_id(self.base + self.chunks.len() * CHUNK_WORDS + self.tail.len())
    }

    fn finish_chunk(&mut self) {
        assert!(self.tail.len() <= CHUNK_WORDS, "a chunk is no longer than ids count");
        let full = std::mem::replace(&mut self.tail, Vec::with_capacity(CHUNK_WORDS));
        self.chunks.push(Chunk { words: Arc::new(full), latest: self.span.1 });
    }
}

impl Single {
    /// Orders singles and rows of one series by arrival; see [`RowView::arrival`].
    pub fn arrival(&self) -> u64 {
        2 * u64::from(self.mark)
    }
}

/// One row of a view.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    /// The row's id.
    pub id: u32,
    /// The entity.
    pub entity: u32,
    /// Id of the entity's row before.
    pub before: u32,
    /// When.
    pub timestamp: Timestamp,
    /// Bits of the values, one per column.
    pub bits: &'a [u64],
}

impl RowView<'_> {
    /// Orders rows and singles of one series by arrival; see [`Single::arrival`].
    pub fn arrival(&self) -> u64 {
        2 * u64::from(self.id) + 1
    }
}

impl ArenaView {
    /// Samples in the view.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The id of the first row, or of what would be it.
    pub fn first_row(&self) -> u32 {
        row_id(self.base)
    }

    /// Earliest and latest timestamp in the view.
    pub fn time_min_max(&self) -> Option<(Timestamp, Timestamp)> {
        (self.span.0 <= self.span.1).then_some(self.span)
    }

    /// Bytes of memory kept alive.
    pub fn size(&self) -> usize {
        self.chunks.len() * CHUNK_WORDS * 8 + self.singles.len() * size_of::<Single>()
    }

    /// The row of that id, or `None` when it is older than the view.
    #[inline]
    pub fn row(&self, id: u32) -> Option<RowView<'_>> {
        let word = (id as usize).checked_sub(self.base)?;
        let chunk = self.chunks.get(word / CHUNK_WORDS)?;
        Some(read_row(id, &chunk.words[word % CHUNK_WORDS..]))
    }

    /// The latest time that the row of that id, or one of this view that came before it, can have;
    /// the earliest time of all when it is older than the view.
    #[inline]
    pub fn latest_until(&self, id: u32) -> Timestamp {
        let chunk = (id as usize).checked_sub(self.base).map(|word| word / CHUNK_WORDS);
        chunk.and_then(|chunk| self.chunks.get(chunk)).map_or(Timestamp::MIN, |chunk| chunk.latest)
    }

    /// All rows, by increasing id.
    pub fn rows(&self) -> impl Iterator<Item = RowView<'_>> {
        self.chunks.iter().enumerate().flat_map(|(idx, chunk)| {
            let first_id = self.base + idx * CHUNK_WORDS;
            let mut word = 0;
            std::iter::from_fn(move || {
                (word < chunk.words.len()).then(|| {
                    let row = read_row(row_id(first_id + word), &chunk.words[word..]);
                    word += HEADER_WORDS + row.bits.len();
                    row
                })
            })
        })
    }

    /// All singles, by arrival.
    pub fn singles(&self) -> &[Single] {
        &self.singles
    }

    /// The singles of one series, newest first, from [`Arena::last_single`] on.
    pub fn singles_from(&self, last: u32) -> impl Iterator<Item = &Single> {
        let mut next = last;
        std::iter::from_fn(move || {
            let single = self.singles.get((next as usize).checked_sub(1)?)?;
            next = single.before;
            Some(single)
        })
    }
}

/// The id of the row that begins with this word: arenas are renewed before ids have more bits
/// ([`ARENA_WORDS_MAX`]).
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "what was looked at after each record")]
fn row_id(word: usize) -> u32 {
    debug_assert!(word <= u32::MAX as usize, "the arena is worn");
    word as u32
}

#[inline]
fn read_row(id: u32, words: &[u64]) -> RowView<'_> {
    let count = to_usize(words[2]);
    RowView {
        id,
        entity: low_half(words[0]),
        before: (words[0] >> 32) as u32,
        timestamp: words[1] as i64,
        bits: &words[HEADER_WORDS..HEADER_WORDS + count],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(view: &ArenaView, mut id: u32) -> Vec<Timestamp> {
        let mut times = Vec::new();
        while let Some(row) = view.row(id) {
            times.push(row.timestamp);
            id = row.before;
        }
        times
    }

    #[test]
    fn chains_lead_through_chunks_and_stop_at_what_was_taken() {
        let mut arena = Arena::new();
        arena.reserve_entities(3);
        let rows = 3 * CHUNK_WORDS / 5;
        for i in 0..rows {
            arena.push((i % 3) as u32, i as i64, &[i as f64, 0.5]);
        }
        let view = arena.view();
        assert_eq!(view.samples(), 2 * rows as u64);
        let (last, row) = (arena.last_row(1), |id| arena.row(id).map(|row| row.timestamp));
        assert_eq!(row(last), view.row(last).map(|row| row.timestamp));
        assert_eq!((row(CHUNK_WORDS as u32), row(0)), (Some(0), None));
        assert_eq!(view.rows().count(), rows);
        assert!(view.rows().zip(0..).all(|(row, i)| row.timestamp == i));
        let of_one: Vec<i64> = (0..rows as i64).rev().filter(|i| i % 3 == 1).collect();
        assert_eq!(times(&view, arena.last_row(1)), of_one);

        let taken = arena.take();
        assert_eq!(arena.samples(), 0);
        arena.push(1, -5, &[1.0, 2.0]);
        assert_eq!(times(&arena.view(), arena.last_row(1)), [-5]);
        let before = arena.view().row(arena.last_row(1)).unwrap().before;
        assert_eq!(times(&taken, before), of_one, "the older rows are still reachable");
    }

    #[test]
    fn chunks_say_how_late_they_are() {
        let mut arena = Arena::new();
        arena.reserve_entities(1);
        let rows = 3 * CHUNK_WORDS / 4;
        for i in 0..rows {
            // One in the first chunk is late.
            let time = if i == 7 { i64::from(u32::MAX) } else { i as i64 };
            arena.push(0, time, &[0.5]);
            if i == 8 {
                assert_eq!(arena.view().latest_until(arena.last_row(0)), i64::from(u32::MAX));
            }
        }
        assert_eq!(arena.take().latest_until(NO_ROW), i64::MIN);
        for i in 0..rows {
            arena.push(0, i as i64, &[0.5]);
        }
        let view = arena.view();
        let (mut id, mut latest) = (arena.last_row(0), i64::MAX);
        while let Some(row) = view.row(id) {
            assert!(row.timestamp <= view.latest_until(id) && view.latest_until(id) <= latest);
            (latest, id) = (view.latest_until(id), row.before);
        }
        let late = view.latest_until(arena.last_row(0));
        assert_eq!(late, rows as i64 - 1, "nothing is left of what was taken");
        assert!(latest < late / 2, "the first chunk is earlier");
    }

    #[test]
    fn singles_are_chained_by_series() {
        let mut arena = Arena::new();
        for i in 0..10 {
            arena.push_single(i % 2, 3, i64::from(i), f64::from(i));
        }
        let view = arena.view();
        let odd: Vec<i64> =
            view.singles_from(arena.last_single(1, 3)).map(|s| s.timestamp).collect();
        assert_eq!(odd, [9, 7, 5, 3, 1]);
        assert_eq!(view.singles_from(arena.last_single(1, 2)).count(), 0);
    }
}
