//! Which series of two vectors belong together, and which must not.

use crate::error::{QueryError, Result};
use crate::gap::{ABSENT, is_absent};
use crate::names::{Key, is_metadata_label};
use crate::operators::changes_scale;
use crate::options::NameRemoval;
use crate::vector::Vector;
use hashbrown::{HashMap, HashSet};
use model::{Labels, METRIC_NAME};
use promql::{Binary, Cardinality, VectorMatching};

/// Numbers the label signatures of a matching, in the order in which they are seen.
pub(crate) struct Signatures<'a> {
    matching: &'a VectorMatching,
    ids: HashMap<Box<[u8]>, usize>,
    bytes: Vec<u8>,
}

impl<'a> Signatures<'a> {
    pub fn new(matching: &'a VectorMatching) -> Signatures<'a> {
        Signatures { matching, ids: HashMap::new(), bytes: Vec::new() }
    }

    /// The number of the signature of these labels.
    pub fn of(&mut self, labels: &Labels) -> usize {
        self.write_bytes(labels);
        let next = self.ids.len();
        match self.ids.get(self.bytes.as_slice()) {
            Some(id) => *id,
            None => *self.ids.entry(self.bytes.as_slice().into()).or_insert(next),
        }
    }

    /// The number of the signature of these labels, if it has one.
    pub fn find(&mut self, labels: &Labels) -> Option<usize> {
        self.write_bytes(labels);
        self.ids.get(self.bytes.as_slice()).copied()
    }

    fn write_bytes(&mut self, labels: &Labels) {
        self.bytes.clear();
        for pair in labels.pairs().filter(|pair| is_matched(self.matching, pair.name)) {
            self.bytes.extend_from_slice(pair.bytes);
        }
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Whether a label is part of the signature.
fn is_matched(matching: &VectorMatching, name: &[u8]) -> bool {
    let is_listed = matching.labels.iter().any(|label| label.as_bytes() == name);
    if matching.is_on { is_listed } else { !is_listed && name != METRIC_NAME.as_bytes() }
}

/// The rows of both sides that have one signature.
pub(crate) struct MatchGroup {
    pub many: Vec<usize>,
    pub one: Vec<usize>,
}

/// The groups of the rows of two vectors, in the order of the "one" side.
pub(crate) fn match_groups(
    matching: &VectorMatching,
    many: &Vector,
    one: &Vector,
) -> Vec<MatchGroup> {
    let mut signatures = Signatures::new(matching);
    let mut groups: Vec<MatchGroup> = Vec::new();
    for (idx, key) in one.keys().iter().enumerate() {
        let id = signatures.of(&key.labels);
        if groups.len() <= id {
            groups.push(MatchGroup { many: Vec::new(), one: Vec::new() });
        }
        groups[id].one.push(idx);
    }
    for (idx, key) in many.keys().iter().enumerate() {
        if let Some(id) = signatures.find(&key.labels) {
            groups[id].many.push(idx);
        }
    }
    groups
}

impl MatchGroup {
    /// Fails when two series of the "one" side are there at a step at which the other side has
    /// any series at all, as Prometheus does.
    pub fn check_one_side(
        &self,
        matching: &VectorMatching,
        many: &Vector,
        one: &Vector,
    ) -> Result<()> {
        let [first, ..] = self.one.as_slice() else { return Ok(()) };
        if self.one.len() < 2 {
            return Ok(());
        }
        for step in 0..one.steps() {
            let mut there = self.one.iter().filter(|idx| !is_absent(one.row(**idx)[step]));
            let (Some(a), Some(b)) = (there.next(), there.next()) else { continue };
            if !matching.fill.is_any() && !many.rows().any(|(_, row)| !is_absent(row[step])) {
                continue;
            }
            let side =
                if matching.cardinality == Cardinality::OneToMany { "left" } else { "right" };
            let group = format_labels(&matched_labels(matching, &one.key(*first).labels));
            let mut both = [a, b].map(|idx| format_labels(&one.key(*idx).labels));
            both.sort();
            return Err(QueryError::Execution(format!(
                "found duplicate series for the match group {group} on the {side} hand-side of \
                 the operation: [{}, {}];many-to-many matching not allowed: matching labels must \
                 be unique on one side",
                both[0], both[1]
            )));
        }
        Ok(())
    }

    /// Fails when two series of the "many" side meet the row of one of the other at a step and
    /// would give one result: always in one-to-one matching, else when their labels are equal.
    /// `keys` are those of the results, one for each of the many.
    pub fn check_many_side(
        &self,
        matching: &VectorMatching,
        many: &Vector,
        one: &[f64],
        keys: &[Key],
    ) -> Result<()> {
        assert!(keys.len() == self.many.len(), "a key for each row");
        let is_one_to_one = matching.cardinality == Cardinality::OneToOne;
        if self.many.len() < 2 || (!is_one_to_one && are_distinct(keys)) {
            return Ok(());
        }
        let nothing = Labels::default();
        let mut seen: HashMap<&Labels, Vec<bool>> = HashMap::new();
        for (many_idx, key) in self.many.iter().zip(keys) {
            // In one-to-one matching any two are too many, whatever their labels.
            let labels = if is_one_to_one { &nothing } else { &key.labels };
            let marks = seen.entry(labels).or_insert_with(|| vec![false; many.steps()]);
            for (mark, (a, b)) in marks.iter_mut().zip(many.row(*many_idx).iter().zip(one)) {
                let meets = !is_absent(*a) && !is_absent(*b);
                if meets && *mark {
                    return Err(too_many(matching));
                }
                *mark |= meets;
            }
        }
        Ok(())
    }
}

/// Steps at which the "many" side of a group has matched.
pub(crate) struct MatchMarks<'a> {
    matching: &'a VectorMatching,
    /// Which steps have a match, for each set of result labels. One-to-one matching allows a single match, whatever its labels.
    by_labels: HashMap<Labels, Vec<bool>>,
}

impl<'a> MatchMarks<'a> {
    pub fn new(matching: &'a VectorMatching) -> MatchMarks<'a> {
        MatchMarks { matching, by_labels: HashMap::new() }
    }

    /// Begins with another group.
    pub fn clear(&mut self) {
        self.by_labels.clear();
    }

    /// Adds the steps at which two rows matched.
    ///
    /// # Errors
    /// There is a match with the same result at one of the steps.
    pub fn add(&mut self, labels: &Labels, met: &[bool]) -> Result<()> {
        let labels = match self.matching.cardinality {
            Cardinality::OneToOne => Labels::default(),
            _ => labels.clone(),
        };
        let marks = self.by_labels.entry(labels).or_insert_with(|| vec![false; met.len()]);
        for (mark, met) in marks.iter_mut().zip(met) {
            if *met && *mark {
                return Err(too_many(self.matching));
            }
            *mark |= met;
        }
        Ok(())
    }

    /// A row without its values at the steps at which something matched.
    pub fn unmatched(&self, row: &[f64]) -> Vec<f64> {
        let mut alone = row.to_vec();
        for marks in self.by_labels.values() {
            for (value, _) in alone.iter_mut().zip(marks).filter(|(_, mark)| **mark) {
                *value = ABSENT;
            }
        }
        alone
    }
}

/// Whether no two keys have the same labels.
fn are_distinct(keys: &[Key]) -> bool {
    let mut seen = HashSet::with_capacity(keys.len());
    keys.iter().all(|key| seen.insert(&key.labels))
}

fn too_many(matching: &VectorMatching) -> QueryError {
    let message = match matching.cardinality {
        Cardinality::OneToOne => {
            "multiple matches for labels: many-to-one matching must be explicit \
             (group_left/group_right)"
        }
        _ => "multiple matches for labels: grouping labels must ensure unique matches",
    };
    QueryError::Execution(message.to_string())
}

/// The labels that are part of the signature.
pub(crate) fn matched_labels(matching: &VectorMatching, labels: &Labels) -> Labels {
    labels.only(|name| is_matched(matching, name))
}

/// Labels as Prometheus writes them in errors: `{__name__="up", job="a"}`.
pub(crate) fn format_labels(labels: &Labels) -> String {
    let pairs: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={}", promql::quote(value))).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// Makes the labels of a result from those of its two sides.
pub(crate) struct KeyMaker<'a> {
    pub binary: &'a Binary,
    pub matching: &'a VectorMatching,
    removal: NameRemoval,
    /// Labels that are those of the "one" side, in order.
    included: Vec<&'a str>,
}

impl<'a> KeyMaker<'a> {
    pub fn new(
        binary: &'a Binary,
        matching: &'a VectorMatching,
        removal: NameRemoval,
    ) -> KeyMaker<'a> {
        let mut included: Vec<&str> = matching.include.iter().map(String::as_str).collect();
        included.sort_unstable();
        included.dedup();
        KeyMaker { binary, matching, removal, included }
    }

    /// The keys of each row of a group's "many" side with one of its "one" side.
    pub fn keys(&self, group: &MatchGroup, many: &Vector, one: &Key) -> Vec<Key> {
        group.many.iter().map(|idx| self.key(many.key(*idx), one)).collect()
    }

    pub fn key(&self, many: &Key, one: &Key) -> Key {
        let is_late = self.binary.returns_bool && self.removal == NameRemoval::Late;
        Key { labels: self.labels(many, one), drops_name: is_late }
    }

    fn labels(&self, many: &Key, one: &Key) -> Labels {
        let (binary, matching) = (self.binary, self.matching);
        let drops_bool_name = binary.returns_bool && self.removal != NameRemoval::Late;
        let drops_name = drops_bool_name || changes_scale(binary.op);
        let is_one_to_one = matching.cardinality == Cardinality::OneToOne;
        let is_kept = |name: &[u8]| {
            let is_listed = || matching.labels.iter().any(|label| label.as_bytes() == name);
            (!is_one_to_one || is_listed() == matching.is_on)
                && !(drops_name && is_metadata_label(name))
        };
        many.labels.with_those_of(is_kept, &self.included, &one.labels)
    }
}
