//! Numbers that are written down where their type is that of a result: `integer` if they fit, else `bigint`, else
//! `numeric` (<https://www.postgresql.org/docs/15/sql-syntax-lexical.html#SQL-SYNTAX-CONSTANTS-NUMERIC>).
//!
//! In comparisons and beside operators the types of the other operands decide.

use crate::functions::generate_series::NAME as SERIES;
use crate::functions::numbers::bits::BIT_NOT;
use crate::parse::rewrite::expressions::{
    call, cast, is_named, literal, numeral_of, plain_digits, text_literal,
};
use crate::parse::rewrite::queries::value_cells::cells_with_types;
use crate::parse::rewrite::types::{is_float, is_numeric};
use crate::types::casts::cast_functions::JSONB_IN;
use datafusion::sql::sqlparser::ast::{
    Array, DataType as SqlType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, SelectItem, SetExpr, TableFactor, UnaryOperator, Value,
    Values,
};

/// Functions whose results have the type of arguments, and how many of these.
const OF_ARGUMENTS: &[(&str, usize)] = &[
    ("abs", 1),
    ("array_agg", 1),
    ("array_append", 2),
    ("array_position", 2),
    ("array_positions", 2),
    ("array_prepend", 2),
    ("array_remove", 2),
    ("array_replace", 3),
    ("avg", 1),
    ("bit_and", 1),
    ("bit_or", 1),
    ("bit_xor", 1),
    ("coalesce", usize::MAX),
    ("first_value", 1),
    ("gcd", 2),
    ("generate_series", 3),
    ("greatest", usize::MAX),
    ("last_value", 1),
    ("lcm", 2),
    ("least", usize::MAX),
    ("max", 1),
    ("min", 1),
    ("nth_value", 1),
    ("nullif", 2),
    ("pg_typeof", 1),
    ("sum", 1),
];
/// Functions of rows before and behind: a value, a distance and another value.
const OF_ROWS: &[&str] = &["lag", "lead"];

/// Gives a number that is written down its type; leaves others.
pub fn with_type(expr: &mut Expr) {
    let Some(numeral) = numeral_of(expr) else { return };
    *expr = match (numeral.parse::<i32>(), numeral.parse::<i64>()) {
        (Ok(_), _) => cast(expr.clone(), SqlType::Int(None)),
        (_, Ok(_)) => cast(expr.clone(), SqlType::BigInt(None)),
        _ if is_long(&numeral) => cast(text_literal(numeral), SqlType::DoublePrecision),
        _ => cast(text_literal(numeral), SqlType::Numeric(ExactNumberInfo::None)),
    };
}

/// Whether a number has more digits than a `numeric` keeps here, as that of a float may have.
fn is_long(numeral: &str) -> bool {
    numeral.contains(['e', 'E'])
        && plain_digits(numeral).is_none_or(|plain| PLAIN_DIGITS_MAX < plain.len())
}

/// A number that is written down, as it was before it got a type: what it is compared with has one.
pub fn without_type(expr: &Expr) -> Expr {
    match expr {
        Expr::Cast { expr: inner, .. } if numeral_of(inner).is_some() => (**inner).clone(),
        Expr::Cast { expr: inner, data_type: SqlType::Numeric(ExactNumberInfo::None), .. } => {
            match literal(inner) {
                Some(digits) => Expr::Value(Value::Number(digits, false).into()),
                None => expr.clone(),
            }
        }
        other => other.clone(),
    }
}

/// Digits of a number that is written out where its exponent was.
const PLAIN_DIGITS_MAX: usize = 70;

/// A number with an exponent as one without, or as a float where that is too long.
pub fn without_exponent(digits: &str) -> Expr {
    match plain_digits(digits) {
        Some(plain) if !is_long(digits) => {
            // A point at its end makes no whole number of it.
            let point = if plain.contains('.') { "" } else { "." };
            Expr::Value(Value::Number(format!("{plain}{point}"), false).into())
        }
        _ => cast(text_literal(digits.to_string()), SqlType::DoublePrecision),
    }
}

/// Gives those that a query answers their types.
pub fn selected_with_types(items: &mut [SelectItem]) {
    for item in items {
        if let SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) = item {
            with_type(expr);
        }
    }
}

/// Gives texts and nulls in a column of rows the type that another row says, where DataFusion knows it as a text.
fn texts_with_types(values: &mut Values) {
    let count = values.rows.first().map_or(0, |row| row.content.len());
    for at in 0..count {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
        let Some(wanted) = cells().find_map(type_of_text) else {
            texts_with_one_type(values, at);
            continue;
        };
        for expr in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
            let is_null = matches!(expr, Expr::Value(value) if value.value == Value::Null);
            if is_null || literal(expr).is_some() {
                *expr = cast(expr.clone(), wanted.clone());
            }
        }
    }
}

/// Casts the cells of a VALUES column to the text type of the first cell: DataFusion wants one type for all.
fn texts_with_one_type(values: &mut Values, at: usize) {
    let types = || values.rows.iter().filter_map(|row| row.content.get(at)).map(kind_of_text);
    let Some(wanted) = types().flatten().next() else { return };
    if types().all(|one| one.as_ref() == Some(&wanted))
        || !types().flatten().any(|one| one != SqlType::Text)
    {
        return;
    }
    for expr in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
        if kind_of_text(expr).as_ref() != Some(&wanted) {
            *expr = cast(expr.clone(), wanted.clone());
        }
    }
}

