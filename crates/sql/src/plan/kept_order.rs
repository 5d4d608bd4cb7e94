//! The order of subqueries. PostgreSQL keeps the order of `(SELECT .. ORDER BY ..)` in what is made of its rows:
//! `array_agg`, `OFFSET`, windows without an order. DataFusion drops a sort that no step asks for (its issue
//! 24958), so a step asks for it where the order is seen.
//!
//! ```text
//! array_agg ─ alias ─ sort ─ rows      becomes      array_agg ─ alias ─ kept order ─ sort ─ rows
//! ```

use crate::plan::execution::physical_order::plan_order;
use crate::types::traversal::Traversal as _;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::logical_plan::{FetchType, SkipType};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Distinct, Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::{
    Distribution, LexOrdering, LexRequirement, OrderingRequirements, PhysicalExpr,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Aggregates whose value depends on the order in which values come.
const ORDERED: &[&str] =
    &["array_agg", "string_agg", "first_value", "last_value", "nth_value", "any_value"];
const EXEC: &str = "KeptOrderExec";

/// A plan whose subqueries keep their order where it is seen.
///
/// # Errors
/// Returns errors of the planner.
pub fn keep_orders(plan: LogicalPlan) -> Result<LogicalPlan> {
    change(plan, Place { is_seen: true, is_within: false }, keep)
}

/// A plan without the orders of subqueries that are not seen.
///
/// # Errors
/// Returns errors of the planner.
pub fn drop_orders(plan: LogicalPlan) -> Result<LogicalPlan> {
    change(plan, Place { is_seen: true, is_within: false }, without_unseen)
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct Place {
    /// Whether a step above depends on the order of its rows.
    is_seen: bool,
    /// Whether it is in a subquery, or rows before it are left out.
    is_within: bool,
}

impl Place {
    /// The place of the inputs of a node.
    fn below(self, node: &LogicalPlan) -> Result<Place> {
        let Place { is_seen, is_within } = self;
        let seen = |is_seen| Place { is_seen, is_within };
        Ok(match node {
            LogicalPlan::SubqueryAlias(_) => Place { is_seen, is_within: true },
            LogicalPlan::Aggregate(aggregate) => {
                seen(aggregate.aggr_expr.iter().any(depends_on_order))
            }
            LogicalPlan::Window(window) => seen(window.window_expr.iter().any(depends_on_order)),
            LogicalPlan::Limit(limit) => {
                let skips = !matches!(limit.get_skip_type()?, SkipType::Literal(0));
                let is_open = matches!(limit.get_fetch_type()?, FetchType::Literal(None));
                // The first rows of a sort are a step of their own.
                Place { is_seen: true, is_within: skips && is_open }
            }
            LogicalPlan::Distinct(Distinct::On(on)) => seen(on.sort_expr.is_none()),
            LogicalPlan::Sort(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Union(_) => seen(false),
            _ => self,
        })
    }
}

/// Whether an aggregate or a window function takes rows as they come.
pub fn depends_on_order(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => depends_on_order(&alias.expr),
        Expr::AggregateFunction(called) => {
            called.params.order_by.is_empty() && ORDERED.contains(&called.func.name())
        }
        Expr::WindowFunction(called) => {
            let WindowFunction { params, .. } = &**called;
            params.order_by.is_empty()
        }
        _ => false,
    }
}

/// Changes each node by where it stands, from the bottom.
fn change(
    plan: LogicalPlan,
    place: Place,
    one: fn(LogicalPlan, Place) -> LogicalPlan,
) -> Result<LogicalPlan> {
    let below = place.below(&plan)?;
    let plan = plan.map_children(|child| change(child, below, one).map(Transformed::yes)).data()?;
    // The order of a scalar subquery, and of one that a value is compared with, is not seen.
    let apart = Place { is_seen: false, is_within: true };
    let plan = plan.map_subqueries(|query| change(query, apart, one).map(Transformed::yes));
    Ok(one(plan.data()?, place))
}

fn without_unseen(plan: LogicalPlan, place: Place) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort(sort) if !place.is_seen && place.is_within && sort.fetch.is_none() => {
            Arc::unwrap_or_clone(sort.input)
        }
        other => other,
    }
}

fn keep(plan: LogicalPlan, place: Place) -> LogicalPlan {
    let order = match &plan {
        LogicalPlan::Sort(sort) => &sort.expr,
        LogicalPlan::Limit(limit) => match &*limit.input {
            LogicalPlan::Sort(sort) => &sort.expr,
            _ => return plan,
        },
        _ => return plan,
    };
    match place.is_seen && place.is_within {
        true => {
            let node = Arc::new(KeptOrder { order: order.clone(), input: plan });
            LogicalPlan::Extension(Extension { node })
        }
        false => plan,
    }
}

/// Whether a plan keeps an order, for which its steps run one after the other.
pub fn keeps_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.name() == EXEC || plan.children().into_iter().any(keeps_order)
}

/// Rows in an order that is kept.
#[derive(Clone, PartialEq, Eq, PartialOrd, Hash)]
struct KeptOrder {
    order: Vec<Sort>,
    input: LogicalPlan,
}

impl fmt::Debug for KeptOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UserDefinedLogicalNodeCore::fmt_for_explain(self, f)
    }
}

impl UserDefinedLogicalNodeCore for KeptOrder {
    fn name(&self) -> &str {
        "KeptOrder"
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

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptOrder")
    }

    fn with_exprs_and_inputs(
        &self,
        exprs: Vec<Expr>,
        inputs: Vec<LogicalPlan>,
    ) -> Result<KeptOrder> {
        let Some(input) = inputs.into_iter().next() else {
            return internal_err!("an order is of rows");
        };
        let order = self.order.iter().zip(exprs).map(|(sort, expr)| sort.with_expr(expr));
        Ok(KeptOrder { order: order.collect(), input })
    }

    fn necessary_children_exprs(&self, columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        // DataFusion asks for the columns of the order separately.
        Some(vec![columns.to_vec()])
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }
}

/// Plans [`KeptOrder`].
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
        let (Some(node), [input]) = (node.as_any().downcast_ref::<KeptOrder>(), inputs) else {
            return Ok(None);
        };
        let order = plan_order(planner, &node.order, node.input.schema(), session, context)?;
        Ok(Some(match LexOrdering::new(order) {
            Some(order) => Arc::new(KeptOrderExec { input: input.clone(), order }),
            None => input.clone(),
        }))
    }
}

/// Asks for an order, and hands the rows on as they come.
#[derive(Debug)]
struct KeptOrderExec {
    input: Arc<dyn ExecutionPlan>,
    order: LexOrdering,
}

impl DisplayAs for KeptOrderExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXEC)
    }
}

impl ExecutionPlan for KeptOrderExec {
    fn name(&self) -> &str {
        EXEC
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::new(LexRequirement::from(self.order.clone())))]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        look: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for sort in self.order.iter() {
            if look(&sort.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.into_iter().next() else {
            return internal_err!("an order is of rows");
        };
        Ok(Arc::new(KeptOrderExec { input, order: self.order.clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
