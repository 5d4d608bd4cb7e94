//! Values that a client binds to `$1`, `$2`, ...

use super::answers::error;
use super::handlers::Prepared;
use pgwire::api::Type;
use pgwire::api::portal::Portal;
use pgwire::error::PgWireResult;
use sql::datafusion::arrow::datatypes::DataType;
use sql::datafusion::common::ScalarValue;

/// Microseconds from 1970 to 2000, from which PostgreSQL counts.
const EPOCH_US: i64 = 946_684_800_000_000;

/// The types of a statement's parameters, in order.
pub fn types(statement: &sql::Statement) -> PgWireResult<Vec<Type>> {
    let known = statement.parameters().map_err(super::answers::of_sql)?;
    let pg_type = |known: &Option<DataType>| match known {
        Some(known) => arrow_pg::datatypes::into_pg_type(known),
        None => Ok(Type::TEXT),
    };
    known.iter().map(pg_type).collect()
}

/// The values that were bound, in order.
pub fn values(
    statement: &sql::Statement,
    portal: &Portal<Prepared>,
) -> PgWireResult<Vec<ScalarValue>> {
    let known = statement.parameters().map_err(super::answers::of_sql)?;
    let given = &portal.statement.parameter_types;
    if portal.parameters.len() != known.len() {
        let words = format!(
            "bind message supplies {} parameters, but the prepared statement requires {}",
            portal.parameters.len(),
            known.len()
        );
        return Err(error("08P01", words));
    }
    let mut values = Vec::with_capacity(known.len());
    for (at, bytes) in portal.parameters.iter().enumerate() {
        let wanted = known.get(at).cloned().flatten();
        let Some(bytes) = bytes else {
            values.push(
                wanted
                    .map_or(Ok(ScalarValue::Null), |one| ScalarValue::try_from(&one))
                    .map_err(wrong(at))?,
            );
            continue;
        };
        let value = if portal.parameter_format.is_binary(at) {
            let pg_type = given.get(at).cloned().flatten();
            let pg_type = match (pg_type, &wanted) {
                (Some(pg_type), _) => pg_type,
                (None, Some(wanted)) => arrow_pg::datatypes::into_pg_type(wanted)?,
                (None, None) => Type::TEXT,
            };
            binary(&pg_type, bytes).ok_or_else(|| {
                error("22P03", format!("incorrect binary data format in bind parameter {}", at + 1))
            })?
        } else {
            let text = std::str::from_utf8(bytes).map_err(wrong(at))?;
            ScalarValue::Utf8(Some(text.to_string()))
        };
        values.push(match wanted {
            Some(wanted) => value.cast_to(&wanted).map_err(wrong(at))?,
            None => value,
        });
    }
    Ok(values)
}

fn wrong<E: std::fmt::Display>(at: usize) -> impl Fn(E) -> pgwire::error::PgWireError {
    move |failure| error("22P02", format!("parameter ${}: {failure}", at + 1))
}

fn binary(pg_type: &Type, bytes: &[u8]) -> Option<ScalarValue> {
    Some(match *pg_type {
        Type::BOOL => ScalarValue::Boolean(Some(bytes.first()? != &0)),
        Type::INT2 => ScalarValue::Int16(Some(i16::from_be_bytes(bytes.try_into().ok()?))),
        Type::INT4 => ScalarValue::Int32(Some(i32::from_be_bytes(bytes.try_into().ok()?))),
        Type::INT8 => ScalarValue::Int64(Some(i64::from_be_bytes(bytes.try_into().ok()?))),
        Type::FLOAT4 => ScalarValue::Float32(Some(f32::from_be_bytes(bytes.try_into().ok()?))),
        Type::FLOAT8 => ScalarValue::Float64(Some(f64::from_be_bytes(bytes.try_into().ok()?))),
        Type::TIMESTAMPTZ | Type::TIMESTAMP => {
            let micros = i64::from_be_bytes(bytes.try_into().ok()?).checked_add(EPOCH_US)?;
            let zone = (*pg_type == Type::TIMESTAMPTZ).then(|| "+00:00".into());
            ScalarValue::TimestampMicrosecond(Some(micros), zone)
        }
        // A version stands before it.
        Type::JSONB => text(bytes.strip_prefix(&[1])?)?,
        Type::TEXT | Type::VARCHAR | Type::UNKNOWN | Type::JSON | Type::NAME => text(bytes)?,
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> Option<ScalarValue> {
    Some(ScalarValue::Utf8(Some(std::str::from_utf8(bytes).ok()?.to_string())))
}
