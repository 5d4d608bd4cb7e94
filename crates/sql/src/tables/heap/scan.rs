//! An ordinary table as DataFusion reads it: rows by rows, or the one row of a key.

use crate::tables::heap::arrays::array_of;
use crate::tables::heap::columns::field_of;
use crate::tables::heap::lookups::Lookups;
use crate::tables::heap::values;
use crate::tables::heap::view::{View, no_such_table};
use crate::tables::hypertables::append::Series;
use crate::tables::hypertables::conditions::{Asked, ValueCondition};
use crate::tables::hypertables::reading;
use crate::tables::hypertables::reading::Wanted;
use crate::tables::hypertables::shape::Hypertable;
use crate::types::error::SqlError;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraint, Constraints, DataFusionError, Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream;
use std::sync::{Arc, Mutex, PoisonError};
use tables::{ColumnType, Datum, RowId, Scalar, Schema, Table};

/// The column with a row's number. No client can write such a name.
pub const ROW: &str = "\0row";

/// Rows that a statement hands to its own queries, once it has them.
#[derive(Clone, Default)]
pub enum Rows {
    /// None yet.
    #[default]
    None,
    /// Some of a table, in that order.
    Of(Arc<Table>, Arc<[RowId]>),
    /// Values that are in no table, under numbers of rows.
    Given(Arc<[(RowId, Vec<Datum>)]>),
}

/// Where those rows are put.
pub type Slot = Arc<Mutex<Rows>>;

/// Rows that are handed: they are taken back when this is dropped, so that a plan that is kept holds none.
pub struct Handed(Slot);

/// Puts rows where a plan looks for them.
#[must_use]
pub fn put(slot: &Slot, rows: Rows) -> Handed {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = rows;
    Handed(slot.clone())
}

impl Drop for Handed {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Rows::None;
    }
}

/// Which rows of a table there are.
#[derive(Clone)]
enum Of {
    /// Those that a session sees when it asks.
    View(Arc<View>),
    /// Those that were handed.
    Slot(Slot),
}

/// A table, or some of its rows.
#[derive(Clone)]
pub struct Ordinary {
    of: Of,
    name: Arc<str>,
    /// What the table looked like when the statement was planned.
    seen: Arc<Schema>,
    /// Columns as DataFusion knows them; the last one is [`ROW`] where that is asked for.
    schema: SchemaRef,
    /// Its primary key.
    keys: Option<Constraints>,
    /// What it is, if its rows are samples.
    hypertable: Option<Arc<Hypertable>>,
    /// How many rows are wanted of each label set of it, the newest ones; all for none.
    newest: Option<usize>,
}

impl std::fmt::Debug for Ordinary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ordinary({})", self.name)
    }
}

impl Ordinary {
    /// A table that a session sees.
    pub fn new(view: &Arc<View>, table: &Table, has_row: bool) -> Ordinary {
        let (name, seen) = (table.name(), table.shared_schema());
        Ordinary::over(Of::View(view.clone()), name, seen, has_row)
    }

    /// Rows of a table, or such as it may have, that are handed later.
    pub fn of_slot(slot: &Slot, seen: Arc<Schema>, has_row: bool) -> Ordinary {
        Ordinary::over(Of::Slot(slot.clone()), "rows", seen, has_row)
    }

    fn over(of: Of, name: &str, seen: Arc<Schema>, has_row: bool) -> Ordinary {
        let fields = seen.columns.iter().map(field_of);
        let row = has_row.then(|| Field::new(ROW, DataType::Int64, false));
        let schema = Arc::new(ArrowSchema::new(fields.chain(row).collect::<Vec<_>>()));
        let hypertable = match &of {
            Of::View(_) => Hypertable::of(name, &seen).map(Arc::new),
            Of::Slot(_) => None,
        };
        let keys = seen.primary_key().filter(|_| hypertable.is_none()).map(|key| {
            Constraints::new_unverified(vec![Constraint::PrimaryKey(key.columns.clone())])
        });
        Ordinary { of, name: name.into(), seen, schema, keys, hypertable, newest: None }
    }

    /// Whether it has a column of that name.
    pub fn has_column(&self, name: &str) -> bool {
        self.seen.column(name).is_some()
    }

    /// Whether its rows are samples.
    pub fn is_hypertable(&self) -> bool {
        self.hypertable.is_some()
    }

