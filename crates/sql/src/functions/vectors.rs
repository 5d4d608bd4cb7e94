//! Functions on the lists of numbers that PostgreSQL's own tables have of keys' columns.
//!
//! What makes rows of a list is the list of what it makes within `unnest` (see `rewrite::vectors`).

use crate::types::function::function;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, GenericListArray, Int32Array, ListArray, StringViewBuilder,
    StructArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// The places in a list, counted from 1.
pub const PLACES: &str = "vector_places";
/// The same counted from 0, as vectors are.
pub const VECTOR_PLACES: &str = "vector_places_from_0";
/// Each value with its place: `(x, n)`.
pub const EXPANDED: &str = "vector_expanded";
/// A list as one text, by which it is found.
pub const WHOLE: &str = "vector_whole";

fn any_one() -> Signature {
    Signature::any(1, Volatility::Immutable)
}

fn list_of(data_type: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(data_type, true)))
}

fn pair() -> Fields {
    let field = |name| Field::new(name, DataType::Int32, true);
    Fields::from(vec![field("x"), field("n")])
}

/// A list of numbers; what is none has no values.
fn numbers(array: &ArrayRef, rows: usize) -> ListArray {
    match cast(array, &list_of(DataType::Int32)) {
        Ok(list) if array.data_type() != &DataType::Null => list.as_list::<i32>().clone(),
        _ => {
            GenericListArray::new_null(Arc::new(Field::new_list_field(DataType::Int32, true)), rows)
        }
    }
}

/// The places of the values of lists, one list behind the other.
fn places(list: &ListArray, first: i32) -> (Int32Array, OffsetBuffer<i32>, Int32Array) {
    let mut nth = Vec::new();
    let mut values: Vec<Option<i32>> = Vec::new();
    let lengths = (0..list.len()).map(|at| {
        let one = if list.is_null(at) { None } else { Some(list.value(at)) };
        let one = one.map(|one| one.as_primitive::<Int32Type>().clone());
        let count = one.as_ref().map_or(0, |one| one.len());
        values.extend(one.iter().flatten());
        nth.extend((first..).take(count));
        count
    });
    let offsets = OffsetBuffer::from_lengths(lengths.collect::<Vec<_>>());
    (nth.into(), offsets, values.into())
}

fn places_from(name: &'static str, first: i32) -> ScalarUDF {
    function(
        name,
        any_one(),
        |_| list_of(DataType::Int32),
        move |args, rows| {
            let list = numbers(&args[0], rows);
            let (nth, offsets, _) = places(&list, first);
            let field = Arc::new(Field::new_list_field(DataType::Int32, true));
            Ok(Arc::new(ListArray::new(field, offsets, Arc::new(nth), None)))
        },
    )
}

fn expanded(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let list = numbers(&args[0], rows);
    let (nth, offsets, values) = places(&list, 1);
    let pairs = StructArray::new(pair(), vec![Arc::new(values), Arc::new(nth)], None);
    let field = Arc::new(Field::new_list_field(DataType::Struct(pair()), true));
    Ok(Arc::new(ListArray::new(field, offsets, Arc::new(pairs), None)))
}

fn whole(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let list = numbers(&args[0], rows);
    let mut out = StringViewBuilder::with_capacity(rows);
    for one in list.iter() {
        out.append_option(one.map(|one| {
            let parts: Vec<String> = one
                .as_primitive::<Int32Type>()
                .iter()
                .flatten()
                .map(|one| one.to_string())
                .collect();
            parts.join(" ")
        }));
    }
    Ok(Arc::new(out.finish()))
}

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    [
        places_from(PLACES, 1),
        places_from(VECTOR_PLACES, 0),
        function(EXPANDED, any_one(), |_| list_of(DataType::Struct(pair())), expanded),
        function(WHOLE, any_one(), |_| DataType::Utf8View, whole),
    ]
    .into_iter()
}
