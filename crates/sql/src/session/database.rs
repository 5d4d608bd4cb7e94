//! A session: its tables, and the statements that it answers.

use crate::catalog::functions;
use crate::catalog::relations::Relation;
use crate::catalog::schemas::{Client, OwnCatalogs, PlanView, State as PlanningState};
use crate::catalog::system_catalog::Catalog;
use crate::copy::rows_in;
use crate::copy::rows_in::RowsInto;
use crate::copy::statement::TableRows;
use crate::ddl_dml::definitions::define;
use crate::ddl_dml::definitions::define::Definition;
use crate::ddl_dml::definitions::defined::Defined;
use crate::ddl_dml::hypertables::unfinished_drops;
use crate::ddl_dml::policies::carried_out::Keeper;
use crate::ddl_dml::prometheus;
use crate::ddl_dml::rows::writes;
use crate::ddl_dml::rows::writes::{PlannedWrite, Write, Written};
use crate::ddl_dml::runner::Runner;
use crate::functions::bounded::{bound, keep_known};
use crate::functions::generate_series::GenerateSeries;
use crate::functions::numbers::number_functions;
use crate::functions::sleep::pg_sleep;
use crate::functions::{generate_series, ntile, register as common_functions, toolkit};
use crate::parse::declared_types::Declared;
use crate::parse::query::Query;
use crate::parse::table_names::table_name;
use crate::parse::text::SHORT_SIZE_MAX;
use crate::plan::context::Context;
use crate::plan::execution::serial::SerialUnions;
use crate::plan::execution::steps;
use crate::plan::execution::yielding::EveryStepYields;
use crate::plan::optimizer_rules::skip_changed_rows;
use crate::plan::pushdown::direct::Direct;
use crate::plan::queries::{execute, plan};
use crate::plan::ready::{Statement, straight, with_parameters};
use crate::plan::typing::casts::implicit_casts;
use crate::plan::typing::operators::{JsonbOperators, PostgresTypes};
use crate::plan::view_plans::plan_of;
use crate::plan::{explain, in_lists, listed, register as plan_functions};
use crate::session::advisory;
use crate::session::advisory::{HasBegun, Held, Locks};
use crate::session::batches::{Batches, Ready, ready};
use crate::session::parsed::Parsed;
use crate::session::statements::parse_with;
use crate::session::threads::Threads;
use crate::tables::heap::isolation::Isolation;
use crate::tables::heap::lookups::Lookups;
use crate::tables::heap::prometheus_tables::PrometheusTable;
use crate::tables::heap::retention_policies::policies;
use crate::tables::heap::stored_settings::{Setting, settings_of};
use crate::tables::heap::view::{Fate, View};
use crate::tables::hypertables::append::Series;
use crate::tables::hypertables::shape::TABLE_LABEL;
use crate::tables::metrics::metric_tables::{Kind, MetricSchema, Metrics};
use crate::tables::metrics::samples::{ReadLimits, Samples};
use crate::tables::metrics::tables::TABLES;
use crate::tables::metrics::{metric_tables, prom_info, promql_tables};
use crate::types::error::SqlError;
use crate::types::facts::Facts;
use crate::types::hidden::{Hidden, Weak};
use crate::types::names::CATALOG_SCHEMA;
use crate::types::runtime::{cancellation, statement_scope};
use crate::types::time::zones::ZONE;
use ::tables::Tables;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider as _;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use engine::QueryOptions;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::Store;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, watch};
use tokio::task::block_in_place;

/// The catalog and the schema in which tables are found without saying so.
const CATALOG: &str = "quipu";
const SCHEMA: &str = "public";

/// What statements may cost.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Series that one table gives a statement at most.
    pub series_max: usize,
    /// How long a statement reads samples.
    pub timeout: Duration,
    /// Statements that may wait for advisory locks at one time.
    pub waiting_max: usize,
    /// Bytes of memory for all statements together.
    pub memory_max: usize,
    /// What PromQL within SQL heeds.
    pub query: QueryOptions,
}

/// All sessions' common ground.
pub struct Database {
    /// Rows of ordinary tables by values of columns.
    lookups: Arc<Lookups>,
    /// What they share: tables, and functions that say the same to everybody.
    shared: Hidden<SessionState>,
    threads: Arc<Threads>,
    catalog: Arc<Catalog>,
    ordinary: Option<Arc<Tables>>,
    series: Arc<Series>,
    turn: Arc<Mutex<()>>,
    keeper: Mutex<Keeper>,
    locks: Arc<Locks>,
}

