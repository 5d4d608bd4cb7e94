//! Values that a client binds to `$1`, `$2`, ...

use super::answers::{error, is_binary};
use crate::statements::prepared::{Described, Prepared};
use model::sample::NANOS_PER_MICRO;
use pgwire::api::Type;
use pgwire::api::portal::{Format, Portal};
use pgwire::error::{PgWireError, PgWireResult};
use sql::datafusion::arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, IntervalUnit, TimeUnit,
};
use sql::datafusion::common::{DataFusionError, ScalarValue};
use sql::{Declared, SqlError, ZONE};
use std::sync::Arc;

/// Microseconds from 1970 to 2000, from which PostgreSQL counts.
const EPOCH_US: i64 = 946_684_800_000_000;
/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;
/// Digits of a number in arrow's 128 bits.
const DIGITS_MAX: u8 = 38;
/// From 1970 to 2000 in days.
const EPOCH_DAYS: i32 = 10_957;

/// What a client says of the types of parameters: of texts nothing, which may stand for anything.
pub fn declared(types: &[Option<Type>]) -> Declared {
    let known = Declared::new(types.iter().map(|one| match one.as_ref()? {
        &Type::NUMERIC => Some(sql::NUMERIC),
        one => arrow_type(one).filter(|one| !one.is_string()),
    }));
    known.with_specials(types.iter().map(|one| match *one.as_ref()? {
        Type::UUID => Some(sql::UUID),
        Type::JSONB => Some(sql::JSONB),
        Type::JSON => Some(sql::JSON),
        Type::VARCHAR => Some(sql::VARCHAR),
        Type::BPCHAR => Some(sql::BPCHAR),
        _ => None,
    }))
}

/// The types of a statement's parameters, in order.
pub fn types(described: &Described) -> PgWireResult<Vec<Type>> {
    let pg_type = |known: &Option<DataType>| known.as_ref().map_or(Ok(Type::TEXT), type_of);
    described.parameters.iter().map(pg_type).collect()
}

/// The type of a parameter for which a statement wants an arrow type.
fn type_of(wanted: &DataType) -> PgWireResult<Type> {
    Ok(match wanted {
        &sql::JSONB_PARAMETER => Type::JSONB,
        &(sql::NUMERIC_PARAMETER | sql::NUMERIC) => Type::NUMERIC,
        &sql::UUID_PARAMETER => Type::UUID,
        known if sql::is_oids_parameter(known) => Type::OID_ARRAY,
        DataType::List(of) => match of.data_type() {
            &sql::JSONB_PARAMETER => Type::JSONB_ARRAY,
            &sql::UUID_PARAMETER => Type::UUID_ARRAY,
            of if of.is_decimal() => Type::NUMERIC_ARRAY,
            _ => arrow_pg::datatypes::into_pg_type(wanted)?,
        },
        known => arrow_pg::datatypes::into_pg_type(known)?,
    })
}

/// Whether what was bound is as many values as the statement wants, in formats for each of them.
///
/// # Errors
/// When it is not.
pub fn check(portal: &Portal<Prepared>) -> PgWireResult<()> {
    let wanted = match &portal.statement.statement {
        Prepared::Query(described) => described.parameters.len(),
        Prepared::Other(_) => 0,
    };
    let given = portal.parameters.len();
    if given != wanted {
        let words = format!(
            "bind message supplies {given} parameters, but prepared statement \"{}\" requires \
             {wanted}",
            portal.statement.id
        );
        return Err(error("08P01", words));
    }
    match &portal.parameter_format {
        Format::Individual(formats) if formats.len() != given => {
            let words = format!(
                "bind message has {} parameter formats but {given} parameters",
                formats.len()
            );
            Err(error("08P01", words))
        }
        _ => Ok(()),
    }
}

