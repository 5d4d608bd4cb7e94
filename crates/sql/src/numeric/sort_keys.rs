//! Numbers of one value are equal, however many digits they show: in groups, joins and lists without duplicates.

use super::conversions::{KEY, keyed};
use super::value::NUMERIC;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{
    Case, Distinct, Expr, ExprSchemable as _, Join, JoinConstraint, LogicalPlan,
    LogicalPlanBuilder, when,
};
use std::sync::Arc;

fn is_numeric(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| ty == NUMERIC)
}

/// Keys of groups; says whether one of them changed.
pub fn grouped_by_key(keys: &mut [Expr], schema: &DFSchema) -> bool {
    let mut is_changed = false;
    for key in keys.iter_mut() {
        let is_set = matches!(key, Expr::GroupingSet(_));
        if is_set || !is_numeric(key, schema) {
            continue;
        }
        is_changed = true;
        let (table, name) = key.qualified_name();
        let plain = std::mem::take(key).unalias();
        *key = KEY.call(vec![plain]).alias_qualified(table, name);
    }
    is_changed
}

/// The columns by which tables are joined.
pub fn joined_by_key(join: &mut Join) -> bool {
    let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
    let mut is_changed = false;
    for (one, other) in &mut join.on {
        let is_one = is_numeric(one, &left) || is_numeric(other, &right);
        let is_plain = |expr: &Expr, schema: &DFSchema| {
            expr.get_type(schema).is_ok_and(|ty| ty.is_decimal() || ty.is_integer())
        };
        if !is_one || !is_plain(one, &left) || !is_plain(other, &right) {
            continue;
        }
        *one = keyed(std::mem::take(one), &left);
        *other = keyed(std::mem::take(other), &right);
        // A key is no column that both sides have by one name; what `USING` merges is merged by now.
        join.join_constraint = JoinConstraint::On;
        is_changed = true;
    }
    is_changed
}

/// A value that is looked for among those of a query.
///
/// # Errors
/// When the plan makes no sense.
pub fn among_by_key(found: InSubquery, schema: &DFSchema) -> Result<Transformed<InSubquery>> {
    let InSubquery { expr, mut subquery, negated } = found;
    let among = subquery.subquery.schema().field(0).data_type().clone();
    let is_exact = |ty: &DataType| ty.is_decimal() || ty.is_integer();
    let is_meant = expr
        .get_type(schema)
        .is_ok_and(|ty| (ty == NUMERIC || among == NUMERIC) && is_exact(&ty) && is_exact(&among));
    if !is_meant {
        return Ok(Transformed::no(InSubquery { expr, subquery, negated }));
    }
    let columns = subquery.subquery.schema().iter().enumerate().map(|(at, (table, field))| {
        let column = Expr::from((table, field));
        match at {
            0 => KEY.call(vec![column]).alias_qualified(table.cloned(), field.name()),
            _ => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project(columns)?;
    subquery.subquery = Arc::new(plan.build()?);
    let expr = Box::new(keyed(*expr, schema));
    Ok(Transformed::yes(InSubquery { expr, subquery, negated }))
}

/// Rows without duplicates.
///
/// # Errors
/// When the plan makes no sense.
pub fn distinct_by_key(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Distinct(Distinct::All(input)) = &node else {
        return Ok(Transformed::no(node));
    };
    let is_one = |ty: &DataType| *ty == NUMERIC;
    if !input.schema().fields().iter().any(|field| is_one(field.data_type())) {
        return Ok(Transformed::no(node));
    }
    let columns = input.schema().iter().map(|(table, field)| {
        let column = Expr::from((table, field));
        match is_one(field.data_type()) {
            true => KEY.call(vec![column]).alias_qualified(table.cloned(), field.name()),
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let keyed = LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?.build()?;
    Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::All(Arc::new(keyed)))))
}

/// `nullif` of numbers, of which one is a `numeric`.
pub fn null_if_equal(args: &[Expr], schema: &DFSchema) -> Option<Case> {
    let [value, other] = args else { return None };
    let is_exact =
        |one: &Expr| one.get_type(schema).is_ok_and(|ty| ty.is_decimal() || ty.is_integer());
    let is_meant = is_numeric(value, schema) || is_numeric(other, schema);
    if !is_meant || !is_exact(value) || !is_exact(other) {
        return None;
    }
    let is_equal = keyed(value.clone(), schema).eq(keyed(other.clone(), schema));
    let null = ScalarValue::try_from(&value.get_type(schema).ok()?).ok()?;
    let null = Expr::Literal(null, None);
    match when(is_equal, null).otherwise(value.clone()).ok()? {
        Expr::Case(case) => Some(case),
        _ => None,
    }
}
