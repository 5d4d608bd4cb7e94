//! `generate_series(start, stop, step)` of times, with or without a zone, and of dates, as PostgreSQL counts them;
//! whole numbers are the planner's own.

use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::time::instants::instant_of;
use datafusion::arrow::array::types::IntervalMonthDayNano;
use datafusion::arrow::array::{
    ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, TimestampMicrosecondArray,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, ScalarUDF, Signature, TypeSignature, Volatility};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use std::sync::Arc;

/// What it is called.
pub const NAME: &str = "generate_series";

/// What makes the list that it is in a select list.
pub const LIST: &str = "generate_series_list";
/// Values that it makes in a select list, of all rows that are worked on at once.
const VALUES_MAX: usize = 1_000_000;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The function.
#[derive(Debug)]
pub struct GenerateSeries {
    /// What makes numbers.
    pub of_numbers: Arc<TableFunction>,
}

/// Times from one to another, both among them.
#[derive(Clone, Copy, Debug)]
struct Times {
    first: i64,
    last: i64,
    step: IntervalMonthDayNano,
    is_rising: bool,
}

#[derive(Debug)]
struct Stream {
    schema: SchemaRef,
    times: Times,
}

impl TableFunctionImpl for GenerateSeries {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let literal = |expr: &Expr| match expr {
            Expr::Literal(value, _) => Some(value.clone()),
            _ => None,
        };
        let values: Option<Vec<ScalarValue>> = args.exprs().iter().map(literal).collect();
        let is_time = |value: &ScalarValue| {
            matches!(
                value.data_type(),
                DataType::Timestamp(..) | DataType::Date32 | DataType::Date64
            )
        };
        match values.as_deref() {
            Some([first, last, step]) if is_time(first) || is_time(last) => {
                times(first, last, step)
            }
            Some(values) if values.iter().all(|value| is_short(&value.data_type())) => {
                short_numbers(values)
            }
            Some(values) => {
                let numbers: Vec<Expr> = values.iter().map(number).collect();
                let args = TableFunctionArgs::new(&numbers, args.session());
                self.of_numbers.create_table_provider_with_args(args)
            }
            None => self.of_numbers.create_table_provider_with_args(args),
        }
    }
}

/// Whole numbers of 32 bits.
fn short_numbers(values: &[ScalarValue]) -> Result<Arc<dyn TableProvider>> {
    let number = |at: usize| match values.get(at) {
        Some(value) => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => Ok(number),
            _ => plan_err!("generate_series is of whole numbers and times"),
        },
        None => Ok(Some(1)),
    };
    let numbers = match (number(0)?, number(1)?, number(2)?) {
        (_, _, Some(0)) => return Err(wrong("step size cannot equal zero")),
        (Some(first), Some(last), Some(step)) => Some(Numbers { first, last, step }),
        _ => None,
    };
    let schema = Arc::new(Schema::new(vec![Field::new(NAME, DataType::Int32, true)]));
    let part = |numbers| {
        Arc::new(NumberStream { schema: schema.clone(), numbers }) as Arc<dyn PartitionStream>
    };
    let parts: Vec<Arc<dyn PartitionStream>> = numbers.map(part).into_iter().collect();
    Ok(Arc::new(StreamingTable::try_new(schema, parts)?))
}

fn wrong(words: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::wrong_value(words)))
}

/// Numbers from one to another, both among them.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    first: i64,
    last: i64,
    step: i64,
}

impl Numbers {
    /// The next numbers, as many as a batch has, and where to go on.
    fn batch(&self, from: i64, count: usize) -> (Vec<i32>, Option<i64>) {
        let (mut all, mut at) = (Vec::new(), from);
        while all.len() < count {
            let is_over = if 0 < self.step { self.last < at } else { at < self.last };
            let Some(number) = i32::try_from(at).ok().filter(|_| !is_over) else {
                return (all, None);
            };
            all.push(number);
            at += self.step;
        }
        (all, Some(at))
    }
}

#[derive(Debug)]
struct NumberStream {
    schema: SchemaRef,
    numbers: Numbers,
}

