//! Differences of histograms: `rate`, `increase`, `delta`, `irate`, `idelta`.

use crate::histograms::notes::{Note, Notes, Operation};
use histogram::{Histogram, ResetHint};

/// What is known of a histogram besides its buckets: whether it began after the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Its buckets and hints tell.
    Unknown,
    /// Its start timestamp says that it did.
    Told,
}

impl Beginning {
    /// Whether a histogram came after a reset.
    fn is_reset(self, after: &Histogram, before: &Histogram) -> bool {
        self == Beginning::Told || after.is_reset_after(before)
    }
}

/// The difference of the last and the first of some histograms, and what there is to note. Before
/// each reset, a counter had reached what it fell from; of a histogram by its place, `begins` tells
/// what start timestamps say.
pub(crate) fn difference(
    points: &[Histogram],
    is_counter: bool,
    begins: impl Fn(usize) -> Beginning,
) -> (Option<Histogram>, Notes) {
    let mut notes = Notes::default();
    let [first, second, ..] = points else { return (None, notes) };
    let (between, last) = (&points[1..points.len() - 1], &points[points.len() - 1]);
    let empty;
    let mut before = first;
    if is_counter {
        if points.iter().any(Histogram::is_gauge) {
            notes.add(Note::NotCounter);
        }
        // What the first counted is gone, and so is the way in which it counted.
        if begins(1).is_reset(second, first) {
            empty = empty_like(second);
            before = &empty;
        }
    }
    let is_custom = before.has_custom_bounds();
    if last.has_custom_bounds() != is_custom {
        notes.add(Note::Incompatible);
        return (None, notes);
    }
    let mut schema = last.schema.min(before.schema);
    if is_counter {
        // Of a gauge, what lies between does not matter.
        if between.iter().any(|one| one.has_custom_bounds() != is_custom) {
            return (None, Notes::only(Note::Incompatible));
        }
        schema = between.iter().map(|one| one.schema).fold(schema, i8::min);
    } else if !first.is_gauge() || !last.is_gauge() {
        notes.add(Note::NotGauge);
    }
    let mut found = last.reduced_to(schema);
    let after = if is_counter { &points[1..] } else { &[] };
    let after = after.iter().enumerate().map(|(idx, point)| (begins(idx + 1), point));
    if subtract(&mut found, before, &mut notes).is_none()
        || add_before_resets(&mut found, before, after, &mut notes).is_none()
    {
        return (None, Notes::only(Note::Incompatible));
    }
    found.reset_hint = ResetHint::Gauge;
    found.compact();
    (Some(found), notes)
}

/// Adds what each histogram of a counter had reached that came before a reset.
fn add_before_resets<'a>(
    found: &mut Histogram,
    mut before: &'a Histogram,
    points: impl Iterator<Item = (Beginning, &'a Histogram)>,
    notes: &mut Notes,
) -> Option<()> {
    for (beginning, point) in points {
        if beginning.is_reset(point, before) {
            add(found, before, notes)?;
        }
        before = point;
    }
    Some(())
}

/// A histogram without observations that can be combined with another.
fn empty_like(other: &Histogram) -> Histogram {
    Histogram {
        schema: other.schema,
        custom_bounds: other.custom_bounds.clone(),
        ..Histogram::default()
    }
}

/// The difference of two neighbours, for a rate or as it is.
pub(crate) fn instant_difference(
    [first, last]: [&Histogram; 2],
    is_rate: bool,
    beginning: Beginning,
    notes: &mut Notes,
) -> Option<Histogram> {
    if is_rate && (first.is_gauge() || last.is_gauge()) {
        notes.add(Note::NotCounter);
    }
    let are_gauges = first.is_gauge() && last.is_gauge();
    if !is_rate && !are_gauges {
        notes.add(Note::NotGauge);
    }
    let mut found = last.clone();
    if !is_rate || !beginning.is_reset(last, first) {
        subtract(&mut found, first, notes)?;
    }
    found.reset_hint = ResetHint::Gauge;
    found.compact();
    Some(found)
}

/// Adds, or notes why that cannot be.
pub(crate) fn add(to: &mut Histogram, other: &Histogram, notes: &mut Notes) -> Option<()> {
    noted(to.add(other), Operation::Addition, notes)
}

/// Subtracts, or notes why that cannot be.
pub(crate) fn subtract(from: &mut Histogram, other: &Histogram, notes: &mut Notes) -> Option<()> {
    noted(from.sub(other), Operation::Subtraction, notes)
}

fn noted(
    result: Result<histogram::Notes, histogram::Incompatible>,
    operation: Operation,
    notes: &mut Notes,
) -> Option<()> {
    match result {
        Ok(found) => notes.add_reconciled(found, operation),
        Err(histogram::Incompatible) => {
            notes.add(Note::Incompatible);
            return None;
        }
    }
    Some(())
}
