//! Groups of rows of a hypertable, asked of the store itself.
//!
//! ```text
//! sort ─ projection ─ aggregate ─ filter ─ hypertable
//!   │        │            └───────────┴────────┴─► Groups: series by series
//!   └────────┴─► done here, where a statement is nothing else: DataFusion's optimiser takes longer than
//!                most such statements
//! ```

use crate::tables::heap::scan::Ordinary;
use crate::tables::hypertables::conditions::Asked;
use crate::tables::hypertables::groups::{Found, Grouping, Groups, Key, Summary};
use crate::tables::hypertables::shape::Hypertable;
use crate::types::runtime::statement_scope::spawn_blocking;
use crate::types::time::instants::instant_of;
use crate::types::time::intervals::INTERVAL;
use crate::types::traversal::PlanTraversal as _;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{
    SortColumn, SortOptions, concat_batches, lexsort_to_indices, take_record_batch,
};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DataFusionError, Result, ScalarValue};
use datafusion::datasource::{DefaultTableSource, provider_as_source};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, FetchType, LogicalPlan, LogicalPlanBuilder, SkipType,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt as _, stream};
use std::sync::Arc;

/// The name of what groups are read from. No statement can write it.
const GROUPS: &str = "\0groups";
const DAY_MICROS: i64 = 86_400 * 1_000_000;

/// A statement that is groups of a hypertable, put in order.
pub struct Direct {
    pub groups: Groups,
    /// Which columns of the groups are answered.
    pub columns: Vec<usize>,
    /// Columns of the answer that it is sorted by.
    pub sorts: Vec<(usize, SortOptions)>,
    pub fetch: Option<usize>,
    pub schema: SchemaRef,
}

/// A plan whose groups of hypertables are asked of the store.
///
/// # Errors
/// When the plan makes no sense.
pub fn grouped(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| {
        let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
        match groups_of(aggregate) {
            Some(groups) => over(aggregate, groups).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        }
    });
    Ok(changed?.data)
}

/// What an aggregate says, over the groups themselves.
fn over(aggregate: &Aggregate, groups: Groups) -> Result<LogicalPlan> {
    let names: Vec<String> =
        groups.schema.fields().iter().map(|field| field.name().clone()).collect();
    let table = StreamingTable::try_new(groups.schema.clone(), vec![Arc::new(groups)])?;
    let source = provider_as_source(Arc::new(table));
    let columns = aggregate.schema.columns().into_iter().zip(names).map(|(column, own)| {
        Expr::Column(Column::new(Some(GROUPS), own)).alias_qualified(column.relation, column.name)
    });
    LogicalPlanBuilder::scan(GROUPS, source, None)?.project(columns)?.build()
}

/// What groups an aggregate asks for; none where they are others than those of a hypertable.
fn groups_of(aggregate: &Aggregate) -> Option<Groups> {
    let mut filters = Vec::new();
    let (series, table) = hypertable_of(&aggregate.input, &mut filters)?;
    let mut asked = Asked::everything();
    for filter in filters {
        asked.narrow(Asked::said(&table, &coerced(&table, filter))?);
    }
    let keys = aggregate.group_expr.iter().map(|expr| key_of(&table, expr));
    let keys = keys.collect::<Option<Vec<Key>>>().filter(|keys| !keys.is_empty())?;
    let times = keys.iter().filter(|key| matches!(key, Key::Time(_))).count();
    let is_twice = |key: &Key| keys.iter().filter(|one| *one == key).count() != 1;
    let summaries = aggregate.aggr_expr.iter().map(|expr| summary_of(&table, expr));
    let summaries = summaries.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?;
    if 1 < times || keys.iter().any(is_twice) {
        return None;
    }
    // Two of one name would be one column.
    let fields = aggregate.schema.as_arrow().fields().iter().enumerate();
    let fields: Vec<_> = fields
        .map(|(nth, field)| field.as_ref().clone().with_name(format!("{nth}")).with_nullable(true))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let grouping = Grouping { keys, summaries };
    Some(Groups { series, table, asked, grouping, schema })
}

