//! Sums, differences, products and quotients of floats: beyond what their type holds they are errors, and so is a
//! division by zero, where DataFusion says infinity. NaN is the one that there is.

use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Datum, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

/// Returns the error for a result that is not finite, if PostgreSQL has one.
type Check = fn(left: f64, right: f64, made: f64) -> Option<SqlError>;

static PLUS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| checked("pg_float_plus", numeric::add, of_sum));
static MINUS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| checked("pg_float_minus", numeric::sub, of_sum));
static TIMES: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| checked("pg_float_times", numeric::mul, of_product));
static OVER: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| checked("pg_float_over", numeric::div, of_quotient));

/// The call that does an operator's work, if it is one of these.
pub fn call(binary: &BinaryExpr) -> Option<Expr> {
    let function = match binary.op {
        Operator::Plus => &PLUS,
        Operator::Minus => &MINUS,
        Operator::Multiply => &TIMES,
        Operator::Divide => &OVER,
        _ => return None,
    };
    Some(function.call(vec![(*binary.left).clone(), (*binary.right).clone()]))
}

fn out_of_range(word: &str) -> Option<SqlError> {
    Some(SqlError::new("22003", format!("value out of range: {word}")))
}

fn of_sum(left: f64, right: f64, made: f64) -> Option<SqlError> {
    let is_over = made.is_infinite() && left.is_finite() && right.is_finite();
    is_over.then(|| out_of_range("overflow")).flatten()
}

fn of_product(left: f64, right: f64, made: f64) -> Option<SqlError> {
    match made == 0.0 && left != 0.0 && right != 0.0 {
        true => out_of_range("underflow"),
        false => of_sum(left, right, made),
    }
}

fn of_quotient(left: f64, right: f64, made: f64) -> Option<SqlError> {
    if right == 0.0 && !left.is_nan() {
        return Some(SqlError::new("22012", "division by zero"));
    }
    if made.is_infinite() && !left.is_infinite() {
        return out_of_range("overflow");
    }
    let is_under = made == 0.0 && left != 0.0 && !right.is_infinite();
    is_under.then(|| out_of_range("underflow")).flatten()
}

/// `float4` of two of them, `float8` of others.
fn returned(types: &[DataType]) -> DataType {
    match types.iter().all(|ty| *ty == DataType::Float32) {
        true => DataType::Float32,
        false => DataType::Float64,
    }
}

fn checked(name: &'static str, kernel: Kernel, check: Check) -> Arc<ScalarUDF> {
    let work = move |args: &[ArrayRef], _: usize| {
        let types: Vec<DataType> = args.iter().map(|one| one.data_type().clone()).collect();
        let of = returned(&types);
        let (left, right) = (cast(&args[0], &of)?, cast(&args[1], &of)?);
        let made = kernel(&left, &right)?;
        let wide = cast(&made, &DataType::Float64)?;
        let wide = wide.as_primitive::<Float64Type>();
        let is_odd = |one: &f64| *one == 0.0 || !one.is_finite();
        if !wide.values().iter().any(is_odd) {
            return Ok(made);
        }
        let (left, right) = (cast(&left, &DataType::Float64)?, cast(&right, &DataType::Float64)?);
        let (left, right) =
            (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
        for (row, value) in wide.values().iter().enumerate() {
            if !is_odd(value) || wide.is_null(row) {
                continue;
            }
            if let Some(error) = check(left.value(row), right.value(row), *value) {
                return Err(DataFusionError::External(Box::new(error)));
            }
        }
        let plain: Float64Array = wide.unary(|one| if one.is_nan() { f64::NAN } else { one });
        Ok(cast(&plain, &of)?)
    };
    Arc::new(function(name, Signature::any(2, Volatility::Immutable), returned, work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_out_of_range_are_refused() {
        let code = |found: Option<SqlError>| found.map_or("", |error| error.code);
        let infinity = f64::INFINITY;
        assert_eq!(code(of_sum(1e308, 1e308, infinity)), "22003");
        assert_eq!(code(of_sum(infinity, 1.0, infinity)), "");
        assert_eq!(code(of_product(1e-300, 1e-300, 0.0)), "22003");
        assert_eq!(code(of_product(0.0, 1e-300, 0.0)), "");
        assert_eq!(code(of_quotient(1.0, 0.0, infinity)), "22012");
        assert_eq!(code(of_quotient(infinity, 0.0, infinity)), "22012");
        assert_eq!(code(of_quotient(f64::NAN, 0.0, f64::NAN)), "");
        assert_eq!(code(of_quotient(1.0, infinity, 0.0)), "");
        assert_eq!(code(of_quotient(1e-300, 1e300, 0.0)), "22003");
    }
}
