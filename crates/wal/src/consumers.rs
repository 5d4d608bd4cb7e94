//! Who shares a log, and whose a record is when the log is replayed.
//!
//! ```text
//!                     ┌ declared, from its `replay_from` on ─► taken
//! record ─► its kind ─┼ declared, below it                  ─► left: its consumer has it elsewhere
//!                     ├ in the table, not declared          ─► left, and kept: the consumer is off
//!                     └ unknown                             ─► Error::UnknownKind
//! ```

use crate::error::ReplayError;
use crate::kinds::{KindSet, consumer_of};
use crate::segments::RecordRef;
use std::collections::BTreeMap;

/// What takes a consumer's records while the log opens, in their order. It changes memory only: a
/// later record may be one that keeps the log from opening, and then nothing has changed.
pub type Take<'a> = Box<dyn FnMut(&RecordRef<'_>) -> Result<(), ReplayError> + 'a>;

/// One that shares a log, before the log opens.
pub struct Consumer<'a> {
    /// As the table of kinds calls it.
    pub name: &'static str,
    /// The kinds of its records.
    pub kinds: &'static [u8],
    /// The first segment whose records it takes: it has those before elsewhere. 0 takes all.
    pub replay_from: u64,
    /// New records go to this segment or a later one: what the consumer has written down elsewhere
    /// about lower ones is about others.
    pub next_segment_min: u64,
    /// Takes its records.
    pub take: Take<'a>,
}

/// All that share a log, before it opens.
#[derive(Default)]
pub struct Consumers<'a> {
    all: Vec<Consumer<'a>>,
    /// By kind, whose it is.
    by_kind: BTreeMap<u8, usize>,
    /// Those that are off and have records, by name.
    off: BTreeMap<&'static str, Off>,
}

/// A consumer that is switched off and has records in the log, which keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Off {
    /// Its name.
    pub consumer: &'static str,
    /// The segment of the first of its records.
    pub from_segment: u64,
    /// How many there are.
    pub record_count: u64,
}

/// Why a record keeps the log from opening: nobody knows its kind.
#[derive(Debug, thiserror::Error)]
#[error("a record of unknown kind {0}")]
pub(crate) struct UnknownKind(pub(crate) u8);

impl<'a> Consumers<'a> {
    /// Adds one.
    ///
    /// # Panics
    /// When it declares a kind that the table does not give it, or one that is declared already: a
    /// mistake of the program.
    pub fn declare(&mut self, consumer: Consumer<'a>) {
        let name = consumer.name;
        assert!(!consumer.kinds.is_empty(), "{name} declares no kind");
        for &kind in consumer.kinds {
            if let Some(&other) = self.by_kind.get(&kind) {
                let other = self.all[other].name;
                panic!("kind {kind} is declared by {name} and by {other}");
            }
            let known = consumer_of(kind);
            assert_eq!(known, Some(name), "kind {kind} belongs to another in the table of kinds");
            self.by_kind.insert(kind, self.all.len());
        }
        assert!(self.all.iter().all(|one| one.name != name), "{name} is declared twice");
        self.all.push(consumer);
    }

    /// Hands a record to its consumer.
    pub(crate) fn dispatch(&mut self, record: &RecordRef<'_>) -> Result<(), ReplayError> {
        if let Some(&idx) = self.by_kind.get(&record.kind) {
            let consumer = &mut self.all[idx];
            return match consumer.replay_from <= record.segment {
                true => (consumer.take)(record),
                false => Ok(()),
            };
        }
        let consumer = consumer_of(record.kind).ok_or(UnknownKind(record.kind))?;
        let from_segment = record.segment;
        let off =
            self.off.entry(consumer).or_insert(Off { consumer, from_segment, record_count: 0 });
        off.record_count += 1;
        Ok(())
    }

    /// The first segment that new records may go to.
    pub(crate) fn next_segment_min(&self) -> u64 {
        self.all.iter().map(|consumer| consumer.next_segment_min).max().unwrap_or(0)
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.all.iter().map(|consumer| consumer.name).collect()
    }

    pub(crate) fn kinds(&self) -> KindSet {
        let mut kinds = KindSet::default();
        self.by_kind.keys().for_each(|kind| kinds.insert(*kind));
        kinds
    }

    pub(crate) fn into_off(self) -> Vec<Off> {
        self.off.into_values().collect()
    }
}

impl std::fmt::Debug for Consumers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Consumers({:?}, off {:?})", self.names(), self.off)
    }
}
