//! The cases: their matchers, and how many series each must find.

use super::series::{self, PAIRS};
use anyhow::Result;
use index::{BlockMatch, CompiledMatchers, Index};
use model::MatchOp::{Equal, NotEqual, NotRegex, Regex};
use model::{MatchOp, Matcher};
use std::hint::black_box;

/// Label, operator, value.
type Term = (&'static str, MatchOp, &'static str);

/// One selector.
pub struct Case {
    /// What it is called in reports.
    pub name: &'static str,
    /// Its matchers, in the order in which they are written.
    pub terms: &'static [Term],
}

const N: Term = ("n", Equal, "1");
const J: Term = ("j", Equal, "foo");
const I_ANY: Term = ("i", Regex, ".*");
const I_SOME: Term = ("i", Regex, ".+");
const I_NOT_2: Term = ("i", NotEqual, "2");

/// The 16 cases of record.
pub const ALL: &[Case] = &[
    Case { name: "n", terms: &[N] },
    Case { name: "n, j", terms: &[N, J] },
    Case { name: "j, n", terms: &[J, N] },
    Case { name: "n, not j", terms: &[N, ("j", NotEqual, "foo")] },
    Case { name: "any i", terms: &[I_ANY] },
    Case { name: "some i", terms: &[I_SOME] },
    Case { name: "no i", terms: &[("i", Regex, "")] },
    Case { name: "i not empty", terms: &[("i", NotEqual, "")] },
    Case { name: "n, any i, j", terms: &[N, I_ANY, J] },
    Case { name: "n, any i, not 2, j", terms: &[N, I_ANY, I_NOT_2, J] },
    Case { name: "n, i not empty", terms: &[N, ("i", NotEqual, "")] },
    Case { name: "n, i not empty, j", terms: &[N, ("i", NotEqual, ""), J] },
    Case { name: "n, some i, j", terms: &[N, I_SOME, J] },
    Case { name: "n, i from 1, j", terms: &[N, ("i", Regex, "1.+"), J] },
    Case { name: "n, some i, not 2, j", terms: &[N, I_SOME, I_NOT_2, J] },
    Case { name: "n, some i, not from 2, j", terms: &[N, I_SOME, ("i", NotRegex, "2.*"), J] },
];

impl Case {
    /// The matchers for the index.
    pub fn matchers(&self) -> Vec<Matcher> {
        self.terms.iter().map(|(name, op, value)| Matcher::new(*name, *op, *value)).collect()
    }

    /// The selector's text without braces.
    pub fn expression(&self) -> String {
        let texts: Vec<String> = self.matchers().iter().map(ToString::to_string).collect();
        texts.join(",")
    }

    /// How many series it must find, counted without any index: a label's value is compared with
    /// each matcher in the plainest way.
    pub fn expected(&self, i_values: u64) -> u64 {
        let matching_i = (0..i_values).filter(|i| self.accepts("i", &i.to_string())).count();
        let accepts_pair = |(prefix, j): &(&str, &str), n: u64| {
            self.accepts("n", &format!("{prefix}{n}")) && self.accepts("j", j)
        };
        let count = |n| PAIRS.iter().filter(|pair| accepts_pair(pair, n)).count();
        let pairs: usize = (0..series::N_VALUES).map(count).sum();
        (matching_i * pairs) as u64
    }

    fn accepts(&self, label: &str, text: &str) -> bool {
        self.terms.iter().filter(|(name, _, _)| *name == label).all(|(_, op, value)| match op {
            Equal => text == *value,
            NotEqual => text != *value,
            Regex => accepts_pattern(value, text),
            NotRegex => !accepts_pattern(value, text),
        })
    }
}

/// The patterns of the cases are a literal with perhaps `.*` or `.+` behind it.
fn accepts_pattern(pattern: &str, text: &str) -> bool {
    if let Some(start) = pattern.strip_suffix(".*") {
        return text.starts_with(start);
    }
    match pattern.strip_suffix(".+") {
        Some(start) => text.starts_with(start) && start.len() < text.len(),
        None => text == pattern,
    }
}

/// Compiles and searches; how many series there are.
///
/// # Errors
/// When the index is corrupt.
pub fn search(index: &Index, matchers: &[Matcher]) -> Result<u64> {
    let found = index.search(&CompiledMatchers::compile(matchers)?)?;
    let count = found.iter().map(BlockMatch::series_count).sum();
    black_box(found);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_million_series_give_the_numbers_of_record() {
        let numbers: Vec<u64> = ALL.iter().map(|case| case.expected(100_000)).collect();
        let record = [
            200_000, 100_000, 100_000, 100_000, 5_000_000, 5_000_000, 0, 5_000_000, 100_000,
            99_999, 200_000, 100_000, 100_000, 11_110, 99_999, 88_889,
        ];
        assert_eq!(numbers, record);
    }
}