/// What a statement says.
pub struct Answer {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows, as they come.
    pub batches: Batches,
}

/// What came of a statement that changes rows.
pub struct Changed {
    /// What is answered, without the number of rows.
    pub tag: &'static str,
    /// Rows that were changed.
    pub rows: u64,
    /// The rows that it returns, if it does.
    pub answer: Option<Answer>,
}

/// The tables and settings of one client.
pub struct Session {
    context: Hidden<Context>,
    threads: Arc<Threads>,
    view: Arc<View>,
    /// Held by the one statement that changes ordinary tables without a transaction.
    turn: Arc<Mutex<()>>,
    /// Held by what changes tables: one that is cancelled takes back what it did before another begins.
    busy: Arc<Mutex<()>>,
    /// Who came.
    user: Arc<str>,
    /// Its advisory locks.
    held: Arc<Held>,
    /// Whether rows that nobody takes just now are not made either.
    is_paused: watch::Sender<bool>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.held.release_all();
    }
}

impl Database {
    /// Over a store, and the ordinary tables that are beside it.
    ///
    /// # Errors
    /// When the limits make no sense, and when there are no threads.
    pub fn new(
        store: Arc<Store>,
        ordinary: Option<Arc<Tables>>,
        limits: Limits,
    ) -> Result<Database, SqlError> {
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_limit(limits.memory_max, 1.0)
            .with_disk_manager_builder(disk)
            .build_arc()?;
        statement_scope::inherit();
        let threads = Threads::new(runtime.memory_pool.clone(), limits.timeout);
        let threads = threads.map_err(|error| SqlError::unexpected(error.to_string()))?;
        let locks = Arc::new(Locks::new(limits.waiting_max));
        let context = SessionContext::new_with_state(state(runtime));
        keep_known(&context);
        common_functions::register(&context);
        plan_functions::register(&context);
        if let Ok(of_numbers) = context.table_function(generate_series::NAME) {
            context.register_udtf(generate_series::NAME, Arc::new(GenerateSeries { of_numbers }));
        }
        for (name, dialect) in promql_tables::FUNCTIONS {
            let (store, query) = (store.clone(), &limits.query);
            let ask = promql_tables::Function::new(store, query, limits.timeout, *dialect);
            context.register_udtf(name, Arc::new(ask));
        }
        let limits = ReadLimits { series_max: limits.series_max, timeout: limits.timeout };
        let mut relations = Vec::with_capacity(TABLES.len());
        for table in TABLES {
            let samples = Arc::new(Samples::new(store.clone(), limits.clone(), table));
            relations.push(Relation::written(relations.len(), table.name, samples.schema()));
            context.register_table(table.name, samples)?;
        }
        let catalog = Catalog::new(relations)?;
        catalog.register(&context, CATALOG)?;
        register_promscale(&context, &store, &limits)?;
        functions::register(&context);
        toolkit::register(&context);
        bound(&context);
        number_functions::register(&context);
        ntile::register(&context);
        Ok(Database {
            shared: Hidden::new(context.state()),
            threads: Arc::new(threads),
            catalog: Arc::new(catalog),
            ordinary,
            series: Arc::new(Series::new(store, limits)),
            turn: Arc::default(),
            lookups: Arc::default(),
            keeper: Mutex::default(),
            locks,
        })
    }

    /// A session of somebody of whom `facts` tell.
    pub fn session(&self, facts: &Arc<dyn Facts>) -> Session {
        let context = SessionContext::new_with_state((*self.shared).clone());
        let view =
            Arc::new(View::new(self.ordinary.clone(), self.series.clone(), self.lookups.clone()));
        functions::register_own(&context, facts);
        context.register_udf(functions::regclass(&self.catalog, &view));
        let about_keys = functions::about_keys(&self.catalog, &view);
        about_keys.into_iter().for_each(|function| context.register_udf(function));
        let held = Arc::new(self.locks.session());
        let known = view.clone();
        let has_begun: HasBegun = Arc::new(move || known.has_begun());
        let advisory = advisory::functions(&held, &has_begun);
        advisory.into_iter().for_each(|function| context.register_udf(function));
        // What views are planned with is made of a state that knows them.
        let own_context: Arc<OnceLock<Weak<Context>>> = Arc::default();
        if let Some(shared) = context.catalog(CATALOG) {
            let known = own_context.clone();
            let state = move || Some(known.get()?.upgrade()?.state_now());
            let client = Client { facts: facts.clone(), database: facts.database().into() };
            let seen = (self.catalog.clone(), view.clone(), client);
            let plan_view: PlanView =
                |state, table, view| async move { plan_of(state, &table, &view).await }.boxed();
            let state = PlanningState { now: Arc::new(state), plan_view };
            let own = OwnCatalogs::new(CATALOG, SCHEMA, shared, seen, state);
            context.register_catalog_list(Arc::new(own));
        }
        let (threads, turn) = (self.threads.clone(), self.turn.clone());
        let user = facts.user().into();
        let is_paused = watch::Sender::new(false);
        context.register_udf(pg_sleep(facts, is_paused.subscribe()));
        let context = Hidden::new(Context::new(&context));
        let _ = own_context.set(context.weak());
        Session { context, threads, view, turn, busy: Arc::default(), user, held, is_paused }
    }

