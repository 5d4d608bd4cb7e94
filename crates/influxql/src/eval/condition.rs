//! Conditions: what of them an index answers, and the rest for each row.

use super::functions::math;
use crate::ast::{DataType, Expr};
use crate::source::Fields;
use crate::token::Op;
use crate::value::{Value, binary};
use model::{MatchOp, Matcher};

/// A condition as one measurement sees it.
#[derive(Debug, Default)]
pub struct Split {
    /// What an index answers; all must hold.
    pub matchers: Vec<Matcher>,
    /// What must hold of each row besides.
    pub rest: Option<Expr>,
    /// Whether nothing can hold.
    pub is_never: bool,
}

/// What of a condition is about tags alone.
pub fn split(condition: Option<&Expr>, fields: &Fields) -> Split {
    let mut out = Split::default();
    if let Some(condition) = condition {
        conjuncts(condition, fields, &mut out);
    }
    out
}

fn conjuncts(expr: &Expr, fields: &Fields, out: &mut Split) {
    match expr {
        Expr::Paren(inner) => conjuncts(inner, fields, out),
        Expr::Binary { op: Op::And, left, right } => {
            conjuncts(left, fields, out);
            conjuncts(right, fields, out);
        }
        Expr::Boolean(true) => {}
        Expr::Boolean(false) => out.is_never = true,
        other => match matcher(other, fields) {
            Some(matcher) => out.matchers.push(matcher),
            None => {
                let other = other.clone();
                out.rest = Some(match out.rest.take() {
                    None => other,
                    Some(rest) => {
                        Expr::Binary { op: Op::And, left: Box::new(rest), right: Box::new(other) }
                    }
                });
            }
        },
    }
}

/// Sets of matchers that a condition on tags may be taken apart to.
const ALTERNATIVES_MAX: usize = 256;

/// The series that a condition on tags is about: all matchers of any of these sets hold of them.
///
/// # Errors
/// The part that is about no tag, or the whole where it says too much.
pub fn alternatives(condition: Option<&Expr>) -> Result<Vec<Vec<Matcher>>, &Expr> {
    let Some(expr) = condition else { return Ok(vec![Vec::new()]) };
    let found = match expr {
        Expr::Paren(inner) => alternatives(Some(inner))?,
        Expr::Boolean(true) => vec![Vec::new()],
        Expr::Boolean(false) => Vec::new(),
        expr => match (matcher(expr, &Fields::new()), expr) {
            (Some(matcher), _) => vec![vec![matcher]],
            (None, Expr::Binary { op: Op::Or, left, right }) => {
                let mut all = alternatives(Some(left))?;
                all.extend(alternatives(Some(right))?);
                all
            }
            (None, Expr::Binary { op: Op::And, left, right }) => {
                let (left, right) = (alternatives(Some(left))?, alternatives(Some(right))?);
                if ALTERNATIVES_MAX < left.len().saturating_mul(right.len()) {
                    return Err(expr);
                }
                let both = |a: &Vec<Matcher>| {
                    right.iter().map(|b| [a.as_slice(), b].concat()).collect::<Vec<_>>()
                };
                left.iter().flat_map(both).collect()
            }
            _ => return Err(expr),
        },
    };
    if ALTERNATIVES_MAX < found.len() { Err(expr) } else { Ok(found) }
}

/// Whether a variable is a tag's, or of nothing that is known, which is a tag that nobody has.
pub fn is_tag(name: &str, kind: DataType, fields: &Fields) -> bool {
    match kind {
        DataType::Tag => true,
        DataType::Unknown => !fields.contains_key(name),
        // Another measurement's field, if it is none of this one's.
        _ => false,
    }
}

fn matcher(expr: &Expr, fields: &Fields) -> Option<Matcher> {
    if let Some((name, mut values)) = one_of(expr, fields) {
        if let [value] = values.as_slice() {
            return Some(Matcher::new(name, MatchOp::Equal, value.as_str()));
        }
        values.sort();
        values.dedup();
        let escaped: Vec<String> = values.iter().map(|value| regex::escape(value)).collect();
        return Some(Matcher::new(name, MatchOp::Regex, escaped.join("|")));
    }
    let Expr::Binary { op, left, right } = expr else { return None };
    let (name, value) = match (&**left, &**right) {
        (Expr::Var { name, kind }, value) if is_tag(name, *kind, fields) => (name, value),
        (value, Expr::Var { name, kind }) if is_tag(name, *kind, fields) => (name, value),
        _ => return None,
    };
    match (op, value) {
        (Op::NotEq, Expr::Text(text)) => {
            Some(Matcher::new(name.as_str(), MatchOp::NotEqual, text.as_str()))
        }
        (Op::EqRegex, Expr::Regex(regex)) => {
            Some(Matcher::new(name.as_str(), MatchOp::Regex, anchored(&regex.text)))
        }
        (Op::NotEqRegex, Expr::Regex(regex)) => {
            Some(Matcher::new(name.as_str(), MatchOp::NotRegex, anchored(&regex.text)))
        }
        _ => None,
    }
}

