//! Expressions as texts and as trees: `/api/v1/format_query`, `/api/v1/parse_query`,
//! `/prettify-query`, `/expand-with-exprs`. Trees have the shape of Prometheus' page.

use crate::http::answer::Answer;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use model::Matcher;
use net::failure::Failure;
use promql::{
    Aggregate, Arity, At, Binary, BinaryOp, Call, Cardinality, Dialect, DurationExpr, DurationKind,
    Edges, Expr, Grouping, VectorSelector,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// `/api/v1/format_query`: the expression as the parser understands it.
pub fn format_query(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    Ok(Answer::success(json!(formatted(app, request)?)))
}

/// `/prettify-query`: the same in the shape of VictoriaMetrics.
pub fn prettify(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let text = formatted(app, request)?;
    Ok(Answer::json(&json!({ "status": "success", "query": text })))
}

/// `/expand-with-exprs`: a MetricsQL expression without its templates.
pub fn expand_with(_app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let expanded = promql::metricsql::expand_with(text(request));
    let expanded = expanded.map_err(|error| selection::invalid("query", &error))?;
    Ok(Answer::json(&json!({ "status": "success", "expr": expanded })))
}

/// `/api/v1/parse_query`: the expression as a tree.
pub fn parse_query(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    if selection::dialect(app, request)? == Dialect::MetricsQl {
        return Err(selection::invalid("dialect", &"trees are of promql only"));
    }
    let expr = promql::parse_with(text(request), &options(app));
    Ok(Answer::success(tree(&expr.map_err(|error| selection::invalid("query", &error))?)))
}

fn text(request: &Request) -> &str {
    request.params.get("query").unwrap_or("")
}

fn options(app: &App) -> promql::Options {
    promql::Options { experimental_functions: app.config.query.has_experimental }
}

fn formatted(app: &App, request: &Request) -> Result<String, Failure> {
    let formatted = match selection::dialect(app, request)? {
        Dialect::PromQl => {
            promql::parse_with(text(request), &options(app)).map(|expr| expr.to_string())
        }
        Dialect::MetricsQl => promql::metricsql::prettify(text(request)),
    };
    formatted.map_err(|error| selection::invalid("query", &error))
}

/// A tree is bounded in depth by the parser.
fn tree(expr: &Expr) -> Value {
    match expr {
        Expr::Number(node) => {
            json!({ "type": "numberLiteral", "val": number(node.value) })
        }
        Expr::String(node) => json!({ "type": "stringLiteral", "val": node.value }),
        Expr::Paren(node) => json!({ "type": "parenExpr", "expr": tree(&node.expr) }),
        Expr::Unary(node) => {
            let op = match node.op {
                promql::UnaryOp::Plus => "+",
                promql::UnaryOp::Minus => "-",
            };
            json!({ "type": "unaryExpr", "op": op, "expr": tree(&node.expr) })
        }
        Expr::Vector(node) => selector(node, "vectorSelector"),
        Expr::Matrix(node) => {
            let mut value = selector(&node.selector, "matrixSelector");
            value["range"] = json!(node.range_ms);
            value["rangeExpr"] = calculated(&node.range_expr);
            value
        }
        Expr::Subquery(node) => json!({
            "type": "subquery",
            "expr": tree(&node.expr),
            "range": node.range_ms,
            "rangeExpr": calculated(&node.range_expr),
            "offset": node.offset_ms,
            "offsetExpr": calculated(&node.offset_expr),
            "step": node.step_ms.unwrap_or(0),
            "stepExpr": calculated(&node.step_expr),
            "timestamp": timestamp(node.at),
            "startOrEnd": start_or_end(node.at),
        }),
        Expr::Call(node) => call(node),
        Expr::Aggregate(node) => aggregate(node),
        Expr::Binary(node) => binary(node),
    }
}

/// Digits without an exponent, as Go writes them.
fn number(value: f64) -> String {
    match value {
        value if value.is_infinite() && value < 0.0 => "-Inf".to_string(),
        value if value.is_infinite() => "+Inf".to_string(),
        value => value.to_string(),
    }
}

fn selector(node: &VectorSelector, kind: &str) -> Value {
    let matcher = |matcher: &Matcher| {
        let Matcher { name, op, value } = matcher;
        json!({ "name": name, "value": value, "type": op.to_string() })
    };
    json!({
        "type": kind,
        "name": node.name.as_deref().unwrap_or(""),
        "offset": node.offset_ms,
        "offsetExpr": calculated(&node.offset_expr),
        "matchers": node.matchers.iter().map(matcher).collect::<Vec<_>>(),
        "timestamp": timestamp(node.at),
        "startOrEnd": start_or_end(node.at),
        "anchored": node.edges == Edges::Anchored,
        "smoothed": node.edges == Edges::Smoothed,
    })
}

/// A duration that is calculated; null for a plain one.
fn calculated(expr: &Option<Box<DurationExpr>>) -> Value {
    expr.as_ref().map_or(Value::Null, |expr| duration(expr))
}

fn duration(expr: &DurationExpr) -> Value {
    let node = |op: &str, left: Option<&DurationExpr>, right: Option<&DurationExpr>| {
        let (left, right) = (left.map(duration), right.map(duration));
        json!({ "type": "durationExpr", "op": op, "lhs": left, "rhs": right, "wrapped": false })
    };
    let pair = |op: &str, [left, right]: &[DurationExpr; 2]| node(op, Some(left), Some(right));
    match &expr.kind {
        DurationKind::Literal(literal) => {
            let val = number(literal.value);
            json!({ "type": "numberLiteral", "val": val, "duration": literal.is_duration })
        }
        DurationKind::Step => node("step", None, None),
        DurationKind::Range => node("range", None, None),
        DurationKind::Negative(inner) => match &inner.kind {
            // The sign of a number is part of it.
            DurationKind::Literal(literal) => {
                let val = number(-literal.value);
                json!({ "type": "numberLiteral", "val": val, "duration": literal.is_duration })
            }
            _ => node("-", None, Some(inner)),
        },
        DurationKind::Paren(inner) => {
            let mut value = duration(inner);
            if value["type"] == "numberLiteral" {
                value = node(BinaryOp::Add.as_str(), None, Some(inner));
            }
            value["wrapped"] = json!(true);
            value
        }
        DurationKind::Binary(op, operands) => pair(op.as_str(), operands),
        DurationKind::Max(operands) => pair("max_of", operands),
        DurationKind::Min(operands) => pair("min_of", operands),
    }
}

fn timestamp(at: Option<At>) -> Option<i64> {
    match at {
        Some(At::Timestamp(ms)) => Some(ms),
        Some(At::Start | At::End) | None => None,
    }
}

fn start_or_end(at: Option<At>) -> Option<&'static str> {
    match at {
        Some(At::Start) => Some("start"),
        Some(At::End) => Some("end"),
        Some(At::Timestamp(_)) | None => None,
    }
}

