//! Conditions of a statement that the store answers by its index: on the metric's name, on labels, on
//! the time. DataFusion checks all of them again, so what is found here may be too much, never too
//! little.

use crate::functions::json::jsonb_functions::{CONTAINS, FIELD_TEXT, HAS_KEY};
use crate::functions::json::jsonb_parts::NAMELESS;
use crate::functions::prom;
use crate::functions::text::like_patterns::DOT_IS_ANY;
use crate::tables::metrics::alternatives::{Alternatives, alternatives, is_never_empty, one_of};
use crate::tables::metrics::tables::{Column, Shows};
use crate::types::casts::cast_functions::JSONB_IN;
use crate::types::json::json_value::Value;
use crate::types::json::jsonb;
use datafusion::arrow::array::{Array as _, AsArray as _};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{InList, Like, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use model::sample::NANOS_PER_MICRO;
use model::{METRIC_NAME, MatchOp, Matcher, TimeRange};

/// What `~` with a parameter becomes.
const REGEXP_LIKE: &str = "regexp_like";
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
    pub fn of<'a>(columns: &Named, filters: impl IntoIterator<Item = &'a Expr>) -> Asked {
        let mut narrowing = Narrowing { columns, asked: Asked::default() };
        for filter in filters {
            narrowing.narrow(filter);
        }
        narrowing.asked
    }

    /// What a condition says, all of it and nothing besides; none where it says something else.
    pub fn said(columns: &Named, filter: &Expr) -> Option<Asked> {
        if let Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) = filter {
            let (mut one, other) = (Asked::said(columns, left)?, Asked::said(columns, right)?);
            one.narrow(other);
            return Some(one);
        }
        exactly(columns, filter)
    }

    /// That holds, too.
    pub fn narrow(&mut self, other: Asked) {
        self.matchers.extend(other.matchers);
        self.range = self.range.intersect(&other.range);
    }

    /// Whether a condition is understood.
    pub fn understands(columns: &Named, filter: &Expr) -> bool {
        Narrowing { columns, asked: Asked::default() }.narrow(filter)
    }
}

/// What the names of a table's columns mean.
#[derive(Clone, Debug)]
pub struct Named(Vec<(Shows, String)>);

impl Named {
    /// Of columns and their names.
    pub fn new(columns: Vec<(Shows, String)>) -> Named {
        Named(columns)
    }

    fn shows(&self, name: &str) -> Option<&Shows> {
        self.0.iter().find(|(_, one)| one == name).map(|(shows, _)| shows)
    }

    /// Whether an expression is a column, or the same taken from a sample's line, which has
    /// milliseconds where the store has nanoseconds.
    fn is_column(&self, expr: &Expr, column: Column) -> bool {
        match expr {
            Expr::Column(found) => self.shows(&found.name) == Some(&Shows::Part(column)),
            Expr::ScalarFunction(function) => {
                let [inner] = function.args.as_slice() else { return false };
                // It is `jsonb` already.
                if function.name() == JSONB_IN && column == Column::Labels {
                    return self.is_column(inner, column);
                }
                let taken = match column {
                    Column::Name => prom::NAME,
                    Column::Labels => prom::LABELS,
                    _ => return false,
                };
                function.name() == taken
                    && matches!(inner, Expr::Column(_))
                    && self.is_column(inner, Column::Sample)
            }
            _ => false,
        }
    }

