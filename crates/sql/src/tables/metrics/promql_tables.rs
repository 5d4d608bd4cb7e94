//! PromQL and MetricsQL within SQL: `SELECT * FROM promql('rate(x[5m])', start, "end", step)`.
//!
//! ```text
//! arguments ─ the planner's constants ─► text and times ─► engine ─► series ─► the columns of samples
//! ```
//! Arguments are known when the statement is planned: literals, `now()` and what is made of them.
//! A statement that calls it is planned anew each time.

use crate::tables::metrics::rows::Rows;
use crate::tables::metrics::scan;
use crate::tables::metrics::scan::Source;
use crate::tables::metrics::tables::{Column, Shows};
use crate::types::error::SqlError;
use crate::types::runtime::cancellation;
use crate::types::time::instants::instant_of;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::ExecutionPlan;
use engine::{QueryOptions, StepRange, Value};
use model::Labels;
use model::sample::NANOS_PER_MILLI;
use promql::Dialect;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

const MICROS_PER_MILLI: i64 = 1000;
const COLUMNS: [Column; 4] = [Column::Time, Column::Name, Column::Value, Column::Labels];

/// Functions that ask the engine, and the language each speaks.
pub const FUNCTIONS: &[(&str, Dialect)] =
    &[("promql", Dialect::PromQl), ("metricsql", Dialect::MetricsQl)];

/// Such a function.
pub struct Function {
    store: Arc<Store>,
    options: QueryOptions,
    timeout: Duration,
    schema: SchemaRef,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function({:?})", self.options.dialect)
    }
}

impl Function {
    /// Of a store, with everything but the language as `options` say.
    pub fn new(
        store: Arc<Store>,
        options: &QueryOptions,
        timeout: Duration,
        dialect: Dialect,
    ) -> Function {
        let fields: Vec<_> = COLUMNS.iter().map(|one| one.field(one.name())).collect();
        let options = QueryOptions { dialect, ..options.clone() };
        Function { store, options, timeout, schema: Arc::new(Schema::new(fields)) }
    }
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let context = SimplifyContext::builder()
            .with_config_options(Arc::new(args.session().config_options().clone()))
            .with_schema(Arc::new(DFSchema::empty()))
            .with_current_time()
            .build();
        let simplifier = ExprSimplifier::new(context);
        let known = |expr: &Expr| match simplifier.simplify(expr.clone())? {
            Expr::Literal(value, _) => Ok(value),
            _ => Err(wrong("arguments are literals, or made of such and of now()")),
        };
        let values: Result<Vec<ScalarValue>> = args.exprs().iter().map(known).collect();
        let asked = Asked::of(&values?)?;
        let (store, options) = (self.store.clone(), self.options.clone());
        let (timeout, schema) = (self.timeout, self.schema.clone());
        Ok(Arc::new(Answer { store, options, timeout, schema, asked }))
    }
}

fn wrong(words: &str) -> DataFusionError {
    let message = format!("promql(expression [, at | , start, \"end\", step]): {words}");
    DataFusionError::External(Box::new(SqlError::wrong_value(message)))
}

/// What the engine is asked.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    text: String,
    /// The one moment, or the first, in milliseconds; none is now.
    start_ms: Option<i64>,
    /// The last moment and what is between two.
    range: Option<(i64, i64)>,
}

impl Asked {
    fn of(values: &[ScalarValue]) -> Result<Asked> {
        let (text, times) = values.split_first().ok_or_else(|| wrong("there is no expression"))?;
        let text = text.try_as_str().flatten().ok_or_else(|| wrong("the first is a text"))?;
        let (start_ms, range) = match times {
            [] => (None, None),
            [at] => (Some(moment(at)?), None),
            [start, end, step] => (Some(moment(start)?), Some((moment(end)?, period(step)?))),
            _ => return Err(wrong("there are one, two or four arguments")),
        };
        Ok(Asked { text: text.to_string(), start_ms, range })
    }
}

/// A time in milliseconds: an instant, its text, or seconds since 1970.
fn moment(value: &ScalarValue) -> Result<i64> {
    if let Some(seconds) = number(value) {
        return millis(seconds);
    }
    if let Some(micros) = value.try_as_str().flatten().and_then(instant_of) {
        return moment(&ScalarValue::TimestampMicrosecond(Some(micros), None));
    }
    let instant =
        DataType::Timestamp(TimeUnit::Microsecond, Some(crate::types::time::zones::ZONE.into()));
    match value.cast_to(&instant)? {
        ScalarValue::TimestampMicrosecond(Some(micros), _) => {
            let millis = micros.div_euclid(MICROS_PER_MILLI);
            match millis.abs() <= MILLIS_MAX {
                true => Ok(millis),
                false => Err(wrong("a time is out of range")),
            }
        }
        _ => Err(wrong("a time is missing")),
    }
}

