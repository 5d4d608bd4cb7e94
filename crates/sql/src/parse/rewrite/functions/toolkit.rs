//! TimescaleDB's Toolkit in words that there are: `counter_agg(..) -> rate()` is `rate(counter_agg(..))`,
//! some of its aggregates are made of PostgreSQL's.

use crate::functions::toolkit::accessors::{STATS, STATS_STDDEV, STATS_SUM, STATS_VARIANCE};
use crate::functions::toolkit::mode::{MODE, MODE_DESCENDING};
use crate::functions::toolkit::percentile::{DESCENDING, PERCENTILE};
use crate::parse::rewrite::expressions::{arguments, call, cast, is_named, literal};
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, ObjectName, OrderByExpr, OrderByOptions,
    Value,
};

/// Functions that ask something of what stands before an arrow, as their only or last argument.
const ASKED_LAST: &[&str] = &["approx_percentile"];
const ASKED_FIRST: &[&str] = &[
    "average",
    "delta",
    "distinct_count",
    "integral",
    "num_changes",
    "num_elements",
    "num_resets",
    "num_vals",
    "rate",
    "stddev",
    "sum",
    "time_delta",
    "variance",
];
/// Those of them that PostgreSQL's aggregates have the names of.
const AGGREGATES: &[(&str, &str)] =
    &[("stddev", STATS_STDDEV), ("sum", STATS_SUM), ("variance", STATS_VARIANCE)];

/// `summary -> question()` as `question(summary)`; none of other arrows.
pub fn asked(op: &BinaryOperator, summary: &Expr, question: &Expr) -> Option<Function> {
    let (BinaryOperator::Arrow, Expr::Function(question)) = (op, question) else { return None };
    let is_one = |all: &[&str]| all.iter().any(|name| is_named(&question.name, name));
    let (first, last) = (is_one(ASKED_FIRST), is_one(ASKED_LAST));
    let mut made = question.clone();
    let FunctionArguments::List(list) = &mut made.args else { return None };
    // With arguments it is PostgreSQL's, which says what a `jsonb` is asked for.
    if is_named(&question.name, "sum") && !list.args.is_empty() {
        return None;
    }
    let summary = FunctionArg::Unnamed(FunctionArgExpr::Expr(summary.clone()));
    match (first, last) {
        (true, _) => list.args.insert(0, summary),
        (_, true) => list.args.push(summary),
        _ => return None,
    }
    if let Some((_, own)) = AGGREGATES.iter().find(|(name, _)| is_named(&question.name, name)) {
        made.name = ObjectName::from(vec![Ident::new(*own)]);
    }
    Some(made)
}

/// A call in other words; none where it has none.
///
/// # Errors
/// Where what there is does not do.
pub fn rephrased(function: &Function) -> Result<Option<Expr>, SqlError> {
    let is = |name: &str| is_named(&function.name, name);
    if is("percentile_disc") {
        return percentile_disc(function).map(Some);
    }
    if is("percentile_cont") {
        return percentile_cont(function).map(Some);
    }
    let Some(args) = arguments(function) else { return Ok(None) };
    Ok(match args.as_slice() {
        [value] if is("stats_agg") => Some(stats(function, value)),
        [_, _] if is("stats_agg") => {
            return Err(SqlError::unsupported("stats_agg of two values is not known here"));
        }
        [method, time, value] if is("time_weight") => {
            let name = match literal(method).map(|text| text.to_ascii_lowercase()).as_deref() {
                Some("locf") => "time_weight_locf",
                Some("linear") => "time_weight_linear",
                _ => {
                    return Err(SqlError::wrong_value(
                        "time_weight: 'LOCF' or 'Linear' comes first",
                    ));
                }
            };
            Some(like(function, name, vec![(*time).clone(), (*value).clone()]))
        }
        [value] if is("variance") && !is_stats(value) => {
            Some(like(function, "var_samp", vec![(*value).clone()]))
        }
        [value] if is("percentile_agg") => Some(like(
            function,
            "uddsketch",
            vec![number("200"), number("0.001"), (*value).clone()],
        )),
        [size, value] if is("tdigest") => Some(like(
            function,
            "uddsketch",
            vec![(*size).clone(), number("0.001"), (*value).clone()],
        )),
        [value] if is("approx_count_distinct") => Some(distinct(function, value)),
        [_, value] if is("hyperloglog") => Some(distinct(function, value)),
        [count] if is("distinct_count") && is_distinct(count) => Some((*count).clone()),
        [first, ..] if is_stats(first) => {
            let own = AGGREGATES.iter().find(|(name, _)| is(name));
            own.map(|(_, own)| like(function, own, args.into_iter().cloned().collect()))
        }
        _ if is("asap_smooth") => {
            let words = format!("{} is not known here", function.name);
            let hint = "lttb, or time_bucket with avg, min or max, makes fewer points of many.";
            return Err(SqlError::unsupported(words).with_hint(hint));
        }
        _ => None,
    })
}

fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.into(), false).into())
}

/// Another call, filtered and windowed as one that there is, and of values chosen and ordered so.
pub fn like(function: &Function, name: &str, args: Vec<Expr>) -> Expr {
    let mut made = call(name, args);
    if let Expr::Function(made) = &mut made {
        if let (FunctionArguments::List(of), FunctionArguments::List(list)) =
            (&function.args, &mut made.args)
        {
            list.duplicate_treatment = of.duplicate_treatment;
            list.clauses.clone_from(&of.clauses);
        }
        made.filter.clone_from(&function.filter);
        made.over.clone_from(&function.over);
    }
    made
}

