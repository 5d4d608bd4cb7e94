//! All that a store answers, and its comparison with the model.

use super::model::{ExemplarKey, Fault, Model, SampleKey, Value};
use crate::rows;
use ::model::{Labels, MatchOp, Matcher, TimeRange};
use std::collections::BTreeMap;
use store::{Error, Missing, SelectLimits, Store};

const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

/// What a store answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Floats and histograms.
    pub samples: BTreeMap<SampleKey, Value>,
    /// Exemplars.
    pub exemplars: BTreeMap<ExemplarKey, ()>,
    /// Descriptions by metric.
    pub metadata: BTreeMap<String, String>,
    /// Series that are listed.
    pub series: Vec<Labels>,
    /// Whether the answers say that something is missing.
    pub is_said: bool,
    /// Whether the start said that it cut something off the log: rot in its last group looks like a
    /// write that was interrupted.
    pub is_cut: bool,
    /// What no answer may be: the same series or instant twice, times out of order.
    pub nonsense: Option<String>,
}

/// What may have expired.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// What is older may be gone, nanoseconds.
    pub oldest: i64,
}

/// The matchers that every series of a history meets.
pub fn everything() -> Vec<Vec<Matcher>> {
    vec![vec![Matcher::new("host", MatchOp::Regex, ".+")]]
}

/// Asks for everything.
pub fn observe(store: &Store) -> Result<Observed, Error> {
    let mut observed = Observed::default();
    observe_samples(store, &everything(), TimeRange::ALL, &mut observed)?;
    let missing = Missing::new();
    let noting = store.noting(&missing);
    for series in noting.exemplars(&everything(), TimeRange::ALL, &LIMITS)? {
        for exemplar in &series.exemplars {
            let trace = exemplar.labels.get("trace_id").unwrap_or("").to_string();
            observed
                .exemplars
                .insert((Labels::clone(&series.labels), exemplar.timestamp, trace), ());
        }
    }
    for entry in store.metadata(None, usize::MAX) {
        observed.metadata.insert(entry.metric, entry.help);
    }
    observed.series = noting.series(&everything(), TimeRange::ALL, &LIMITS)?;
    // Descriptions are asked of nobody who could say so; the list of damage does.
    let is_side_file = |one: &store::Damage| one.place == store::DamagePlace::SideFile;
    observed.is_said |= !missing.is_empty() || store.damage().iter().any(is_side_file);
    observed.is_cut = 0 < store.stats().log_cut_bytes;
    Ok(observed)
}

/// Asks for samples.
pub fn observe_samples(
    store: &Store,
    sets: &[Vec<Matcher>],
    range: TimeRange,
    observed: &mut Observed,
) -> Result<(), Error> {
    let missing = Missing::new();
    let selection = store.noting(&missing).select(sets, range, &LIMITS)?;
    let mut labels_error = None;
    let mut seen = std::collections::BTreeSet::new();
    selection.read_mixed(0..selection.len(), &mut |idx, times, values, others, histograms| {
        let labels = match selection.labels(idx) {
            Ok(labels) => labels,
            Err(error) => {
                labels_error.get_or_insert(error);
                return;
            }
        };
        if !seen.insert(labels.clone()) {
            observed.nonsense = Some(format!("{labels} twice"));
        }
        let is_sorted = times.is_sorted_by(|a, b| a < b) && others.is_sorted_by(|a, b| a < b);
        if !is_sorted {
            observed.nonsense = Some(format!("{labels}: times out of order"));
        }
        let floats = values.iter().map(|value| Value::Float(value.to_bits()));
        let histograms = histograms.iter().map(|one| Value::Histogram(rows::hash_of(one)));
        let all = times.iter().zip(floats).chain(others.iter().zip(histograms));
        for (time, value) in all {
            if observed.samples.insert((labels.clone(), *time), value).is_some() {
                observed.nonsense = Some(format!("{labels} at {time} twice"));
            }
        }
    })?;
    observed.is_said |= !missing.is_empty();
    labels_error.map_or(Ok(()), Err)
}

/// Something that must not be, for people.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What kind.
    pub fault: Fault,
    /// Where and what.
    pub text: String,
}

/// The first thing that is not as the model says.
pub fn compare(observed: &Observed, model: &Model, kept: Kept) -> Option<Violation> {
    let violation = |fault, text: String| Some(Violation { fault, text });
    if let Some(nonsense) = &observed.nonsense {
        return violation(Fault::Wrong, nonsense.clone());
    }
    if let Some((fault, (labels, time), text)) =
        model.samples.judge(&observed.samples, |(_, time)| *time < kept.oldest)
    {
        return violation(fault, format!("sample {labels} at {time}: {text}"));
    }
    if let Some((fault, key, text)) =
        model.exemplars.judge(&observed.exemplars, |(_, time, _)| *time < kept.oldest)
    {
        return violation(fault, format!("exemplar {key:?}: {text}"));
    }
    if let Some((fault, metric, text)) = model.metadata.judge(&observed.metadata, |_| false) {
        return violation(fault, format!("metadata of {metric}: {text}"));
    }
    compare_series(observed, model)
}

fn compare_series(observed: &Observed, model: &Model) -> Option<Violation> {
    let violation = |fault, text: String| Some(Violation { fault, text });
    for labels in &observed.series {
        if !model.series.contains(labels) {
            return violation(Fault::Invented, format!("series {labels} was never sent"));
        }
    }
    let mut listed = observed.series.clone();
    listed.sort_unstable();
    if let Some(twice) = listed.windows(2).find(|pair| pair[0] == pair[1]) {
        return violation(Fault::Wrong, format!("series {} is listed twice", twice[0]));
    }
    let missing = observed.samples.keys().find(|(labels, _)| listed.binary_search(labels).is_err());
    missing.and_then(|(labels, _)| {
        violation(Fault::Wrong, format!("series {labels} has samples and is not listed"))
    })
}

/// Takes what was found after a start for what is there.
pub fn resolve(observed: &Observed, model: &mut Model, kept: Kept) {
    model.samples.resolve(&observed.samples, |(_, time)| *time < kept.oldest);
    model.exemplars.resolve(&observed.exemplars, |(_, time, _)| *time < kept.oldest);
    model.metadata.resolve(&observed.metadata, |_| false);
}
