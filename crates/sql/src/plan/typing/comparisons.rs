//! Comparisons: casts both sides to one type whose order is PostgreSQL's.

use crate::functions::arrays::array_order::{ARRAY_ORDER, are_arrays};
use crate::functions::arrays::null_arrays::{LIST_KEY, is_numeric_list};
use crate::functions::json::jsonb_functions::call;
use crate::functions::json::jsonb_order::JSONB_ORDER;
use crate::functions::text::bytea;
use crate::plan::typing::casts::cast_changes::{as_interval, literal_time};
use crate::plan::typing::casts::checked_casts::{literals_as_boolean, literals_as_numeric};
use crate::plan::typing::floats::as_floats;
use crate::plan::typing::operator_types::check_comparison;
use crate::plan::typing::special_types::{is_jsonb, is_uuid};
use crate::types::casts::cast_functions::JSONB_IN;
use crate::types::categories::is_open;
use crate::types::error::SqlError;
use crate::types::numeric::conversions::keyed;
use crate::types::numeric::value::NUMERIC;
use crate::types::parameter_types::UUID_PARAMETER;
use crate::types::special_fields::{BPCHAR, TYPE_KEY};
use crate::types::time::intervals::{WORTH, is_interval};
use crate::types::uuids;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::functions::string::rtrim;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable as _, Operator, lit};
use std::sync::Arc;

/// Whole numbers that a `real` says exactly.
const REAL_WHOLE_MAX: u64 = 1 << 24;

/// Checks that PostgreSQL compares the sides: that a parameter of a number is not compared with a time, and none of bytes
/// with a `jsonb`.
///
/// # Errors
/// 42883.
pub fn check_compared(sides: &[Expr], op: Operator, schema: &DFSchema) -> Result<()> {
    check_comparison(sides, &op.to_string(), schema)?;
    let is_number = |ty: &DataType| ty.is_numeric() || *ty == DataType::Boolean;
    let is_time =
        |ty: &DataType| matches!(ty, DataType::Timestamp(..) | DataType::Date32) || is_interval(ty);
    let parameters = sides.iter().filter_map(|side| match side {
        Expr::Placeholder(one) => one.field.as_ref().map(|field| field.data_type()),
        _ => None,
    });
    for own in parameters.filter(|one| is_number(one) || **one == DataType::Binary) {
        let clashes = |side: &&Expr| match own {
            DataType::Binary => is_jsonb(side, schema).unwrap_or(false),
            _ => side.get_type(schema).is_ok_and(|ty| is_time(&ty)),
        };
        let others = sides.iter().filter(|side| !matches!(side, Expr::Placeholder(_)));
        if let Some(other) = others.into_iter().find(clashes) {
            let words = format!("operator does not exist: {other} {op} a parameter of type {own}");
            return Err(DataFusionError::External(Box::new(SqlError::new("42883", words))));
        }
    }
    Ok(())
}

/// A text between quotes or a parameter that is compared with a `jsonb` is one, too: keys of objects stand
/// in one order there.
fn as_jsonb(side: Expr) -> Expr {
    let is_open = match &side {
        Expr::Placeholder(_) => true,
        Expr::Literal(value, _) => value.data_type().is_string(),
        _ => false,
    };
    if is_open { call(JSONB_IN, vec![side]) } else { side }
}

/// Reads a parameter or a quoted literal that is compared with a `uuid` as one: its letters may be capital, and its hyphens
/// may be missing.
///
/// # Errors
/// 22P02 when a literal is none.
fn read_as_uuid(side: Expr) -> Result<Expr> {
    match side {
        Expr::Placeholder(Placeholder { id, .. }) => {
            let field = Some(Arc::new(Field::new("uuid", UUID_PARAMETER, true)));
            Ok(Expr::Placeholder(Placeholder { id, field }))
        }
        literal if is_open(&literal) => {
            let Expr::Literal(value, _) = &literal else { return Ok(literal) };
            let read = uuids::read(value.try_as_str().flatten().unwrap_or_default());
            let read = read.map_err(|error| DataFusionError::External(Box::new(error)))?;
            Ok(lit(ScalarValue::Utf8View(Some(read))))
        }
        other => Ok(other),
    }
}

/// Removes trailing spaces of `char(n)` values, which comparisons ignore. A quoted literal beside one is a `char(n)`.
fn without_spaces(sides: Vec<Expr>, schema: &DFSchema) -> Transformed<Vec<Expr>> {
    let is_padded = |side: &Expr| {
        let field = side.to_field(schema).map(|(_, field)| field);
        field.is_ok_and(|field| field.metadata().get(TYPE_KEY).is_some_and(|one| one == BPCHAR))
    };
    if !sides.iter().any(is_padded) {
        return Transformed::no(sides);
    }
    let are_padded = sides.iter().all(|side| is_padded(side) || is_open(side));
    let made = sides.into_iter().map(|side| match is_padded(&side) || are_padded {
        true => rtrim().call(vec![side, lit(" ")]),
        false => side,
    });
    Transformed::yes(made.collect())
}

/// Reads literals in quotes as times of a type.
fn literals_as_times(sides: Vec<Expr>, time: &DataType) -> Transformed<Vec<Expr>> {
    let mut is_changed = false;
    let read = |side: Expr| match literal_time(&side, time) {
        Some(read) => {
            is_changed = true;
            read
        }
        None => side,
    };
    let sides: Vec<Expr> = sides.into_iter().map(read).collect();
    Transformed::new_transformed(sides, is_changed)
}

