//! Functions that look at labels rather than change them one by one.

use super::super::arguments::{filter_labels, parse_float};
use super::super::{Argument, CallContext, Series, without_name};
use crate::error::Result;
use model::Labels;
use std::collections::HashSet;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    match context.name {
        "label_value" => value(context, arguments),
        "labels_equal" => {
            context.expect_at_least(arguments, 3)?;
            let mut series = context.take(arguments, 0)?;
            let names = context.texts(arguments, 1)?;
            series.retain(|one| are_equal(&one.labels, &names));
            Ok(series)
        }
        _ => drop_common(context, arguments),
    }
}

/// The number in a label, wherever there is a point.
fn value(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 2, 2)?;
    let mut series = context.take(arguments, 0)?;
    let name = context.text(arguments, 1)?;
    for one in &mut series {
        one.labels = without_name(&one.labels);
        let number = one.labels.get(name).and_then(parse_float).unwrap_or(f64::NAN);
        for value in one.values.iter_mut().filter(|value| !value.is_nan()) {
            *value = number;
        }
    }
    Ok(series)
}

/// Removes the labels that all series have with the same value, the name among them.
fn drop_common(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    let mut series = context.take_all(arguments)?;
    let Some(first) = series.first() else { return Ok(series) };
    let common: HashSet<String> = first
        .labels
        .iter()
        .filter(|(name, value)| series.iter().all(|one| one.labels.get(name) == Some(*value)))
        .map(|(name, _)| name.to_string())
        .collect();
    for one in &mut series {
        one.labels = filter_labels(&one.labels, |name| !common.contains(name));
    }
    Ok(series)
}

/// Whether the labels named are all equal; those that are not there are empty.
fn are_equal(labels: &Labels, names: &[&str]) -> bool {
    let value = |name: &&str| labels.get(name).unwrap_or("");
    names.windows(2).all(|pair| value(&pair[0]) == value(&pair[1]))
}
