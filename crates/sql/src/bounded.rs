//! Functions that make much of little, with a bound on it: what functions make is not counted in the
//! memory that statements share.
//!
//! ```text
//! rows of a call ─ what each may become, at most ─► runs of rows that are surely small enough
//!                                                └─► what was made of them all, counted as it is
//! ```

use crate::error::SqlError;
use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, Int64Array};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::cast::as_int64_array;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that one call makes for the rows of one batch.
pub const SIZE_MAX: usize = 64 << 20;
/// What a value takes beside its bytes.
const VALUE_SIZE: usize = 16;

/// How much a function may make of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Growth {
    /// The first argument as often as the second says.
    Count,
    /// So many characters as the second argument says.
    Width,
    /// The first argument, with the third wherever it has the second.
    Replaced,
    /// The first argument, with the third wherever a pattern is found, which may be nothing.
    Matched,
    /// So many times all arguments together.
    Times(usize),
}

/// Functions that make more than they are given.
const GROWING: &[(&str, Growth)] = &[
    ("repeat", Growth::Count),
    ("lpad", Growth::Width),
    ("rpad", Growth::Width),
    ("replace", Growth::Replaced),
    ("regexp_replace", Growth::Matched),
    ("concat", Growth::Times(1)),
    ("concat_ws", Growth::Times(2)),
    ("encode", Growth::Times(2)),
    ("translate", Growth::Times(4)),
    // An element takes sixteen bytes more, however short.
    ("string_to_array", Growth::Times(20)),
    ("regexp_match", Growth::Times(20)),
    ("array_to_string", Growth::Times(4)),
    ("make_array", Growth::Times(2)),
    ("array_append", Growth::Times(1)),
    ("array_prepend", Growth::Times(1)),
    ("array_concat", Growth::Times(1)),
    ("array_replace", Growth::Times(4)),
    ("quote_literal", Growth::Times(2)),
    ("quote_ident", Growth::Times(2)),
    ("prom_escape", Growth::Times(2)),
    ("prom_construct", Growth::Times(4)),
    ("prom_construct_cx", Growth::Times(4)),
    ("prom_labels", Growth::Times(4)),
    ("prom_jsonb", Growth::Times(4)),
    ("prom_to_expo_utf8", Growth::Times(4)),
    ("prom_labels_to_expo", Growth::Times(4)),
    ("prom_expo_to_labels", Growth::Times(4)),
];

/// Those that are planned without being called by name.
pub fn planned_growth(name: &str) -> Option<Growth> {
    let is_planned =
        ["make_array", "array_concat", "array_append", "array_prepend"].contains(&name);
    GROWING.iter().find(|(one, _)| is_planned && *one == name).map(|(_, growth)| *growth)
}

/// Functions that mean something else than PostgreSQL's of that name, or would make arrays and maps
/// without a bound: better unknown than wrong.
const OMITTED: &[&str] = &[
    "date_format",
    "generate_series",
    "range",
    "array_repeat",
    "array_resize",
    "arrays_zip",
    "flatten",
    "struct",
    "named_struct",
    "map",
    "version",
];

/// Bounds the functions of a session.
pub fn bound(context: &SessionContext) {
    for (name, growth) in GROWING {
        let inner = context.state().scalar_functions().get(*name).cloned();
        if let Some(inner) = inner {
            context.register_udf(bounded(inner, *growth));
        }
    }
    OMITTED.iter().for_each(|name| context.deregister_udf(name));
}

/// A function with its bound.
pub fn bounded(inner: Arc<ScalarUDF>, growth: Growth) -> ScalarUDF {
    ScalarUDF::from(Bounded { inner, growth })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
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
        let is_scalar = args.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let sizes = self.sizes(&args.args, rows)?;
        let runs = self.runs(&sizes)?;
        if runs.len() <= 1 {
            return self.inner.invoke_with_args(args);
        }
        let (mut made, mut total) = (Vec::with_capacity(runs.len()), 0usize);
        for run in runs {
            let array = self.call(&args, run.clone())?.to_array(run.len())?;
            total = total.saturating_add(sizes_of(&array).iter().sum());
            self.check(total)?;
            made.push(array);
        }
        let made: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&made)?))
    }
}

