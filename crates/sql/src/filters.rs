//! Conditions of a statement that the store answers by its index: on the metric's name, on labels, on
//! the time. DataFusion checks all of them again, so what is found here may be too much, never too
//! little.

use crate::jsonb;
use crate::jsonb_functions::{CONTAINS, FIELD_TEXT, HAS_KEY};
use crate::prom;
use crate::rewrite::DOT_IS_ANY;
use crate::tables::Column;
use datafusion::arrow::array::{Array as _, AsArray as _};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, Like, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use model::sample::NANOS_PER_MICRO;
use model::{METRIC_NAME, MatchOp, Matcher, TimeRange};

/// What `x = ANY(list)` becomes.
const ARRAY_HAS: &str = "array_has";

/// What the store is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// All of them hold.
    pub matchers: Vec<Matcher>,
    /// When.
    pub range: TimeRange,
}

impl Default for Asked {
    fn default() -> Asked {
        Asked { matchers: Vec::new(), range: TimeRange::ALL }
    }
}

impl Asked {
    /// What all conditions say together, as far as they are understood.
    pub fn of<'a>(filters: impl IntoIterator<Item = &'a Expr>) -> Asked {
        let mut asked = Asked::default();
        for filter in filters {
            asked.narrow(filter);
        }
        asked
    }

    /// Heeds a condition. Returns whether it is understood.
    pub fn narrow(&mut self, filter: &Expr) -> bool {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                let (left, right) = (self.narrow(left), self.narrow(right));
                left || right
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                self.compare(left, *op, right)
                    || op.swap().is_some_and(|op| self.compare(right, op, left))
            }
            Expr::InList(InList { expr, list, negated: false }) => self.any_of(expr, list),
            Expr::Like(like) => self.like(like),
            Expr::ScalarFunction(function) => self.call(function),
            _ => false,
        }
    }

    fn compare(&mut self, left: &Expr, op: Operator, right: &Expr) -> bool {
        let Expr::Literal(value, _) = right else { return false };
        if is_column(left, Column::Time) {
            return micros(value).is_some_and(|micros| self.bound(op, micros));
        }
        let (Some(label), Some(text)) = (label_of(left), text_of(value)) else { return false };
        let matcher = match op {
            // A label that is not there is null, which equals nothing.
            Operator::Eq if !text.is_empty() => Matcher::equal(label, text),
            Operator::RegexMatch => match anywhere(text) {
                Some(pattern) => Matcher::new(label, MatchOp::Regex, pattern),
                None => return false,
            },
            _ => return false,
        };
        self.matchers.push(matcher);
        true
    }

    fn bound(&mut self, op: Operator, micros: i64) -> bool {
        let first = |micros: i64| micros.saturating_mul(NANOS_PER_MICRO);
        let last = |micros: i64| first(micros).saturating_add(NANOS_PER_MICRO - 1);
        let (mut start, mut end) = (self.range.start, self.range.end);
        match op {
            Operator::Gt => start = start.max(first(micros.saturating_add(1))),
            Operator::GtEq => start = start.max(first(micros)),
            Operator::Lt => end = end.min(last(micros.saturating_sub(1))),
            Operator::LtEq => end = end.min(last(micros)),
            Operator::Eq => {
                start = start.max(first(micros));
                end = end.min(last(micros));
            }
            _ => return false,
        }
        self.range = TimeRange::new(start, end);
        true
    }

    fn any_of(&mut self, expr: &Expr, list: &[Expr]) -> bool {
        let Some(label) = label_of(expr) else { return false };
        let mut patterns = Vec::with_capacity(list.len());
        for one in list {
            match one {
                // Nothing equals what is not known.
                Expr::Literal(value, _) if value.is_null() => {}
                Expr::Literal(value, _) => match text_of(value).filter(|text| !text.is_empty()) {
                    Some(text) => patterns.push(escaped(text)),
                    None => return false,
                },
                _ => return false,
            }
        }
        if patterns.is_empty() {
            return false;
        }
        self.matchers.push(Matcher::new(label, MatchOp::Regex, patterns.join("|")));
        true
    }

    /// `x = ANY($1)`, once the parameter is known.
    fn any_of_array(&mut self, subject: &Expr, list: &Expr) -> bool {
        let Expr::Literal(ScalarValue::List(list), _) = list else { return false };
        let texts = match list.values().data_type() {
            DataType::Utf8View => list.values().clone(),
            _ => return false,
        };
        let texts = texts.as_string_view();
        let exprs: Vec<Expr> = texts.iter().map(|text| lit(ScalarValue::from(text))).collect();
        !exprs.is_empty() && self.any_of(subject, &exprs)
    }

    fn like(&mut self, like: &Like) -> bool {
        if like.negated || like.case_insensitive || like.escape_char.is_some() {
            return false;
        }
        let (Some(label), Expr::Literal(value, _)) = (label_of(&like.expr), &*like.pattern) else {
            return false;
        };
        // A backslash in it is an escape.
        let Some(text) = text_of(value).filter(|text| !text.contains('\\')) else { return false };
        let mut pattern = String::new();
        for character in text.chars() {
            match character {
                '%' => pattern.push_str("(?s:.*)"),
                '_' => pattern.push_str("(?s:.)"),
                plain => push_escaped(&mut pattern, plain),
            }
        }
        self.matchers.push(Matcher::new(label, MatchOp::Regex, pattern));
        true
    }

    fn call(&mut self, function: &ScalarFunction) -> bool {
        if let (ARRAY_HAS, [list, subject]) = (function.name(), function.args.as_slice()) {
            return self.any_of_array(subject, list);
        }
        let [subject, Expr::Literal(value, _)] = function.args.as_slice() else { return false };
        let Some(text) = text_of(value).filter(|_| is_column(subject, Column::Labels)) else {
            return false;
        };
        match function.name() {
            HAS_KEY => {
                self.matchers.push(Matcher::new(text, MatchOp::NotEqual, ""));
                true
            }
            CONTAINS => self.contains(text),
            _ => false,
        }
    }

    fn contains(&mut self, part: &str) -> bool {
        let Some(serde_json::Value::Object(map)) = jsonb::parse(part) else { return false };
        for (name, value) in &map {
            let Some(value) = value.as_str().filter(|value| !value.is_empty()) else { continue };
            self.matchers.push(Matcher::equal(name, value));
        }
        true
    }
}

