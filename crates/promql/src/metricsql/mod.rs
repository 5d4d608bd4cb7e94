//! MetricsQL: VictoriaMetrics' language.
//!
//! ```text
//! text > lexer > parser > raw tree > WITH expanded, constants folded > Expr > print > text
//! ```
//!
//! The grammar in one page, loosest first; `{x}` is repetition, `[x]` an option:
//!
//! ```text
//! expr      = operand {binary [bool] [matching] {fill} operand [keep_metric_names]}
//! binary    = default < if ifnot < or < and unless < == != < <= > >= < + - < * / % atan2
//!           < ^ (right-associative)
//! matching  = (on|ignoring) labels [(group_left|group_right) ["(*)" | labels] [prefix string]]
//! fill      = (fill|fill_left|fill_right) "(" number ")"
//! operand   = {+|-} primary ["[" [length] [":" [length]] "]"] {offset [-]length | @ primary}
//! primary   = number | duration | string | "(" [expr {"," expr}] ")" [keep_metric_names]
//!           | selector | with
//!           | function "(" [expr {"," expr}] ")" [keep_metric_names]
//!           | aggregate [grouping] "(" [expr {"," expr}] ")" [grouping] [limit number]
//! grouping  = (by|without) labels
//! selector  = name ["{" sets "}"] | "{" sets "}"
//! sets      = [filter {"," filter} {or filter {"," filter}}]
//! filter    = label (=|!=|=~|!~) string {+ string} | "metric" | template
//! with      = WITH "(" {name [labels] = expr ","} ")" expr
//! length    = duration | number of seconds | template
//! labels    = "(" [label {"," label}] ")"                   labels may be strings: any UTF-8
//! ```
//!
//! Lists may end with a comma. Names, priorities and results are those of VictoriaMetrics; where
//! its parser refuses what has one obvious meaning, this one does not. Bounds: a text has at most
//! [`TEXT_SIZE_MAX`] bytes, a tree at most [`NESTING_MAX`](crate::NESTING_MAX) levels.

mod ast;
mod clauses;
mod filters;
mod fold;
mod functions;
mod lexer;
mod number;
mod parser;
mod pretty;
mod print;
mod raw;
mod templates;
#[cfg(test)]
mod tests;
mod with;

pub use ast::*;
pub use fold::numbers as binary_of_numbers;
pub use functions::{FUNCTIONS, Function, FunctionKind, find as find_function};
pub use templates::{TEMPLATES, Template};

use crate::TEXT_SIZE_MAX;
use crate::error::{ParseError, Span};

/// Parses `text`, its templates expanded and operations on constants done.
///
/// # Errors
/// What is wrong and where.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    with::expand(text, &parse_written(text)?)
}

/// As [`parse`], of a text that defines no templates.
///
/// # Errors
/// Also where it does.
pub fn parse_without_templates(text: &str) -> Result<Expr, ParseError> {
    check_size(text)?;
    with::expand(text, &parser::parse_without_templates(text)?)
}

/// The expression in lines that are not too long, its templates and literals as they were written.
///
/// # Errors
/// What is wrong with the grammar, and where.
pub fn prettify(text: &str) -> Result<String, ParseError> {
    Ok(pretty::print(text, &parse_written(text)?))
}

fn parse_written(text: &str) -> Result<raw::Raw, ParseError> {
    check_size(text)?;
    parser::parse(text)
}

fn check_size(text: &str) -> Result<(), ParseError> {
    if TEXT_SIZE_MAX < text.len() {
        let message = format!("expression of {} bytes, the limit is {TEXT_SIZE_MAX}", text.len());
        return Err(ParseError::new(text, Span::default(), message));
    }
    Ok(())
}

/// The canonical form of `text` without templates.
///
/// # Errors
/// As [`parse`].
pub fn expand_with(text: &str) -> Result<String, ParseError> {
    Ok(parse(text)?.to_string())
}
