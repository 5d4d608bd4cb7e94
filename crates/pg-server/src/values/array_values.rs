//! Arrays as clients get them (<https://www.postgresql.org/docs/15/arrays.html>).
//!
//! ```text
//! text    {{1,2},{3,NULL}}
//! binary  [dimensions i32][has NULL i32][element type u32]
//!         ([length i32][lower bound i32]) for each dimension
//!         ([length i32][bytes]) for each element, -1 for NULL
//! ```

use super::answers::uuid_bytes;
use super::parameters::element_of;
use pgwire::api::Type;
use pgwire::error::PgWireResult;
use sql::datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryArray, BinaryBuilder,
};
use sql::datafusion::arrow::compute::cast;
use sql::datafusion::arrow::datatypes::{
    DataType, Date32Type, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType,
};
use std::sync::Arc;

/// Microseconds and days from 1970 to 2000, from which PostgreSQL counts.
const EPOCH_US: i64 = 946_684_800_000_000;
const EPOCH_DAYS: i32 = 10_957;

/// The type of an array of arrays: that of an array of what these have; none of others.
pub fn nested_type(data_type: &DataType) -> Option<PgWireResult<Type>> {
    let DataType::List(of) = data_type else { return None };
    let DataType::List(inner) = of.data_type() else { return None };
    if let Some(deeper) = nested_type(of.data_type()) {
        return Some(deeper);
    }
    Some(match inner.data_type() {
        DataType::Decimal256(..) => Ok(Type::NUMERIC_ARRAY),
        _ => arrow_pg::datatypes::field_into_pg_type(&Arc::new(Field::new(
            "list",
            of.data_type().clone(),
            true,
        ))),
    })
}

/// Element type of arrays whose elements arrow has as texts.
pub fn special_element(pg_type: &Type) -> Option<Type> {
    Some(match *pg_type {
        Type::JSONB_ARRAY => Type::JSONB,
        Type::JSON_ARRAY => Type::JSON,
        Type::UUID_ARRAY => Type::UUID,
        Type::VARCHAR_ARRAY => Type::VARCHAR,
        Type::BPCHAR_ARRAY => Type::BPCHAR,
        Type::NAME_ARRAY => Type::NAME,
        _ => return None,
    })
}

/// Whether arrays of a type are written here: arrays of arrays, and of special types.
pub fn is_written_here(data_type: &DataType, pg_type: &Type) -> bool {
    nested_type(data_type).is_some()
        || special_element(pg_type).is_some() && matches!(data_type, DataType::List(_))
}

/// Arrays as texts.
pub fn in_text(column: &ArrayRef) -> ArrayRef {
    sql::ordinary::array_texts(column).unwrap_or_else(|_| column.clone())
}

/// Arrays as the bytes of their type; none where an element has another type.
pub fn in_binary(column: &ArrayRef, pg_type: &Type) -> Option<ArrayRef> {
    let element = special_element(pg_type).or_else(|| element_of(pg_type))?;
    let lists = column.as_list_opt::<i32>()?;
    let mut out = BinaryBuilder::new();
    for list in lists.iter() {
        match list {
            Some(list) => out.append_value(array_bytes(list, &element)?),
            None => out.append_null(),
        }
    }
    Some(Arc::new(out.finish()))
}

fn array_bytes(list: ArrayRef, element: &Type) -> Option<Vec<u8>> {
    let (mut lengths, mut leaves) = (vec![list.len()], list);
    while let Some(lists) = leaves.as_list_opt::<i32>() {
        let length =
            if lists.is_empty() { 0 } else { usize::try_from(lists.value_length(0)).ok()? };
        let mut all = lists.iter();
        if !all.all(|one| one.is_some_and(|one| one.len() == length)) {
            return None;
        }
        let (first, last) = (lists.value_offsets().first()?, lists.value_offsets().last()?);
        let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
        lengths.push(length);
        let inner = lists.values().slice(first, last - first);
        leaves = inner;
    }
    let values = element_values(&leaves, element)?;
    let mut out = Vec::new();
    let dimensions = if values.is_empty() { &[][..] } else { &lengths };
    out.extend(i32::try_from(dimensions.len()).ok()?.to_be_bytes());
    out.extend(i32::from(values.null_count() != 0).to_be_bytes());
    out.extend(element.oid().to_be_bytes());
    for length in dimensions {
        out.extend(i32::try_from(*length).ok()?.to_be_bytes());
        out.extend(1i32.to_be_bytes());
    }
    for value in &values {
        match value {
            Some(bytes) => {
                out.extend(i32::try_from(bytes.len()).ok()?.to_be_bytes());
                out.extend(bytes);
            }
            None => out.extend((-1i32).to_be_bytes()),
        }
    }
    Some(out)
}

