//! Where the order of an expression's rows comes from, told by its tree alone.
//!
//! Sums, extremes and picks depend on the order in which rows come, by the last bit at least. Rows
//! of selectors come in the source's order, which does not depend on the time that is asked for.
//! Rows of most other operations stand where they were first seen, which does: there an aggregation
//! takes them in the order of their labels. So what it gives at a step is the same in any query.

use crate::names_kept::demands_one_name;
use model::METRIC_NAME;
use promql::{Aggregate, AggregateOp, Binary, BinaryOp, Call, Expr, FunctionKind, Grouping};
use promql::{UnaryOp, ValueType};

/// Whether any two rows of an instant vector expression stand to each other as their series do in
/// the source, or there is at most one row.
pub(crate) fn is_source_order(expr: &Expr) -> bool {
    // Rows that lose different names may become one, which stands where the first of them was.
    let stays = |expr: &Expr| is_source_order(expr) && names(expr) != Names::Many;
    match expr {
        Expr::Paren(paren) => is_source_order(&paren.expr),
        Expr::Vector(_) => true,
        Expr::Unary(unary) if unary.op == UnaryOp::Plus => is_source_order(&unary.expr),
        Expr::Unary(unary) => stays(&unary.expr),
        Expr::Binary(binary) => match vector_side(binary) {
            Some(vector) if is_filter(binary) => is_source_order(vector),
            Some(vector) => stays(vector),
            None => false,
        },
        Expr::Aggregate(aggregate) => is_one_row(aggregate),
        Expr::Call(call) => match call.function.kind {
            FunctionKind::Rollup => window(call).is_some_and(|window| match window {
                Expr::Subquery(subquery) => is_source_order(&subquery.expr),
                _ => true,
            }),
            FunctionKind::Math | FunctionKind::Date => {
                let vectors = || call.arguments.iter().filter(|argument| is_vector(argument));
                vectors().all(stays)
            }
            FunctionKind::Absent => true,
            _ => false,
        },
        _ => false,
    }
}

/// What an expression's rows are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// None has a name.
    None,
    /// Those with a name have the same.
    One,
    /// Perhaps several.
    Many,
}

/// What the rows of an instant vector expression are called, whenever names are removed.
pub(crate) fn names(expr: &Expr) -> Names {
    match expr {
        Expr::Paren(paren) => names(&paren.expr),
        Expr::Vector(selector) if demands_one_name(selector) => Names::One,
        Expr::Vector(_) => Names::Many,
        Expr::Unary(unary) if unary.op == UnaryOp::Plus => names(&unary.expr),
        Expr::Binary(binary) => binary_names(binary),
        Expr::Aggregate(aggregate) => aggregate_names(aggregate),
        Expr::Call(call) => call_names(call),
        _ => Names::None,
    }
}

/// The argument of a rollup that is a range vector.
pub(crate) fn window(call: &Call) -> Option<&Expr> {
    let is_window = |argument: &&Expr| argument.value_type() == ValueType::Matrix;
    call.arguments.iter().find(is_window).map(Expr::without_parens)
}

/// What the series of a range vector are called.
pub(crate) fn window_names(window: &Expr) -> Names {
    match window {
        Expr::Matrix(matrix) if demands_one_name(&matrix.selector) => Names::One,
        Expr::Subquery(subquery) => names(&subquery.expr),
        _ => Names::Many,
    }
}

fn call_names(call: &Call) -> Names {
    match call.function.kind {
        FunctionKind::Rollup => window(call).map_or(Names::Many, window_names),
        FunctionKind::Label => match (call.arguments.first(), call.arguments.get(1)) {
            (Some(vector), Some(Expr::String(target)))
                if call.function.name != "info" && target.value != METRIC_NAME =>
            {
                names(vector)
            }
            _ => Names::Many,
        },
        FunctionKind::Sort => call.arguments.first().map_or(Names::Many, names),
        FunctionKind::Absent => Names::One,
        _ => Names::None,
    }
}

