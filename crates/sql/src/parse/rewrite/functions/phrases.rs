//! Phrases that people type to PostgreSQL and that are calls of functions here: `extract(..)`,
//! `AT TIME ZONE`, `SIMILAR TO`, `json_agg`, percentiles of several shares.

use crate::functions::text::like_patterns::DOT_IS_ANY;
use crate::parse::rewrite::expressions::{arguments, call, cast, is_named, literal, text_literal};
use crate::parse::rewrite::functions::hypothetical::hypothetical;
use crate::parse::rewrite::functions::toolkit;
use crate::parse::rewrite::open_arguments::not_unique;
use crate::parse::rewrite::values::arithmetic::calculated;
use crate::types::casts::cast_functions::JSONB_IN;

use crate::functions::arrays::array_sets::OVERLAPS;
use crate::functions::arrays::array_slices::DIMENSIONS;
use crate::functions::calendar::TIMEZONE;
use crate::functions::calendar::fields::EXTRACT;
use crate::functions::calendar::making::INTERVAL_PARTS;
use crate::functions::json::json_gathered::{ARRAY_OF, JSON_ARRAY_OF, OBJECT_OF};
use crate::functions::json::jsonb_makers::JSON_ROW;
use crate::functions::templates::conversions_by_template::TIMESTAMP_BY;
use crate::functions::text::identifiers::STRIP_NULLS;
use crate::functions::text::regexps::{SIMILAR, similar};
use crate::functions::text::unicode_forms::{FORMS, IS_NORMALIZED, NORMALIZE};
use crate::functions::toolkit::mode::MODE;
use crate::parse::rewrite::queries::windows::computed_default;
use crate::parse::rewrite::types::rounded_time;
use crate::types::error::SqlError;
use crate::types::names::name_of_last;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, CaseWhen, DataType as SqlType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, TimezoneInfo, TrimWhereField, UnaryOperator, Value,
    ValueWithSpan,
};

/// Returns true for an expression of type `xid`.
fn is_transaction(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_transaction(inner),
        Expr::Cast { data_type: SqlType::Custom(name, _), .. } => is_named(name, "xid"),
        Expr::Identifier(name) => name.value.ends_with("frozenxid"),
        Expr::CompoundIdentifier(parts) => {
            parts.last().is_some_and(|name| name.value.ends_with("frozenxid"))
        }
        _ => false,
    }
}

