//! `label_replace` and `label_join`: new labels, the samples untouched. `info` has a file of its
//! own.

use crate::call::CallContext;
use crate::error::{QueryError, Result};
use crate::names::Key;
use crate::reservation::Reservation;
use crate::vector::Vector;
use model::METRIC_NAME;
use re2::{Expression, Limits, Regexp, expanded_size_max};
use std::collections::HashMap;

/// `label_replace`.
pub(crate) fn replace(call: &CallContext<'_>) -> Result<Vector> {
    let strings = call.strings(1)?;
    let [target, replacement, source, pattern] = strings.as_slice() else {
        return Err(wrong_count());
    };
    let regex = compile(pattern)?;
    check_target("label_replace", target)?;
    // Few values usually stand for many series.
    let mut known: HashMap<String, Option<String>> = HashMap::new();
    let held = Reservation::new(&call.context.usage);
    call.vector(0)?.rekey_within(call.context, |key| {
        let value = key.labels.get(source).unwrap_or("");
        if !known.contains_key(value) {
            call.context.check_room(expanded_size_max(replacement, value))?;
            let new = expand(&regex, value, replacement);
            held.grow(0, (value.len() + new.as_ref().map_or(0, String::len)) as u64);
            known.insert(value.to_string(), new);
        }
        Ok(match &known[value] {
            Some(new) => with_label(key, target, new),
            None => key.clone(),
        })
    })
}

/// `label_join`.
pub(crate) fn join(call: &CallContext<'_>) -> Result<Vector> {
    let strings = call.strings(1)?;
    let [target, separator, sources @ ..] = strings.as_slice() else {
        return Err(wrong_count());
    };
    if let Some(empty) = sources.iter().find(|source| source.is_empty()) {
        return Err(QueryError::Execution(format!(
            "invalid source label name in label_join(): {empty}"
        )));
    }
    check_target("label_join", target)?;
    call.vector(0)?.rekey_within(call.context, |key| {
        let values: Vec<&str> =
            sources.iter().map(|source| key.labels.get(source).unwrap_or("")).collect();
        call.context.check_room(values.iter().map(|value| value.len() + separator.len()).sum())?;
        Ok(with_label(key, target, &values.join(separator)))
    })
}

fn wrong_count() -> QueryError {
    QueryError::Execution("wrong number of arguments".to_string())
}

fn compile(pattern: &str) -> Result<Regexp> {
    Expression::parse(pattern, true)
        .and_then(|expression| expression.compile_anchored(Limits::new(promql::REGEX_SIZE_MAX)))
        .map_err(|_| {
            QueryError::Execution(format!(
                "invalid regular expression in label_replace(): {pattern}"
            ))
        })
}

fn check_target(function: &str, target: &str) -> Result<()> {
    if target.is_empty() {
        return Err(QueryError::Execution(format!(
            "invalid destination label name in {function}(): {target}"
        )));
    }
    Ok(())
}

/// The replacement with `$1` and `${name}` filled in, if the value matches.
fn expand(regexp: &Regexp, value: &str, replacement: &str) -> Option<String> {
    let captures = regexp.regex().captures(value)?;
    let mut out = String::new();
    regexp.expand(replacement, &captures, &mut out);
    Some(out)
}

fn with_label(key: &Key, name: &str, value: &str) -> Key {
    let mut builder = key.labels.to_builder();
    builder.set(name, value);
    Key { labels: builder.finish(), drops_name: key.drops_name && name != METRIC_NAME }
}
