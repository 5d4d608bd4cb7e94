//! Casts that PostgreSQL has in another way than DataFusion, and literals as values of a type.

use crate::functions::text::bytea;
use crate::plan::typing::casts::checked_casts::{
    check_cast, check_literal, literal_clock, literal_date, literals_as_boolean,
};
use crate::plan::typing::number_operators::as_float;
use crate::plan::typing::special_types::{is_jsonb, regproc_cast};
use crate::tables::heap::values::array_texts;
use crate::types::casts::array_casts::cast_to_list;
use crate::types::casts::clock_casts::clock_cast;
use crate::types::casts::jsonb_casts;
use crate::types::casts::text_casts::text_cast;
use crate::types::function::function;
use crate::types::numeric::conversions::{TO_NUMERIC, TO_REAL, TO_WHOLE};
use crate::types::numeric::value::NUMERIC;
use crate::types::text::shown;
use crate::types::time::instants::{clock_of, instant_of};
use crate::types::time::interval_texts::interval_text;
use crate::types::time::intervals::{INTERVAL, is_interval};
use datafusion::arrow::array::{ArrayRef, AsArray as _, Float64Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable as _, ScalarUDF, Signature, Volatility, lit,
};
use std::sync::{Arc, LazyLock};

pub(crate) fn interval() -> Arc<Field> {
    Arc::new(Field::new("interval", INTERVAL, true))
}

/// A text or a parameter that stands where an interval does is one.
pub fn as_interval(expr: Expr) -> Expr {
    match expr {
        Expr::Placeholder(Placeholder { id, .. }) => {
            Expr::Placeholder(Placeholder { id, field: Some(interval()) })
        }
        other => text_as_interval(other),
    }
}

/// A text between quotes as an interval; else what was given.
pub fn text_as_interval(expr: Expr) -> Expr {
    let text = match &expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().map(interval_text),
        _ => None,
    };
    match text {
        Some(text) => {
            let inner = Box::new(Expr::Literal(ScalarValue::from(text), None));
            Expr::Cast(Cast { expr: inner, field: interval() })
        }
        None => expr,
    }
}

/// A text between quotes as a time of that type, if it is one.
pub fn literal_time(expr: &Expr, wanted: &DataType) -> Option<Expr> {
    let (Expr::Literal(value, _), DataType::Timestamp(_, zone)) = (expr, wanted) else {
        return None;
    };
    let text = value.try_as_str().flatten()?;
    let micros = if zone.is_some() { instant_of(text) } else { clock_of(text) }?;
    Some(Expr::Literal(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()), None))
}

/// A literal in quotes as a value of a type.
///
/// # Errors
/// When it is none.
pub fn read_literal(literal: Expr, wanted: &DataType, schema: &DFSchema) -> Result<Expr> {
    Ok(match wanted {
        DataType::Binary => bytea::READ.call(vec![literal]),
        DataType::Boolean => literals_as_boolean(vec![literal, lit(true)], schema)?.data.remove(0),
        wanted if is_interval(wanted) => text_as_interval(literal),
        wanted => {
            let field = Arc::new(Field::new("", wanted.clone(), true));
            change_cast(Expr::Cast(Cast { expr: Box::new(literal), field }), schema)?.data
        }
    })
}

