//! Binary operators on histograms.
//!
//! Of what goes wrong at a step only the last is told, in the order of the "many" side: so does
//! Prometheus.

use crate::context::Context;
use crate::error::Result;
use crate::gap::{ABSENT, is_absent};
use crate::histograms::cells::{Cell, HISTOGRAM, cell_at};
use crate::histograms::notes::{Note, Operation, tell};
use crate::operators::{Outcome, scalar_op};
use crate::scalar::Scalar;
use crate::vector::Vector;
use histogram::{Histogram, Keep, ResetHint};
use promql::{Binary, BinaryOp};
use std::sync::Arc;

/// A value of either kind.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Number(f64),
    Histogram(&'a Arc<Histogram>),
}

impl<'a> Operand<'a> {
    /// The value at a step; `None` when there is none.
    fn at((values, cells): Side<'a>, step: usize) -> Option<Operand<'a>> {
        let value = values[step];
        if is_absent(value) {
            return None;
        }
        Some(cell_at(cells, step).map_or(Operand::Number(value), Operand::Histogram))
    }

    fn kind(&self) -> &'static str {
        match self {
            Operand::Number(_) => "float",
            Operand::Histogram(_) => "histogram",
        }
    }
}

/// What an operator makes of two values.
enum Found {
    Number(f64),
    Histogram(Arc<Histogram>),
    /// A comparison that does not hold.
    Nothing,
}

/// Why there is a note at a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Complaint {
    /// The operator does not know these kinds of values.
    Kinds(&'static str, &'static str),
    /// Buckets that cannot be brought together.
    Layout,
    /// Something about an operation that worked.
    Note(Note),
}

/// The last complaint of each step, and the row that it is about.
struct Complaints {
    last: Vec<Option<(usize, Complaint)>>,
}

impl Complaints {
    fn new(steps: usize) -> Complaints {
        Complaints { last: vec![None; steps] }
    }

    fn add(&mut self, step: usize, row: usize, complaint: Complaint) {
        let last = &mut self.last[step];
        if last.is_none_or(|(known, _)| known <= row) {
            *last = Some((row, complaint));
        }
    }

    /// Hands them to the query.
    fn tell(self, context: &Context<'_>, binary: &Binary) {
        let mut told: Vec<Complaint> = Vec::new();
        for (_, complaint) in self.last.into_iter().flatten() {
            if told.contains(&complaint) {
                continue;
            }
            told.push(complaint);
            let op = binary.op.as_str();
            let span = binary.left.span().to(binary.right.span());
            match complaint {
                Complaint::Note(note) => tell(context, "", span, note),
                Complaint::Kinds(left, right) => context.annotations.info(
                    span,
                    format!(
                        "incompatible sample types encountered for binary operator {}: {left} \
                         {op} {right}",
                        promql::quote(op)
                    ),
                ),
                Complaint::Layout => context.annotations.warn(
                    span,
                    format!("incompatible bucket layout encountered for binary operator {op}"),
                ),
            }
        }
    }
}

/// One side of an operation: values and the histograms among them.
pub(crate) type Side<'a> = (&'a [f64], &'a [Cell]);

/// An operation on rows of which some may have histograms.
pub(crate) struct Mixed<'a> {
    binary: &'a Binary,
    complaints: Complaints,
    cells: Vec<Cell>,
    /// At which steps the last two rows had values that the operator knows.
    met: Vec<bool>,
}

