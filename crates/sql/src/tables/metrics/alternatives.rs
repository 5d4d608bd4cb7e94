//! Conditions on one label as patterns, one of which is all of its value: `=`, `IN`, `LIKE`, `~`, and
//! several of them with `OR` between. DataFusion makes some of them of others: `~ '^a|b'` of a plain
//! pattern is `LIKE 'a%' OR LIKE '%b%'` when it comes here.

use crate::functions::text::like_patterns::DOT_IS_ANY;
use crate::tables::metrics::filters::{Named, text_of};
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// What such a condition says.
#[derive(Debug, PartialEq)]
pub struct Alternatives<'a> {
    /// The label.
    pub label: &'a str,
    /// Its value is one of these.
    pub patterns: Vec<String>,
    /// Whether each matches no more than the condition does.
    pub is_exact: bool,
}

/// What a condition says, if it is such a one.
pub fn alternatives<'a>(columns: &'a Named, expr: &'a Expr) -> Option<Alternatives<'a>> {
    match expr {
        Expr::IsTrue(inner) => alternatives(columns, inner),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut one = alternatives(columns, left)?;
            let other = alternatives(columns, right).filter(|other| other.label == one.label)?;
            one.patterns.extend(other.patterns);
            one.is_exact &= other.is_exact;
            Some(one)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let swapped = || compared(columns, right, op.swap()?, left);
            compared(columns, left, *op, right).or_else(swapped)
        }
        Expr::InList(InList { expr, list, negated: false }) => one_of(columns, expr, list),
        Expr::Like(like) => alike(columns, like),
        _ => None,
    }
}

fn compared<'a>(
    columns: &'a Named,
    left: &'a Expr,
    op: Operator,
    right: &Expr,
) -> Option<Alternatives<'a>> {
    let Expr::Literal(value, _) = right else { return None };
    let (label, text) = (columns.label_of(left)?, text_of(value)?);
    match op {
        // A label that is not there is null, which equals nothing.
        Operator::Eq if !text.is_empty() => {
            Some(Alternatives { label, patterns: vec![escaped(text)], is_exact: true })
        }
        Operator::RegexMatch => {
            let is_exact = text.starts_with(DOT_IS_ANY);
            Some(Alternatives { label, patterns: vec![anywhere(text)?], is_exact })
        }
        _ => None,
    }
}

/// `expr IN (list)`.
pub fn one_of<'a>(columns: &'a Named, expr: &'a Expr, list: &[Expr]) -> Option<Alternatives<'a>> {
    let label = columns.label_of(expr)?;
    let mut patterns = Vec::with_capacity(list.len());
    for one in list {
        match one {
            // Nothing equals what is not known.
            Expr::Literal(value, _) if value.is_null() => {}
            Expr::Literal(value, _) => {
                patterns.push(escaped(text_of(value).filter(|text| !text.is_empty())?));
            }
            _ => return None,
        }
    }
    (!patterns.is_empty()).then_some(Alternatives { label, patterns, is_exact: true })
}

fn alike<'a>(columns: &'a Named, like: &'a Like) -> Option<Alternatives<'a>> {
    if like.negated || like.case_insensitive || like.escape_char.is_some() {
        return None;
    }
    let Expr::Literal(value, _) = &*like.pattern else { return None };
    let label = columns.label_of(&like.expr)?;
    // A backslash in it is an escape.
    let text = text_of(value).filter(|text| !text.contains('\\'))?;
    let mut pattern = String::new();
    for character in text.chars() {
        match character {
            '%' => pattern.push_str("(?s:.*)"),
            '_' => pattern.push_str("(?s:.)"),
            plain => push_escaped(&mut pattern, plain),
        }
    }
    Some(Alternatives { label, patterns: vec![pattern], is_exact: true })
}

/// A pattern that may stand anywhere in a text, for matchers, which want all of it. None for one that
/// the store's matchers may understand in another way: they know fewer letters than DataFusion's by
/// `\w` and the like.
fn anywhere(pattern: &str) -> Option<String> {
    let plain = pattern.strip_prefix(DOT_IS_ANY).unwrap_or(pattern);
    let is_common = !plain.contains('\\') && !plain.contains("(?") && !plain.contains("[:");
    let is_whole = || regex_syntax::parse(plain).is_ok();
    (is_common && is_whole()).then(|| format!("(?s:.*(?:{plain}).*)"))
}

/// Whether a pattern surely does not match an empty text.
pub fn is_never_empty(pattern: &str) -> bool {
    let parsed = regex_syntax::parse(pattern);
    parsed.is_ok_and(|parsed| parsed.properties().minimum_len().is_some_and(|len| 0 < len))
}

/// A pattern that matches that text alone.
pub fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    text.chars().for_each(|character| push_escaped(&mut pattern, character));
    pattern
}

fn push_escaped(pattern: &mut String, character: char) {
    // Others must not be escaped: some mean something with a backslash, as `\<` does.
    if regex_syntax::is_meta_character(character) {
        pattern.push('\\');
    }
    pattern.push(character);
}
