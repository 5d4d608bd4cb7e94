//! The function that marks a limit with ties.

use crate::types::function::function;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};

/// The function that marks the number of rows of such a limit; no statement can write its name.
pub const WITH_TIES: &str = "\0with ties";

/// The marking function, which is never called.
pub fn marker() -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    let returns = |types: &[datafusion::arrow::datatypes::DataType]| types[0].clone();
    function(WITH_TIES, signature, returns, |args, _| Ok(args[0].clone()))
}