/// A length of time in milliseconds: an interval without months, a text as PromQL has it, or seconds.
fn period(value: &ScalarValue) -> Result<i64> {
    const DAY_MS: i64 = 86_400_000;
    if let Some(seconds) = number(value) {
        return millis(seconds);
    }
    match value {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months == 0 => {
            Ok(i64::from(interval.days) * DAY_MS + interval.nanoseconds / NANOS_PER_MILLI)
        }
        other => match other.try_as_str().flatten() {
            Some(text) => promql::parse_duration_ms(text).map_err(|words| wrong(&words)),
            None => Err(wrong("the step is an interval, a number of seconds or a text as '30s'")),
        },
    }
}

fn number(value: &ScalarValue) -> Option<f64> {
    match value.data_type().is_numeric() {
        true => match value.cast_to(&DataType::Float64).ok()? {
            ScalarValue::Float64(number) => number,
            _ => None,
        },
        false => value.try_as_str().flatten()?.parse().ok(),
    }
}

/// Milliseconds that nanoseconds can say, before 1970 and after.
const MILLIS_MAX: i64 = i64::MAX / NANOS_PER_MILLI;

fn millis(seconds: f64) -> Result<i64> {
    let millis = seconds * 1000.0;
    match millis.abs() <= MILLIS_MAX as f64 {
        true => Ok(millis.round() as i64),
        false => Err(wrong("a number of seconds is too large")),
    }
}

/// The table that a call is.
#[derive(Clone)]
struct Answer {
    store: Arc<Store>,
    options: QueryOptions,
    timeout: Duration,
    schema: SchemaRef,
    asked: Asked,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.asked.fmt(f)
    }
}

#[async_trait::async_trait]
impl TableProvider for Answer {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = COLUMNS.map(Shows::Part);
        scan::plan(self.clone(), &columns, &self.schema, projection, limit)
    }
}

impl Source for Answer {
    fn give(mut self, rows: &mut Rows, take: &mut dyn FnMut(RecordBatch) -> bool) -> Result<()> {
        self.options.deadline = Some(Instant::now() + self.timeout);
        self.options.cancelled = cancellation::flag();
        let now_ms = || self.store.now().div_euclid(NANOS_PER_MILLI);
        let start_ms = self.asked.start_ms.unwrap_or_else(now_ms);
        let (text, options) = (self.asked.text.as_str(), &self.options);
        let result = match self.asked.range {
            None => engine::instant(&*self.store, text, start_ms, options),
            Some((end_ms, step_ms)) => {
                let steps = StepRange { start_ms, end_ms, step_ms };
                engine::range(&*self.store, text, steps, options)
            }
        };
        let value = result.map_err(|error| external(&error))?.value;
        push(&value, start_ms, rows, take).map(drop)
    }
}

/// Adds the rows of an answer until `take` says no.
fn push(
    value: &Value,
    at_ms: i64,
    rows: &mut Rows,
    take: &mut dyn FnMut(RecordBatch) -> bool,
) -> Result<bool> {
    let nanos = |millis: i64| millis.saturating_mul(NANOS_PER_MILLI);
    match value {
        Value::Scalar(number) => {
            rows.push_series(&Labels::default(), &[nanos(at_ms)], &[*number], take)
        }
        Value::String(_) => Err(wrong("the expression is a text, which has no rows")),
        Value::Vector(samples) => {
            for sample in samples.iter().filter(|sample| sample.histogram.is_none()) {
                if !rows.push_series(&sample.labels, &[nanos(at_ms)], &[sample.value], take)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Value::Matrix(matrix) => {
            for idx in 0..matrix.len() {
                let (times, values): (Vec<i64>, Vec<f64>) =
                    matrix.points(idx).map(|(at_ms, value)| (nanos(at_ms), value)).unzip();
                if !rows.push_series(matrix.labels(idx), &times, &values, take)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn external(error: &engine::QueryError) -> DataFusionError {
    use engine::QueryError;
    let code = match error {
        QueryError::Parse(_) => "42601",
        QueryError::BadData(_) | QueryError::Execution(_) => "22023",
        QueryError::Limit { .. } => "54000",
        QueryError::Timeout(_) | QueryError::Canceled(_) => "57014",
        _ => "XX000",
    };
    DataFusionError::External(Box::new(SqlError::new(code, error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> ScalarValue {
        ScalarValue::from(text)
    }

    #[test]
    fn times_come_in_many_ways() {
        assert_eq!(moment(&text("2024-02-29T12:00:00Z")).unwrap(), 1_709_208_000_000);
        assert_eq!(moment(&text("2024-02-29 12:00:00+00")).unwrap(), 1_709_208_000_000);
        assert_eq!(moment(&text("1709208000.5")).unwrap(), 1_709_208_000_500);
        assert_eq!(moment(&ScalarValue::Int64(Some(1_709_208_000))).unwrap(), 1_709_208_000_000);
        assert_eq!(period(&text("1m30s")).unwrap(), 90_000);
        assert_eq!(period(&ScalarValue::Float64(Some(0.5))).unwrap(), 500);
        assert_eq!(period(&ScalarValue::new_interval_mdn(0, 1, 1_000_000)).unwrap(), 86_400_001);
        assert!(period(&ScalarValue::new_interval_mdn(1, 0, 0)).is_err());
        assert!(moment(&ScalarValue::Float64(Some(1e300))).is_err());
        assert!(Asked::of(&[text("up"), text("1"), text("2")]).is_err());
    }
}
