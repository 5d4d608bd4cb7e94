//! Binary operators with `fill`: a series without a partner meets a number.
//!
//! Groups are as without `fill`, but those of one side alone count too. In each, at every step:
//!
//! ```text
//! many there, one there      many op one
//! many there, one missing    many op fill       if there is one for that side
//! many missing, one there    fill op one        likewise, once
//! ```

use crate::error::Result;
use crate::eval::Evaluator;
use crate::gap::{ABSENT, is_absent};
use crate::histograms::binary::{Mixed, Side};
use crate::matching::{KeyMaker, MatchGroup, MatchMarks, Signatures, matched_labels};
use crate::names::Key;
use crate::operators::{Outcome, combine};
use crate::vector::Vector;

/// Two sides of an operation, of which either may be filled.
pub(crate) struct Filling<'a> {
    pub maker: &'a KeyMaker<'a>,
    pub many: &'a Vector,
    pub one: &'a Vector,
    /// Whether the left side is the "one" side.
    pub is_swapped: bool,
}

/// The rows of an operation as they are made.
struct Output<'a> {
    filling: &'a Filling<'a>,
    vector: Vector,
    row: Vec<f64>,
    /// Set if there may be histograms.
    mixed: Option<Mixed<'a>>,
    /// At which steps the group has results.
    marks: MatchMarks<'a>,
    /// At which steps the last two rows matched.
    met: Vec<bool>,
}

impl Evaluator<'_> {
    /// Arithmetic and comparisons of matched series and of those without a partner.
    pub(crate) fn filled_vectors(&self, filling: &Filling<'_>) -> Result<Vector> {
        let (many, one) = (filling.many, filling.one);
        let matching = filling.maker.matching;
        let steps = many.steps();
        let mut output = Output {
            filling,
            vector: Vector::new(self.context, steps),
            row: vec![ABSENT; steps],
            mixed: Mixed::of(filling.maker.binary, many, one),
            marks: MatchMarks::new(matching),
            met: vec![false; steps],
        };
        for group in filling.groups() {
            self.context.check()?;
            group.check_one_side(matching, many, one)?;
            output.marks.clear();
            self.fill_group(filling, &group, &mut output)?;
        }
        if let Some(mixed) = output.mixed {
            mixed.tell(self.context);
        }
        output.vector.merge_same_labels()
    }

    fn fill_group(
        &self,
        filling: &Filling<'_>,
        group: &MatchGroup,
        output: &mut Output<'_>,
    ) -> Result<()> {
        let (many, one) = (filling.many, filling.one);
        let (many_fill, one_fill) = filling.fills();
        for many_idx in &group.many {
            let (key, row) = (many.key(*many_idx), many.row(*many_idx));
            let cells = many.cells(*many_idx);
            for one_idx in &group.one {
                let one_side = (one.row(*one_idx), one.cells(*one_idx));
                self.emit(output, *many_idx, (key, (row, cells)), (one.key(*one_idx), one_side))?;
            }
            if let Some(value) = one_fill {
                let alone = without(row, one, &group.one);
                let filled = (filling.stand_in(key), vec![value; row.len()]);
                let one_side = (&filled.0, (filled.1.as_slice(), [].as_slice()));
                self.emit(output, *many_idx, (key, (&alone, cells)), one_side)?;
            }
        }
        let Some(value) = many_fill else { return Ok(()) };
        for one_idx in &group.one {
            let (key, row) = (one.key(*one_idx), one.row(*one_idx));
            let alone = output.marks.unmatched(row);
            let filled = (filling.stand_in(key), vec![value; row.len()]);
            let many_side = (&filled.0, (filled.1.as_slice(), [].as_slice()));
            let one_side = (key, (alone.as_slice(), one.cells(*one_idx)));
            // These come after all rows of the "many" side.
            self.emit(output, many.len() + *one_idx, many_side, one_side)?;
        }
        Ok(())
    }

    /// Adds the result of two rows, unless it is at a step at which there is one already.
    fn emit(
        &self,
        output: &mut Output<'_>,
        order: usize,
        (many_key, many): (&Key, Side<'_>),
        (one_key, one): (&Key, Side<'_>),
    ) -> Result<()> {
        let maker = output.filling.maker;
        let key = maker.key(many_key, one_key);
        let (a, b) = if output.filling.is_swapped { (one, many) } else { (many, one) };
        let Some(mixed) = &mut output.mixed else {
            combine(maker.binary.op, Outcome::of(maker.binary), a.0, b.0, &mut output.row);
            for (met, (a, b)) in output.met.iter_mut().zip(many.0.iter().zip(one.0)) {
                *met = !is_absent(*a) && !is_absent(*b);
            }
            output.marks.add(&key.labels, &output.met)?;
            return output.vector.push(self.context, key, &output.row);
        };
        mixed.combine(order, a, b, &mut output.row);
        output.marks.add(&key.labels, mixed.met())?;
        output.vector.push_mixed(self.context, key, &output.row, mixed.cells())
    }
}

impl Filling<'_> {
    /// What stands in for the "many" side and for the "one" side. Under `group_right` Prometheus
    /// takes `fill_left` for the "many" side too, which is the right one, and so do we.
    fn fills(&self) -> (Option<f64>, Option<f64>) {
        let fill = self.maker.matching.fill;
        (fill.left, fill.right)
    }

    /// The key of a missing partner: the labels that are matched.
    fn stand_in(&self, key: &Key) -> Key {
        Key::new(matched_labels(self.maker.matching, &key.labels))
    }

    /// All groups, also those of one side only.
    fn groups(&self) -> Vec<MatchGroup> {
        let mut signatures = Signatures::new(self.maker.matching);
        let mut groups: Vec<MatchGroup> = Vec::new();
        let mut at = |key: &Key, groups: &mut Vec<MatchGroup>| {
            let id = signatures.of(&key.labels);
            if groups.len() <= id {
                groups.push(MatchGroup { many: Vec::new(), one: Vec::new() });
            }
            id
        };
        for (idx, key) in self.one.keys().iter().enumerate() {
            let id = at(key, &mut groups);
            groups[id].one.push(idx);
        }
        for (idx, key) in self.many.keys().iter().enumerate() {
            let id = at(key, &mut groups);
            groups[id].many.push(idx);
        }
        groups
    }
}

/// The row where none of the other side's rows has a value.
fn without(row: &[f64], others: &Vector, idxs: &[usize]) -> Vec<f64> {
    let mut alone = row.to_vec();
    for idx in idxs {
        for (value, other) in alone.iter_mut().zip(others.row(*idx)) {
            if !is_absent(*other) {
                *value = ABSENT;
            }
        }
    }
    alone
}
