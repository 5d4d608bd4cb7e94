//! The matcher `__graphite__="web.*.cpu"`: a path pattern instead of a metric's name.
//!
//! It stands where matchers come in, so that whatever selects series knows it; behind this file
//! there is only the regular expression of the names that it means.

use crate::{Error, Result};
use model::{METRIC_NAME, MatchOp, Matcher, PathPattern};
use std::borrow::Cow;

/// The label that is none: its value is a pattern.
const PATH_LABEL: &str = "__graphite__";

/// The same matchers, path patterns replaced.
///
/// # Errors
/// [`Error::Invalid`] for a pattern that is none, or for `=~` and `!~`.
pub fn without_patterns(matchers: &[Matcher]) -> Result<Cow<'_, [Matcher]>> {
    if matchers.iter().all(|matcher| matcher.name != PATH_LABEL) {
        return Ok(Cow::Borrowed(matchers));
    }
    matchers.iter().map(replace).collect::<Result<Vec<_>>>().map(Cow::Owned)
}

fn replace(matcher: &Matcher) -> Result<Matcher> {
    if matcher.name != PATH_LABEL {
        return Ok(matcher.clone());
    }
    let op = match matcher.op {
        MatchOp::Equal => MatchOp::Regex,
        MatchOp::NotEqual => MatchOp::NotRegex,
        MatchOp::Regex | MatchOp::NotRegex => {
            return Err(Error::Invalid(format!(
                "{matcher}: a path pattern is no regular expression; write {PATH_LABEL}=\"a.*.b\""
            )));
        }
    };
    let pattern = PathPattern::parse(&matcher.value, ".")
        .map_err(|error| Error::Invalid(format!("{matcher}: {error}")))?;
    Ok(Matcher::new(METRIC_NAME, op, pattern.names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_expressions_on_the_name() {
        let other = Matcher::equal("job", "a.*");
        let plain = [other.clone()];
        assert!(matches!(without_patterns(&plain), Ok(Cow::Borrowed(_))));
        let set = [other.clone(), Matcher::equal(PATH_LABEL, "a.*.b")];
        let found = without_patterns(&set);
        let expected = Matcher::new(METRIC_NAME, MatchOp::Regex, r"a\.[^\.]*\.b");
        assert_eq!(*found.expect("a pattern"), [other, expected]);
        let negated = [Matcher::new(PATH_LABEL, MatchOp::NotEqual, "a")];
        let found = without_patterns(&negated).expect("a pattern");
        assert_eq!(found[0], Matcher::new(METRIC_NAME, MatchOp::NotRegex, "a"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for matcher in [
            Matcher::new(PATH_LABEL, MatchOp::Regex, "a.*"),
            Matcher::new(PATH_LABEL, MatchOp::Equal, "[z-a]"),
        ] {
            let refused = without_patterns(std::slice::from_ref(&matcher));
            assert!(matches!(refused, Err(Error::Invalid(_))), "{matcher}");
        }
    }
}