impl PartitionStream for NumberStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let count = context.session_config().batch_size();
        let (numbers, schema) = (self.numbers, self.schema.clone());
        let batches = stream::unfold(Some(numbers.first), move |from| {
            let made = from.map(|from| numbers.batch(from, count));
            let schema = schema.clone();
            async move {
                let (all, next) = made?;
                let array: ArrayRef = Arc::new(Int32Array::from(all));
                let batch = RecordBatch::try_new(schema, vec![array]);
                Some((batch.map_err(DataFusionError::from), next))
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}

/// A whole number of whatever type as the planner's own takes it; anything else as it is.
fn number(value: &ScalarValue) -> Expr {
    let ty = value.data_type();
    let is_whole = ty.is_integer() || matches!(ty, DataType::Decimal128(_, 0));
    let whole = if is_whole { value.cast_to(&DataType::Int64).ok() } else { None };
    Expr::Literal(whole.unwrap_or_else(|| value.clone()), None)
}

fn times(
    first: &ScalarValue,
    last: &ScalarValue,
    step: &ScalarValue,
) -> Result<Arc<dyn TableProvider>> {
    // Of dates PostgreSQL makes times with a zone.
    let zone = |value: &ScalarValue| match value.data_type() {
        DataType::Timestamp(_, zone) => zone,
        _ => Some("+00:00".into()),
    };
    let zone = if first.data_type().is_temporal() { zone(first) } else { zone(last) };
    let ty = DataType::Timestamp(TimeUnit::Microsecond, zone);
    let schema = Arc::new(Schema::new(vec![Field::new(NAME, ty, true)]));
    let times = Times::of(first, last, step)?;
    let part =
        |times| Arc::new(Stream { schema: schema.clone(), times }) as Arc<dyn PartitionStream>;
    let parts: Vec<Arc<dyn PartitionStream>> = times.map(part).into_iter().collect();
    Ok(Arc::new(StreamingTable::try_new(schema, parts)?))
}

/// A time in microseconds.
fn micros(value: &ScalarValue) -> Result<Option<i64>> {
    if let Some(text) = value.try_as_str() {
        let read = |text| {
            let words = || format!("invalid input syntax for type timestamp: \"{text}\"");
            instant_of(text).ok_or_else(|| DataFusionError::Plan(words()))
        };
        return text.map(read).transpose();
    }
    match value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, None))? {
        ScalarValue::TimestampMicrosecond(micros, _) => Ok(micros),
        _ => Ok(None),
    }
}

/// A time that is one step later.
fn add(micros: i64, step: IntervalMonthDayNano) -> Result<i64> {
    let moved = ScalarValue::TimestampMicrosecond(Some(micros), None)
        .add_checked(ScalarValue::IntervalMonthDayNano(Some(step)))?;
    match moved {
        ScalarValue::TimestampMicrosecond(Some(micros), _) => Ok(micros),
        _ => plan_err!("timestamp out of range"),
    }
}

/// How far one time is from the next; none of null.
fn step_of(step: &ScalarValue) -> Result<Option<IntervalMonthDayNano>> {
    Ok(match step {
        ScalarValue::IntervalMonthDayNano(step) => *step,
        ScalarValue::Null => None,
        text if text.data_type().is_string() => match text.cast_to(&INTERVAL)? {
            ScalarValue::IntervalMonthDayNano(step) => step,
            _ => None,
        },
        other => {
            let words = "the step of generate_series is an interval: INTERVAL '1 hour'";
            return plan_err!("{words}, not {}", other.data_type());
        }
    })
}

impl Times {
    /// Of arguments; none where one is null.
    fn of(first: &ScalarValue, last: &ScalarValue, step: &ScalarValue) -> Result<Option<Times>> {
        let (Some(first), Some(last), Some(step)) = (micros(first)?, micros(last)?, step_of(step)?)
        else {
            return Ok(None);
        };
        let next = add(first, step)?;
        if next == first {
            return plan_err!("step size cannot equal zero");
        }
        Ok(Some(Times { first, last, step, is_rising: first < next }))
    }

    /// The next so many, from a time on, and where to go on.
    fn batch(&self, from: i64, count: usize) -> Result<(Vec<i64>, Option<i64>)> {
        let (mut all, mut at) = (Vec::with_capacity(count), from);
        while all.len() < count {
            let is_over = if self.is_rising { self.last < at } else { at < self.last };
            if is_over {
                return Ok((all, None));
            }
            all.push(at);
            at = add(at, self.step)?;
        }
        Ok((all, Some(at)))
    }
}

