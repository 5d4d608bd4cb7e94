//! Expressions taken apart and put together.

use crate::types::dialect::Postgres;
use crate::types::traversal::walk;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, TimezoneInfo, UnaryOperator, Value, ValueWithSpan, Visitor,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// Aggregates that clients ask of PostgreSQL's own tables.
const AGGREGATES: &[&str] = &[
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "array_agg",
    "string_agg",
    "json_agg",
    "jsonb_agg",
    "bool_or",
    "bool_and",
    "every",
    "bit_and",
    "bit_or",
    "bit_xor",
    "corr",
    "covar_pop",
    "covar_samp",
    "first",
    "json_object_agg",
    "jsonb_object_agg",
    "last",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "regr_count",
    "regr_slope",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "var_pop",
    "var_samp",
    "variance",
    "xmlagg",
];

/// Whether a function is one of PostgreSQL's aggregates.
pub fn is_aggregate(function: &Function) -> bool {
    AGGREGATES.iter().any(|one| is_named(&function.name, one))
}

/// Whether rows become one by an expression, not counting those of subqueries.
pub fn aggregates(expr: &Expr) -> bool {
    let mut finder = Aggregates { queries: 0 };
    walk(expr, &mut finder).is_break()
}

struct Aggregates {
    /// Queries around what is looked at.
    queries: usize,
}

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_found = match expr {
            Expr::Function(function) => function.over.is_none() && is_aggregate(function),
            _ => false,
        };
        match self.queries == 0 && is_found {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

pub fn only_column(select: &mut Select) -> Option<&mut Expr> {
    match select.projection.as_mut_slice() {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => Some(expr),
        _ => None,
    }
}

pub fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let plain = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

pub fn is_named(name: &ObjectName, wanted: &str) -> bool {
    let last = name.0.last().and_then(ObjectNamePart::as_ident);
    last.is_some_and(|ident| ident.value.eq_ignore_ascii_case(wanted))
}

pub fn only_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => Some(expr),
        _ => None,
    }
}

pub fn is_now(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            ["now", "current_timestamp"].iter().any(|name| is_named(&function.name, name))
        }
        _ => false,
    }
}

pub fn is_placeholder(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }))
}

/// A literal's text.
pub fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            Some(text.clone())
        }
        _ => None,
    }
}

/// A number that is written down, with its sign.
pub fn numeral_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => Some(digits.clone()),
        Expr::Nested(inner) => numeral_of(inner),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => numeral_of(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            numeral_of(expr).map(|digits| match digits.strip_prefix('-') {
                Some(plain) => plain.to_string(),
                // A numeral is a `numeric`, whose zero has no sign.
                None if is_zero(&digits) => digits,
                None => format!("-{digits}"),
            })
        }
        _ => None,
    }
}

fn is_zero(numeral: &str) -> bool {
    let mantissa = numeral.split(['e', 'E']).next().unwrap_or_default();
    !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
}

pub fn text_literal(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    let list = FunctionArgumentList {
        duplicate_treatment: None,
        args: args.collect(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The query of a text, which is ours.
pub fn query(text: &str) -> Option<Box<Query>> {
    Parser::new(&Postgres::new(text.len())).try_with_sql(text).ok()?.parse_query().ok()
}

/// A column by the parts of its name, as they are.
pub fn expression_of(parts: &[&str]) -> Expr {
    Expr::CompoundIdentifier(parts.iter().map(|part| Ident::with_quote('"', *part)).collect())
}

pub fn cast(expr: Expr, data_type: SqlType) -> Expr {
    let (kind, array, format) = (CastKind::Cast, false, None);
    Expr::Cast { kind, expr: Box::new(expr), data_type, array, format }
}

pub fn instant() -> SqlType {
    SqlType::Timestamp(None, TimezoneInfo::WithTimeZone)
}

pub fn array_type(of: SqlType) -> SqlType {
    SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(of), None))
}

pub fn text_array() -> SqlType {
    array_type(SqlType::Text)
}

/// Exponents of numbers that are written out.
const EXPONENT_MAX: i32 = 400;

/// A number without an exponent; none of what is no number.
pub fn plain_digits(text: &str) -> Option<String> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    if EXPONENT_MAX < exponent.abs() {
        return None;
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let point = i32::try_from(whole.len()).ok()? + exponent;
    let (whole, fraction) = match usize::try_from(point) {
        Ok(point) if point <= all.len() => (all[..point].to_string(), all[point..].to_string()),
        Ok(point) => (format!("{all}{}", "0".repeat(point - all.len())), String::new()),
        Err(_) => {
            let zeros = "0".repeat(usize::try_from(point.unsigned_abs()).ok()?);
            (String::new(), format!("{zeros}{all}"))
        }
    };
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    Some(match fraction.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{fraction}"),
    })
}

/// The time at which a statement begins.
pub fn now() -> Expr {
    call("now", Vec::new())
}

pub(crate) fn text_or_null(text: Option<String>) -> Expr {
    text.map_or_else(|| Expr::Value(Value::Null.into()), text_literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_written_out() {
        assert_eq!(plain_digits("1.5E3").as_deref(), Some("1500"));
        assert_eq!(plain_digits(".5e-2").as_deref(), Some("0.005"));
        assert_eq!(plain_digits("12").as_deref(), Some("12"));
        assert_eq!(
            (plain_digits("1e999"), plain_digits("x"), plain_digits("")),
            (None, None, None)
        );
    }
}
