//! Types of columns: by SQL's names, as arrow has them, and as PostgreSQL's own tables tell of them.

use crate::tables::heap::values::Limits;
use crate::types::error::SqlError;
use crate::types::names::name_of_last;
use crate::types::numeric::value::NUMERIC;
use crate::types::parameter_types::{JSONB_PARAMETER, NUMERIC_PARAMETER, UUID_PARAMETER};
use crate::types::special_fields::{BPCHAR, JSON, JSONB, TYPE_KEY, UUID, VARCHAR};
use crate::types::time::zones::ZONE;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as SqlType, ExactNumberInfo, Expr, TimezoneInfo,
};
use std::collections::HashMap;
use std::sync::Arc;
use tables::{Column, ColumnType, Scalar};

/// Digits of a `numeric` that says how many it has.
pub const DIGITS_MAX: u8 = 38;

/// Digits of a second that times have.
const SECOND_DIGITS_MAX: u64 = 6;
/// The modifier of a type of intervals with all fields.
const ALL_FIELDS: i32 = 0x7fff;
/// The modifier of a type of intervals with all digits.
const ALL_DIGITS: i32 = 0xffff;
/// Fields of types of intervals, and PostgreSQL's masks of them.
pub const INTERVAL_FIELDS: [(&str, i32); 13] = [
    ("year", 1 << 2),
    ("month", 1 << 1),
    ("day", 1 << 3),
    ("hour", 1 << 10),
    ("minute", 1 << 11),
    ("second", 1 << 12),
    ("year to month", 1 << 2 | 1 << 1),
    ("day to hour", 1 << 3 | 1 << 10),
    ("day to minute", 1 << 3 | 1 << 10 | 1 << 11),
    ("day to second", 1 << 3 | 1 << 10 | 1 << 11 | 1 << 12),
    ("hour to minute", 1 << 10 | 1 << 11),
    ("hour to second", 1 << 10 | 1 << 11 | 1 << 12),
    ("minute to second", 1 << 11 | 1 << 12),
];

/// What a column's type is, by the words of `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its type.
    pub ty: ColumnType,
    /// How it was said, where the type alone does not tell.
    pub words: String,
    /// Whether its values are numbered.
    pub is_serial: bool,
}

fn one(scalar: Scalar) -> Declared {
    Declared { ty: ColumnType::One(scalar), words: String::new(), is_serial: false }
}

fn said(scalar: Scalar, words: String) -> Declared {
    Declared { words, ..one(scalar) }
}

/// Declares a type of times with a number of digits of a second; PostgreSQL has at most six.
fn with_digits(scalar: Scalar, name: &str, digits: Option<u64>) -> Declared {
    match digits {
        Some(digits) => said(scalar, format!("{name}({})", digits.min(SECOND_DIGITS_MAX))),
        None => one(scalar),
    }
}

fn serial(scalar: Scalar) -> Declared {
    Declared { is_serial: true, ..one(scalar) }
}

/// Reads a type.
///
/// # Errors
/// When no column here may have it.
pub fn declared(sql_type: &SqlType) -> Result<Declared, SqlError> {
    let known = match sql_type {
        SqlType::Boolean | SqlType::Bool => one(Scalar::Bool),
        SqlType::SmallInt(_) | SqlType::Int2(_) => one(Scalar::Int2),
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) => one(Scalar::Int4),
        SqlType::BigInt(_) | SqlType::Int8(_) => one(Scalar::Int8),
        SqlType::Real | SqlType::Float4 => one(Scalar::Float4),
        SqlType::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => one(Scalar::Float4),
        SqlType::DoublePrecision | SqlType::Double(_) | SqlType::Float8 | SqlType::Float(_) => {
            one(Scalar::Float8)
        }
        SqlType::Numeric(digits) | SqlType::Decimal(digits) | SqlType::Dec(digits) => {
            numeric(digits)?
        }
        SqlType::Text => one(Scalar::Text),
        SqlType::Varchar(length) | SqlType::CharacterVarying(length) => match characters(length)? {
            Some(length) => said(Scalar::Text, format!("varchar({length})")),
            None => said(Scalar::Text, "varchar".to_string()),
        },
        SqlType::Char(length) | SqlType::Character(length) => {
            said(Scalar::Text, format!("char({})", characters(length)?.unwrap_or(1)))
        }
        SqlType::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            with_digits(Scalar::Timestamptz, "timestamptz", *digits)
        }
        SqlType::TimestampNtz(digits) | SqlType::Timestamp(digits, _) => {
            with_digits(Scalar::Timestamp, "timestamp", *digits)
        }
        SqlType::Date => one(Scalar::Date),
        SqlType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            with_digits(Scalar::Time, "time", *digits)
        }
        SqlType::Interval { fields: None, precision } => {
            with_digits(Scalar::Interval, "interval", *precision)
        }
        SqlType::Interval { fields: Some(fields), precision } => {
            let name = format!("interval {}", fields.to_string().to_ascii_lowercase());
            match precision {
                Some(_) => with_digits(Scalar::Interval, &name, *precision),
                None => said(Scalar::Interval, name),
            }
        }
        SqlType::JSONB => one(Scalar::Jsonb),
        SqlType::JSON => said(Scalar::Jsonb, JSON.to_string()),
        SqlType::Uuid => one(Scalar::Uuid),
        SqlType::Bytea => one(Scalar::Bytea),
        SqlType::Array(
            ArrayElemTypeDef::SquareBracket(of, _) | ArrayElemTypeDef::AngleBracket(of),
        ) => array(declared(of)?, sql_type)?,
        SqlType::Custom(name, _) => match name_of_last(name).as_str() {
            "serial" | "serial4" => serial(Scalar::Int4),
            "bigserial" | "serial8" => serial(Scalar::Int8),
            "smallserial" | "serial2" => serial(Scalar::Int2),
            "timestamptz" => one(Scalar::Timestamptz),
            _ => return Err(unknown(sql_type)),
        },
        other => return Err(unknown(other)),
    };
    Ok(known)
}

