//! Values on their way into a column: texts are read, numbers rounded, and what does not fit is refused,
//! by PostgreSQL's rules of assignment (<https://www.postgresql.org/docs/15/typeconv-query.html>).

use crate::tables::heap::columns::DIGITS_MAX;
use crate::types::error::SqlError;
use crate::types::json::jsonb;
use crate::types::json::jsonb::{check_json, no_json};
use crate::types::numeric::conversions::of_scalar as number_of_scalar;
use crate::types::numeric::value::Numeric;
use crate::types::special_fields::JSON;
use crate::types::text::array_literals::array_of;
use crate::types::text::bytea_text;
use crate::types::text::numbers::{Units, text_of, units_of};
use crate::types::text::shown::Length;
use crate::types::time::clock_precision::rounded;
use crate::types::time::instants::{clock_of, instant_of, time_of_day};
use crate::types::time::interval_limits;
use crate::types::time::interval_limits::FIELDS;
use crate::types::time::interval_texts::interval_text;
use crate::types::time::intervals::INTERVAL;
use crate::types::uuids::uuid_of;
use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalUnit};
use datafusion::common::{DataFusionError, ScalarValue};
use model::sample::NANOS_PER_MICRO;
use std::sync::Arc;
use tables::{Column, ColumnType, Datum, Interval, Scalar};

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;
/// Digits of a second that times have.
const MICRO_DIGITS: i64 = 6;
/// Bytes of a value that an error shows.
const SHOWN_SIZE_MAX: usize = 100;

/// What the declaration of a column's type says beside the type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most characters of a text.
    pub characters: Option<u64>,
    /// Whether the text is a `char(n)`: spaces at its end have no meaning.
    pub is_padded: bool,
    /// The digits of a second of a time.
    pub second_digits: Option<i64>,
    /// The last field of an interval, by its place in [`FIELDS`].
    pub last_field: Option<i64>,
    /// The digits of a number, and how many of them stand behind its point.
    pub digits: Option<(u8, i8)>,
    /// Whether the text of a `jsonb` stays as it was written: the type is `json`.
    pub is_json: bool,
}

impl Limits {
    /// Of a column.
    pub fn of(column: &Column) -> Limits {
        let inner = |name: &str| {
            let rest = column.declared.strip_prefix(name)?;
            rest.strip_prefix('(')?.strip_suffix(')')
        };
        let characters =
            inner("varchar").or_else(|| inner("char")).and_then(|one| one.parse().ok());
        let digits = inner("numeric").and_then(|both| {
            let (precision, scale) = both.split_once(',')?;
            Some((precision.parse().ok()?, scale.parse().ok()?))
        });
        let is_padded = inner("char").is_some();
        let is_time = ["time", "interval"].iter().any(|name| column.declared.starts_with(name));
        let second_digits = column.declared.strip_suffix(')').filter(|_| is_time);
        let second_digits = second_digits.and_then(|rest| rest.rsplit_once('(')?.1.parse().ok());
        let last_field = last_field(&column.declared);
        let is_json = column.declared == JSON;
        Limits { characters, is_padded, second_digits, last_field, digits, is_json }
    }
}

/// The last field of a type such as `interval day to minute`, by its place in [`FIELDS`].
fn last_field(declared: &str) -> Option<i64> {
    let fields = declared.strip_prefix("interval ")?;
    let last = fields.rsplit(' ').next()?;
    let last = last.split('(').next().unwrap_or(last).to_ascii_uppercase();
    FIELDS.iter().position(|field| *field == last).and_then(|at| i64::try_from(at).ok())
}

