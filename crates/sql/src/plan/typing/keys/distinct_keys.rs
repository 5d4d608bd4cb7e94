//! `count(DISTINCT k)` where `k` is a key of the group, beside another aggregate. DataFusion fails to group by such a key
//! twice; a function hides that both are one.

use crate::types::function::function;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable as _, ScalarUDF, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// Returns its argument.
static SAME: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let same = |types: &[DataType]| types.first().cloned().unwrap_or(DataType::Null);
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function("pg_same", signature, same, |args, _| Ok(Arc::clone(&args[0]))))
});

/// Hides the keys that aggregates with DISTINCT take; says whether there is one.
pub fn hide_keys(aggregate: &mut Aggregate, schema: &DFSchema) -> bool {
    let Aggregate { group_expr, aggr_expr, .. } = aggregate;
    if aggr_expr.len() < 2 {
        return false;
    }
    let mut is_changed = false;
    for expr in aggr_expr {
        let name = expr.schema_name().to_string();
        let Expr::AggregateFunction(mut called) = expr.clone().unalias() else { continue };
        let [value] = called.params.args.as_mut_slice() else { continue };
        let keeps_type =
            called.func.name() == "count" || value.get_type(schema).is_ok_and(|ty| ty.is_numeric());
        if !called.params.distinct || !keeps_type || !group_expr.contains(value) {
            continue;
        }
        *value = SAME.call(vec![std::mem::take(value)]);
        *expr = Expr::AggregateFunction(called).alias(name);
        is_changed = true;
    }
    is_changed
}
