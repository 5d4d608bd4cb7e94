//! Functions that make long values, with a bound on what one call makes. The result is charged to the memory that
//! statements share as long as it is there, and texts are views: a constant is not copied for each row.
//!
//! ```text
//! rows of a call ─ what each may become, at most ─► runs of rows that are surely small enough
//!                                                └─► what was made of them all, counted as it is
//! ```

use crate::functions::aggregates::charged_aggregates;
use crate::functions::text::regexps;
use crate::types::error::SqlError;
use crate::types::runtime::cancellation;
use crate::types::runtime::constant_folding::check_folded;
use crate::types::runtime::memory::{charge, charge_constant};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, Int64Array, StringViewArray, new_null_array,
};
use datafusion::arrow::compute::{cast, concat};
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
    /// All arguments together, with the first between each two of them.
    Joined,
    /// The elements of the first argument, each with all others behind it.
    JoinedElements,
    /// No more than all arguments together: only charged.
    Same,
}

impl Growth {
    /// Whether a few bytes may become millions.
    fn makes_much_of_little(self) -> bool {
        !matches!(self, Growth::Times(_) | Growth::Same)
    }
}

/// Functions that make more than they are given.
const GROWING: &[(&str, Growth)] = &[
    ("repeat", Growth::Count),
    ("lpad", Growth::Width),
    ("rpad", Growth::Width),
    ("replace", Growth::Replaced),
    ("regexp_replace", Growth::Matched),
    ("concat", Growth::Times(1)),
    ("concat_ws", Growth::Joined),
    ("encode", Growth::Times(2)),
    ("translate", Growth::Times(4)),
    // An element takes sixteen bytes more, however short.
    ("string_to_array", Growth::Times(20)),
    ("regexp_match", Growth::Times(20)),
    ("array_to_string", Growth::JoinedElements),
    ("make_array", Growth::Times(2)),
    ("array_append", Growth::Times(1)),
    ("array_prepend", Growth::Times(1)),
    ("array_concat", Growth::Times(1)),
    ("array_replace", Growth::JoinedElements),
    ("array_replace_n", Growth::JoinedElements),
    ("array_replace_all", Growth::JoinedElements),
    ("array_union", Growth::Times(2)),
    ("overlay", Growth::Times(1)),
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

/// Functions of [`TAME`] whose values are texts or arrays.
#[rustfmt::skip]
const CHARGED: &[&str] = &[
    "btrim", "greatest", "initcap", "least", "left", "lower", "ltrim", "reverse", "right", "rtrim", "split_part",
    "substr", "substr_index", "upper",
    "array_compact", "array_distinct", "array_except", "array_intersect", "array_pop_back", "array_pop_front",
    "array_remove", "array_remove_all", "array_remove_n", "array_reverse", "array_slice", "array_sort",
];

/// Those that are planned without being called by name.
pub fn planned_growth(name: &str) -> Option<Growth> {
    match name {
        "make_array" | "array_concat" | "array_append" | "array_prepend" => {
            GROWING.iter().find(|(one, _)| *one == name).map(|(_, growth)| *growth)
        }
        "substr" | "array_slice" => Some(Growth::Same),
        _ => None,
    }
}

/// Functions of DataFusion whose value is no larger than their arguments, but for a small factor. All that are
/// neither here nor in [`GROWING`] are omitted: they mean something else than PostgreSQL's function of that name
/// (`version`, `struct`), or a client's number or type says how much they make (`arrow_cast`, `array_resize`).
#[rustfmt::skip]
const TAME: &[&str] = &[
    // of any type
    "arrow_typeof", "coalesce", "get_field", "greatest", "least", "nullif", "nvl", "nvl2",
    // of texts
    "ascii", "bit_length", "btrim", "character_length", "chr", "contains", "ends_with", "find_in_set", "initcap",
    "left", "lower", "ltrim", "octet_length", "reverse", "right", "rtrim", "split_part", "starts_with", "strpos",
    "substr", "substr_index", "to_hex", "upper", "uuid",
    // of numbers
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "cot",
    "degrees", "exp", "factorial", "floor", "gcd", "isnan", "iszero", "lcm", "ln", "log", "log10", "log2", "nanvl",
    "pi", "power", "radians", "random", "round", "signum", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    // of times
    "current_date", "current_time", "date_bin", "date_part", "date_trunc", "from_unixtime", "make_date", "make_time",
    "now", "to_char", "to_date", "to_local_time", "to_time", "to_timestamp", "to_timestamp_micros",
    "to_timestamp_millis", "to_timestamp_nanos", "to_timestamp_seconds", "to_unixtime",
    // of arrays
    "array_add", "array_any_value", "array_avg", "array_compact", "array_dims", "array_distance", "array_distinct",
    "array_element", "array_except", "array_has", "array_has_all", "array_has_any", "array_intersect",
    "array_length", "array_max", "array_min", "array_ndims", "array_normalize", "array_pop_back", "array_pop_front", "array_position",
    "array_positions", "array_product", "array_remove", "array_remove_all", "array_remove_n", "array_reverse",
    "array_scale", "array_slice", "array_sort", "array_subtract", "array_sum", "cardinality", "cosine_distance", "empty", "inner_product",
];

/// Aggregates of DataFusion that keep a few numbers, or no more than their input. `approx_percentile_cont` makes
/// as many centroids as a client says.
#[rustfmt::skip]
const TAME_AGGREGATES: &[&str] = &[
    "any_value", "approx_distinct", "approx_median", "array_agg", "avg", "bit_and", "bit_or", "bit_xor", "bool_and",
    "bool_or", "corr", "count", "covar_pop", "covar_samp", "first_value", "grouping", "last_value", "max", "median",
    "min", "nth_value", "percentile_cont", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2",
    "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "stddev", "stddev_pop", "string_agg", "sum", "var", "var_pop",
];

/// Names that a function of DataFusion has beside its own, and that mean something else in PostgreSQL.
const OTHER_NAMES: &[&str] = &["date_format"];

/// Omits functions that DataFusion registers and that are not known to be tame. Called before others are added.
pub fn keep_known(context: &SessionContext) {
    let state = context.state();
    let is_known = |name: &str| TAME.contains(&name) || GROWING.iter().any(|(one, _)| *one == name);
    let scalar = state.scalar_functions().values().map(|one| one.name().to_string());
    scalar.filter(|name| !is_known(name)).for_each(|name| context.deregister_udf(&name));
    OTHER_NAMES.iter().for_each(|name| context.deregister_udf(name));
    let aggregates = state.aggregate_functions().values().map(|one| one.name().to_string());
    let is_tame = |name: &String| TAME_AGGREGATES.contains(&name.as_str());
    aggregates.filter(|name| !is_tame(name)).for_each(|name| context.deregister_udaf(&name));
    let of_lambdas = state.higher_order_functions().keys().cloned().collect::<Vec<_>>();
    of_lambdas.iter().for_each(|name| context.deregister_higher_order_function(name));
}

/// Bounds the functions of a session.
pub fn bound(context: &SessionContext) {
    let charged = CHARGED.iter().map(|name| (*name, Growth::Same));
    for (name, growth) in GROWING.iter().copied().chain(charged) {
        let inner = context.state().scalar_functions().get(name).cloned();
        if let Some(inner) = inner {
            context.register_udf(bounded(inner, growth));
        }
    }
    charged_aggregates::register(context);
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
        Ok(view_type(&self.inner.return_type(types)?))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(args)?;
        let viewed = view_type(field.data_type());
        Ok(match viewed == *field.data_type() {
            true => field,
            false => Arc::new(field.as_ref().clone().with_data_type(viewed)),
        })
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.growth == Growth::Width {
            clamp_width(&mut args)?;
        }
        let is_scalar = args.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        cancellation::check()?;
        let number_rows = args.number_rows;
        let arrays = args.args.iter().filter_map(|arg| match arg {
            ColumnarValue::Array(array) => Some(array.clone()),
            ColumnarValue::Scalar(_) => None,
        });
        let arrays: Vec<ArrayRef> = arrays.collect();
        match viewed(self.made(args, rows)?)? {
            ColumnarValue::Array(array) => {
                let made_of: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
                Ok(ColumnarValue::Array(charge(self.name(), array, &made_of)?))
            }
            ColumnarValue::Scalar(value) => {
                if self.growth.makes_much_of_little() {
                    check_folded(value.size())?;
                    if matches!(value, ScalarValue::List(_)) {
                        // It may have to be written out for each row.
                        self.check(value.size().saturating_mul(number_rows))?;
                    }
                }
                charge_constant(value.size())?;
                Ok(ColumnarValue::Scalar(value))
            }
        }
    }
}