/// The values that were bound, in order: of the type that the client declared, or else of the one
/// that the statement wants.
///
/// # Errors
/// When one cannot be read.
pub fn values(described: &Described, portal: &Portal<Prepared>) -> PgWireResult<Vec<ScalarValue>> {
    let declared = &portal.statement.parameter_types;
    let value = |(at, wanted): (usize, &Option<DataType>)| {
        let declared = declared.get(at).cloned().flatten();
        let declared = declared.filter(|one| *one != Type::UNKNOWN);
        let bytes = portal.parameters.get(at).and_then(Option::as_deref);
        check_type(at, declared.as_ref(), wanted.as_ref())?;
        let value = match bytes {
            None => return null(declared.as_ref(), wanted.as_ref()).map_err(wrong(at)),
            Some(bytes) if is_binary(&portal.parameter_format, at) => {
                binary(at, bytes, declared.as_ref(), wanted.as_ref())
            }
            Some(bytes) => plain(at, bytes, declared.as_ref(), wanted.as_ref()),
        };
        checked(declared.as_ref(), value?)
    };
    described.parameters.iter().enumerate().map(value).collect()
}

/// Whether a value of a declared type may stand where another is wanted: numbers are no times.
fn check_type(at: usize, declared: Option<&Type>, wanted: Option<&DataType>) -> PgWireResult<()> {
    let Some((declared, wanted)) = declared.zip(wanted) else { return Ok(()) };
    let is_number =
        arrow_type(declared).is_some_and(|one| one.is_numeric() || one == DataType::Boolean);
    let is_time = matches!(
        wanted,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Interval(_) | DataType::Duration(_)
    );
    if is_number && is_time {
        let wanted = arrow_pg::datatypes::into_pg_type(wanted)?;
        let words =
            format!("parameter ${} is of type {declared}, where {wanted} is wanted", at + 1);
        return Err(error("42804", words));
    }
    Ok(())
}

/// Whether values of a wanted type come as text, with all that it says.
fn is_text(wanted: &DataType) -> bool {
    [sql::JSONB_PARAMETER, sql::NUMERIC_PARAMETER, sql::UUID_PARAMETER].contains(wanted)
}

/// Returns the arrow type of a bound value: clients send some types, and arrays of them, as text.
fn bound_type(wanted: &DataType) -> Option<DataType> {
    match wanted {
        DataType::List(of) if is_text(of.data_type()) => {
            Some(DataType::new_list(DataType::Utf8View, true))
        }
        wanted => (!is_text(wanted)).then(|| wanted.clone()),
    }
}

fn null(
    declared: Option<&Type>,
    wanted: Option<&DataType>,
) -> Result<ScalarValue, DataFusionError> {
    if wanted == Some(&sql::NUMERIC) {
        return ScalarValue::try_from(&sql::NUMERIC);
    }
    let known = declared.and_then(arrow_type).or_else(|| wanted.and_then(bound_type));
    known.map_or(Ok(ScalarValue::Null), |known| ScalarValue::try_from(&known))
}

fn wrong<E: std::fmt::Display>(at: usize) -> impl Fn(E) -> PgWireError {
    move |failure| error("22P02", format!("parameter ${}: {failure}", at + 1))
}

/// A text that is no value of a type, with the code that a literal of it has.
fn not_of_type(at: usize) -> impl Fn(DataFusionError) -> PgWireError {
    move |failure| {
        let known = SqlError::from(failure);
        let code = if known.code == "XX000" { "22P02" } else { known.code };
        error(code, format!("parameter ${}: {}", at + 1, known.message))
    }
}

/// The error of a text that is no time or date.
fn wrong_time(at: usize, text: &str, name: &str) -> PgWireError {
    let failure = sql::wrong_time(text, name);
    error(failure.code, format!("parameter ${}: {}", at + 1, failure.message))
}

/// A value that was declared as JSON and is such.
fn checked(declared: Option<&Type>, value: ScalarValue) -> PgWireResult<ScalarValue> {
    let is_jsonb = declared == Some(&Type::JSONB);
    if let Some(Some(text)) = value.try_as_str()
        && (is_jsonb || declared == Some(&Type::JSON))
    {
        sql::check_json(text, is_jsonb).map_err(super::answers::of_sql)?;
    }
    Ok(value)
}