fn unknown(sql_type: &SqlType) -> SqlError {
    let words = format!("type \"{}\" is not known here", sql_type.to_string().to_lowercase());
    SqlError::new("0A000", words).with_hint(
        "Columns may be boolean, smallint, integer, bigint, real, double precision, numeric, text, \
         varchar, char, timestamptz, timestamp, date, time, interval, jsonb, uuid, bytea, or arrays of these.",
    )
}

fn array(of: Declared, sql_type: &SqlType) -> Result<Declared, SqlError> {
    match matches!(of.ty, ColumnType::One(_)) && !of.is_serial {
        true => Ok(Declared { ty: ColumnType::Array(of.ty.scalar()), ..of }),
        false => Err(unknown(sql_type)),
    }
}

fn numeric(digits: &ExactNumberInfo) -> Result<Declared, SqlError> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => return Ok(one(Scalar::Numeric)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let is_known = (1..=u64::from(DIGITS_MAX)).contains(&precision)
        && u64::try_from(scale).is_ok_and(|scale| scale <= precision);
    match is_known {
        true => Ok(said(Scalar::Numeric, format!("numeric({precision},{scale})"))),
        false => Err(SqlError::unsupported(format!(
            "numeric({precision},{scale}): {DIGITS_MAX} digits are the most here, and as many behind the \
             point as there are"
        ))),
    }
}

fn characters(length: &Option<CharacterLength>) -> Result<Option<u64>, SqlError> {
    match length {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length: 0, .. }) => {
            Err(SqlError::wrong_value("length for type varchar must be at least 1"))
        }
        Some(CharacterLength::IntegerLength { length, .. }) => Ok(Some(*length)),
    }
}

fn scalar_type(scalar: Scalar, limits: &Limits) -> DataType {
    match scalar {
        Scalar::Bool => DataType::Boolean,
        Scalar::Int2 => DataType::Int16,
        Scalar::Int4 => DataType::Int32,
        Scalar::Int8 => DataType::Int64,
        Scalar::Float4 => DataType::Float32,
        Scalar::Float8 => DataType::Float64,
        Scalar::Numeric => {
            let of = |(precision, scale)| DataType::Decimal128(precision, scale);
            limits.digits.map_or(NUMERIC, of)
        }
        Scalar::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        Scalar::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Scalar::Date => DataType::Date32,
        Scalar::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        Scalar::Time => DataType::Time64(TimeUnit::Microsecond),
        Scalar::Bytea => DataType::Binary,
        Scalar::Text | Scalar::Jsonb | Scalar::Uuid => DataType::Utf8View,
    }
}

/// A column's type as arrow has it.
pub fn column_type(column: &Column) -> DataType {
    field_of(column).data_type().clone()
}

/// A column as DataFusion knows it.
pub fn field_of(column: &Column) -> Field {
    let limits = Limits::of(column);
    let data_type = match column.ty {
        ColumnType::One(scalar) => scalar_type(scalar, &limits),
        ColumnType::Array(scalar) => {
            let of = match scalar {
                Scalar::Numeric => NUMERIC,
                other => scalar_type(other, &limits),
            };
            DataType::List(Arc::new(Field::new_list_field(of, true)))
        }
    };
    let name = match column.ty.scalar() {
        Scalar::Jsonb if column.declared == JSON => Some(JSON),
        Scalar::Jsonb => Some(JSONB),
        Scalar::Uuid => Some(UUID),
        Scalar::Text if column.declared.starts_with("varchar") => Some(VARCHAR),
        Scalar::Text if column.declared.starts_with("char") => Some(BPCHAR),
        _ => None,
    };
    let name = name.map(|name| match column.ty {
        ColumnType::One(_) => name.to_string(),
        ColumnType::Array(_) => format!("{name}[]"),
    });
    let metadata = name.map(|name| (TYPE_KEY.to_string(), name));
    // What a constraint keeps from being null may be null in an outer join, or before a default.
    Field::new(&column.name, data_type, true).with_metadata(HashMap::from_iter(metadata))
}

