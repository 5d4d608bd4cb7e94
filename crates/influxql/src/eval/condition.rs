//! Conditions: what of them an index answers, and the rest for each row.

use super::math;
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

/// Whether a variable is a tag's, or of nothing that is known, which is a tag that nobody has.
pub fn is_tag(name: &str, kind: DataType, fields: &Fields) -> bool {
    match kind {
        DataType::Tag => true,
        DataType::Unknown => !fields.contains_key(name),
        DataType::AnyField => false,
        _ => !fields.contains_key(name),
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
    let starts = text.starts_with('^');
    let ends = text.ends_with('$') && !text.ends_with("\\$");
    if has_alternatives(text) || !(starts || ends) {
        return format!("(?s:.*)(?:{text})(?s:.*)");
    }
    let inner = text.strip_prefix('^').unwrap_or(text);
    let inner = if ends { inner.strip_suffix('$').unwrap_or(inner) } else { inner };
    let before = if starts { "" } else { "(?s:.*)" };
    let after = if ends { "" } else { "(?s:.*)" };
    format!("{before}(?:{inner}){after}")
}

/// Whether there is a `|` outside of all parentheses.
fn has_alternatives(text: &str) -> bool {
    let (mut depth, mut is_in_class) = (0, false);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '(' if !is_in_class => depth += 1,
            ')' if !is_in_class => depth -= 1,
            '|' if !is_in_class && depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// Whether a condition holds, `lookup` giving the values of variables.
pub fn holds(expr: &Expr, lookup: &dyn Fn(&str, DataType) -> Value) -> bool {
    evaluate(expr, lookup) == Value::Boolean(true)
}

/// The value of an expression of one row.
pub fn evaluate(expr: &Expr, lookup: &dyn Fn(&str, DataType) -> Value) -> Value {
    match expr {
        Expr::Var { name, kind } => lookup(name, *kind),
        Expr::Paren(inner) => evaluate(inner, lookup),
        Expr::Binary { op, left, right } if op.is_regex() => {
            let (Value::Text(text), Expr::Regex(regex)) = (evaluate(left, lookup), &**right) else {
                return Value::Boolean(false);
            };
            Value::Boolean(regex.regex.is_match(&text) == (*op == Op::EqRegex))
        }
        Expr::Binary { op, left, right } => {
            binary(*op, &evaluate(left, lookup), &evaluate(right, lookup))
        }
        Expr::Call { name, args } => {
            let args: Vec<Value> = args.iter().map(|arg| evaluate(arg, lookup)).collect();
            math::call(name, &args)
        }
        Expr::Number(value) => Value::Float(*value),
        Expr::Integer(value) => Value::Integer(*value),
        Expr::Unsigned(value) => Value::Float(*value as f64),
        Expr::Text(text) => Value::text(text),
        Expr::Boolean(value) => Value::Boolean(*value),
        Expr::Duration(nanos) => Value::Integer(*nanos),
        Expr::Time(nanos) => Value::Time(*nanos),
        Expr::Distinct(_) | Expr::Regex(_) | Expr::Star(_) => Value::Null,
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
        assert_eq!(anchored("a"), "(?s:.*)(?:a)(?s:.*)");
    }
}
