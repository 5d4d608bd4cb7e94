//! Chooses operators by the types of their operands
//! (<https://www.postgresql.org/docs/15/typeconv-oper.html>).
//!
//! A whole number that is written down is an `integer` if it fits, one with a point a `numeric`. Beside a float a
//! `numeric` is a float.

use crate::functions::numbers::number_functions::operator_function;
use crate::types::categories::is_open;
use crate::types::numeric::conversions::{TO_FLOAT, literal_float, outside};
use crate::types::numeric::value::{NUMERIC, Numeric};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable as _, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

/// A side of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// At most an `integer`.
    Short,
    Long,
    Numeric,
    Float4,
    Float8,
    /// A text between quotes, or a parameter of which nothing is known.
    Open,
    Other,
}

fn kind_of(expr: &Expr, schema: &DFSchema) -> Kind {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => {
            return if is_short(*number) { Kind::Short } else { Kind::Long };
        }
        Expr::Literal(ScalarValue::UInt64(Some(_)), _) => return Kind::Numeric,
        Expr::Placeholder(Placeholder { field: None, .. }) => return Kind::Open,
        Expr::Literal(value, _) if value.data_type().is_string() => return Kind::Open,
        _ => {}
    }
    match expr.get_type(schema) {
        Ok(
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16,
        ) => Kind::Short,
        Ok(DataType::Int64 | DataType::UInt32 | DataType::UInt64) => Kind::Long,
        Ok(DataType::Float32) => Kind::Float4,
        Ok(DataType::Float64) => Kind::Float8,
        Ok(ty) if ty.is_decimal() => Kind::Numeric,
        _ => Kind::Other,
    }
}

/// Whether a number that is written down is an `integer`.
fn is_short(number: i64) -> bool {
    i32::try_from(number).is_ok()
}

/// A number without a sign, such as `row_number()`, as a `bigint`: beside one with a sign DataFusion makes decimals of both.
fn signed(expr: Expr, schema: &DFSchema) -> Expr {
    let is_unsigned = expr.get_type(schema).is_ok_and(|ty| ty.is_unsigned_integer());
    // A literal without a sign is a `numeric`, too long for a `bigint`.
    if !is_unsigned || matches!(expr, Expr::Literal(..)) {
        return expr;
    }
    let field = Arc::new(Field::new("", DataType::Int64, true));
    Expr::Cast(Cast { expr: Box::new(expr), field })
}

/// The same operation on sides of the types that PostgreSQL takes.
///
/// # Errors
/// When a text beside a number is none.
pub fn resolve(mut expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    use Kind::{Float4, Float8, Long, Numeric, Open, Short};
    let kinds = (kind_of(&expr.left, schema), kind_of(&expr.right, schema));
    if is_comparison(&expr.op) {
        match kinds {
            (Float4 | Float8, Numeric) => expr.right = as_float(expr.right),
            (Numeric, Float4 | Float8) => expr.left = as_float(expr.left),
            (Numeric, Open) => expr.right = open_as_numeric(expr.right)?,
            (Open, Numeric) => expr.left = open_as_numeric(expr.left)?,
            _ => {}
        }
        return Ok(PlannerResult::Original(expr));
    }
    let Some(name) = operator_name(&expr.op) else { return Ok(PlannerResult::Original(expr)) };
    (expr.left, expr.right) = (signed(expr.left, schema), signed(expr.right, schema));
    match kinds {
        (Short, Short) => {
            (expr.left, expr.right) = (short_literal(expr.left), short_literal(expr.right));
        }
        (Numeric, Numeric | Short | Long) | (Short | Long, Numeric) => {
            let function = operator_function(name);
            return Ok(PlannerResult::Planned(function.call(vec![expr.left, expr.right])));
        }
        (Numeric, Open) | (Open, Numeric) => {
            let sides = vec![open_as_numeric(expr.left)?, open_as_numeric(expr.right)?];
            return Ok(PlannerResult::Planned(operator_function(name).call(sides)));
        }
        (Float4 | Float8, Numeric) => {
            expr.right = as_float(expr.right);
            expr.left = widened(expr.left, kinds.0);
        }
        (Numeric, Float4 | Float8) => {
            expr.left = as_float(expr.left);
            expr.right = widened(expr.right, kinds.1);
        }
        (Short | Long | Float4 | Float8, Open) => {
            expr.left = short_literal(expr.left);
            expr.right = literal_as(expr.right, &expr.left, schema);
        }
        (Open, Short | Long | Float4 | Float8) => {
            expr.right = short_literal(expr.right);
            expr.left = literal_as(expr.left, &expr.right, schema);
        }
        (Float4, Short | Long) => expr.left = widened(expr.left, Float4),
        (Short | Long, Float4) => expr.right = widened(expr.right, Float4),
        _ => {}
    }
    Ok(PlannerResult::Original(expr))
}

