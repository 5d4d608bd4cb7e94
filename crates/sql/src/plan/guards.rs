//! The order in which conditions are evaluated. PostgreSQL evaluates `x <> 0 AND 1 / x > 0` from left to right, for each
//! row as far as it must; DataFusion evaluates all conditions for all rows of a batch, and makes AND and OR of a CASE of
//! conditions. So a condition that may fail stands in a CASE of numbers, which no rule takes apart:
//!
//! ```text
//! WHERE a AND b                  becomes   WHERE a AND pg_holds(CASE WHEN a THEN b::int ELSE 0 END)
//! a OR b as a value              becomes   pg_holds(CASE WHEN a IS TRUE THEN 1 ELSE (a OR b)::int END)
//! sum(1 / x) FILTER (WHERE a)    becomes   sum(CASE WHEN a THEN 1 / x END) FILTER (WHERE a)
//! ```

use crate::types::function::function;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::arrow::array::{ArrayRef, AsArray as _, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::tree_node::{Transformed, TransformedResult as _};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Case};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable as _, LogicalPlan, Operator, ScalarUDF, Signature,
    Volatility, binary_expr, lit,
};
use std::sync::{Arc, LazyLock};

/// Conditions of which one that may fail waits.
const CONDITIONS_MAX: usize = 16;

/// Functions that fail for some values, besides those of casts.
const FALLIBLE: &[&str] = &[
    "acos",
    "asin",
    "bytea_in",
    "chr",
    "convert_from",
    "date_bin",
    "date_trunc",
    "decode",
    "exp",
    "factorial",
    "get_byte",
    "jsonb_in",
    "ln",
    "log",
    "log10",
    "log2",
    "make_date",
    "make_interval",
    "make_time",
    "make_timestamp",
    "make_timestamptz",
    "pg_float_over",
    "pg_numeric_over",
    "pg_numeric_rest",
    "pg_real",
    "power",
    "repeat",
    "sqrt",
    "split_part",
    "to_date",
    "to_number",
    "uuid_in",
];

/// A plan whose conditions fail for no row that PostgreSQL does not evaluate them for.
///
/// # Errors
/// Returns errors of the planner.
pub fn guard(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| {
        let (mut may_fail, schema) = (false, merge_schema(&node.inputs()));
        let node = without_tests(node)?;
        node.visit_expressions(|expr| {
            may_fail |= is_fallible(expr, &schema)?;
            Ok(match may_fail {
                true => datafusion::common::tree_node::TreeNodeRecursion::Stop,
                false => datafusion::common::tree_node::TreeNodeRecursion::Continue,
            })
        })?;
        if !may_fail {
            return Ok(Transformed::yes(node));
        }
        let names = NamePreserver::new(&node);
        let is_filter = matches!(node, LogicalPlan::Filter(_));
        node.transform_expressions(|expr| {
            let name = names.save(&expr);
            let made = match is_filter {
                true => conditions(expr, &schema)?,
                false => value(expr, &schema)?,
            };
            Ok(Transformed::yes(name.restore(made)))
        })
    });
    changed.data()
}

/// `x IS TRUE` as `x IS NOT DISTINCT FROM true`, but in filters, which the store reads: of the first DataFusion's planner
/// and executor disagree whether it may be NULL, and fail where it stands twice.
fn without_tests(node: LogicalPlan) -> Result<LogicalPlan> {
    if matches!(node, LogicalPlan::Filter(_)) {
        return Ok(node);
    }
    let is_test = |expr: &Expr| {
        matches!(
            expr,
            Expr::IsTrue(_) | Expr::IsFalse(_) | Expr::IsNotTrue(_) | Expr::IsNotFalse(_)
        )
    };
    let mut has_test = false;
    node.visit_expressions(|expr| {
        has_test |= expr.exists(|expr| Ok(is_test(expr)))?;
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    })?;
    if !has_test {
        return Ok(node);
    }
    let names = NamePreserver::new(&node);
    node.transform_expressions(|expr| {
        let name = names.save(&expr);
        let made = expr.transform_up(|expr| {
            let (inner, op, value) = match expr {
                Expr::IsTrue(inner) => (inner, Operator::IsNotDistinctFrom, true),
                Expr::IsFalse(inner) => (inner, Operator::IsNotDistinctFrom, false),
                Expr::IsNotTrue(inner) => (inner, Operator::IsDistinctFrom, true),
                Expr::IsNotFalse(inner) => (inner, Operator::IsDistinctFrom, false),
                other => return Ok(Transformed::no(other)),
            };
            Ok(Transformed::yes(binary_expr(*inner, op, lit(value))))
        })?;
        Ok(made.update_data(|expr| name.restore(expr)))
    })
    .data()
}

/// Whether evaluating an expression may fail.
fn is_fallible(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let is_one = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => {
            !matches!(&**right, Expr::Literal(value, _) if !value.is_null() && !is_zero(value))
        }
        Expr::Cast(cast) => {
            let from = cast.expr.get_type(schema);
            let is_text = from.is_ok_and(|from| from.is_string());
            is_text
                && !cast.field.data_type().is_string()
                && !matches!(*cast.expr, Expr::Literal(..))
        }
        Expr::ScalarFunction(called) => {
            let name = called.func.name();
            name.starts_with("pg_int") || name.starts_with("pg_text_") || FALLIBLE.contains(&name)
        }
        _ => false,
    };
    expr.exists(|expr| Ok(is_one(expr)))
}

fn is_zero(value: &ScalarValue) -> bool {
    ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero == *value)
}

/// Whether an expression may be evaluated once more.
fn is_plain(expr: &Expr) -> bool {
    let is_query = |expr: &Expr| {
        matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        )
    };
    !expr.is_volatile() && !expr.exists(|expr| Ok(is_query(expr))).unwrap_or(true)
}

