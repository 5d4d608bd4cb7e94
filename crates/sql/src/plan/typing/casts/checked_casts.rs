//! Casts as PostgreSQL has them: those that it lacks are refused, and literals are read before arrow makes other values or
//! other errors of them.

use crate::types::casts::cast_functions::{JSON_IN, JSONB_IN};
use crate::types::categories::{Category, known_type};
use crate::types::error::SqlError;
use crate::types::numeric::conversions::numeric_value;
use crate::types::postgres_types::{of_arrow, type_name};
use crate::types::special_fields::{JSON, JSONB};
use crate::types::text::bytea_text::BYTEA_IN;
use crate::types::text::literals::{boolean_of, is_float_out_of_range};
use crate::types::time::instants::{date_of_text, time_of_day, wrong_time};
use crate::types::uuids::UUID_IN;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable as _};

/// Literals in quotes beside a `numeric` are such.
///
/// # Errors
/// 22P02 when one is no number.
pub fn literals_as_numeric(values: Vec<Expr>, schema: &DFSchema) -> Result<Transformed<Vec<Expr>>> {
    let is_numeric = |one: &Expr| one.get_type(schema).is_ok_and(|ty| ty.is_decimal());
    let is_float = |one: &Expr| one.get_type(schema).is_ok_and(|ty| ty.is_floating());
    if !values.iter().any(is_numeric) || values.iter().any(is_float) {
        return Ok(Transformed::no(values));
    }
    read_literals(values, numeric_value)
}

/// Literals in quotes beside a boolean are such.
///
/// # Errors
/// 22P02 when one is none.
pub fn literals_as_boolean(values: Vec<Expr>, schema: &DFSchema) -> Result<Transformed<Vec<Expr>>> {
    let is_boolean = |one: &Expr| matches!(one.get_type(schema), Ok(DataType::Boolean));
    match values.iter().any(is_boolean) {
        true => read_literals(values, |text| {
            let words = || format!("invalid input syntax for type boolean: \"{text}\"");
            let value = boolean_of(text).ok_or_else(|| SqlError::new("22P02", words()))?;
            Ok(ScalarValue::Boolean(Some(value)))
        }),
        false => Ok(Transformed::no(values)),
    }
}

fn read_literals(
    values: Vec<Expr>,
    read: impl Fn(&str) -> Result<ScalarValue, SqlError>,
) -> Result<Transformed<Vec<Expr>>> {
    let mut is_changed = false;
    let one = |value: Expr| -> Result<Expr> {
        let Expr::Literal(literal, _) = &value else { return Ok(value) };
        let Some(Some(text)) = literal.try_as_str() else { return Ok(value) };
        is_changed = true;
        let made = read(text).map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(Expr::Literal(made, None))
    };
    let values = values.into_iter().map(one).collect::<Result<Vec<_>>>()?;
    Ok(Transformed::new_transformed(values, is_changed))
}

/// The type that a function reads texts as.
pub fn type_read_by(function: &str) -> Option<&'static str> {
    Some(match function {
        UUID_IN => "uuid",
        JSONB_IN => "jsonb",
        JSON_IN => "json",
        BYTEA_IN => "bytea",
        _ => return None,
    })
}

/// A text between quotes as a time of day, if it is one.
pub fn literal_clock(expr: &Expr, wanted: &DataType) -> Option<Expr> {
    let (Expr::Literal(value, _), DataType::Time64(TimeUnit::Microsecond)) = (expr, wanted) else {
        return None;
    };
    let micros = time_of_day(value.try_as_str().flatten()?)?;
    Some(Expr::Literal(ScalarValue::Time64Microsecond(Some(micros)), None))
}

/// A text between quotes as a date, if it is one.
pub fn literal_date(expr: &Expr, wanted: &DataType) -> Option<Expr> {
    let (Expr::Literal(value, _), DataType::Date32) = (expr, wanted) else { return None };
    let days = date_of_text(value.try_as_str().flatten()?)?;
    Some(Expr::Literal(ScalarValue::Date32(Some(days)), None))
}

