//! DataFusion's optimizer rules. Three of them skip the plans whose rows they would change.
//!
//! | rule | plan | fault |
//! |---|---|---|
//! | `extract_equijoin_predicate` | a join whose keys may be NULL, with `a = b` in its filter | `a = b` becomes such a key: NULL equals NULL |
//! | `eliminate_cross_join` | inner joins of both kinds above each other | all keys become those of one kind |
//! | `push_down_filter` | a condition without columns above an aggregate of all rows | the condition moves below, and the aggregate returns a row for no rows |

use crate::types::traversal::Traversal as _;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{Aggregate, Expr, Join, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Makes these rules skip such plans.
pub fn skip_changed_rows(rules: Vec<Rule>) -> Vec<Rule> {
    let skipping = |rule: Rule| -> Rule {
        let skips: fn(&LogicalPlan) -> bool = match rule.name() {
            "extract_equijoin_predicate" => has_null_keys,
            "eliminate_cross_join" => contains_null_keys,
            "push_down_filter" => is_above_total,
            _ => return rule,
        };
        Arc::new(SkippingRule { rule, skips })
    };
    rules.into_iter().map(skipping).collect()
}

#[derive(Debug)]
struct SkippingRule {
    rule: Rule,
    /// Returns true for the plans that the rule must not change.
    skips: fn(&LogicalPlan) -> bool,
}

impl OptimizerRule for SkippingRule {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match (self.skips)(&plan) {
            true => Ok(Transformed::no(plan)),
            false => self.rule.rewrite(plan, config),
        }
    }
}

/// Whether NULL equals NULL in the keys of a join.
fn has_null_keys(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(Join { null_equality: NullEquality::NullEqualsNull, .. }))
}

fn contains_null_keys(plan: &LogicalPlan) -> bool {
    plan.exists(|node| Ok(has_null_keys(node))).unwrap_or(true)
}

/// Whether a filter stands above an aggregate that returns a row for no rows.
fn is_above_total(plan: &LogicalPlan) -> bool {
    let has_total = |aggregate: &Aggregate| {
        aggregate.group_expr.is_empty()
            || aggregate.group_expr.iter().any(|one| matches!(one, Expr::GroupingSet(_)))
    };
    match plan {
        LogicalPlan::Filter(filter) => match &*filter.input {
            LogicalPlan::Aggregate(aggregate) => has_total(aggregate),
            _ => false,
        },
        _ => false,
    }
}
