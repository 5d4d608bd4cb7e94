//! Rows as columns, as DataFusion reads them.

use crate::tables::heap::columns::field_of;
use crate::types::numeric::conversions::column;
use crate::types::numeric::value::Numeric;
use crate::types::text::numbers::{Units, units_of};
use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder,
    ListArray, StringViewBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::{DataFusionError, Result};
use model::sample::NANOS_PER_MICRO;
use std::sync::Arc;
use tables::{Column, Datum, Interval};

/// A column of these values.
///
/// # Errors
/// When they are of another type, which rows of a table never are.
pub fn array_of(column: &Column, values: &[Datum]) -> Result<ArrayRef> {
    match field_of(column).data_type() {
        DataType::List(of) => {
            let all = values.iter().map(|one| match one {
                Datum::Array(all) => all.as_slice(),
                _ => &[],
            });
            let offsets = OffsetBuffer::from_lengths(all.clone().map(<[Datum]>::len));
            let nulls = NullBuffer::from_iter(values.iter().map(|one| *one != Datum::Null));
            let elements: Vec<&Datum> = all.flatten().collect();
            let elements = scalars(of.data_type(), elements.into_iter(), values.len())?;
            Ok(Arc::new(ListArray::try_new(of.clone(), offsets, elements, Some(nulls))?))
        }
        plain => scalars(plain, values.iter(), values.len()),
    }
}

fn scalars<'a>(
    data_type: &DataType,
    values: impl Iterator<Item = &'a Datum>,
    count: usize,
) -> Result<ArrayRef> {
    macro_rules! built {
        ($builder:expr, $($pattern:pat => $value:expr),+) => {{
            let mut builder = $builder;
            for one in values {
                match one {
                    Datum::Null => builder.append_null(),
                    $($pattern => builder.append_value($value),)+
                    other => return Err(unfit(data_type, other)),
                }
            }
            Ok(Arc::new(builder.finish()) as ArrayRef)
        }};
    }
    match data_type {
        DataType::Boolean => built!(BooleanBuilder::with_capacity(count), Datum::Bool(one) => *one),
        DataType::Int16 => built!(Int16Builder::with_capacity(count), Datum::Int2(one) => *one),
        DataType::Int32 => built!(Int32Builder::with_capacity(count), Datum::Int4(one) => *one),
        DataType::Int64 => built!(Int64Builder::with_capacity(count), Datum::Int8(one) => *one),
        DataType::Float32 => {
            built!(Float32Builder::with_capacity(count), Datum::Float4(one) => *one)
        }
        DataType::Float64 => {
            built!(Float64Builder::with_capacity(count), Datum::Float8(one) => *one)
        }
        DataType::Decimal128(precision, scale) => {
            let builder = Decimal128Builder::with_capacity(count);
            let builder = builder.with_precision_and_scale(*precision, *scale)?;
            built!(builder, Datum::Numeric(text) => match units_of(text, *precision, *scale) {
                Units::Exact(units) | Units::Rounded(units) => units,
                Units::TooMany | Units::None => {
                    return Err(unfit(data_type, &Datum::Numeric(text.clone())));
                }
            })
        }
        DataType::Decimal256(..) => numerics(data_type, values),
        DataType::Timestamp(_, zone) => {
            let builder = TimestampMicrosecondBuilder::with_capacity(count);
            let builder = builder.with_timezone_opt(zone.clone());
            built!(builder, Datum::Timestamptz(one) | Datum::Timestamp(one) => *one)
        }
        DataType::Date32 => built!(Date32Builder::with_capacity(count), Datum::Date(one) => *one),
        DataType::Time64(_) => {
            built!(Time64MicrosecondBuilder::with_capacity(count), Datum::Time(one) => *one)
        }
        DataType::Interval(_) => {
            let builder = IntervalMonthDayNanoBuilder::with_capacity(count);
            built!(builder, Datum::Interval(one) => nanos_of(one))
        }
        DataType::Binary => built!(BinaryBuilder::new(), Datum::Bytea(one) => one),
        _ => built!(
            StringViewBuilder::with_capacity(count),
            Datum::Text(one) | Datum::Jsonb(one) | Datum::Uuid(one) => one
        ),
    }
}

fn numerics<'a>(data_type: &DataType, values: impl Iterator<Item = &'a Datum>) -> Result<ArrayRef> {
    let all = values.map(|one| match one {
        Datum::Null => Ok(None),
        Datum::Numeric(text) => {
            Ok(Some(Ok(Numeric::parse(text).map_err(|_| unfit(data_type, one))?)))
        }
        other => Err(unfit(data_type, other)),
    });
    column(all.collect::<Result<Vec<_>>>()?.into_iter())
}

/// Intervals come from nanoseconds, so that they have no more.
fn nanos_of(interval: &Interval) -> IntervalMonthDayNano {
    let nanoseconds = interval.micros.saturating_mul(NANOS_PER_MICRO);
    IntervalMonthDayNano::new(interval.months, interval.days, nanoseconds)
}

fn unfit(data_type: &DataType, value: &Datum) -> DataFusionError {
    DataFusionError::Internal(format!("{value} in a column of {data_type}"))
}