/// A condition as a number, and that it holds.
fn as_number(condition: Expr) -> Expr {
    Expr::Cast(Cast::new(Box::new(condition), DataType::Int32))
}

fn holds(case: Case) -> Expr {
    HOLDS.call(vec![Expr::Case(case)])
}

/// `number = 1` as a function: DataFusion's optimizer takes a comparison of a CASE apart, and evaluates all its conditions
/// for all rows.
static HOLDS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let is_one = |args: &[ArrayRef], _: usize| {
        let numbers = cast(&args[0], &DataType::Int32)?;
        let numbers = numbers.as_primitive::<Int32Type>().iter();
        let made: BooleanArray = numbers.map(|one| one.map(|one| one == 1)).collect();
        Ok(Arc::new(made) as ArrayRef)
    };
    Arc::new(function("pg_holds", signature, |_| DataType::Boolean, is_one))
});

/// The conditions of a filter, where what is not known is as false.
fn conditions(predicate: Expr, schema: &DFSchema) -> Result<Expr> {
    let (mut all, mut before) = (Vec::new(), Vec::new());
    for condition in split_conjunction_owned(predicate) {
        let condition = value(condition, schema)?;
        let waits = is_plain(&condition) && is_fallible(&condition, schema)?;
        let made = match conjunction(before.clone()).filter(|_| waits) {
            Some(first) => holds(Case {
                expr: None,
                when_then_expr: vec![(Box::new(first), Box::new(as_number(condition)))],
                else_expr: Some(Box::new(lit(0_i32))),
            }),
            None => condition,
        };
        if is_plain(&made) && before.len() < CONDITIONS_MAX {
            before.push(made.clone());
        }
        all.push(made);
    }
    Ok(conjunction(all).unwrap_or_else(|| lit(true)))
}

/// An expression, in which conditions wait for those before them.
fn value(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if let Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) = expr {
        let mut members = Vec::new();
        split(expr, op, &mut members);
        let members = members.into_iter().map(|one| value(one, schema));
        return in_order(members.collect::<Result<Vec<_>>>()?, op, schema);
    }
    let made = expr.map_children(|child| value(child, schema).map(Transformed::yes)).data()?;
    match made {
        Expr::Case(case) if is_condition(&case, schema) => {
            let may_fail = is_fallible(&Expr::Case(case.clone()), schema)?;
            Ok(if may_fail { holds(of_numbers(case)) } else { Expr::Case(case) })
        }
        Expr::AggregateFunction(called) => filtered(called, schema).map(Expr::AggregateFunction),
        other => Ok(other),
    }
}

fn split(expr: Expr, op: Operator, members: &mut Vec<Expr>) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: own, right }) if own == op => {
            split(*left, op, members);
            split(*right, op, members);
        }
        other => members.push(other),
    }
}

/// AND or OR of members of which one that may fail waits for those before it.
fn in_order(members: Vec<Expr>, op: Operator, schema: &DFSchema) -> Result<Expr> {
    let mut waits = false;
    for member in members.iter().skip(1) {
        waits |= is_fallible(member, schema)?;
    }
    let is_known = members.len() <= CONDITIONS_MAX && members.iter().all(is_plain);
    let all = members.iter().cloned().reduce(|left, right| binary_expr(left, op, right));
    let Some(all) = all else { return Ok(lit(op == Operator::And)) };
    if !waits || !is_known {
        return Ok(all);
    }
    let count = members.len() - 1;
    let decided = members.into_iter().take(count).map(|one| match op {
        Operator::And => (Box::new(is(one, false)), Box::new(lit(0_i32))),
        _ => (Box::new(is(one, true)), Box::new(lit(1_i32))),
    });
    let when_then_expr = decided.collect();
    let else_expr = Some(Box::new(as_number(all)));
    Ok(holds(Case { expr: None, when_then_expr, else_expr }))
}

/// `condition IS TRUE` or `IS FALSE`, which DataFusion's planner and executor take for nullable alike.
fn is(condition: Expr, value: bool) -> Expr {
    binary_expr(condition, Operator::IsNotDistinctFrom, lit(value))
}

/// Whether a CASE is a condition.
fn is_condition(case: &Case, schema: &DFSchema) -> bool {
    let thens = case.when_then_expr.iter().map(|(_, then)| then);
    let types: Vec<Option<DataType>> =
        thens.chain(&case.else_expr).map(|one| one.get_type(schema).ok()).collect();
    case.expr.is_none()
        && types.iter().all(|ty| matches!(ty, Some(DataType::Boolean | DataType::Null)))
        && types.contains(&Some(DataType::Boolean))
}

fn of_numbers(case: Case) -> Case {
    let all = case.when_then_expr.into_iter();
    let when_then_expr = all.map(|(when, then)| (when, Box::new(as_number(*then)))).collect();
    let else_expr = case.else_expr.map(|last| Box::new(as_number(*last)));
    Case { expr: case.expr, when_then_expr, else_expr }
}

/// An aggregate whose arguments are evaluated for the rows of its filter.
fn filtered(mut called: AggregateFunction, schema: &DFSchema) -> Result<AggregateFunction> {
    let Some(filter) = called.params.filter.clone().filter(|filter| is_plain(filter)) else {
        return Ok(called);
    };
    for arg in &mut called.params.args {
        if is_fallible(arg, schema)? && is_plain(arg) {
            let then = (filter.clone(), Box::new(arg.clone()));
            *arg = Expr::Case(Case { expr: None, when_then_expr: vec![then], else_expr: None });
        }
    }
    Ok(called)
}