    /// Deletes what policies of retention do not keep, as far as that is due; `facts` are those of who does it.
    ///
    /// # Errors
    /// When the store cannot, or a policy cannot be understood.
    pub async fn keep_policies(&self, facts: &Arc<dyn Facts>) -> Result<(), SqlError> {
        if !self.has_policies() {
            return Ok(());
        }
        let mut keeper = std::mem::take(&mut *self.keeper.lock().await);
        let session = self.session(facts);
        let runner = session.runner();
        let work = async move {
            let kept = keeper.keep(&runner).await;
            Ok::<_, SqlError>((keeper, kept))
        };
        let (keeper, kept) = self.threads.run(work).await?;
        *self.keeper.lock().await = keeper;
        kept
    }

    /// Deletes the samples of dropped tables where a crash kept `DROP TABLE` from it.
    ///
    /// # Errors
    /// When the store cannot: the next start tries again.
    pub fn finish_drops(&self) -> Result<(), SqlError> {
        if self.ordinary.is_none() {
            return Ok(());
        }
        let (lookups, series) = (self.lookups.clone(), self.series.clone());
        let view = Arc::new(View::new(self.ordinary.clone(), series, lookups));
        unfinished_drops::finish_all(&view)
    }

    fn has_policies(&self) -> bool {
        self.ordinary.as_ref().is_some_and(|tables| !policies(&tables.now()).is_empty())
    }

    /// The settings that a session of somebody begins with; those behind others go before them.
    pub fn settings(&self, user: &str, database: &str) -> Vec<Setting> {
        let ordinary = self.ordinary.as_ref();
        ordinary.map(|tables| settings_of(&tables.now(), user, database)).unwrap_or_default()
    }
}

/// Adds Promscale's schemas, and tables of metrics beside those that are written down.
fn register_promscale(
    context: &SessionContext,
    store: &Arc<Store>,
    limits: &ReadLimits,
) -> Result<(), SqlError> {
    let catalog = context.catalog(CATALOG);
    let catalog = catalog.ok_or_else(|| SqlError::unexpected(format!("no catalog {CATALOG}")))?;
    let written = catalog.schema(SCHEMA);
    let written = written.ok_or_else(|| SqlError::unexpected(format!("no schema {SCHEMA}")))?;
    let metrics = Metrics::new(store.clone(), limits.clone());
    let public = MetricSchema::beside(written, &metrics, Kind::Samples);
    catalog.register_schema(SCHEMA, Arc::new(public))?;
    // Names that begin as its own are looked for there, and some metrics are called so.
    if let Some(written) = catalog.schema(CATALOG_SCHEMA) {
        let own = MetricSchema::beside(written, &metrics, Kind::Samples);
        catalog.register_schema(CATALOG_SCHEMA, Arc::new(own))?;
    }
    let samples = MetricSchema::new(&metrics, Kind::Samples);
    catalog.register_schema(metric_tables::METRIC_SCHEMA, Arc::new(samples))?;
    let series = MetricSchema::new(&metrics, Kind::Series);
    catalog.register_schema(metric_tables::SERIES_SCHEMA, Arc::new(series))?;
    catalog.register_schema(prom_info::SCHEMA, prom_info::schema(store, limits)?)?;
    let metadata = prom_info::Metadata::new(store.clone(), limits.clone());
    context.register_udtf(prom_info::METADATA, Arc::new(metadata));
    Ok(())
}

