//! `is_stale_marker(value)` and `is_normal_nan(value)`: what kind of NaN a value is. Rows are never
//! marks of a series' end, and SQL knows one NaN, so that the first is true of no row here.

use crate::types::function::function;
use datafusion::arrow::array::{AsArray as _, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use model::is_stale_marker;
use std::sync::Arc;

/// Both.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let is_normal = |value: f64| value.is_nan() && !is_stale_marker(value);
    [marker("is_stale_marker", is_stale_marker), marker("is_normal_nan", is_normal)].into_iter()
}

fn marker(name: &'static str, holds: fn(f64) -> bool) -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
    function(
        name,
        signature,
        |_| DataType::Boolean,
        move |args, _| {
            let values = args[0].as_primitive::<Float64Type>().iter();
            Ok(Arc::new(values.map(|value| value.map(holds)).collect::<BooleanArray>()))
        },
    )
}
