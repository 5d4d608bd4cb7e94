//! Conditions on a hypertable that the store answers whole: on the time, and on labels.

use crate::tables::heap::columns::column_type;
use crate::tables::heap::values::of_scalar as datum_of;
use crate::tables::hypertables::shape::Hypertable;
use crate::tables::metrics::alternatives::escaped;
use crate::tables::metrics::filters::{micros, times};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use model::{MatchOp, Matcher, TimeRange, is_stale_marker};

/// Values of one list that the index is asked for; what has more is looked at row by row.
const LISTED_MAX: usize = 20_000;

/// And bytes of all of them: what finds them grows with those.
const LISTED_SIZE_MAX: usize = 128 << 10;

/// The greatest whole number up to which all are floats.
const WHOLE_MAX: u64 = 1 << 53;

/// What the store is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// All of them hold.
    pub matchers: Vec<Matcher>,
    /// When.
    pub range: TimeRange,
}

impl Asked {
    /// All rows.
    pub fn everything() -> Asked {
        Asked { matchers: Vec::new(), range: TimeRange::ALL }
    }

    /// That holds, too.
    pub fn narrow(&mut self, other: Asked) {
        self.matchers.extend(other.matchers);
        self.range = self.range.intersect(&other.range);
    }

    /// What all conditions say that are understood.
    pub fn of<'a>(table: &Hypertable, filters: impl IntoIterator<Item = &'a Expr>) -> Asked {
        let mut all = Asked::everything();
        filters
            .into_iter()
            .filter_map(|filter| Asked::said(table, filter))
            .for_each(|one| all.narrow(one));
        all
    }

    /// What a condition says, all of it; none where it says something else.
    pub fn said(table: &Hypertable, filter: &Expr) -> Option<Asked> {
        let label = |matcher| Asked { matchers: vec![matcher], range: TimeRange::ALL };
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                let (mut one, other) = (Asked::said(table, left)?, Asked::said(table, right)?);
                one.narrow(other);
                Some(one)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let swapped = || time(table, right, op.swap()?, left);
                let range = time(table, left, *op, right).or_else(swapped);
                match range {
                    Some(range) => Some(Asked { matchers: Vec::new(), range }),
                    None => one_of(table, filter).and_then(matcher).map(label),
                }
            }
            Expr::InList(_) => one_of(table, filter).and_then(matcher).map(label),
            Expr::IsNull(inner) => label_column(table, inner)
                .map(|at| label(Matcher::equal(&table.schema.columns[at].name, ""))),
            Expr::IsNotNull(inner) => label_column(table, inner).map(|at| {
                label(Matcher::new(&table.schema.columns[at].name, MatchOp::NotEqual, ""))
            }),
            _ => None,
        }
    }
}

/// That a value is more than a number, or less, and so on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueCondition {
    /// The column of the value.
    pub column: usize,
    /// How it is compared.
    pub op: Operator,
    /// With what; a number, and not zero, of which there are two that some tell apart.
    pub number: f64,
}

impl ValueCondition {
    /// What a condition says, all of it; none where it says something else.
    pub fn said(table: &Hypertable, filter: &Expr) -> Option<ValueCondition> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
        let (column, op, value) = match (&**left, &**right) {
            (Expr::Column(column), Expr::Literal(value, _)) => (column, *op, value),
            (Expr::Literal(value, _), Expr::Column(column)) => (column, op.swap()?, value),
            _ => return None,
        };
        use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let is_known = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
        let column = table.schema.column(&column.name)?;
        let number = match value {
            ScalarValue::Float64(Some(one)) => *one,
            ScalarValue::Int64(Some(one)) if one.unsigned_abs() <= WHOLE_MAX => *one as f64,
            _ => return None,
        };
        let is_plain = number != 0.0 && !number.is_nan();
        (is_known && is_plain && table.is_float(column)).then_some(ValueCondition {
            column,
            op,
            number,
        })
    }

    /// Whether it holds of a value: not of NULL, and NaN is greater than any number.
    #[inline]
    pub fn holds(&self, value: f64) -> bool {
        match self.op {
            _ if value.is_nan() => {
                let is_greater = matches!(self.op, Operator::Gt | Operator::GtEq | Operator::NotEq);
                is_greater && !is_stale_marker(value)
            }
            Operator::Gt => value > self.number,
            Operator::GtEq => value >= self.number,
            Operator::Lt => value < self.number,
            Operator::LtEq => value <= self.number,
            Operator::Eq => value == self.number,
            _ => value != self.number,
        }
    }
}

fn time(table: &Hypertable, left: &Expr, op: Operator, right: &Expr) -> Option<TimeRange> {
    let (Expr::Column(column), Expr::Literal(value, _)) = (left, right) else { return None };
    let is_time = column.name == table.schema.columns[table.time].name;
    times(op, micros(value).filter(|_| is_time)?)
}

fn label_column(table: &Hypertable, expr: &Expr) -> Option<usize> {
    let Expr::Column(column) = expr else { return None };
    table.labels.iter().copied().find(|at| table.schema.columns[*at].name == column.name)
}

/// That a label is one of some texts.
struct OneOf<'t> {
    label: &'t str,
    texts: Vec<String>,
}