/// The tag and its values of `tag = 'a' OR tag = 'b'`.
fn one_of(expr: &Expr, fields: &Fields) -> Option<(String, Vec<String>)> {
    match expr {
        Expr::Paren(inner) => one_of(inner, fields),
        Expr::Binary { op: Op::Or, left, right } => {
            let (name, mut values) = one_of(left, fields)?;
            let (other, more) = one_of(right, fields)?;
            values.extend(more);
            (name == other).then_some((name, values))
        }
        Expr::Binary { op: Op::Eq, left, right } => match (&**left, &**right) {
            (Expr::Var { name, kind }, Expr::Text(text))
            | (Expr::Text(text), Expr::Var { name, kind })
                if is_tag(name, *kind, fields) =>
            {
                Some((name.clone(), vec![text.clone()]))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A pattern that finds something, as one that must match all: without `.*` around it where it says
/// itself where it begins and ends, so that an index can look up what it says.
pub fn anchored(text: &str) -> String {
    if text.contains("\\Q") {
        // A quotation without its end goes to the end of the text.
        let end = if has_open_quotation(text) { "\\E" } else { "" };
        return format!("(?s:.*)(?:{text}{end})(?s:.*)");
    }
    // An anchor that is repeated may be left out.
    let is_repeated = |rest: &str| rest.starts_with(['*', '+', '?', '{']);
    let starts = text.strip_prefix('^').is_some_and(|rest| !is_repeated(rest));
    let ends = text.ends_with('$') && !text.ends_with("\\$");
    if has_alternatives(text) || !(starts || ends) {
        return format!("(?s:.*)(?:{text})(?s:.*)");
    }
    let inner = if starts { text.strip_prefix('^').unwrap_or(text) } else { text };
    let inner = if ends { inner.strip_suffix('$').unwrap_or(inner) } else { inner };
    let before = if starts { "" } else { "(?s:.*)" };
    let after = if ends { "" } else { "(?s:.*)" };
    format!("{before}(?:{inner}){after}")
}

/// Whether there is a `\Q` without its `\E`.
fn has_open_quotation(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, escaped)) = rest.split_once('\\') {
        let mut characters = escaped.chars();
        let is_quotation = characters.next() == Some('Q');
        rest = characters.as_str();
        if is_quotation {
            match rest.split_once("\\E") {
                Some((_, tail)) => rest = tail,
                None => return true,
            }
        }
    }
    false
}

/// Whether there is a `|` outside of all parentheses.
fn has_alternatives(text: &str) -> bool {
    let (mut depth, mut classes) = (0, 0);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '[' => {
                classes += 1;
                // What closes a class is one of its characters where it comes first.
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
            }
            ']' if 0 < classes => classes -= 1,
            '(' if classes == 0 => depth += 1,
            ')' if classes == 0 => depth -= 1,
            '|' if classes == 0 && depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// The parts of a condition that must all hold.
pub fn all_of(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::Paren(inner) => all_of(*inner),
        Expr::Binary { op: Op::And, left, right } => {
            let mut parts = all_of(*left);
            parts.extend(all_of(*right));
            parts
        }
        other => vec![other],
    }
}

/// The condition that all of them hold.
pub fn together(parts: Vec<Expr>) -> Option<Expr> {
    parts.into_iter().reduce(|left, right| {
        let (left, right) = (Box::new(left), Box::new(right));
        Expr::Binary { op: Op::And, left, right }
    })
}

/// Where an expression is evaluated: InfluxDB's index and its rows differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The conditions of a measurement: whole numbers are divided to whole numbers, and two tags that
    /// a series has not are not the same.
    Index,
    /// The conditions of a subquery's rows: whole numbers are divided to whole numbers.
    Filter,
    /// Rows, and what is selected of them.
    Rows,
}

/// Whether a condition holds, `lookup` giving the values of variables.
pub fn holds(expr: &Expr, level: Level, lookup: &dyn Fn(&str, DataType) -> Value) -> bool {
    evaluate(expr, level, lookup) == Value::Boolean(true)
}

/// The value of an expression of one row.
pub fn evaluate(expr: &Expr, level: Level, lookup: &dyn Fn(&str, DataType) -> Value) -> Value {
    match expr {
        Expr::Var { name, kind } => lookup(name, *kind),
        Expr::Paren(inner) => evaluate(inner, level, lookup),
        Expr::Binary { op, left, right } if op.is_regex() => {
            let text = evaluate(left, level, lookup);
            let (Value::Text(text), Expr::Regex(regex)) = (text, &**right) else {
                return Value::Boolean(false);
            };
            Value::Boolean(regex.regex().is_match(&text) == (*op == Op::EqRegex))
        }
        Expr::Binary { op, left, right } => {
            let (a, b) = (evaluate(left, level, lookup), evaluate(right, level, lookup));
            let is_none = |value: &Value| matches!(value, Value::Text(text) if text.is_empty());
            let are_names = matches!((&**left, &**right), (Expr::Var { .. }, Expr::Var { .. }));
            match (op, level, &a, &b) {
                // Beside a truth nothing is false, but not in the conditions of a measurement.
                (_, Level::Rows | Level::Filter, Value::Null, Value::Boolean(_)) => {
                    binary(*op, &Value::Boolean(false), &b)
                }
                (_, Level::Rows | Level::Filter, Value::Boolean(_), Value::Null) => {
                    binary(*op, &a, &Value::Boolean(false))
                }
                (Op::Eq | Op::NotEq, Level::Index, a, b)
                    if are_names && is_none(a) && is_none(b) =>
                {
                    Value::Boolean(*op == Op::NotEq)
                }
                (Op::Div, Level::Index | Level::Filter, Value::Integer(a), Value::Integer(b)) => {
                    Value::Integer(if *b == 0 { 0 } else { a.wrapping_div(*b) })
                }
                (op, _, a, b) => binary(*op, a, b),
            }
        }
        Expr::Call { name, args } => {
            let args: Vec<Value> = args.iter().map(|arg| evaluate(arg, level, lookup)).collect();
            math::call(name, &args)
        }
        Expr::Number(value) => Value::Float(*value),
        Expr::Integer(value) => Value::Integer(*value),
        Expr::Unsigned(value) => Value::Float(*value as f64),
        Expr::Text(text) => Value::text(text),
        Expr::Boolean(value) => Value::Boolean(*value),
        Expr::Time(nanos) => Value::Time(*nanos),
        // No column has spans of time: what is worked out with one is nothing.
        Expr::Duration(_) | Expr::Distinct(_) | Expr::Regex(_) | Expr::Star(_) => Value::Null,
    }
}

/// Whether a condition may hold of some row of a series with these tags, whatever its fields are.
pub fn may_hold(expr: &Expr, fields: &Fields, lookup: &dyn Fn(&str, DataType) -> Value) -> bool {
    match expr {
        Expr::Paren(inner) => may_hold(inner, fields, lookup),
        Expr::Binary { op: Op::And, left, right } => {
            may_hold(left, fields, lookup) && may_hold(right, fields, lookup)
        }
        Expr::Binary { op: Op::Or, left, right } => {
            may_hold(left, fields, lookup) || may_hold(right, fields, lookup)
        }
        other => {
            let all = variables(other);
            let is_of_tags = all.iter().all(|(name, kind)| is_tag(name, *kind, fields));
            !is_of_tags || holds(other, Level::Index, lookup)
        }
    }
}

/// The variables of an expression.
pub fn variables(expr: &Expr) -> Vec<(String, DataType)> {
    let mut out = Vec::new();
    expr.walk(&mut |expr| {
        if let Expr::Var { name, kind } = expr {
            let variable = (name.clone(), *kind);
            if !out.contains(&variable) {
                out.push(variable);
            }
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_find() {
        assert_eq!(anchored("^a$"), "(?:a)");
        assert_eq!(anchored("^(a|b)$"), "(?:(a|b))");
        assert_eq!(anchored("^a|b$"), "(?s:.*)(?:^a|b$)(?s:.*)");
        assert_eq!(anchored("^[](]a|b$"), "(?s:.*)(?:^[](]a|b$)(?s:.*)");
        assert_eq!(anchored("^[[:alpha:]|]$"), "(?:[[:alpha:]|])");
        assert_eq!(anchored("a"), "(?s:.*)(?:a)(?s:.*)");
        assert_eq!(anchored("^*a"), "(?s:.*)(?:^*a)(?s:.*)");
        assert_eq!(anchored("^{2}a$"), "(?s:.*)(?:^{2}a)");
        for (text, end) in [
            (r"\Qa$", r"\E"),
            (r"\Q\E", ""),
            (r"\Qa.b\E\a", ""),
            (r"\Q\E\Q", r"\E"),
            (r"\\Qa|b", ""),
            (r"\\\Qa", r"\E"),
        ] {
            assert_eq!(anchored(text), format!("(?s:.*)(?:{text}{end})(?s:.*)"));
        }
    }
}