/// The number of a column's type, and what PostgreSQL adds to it: the length of a text, the digits of a
/// number; -1 for nothing.
pub(crate) fn type_oid_and_modifier(column: &Column) -> (i32, i32) {
    let limits = Limits::of(column);
    let modifier = match (limits.characters, limits.digits) {
        (Some(characters), _) => i32::try_from(characters + 4).unwrap_or(-1),
        (None, Some((precision, scale))) => (i32::from(precision) << 16) + i32::from(scale) + 4,
        (None, None) => time_modifier(column, &limits),
    };
    let (one, array) = match column.ty.scalar() {
        Scalar::Bool => (16, 1000),
        Scalar::Int2 => (21, 1005),
        Scalar::Int4 => (23, 1007),
        Scalar::Int8 => (20, 1016),
        Scalar::Float4 => (700, 1021),
        Scalar::Float8 => (701, 1022),
        Scalar::Numeric => (1700, 1231),
        Scalar::Text if column.declared.starts_with("varchar") => (1043, 1015),
        Scalar::Text if column.declared.starts_with("char") => (1042, 1014),
        Scalar::Text => (25, 1009),
        Scalar::Timestamptz => (1184, 1185),
        Scalar::Timestamp => (1114, 1115),
        Scalar::Date => (1082, 1182),
        Scalar::Jsonb if column.declared == JSON => (114, 199),
        Scalar::Jsonb => (3802, 3807),
        Scalar::Interval => (1186, 1187),
        Scalar::Uuid => (2950, 2951),
        Scalar::Bytea => (17, 1001),
        Scalar::Time => (1083, 1183),
    };
    match column.ty {
        ColumnType::One(_) => (one, modifier),
        ColumnType::Array(_) => (array, modifier),
    }
}

fn time_modifier(column: &Column, limits: &Limits) -> i32 {
    let digits = limits.second_digits.and_then(|digits| i32::try_from(digits).ok());
    if column.ty.scalar() != Scalar::Interval {
        return digits.unwrap_or(-1);
    }
    let fields = column.declared.strip_prefix("interval ");
    let fields = fields.map(|fields| fields.split('(').next().unwrap_or(fields));
    let mask = fields.and_then(|fields| INTERVAL_FIELDS.iter().find(|(words, _)| *words == fields));
    match (mask, digits) {
        (None, None) => -1,
        (mask, digits) => {
            mask.map_or(ALL_FIELDS, |(_, mask)| *mask) << 16 | digits.unwrap_or(ALL_DIGITS)
        }
    }
}

/// What a value that stands for a column is cast to, if SQL here has such a type; texts are read by
/// [`super::values`] otherwise.
pub fn cast_type(ty: ColumnType) -> Option<SqlType> {
    let ColumnType::One(scalar) = ty else { return None };
    Some(match scalar {
        Scalar::Bool => SqlType::Boolean,
        Scalar::Int2 => SqlType::SmallInt(None),
        Scalar::Int4 => SqlType::Int(None),
        Scalar::Int8 => SqlType::BigInt(None),
        Scalar::Float4 => SqlType::Real,
        Scalar::Float8 => SqlType::DoublePrecision,
        Scalar::Timestamptz => SqlType::Timestamp(None, TimezoneInfo::WithTimeZone),
        Scalar::Timestamp => SqlType::Timestamp(None, TimezoneInfo::None),
        Scalar::Date => SqlType::Date,
        _ => return None,
    })
}

/// What a client is told of a parameter that stands for a column.
pub fn parameter_type(column: &Column) -> DataType {
    match column.ty {
        ColumnType::One(Scalar::Jsonb) => JSONB_PARAMETER,
        ColumnType::One(Scalar::Numeric) => NUMERIC_PARAMETER,
        ColumnType::One(Scalar::Uuid) => UUID_PARAMETER,
        ColumnType::Array(Scalar::Jsonb) => DataType::new_list(JSONB_PARAMETER, true),
        ColumnType::Array(Scalar::Uuid) => DataType::new_list(UUID_PARAMETER, true),
        _ => field_of(column).data_type().clone(),
    }
}

/// Whether an expression is a number as it was written, and its digits.
pub fn number_of(expr: &Expr) -> Option<String> {
    use datafusion::sql::sqlparser::ast::{UnaryOperator, Value};
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number_of(expr)
            .filter(|digits| !digits.starts_with('-'))
            .map(|digits| format!("-{digits}")),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } | Expr::Nested(expr) => number_of(expr),
        _ => None,
    }
}
