//! Sums, differences and products of whole numbers: beyond what their type holds they are errors, where
//! DataFusion begins again at the other end.

use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{ArrayRef, Datum};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::DataType;
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
    let function = match binary.op {
        Operator::Plus => &PLUS,
        Operator::Minus => &MINUS,
        Operator::Multiply => &TIMES,
        _ => return None,
    };
    (is_whole(&binary.left) && is_whole(&binary.right)).then(|| function.call(sides()))
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