fn aggregate_names(aggregate: &Aggregate) -> Names {
    let is_picked = matches!(
        aggregate.op,
        AggregateOp::Topk | AggregateOp::Bottomk | AggregateOp::Limitk | AggregateOp::LimitRatio
    );
    let keeps_name = match &aggregate.grouping {
        Grouping::By(labels) => labels.iter().any(|label| label == METRIC_NAME),
        Grouping::Without(_) => false,
    };
    match aggregate.op {
        AggregateOp::CountValues => Names::Many,
        _ if is_picked || keeps_name => names(&aggregate.expr),
        _ => Names::None,
    }
}

fn binary_names(binary: &Binary) -> Names {
    let both = (names(&binary.left), names(&binary.right));
    let includes_name = binary
        .matching
        .as_ref()
        .is_some_and(|matching| matching.include.iter().any(|label| label == METRIC_NAME));
    match binary.op {
        BinaryOp::Or if both != (Names::None, Names::None) => Names::Many,
        BinaryOp::And | BinaryOp::Unless => both.0,
        _ if includes_name
            || (is_filter(binary) && vector_side(binary).is_none() && !is_same(both)) =>
        {
            Names::Many
        }
        _ if is_filter(binary) => vector_side(binary).map_or(both.0, names),
        _ => Names::None,
    }
}

fn is_same((left, right): (Names, Names)) -> bool {
    left == right && left != Names::Many
}

/// Whether an operation leaves values, and names, as they are.
fn is_filter(binary: &Binary) -> bool {
    binary.op.is_comparison() && !binary.returns_bool
}

/// The vector of an operation of a vector and a number.
fn vector_side(binary: &Binary) -> Option<&Expr> {
    match (is_vector(&binary.left), is_vector(&binary.right)) {
        (true, false) => Some(&binary.left),
        (false, true) => Some(&binary.right),
        _ => None,
    }
}

fn is_vector(expr: &Expr) -> bool {
    expr.value_type() == ValueType::Vector
}

fn is_one_row(aggregate: &Aggregate) -> bool {
    let is_one_group = matches!(&aggregate.grouping, Grouping::By(labels) if labels.is_empty());
    let is_one_of_group = !matches!(
        aggregate.op,
        AggregateOp::Topk
            | AggregateOp::Bottomk
            | AggregateOp::Limitk
            | AggregateOp::LimitRatio
            | AggregateOp::CountValues
    );
    is_one_group && is_one_of_group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_names() {
        use Names::{Many, None, One};
        for (text, is_settled, called) in [
            ("up", true, One),
            ("{job=\"a\"}", true, Many),
            ("rate(x[5m])", true, One),
            ("-rate(x[5m])", true, None),
            ("2 * (x offset 1h) + 1", true, None),
            ("x > 1", true, One),
            ("x > bool 1", true, None),
            ("abs(x)", true, None),
            ("abs({job=\"a\"})", false, None),
            ("{job=\"a\"} > 1", true, Many),
            ("vector(1)", true, None),
            ("hour()", true, None),
            ("absent(x)", true, One),
            ("sum(x)", true, None),
            ("sum by (a) (x)", false, None),
            ("sum by (__name__) ({a=\"b\"})", false, Many),
            ("topk(3, x)", false, One),
            ("count_values(\"v\", x)", false, Many),
            ("x / y", false, None),
            ("x > y", false, One),
            ("x and {a=\"b\"}", false, One),
            ("x or y", false, Many),
            ("sum(x) or vector(0)", false, None),
            ("x * on (a) group_left (__name__) y", false, Many),
            ("max_over_time(rate(x[1m])[5m:1m])", true, One),
            ("max_over_time((sum by (a) (x))[5m:1m])", false, None),
            ("label_replace(x, \"a\", \"$1\", \"b\", \"(.*)\")", false, One),
            ("label_replace(x, \"__name__\", \"$1\", \"b\", \"(.*)\")", false, Many),
            ("histogram_quantile(0.9, x)", false, None),
            ("sort(x)", false, One),
        ] {
            let expr = promql::parse(text).expect(text);
            assert_eq!((is_source_order(&expr), names(&expr)), (is_settled, called), "{text}");
        }
    }
}
