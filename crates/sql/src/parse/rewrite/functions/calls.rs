//! Functions of PostgreSQL's and TimescaleDB's that DataFusion has by other names or in other places.

use crate::functions::calendar::making::TIMESTAMP_OF_SECONDS;
use crate::parse::rewrite::expressions::{
    aggregates, arguments, call, cast, is_named, literal, only_column, query, text_literal,
};
use crate::types::casts::cast_functions::JSONB_IN;
use crate::types::time::interval_texts::interval_text;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, GroupByExpr, OrderByExpr, OrderByKind,
    OrderByOptions, Query, SetExpr, TableFactor, UnaryOperator, Value, ValueWithSpan,
};

/// Writes `ARRAY(query)` as a query of the array of all values; none of other calls.
pub fn array_of_query(function: &mut Function) -> Option<Expr> {
    let FunctionArguments::Subquery(query) = &mut function.args else { return None };
    if !gather_in_place(query) {
        **query = gathered_rows(query)?;
    }
    Some(Expr::Subquery(query.clone()))
}

/// Gathers the values of a query that only chooses and orders its rows; false for another query.
fn gather_in_place(query: &mut Query) -> bool {
    let is_plain = query.limit_clause.is_none() && query.fetch.is_none();
    let (SetExpr::Select(select), true) = (&mut *query.body, is_plain) else { return false };
    let is_grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(by, modifiers) => !by.is_empty() || !modifiers.is_empty(),
    };
    if select.distinct.is_some() || is_grouped || select.having.is_some() {
        return false;
    }
    let order = match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(order)) => order.clone(),
        Some(OrderByKind::All(_)) => return false,
        None => Vec::new(),
    };
    let Some(expr) = only_column(select).filter(|expr| !aggregates(expr)) else { return false };
    let order = order.into_iter().map(|mut by| {
        // The first column, which is the only one.
        if matches!(&by.expr, Expr::Value(value) if value.value.to_string() == "1") {
            by.expr = expr.clone();
        }
        by
    });
    let order: Vec<OrderByExpr> = order.collect();
    *expr = gathered("array_agg", expr, order);
    query.order_by = None;
    true
}

/// A query of the array of all values of another query, in its order.
fn gathered_rows(of: &Query) -> Option<Query> {
    let mut outer = query("SELECT array_agg(element) FROM (SELECT 1) AS elements (element)")?;
    if let SetExpr::Select(select) = &mut *outer.body
        && let Some(TableFactor::Derived { subquery, .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
    {
        **subquery = of.clone();
    }
    Some(*outer)
}

fn gathered(name: &str, value: &Expr, order: Vec<OrderByExpr>) -> Expr {
    let mut made = call(name, vec![value.clone()]);
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut made
        && !order.is_empty()
    {
        list.clauses.push(FunctionArgumentClause::OrderBy(order));
    }
    made
}

/// A number with a fraction, written as such, as a whole one: PostgreSQL's `numeric` rounds halves up.
pub fn rounded(expr: &Expr) -> Option<Expr> {
    let expr = if let Expr::Nested(inner) = expr { inner } else { expr };
    let (sign, plain) = match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => ("-", &**expr),
        plain => ("", plain),
    };
    let plain = if let Expr::Nested(inner) = plain { inner } else { plain };
    let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = plain else {
        return None;
    };
    let number: f64 = digits.parse().ok().filter(|_| digits.contains('.'))?;
    let whole = Expr::Value(Value::Number(format!("{:.0}", number.round()), false).into());
    Some(match sign {
        "" => whole,
        _ => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(whole) },
    })
}

/// Functions of PostgreSQL's and TimescaleDB's that DataFusion has by other names.
pub fn renamed(function: &Function) -> Option<Expr> {
    let args = arguments(function)?;
    let is = |name: &str| is_named(&function.name, name);
    match args.as_slice() {
        [] if is("gen_random_uuid") || is("uuid_generate_v4") => {
            Some(cast(call("uuid", Vec::new()), SqlType::Uuid))
        }
        [value] if is("jsonb") => Some(call(JSONB_IN, vec![(*value).clone()])),
        // Two schemas are looked through.
        [Expr::Function(inner), _]
            if is("array_upper") && is_named(&inner.name, "current_schemas") =>
        {
            Some(Expr::Value(Value::Number("2".into(), false).into()))
        }
        [seconds] if is("to_timestamp") => {
            Some(call(TIMESTAMP_OF_SECONDS, vec![(*seconds).clone()]))
        }
        [number] if is("ceiling") => Some(call("ceil", vec![(*number).clone()])),
        [number] if is("sign") => Some(call("signum", vec![(*number).clone()])),
        [array, dimension] if is("array_upper") => {
            Some(call("array_length", vec![(*array).clone(), (*dimension).clone()]))
        }
        [value, time] if is("first") || is("last") => {
            let name = if is("first") { "first_value" } else { "last_value" };
            Some(ordered(name, value, time, function))
        }
        _ => None,
    }
}

/// A text that stands where a width does is an interval.
pub fn width_as_interval(function: &mut Function) {
    if !is_named(&function.name, "time_bucket") {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else { return };
    let interval = SqlType::Interval { fields: None, precision: None };
    if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(width))) = list.args.first_mut()
        && let Some(text) = literal(width)
    {
        *width = cast(text_literal(interval_text(&text)), interval);
    }
}

/// `name(value ORDER BY time)`, filtered and windowed as the call that it stands for; what has no time
/// is left out.
fn ordered(name: &str, value: &Expr, time: &Expr, function: &Function) -> Expr {
    let options = OrderByOptions { asc: Some(true), nulls_first: None };
    let by = OrderByExpr { expr: time.clone(), options, with_fill: None };
    let Expr::Function(mut made) = gathered(name, value, vec![by]) else { return value.clone() };
    let has_time = Expr::IsNotNull(Box::new(time.clone()));
    made.filter = Some(Box::new(match &function.filter {
        None => has_time,
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(filter.clone())),
            op: BinaryOperator::And,
            right: Box::new(has_time),
        },
    }));
    made.over = function.over.clone();
    Expr::Function(made)
}
