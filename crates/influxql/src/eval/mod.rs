//! Trees and a source to answers.
//!
//! ```text
//! Select > compile: Plan > rewrite: types, no stars > table > answer
//!          table: calls > inputs: series in groups > windows > fill;  columns side by side
//! ```

mod calls;
mod compile;
mod condition;
mod deletion;
mod field_set;
mod fill;
mod functions;
mod held;
mod inputs;
mod merge;
mod plan;
mod point;
mod read_request;
mod rewrite;
mod scan;
mod show;
mod table;
mod together;
mod window;

use crate::answer::{Answer, Series};
use crate::ast::{Expr, Fill, Measurement, MeasurementName, Select, Statement};
use crate::into::{LineSink, Lines, TagColumn};
use crate::source::{EvalError, Fields, Place, Source};
use crate::value::Value;
pub use deletion::Deletion;

use compile::{Circumstances, compile};
use model::TimeRange;
use plan::PlanSource;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Result<T> = std::result::Result<T, EvalError>;

/// The fields of measurements, by database and name.
type FieldsByMeasurement = HashMap<(String, String), Arc<Fields>>;

/// What bounds an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Points that the statements of a request may hold in memory; a row of an answer costs some.
    pub points_max: usize,
    /// Bytes that these points, selected series and samples read ahead may take together.
    pub memory_max: usize,
}

impl Limits {
    /// Bounds that allow so many bytes, which may all be points.
    pub fn of_memory(memory_max: usize) -> Limits {
        Limits { points_max: memory_max / POINT_SIZE, memory_max }
    }
}

/// Bytes of a point that has nothing beside it, about; what costs more counts as several.
pub const POINT_SIZE: usize = 64;
/// Points that are made between two looks at the clock.
const POINTS_BETWEEN_LOOKS: usize = 1 << 16;
/// Measurements that a statement may read, each as often as it is named.
const SOURCES_MAX: usize = 10_000;
/// Bytes of a value, and what a list of them takes besides.
const VALUE_SIZE: usize = 24;
const LIST_SIZE: usize = 40;

/// How many points a point with that many values beside it counts for.
fn point_cost(aux_len: usize) -> usize {
    let beside = if aux_len == 0 { 0 } else { LIST_SIZE + aux_len * VALUE_SIZE };
    (POINT_SIZE + beside).div_ceil(POINT_SIZE)
}

/// The same of a row: with its time, and as text.
fn row_cost(columns: usize) -> usize {
    (2 * (LIST_SIZE + (columns + 1) * VALUE_SIZE)).div_ceil(POINT_SIZE)
}

/// Evaluates the statements of one request.
pub struct Evaluator<'a> {
    source: &'a dyn Source,
    database: String,
    /// Policy of statements that name none; the database's default if it is empty.
    policy: String,
    now: i64,
    limits: Limits,
    fields: Mutex<FieldsByMeasurement>,
    points: AtomicUsize,
    /// Bytes held beside the points, see [`held`].
    held: Arc<AtomicUsize>,
    tables: Mutex<Tables>,
    together: Mutex<together::Together<'a>>,
}

/// The rows of subqueries, by where their plan is, what they are grouped by and their time: several
/// functions of one query read the same.
type Tables = HashMap<(usize, Vec<String>, (i64, i64)), Arc<table::Table>>;

impl<'a> Evaluator<'a> {
    /// For statements about `database` unless they say otherwise.
    pub fn new(source: &'a dyn Source, database: &str, now: i64, limits: Limits) -> Evaluator<'a> {
        Evaluator {
            source,
            database: database.to_string(),
            policy: String::new(),
            now,
            limits,
            fields: Mutex::default(),
            points: AtomicUsize::new(0),
            held: Arc::default(),
            tables: Mutex::default(),
            together: Mutex::default(),
        }
    }

    /// Sets the retention policy of measurements that name none. An empty name changes nothing.
    #[must_use]
    pub fn with_policy(mut self, policy: &str) -> Evaluator<'a> {
        self.policy = policy.to_string();
        self
    }

    /// The answer to a statement that changes nothing; none to one that is not for a reader.
    pub fn run(&self, statement: &Statement) -> Option<Answer> {
        let before = self.points.load(Ordering::Relaxed);
        let answer = match statement {
            Statement::Select(select) if select.target.is_none() => self.select(select),
            Statement::Explain { select, .. } => self.explain(select),
            statement => return self.show(statement),
        };
        let answer = answer.unwrap_or_else(|error| Answer::failed(error.to_string()));
        // What the answers before hold is held until all are written.
        let rows = answer.series.iter().map(|one| one.rows.len() * row_cost(one.columns.len()));
        self.points.store(before.saturating_add(rows.sum()), Ordering::Relaxed);
        Some(answer)
    }