/// The call that does an operator's work, where one side has turned out to be a `numeric`.
pub fn numeric_call(binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let name = match binary.op {
        Operator::Plus => "pg_numeric_plus",
        Operator::Minus => "pg_numeric_minus",
        Operator::Multiply => "pg_numeric_times",
        Operator::Divide => "pg_numeric_over",
        Operator::Modulo => "pg_numeric_rest",
        _ => return None,
    };
    let (left, right) = (binary.left.get_type(schema).ok()?, binary.right.get_type(schema).ok()?);
    let is_exact = |ty: &DataType| ty.is_decimal() || ty.is_integer();
    let is_meant = (left.is_decimal() || right.is_decimal()) && is_exact(&left) && is_exact(&right);
    let sides = || vec![(*binary.left).clone(), (*binary.right).clone()];
    is_meant.then(|| operator_function(name).call(sides()))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn operator_name(op: &BinaryOperator) -> Option<&'static str> {
    Some(match op {
        BinaryOperator::Plus => "pg_numeric_plus",
        BinaryOperator::Minus => "pg_numeric_minus",
        BinaryOperator::Multiply => "pg_numeric_times",
        BinaryOperator::Divide => "pg_numeric_over",
        BinaryOperator::Modulo => "pg_numeric_rest",
        _ => return None,
    })
}

/// A number that is written down, as an `integer`.
fn short_literal(expr: Expr) -> Expr {
    match &expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => match i32::try_from(*number) {
            Ok(short) => Expr::Literal(ScalarValue::Int32(Some(short)), None),
            Err(_) => expr,
        },
        _ => expr,
    }
}

/// Casts a quoted literal to the number type of the other side, and returns other expressions as they are.
fn literal_as(expr: Expr, other: &Expr, schema: &DFSchema) -> Expr {
    match (&expr, other.get_type(schema)) {
        (literal, Ok(ty)) if is_open(literal) => {
            Expr::Cast(Cast { expr: Box::new(expr), field: Arc::new(Field::new("", ty, true)) })
        }
        _ => expr,
    }
}

/// A `numeric` as a float: a literal as one.
pub fn as_float(expr: Expr) -> Expr {
    literal_float(&expr).unwrap_or_else(|| TO_FLOAT.call(vec![expr]))
}

/// A `float4` as a `float8`.
fn widened(expr: Expr, kind: Kind) -> Expr {
    if kind != Kind::Float4 {
        return expr;
    }
    let field = Arc::new(Field::new("", DataType::Float64, true));
    Expr::Cast(Cast { expr: Box::new(expr), field })
}

/// A text or a parameter beside a `numeric` is one; else what was given.
fn open_as_numeric(expr: Expr) -> Result<Expr> {
    match &expr {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            let field = Some(Arc::new(Field::new("numeric", NUMERIC, true)));
            Ok(Expr::Placeholder(Placeholder { id: id.clone(), field }))
        }
        Expr::Literal(value, _) => match value.try_as_str() {
            Some(Some(text)) => {
                let number = Numeric::parse(text).map_err(outside)?;
                let value = crate::types::numeric::conversions::scalar(&number).map_err(outside)?;
                Ok(Expr::Literal(value, None))
            }
            _ => Ok(expr),
        },
        _ => Ok(expr),
    }
}
