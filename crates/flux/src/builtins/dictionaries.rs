//! `dict`: lookups, and copies with one entry more or less.

use super::{Builtin, Call, function};
use crate::error::Result;
use crate::value::{Dictionary, Value};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("dict", "fromList", from_list),
    function("dict", "get", get),
    function("dict", "insert", insert),
    function("dict", "remove", remove),
];

/// `dict.fromList(pairs: [{key: .., value: ..}, ..])`; the last pair of a key counts.
fn from_list(call: Call<'_>) -> Result<Value> {
    let pairs = call.required("pairs")?;
    call.done()?;
    let wanted = "array of records with key and value";
    let Value::Array(items) = &pairs else { return Err(call.wrong("pairs", wanted, &pairs)) };
    let mut entries = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        call.evaluation.tick(at)?;
        let Value::Record(record) = item else { return Err(call.wrong("pairs", wanted, item)) };
        let (Some(key), Some(value)) = (record.get("key"), record.get("value")) else {
            return Err(call.wrong("pairs", wanted, item));
        };
        entries.push((key.clone(), value.clone()));
    }
    Ok(Value::Dictionary(Arc::new(Dictionary::new(entries)?)))
}

fn dictionary(call: &Call<'_>) -> Result<Arc<Dictionary>> {
    match call.required("dict")? {
        Value::Dictionary(dictionary) => Ok(dictionary),
        other => Err(call.wrong("dict", "dictionary", &other)),
    }
}

/// The key of a call, which must have the type of the other keys.
fn key_for(call: &Call<'_>, dictionary: &Dictionary) -> Result<Value> {
    let key = call.required("key")?;
    match dictionary.key_kind() {
        Some(kind) if key.kind() != Some(kind) => Err(call.wrong("key", kind.words(), &key)),
        _ => Ok(key),
    }
}

fn get(call: Call<'_>) -> Result<Value> {
    let dictionary = dictionary(&call)?;
    let key = key_for(&call, &dictionary)?;
    let default = call.required("default")?;
    call.done()?;
    Ok(dictionary.get(&key).cloned().unwrap_or(default))
}

fn insert(call: Call<'_>) -> Result<Value> {
    let dictionary = dictionary(&call)?;
    let key = key_for(&call, &dictionary)?;
    let value = call.required("value")?;
    call.done()?;
    let added = std::iter::once((key, value));
    let entries = dictionary.entries().iter().cloned().chain(added).collect();
    Ok(Value::Dictionary(Arc::new(Dictionary::new(entries)?)))
}

fn remove(call: Call<'_>) -> Result<Value> {
    let dictionary = dictionary(&call)?;
    let key = key_for(&call, &dictionary)?;
    call.done()?;
    let is_other = |entry: &&(Value, Value)| entry.0.order(&key).is_ne();
    let entries = dictionary.entries().iter().filter(is_other).cloned().collect();
    Ok(Value::Dictionary(Arc::new(Dictionary::new(entries)?)))
}