    /// Does what `SELECT ... INTO` says: its rows go to the sink as lines, in nanoseconds, with names that
    /// are escaped by `%`. None if it is no such statement.
    ///
    /// # Errors
    /// For what cannot be evaluated or written, and what the sink says.
    pub fn write_into(
        &self,
        statement: &Statement,
        sink: &mut LineSink<'_>,
    ) -> Option<Result<Answer>> {
        let Statement::Select(select) = statement else { return None };
        let target = select.target.as_ref()?;
        Some(self.write_selection(select, target, sink))
    }

    /// The database that `SELECT ... INTO` writes to, and the policy if one is named.
    ///
    /// # Errors
    /// Fails if the database does not exist.
    pub fn target(&self, statement: &Statement) -> Result<(String, Option<String>)> {
        let target = match statement {
            Statement::Select(select) => select.target.as_ref(),
            _ => None,
        };
        let named = target.and_then(|target| target.database.clone());
        let database = named.unwrap_or_else(|| self.database.clone());
        self.check_database(&database)?;
        let of_request = Some(self.policy.clone()).filter(|policy| !policy.is_empty());
        let policy = target.and_then(|target| target.policy.clone());
        Ok((database, policy.or(of_request)))
    }

    fn write_selection(
        &self,
        select: &Select,
        target: &Measurement,
        sink: &mut LineSink<'_>,
    ) -> Result<Answer> {
        let before = self.points.load(Ordering::Relaxed);
        let (selected, tags) = self.selected(select)?;
        let measurement = match &target.name {
            MeasurementName::Is(name) => name.clone(),
            MeasurementName::Matches(_) => String::new(),
        };
        let columns = selected.series.first().map(|series| &*series.columns);
        if columns.and_then(|columns| columns.first()).is_some_and(|name| name != "time") {
            return Err(EvalError::new("error finding time index in result"));
        }
        let mut lines = Lines::new(measurement, tags, sink);
        let mut written = 0;
        for series in &selected.series {
            written += lines.write(series)?;
        }
        lines.flush()?;
        self.points.store(before, Ordering::Relaxed);
        let written = Value::Integer(i64::try_from(written).unwrap_or(i64::MAX));
        Ok(Answer::of(vec![Series {
            name: "result".to_string(),
            tags: Vec::new(),
            columns: ["time", "written"].map(str::to_string).into(),
            rows: vec![vec![Value::Time(0), written]],
        }]))
    }

    fn select(&self, select: &Select) -> Result<Answer> {
        self.selected(select).map(|(answer, _)| answer)
    }

    /// What a statement selects, and the columns of tags that `top` and `bottom` bring along.
    fn selected(&self, select: &Select) -> Result<(Answer, Vec<TagColumn>)> {
        let circumstances = Circumstances { now: self.now, database: &self.database };
        let mut plan = compile(select, &circumstances)?;
        if select.target.is_some() && plan.fill == Fill::Null {
            // What is nothing is not written.
            plan.fill = Fill::None;
        }
        self.resolve_databases(&mut plan)?;
        self.list_measurements(&mut plan, &mut 0)?;
        let plan = self.rewrite(plan)?;
        rewrite::check_types(&plan)?;
        let zone = plan.zone.clone();
        let brought = brought(&plan);
        let table = self.table(&plan, &[], plan.range);
        // They are found by the address of their plan, which is about to go.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let table = table?;
        let mut columns = vec![plan.time_name.clone()];
        columns.extend(table.columns);
        let columns: Arc<[String]> = columns.into();
        let series = table.series.into_iter().map(|found| {
            let tags = table.tag_names.iter().cloned().zip(found.key.tags).collect();
            let rows = found.rows.into_iter().map(|(time, mut row)| {
                // What is no number is nothing, but only here: a query around another counts it.
                for value in &mut row {
                    if matches!(value, Value::Float(value) if value.is_nan()) {
                        *value = Value::Null;
                    }
                }
                row.insert(0, Value::Time(time));
                row
            });
            Series {
                name: found.key.name.to_string(),
                tags,
                columns: columns.clone(),
                rows: rows.collect(),
            }
        });
        Ok((Answer { zone, ..Answer::of(series.collect()) }, brought))
    }

    /// Replaces databases by the names under which their policies are stored.
    fn resolve_databases(&self, plan: &mut plan::Plan) -> Result<()> {
        for source in &mut plan.sources {
            match source {
                PlanSource::Measurement { database, policy, .. } => {
                    *database = self.policy_database(database, policy.take().as_deref())?;
                }
                PlanSource::Query(inner) => self.resolve_databases(inner)?,
            }
        }
        Ok(())
    }