/// Reads a literal that is cast to a float or a time, of which arrow would make another value or another error.
///
/// # Errors
/// 22003, 22007, 22008 and 22009, as PostgreSQL has them.
pub fn check_literal(inner: &Expr, to: &DataType) -> Result<()> {
    let Expr::Literal(literal, _) = inner else { return Ok(()) };
    let Some(Some(text)) = literal.try_as_str() else { return Ok(()) };
    let error = match to {
        DataType::Float32 | DataType::Float64 if is_float_out_of_range(text, to) => {
            let name = type_name(of_arrow(to)).unwrap_or_default();
            let words = format!("\"{}\" is out of range for type {name}", text.trim());
            SqlError::new("22003", words)
        }
        DataType::Time64(_) if time_of_day(text).is_none() => {
            wrong_time(text, &type_name(of_arrow(to)).unwrap_or_default())
        }
        DataType::Date32 | DataType::Timestamp(..)
            if literal.cast_to(to).is_err() || text.trim().starts_with("0000") =>
        {
            wrong_time(text, &type_name(of_arrow(to)).unwrap_or_default())
        }
        _ => return Ok(()),
    };
    Err(DataFusionError::External(Box::new(error)))
}

/// Checks that PostgreSQL has a cast between two types.
///
/// # Errors
/// 42846 when it has none.
pub fn check_cast(inner: &Expr, to: &DataType, schema: &DFSchema) -> Result<()> {
    use Category::{Boolean, Bytea, Date, Interval, Number, Special, Time};
    let Some((from, name)) = known_type(inner, schema) else { return Ok(()) };
    let is_time = |to: &DataType| matches!(to, DataType::Time64(_));
    let is_date = |to: &DataType| matches!(to, DataType::Date32 | DataType::Timestamp(..));
    let is_interval = |to: &DataType| matches!(to, DataType::Interval(_));
    let is_truth = *to == DataType::Boolean;
    let is_whole = |to: &DataType| *to == DataType::Int32;
    let is_refused = match from {
        Number => is_time(to) || is_date(to) || is_interval(to) || is_truth && name != "integer",
        Boolean => {
            is_time(to) || is_date(to) || is_interval(to) || to.is_numeric() && !is_whole(to)
        }
        Date => {
            let is_day = matches!(inner.get_type(schema), Ok(DataType::Date32));
            to.is_numeric() || is_interval(to) || is_truth || is_time(to) && is_day
        }
        Interval => to.is_numeric() || is_date(to) || is_truth,
        Time => to.is_numeric() || is_date(to) || is_truth,
        Bytea => to.is_numeric() || is_date(to) || is_time(to) || is_truth || is_interval(to),
        Special if name == JSONB || name == JSON => is_date(to) || is_time(to) || is_interval(to),
        Special => to.is_numeric() || is_date(to) || is_time(to) || is_truth || is_interval(to),
        _ => false,
    };
    match is_refused {
        true => Err(no_cast(&name, &type_name(of_arrow(to)).unwrap_or_else(|| to.to_string()))),
        false => Ok(()),
    }
}

/// Checks that a value whose type is known may be read as a special type.
///
/// # Errors
/// 42846 when it may not.
pub fn check_read_as(inner: &Expr, to: &str, schema: &DFSchema) -> Result<()> {
    use Category::{Boolean, Bytea, Date, Interval, Number, Special, Time};
    match known_type(inner, schema) {
        Some((Bytea, _)) if to == "bytea" => Ok(()),
        Some((Special, name))
            if (name == JSONB || name == JSON) && ![JSONB, JSON].contains(&to) =>
        {
            Err(no_cast(&name, to))
        }
        Some((Number | Boolean | Date | Interval | Time | Bytea, name)) => Err(no_cast(&name, to)),
        _ => Ok(()),
    }
}

fn no_cast(from: &str, to: &str) -> DataFusionError {
    let words = format!("cannot cast type {from} to {to}");
    DataFusionError::External(Box::new(SqlError::new("42846", words)))
}
