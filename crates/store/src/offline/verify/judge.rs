//! Judges the log's records one after the other, as opening would take them: does each decode, does
//! it name known entities and columns, does it register what agrees with what is known.
//!
//! Where something does not hold, the verdict says what is left of the record: the registrations
//! that apply, and the rows that can be read. Behind a row of an entity whose columns nobody knows
//! nothing of a record can be read, for a row does not say how long it is.

use super::partition_index::{EntityFate, PartitionIndex};
use crate::base::narrow::to_u16;
use crate::base::period::{PartitionLength, Period};
use crate::log::exemplar_record::decode_exemplars;
use crate::log::log_record::{
    KIND_EXEMPLARS, KIND_METADATA, KIND_ROWS, RowHead, RowsDecoder, RowsEncoder, RowsRecord,
    decode_metadata,
};
use crate::partition::dropped::DroppedPartitions;
use model::TimeRange;
use std::collections::BTreeMap;
use wal::{Kept, RecordRef};

/// What is to be said of a record.
#[derive(Debug)]
pub struct Verdict {
    /// What is wrong; empty if nothing is.
    pub words: Vec<String>,
    /// Whose it is, when it is no record of the store: nothing more is known of it then.
    pub foreign: Option<&'static str>,
    /// What is left of it.
    pub kept: Kept,
    /// The partition of its rows.
    pub period: Option<Period>,
    /// When the samples that are lost with it are from, as far as that is known: all of the
    /// partition if it is not.
    pub lost: Option<TimeRange>,
}

impl Verdict {
    fn sound() -> Verdict {
        let words = Vec::new();
        Verdict { words, foreign: None, kept: Kept::Whole, period: None, lost: None }
    }

    fn foreign(consumer: &'static str) -> Verdict {
        Verdict { foreign: Some(consumer), ..Verdict::sound() }
    }

    fn unknown(kind: u8) -> Verdict {
        let what = format!("its kind, {kind}, is unknown: a newer Quipu wrote it");
        Verdict { words: vec![what], ..Verdict::sound() }
    }

    fn unreadable(what: String) -> Verdict {
        let lost = Some(TimeRange::ALL);
        Verdict { words: vec![what], kept: Kept::Not, lost, ..Verdict::sound() }
    }
}

/// Judges records in their order.
pub struct Judge {
    /// By partition, what is known of it.
    pub partitions: BTreeMap<Period, PartitionIndex>,
    /// From where on records of dropped partitions count.
    dropped: DroppedPartitions,
    /// Of all partitions; that of the first record where nothing else says it.
    length: Option<PartitionLength>,
    values: Vec<f64>,
}

/// What became of a row.
enum Row {
    Good(RowHead, i64),
    /// It can be read, but not taken.
    Bad(String, i64),
    /// Nothing more of the record can be read.
    Broken(String),
    /// Nothing more can be read for want of an index.
    Blind,
    End,
}

impl Judge {
    /// A judge who knows these partitions, and how long all are that there can be.
    pub fn new(
        partitions: BTreeMap<Period, PartitionIndex>,
        dropped: DroppedPartitions,
        length: Option<PartitionLength>,
    ) -> Judge {
        Judge { partitions, dropped, length, values: Vec::new() }
    }

    /// Judges the next record.
    pub fn judge(&mut self, record: &RecordRef<'_>) -> Verdict {
        let decoded = match record.kind {
            KIND_ROWS => return self.rows(record),
            KIND_METADATA => decode_metadata(record.payload).map(drop),
            KIND_EXEMPLARS => decode_exemplars(record.payload).map(drop),
            kind => {
                return wal::kinds::consumer_of(kind)
                    .map_or_else(|| Verdict::unknown(kind), Verdict::foreign);
            }
        };
        match decoded {
            Ok(()) => Verdict::sound(),
            Err(error) => Verdict::unreadable(format!("does not decode: {error}")),
        }
    }

    fn rows(&mut self, record: &RecordRef<'_>) -> Verdict {
        let rows = match RowsRecord::parse(record.payload) {
            Ok(Some(rows)) => rows,
            Ok(None) => return Verdict::sound(),
            Err(error) => return Verdict::unreadable(format!("does not decode: {error}")),
        };
        let (has, all) = (rows.period.length(), *self.length.get_or_insert(rows.period.length()));
        if has != all {
            let name = rows.period.name();
            let words = format!("rows of {name}, a {has}, where partitions are of a {all} each");
            return Verdict::unreadable(words);
        }
        let index = self.partitions.entry(rows.period).or_insert_with(PartitionIndex::empty);
        if record.segment < index.wal_from.max(self.dropped.from(rows.period)) {
            return Verdict::sound();
        }
        let mut verdict = Verdict::sound();
        let mut registrations = Vec::new();
        let error = index.memory.replay_what_applies(rows.registrations, &mut registrations);
        // Those behind what cannot be read may contradict what is known for that reason alone.
        if let Some(error) = error
            && !index.is_partly_unreadable()
        {
            verdict.words.push(format!(
                "registers what does not apply: {}",
                crate::Error::from(error).without_file()
            ));
        }
        self.check_rows(&rows, &mut verdict);
        if !verdict.words.is_empty() {
            verdict.period = Some(rows.period);
            verdict.kept = self.what_is_left(&rows, registrations);
        }
        verdict
    }