fn call(node: &Call) -> Value {
    let function = node.function;
    // How many of the last argument there may be; -1 is any number.
    let variadic = match function.arity {
        Arity::Exact => 0,
        Arity::LastUpTo(count) => count as i64,
        Arity::LastRepeats => -1,
    };
    let types: Vec<&str> = function.arguments.iter().map(|of| of.as_str()).collect();
    json!({
        "type": "call",
        "func": {
            "name": function.name,
            "argTypes": types,
            "variadic": variadic,
            "returnType": function.returns.as_str(),
        },
        "args": node.arguments.iter().map(tree).collect::<Vec<_>>(),
    })
}

fn aggregate(node: &Aggregate) -> Value {
    let (labels, is_without) = match &node.grouping {
        Grouping::By(labels) => (labels, false),
        Grouping::Without(labels) => (labels, true),
    };
    json!({
        "type": "aggregation",
        "op": node.op.as_str(),
        "expr": tree(&node.expr),
        "param": node.parameter.as_ref().map(tree),
        "grouping": labels,
        "without": is_without,
    })
}

fn binary(node: &Binary) -> Value {
    let matching = node.matching.as_ref().map(|matching| {
        let card = match matching.cardinality {
            Cardinality::OneToOne => "one-to-one",
            Cardinality::ManyToOne => "many-to-one",
            Cardinality::OneToMany => "one-to-many",
            Cardinality::ManyToMany => "many-to-many",
        };
        json!({
            "card": card,
            "labels": matching.labels,
            "on": matching.is_on,
            "include": matching.include,
            "fillValues": { "lhs": matching.fill.left, "rhs": matching.fill.right },
        })
    });
    json!({
        "type": "binaryExpr",
        "op": node.op.as_str(),
        "lhs": tree(&node.left),
        "rhs": tree(&node.right),
        "matching": matching,
        "bool": node.returns_bool,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        let expr = promql::parse(text).expect(text);
        assert_eq!(&tree(&expr), expected, "{text}");
    }

    fn up(kind: &str) -> Value {
        let matcher = json!({ "name": "__name__", "value": "up", "type": "=" });
        json!({
            "type": kind, "name": "up", "offset": 0, "matchers": [matcher],
            "timestamp": null, "startOrEnd": null, "offsetExpr": null,
            "anchored": false, "smoothed": false,
        })
    }

    #[track_caller]
    fn check_experimental(text: &str, expected: &Value) {
        let options = promql::Options { experimental_functions: true };
        let expr = promql::parse_with(text, &options).expect(text);
        assert_eq!(&tree(&expr), expected, "{text}");
    }

    #[test]
    fn experimental_modifiers() {
        let mut smoothed = up("vectorSelector");
        smoothed["smoothed"] = json!(true);
        check_experimental("up smoothed", &smoothed);
        let mut anchored = up("matrixSelector");
        anchored["range"] = json!(60_000);
        anchored["rangeExpr"] = json!(null);
        anchored["anchored"] = json!(true);
        check_experimental("up[1m] anchored", &anchored);
        let vector = up("vectorSelector");
        let matching = json!({
            "card": "one-to-one", "labels": [], "on": false, "include": [],
            "fillValues": { "lhs": 0.0, "rhs": null },
        });
        check_experimental(
            "up + fill_left(0) up",
            &json!({
                "type": "binaryExpr", "op": "+", "lhs": vector, "rhs": vector, "bool": false,
                "matching": matching,
            }),
        );
    }

    #[test]
    fn calculated_durations() {
        let node = |op: &str, lhs: Value, rhs: Value| json!({ "type": "durationExpr", "op": op, "lhs": lhs, "rhs": rhs, "wrapped": false });
        let literal = |val: &str, duration: bool| json!({ "type": "numberLiteral", "val": val, "duration": duration });
        let wrapped = |mut value: Value| {
            value["wrapped"] = json!(true);
            value
        };
        let step = node("step", Value::Null, Value::Null);
        let range = node("range", Value::Null, Value::Null);
        for (text, expected) in [
            ("2 * step()", node("*", literal("2", false), step.clone())),
            ("-5m + range()", node("+", literal("-300", true), range.clone())),
            ("-range()", node("-", Value::Null, range.clone())),
            ("((step()))", wrapped(step.clone())),
            ("max_of(1m, step())", node("max_of", literal("60", true), step.clone())),
            ("min_of(step(), 9)", node("min_of", step, literal("9", false))),
        ] {
            let mut matrix = up("matrixSelector");
            matrix["range"] = json!(0);
            matrix["rangeExpr"] = expected;
            check_experimental(&format!("up[{text}]"), &matrix);
        }
        // A duration in parentheses is a duration.
        let mut plain = up("matrixSelector");
        plain["range"] = json!(60_000);
        plain["rangeExpr"] = Value::Null;
        check_experimental("up[(1m)]", &plain);
        let mut shifted = up("vectorSelector");
        shifted["offsetExpr"] = range;
        check_experimental("up offset range()", &shifted);
    }

    #[test]
    fn leaves() {
        check("1.5", &json!({ "type": "numberLiteral", "val": "1.5" }));
        check("1e21", &json!({ "type": "numberLiteral", "val": "1000000000000000000000" }));
        check("-Inf", &json!({ "type": "numberLiteral", "val": "-Inf" }));
        check("\"a\"", &json!({ "type": "stringLiteral", "val": "a" }));
        check("up", &up("vectorSelector"));
        let mut shifted = up("vectorSelector");
        shifted["offset"] = json!(-60_000);
        shifted["timestamp"] = json!(1_500);
        check("up offset -1m @ 1.5", &shifted);
        let mut ending = up("matrixSelector");
        ending["range"] = json!(300_000);
        ending["rangeExpr"] = json!(null);
        ending["startOrEnd"] = json!("end");
        check("up[5m] @ end()", &ending);
    }

    #[test]
    fn branches() {
        check("(up)", &json!({ "type": "parenExpr", "expr": up("vectorSelector") }));
        let mut matrix = up("matrixSelector");
        matrix["range"] = json!(60_000);
        matrix["rangeExpr"] = json!(null);
        check(
            "rate(up[1m])",
            &json!({
                "type": "call",
                "func": {
                    "name": "rate", "argTypes": ["matrix"], "variadic": 0, "returnType": "vector",
                },
                "args": [matrix],
            }),
        );
        check(
            "topk without (a) (3, up)",
            &json!({
                "type": "aggregation", "op": "topk", "expr": up("vectorSelector"),
                "param": { "type": "numberLiteral", "val": "3" }, "grouping": ["a"], "without": true,
            }),
        );
        check(
            "up[1h:]",
            &json!({
                "type": "subquery", "expr": up("vectorSelector"), "range": 3_600_000, "offset": 0,
                "step": 0, "timestamp": null, "startOrEnd": null, "rangeExpr": null,
                "offsetExpr": null, "stepExpr": null,
            }),
        );
        check(
            "up == bool on (a) group_left (b) up",
            &json!({
                "type": "binaryExpr", "op": "==", "lhs": up("vectorSelector"),
                "rhs": up("vectorSelector"), "bool": true,
                "matching": {
                    "card": "many-to-one", "labels": ["a"], "on": true, "include": ["b"],
                    "fillValues": { "lhs": null, "rhs": null },
                },
            }),
        );
        let one = json!({ "type": "numberLiteral", "val": "1" });
        check(
            "1 + 1",
            &json!({
                "type": "binaryExpr", "op": "+", "lhs": one, "rhs": one, "matching": null,
                "bool": false,
            }),
        );
    }
}
