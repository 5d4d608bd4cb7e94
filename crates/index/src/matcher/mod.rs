//! Matchers, compiled once per query: what each demands of a label's value.
//!
//! Prometheus' semantics: a missing label is the empty string, regular expressions are anchored
//! at both ends and their dot matches a newline. Most expressions that people write need no
//! automaton: [`pattern`] finds exact sets, prefixes, suffixes and infixes.

pub mod demand;
pub mod pattern;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::narrow::to_u32;
use model::{Labels, MatchOp, Matcher};
use pattern::{Pattern, RegexBudget};

/// The matchers of one selector; all must hold.
#[derive(Debug)]
pub struct CompiledMatchers {
    /// Those of one label are neighbours, unless they were added later.
    list: Vec<CompiledMatcher>,
    /// Blocks and strings that a search may look at.
    cost_max: u64,
    /// When a search gives up.
    interrupt: Interrupt,
}

/// Matchers of one label, at least one; all must hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelMatchers<'a> {
    pub all: &'a [CompiledMatcher],
}

impl<'a> LabelMatchers<'a> {
    /// The label's name.
    pub(crate) fn name(&self) -> &'a str {
        &self.all[0].name
    }

    /// Whether all matchers hold for a label of this value, empty when the label is missing.
    pub(crate) fn matches(&self, value: &str) -> bool {
        self.all.iter().all(|matcher| matcher.matches(value))
    }

    /// Whether all matchers hold for series without the label.
    pub(crate) fn matches_absent(&self) -> bool {
        self.matches("")
    }
}

/// One matcher.
#[derive(Clone, Debug)]
pub(crate) struct CompiledMatcher {
    /// The label's name.
    pub name: String,
    /// What `=` or `=~` asks for.
    pub pattern: Pattern,
    /// Whether it is asked that the pattern does not match.
    pub is_negated: bool,
}

impl CompiledMatchers {
    /// Compiles matchers; no matcher at all matches everything.
    ///
    /// # Errors
    /// [`Error::InvalidMatcher`] for a regular expression that does not parse or is too large.
    pub fn compile(matchers: &[Matcher]) -> Result<CompiledMatchers> {
        CompiledMatchers::compile_within(
            matchers,
            &mut RegexBudget::default(),
            &Interrupt::default(),
        )
    }

    /// The same, for one of several selectors of a request whose regular expressions share a budget.
    ///
    /// # Errors
    /// As [`CompiledMatchers::compile`]; also when the budget is used up, and
    /// [`Error::Interrupted`].
    pub fn compile_within(
        matchers: &[Matcher],
        budget: &mut RegexBudget,
        interrupt: &Interrupt,
    ) -> Result<CompiledMatchers> {
        let compiled = matchers.iter().map(|matcher| {
            if matches!(matcher.op, MatchOp::Regex | MatchOp::NotRegex) {
                interrupt.check()?;
            }
            compile_one(matcher, budget)
        });
        let mut list = compiled.collect::<Result<Vec<_>>>()?;
        join_labels(&mut list);
        Ok(CompiledMatchers { list, cost_max: u64::MAX, interrupt: Interrupt::default() })
    }

    /// The same matchers for a search that ends when `interrupt` says so.
    pub fn interrupted_by(self, interrupt: Interrupt) -> CompiledMatchers {
        CompiledMatchers { interrupt, ..self }
    }

    /// When a search gives up.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// The same matchers for a search that fails with [`Error::TooCostly`] rather than look at more
    /// than so many blocks and strings of one segment.
    pub fn costing_at_most(self, cost_max: u64) -> CompiledMatchers {
        CompiledMatchers { cost_max, ..self }
    }

    /// Fails when a search would look at more than it may.
    pub(crate) fn check_cost(&self, cost: u64) -> Result<()> {
        if cost <= self.cost_max {
            return Ok(());
        }
        Err(Error::TooCostly { cost, max: self.cost_max })
    }

    /// Whether every matcher names the values it is about, so that none has to be looked for.
    pub(crate) fn are_exact(&self) -> bool {
        self.iter().all(|matcher| matches!(matcher.pattern, Pattern::Exact(_) | Pattern::NonEmpty))
    }

    /// The same, and that the label is there.
    pub fn and_has(mut self, label: &str) -> CompiledMatchers {
        let pattern = Pattern::NonEmpty;
        self.list.push(CompiledMatcher { name: label.to_string(), pattern, is_negated: false });
        self
    }

    /// The same, and that the label is not there.
    pub fn and_lacks(mut self, label: &str) -> CompiledMatchers {
        let pattern = Pattern::NonEmpty;
        self.list.push(CompiledMatcher { name: label.to_string(), pattern, is_negated: true });
        self
    }

    /// The same, and that the label has this value, which is not empty.
    pub fn and_is(mut self, label: &str, value: &str) -> CompiledMatchers {
        let pattern = Pattern::exactly(value);
        self.list.push(CompiledMatcher { name: label.to_string(), pattern, is_negated: false });
        self
    }

