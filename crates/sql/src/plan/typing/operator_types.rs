//! Operators that PostgreSQL does not have for the types of their operands
//! (<https://www.postgresql.org/docs/15/typeconv-oper.html>). DataFusion casts an operand to the type of the other:
//! texts to numbers, and to NULL if they are none.

use crate::plan::typing::common_types::column_type;
use crate::types::categories::{Category, category_of, known_type, refusal};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, ExprSchemable as _, Like, LogicalPlan, Operator,
};

type Known = (Category, String);

/// Checks the operators of an expression.
///
/// # Errors
/// 42883, 42725 and 42804, as PostgreSQL has them.
pub fn check(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let place = if *op == Operator::And { "AND" } else { "OR" };
            check_boolean(left, place, schema)?;
            check_boolean(right, place, schema)
        }
        Expr::BinaryExpr(binary) => check_arithmetic(binary, schema),
        Expr::Not(inner) => check_boolean(inner, "NOT", schema),
        Expr::AggregateFunction(called) => match &called.params.filter {
            Some(condition) => check_boolean(condition, "FILTER", schema),
            None => Ok(()),
        },
        Expr::Like(like) => check_like(like, schema),
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            check_among(expr, "=", &subquery.subquery, schema)
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, .. }) => {
            check_among(expr, &op.to_string(), &subquery.subquery, schema)
        }
        Expr::Case(case) => check_case(case, schema),
        _ => Ok(()),
    }
}

fn check_boolean(expr: &Expr, place: &str, schema: &DFSchema) -> Result<()> {
    match known_type(expr, schema) {
        Some((category, name)) if category != Category::Boolean => {
            let words = format!("argument of {place} must be type boolean, not type {name}");
            Err(refusal("42804", words))
        }
        _ => Ok(()),
    }
}

/// A value is compared with the column of a query.
fn check_among(expr: &Expr, op: &str, rows: &LogicalPlan, schema: &DFSchema) -> Result<()> {
    match (known_type(expr, schema), column_type(rows, 0)) {
        (Some(one), Some(other)) => check_pair(&one, op, &other),
        _ => Ok(()),
    }
}

/// LIKE compares texts.
fn check_like(like: &Like, schema: &DFSchema) -> Result<()> {
    let op = match (like.negated, like.case_insensitive) {
        (false, false) => "~~",
        (false, true) => "~~*",
        (true, false) => "!~~",
        (true, true) => "!~~*",
    };
    let name = |side: &Expr| known_type(side, schema).map(|(_, name)| name);
    let is_other = |side: &Expr| {
        let known = known_type(side, schema);
        known.is_some_and(|(one, _)| {
            !matches!(one, Category::Text | Category::Special | Category::Bytea)
        })
    };
    match is_other(&like.expr) || is_other(&like.pattern) {
        true => {
            let name = |side: &Expr| name(side).unwrap_or_else(|| "unknown".to_string());
            Err(no_operator(&name(&like.expr), op, &name(&like.pattern)))
        }
        false => Ok(()),
    }
}

fn check_case(case: &Case, schema: &DFSchema) -> Result<()> {
    let mut conditions = case.when_then_expr.iter().map(|(when, _)| &**when);
    match &case.expr {
        None => conditions.try_for_each(|when| check_boolean(when, "CASE/WHEN", schema)),
        Some(operand) => conditions.try_for_each(|when| {
            // An operand in quotes is a text.
            let one = known_type(operand, schema).or_else(|| literal_text(operand));
            match (one, known_type(when, schema)) {
                (Some(one), Some(other)) => check_pair(&one, "=", &other),
                _ => Ok(()),
            }
        }),
    }
}

fn literal_text(expr: &Expr) -> Option<Known> {
    match expr {
        Expr::Literal(value, _) if value.data_type().is_string() => {
            Some((Category::Text, "text".to_string()))
        }
        _ => None,
    }
}