/// Rounds a time to the digits of its column, and cuts an interval behind the last field of its column.
pub fn with_precision(limits: &Limits, value: Datum) -> Datum {
    let digits = limits.second_digits.unwrap_or(MICRO_DIGITS);
    let round = |micros| rounded(micros, digits);
    match value {
        Datum::Timestamptz(micros) => Datum::Timestamptz(round(micros)),
        Datum::Timestamp(micros) => Datum::Timestamp(round(micros)),
        Datum::Time(micros) => Datum::Time(round(micros)),
        Datum::Interval(one) if limits.second_digits.is_some() || limits.last_field.is_some() => {
            let nanoseconds = one.micros.saturating_mul(NANOS_PER_MICRO);
            let whole = IntervalMonthDayNano::new(one.months, one.days, nanoseconds);
            let last_field = limits.last_field.unwrap_or(i64::MAX);
            let made = interval_limits::limited(whole, last_field, digits);
            let micros = made.nanoseconds / NANOS_PER_MICRO;
            Datum::Interval(Interval { months: made.months, days: made.days, micros })
        }
        other => other,
    }
}

/// How SQL calls a type, where it does so in full.
pub fn shown_type(ty: ColumnType) -> String {
    let name = match ty.scalar() {
        Scalar::Bool => "boolean",
        Scalar::Int2 => "smallint",
        Scalar::Int4 => "integer",
        Scalar::Int8 => "bigint",
        Scalar::Float4 => "real",
        Scalar::Float8 => "double precision",
        Scalar::Timestamptz => "timestamp with time zone",
        Scalar::Timestamp => "timestamp without time zone",
        Scalar::Time => "time without time zone",
        other => other.name(),
    };
    match ty {
        ColumnType::One(_) => name.to_string(),
        ColumnType::Array(_) => format!("{name}[]"),
    }
}

fn not_read(ty: ColumnType, text: &str) -> SqlError {
    let is_time = matches!(
        ty.scalar(),
        Scalar::Timestamptz | Scalar::Timestamp | Scalar::Date | Scalar::Time
    );
    let shown: String = text.chars().take(SHOWN_SIZE_MAX).collect();
    let is_of_digits = text.chars().all(|one| one.is_ascii_digit() || " -:.+".contains(one));
    if is_time && is_of_digits && !text.is_empty() {
        return SqlError::new("22008", format!("date/time field value out of range: \"{shown}\""));
    }
    let code = if is_time || ty.scalar() == Scalar::Interval { "22007" } else { "22P02" };
    let words = match ty {
        ColumnType::Array(_) => format!("malformed array literal: \"{shown}\""),
        ColumnType::One(_) => {
            format!("invalid input syntax for type {}: \"{shown}\"", shown_type(ty))
        }
    };
    SqlError::new(code, words)
}

fn out_of_range(ty: ColumnType) -> SqlError {
    SqlError::new("22003", format!("{} out of range", shown_type(ty)))
}

/// A text as a column has it.
///
/// # Errors
/// When it is none of its type.
pub fn read(column: &Column, text: &str) -> Result<Datum, SqlError> {
    let limits = Limits::of(column);
    match column.ty {
        ColumnType::One(scalar) => read_one(scalar, &limits, text),
        ColumnType::Array(scalar) => {
            let all = array_of(text).ok_or_else(|| not_read(column.ty, text))?;
            let read = |one: Option<String>| match one {
                Some(text) => read_one(scalar, &limits, &text),
                None => Ok(Datum::Null),
            };
            Ok(Datum::Array(all.into_iter().map(read).collect::<Result<_, _>>()?))
        }
    }
}

fn read_one(scalar: Scalar, limits: &Limits, text: &str) -> Result<Datum, SqlError> {
    read_scalar(scalar, limits, text).map(|value| with_precision(limits, value))
}

