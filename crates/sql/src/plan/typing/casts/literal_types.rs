//! Quoted literals beside values of a known type get that type: in CASE, COALESCE, GREATEST, LEAST and NULLIF
//! (<https://www.postgresql.org/docs/15/typeconv-union-case.html>). DataFusion makes texts of all of them.

use crate::plan::typing::casts::cast_changes::read_literal;
use crate::types::categories::{Category, common_time, is_open, known_type, one_number};
use crate::types::numeric::value::NUMERIC;
use crate::types::special_fields::TYPE_KEY;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, ExprSchemable as _};
use std::sync::Arc;

/// Reads quoted literals as the type of the other values, and gives that type to parameters without one.
///
/// # Errors
/// Returns the errors of the casts: 22P02, 22003, 22007 and 22008.
pub fn literals_as_common(values: Vec<Expr>, schema: &DFSchema) -> Result<Transformed<Vec<Expr>>> {
    if !values.iter().any(|one| is_open(one) || is_open_parameter(one)) {
        return Ok(Transformed::no(values));
    }
    let Some(common) = common_type(&values, schema) else { return Ok(Transformed::no(values)) };
    let read = |value: Expr| match value {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            let field = Some(Arc::new(Field::new("parameter", common.clone(), true)));
            Ok(Expr::Placeholder(Placeholder { id, field }))
        }
        // `literals_as_numeric` reads these.
        literal if is_open(&literal) && !common.is_decimal() => {
            read_literal(literal, &common, schema)
        }
        other => Ok(other),
    };
    values.into_iter().map(read).collect::<Result<_>>().map(Transformed::yes)
}

/// Returns true for a parameter without a type.
fn is_open_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(Placeholder { field: None, .. }))
}

/// Returns none if no value has a type, and for types that `special_types` and the planner read literals as.
fn common_type(values: &[Expr], schema: &DFSchema) -> Option<DataType> {
    let is_known = |one: &&Expr| !is_open(one) && known_type(one, schema).is_some();
    let first = values.iter().find(is_known)?;
    match known_type(first, schema)?.0 {
        Category::Number => common_number_type(values, schema),
        Category::Date => common_time_type(values, schema),
        Category::Boolean | Category::Bytea | Category::Interval | Category::Time => {
            first.get_type(schema).ok()
        }
        Category::Array if !is_special(first, schema) => first.get_type(schema).ok(),
        Category::Array => None,
        Category::Text | Category::Special => None,
    }
}

/// Whether the elements of an array have a type that arrow has as texts, such as `uuid`.
fn is_special(expr: &Expr, schema: &DFSchema) -> bool {
    expr.to_field(schema).is_ok_and(|(_, field)| field.metadata().contains_key(TYPE_KEY))
}

fn common_time_type(values: &[Expr], schema: &DFSchema) -> Option<DataType> {
    let known = values.iter().filter(|one| !is_open(one) && !is_open_parameter(one));
    let known = known.map(|one| one.get_type(schema)).collect::<Result<Vec<_>>>().ok()?;
    common_time(&known).or_else(|| known.into_iter().find(|ty| !ty.is_null()))
}

fn common_number_type(values: &[Expr], schema: &DFSchema) -> Option<DataType> {
    let type_of = |value: &Expr| match value {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => {
            Ok(DataType::Int32)
        }
        other => other.get_type(schema),
    };
    let is_known = |one: &&Expr| !is_open(one) && !is_open_parameter(one);
    let known = values.iter().filter(is_known).map(type_of);
    let known = known.collect::<Result<Vec<_>>>().ok()?;
    one_number(&known).map(|ty| if ty.is_decimal() { NUMERIC } else { ty })
}