/// Aggregates that say the same of values in whatever order. DataFusion's take what values are ordered
/// by for one more value, and `count` leaves out rows where that is null.
const UNORDERED: &[&str] = &[
    "avg",
    "bool_and",
    "bool_or",
    "count",
    "every",
    "max",
    "min",
    "stats_agg",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Leaves out an order of values where there is none to heed.
pub fn unordered(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if UNORDERED.iter().any(|name| is_named(&function.name, name)) {
        list.clauses.retain(|clause| !matches!(clause, FunctionArgumentClause::OrderBy(_)));
    }
}

fn stats(function: &Function, value: &Expr) -> Expr {
    let value = cast(value.clone(), SqlType::DoublePrecision);
    let names = ["count", "sum", "avg", "var_pop", "var_samp"];
    call(STATS, names.map(|name| like(function, name, vec![value.clone()])).into())
}

/// Values are counted by their texts: not all of them are known to be counted otherwise.
fn distinct(function: &Function, value: &Expr) -> Expr {
    let text = cast(value.clone(), SqlType::Text);
    cast(like(function, "approx_distinct", vec![text]), SqlType::BigInt(None))
}

fn is_stats(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if is_named(&function.name, STATS))
}

fn is_distinct(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { expr, .. } => {
            matches!(&**expr, Expr::Function(inner) if is_named(&inner.name, "approx_distinct"))
        }
        _ => false,
    }
}

/// The share and the order of `name(share) WITHIN GROUP (ORDER BY one value)`.
fn ordered_set<'f>(
    function: &'f Function,
    name: &str,
) -> Result<(&'f Expr, &'f OrderByExpr), SqlError> {
    let args = arguments(function);
    let (Some(&[share]), [order]) = (args.as_deref(), function.within_group.as_slice()) else {
        let words = format!("{name}(share) WITHIN GROUP (ORDER BY one value) is what there is");
        return Err(SqlError::new("42883", words));
    };
    let FunctionArguments::List(list) = &function.args else { return Ok((share, order)) };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return Err(SqlError::invalid("cannot use DISTINCT or ORDER BY with WITHIN GROUP"));
    }
    if function.over.is_some() {
        return Err(SqlError::unsupported("OVER is not supported for ordered-set aggregates"));
    }
    Ok((share, order))
}

/// `name() WITHIN GROUP (ORDER BY one value)` as another aggregate of that value; from the largest on where the
/// order is so.
///
/// # Errors
/// When it has another shape.
pub fn ordered(function: &Function, name: &str, ascending: &str) -> Result<Expr, SqlError> {
    let args = arguments(function);
    let (Some(&[]), [order]) = (args.as_deref(), function.within_group.as_slice()) else {
        let words = format!("{name}() WITHIN GROUP (ORDER BY one value) is what there is");
        return Err(SqlError::new("42883", words));
    };
    if function.over.is_some() {
        return Err(SqlError::unsupported("OVER is not supported for ordered-set aggregates"));
    }
    let descending = if ascending == MODE { MODE_DESCENDING } else { ascending };
    let own = if order.options.asc == Some(false) { descending } else { ascending };
    Ok(like(function, own, vec![order.expr.clone()]))
}

/// A number that stands for a share of all; none where it is not written down.
fn said_share(share: &Expr) -> Result<Option<f64>, SqlError> {
    let Expr::Value(value) = share else { return Ok(None) };
    let Ok(said) = value.value.to_string().parse::<f64>() else { return Ok(None) };
    if !(0.0..=1.0).contains(&said) {
        let words = format!("percentile value {said} is not between 0 and 1");
        return Err(SqlError::new("22003", words));
    }
    Ok(Some(said))
}

/// What lies at a share of all values, between two of them where there is none.
fn percentile_cont(function: &Function) -> Result<Expr, SqlError> {
    let (share, order) = ordered_set(function, "percentile_cont")?;
    said_share(share)?;
    let name = if order.options.asc == Some(false) { DESCENDING } else { PERCENTILE };
    let share = cast(share.clone(), SqlType::DoublePrecision);
    Ok(like(function, name, vec![order.expr.clone(), share]))
}

/// The first value at or behind a share of all: of those in their order, the one at that place.
fn percentile_disc(function: &Function) -> Result<Expr, SqlError> {
    let (share, order) = ordered_set(function, "percentile_disc")?;
    if said_share(share)?.is_none() {
        let words = "percentile_disc is known of one number between 0 and 1";
        return Err(SqlError::unsupported(words));
    }
    let is_value = Expr::IsNotNull(Box::new(order.expr.clone()));
    let filter = match &function.filter {
        None => is_value,
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(filter.clone())),
            op: BinaryOperator::And,
            right: Box::new(is_value),
        },
    };
    let filtered = Function { filter: Some(Box::new(filter)), over: None, ..function.clone() };
    let options = OrderByOptions { asc: order.options.asc.or(Some(true)), nulls_first: None };
    let by = OrderByExpr { expr: order.expr.clone(), options, with_fill: None };
    let mut all = like(&filtered, "array_agg", vec![order.expr.clone()]);
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut all {
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![by]));
    }
    let count = cast(like(&filtered, "count", vec![order.expr.clone()]), SqlType::DoublePrecision);
    let product = Expr::BinaryOp {
        left: Box::new(share.clone()),
        op: BinaryOperator::Multiply,
        right: Box::new(count),
    };
    let place = cast(call("ceil", vec![product]), SqlType::BigInt(None));
    let index = call("greatest", vec![place, number("1")]);
    // Brackets would be planned as a place that is known before there are rows.
    Ok(call("array_element", vec![all, index]))
}
