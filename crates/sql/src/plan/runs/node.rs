//! The step of a plan that takes the first rows of runs, and how it becomes one that runs.

use crate::plan::execution::physical_order::plan_order;
use crate::plan::runs::exec::FirstOfRunsExec;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use std::fmt;
use std::sync::Arc;

/// The first rows of each run of rows that are alike in the first expressions of an order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Hash)]
pub struct FirstOfRuns {
    /// How the rows are sorted, which is how they stay.
    order: Vec<Sort>,
    /// In how many of those the rows of a run are alike.
    key_count: usize,
    /// How many rows of each run are kept.
    count: usize,
    input: LogicalPlan,
}

impl fmt::Debug for FirstOfRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UserDefinedLogicalNodeCore::fmt_for_explain(self, f)
    }
}

impl FirstOfRuns {
    /// Of rows that need not be sorted yet, by the first `key_count` of `order`.
    pub fn new(
        input: LogicalPlan,
        order: Vec<Sort>,
        key_count: usize,
        count: usize,
    ) -> FirstOfRuns {
        assert!(0 < key_count && key_count <= order.len(), "runs are of rows alike in something");
        FirstOfRuns { order, key_count, count, input }
    }

    /// As a part of a plan.
    pub fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }
}

impl UserDefinedLogicalNodeCore for FirstOfRuns {
    fn name(&self) -> &str {
        "FirstOfRuns"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        self.order.iter().map(|sort| sort.expr.clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FirstOfRuns: count={}, alike in", self.count)?;
        for (at, sort) in self.order.iter().enumerate() {
            let words = if at == self.key_count { "; sorted by" } else { "" };
            write!(f, "{words} {sort}")?;
        }
        Ok(())
    }

    fn with_exprs_and_inputs(
        &self,
        exprs: Vec<Expr>,
        inputs: Vec<LogicalPlan>,
    ) -> Result<FirstOfRuns> {
        let Some(input) = inputs.into_iter().next() else {
            return internal_err!("runs are of rows");
        };
        if exprs.len() != self.order.len() {
            return internal_err!("{} expressions for {}", exprs.len(), self.order.len());
        }
        let order = self.order.iter().zip(exprs).map(|(sort, expr)| sort.with_expr(expr));
        Ok(FirstOfRuns::new(input, order.collect(), self.key_count, self.count))
    }

    fn necessary_children_exprs(&self, columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        // Those of the order are asked for besides.
        Some(vec![columns.to_vec()])
    }
}

/// Plans [`FirstOfRuns`].
pub struct Planner;

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<FirstOfRuns>(), inputs) else {
            return Ok(None);
        };
        let order = plan_order(planner, &node.order, node.input.schema(), session, context)?;
        let made = FirstOfRunsExec::new(input.clone(), order, node.key_count, node.count)?;
        Ok(Some(Arc::new(made)))
    }
}