/// A value in text.
fn plain(
    at: usize,
    bytes: &[u8],
    declared: Option<&Type>,
    wanted: Option<&DataType>,
) -> PgWireResult<ScalarValue> {
    let text = std::str::from_utf8(bytes);
    let text =
        text.map_err(|failure| error("22021", format!("parameter ${}: {failure}", at + 1)))?;
    if wanted == Some(&sql::NUMERIC) {
        return sql::numeric_value(text).map_err(super::answers::of_sql);
    }
    if let Some(read) = special_list(at, text, declared, wanted) {
        return read;
    }
    let bound = wanted.and_then(bound_type);
    let wanted = bound.as_ref();
    let is_numeric = declared == Some(&Type::NUMERIC);
    // With all its digits, where a text is to have it.
    if is_numeric && wanted.is_some_and(DataType::is_string) {
        return Ok(ScalarValue::from(text.trim()));
    }
    let is_exact = match wanted {
        Some(DataType::Decimal128(..)) => declared.is_none() || is_numeric,
        Some(wanted) => wanted.is_integer() && is_numeric,
        None => false,
    };
    if let Some(decimal) = is_exact.then(|| decimal(text)).flatten() {
        return Ok(decimal);
    }
    let target = match declared {
        Some(declared) if *declared != Type::NUMERIC || wanted.is_some() => arrow_type(declared),
        _ => None,
    };
    let target = target.or_else(|| wanted.cloned());
    if let Some(read) = limited(text, declared, target.as_ref()) {
        return read;
    }
    match target {
        Some(target) => plain_of_type(at, text, &target),
        None => Ok(ScalarValue::from(text)),
    }
}

/// A text as a value of a type.
fn plain_of_type(at: usize, text: &str, target: &DataType) -> PgWireResult<ScalarValue> {
    match target {
        DataType::List(of) => array(at, text, of.data_type()),
        DataType::Timestamp(_, zone) => {
            let read = if zone.is_some() { sql::instant_of } else { sql::clock_of };
            let name = match zone {
                Some(_) => "timestamp with time zone",
                None => "timestamp",
            };
            let micros = read(text).ok_or_else(|| wrong_time(at, text, name))?;
            Ok(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()))
        }
        DataType::Date32 => match sql::date_of_text(text) {
            Some(days) => Ok(ScalarValue::Date32(Some(days))),
            None if text.trim().starts_with("0000-") => Err(wrong_time(at, text, "date")),
            None => {
                let read = ScalarValue::from(text).cast_to(&DataType::Date32);
                read.map_err(|_| wrong_time(at, text, "date"))
            }
        },
        DataType::Time64(_) => time(at, text),
        DataType::Binary => {
            let read = sql::bytea::read(text).map_err(super::answers::of_sql)?;
            Ok(ScalarValue::Binary(Some(read)))
        }
        target if *target == sql::NUMERIC => {
            sql::numeric_value(text).map_err(super::answers::of_sql)
        }
        target => {
            let text = match target {
                DataType::Interval(_) => sql::interval_text(text),
                _ => text.to_string(),
            };
            ScalarValue::from(text).cast_to(target).map_err(not_of_type(at))
        }
    }
}

/// An array in text.
fn array(at: usize, text: &str, of: &DataType) -> PgWireResult<ScalarValue> {
    let elements = sql::array_of(text)
        .ok_or_else(|| error("22P02", format!("parameter ${}: malformed array literal", at + 1)))?;
    let read = |one: Option<String>| match (one, of) {
        (Some(text), of) => plain_of_type(at, &text, of),
        (None, of) => ScalarValue::try_from(of).map_err(wrong(at)),
    };
    let elements = elements.into_iter().map(read).collect::<PgWireResult<Vec<_>>>()?;
    Ok(list(&elements, of))
}

/// Reads an array of `uuid` or of `jsonb` in text. Returns none for other types.
fn special_list(
    at: usize,
    text: &str,
    declared: Option<&Type>,
    wanted: Option<&DataType>,
) -> Option<PgWireResult<ScalarValue>> {
    let elements = match wanted {
        Some(DataType::List(of)) if declared.is_none() => Some(of.data_type()),
        _ => None,
    };
    let is_wanted = |of: &DataType| elements == Some(of);
    let read: fn(&str) -> Result<String, SqlError> = match declared {
        Some(&Type::UUID_ARRAY) => sql::read_uuid,
        Some(&Type::JSONB_ARRAY) => sql::read_jsonb,
        _ if is_wanted(&sql::UUID_PARAMETER) => sql::read_uuid,
        _ if is_wanted(&sql::JSONB_PARAMETER) => sql::read_jsonb,
        _ => return None,
    };
    let malformed = || error("22P02", format!("parameter ${}: malformed array literal", at + 1));
    let value = |one: Option<String>| -> PgWireResult<ScalarValue> {
        let read = one.map(|one| read(&one)).transpose().map_err(super::answers::of_sql)?;
        Ok(ScalarValue::Utf8View(read))
    };
    let read = sql::array_of(text).ok_or_else(malformed).and_then(|elements| {
        let elements = elements.into_iter().map(value).collect::<PgWireResult<Vec<_>>>()?;
        Ok(list(&elements, &DataType::Utf8View))
    });
    Some(read)
}