    /// What these matchers ask of label `from`, asked of label `to`, which must be there; the
    /// labels of `absent` are taken to be missing, whatever a series has. `None` when nothing
    /// can match then.
    pub fn moved(&self, from: &str, to: &str, absent: &[&str]) -> Option<CompiledMatchers> {
        let mut list = Vec::with_capacity(self.list.len() + 1);
        for matcher in &self.list {
            if absent.contains(&matcher.name.as_str()) {
                if matcher.matches_absent() {
                    continue;
                }
                return None;
            }
            let name = if matcher.name == from { to } else { &matcher.name };
            list.push(CompiledMatcher { name: name.to_string(), ..matcher.clone() });
        }
        let (cost_max, interrupt) = (self.cost_max, self.interrupt.clone());
        Some(CompiledMatchers { list, cost_max, interrupt }.and_has(to))
    }

    /// Whether a label set satisfies every matcher.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.list.iter().all(|matcher| matcher.matches(labels.get(&matcher.name).unwrap_or("")))
    }

    /// The matchers that restrict anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CompiledMatcher> {
        self.list.iter().filter(|matcher| matcher.restricts())
    }

    /// The labels that matchers restrict, each with its matchers.
    pub(crate) fn by_label(&self) -> impl Iterator<Item = LabelMatchers<'_>> {
        let labels = self.list.chunk_by(|a, b| a.name == b.name);
        labels
            .filter(|all| all.iter().any(CompiledMatcher::restricts))
            .map(|all| LabelMatchers { all })
    }
}

/// Lists with more matchers than this are sorted to find labels with several.
const SCANNED_MATCHERS_MAX: usize = 16;

/// Makes the matchers of each label neighbours. The order is kept when no label has several.
fn join_labels(list: &mut [CompiledMatcher]) {
    let has_several = SCANNED_MATCHERS_MAX < list.len()
        || (1..list.len()).any(|idx| list[..idx].iter().any(|one| one.name == list[idx].name));
    if has_several {
        list.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

impl CompiledMatcher {
    /// Whether the matcher holds for a label of this value, empty when the label is missing.
    pub(crate) fn matches(&self, value: &str) -> bool {
        self.pattern.matches(value) != self.is_negated
    }

    /// Whether the matcher holds for series without the label.
    pub(crate) fn matches_absent(&self) -> bool {
        self.matches("")
    }

    /// How many values the matcher names, each of which an index can look up; `None` if it has to
    /// try every value.
    pub(crate) fn lookups(&self) -> Option<u32> {
        match &self.pattern {
            Pattern::Exact(set) => Some(to_u32(set.len())),
            Pattern::Anything | Pattern::NonEmpty => Some(1),
            _ => None,
        }
    }

    /// Whether the matcher runs an automaton.
    pub(crate) fn is_automaton(&self) -> bool {
        matches!(self.pattern, Pattern::Regex { .. })
    }

    /// Whether some value does not match.
    fn restricts(&self) -> bool {
        self.is_negated || !matches!(self.pattern, Pattern::Anything)
    }
}

fn compile_one(matcher: &Matcher, budget: &mut RegexBudget) -> Result<CompiledMatcher> {
    let (pattern, is_negated) = match matcher.op {
        MatchOp::Equal => (Pattern::exactly(&matcher.value), false),
        MatchOp::NotEqual => (Pattern::exactly(&matcher.value), true),
        MatchOp::Regex | MatchOp::NotRegex => {
            let pattern = budget
                .compile(&matcher.value)
                .map_err(|reason| Error::InvalidMatcher { matcher: matcher.to_string(), reason })?;
            (pattern, matcher.op == MatchOp::NotRegex)
        }
    };
    Ok(CompiledMatcher { name: matcher.name.clone(), pattern, is_negated })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(matchers: &[Matcher]) -> CompiledMatchers {
        CompiledMatchers::compile(matchers).unwrap()
    }

    #[test]
    fn what_is_asked_of_a_label_can_be_asked_of_another() {
        let set = [
            Matcher::new("__name__", MatchOp::Regex, "a|b"),
            Matcher::new("__name__", MatchOp::NotEqual, "b"),
            Matcher::equal("job", "x"),
            Matcher::equal("other", ""),
        ];
        let moved = compiled(&set).and_lacks("of").moved("__name__", "of", &["of", "other"]);
        let moved = moved.expect("matchers that hold without these labels");
        let labels = |of: &str| Labels::from_pairs(&[("__name__", "n"), ("job", "x"), ("of", of)]);
        assert!(moved.matches(&labels("a")));
        assert!(!moved.matches(&labels("b")) && !moved.matches(&labels("c")));
        assert!(moved.matches(&Labels::from_pairs(&[("job", "x"), ("of", "a"), ("other", "y")])));
        assert!(!moved.matches(&Labels::from_pairs(&[("of", "a")])));
        let all = compiled(&[]).moved("__name__", "of", &["of"]).expect("no matchers");
        assert!(all.matches(&labels("b")) && !all.matches(&labels("")), "the label must be there");
        let wrong = compiled(&[Matcher::equal("of", "a")]).moved("__name__", "of", &["of"]);
        assert!(wrong.is_none());
    }
}
