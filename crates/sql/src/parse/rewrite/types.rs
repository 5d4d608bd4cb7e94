//! Types by PostgreSQL's names, and literals of those that arrow reads in another way.

use crate::catalog::layout::function_oid;
use crate::parse::rewrite::expressions::{
    call, cast, instant, is_named, literal, only_argument, text_literal,
};
use crate::types::casts::cast_functions::{JSON_IN, JSONB_IN, REGNAMESPACE, REGTYPE};
use crate::types::error::SqlError;
use crate::types::json::jsonb::check_json;
use crate::types::names::name_of_last;
use crate::types::numeric::value::NUMERIC;
use crate::types::parameter_types::JSONB_PARAMETER;
use crate::types::time::clock_precision::CLOCK_PRECISION;
use crate::types::time::interval_limits::{DIGITS_MAX, FIELDS, INTERVAL_LIMITS};
use crate::types::time::interval_texts::interval_text;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, CharacterLength, DataType as SqlType, ExactNumberInfo,
    Expr, ObjectName, TimezoneInfo, Value,
};
use std::sync::Arc;

/// PostgreSQL's largest precision and scale of a `numeric`.
const NUMERIC_PRECISION_MAX: u64 = 1000;
const NUMERIC_SCALE_MAX: i64 = 1000;

/// Casts to types that only PostgreSQL's own tables have.
pub fn catalog_cast(name_of_type: &ObjectName, inner: &Expr) -> Option<Expr> {
    let last = name_of_type.0.last()?.as_ident()?.value.to_ascii_lowercase();
    Some(match last.as_str() {
        "regclass" => call("to_regclass", vec![inner.clone()]),
        "oid" => match inner {
            // The type's name goes back to its number.
            Expr::Function(function) if is_named(&function.name, REGTYPE) => {
                call("to_regtype", only_argument(function).cloned().into_iter().collect())
            }
            _ => return None,
        },
        "regtype" => call(REGTYPE, vec![inner.clone()]),
        "regnamespace" => call(REGNAMESPACE, vec![inner.clone()]),
        "regproc" | "regprocedure" => {
            let name = literal(inner)?;
            let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
            match function_oid(name) {
                Some(oid) => {
                    let number = Expr::value(Value::Number(oid.to_string(), false));
                    cast(number, SqlType::Custom(name_of_type.clone(), Vec::new()))
                }
                None => text_literal(name.to_string()),
            }
        }
        "regrole" => match literal(inner) {
            Some(name) => text_literal(name),
            None => call("pg_get_userbyid", vec![inner.clone()]),
        },
        "bpchar" => cast(inner.clone(), SqlType::Char(None)),
        "char" | "text" | "cstring" => cast(inner.clone(), SqlType::Text),
        "jsonb" => call(JSONB_IN, vec![inner.clone()]),
        "json" => call(JSON_IN, vec![inner.clone()]),
        "int4" => cast(inner.clone(), SqlType::Int(None)),
        "int8" => cast(inner.clone(), SqlType::BigInt(None)),
        "timestamptz" => cast(inner.clone(), instant()),
        "float8" => cast(inner.clone(), SqlType::DoublePrecision),
        "bool" => cast(inner.clone(), SqlType::Boolean),
        _ => return None,
    })
}

/// The name that a cast to a text makes of a relation or schema that a literal names: the cast within made a number.
pub fn name_of_object(inner: &Expr) -> Option<Expr> {
    let Expr::Function(function) = inner else { return None };
    let name =
        ["to_regclass", REGNAMESPACE].into_iter().find(|one| is_named(&function.name, one))?;
    only_argument(function).and_then(literal)?;
    Some(call(name, vec![inner.clone()]))
}

/// Compares numbers of types with `'..'::regtype`: the name becomes the number.
pub fn compare_type_numbers(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } => {
            if !is_type_name(left) {
                number_of_type(right);
            } else if !is_type_name(right) {
                number_of_type(left);
            }
        }
        Expr::InList { expr, list, .. } if !is_type_name(expr) => {
            list.iter_mut().for_each(number_of_type);
        }
        Expr::Case { operand: Some(operand), conditions, .. } if !is_type_name(operand) => {
            conditions.iter_mut().for_each(|one| number_of_type(&mut one.condition));
        }
        _ => {}
    }
}

fn is_type_name(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_type_name(inner),
        Expr::Function(function) => is_named(&function.name, REGTYPE),
        _ => false,
    }
}

fn number_of_type(expr: &mut Expr) {
    if let Expr::Nested(inner) = expr {
        return number_of_type(inner);
    }
    if let Expr::Function(function) = &*expr
        && is_named(&function.name, REGTYPE)
        && let Some(name) = only_argument(function)
    {
        *expr = call("to_regtype", vec![name.clone()]);
    }
}