/// A `uuid` in text, and a float that its type has no room for; none of others.
fn limited(
    text: &str,
    declared: Option<&Type>,
    target: Option<&DataType>,
) -> Option<PgWireResult<ScalarValue>> {
    if let Some(to @ (DataType::Float32 | DataType::Float64)) = target
        && sql::is_float_out_of_range(text, to)
    {
        let name = if *to == DataType::Float32 { "real" } else { "double precision" };
        let words = format!("\"{}\" is out of range for type {name}", text.trim());
        return Some(Err(error("22003", words)));
    }
    if declared != Some(&Type::UUID) {
        return None;
    }
    let uuid = sql::uuid_of(text).map(|uuid| ScalarValue::Utf8View(Some(uuid)));
    let words = || format!("invalid input syntax for type uuid: \"{text}\"");
    Some(uuid.ok_or_else(|| error("22P02", words())))
}

/// A time of day in text.
fn time(at: usize, text: &str) -> PgWireResult<ScalarValue> {
    let micros = sql::time_of_day(text).ok_or_else(|| {
        let words = format!("parameter ${}: invalid input syntax for type time: {text:?}", at + 1);
        error("22007", words)
    })?;
    Ok(ScalarValue::Time64Microsecond(Some(micros)))
}

/// A number with all its digits, where they are no more than arrow has room for.
fn decimal(text: &str) -> Option<ScalarValue> {
    let unsigned = text.trim_start_matches(['-', '+']);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (digits, scale) = (whole.len() + fraction.len(), fraction.len());
    let precision = u8::try_from(digits.max(1)).ok().filter(|digits| *digits <= DIGITS_MAX)?;
    let wanted = DataType::Decimal128(precision, i8::try_from(scale).ok()?);
    ScalarValue::from(text).cast_to(&wanted).ok()
}

fn list(elements: &[ScalarValue], of: &DataType) -> ScalarValue {
    ScalarValue::List(ScalarValue::new_list(elements, of, true))
}

/// A value in binary, of the type declared, or else of the one wanted.
fn binary(
    at: usize,
    bytes: &[u8],
    declared: Option<&Type>,
    wanted: Option<&DataType>,
) -> PgWireResult<ScalarValue> {
    let pg_type = match (declared, wanted) {
        (Some(declared), _) => declared.clone(),
        (None, Some(wanted)) => type_of(wanted)?,
        (None, None) => Type::TEXT,
    };
    let value = match element_of(&pg_type) {
        // With all its digits, where a column of such numbers is to have it.
        None if pg_type == Type::NUMERIC && wanted == Some(&sql::NUMERIC_PARAMETER) => {
            sql::ordinary::numeric_text(bytes).map(ScalarValue::from)
        }
        None if pg_type == Type::NUMERIC && wanted == Some(&sql::NUMERIC) => {
            let text = sql::ordinary::numeric_text(bytes);
            let value = text.map(|text| sql::numeric_value(&text));
            value.transpose().map_err(super::answers::of_sql)?
        }
        None if pg_type == Type::NUMERIC && wanted.is_some_and(DataType::is_string) => {
            sql::ordinary::numeric_text(bytes).map(ScalarValue::from)
        }
        // It is rounded where it is to be a whole number.
        None if pg_type == Type::NUMERIC
            && wanted.is_some_and(|one| one.is_decimal() || one.is_integer()) =>
        {
            let text = sql::ordinary::plain_numeric_text(bytes);
            let exact = text.and_then(|text| decimal(&text));
            exact.or_else(|| scalar(&pg_type, bytes))
        }
        Some(of) => elements(bytes).and_then(|all| {
            let target = arrow_element_type(&of)?;
            let read = |one: &Option<&[u8]>| match one {
                Some(bytes) if of == Type::NUMERIC => {
                    sql::numeric_value(&sql::ordinary::numeric_text(bytes)?).ok()
                }
                Some(bytes) => scalar(&of, bytes)?.cast_to(&target).ok(),
                None => ScalarValue::try_from(&target).ok(),
            };
            let all: Option<Vec<ScalarValue>> = all.iter().map(read).collect();
            Some(list(&all?, &target))
        }),
        None => scalar(&pg_type, bytes),
    };
    value.ok_or_else(|| {
        let words =
            format!("incorrect binary data format in bind parameter {} ({pg_type})", at + 1);
        error("22P03", words)
    })
}

