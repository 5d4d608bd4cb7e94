//! Casts between `numeric` and other types, and of arrays of them.

use crate::types::error::SqlError;
use crate::types::function::map_column;
use crate::types::numeric::conversions::{decimals, outside};
use crate::types::numeric::value::{NUMERIC, Numeric};
use crate::types::text::shown;
use datafusion::arrow::array::{ArrayRef, AsArray as _, Float64Array, Int64Array, ListArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// A cast that is right of `numeric`, and of arrays of it, too.
pub fn exact_cast(to: &DataType) -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::from(ExactCast { signature, to: to.clone() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExactCast {
    signature: Signature,
    to: DataType,
}

impl ScalarUDFImpl for ExactCast {
    fn name(&self) -> &str {
        "pg_numeric_cast"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_column(&args.args[0], |array| convert(array, &self.to))
    }
}

/// A column as one of another type, where one of both types is `numeric`.
///
/// # Errors
/// When a value has no place in the type, and 42846 when there is no such cast.
pub fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = array.data_type();
    match (from, to) {
        (DataType::List(_), DataType::List(field)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = convert(&values, field.data_type())?;
            Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, nulls)?))
        }
        _ if from == to || from.is_null() => Ok(cast(array, to)?),
        _ if *to == NUMERIC => Ok(Arc::new(decimals(array)?)),
        _ if *from != NUMERIC => Ok(cast(array, to)?),
        _ if to.is_string() => match shown::column(array) {
            Some(texts) => Ok(cast(&texts, to)?),
            None => Err(no_cast(to)),
        },
        _ if to.is_floating() => {
            let float = |raw| Numeric::decode(raw).to_f64();
            let floats: Float64Array = decimals(array)?.iter().map(|one| one.map(float)).collect();
            Ok(cast(&floats, to)?)
        }
        _ if to.is_integer() => {
            let whole = |raw| Numeric::decode(raw).to_i64().map_err(outside);
            let made: Int64Array = decimals(array)?
                .iter()
                .map(|one| one.map(whole).transpose())
                .collect::<Result<_>>()?;
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            Ok(cast_with_options(&made, to, &strict)?)
        }
        _ => Err(no_cast(to)),
    }
}

pub(crate) fn no_cast(to: &DataType) -> datafusion::common::DataFusionError {
    outside(SqlError::new("42846", format!("cannot cast type numeric to {to}")))
}
