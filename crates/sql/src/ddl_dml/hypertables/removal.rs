//! What deletes rows of a hypertable, or samples: `DELETE` whose conditions the store understands, and `drop_chunks`.
//!
//! The store hides the samples of some series in some range of time at once, and merges leave them out. It can
//! do nothing by the value of a sample.

use crate::ddl_dml::hypertables::make_hypertable::{check_alone, expect_hypertable};
use crate::ddl_dml::runner::{Parameters, Runner, add_parameters, quoted, selecting};
use crate::parse::rewrite::expressions::query;
use crate::plan::queries::optimized;
use crate::plan::ready::Statement;
use crate::tables::heap::columns::column_type;
use crate::tables::heap::scan::Ordinary;
use crate::tables::heap::view::{Fate, View};
use crate::tables::hypertables::conditions::Asked;
use crate::tables::hypertables::shape::Hypertable;
use crate::tables::metrics::filters;
use crate::tables::metrics::filters::{micros, times};
use crate::tables::metrics::samples::Samples;
use crate::tables::metrics::tables::Rows;
use crate::types::error::SqlError;
use crate::types::traversal::PlanTraversal as _;
use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, TableScan};
use datafusion::sql::sqlparser::ast;
use model::{METRIC_NAME, MatchOp, Matcher, TimeRange};
use std::sync::Arc;
use tokio::task::block_in_place;

/// All samples of the store, for `drop_chunks`.
const SAMPLES: &str = "metrics";

/// A `DELETE`, planned: the query that counts what it deletes.
#[derive(Debug)]
pub struct Removal(Statement);

/// What `drop_chunks` was called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropping {
    /// The table.
    pub table: String,
    /// Rows before that, or that old, go; a text of SQL.
    pub older_than: Option<String>,
    /// Only rows of that time or later go.
    pub newer_than: Option<String>,
}

/// Deletes the samples that are asked for.
fn remove(runner: &Runner, asked: Asked) -> Result<(), SqlError> {
    block_in_place(|| runner.view.series().delete(asked.matchers, asked.range))
}

/// What holds of all samples, or of all rows of a table.
fn all_of(table: &str) -> Matcher {
    match table {
        SAMPLES => Matcher::new(METRIC_NAME, MatchOp::NotEqual, ""),
        table => Hypertable::matcher(table),
    }
}

impl Removal {
    /// Of a `DELETE`.
    ///
    /// # Errors
    /// When it makes no sense, or says what cannot be done.
    pub async fn plan(
        runner: &Runner,
        said: &ast::Delete,
        known: &mut Parameters,
    ) -> Result<Removal, SqlError> {
        let is_plain = said.using.is_none() && said.returning.is_none();
        if !is_plain || !said.order_by.is_empty() || said.limit.is_some() {
            let words = "DELETE .. USING, RETURNING, ORDER BY or LIMIT of samples and hypertables is \
                         not known here";
            return Err(SqlError::unsupported(words).with_hint(CONDITIONS));
        }
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
            &said.from;
        let counts = query("SELECT count(*)").and_then(|made| match *made.body {
            ast::SetExpr::Select(select) => Some(select.projection),
            _ => None,
        });
        let counts = counts.ok_or_else(|| SqlError::unexpected("nothing is counted"))?;
        let asked = selecting(counts, from.clone(), said.selection.clone())?;
        let statement = runner.plan(asked).await?;
        add_parameters(known, &statement)?;
        Ok(Removal(statement))
    }

    /// Whether the tables that it reads are as they were when it was planned.
    pub fn is_current(&self, view: &View) -> bool {
        self.0.is_current(view)
    }

    /// Deletes the rows. Returns how many there were.
    ///
    /// # Errors
    /// When its conditions say more than a time and labels; nothing is deleted then.
    pub async fn run(
        &self,
        runner: &Runner,
        parameters: &[ScalarValue],
        fate: &Fate,
    ) -> Result<u64, SqlError> {
        let changing = runner.view.changing()?;
        check_alone(&runner.view, "DELETE")?;
        let plan = optimized(&runner.context, &self.0, parameters).await?;
        let Some(asked) = asked(&plan)? else { return Ok(0) };
        let count = counted(runner, &self.0, parameters).await?;
        // What was cancelled until then deletes nothing.
        block_in_place(|| changing.done(fate))?;
        remove(runner, asked)?;
        Ok(count)
    }
}