/// A phrase in other words, if it is one.
///
/// # Errors
/// When it makes no sense.
pub fn phrase(expr: &Expr) -> Result<Option<Expr>, SqlError> {
    Ok(match expr {
        Expr::Extract { field, expr, .. } => {
            if literal(expr).is_some() {
                return Err(not_unique("pg_catalog.extract", 2));
            }
            let field = field.to_string().trim_matches(['"', '\'']).to_lowercase();
            Some(call(EXTRACT, vec![text_literal(field), (**expr).clone()]))
        }
        // DataFusion compares the part with the text at each character.
        Expr::Position { expr, r#in } => {
            Some(call("strpos", vec![(**r#in).clone(), (**expr).clone()]))
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            Some(call(TIMEZONE, vec![(**time_zone).clone(), (**timestamp).clone()]))
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let op = match negated {
                true => BinaryOperator::PGRegexNotMatch,
                false => BinaryOperator::PGRegexMatch,
            };
            let pattern = similar_pattern(pattern, escape_char.as_ref())?;
            Some(Expr::Nested(Box::new(Expr::BinaryOp {
                left: expr.clone(),
                op,
                right: Box::new(pattern),
            })))
        }
        // The first part in parentheses, or all that matches.
        Expr::Substring { expr, substring_from: Some(pattern), substring_for: None, .. }
            if literal(pattern).is_some() =>
        {
            let found = call("regexp_match", vec![(**expr).clone(), (**pattern).clone()]);
            let first = Expr::Value(Value::Number("1".into(), false).into());
            Some(call("array_element", vec![found, first]))
        }
        // `substring` takes `bytea` and text.
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            let one = || Expr::Value(Value::Number("1".into(), false).into());
            let from = substring_from.as_ref().map_or_else(one, |from| (**from).clone());
            let count = substring_for.as_ref().map(|count| (**count).clone());
            Some(call("substr", [(**expr).clone(), from].into_iter().chain(count).collect()))
        }
        Expr::Trim { expr, trim_where, trim_what, trim_characters: None } => {
            let name = match trim_where {
                Some(TrimWhereField::Leading) => "ltrim",
                Some(TrimWhereField::Trailing) => "rtrim",
                Some(TrimWhereField::Both) | None => "btrim",
            };
            let characters = trim_what.as_ref().map(|one| (**one).clone());
            Some(call(name, [(**expr).clone()].into_iter().chain(characters).collect()))
        }
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let args = [(**expr).clone(), (**overlay_what).clone(), (**overlay_from).clone()];
            let count = overlay_for.as_ref().map(|count| (**count).clone());
            Some(call("overlay", args.into_iter().chain(count).collect()))
        }
        Expr::Identifier(ident) if ident.quote_style.is_none() => word(&ident.value),
        Expr::Function(Function { name, args: FunctionArguments::None, .. }) => {
            word(&name_of_last(name))
        }
        Expr::Function(function) => called(function)?,
        other => operator_phrase(other),
    })
}

/// An operator as the function that does its work.
fn operator_phrase(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::PGAbs, expr } => {
            Some(call("abs", vec![(**expr).clone()]))
        }
        Expr::UnaryOp { op: UnaryOperator::PGSquareRoot, expr } => {
            Some(call("sqrt", vec![cast((**expr).clone(), SqlType::DoublePrecision)]))
        }
        Expr::UnaryOp { op: UnaryOperator::PGCubeRoot, expr } => {
            Some(call("cbrt", vec![cast((**expr).clone(), SqlType::DoublePrecision)]))
        }
        // `&&` of arrays and of texts.
        Expr::BinaryOp { left, op: BinaryOperator::PGOverlap, right } => {
            Some(call(OVERLAPS, vec![(**left).clone(), (**right).clone()]))
        }
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            Some(call("starts_with", vec![(**left).clone(), (**right).clone()]))
        }
        Expr::IsNormalized { expr, form, negated } => {
            let form = form.as_ref().map_or_else(|| "NFC".to_string(), |form| form.to_string());
            let says = call(IS_NORMALIZED, vec![(**expr).clone(), text_literal(form)]);
            Some(match negated {
                true => Expr::Nested(Box::new(Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr: Box::new(says),
                })),
                false => says,
            })
        }
        _ => None,
    }
}

/// Words that are calls of functions without parentheses.
fn word(name: &str) -> Option<Expr> {
    match name.to_ascii_lowercase().as_str() {
        "localtime" => Some(cast(clock_now(), SqlType::Time(None, TimezoneInfo::None))),
        "localtimestamp" => Some(clock_now()),
        "current_schema" => Some(call("current_schema", Vec::new())),
        "current_role" => Some(call("current_role", Vec::new())),
        _ => None,
    }
}

/// What the session's clock says.
fn clock_now() -> Expr {
    cast(crate::parse::rewrite::expressions::now(), SqlType::Timestamp(None, TimezoneInfo::None))
}

/// The regular expression that a pattern of `SIMILAR TO` is.
fn similar_pattern(pattern: &Expr, escape: Option<&ValueWithSpan>) -> Result<Expr, SqlError> {
    let said = escape.map(|one| one.value.clone().into_string().unwrap_or_default());
    match literal(pattern) {
        Some(text) => {
            let escape = said.map_or(Some('\\'), |said| said.chars().next());
            Ok(text_literal(format!("{DOT_IS_ANY}{}", similar(&text, escape)?)))
        }
        None => {
            let escape = said.map(text_literal);
            Ok(call(SIMILAR, [pattern.clone()].into_iter().chain(escape).collect()))
        }
    }
}