fn read_scalar(scalar: Scalar, limits: &Limits, text: &str) -> Result<Datum, SqlError> {
    let ty = ColumnType::One(scalar);
    let bad = || not_read(ty, text);
    let plain = text.trim();
    Ok(match scalar {
        Scalar::Bool => Datum::Bool(switch_of(plain).ok_or_else(bad)?),
        Scalar::Int2 | Scalar::Int4 | Scalar::Int8 => {
            let number = plain.strip_prefix('+').unwrap_or(plain);
            match number.parse::<i128>() {
                Ok(number) => whole(scalar, number)?,
                Err(_) => return Err(bad()),
            }
        }
        Scalar::Float4 | Scalar::Float8 => read_float(scalar, plain)?,
        Scalar::Numeric => numeric(limits, plain)?,
        Scalar::Text => Datum::Text(limited(limits, text)?),
        Scalar::Timestamptz => Datum::Timestamptz(instant_of(plain).ok_or_else(bad)?),
        Scalar::Timestamp => Datum::Timestamp(clock_of(plain).ok_or_else(bad)?),
        Scalar::Date => date(day_of(clock_of(plain).ok_or_else(bad)?))?,
        Scalar::Time => Datum::Time(time_of_day(plain).ok_or_else(bad)?),
        Scalar::Interval => {
            let text = ScalarValue::Utf8(Some(interval_text(plain)));
            of_other(&text.cast_to(&INTERVAL).map_err(|_| bad())?)?
        }
        Scalar::Jsonb if limits.is_json => {
            check_json(text, false)?;
            Datum::Jsonb(text.into())
        }
        Scalar::Jsonb => {
            let value = jsonb::parse(text).ok_or_else(|| no_json(text));
            Datum::Jsonb(jsonb::shown(&value?))
        }
        Scalar::Uuid => Datum::Uuid(uuid_of(plain).ok_or_else(bad)?),
        Scalar::Bytea => Datum::Bytea(bytea_text::read(text)?),
    })
}

/// `bool` by the words that PostgreSQL takes for one.
fn switch_of(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let begins = |word: &str, least: usize| least <= text.len() && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || text == "on" || text == "1" {
        return Some(true);
    }
    let is_off = begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0";
    is_off.then_some(false)
}