impl Bounded {
    /// Bytes that each row may become.
    fn sizes(&self, args: &[ColumnarValue], rows: usize) -> Result<Vec<usize>> {
        let sizes = args.iter().map(|arg| Sizes::of(arg, rows)).collect::<Result<Vec<_>>>()?;
        let numbers = match (self.growth, args) {
            (Growth::Count | Growth::Width, [_, number, ..]) => Some(numbers(number, rows)?),
            _ => None,
        };
        let size = |row: usize| {
            let argument = |at: usize| sizes.get(at).map_or(0, |sizes| sizes.at(row));
            let number = || {
                let number = numbers.as_ref().filter(|numbers| numbers.is_valid(row));
                number.map_or(0, |numbers| usize::try_from(numbers.value(row)).unwrap_or(0))
            };
            match self.growth {
                Growth::Count => argument(0).saturating_mul(number()),
                // Four bytes are the longest character.
                Growth::Width => number().saturating_mul(4),
                Growth::Replaced => {
                    let places = match argument(1) {
                        0 => argument(0) + 1,
                        size => argument(0) / size,
                    };
                    places.saturating_mul(argument(2)).saturating_add(argument(0))
                }
                Growth::Matched => {
                    // A reference, of two characters, may stand for all.
                    let made = argument(2).saturating_mul(argument(0) + 1);
                    made.saturating_add(argument(0))
                }
                Growth::Times(times) => {
                    let all = (0..sizes.len()).map(|at| argument(at) + VALUE_SIZE);
                    all.fold(0, usize::saturating_add).saturating_mul(times)
                }
            }
        };
        Ok((0..rows).map(size).collect())
    }

    /// Rows that surely become no more than is let be, as many as go together.
    fn runs(&self, sizes: &[usize]) -> Result<Vec<Range<usize>>> {
        let (mut runs, mut start, mut total) = (Vec::new(), 0, 0usize);
        for (row, size) in sizes.iter().enumerate() {
            self.check(*size)?;
            if SIZE_MAX < total.saturating_add(*size) {
                runs.push(start..row);
                (start, total) = (row, 0);
            }
            total += *size;
        }
        if start < sizes.len() {
            runs.push(start..sizes.len());
        }
        Ok(runs)
    }

    fn check(&self, size: usize) -> Result<()> {
        if size <= SIZE_MAX {
            return Ok(());
        }
        let message = format!("{} would make {size} bytes; {SIZE_MAX} are the most", self.name());
        Err(DataFusionError::External(Box::new(SqlError::new("53200", message))))
    }

    fn call(&self, args: &ScalarFunctionArgs, rows: Range<usize>) -> Result<ColumnarValue> {
        let slice = |arg: &ColumnarValue| match arg {
            ColumnarValue::Array(array) => {
                ColumnarValue::Array(array.slice(rows.start, rows.len()))
            }
            scalar => scalar.clone(),
        };
        let some = args.args.iter().map(slice).collect();
        let call = ScalarFunctionArgs { args: some, number_rows: rows.len(), ..args.clone() };
        self.inner.invoke_with_args(call)
    }
}

/// The sizes of an argument, row by row.
enum Sizes {
    Same(usize),
    Each(Vec<usize>),
}

impl Sizes {
    fn of(arg: &ColumnarValue, rows: usize) -> Result<Sizes> {
        Ok(match arg {
            ColumnarValue::Scalar(scalar) => {
                Sizes::Same(sizes_of(&scalar.to_array()?).first().copied().unwrap_or(0))
            }
            ColumnarValue::Array(array) => {
                debug_assert_eq!(array.len(), rows, "arguments have as many rows as the call");
                Sizes::Each(sizes_of(array))
            }
        })
    }