    /// The label whose value an expression is.
    pub fn label_of<'a>(&'a self, expr: &'a Expr) -> Option<&'a str> {
        if self.is_column(expr, Column::Name) {
            return Some(METRIC_NAME);
        }
        match expr {
            Expr::Column(found) => match self.shows(&found.name) {
                Some(Shows::Label(label)) => Some(label),
                _ => None,
            },
            Expr::ScalarFunction(function) => match function.args.as_slice() {
                [subject, Expr::Literal(value, _)]
                    if function.name() == FIELD_TEXT && self.is_column(subject, Column::Labels) =>
                {
                    // The name is a column of its own.
                    text_of(value).filter(|name| !name.is_empty() && *name != METRIC_NAME)
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// What one condition says, if the store's matchers or a range of times say the same. A label that is not there is
/// null to SQL, which fulfils no comparison, and an empty text to the store.
fn exactly(columns: &Named, filter: &Expr) -> Option<Asked> {
    let all = |matchers: Vec<Matcher>| Some(Asked { matchers, range: TimeRange::ALL });
    let is_there = |label: &str| Matcher::new(label, MatchOp::NotEqual, "");
    // Patterns that an empty text matches would find series without the label.
    let patterns = |inner: &Expr| {
        let found = alternatives(columns, inner).filter(|found| found.is_exact)?;
        let is_sure = found.patterns.iter().all(|one| is_never_empty(one));
        is_sure.then(|| (found.label.to_string(), found.patterns.join("|")))
    };
    let unlike = |inner: &Expr| {
        let (label, pattern) = patterns(inner)?;
        all(vec![is_there(&label), Matcher::new(label, MatchOp::NotRegex, pattern)])
    };
    if let Some((label, pattern)) = patterns(filter) {
        return all(vec![Matcher::new(label, MatchOp::Regex, pattern)]);
    }
    match filter {
        Expr::IsTrue(inner) => Asked::said(columns, inner),
        Expr::Not(inner) => unlike(inner),
        Expr::IsNotTrue(inner) => {
            let (label, pattern) = patterns(inner)?;
            all(vec![Matcher::new(label, MatchOp::NotRegex, pattern)])
        }
        Expr::IsNull(inner) => all(vec![Matcher::equal(columns.label_of(inner)?, "")]),
        Expr::IsNotNull(inner) => all(vec![is_there(columns.label_of(inner)?)]),
        Expr::InList(list) if list.negated => {
            unlike(&Expr::InList(InList { negated: false, ..list.clone() }))
        }
        Expr::Like(like) if like.negated => {
            unlike(&Expr::Like(Like { negated: false, ..like.clone() }))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::NotEq, right }) => {
            unlike(&Expr::BinaryExpr(BinaryExpr::new(left.clone(), Operator::Eq, right.clone())))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let of = |column: &Expr, op: Operator, value: &Expr| match (column, value) {
                (Expr::Column(_), Expr::Literal(value, _))
                    if columns.is_column(column, Column::Time) =>
                {
                    times(op, micros(value)?)
                }
                _ => None,
            };
            let range = of(left, *op, right).or_else(|| of(right, op.swap()?, left))?;
            Some(Asked { matchers: Vec::new(), range })
        }
        Expr::ScalarFunction(function) => all(contained(columns, function)?),
        _ => None,
    }
}

/// What `labels ? 'x'` and `labels @> '{..}'` say, where all of it is names and texts that labels may have.
fn contained(columns: &Named, function: &ScalarFunction) -> Option<Vec<Matcher>> {
    let [subject, Expr::Literal(value, _)] = function.args.as_slice() else { return None };
    let text = text_of(value).filter(|_| columns.is_column(subject, Column::Labels))?;
    // The name is no label to SQL.
    let is_label = |name: &str| !name.is_empty() && name != METRIC_NAME;
    match function.name() {
        HAS_KEY => is_label(text).then(|| vec![Matcher::new(text, MatchOp::NotEqual, "")]),
        CONTAINS => {
            let Value::Object(map) = jsonb::parse(text)? else { return None };
            let matcher = |(name, value): (&String, &Value)| {
                let value = value.as_str().filter(|value| is_label(name) && !value.is_empty())?;
                Some(Matcher::equal(name, value))
            };
            map.iter().map(matcher).collect()
        }
        _ => None,
    }
}

/// Conditions that are being understood.
struct Narrowing<'a> {
    columns: &'a Named,
    asked: Asked,
}

impl Narrowing<'_> {
    /// Heeds a condition. Returns whether it is understood.
    fn narrow(&mut self, filter: &Expr) -> bool {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                let (left, right) = (self.narrow(left), self.narrow(right));
                left || right
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                self.compare(left, *op, right)
                    || op.swap().is_some_and(|op| self.compare(right, op, left))
                    || self.heed(alternatives(self.columns, filter))
            }
            Expr::InList(_) | Expr::Like(_) => self.heed(alternatives(self.columns, filter)),
            Expr::ScalarFunction(function) => self.call(function),
            Expr::IsTrue(inner) => self.narrow(inner),
            Expr::IsNotTrue(inner) => self.exclude(inner),
            _ => false,
        }
    }

    fn compare(&mut self, left: &Expr, op: Operator, right: &Expr) -> bool {
        let Expr::Literal(value, _) = right else { return false };
        if self.columns.is_column(left, Column::Time) {
            return micros(value).is_some_and(|micros| self.bound(op, micros));
        }
        if let (Operator::Eq, Expr::ScalarFunction(function)) = (op, left)
            && let ([labels], Some(text)) = (function.args.as_slice(), text_of(value))
            && function.name() == NAMELESS
            && self.columns.is_column(labels, Column::Labels)
        {
            return self.contains(text);
        }
        let (Some(label), Some(text)) = (self.columns.label_of(left), text_of(value)) else {
            return false;
        };
        // A label that is not there is null, which equals nothing.
        let is_equal = op == Operator::Eq && !text.is_empty();
        if is_equal {
            self.asked.matchers.push(Matcher::equal(label, text));
        }
        is_equal
    }