fn float_of(text: &str) -> Option<f64> {
    let is_number = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_word = ["nan", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    (is_number || is_word).then(|| text.parse().ok()).flatten()
}

/// A float, none of whose digits is lost altogether.
fn read_float(scalar: Scalar, text: &str) -> Result<Datum, SqlError> {
    let ty = ColumnType::One(scalar);
    let number = float_of(text).ok_or_else(|| not_read(ty, text))?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_written = mantissa.bytes().any(|byte| byte.is_ascii_digit());
    let is_zero = !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let is_lost =
        |is_infinite: bool, is_nothing: bool| is_written && (is_infinite || is_nothing && !is_zero);
    // Parsed by itself: a float of 64 bits in between would round twice.
    let narrow: f32 = text.parse().map_err(|_| not_read(ty, text))?;
    match scalar {
        Scalar::Float4 if !is_lost(narrow.is_infinite(), narrow == 0.0) => {
            Ok(Datum::Float4(narrow))
        }
        Scalar::Float8 if !is_lost(number.is_infinite(), number == 0.0) => {
            Ok(Datum::Float8(number))
        }
        _ => Err(out_of_range(ty)),
    }
}

/// A day that can be shown again.
pub fn date(day: i32) -> Result<Datum, SqlError> {
    match day {
        i32::MIN | i32::MAX => Err(SqlError::new("22008", "dates have no infinity here")),
        day => Ok(Datum::Date(day)),
    }
}

/// The day on which a moment is; the infinities stay.
fn day_of(micros: i64) -> i32 {
    match micros {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        micros => i32::try_from(micros.div_euclid(DAY_MICROS)).unwrap_or(i32::MAX),
    }
}

fn begin_of(day: i32) -> i64 {
    match day {
        i32::MIN => i64::MIN,
        i32::MAX => i64::MAX,
        day => i64::from(day).saturating_mul(DAY_MICROS),
    }
}

fn whole(scalar: Scalar, number: i128) -> Result<Datum, SqlError> {
    let too_large = |_| out_of_range(ColumnType::One(scalar));
    Ok(match scalar {
        Scalar::Int2 => Datum::Int2(i16::try_from(number).map_err(too_large)?),
        Scalar::Int4 => Datum::Int4(i32::try_from(number).map_err(too_large)?),
        _ => Datum::Int8(i64::try_from(number).map_err(too_large)?),
    })
}

/// A number of a column that says how many digits it keeps, or keeps all of them.
fn numeric(limits: &Limits, text: &str) -> Result<Datum, SqlError> {
    let ty = ColumnType::One(Scalar::Numeric);
    let lower = text.to_ascii_lowercase();
    if ["nan", "infinity", "-infinity", "inf", "-inf"].contains(&lower.as_str()) {
        return Err(SqlError::unsupported("numeric columns have no NaN and no infinity here"));
    }
    let Some((precision, scale)) = limits.digits else {
        return match Numeric::parse(text) {
            Ok(number) => Ok(Datum::Numeric(number.text())),
            Err(error) if error.code == "22P02" => Err(not_read(ty, text)),
            Err(error) => Err(SqlError { code: "22003", ..error }),
        };
    };
    match units_of(text, precision, scale) {
        Units::None => Err(not_read(ty, text)),
        Units::Exact(units) | Units::Rounded(units) => Ok(Datum::Numeric(text_of(units, scale))),
        Units::TooMany => {
            let words = format!(
                "numeric field overflow: a number of {precision} digits, {scale} of them behind the point"
            );
            Err(SqlError::new("22003", words))
        }
    }
}

/// Cuts spaces beyond the limit of a text, and refuses other characters there. A `char(n)` loses all spaces at its end.
fn limited(limits: &Limits, text: &str) -> Result<String, SqlError> {
    let Some(most) = limits.characters else { return Ok(text.to_string()) };
    let text = if limits.is_padded { text.trim_end_matches(' ') } else { text };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    match text.char_indices().nth(most) {
        None => Ok(text.to_string()),
        Some((end, _)) if text[end..].bytes().all(|byte| byte == b' ') => {
            Ok(text[..end].to_string())
        }
        Some(_) => {
            let name = if limits.is_padded { "character" } else { "character varying" };
            Err(SqlError::new("22001", format!("value too long for type {name}({most})")))
        }
    }
}

/// A value as somebody wrote it: of a number no digit is lost.
///
/// # Errors
/// As [`assign`].
pub fn assign_written(column: &Column, value: Datum) -> Result<Datum, SqlError> {
    match (column.ty, value) {
        (ColumnType::One(Scalar::Numeric), Datum::Numeric(digits)) => {
            numeric(&Limits::of(column), &digits)
        }
        (_, value) => assign(column, value),
    }
}

/// A value of whatever type as a column has it.
///
/// # Errors
/// When it is of another type, and when it is more than the column takes.
pub fn assign(column: &Column, value: Datum) -> Result<Datum, SqlError> {
    let limits = Limits::of(column);
    match (column.ty, value) {
        (_, Datum::Null) => Ok(Datum::Null),
        (ColumnType::Array(scalar), Datum::Array(all)) => {
            let one = |value| assign_one(column, scalar, &limits, value);
            Ok(Datum::Array(all.into_iter().map(one).collect::<Result<_, _>>()?))
        }
        (_, Datum::Text(text)) => read(column, &text),
        (ColumnType::One(scalar), value) => assign_one(column, scalar, &limits, value),
        (ColumnType::Array(_), value) => Err(wrong_type(column, &value)),
    }
}

fn wrong_type(column: &Column, value: &Datum) -> SqlError {
    let words = format!(
        "column \"{}\" is of type {} but expression is of type {}",
        column.name,
        shown_type(column.ty),
        value.scalar().map_or("array".to_string(), |one| shown_type(ColumnType::One(one)))
    );
    SqlError::new("42804", words)
}

fn assign_one(
    column: &Column,
    scalar: Scalar,
    limits: &Limits,
    value: Datum,
) -> Result<Datum, SqlError> {
    assign_scalar(column, scalar, limits, value).map(|value| with_precision(limits, value))
}

fn assign_scalar(
    column: &Column,
    scalar: Scalar,
    limits: &Limits,
    value: Datum,
) -> Result<Datum, SqlError> {
    let ty = ColumnType::One(scalar);
    Ok(match (scalar, value) {
        (_, Datum::Null) => Datum::Null,
        (_, Datum::Text(text)) => read_one(scalar, limits, &text)?,
        (Scalar::Int2 | Scalar::Int4 | Scalar::Int8, value) => {
            let number = whole_of(&value).ok_or_else(|| wrong_type(column, &value))?;
            whole(scalar, number.map_err(|()| out_of_range(ty))?)?
        }
        (Scalar::Float4 | Scalar::Float8, Datum::Numeric(digits)) => {
            match read_float(scalar, &digits)? {
                // A `numeric` has no zero with a sign.
                Datum::Float4(0.0) => Datum::Float4(0.0),
                Datum::Float8(0.0) => Datum::Float8(0.0),
                other => other,
            }
        }
        (Scalar::Float4 | Scalar::Float8, value) => {
            let number = number_of(&value).ok_or_else(|| wrong_type(column, &value))?;
            match scalar {
                Scalar::Float4 if number.is_finite() && (number as f32).is_infinite() => {
                    return Err(out_of_range(ty));
                }
                Scalar::Float4 => Datum::Float4(number as f32),
                _ => Datum::Float8(number),
            }
        }
        (Scalar::Numeric, Datum::Numeric(text)) => numeric(limits, &text)?,
        (Scalar::Numeric, value) => match (&value, number_of(&value)) {
            (Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_), _) => {
                numeric(limits, &value.to_string())?
            }
            // PostgreSQL takes as many digits of a float.
            (_, Some(number)) => numeric(limits, &Numeric::of_f64(number)?.text())?,
            (_, None) => return Err(wrong_type(column, &value)),
        },
        (Scalar::Text, value) => limited(limits, &shown(&value)).map(Datum::Text)?,
        (Scalar::Timestamptz, Datum::Timestamptz(at) | Datum::Timestamp(at)) => {
            Datum::Timestamptz(at)
        }
        (Scalar::Timestamp, Datum::Timestamptz(at) | Datum::Timestamp(at)) => Datum::Timestamp(at),
        (Scalar::Date, Datum::Timestamptz(at) | Datum::Timestamp(at)) => date(day_of(at))?,
        (Scalar::Date, Datum::Date(day)) => date(day)?,
        (Scalar::Timestamptz, Datum::Date(day)) => Datum::Timestamptz(begin_of(day)),
        (Scalar::Timestamp, Datum::Date(day)) => Datum::Timestamp(begin_of(day)),
        (Scalar::Time, Datum::Timestamp(at) | Datum::Timestamptz(at)) => {
            Datum::Time(at.rem_euclid(DAY_MICROS))
        }
        (Scalar::Time, Datum::Interval(one)) => Datum::Time(one.micros.rem_euclid(DAY_MICROS)),
        (Scalar::Interval, Datum::Time(micros)) => {
            Datum::Interval(Interval { months: 0, days: 0, micros })
        }
        (_, value) if value.scalar() == Some(scalar) => value,
        (_, value) => return Err(wrong_type(column, &value)),
    })
}

