//! `@>`, `<@` and `&&` of arrays as sets of their elements. NULL is equal to nothing, where DataFusion takes it for
//! a value.

use crate::functions::arrays::null_arrays::comparable;
use crate::types::function::function;
use crate::types::numeric::exact_casts::convert;
use crate::types::numeric::value::NUMERIC;
use crate::types::runtime::cancellation;
use crate::types::text::array_literals::array_of;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, BooleanBuilder, ListArray, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result;
use datafusion::logical_expr::binary::comparison_coercion;
use datafusion::logical_expr::{Expr, ScalarUDF, Signature, Volatility};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

/// `array_overlaps(a, b)`, which is `a && b`.
pub const OVERLAPS: &str = "array_overlaps";

static CONTAINS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(set("array_contains", contains)));

/// Whether one array has all elements of another.
pub fn contains_all(whole: Expr, part: Expr) -> Expr {
    CONTAINS.call(vec![whole, part])
}

/// `&&`.
pub fn overlaps() -> ScalarUDF {
    set(OVERLAPS, overlap)
}

fn set(name: &'static str, holds: fn(&Elements<'_>, &Elements<'_>) -> bool) -> ScalarUDF {
    let signature = Signature::any(2, Volatility::Immutable);
    let work = move |args: &[ArrayRef], rows: usize| {
        Ok(Arc::new(compared(&args[0], &args[1], rows, holds)?) as ArrayRef)
    };
    function(name, signature, |_| DataType::Boolean, work)
}

/// The elements of an array; none of NULL.
type Elements<'a> = [Option<&'a [u8]>];

/// Elements that are compared one by one.
const SHORT: usize = 8;

fn contains(whole: &Elements<'_>, part: &Elements<'_>) -> bool {
    if whole.len().min(part.len()) <= SHORT {
        return part.iter().all(|one| one.is_some() && whole.contains(one));
    }
    let known: HashSet<&[u8]> = whole.iter().flatten().copied().collect();
    part.iter().all(|one| one.is_some_and(|one| known.contains(one)))
}

fn overlap(left: &Elements<'_>, right: &Elements<'_>) -> bool {
    if left.len().min(right.len()) <= SHORT {
        return left.iter().any(|one| one.is_some() && right.contains(one));
    }
    let known: HashSet<&[u8]> = left.iter().flatten().copied().collect();
    right.iter().flatten().any(|one| known.contains(one))
}

fn compared(
    left: &ArrayRef,
    right: &ArrayRef,
    rows: usize,
    holds: fn(&Elements<'_>, &Elements<'_>) -> bool,
) -> Result<BooleanArray> {
    let (left, right) = as_numeric(lists(left)?, lists(right)?)?;
    let (left, right) = (flat(left), flat(right));
    let (Some(left), Some(right)) = (left, right) else {
        return Ok(new_null_array(&DataType::Boolean, rows).as_boolean().clone());
    };
    let (types, nothing) = ((left.values.data_type(), right.values.data_type()), DataType::Null);
    let of = match types {
        (one, other) if *other == nothing => one.clone(),
        (one, other) if *one == nothing => other.clone(),
        (one, other) => comparison_coercion(one, other).unwrap_or_else(|| one.clone()),
    };
    let converter = RowConverter::new(vec![SortField::new(of.clone())])?;
    let (left, right) = (left.comparable(&of, &converter)?, right.comparable(&of, &converter)?);
    let mut out = BooleanBuilder::with_capacity(rows);
    for row in 0..rows {
        cancellation::check()?;
        match (left.row(row), right.row(row)) {
            (Some(left), Some(right)) => out.append_value(holds(&left, &right)),
            _ => out.append_null(),
        }
    }
    Ok(out.finish())
}

/// Replaces the elements of both lists by keys. If one list is of `numeric`, the whole numbers of the other become `numeric`.
fn as_numeric(
    left: Option<ListArray>,
    right: Option<ListArray>,
) -> Result<(Option<ListArray>, Option<ListArray>)> {
    let is_numeric = |one: &Option<ListArray>| {
        one.as_ref().is_some_and(|list| *list.values().data_type() == NUMERIC)
    };
    let has_numeric = is_numeric(&left) || is_numeric(&right);
    let made = |list: Option<ListArray>| -> Result<Option<ListArray>> {
        let Some(list) = list else { return Ok(None) };
        let is_exact =
            list.values().data_type().is_integer() || list.values().data_type().is_decimal();
        let list: ArrayRef = match has_numeric && is_exact && *list.values().data_type() != NUMERIC
        {
            true => {
                let (_, offsets, values, nulls) = list.into_parts();
                let values = convert(&values, &NUMERIC)?;
                let field = Arc::new(Field::new_list_field(NUMERIC, true));
                Arc::new(ListArray::try_new(field, offsets, values, nulls)?)
            }
            false => Arc::new(list),
        };
        Ok(Some(comparable(&list)?.as_list::<i32>().clone()))
    };
    Ok((made(left)?, made(right)?))
}

