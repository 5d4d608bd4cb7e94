//! Literals in quotes as arguments of functions: each is read as the type that the function wants, before the planner would
//! make NULL or another error of it.

use crate::functions::signatures::{Argument, Wanted, wanted_type};
use crate::parse::rewrite::expressions::{
    array_type, call, cast, instant, is_placeholder, literal, text_literal,
};
use crate::types::casts::cast_functions::JSONB_IN;
use crate::types::error::SqlError;
use crate::types::names::name_of_last;
use crate::types::numeric::conversions::numeric_value;
use crate::types::text::bytea_text::BYTEA_IN;
use crate::types::text::literals::{boolean_of, is_float_out_of_range};
use crate::types::time::intervals::INTERVAL;
use crate::types::time::zones::ZONE;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, TimezoneInfo, UnaryOperator, Value,
};

/// Aggregates that are accessors of a summary behind an arrow, where a literal names a method: `summary -> stddev('pop')`.
const ACCESSORS: &[&str] = &["stddev", "variance"];

/// Gives literals in quotes the type that a function wants; `change_cast` changes the casts that this makes.
///
/// # Errors
/// `22P02`, `22003` and others when a literal is not valid for the type, `42725` when several functions match.
pub fn read_literals(
    function: &mut Function,
    mut change_cast: impl FnMut(&mut Expr) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let name = name_of_last(&function.name);
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    if !function.within_group.is_empty() || ACCESSORS.contains(&name.as_str()) {
        return Ok(());
    }
    let Some(args) = kinds_of(&list.args) else { return Ok(()) };
    for (at, arg) in list.args.iter_mut().enumerate() {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { continue };
        let Some(text) = literal(expr) else { continue };
        match wanted_type(&name, &args, at) {
            Wanted::One(letter) => {
                if let Some(read) = typed_literal(&text, letter)? {
                    *expr = read;
                    if matches!(expr, Expr::Cast { .. }) {
                        change_cast(expr)?;
                    }
                }
            }
            // The other arguments decide which number it is, and all such texts are a numeric.
            Wanted::Number => numeric_value(&text).map(drop)?,
            Wanted::NotUnique => return Err(not_unique(&name, args.len())),
            Wanted::Unknown => {}
        }
    }
    Ok(())
}

/// Whether the type of each argument is known; none where one has a name.
fn kinds_of(args: &[FunctionArg]) -> Option<Vec<Argument>> {
    let kind = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(match is_open(expr) {
            true => Argument::Open,
            false => Argument::Typed,
        }),
        _ => None,
    };
    args.iter().map(kind).collect()
}

/// The names of parameters that are arguments of a function, with the types that the function takes there.
pub fn parameter_types(function: &Function) -> Vec<(String, DataType)> {
    let name = name_of_last(&function.name);
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let Some(args) = kinds_of(&list.args) else { return Vec::new() };
    let known = list.args.iter().enumerate().filter_map(|(at, arg)| {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) = arg else {
            return None;
        };
        let Value::Placeholder(parameter) = &value.value else { return None };
        let Wanted::One(letter) = wanted_type(&name, &args, at) else { return None };
        Some((parameter.clone(), type_of_letter(letter)?))
    });
    known.collect()
}

/// The type of a letter; none of types that parameters come as texts for.
fn type_of_letter(letter: char) -> Option<DataType> {
    Some(match letter {
        's' => DataType::Int16,
        'i' => DataType::Int32,
        'l' => DataType::Int64,
        'f' => DataType::Float64,
        'b' => DataType::Boolean,
        'd' => DataType::Date32,
        'p' => DataType::Timestamp(TimeUnit::Microsecond, None),
        'z' => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        'v' => INTERVAL,
        _ => return None,
    })
}

/// Whether a function decides the type of an expression.
fn is_open(expr: &Expr) -> bool {
    let is_null = matches!(expr, Expr::Value(value) if value.value == Value::Null);
    is_null || literal(expr).is_some() || is_placeholder(expr)
}

/// The error of a call that several functions may be meant by.
pub fn not_unique(name: &str, count: usize) -> SqlError {
    let words = format!("function {name}({}) is not unique", vec!["unknown"; count].join(", "));
    SqlError::new("42725", words).with_hint("Add explicit type casts.")
}

/// A text as an expression of the type of a letter; none of types that texts are read as later.
fn typed_literal(text: &str, letter: char) -> Result<Option<Expr>, SqlError> {
    let cast_to = |sql_type: SqlType| Some(cast(text_literal(text.to_string()), sql_type));
    let wrong = |name: &str| {
        SqlError::new("22P02", format!("invalid input syntax for type {name}: \"{text}\""))
    };
    Ok(match letter {
        's' | 'i' | 'l' => Some(whole_number(text, letter)?),
        'r' | 'f' => {
            let (name, to) = match letter {
                'r' => ("real", DataType::Float32),
                _ => ("double precision", DataType::Float64),
            };
            if text.trim().parse::<f64>().is_err() {
                return Err(wrong(name));
            }
            if is_float_out_of_range(text, &to) {
                let words = format!("\"{}\" is out of range for type {name}", text.trim());
                return Err(SqlError::new("22003", words));
            }
            cast_to(SqlType::DoublePrecision)
        }
        'n' => {
            numeric_value(text)?;
            cast_to(SqlType::Numeric(ExactNumberInfo::None))
        }
        'b' => {
            let value = boolean_of(text).ok_or_else(|| wrong("boolean"))?;
            Some(Expr::Value(Value::Boolean(value).into()))
        }
        'd' => cast_to(SqlType::Date),
        'p' => cast_to(SqlType::Timestamp(None, TimezoneInfo::None)),
        'z' => cast_to(instant()),
        'v' => cast_to(SqlType::Interval { fields: None, precision: None }),
        'c' => cast_to(SqlType::Time(None, TimezoneInfo::None)),
        'y' => Some(call(BYTEA_IN, vec![text_literal(text.to_string())])),
        'j' | 'J' => Some(call(JSONB_IN, vec![text_literal(text.to_string())])),
        'I' => cast_to(array_type(SqlType::Int(None))),
        _ => None,
    })
}

/// A whole number that a text is.
fn whole_number(text: &str, letter: char) -> Result<Expr, SqlError> {
    let (name, least, most) = match letter {
        's' => ("smallint", i64::from(i16::MIN), i64::from(i16::MAX)),
        'i' => ("integer", i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => ("bigint", i64::MIN, i64::MAX),
    };
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let words = format!("invalid input syntax for type {name}: \"{text}\"");
        return Err(SqlError::new("22P02", words));
    }
    let number = trimmed.parse::<i64>().ok().filter(|one| (least..=most).contains(one));
    let number = number.ok_or_else(|| {
        SqlError::new("22003", format!("value \"{text}\" is out of range for type {name}"))
    })?;
    let digits = Expr::Value(Value::Number(number.unsigned_abs().to_string(), false).into());
    Ok(match number < 0 {
        true => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(digits) },
        false => digits,
    })
}
