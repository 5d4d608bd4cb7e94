//! Matchers as the index takes them.

use crate::base::select_limits::SelectLimits;
use crate::partition::histograms::names;
use crate::read::path_matcher;
use crate::{Error, Result};
use index::{CompiledMatchers, RegexBudget};
use model::Matcher;

/// Compiles selector sets, for searches that end when `limits` say so; no set at all stands for every
/// series, but for those that hold histograms: nobody can select them.
pub(crate) fn compile(
    sets: &[Vec<Matcher>],
    limits: &SelectLimits,
) -> Result<Vec<CompiledMatchers>> {
    let finish =
        |set: CompiledMatchers| set.and_lacks(names::LABEL).interrupted_by(limits.interrupt());
    if sets.is_empty() {
        return Ok(vec![finish(CompiledMatchers::compile(&[])?)]);
    }
    let mut budget = RegexBudget::default();
    let one = |set: &Vec<Matcher>| {
        let matchers = path_matcher::without_patterns(set)?;
        let compiled =
            CompiledMatchers::compile_within(&matchers, &mut budget, &limits.interrupt());
        compiled.map(finish).map_err(refusal)
    };
    sets.iter().map(one).collect()
}

/// A matcher that does not compile is the caller's mistake, not a fault of the index.
fn refusal(error: index::Error) -> Error {
    match error {
        index::Error::InvalidMatcher { .. } => Error::Invalid(error.to_string()),
        other => other.into(),
    }
}

/// Selector sets that others understand: without path patterns.
pub(crate) fn plain(sets: &[Vec<Matcher>]) -> Result<Vec<Vec<Matcher>>> {
    let one = |set: &Vec<Matcher>| Ok(path_matcher::without_patterns(set)?.into_owned());
    sets.iter().map(one).collect()
}