/// A value as a text column keeps it.
fn shown(value: &Datum) -> String {
    match value {
        Datum::Bool(true) => "true".to_string(),
        Datum::Bool(false) => "false".to_string(),
        Datum::Float4(number) => crate::types::text::shown::short(*number),
        Datum::Float8(number) => crate::types::text::shown::float(*number),
        Datum::Timestamptz(micros) => crate::types::text::shown::instant(*micros, "+00"),
        Datum::Timestamp(micros) => crate::types::text::shown::instant(*micros, ""),
        Datum::Interval(one) => crate::types::text::shown::interval(Length {
            months: one.months,
            days: one.days,
            micros: one.micros,
        }),
        Datum::Array(all) => {
            let elements: Vec<String> = all.iter().map(element).collect();
            format!("{{{}}}", elements.join(","))
        }
        other => other.to_string(),
    }
}

/// Arrays in text.
///
/// # Errors
/// When an element is nothing that a column may have.
pub fn array_texts(array: &ArrayRef) -> Result<ArrayRef, SqlError> {
    if let DataType::List(of) = array.data_type()
        && of.data_type().is_integer()
    {
        return number_lists(array);
    }
    let text = |row| -> Result<Option<String>, SqlError> {
        let value = of_array(array, row)?;
        Ok((value != Datum::Null).then(|| shown(&value)))
    };
    let texts: StringViewArray = (0..array.len()).map(text).collect::<Result<_, _>>()?;
    Ok(Arc::new(texts))
}

