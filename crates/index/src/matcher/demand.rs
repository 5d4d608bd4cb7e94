//! What a matcher demands of its label, in words that another database understands, too: values, or
//! what they begin with. It is a promise about what matches, not the matcher itself.

use super::compile_one;
use super::pattern::{Pattern, RegexBudget};
use model::Matcher;

/// What every value that matches is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// One of these, none of them empty.
    Values(Vec<String>),
    /// It begins with one of these, none of them empty.
    Prefixes(Vec<String>),
}

/// What a matcher demands; nothing of one that holds for a missing label, and of one that promises
/// nothing so simple.
pub fn demand_of(matcher: &Matcher) -> Option<Demand> {
    let compiled =
        compile_one(matcher, &mut RegexBudget::default()).ok().filter(|one| !one.is_negated)?;
    if compiled.matches_absent() {
        return None;
    }
    let demand = match compiled.pattern {
        Pattern::Exact(values) => Demand::Values(values),
        Pattern::Prefix(prefix, _) if !prefix.is_empty() => Demand::Prefixes(vec![prefix]),
        Pattern::Regex { prefixes, .. } if !prefixes.is_empty() => Demand::Prefixes(prefixes),
        _ => return None,
    };
    Some(demand)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::MatchOp;

    #[track_caller]
    fn check(op: MatchOp, value: &str, expected: Option<Demand>) {
        assert_eq!(demand_of(&Matcher::new("a", op, value)), expected, "{value}");
    }

    #[test]
    fn what_matches_has_what_is_demanded() {
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_string()).collect::<Vec<_>>();
        let values = |all: &[&str]| Some(Demand::Values(texts(all)));
        let prefixes = |all: &[&str]| Some(Demand::Prefixes(texts(all)));
        check(MatchOp::Equal, "x.y", values(&["x.y"]));
        check(MatchOp::Regex, "x|y1", values(&["x", "y1"]));
        check(MatchOp::Regex, "x.*", prefixes(&["x"]));
        check(MatchOp::Regex, "(a|b).*x", prefixes(&["a", "b"]));
        for free in ["", ".*", ".+", "a|", ".*x", "a?b*"] {
            check(MatchOp::Regex, free, None);
        }
        check(MatchOp::Equal, "", None);
        check(MatchOp::NotEqual, "x", None);
        check(MatchOp::NotRegex, "x", None);
        check(MatchOp::Regex, "(", None);
    }
}
