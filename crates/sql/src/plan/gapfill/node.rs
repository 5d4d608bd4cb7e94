//! The step of a plan that fills gaps, and how it becomes one that runs.

use crate::functions::gapfill::{external, wrong};
use crate::plan::gapfill::buckets::Buckets;
use crate::plan::gapfill::exec::GapFillExec;
use crate::plan::gapfill::sizes::shared;
use crate::plan::gapfill::stream::Fill;
use crate::types::error::SqlError;
use crate::types::time::instants::{clock_of, instant_of};
use crate::types::time::intervals::INTERVAL;
use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue, internal_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use std::fmt;
use std::sync::Arc;

/// An end of the time that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub enum Bound {
    /// The argument `start`: its bucket is the first.
    Start,
    /// The argument `finish`: no bucket begins then or later.
    Finish,
    /// A condition `time >= x`.
    From,
    /// A condition `time > x`.
    After,
    /// A condition `time < x`.
    Before,
    /// A condition `time <= x`.
    Until,
}

/// Fills gaps between rows that are grouped by buckets.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct GapFill {
    /// The rows.
    pub input: LogicalPlan,
    /// What becomes of each of their columns.
    pub fills: Vec<Fill>,
    /// How long a bucket is.
    pub width: Expr,
    /// All that is said of the time that is asked for.
    pub bounds: Vec<(Bound, Expr)>,
    schema: DFSchemaRef,
}

impl PartialOrd for GapFill {
    fn partial_cmp(&self, other: &GapFill) -> Option<std::cmp::Ordering> {
        (&self.fills, &self.width, &self.bounds).partial_cmp(&(
            &other.fills,
            &other.width,
            &other.bounds,
        ))
    }
}

impl fmt::Debug for GapFill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UserDefinedLogicalNodeCore::fmt_for_explain(self, f)
    }
}

impl GapFill {
    /// Of rows whose columns are filled as `fills` say.
    ///
    /// # Errors
    /// When there are not as many.
    pub fn new(
        input: LogicalPlan,
        fills: Vec<Fill>,
        width: Expr,
        bounds: Vec<(Bound, Expr)>,
    ) -> Result<GapFill> {
        let known = input.schema();
        if known.fields().len() != fills.len() {
            return internal_err!("{} columns, {} fills", known.fields().len(), fills.len());
        }
        // What was never null is in rows that are made.
        let nullable = known.iter().map(|(table, field)| {
            let field = field.as_ref().clone().with_nullable(true);
            let made = shared(field.data_type());
            let field = field.with_data_type(made);
            (table.cloned(), Arc::new(field))
        });
        let schema = DFSchema::new_with_metadata(nullable.collect(), known.metadata().clone())?;
        Ok(GapFill { input, fills, width, bounds, schema: Arc::new(schema) })
    }

    /// The same of other rows of the same columns.
    ///
    /// # Errors
    /// As [`GapFill::new`].
    pub fn with_input(&self, input: LogicalPlan) -> Result<GapFill> {
        GapFill::new(input, self.fills.clone(), self.width.clone(), self.bounds.clone())
    }
}