    /// What it is, and where its rows are, if those are samples and all of them are wanted.
    pub fn hypertable(&self) -> Option<(Arc<Series>, Arc<Hypertable>)> {
        let Of::View(view) = &self.of else { return None };
        let seen = self.hypertable.as_ref().filter(|_| self.newest.is_none())?;
        let now = self.hypertable_now(view, seen).ok()?;
        Some((view.series().clone(), now))
    }

    /// Only the newest rows of each label set, which are those of each key; none where it is something
    /// else that is asked.
    pub fn newest(&self, time: &str, keys: &[&str], count: usize) -> Option<Ordinary> {
        let table = self.hypertable.as_ref()?;
        let name = |at: usize| table.schema.columns[at].name.as_str();
        let is_label = |key: &&str| table.labels.iter().any(|at| name(*at) == *key);
        let is_it = name(table.time) == time && keys.iter().all(is_label);
        is_it.then(|| Ordinary { newest: Some(count), ..self.clone() })
    }

    /// The table's name, and what it looked like.
    pub fn relied_on(&self) -> Option<(Arc<str>, Arc<Schema>)> {
        matches!(self.of, Of::View(_)).then(|| (self.name.clone(), self.seen.clone()))
    }

    /// The table as the session sees it.
    fn current(&self, view: &View) -> Result<Arc<Table>, SqlError> {
        let table = view.get(&self.name).ok_or_else(|| no_such_table(&self.name))?;
        match *table.schema() == *self.seen {
            true => Ok(table),
            false => {
                let words =
                    format!("table \"{}\" was altered, prepare the statement anew", self.name);
                Err(SqlError::new("0A000", words))
            }
        }
    }

    /// A hypertable as it is when it is read.
    fn hypertable_now(
        &self,
        view: &View,
        seen: &Arc<Hypertable>,
    ) -> Result<Arc<Hypertable>, SqlError> {
        self.current(view)?;
        if view.adds_to(&self.name) {
            let words =
                format!("rows that this transaction adds to \"{}\" cannot be seen", self.name);
            let hint = "They are there once it is committed: ask then.";
            return Err(SqlError::new("55000", words).with_hint(hint));
        }
        Ok(seen.clone())
    }

    fn source(&self, filters: &[Expr]) -> Result<Source, SqlError> {
        Ok(match &self.of {
            Of::View(view) => {
                let table = self.current(view)?;
                let found = row_of_key(&table, filters)
                    .or_else(|| rows_of_values(view.lookups(), &table, filters));
                match found {
                    Some(rows) => Source::Some(table, rows.into()),
                    None => Source::All(table),
                }
            }
            Of::Slot(slot) => match slot.lock().unwrap_or_else(PoisonError::into_inner).clone() {
                Rows::None => Source::Given([].into()),
                Rows::Of(table, rows) => Source::Some(table, rows),
                Rows::Given(rows) => Source::Given(rows),
            },
        })
    }
}

/// Whether values of a type have one way to be equal, in SQL here as in a key.
fn is_found_by_key(ty: ColumnType) -> bool {
    use Scalar::{Bool, Date, Int2, Int4, Int8, Text, Timestamp, Timestamptz, Uuid};
    let is_plain = |scalar| {
        matches!(scalar, Bool | Int2 | Int4 | Int8 | Text | Uuid | Date | Timestamp | Timestamptz)
    };
    matches!(ty, ColumnType::One(scalar) if is_plain(scalar))
}