/// The hypertable that a plan reads, and the conditions on the way there.
fn hypertable_of<'p>(
    plan: &'p LogicalPlan,
    filters: &mut Vec<&'p Expr>,
) -> Option<(Arc<crate::tables::hypertables::append::Series>, Arc<Hypertable>)> {
    match plan {
        LogicalPlan::Filter(filter) => {
            filters.extend(split_conjunction(&filter.predicate));
            hypertable_of(&filter.input, filters)
        }
        LogicalPlan::SubqueryAlias(alias) => hypertable_of(&alias.input, filters),
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
            let source = scan.source.downcast_ref::<DefaultTableSource>()?;
            source.table_provider.downcast_ref::<Ordinary>()?.hypertable()
        }
        _ => None,
    }
}

fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(Alias { expr, .. }) => plain(expr),
        other => other,
    }
}

fn key_of(table: &Hypertable, expr: &Expr) -> Option<Key> {
    match plain(expr) {
        Expr::Column(column) => {
            let at = table.schema.column(&column.name)?;
            table.labels.contains(&at).then_some(Key::Label(at))
        }
        Expr::ScalarFunction(function) if function.name() == "time_bucket" => {
            let [width, Expr::Column(time)] = function.args.as_slice() else { return None };
            let width = match width {
                Expr::Cast(cast) => cast.expr.as_ref(),
                plain => plain,
            };
            let Expr::Literal(width, _) = width else { return None };
            let is_time = table.schema.column(&time.name) == Some(table.time);
            width_of(width).filter(|_| is_time).map(Key::Time)
        }
        Expr::ScalarFunction(function) if function.name() == "date_trunc" => {
            let [Expr::Literal(of, _), Expr::Column(time)] = function.args.as_slice() else {
                return None;
            };
            let is_time = table.schema.column(&time.name) == Some(table.time);
            trunc_width(of).filter(|_| is_time).map(Key::Time)
        }
        _ => None,
    }
}

/// The stretches that `date_trunc` makes, where those are always as long: they begin where buckets of that
/// width do.
pub fn trunc_width(of: &ScalarValue) -> Option<i64> {
    const SECOND_MICROS: i64 = 1_000_000;
    Some(match of.try_as_str()?? {
        "second" => SECOND_MICROS,
        "minute" => 60 * SECOND_MICROS,
        "hour" => 3600 * SECOND_MICROS,
        "day" => DAY_MICROS,
        "week" => 7 * DAY_MICROS,
        _ => return None,
    })
}

/// A width that is always so many microseconds.
pub fn width_of(width: &ScalarValue) -> Option<i64> {
    match width.cast_to(&INTERVAL).ok()? {
        ScalarValue::IntervalMonthDayNano(Some(one)) if one.months == 0 => {
            let days = i64::from(one.days).checked_mul(DAY_MICROS)?;
            let rest = (one.nanoseconds % 1000 == 0).then_some(one.nanoseconds / 1000)?;
            days.checked_add(rest).filter(|width| 0 < *width)
        }
        _ => None,
    }
}

fn summary_of(table: &Hypertable, expr: &Expr) -> Option<(Summary, usize)> {
    let Expr::AggregateFunction(function) = plain(expr) else { return None };
    let params = &function.params;
    let is_plain = !params.distinct
        && params.filter.is_none()
        && params.order_by.is_empty()
        && params.null_treatment.is_none();
    let [of] = params.args.as_slice() else { return None };
    let name = function.func.name();
    if let (true, "count", Expr::Literal(one, _)) = (is_plain, name, of)
        && !one.is_null()
    {
        return Some((Summary::Rows, *table.values.first()?));
    }
    let Expr::Column(column) = of else { return None };
    let at = table.schema.column(&column.name)?;
    let is_float = table.is_float(at);
    let summary = match name {
        "max" => Summary::Max,
        "min" => Summary::Min,
        "sum" => Summary::Sum,
        "avg" => Summary::Avg,
        "count" => Summary::Count,
        _ => return None,
    };
    (is_plain && is_float).then_some((summary, at))
}

/// A condition in which times are no texts any more.
fn coerced(table: &Hypertable, filter: &Expr) -> Expr {
    let is_time = |expr: &Expr| match expr {
        Expr::Column(column) => table.schema.column(&column.name) == Some(table.time),
        _ => false,
    };
    let time = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            let micros = instant_of(text);
            micros.map(|micros| ScalarValue::TimestampMicrosecond(Some(micros), None))
        }
        _ => None,
    };
    if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter {
        let made = match (is_time(left), is_time(right)) {
            (true, false) => time(right).map(|at| ((**left).clone(), Expr::Literal(at, None))),
            (false, true) => time(left).map(|at| (Expr::Literal(at, None), (**right).clone())),
            _ => None,
        };
        if let Some((left, right)) = made {
            return Expr::BinaryExpr(BinaryExpr::new(Box::new(left), *op, Box::new(right)));
        }
    }
    filter.clone()
}

