//! Functions that write, copy and remove labels. An empty value is no label.

use super::super::arguments::{filter_labels, with_label};
use super::super::{Argument, CallContext, Series};
use crate::error::Result;
use model::{LabelsBuilder, METRIC_NAME};
use std::collections::HashMap;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    match context.name {
        "alias" => alias(context, arguments),
        "label_copy" | "label_move" => copy(context, arguments),
        "label_del" => keep_or_delete(context, arguments),
        "label_graphite_group" => graphite_group(context, arguments),
        "label_join" => join(context, arguments),
        "label_keep" => keep_or_delete(context, arguments),
        "label_lowercase" => change_case(context, arguments, lower),
        "label_map" => map(context, arguments),
        "label_set" => set(context, arguments),
        "label_uppercase" => change_case(context, arguments, upper),
        _ => context.fail("no such function"),
    }
}

/// Edits the labels of all series.
fn edit(
    context: &CallContext<'_>,
    mut series: Vec<Series>,
    change: impl Fn(&mut LabelsBuilder),
) -> Result<Vec<Series>> {
    for one in &mut series {
        let mut builder = one.labels.to_builder();
        change(&mut builder);
        one.labels = builder.finish();
        context.check_labels(&one.labels)?;
    }
    Ok(series)
}

fn get(labels: &LabelsBuilder, name: &str) -> String {
    labels.get(name).unwrap_or("").to_string()
}

fn alias(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 2, 2)?;
    let series = context.take(arguments, 0)?;
    let name = context.text(arguments, 1)?;
    edit(context, series, |labels| labels.set(METRIC_NAME, name))
}

fn set(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 1)?;
    let series = context.take(arguments, 0)?;
    let pairs = context.text_pairs(arguments, 1)?;
    edit(context, series, |labels| {
        pairs.iter().for_each(|(name, value)| labels.set(name, value));
    })
}

fn keep_or_delete(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 1)?;
    let mut series = context.take(arguments, 0)?;
    let names = context.texts(arguments, 1)?;
    let is_keep = context.name == "label_keep";
    for one in &mut series {
        one.labels = filter_labels(&one.labels, |name| names.contains(&name) == is_keep);
    }
    Ok(series)
}

/// `label_copy` and `label_move`: a label that is not there leaves the target as it is.
fn copy(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 1)?;
    let series = context.take(arguments, 0)?;
    let pairs = context.text_pairs(arguments, 1)?;
    let is_move = context.name == "label_move";
    edit(context, series, |labels| {
        for (source, target) in &pairs {
            let value = get(labels, source);
            if value.is_empty() || source == target {
                continue;
            }
            labels.set(target, &value);
            if is_move {
                labels.remove(source);
            }
        }
    })
}

fn map(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 2)?;
    let series = context.take(arguments, 0)?;
    let name = context.text(arguments, 1)?;
    let values: HashMap<&str, &str> = context.text_pairs(arguments, 2)?.into_iter().collect();
    edit(context, series, |labels| {
        if let Some(value) = values.get(labels.get(name).unwrap_or("")) {
            labels.set(name, value);
        }
    })
}

fn join(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 3)?;
    let mut series = context.take(arguments, 0)?;
    let texts = context.texts(arguments, 1)?;
    let [target, separator, sources @ ..] = texts.as_slice() else { return Ok(series) };
    for one in &mut series {
        let values: Vec<&str> =
            sources.iter().map(|source| one.labels.get(source).unwrap_or("")).collect();
        let size: usize = values.iter().map(|value| value.len() + separator.len()).sum();
        context.check_size(size)?;
        one.labels = with_label(&one.labels, target, &values.join(separator));
        context.check_labels(&one.labels)?;
    }
    Ok(series)
}

fn change_case(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    change: fn(char) -> char,
) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 2)?;
    let series = context.take(arguments, 0)?;
    let names = context.texts(arguments, 1)?;
    edit(context, series, |labels| {
        for name in &names {
            let value: String = get(labels, name).chars().map(change).collect();
            labels.set(name, &value);
        }
    })
}

/// One character for one: what has several capitals, such as the German sharp s, stays.
fn upper(character: char) -> char {
    let mut upper = character.to_uppercase();
    if upper.len() == 1 { upper.next().unwrap_or(character) } else { character }
}

fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    if lower.len() == 1 { lower.next().unwrap_or(character) } else { character }
}

/// Makes the name of parts of the name, which are counted from 0 and end in dots.
fn graphite_group(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 2)?;
    let parts: Result<Vec<i64>> =
        (1..arguments.len()).map(|idx| context.integer(arguments, idx)).collect();
    let parts = parts?;
    let series = context.take(arguments, 0)?;
    edit(context, series, |labels| {
        let name = get(labels, METRIC_NAME);
        let nodes: Vec<&str> = name.split('.').collect();
        let node = |part: &i64| usize::try_from(*part).ok().and_then(|part| nodes.get(part));
        let picked: Vec<&str> =
            parts.iter().map(|part| node(part).copied().unwrap_or("")).collect();
        labels.set(METRIC_NAME, &picked.join("."));
    })
}