/// A session's state before anything of ours is in it.
fn state(runtime: Arc<RuntimeEnv>) -> SessionState {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_information_schema(false);
    let options = config.options_mut();
    options.sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
    options.sql_parser.enable_subquery_sort_elimination = false;
    options.sql_parser.parse_float_as_decimal = true;
    // It takes computed columns for those of their table: apache/datafusion#25414.
    options.optimizer.enable_leaf_expression_pushdown = false;
    // Its bounds of arrays that have a NULL leave out all rows.
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    // DataFusion's physical plan declares COALESCE and CASE nullable where the logical plan does not, and refuses the
    // aggregate above them.
    options.execution.skip_physical_aggregate_schema_check = true;
    options.execution.time_zone = Some(ZONE.to_string());
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_analyzer_rule(Arc::new(implicit_casts::ImplicitCasts))
        .with_optimizer_rules(cancellation::cancellable(skip_changed_rows(
            in_lists::optimizer_rules(),
        )))
        .with_query_planner(Arc::new(steps::Planner))
        .with_type_planner(Arc::new(PostgresTypes))
        .build();
    let rules = std::iter::once(Arc::new(SerialUnions) as _)
        .chain(state.physical_optimizers().iter().cloned())
        .chain([Arc::new(EveryStepYields) as _])
        .collect();
    let mut planners = vec![Arc::new(JsonbOperators) as _];
    planners.extend(state.expr_planners().iter().cloned());
    SessionStateBuilder::new_from_existing(state)
        .with_expr_planners(planners)
        .with_physical_optimizer_rules(rules)
        .build()
}