    /// Heeds that a label's value is one of several.
    fn heed(&mut self, found: Option<Alternatives<'_>>) -> bool {
        let Some(Alternatives { label, patterns, .. }) = found else { return false };
        self.asked.matchers.push(Matcher::new(label, MatchOp::Regex, patterns.join("|")));
        true
    }

    /// Heeds that something is not so, or not known: a label that is not there is not equal to
    /// anything. To the store it is an empty text.
    fn exclude(&mut self, inner: &Expr) -> bool {
        let Some(Alternatives { label, patterns, is_exact }) = alternatives(self.columns, inner)
        else {
            return false;
        };
        if !is_exact || !patterns.iter().all(|one| is_never_empty(one)) {
            return false;
        }
        self.asked.matchers.push(Matcher::new(label, MatchOp::NotRegex, patterns.join("|")));
        true
    }

    fn bound(&mut self, op: Operator, micros: i64) -> bool {
        let Some(range) = times(op, micros) else { return false };
        self.asked.range = self.asked.range.intersect(&range);
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
        self.heed(one_of(self.columns, subject, &exprs))
    }

    fn call(&mut self, function: &ScalarFunction) -> bool {
        if let (ARRAY_HAS, [list, subject]) = (function.name(), function.args.as_slice()) {
            return self.any_of_array(subject, list);
        }
        if let (REGEXP_LIKE, [subject, Expr::Literal(pattern, _), Expr::Literal(flags, _)]) =
            (function.name(), function.args.as_slice())
        {
            let pattern = text_of(pattern).filter(|_| text_of(flags) == Some("s"));
            return pattern.is_some_and(|pattern| {
                let pattern = lit(format!("{DOT_IS_ANY}{pattern}"));
                self.compare(subject, Operator::RegexMatch, &pattern)
            });
        }
        let [subject, Expr::Literal(value, _)] = function.args.as_slice() else { return false };
        let Some(text) = text_of(value).filter(|_| self.columns.is_column(subject, Column::Labels))
        else {
            return false;
        };
        match function.name() {
            HAS_KEY => {
                self.asked.matchers.push(Matcher::new(text, MatchOp::NotEqual, ""));
                true
            }
            CONTAINS => self.contains(text),
            _ => false,
        }
    }

    fn contains(&mut self, part: &str) -> bool {
        let Some(Value::Object(map)) = jsonb::parse(part) else { return false };
        for (name, value) in &map {
            let Some(value) = value.as_str().filter(|value| !value.is_empty()) else { continue };
            self.asked.matchers.push(Matcher::equal(name, value));
        }
        true
    }
}

/// The text of a value that is one.
pub fn text_of(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_deref()
        }
        _ => None,
    }
}

/// The times that compare so with a time in microseconds.
pub fn times(op: Operator, micros: i64) -> Option<TimeRange> {
    let first = |micros: i64| micros.saturating_mul(NANOS_PER_MICRO);
    let last = |micros: i64| first(micros).saturating_add(NANOS_PER_MICRO - 1);
    let TimeRange { start, end } = TimeRange::ALL;
    Some(match op {
        Operator::Gt => TimeRange::new(first(micros.saturating_add(1)), end),
        Operator::GtEq => TimeRange::new(first(micros), end),
        Operator::Lt => TimeRange::new(start, last(micros.saturating_sub(1))),
        Operator::LtEq => TimeRange::new(start, last(micros)),
        Operator::Eq => TimeRange::new(first(micros), last(micros)),
        _ => return None,
    })
}