const CONDITIONS: &str = "They are deleted by conditions on their time and labels that are joined by AND: time < '2024-01-01' \
                          AND host IN ('a', 'b'); of metrics, name = 'up' AND labels->>'job' = 'x'.";

/// What rows are deleted of.
enum Of {
    Hypertable(Arc<Hypertable>),
    Samples(Arc<dyn TableProvider>),
}

impl Of {
    /// The table that a plan reads, if rows of it may be deleted so.
    fn scanned(scan: &TableScan) -> Option<Of> {
        let source = scan.source.downcast_ref::<DefaultTableSource>()?;
        if source.table_provider.downcast_ref::<Samples>().is_some() {
            return Some(Of::Samples(source.table_provider.clone()));
        }
        let ordinary = source.table_provider.downcast_ref::<Ordinary>()?;
        Some(Of::Hypertable(ordinary.hypertable()?.1))
    }

    /// All of its rows; none where it has no samples of its own.
    fn everything(&self) -> Result<Option<Asked>, SqlError> {
        let mut all = Asked::everything();
        match self {
            Of::Hypertable(table) => all.matchers.push(all_of(&table.name)),
            Of::Samples(table) => {
                let samples = table.downcast_ref::<Samples>();
                match samples.map(Samples::rows) {
                    Some(Rows::Samples) => {}
                    Some(Rows::None) => return Ok(None),
                    _ => {
                        let words =
                            "series are not deleted, samples are: a series without any is gone";
                        let hint =
                            "DELETE FROM metrics WHERE name = 'up', or SELECT drop_metric('up').";
                        return Err(SqlError::unsupported(words).with_hint(hint));
                    }
                }
                all.matchers.push(all_of(SAMPLES));
                all.matchers
                    .extend(samples.into_iter().flat_map(|one| one.matchers().iter().cloned()));
            }
        }
        Ok(Some(all))
    }

    /// What a condition says, all of it.
    fn said(&self, condition: &Expr) -> Option<Asked> {
        match self {
            Of::Hypertable(table) => Asked::said(table, condition),
            Of::Samples(table) => {
                let filters::Asked { matchers, range } =
                    table.downcast_ref::<Samples>()?.said(condition)?;
                Some(Asked { matchers, range })
            }
        }
    }
}

/// What a plan that reads one table of samples asks for; none where it reads nothing.
fn asked(plan: &LogicalPlan) -> Result<Option<Asked>, SqlError> {
    let (mut conditions, mut table, mut others) = (Vec::new(), None, false);
    // What is given to it says nothing but that it goes on.
    let _ = plan.visit_plans(|node| {
        match node {
            LogicalPlan::Filter(filter) => {
                conditions.extend(split_conjunction(&filter.predicate).into_iter().cloned());
            }
            LogicalPlan::TableScan(scan) => {
                conditions.extend(scan.filters.iter().cloned());
                others = others || table.is_some();
                table = Of::scanned(scan);
                others = others || table.is_none();
            }
            LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::EmptyRelation(_) => {}
            _ => others = true,
        }
        Ok(TreeNodeRecursion::Continue)
    });
    let not_said = |what: String| {
        let words = format!("samples and rows of hypertables are not deleted by {what}");
        Err(SqlError::unsupported(words).with_hint(CONDITIONS))
    };
    if others {
        return not_said("what other tables say".into());
    }
    let Some(table) = table else { return Ok(None) };
    let Some(mut all) = table.everything()? else { return Ok(None) };
    for condition in &conditions {
        match table.said(condition) {
            Some(one) => all.narrow(one),
            None => return not_said(said(condition)),
        }
    }
    Ok(Some(all))
}

fn said(condition: &Expr) -> String {
    let mut columns: Vec<&str> =
        condition.column_refs().into_iter().map(|column| column.name.as_str()).collect();
    columns.sort_unstable();
    match columns.as_slice() {
        [] => "such a condition".into(),
        columns => format!("such a condition on {}", columns.join(", ")),
    }
}