/// The type of texts of which many rows can share one.
fn view_type(of: &DataType) -> DataType {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        other => other.clone(),
    }
}

fn viewed(value: ColumnarValue) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Scalar(ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text)) => {
            ColumnarValue::Scalar(ScalarValue::Utf8View(text))
        }
        ColumnarValue::Array(array) if array.data_type() != &view_type(array.data_type()) => {
            ColumnarValue::Array(cast(&array, &DataType::Utf8View)?)
        }
        other => other,
    })
}

impl Bounded {
    /// The values of a call, in as many pieces as its bound wants.
    fn made(&self, mut args: ScalarFunctionArgs, rows: usize) -> Result<ColumnarValue> {
        if view_type(args.return_field.data_type()) == DataType::Utf8View {
            args.return_field = self.inner_field(&args)?;
        }
        if self.growth == Growth::Same {
            return self.inner.invoke_with_args(args);
        }
        let sizes = self.sizes(&args.args, rows)?;
        let is_constant = args.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
        if is_constant && matches!(self.growth, Growth::Count | Growth::Width) {
            check_folded(sizes.iter().copied().fold(0, usize::saturating_add))?;
        }
        let runs = match self.growth {
            Growth::Matched => self.runs_of_patterns(&args.args, &sizes)?,
            _ => self.runs(&sizes)?,
        };
        if runs.len() <= 1 {
            return self.inner.invoke_with_args(args);
        }
        let (mut made, mut total) = (Vec::with_capacity(runs.len()), 0usize);
        for run in runs {
            cancellation::check()?;
            let array = self.call(&args, run.clone())?.to_array(run.len())?;
            total = total.saturating_add(sizes_of(&array).iter().sum());
            self.check(total)?;
            made.push(array);
        }
        let made: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&made)?))
    }

    /// What the function itself returns.
    fn inner_field(&self, args: &ScalarFunctionArgs) -> Result<FieldRef> {
        let scalars = args.args.iter().map(|arg| match arg {
            ColumnarValue::Scalar(value) => Some(value),
            ColumnarValue::Array(_) => None,
        });
        let scalars: Vec<Option<&ScalarValue>> = scalars.collect();
        let given = ReturnFieldArgs { arg_fields: &args.arg_fields, scalar_arguments: &scalars };
        self.inner.return_field_from_args(given)
    }
}