/// The list of all its values, for a select list.
pub fn list() -> ScalarUDF {
    let arguments = [2, 3].map(TypeSignature::Any).to_vec();
    let signature = Signature::one_of(arguments, Volatility::Immutable);
    let returns = |types: &[DataType]| {
        DataType::List(Arc::new(Field::new_list_field(value_type(types), true)))
    };
    function(LIST, signature, returns, |args, rows| {
        let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
        let ty = value_type(&types);
        let mut values: Vec<i64> = Vec::new();
        let (mut lengths, mut is_there) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for row in 0..rows {
            let given: Result<Vec<ScalarValue>> =
                args.iter().map(|arg| ScalarValue::try_from_array(arg, row)).collect();
            let before = values.len();
            is_there.push(extend(&mut values, &given?, &ty)?);
            lengths.push(values.len() - before);
        }
        let array = cast(&Int64Array::from(values), &ty)?;
        let field = Arc::new(Field::new_list_field(ty, true));
        let nulls = Some(NullBuffer::from(is_there));
        Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), array, nulls)?)
            as ArrayRef)
    })
}

/// The type of its values, by those of its arguments.
fn value_type(types: &[DataType]) -> DataType {
    let time = types.iter().take(2).find(|ty| ty.is_temporal());
    match time {
        Some(DataType::Timestamp(_, zone)) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        Some(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        None if types.iter().all(is_short) => DataType::Int32,
        None => DataType::Int64,
    }
}

/// Whether numbers of a type are at most of 32 bits.
fn is_short(ty: &DataType) -> bool {
    matches!(ty, DataType::Int8 | DataType::Int16 | DataType::Int32)
}

/// Adds the values of one row; whether its arguments say any.
fn extend(values: &mut Vec<i64>, given: &[ScalarValue], ty: &DataType) -> Result<bool> {
    let full = || {
        let words = format!(
            "generate_series in a select list makes {VALUES_MAX} rows at most: put it into FROM"
        );
        Err(DataFusionError::External(Box::new(SqlError::limit(words))))
    };
    if ty.is_temporal() {
        let [first, last, step] = given else {
            return plan_err!("generate_series of times takes a step: INTERVAL '1 hour'");
        };
        let Some(times) = Times::of(first, last, step)? else { return Ok(false) };
        let room = VALUES_MAX.saturating_sub(values.len());
        let (all, next) = times.batch(times.first, room)?;
        values.extend(all);
        return if next.is_some() { full() } else { Ok(true) };
    }
    let whole = |at: usize| match given.get(at).map(|value| value.cast_to(&DataType::Int64)) {
        Some(Ok(ScalarValue::Int64(value))) => Ok(value),
        Some(_) => plan_err!("generate_series is of whole numbers and times"),
        None => Ok(Some(1)),
    };
    let (Some(first), Some(last), Some(step)) = (whole(0)?, whole(1)?, whole(2)?) else {
        return Ok(false);
    };
    if step == 0 {
        return plan_err!("step size cannot equal zero");
    }
    let mut at = Some(first);
    while let Some(value) =
        at.filter(|value| if 0 < step { *value <= last } else { last <= *value })
    {
        if values.len() == VALUES_MAX {
            return full();
        }
        values.push(value);
        at = value.checked_add(step);
    }
    Ok(true)
}

impl PartitionStream for Stream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let count = context.session_config().batch_size();
        let (times, schema) = (self.times, self.schema.clone());
        let batches = stream::unfold(Some(times.first), move |from| {
            let made = from.map(|from| times.batch(from, count));
            let schema = schema.clone();
            async move {
                let (all, next) = match made? {
                    Ok(made) => made,
                    Err(error) => return Some((Err(error), None)),
                };
                let zone = match schema.field(0).data_type() {
                    DataType::Timestamp(_, zone) => zone.clone(),
                    _ => None,
                };
                let array = TimestampMicrosecondArray::from(all).with_timezone_opt(zone);
                let batch = RecordBatch::try_new(schema, vec![Arc::new(array) as ArrayRef]);
                Some((batch.map_err(DataFusionError::from), next))
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}