    fn check_rows(&mut self, rows: &RowsRecord<'_>, verdict: &mut Verdict) {
        let period = rows.period;
        let range = period.range();
        let mut decoder = rows.rows();
        let note = |words: &mut Vec<String>, what: String| {
            // One of a kind is enough: a record has thousands of rows.
            if !words.contains(&what) && words.len() < WORDS_MAX {
                words.push(what);
            }
        };
        loop {
            match self.next_row(&mut decoder, period) {
                Row::End | Row::Blind => return,
                Row::Good(_, time) if range.contains(time) => {}
                Row::Good(_, time) => {
                    note(&mut verdict.words, format!("a sample outside of {}", period.name()));
                    widen(&mut verdict.lost, TimeRange::new(time, time));
                }
                Row::Bad(what, time) => {
                    note(&mut verdict.words, what);
                    widen(&mut verdict.lost, TimeRange::new(time, time));
                }
                Row::Broken(what) => {
                    note(&mut verdict.words, what);
                    widen(&mut verdict.lost, range);
                    return;
                }
            }
        }
    }

    /// The rest of a record, to be logged in its place.
    fn what_is_left(&mut self, rows: &RowsRecord<'_>, registrations: Vec<u8>) -> Kept {
        let mut encoder = RowsEncoder::default();
        encoder.start(0);
        let mut decoder = rows.rows();
        let mut count = 0;
        loop {
            match self.next_row(&mut decoder, rows.period) {
                Row::Good(head, time) if rows.period.range().contains(time) => {
                    count += 1;
                    match head.column {
                        None => encoder.row(head.entity, time, &self.values),
                        Some(column) => {
                            encoder.single(head.entity, to_u16(column), time, self.values[0]);
                        }
                    }
                }
                Row::Good(..) | Row::Bad(..) => {}
                Row::Broken(_) | Row::Blind | Row::End => break,
            }
        }
        if count == 0 && registrations.is_empty() {
            return Kept::Not;
        }
        encoder.registrations = registrations;
        let mut payload = Vec::new();
        let pieces = encoder.finish(rows.period, &mut payload);
        let body = pieces.concat();
        payload.extend_from_slice(&body);
        Kept::Changed(payload)
    }

    fn next_row(&mut self, decoder: &mut RowsDecoder<'_>, period: Period) -> Row {
        let undecodable = |error: codec::Error| Row::Broken(format!("rows do not decode: {error}"));
        let head = match decoder.head() {
            Ok(Some(head)) => head,
            Ok(None) => return Row::End,
            Err(error) => return undecodable(error),
        };
        let Some(index) = self.partitions.get(&period) else { return Row::Blind };
        let (block, is_dead) = match index.fate_of(head.entity) {
            Ok(EntityFate::Live(block)) => (block, false),
            Ok(EntityFate::Dead(block)) => (block, true),
            Ok(EntityFate::Unreadable) | Err(_) => return Row::Blind,
            Ok(EntityFate::Unknown) => {
                let what = format!("a row of unknown entity {} of {}", head.entity, period.name());
                return Row::Broken(what);
            }
        };
        let count = if head.column.is_some() { 1 } else { block.columns as usize };
        let time = match decoder.values(count, &mut self.values) {
            Ok(time) => time,
            Err(error) => return undecodable(error),
        };
        if head.column.is_some_and(|column| block.columns <= column) {
            let what = format!("a value of a column that entity {} does not have", head.entity);
            return Row::Bad(what, time);
        }
        match is_dead {
            true => Row::Bad(format!("a row of dead entity {}", head.entity), time),
            false => Row::Good(head, time),
        }
    }

    /// Whether a record has a row of an entity that the segments know as dead: then all records of
    /// its partition up to its segment are in parts, for only what is flushed ever leaves the index.
    pub fn has_row_of_the_dead(&mut self, record: &RecordRef<'_>) -> Option<Period> {
        if record.kind != KIND_ROWS {
            return None;
        }
        let rows = RowsRecord::parse(record.payload).ok()??;
        if record.segment < self.dropped.from(rows.period) {
            return None;
        }
        let index = self.partitions.entry(rows.period).or_insert_with(PartitionIndex::empty);
        let _ = index.memory.replay_what_applies(rows.registrations, &mut Vec::new());
        let mut decoder = rows.rows();
        loop {
            let head = decoder.head().ok()??;
            let index = self.partitions.get(&rows.period)?;
            let block = match index.fate_of(head.entity).ok()? {
                EntityFate::Live(block) => block,
                EntityFate::Dead(_) => return Some(rows.period),
                EntityFate::Unknown if head.entity < index.frozen_end() => {
                    return Some(rows.period);
                }
                EntityFate::Unknown | EntityFate::Unreadable => return None,
            };
            let count = if head.column.is_some() { 1 } else { block.columns as usize };
            decoder.values(count, &mut self.values).ok()?;
        }
    }
}

/// Different things that are said of one record.
const WORDS_MAX: usize = 8;

fn widen(span: &mut Option<TimeRange>, with: TimeRange) {
    let known = span.unwrap_or(with);
    *span = Some(TimeRange::new(known.start.min(with.start), known.end.max(with.end)));
}