/// Lists of whole numbers in text, without a value of its own for each.
fn number_lists(array: &ArrayRef) -> Result<ArrayRef, SqlError> {
    let text = |list: ArrayRef| -> Result<String, SqlError> {
        let wide = cast(&list, &DataType::Int64).map_err(DataFusionError::from)?;
        let mut out = String::from("{");
        for (at, number) in wide.as_primitive::<Int64Type>().iter().enumerate() {
            if 0 < at {
                out.push(',');
            }
            match number {
                Some(number) => out.push_str(&number.to_string()),
                None => out.push_str("NULL"),
            }
        }
        out.push('}');
        Ok(out)
    };
    let lists = array.as_list::<i32>().iter();
    let texts: StringViewArray =
        lists.map(|list| list.map(text).transpose()).collect::<Result<_, SqlError>>()?;
    Ok(Arc::new(texts))
}

/// An element of an array in text, between quotes if it needs them.
fn element(value: &Datum) -> String {
    let text = match value {
        Datum::Null => return "NULL".to_string(),
        Datum::Bool(_) => return value.to_string(),
        // An array within is none that needs quotes.
        Datum::Array(_) => return shown(value),
        other => shown(other),
    };
    let is_plain = !text.is_empty()
        && !text.eq_ignore_ascii_case("null")
        && !text.contains(|one: char| one.is_whitespace() || "{},\"\\".contains(one));
    match is_plain {
        true => text,
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// A whole number, or what rounds to one; none of what is no number.
fn whole_of(value: &Datum) -> Option<Result<i128, ()>> {
    Some(match value {
        Datum::Int2(number) => Ok(i128::from(*number)),
        Datum::Int4(number) => Ok(i128::from(*number)),
        Datum::Int8(number) => Ok(i128::from(*number)),
        Datum::Float4(_) | Datum::Float8(_) => {
            let rounded = number_of(value)?.round_ties_even();
            // All that a column takes is below.
            match rounded.abs() < 1e30 {
                true => Ok(rounded as i128),
                false => Err(()),
            }
        }
        Datum::Numeric(text) => match units_of(text, DIGITS_MAX, 0) {
            Units::Exact(units) | Units::Rounded(units) => Ok(units),
            Units::TooMany | Units::None => Err(()),
        },
        _ => return None,
    })
}

fn number_of(value: &Datum) -> Option<f64> {
    Some(match value {
        Datum::Int2(number) => f64::from(*number),
        Datum::Int4(number) => f64::from(*number),
        Datum::Int8(number) => *number as f64,
        Datum::Float4(number) => f64::from(*number),
        Datum::Float8(number) => *number,
        Datum::Numeric(text) => text.parse().ok()?,
        _ => return None,
    })
}

/// A value of a query's answer.
///
/// # Errors
/// When no column may have it.
pub fn of_array(array: &dyn Array, row: usize) -> Result<Datum, SqlError> {
    if array.is_null(row) {
        return Ok(Datum::Null);
    }
    if let Some(list) = array.as_list_opt::<i32>() {
        let all = list.value(row);
        let each = (0..all.len()).map(|at| of_array(&all, at));
        return Ok(Datum::Array(each.collect::<Result<_, _>>()?));
    }
    let value = ScalarValue::try_from_array(array, row)?;
    of_scalar(&value)
}

/// A parameter's value, or one of a query's answer.
///
/// # Errors
/// When no column may have it.
pub fn of_scalar(value: &ScalarValue) -> Result<Datum, SqlError> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    Ok(match value {
        ScalarValue::Boolean(Some(yes)) => Datum::Bool(*yes),
        ScalarValue::Int8(Some(number)) => Datum::Int2(i16::from(*number)),
        ScalarValue::UInt8(Some(number)) => Datum::Int2(i16::from(*number)),
        ScalarValue::Int16(Some(number)) => Datum::Int2(*number),
        ScalarValue::UInt16(Some(number)) => Datum::Int4(i32::from(*number)),
        ScalarValue::Int32(Some(number)) => Datum::Int4(*number),
        ScalarValue::UInt32(Some(number)) => Datum::Int8(i64::from(*number)),
        ScalarValue::Int64(Some(number)) => Datum::Int8(*number),
        ScalarValue::UInt64(Some(number)) => Datum::Numeric(number.to_string()),
        ScalarValue::Float32(Some(number)) => Datum::Float4(*number),
        ScalarValue::Float64(Some(number)) => Datum::Float8(*number),
        decimal if let Some(number) = number_of_scalar(decimal) => Datum::Numeric(number?.text()),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => Datum::Text(text.clone()),
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes)) => Datum::Bytea(bytes.clone()),
        ScalarValue::Date32(Some(day)) => Datum::Date(*day),
        ScalarValue::Time64Microsecond(Some(micros)) => Datum::Time(*micros),
        ScalarValue::Time64Nanosecond(Some(nanos)) => Datum::Time(nanos / NANOS_PER_MICRO),
        ScalarValue::List(list) => return of_array(list.as_ref(), 0),
        other => return of_other(other),
    })
}

