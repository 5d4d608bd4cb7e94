//! Rows of the usual types as messages hold them, made column by column into one piece of memory, of which each
//! row is a part. Others are the crate arrow-pg's, which asks of each value again what it is.
//!
//! ```text
//! [length i32][bytes] for each value, -1 for NULL; in binary numbers are big-endian, and times are
//! microseconds since 2000
//! ```

use bytes::{BufMut as _, BytesMut};
use pgwire::api::Type;
use pgwire::api::results::{FieldFormat, FieldInfo};
use pgwire::messages::data::DataRow;
use sql::datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, PrimitiveArray, StringArray, StringViewArray,
};
use sql::datafusion::arrow::datatypes::{
    DataType, Float64Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};

/// Microseconds from 1970 to 2000, from which PostgreSQL counts.
const EPOCH_US: i64 = 946_684_800_000_000;
/// What stands for the length of NULL.
const NULL: i32 = -1;
/// Bytes that a value takes, about.
const VALUE_SIZE: usize = 16;

/// A column of which each value is some bytes.
enum Column<'a> {
    Text(&'a StringArray),
    View(&'a StringViewArray),
    Float8(&'a PrimitiveArray<Float64Type>),
    Int2(&'a PrimitiveArray<Int16Type>),
    Int4(&'a PrimitiveArray<Int32Type>),
    Int8(&'a PrimitiveArray<Int64Type>),
    Time(&'a PrimitiveArray<TimestampMicrosecondType>),
}

impl<'a> Column<'a> {
    /// Of what is sent as a field says; none for other types.
    fn of(array: &'a ArrayRef, field: &FieldInfo) -> Option<Column<'a>> {
        let (is_binary, ty) = (field.format() == FieldFormat::Binary, field.datatype());
        let is_text =
            [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::JSON].contains(ty);
        let is_time = [Type::TIMESTAMPTZ, Type::TIMESTAMP].contains(ty);
        Some(match array.data_type() {
            // In text all that is shown in a way of its own is a text by now.
            DataType::Utf8 if is_text || !is_binary => Column::Text(array.as_string_opt()?),
            DataType::Utf8View if is_text || !is_binary => {
                Column::View(array.as_string_view_opt()?)
            }
            DataType::Float64 if is_binary && *ty == Type::FLOAT8 => {
                Column::Float8(array.as_primitive_opt()?)
            }
            DataType::Int16 if is_binary && *ty == Type::INT2 => {
                Column::Int2(array.as_primitive_opt()?)
            }
            DataType::Int32 if is_binary && *ty == Type::INT4 => {
                Column::Int4(array.as_primitive_opt()?)
            }
            DataType::Int64 if is_binary && *ty == Type::INT8 => {
                Column::Int8(array.as_primitive_opt()?)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) if is_binary && is_time => {
                Column::Time(array.as_primitive_opt()?)
            }
            _ => return None,
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Column::Text(all) => all.is_null(row),
            Column::View(all) => all.is_null(row),
            Column::Float8(all) => all.is_null(row),
            Column::Int2(all) => all.is_null(row),
            Column::Int4(all) => all.is_null(row),
            Column::Int8(all) => all.is_null(row),
            Column::Time(all) => all.is_null(row),
        }
    }

    fn put(&self, row: usize, into: &mut BytesMut) {
        if self.is_null(row) {
            return into.put_i32(NULL);
        }
        match self {
            Column::Text(all) => put(all.value(row).as_bytes(), into),
            Column::View(all) => put(all.value(row).as_bytes(), into),
            Column::Float8(all) => put(&all.value(row).to_be_bytes(), into),
            Column::Int2(all) => put(&all.value(row).to_be_bytes(), into),
            Column::Int4(all) => put(&all.value(row).to_be_bytes(), into),
            Column::Int8(all) => put(&all.value(row).to_be_bytes(), into),
            Column::Time(all) => put(&since_2000(all.value(row)).to_be_bytes(), into),
        }
    }
}

/// The infinities stay what they are.
fn since_2000(micros: i64) -> i64 {
    match micros {
        i64::MIN | i64::MAX => micros,
        micros => micros.saturating_sub(EPOCH_US),
    }
}

fn put(bytes: &[u8], into: &mut BytesMut) {
    // No value comes near 2 GiB: a message has less.
    into.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    into.put_slice(bytes);
}

/// All rows of some columns; none where one of them has another type.
pub fn rows(count: usize, columns: &[ArrayRef], fields: &[FieldInfo]) -> Option<Vec<DataRow>> {
    let field_count = i16::try_from(columns.len()).ok()?;
    let known = columns.iter().zip(fields).map(|(array, field)| Column::of(array, field));
    let known = known.collect::<Option<Vec<Column<'_>>>>()?;
    let mut bytes = BytesMut::with_capacity(count * known.len() * VALUE_SIZE);
    let mut rows = Vec::with_capacity(count);
    for row in 0..count {
        known.iter().for_each(|column| column.put(row, &mut bytes));
        rows.push(DataRow::new(bytes.split(), field_count));
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::datafusion::arrow::array::{
        Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, TimestampMicrosecondArray,
    };
    use sql::datafusion::arrow::datatypes::{Field, Schema};
    use std::sync::Arc;

    fn field(ty: &Type, format: FieldFormat) -> FieldInfo {
        FieldInfo::new("a".into(), None, None, ty.clone(), format)
    }

    /// A column of each type, with NULL in it.
    fn columns() -> Vec<(ArrayRef, Type)> {
        let texts = ["", "a", "\u{e4}\u{20ac}, longer than what stands in a view itself"];
        let texts = || texts.iter().map(|text| Some(*text)).chain([None]);
        let day = 86_400_000_000;
        let times = vec![Some(EPOCH_US), Some(-day), Some(1_709_208_000_120_000), None];
        let times = TimestampMicrosecondArray::from(times);
        vec![
            (Arc::new(texts().collect::<StringArray>()), Type::TEXT),
            (Arc::new(texts().collect::<StringViewArray>()), Type::VARCHAR),
            (
                Arc::new(Float64Array::from(vec![Some(0.5), Some(f64::NAN), Some(-1e300), None])),
                Type::FLOAT8,
            ),
            (Arc::new(Int16Array::from(vec![Some(1), Some(-2), Some(i16::MAX), None])), Type::INT2),
            (Arc::new(Int32Array::from(vec![Some(1), Some(-2), Some(i32::MIN), None])), Type::INT4),
            (Arc::new(Int64Array::from(vec![Some(1), Some(-2), Some(i64::MIN), None])), Type::INT8),
            (Arc::new(times.clone().with_timezone(sql::ZONE)), Type::TIMESTAMPTZ),
            (Arc::new(times), Type::TIMESTAMP),
        ]
    }

    #[test]
    fn rows_are_those_of_arrow_pg() {
        for format in [FieldFormat::Binary, FieldFormat::Text] {
            let mut known = columns();
            if format == FieldFormat::Text {
                known.retain(|(array, _)| array.data_type().is_string());
            }
            let fields: Vec<FieldInfo> = known.iter().map(|(_, ty)| field(ty, format)).collect();
            let arrays: Vec<ArrayRef> = known.into_iter().map(|(array, _)| array).collect();
            let described = arrays
                .iter()
                .enumerate()
                .map(|(at, array)| Field::new(at.to_string(), array.data_type().clone(), true));
            let schema = Arc::new(Schema::new(described.collect::<Vec<_>>()));
            let batch = RecordBatch::try_new(schema, arrays.clone()).unwrap();
            let expected = arrow_pg::encode_recordbatch(Arc::new(fields.clone()), batch);
            let expected: Vec<DataRow> = expected.map(Result::unwrap).collect();
            assert_eq!(rows(4, &arrays, &fields).unwrap(), expected, "{format:?}");
        }
    }

    #[test]
    fn infinities_are_those_of_postgresql() {
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX, i64::MIN]));
        let fields = [field(&Type::TIMESTAMP, FieldFormat::Binary)];
        let found = rows(2, &[times], &fields).unwrap();
        assert_eq!(found[0].data[4..], i64::MAX.to_be_bytes());
        assert_eq!(found[1].data[4..], i64::MIN.to_be_bytes());
    }

    #[test]
    fn other_types_are_left_alone() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        assert!(
            rows(1, std::slice::from_ref(&floats), &[field(&Type::FLOAT8, FieldFormat::Text)])
                .is_none()
        );
        assert!(rows(1, &[floats], &[field(&Type::NUMERIC, FieldFormat::Binary)]).is_none());
    }
}
