//! Sums, differences and products of whole numbers: beyond what their type holds they are errors, where
//! DataFusion begins again at the other end.

use crate::error::SqlError;
use crate::function::function;
use datafusion::arrow::array::{ArrayRef, AsArray as _, Datum};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable as _, Operator, ScalarUDF, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

static PLUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| checked("pg_int_plus", numeric::add));
static MINUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| checked("pg_int_minus", numeric::sub));
static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| checked("pg_int_times", numeric::mul));

/// The call that does an operator's work, if it is one of whole numbers.
pub fn call(binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let is_whole = |side: &Expr| side.get_type(schema).is_ok_and(|one| one.is_signed_integer());
    let sides = || vec![(*binary.left).clone(), (*binary.right).clone()];
    if are_ints(&binary.left, &binary.right, schema) {
        return Some(short(binary.op)?.call(sides()));
    }
    let function = match binary.op {
        Operator::Plus => &PLUS,
        Operator::Minus => &MINUS,
        Operator::Multiply => &TIMES,
        _ => return None,
    };
    (is_whole(&binary.left) && is_whole(&binary.right)).then(|| function.call(sides()))
}

/// Whether both sides are at most an `integer`, one as a number that is written down: DataFusion takes that
/// for a `bigint`.
fn are_ints(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    let is_written = |side: &Expr| matches!(side, Expr::Literal(ScalarValue::Int64(Some(one)), _) if i32::try_from(*one).is_ok());
    let is_short =
        |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Int16 | DataType::Int32));
    is_short(left) && is_written(right) || is_written(left) && is_short(right)
}

static SHORT_PLUS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| as_int("pg_int4_plus", numeric::add));
static SHORT_MINUS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| as_int("pg_int4_minus", numeric::sub));
static SHORT_TIMES: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| as_int("pg_int4_times", numeric::mul));
static SHORT_OVER: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| as_int("pg_int4_over", numeric::div));

/// The function that does an operator's work on an `integer` and a number that is written down.
fn short(op: Operator) -> Option<&'static Arc<ScalarUDF>> {
    Some(match op {
        Operator::Plus => &SHORT_PLUS,
        Operator::Minus => &SHORT_MINUS,
        Operator::Multiply => &SHORT_TIMES,
        Operator::Divide => &SHORT_OVER,
        _ => return None,
    })
}

/// An operation whose result is a `bigint` to DataFusion, in the range of an `integer`.
fn as_int(name: &'static str, kernel: Kernel) -> Arc<ScalarUDF> {
    let work = move |args: &[ArrayRef], _: usize| {
        let [left, right] = args else { return Err(outside(SqlError::unexpected("two numbers"))) };
        let (left, right) = (cast(left, &DataType::Int64)?, cast(right, &DataType::Int64)?);
        let made = kernel(&left, &right)?;
        let values = made.as_primitive::<Int64Type>();
        match values.iter().flatten().all(|one| i32::try_from(one).is_ok()) {
            true => Ok(made),
            false => Err(outside(SqlError::new("22003", "integer out of range"))),
        }
    };
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(function(name, signature, |_| DataType::Int64, work))
}

/// The call that does the work of a sign before a whole number.
pub fn negated(inner: &Expr, schema: &DFSchema) -> Option<Expr> {
    let of = inner.get_type(schema).ok().filter(DataType::is_signed_integer)?;
    let zero = ScalarValue::new_zero(&of).ok()?;
    Some(MINUS.call(vec![Expr::Literal(zero, None), inner.clone()]))
}

/// The wider of two types.
fn wider(types: &[DataType]) -> DataType {
    let width = |one: &&DataType| one.primitive_width();
    types.iter().max_by_key(width).cloned().unwrap_or(DataType::Int64)
}

fn checked(name: &'static str, kernel: Kernel) -> Arc<ScalarUDF> {
    let work = move |args: &[ArrayRef], _: usize| {
        let types: Vec<DataType> = args.iter().map(|one| one.data_type().clone()).collect();
        let of = wider(&types);
        let [left, right] = args else { return Err(outside(SqlError::unexpected("two numbers"))) };
        let (left, right) = (cast(left, &of)?, cast(right, &of)?);
        kernel(&left, &right).map_err(|error| match error {
            ArrowError::ArithmeticOverflow(_) => {
                let name = match of {
                    DataType::Int16 => "smallint",
                    DataType::Int32 => "integer",
                    _ => "bigint",
                };
                outside(SqlError::new("22003", format!("{name} out of range")))
            }
            other => other.into(),
        })
    };
    Arc::new(function(name, Signature::any(2, Volatility::Immutable), wider, work))
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