/// Each element as the bytes of its type.
fn element_values(leaves: &ArrayRef, element: &Type) -> Option<BinaryArray> {
    macro_rules! numbers {
        ($ty:ty) => {{
            let all = leaves.as_primitive::<$ty>().iter();
            all.map(|one| one.map(|number| number.to_be_bytes().to_vec())).collect()
        }};
    }
    Some(match leaves.data_type() {
        DataType::Boolean => {
            leaves.as_boolean().iter().map(|one| one.map(|one| vec![u8::from(one)])).collect()
        }
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::Float32 => numbers!(Float32Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Binary => leaves.as_binary::<i32>().clone(),
        DataType::Date32 => {
            let day = |day: i32| day.saturating_sub(EPOCH_DAYS).to_be_bytes().to_vec();
            leaves.as_primitive::<Date32Type>().iter().map(|one| one.map(day)).collect()
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let time = |micros: i64| match micros {
                i64::MIN | i64::MAX => micros.to_be_bytes().to_vec(),
                micros => micros.saturating_sub(EPOCH_US).to_be_bytes().to_vec(),
            };
            let all = leaves.as_primitive::<TimestampMicrosecondType>().iter();
            all.map(|one| one.map(time)).collect()
        }
        ty if ty.is_string() && *element == Type::UUID => {
            let texts = cast(leaves, &DataType::Utf8View).ok()?;
            texts.as_string_view().iter().map(|one| one.and_then(uuid_bytes)).collect()
        }
        ty if ty.is_string() && *element == Type::JSONB => {
            let texts = cast(leaves, &DataType::Utf8View).ok()?;
            let bytes = |text: &str| [b"\x01", text.as_bytes()].concat();
            texts.as_string_view().iter().map(|one| one.map(bytes)).collect()
        }
        ty if ty.is_string() => {
            let texts = cast(leaves, &DataType::Utf8).ok()?;
            cast(&texts, &DataType::Binary).ok()?.as_binary::<i32>().clone()
        }
        ty if ty.is_decimal() => {
            let shown = sql::shown::column(leaves)?;
            let texts = cast(&shown, &DataType::Utf8View).ok()?;
            let bytes = |text: Option<&str>| text.map(sql::ordinary::numeric_bytes);
            let all = texts.as_string_view().iter().map(bytes);
            let all: Option<Vec<Option<Vec<u8>>>> =
                all.map(|one| one.map_or(Some(None), |one| one.map(Some))).collect();
            all?.into_iter().collect()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::datafusion::arrow::array::{Int32Array, ListArray};
    use sql::datafusion::arrow::buffer::OffsetBuffer;

    fn list_of(values: ArrayRef, lengths: Vec<usize>) -> ArrayRef {
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(lengths), values, None))
    }

    #[test]
    fn arrays_have_dimensions_and_a_flag_of_nulls() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3), None]));
        let expected = |dimensions: &[i32], has_null: i32, values: &[Option<i32>]| {
            let mut out: Vec<u8> = Vec::new();
            let count = i32::try_from(dimensions.len()).unwrap();
            [count, has_null, 23].iter().for_each(|one| out.extend(one.to_be_bytes()));
            for length in dimensions {
                [*length, 1].iter().for_each(|one| out.extend(one.to_be_bytes()));
            }
            for value in values {
                match value {
                    Some(value) => [4, *value].iter().for_each(|one| out.extend(one.to_be_bytes())),
                    None => out.extend((-1i32).to_be_bytes()),
                }
            }
            out
        };
        let flat = list_of(numbers.clone(), vec![2, 0, 2]);
        let sent = in_binary(&flat, &Type::INT4_ARRAY).unwrap();
        let sent: Vec<&[u8]> = sent.as_binary::<i32>().iter().flatten().collect();
        assert_eq!(sent[0], expected(&[2], 0, &[Some(1), Some(2)]));
        assert_eq!(sent[1], expected(&[], 0, &[]));
        assert_eq!(sent[2], expected(&[2], 1, &[Some(3), None]));
        let nested = list_of(list_of(numbers, vec![2, 2]), vec![2]);
        let sent = in_binary(&nested, &Type::INT4_ARRAY).unwrap();
        let all = [Some(1), Some(2), Some(3), None];
        assert_eq!(sent.as_binary::<i32>().value(0), expected(&[2, 2], 1, &all));
        assert_eq!(nested_type(nested.data_type()).unwrap().unwrap(), Type::INT4_ARRAY);
        assert!(is_written_here(nested.data_type(), &Type::INT4_ARRAY));
        assert_eq!(in_text(&nested).as_string_view().value(0), "{{1,2},{3,NULL}}");
    }
}
