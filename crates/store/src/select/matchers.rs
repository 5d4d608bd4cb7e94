//! Matchers as the index takes them.

use crate::histograms::names;
use crate::{Error, Result, path_matcher};
use index::CompiledMatchers;
use model::Matcher;

/// Compiles selector sets; no set at all stands for every series, but for those that hold
/// histograms: nobody can select them.
pub(crate) fn compile(sets: &[Vec<Matcher>]) -> Result<Vec<CompiledMatchers>> {
    if sets.is_empty() {
        return Ok(vec![CompiledMatchers::compile(&[])?.and_lacks(names::LABEL)]);
    }
    let one = |set: &Vec<Matcher>| {
        let compiled = CompiledMatchers::compile(&path_matcher::without_patterns(set)?);
        Ok(compiled.map_err(refusal)?.and_lacks(names::LABEL))
    };
    sets.iter().map(one).collect()
}

/// A matcher that does not compile is the caller's mistake, not a fault of the index.
fn refusal(error: index::Error) -> Error {
    match error {
        index::Error::InvalidMatcher { .. } => Error::Invalid(error.to_string()),
        other => Error::Index(other),
    }
}

/// Selector sets that others understand: without path patterns.
pub(crate) fn plain(sets: &[Vec<Matcher>]) -> Result<Vec<Vec<Matcher>>> {
    let one = |set: &Vec<Matcher>| Ok(path_matcher::without_patterns(set)?.into_owned());
    sets.iter().map(one).collect()
}
