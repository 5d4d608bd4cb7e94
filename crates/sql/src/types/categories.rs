//! Categories of types, and the types of expressions as far as they are known
//! (<https://www.postgresql.org/docs/15/typeconv-union-case.html>).

use crate::types::error::SqlError;
use crate::types::numeric::value::NUMERIC;
use crate::types::parameter_types::{JSONB_PARAMETER, UUID_PARAMETER};
use crate::types::postgres_types::{of_arrow, oid_of, type_name};
use crate::types::special_fields::{JSONB, TYPE_KEY};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::logical_expr::expr::{Alias, Placeholder};
use datafusion::logical_expr::{Expr, ExprSchemable as _};

/// Types that PostgreSQL makes one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    Number,
    Text,
    Boolean,
    /// Dates and timestamps.
    Date,
    Interval,
    Time,
    Bytea,
    /// `jsonb`, `uuid` and others that arrow has as texts.
    Special,
    Array,
}

/// The category of an expression and the name of its type; none of a literal in quotes, of NULL, of parameters of
/// which nothing is known, and of types that clash with nothing here.
pub fn known_type(expr: &Expr, schema: &DFSchema) -> Option<(Category, String)> {
    match expr {
        Expr::Alias(Alias { expr, .. }) => return known_type(expr, schema),
        Expr::Placeholder(Placeholder { field: None, .. }) => return None,
        Expr::Literal(value, None) if value.data_type().is_string() => return None,
        Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => {
            return Some((Category::Number, "integer".into()));
        }
        _ => {}
    }
    let (_, field) = expr.to_field(schema).ok()?;
    let special = match field.data_type() {
        ty if *ty == JSONB_PARAMETER => Some(JSONB),
        ty if *ty == UUID_PARAMETER => Some("uuid"),
        ty if ty.is_string() => field.metadata().get(TYPE_KEY).map(String::as_str),
        _ => None,
    };
    match special {
        Some(name) => {
            let category = if is_text_name(name) { Category::Text } else { Category::Special };
            Some((category, oid_of(name).and_then(type_name).unwrap_or_else(|| name.to_string())))
        }
        None => Some((category_of(field.data_type())?, type_name(of_arrow(field.data_type()))?)),
    }
}

/// Returns the category of a type, and none for NULL and types without one.
pub fn category_of(data_type: &DataType) -> Option<Category> {
    Some(match data_type {
        ty if ty.is_numeric() => Category::Number,
        DataType::Boolean => Category::Boolean,
        DataType::Date32 | DataType::Timestamp(..) => Category::Date,
        DataType::Interval(_) => Category::Interval,
        DataType::Time64(_) => Category::Time,
        DataType::Binary => Category::Bytea,
        DataType::List(_) => Category::Array,
        ty if ty.is_string() => Category::Text,
        _ => return None,
    })
}

/// Whether the name of a special type is one of texts.
pub(crate) fn is_text_name(name: &str) -> bool {
    matches!(name, "varchar" | "bpchar" | "name" | "char")
}

/// Makes an error of the planner with a SQLSTATE.
pub fn refusal(code: &'static str, words: String) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(code, words)))
}

/// The type of several numbers together, where they are of several types; none of what is not all numbers.
pub fn common_number(types: &[DataType]) -> Option<DataType> {
    let known: Vec<&DataType> = types.iter().filter(|ty| !ty.is_null()).collect();
    let first = known.first()?;
    if known.iter().all(|ty| ty == first) || !known.iter().all(|ty| ty.is_numeric()) {
        return None;
    }
    let any = |is_one: fn(&DataType) -> bool| known.iter().any(|ty| is_one(ty));
    Some(match () {
        () if any(|ty| *ty == DataType::Float64) => DataType::Float64,
        () if any(DataType::is_floating) => DataType::Float32,
        () if any(DataType::is_decimal) => NUMERIC,
        () if any(|ty| matches!(ty, DataType::Int64 | DataType::UInt32 | DataType::UInt64)) => {
            DataType::Int64
        }
        () => DataType::Int32,
    })
}

/// Returns true for a quoted literal, whose type its context decides.
pub fn is_open(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, None) if value.try_as_str().flatten().is_some())
}

/// Returns the common type of dates and timestamps of several types; none of other types.
pub fn common_time(types: &[DataType]) -> Option<DataType> {
    // Each of these types has all values of those with a lower rank.
    let rank = |ty: &DataType| match ty {
        DataType::Date32 => Some(0),
        DataType::Timestamp(_, None) => Some(1),
        DataType::Timestamp(_, Some(_)) => Some(2),
        _ => None,
    };
    let known = types.iter().filter(|ty| !ty.is_null());
    let ranks = known.clone().map(rank).collect::<Option<Vec<_>>>()?;
    let largest = ranks.iter().max()?;
    let is_one = ranks.iter().all(|one| one == largest);
    if is_one { None } else { known.max_by_key(|ty| rank(ty)).cloned() }
}

/// Returns the common type of numbers, and none if a value is no number.
pub fn one_number(types: &[DataType]) -> Option<DataType> {
    let first = types.iter().find(|ty| !ty.is_null()).filter(|ty| ty.is_numeric());
    let is_one = types.iter().all(|ty| ty.is_null() || Some(ty) == first);
    if is_one { first.cloned() } else { common_number(types) }
}