impl UserDefinedLogicalNodeCore for GapFill {
    fn name(&self) -> &str {
        "GapFill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let bounds = self.bounds.iter().map(|(_, expr)| expr.clone());
        std::iter::once(self.width.clone()).chain(bounds).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GapFill: width={}", self.width)?;
        self.bounds.iter().try_for_each(|(bound, expr)| write!(f, ", {bound:?} {expr}"))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<GapFill> {
        let mut exprs = exprs.into_iter();
        let (Some(width), Some(input)) = (exprs.next(), inputs.into_iter().next()) else {
            return internal_err!("a width and rows are asked for");
        };
        let bounds = self.bounds.iter().map(|(bound, _)| *bound).zip(exprs).collect();
        GapFill::new(input, self.fills.clone(), width, bounds)
    }
}

/// Plans [`GapFill`].
pub struct Planner;

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<GapFill>(), inputs) else {
            return Ok(None);
        };
        let nothing = DFSchema::empty();
        let known = |expr: &Expr| -> Result<ScalarValue> {
            let made = planner.create_physical_expr(expr, &nothing, session, context)?;
            let one = RecordBatchOptions::new().with_row_count(Some(1));
            let row =
                RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &one)?;
            Ok(match made.evaluate(&row)? {
                ColumnarValue::Scalar(value) => value,
                ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0)?,
            })
        };
        let width = known(&node.width)?;
        let bounds = node.bounds.iter().map(|(bound, expr)| Ok((*bound, known(expr)?)));
        let bounds: Vec<(Bound, ScalarValue)> = bounds.collect::<Result<_>>()?;
        let at = node.fills.iter().position(|fill| *fill == Fill::Bucket).unwrap_or(0);
        let buckets = buckets(node.schema.field(at).data_type(), &width, &bounds)?;
        let schema = node.schema.inner().clone();
        let made = GapFillExec::new(input.clone(), schema, node.fills.clone(), buckets)?;
        Ok(Some(Arc::new(made)))
    }
}

/// The buckets between bounds, of times of a type.
fn buckets(of: &DataType, width: &ScalarValue, bounds: &[(Bound, ScalarValue)]) -> Result<Buckets> {
    let ends = |named: Bound, inner: Bound, outer: Bound| {
        let said = |wanted: Bound| bounds.iter().filter(move |(bound, _)| *bound == wanted);
        let mut of_argument = said(named).filter_map(|(_, value)| moment(of, value).transpose());
        if let Some(argument) = of_argument.next() {
            return argument.map(|at| vec![at]);
        }
        let inner = said(inner).map(|(_, value)| moment(of, value));
        // Times are whole: one more is the next.
        let outer = said(outer)
            .map(|(_, value)| moment(of, value).map(|at| at.map(|at| at.saturating_add(1))));
        inner.chain(outer).filter_map(Result::transpose).collect::<Result<Vec<i64>>>()
    };
    let start = ends(Bound::Start, Bound::From, Bound::After)?.into_iter().max();
    let finish = ends(Bound::Finish, Bound::Before, Bound::Until)?.into_iter().min();
    let (start, finish) =
        (start.ok_or_else(|| missing("start"))?, finish.ok_or_else(|| missing("finish"))?);
    if *of == DataType::Int64 {
        return match width.cast_to(&DataType::Int64)? {
            ScalarValue::Int64(Some(width)) => Buckets::of_numbers(width, start, finish),
            _ => Err(wrong("bucket_width cannot be NULL")),
        };
    }
    match width.cast_to(&INTERVAL)? {
        ScalarValue::IntervalMonthDayNano(Some(width)) => Buckets::of_times(&width, start, finish),
        _ => Err(wrong("bucket_width cannot be NULL")),
    }
}

/// A bound as a whole number of what is counted, up to the next; none of null.
fn moment(of: &DataType, value: &ScalarValue) -> Result<Option<i64>> {
    let DataType::Timestamp(_, zone) = of else {
        return match value.cast_to(&DataType::Int64)? {
            ScalarValue::Int64(number) => Ok(number),
            _ => Ok(None),
        };
    };
    if let Some(text) = value.try_as_str().flatten() {
        let read = if zone.is_some() { instant_of(text) } else { clock_of(text) };
        let words = || wrong(&format!("\"{text}\" is no time"));
        return read.map(Some).ok_or_else(words);
    }
    match value.cast_to(of)? {
        ScalarValue::TimestampMicrosecond(micros, _) => Ok(micros),
        _ => Ok(None),
    }
}

/// That nothing says where an end is.
pub fn missing(end: &str) -> datafusion::common::DataFusionError {
    let words =
        format!("missing time_bucket_gapfill argument: could not infer {end} from WHERE clause");
    external(
        SqlError::wrong_value(words)
            .with_hint("Specify start and finish as arguments or in the WHERE clause."),
    )
}
