//! Casts from and to `numeric` that DataFusion plans by itself. Arrow would show the digits with the scale that is
//! encoded in them, so each such cast becomes a call that knows the encoding.

use crate::types::numeric::exact_casts::exact_cast;
use crate::types::numeric::value::NUMERIC;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, LogicalPlan, TryCast};
use datafusion::optimizer::AnalyzerRule;

/// Replaces the casts of a plan whose types DataFusion has made equal.
#[derive(Debug)]
pub struct ImplicitCasts;

impl AnalyzerRule for ImplicitCasts {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.transform_plans_up(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            node.transform_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.transform_up(|expr| Ok(replace(expr, &schema)))?;
                Ok(match changed.transformed {
                    true => changed.update_data(|expr| name.restore(expr)),
                    false => changed,
                })
            })
        });
        Ok(changed?.data)
    }

    fn name(&self) -> &str {
        "numeric_implicit_casts"
    }
}

fn replace(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })) =
        &expr
    else {
        return Transformed::no(expr);
    };
    let to = field.data_type();
    match inner.get_type(schema) {
        Ok(from) if from != *to && (has_numeric(&from) || has_numeric(to)) => {
            Transformed::yes(exact_cast(to).call(vec![(**inner).clone()]))
        }
        _ => Transformed::no(expr),
    }
}

/// Whether it is `numeric`, or an array of such.
fn has_numeric(ty: &DataType) -> bool {
    match ty {
        DataType::List(of) => has_numeric(of.data_type()),
        other => *other == NUMERIC,
    }
}
