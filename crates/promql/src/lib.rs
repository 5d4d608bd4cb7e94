//! Text to tree: the query language. No I/O, no state.
//!
//! ```text
//! text > lexer > parser > check > Expr          Expr > print > text
//! ```
//!
//! The grammar in one page, loosest first; `{x}` is repetition, `[x]` an option:
//!
//! ```text
//! expr      = expr binary [bool] [(on|ignoring) labels [(group_left|group_right) [labels]]]
//!             [fill] expr
//!           | (+|-) expr | primary {postfix}
//! binary    = or < and unless < == != < <= > >= < + - < * / % atan2 < ^ (right-associative)
//! fill      = fill value | fill_left value | fill_right value | both of these; value = "(" number ")"
//! postfix   = "[" length "]" | "[" length ":" [length] "]"
//!           | offset [-]term | @ (number | start() | end()) | anchored | smoothed
//! length    = length (+ - * / % ^) length | (+|-) length | term
//! term      = number | duration | step() | range() | "(" length ")"
//!           | (max_of|min_of) "(" length "," length ")"
//! primary   = number | duration | string | "(" expr ")" | selector
//!           | function "(" [expr {"," expr}] ")"
//!           | aggregate [(by|without) labels] "(" expr ["," expr] ")" [(by|without) labels]
//! selector  = name ["{" matchers "}"] | "{" matchers "}"
//! matchers  = [matcher {"," matcher} [","]]
//! matcher   = label (=|!=|=~|!~) string | string            a lone string is the metric's name
//! labels    = "(" [label {"," label} [","]] ")"             labels may be strings: any UTF-8
//! ```
//!
//! [`metricsql`] is the other language, with a tree of its own.
//!
//! Names, types, precedences and error texts are those of Prometheus 3. Bounds: a text has at
//! most [`TEXT_SIZE_MAX`] bytes, a tree at most [`NESTING_MAX`] levels.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests own their files"))]

mod aggregations;
mod ast;
mod check;
mod durations;
mod error;
mod functions;
#[doc(hidden)]
pub mod fuzzing;
mod lexer;
pub mod metricsql;
mod number;
mod options;
mod parser;
mod patterns;
mod print;
mod quote;
pub mod reference;
mod selectors;
#[cfg(test)]
mod tests;
mod token;
mod value_type;

pub use aggregations::{AGGREGATIONS, Aggregation};
pub use ast::*;
pub use durations::{QueryTimes, settle_durations};
pub use error::{ParseError, Span};
pub use functions::{Arity, FUNCTIONS, Function, FunctionKind, find as find_function};
pub use number::{format_duration_ms, format_number, parse_duration_ms};
pub use options::{EXPERIMENTAL_FLAG, NESTING_MAX, Options, REGEX_SIZE_MAX, TEXT_SIZE_MAX};
pub use patterns::PatternChecker;
pub use quote::quote;
pub use selectors::{matchers_of, metricsql_selectors, selectors};

/// Whose language a text is in. Never guessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Prometheus' language and numbers.
    #[default]
    PromQl,
    /// VictoriaMetrics' language and numbers.
    MetricsQl,
}

/// Parses and checks `text`, experimental functions excluded.
///
/// # Errors
/// What is wrong and where, as Prometheus says it.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    parse_with(text, &Options { experimental_functions: false })
}

/// Parses and checks `text`.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(text: &str, options: &Options) -> Result<Expr, ParseError> {
    let mut patterns = PatternChecker::default();
    let mut expr = parse_tree(text, options, &mut patterns)?;
    check::check(text, &mut expr, &patterns)?;
    Ok(expr)
}

/// As [`parse`], of one of several texts of a request whose regular expressions `patterns` checks.
///
/// # Errors
/// As [`parse`].
pub fn parse_among(text: &str, patterns: &mut PatternChecker) -> Result<Expr, ParseError> {
    let mut expr = parse_tree(text, &Options { experimental_functions: false }, patterns)?;
    check::check(text, &mut expr, patterns)?;
    Ok(expr)
}

/// As [`parse`], but a selector that is the whole text may match every series, such as
/// `{__name__=~".*"}`: it asks which series there are, not for their samples.
///
/// # Errors
/// As [`parse`].
pub fn parse_listing(text: &str) -> Result<Expr, ParseError> {
    parse_listing_among(text, &mut PatternChecker::default())
}

/// As [`parse_listing`], of one of several texts of a request whose regular expressions `patterns`
/// checks.
///
/// # Errors
/// As [`parse`].
pub fn parse_listing_among(text: &str, patterns: &mut PatternChecker) -> Result<Expr, ParseError> {
    let mut expr = parse_tree(text, &Options { experimental_functions: false }, patterns)?;
    match &expr {
        Expr::Vector(selector) => check::check_selector(text, selector, patterns)?,
        _ => check::check(text, &mut expr, patterns)?,
    }
    Ok(expr)
}

fn parse_tree(
    text: &str,
    options: &Options,
    patterns: &mut PatternChecker,
) -> Result<Expr, ParseError> {
    if TEXT_SIZE_MAX < text.len() {
        let message = format!("expression of {} bytes, the limit is {TEXT_SIZE_MAX}", text.len());
        return Err(ParseError::new(text, Span::default(), message));
    }
    parser::parse(text, options, patterns)
}