/// A time in microseconds.
pub fn micros(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampMicrosecond(micros, _) => *micros,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::col;

    fn named() -> Named {
        let part = |(column, name): (Column, &str)| (Shows::Part(column), name.to_string());
        let parts = [
            (Column::Sample, "sample"),
            (Column::Time, "time"),
            (Column::Name, "name"),
            (Column::Value, "value"),
            (Column::Labels, "labels"),
        ];
        let label = (Shows::Label("node".into()), "node_id".to_string());
        Named::new(parts.into_iter().map(part).chain([label]).collect())
    }

    fn asked(filters: &[Expr]) -> Asked {
        Asked::of(&named(), filters)
    }

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
        let asked = asked(&filters);
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
            assert!(!Asked::understands(&named(), &filter), "{filter}");
            assert_eq!(asked(&[filter]), Asked::default());
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
            asked(&[expr]).matchers.pop()
        };
        for pattern in ["^\\w+$", "(?i)a", "(?x)a_b # c", "a)(b", "[[:alpha:]]", "("] {
            assert_eq!(regex(pattern), None, "{pattern}");
        }
        let expected = Matcher::new(METRIC_NAME, MatchOp::Regex, "(?s:.*(?:^a|b).*)");
        assert_eq!(regex("(?s)^a|b"), Some(expected));
        // A backslash before these is no escape.
        let asked = asked(&[col("name").like(lit("a<%>"))]);
        let expected = Matcher::new(METRIC_NAME, MatchOp::Regex, "a<(?s:.*)>");
        assert_eq!(asked.matchers, [expected]);
    }

    #[test]
    fn what_is_said_whole_is_told_from_what_is_not() {
        let label = || col("node_id");
        let not = |op, text: &str| {
            vec![Matcher::new("node", MatchOp::NotEqual, ""), Matcher::new("node", op, text)]
        };
        for (filter, expected) in [
            (label().eq(lit("a")), Some(vec![Matcher::new("node", MatchOp::Regex, "a")])),
            (label().not_eq(lit("a")), Some(not(MatchOp::NotRegex, "a"))),
            (label().in_list(vec![lit("a"), lit("b")], true), Some(not(MatchOp::NotRegex, "a|b"))),
            (label().not_like(lit("a%")), Some(not(MatchOp::NotRegex, "a(?s:.*)"))),
            (label().is_null(), Some(vec![Matcher::equal("node", "")])),
            (label().eq(lit("")), None),
            (label().like(lit("%")), None),
            (col("value").gt(lit(1.0)), None),
            (col("sample").eq(lit("a")), None),
            (label().eq(lit("a")).or(col("name").eq(lit("a"))), None),
            (label().eq(lit("a")).and(col("value").gt(lit(1.0))), None),
        ] {
            let said = Asked::said(&named(), &filter);
            assert_eq!(said.map(|asked| asked.matchers), expected, "{filter}");
        }
        let said = Asked::said(&named(), &col("time").lt(at(9)).and(at(5).lt_eq(col("time"))));
        assert_eq!(said.map(|asked| asked.range), Some(TimeRange::new(5000, 8999)));
    }

    #[test]
    fn lists_and_patterns() {
        let filters =
            [col("name").in_list(vec![lit("a.b"), lit("c")], false), col("name").like(lit("c_%"))];
        let asked = asked(&filters);
        assert_eq!(asked.matchers[0], Matcher::new(METRIC_NAME, MatchOp::Regex, "a\\.b|c"));
        assert_eq!(asked.matchers[1], Matcher::new(METRIC_NAME, MatchOp::Regex, "c(?s:.)(?s:.*)"));
    }

    #[test]
    fn columns_of_labels_and_what_is_not_so() {
        let node = || Box::new(col("node_id"));
        let matches = |pattern: &str| {
            Expr::BinaryExpr(BinaryExpr::new(node(), Operator::RegexMatch, Box::new(lit(pattern))))
        };
        let filters = [
            col("node_id").eq(lit("a")),
            Expr::IsTrue(Box::new(matches("b"))),
            Expr::IsNotTrue(Box::new(col("node_id").eq(lit("c")))),
            Expr::IsNotTrue(Box::new(matches("(?s)d+"))),
            col("node_id")
                .eq(lit("e"))
                .or(col("node_id").like(lit("f%")))
                .or(col("node_id").in_list(vec![lit("g"), lit("h")], false)),
            Expr::IsNotTrue(Box::new(
                col("node_id").like(lit("%i%")).or(lit("j").eq(col("node_id"))),
            )),
        ];
        let expected = [
            Matcher::equal("node", "a"),
            Matcher::new("node", MatchOp::Regex, "(?s:.*(?:b).*)"),
            Matcher::new("node", MatchOp::NotRegex, "c"),
            Matcher::new("node", MatchOp::NotRegex, "(?s:.*(?:d+).*)"),
            Matcher::new("node", MatchOp::Regex, "e|f(?s:.*)|g|h"),
            Matcher::new("node", MatchOp::NotRegex, "(?s:.*)i(?s:.*)|j"),
        ];
        assert_eq!(asked(&filters).matchers, expected);
        // A label that is not there is an empty text to the store: these would leave it out.
        for filter in [
            Expr::IsNotTrue(Box::new(matches("(?s)d*"))),
            Expr::IsNotTrue(Box::new(matches("(?s)^$"))),
            Expr::IsNotTrue(Box::new(matches("d."))),
            Expr::IsNotTrue(Box::new(col("node_id").eq(lit("")))),
            Expr::IsNotTrue(Box::new(col("node_id").like(lit("%")))),
            col("node").eq(lit("a")),
            col("node_id").eq(lit("a")).or(col("name").eq(lit("a"))),
        ] {
            assert!(!Asked::understands(&named(), &filter), "{filter}");
        }
    }
}
