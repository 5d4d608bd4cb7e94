//! Binary operators: numbers with numbers, vectors with numbers, vectors with vectors.
//!
//! Two vectors are matched once, by label signature, not at every step: each pair of rows that
//! can meet is then combined over all steps in one pass. What Prometheus refuses at a step where
//! two series of one signature are present is checked per signature, and only where a signature
//! has more than one row at all.

use crate::call::Evaluate;
use crate::error::{QueryError, Result};
use crate::eval::Evaluator;
use crate::fill::Filling;
use crate::gap::{ABSENT, is_absent};
use crate::histograms::binary::{Mixed, with_scalar};
use crate::histograms::totals::{Reading, ReadingScope};
use crate::matching::{KeyMaker, MatchMarks, Signatures, match_groups};
use crate::operators::{Outcome, arithmetic, changes_scale, combine, compare};
use crate::scalar::Scalar;
use crate::time::Grid;
use crate::vector::Vector;
use promql::{Binary, BinaryOp, Cardinality, ValueType, VectorMatching};

impl Evaluator<'_> {
    /// The value of a binary operator with at least one vector.
    pub fn binary(&self, binary: &Binary, grid: Grid) -> Result<Vector> {
        let reading =
            if binary.op.is_trim() { Reading::Buckets } else { self.context.reading.get() };
        let _scope = ReadingScope::begin(&self.context.reading, reading);
        match (binary.left.value_type(), binary.right.value_type()) {
            (ValueType::Vector, ValueType::Vector) => {
                let left = self.vector(&binary.left, grid)?;
                let right = self.vector(&binary.right, grid)?;
                let Some(matching) = &binary.matching else {
                    return Err(QueryError::Execution("vectors without matching".to_string()));
                };
                if binary.op.is_set() {
                    return self.set_operation(binary.op, matching, left, right);
                }
                self.vectors(binary, matching, left, right)
            }
            (ValueType::Vector, _) => {
                let vector = self.vector(&binary.left, grid)?;
                let scalar = self.scalar(&binary.right, grid)?;
                if vector.has_histograms() || binary.op.is_trim() {
                    return self.mixed_with_scalar(binary, &vector, &scalar, false);
                }
                self.vector_with_scalar(binary, vector, |step, value| (value, scalar.at(step)))
            }
            _ => {
                let scalar = self.scalar(&binary.left, grid)?;
                let vector = self.vector(&binary.right, grid)?;
                if vector.has_histograms() || binary.op.is_trim() {
                    return self.mixed_with_scalar(binary, &vector, &scalar, true);
                }
                self.vector_with_scalar(binary, vector, |step, value| (scalar.at(step), value))
            }
        }
    }

    /// `operands` puts the vector's value and the scalar in the order of the expression.
    fn vector_with_scalar(
        &self,
        binary: &Binary,
        mut vector: Vector,
        operands: impl Fn(usize, f64) -> (f64, f64),
    ) -> Result<Vector> {
        let op = binary.op;
        if !op.is_comparison() {
            vector.map_steps(|step, value| {
                let (a, b) = operands(step, value);
                arithmetic(op, a, b)
            });
            return vector.without_names(self.context.options.name_removal);
        }
        let holds = |step, value| {
            let (a, b) = operands(step, value);
            compare(op, a, b) == Some(true)
        };
        if binary.returns_bool {
            vector.map_steps(|step, value| f64::from(u8::from(holds(step, value))));
            return vector.without_names(self.context.options.name_removal);
        }
        vector.map_steps(|step, value| if holds(step, value) { value } else { ABSENT });
        vector.drop_empty();
        Ok(vector)
    }

    /// As [`Evaluator::vector_with_scalar`] where there may be histograms.
    fn mixed_with_scalar(
        &self,
        binary: &Binary,
        vector: &Vector,
        scalar: &Scalar,
        is_scalar_left: bool,
    ) -> Result<Vector> {
        let found = with_scalar(self.context, binary, vector, scalar, is_scalar_left)?;
        if changes_scale(binary.op) || binary.returns_bool {
            return found.without_names(self.context.options.name_removal);
        }
        Ok(found)
    }

    /// Arithmetic and comparisons of matched series.
    fn vectors(
        &self,
        binary: &Binary,
        matching: &VectorMatching,
        left: Vector,
        right: Vector,
    ) -> Result<Vector> {
        // Many-to-one is the general case; one-to-many is the same with sides changed.
        let is_swapped = matching.cardinality == Cardinality::OneToMany;
        let (many, one) = if is_swapped { (&right, &left) } else { (&left, &right) };
        let maker = KeyMaker::new(binary, matching, self.context.options.name_removal);
        if matching.fill.is_any() {
            return self.filled_vectors(&Filling { maker: &maker, many, one, is_swapped });
        }
        let groups = match_groups(matching, many, one);
        let outcome = Outcome::of(binary);
        let mut out = Vector::new(self.context, many.steps());
        let mut row = vec![ABSENT; many.steps()];
        let mut mixed = Mixed::of(binary, many, one);
        let mut marks = MatchMarks::new(matching);
        for group in &groups {
            self.context.check()?;
            group.check_one_side(matching, many, one)?;
            let mut keys = Vec::new();
            for one_idx in &group.one {
                keys = maker.keys(group, many, one.key(*one_idx));
                if mixed.is_none() {
                    group.check_many_side(matching, many, one.row(*one_idx), &keys)?;
                }
            }
            marks.clear();
            // Those of several would be more than there are rows: few of them ever meet.
            keys.truncate(if group.one.len() == 1 { keys.len() } else { 0 });
            let mut keys = keys.into_iter();
            for many_idx in &group.many {
                for one_idx in &group.one {
                    let make = || maker.key(many.key(*many_idx), one.key(*one_idx));
                    let key = keys.next().unwrap_or_else(make);
                    let (a, b) = (many.row(*many_idx), one.row(*one_idx));
                    let (a, b) = if is_swapped { (b, a) } else { (a, b) };
                    let Some(mixed) = &mut mixed else {
                        combine(binary.op, outcome, a, b, &mut row);
                        out.push(self.context, key, &row)?;
                        continue;
                    };
                    let cells = (many.cells(*many_idx), one.cells(*one_idx));
                    let (left, right) = if is_swapped { (cells.1, cells.0) } else { cells };
                    mixed.combine(*many_idx, (a, left), (b, right), &mut row);
                    if 1 < group.many.len() {
                        marks.add(&key.labels, mixed.met())?;
                    }
                    out.push_mixed(self.context, key, &row, mixed.cells())?;
                }
            }
        }
        if let Some(mixed) = mixed {
            mixed.tell(self.context);
        }
        out.merge_same_labels()
    }

    fn set_operation(
        &self,
        op: BinaryOp,
        matching: &VectorMatching,
        mut left: Vector,
        mut right: Vector,
    ) -> Result<Vector> {
        let mut signatures = Signatures::new(matching);
        let left_ids: Vec<usize> =
            left.keys().iter().map(|key| signatures.of(&key.labels)).collect();
        let right_ids: Vec<usize> =
            right.keys().iter().map(|key| signatures.of(&key.labels)).collect();
        let (from, ids) =
            if op == BinaryOp::Or { (&left, &left_ids) } else { (&right, &right_ids) };
        let presence = Presence::of(from, ids, signatures.len());
        if op == BinaryOp::Or {
            for (idx, id) in right_ids.iter().enumerate() {
                presence.keep(*id, right.row_mut(idx), false);
            }
            for (idx, (key, row)) in right.rows().enumerate() {
                left.push_mixed(self.context, key.clone(), row, right.cells(idx))?;
            }
            return left.merge_same_labels();
        }
        for (idx, id) in left_ids.iter().enumerate() {
            presence.keep(*id, left.row_mut(idx), op == BinaryOp::And);
        }
        left.drop_empty();
        Ok(left)
    }
}

/// At which steps a signature has a value.
struct Presence {
    steps: usize,
    marks: Vec<bool>,
}

impl Presence {
    fn of(vector: &Vector, ids: &[usize], count: usize) -> Presence {
        let steps = vector.steps();
        let mut marks = vec![false; count * steps];
        for ((_, row), id) in vector.rows().zip(ids) {
            for (mark, value) in marks[id * steps..(id + 1) * steps].iter_mut().zip(row) {
                *mark |= !is_absent(*value);
            }
        }
        Presence { steps, marks }
    }

    /// Leaves of a row only the steps at which the signature's presence is `wanted`.
    fn keep(&self, id: usize, row: &mut [f64], wanted: bool) {
        let marks = &self.marks[id * self.steps..(id + 1) * self.steps];
        for (value, mark) in row.iter_mut().zip(marks) {
            if *mark != wanted {
                *value = ABSENT;
            }
        }
    }
}
