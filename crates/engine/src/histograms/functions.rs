//! Functions of each histogram by itself.

use crate::context::Context;
use crate::error::Result;
use crate::gap::{ABSENT, to_number};
use crate::histograms::cells::present;
use crate::names::Key;
use crate::options::NameRemoval;
use crate::vector::Vector;
use histogram::{Histogram, QuantileNote};
use model::Labels;
use promql::Span;
use std::collections::{HashMap, HashSet};

/// `-` before a histogram.
pub(crate) fn negated(histogram: &Histogram) -> Histogram {
    let mut negated = histogram.clone();
    negated.mul(-1.0);
    negated.sum = to_number(negated.sum);
    negated
}

/// Rows of what `value_of` makes of each histogram of a vector.
pub(crate) fn map(
    context: &Context<'_>,
    vector: &Vector,
    value_of: impl Fn(&Histogram) -> f64,
) -> Result<Vector> {
    let mut out = Vector::new(context, vector.steps());
    let mut row = vec![ABSENT; vector.steps()];
    for (idx, (key, values)) in vector.rows().enumerate() {
        context.check()?;
        row.fill(ABSENT);
        for (step, histogram) in present(values, vector.cells(idx)) {
            row[step] = to_number(value_of(histogram));
        }
        out.push(context, key.clone(), &row)?;
    }
    Ok(out)
}

/// The native histograms of a vector that may have classic ones too.
pub(crate) struct Natives<'a> {
    vector: &'a Vector,
    /// The rows that have native histograms, by labels.
    rows: HashMap<&'a Labels, usize>,
    /// Rows and steps at which there is a classic histogram of the same labels.
    clashes: HashSet<(usize, usize)>,
}

impl<'a> Natives<'a> {
    pub fn of(vector: &'a Vector) -> Natives<'a> {
        let mixed = if vector.has_histograms() { vector.len() } else { 0 };
        let mixed = (0..mixed).filter(|idx| !vector.cells(*idx).is_empty());
        let rows = mixed.map(|idx| (&vector.key(idx).labels, idx)).collect();
        Natives { vector, rows, clashes: HashSet::new() }
    }

    /// Whether there is a native histogram where there is a classic one: then neither has a value.
    pub fn clash(&mut self, classic: &Key, step: usize) -> bool {
        let Some(idx) = self.rows.get(&classic.labels) else { return false };
        let clashes = self.vector.histogram(*idx, step).is_some();
        if clashes {
            self.clashes.insert((*idx, step));
        }
        clashes
    }

    /// Adds rows of what `value_of` makes of each histogram and its metric's name, which may be nothing.
    pub fn push_rows(
        &self,
        context: &Context<'_>,
        span: Span,
        mut value_of: impl FnMut(usize, &str, &Histogram) -> Option<f64>,
        out: &mut Vector,
    ) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut row = vec![ABSENT; self.vector.steps()];
        for (idx, (key, values)) in self.vector.rows().enumerate() {
            context.check()?;
            let name = late_name(context, key);
            row.fill(ABSENT);
            for (step, histogram) in present(values, self.vector.cells(idx)) {
                if self.clashes.contains(&(idx, step)) {
                    let message = "vector contains a mix of classic and native histograms";
                    context.annotations.warn(span, named(message.to_string(), name));
                } else if let Some(value) = value_of(step, name, histogram) {
                    row[step] = to_number(value);
                }
            }
            out.push(context, key.clone(), &row)?;
        }
        out.join_same_labels()
    }
}

/// The metric's name as notes have it: names that are dropped at once are gone by then.
pub(crate) fn late_name<'a>(context: &Context<'_>, key: &'a Key) -> &'a str {
    let is_late = context.options.name_removal == NameRemoval::Late;
    if is_late { key.labels.metric_name() } else { "" }
}

/// A quantile of a histogram; what observations that are no numbers do to it is noted.
pub(crate) fn told_quantile(
    context: &Context<'_>,
    span: Span,
    name: &str,
    q: f64,
    histogram: &Histogram,
) -> f64 {
    let found = histogram.quantile(q);
    let result = match found.note {
        None => return found.value,
        Some(QuantileNote::IsNan) => "result is NaN",
        Some(QuantileNote::IsSkewed) => "result is skewed higher",
    };
    let message = format!("input to histogram_quantile has NaN observations, {result}");
    context.annotations.info(span, named(message, name));
    found.value
}

/// The share of a histogram's observations between two bounds.
pub(crate) fn told_fraction(
    context: &Context<'_>,
    span: Span,
    name: &str,
    (lower, upper): (f64, f64),
    histogram: &Histogram,
) -> f64 {
    let found = histogram.fraction(lower, upper);
    if found.has_nans {
        let message = "input to histogram_fraction has NaN observations, which are excluded from \
                       all fractions";
        context.annotations.info(span, named(message.to_string(), name));
    }
    found.value
}

/// A note with the metric's name, where it is known.
pub(crate) fn named(message: String, name: &str) -> String {
    if name.is_empty() {
        message
    } else {
        format!("{message} for metric name {}", promql::quote(name))
    }
}