pub(crate) fn change_cast(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Cast(Cast { expr: inner, field }) = &expr else { return Ok(Transformed::no(expr)) };
    if let Some(read) = literal_time(inner, field.data_type()) {
        return Ok(Transformed::yes(read));
    }
    // What is bound may be of any type.
    if matches!(**inner, Expr::Placeholder(_)) && field.data_type().is_string() {
        let shown = TEXT.call(vec![(**inner).clone()]);
        let cast = Cast { expr: Box::new(shown), field: field.clone() };
        return Ok(Transformed::yes(Expr::Cast(cast)));
    }
    if let Some(read) = literal_clock(inner, field.data_type()) {
        return Ok(Transformed::yes(read));
    }
    if let Some(read) = literal_date(inner, field.data_type()) {
        return Ok(Transformed::yes(read));
    }
    check_cast(inner, field.data_type(), schema)?;
    check_literal(inner, field.data_type())?;
    if is_jsonb(inner, schema).unwrap_or(false)
        && let Some(cast) = jsonb_casts::cast_to(field.data_type())
    {
        let made = Box::new(cast.call(vec![(**inner).clone()]));
        return Ok(Transformed::yes(Expr::Cast(Cast { expr: made, field: field.clone() })));
    }
    // Of what is not known yet, as of parameters, nothing is changed.
    let Ok(from) = inner.get_type(schema) else { return Ok(Transformed::no(expr)) };
    let read = regproc_cast(inner, field.data_type(), schema)
        .or_else(|| clock_cast(inner, &from, field.data_type()))
        .or_else(|| text_cast(inner, &from, field.data_type()));
    if let Some(made) = read {
        return Ok(Transformed::yes(made));
    }
    if let DataType::List(of) = field.data_type()
        && from != *field.data_type()
        && let Some(made) = cast_to_list((**inner).clone(), &from, of.data_type())
    {
        return Ok(Transformed::yes(made));
    }
    let function = match (from, field.data_type()) {
        (from, to) if *to == NUMERIC && from != NUMERIC => {
            return Ok(Transformed::yes(TO_NUMERIC.call(vec![(**inner).clone()])));
        }
        (from, DataType::Float64) if from.is_decimal() => {
            return Ok(Transformed::yes(as_float((**inner).clone())));
        }
        (from, DataType::Float32) if from.is_decimal() || from == DataType::Float64 => {
            return Ok(Transformed::yes(TO_REAL.call(vec![(**inner).clone()])));
        }
        (from, to) if to.is_integer() && from.is_decimal() => &TO_WHOLE,
        (from, to) if to.is_integer() && from.is_floating() => &EVEN,
        (
            DataType::Decimal128(..)
            | DataType::Decimal256(..)
            | DataType::Float32
            | DataType::Float64
            | DataType::Timestamp(..)
            | DataType::Time64(_)
            | DataType::Interval(_)
            | DataType::Duration(_)
            | DataType::Binary
            | DataType::List(_),
            to,
        ) if to.is_string() => &TEXT,
        _ => return Ok(Transformed::no(expr)),
    };
    let shown = function.call(vec![(**inner).clone()]);
    let cast = Cast { expr: Box::new(shown), field: field.clone() };
    Ok(Transformed::yes(Expr::Cast(cast)))
}

/// Rounds to the nearest whole number; halves go to the even one.
pub(crate) static EVEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    of_one(
        "pg_round",
        |_| DataType::Float64,
        |array| {
            let wide = cast(array, &DataType::Float64)?;
            let wide = wide.as_primitive::<Float64Type>();
            let rounded: Float64Array = wide.unary(f64::round_ties_even);
            Ok(Arc::new(rounded))
        },
    )
});

/// As PostgreSQL shows it.
pub(crate) static TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    of_one(
        "pg_text",
        |_| DataType::Utf8View,
        |array| match shown::column(array) {
            _ if matches!(array.data_type(), DataType::List(_)) => match array_texts(array) {
                Ok(texts) => Ok(texts),
                // Of what no column has, as of rows.
                Err(_) => Ok(cast(array, &DataType::Utf8View)?),
            },
            Some(shown) => Ok(cast(&shown, &DataType::Utf8View)?),
            None => Ok(cast(array, &DataType::Utf8View)?),
        },
    )
});

pub(crate) fn client_texts(array: &ArrayRef) -> Result<ArrayRef> {
    if let Some(all) = array.as_boolean_opt() {
        let word = |one: bool| if one { "t" } else { "f" };
        let texts = all.iter().map(|one| one.map(word)).collect::<StringViewArray>();
        return Ok(Arc::new(texts));
    }
    let shown = shown::column(array).unwrap_or_else(|| array.clone());
    Ok(cast(&shown, &DataType::Utf8View)?)
}

pub(crate) fn of_one(
    name: &'static str,
    returns: fn(&[DataType]) -> DataType,
    work: fn(&ArrayRef) -> Result<ArrayRef>,
) -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function(name, signature, returns, move |args, _| work(&args[0])))
}
