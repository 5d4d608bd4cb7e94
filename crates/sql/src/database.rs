//! A session: its tables, and the statements that it answers.

use crate::error::SqlError;
use crate::operators::{JsonbOperators, PostgresTypes, functions};
use crate::samples::{ReadLimits, Samples, Vocabulary};
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
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;
use std::time::Duration;
use store::Store;

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
    /// Bytes of memory for all statements together.
    pub memory_max: usize,
}

/// All sessions' common ground.
pub struct Database {
    store: Arc<Store>,
    limits: Limits,
    runtime: Arc<RuntimeEnv>,
}

/// A statement that is planned.
#[derive(Clone, Debug)]
pub struct Statement {
    plan: LogicalPlan,
}

/// What a statement says.
pub struct Answer {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows, as they come.
    pub rows: SendableRecordBatchStream,
}

/// The tables and settings of one client.
pub struct Session {
    context: SessionContext,
}

impl Database {
    /// Over a store.
    ///
    /// # Errors
    /// When the limits make no sense.
    pub fn new(store: Arc<Store>, limits: Limits) -> Result<Database, SqlError> {
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_limit(limits.memory_max, 1.0)
            .with_disk_manager_builder(disk)
            .build_arc()?;
        Ok(Database { store, limits, runtime })
    }

    /// A session that has no tables yet.
    pub fn session(&self) -> Session {
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_information_schema(true);
        config.options_mut().sql_parser.dialect = datafusion::config::Dialect::PostgreSQL;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(self.runtime.clone())
            .with_default_features()
            .with_type_planner(Arc::new(PostgresTypes))
            .build();
        let mut planners = vec![Arc::new(JsonbOperators) as _];
        planners.extend(state.expr_planners().iter().cloned());
        let state =
            SessionStateBuilder::new_from_existing(state).with_expr_planners(planners).build();
        let context = SessionContext::new_with_state(state);
        functions().for_each(|function| context.register_udf((*function).clone()));
        Session { context }
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
    /// Plans a statement that only reads.
    ///
    /// # Errors
    /// When it is none.
    pub async fn plan(&self, statement: Box<ast::Statement>) -> Result<Statement, SqlError> {
        let statement = parser::Statement::Statement(statement);
        let plan = self.context.state().statement_to_plan(statement).await?;
        let reads = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        reads.verify_plan(&plan)?;
        Ok(Statement { plan })
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
        let mut plan = statement.plan;
        if !parameters.is_empty() {
            plan = plan.with_param_values(parameters)?;
        }
        let frame = self.context.execute_logical_plan(plan).await?;
        let rows = frame.execute_stream().await?;
        Ok(Answer { schema: rows.schema(), rows })
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
                Some(known) => all.push(known),
                None => {
                    return Err(SqlError::Invalid(format!(
                        "could not determine data type of parameter {name}"
                    )));
                }
            }
        }
        Ok(all)
    }
}
