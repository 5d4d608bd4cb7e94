//! Functions of arrays with PostgreSQL's types: places and counts are an `integer`, numbers of two types become one,
//! and an array that is NULL without a type makes a NULL. DataFusion fails, or counts in 64 bits.

use crate::types::categories::common_number;
use crate::types::function::{function, map_column};
use crate::types::numeric::value::{NUMERIC, Numeric};
use crate::types::time::intervals::{WORTH_TYPE, is_interval, worths};
use datafusion::arrow::array::{ArrayRef, AsArray as _, Decimal256Array, Int32Array, ListArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal256Type, Field, FieldRef, Int32Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use std::sync::{Arc, LazyLock};

/// Functions, the argument that is the array, and those that are values as its elements are.
const FUNCTIONS: [(&str, usize, &[usize]); 9] = [
    ("array_append", 0, &[1]),
    ("array_length", 0, &[]),
    ("array_ndims", 0, &[]),
    ("array_position", 0, &[1]),
    ("array_positions", 0, &[1]),
    ("array_prepend", 1, &[0]),
    ("array_remove_all", 0, &[1]),
    ("array_replace_all", 0, &[1, 2]),
    ("cardinality", 0, &[]),
];

/// Replaces the functions of a session.
pub fn register(context: &SessionContext) {
    let known = context.state();
    for (name, array, values) in FUNCTIONS {
        if let Some(inner) = known.scalar_functions().get(name).cloned() {
            let signature = Signature::user_defined(Volatility::Immutable);
            let function = ArrayFunction { inner, array, values: values.to_vec(), signature };
            context.register_udf(ScalarUDF::from(function));
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayFunction {
    inner: Arc<ScalarUDF>,
    array: usize,
    values: Vec<usize>,
    signature: Signature,
}

impl ArrayFunction {
    /// The arguments' types, of which the numbers are those of one type.
    fn with_one_type(&self, types: &[DataType]) -> Vec<DataType> {
        let mut made = types.to_vec();
        let Some(DataType::List(of)) = types.get(self.array) else { return made };
        let element = of.data_type();
        let values = self.values.iter().filter_map(|at| types.get(*at));
        let all: Vec<DataType> = [element].into_iter().chain(values).cloned().collect();
        if let Some(common) = common_number(&all) {
            made[self.array] =
                DataType::List(Arc::new(Field::new_list_field(common.clone(), true)));
            let values = self.values.iter().filter(|at| **at < types.len());
            values.for_each(|at| made[*at] = common.clone());
        }
        made
    }

    /// Whether it makes counts or places.
    fn counts(&self) -> bool {
        self.values.is_empty() || self.compares()
    }

    /// Whether it looks for a value among the elements.
    fn compares(&self) -> bool {
        matches!(self.name(), "array_position" | "array_positions")
    }
}

/// A count of 64 bits as an `integer`.
fn narrowed(ty: &DataType) -> DataType {
    match ty {
        DataType::UInt64 | DataType::Int64 => DataType::Int32,
        DataType::List(of) if *of.data_type() == DataType::UInt64 => {
            DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)))
        }
        other => other.clone(),
    }
}

/// Numbers of one value as one, however many digits they show.
fn keyed(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        ty if is_numeric_list(ty) => {
            let (field, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            Arc::new(ListArray::try_new(field, offsets, keyed(&values)?, nulls)?)
        }
        ty if *ty == NUMERIC => {
            let numbers = array.as_primitive::<Decimal256Type>();
            let keys: Decimal256Array = numbers.unary::<_, Decimal256Type>(Numeric::key);
            Arc::new(keys.with_data_type(NUMERIC))
        }
        _ => array.clone(),
    })
}

/// Arrays whose elements are compared in another form: numbers by their value, intervals by their length.
pub fn comparable(array: &ArrayRef) -> Result<ArrayRef> {
    let DataType::List(of) = array.data_type() else { return Ok(array.clone()) };
    if !is_interval(of.data_type()) {
        return keyed(array);
    }
    let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
    let lengths = worths(&values)?;
    let field = Arc::new(Field::new_list_field(lengths.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, offsets, lengths, nulls)?))
}

