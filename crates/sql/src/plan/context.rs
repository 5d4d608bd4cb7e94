//! What a session's statements are planned and run with.
//!
//! DataFusion copies a session's whole state, with the names of some five hundred functions, for each step of
//! a statement, because that says when the statement began. Here planning borrows it, and one copy is used by
//! the statements that run after each other.

use crate::plan::execution::serial::{is_serial, waits};
use crate::plan::kept_order::keeps_order;
use crate::types::runtime::statement_scope::with_current;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A session's state, which nothing changes once it has begun.
pub struct Context {
    state: SessionState,
    /// A copy for the next statement, unless one that runs has it.
    copy: Mutex<Option<SessionState>>,
    task: Arc<TaskContext>,
}

impl Context {
    /// Of a session that knows all its functions and tables.
    pub fn new(session: &SessionContext) -> Context {
        let state = session.state();
        let task = TaskContext::new(
            None,
            session.session_id(),
            state.config().clone(),
            // Plans have their functions with them.
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            HashMap::new(),
            state.runtime_env().clone(),
        );
        Context { state, copy: Mutex::default(), task: Arc::new(task) }
    }

    /// For planning what does not ask what time it is.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// A copy that is planned with now.
    pub fn state_now(&self) -> SessionState {
        let mut state = self.state.clone();
        state.mark_start_execution();
        state
    }

    /// Plans what asks for the time while it is planned.
    ///
    /// # Errors
    /// When it makes no sense.
    pub async fn plan_now(&self, statement: Statement) -> Result<LogicalPlan> {
        let state = self.begun();
        let made = state.statement_to_plan(statement).await;
        self.put_back(state);
        made
    }

    /// What plans run in.
    pub fn task(&self) -> &Arc<TaskContext> {
        &self.task
    }

    /// Runs a plan.
    ///
    /// # Errors
    /// When it makes no sense.
    pub async fn stream(&self, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
        let state = self.begun();
        let made = state.create_physical_plan(plan).await;
        self.put_back(state);
        let mut plan_to_run = made?;
        let mut is_alone = is_serial(&plan_to_run);
        if !is_alone && (waits(&plan_to_run) || keeps_order(&plan_to_run)) {
            plan_to_run = self.serial(plan).await?;
            is_alone = is_serial(&plan_to_run);
        }
        with_current(|scope| scope.sleep.set_serial(is_alone));
        execute_stream(plan_to_run, self.task.clone())
    }

    /// A plan that does one thing at a time.
    async fn serial(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        let mut state = self.state_now();
        state.config_mut().options_mut().execution.target_partitions = 1;
        state.create_physical_plan(plan).await
    }

    /// A plan as it would be run.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn optimize(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let state = self.begun();
        let made = state.optimize(plan);
        self.put_back(state);
        made
    }

    /// The state of a statement that begins now.
    fn begun(&self) -> SessionState {
        let copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut state = copy.unwrap_or_else(|| self.state.clone());
        state.mark_start_execution();
        state
    }

    fn put_back(&self, state: SessionState) {
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }
}