/// The type of texts that an expression is cast to, without its length.
fn kind_of_text(expr: &Expr) -> Option<SqlType> {
    let of = match expr {
        Expr::Nested(inner) => return kind_of_text(inner),
        Expr::Cast { data_type, .. } => data_type,
        Expr::TypedString(typed) => &typed.data_type,
        _ => return None,
    };
    Some(match of {
        SqlType::Text => SqlType::Text,
        SqlType::Varchar(_) | SqlType::CharacterVarying(_) => SqlType::Varchar(None),
        // `char` by itself has one character.
        SqlType::Char(_) | SqlType::Character(_) => {
            SqlType::Custom(ObjectName::from(vec![Ident::new("bpchar")]), Vec::new())
        }
        _ => return None,
    })
}

/// The type that an expression is cast to, if it is one of texts to DataFusion.
fn type_of_text(expr: &Expr) -> Option<SqlType> {
    let of = match expr {
        Expr::Nested(inner) => return type_of_text(inner),
        Expr::Cast { data_type, .. } => data_type,
        Expr::TypedString(typed) => &typed.data_type,
        _ => return None,
    };
    matches!(of, SqlType::JSON | SqlType::JSONB | SqlType::Uuid).then(|| of.clone())
}

/// The same of rows that are written down, alone or in a set operation.
pub fn rows_of_set_with_types(body: &mut SetExpr) {
    match body {
        SetExpr::Values(values) => rows_with_types(values),
        SetExpr::SetOperation { left, right, .. } => {
            rows_of_set_with_types(left);
            rows_of_set_with_types(right);
        }
        _ => {}
    }
}

/// Gives those of rows that are written down their types.
fn rows_with_types(values: &mut Values) {
    texts_with_types(values);
    cells_with_types(values);
    let count = values.rows.first().map_or(0, |row| row.content.len());
    let has_float = |at: usize| {
        values.rows.iter().any(|row| row.content.get(at).is_some_and(|one| is_cast(one, is_float)))
    };
    let floats: Vec<bool> = (0..count).map(has_float).collect();
    let has_jsonb =
        |at: usize| values.rows.iter().any(|row| row.content.get(at).is_some_and(is_jsonb));
    for at in (0..count).filter(|at| has_jsonb(*at)).collect::<Vec<_>>() {
        // The planner wants the same said of all values.
        for expr in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
            if !is_jsonb(expr) {
                *expr = call(JSONB_IN, vec![expr.clone()]);
            }
        }
    }
    for row in &mut values.rows {
        for (expr, is_float) in row.content.iter_mut().zip(&floats) {
            let is_open = numeral_of(expr).is_some() || is_cast(expr, is_numeric);
            match *is_float && is_open {
                // PostgreSQL takes numeric literals beside floats for floats.
                true => *expr = cast(expr.clone(), SqlType::DoublePrecision),
                false => with_type(expr),
            }
        }
    }
}

/// Whether it is a `jsonb` that is written down.
fn is_jsonb(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => is_named(&function.name, JSONB_IN),
        other => is_cast(other, |ty| matches!(ty, SqlType::JSONB | SqlType::JSON)),
    }
}

/// Whether an expression is cast to such a type.
fn is_cast(expr: &Expr, is_one: fn(&SqlType) -> bool) -> bool {
    match expr {
        Expr::Nested(inner) => is_cast(inner, is_one),
        Expr::Cast { data_type, .. } => is_one(data_type),
        Expr::TypedString(typed) => is_one(&typed.data_type),
        _ => false,
    }
}

/// Gives those that `generate_series` counts from and to their types.
pub fn series_with_types(table: &mut TableFactor) {
    let args = match table {
        TableFactor::Table { name, args: Some(called), .. } if is_named(name, SERIES) => {
            &mut called.args
        }
        TableFactor::Function { name, args, .. } if is_named(name, SERIES) => args,
        _ => return,
    };
    for arg in args.iter_mut() {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
            with_type(expr);
        }
    }
}

/// Gives those within an expression whose type is that of its parts their types.
pub fn parts_with_types(expr: &mut Expr) {
    match expr {
        Expr::Array(Array { elem, .. }) => elem.iter_mut().for_each(with_type),
        Expr::Case { conditions, else_result, .. } => {
            conditions.iter_mut().for_each(|one| with_type(&mut one.result));
            else_result.iter_mut().for_each(|one| with_type(one));
        }
        Expr::Function(function) => arguments_with_types(function),
        Expr::UnaryOp { op: UnaryOperator::PGAbs, expr } => with_type(expr),
        _ => {}
    }
}

fn arguments_with_types(function: &mut Function) {
    let of_rows = OF_ROWS.iter().any(|name| is_named(&function.name, name));
    if ["mode", "percentile_disc"].iter().any(|name| is_named(&function.name, name)) {
        function.within_group.iter_mut().for_each(|by| with_type(&mut by.expr));
    }
    let known = OF_ARGUMENTS.iter().find(|(name, _)| is_named(&function.name, name));
    let FunctionArguments::List(list) = &mut function.args else { return };
    for (at, arg) in list.args.iter_mut().enumerate() {
        let is_meant = match known {
            Some((_, count)) => at < *count,
            None => of_rows && at != 1,
        };
        if let (true, FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))) = (is_meant, arg) {
            with_type(expr);
        }
    }
}

/// Reads the signs of intervals and of bits.
pub fn change_sign(expr: &mut Expr) {
    match expr {
        // Without parentheses, the planner would apply the sign to the first part of the interval only.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(**expr, Expr::Interval(_)) => {
            **expr = Expr::Nested(expr.clone());
        }
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: inner } => {
            with_type(inner);
            *expr = call(BIT_NOT, vec![(**inner).clone()]);
        }
        _ => {}
    }
}