fn matcher(one_of: OneOf<'_>) -> Option<Matcher> {
    match one_of.texts.as_slice() {
        // Nothing is asked for, which no matcher says.
        [] => None,
        [text] => Some(Matcher::equal(one_of.label, text)),
        texts if LISTED_MAX < texts.len() => None,
        texts if LISTED_SIZE_MAX < texts.iter().map(String::len).sum() => None,
        texts => {
            let patterns: Vec<String> = texts.iter().map(|text| escaped(text)).collect();
            Some(Matcher::new(one_of.label, MatchOp::Regex, patterns.join("|")))
        }
    }
}

/// `label = value`, `label IN (values)`, and several of them with `OR`.
fn one_of<'t>(table: &'t Hypertable, expr: &Expr) -> Option<OneOf<'t>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            // What equality with NULL becomes.
            if is_never(right) {
                return one_of(table, left);
            }
            let (mut one, other) = (one_of(table, left)?, one_of(table, right)?);
            one.texts.extend(other.texts);
            (one.label == other.label).then_some(one)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let (subject, value) = match (&**left, &**right) {
                (subject, Expr::Literal(value, _)) | (Expr::Literal(value, _), subject) => {
                    (subject, value)
                }
                _ => return None,
            };
            let at = label_column(table, subject)?;
            let texts = text_of(table, at, value)?.into_iter().collect();
            Some(OneOf { label: &table.schema.columns[at].name, texts })
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let at = label_column(table, expr)?;
            let mut texts = Vec::with_capacity(list.len());
            for one in list {
                let Expr::Literal(value, _) = one else { return None };
                texts.extend(text_of(table, at, value)?);
            }
            Some(OneOf { label: &table.schema.columns[at].name, texts })
        }
        _ => None,
    }
}

fn is_never(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Boolean(None | Some(false)), _))
}

/// The label's text for a value that a column may be equal to; none within for one that it never is. None
/// where nobody knows.
fn text_of(table: &Hypertable, column: usize, value: &ScalarValue) -> Option<Option<String>> {
    if value.is_null() {
        return Some(None);
    }
    let field = &table.schema.columns[column];
    let is_text = |ty: &datafusion::arrow::datatypes::DataType| {
        use datafusion::arrow::datatypes::DataType::{LargeUtf8, Utf8, Utf8View};
        matches!(ty, Utf8 | LargeUtf8 | Utf8View)
    };
    let (own, given) = (column_type(field), value.data_type());
    let is_plain = field.declared.is_empty() || field.declared.starts_with("varchar");
    let is_whole = |ty: &datafusion::arrow::datatypes::DataType| ty.is_integer();
    let is_jsonb = matches!(field.ty, tables::ColumnType::One(tables::Scalar::Jsonb));
    if is_jsonb
        || !is_plain
        || !(own == given || is_text(&own) && is_text(&given) || is_whole(&own) && is_whole(&given))
    {
        return None;
    }
    // An empty text and one that is too long are equal to no label.
    Some(table.label_text(column, &datum_of(value).ok()?).ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::hypertables::declare::Asking;
    use crate::tables::hypertables::declare::declare;
    use datafusion::prelude::{col, lit};
    use tables::{Column, ColumnType, Scalar, Schema};

    fn cpu() -> Hypertable {
        let column = |name, scalar| Column::new(name, ColumnType::One(scalar));
        let columns = vec![
            column("time", Scalar::Timestamptz),
            column("host", Scalar::Text),
            column("usage", Scalar::Float8),
        ];
        let schema = Schema { columns, ..Schema::default() };
        let asking = Asking { table: "cpu".into(), ..Asking::default() };
        Hypertable::of("cpu", &declare(schema, 0, &asking).unwrap()).unwrap()
    }

    #[test]
    fn what_is_said_whole_is_asked_of_the_store() {
        let host = |op, text: &str| Some(vec![Matcher::new("host", op, text)]);
        for (filter, expected) in [
            (col("host").eq(lit("a")), host(MatchOp::Equal, "a")),
            (
                col("host").eq(lit("a.b")).or(col("host").eq(lit("c"))),
                host(MatchOp::Regex, "a\\.b|c"),
            ),
            (col("host").in_list(vec![lit("a"), lit("b")], false), host(MatchOp::Regex, "a|b")),
            (col("host").is_null(), host(MatchOp::Equal, "")),
            (col("host").in_list(vec![lit("a")], true), None),
            (col("host").gt(lit("a")), None),
            (col("host").eq(lit("a")).or(col("usage").eq(lit(1.0))), None),
            (col("usage").gt(lit(90.0)), None),
        ] {
            let said = Asked::said(&cpu(), &filter).map(|asked| asked.matchers);
            assert_eq!(said, expected, "{filter}");
        }
        let micros = |at| lit(ScalarValue::TimestampMicrosecond(Some(at), Some("UTC".into())));
        let range = col("time").gt_eq(micros(5)).and(micros(7).gt(col("time")));
        let range = Asked::said(&cpu(), &range).unwrap().range;
        assert_eq!(range, TimeRange::new(5_000, 6_999));
    }
}
