//! What comes beside a query: `params`, and `extern`, a tree of Flux in JSON that clients bind
//! values with.

use crate::ast::{Expr, ExprKind, Statement, StatementKind};
use crate::error::{Error, Result, Span};
use crate::parser::{NESTING_MAX, Regexes, node};
use crate::time::{Duration, parse_time};
use crate::value::{Record, Value};
use serde_json::Value as Json;
use std::sync::Arc;

/// Fields and items of all objects together.
const ITEMS_MAX: usize = 100_000;

fn wrong(what: &str) -> Error {
    Error::name(format!("extern: {what}"))
}

/// The statements of `extern`, and bytes of memory of the regular expressions in it.
pub(crate) fn statements(json: &Json) -> Result<(Vec<Statement>, usize)> {
    let mut regexes = Regexes::default();
    if !json.is_object() {
        return Err(wrong("expected an object of the type \"File\""));
    }
    let body = match json.get("body") {
        None | Some(Json::Null) => &[][..],
        Some(Json::Array(statements)) => statements,
        Some(_) => return Err(wrong("body is not an array")),
    };
    let mut found = Vec::new();
    for statement in body {
        let assignment = match kind_of(statement) {
            "OptionStatement" => statement.get("assignment").unwrap_or(statement),
            _ => statement,
        };
        if kind_of(assignment) != "VariableAssignment" {
            return Err(wrong(&format!("{} is not supported here", kind_of(assignment))));
        }
        let name = assignment.pointer("/id/name").and_then(Json::as_str);
        let name = name.ok_or_else(|| wrong("an assignment without a name"))?.into();
        let init = assignment.get("init").ok_or_else(|| wrong("an assignment without a value"))?;
        let value = expression(init, 0, &mut regexes)?;
        found
            .push(Statement { kind: StatementKind::Assign { name, value }, span: Span::default() });
    }
    Ok((found, regexes.size()))
}

fn kind_of(json: &Json) -> &str {
    json.get("type").and_then(Json::as_str).unwrap_or("a node without a type")
}

fn child(json: &Json, name: &str, level: usize, regexes: &mut Regexes) -> Result<Expr> {
    let child =
        json.get(name).ok_or_else(|| wrong(&format!("{} without {name}", kind_of(json))))?;
    expression(child, level + 1, regexes)
}

fn expression(json: &Json, level: usize, regexes: &mut Regexes) -> Result<Expr> {
    if NESTING_MAX < level {
        return Err(Error::limit(format!("extern: more than {NESTING_MAX} levels")));
    }
    let value = json.get("value");
    let text = value.and_then(Json::as_str);
    let invalid = || wrong(&format!("an invalid {}", kind_of(json)));
    let mut below = 0;
    let kind = match kind_of(json) {
        "BooleanLiteral" => {
            let is_true = value.and_then(Json::as_bool).ok_or_else(invalid)?;
            ExprKind::Name(if is_true { "true" } else { "false" }.into())
        }
        "IntegerLiteral" | "UnsignedIntegerLiteral" => {
            let number = text.and_then(|text| text.parse().ok()).or(value.and_then(Json::as_i64));
            ExprKind::Integer(number.ok_or_else(invalid)?)
        }
        "FloatLiteral" => {
            let number = value.and_then(Json::as_f64).or(text.and_then(|text| text.parse().ok()));
            ExprKind::Float(number.ok_or_else(invalid)?)
        }
        "StringLiteral" => ExprKind::Text(text.ok_or_else(invalid)?.into()),
        "DateTimeLiteral" => ExprKind::Time(text.and_then(parse_time).ok_or_else(invalid)?),
        "DurationLiteral" => ExprKind::Duration(duration(json).ok_or_else(invalid)?),
        "RegexpLiteral" => {
            let pattern = text.ok_or_else(invalid)?;
            let pattern =
                pattern.strip_prefix('/').and_then(|p| p.strip_suffix('/')).unwrap_or(pattern);
            ExprKind::Regex(regexes.add(pattern).map_err(|message| wrong(&message))?)
        }
        "Identifier" => {
            let name = json.get("name").and_then(Json::as_str);
            ExprKind::Name(name.ok_or_else(invalid)?.into())
        }
        "ArrayExpression" => {
            let items = json.get("elements").and_then(Json::as_array);
            let items = items.into_iter().flatten();
            let items: Result<Vec<Expr>> =
                items.map(|item| expression(item, level + 1, regexes)).collect();
            let items = items?;
            below = items.iter().map(|item| item.height).max().unwrap_or(0);
            ExprKind::Array(items)
        }
        "ObjectExpression" => {
            let fields = properties(json, level, regexes)?;
            below = fields.iter().map(|(_, field)| field.height).max().unwrap_or(0);
            ExprKind::Record { with: None, fields }
        }
        "UnaryExpression" => {
            let operand = child(json, "argument", level, regexes)?;
            let op = match json.get("operator").and_then(Json::as_str) {
                Some("-") => "-",
                Some("+") => "+",
                _ => return Err(invalid()),
            };
            below = operand.height;
            ExprKind::Unary { op, operand: Box::new(operand) }
        }
        "CallExpression" => return call(json, level, regexes),
        other => return Err(wrong(&format!("{other} is not supported here"))),
    };
    node(kind, Span::default(), below)
}

fn call(json: &Json, level: usize, regexes: &mut Regexes) -> Result<Expr> {
    let callee = child(json, "callee", level, regexes)?;
    let arguments = json.get("arguments").and_then(Json::as_array);
    let args = match arguments.and_then(|list| list.first()) {
        Some(object) => properties(object, level + 1, regexes)?,
        None => Vec::new(),
    };
    let below = args.iter().map(|(_, arg)| arg.height).max().unwrap_or(0).max(callee.height);
    let kind = ExprKind::Call { callee: Box::new(callee), args };
    node(kind, Span::default(), below)
}

fn properties(json: &Json, level: usize, regexes: &mut Regexes) -> Result<Vec<(Arc<str>, Expr)>> {
    let mut fields = Vec::new();
    for property in json.get("properties").and_then(Json::as_array).into_iter().flatten() {
        let key = property.get("key").ok_or_else(|| wrong("a property without a name"))?;
        let name = key.get("name").or(key.get("value")).and_then(Json::as_str);
        let name = name.ok_or_else(|| wrong("a property without a name"))?;
        fields.push((name.into(), child(property, "value", level, regexes)?));
    }
    Ok(fields)
}

fn duration(json: &Json) -> Option<Duration> {
    let mut total = Duration::default();
    for part in json.get("values").and_then(Json::as_array)? {
        let count = part.get("magnitude").and_then(Json::as_i64)?;
        let unit = part.get("unit").and_then(Json::as_str)?;
        total = total.plus(Duration::of_unit(count, unit)?)?;
    }
    Some(total)
}

/// `params` as a record.
pub(crate) fn parameters(json: &Json) -> Result<Value> {
    let mut left = ITEMS_MAX;
    value(json, &mut left)
}

fn value(json: &Json, left: &mut usize) -> Result<Value> {
    let over = || Error::limit(format!("params: more than {ITEMS_MAX} values"));
    *left = left.checked_sub(1).ok_or_else(over)?;
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Integer(value),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::text(text),
        Json::Array(items) => {
            let items: Result<Vec<Value>> = items.iter().map(|item| value(item, left)).collect();
            Value::list(items?)
        }
        Json::Object(fields) => {
            let mut found = Vec::with_capacity(fields.len());
            for (name, field) in fields {
                found.push((name.as_str().into(), value(field, left)?));
            }
            Value::Record(Arc::new(Record::new(found)))
        }
    })
}
