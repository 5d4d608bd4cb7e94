//! Rows of a hypertable, from the words of a statement.

use crate::plan::straight::words::{Output, Plain, Scope, options, sorted_by};
use crate::tables::heap::columns::field_of as table_field;
use crate::tables::hypertables::append::Series;
use crate::tables::hypertables::conditions::{Asked, ValueCondition};
use crate::tables::hypertables::reading::Scan;
use crate::tables::hypertables::shape::Hypertable;
use crate::types::names::folded;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{
    SortColumn, SortOptions, concat_batches, lexsort_to_indices, take_record_batch,
};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::sql::sqlparser::ast::{Expr, OrderByExpr, SelectItem, WildcardAdditionalOptions};
use std::sync::Arc;

/// Batches that wait for who reads them.
const BATCHES_WAITING: usize = 2;

/// What is asked of a hypertable.
pub struct RowsOf {
    /// Its columns, by their places.
    columns: Vec<usize>,
    sorts: Vec<(usize, SortOptions)>,
    limit: Option<usize>,
}

impl RowsOf {
    /// What a statement says, and what is answered.
    pub fn of(scope: &Scope<'_>, plain: &Plain<'_>) -> Option<(RowsOf, SchemaRef)> {
        let mut outputs: Vec<Output> = Vec::new();
        for item in plain.projection {
            match item {
                SelectItem::Wildcard(more) if is_bare(more) && plain.projection.len() == 1 => {
                    let all = scope.table.schema.columns.iter().enumerate();
                    let all =
                        all.map(|(at, one)| Output { name: one.name.clone(), column: Some(at) });
                    outputs.extend(all);
                }
                SelectItem::UnnamedExpr(expr) => outputs.push(output(scope, expr, None)?),
                SelectItem::ExprWithAlias { expr, alias } => {
                    outputs.push(output(scope, expr, Some(folded(alias)))?);
                }
                _ => return None,
            }
        }
        let columns = outputs.iter().map(|one| one.column).collect::<Option<Vec<usize>>>()?;
        let sort =
            |sort: &OrderByExpr| Some((sorted_by(scope, &outputs, &sort.expr)?, options(sort)));
        let sorts = plain.sorts.iter().map(sort).collect::<Option<Vec<_>>>()?;
        let fields = outputs
            .iter()
            .zip(&columns)
            .map(|(one, at)| table_field(&scope.table.schema.columns[*at]).with_name(&one.name));
        let answered = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let is_something = !columns.is_empty();
        is_something.then_some((RowsOf { columns, sorts, limit: plain.limit }, answered))
    }

    /// How they are read.
    pub fn scan(
        &self,
        series: Arc<Series>,
        table: Arc<Hypertable>,
        asked: Asked,
        values: &[ValueCondition],
        answered: &SchemaRef,
    ) -> Scan {
        let (values, wanted) = (values.to_vec(), self.columns.clone());
        Scan { series, table, asked, values, newest: None, wanted, schema: answered.clone() }
    }

    /// All rows, where they cost no more than so much.
    ///
    /// # Errors
    /// When they cannot be read, and when they would cost more.
    pub fn at_once(
        &self,
        scan: &Scan,
        context: &TaskContext,
        cost_max: u64,
    ) -> Result<Vec<RecordBatch>> {
        let batch_len = context.session_config().batch_size();
        let mut batches = Vec::new();
        let most = if self.sorts.is_empty() { self.limit } else { None };
        let mut limited = Limited { left: most };
        scan.give_within(cost_max, batch_len, &mut |batch| {
            limited.take(batch, &mut |batch| {
                batches.push(batch);
                true
            })
        })?;
        if self.sorts.is_empty() {
            return Ok(batches);
        }
        let all = concat_batches(&scan.schema, &batches)?;
        let sorts: Vec<SortColumn> = self
            .sorts
            .iter()
            .map(|(at, options)| SortColumn {
                values: all.column(*at).clone(),
                options: Some(*options),
            })
            .collect();
        let order = lexsort_to_indices(&sorts, self.limit)?;
        Ok(vec![take_record_batch(&all, &order)?])
    }

    /// Rows as they are made; none where they are to be in an order.
    pub fn as_made(&self, scan: Scan, context: &TaskContext) -> Option<SendableRecordBatchStream> {
        if !self.sorts.is_empty() {
            return None;
        }
        let (batch_len, limit) = (context.session_config().batch_size(), self.limit);
        let mut builder = RecordBatchReceiverStream::builder(scan.schema.clone(), BATCHES_WAITING);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let mut limited = Limited { left: limit };
            // Nobody hears when whoever asked has gone.
            let mut send = |batch| sender.blocking_send(Ok(batch)).is_ok();
            scan.give(batch_len, &mut |batch| limited.take(batch, &mut send))
        });
        Some(builder.build())
    }
}

/// So many rows, and no more.
struct Limited {
    /// How many are still wanted; all for none.
    left: Option<usize>,
}

impl Limited {
    /// Hands on what is still wanted; says whether more is.
    fn take(&mut self, batch: RecordBatch, on: &mut dyn FnMut(RecordBatch) -> bool) -> bool {
        let Some(left) = self.left else { return on(batch) };
        let some = batch.num_rows().min(left);
        self.left = Some(left - some);
        (some == 0 || on(batch.slice(0, some))) && some < left
    }
}

fn output(scope: &Scope<'_>, expr: &Expr, alias: Option<String>) -> Option<Output> {
    let at = scope.column(expr)?;
    let name = alias.unwrap_or_else(|| scope.name(at).to_string());
    Some(Output { name, column: Some(at) })
}

fn is_bare(more: &WildcardAdditionalOptions) -> bool {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike: None,
        opt_exclude: None,
        opt_except: None,
        opt_replace: None,
        opt_rename: None,
        opt_alias: None,
    } = more
    else {
        return false;
    };
    true
}
