//! `generate_series(start, stop, step)` of times, with or without a zone, and of dates, as PostgreSQL counts them;
//! whole numbers are the planner's own.

use crate::instants::instant_of;
use datafusion::arrow::array::types::IntervalMonthDayNano;
use datafusion::arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use std::sync::Arc;

/// What it is called.
pub const NAME: &str = "generate_series";

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
            Some(values) => {
                let numbers: Vec<Expr> = values.iter().map(number).collect();
                let args = TableFunctionArgs::new(&numbers, args.session());
                self.of_numbers.create_table_provider_with_args(args)
            }
            None => self.of_numbers.create_table_provider_with_args(args),
        }
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
    let step = match step {
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
    };
    let parts: Vec<Arc<dyn PartitionStream>> = match (micros(first)?, micros(last)?, step) {
        (Some(first), Some(last), Some(step)) => {
            let next = add(first, step)?;
            if next == first {
                return plan_err!("step size cannot equal zero");
            }
            let times = Times { first, last, step, is_rising: first < next };
            vec![Arc::new(Stream { schema: schema.clone(), times })]
        }
        _ => Vec::new(),
    };
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

impl Times {
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
