//! `regproc`: functions by number, which PostgreSQL writes as their names
//! (<https://www.postgresql.org/docs/15/datatype-oid.html>).

use crate::catalog::layout::function_name;
use crate::types::function;
use datafusion::arrow::array::{ArrayRef, AsArray as _, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

/// The name of the type in fields.
pub const REGPROC: &str = "regproc";

/// The function of a value of this type that returns its text.
pub(crate) static REGPROC_TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let text = |args: &[ArrayRef], _: usize| Ok(regproc_texts(&args[0]));
    Arc::new(function::function("pg_regproc_text", signature, |_| DataType::Utf8View, text))
});

/// Names of functions: `-` for none, the number of one that is not known.
pub fn regproc_texts(numbers: &ArrayRef) -> ArrayRef {
    let Some(numbers) = numbers.as_primitive_opt::<Int32Type>() else { return numbers.clone() };
    let text = |oid: i32| match (oid, function_name(oid)) {
        (0, _) => "-".to_string(),
        (_, Some(name)) => name.to_string(),
        (oid, None) => oid.cast_unsigned().to_string(),
    };
    Arc::new(numbers.iter().map(|oid| oid.map(text)).collect::<StringViewArray>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int32Array;

    #[test]
    fn functions_have_names() {
        let numbers: ArrayRef =
            Arc::new(Int32Array::from(vec![Some(2400), Some(0), Some(7), None]));
        let texts = regproc_texts(&numbers);
        let texts: Vec<_> = texts.as_string_view().iter().collect();
        assert_eq!(texts, [Some("array_recv"), Some("-"), Some("7"), None]);
    }
}