/// Casts dates to times of a type. DataFusion compares both in nanoseconds, which end in the year 2262.
fn dates_as_times(sides: Vec<Expr>, time: &DataType, schema: &DFSchema) -> Transformed<Vec<Expr>> {
    let is_date = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Date32));
    if !sides.iter().any(is_date) {
        return Transformed::no(sides);
    }
    let field = Arc::new(Field::new("", time.clone(), true));
    let cast = |side: Expr| match is_date(&side) {
        true => Expr::Cast(Cast { expr: Box::new(side), field: field.clone() }),
        false => side,
    };
    Transformed::yes(sides.into_iter().map(cast).collect())
}

/// Casts whole numbers beside a `real` to `double precision`, which PostgreSQL compares them as. DataFusion compares as
/// `real`, in which some whole numbers are another one.
fn wholes_beside_reals(sides: Vec<Expr>, schema: &DFSchema) -> Transformed<Vec<Expr>> {
    let types: Vec<Option<DataType>> =
        sides.iter().map(|side| side.get_type(schema).ok()).collect();
    let is_exact = |side: &Expr| match side {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(whole))) => whole.unsigned_abs() <= REAL_WHOLE_MAX,
            _ => true,
        },
        _ => false,
    };
    let is_wide = |(side, ty): (&Expr, &Option<DataType>)| {
        ty.as_ref().is_some_and(DataType::is_integer) && !is_exact(side)
    };
    if !types.iter().flatten().any(|ty| *ty == DataType::Float32)
        || !sides.iter().zip(&types).any(is_wide)
    {
        return Transformed::no(sides);
    }
    let field = Arc::new(Field::new("", DataType::Float64, true));
    let wide = |side: Expr| Expr::Cast(Cast { expr: Box::new(side), field: field.clone() });
    Transformed::yes(sides.into_iter().map(wide).collect())
}

/// Gives the sides of a comparison one type: intervals by what they are worth, texts beside times as times, beside bytes
/// as bytes, beside `jsonb` as `jsonb`.
///
/// # Errors
/// 22P02 when a literal is not valid for the type.
pub fn compared(
    sides: Vec<Expr>,
    is_ordering: bool,
    schema: &DFSchema,
) -> Result<Transformed<Vec<Expr>>> {
    let is_parted = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::List(of)) if is_interval(of.data_type()));
    if (is_ordering || sides.iter().all(is_parted)) && are_arrays(&sides, schema) {
        let keys = sides.into_iter().map(|side| ARRAY_ORDER.call(vec![side]));
        return Ok(Transformed::yes(keys.collect()));
    }
    let sides = match without_spaces(sides, schema) {
        changed if changed.transformed => return Ok(changed),
        unchanged => unchanged.data,
    };
    let is_known = |side: &&Expr| !matches!(side, Expr::Placeholder(_));
    if sides.iter().filter(is_known).any(|side| is_jsonb(side, schema).unwrap_or(false)) {
        let keyed = |side: Expr| match is_ordering {
            true => JSONB_ORDER.call(vec![as_jsonb(side)]),
            false => as_jsonb(side),
        };
        return Ok(Transformed::yes(sides.into_iter().map(keyed).collect()));
    }
    if sides.iter().filter(is_known).any(|side| is_uuid(side, schema)) {
        return sides.into_iter().map(read_as_uuid).collect::<Result<_>>().map(Transformed::yes);
    }
    let types: Vec<Option<DataType>> =
        sides.iter().map(|side| side.get_type(schema).ok()).collect();
    let of = |wanted: fn(&DataType) -> bool| types.iter().flatten().find(|one| wanted(one));
    if of(is_numeric_list).is_some() {
        let key = |(side, ty): (Expr, &Option<DataType>)| match ty {
            Some(ty) if is_numeric_list(ty) => LIST_KEY.call(vec![side]),
            _ => side,
        };
        return Ok(Transformed::yes(sides.into_iter().zip(&types).map(key).collect()));
    }
    if of(is_interval).is_some() {
        let worths = sides.into_iter().map(|side| WORTH.call(vec![as_interval(side)]));
        return Ok(Transformed::yes(worths.collect()));
    }
    if of(|one| matches!(one, DataType::Binary)).is_some() {
        let read = |(side, ty): (Expr, &Option<DataType>)| match ty {
            Some(ty) if ty.is_string() => bytea::READ.call(vec![side]),
            _ => side,
        };
        return Ok(Transformed::yes(sides.into_iter().zip(&types).map(read).collect()));
    }
    if let Some(time) = of(|one| matches!(one, DataType::Timestamp(..))) {
        let time = time.clone();
        let read = literals_as_times(sides, &time);
        let is_read = read.transformed;
        let made = dates_as_times(read.data, &time, schema);
        return Ok(Transformed { transformed: is_read || made.transformed, ..made });
    }
    let truths = literals_as_boolean(sides, schema)?;
    if truths.transformed {
        return Ok(truths);
    }
    let sides = literals_as_numeric(truths.data, schema)?.data;
    let is_decimal = sides.iter().any(|side| side.get_type(schema).is_ok_and(|ty| ty == NUMERIC));
    let floats = as_floats(sides, schema);
    if floats.transformed {
        return Ok(floats);
    }
    if !is_decimal {
        return Ok(wholes_beside_reals(floats.data, schema));
    }
    Ok(Transformed::yes(floats.data.into_iter().map(|side| keyed(side, schema)).collect()))
}
