//! Expressions taken apart and put together.

use crate::decimals_of_floats::plain_digits;
use crate::dialect::Postgres;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, TimezoneInfo, UnaryOperator, Value, ValueWithSpan, Visit, Visitor,
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
    Visit::visit(expr, &mut finder).is_break()
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

/// The digits of a number that is written down, without an exponent.
pub fn digits_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => plain_digits(digits),
        Expr::Nested(inner) => digits_of(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => digits_of(expr)
            .filter(|digits| !digits.starts_with('-'))
            .map(|digits| format!("-{digits}")),
        _ => None,
    }
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