fn called(function: &Function) -> Result<Option<Expr>, SqlError> {
    let is = |name: &str| is_named(&function.name, name);
    if is("make_interval") {
        return interval_of_parts(function);
    }
    if is("mode") && !function.within_group.is_empty() {
        return toolkit::ordered(function, "mode", MODE).map(Some);
    }
    if is("percentile_cont") || is("percentile_disc") {
        return Ok(percentiles(function));
    }
    if let Some(place) = hypothetical(function)? {
        return Ok(Some(place));
    }
    let Some(args) = arguments(function) else { return Ok(None) };
    let known = calculated(function, &args)
        .or_else(|| of_arrays(function, &args))
        .or_else(|| truncated(function, &args))
        .or_else(|| json_call(function, &args));
    if let Some(known) = known {
        return Ok(Some(known));
    }
    Ok(match args.as_slice() {
        [text] if is(NORMALIZE) => {
            Some(call(NORMALIZE, vec![(*text).clone(), text_literal("NFC".into())]))
        }
        [text, Expr::Identifier(form)] if is(NORMALIZE) => {
            let form = form.value.to_ascii_uppercase();
            if !FORMS.contains(&form.as_str()) {
                return Err(SqlError::invalid(format!("syntax error at or near \"{form}\"")));
            }
            Some(call(NORMALIZE, vec![(*text).clone(), text_literal(form)]))
        }
        [value] if is("every") => Some(toolkit::like(function, "bool_and", vec![(*value).clone()])),
        [value] if is("quote_nullable") => {
            let quoted = call("quote_literal", vec![(*value).clone()]);
            Some(call("coalesce", vec![quoted, text_literal("NULL".into())]))
        }
        [value] if is("date") => Some(cast((*value).clone(), SqlType::Date)),
        [value] if is("age") && is_transaction(value) => {
            let number = |expr: Expr| cast(expr, SqlType::Int(None));
            Some(Expr::Nested(Box::new(Expr::BinaryOp {
                left: Box::new(number(call("txid_current", Vec::new()))),
                op: BinaryOperator::Minus,
                right: Box::new(number((*value).clone())),
            })))
        }
        [value] if is("age") => {
            let today = call("current_date", Vec::new());
            Some(call("age", vec![today, (*value).clone()]))
        }
        [text, template] if is("to_timestamp") => {
            Some(call(TIMESTAMP_BY, vec![(*text).clone(), (*template).clone()]))
        }
        [one] if is("pg_typeof") && literal(one).is_some() => Some(text_literal("unknown".into())),
        [] if is("clock_timestamp") || is("statement_timestamp") || is("transaction_timestamp") => {
            Some(crate::parse::rewrite::expressions::now())
        }
        [] if is("localtimestamp") || is("localtime") => word(&name_of_last(&function.name)),
        [digits] => return now_with_digits(&name_of_last(&function.name), digits),
        [value, offset, default] if is("lag") || is("lead") => {
            computed_default(function, value, offset, default)
        }
        _ => None,
    })
}

/// `current_timestamp(2)` and its like, rounded to so many digits of a second.
fn now_with_digits(name: &str, digits: &Expr) -> Result<Option<Expr>, SqlError> {
    let (is_time, zone) = match name {
        "current_timestamp" => (false, TimezoneInfo::WithTimeZone),
        "localtimestamp" => (false, TimezoneInfo::None),
        "localtime" => (true, TimezoneInfo::None),
        _ => return Ok(None),
    };
    let count = match digits {
        Expr::Value(value) => value.to_string().parse().ok(),
        _ => None,
    };
    let Some(count) = count else {
        return Err(SqlError::invalid(format!("{name} takes a number of digits, not {digits}")));
    };
    let instant = match zone {
        TimezoneInfo::WithTimeZone => crate::parse::rewrite::expressions::now(),
        _ => clock_now(),
    };
    let data_type = match is_time {
        true => SqlType::Time(Some(count), zone),
        false => SqlType::Timestamp(Some(count), zone),
    };
    Ok(Some(rounded_time(&instant, &data_type).unwrap_or_else(|| cast(instant, data_type))))
}