impl Session {
    /// The statements of a text.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn parse(&self, text: &str) -> BoxFuture<'_, Result<Vec<Parsed>, SqlError>> {
        if text.len() <= SHORT_SIZE_MAX {
            let parsed = at_once(|| parse_with(text, &|table| prometheus::seen(&self.view, table)));
            return async { parsed }.boxed();
        }
        let (text, size, view) = (text.to_string(), text.len(), self.view.clone());
        let work = async move { parse_with(&text, &|table| prometheus::seen(&view, table)) };
        async move {
            let _turn = self.threads.turn_to_read(size).await;
            self.threads.plan(work).await
        }
        .boxed()
    }

    /// Plans a statement that only reads.
    ///
    /// # Errors
    /// When it is none.
    pub fn plan(&self, query: Query) -> BoxFuture<'_, Result<Statement, SqlError>> {
        let (context, view, busy) = (self.context.clone(), self.view.clone(), self.busy.clone());
        // Of other tables planning may ask the index which there are.
        let is_ordinary =
            |name: &_| table_name(name).is_ok_and(|name| self.view.expect(&name).is_ok());
        let is_short = query.is_short(is_ordinary);
        let work = async move {
            drop(busy.lock().await);
            match straight(&view, &query) {
                Some(statement) => Ok(statement),
                None => plan(context, &view, query).await,
            }
        };
        if is_short {
            let planned = AssertUnwindSafe(work).catch_unwind();
            return planned.map(|planned| planned.unwrap_or_else(|_| Err(panicked()))).boxed();
        }
        self.threads.plan(work).boxed()
    }

    /// Runs a planned statement.
    ///
    /// # Errors
    /// When it cannot be run; what fails on the way is in the rows.
    pub fn run(
        &self,
        statement: Statement,
        parameters: Vec<ScalarValue>,
    ) -> BoxFuture<'_, Result<Answer, SqlError>> {
        let (context, view, busy) = (self.context.clone(), self.view.clone(), self.busy.clone());
        let is_straight = statement.straight().is_some();
        let asked = statement.clone();
        let work = async move {
            drop(busy.lock().await);
            view.begin_statement();
            view.reads(&statement);
            run(context, statement, parameters).await
        };
        if is_straight {
            return self.run_straight(asked, work).boxed();
        }
        let begun = self.threads.run(work);
        begun.map_ok(|(ready, rows)| self.answer(ready, rows)).boxed()
    }

    /// Answers a statement here if that takes no time to speak of, or else by work elsewhere.
    async fn run_straight(
        &self,
        statement: Statement,
        work: impl Future<Output = Result<(Ready, SendableRecordBatchStream), SqlError>>
        + Send
        + 'static,
    ) -> Result<Answer, SqlError> {
        drop(self.busy.lock().await);
        self.view.begin_statement();
        self.view.reads(&statement);
        let found = at_once(|| {
            let straight = statement.straight();
            Ok(straight.and_then(|straight| straight.rows_at_once(&self.context)))
        });
        if let Some(batches) = found? {
            let batches = Batches::new(batches.into(), self.threads.memory().clone());
            return Ok(Answer { schema: statement.schema(), batches });
        }
        let (ready, rows) = self.threads.run(work).await?;
        Ok(self.answer(ready, rows))
    }

    /// Plans and runs a statement.
    ///
    /// # Errors
    /// As [`Session::plan`] and [`Session::run`].
    pub fn ask(&self, query: Query) -> BoxFuture<'_, Result<Answer, SqlError>> {
        if let Ok(Some(statement)) = at_once(|| Ok(straight(&self.view, &query))) {
            return self.run(statement, Vec::new());
        }
        self.ask_planned(query)
    }

    /// The same by a plan, whatever it asks.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub fn ask_planned(&self, query: Query) -> BoxFuture<'_, Result<Answer, SqlError>> {
        let (context, view, busy) = (self.context.clone(), self.view.clone(), self.busy.clone());
        let work = async move {
            drop(busy.lock().await);
            let planning = plan(context.clone(), &view, query);
            let statement = block_in_place(|| Handle::current().block_on(planning))?;
            view.begin_statement();
            view.reads(&statement);
            run(context, statement, Vec::new()).await
        };
        let begun = self.threads.run(work);
        begun.map_ok(|(ready, rows)| self.answer(ready, rows)).boxed()
    }

    /// Rows as they come.
    fn answer(&self, ready: Ready, rows: SendableRecordBatchStream) -> Answer {
        let schema = rows.schema();
        let mut batches = Batches::new(ready.batches, self.threads.memory().clone());
        if !ready.are_all {
            batches.follow(rows, (&self.threads, ready.scope), self.is_paused.clone());
        }
        Answer { schema, batches }
    }

    /// Stops making rows until [`Session::resume`]: its client has not asked for any.
    pub fn pause(&self) {
        self.is_paused.send_replace(true);
    }

    /// Goes on making rows.
    pub fn resume(&self) {
        self.is_paused.send_if_modified(std::mem::take);
    }

    fn runner(&self) -> Runner {
        let (context, view) = (self.context.clone(), self.view.clone());
        let (user, declared) = (self.user.clone(), Declared::default());
        Runner { context, view, user, declared, with: None }
    }

    /// Whether the tables that a statement reads are still as it was planned for.
    pub fn is_current(&self, statement: &Statement) -> bool {
        statement.is_current(&self.view)
    }

    /// Whether samples may be copied to a table of that name; the label that they get, if it is one of its own.
    pub fn takes_samples(&self, table: &str) -> Option<Option<(&'static str, String)>> {
        if !prometheus::seen(&self.view, table)?.takes_samples {
            return None;
        }
        let own = self.view.get(table).and_then(|table| PrometheusTable::of(table.schema()));
        Some(own.map(|own| (TABLE_LABEL, own.of)))
    }

    // ---- ordinary tables ----

    /// Plans a statement that changes rows of an ordinary table; of its parameters these types are said.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn plan_write(
        &self,
        write: Write,
        declared: Declared,
    ) -> BoxFuture<'_, Result<PlannedWrite, SqlError>> {
        let (runner, busy) = (Runner { declared, ..self.runner() }, self.busy.clone());
        let work = async move {
            let _busy = busy.lock().await;
            writes::plan_write(&runner, &write).await
        };
        self.threads.plan(work).boxed()
    }

    /// Whether the tables of such a statement are still as it was planned for.
    pub fn is_write_current(&self, write: &PlannedWrite) -> bool {
        write.is_current(&self.view)
    }

    /// Does what was planned, all of it or nothing: durably, unless a transaction is under way.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn write(
        &self,
        planned: PlannedWrite,
        parameters: Vec<ScalarValue>,
        fate: &Arc<Fate>,
    ) -> BoxFuture<'_, Result<Changed, SqlError>> {
        let (runner, turn, busy) = (self.runner(), self.turn.clone(), self.busy.clone());
        let fate = fate.clone();
        let work = async move {
            let _busy = busy.lock().await;
            runner.view.begin_statement();
            writes::write(&runner, &planned, &turn, &parameters, &fate).await
        };
        let done = self.threads.run(work).map_ok(|Written { tag, rows, answer }| Changed {
            tag,
            rows,
            answer: answer.map(|rows| self.answer(Ready::default(), rows)),
        });
        done.boxed()
    }

    /// Makes, alters or drops tables.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn define(
        &self,
        definition: Definition,
        fate: &Arc<Fate>,
    ) -> BoxFuture<'_, Result<Defined, SqlError>> {
        let (runner, turn, busy) = (self.runner(), self.turn.clone(), self.busy.clone());
        let fate = fate.clone();
        let work = async move {
            let _busy = busy.lock().await;
            runner.view.begin_statement();
            define::define(&runner, &definition, &turn, &fate).await
        };
        self.threads.run(work).boxed()
    }

    /// Begins a `COPY` into an ordinary table.
    ///
    /// # Errors
    /// When there is none of that name, or it has no such columns.
    pub fn copy_into(&self, table: &str, said: &TableRows) -> Result<RowsInto, SqlError> {
        self.view.begin_statement();
        RowsInto::new(self.view.expect(table)?, said)
    }

    /// Ends it: its rows are there, durably unless a transaction is under way. Returns how many.
    ///
    /// # Errors
    /// When one cannot be added; none is then.
    pub fn store(&self, into: RowsInto) -> BoxFuture<'_, Result<u64, SqlError>> {
        let (runner, turn, busy) = (self.runner(), self.turn.clone(), self.busy.clone());
        let work = async move {
            let _busy = busy.lock().await;
            rows_in::store(&runner, into, &turn).await
        };
        self.threads.run(work).boxed()
    }

    /// A transaction begins, for ordinary tables.
    pub async fn begin(&self, isolation: Isolation) {
        let _busy = self.busy.lock().await;
        self.view.begin(isolation);
    }

    /// The transaction under way is isolated so from now on.
    pub async fn isolate(&self, isolation: Isolation) {
        let _busy = self.busy.lock().await;
        self.view.isolate(isolation);
    }

    /// It ends: what it has changed is durable.
    ///
    /// # Errors
    /// When it cannot be; nothing of it is there then.
    pub fn commit(&self) -> BoxFuture<'_, Result<(), SqlError>> {
        let (view, turn, busy) = (self.view.clone(), self.turn.clone(), self.busy.clone());
        let held = self.held.clone();
        let work = async move {
            let _busy = busy.lock().await;
            // Rows of hypertables are added side by side.
            let _turn = match view.has_changed() {
                true => Some(turn.lock().await),
                false => None,
            };
            let ended = match view.has_changed() || view.has_pending() {
                true => block_in_place(|| view.commit()),
                false => {
                    view.roll_back();
                    Ok(())
                }
            };
            held.end_transaction();
            ended
        };
        self.threads.run(work).boxed()
    }

    /// It ends, and is forgotten.
    pub async fn roll_back(&self) {
        let _busy = self.busy.lock().await;
        self.view.roll_back();
        self.held.end_transaction();
    }

    /// `SAVEPOINT name`.
    ///
    /// # Errors
    /// When there are too many.
    pub async fn save(&self, name: &str) -> Result<(), SqlError> {
        let _busy = self.busy.lock().await;
        self.view.save(name)
    }

    /// `RELEASE name`.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn release(&self, name: &str) -> Result<(), SqlError> {
        let _busy = self.busy.lock().await;
        self.view.release(name)
    }

    /// `ROLLBACK TO name`.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn back_to(&self, name: &str) -> Result<(), SqlError> {
        let _busy = self.busy.lock().await;
        self.view.back_to(name)
    }
}

fn panicked() -> SqlError {
    SqlError::unexpected("the statement failed: it panicked")
}

/// Does what takes no time to speak of; a panic is an error, as on the threads of statements.
fn at_once<T>(work: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()))
}

/// Runs what was planned, and takes the rows that are there at once.
async fn run(
    context: Hidden<Context>,
    statement: Statement,
    parameters: Vec<ScalarValue>,
) -> Result<(Ready, SendableRecordBatchStream), SqlError> {
    if let Some(straight) = statement.straight()
        && let Some(rows) = straight.rows(&context)?
    {
        return ready(rows);
    }
    let plan = with_parameters(&context, &statement, parameters).await?;
    if let Some(shape) = statement.explained() {
        let rows = context.stream(&plan).await?;
        return Ok((Ready::new(), explain::shaped(rows, shape)));
    }
    let known = listed::found_at_once(plan.clone())?;
    if let Some(direct) = known.as_ref().and_then(Direct::of) {
        return ready(direct.rows(context.task().clone()));
    }
    // Another thread takes over what waits for this one.
    block_in_place(|| {
        let work = async { ready(execute(context, known.unwrap_or(plan)).await?) };
        Handle::current().block_on(work)
    })
}