impl<'a> Mixed<'a> {
    /// The operation, if it may meet histograms.
    pub fn of(binary: &'a Binary, many: &Vector, one: &Vector) -> Option<Mixed<'a>> {
        let is_mixed = many.has_histograms() || one.has_histograms() || binary.op.is_trim();
        is_mixed.then(|| Mixed {
            binary,
            complaints: Complaints::new(many.steps()),
            cells: Vec::new(),
            met: Vec::new(),
        })
    }

    /// Combines two rows step by step. `order` is the row of the "many" side that it is about.
    pub fn combine(&mut self, order: usize, left: Side<'_>, right: Side<'_>, row: &mut [f64]) {
        let Mixed { binary, complaints, cells, met } = self;
        cells.clear();
        cells.resize(row.len(), None);
        met.clear();
        met.resize(row.len(), false);
        for (step, (value, cell)) in row.iter_mut().zip(cells).enumerate() {
            *value = ABSENT;
            let left = Operand::at(left, step);
            let right = Operand::at(right, step);
            let (Some(left), Some(right)) = (left, right) else { continue };
            match combine_one(binary.op, left, right) {
                Err(complaint) => complaints.add(step, order, complaint),
                Ok((found, note)) => {
                    if let Some(note) = note {
                        complaints.add(step, order, Complaint::Note(note));
                    }
                    met[step] = true;
                    put(found, Outcome::of(binary), value, cell);
                }
            }
        }
    }

    /// At which steps the last two rows count as a match. Prometheus counts none of values that the
    /// operator does not know together.
    pub fn met(&self) -> &[bool] {
        &self.met
    }

    /// The histograms of the last result.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Hands what went wrong to the query.
    pub fn tell(self, context: &Context<'_>) {
        self.complaints.tell(context, self.binary);
    }
}

/// Writes what an operator found.
fn put(found: Found, outcome: Outcome, value: &mut f64, cell: &mut Cell) {
    if outcome == Outcome::Bool {
        *value = if matches!(found, Found::Nothing) { 0.0 } else { 1.0 };
        return;
    }
    match found {
        Found::Nothing => *value = ABSENT,
        Found::Number(number) => *value = number,
        Found::Histogram(histogram) => (*value, *cell) = (HISTOGRAM, Some(histogram)),
    }
}

/// The value of an operator on two values and what there is to note, or what is wrong with them.
fn combine_one(
    op: BinaryOp,
    left: Operand<'_>,
    right: Operand<'_>,
) -> std::result::Result<(Found, Option<Note>), Complaint> {
    let kinds = Complaint::Kinds(left.kind(), right.kind());
    let scaled = |histogram: &Histogram, scale: &dyn Fn(&mut Histogram)| {
        let mut found = histogram.clone();
        scale(&mut found);
        found.compact();
        Ok((Found::Histogram(Arc::new(found)), None))
    };
    let trimmed = |histogram: &Histogram, trim: &dyn Fn(&mut Histogram)| {
        let mut found = histogram.clone();
        trim(&mut found);
        Ok((Found::Histogram(Arc::new(found)), None))
    };
    match (left, op, right) {
        (Operand::Number(_), op, Operand::Number(_)) if op.is_trim() => Err(kinds),
        (Operand::Number(a), op, Operand::Number(b)) if op.is_comparison() => {
            let holds = scalar_op(op, a, b) == 1.0;
            Ok((if holds { Found::Number(a) } else { Found::Nothing }, None))
        }
        (Operand::Number(a), op, Operand::Number(b)) => {
            Ok((Found::Number(scalar_op(op, a, b)), None))
        }
        (Operand::Number(factor), BinaryOp::Mul, Operand::Histogram(histogram))
        | (Operand::Histogram(histogram), BinaryOp::Mul, Operand::Number(factor)) => {
            scaled(histogram, &|one| one.mul(factor))
        }
        (Operand::Histogram(histogram), BinaryOp::Div, Operand::Number(divisor)) => {
            scaled(histogram, &|one| one.div(divisor))
        }
        (Operand::Histogram(histogram), BinaryOp::TrimUpper, Operand::Number(bound)) => {
            trimmed(histogram, &|one| one.trim(Keep::Below(bound)))
        }
        (Operand::Histogram(histogram), BinaryOp::TrimLower, Operand::Number(bound)) => {
            trimmed(histogram, &|one| one.trim(Keep::Above(bound)))
        }
        (Operand::Histogram(a), BinaryOp::Equal | BinaryOp::NotEqual, Operand::Histogram(b)) => {
            let holds = a.same_data(b) == (op == BinaryOp::Equal);
            Ok((if holds { Found::Histogram(Arc::clone(a)) } else { Found::Nothing }, None))
        }
        (Operand::Histogram(a), BinaryOp::Add, Operand::Histogram(b)) => added(a, b, false),
        (Operand::Histogram(a), BinaryOp::Sub, Operand::Histogram(b)) => added(a, b, true),
        _ => Err(kinds),
    }
}

/// The sum or difference of two histograms.
fn added(
    a: &Histogram,
    b: &Histogram,
    is_difference: bool,
) -> std::result::Result<(Found, Option<Note>), Complaint> {
    let mut found = a.clone();
    let (notes, operation) = match is_difference {
        true => (found.sub(b), Operation::Subtraction),
        false => (found.add(b), Operation::Addition),
    };
    let notes = notes.map_err(|histogram::Incompatible| Complaint::Layout)?;
    if notes.hints_collided {
        return Err(Complaint::Note(Note::Collided(operation)));
    }
    if is_difference {
        found.reset_hint = ResetHint::Gauge;
    }
    found.compact();
    let note = notes.bounds_reconciled.then_some(Note::Reconciled(operation));
    Ok((Found::Histogram(Arc::new(found)), note))
}

/// Combines a vector that has histograms with a number at each step.
pub(crate) fn with_scalar(
    context: &Context<'_>,
    binary: &Binary,
    vector: &Vector,
    scalar: &Scalar,
    is_scalar_left: bool,
) -> Result<Vector> {
    let (op, outcome) = (binary.op, Outcome::of(binary));
    let mut complaints = Complaints::new(vector.steps());
    let mut out = Vector::new(context, vector.steps());
    let mut cells = Vec::new();
    for (idx, (key, row)) in vector.rows().enumerate() {
        context.check()?;
        cells.clear();
        cells.resize(row.len(), None);
        let mut values = vec![ABSENT; row.len()];
        for (step, (value, cell)) in values.iter_mut().zip(&mut cells).enumerate() {
            let Some(operand) = Operand::at((row, vector.cells(idx)), step) else { continue };
            let number = Operand::Number(scalar.at(step));
            let (left, right) = if is_scalar_left { (number, operand) } else { (operand, number) };
            match combine_one(op, left, right) {
                Err(complaint) => complaints.add(step, idx, complaint),
                Ok((Found::Number(_), _)) if op.is_comparison() => {
                    // A filter leaves the vector's value, on whichever side it stands.
                    put(Found::Number(row[step]), outcome, value, cell);
                }
                Ok((found, _)) => put(found, outcome, value, cell),
            }
        }
        out.push_mixed(context, key.clone(), &values, &cells)?;
    }
    complaints.tell(context, binary);
    Ok(out)
}
