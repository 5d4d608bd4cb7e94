//! `array`: functions of arrays as values. `array.from` is a source.

use super::scalars::converted;
use super::{Builtin, Call, function};
use crate::error::Result;
use crate::value::{List, Value};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("array", "concat", concat),
    function("array", "filter", filter),
    function("array", "map", map),
    function("array", "toBool", convert),
    function("array", "toDuration", convert),
    function("array", "toFloat", convert),
    function("array", "toInt", convert),
    function("array", "toString", convert),
    function("array", "toTime", convert),
    function("array", "toUInt", convert),
];

fn items(call: &Call<'_>) -> Result<Arc<List>> {
    match call.input("arr")? {
        Value::Array(items) => Ok(items),
        other => Err(call.wrong("arr", "array", &other)),
    }
}

/// An array of what `make` returns for each item, with its memory counted.
fn collected(
    call: &Call<'_>,
    items: &[Value],
    make: &dyn Fn(&Value) -> Result<Option<Value>>,
) -> Result<Value> {
    let mut made = Vec::new();
    for (at, item) in items.iter().enumerate() {
        call.evaluation.tick(at)?;
        if let Some(value) = make(item)? {
            call.evaluation.hold(size_of::<Value>())?;
            made.push(value);
        }
    }
    Ok(Value::list(made))
}

fn concat(call: Call<'_>) -> Result<Value> {
    let first = items(&call)?;
    let second = call.required("v")?;
    call.done()?;
    let Value::Array(second) = &second else { return Err(call.wrong("v", "array", &second)) };
    call.evaluation.hold((first.len() + second.len()) * size_of::<Value>())?;
    Ok(Value::list(first.iter().chain(second.iter()).cloned().collect()))
}

fn filter(call: Call<'_>) -> Result<Value> {
    let arr = items(&call)?;
    let test = call.required_function("fn", &["x"])?;
    call.done()?;
    collected(&call, &arr, &|item| {
        Ok(call.holds(&test, ("x", item.clone()))?.then(|| item.clone()))
    })
}

fn map(call: Call<'_>) -> Result<Value> {
    let arr = items(&call)?;
    let function = call.required_function("fn", &["x"])?;
    call.done()?;
    collected(&call, &arr, &|item| call.apply(&function, &[("x", item.clone())]).map(Some))
}

fn convert(call: Call<'_>) -> Result<Value> {
    let arr = items(&call)?;
    call.done()?;
    let kind = call.name.trim_start_matches("to").to_ascii_lowercase();
    collected(&call, &arr, &|item| converted(&kind, item).map(Some))
}
