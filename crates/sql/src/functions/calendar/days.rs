//! A date and a number of days (<https://www.postgresql.org/docs/15/functions-datetime.html>): DataFusion adds an
//! interval, which its analysis of ranges fails to compare. The days between two dates are an `integer`; DataFusion
//! has a `bigint`.

use crate::functions::calendar::outside;
use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Date32Builder, Int32Builder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Date32Type, Int64Type};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable as _, Operator, ScalarUDF, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// Days before and after 1970 that a date may be away: it is shown in years of six digits at most.
const DAYS_MAX: i64 = 95_000_000;

static PLUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| moved("pg_date_plus", 1));
static MINUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| moved("pg_date_minus", -1));

static BETWEEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(function("pg_date_difference", signature, |_| DataType::Int32, subtract_dates))
});

/// The call that takes one date from another; none for other operands.
pub fn days_between(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_date = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Date32));
    (is_date(left) && is_date(right)).then(|| BETWEEN.call(vec![left.clone(), right.clone()]))
}

/// # Errors
/// 22008 for dates so far away from each other that no `integer` has the number of days.
fn subtract_dates(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (left, right) = (cast(&args[0], &DataType::Date32)?, cast(&args[1], &DataType::Date32)?);
    let left = left.as_primitive::<Date32Type>();
    let right = right.as_primitive::<Date32Type>();
    let mut out = Int32Builder::with_capacity(rows);
    for row in 0..rows {
        if left.is_null(row) || right.is_null(row) {
            out.append_null();
            continue;
        }
        let days = left.value(row).checked_sub(right.value(row));
        out.append_value(days.ok_or_else(|| outside(SqlError::new("22008", "date out of range")))?);
    }
    Ok(Arc::new(out.finish()))
}

/// The call that does the work of `+` or `-` between a date and a whole number; none for other operands.
pub fn call(binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let is_date = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Date32));
    let is_whole = |side: &Expr| side.get_type(schema).is_ok_and(|one| one.is_signed_integer());
    let (left, right) = (&*binary.left, &*binary.right);
    let (function, date, days) = match binary.op {
        Operator::Plus if is_date(left) && is_whole(right) => (&PLUS, left, right),
        Operator::Plus if is_whole(left) && is_date(right) => (&PLUS, right, left),
        Operator::Minus if is_date(left) && is_whole(right) => (&MINUS, left, right),
        _ => return None,
    };
    Some(function.call(vec![date.clone(), days.clone()]))
}

fn moved(name: &'static str, sign: i64) -> Arc<ScalarUDF> {
    let work = move |args: &[ArrayRef], rows: usize| move_dates(args, rows, sign);
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(function(name, signature, |_| DataType::Date32, work))
}

/// # Errors
/// 22008 for a date out of range.
fn move_dates(args: &[ArrayRef], rows: usize, sign: i64) -> Result<ArrayRef> {
    let dates = cast(&args[0], &DataType::Date32)?;
    let dates = dates.as_primitive::<Date32Type>();
    let days = cast(&args[1], &DataType::Int64)?;
    let days = days.as_primitive::<Int64Type>();
    let mut out = Date32Builder::with_capacity(rows);
    for row in 0..rows {
        if dates.is_null(row) || days.is_null(row) {
            out.append_null();
            continue;
        }
        let moved = days.value(row).checked_mul(sign);
        let moved = moved.and_then(|days| i64::from(dates.value(row)).checked_add(days));
        let day = moved.filter(|day| (-DAYS_MAX..=DAYS_MAX).contains(day));
        let day = day.and_then(|day| i32::try_from(day).ok());
        out.append_value(day.ok_or_else(|| outside(SqlError::new("22008", "date out of range")))?);
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Date32Array, Int64Array};

    fn moved_by(date: i32, days: i64, sign: i64) -> Result<i32> {
        let args: [ArrayRef; 2] =
            [Arc::new(Date32Array::from(vec![date])), Arc::new(Int64Array::from(vec![days]))];
        Ok(move_dates(&args, 1, sign)?.as_primitive::<Date32Type>().value(0))
    }

    #[test]
    fn days_between_dates_are_counted() {
        let between = |left: i32, right: i32| {
            let one = |date| Arc::new(Date32Array::from(vec![date])) as ArrayRef;
            let made = subtract_dates(&[one(left), one(right)], 1);
            made.map(|made| made.as_primitive::<datafusion::arrow::datatypes::Int32Type>().value(0))
        };
        assert_eq!(between(19_700, 19_731).unwrap(), -31);
        assert_eq!(between(95_000_000, -95_000_000).unwrap(), 190_000_000);
        assert!(between(i32::MAX, -1).is_err());
    }

    #[test]
    fn dates_beyond_the_range_are_refused() {
        assert_eq!(moved_by(19_700, 31, 1).unwrap(), 19_731);
        assert_eq!(moved_by(19_700, 31, -1).unwrap(), 19_669);
        for days in [i64::MIN, i64::MAX, DAYS_MAX, -2 * DAYS_MAX] {
            for sign in [1, -1] {
                let made = moved_by(19_700, days, sign);
                let is_within = days == DAYS_MAX && sign == -1;
                assert_eq!(made.is_ok(), is_within, "{days} {sign}");
            }
        }
    }
}
