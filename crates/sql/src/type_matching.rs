//! Values that must be of one type, as the branches of a `CASE`: DataFusion makes texts of numbers there, PostgreSQL
//! refuses them (<https://www.postgresql.org/docs/15/typeconv-union-case.html>). Casts that PostgreSQL does not have.

use crate::catalog::types::{of_arrow, type_name};
use crate::error::SqlError;
use crate::instants::{time_of_day, wrong_time};
use crate::jsonb_functions::{JSONB, TYPE_KEY};
use crate::numeric::numeric_value;
use crate::uuids::UUID_IN;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Alias, Placeholder};
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable as _, LogicalPlan};

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
        Expr::Literal(value, _) if value.is_null() || value.data_type().is_string() => return None,
        Expr::ScalarFunction(called) if called.func.name() == UUID_IN => {
            return Some((Category::Special, "uuid".into()));
        }
        Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => {
            return Some((Category::Number, "integer".into()));
        }
        _ => {}
    }
    let (_, field) = expr.to_field(schema).ok()?;
    let category = match field.data_type() {
        ty if ty.is_numeric() => Category::Number,
        DataType::Boolean => Category::Boolean,
        DataType::Date32 | DataType::Timestamp(..) => Category::Date,
        DataType::Interval(_) => Category::Interval,
        DataType::Time64(_) => Category::Time,
        DataType::Binary => Category::Bytea,
        DataType::List(_) => Category::Array,
        ty if ty.is_string() => match field.metadata().get(TYPE_KEY) {
            Some(name) => return Some((Category::Special, name.clone())),
            None => Category::Text,
        },
        _ => return None,
    };
    Some((category, type_name(of_arrow(field.data_type()))?))
}

/// Checks that values may have one type, in the order in which PostgreSQL looks at them.
///
/// # Errors
/// 42804 when two are of types without a common one.
pub fn check_common<'a>(
    place: &str,
    values: impl Iterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> Result<()> {
    check_types(place, values.map(|one| known_type(one, schema)))
}