fn of_other(value: &ScalarValue) -> Result<Datum, SqlError> {
    use datafusion::arrow::datatypes::TimeUnit;
    let unknown = |_| {
        let words = format!("a value of type {} cannot be stored", value.data_type());
        SqlError::new("42804", words)
    };
    match value.data_type() {
        DataType::Timestamp(_, zone) => {
            let wanted = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            match value.cast_to(&wanted).map_err(unknown)? {
                ScalarValue::TimestampMicrosecond(Some(micros), Some(_)) => {
                    Ok(Datum::Timestamptz(micros))
                }
                ScalarValue::TimestampMicrosecond(Some(micros), None) => {
                    Ok(Datum::Timestamp(micros))
                }
                _ => Ok(Datum::Null),
            }
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            let wanted = DataType::Interval(IntervalUnit::MonthDayNano);
            match value.cast_to(&wanted).map_err(unknown)? {
                ScalarValue::IntervalMonthDayNano(Some(one)) => Ok(Datum::Interval(Interval {
                    months: one.months,
                    days: one.days,
                    micros: one.nanoseconds / NANOS_PER_MICRO,
                })),
                _ => Ok(Datum::Null),
            }
        }
        _ => Err(SqlError::new(
            "42804",
            format!("a value of type {} cannot be stored", value.data_type()),
        )),
    }
}

/// Bytes that a row takes in memory, about.
pub fn row_size(row: &[Datum]) -> usize {
    let inner = |value: &Datum| match value {
        Datum::Text(text) | Datum::Jsonb(text) | Datum::Numeric(text) | Datum::Uuid(text) => {
            text.len()
        }
        Datum::Bytea(bytes) => bytes.len(),
        Datum::Array(all) => row_size(all),
        _ => 0,
    };
    size_of::<Vec<Datum>>()
        + row.iter().map(|value| size_of::<Datum>() + inner(value)).sum::<usize>()
}
