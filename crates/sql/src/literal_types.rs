//! Literals in quotes beside values of a known type are of that type: in CASE, COALESCE, GREATEST, LEAST and NULLIF
//! (<https://www.postgresql.org/docs/15/typeconv-union-case.html>). DataFusion makes texts of all of them.

use crate::common_types::{Category, known_type};
use crate::jsonb_functions::{JSONB, call};
use crate::rewrite::JSONB_IN;
use crate::typed::change_cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _};
use std::sync::Arc;

/// The type of the values that have one.
enum Common {
    Arrow(DataType),
    Jsonb,
}

/// Reads literals in quotes as the type of the other values.
///
/// # Errors
/// Returns the errors of the casts, as 22P02.
pub fn literals_as_common(values: Vec<Expr>, schema: &DFSchema) -> Result<Transformed<Vec<Expr>>> {
    if !values.iter().any(is_open) {
        return Ok(Transformed::no(values));
    }
    let Some(common) = common_type(&values, schema) else { return Ok(Transformed::no(values)) };
    let read = |value: Expr| match (is_open(&value), &common) {
        (true, Common::Jsonb) => Ok(call(JSONB_IN, vec![value])),
        (true, Common::Arrow(ty)) => {
            let field = Arc::new(Field::new("", ty.clone(), true));
            let cast = Expr::Cast(Cast { expr: Box::new(value), field });
            change_cast(cast, schema).map(|changed| changed.data)
        }
        (false, _) => Ok(value),
    };
    values.into_iter().map(read).collect::<Result<_>>().map(Transformed::yes)
}

/// Whether an expression is a text between quotes, which has no type yet.
fn is_open(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, None) if value.try_as_str().flatten().is_some())
}

/// None if no value has a type, or has one that texts are read as later.
fn common_type(values: &[Expr], schema: &DFSchema) -> Option<Common> {
    let mut known = values.iter().filter(|one| !is_open(one)).filter_map(|one| {
        let (category, name) = known_type(one, schema)?;
        Some((category, name, one))
    });
    let (category, name, first) = known.next()?;
    match category {
        Category::Special if name == JSONB => Some(Common::Jsonb),
        Category::Number => widest(values, schema).map(Common::Arrow),
        Category::Boolean | Category::Date | Category::Interval | Category::Time => {
            first.get_type(schema).ok().map(Common::Arrow)
        }
        Category::Text | Category::Special | Category::Bytea | Category::Array => None,
    }
}

/// The widest type of numbers; none if one is a `numeric`.
fn widest(values: &[Expr], schema: &DFSchema) -> Option<DataType> {
    let mut found: Option<DataType> = None;
    for value in values.iter().filter(|one| !is_open(one)) {
        let ty = match value {
            Expr::Literal(ScalarValue::Int64(Some(number)), _)
                if i32::try_from(*number).is_ok() =>
            {
                DataType::Int32
            }
            other => other.get_type(schema).ok()?,
        };
        let width = |ty: &DataType| (ty.is_floating(), ty.primitive_width());
        match &found {
            _ if ty.is_null() => {}
            _ if ty.is_decimal() || !ty.is_numeric() => return None,
            Some(known) if width(&ty) <= width(known) => {}
            _ => found = Some(ty),
        }
    }
    found
}
