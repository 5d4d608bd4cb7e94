//! Functions of PostgreSQL's and TimescaleDB's that DataFusion has by other names or in other places.

use super::expressions::{
    arguments, call, cast, instant, is_named, literal, only_column, text_literal,
};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Function, FunctionArgumentClause, FunctionArguments,
    LimitClause, OrderByExpr, OrderByOptions, Select, SelectItem, SetExpr, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// `ARRAY(query)` is `(query for the array of all)`.
pub fn array_of_query(function: &mut Function) -> Option<Expr> {
    let FunctionArguments::Subquery(query) = &mut function.args else { return None };
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let expr = only_column(select)?;
    *expr = call("array_agg", vec![expr.clone()]);
    query.order_by = None;
    Some(Expr::Subquery(query.clone()))
}

/// Functions of PostgreSQL's and TimescaleDB's that DataFusion has by other names.
pub fn renamed(function: &Function) -> Option<Expr> {
    let args = arguments(function)?;
    let is = |name: &str| is_named(&function.name, name);
    match args.as_slice() {
        // Two schemas are looked through.
        [Expr::Function(inner), _]
            if is("array_upper") && is_named(&inner.name, "current_schemas") =>
        {
            Some(Expr::Value(Value::Number("2".into(), false).into()))
        }
        [number] if is("sign") => Some(call("signum", vec![(*number).clone()])),
        [array, dimension] if is("array_upper") => {
            Some(call("array_length", vec![(*array).clone(), (*dimension).clone()]))
        }
        [width, time] if is("time_bucket") => {
            let origin = match literal(width).or_else(|| interval_of(width)) {
                Some(text) if text.contains("mon") || text.contains("year") => "2000-01-01",
                // A Monday: buckets of weeks begin with one.
                _ => "2000-01-03",
            };
            let width = match literal(width) {
                Some(_) => {
                    cast((*width).clone(), SqlType::Interval { fields: None, precision: None })
                }
                None => (*width).clone(),
            };
            let origin = cast(text_literal(origin.into()), instant());
            Some(call("date_bin", vec![width, (*time).clone(), origin]))
        }
        [value, time] if is("first") || is("last") => {
            let name = if is("first") { "first_value" } else { "last_value" };
            Some(ordered(name, value, time, function))
        }
        _ => None,
    }
}

pub fn interval_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Interval(interval) => {
            let unit = interval.leading_field.as_ref().map(ToString::to_string);
            let unit = unit.unwrap_or_default().to_ascii_lowercase();
            Some(format!("{} {unit}", literal(&interval.value)?.to_ascii_lowercase()))
        }
        Expr::Cast { expr, .. } | Expr::Nested(expr) => interval_of(expr).or_else(|| literal(expr)),
        _ => None,
    }
}

/// `name(value ORDER BY time)`, filtered and windowed as the call that it stands for.
pub fn ordered(name: &str, value: &Expr, time: &Expr, function: &Function) -> Expr {
    let Expr::Function(mut made) = call(name, vec![value.clone()]) else {
        return value.clone();
    };
    if let FunctionArguments::List(list) = &mut made.args {
        let options = OrderByOptions { asc: Some(true), nulls_first: None };
        let by = OrderByExpr { expr: time.clone(), options, with_fill: None };
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![by]));
    }
    made.filter = function.filter.clone();
    made.over = function.over.clone();
    Expr::Function(made)
}

/// `SELECT EXISTS (query)` as `SELECT (SELECT count(*) <> 0 FROM (query LIMIT 1))`: DataFusion knows
/// the first in conditions alone.
pub fn exists_as_count(select: &mut Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        let Expr::Exists { subquery, negated } = expr else { continue };
        let mut inner = subquery.clone();
        if inner.limit_clause.is_none() {
            let limit = Some(Expr::Value(Value::Number("1".into(), false).into()));
            let limit = LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() };
            inner.limit_clause = Some(limit);
        }
        let sign = if *negated { "=" } else { "<>" };
        let text = format!("SELECT (SELECT count(*) {sign} 0 FROM ({inner}) AS found)");
        let mut parser = match Parser::new(&PostgreSqlDialect {}).try_with_sql(&text) {
            Ok(parser) => parser,
            Err(_) => continue,
        };
        let Ok(made) = parser.parse_query() else { continue };
        if let SetExpr::Select(made) = *made.body
            && let Some(SelectItem::UnnamedExpr(made)) = made.projection.into_iter().next()
        {
            *expr = made;
        }
    }
}

/// `to_timestamp(seconds)`, to the nearest microsecond.
pub fn instant_of_seconds(seconds: Expr) -> Expr {
    let micros = Expr::BinaryOp {
        left: Box::new(cast(seconds, SqlType::DoublePrecision)),
        op: BinaryOperator::Multiply,
        right: Box::new(Expr::Value(Value::Number("1000000".into(), false).into())),
    };
    let micros = cast(call("round", vec![micros]), SqlType::BigInt(None));
    cast(call("to_timestamp_micros", vec![micros]), instant())
}
