//! Keys by which values are sorted in the order of PostgreSQL.

use crate::functions::arrays::array_order::{ARRAY_ORDER, is_array};
use crate::functions::json::jsonb_order::JSONB_ORDER;
use crate::plan::typing::special_types::is_jsonb;
use crate::types::numeric::conversions::KEY;
use crate::types::numeric::value::NUMERIC;
use crate::types::time::intervals::WORTH;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, ExprSchemable as _};

/// Intervals are in the order of what they are worth, numbers in that of their values.
pub(crate) fn ordered(sorts: &mut [Sort], schema: &DFSchema) -> bool {
    let mut is_changed = false;
    for sort in sorts.iter_mut() {
        let key = match &sort.expr {
            one if is_parted(one, schema) => &WORTH,
            one if is_numeric(one, schema) => &KEY,
            one if is_jsonb(one, schema).unwrap_or(false) => &JSONB_ORDER,
            one if is_array(one, schema) => &ARRAY_ORDER,
            _ => continue,
        };
        sort.expr = key.call(vec![sort.expr.clone()]);
        is_changed = true;
    }
    is_changed
}

/// Whether an expression is an interval of months, days and less.
pub(crate) fn is_parted(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

pub(crate) fn is_numeric(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(ty) if ty == NUMERIC)
}