/// Makes widths below zero zero, as PostgreSQL does: DataFusion takes them for huge lengths and panics.
fn clamp_width(args: &mut ScalarFunctionArgs) -> Result<()> {
    let Some(width) = args.args.get_mut(1) else { return Ok(()) };
    let is_scalar = matches!(width, ColumnarValue::Scalar(_));
    let widths = numbers(width, if is_scalar { 1 } else { args.number_rows })?;
    if widths.iter().flatten().all(|one| 0 <= one) {
        return Ok(());
    }
    let clamped: Int64Array = widths.iter().map(|one| one.map(|one| one.max(0))).collect();
    *width = match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&clamped, 0)?),
        false => ColumnarValue::Array(Arc::new(clamped)),
    };
    Ok(())
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
                Growth::Joined => {
                    let values = (1..sizes.len()).map(argument).fold(0, usize::saturating_add);
                    let places = sizes.len().saturating_sub(2);
                    argument(0).saturating_mul(places).saturating_add(values)
                }
                Growth::Same => (0..sizes.len()).map(argument).fold(0, usize::saturating_add),
                Growth::JoinedElements => {
                    let others = (1..sizes.len()).map(argument).fold(0, usize::saturating_add);
                    // An element is counted with as many bytes at least.
                    let elements = argument(0) / VALUE_SIZE + 1;
                    others.saturating_mul(elements).saturating_add(argument(0))
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

    /// As [`Self::runs`], split where the pattern changes: DataFusion keeps all compiled patterns of a call.
    fn runs_of_patterns(
        &self,
        args: &[ColumnarValue],
        sizes: &[usize],
    ) -> Result<Vec<Range<usize>>> {
        let texts = |at: usize| -> Result<StringViewArray> {
            let array = args.get(at).map(|arg| arg.to_array(sizes.len())).transpose()?;
            let array = array.unwrap_or_else(|| new_null_array(&DataType::Utf8View, sizes.len()));
            Ok(cast(&array, &DataType::Utf8View)?.as_string_view().clone())
        };
        let (subjects, patterns) = (texts(0)?, texts(1)?);
        let is_same = matches!(args.get(1), Some(ColumnarValue::Scalar(_)));
        let longest = subjects.iter().flatten().map(str::len).max().unwrap_or(0);
        let mut runs = Vec::new();
        for run in self.runs(sizes)? {
            let mut start = run.start;
            for row in run.clone() {
                let begins =
                    row == start || !is_same && patterns.value(row) != patterns.value(row - 1);
                if begins && patterns.is_valid(row) {
                    let checked = regexps::check_match(patterns.value(row), longest);
                    checked.map_err(|error| DataFusionError::External(Box::new(error)))?;
                }
                if begins && start < row {
                    runs.push(start..row);
                    start = row;
                }
            }
            runs.push(start..run.end);
        }
        Ok(runs)
    }

    fn check(&self, size: usize) -> Result<()> {
        if size <= SIZE_MAX {
            return Ok(());
        }
        let message = format!("{} would make {size} bytes; {SIZE_MAX} are the most", self.name());
        Err(DataFusionError::External(Box::new(SqlError::limit(message))))
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
        DataType::Struct(_) => {
            let columns: Vec<Vec<usize>> =
                array.as_struct().columns().iter().map(sizes_of).collect();
            (0..array.len())
                .map(|row| columns.iter().map(|sizes| sizes[row] + VALUE_SIZE).sum())
                .collect()
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
        keep_known(&context);
        bound(&context);
        let function = context.state().scalar_functions()[name].clone();
        let field = |arg: &ColumnarValue| Arc::new(Field::new("a", arg.data_type(), true));
        let arg_fields: Vec<FieldRef> = args.iter().map(|arg| field(arg) as FieldRef).collect();
        let scalars: Vec<Option<&ScalarValue>> = args
            .iter()
            .map(|arg| match arg {
                ColumnarValue::Scalar(value) => Some(value),
                ColumnarValue::Array(_) => None,
            })
            .collect();
        let of = ReturnFieldArgs { arg_fields: &arg_fields, scalar_arguments: &scalars };
        let return_field = function.return_field_from_args(of)?;
        let args = ScalarFunctionArgs {
            arg_fields,
            args,
            number_rows: rows,
            return_field,
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

    /// An array of `count` equal texts.
    fn texts(text: &str, count: usize) -> ColumnarValue {
        let one = ScalarValue::Utf8View(Some(text.to_string()));
        let list = ScalarValue::new_list(&vec![one; count], &DataType::Utf8View, true);
        ColumnarValue::Scalar(ScalarValue::List(list))
    }

    #[test]
    fn functions_that_are_not_known_to_be_tame_are_omitted() {
        let context = SessionContext::new();
        keep_known(&context);
        let state = context.state();
        for name in ["arrow_cast", "arrow_try_cast", "array_repeat", "array_resize", "range", "row"]
        {
            assert!(!state.scalar_functions().contains_key(name), "{name}");
        }
        for name in TAME.iter().chain(GROWING.iter().map(|(name, _)| name)) {
            let own = ["encode", "regexp_match", "quote_literal", "quote_ident"];
            let is_own = own.contains(name) || name.starts_with("prom_");
            assert!(is_own || state.scalar_functions().contains_key(*name), "{name}");
        }
        for name in ["approx_percentile_cont", "approx_percentile_cont_with_weight"] {
            assert!(!state.aggregate_functions().contains_key(name), "{name}");
        }
        for name in TAME_AGGREGATES {
            assert!(state.aggregate_functions().contains_key(*name), "{name}");
        }
        assert!(state.higher_order_functions().is_empty());
    }

    #[test]
    fn separators_count_between_values_alone() {
        let long = "x".repeat(1 << 20);
        assert_eq!(
            call("concat_ws", vec![text(","), text(&long), text("a")], 1).unwrap(),
            [(1 << 20) + 2]
        );
        assert_eq!(call("array_to_string", vec![texts("a", 1000), text(", ")], 1).unwrap(), [2998]);
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
            ("concat_ws", [vec![text(&long)], vec![text("a"); 70]].concat()),
            ("array_to_string", vec![texts("a", 70), text(&long)]),
            ("array_to_string", vec![texts("a", 70), text(","), text(&long)]),
            ("array_replace_all", vec![texts("a", 70), text("a"), text(&long)]),
        ] {
            let failure = SqlError::from(call(name, args, 1).unwrap_err());
            assert_eq!(failure.code, "54000", "{name}: {failure}");
        }
        assert_eq!(
            call("replace", vec![text(&long), text("xx"), text("yyy")], 1).unwrap(),
            [3 << 19]
        );
        for name in ["repeat", "lpad", "rpad"] {
            assert_eq!(call(name, vec![text("ab"), number(-1)], 1).unwrap(), [0], "{name}");
        }
    }

    #[test]
    fn rows_that_may_become_too_much_are_counted_as_they_become() {
        // Each may become 63 MiB, and becomes 1 MiB.
        let column = |count: usize| {
            let long = "x".repeat(1 << 20);
            ColumnarValue::Array(Arc::new(StringViewArray::from(vec![long.as_str(); count])))
        };
        let rare = vec![column(60), text("z"), text(&"y".repeat(63))];
        assert_eq!(call("replace", rare, 60).unwrap(), vec![1 << 20; 60]);
        let often = vec![column(60), text("x"), text("yy")];
        assert!(call("replace", often, 60).is_err());
    }
}
