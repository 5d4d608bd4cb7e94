//! Functions that make much of little, with a bound on it: what functions make is not counted in the
//! memory that statements share.

use datafusion::arrow::array::Array as _;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::cast::as_int64_array;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Bytes that one call makes for the rows of one batch.
const SIZE_MAX: usize = 64 << 20;

/// Functions whose second argument says how much they make.
const GROWING: &[&str] = &["repeat", "lpad", "rpad"];

/// Functions that mean something else than PostgreSQL's of that name, or would make arrays without a
/// bound: better unknown than wrong.
const OMITTED: &[&str] =
    &["to_char", "date_format", "generate_series", "range", "array_repeat", "version"];

/// Bounds the functions of a session.
///
/// # Errors
/// Those of the session.
pub fn bound(context: &SessionContext) -> Result<()> {
    for name in GROWING {
        let inner = context.state().scalar_functions().get(*name).cloned();
        if let Some(inner) = inner {
            context.register_udf(ScalarUDF::from(Bounded { inner }));
        }
    }
    OMITTED.iter().for_each(|name| context.deregister_udf(name));
    Ok(())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let size = size_of(self.name(), &args)?;
        if SIZE_MAX < size {
            let words = format!("{} would make {size} bytes; {SIZE_MAX} are the most", self.name());
            return Err(DataFusionError::ResourcesExhausted(words));
        }
        self.inner.invoke_with_args(args)
    }
}

/// Bytes that a call makes, at most.
fn size_of(name: &str, args: &ScalarFunctionArgs) -> Result<usize> {
    let [text, count, ..] = args.args.as_slice() else { return Ok(0) };
    let text_size = match name {
        // Four bytes are the longest character.
        "lpad" | "rpad" => 4,
        _ => longest(text),
    };
    let rows = match (text, count) {
        (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)) => 1,
        _ => args.number_rows,
    };
    let count = count.cast_to(&DataType::Int64, None)?;
    let counts = count.to_array(rows)?;
    let counts = as_int64_array(&counts)?.iter().flatten();
    let total =
        counts.map(|count| usize::try_from(count).unwrap_or(0)).fold(0, usize::saturating_add);
    Ok(total.saturating_mul(text_size))
}

/// Bytes of the longest text, or more.
fn longest(text: &ColumnarValue) -> usize {
    match text {
        ColumnarValue::Scalar(scalar) => {
            scalar.try_as_str().flatten().map_or_else(|| scalar.size(), str::len)
        }
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8View => {
                let texts = datafusion::common::cast::as_string_view_array(array);
                texts.map_or(0, |texts| texts.iter().flatten().map(str::len).max().unwrap_or(0))
            }
            DataType::Utf8 => {
                let texts = datafusion::common::cast::as_string_array(array);
                texts.map_or(0, |texts| texts.iter().flatten().map(str::len).max().unwrap_or(0))
            }
            _ => array.get_array_memory_size(),
        },
    }
}
