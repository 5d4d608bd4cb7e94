//! What may be found: per sample, exemplar and description, what was acknowledged and what is in
//! doubt.

use ::model::Labels;
use std::collections::{BTreeMap, BTreeSet};

/// A sample's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// Bits of a float.
    Float(u64),
    /// A hash of a histogram.
    Histogram(u64),
}

/// A series and an instant.
pub type SampleKey = (Labels, i64);
/// A series, an instant and a trace.
pub type ExemplarKey = (Labels, i64, String);

/// One place that holds a value or nothing.
#[derive(Clone, Debug)]
pub struct Cell<V> {
    /// What is there for sure, unless one of the others is.
    sure: Option<V>,
    /// What somebody tried to put there and was told no.
    maybe: Vec<V>,
    /// Whether it may be empty all the same: somebody tried to delete it, or its time has come.
    may_be_gone: bool,
}

impl<V> Default for Cell<V> {
    fn default() -> Cell<V> {
        Cell { sure: None, maybe: Vec::new(), may_be_gone: false }
    }
}

/// What is wrong with a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// What was acknowledged is not there.
    Lost,
    /// What was never sent, or was deleted, is there.
    Invented,
    /// Something else is there than what was sent.
    Wrong,
}

impl<V: Clone + PartialEq> Cell<V> {
    fn judge(&self, found: Option<&V>) -> Option<Fault> {
        let Some(found) = found else {
            return (self.sure.is_some() && !self.may_be_gone).then_some(Fault::Lost);
        };
        if self.sure.as_ref() == Some(found) || self.maybe.contains(found) {
            return None;
        }
        let is_known = self.sure.is_some() || !self.maybe.is_empty();
        Some(if is_known { Fault::Wrong } else { Fault::Invented })
    }
}

/// Places by key.
#[derive(Clone, Debug)]
pub struct Cells<K, V>(BTreeMap<K, Cell<V>>);

impl<K, V> Default for Cells<K, V> {
    fn default() -> Cells<K, V> {
        Cells(BTreeMap::new())
    }
}

impl<K: Clone + Ord, V: Clone + PartialEq> Cells<K, V> {
    /// Notes that a value was acknowledged.
    pub fn acknowledge(&mut self, key: K, value: V) {
        let cell = Cell { sure: Some(value), maybe: Vec::new(), may_be_gone: false };
        self.0.insert(key, cell);
    }

    /// Notes that a value may be there or not.
    pub fn doubt(&mut self, key: K, value: V) {
        self.0.entry(key).or_default().maybe.push(value);
    }

    /// Notes that a deletion of some places was acknowledged.
    pub fn delete(&mut self, mut is_meant: impl FnMut(&K) -> bool) {
        self.0.retain(|key, _| !is_meant(key));
    }

    /// Notes that some places may be empty.
    pub fn doubt_deletion(&mut self, mut is_meant: impl FnMut(&K) -> bool) {
        let meant = self.0.iter_mut().filter(|(key, _)| is_meant(key));
        meant.for_each(|(_, cell)| cell.may_be_gone = true);
    }

    /// The first place that is not as it must be; `expired` tells which ones may be empty by now.
    pub fn judge(
        &self,
        found: &BTreeMap<K, V>,
        mut expired: impl FnMut(&K) -> bool,
    ) -> Option<(Fault, K, String)>
    where
        V: std::fmt::Debug,
    {
        let empty = Cell::default();
        for (key, value) in found {
            let cell = self.0.get(key).unwrap_or(&empty);
            if let Some(fault) = cell.judge(Some(value)) {
                return Some((fault, key.clone(), format!("found {value:?}, may be {cell:?}")));
            }
        }
        for (key, cell) in &self.0 {
            if !found.contains_key(key)
                && let Some(fault) = cell.judge(None)
                && !expired(key)
            {
                return Some((fault, key.clone(), format!("found nothing, may be {cell:?}")));
            }
        }
        None
    }

    /// Takes what was found for what is there; what may have expired stays in doubt.
    pub fn resolve(&mut self, found: &BTreeMap<K, V>, mut expired: impl FnMut(&K) -> bool) {
        self.0.retain(|key, cell| match found.get(key) {
            Some(value) => {
                *cell = Cell { sure: Some(value.clone()), maybe: Vec::new(), may_be_gone: false };
                true
            }
            None if expired(key) => {
                cell.may_be_gone = true;
                true
            }
            None => false,
        });
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// All that may be found in a store.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Floats and histograms.
    pub samples: Cells<SampleKey, Value>,
    /// Exemplars.
    pub exemplars: Cells<ExemplarKey, ()>,
    /// Descriptions by metric.
    pub metadata: Cells<String, String>,
    /// All samples that were ever sent.
    pub sent: BTreeSet<(SampleKey, Value)>,
    /// All series that were ever sent.
    pub series: BTreeSet<Labels>,
    /// All exemplars that were ever sent.
    pub traces: BTreeSet<ExemplarKey>,
    /// All descriptions that were ever sent, with their metrics.
    pub descriptions: BTreeSet<(String, String)>,
}