/// The column and value of `column = value`.
fn equality(filter: &Expr) -> Option<(&str, &ScalarValue)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = filter else {
        return None;
    };
    match (&**left, &**right) {
        (Expr::Column(column), Expr::Literal(value, _))
        | (Expr::Literal(value, _), Expr::Column(column)) => Some((&column.name, value)),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// The column and values of `column = value` and `column IN (values)`.
fn memberships(filter: &Expr) -> Option<(&str, Vec<&ScalarValue>)> {
    if let Expr::InList(InList { expr, list, negated: false }) = filter
        && let Expr::Column(column) = &**expr
    {
        return Some((&column.name, list.iter().map(literal).collect::<Option<_>>()?));
    }
    equality(filter).map(|(name, value)| (name, vec![value]))
}

/// The column and values of a condition as a table has them; none where they might be equal in another way.
fn membership(table: &Table, filter: &Expr) -> Option<(usize, Vec<Datum>)> {
    let (name, values) = memberships(filter)?;
    let at = table.schema().column(name)?;
    let column = &table.schema().columns[at];
    let own = field_of(column).data_type().clone();
    let datum = |value: &&ScalarValue| {
        let ty = value.data_type();
        let is_alike =
            ty == own || ty.is_string() && own.is_string() || ty.is_integer() && own.is_integer();
        let value = is_alike.then(|| values::of_scalar(value).ok()).flatten()?;
        values::assign(column, value).ok().filter(|value| *value != Datum::Null)
    };
    let is_found = is_found_by_key(column.ty) && !column.declared.starts_with("char");
    is_found
        .then(|| values.iter().map(datum).collect::<Option<Vec<_>>>())
        .flatten()
        .map(|all| (at, all))
}

/// Rows among which those that conditions leave are, by the values of one column.
fn rows_of_values(lookups: &Lookups, table: &Arc<Table>, filters: &[Expr]) -> Option<Vec<RowId>> {
    let asked = filters.iter().filter_map(|filter| membership(table, filter));
    asked.into_iter().find_map(|(at, values)| lookups.find(table, at, &values))
}

impl Ordinary {
    /// The values of a column in the rows that conditions leave, where rows are found by one of them, and all of them
    /// say which values a column has; none where the planner has to ask.
    pub fn values_of(&self, column: &str, conditions: &[&Expr]) -> Option<Vec<ScalarValue>> {
        let Of::View(view) = &self.of else { return None };
        let table = self.current(view).ok().filter(|_| self.hypertable.is_none())?;
        let wanted = table.schema().column(column)?;
        let asked = conditions.iter().map(|one| membership(&table, one));
        let asked: Vec<(usize, Vec<Datum>)> = asked.collect::<Option<_>>()?;
        let found =
            asked.iter().find_map(|(at, values)| view.lookups().find(&table, *at, values))?;
        let places: Vec<usize> = asked.iter().map(|(at, _)| *at).chain([wanted]).collect();
        let mut values = Vec::with_capacity(found.len());
        for row in found.iter().filter_map(|id| table.row(*id)) {
            let mut row: Vec<Datum> = row.project(&places).into_iter().collect();
            let value = row.pop()?;
            if row.iter().zip(&asked).all(|(one, (_, all))| all.contains(one)) {
                values.push(value);
            }
        }
        let array = array_of(&table.schema().columns[wanted], &values).ok()?;
        (0..array.len()).map(|row| ScalarValue::try_from_array(&array, row).ok()).collect()
    }
}

/// The row that conditions leave, where they are on all columns of a constraint; none where nobody knows.
fn row_of_key(table: &Table, filters: &[Expr]) -> Option<Vec<RowId>> {
    let schema = table.schema();
    let known: Vec<(usize, &ScalarValue)> = filters
        .iter()
        .filter_map(equality)
        .filter_map(|(name, value)| Some((schema.column(name)?, value)))
        .filter(|(at, value)| {
            let column = &schema.columns[*at];
            is_found_by_key(column.ty) && value.data_type() == *field_of(column).data_type()
        })
        .collect();
    schema.constraints.iter().find_map(|constraint| {
        let value = |at: &usize| {
            let (_, value) = known.iter().find(|(one, _)| one == at)?;
            values::assign(&schema.columns[*at], values::of_scalar(value).ok()?).ok()
        };
        let key: Vec<Datum> = constraint.columns.iter().map(value).collect::<Option<_>>()?;
        let found = table.find_by(&constraint.name, &key).ok()?;
        Some(found.map(|row| row.id).into_iter().collect())
    })
}

#[async_trait::async_trait]
impl TableProvider for Ordinary {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The primary key, on which the other columns depend: `GROUP BY` of it may show them.
    fn constraints(&self) -> Option<&Constraints> {
        self.keys.as_ref()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        // None of them is exact: the optimiser may put a condition in other words after it was asked here,
        // in words that are not known.
        let is_known = |filter: &Expr| match &self.hypertable {
            Some(table) => {
                Asked::said(table, filter).is_some()
                    || ValueCondition::said(table, filter).is_some()
            }
            None => memberships(filter).is_some(),
        };
        let support = |filter: &&Expr| match is_known(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let external = |error| DataFusionError::External(Box::new(error));
        let wanted =
            projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        if let (Some(table), Of::View(view)) = (&self.hypertable, &self.of) {
            let table = self.hypertable_now(view, table).map_err(external)?;
            let asked = Asked::of(&table, filters);
            // The newest rows are those of all.
            let values = filters.iter().filter(|_| self.newest.is_none());
            let values = values.filter_map(|one| ValueCondition::said(&table, one)).collect();
            let series = view.series().clone();
            let asking = Wanted { asked, values, newest: self.newest, columns: wanted, limit };
            return reading::plan(series, table, asking, &self.schema);
        }
        let source = self.source(filters).map_err(external)?;
        let schema = Arc::new(self.schema.project(&wanted)?);
        let reading = Reading { source, seen: self.seen.clone(), wanted, schema: schema.clone() };
        let parts: Vec<Arc<dyn PartitionStream>> = vec![Arc::new(reading)];
        Ok(Arc::new(StreamingTableExec::try_new(schema, parts, None, [], false, limit)?))
    }
}

/// The rows of one reading.
#[derive(Clone)]
enum Source {
    All(Arc<Table>),
    Some(Arc<Table>, Arc<[RowId]>),
    Given(Arc<[(RowId, Vec<Datum>)]>),
}

/// One reading.
#[derive(Clone)]
struct Reading {
    source: Source,
    seen: Arc<Schema>,
    /// Columns by their places; the one behind the last is [`ROW`].
    wanted: Vec<usize>,
    schema: SchemaRef,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reading")
    }
}

/// Some rows, as columns.
struct Read {
    ids: Vec<RowId>,
    columns: Vec<Vec<Datum>>,
}

impl Read {
    fn new(columns: usize) -> Read {
        Read { ids: Vec::new(), columns: vec![Vec::new(); columns] }
    }

    fn push(&mut self, id: RowId, values: impl IntoIterator<Item = Datum>) {
        self.ids.push(id);
        self.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }
}

impl Reading {
    /// The columns of the table that are wanted.
    fn places(&self) -> Vec<usize> {
        let count = self.seen.columns.len();
        self.wanted.iter().copied().filter(|at| *at < count).collect()
    }

    /// The next rows from `start` on, which is a place in a list or a row's number, and where those after
    /// them start.
    fn read(&self, start: u64, count: usize) -> (Read, u64) {
        let places = self.places();
        let mut read = Read::new(places.len());
        let first = usize::try_from(start).unwrap_or(usize::MAX);
        match &self.source {
            Source::All(table) => {
                for row in table.rows_from(RowId(start)).take(count) {
                    read.push(row.id, row.project(&places));
                }
                let next = read.ids.last().map_or(start, |last| last.0 + 1);
                return (read, next);
            }
            Source::Some(table, ids) => {
                for row in ids.iter().skip(first).take(count).filter_map(|id| table.row(*id)) {
                    read.push(row.id, row.project(&places));
                }
            }
            Source::Given(rows) => {
                for (id, values) in rows.iter().skip(first).take(count) {
                    read.push(*id, places.iter().map(|at| values[*at].clone()));
                }
            }
        }
        (read, start + count as u64)
    }

    fn batch(&self, read: &Read) -> Result<RecordBatch> {
        let all = &self.seen.columns;
        let columns = self.places();
        let mut made =
            columns.iter().zip(&read.columns).map(|(at, values)| array_of(&all[*at], values));
        let mut arrays = Vec::with_capacity(self.wanted.len());
        for at in &self.wanted {
            arrays.push(match *at < all.len() {
                true => made.next().unwrap_or_else(|| {
                    Err(DataFusionError::Internal("fewer columns than were asked for".into()))
                })?,
                false => {
                    let numbers = read.ids.iter().map(|id| i64::try_from(id.0).unwrap_or(i64::MAX));
                    Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(read.ids.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?)
    }
}

impl PartitionStream for Reading {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let count = context.session_config().batch_size();
        let reading = self.clone();
        let batches = stream::unfold(0u64, move |start| {
            let (read, next) = reading.read(start, count);
            let batch = (!read.ids.is_empty()).then(|| reading.batch(&read));
            async move { batch.map(|batch| (batch, next)) }
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}
