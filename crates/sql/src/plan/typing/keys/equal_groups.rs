//! GROUP BY and DISTINCT of types with values that are equal and shown differently: `1.0` and `1.00`, `1 mon` and
//! `30 days`. A group has a key that equal values share, and shows its first value, as PostgreSQL does:
//!
//! ```text
//! aggregate by x   becomes   projection of CASE WHEN key IS NOT NULL THEN first END AS x
//!                              aggregate by key(x) AS key: first_value(x) AS first
//! ```

use crate::functions::arrays::array_order::ARRAY_ORDER;
use crate::functions::arrays::null_arrays::is_list_of_keys;
use crate::types::numeric::conversions::KEY;
use crate::types::numeric::value::NUMERIC;
use crate::types::time::intervals::{WORTH, is_interval};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprSchemable as _, LogicalPlan, LogicalPlanBuilder,
    when,
};
use std::sync::Arc;

/// Names that no statement can write.
const KEY_NAME: &str = "\0key";
const FIRST_NAME: &str = "\0first";

/// Returns the key that equal values share, or none for a type whose equal values are always shown alike.
pub fn key_of(expr: &Expr, ty: &DataType) -> Option<Expr> {
    let key = match ty {
        ty if *ty == NUMERIC => &KEY,
        ty if is_interval(ty) => &WORTH,
        ty if is_list_of_keys(ty) => &ARRAY_ORDER,
        _ => return None,
    };
    Some(key.call(vec![expr.clone()]))
}

/// DISTINCT ON by keys: its expressions are those that its ORDER BY begins with.
pub fn distinct_on_keys(on: &mut DistinctOn) {
    let input = on.input.schema();
    let sorts = on.sort_expr.iter_mut().flatten().map(|sort| &mut sort.expr);
    for expr in on.on_expr.iter_mut().chain(sorts) {
        let ty = expr.get_type(input).unwrap_or(DataType::Null);
        if let Some(key) = key_of(expr, &ty) {
            *expr = key;
        }
    }
}

/// Groups rows by keys.
///
/// # Errors
/// Returns errors of the planner.
pub fn group_by_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
    if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return sets_of_keys(aggregate).map(|made| match made {
            Some(made) => Transformed::yes(made),
            None => Transformed::no(node),
        });
    }
    let input = aggregate.input.schema();
    let mut groups = Vec::with_capacity(aggregate.group_expr.len());
    let mut calls = aggregate.aggr_expr.clone();
    let mut shown = Vec::with_capacity(aggregate.schema.fields().len());
    let mut is_changed = false;
    // A key that is given twice is one column of the result.
    let mut unique: Vec<&Expr> = Vec::new();
    for group in &aggregate.group_expr {
        if !unique.contains(&group) {
            unique.push(group);
        }
    }
    for (at, (group, (table, field))) in unique.into_iter().zip(aggregate.schema.iter()).enumerate()
    {
        let plain = group.clone().unalias();
        let Some(key) = key_of(&plain, &plain.get_type(input)?) else {
            groups.push((*group).clone());
            shown.push(Expr::from((table, field)));
            continue;
        };
        is_changed = true;
        let (key_name, first_name) = (format!("{KEY_NAME}{at}"), format!("{FIRST_NAME}{at}"));
        groups.push(key.alias(&key_name));
        calls.push(first_value(plain, Vec::new()).alias(&first_name));
        let column = |name: String| Expr::Column(Column::from_name(name));
        // A row of all groups has no key.
        let value = when(column(key_name).is_not_null(), column(first_name)).end()?;
        shown.push(value.alias_qualified(table.cloned(), field.name()));
    }
    if !is_changed {
        return Ok(Transformed::no(node));
    }
    let results = aggregate.schema.iter().skip(groups.len());
    shown.extend(results.map(Expr::from));
    let grouped = Aggregate::try_new(aggregate.input.clone(), groups, calls)?;
    let made = LogicalPlanBuilder::from(LogicalPlan::Aggregate(grouped)).project(shown)?;
    Ok(Transformed::yes(made.build()?))
}

/// Grouping sets of `numeric` columns, whose input has their keys in place of them.
fn sets_of_keys(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let input = aggregate.input.schema();
    let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() else { return Ok(None) };
    let is_key = |expr: &Expr| expr.get_type(input).is_ok_and(|ty| ty == NUMERIC);
    let keys: Vec<Expr> =
        sets.distinct_expr().into_iter().filter(|one| is_key(one)).cloned().collect();
    let is_keyed =
        |one: &Expr| matches!(one, Expr::ScalarFunction(called) if called.name() == KEY.name());
    let is_done = matches!(&*aggregate.input, LogicalPlan::Projection(below)
        if below.expr.iter().any(|one| is_keyed(&one.clone().unalias())));
    if keys.is_empty() || is_done {
        return Ok(None);
    }
    let columns = input.iter().map(|(table, field)| {
        let column = Expr::from((table, field));
        match keys.contains(&column) {
            true => KEY.call(vec![column]).alias_qualified(table.cloned(), field.name()),
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let below = LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).project(columns)?;
    let (groups, calls) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
    let made = Aggregate::try_new(Arc::new(below.build()?), groups, calls)?;
    Ok(Some(LogicalPlan::Aggregate(made)))
}

/// Rows without duplicates, as groups of all columns.
///
/// # Errors
/// Returns errors of the planner.
pub fn distinct_by_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Distinct(Distinct::All(input)) = &node else {
        return Ok(Transformed::no(node));
    };
    if !has_keys(input.schema()) {
        return Ok(Transformed::no(node));
    }
    let columns: Vec<Expr> = input.schema().iter().map(Expr::from).collect();
    let groups = Aggregate::try_new(input.clone(), columns, Vec::new())?;
    group_by_keys(LogicalPlan::Aggregate(groups))
}

fn has_keys(schema: &DFSchema) -> bool {
    let has_key = |ty: &DataType| *ty == NUMERIC || is_interval(ty) || is_list_of_keys(ty);
    schema.fields().iter().any(|field| has_key(field.data_type()))
}
