//! What the columns of a hypertable are: the time, labels, and values.

use crate::tables::heap::values::read as read_text;
use crate::types::error::SqlError;
use model::{METRIC_NAME, Matcher, stale_marker};
use tables::{ColumnType, Datum, Scalar, Schema};

/// The label that all series of a hypertable have, and no others.
pub const TABLE_LABEL: &str = "__table__";

/// The properties of a table that say so, and which of its columns are labels.
const TIME: &str = "hypertable: time";
const LABEL: &str = "hypertable: label ";

/// The greatest whole number up to which all are kept exactly.
const WHOLE_MAX: i64 = 1 << 53;

/// A table whose rows are samples. Columns are said by their places.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypertable {
    /// Its name.
    pub name: String,
    /// What it looks like.
    pub schema: Schema,
    /// The column of the time.
    pub time: usize,
    /// Columns that are labels of the samples.
    pub labels: Vec<usize>,
    /// Columns that are their values.
    pub values: Vec<usize>,
}

impl Hypertable {
    /// Whether a table is one.
    pub fn is_one(schema: &Schema) -> bool {
        schema.properties.iter().any(|(name, _)| name == TIME)
    }

    /// Of a table, if it is one.
    pub fn of(name: &str, schema: &Schema) -> Option<Hypertable> {
        let property = |name: &str| {
            let mut all = schema.properties.iter();
            all.find(|(one, _)| one == name).map(|(_, value)| value.as_str())
        };
        let time = schema.column(property(TIME)?)?;
        let is_label =
            |at: &usize| property(&format!("{LABEL}{}", schema.columns[*at].name)).is_some();
        let others = (0..schema.columns.len()).filter(|at| *at != time);
        let (labels, values) = others.partition(is_label);
        Some(Hypertable { name: name.to_string(), schema: schema.clone(), time, labels, values })
    }

    /// The same table as an ordinary one.
    pub fn unsaid(mut schema: Schema) -> Schema {
        schema.properties.retain(|(name, _)| name != TIME && !name.starts_with(LABEL));
        schema
    }

    /// Says so of a table: `labels` are its columns that are labels.
    pub fn say(schema: &mut Schema, time: usize, labels: &[usize]) {
        let name = |at: usize| schema.columns[at].name.clone();
        let mut said = vec![(TIME.to_string(), name(time))];
        said.extend(labels.iter().map(|at| (format!("{LABEL}{}", name(*at)), String::new())));
        schema.properties.extend(said);
    }

    /// Whether a column's values are floats of the widest kind, as samples are.
    pub fn is_float(&self, column: usize) -> bool {
        self.values.contains(&column)
            && self.schema.columns[column].ty == ColumnType::One(Scalar::Float8)
    }

    /// The metric of a column of values.
    pub fn metric(&self, column: usize) -> String {
        metric(&self.name, &self.schema.columns[column].name)
    }

    /// What holds of all series of such a table, and of no others.
    pub fn matcher(name: &str) -> Matcher {
        Matcher::equal(TABLE_LABEL, name)
    }

    /// The label's value that stands for a value of a column; none for none.
    ///
    /// # Errors
    /// When there is no such label.
    pub fn label_text(&self, column: usize, value: &Datum) -> Result<Option<String>, SqlError> {
        let text = match value {
            Datum::Null => return Ok(None),
            Datum::Bool(one) => one.to_string(),
            Datum::Int2(one) => one.to_string(),
            Datum::Int4(one) => one.to_string(),
            Datum::Int8(one) => one.to_string(),
            Datum::Text(text) | Datum::Uuid(text) | Datum::Jsonb(text) => text.to_string(),
            other => return Err(SqlError::unexpected(format!("{other:?} as a label"))),
        };
        let name = &self.schema.columns[column].name;
        if text.is_empty() {
            let words = format!("an empty text in column \"{name}\", which is a label");
            let hint = "A label that is empty is one that is not there: give NULL.";
            return Err(SqlError::new("22023", words).with_hint(hint));
        }
        let size_max = model::limits::LABEL_VALUE_SIZE_MAX;
        if size_max < text.len() {
            let words = format!(
                "a text of {} bytes in column \"{name}\": {size_max} are the most that a label has",
                text.len()
            );
            return Err(SqlError::limit(words));
        }
        Ok(Some(text))
    }

    /// The value of a column that a label stands for.
    ///
    /// # Errors
    /// When it is none: somebody else wrote the series.
    pub fn label_value(&self, column: usize, text: Option<&str>) -> Result<Datum, SqlError> {
        match text {
            None => Ok(Datum::Null),
            Some(text) => read_text(&self.schema.columns[column], text),
        }
    }

    /// The number of a sample that stands for a value of a column. That of NULL is what says in PromQL that
    /// there is nothing: so each row has a sample of each column, and takes the place of another whole.
    ///
    /// # Errors
    /// When it is a whole number that would not be kept exactly.
    pub fn number(&self, column: usize, value: &Datum) -> Result<f64, SqlError> {
        Ok(match value {
            Datum::Null => stale_marker(),
            // There is one NaN in SQL; others mean something to PromQL.
            Datum::Float8(one) if one.is_nan() => f64::NAN,
            Datum::Float4(one) if one.is_nan() => f64::NAN,
            Datum::Float8(one) => *one,
            Datum::Float4(one) => f64::from(*one),
            Datum::Int2(one) => f64::from(*one),
            Datum::Int4(one) => f64::from(*one),
            Datum::Int8(one) if one.unsigned_abs() <= WHOLE_MAX.unsigned_abs() => *one as f64,
            Datum::Int8(one) => {
                let name = &self.schema.columns[column].name;
                let words = format!(
                    "{one} in column \"{name}\" is out of range: whole numbers of a hypertable are \
                     exact up to {WHOLE_MAX}"
                );
                return Err(SqlError::new("22003", words));
            }
            other => return Err(SqlError::unexpected(format!("{other:?} as a number"))),
        })
    }
}

/// The metric of a column of a table.
pub fn metric(table: &str, column: &str) -> String {
    format!("{table}_{column}")
}

/// What a column of a type can be in a hypertable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanBe {
    /// The time.
    Time,
    /// A label.
    Label,
    /// A value.
    Value,
    /// A label or a value.
    Either,
    /// Nothing.
    Nothing,
}

impl CanBe {
    /// Whether it can be a label.
    pub fn is_label(self) -> bool {
        matches!(self, CanBe::Label | CanBe::Either)
    }

    /// Of a column's type.
    pub fn of(ty: ColumnType) -> CanBe {
        let ColumnType::One(scalar) = ty else { return CanBe::Nothing };
        match scalar {
            Scalar::Timestamptz | Scalar::Timestamp => CanBe::Time,
            Scalar::Float4 | Scalar::Float8 => CanBe::Value,
            Scalar::Int2 | Scalar::Int4 | Scalar::Int8 => CanBe::Either,
            Scalar::Text | Scalar::Bool | Scalar::Uuid | Scalar::Jsonb => CanBe::Label,
            _ => CanBe::Nothing,
        }
    }
}

/// Whether a column may have that name where it becomes a label.
pub fn may_be_label(name: &str) -> bool {
    name != METRIC_NAME && name != TABLE_LABEL && name.len() <= model::limits::LABEL_NAME_SIZE_MAX
}
