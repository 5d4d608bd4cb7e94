//! The statement that a task works for: its cancellation, whether it sleeps, and the memory that all statements share.
//! Tasks that DataFusion spawns for it inherit them.

use crate::types::runtime::cancellation::Cancellation;
use crate::types::runtime::sleep_state::SleepState;
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::execution::memory_pool::MemoryPool;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use tokio::task::JoinHandle;

tokio::task_local! {
    static CURRENT: StatementScope;
}

/// What the tasks of one statement share.
#[derive(Clone, Debug, Default)]
pub struct StatementScope {
    /// Says whether they are cancelled.
    pub cancellation: Cancellation,
    /// Memory of all statements; none where it is not limited.
    pub memory: Option<Arc<dyn MemoryPool>>,
    /// Says whether they sleep.
    pub sleep: Arc<SleepState>,
}

impl StatementScope {
    /// Runs work for the statement.
    pub fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(self, work)
    }
}

/// Looks at the scope of the task that runs; none outside of statements.
pub fn with_current<T>(look: impl FnOnce(&StatementScope) -> T) -> Option<T> {
    CURRENT.try_with(look).ok()
}

/// The scope of the task that runs, if it works for a statement.
pub fn current() -> Option<StatementScope> {
    with_current(StatementScope::clone)
}

/// Does work that may block on another thread, for the statement of this task.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    match current() {
        Some(scope) => tokio::task::spawn_blocking(move || CURRENT.sync_scope(scope, work)),
        None => tokio::task::spawn_blocking(work),
    }
}

/// Hands the scope of a task on to the tasks that it spawns.
struct Inherited;

impl JoinSetTracer for Inherited {
    fn trace_future(
        &self,
        future: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match current() {
            Some(scope) => scope.run(future).boxed(),
            None => future,
        }
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        match current() {
            Some(scope) => Box::new(move || CURRENT.sync_scope(scope, work)),
            None => work,
        }
    }
}

/// Lets tasks that DataFusion spawns inherit the scope of their statement.
pub fn inherit() {
    // It is set already where there is another database.
    let _ = set_join_set_tracer(&Inherited);
}
