//! Matchers: what a selector demands of one label.
//!
//! Prometheus' semantics throughout: a label that a series does not have is the empty string,
//! and regular expressions are anchored at both ends.

/// How a matcher compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Regex,
    /// `!~`
    NotRegex,
}

/// One condition on one label, `name op "value"`; the metric name is the label `__name__`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matcher {
    /// The label's name.
    pub name: String,
    /// How it is compared.
    pub op: MatchOp,
    /// With what: a string, or the text of a regular expression.
    pub value: String,
}

impl Matcher {
    /// A matcher from its three pieces.
    pub fn new(name: impl Into<String>, op: MatchOp, value: impl Into<String>) -> Matcher {
        Matcher { name: name.into(), op, value: value.into() }
    }

    /// `name="value"`.
    pub fn equal(name: impl Into<String>, value: impl Into<String>) -> Matcher {
        Matcher::new(name, MatchOp::Equal, value)
    }
}

impl std::fmt::Display for MatchOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        })
    }
}

impl std::fmt::Display for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{:?}", self.name, self.op, self.value)
    }
}