/// Functions of `json` as those of `jsonb`.
fn json_call(function: &Function, args: &[&Expr]) -> Option<Expr> {
    let is = |name: &str| is_named(&function.name, name);
    match args {
        [value] if is("json_agg") => {
            let json = call("to_json", vec![(*value).clone()]);
            Some(call(JSON_ARRAY_OF, vec![toolkit::like(function, "array_agg", vec![json])]))
        }
        [value] if is("jsonb_agg") => {
            let json = call("to_jsonb", vec![(*value).clone()]);
            Some(call(ARRAY_OF, vec![toolkit::like(function, "array_agg", vec![json])]))
        }
        [key, value] if is("json_object_agg") || is("jsonb_object_agg") => {
            let pair = call("jsonb_build_array", vec![(*key).clone(), (*value).clone()]);
            Some(call(OBJECT_OF, vec![toolkit::like(function, "array_agg", vec![pair])]))
        }
        all if is("json_extract_path") || is("json_extract_path_text") => {
            let name = match is("json_extract_path") {
                true => "jsonb_extract_path",
                false => "jsonb_extract_path_text",
            };
            Some(call(name, all.iter().map(|one| (*one).clone()).collect()))
        }
        all if is("json_object") => {
            Some(call("jsonb_object", all.iter().map(|one| (*one).clone()).collect()))
        }
        [value] if is("json_strip_nulls") || is("jsonb_strip_nulls") => {
            let value = call(JSONB_IN, vec![(*value).clone()]);
            Some(call(JSONB_IN, vec![call(STRIP_NULLS, vec![value])]))
        }
        [Expr::Function(row)] if is("row_to_json") && is_named(&row.name, "row") => {
            arguments(row).map(|fields| object_of_fields(&fields))
        }
        [Expr::Tuple(fields)] if is("row_to_json") => {
            Some(object_of_fields(&fields.iter().collect::<Vec<_>>()))
        }
        [value] if is("row_to_json") || is("array_to_json") => {
            Some(call("to_json", vec![(*value).clone()]))
        }
        [value] if is("json_array_length") => {
            Some(call("jsonb_array_length", vec![(*value).clone()]))
        }
        [value] if is("json_typeof") => Some(call("jsonb_typeof", vec![(*value).clone()])),
        _ => None,
    }
}

/// The object of a row, whose fields have no names.
fn object_of_fields(fields: &[&Expr]) -> Expr {
    let member =
        |(at, field): (usize, &&Expr)| [text_literal(format!("f{}", at + 1)), (**field).clone()];
    call(JSON_ROW, fields.iter().enumerate().flat_map(member).collect())
}

/// Calls about arrays, and about NULL among values.
fn of_arrays(function: &Function, args: &[&Expr]) -> Option<Expr> {
    let is = |name: &str| is_named(&function.name, name);
    match args {
        [array, dimension] if is("array_lower") => {
            let length = call("array_length", vec![(*array).clone(), (*dimension).clone()]);
            // 1 where the array has such a dimension.
            let number = |one: &str| {
                let one = Expr::Value(Value::Number(one.into(), false).into());
                Box::new(cast(one, SqlType::Int(None)))
            };
            let operation = |left, op, right| {
                Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right }))
            };
            let none = operation(length, BinaryOperator::Multiply, number("0"));
            Some(operation(none, BinaryOperator::Plus, number("1")))
        }
        [array] if is("array_dims") => Some(call(DIMENSIONS, vec![(*array).clone()])),
        [array, value] if is("array_remove") && is_null(value) => {
            Some(call("array_compact", vec![(*array).clone()]))
        }
        [array, value] if is("array_remove") => {
            let removed = call("array_remove_all", vec![(*array).clone(), (*value).clone()]);
            Some(match value {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Expr::Case {
                    case_token: AttachedToken::empty(),
                    end_token: AttachedToken::empty(),
                    operand: None,
                    conditions: vec![CaseWhen {
                        condition: Expr::IsNull(Box::new((*value).clone())),
                        result: call("array_compact", vec![(*array).clone()]),
                    }],
                    else_result: Some(Box::new(removed)),
                },
                _ => removed,
            })
        }
        [array, from, to] if is("array_replace") => {
            let args = vec![(*array).clone(), (*from).clone(), (*to).clone()];
            Some(call("array_replace_all", args))
        }
        [_, ..] if is("num_nulls") => Some(count_of_nulls(args, true)),
        [_, ..] if is("num_nonnulls") => Some(count_of_nulls(args, false)),
        _ => None,
    }
}

