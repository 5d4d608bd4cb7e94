//! `x = ANY (array)` where NULL and false differ. DataFusion's `array_has` is false if no element equals the value;
//! PostgreSQL's answer is NULL then if an element is NULL
//! (<https://www.postgresql.org/docs/15/functions-comparisons.html>).
//!
//! ```text
//! array_has(list, x)   becomes   CASE WHEN array_has(list, x) THEN true
//!                                     WHEN pg_is_unknown(list, x) THEN NULL ELSE false END
//! ```
//!
//! As a condition of its own in WHERE the call stays: indexes find it there.

use crate::plan::typing::keys::sort_keys::found_by_key;
use crate::plan::typing::special_types::{ResolvedType, is_uuid, resolve_type};
use crate::types::function::function;
use crate::types::parameter_types::{JSONB_PARAMETER, UUID_PARAMETER};
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, Placeholder, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, ExprSchemable as _, Filter, LogicalPlan, ScalarUDF, Signature, Volatility, lit, when,
};
use std::sync::{Arc, LazyLock};

static IS_UNKNOWN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    let work = |args: &[ArrayRef], rows: usize| Ok(are_unknown(&args[0], &args[1], rows));
    Arc::new(function("pg_is_unknown", signature, |_| DataType::Boolean, work))
});

/// Returns whether an answer is NULL if no element equals the value.
fn are_unknown(lists: &ArrayRef, values: &ArrayRef, rows: usize) -> ArrayRef {
    let lists = lists.as_list_opt::<i32>();
    let is_one = |row: usize| {
        let Some(list) = lists.filter(|lists| lists.is_valid(row)).map(|lists| lists.value(row))
        else {
            return true;
        };
        let is_null = values.data_type().is_null() || values.is_null(row);
        !list.is_empty() && (is_null || 0 < list.logical_null_count())
    };
    Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(is_one(row)))))
}

/// `x = ANY($1)`: the list has the type of the value that is looked for in it, and numbers are found by their value.
pub fn change_membership(mut called: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let is_typed =
        list_as_value(&mut called.args, schema) || value_as_element(&mut called.args, schema);
    let found = found_by_key(std::mem::take(&mut called.args), schema);
    called.args = found.data;
    Transformed::new_transformed(Expr::ScalarFunction(called), is_typed || found.transformed)
}

/// Gives a parameter that is looked for in a list the type of its elements; says whether it did.
fn value_as_element(args: &mut [Expr], schema: &DFSchema) -> bool {
    let [list, Expr::Placeholder(value @ Placeholder { field: None, .. })] = args else {
        return false;
    };
    let Ok(DataType::List(of)) = list.get_type(schema) else { return false };
    let ty = match resolve_type(list, schema) {
        ResolvedType::Special(name) if name == "uuid[]" => UUID_PARAMETER,
        ResolvedType::Special(name) if name == "jsonb[]" => JSONB_PARAMETER,
        _ => of.data_type().clone(),
    };
    value.field = Some(Arc::new(Field::new("element", ty, true)));
    true
}

/// Gives a parameter that is a list the type of a value that may be in it; says whether it did.
fn list_as_value(args: &mut [Expr], schema: &DFSchema) -> bool {
    let [Expr::Placeholder(list), value] = args else { return false };
    let Ok(of) = value.get_type(schema) else { return false };
    if list.field.is_some() || matches!(of, DataType::Null) {
        return false;
    }
    let of = if is_uuid(value, schema) { UUID_PARAMETER } else { of };
    let of = Field::new_list_field(of, true);
    list.field = Some(Arc::new(Field::new("list", DataType::List(Arc::new(of)), true)));
    true
}

/// Changes the calls of a plan.
///
/// # Errors
/// Returns errors of the planner.
pub fn with_unknown(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| {
        let mut has_member = false;
        node.visit_expressions(|expr| {
            has_member |= expr.exists(|one| Ok(is_member(one)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !has_member {
            return Ok(Transformed::no(node));
        }
        if let LogicalPlan::Filter(filter) = node {
            let all = split_conjunction_owned(filter.predicate);
            let all = all.into_iter().map(change_condition).collect::<Result<Vec<_>>>()?;
            let predicate = conjunction(all).unwrap_or_else(|| lit(true));
            let filter = Filter::try_new(predicate, filter.input)?;
            return Ok(Transformed::yes(LogicalPlan::Filter(filter)));
        }
        let names = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = names.save(&expr);
            Ok(Transformed::yes(name.restore(change(expr)?)))
        })
    });
    Ok(changed?.data)
}

fn is_member(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(called) if called.func.name() == "array_has")
}

/// Changes a condition for which NULL and false have the same effect.
fn change_condition(expr: Expr) -> Result<Expr> {
    if is_member(&expr) { Ok(expr) } else { change(expr) }
}

fn change(expr: Expr) -> Result<Expr> {
    match expr {
        member if is_member(&member) => with_null(member),
        Expr::Case(Case { expr: None, when_then_expr, else_expr }) => {
            let branch = |(condition, then): (Box<Expr>, Box<Expr>)| {
                Ok((Box::new(change_condition(*condition)?), Box::new(change(*then)?)))
            };
            let when_then_expr =
                when_then_expr.into_iter().map(branch).collect::<Result<Vec<_>>>()?;
            let else_expr = else_expr.map(|one| change(*one).map(Box::new)).transpose()?;
            Ok(Expr::Case(Case { expr: None, when_then_expr, else_expr }))
        }
        other => Ok(other.map_children(|one| change(one).map(Transformed::yes))?.data),
    }
}

fn with_null(member: Expr) -> Result<Expr> {
    let Expr::ScalarFunction(called) = &member else { return Ok(member) };
    let unknown = IS_UNKNOWN.call(called.args.clone());
    let null = Expr::Literal(ScalarValue::Boolean(None), None);
    when(member.clone(), lit(true)).when(unknown, null).otherwise(lit(false))
}