    /// Name under which the samples of a policy are stored: of the one that is named, of the request's,
    /// or of the database's default.
    fn policy_database(&self, database: &str, policy: Option<&str>) -> Result<String> {
        self.check_database(database)?;
        let of_request = Some(self.policy.as_str());
        let policy = policy.or(of_request).filter(|policy| !policy.is_empty());
        self.source.policy_database(database, policy)
    }

    fn check_database(&self, database: &str) -> Result<()> {
        if database.is_empty() {
            return Err(EvalError::new("database name required"));
        }
        match self.source.has_database(database)? {
            true => Ok(()),
            false => Err(EvalError::new(format!("database not found: {database}"))),
        }
    }

    /// Replaces patterns by the measurements that match, so that these are looked up once. `count` is
    /// the number of sources so far.
    fn list_measurements(&self, plan: &mut plan::Plan, count: &mut usize) -> Result<()> {
        let mut listed = Vec::with_capacity(plan.sources.len());
        for source in std::mem::take(&mut plan.sources) {
            self.source.check()?;
            match source {
                PlanSource::Query(mut inner) => {
                    self.list_measurements(&mut inner, count)?;
                    listed.push(PlanSource::Query(inner));
                }
                source => {
                    let all = self.measurements_of(&source)?.into_iter();
                    listed.extend(all.map(|(database, name)| PlanSource::Measurement {
                        database,
                        policy: None,
                        name: MeasurementName::Is(name),
                    }));
                }
            }
            if SOURCES_MAX < *count + listed.len() {
                let message = format!("a statement reads more than {SOURCES_MAX} measurements");
                return Err(EvalError::new(message));
            }
        }
        *count += listed.len();
        plan.sources = listed;
        Ok(())
    }

    /// The measurements that a source names, with their database.
    fn measurements_of(&self, source: &PlanSource) -> Result<Vec<(String, String)>> {
        let PlanSource::Measurement { database, name, .. } = source else { return Ok(Vec::new()) };
        Ok(match name {
            MeasurementName::Is(name) => vec![(database.clone(), name.clone())],
            MeasurementName::Matches(regex) => {
                let all = self.source.measurements(database)?;
                let matching = all.into_iter().filter(|name| regex.regex().is_match(name));
                matching.map(|name| (database.clone(), name)).collect()
            }
        })
    }

    fn fields(&self, database: &str, measurement: &str) -> Result<Arc<Fields>> {
        let key = (database.to_string(), measurement.to_string());
        let mut known = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fields) = known.get(&key) {
            return Ok(fields.clone());
        }
        let fields = Arc::new(self.source.fields(database, measurement)?);
        known.insert(key, fields.clone());
        Ok(fields)
    }

    fn tag_keys(
        &self,
        database: &str,
        measurement: &str,
        range: (i64, i64),
    ) -> Result<Vec<String>> {
        let place = Place { database, measurement, range: TimeRange::new(range.0, range.1) };
        self.source.tag_keys(&place, &[])
    }

    /// The rows of a subquery, which are worked out once.
    fn subquery(
        &self,
        inner: &plan::Plan,
        dimensions: &[String],
        range: (i64, i64),
    ) -> Result<Arc<table::Table>> {
        let key = (std::ptr::from_ref(inner) as usize, dimensions.to_vec(), range);
        let known = self.tables.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let table = Arc::new(self.table(inner, dimensions, range)?);
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.insert(key, table.clone());
        Ok(table)
    }

    /// Counts what is held in memory, in points, and looks at the clock.
    fn count(&self, points: usize) -> Result<()> {
        let before = self.points.fetch_add(points, Ordering::Relaxed);
        let after = before.saturating_add(points);
        let max = self.limits.points_max;
        if max < after {
            return Err(EvalError::new(format!(
                "max-select-point limit exceeded: more than {max} points; ask for less time, fewer \
                 series or wider windows"
            )));
        }
        self.check_memory(0)?;
        match before / POINTS_BETWEEN_LOOKS == after / POINTS_BETWEEN_LOOKS {
            true => Ok(()),
            false => self.source.check(),
        }
    }

    /// Takes back what is held no more.
    fn release(&self, points: usize) {
        let less = |held: usize| Some(held.saturating_sub(points));
        let _ = self.points.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// The columns of tags that `top` and `bottom` bring along.
fn brought(plan: &plan::Plan) -> Vec<TagColumn> {
    // Behind the time.
    let mut place = 1;
    let mut found = Vec::new();
    for field in &plan.fields {
        for (at, extra) in (place + 1..).zip(plan::extra_columns(&field.expr)) {
            if let Expr::Var { name, .. } = extra {
                found.push((at, name.clone()));
            }
        }
        place += 1 + plan::extra_columns(&field.expr).len();
    }
    found
}
