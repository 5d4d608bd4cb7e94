//! Functions made of what they do with columns.

use crate::types::special_fields::special_field;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a function does with its arguments, which are columns of so many rows.
type Work = dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync;
/// The type of an answer, by those of the arguments.
type Returns = dyn Fn(&[DataType]) -> DataType + Send + Sync;

/// A function of that name, by which alone it is told from others.
pub fn function(
    name: &'static str,
    signature: Signature,
    returns: impl Fn(&[DataType]) -> DataType + Send + Sync + 'static,
    work: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let (returns, work) = (Arc::new(returns), Arc::new(work));
    ScalarUDF::from(Function { name, signature, returns, work, special: None })
}

/// A function whose results have a type of PostgreSQL that arrow has as texts.
pub fn special_function(
    name: &'static str,
    special: &'static str,
    signature: Signature,
    work: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let returns = Arc::new(|_: &[DataType]| DataType::Utf8View);
    let (work, special) = (Arc::new(work), Some(special));
    ScalarUDF::from(Function { name, signature, returns, work, special })
}

/// A function whose results are arrays of a type of PostgreSQL that arrow has as texts.
pub fn special_list_function(
    name: &'static str,
    special: &'static str,
    list: DataType,
    signature: Signature,
    work: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let returns = Arc::new(move |_: &[DataType]| list.clone());
    let (work, special) = (Arc::new(work), Some(special));
    ScalarUDF::from(Function { name, signature, returns, work, special })
}

/// Applies a function of columns to a value, which may be a scalar.
///
/// # Errors
/// Returns the errors of `work`.
pub fn map_column(
    value: &ColumnarValue,
    work: impl Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(work(array)?),
        ColumnarValue::Scalar(one) => {
            let made = work(&one.to_array()?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?)
        }
    })
}

/// Applies a function of columns to arguments; the result is a scalar if all arguments are.
///
/// # Errors
/// Returns the errors of `work`.
pub fn map_columns(
    args: &[ColumnarValue],
    rows: usize,
    work: impl FnOnce(&[ArrayRef], usize) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let is_scalar = args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
    let rows = if is_scalar { 1 } else { rows };
    let arrays = args.iter().map(|one| one.to_array(rows)).collect::<Result<Vec<_>>>()?;
    let made = work(&arrays, rows)?;
    Ok(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
        false => ColumnarValue::Array(made),
    })
}

struct Function {
    name: &'static str,
    signature: Signature,
    returns: Arc<Returns>,
    work: Arc<Work>,
    /// Name of the results' special type.
    special: Option<&'static str>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok((self.returns)(types))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let of = self.return_type(&types)?;
        Ok(Arc::new(match self.special {
            Some(special) => special_field(self.name, special, of, true),
            None => Field::new(self.name, of, true),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_columns(&args.args, args.number_rows, |arrays, rows| (self.work)(arrays, rows))
    }
}
