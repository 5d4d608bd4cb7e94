//! A session: its tables, and the statements that it answers.

use crate::bounded::bound;
use crate::error::SqlError;
use crate::operators::{JsonbOperators, PostgresTypes, functions};
use crate::rewrite::Hints;
use crate::samples::{ReadLimits, Samples, Vocabulary, ZONE};
use crate::statements::{Parsed, Query, parse};
use crate::threads::{Task, Threads};
use crate::yielding::EveryStepYields;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser;
use futures::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::sync::mpsc;

/// The catalog and the schema in which tables are found without saying so.
const CATALOG: &str = "quipu";
const SCHEMA: &str = "public";

/// Batches of rows that wait for who reads them.
const BATCHES_WAITING: usize = 2;

/// What statements may cost.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Series that one table gives a statement at most.
    pub series_max: usize,
    /// How long a statement reads samples.
    pub timeout: Duration,
    /// Bytes of memory for all statements together.
    pub memory_max: usize,
}

/// All sessions' common ground.
pub struct Database {
    store: Arc<Store>,
    limits: Limits,
    runtime: Arc<RuntimeEnv>,
    threads: Arc<Threads>,
}

/// A statement that is planned.
#[derive(Clone, Debug)]
pub struct Statement {
    plan: LogicalPlan,
    hints: Hints,
}

/// What a statement says.
pub struct Answer {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows, as they come.
    pub batches: Batches,
}

/// Rows that are being made. Who drops it stops that.
pub struct Batches {
    made: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    _maker: Task<()>,
}

impl Batches {
    /// The next rows; none when there are no more.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        self.made.recv().await
    }
}

/// The tables and settings of one client.
pub struct Session {
    context: SessionContext,
    threads: Arc<Threads>,
}

impl Database {
    /// Over a store.
    ///
    /// # Errors
    /// When the limits make no sense, and when there are no threads.
    pub fn new(store: Arc<Store>, limits: Limits) -> Result<Database, SqlError> {
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_limit(limits.memory_max, 1.0)
            .with_disk_manager_builder(disk)
            .build_arc()?;
        let threads = Threads::new().map_err(|error| SqlError::unexpected(error.to_string()))?;
        Ok(Database { store, limits, runtime, threads: Arc::new(threads) })
    }

    /// A session that has no tables yet.
    ///
    /// # Errors
    /// When its functions do not fit together.
    pub fn session(&self) -> Result<Session, SqlError> {
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_information_schema(true);
        let options = config.options_mut();
        options.sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
        options.execution.time_zone = Some(ZONE.to_string());
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(self.runtime.clone())
            .with_default_features()
            .with_type_planner(Arc::new(PostgresTypes))
            .with_physical_optimizer_rule(Arc::new(EveryStepYields))
            .build();
        let mut planners = vec![Arc::new(JsonbOperators) as _];
        planners.extend(state.expr_planners().iter().cloned());
        let state =
            SessionStateBuilder::new_from_existing(state).with_expr_planners(planners).build();
        let context = SessionContext::new_with_state(state);
        functions().for_each(|function| context.register_udf((*function).clone()));
        bound(&context)?;
        Ok(Session { context, threads: self.threads.clone() })
    }

    /// Adds a table of all samples.
    ///
    /// # Errors
    /// When there is one of that name.
    pub fn add_samples(
        &self,
        session: &Session,
        name: &str,
        vocabulary: Vocabulary,
    ) -> Result<(), SqlError> {
        let limits =
            ReadLimits { series_max: self.limits.series_max, timeout: self.limits.timeout };
        let table = Samples::new(self.store.clone(), limits, vocabulary);
        session.context.register_table(name, Arc::new(table))?;
        Ok(())
    }
}

impl Session {
    /// The statements of a text.
    ///
    /// # Errors
    /// When one cannot be read.
    pub async fn parse(&self, text: &str) -> Result<Vec<Parsed>, SqlError> {
        let text = text.to_string();
        self.threads.run(async move { parse(&text) }).await
    }

    /// Plans a statement that only reads.
    ///
    /// # Errors
    /// When it is none.
    pub async fn plan(&self, query: Box<Query>) -> Result<Statement, SqlError> {
        let context = self.context.clone();
        self.threads.run(plan(context, query)).await
    }

    /// Runs a planned statement.
    ///
    /// # Errors
    /// When it cannot be run; what fails on the way is in the rows.
    pub async fn run(
        &self,
        statement: Statement,
        parameters: Vec<ScalarValue>,
    ) -> Result<Answer, SqlError> {
        let context = self.context.clone();
        let rows = self.threads.run(begin(context, statement.plan, parameters)).await?;
        let schema = rows.schema();
        let (sender, made) = mpsc::channel(BATCHES_WAITING);
        let maker = self.threads.spawn(hand_over(rows, sender));
        Ok(Answer { schema, batches: Batches { made, _maker: maker } })
    }
}

async fn plan(context: SessionContext, query: Box<Query>) -> Result<Statement, SqlError> {
    let statement = parser::Statement::Statement(Box::new(query.statement));
    let plan = context.state().statement_to_plan(statement).await?;
    let reads =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    reads.verify_plan(&plan)?;
    Ok(Statement { plan, hints: query.hints })
}

async fn begin(
    context: SessionContext,
    mut plan: LogicalPlan,
    parameters: Vec<ScalarValue>,
) -> Result<SendableRecordBatchStream, SqlError> {
    if !parameters.is_empty() {
        plan = plan.with_param_values(parameters)?;
    }
    let frame = context.execute_logical_plan(plan).await?;
    Ok(frame.execute_stream().await?)
}

async fn hand_over(
    mut rows: SendableRecordBatchStream,
    to: mpsc::Sender<Result<RecordBatch, SqlError>>,
) {
    while let Some(batch) = rows.next().await {
        let is_last = batch.is_err();
        // Nobody hears when whoever asked has gone.
        if to.send(batch.map_err(SqlError::from)).await.is_err() || is_last {
            return;
        }
    }
}

impl Statement {
    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema().inner().clone()
    }

    /// The types of `$1`, `$2`, ..., as far as they are known.
    ///
    /// # Errors
    /// When the plan makes no sense, or one between others is never used.
    pub fn parameters(&self) -> Result<Vec<Option<DataType>>, SqlError> {
        let mut by_name = self.plan.get_parameter_types()?;
        let mut all = Vec::with_capacity(by_name.len());
        while !by_name.is_empty() {
            let name = format!("${}", all.len() + 1);
            match by_name.remove(&name) {
                Some(known) => all.push(known.or_else(|| self.hints.get(&name).cloned())),
                None => {
                    return Err(SqlError::invalid(format!(
                        "could not determine data type of parameter {name}"
                    )));
                }
            }
        }
        Ok(all)
    }
}
