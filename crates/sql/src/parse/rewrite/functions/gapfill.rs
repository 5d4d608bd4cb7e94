//! Calls of TimescaleDB's functions that make buckets and fill gaps, with all arguments in their places.

use crate::functions::gapfill::{GAPFILL, INTERPOLATE, LOCF};
use crate::parse::rewrite::expressions::{cast, instant, is_named, literal, text_literal};
use crate::types::error::SqlError;
use crate::types::time::instants::instant_of;
use crate::types::time::interval_texts::interval_text;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
    ValueWithSpan,
};

/// Gives calls all their arguments: width, time, start and finish; the value, and whether nulls are
/// skipped; the value.
///
/// # Errors
/// Where there are others than these.
pub fn place_arguments(function: &mut Function) -> Result<(), SqlError> {
    let wanted: &[&str] = if is_named(&function.name, GAPFILL) {
        &["bucket_width", "ts", "timezone", "start", "finish"]
    } else if is_named(&function.name, LOCF) {
        &["value", "prev", "treat_null_as_missing"]
    } else if is_named(&function.name, INTERPOLATE) {
        &["value", "prev", "next"]
    } else {
        return Ok(());
    };
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    if function.over.is_some() {
        let words = format!("{} is no window function", function.name);
        return Err(SqlError::new("42809", words));
    }
    let name = wanted[0];
    let placed = placed(&function.name.to_string(), list.args.drain(..).collect(), wanted)?;
    let made = match name {
        "bucket_width" => buckets(placed)?,
        _ => values(placed, wanted)?,
    };
    list.args =
        made.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Ok(())
}

/// Gives calls of `time_bucket` their arguments in their places: width, time, and where buckets begin.
///
/// # Errors
/// Where there are others than these.
pub fn place_bucket(function: &mut Function) -> Result<(), SqlError> {
    if !is_named(&function.name, "time_bucket") {
        return Ok(());
    }
    let name = function.name.to_string();
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    let is_named = list.args.iter().any(|arg| !matches!(arg, FunctionArg::Unnamed(_)));
    let is_zoned = match list.args.get(2) {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(third))) => is_zone(third),
        _ => false,
    };
    if !is_named && !is_zoned {
        return Ok(());
    }
    let wanted = ["bucket_width", "ts", "timezone", "origin", "offset"];
    let mut placed = placed(&name, list.args.drain(..).collect(), &wanted)?.into_iter();
    let mut next = || placed.next().flatten().filter(|one| !is_null(one));
    let (width, time, zone) = (next(), next(), next());
    let (Some(width), Some(time)) = (width, time) else {
        return Err(SqlError::new("42883", "time_bucket needs a width and a time"));
    };
    zone.as_ref().map_or(Ok(()), utc)?;
    let begin = match (next(), next()) {
        (Some(_), Some(_)) => {
            let words = "time_bucket with both an origin and an offset is not known here";
            return Err(SqlError::unsupported(words));
        }
        (None, Some(offset)) => Some(as_interval(offset)),
        (origin, None) => origin,
    };
    let made = [width, time].into_iter().chain(begin);
    list.args = made.map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Ok(())
}

/// That a zone is the one that is known here.
fn utc(zone: &Expr) -> Result<(), SqlError> {
    let named = literal(zone).unwrap_or_default();
    if ["utc", "gmt", "etc/utc"].iter().any(|one| named.eq_ignore_ascii_case(one)) {
        return Ok(());
    }
    let words = format!("time zone {zone} is not known here: times are UTC");
    Err(SqlError::unsupported(words))
}

/// A text between quotes as an interval; else what was given.
fn as_interval(expr: Expr) -> Expr {
    match literal(&expr) {
        Some(text) => {
            let interval = SqlType::Interval { fields: None, precision: None };
            cast(text_literal(interval_text(&text)), interval)
        }
        None => expr,
    }
}

/// Arguments in the order of their names; none where there are none.
fn placed(
    function: &str,
    args: Vec<FunctionArg>,
    wanted: &[&str],
) -> Result<Vec<Option<Expr>>, SqlError> {
    let unknown = || {
        let words = format!("function {function}({}) is what there is", wanted.join(", "));
        SqlError::new("42883", words)
    };
    let mut placed: Vec<Option<Expr>> = vec![None; wanted.len()];
    let is_plain = |arg: &&FunctionArg| matches!(arg, FunctionArg::Unnamed(_));
    let are_all = args.iter().filter(is_plain).count() == wanted.len();
    let mut at = 0;
    for arg in args {
        let (place, expr) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                // A zone may be left out: what is a time, or none, is the start.
                let is_start = wanted.get(at) == Some(&"timezone") && !are_all && !is_zone(&expr);
                at += 1 + usize::from(is_start);
                (at - 1, expr)
            }
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                let known = wanted.iter().position(|one| name.value.eq_ignore_ascii_case(one));
                (known.ok_or_else(unknown)?, expr)
            }
            _ => return Err(unknown()),
        };
        let free = placed.get_mut(place).filter(|one| one.is_none()).ok_or_else(unknown)?;
        *free = Some(expr);
    }
    if placed[0].is_none() {
        return Err(unknown());
    }
    Ok(placed)
}

/// A text that is no time.
fn is_zone(expr: &Expr) -> bool {
    literal(expr).is_some_and(|text| instant_of(&text).is_none())
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Null, .. }))
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

fn buckets(placed: Vec<Option<Expr>>) -> Result<Vec<Expr>, SqlError> {
    let mut placed = placed.into_iter();
    let mut next = || placed.next().flatten();
    let (Some(width), Some(time)) = (next(), next()) else {
        return Err(SqlError::new("42883", "time_bucket_gapfill needs a width and a time"));
    };
    next().filter(|zone| !is_null(zone)).as_ref().map_or(Ok(()), utc)?;
    let ends = [next(), next()].map(|end| match end {
        Some(end) if literal(&end).is_some() => cast(end, instant()),
        Some(end) => end,
        None => null(),
    });
    Ok([as_interval(width), time].into_iter().chain(ends).collect())
}

fn values(placed: Vec<Option<Expr>>, wanted: &[&str]) -> Result<Vec<Expr>, SqlError> {
    let mut made = Vec::new();
    for (argument, name) in placed.into_iter().zip(wanted) {
        match (*name, argument) {
            ("value", Some(value)) => made.push(value),
            ("treat_null_as_missing", skips) => {
                made.push(skips.unwrap_or(Expr::Value(Value::Boolean(false).into())));
            }
            (_, Some(looked_up)) if !is_null(&looked_up) => {
                let words = format!("{name}: values from before or behind are not looked up here");
                let hint = "Let WHERE begin earlier or end later, and leave out rows around it.";
                return Err(SqlError::unsupported(words).with_hint(hint));
            }
            _ => {}
        }
    }
    Ok(made)
}
