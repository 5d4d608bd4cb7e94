//! Cancellation of work that does not yield, as planning does: a thread that is busy cannot be ended from outside,
//! so the work asks now and then whether its client still waits for it.

use crate::types::error::SqlError;
use crate::types::runtime::constant_folding::folding;
use crate::types::runtime::statement_scope::with_current;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says whether a task is cancelled.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// The task ends at its next check.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Fails once the task is cancelled.
///
/// # Errors
/// `57014`.
pub fn check() -> Result<()> {
    let is_cancelled = with_current(|scope| scope.cancellation.0.load(Ordering::Relaxed));
    match is_cancelled.unwrap_or(false) {
        false => Ok(()),
        true => {
            let error = SqlError::new("57014", "canceling statement: its client no longer waits");
            Err(DataFusionError::External(Box::new(error)))
        }
    }
}

/// The cancellation of the task that runs; none outside of statements.
pub fn flag() -> Option<Arc<AtomicBool>> {
    with_current(|scope| scope.cancellation.0.clone())
}

/// The same for searches of the store.
pub fn search_flag() -> Option<Arc<dyn store::CancelFlag>> {
    flag().map(|flag| flag as Arc<dyn store::CancelFlag>)
}

/// Optimizer rules that check for cancellation at each node of a plan, and keep long constants out of it.
pub fn cancellable(
    rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(Cancellable(rule)) as _).collect()
}

#[derive(Debug)]
struct Cancellable(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for Cancellable {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        check()?;
        folding(|| self.0.rewrite(plan, config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::runtime::statement_scope::StatementScope;

    #[test]
    fn work_fails_at_its_next_check_once_it_is_cancelled() {
        assert!(check().is_ok());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let scope = StatementScope::default();
        let cancellation = scope.cancellation.clone();
        runtime.block_on(scope.run(async {
            assert!(check().is_ok());
            let flag = search_flag().unwrap();
            assert!(!flag.is_cancelled());
            cancellation.cancel();
            let error = SqlError::from(check().unwrap_err());
            assert_eq!(error.code, "57014");
            assert!(flag.is_cancelled());
        }));
        assert!(check().is_ok());
    }
}