impl Direct {
    /// A statement that is nothing else.
    pub fn of(plan: &LogicalPlan) -> Option<Direct> {
        let schema = Arc::new(plan.schema().as_arrow().clone());
        let (plan, fetch) = match plan {
            LogicalPlan::Limit(limit) => {
                let (Ok(SkipType::Literal(0)), Ok(FetchType::Literal(fetch))) =
                    (limit.get_skip_type(), limit.get_fetch_type())
                else {
                    return None;
                };
                (&*limit.input, fetch)
            }
            other => (other, None),
        };
        let (plan, sort) = match plan {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (&*sort.input, Some(sort)),
            other => (other, None),
        };
        let LogicalPlan::Projection(projection) = plan else { return None };
        let LogicalPlan::Aggregate(aggregate) = &*projection.input else { return None };
        let place = |expr: &Expr| match plain(expr) {
            Expr::Column(column) => aggregate.schema.maybe_index_of_column(column),
            _ => None,
        };
        let columns = projection.expr.iter().map(place).collect::<Option<Vec<_>>>()?;
        let sorted_by = |one: &datafusion::logical_expr::expr::Sort| {
            let Expr::Column(column) = &one.expr else { return None };
            let at = projection.schema.maybe_index_of_column(column)?;
            Some((at, SortOptions { descending: !one.asc, nulls_first: one.nulls_first }))
        };
        let sorts = sort.iter().flat_map(|sort| &sort.expr).map(sorted_by);
        let sorts = sorts.collect::<Option<Vec<_>>>()?;
        let groups = groups_of(aggregate)?;
        Some(Direct { groups, columns, sorts, fetch, schema })
    }

    /// Its rows.
    pub fn rows(self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = self.schema.clone();
        let rows = stream::once(async move {
            if let Some(count) = self.newest() {
                let (groups, context) = (self.groups.clone(), context.clone());
                let newest = spawn_blocking(move || groups.newest(&context, count));
                let newest: Result<Option<Vec<RecordBatch>>> =
                    newest.await.map_err(|error| DataFusionError::External(Box::new(error)))?;
                if let Some(all) = newest? {
                    return self.answer(&all);
                }
            }
            let found = match self.groups.find(&context)? {
                Found::All(all) => return self.answer(&all),
                Found::Many(found) => *found,
            };
            let (mut batches, mut all) = (self.groups.of(found, &context), Vec::new());
            while let Some(batch) = batches.next().await {
                all.push(batch?);
            }
            self.answer(&all)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    /// Its rows, where they cost no more than so much (`SelectLimits::cost_max`).
    ///
    /// # Errors
    /// When they cannot be read, and when they would cost more.
    pub fn at_once(&self, context: &TaskContext, cost_max: u64) -> Result<RecordBatch> {
        self.answer(&self.groups.within(cost_max, context)?)
    }

    /// How many groups are wanted, where those are the newest ones.
    fn newest(&self) -> Option<usize> {
        let [(at, options)] = self.sorts.as_slice() else { return None };
        let is_time = self.columns.get(*at).is_some_and(|column| *column == 0);
        self.fetch.filter(|_| is_time && options.descending)
    }

    fn answer(&self, all: &[RecordBatch]) -> Result<RecordBatch> {
        let batch = concat_batches(&self.groups.schema, all)?;
        let columns: Vec<ArrayRef> =
            self.columns.iter().map(|at| batch.column(*at).clone()).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        let sorts: Vec<SortColumn> = self
            .sorts
            .iter()
            .map(|(at, options)| SortColumn {
                values: batch.column(*at).clone(),
                options: Some(*options),
            })
            .collect();
        if sorts.is_empty() {
            let count = self.fetch.map_or(batch.num_rows(), |fetch| fetch.min(batch.num_rows()));
            return Ok(batch.slice(0, count));
        }
        let order = lexsort_to_indices(&sorts, self.fetch)?;
        Ok(take_record_batch(&batch, &order)?)
    }
}