/// Whether an expression is a column, or the same taken from a sample's line, which has milliseconds
/// where the store has nanoseconds.
fn is_column(expr: &Expr, column: Column) -> bool {
    match expr {
        Expr::Column(found) => column.is_named(&found.name),
        Expr::ScalarFunction(function) => {
            let taken = match column {
                Column::Name => prom::NAME,
                Column::Labels => prom::LABELS,
                _ => return false,
            };
            let [Expr::Column(line)] = function.args.as_slice() else { return false };
            function.name() == taken && Column::Sample.is_named(&line.name)
        }
        _ => false,
    }
}

/// The label whose value an expression is.
fn label_of(expr: &Expr) -> Option<&str> {
    if is_column(expr, Column::Name) {
        return Some(METRIC_NAME);
    }
    let Expr::ScalarFunction(function) = expr else { return None };
    match function.args.as_slice() {
        [subject, Expr::Literal(value, _)]
            if function.name() == FIELD_TEXT && is_column(subject, Column::Labels) =>
        {
            // The name is a column of its own.
            text_of(value).filter(|name| !name.is_empty() && *name != METRIC_NAME)
        }
        _ => None,
    }
}

fn text_of(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_deref()
        }
        _ => None,
    }
}

fn micros(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampMicrosecond(micros, _) => *micros,
        _ => None,
    }
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

fn escaped(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::col;

    fn at(micros: i64) -> Expr {
        lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("+00:00".into())))
    }

    #[test]
    fn names_and_times() {
        let filters = [
            col("name").eq(lit("cpu")),
            col("time").gt_eq(at(5)),
            lit(7i64).eq(lit(7i64)),
            at(9).gt(col("time")),
        ];
        let asked = Asked::of(&filters);
        assert_eq!(asked.matchers, [Matcher::equal(METRIC_NAME, "cpu")]);
        assert_eq!(asked.range, TimeRange::new(5000, 8999));
    }

    #[test]
    fn what_is_not_understood_narrows_nothing() {
        for filter in [
            col("name").eq(lit("cpu")).or(col("value").gt(lit(1.0))),
            col("name").not_eq(lit("cpu")),
            col("name").eq(lit("")),
            col("value").gt(lit(1.0)),
        ] {
            let mut asked = Asked::default();
            assert!(!asked.narrow(&filter), "{filter}");
            assert_eq!(asked, Asked::default());
        }
    }

    #[test]
    fn only_what_means_the_same_is_asked_for() {
        let regex = |pattern: &str| {
            let expr = Expr::BinaryExpr(BinaryExpr::new(
                Box::new(col("name")),
                Operator::RegexMatch,
                Box::new(lit(pattern)),
            ));
            let mut asked = Asked::default();
            asked.narrow(&expr).then(|| asked.matchers.pop().unwrap())
        };
        for pattern in ["^\\w+$", "(?i)a", "(?x)a_b # c", "a)(b", "[[:alpha:]]", "("] {
            assert_eq!(regex(pattern), None, "{pattern}");
        }
        let expected = Matcher::new(METRIC_NAME, MatchOp::Regex, "(?s:.*(?:^a|b).*)");
        assert_eq!(regex("(?s)^a|b"), Some(expected));
        // A backslash before these is no escape.
        let asked = Asked::of(&[col("name").like(lit("a<%>"))]);
        let expected = Matcher::new(METRIC_NAME, MatchOp::Regex, "a<(?s:.*)>");
        assert_eq!(asked.matchers, [expected]);
    }

    #[test]
    fn lists_and_patterns() {
        let filters =
            [col("name").in_list(vec![lit("a.b"), lit("c")], false), col("name").like(lit("c_%"))];
        let asked = Asked::of(&filters);
        assert_eq!(asked.matchers[0], Matcher::new(METRIC_NAME, MatchOp::Regex, "a\\.b|c"));
        assert_eq!(asked.matchers[1], Matcher::new(METRIC_NAME, MatchOp::Regex, "c(?s:.)(?s:.*)"));
    }
}