/// Returns the lengths of the intervals of arrays.
pub static LIST_WORTH: LazyLock<ScalarUDF> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let lengths = |_: &[DataType]| DataType::new_list(WORTH_TYPE, true);
    function("pg_interval_list_worth", signature, lengths, |args, _| comparable(&args[0]))
});

/// Whether it is a type of arrays whose equal values may be shown differently.
pub fn is_list_of_keys(ty: &DataType) -> bool {
    is_numeric_list(ty) || matches!(ty, DataType::List(of) if is_interval(of.data_type()))
}

/// Counts of dimensions or of elements of one: an empty array has none.
fn without_empty(counts: &ArrayRef, lists: &ArrayRef) -> ArrayRef {
    let Some(lists) = lists.as_list_opt::<i32>() else { return counts.clone() };
    let counts = counts.as_primitive::<Int32Type>().iter();
    let known = counts.zip(lists.iter()).map(|(count, list)| {
        count.filter(|count| *count != 0 && list.is_some_and(|list| !list.is_empty()))
    });
    Arc::new(known.collect::<Int32Array>())
}

/// Makes arrays of numbers equal that show other digits of the same values.
pub static LIST_KEY: LazyLock<ScalarUDF> = LazyLock::new(|| {
    let same = |types: &[DataType]| types.first().cloned().unwrap_or(DataType::Null);
    let signature = Signature::any(1, Volatility::Immutable);
    function("pg_numeric_list_key", signature, same, |args, _| keyed(&args[0]))
});

/// Whether it is a type of arrays of `numeric`.
pub fn is_numeric_list(ty: &DataType) -> bool {
    matches!(ty, DataType::List(of) if *of.data_type() == NUMERIC || is_numeric_list(of.data_type()))
}

impl ScalarUDFImpl for ArrayFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let types = self.with_one_type(types).into_iter();
        let fields: Vec<FieldRef> =
            types.map(|ty| Arc::new(Field::new("", ty, true)) as FieldRef).collect();
        let coerced = fields_with_udf(&fields, self.inner.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let made = self.inner.return_type(types)?;
        Ok(if self.counts() { narrowed(&made) } else { made })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let made = self.inner.return_field_from_args(args)?;
        Ok(match self.counts() {
            true => {
                let ty = narrowed(made.data_type());
                Arc::new(made.as_ref().clone().with_data_type(ty))
            }
            false => made,
        })
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let wanted = args.return_field.data_type().clone();
        if args.args.get(self.array).is_some_and(|array| array.data_type() == DataType::Null)
            && self.counts()
        {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(&wanted)?));
        }
        if self.compares() {
            args.args =
                args.args.iter().map(|one| map_column(one, keyed)).collect::<Result<_>>()?;
        }
        let scalars = args.args.iter().map(|one| match one {
            ColumnarValue::Scalar(value) => Some(value),
            ColumnarValue::Array(_) => None,
        });
        let scalars: Vec<Option<&ScalarValue>> = scalars.collect();
        let known = ReturnFieldArgs { arg_fields: &args.arg_fields, scalar_arguments: &scalars };
        args.return_field = self.inner.return_field_from_args(known)?;
        let first = args.args.first().cloned();
        let made = self.inner.invoke_with_args(args)?;
        if made.data_type() == wanted {
            return Ok(made);
        }
        let is_scalar = matches!(made, ColumnarValue::Scalar(_));
        let mut array = cast(&made.to_array(1)?, &wanted)?;
        if matches!(self.name(), "array_length" | "array_ndims")
            && let Some(lists) = first
        {
            array = without_empty(&array, &lists.to_array(array.len())?);
        }
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
            false => ColumnarValue::Array(array),
        })
    }
}