fn check_types(place: &str, types: impl Iterator<Item = Option<(Category, String)>>) -> Result<()> {
    let mut first: Option<(Category, String)> = None;
    for (category, name) in types.flatten() {
        match &first {
            None => first = Some((category, name)),
            Some((known, known_name)) if clashes(*known, category) => {
                let words = format!("{place} types {known_name} and {name} cannot be matched");
                return Err(DataFusionError::External(Box::new(SqlError::new("42804", words))));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Whether two categories have no common type. Functions may lose the name of a special type, so texts clash with
/// none of these.
fn clashes(one: Category, other: Category) -> bool {
    let is_text = |one| matches!(one, Category::Text | Category::Special);
    one != other && !(is_text(one) && is_text(other))
}

/// Checks the columns of queries that are united, which may be literals without a type.
///
/// # Errors
/// 42804, as for values.
pub fn check_united(inputs: &[std::sync::Arc<LogicalPlan>]) -> Result<()> {
    let count = inputs.first().map_or(0, |one| one.schema().fields().len());
    (0..count)
        .try_for_each(|at| check_types("UNION", inputs.iter().map(|one| column_type(one, at))))
}

fn column_type(plan: &LogicalPlan, at: usize) -> Option<(Category, String)> {
    match plan {
        LogicalPlan::Projection(made) => known_type(made.expr.get(at)?, made.input.schema()),
        LogicalPlan::Distinct(Distinct::All(input)) => column_type(input, at),
        LogicalPlan::Sort(sort) => column_type(&sort.input, at),
        LogicalPlan::Limit(limit) => column_type(&limit.input, at),
        LogicalPlan::Union(_) | LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => None,
        other => {
            let column = Expr::from(other.schema().qualified_field(at));
            known_type(&column, other.schema())
        }
    }
}

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

/// A boolean of a text: a word for it, or the beginning of one that begins no other.
fn boolean_of(text: &str) -> Option<bool> {
    let text = text.trim_matches(|one: char| one.is_ascii_whitespace()).to_ascii_lowercase();
    let begins = |word: &str, least: usize| least <= text.len() && word.starts_with(&text);
    let is_true = begins("true", 1) || begins("yes", 1) || text == "on" || text == "1";
    let is_false = begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0";
    match (is_true, is_false) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
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

/// Checks that PostgreSQL compares numbers with numbers: no text is one by itself.
///
/// # Errors
/// 42883 when a number is compared with a text.
pub fn check_operator(sides: &[Expr], op: &str, schema: &DFSchema) -> Result<()> {
    let Some((first, name)) = sides.first().and_then(|one| known_type(one, schema)) else {
        return Ok(());
    };
    for (other, other_name) in sides.iter().skip(1).filter_map(|one| known_type(one, schema)) {
        let both = (first, other);
        if matches!(both, (Category::Number, Category::Text) | (Category::Text, Category::Number)) {
            let words = format!("operator does not exist: {name} {op} {other_name}");
            return Err(DataFusionError::External(Box::new(SqlError::new("42883", words))));
        }
    }
    Ok(())
}

/// A text between quotes as a time of day, if it is one.
pub fn literal_clock(expr: &Expr, wanted: &DataType) -> Option<Expr> {
    let (Expr::Literal(value, _), DataType::Time64(TimeUnit::Microsecond)) = (expr, wanted) else {
        return None;
    };
    let micros = time_of_day(value.try_as_str().flatten()?)?;
    Some(Expr::Literal(ScalarValue::Time64Microsecond(Some(micros)), None))
}

/// Reads a literal that is cast to a float or a time, of which arrow would make another value or another error.
///
/// # Errors
/// 22003, 22007, 22008 and 22009, as PostgreSQL has them.
pub fn check_literal(inner: &Expr, to: &DataType) -> Result<()> {
    let Expr::Literal(literal, _) = inner else { return Ok(()) };
    let Some(Some(text)) = literal.try_as_str() else { return Ok(()) };
    let error = match to {
        DataType::Float32 | DataType::Float64 if is_out_of_range(text, to) => {
            let name = type_name(of_arrow(to)).unwrap_or_default();
            let words = format!("\"{}\" is out of range for type {name}", text.trim());
            SqlError::new("22003", words)
        }
        DataType::Date32 | DataType::Timestamp(..) | DataType::Time64(_)
            if literal.cast_to(to).is_err() =>
        {
            wrong_time(text, &type_name(of_arrow(to)).unwrap_or_default())
        }
        _ => return Ok(()),
    };
    Err(DataFusionError::External(Box::new(error)))
}

/// Whether a text of a number is none that a `float8` has room for.
pub fn is_float_out_of_range(text: &str) -> bool {
    is_out_of_range(text, &DataType::Float64)
}

/// Whether a number of finite digits is infinite as a float, or zero though one of its digits is not.
fn is_out_of_range(text: &str, to: &DataType) -> bool {
    let text = text.trim();
    let Ok(value) = text.parse::<f64>() else { return false };
    let value = if *to == DataType::Float32 { f64::from(value as f32) } else { value };
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let has_digit = |least: u8| digits.bytes().any(|one| (least..=b'9').contains(&one));
    value.is_infinite() && has_digit(b'0') || value == 0.0 && has_digit(b'1')
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
        Special if name == JSONB => is_date(to) || is_time(to) || is_interval(to),
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
        Some((Special, name)) if name == JSONB && to != JSONB => Err(no_cast(&name, to)),
        Some((Number | Boolean | Date | Interval | Time | Bytea, name)) => Err(no_cast(&name, to)),
        _ => Ok(()),
    }
}

fn no_cast(from: &str, to: &str) -> DataFusionError {
    let words = format!("cannot cast type {from} to {to}");
    DataFusionError::External(Box::new(SqlError::new("42846", words)))
}
