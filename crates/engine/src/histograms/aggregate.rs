//! Groups with histograms: sums and means of them, and operators that leave them out.
//!
//! Numbers are added up as ever. Of a group that meets a histogram it is kept, step by step, what
//! came so far: numbers and histograms of one group at one step have no sum.

use crate::context::Context;
use crate::error::Result;
use crate::gap::{ABSENT, is_absent};
use crate::histograms::cells::{Cell, HISTOGRAM, bytes_of, cell_at, samples_of};
use crate::histograms::notes::{Note, Notes, Operation, tell};
use crate::histograms::sum::Accumulator;
use crate::names::NameState;
use crate::reservation::Reservation;
use crate::row::Row;
use histogram::{Histogram, Incompatible};
use promql::{Aggregate, AggregateOp, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// The groups of one aggregation that have met a histogram.
pub(crate) struct MixedGroups<'a> {
    context: &'a Context<'a>,
    op: AggregateOp,
    /// What notes are about.
    span: Span,
    steps: usize,
    groups: HashMap<usize, Vec<StepContents>>,
    /// A row's numbers alone.
    numbers: Vec<f64>,
    reserved: Reservation,
}

/// What a group has met at one step.
#[derive(Default)]
struct StepContents {
    has_number: bool,
    has_histogram: bool,
    /// Histograms that cannot be added came; whatever came after does not count.
    is_incompatible: bool,
    /// The histograms, unless a number was there before them.
    sum: Option<Accumulator>,
}

impl<'a> MixedGroups<'a> {
    pub fn new(context: &'a Context<'a>, aggregate: &Aggregate, steps: usize) -> MixedGroups<'a> {
        MixedGroups {
            context,
            op: aggregate.op,
            span: aggregate.expr.without_parens().span(),
            steps,
            groups: HashMap::new(),
            numbers: Vec::new(),
            reserved: Reservation::new(&context.usage),
        }
    }

    /// Whether a row needs a look, as it has histograms or its group may have.
    #[inline(always)]
    pub fn concern(&self, row: &Row<'_>) -> bool {
        !row.cells.is_empty() || !self.groups.is_empty()
    }

    /// Takes the histograms of a row and gives the numbers that are left. `known` writes which steps
    /// its group has numbers at so far.
    pub fn take(
        &mut self,
        group: usize,
        row: &Row<'_>,
        known: impl FnOnce(&mut [f64]),
    ) -> Result<&[f64]> {
        self.numbers.clear();
        self.numbers.extend_from_slice(row.values);
        match self.op {
            AggregateOp::Sum | AggregateOp::Avg => self.add(group, row, known)?,
            AggregateOp::Count | AggregateOp::Group => {}
            _ => self.leave_out(row),
        }
        Ok(&self.numbers)
    }

    fn leave_out(&mut self, row: &Row<'_>) {
        let mut is_ignored = false;
        for (value, cell) in self.numbers.iter_mut().zip(row.cells) {
            if cell.is_some() && !is_absent(*value) {
                *value = ABSENT;
                is_ignored = true;
            }
        }
        if is_ignored {
            note_ignored(self.context, self.op, self.span);
        }
    }

    fn add(&mut self, group: usize, row: &Row<'_>, known: impl FnOnce(&mut [f64])) -> Result<()> {
        let MixedGroups { context, op, span, steps, groups, numbers, reserved } = self;
        if row.cells.is_empty() && !groups.contains_key(&group) {
            return Ok(());
        }
        let states = groups.entry(group).or_insert_with(|| {
            let mut before = vec![ABSENT; *steps];
            known(&mut before);
            let state = |value: &f64| StepContents {
                has_number: !is_absent(*value),
                ..StepContents::default()
            };
            before.iter().map(state).collect()
        });
        let name = if row.name == NameState::Dropped { "" } else { row.labels.metric_name() };
        for (step, (value, state)) in numbers.iter_mut().zip(states).enumerate() {
            if is_absent(*value) {
                continue;
            }
            let cell = cell_at(row.cells, step);
            if cell.is_some() || state.is_incompatible {
                *value = ABSENT;
            }
            let Some(histogram) = cell else {
                state.has_number |= !state.is_incompatible;
                continue;
            };
            if state.sum.is_none() && !state.has_number {
                reserved.grow(samples_of(histogram), 2 * bytes_of(histogram) as u64);
            }
            if state.add(*op, histogram).is_err() {
                tell(context, name, *span, Note::Incompatible);
            }
        }
        context.check_memory()
    }

    /// Writes the group's histograms into its row of numbers.
    pub fn finish(&mut self, group: usize, row: &mut [f64], cells: &mut Vec<Cell>) {
        cells.clear();
        let Some(states) = self.groups.remove(&group) else { return };
        cells.resize(row.len(), None);
        let mut notes = Notes::default();
        for (state, (value, cell)) in states.into_iter().zip(row.iter_mut().zip(cells)) {
            if let Some(found) = state.finish(value, &mut notes) {
                (*value, *cell) = (HISTOGRAM, Some(Arc::new(found)));
            }
        }
        notes.tell(self.context, "", self.span);
    }
}

impl StepContents {
    fn add(
        &mut self,
        op: AggregateOp,
        histogram: &Histogram,
    ) -> std::result::Result<(), Incompatible> {
        if self.is_incompatible {
            return Ok(());
        }
        self.has_histogram = true;
        match &mut self.sum {
            Some(sum) => {
                let added = sum.add(histogram);
                self.is_incompatible = added.is_err();
                added
            }
            None if self.has_number => Ok(()),
            None => {
                self.sum = Some(match op {
                    AggregateOp::Avg => Accumulator::mean(histogram),
                    _ => Accumulator::total(histogram),
                });
                Ok(())
            }
        }
    }

    /// The histogram at the step, if that is its value; numbers that have none become a gap.
    fn finish(self, value: &mut f64, notes: &mut Notes) -> Option<Histogram> {
        let found = self.sum.map(Accumulator::finish);
        if let Some((_, noted)) = &found {
            notes.add_reconciled(*noted, Operation::Aggregation);
        }
        if self.has_number && self.has_histogram {
            notes.add(Note::MixedGroup);
            *value = ABSENT;
            return None;
        }
        let (mut found, noted) = found.filter(|_| !self.is_incompatible)?;
        notes.add_found(noted, Operation::Aggregation);
        found.compact();
        Some(found)
    }
}

/// Notes that an operator left histograms out.
pub(crate) fn note_ignored(context: &Context<'_>, op: AggregateOp, span: Span) {
    let message = format!("ignored histogram in {} aggregation", op.as_str());
    context.annotations.info(span, message);
}