    fn at(&self, row: usize) -> usize {
        match self {
            Sizes::Same(size) => *size,
            Sizes::Each(sizes) => sizes[row],
        }
    }
}

fn numbers(arg: &ColumnarValue, rows: usize) -> Result<Int64Array> {
    let array = arg.cast_to(&DataType::Int64, None)?.to_array(rows)?;
    Ok(as_int64_array(&array)?.clone())
}

/// The bytes of each value.
fn sizes_of(array: &ArrayRef) -> Vec<usize> {
    let length = |text: Option<&str>| text.map_or(0, str::len);
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().iter().map(length).collect(),
        DataType::Utf8 => array.as_string::<i32>().iter().map(length).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(length).collect(),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let size = |list: Option<ArrayRef>| {
                list.map_or(0, |list| sizes_of(&list).iter().map(|size| size + VALUE_SIZE).sum())
            };
            lists.iter().map(size).collect()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let size = |at| ScalarValue::try_from_array(array, at).map_or(0, |one| one.size());
            (0..array.len()).map(size).collect()
        }
        // Numbers and times, as texts.
        _ => vec![2 * VALUE_SIZE; array.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::datatypes::Field;

    fn call(name: &str, args: Vec<ColumnarValue>, rows: usize) -> Result<Vec<usize>> {
        let context = SessionContext::new();
        bound(&context);
        let function = context.state().scalar_functions()[name].clone();
        let field = |arg: &ColumnarValue| Arc::new(Field::new("a", arg.data_type(), true));
        let types: Vec<DataType> = args.iter().map(ColumnarValue::data_type).collect();
        let returned = function.return_type(&types)?;
        let args = ScalarFunctionArgs {
            arg_fields: args.iter().map(|arg| field(arg) as FieldRef).collect(),
            args,
            number_rows: rows,
            return_field: Arc::new(Field::new("r", returned, true)),
            config_options: Arc::default(),
        };
        let made = function.invoke_with_args(args)?;
        Ok(sizes_of(&made.to_array(rows)?))
    }

    fn text(text: &str) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Utf8View(Some(text.to_string())))
    }

    fn number(number: i64) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(number)))
    }

    #[test]
    fn one_value_that_is_too_large_is_refused() {
        let long = "x".repeat(1 << 20);
        for (name, args) in [
            ("repeat", vec![text(&long), number(65)]),
            ("lpad", vec![text("x"), number(1 << 30)]),
            ("rpad", vec![text("x"), number(i64::MAX)]),
            ("replace", vec![text(&long), text("x"), text(&"y".repeat(65))]),
            ("replace", vec![text(&long), text(""), text(&"y".repeat(65))]),
            ("concat", vec![text(&long); 65]),
        ] {
            let failure = SqlError::from(call(name, args, 1).unwrap_err());
            assert_eq!(failure.code, "53200", "{name}: {failure}");
        }
        assert_eq!(
            call("replace", vec![text(&long), text("xx"), text("yyy")], 1).unwrap(),
            [3 << 19]
        );
        assert_eq!(call("repeat", vec![text("ab"), number(-1)], 1).unwrap(), [0]);
    }

    #[test]
    fn rows_that_may_become_too_much_are_counted_as_they_become() {
        // Each may become 63 MiB, and becomes 1 MiB.
        let texts = |count: usize| {
            let long = "x".repeat(1 << 20);
            ColumnarValue::Array(Arc::new(StringViewArray::from(vec![long.as_str(); count])))
        };
        let rare = vec![texts(60), text("z"), text(&"y".repeat(63))];
        assert_eq!(call("replace", rare, 60).unwrap(), vec![1 << 20; 60]);
        let often = vec![texts(60), text("x"), text("yy")];
        assert!(call("replace", often, 60).is_err());
    }
}