/// The arrow type of a type that clients declare.
fn arrow_type(pg_type: &Type) -> Option<DataType> {
    Some(match *pg_type {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 | Type::OID => DataType::Int32,
        Type::INT8 => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 | Type::NUMERIC => DataType::Float64,
        Type::DATE => DataType::Date32,
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        Type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        Type::TIME => DataType::Time64(TimeUnit::Microsecond),
        Type::TEXT | Type::VARCHAR | Type::NAME | Type::BPCHAR | Type::JSON | Type::JSONB => {
            DataType::Utf8View
        }
        Type::UUID => DataType::Utf8View,
        Type::BYTEA => DataType::Binary,
        _ => {
            let of = arrow_element_type(&element_of(pg_type)?)?;
            DataType::List(Arc::new(Field::new_list_field(of, true)))
        }
    })
}

/// The arrow type of the elements of an array.
fn arrow_element_type(pg_type: &Type) -> Option<DataType> {
    if *pg_type == Type::NUMERIC { Some(sql::NUMERIC) } else { arrow_type(pg_type) }
}

/// What an array is made of.
pub fn element_of(pg_type: &Type) -> Option<Type> {
    Some(match *pg_type {
        Type::BOOL_ARRAY => Type::BOOL,
        Type::INT2_ARRAY => Type::INT2,
        Type::INT4_ARRAY => Type::INT4,
        Type::OID_ARRAY => Type::OID,
        Type::INT8_ARRAY => Type::INT8,
        Type::FLOAT4_ARRAY => Type::FLOAT4,
        Type::FLOAT8_ARRAY => Type::FLOAT8,
        Type::NUMERIC_ARRAY => Type::NUMERIC,
        Type::DATE_ARRAY => Type::DATE,
        Type::TIMESTAMP_ARRAY => Type::TIMESTAMP,
        Type::TIMESTAMPTZ_ARRAY => Type::TIMESTAMPTZ,
        Type::BYTEA_ARRAY => Type::BYTEA,
        Type::INTERVAL_ARRAY => Type::INTERVAL,
        Type::JSON_ARRAY => Type::JSON,
        Type::JSONB_ARRAY => Type::JSONB,
        Type::TIME_ARRAY => Type::TIME,
        Type::UUID_ARRAY => Type::UUID,
        Type::TEXT_ARRAY | Type::VARCHAR_ARRAY | Type::NAME_ARRAY | Type::BPCHAR_ARRAY => {
            Type::TEXT
        }
        _ => return None,
    })
}

