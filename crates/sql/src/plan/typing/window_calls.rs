//! Calls of window functions with PostgreSQL's types and orders.

use crate::functions::aggregates::charged_aggregates::WINDOW_ARRAY_AGG;
use crate::plan::typing::floats::one_type;
use crate::plan::typing::keys::equal_groups::key_of;
use crate::plan::typing::keys::order_keys::ordered;
use crate::types::error::SqlError;
use crate::types::time::intervals::is_interval;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    Expr, ExprSchemable as _, LogicalPlan, LogicalPlanBuilder, Window, WindowFrameUnits,
    WindowFunctionDefinition,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use std::sync::Arc;

/// Changes the arguments, the keys and the frame of a call; returns whether it did.
///
/// # Errors
/// Returns the errors of the cast if the default is not valid for the type.
pub fn change_window_call(called: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let mut is_changed = change_window(&mut called.params, schema);
    if called.fun.name() == "array_agg" {
        called.fun = WindowFunctionDefinition::AggregateUDF(WINDOW_ARRAY_AGG.clone());
        is_changed = true;
    }
    check_extreme(called, schema)?;
    Ok(change_arguments(called, schema)? || is_changed)
}

/// Refuses the least and the greatest interval of a window: DataFusion compares months first, whatever their length.
fn check_extreme(called: &WindowFunction, schema: &DFSchema) -> Result<()> {
    let is_parted = |one: &Expr| one.get_type(schema).is_ok_and(|ty| is_interval(&ty));
    if !["min", "max"].contains(&called.fun.name()) || !called.params.args.iter().any(is_parted) {
        return Ok(());
    }
    let words = "min and max of intervals as window functions are not known here";
    let error =
        SqlError::unsupported(words).with_hint("Use extract(epoch FROM ..) of the interval.");
    Err(DataFusionError::External(Box::new(error)))
}

/// Removes calls that have become equal, and gives the one that is left all their names: DataFusion has no plan for a
/// call that it finds twice.
///
/// # Errors
/// Returns errors of the planner.
pub fn without_equal_calls(node: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Window(window) = &node else { return Ok(node) };
    let mut known: Vec<(Expr, String)> = Vec::new();
    let mut calls = Vec::new();
    let mut shown: Vec<Expr> = window.input.schema().iter().map(Expr::from).collect();
    for call in &window.window_expr {
        let (plain, name) = (call.clone().unalias(), call.schema_name().to_string());
        let first = known.iter().find(|(one, _)| *one == plain).map(|(_, name)| name.clone());
        if first.is_none() {
            known.push((plain, name.clone()));
            calls.push(call.clone());
        }
        let column = Expr::Column(Column::from_name(first.as_deref().unwrap_or(&name)));
        shown.push(if first.is_some() { column.alias(name) } else { column });
    }
    if calls.len() == window.window_expr.len() {
        return Ok(node);
    }
    let made = LogicalPlan::Window(Window::try_new(calls, Arc::clone(&window.input))?);
    LogicalPlanBuilder::from(made).project(shown)?.build()
}

/// Replaces keys of ORDER BY and PARTITION BY by sort keys, such that equal numbers are equal, and frames of RANGE by GROUPS
/// for types that DataFusion has no RANGE for. Returns true if something changed.
fn change_window(params: &mut WindowFunctionParams, schema: &DFSchema) -> bool {
    let mut is_changed = ordered(&mut params.order_by, schema);
    for key in &mut params.partition_by {
        let ty = key.get_type(schema).unwrap_or(DataType::Null);
        if let Some(made) = key_of(key, &ty) {
            *key = made;
            is_changed = true;
        }
    }
    let frame = &mut params.window_frame;
    if frame.units == WindowFrameUnits::Range
        && params.order_by.iter().any(|sort| is_without_range(&sort.expr, schema))
    {
        // `common_types::check_window` refuses bounds with an offset: the others mean the same in both.
        frame.units = WindowFrameUnits::Groups;
        is_changed = true;
    }
    is_changed
}

/// Returns true for types that DataFusion has no frames of RANGE for.
fn is_without_range(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| {
        matches!(
            ty,
            DataType::Time64(_) | DataType::List(_) | DataType::Binary | DataType::LargeBinary
        )
    })
}

/// Gives the value and the default of `lag` and `lead` one type; an offset of NULL makes the value NULL. Returns
/// whether an argument changed.
fn change_arguments(called: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    if !["lag", "lead"].contains(&called.fun.name()) {
        return Ok(false);
    }
    let args = &mut called.params.args;
    if let [value, Expr::Literal(offset, _), ..] = args.as_slice()
        && offset.is_null()
    {
        let null = ScalarValue::try_from(&value.get_type(schema)?)?;
        *args = vec![Expr::Literal(null, None)];
        return Ok(true);
    }
    let [value, _, default] = args.as_mut_slice() else { return Ok(false) };
    let both = one_type(vec![std::mem::take(value), std::mem::take(default)], schema)?;
    let is_changed = both.transformed;
    let [one, other] = <[Expr; 2]>::try_from(both.data).expect("two went in");
    (*value, *default) = (one, folded(other)?);
    Ok(is_changed)
}

/// A default as the optimizer would fold it, to be compared with those of other calls.
fn folded(default: Expr) -> Result<Expr> {
    if matches!(default, Expr::Literal(..)) || !default.column_refs().is_empty() {
        return Ok(default);
    }
    ExprSimplifier::new(SimplifyContext::builder().build()).simplify(default)
}