/// Checks that PostgreSQL compares the first side with the others.
///
/// # Errors
/// 42883 when it has no such operator.
pub fn check_comparison(sides: &[Expr], op: &str, schema: &DFSchema) -> Result<()> {
    let Some(first) = sides.first() else { return Ok(()) };
    let Some(known) = known_type(first, schema) else { return Ok(()) };
    for other in &sides[1..] {
        let Some(other_known) = known_type(other, schema) else { continue };
        check_pair(&known, op, &other_known)?;
        if known.0 == Category::Array && other_known.0 == Category::Array {
            check_elements((first, other), op, (&known.1, &other_known.1), schema)?;
        }
    }
    Ok(())
}

fn check_pair(one: &Known, op: &str, other: &Known) -> Result<()> {
    match is_comparable(one, other) {
        true => Ok(()),
        false => Err(no_operator(&one.1, op, &other.1)),
    }
}

/// Whether values of two types are compared. Functions may lose the name of a special type, so such are compared with
/// texts.
fn is_comparable(one: &Known, other: &Known) -> bool {
    use Category::{Special, Text};
    match (one.0, other.0) {
        (Special, Special) => one.1 == other.1,
        (Special, Text) | (Text, Special) => true,
        (one, other) => one == other,
    }
}

/// Arrays are compared with those of the same elements.
fn check_elements(
    (one, other): (&Expr, &Expr),
    op: &str,
    (one_name, other_name): (&str, &str),
    schema: &DFSchema,
) -> Result<()> {
    let element = |expr: &Expr| match expr.get_type(schema) {
        Ok(DataType::List(of)) => category_of(of.data_type()),
        _ => None,
    };
    match (element(one), element(other)) {
        (Some(first), Some(second)) if first != second => {
            Err(no_operator(one_name, op, other_name))
        }
        _ => Ok(()),
    }
}

fn no_operator(one: &str, op: &str, other: &str) -> datafusion::common::DataFusionError {
    refusal("42883", format!("operator does not exist: {one} {op} {other}"))
}

fn check_arithmetic(binary: &BinaryExpr, schema: &DFSchema) -> Result<()> {
    let BinaryExpr { left, op, right } = binary;
    if !op.is_numerical_operators() {
        return Ok(());
    }
    let (Some(one), Some(other)) = (known_type(left, schema), known_type(right, schema)) else {
        return Ok(());
    };
    if *op == Operator::Plus && (one.0, other.0) == (Category::Time, Category::Time) {
        let words = format!("operator is not unique: {} + {}", one.1, other.1);
        return Err(refusal("42725", words));
    }
    let is_float = |side: &Expr| is_surely_float(side, schema);
    let is_refused = !calculates(one.0, *op, other.0)
        || *op == Operator::Modulo && (is_float(left) || is_float(right));
    match is_refused {
        true => Err(no_operator(&one.1, &op.to_string(), &other.1)),
        false => Ok(()),
    }
}

/// Whether there is an operator of arithmetic for two categories.
fn calculates(one: Category, op: Operator, other: Category) -> bool {
    use Category::{Date, Interval, Number, Time};
    match (one, other) {
        (Number, Number) => true,
        (Interval, Number) => matches!(op, Operator::Multiply | Operator::Divide),
        (Number, Interval) => op == Operator::Multiply,
        (Date | Time | Interval, Interval) => matches!(op, Operator::Plus | Operator::Minus),
        (Date, Number) => matches!(op, Operator::Plus | Operator::Minus),
        (Date, Date) | (Time, Time) => op == Operator::Minus,
        (Number, Date) | (Interval, Date | Time) | (Date, Time) | (Time, Date) => {
            op == Operator::Plus
        }
        _ => false,
    }
}

/// Whether the type of a value is for sure a float: others may be so here alone.
fn is_surely_float(expr: &Expr, schema: &DFSchema) -> bool {
    let is_sure = matches!(expr, Expr::Column(_) | Expr::Cast(_));
    is_sure && expr.get_type(schema).is_ok_and(|ty| ty.is_floating())
}