fn scalar(pg_type: &Type, bytes: &[u8]) -> Option<ScalarValue> {
    Some(match *pg_type {
        Type::BOOL => ScalarValue::Boolean(Some(bytes.first()? != &0)),
        Type::INT2 => ScalarValue::Int16(Some(i16::from_be_bytes(bytes.try_into().ok()?))),
        Type::INT4 | Type::OID => {
            ScalarValue::Int32(Some(i32::from_be_bytes(bytes.try_into().ok()?)))
        }
        Type::INT8 => ScalarValue::Int64(Some(i64::from_be_bytes(bytes.try_into().ok()?))),
        Type::FLOAT4 => ScalarValue::Float32(Some(f32::from_be_bytes(bytes.try_into().ok()?))),
        Type::FLOAT8 => ScalarValue::Float64(Some(f64::from_be_bytes(bytes.try_into().ok()?))),
        Type::NUMERIC => ScalarValue::Float64(Some(numeric(bytes)?)),
        Type::DATE => {
            let days = i32::from_be_bytes(bytes.try_into().ok()?).checked_add(EPOCH_DAYS)?;
            ScalarValue::Date32(Some(days))
        }
        Type::TIMESTAMPTZ | Type::TIMESTAMP => {
            let micros = i64::from_be_bytes(bytes.try_into().ok()?).checked_add(EPOCH_US)?;
            let zone = (*pg_type == Type::TIMESTAMPTZ).then(|| ZONE.into());
            ScalarValue::TimestampMicrosecond(Some(micros), zone)
        }
        Type::TIME => {
            let micros = Some(i64::from_be_bytes(bytes.try_into().ok()?));
            let micros = micros.filter(|micros| (0..=DAY_US).contains(micros))?;
            ScalarValue::Time64Microsecond(Some(micros))
        }
        Type::INTERVAL => {
            let (micros, rest) = bytes.split_first_chunk()?;
            let (days, months) = rest.split_first_chunk()?;
            let nanos = i64::from_be_bytes(*micros).checked_mul(NANOS_PER_MICRO)?;
            let (days, months) =
                (i32::from_be_bytes(*days), i32::from_be_bytes(months.try_into().ok()?));
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos)))
        }
        Type::UUID => {
            let hex: String = <[u8; 16]>::try_from(bytes)
                .ok()?
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
            ScalarValue::Utf8(Some(parts.join("-")))
        }
        Type::BYTEA => ScalarValue::Binary(Some(bytes.to_vec())),
        // A version stands before it.
        Type::JSONB => text(bytes.strip_prefix(&[1])?)?,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::UNKNOWN | Type::JSON | Type::NAME => {
            text(bytes)?
        }
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> Option<ScalarValue> {
    Some(ScalarValue::Utf8(Some(std::str::from_utf8(bytes).ok()?.to_string())))
}

/// A decimal number as the nearest float.
fn numeric(bytes: &[u8]) -> Option<f64> {
    // Rust reads decimal text to the nearest number.
    sql::ordinary::numeric_text(bytes)?.parse().ok()
}

/// The elements of an array of one dimension: `[dimensions i32][has nulls i32][type u32]`, then
/// `[count i32][first i32]`, then `[size i32][bytes]` each, -1 for null.
fn elements(bytes: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let mut rest = bytes;
    let mut number = || -> Option<i32> {
        let (head, tail) = rest.split_first_chunk()?;
        rest = tail;
        Some(i32::from_be_bytes(*head))
    };
    let (dimensions, _, _) = (number()?, number()?, number()?);
    if dimensions == 0 {
        return Some(Vec::new());
    }
    let (count, _) = (number()?, number()?);
    if dimensions != 1 || bytes.len() / 4 < usize::try_from(count).ok()? {
        return None;
    }
    let mut all = Vec::new();
    for _ in 0..count {
        let (head, tail) = rest.split_first_chunk()?;
        rest = tail;
        match usize::try_from(i32::from_be_bytes(*head)) {
            Ok(size) => {
                let (one, tail) = rest.split_at_checked(size)?;
                rest = tail;
                all.push(Some(one));
            }
            Err(_) => all.push(None),
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_decimal() {
        // 12345.678 is 1, 2345, 6780 with weight 1.
        let mut bytes = Vec::new();
        for field in [3u16, 1, 0, 3, 1, 2345, 6780] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        assert_eq!(numeric(&bytes), Some(12345.678));
        assert_eq!(numeric(&bytes[..12]), None);
        assert_eq!(numeric(&[0, 0, 0, 0, 0, 0, 0, 0]), Some(0.0));
    }

    #[test]
    fn arrays_that_are_cut_short_are_none() {
        let mut bytes = Vec::new();
        for field in [1i32, 0, 25, 2, 1, 1] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.push(b'a');
        bytes.extend_from_slice(&(-1i32).to_be_bytes());
        assert_eq!(elements(&bytes), Some(vec![Some(&b"a"[..]), None]));
        for cut in 0..bytes.len() {
            assert_eq!(elements(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(elements(&[0; 12]), Some(Vec::new()));
    }
}