/// `date_trunc` in a zone.
fn truncated(function: &Function, args: &[&Expr]) -> Option<Expr> {
    match args {
        [unit, time, zone] if is_named(&function.name, "date_trunc") => {
            let clock = call(TIMEZONE, vec![(*zone).clone(), (*time).clone()]);
            let truncated = call("date_trunc", vec![(*unit).clone(), clock]);
            Some(call(TIMEZONE, vec![(*zone).clone(), truncated]))
        }
        _ => None,
    }
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => value.value == Value::Null,
        Expr::Nested(inner) => is_null(inner),
        Expr::Cast { expr, .. } => is_null(expr),
        _ => false,
    }
}

/// How many of some values are NULL, or are not.
fn count_of_nulls(args: &[&Expr], counts_null: bool) -> Expr {
    let one = |arg: &&Expr| {
        let value = Box::new(Expr::Nested(Box::new((**arg).clone())));
        let is_counted = if counts_null { Expr::IsNull(value) } else { Expr::IsNotNull(value) };
        cast(Expr::Nested(Box::new(is_counted)), SqlType::Int(None))
    };
    let sum = args.iter().map(one).reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::Plus,
        right: Box::new(right),
    });
    sum.map_or_else(|| Expr::Value(Value::Null.into()), |sum| Expr::Nested(Box::new(sum)))
}

/// The rows of a list that a function makes.
pub fn rows(list: &str, args: &[&Expr]) -> Expr {
    call("unnest", vec![call(list, args.iter().map(|one| (*one).clone()).collect())])
}

/// `make_interval(days => 3)` with all parts in their places.
fn interval_of_parts(function: &Function) -> Result<Option<Expr>, SqlError> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    if !list.args.iter().any(|arg| !matches!(arg, FunctionArg::Unnamed(_))) {
        return Ok(None);
    }
    let nothing = || Expr::Value(Value::Number("0".into(), false).into());
    let mut parts: Vec<Expr> = INTERVAL_PARTS.iter().map(|_| nothing()).collect();
    for (at, arg) in list.args.iter().enumerate() {
        let (place, value) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(at), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                let is_one = |part: &str| name.value.eq_ignore_ascii_case(part);
                (INTERVAL_PARTS.iter().position(|part| is_one(part)), value)
            }
            _ => return Ok(None),
        };
        let place = place.and_then(|place| parts.get_mut(place));
        let Some(place) = place else {
            let words = "function make_interval with such arguments does not exist";
            return Err(SqlError::new("42883", words));
        };
        *place = value.clone();
    }
    Ok(Some(call("make_interval", parts)))
}

/// Percentiles of several shares are an array of those of each.
fn percentiles(function: &Function) -> Option<Expr> {
    let args = arguments(function)?;
    let [share] = args.as_slice() else { return None };
    let shares = shares_of(share)?;
    let each = |share: Expr| {
        let mut one = function.clone();
        if let FunctionArguments::List(list) = &mut one.args {
            list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(share))];
        }
        toolkit::rephrased(&one).ok().flatten()
    };
    let elem: Option<Vec<Expr>> = shares.into_iter().map(each).collect();
    Some(Expr::Array(Array { elem: elem?, named: true }))
}

/// The shares that are written down as an array.
fn shares_of(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Array(array) => Some(array.elem.clone()),
        Expr::Nested(inner) => shares_of(inner),
        Expr::Cast { expr, .. } => shares_of(expr),
        other => {
            let all = crate::types::text::array_literals::array_of(&literal(other)?)?;
            let number = |one: String| Expr::Value(Value::Number(one, false).into());
            all.into_iter().map(|one| one.map(number)).collect()
        }
    }
}
