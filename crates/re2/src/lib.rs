//! Regular expressions as Prometheus, VictoriaMetrics and InfluxDB read them: the dialect of Go's
//! `regexp` package (RE2), matched by the `regex` crate.
//!
//! [`Expression::parse`] reads the text by Go's rules, with Go's errors, and writes it for the
//! `regex` crate. Where the two differ:
//!
//! | text | Go | `regex` crate |
//! |---|---|---|
//! | `\d`, `\w`, `\s`, `\b` | ASCII | Unicode |
//! | `\Q...\E`, `\123` | quoted text, octal number | error |
//! | `{,2}`, `{x}`, `[[]` | these characters | error |
//! | `[a&&b]`, `[a--b]`, `[a~~b]` | these characters | set operations |
//! | `a**`, `a{1001}`, `(?x)` | error | accepted |
//! | `\<`, `\b{start}`, `\p{Alphabetic}` | text, text, error | assertions, class |
//!
//! Expressions nested more than [`NESTING_MAX`] deep are refused; Go allows 1000.
//!
//! Source: <https://pkg.go.dev/regexp/syntax>.

mod class;
mod error;
mod expand;
mod node;
mod parser;

pub use error::{Error, ErrorCode};
pub use expand::expanded_size_max;
pub use regex::{Captures, Regex};

use regex::RegexBuilder;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

/// Groups that may be nested.
pub const NESTING_MAX: usize = 200;
/// Depth of the text that [`Expression`] writes: each group has at most a capture, an alternation, a
/// concatenation and a repetition.
const RUST_NESTING_MAX: u32 = 5 * NESTING_MAX as u32;

/// Bytes that a compiled expression may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The automaton.
    pub size_max: usize,
    /// States that matches keep, for each thread that matches.
    pub cache_size_max: usize,
}

impl Limits {
    /// Limits of an automaton, with the cache that the `regex` crate takes by itself.
    pub const fn new(size_max: usize) -> Limits {
        Limits { size_max, cache_size_max: 2 << 20 }
    }
}

/// An expression that was read and is not compiled yet.
#[derive(Clone, Debug)]
pub struct Expression {
    source: String,
    rust: String,
    group_names: Vec<(usize, String)>,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Regexp {
    regex: Regex,
    /// Numbers and names of the named groups.
    group_names: Vec<(usize, String)>,
}

impl Expression {
    /// Reads an expression; `dot_matches_newline` as in Go's flag `s`.
    ///
    /// # Errors
    /// The error of Go's parser.
    pub fn parse(text: &str, dot_matches_newline: bool) -> Result<Expression, Error> {
        let (node, group_names) = parser::parse(text, dot_matches_newline)?;
        let mut rust = String::with_capacity(text.len() + 16);
        node.write(&mut rust);
        Ok(Expression { source: text.to_string(), rust, group_names })
    }

    /// The expression for an analysis of what it matches.
    pub fn hir(&self) -> Hir {
        let mut parser = ParserBuilder::new().nest_limit(RUST_NESTING_MAX).build();
        parser.parse(&self.rust).expect("the parser writes valid expressions")
    }

    /// Compiles an expression that matches anywhere in a text.
    ///
    /// # Errors
    /// [`ErrorCode::Large`] when it takes more than `limits`.
    pub fn compile(&self, limits: Limits) -> Result<Regexp, Error> {
        self.build(&self.rust, limits)
    }

    /// Compiles an expression that matches from the start of a text.
    ///
    /// # Errors
    /// As [`Expression::compile`].
    pub fn compile_prefix(&self, limits: Limits) -> Result<Regexp, Error> {
        self.build(&format!("\\A(?:{})", self.rust), limits)
    }

    /// Compiles an expression that matches whole texts only.
    ///
    /// # Errors
    /// As [`Expression::compile`].
    pub fn compile_anchored(&self, limits: Limits) -> Result<Regexp, Error> {
        self.build(&format!("\\A(?:{})\\z", self.rust), limits)
    }

    fn build(&self, rust: &str, limits: Limits) -> Result<Regexp, Error> {
        let mut builder = RegexBuilder::new(rust);
        builder.size_limit(limits.size_max).dfa_size_limit(limits.cache_size_max);
        builder.nest_limit(RUST_NESTING_MAX);
        let regex = builder.build().map_err(|error| {
            let is_large = matches!(error, regex::Error::CompiledTooBig(_));
            debug_assert!(is_large, "{:?} became {rust:?}: {error}", self.source);
            Error::new(ErrorCode::Large, &self.source)
        })?;
        Ok(Regexp { regex, group_names: self.group_names.clone() })
    }
}

impl Regexp {
    /// The compiled expression of the `regex` crate. Its groups have no names.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// The same, owned.
    pub fn into_regex(self) -> Regex {
        self.regex
    }

    /// Tells whether the expression matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

#[cfg(test)]
mod tests;