/// Lists; texts as those that they write down.
fn lists(array: &ArrayRef) -> Result<Option<ListArray>> {
    if let Some(list) = array.as_list_opt::<i32>() {
        return Ok(Some(list.clone()));
    }
    if !array.data_type().is_string() {
        return Ok(None);
    }
    let texts = cast(array, &DataType::Utf8View)?;
    let mut values: Vec<Option<String>> = Vec::new();
    let (mut lengths, mut known) = (Vec::new(), Vec::new());
    for text in texts.as_string_view() {
        let elements = text.and_then(array_of);
        known.push(elements.is_some());
        lengths.push(elements.as_ref().map_or(0, Vec::len));
        values.extend(elements.into_iter().flatten());
    }
    let values: datafusion::arrow::array::StringViewArray = values.into_iter().collect();
    let field = Arc::new(Field::new_list_field(DataType::Utf8View, true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let list = ListArray::try_new(field, offsets, Arc::new(values), Some(NullBuffer::from(known)))?;
    Ok(Some(list))
}

/// Elements of all dimensions, in one.
struct Flat {
    values: ArrayRef,
    offsets: Vec<usize>,
    nulls: Option<NullBuffer>,
}

fn flat(list: Option<ListArray>) -> Option<Flat> {
    let list = list?;
    let offsets = |list: &ListArray| -> Vec<usize> {
        list.value_offsets().iter().map(|at| usize::try_from(*at).unwrap_or(0)).collect()
    };
    let mut flat = Flat {
        values: list.values().clone(),
        offsets: offsets(&list),
        nulls: list.nulls().cloned(),
    };
    while let Some(inner) = flat.values.clone().as_list_opt::<i32>() {
        let below = offsets(inner);
        flat.offsets.iter_mut().for_each(|at| *at = below.get(*at).copied().unwrap_or(0));
        flat.values = inner.values().clone();
    }
    Some(flat)
}

impl Flat {
    fn comparable(self, of: &DataType, converter: &RowConverter) -> Result<Comparable> {
        let values = match self.values.data_type() {
            DataType::Null => new_null_array(of, self.values.len()),
            _ => cast(&self.values, of)?,
        };
        // One zero.
        let values = match of {
            DataType::Float32 | DataType::Float64 => positive_zeros(&values)?,
            _ => values,
        };
        let nulls = values.logical_nulls();
        let rows = converter.convert_columns(std::slice::from_ref(&values))?;
        Ok(Comparable { rows, nulls, offsets: self.offsets, lists: self.nulls })
    }
}

fn positive_zeros(values: &ArrayRef) -> Result<ArrayRef> {
    use datafusion::arrow::datatypes::Float64Type;
    let wide = cast(values, &DataType::Float64)?;
    let wide = wide.as_primitive::<Float64Type>();
    let made = wide.unary::<_, Float64Type>(|one| if one == 0.0 { 0.0 } else { one });
    Ok(cast(&made, values.data_type())?)
}

/// Elements as bytes.
struct Comparable {
    rows: Rows,
    nulls: Option<NullBuffer>,
    offsets: Vec<usize>,
    lists: Option<NullBuffer>,
}

impl Comparable {
    /// The elements of an array; none of NULL.
    fn row(&self, row: usize) -> Option<Vec<Option<&[u8]>>> {
        if self.lists.as_ref().is_some_and(|lists| lists.is_null(row)) {
            return None;
        }
        let is_null = |at: usize| self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
        let element = |at: usize| (!is_null(at)).then(|| self.rows.row(at).data());
        Some((self.offsets[row]..self.offsets[row + 1]).map(element).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringArray;

    fn answers(
        pairs: &[(Option<&str>, Option<&str>)],
        holds: fn(&Elements<'_>, &Elements<'_>) -> bool,
    ) -> Vec<Option<bool>> {
        let side = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
        let left = side(pairs.iter().map(|(one, _)| *one).collect());
        let right = side(pairs.iter().map(|(_, one)| *one).collect());
        compared(&left, &right, pairs.len(), holds).unwrap().iter().collect()
    }

    #[test]
    fn null_is_no_element() {
        let pairs = [
            (Some("{1,NULL}"), Some("{1,NULL}")),
            (Some("{1,2,3}"), Some("{3,1,1}")),
            (Some("{1,2}"), Some("{3}")),
            (Some("{NULL}"), Some("{}")),
            (Some("{NULL}"), Some("{NULL}")),
            (None, Some("{1}")),
            (Some("{1,2,3,4,5,6,7,8,9,10}"), Some("{10,9,8,7,6,5,4,3,2,1}")),
            (Some("{1,2,3,4,5,6,7,8,9,10}"), Some("{10,9,8,7,6,5,4,3,2,NULL}")),
        ];
        let (t, f) = (Some(true), Some(false));
        assert_eq!(answers(&pairs, contains), [f, t, f, t, f, None, t, f]);
        assert_eq!(answers(&pairs, overlap), [t, t, f, f, f, None, t, t]);
    }
}