/// The numbers that a literal of `regtype[]`, `regclass[]` or `regnamespace[]` names, which compare with those of the
/// catalogs; none of other casts.
pub fn numbers_of_objects(inner: &Expr, element: &SqlType) -> Option<Expr> {
    let function = match element {
        SqlType::Regclass => "to_regclass",
        SqlType::Custom(name, _) => match name_of_last(name).as_str() {
            "regtype" => "to_regtype",
            "regnamespace" => REGNAMESPACE,
            _ => return None,
        },
        _ => return None,
    };
    let text = literal(inner)?;
    let names = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let number =
        |name: &str| call(function, vec![text_literal(name.trim().trim_matches('"').into())]);
    let elem = names.split(',').filter(|name| !name.trim().is_empty()).map(number).collect();
    Some(Expr::Array(Array { elem, named: true }))
}

/// A cast to `json` or `jsonb`.
pub fn json_cast(inner: &Expr, data_type: &SqlType) -> Result<Expr, SqlError> {
    let is_jsonb = *data_type == SqlType::JSONB;
    if let Some(text) = literal(inner) {
        check_json(&text, is_jsonb)?;
    }
    Ok(call(if is_jsonb { JSONB_IN } else { JSON_IN }, vec![inner.clone()]))
}

/// Functions whose value is a `json`; those of `jsonb` make it here.
const JSON_MAKERS: &[&str] = &[
    "array_to_json",
    "json_agg",
    "json_build_array",
    "json_build_object",
    "json_object_agg",
    "json_strip_nulls",
    "row_to_json",
    "to_json",
];

/// Whether an expression is a call of a function whose value is a `json`.
pub fn makes_json(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => JSON_MAKERS.iter().any(|name| is_named(&function.name, name)),
        _ => false,
    }
}

/// Arrays of texts.
pub fn texts() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)))
}

/// Whether it is a type of numbers with all their digits.
pub fn is_numeric(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::Numeric(_) | SqlType::Decimal(_) | SqlType::Dec(_))
}

/// Whether it is a type of floats.
pub fn is_float(sql_type: &SqlType) -> bool {
    matches!(arrow_type(sql_type), Some(DataType::Float32 | DataType::Float64))
}

/// The precision and scale of a `numeric` that says them.
///
/// # Errors
/// When there are no such numbers.
pub fn numeric_limits(sql_type: &SqlType) -> Result<Option<(i64, i64)>, SqlError> {
    let (SqlType::Numeric(digits) | SqlType::Decimal(digits) | SqlType::Dec(digits)) = sql_type
    else {
        return Ok(None);
    };
    let (precision, scale) = match digits {
        ExactNumberInfo::None => return Ok(None),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if !(1..=NUMERIC_PRECISION_MAX).contains(&precision) {
        let words =
            format!("NUMERIC precision {precision} must be between 1 and {NUMERIC_PRECISION_MAX}");
        return Err(SqlError::wrong_value(words));
    }
    if !(-NUMERIC_SCALE_MAX..=NUMERIC_SCALE_MAX).contains(&scale) {
        let words = format!(
            "NUMERIC scale {scale} must be between -{NUMERIC_SCALE_MAX} and {NUMERIC_SCALE_MAX}"
        );
        return Err(SqlError::wrong_value(words));
    }
    Ok(Some((i64::try_from(precision).unwrap_or(i64::MAX), scale)))
}

/// Takes the length out of a type of arrays, as PostgreSQL does: DataFusion would allocate that many elements.
pub fn without_length(sql_type: &mut SqlType) {
    match sql_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(of, length)) => {
            *length = None;
            without_length(of);
        }
        SqlType::Array(ArrayElemTypeDef::AngleBracket(of) | ArrayElemTypeDef::Parenthesis(of)) => {
            without_length(of);
        }
        _ => {}
    }
}

/// Checks the length of a type of texts.
///
/// # Errors
/// 22023 when it is 0.
pub fn check_length(sql_type: &SqlType) -> Result<(), SqlError> {
    let (length, name) = match sql_type {
        SqlType::Varchar(length) | SqlType::CharacterVarying(length) => (length, "varchar"),
        SqlType::Char(length) | SqlType::Character(length) => (length, "char"),
        _ => return Ok(()),
    };
    match length {
        Some(CharacterLength::IntegerLength { length: 0, .. }) => {
            Err(SqlError::wrong_value(format!("length for type {name} must be at least 1")))
        }
        _ => Ok(()),
    }
}

/// A cast to `varchar(n)` or `char(n)`: the first n characters. A `char(n)` loses the spaces at its end, which
/// PostgreSQL passes over in comparisons and casts (manual 8.3).
pub fn text_of_length(inner: &Expr, sql_type: &SqlType) -> Option<Expr> {
    let (length, is_padded) = match sql_type {
        SqlType::Varchar(length) | SqlType::CharacterVarying(length) => (*length, false),
        SqlType::Char(length) | SqlType::Character(length) => {
            let one = CharacterLength::IntegerLength { length: 1, unit: None };
            (Some(length.unwrap_or(one)), true)
        }
        _ => return None,
    };
    let Some(CharacterLength::IntegerLength { length, .. }) = length else { return None };
    let length = Expr::Value(Value::Number(length.to_string(), false).into());
    let text = cast(inner.clone(), SqlType::Text);
    let cut = call("left", vec![text, length]);
    Some(match is_padded {
        true => cast(call("rtrim", vec![cut, text_literal(" ".into())]), SqlType::Char(None)),
        false => cast(cut, SqlType::Varchar(None)),
    })
}