/// The one number that a query says.
async fn counted(
    runner: &Runner,
    statement: &Statement,
    parameters: &[ScalarValue],
) -> Result<u64, SqlError> {
    let mut count = 0;
    let read = runner.each(statement, parameters, |batch: &RecordBatch| {
        let numbers = batch.column(0).as_primitive::<Int64Type>().values();
        count += numbers.iter().copied().map(i64::cast_unsigned).sum::<u64>();
        Ok(())
    });
    read.await?;
    Ok(count)
}

/// Does what `drop_chunks` says. Returns what it answers, and what is said of it.
///
/// # Errors
/// When there is no such table, or no time is said.
pub async fn drop_chunks(
    runner: &Runner,
    dropping: &Dropping,
    fate: &Fate,
) -> Result<(String, String), SqlError> {
    let changing = runner.view.changing()?;
    check_alone(&runner.view, "drop_chunks")?;
    let name = &dropping.table;
    let mut range = TimeRange::ALL;
    let (mut conditions, mut instants) = (Vec::new(), Vec::new());
    let bounds = [(&dropping.older_than, Operator::Lt), (&dropping.newer_than, Operator::GtEq)];
    for (text, op) in bounds {
        if let Some(text) = text {
            let at = instant(runner, text).await?;
            range = range.intersect(&times(op, at).unwrap_or(TimeRange::ALL));
            instants.push(at);
            conditions.push(format!("{op} ${}", instants.len()));
        }
    }
    if conditions.is_empty() {
        let words = "invalid time range for dropping chunks";
        let hint = "Say older_than => .., newer_than => .., or both.";
        return Err(SqlError::new("22023", words).with_hint(hint));
    }
    let asked = Asked { matchers: vec![all_of(name)], range };
    let answer = format!("public.{name}");
    if name == SAMPLES {
        block_in_place(|| changing.done(fate))?;
        remove(runner, asked)?;
        return Ok((answer, "samples of all metrics in that time are dropped".into()));
    }
    let (_, table) = expect_hypertable(&runner.view, name)?;
    let time = &table.schema.columns[table.time];
    let conditions: Vec<String> =
        conditions.iter().map(|one| format!("{} {one}", quoted(&time.name))).collect();
    let text = format!("SELECT count(*) FROM {} WHERE {}", quoted(name), conditions.join(" AND "));
    let parameters: Vec<ScalarValue> = instants
        .iter()
        .map(|at| ScalarValue::TimestampMicrosecond(Some(*at), zone_of(&column_type(time))))
        .collect();
    let counting = query(&text).ok_or_else(|| SqlError::unexpected("nothing is counted"))?;
    let counting = runner.plan(counting).await?;
    let count = counted(runner, &counting, &parameters).await?;
    block_in_place(|| changing.done(fate))?;
    remove(runner, asked)?;
    Ok((answer, format!("{count} rows are dropped")))
}

fn zone_of(ty: &DataType) -> Option<Arc<str>> {
    match ty {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

/// The time that an argument says, or that was an interval ago, in microseconds.
///
/// # Errors
/// When it is neither.
pub async fn instant(runner: &Runner, text: &str) -> Result<i64, SqlError> {
    let not_said = || {
        let words = format!("{text} is neither a time nor an interval");
        SqlError::new("22023", words)
            .with_hint("Say INTERVAL '30 days', or '2024-01-01'::timestamptz.")
    };
    let planned =
        |text: String| async move { runner.plan(query(&text).ok_or_else(not_said)?).await };
    let plain = planned(format!("SELECT {text}")).await?;
    let ty = plain.schema().field(0).data_type().clone();
    let asks = match ty {
        DataType::Interval(_) => format!("SELECT (now() - ({text}))::timestamptz"),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Utf8 | DataType::Utf8View => {
            format!("SELECT ({text})::timestamptz")
        }
        _ => return Err(not_said()),
    };
    let mut at = None;
    let statement = planned(asks).await?;
    let read = runner.each(&statement, &[], |batch: &RecordBatch| {
        at = (batch.num_rows() == 1)
            .then(|| {
                ScalarValue::try_from_array(batch.column(0), 0).ok().and_then(|one| micros(&one))
            })
            .flatten();
        Ok(())
    });
    read.await?;
    at.ok_or_else(not_said)
}