/// A cast to an interval of some fields or digits; none of a cast to an interval that may have all.
pub fn limited_interval(inner: &Expr, sql_type: &SqlType) -> Option<Expr> {
    let SqlType::Interval { fields, precision } = sql_type else { return None };
    if fields.is_none() && precision.is_none() {
        return None;
    }
    let words = fields.as_ref().map(ToString::to_string);
    Some(interval_to_field(inner, words.as_deref(), *precision))
}

/// Rewrites a cast to `timestamp(n)` or `time(n)`, which rounds the seconds to `n` digits; returns none for other types.
pub fn rounded_time(inner: &Expr, sql_type: &SqlType) -> Option<Expr> {
    let (digits, whole) = match sql_type {
        SqlType::Timestamp(Some(digits), zone) => (*digits, SqlType::Timestamp(None, *zone)),
        SqlType::Time(Some(digits), zone) => (*digits, SqlType::Time(None, *zone)),
        _ => return None,
    };
    let digits = Expr::Value(Value::Number(digits.to_string(), false).into());
    Some(call(CLOCK_PRECISION, vec![cast(inner.clone(), whole), digits]))
}

/// An interval that ends with the last of some fields.
pub fn interval_to_field(inner: &Expr, fields: Option<&str>, precision: Option<u64>) -> Expr {
    let last = fields.and_then(|words| words.rsplit(' ').next()).unwrap_or("SECOND");
    let field = FIELDS.iter().position(|field| *field == last).unwrap_or(FIELDS.len() - 1);
    let whole = SqlType::Interval { fields: None, precision: None };
    let inner = match literal(inner) {
        // A number is one of the last field.
        Some(text) if text.trim().parse::<f64>().is_ok() => {
            cast(text_literal(format!("{} {}", text.trim(), last.to_ascii_lowercase())), whole)
        }
        Some(text) => cast(text_literal(interval_text(&text)), whole),
        None => cast(inner.clone(), whole),
    };
    let number = |one: u64| Expr::Value(Value::Number(one.to_string(), false).into());
    let digits = precision.unwrap_or(DIGITS_MAX).min(DIGITS_MAX);
    call(INTERVAL_LIMITS, vec![inner, number(field as u64), number(digits)])
}

/// Whether it is `oid[]`.
pub fn is_oids(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Array(ArrayElemTypeDef::SquareBracket(of, _)) => {
            matches!(&**of, SqlType::Custom(name, _) if is_named(name, "oid"))
        }
        _ => false,
    }
}

/// Whether a parameter's type stands for `oid[]`: nothing else here has lists of such numbers.
pub fn is_oids_parameter(known: &DataType) -> bool {
    matches!(known, DataType::List(of) if of.data_type() == &DataType::UInt32)
}

/// The type of a parameter that is cast.
pub fn arrow_type(sql_type: &SqlType) -> Option<DataType> {
    let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
    Some(match sql_type {
        SqlType::Boolean | SqlType::Bool => DataType::Boolean,
        SqlType::SmallInt(_) | SqlType::Int2(_) => DataType::Int16,
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) => DataType::Int32,
        SqlType::BigInt(_) | SqlType::Int8(_) => DataType::Int64,
        SqlType::Real | SqlType::Float4 => DataType::Float32,
        SqlType::Float(ExactNumberInfo::Precision(digits)) if *digits <= 24 => DataType::Float32,
        SqlType::DoublePrecision | SqlType::Double(_) | SqlType::Float8 | SqlType::Float(_) => {
            DataType::Float64
        }
        SqlType::Numeric(_) | SqlType::Decimal(_) | SqlType::Dec(_) => NUMERIC,
        SqlType::JSONB | SqlType::JSON => JSONB_PARAMETER,
        SqlType::Bytea => DataType::Binary,
        SqlType::Date => DataType::Date32,
        SqlType::Interval { .. } => DataType::Interval(IntervalUnit::MonthDayNano),
        SqlType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some(crate::types::time::zones::ZONE.into()))
        }
        SqlType::Timestamp(..) => DataType::Timestamp(TimeUnit::Microsecond, None),
        SqlType::Text | SqlType::Varchar(_) | SqlType::CharacterVarying(_) | SqlType::Char(_) => {
            DataType::Utf8View
        }
        SqlType::Array(_) if is_oids(sql_type) => list(DataType::UInt32),
        SqlType::Array(ArrayElemTypeDef::SquareBracket(of, _)) => list(arrow_type(of)?),
        _ => return None,
    })
}
