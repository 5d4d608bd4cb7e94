//! Operations on two sides: matching by labels, then point by point.
//!
//! Series are matched as VictoriaMetrics matches them: by all labels but the metric's name, or by
//! those of `on` and `ignoring`; one series without labels goes with everything.

use super::{Series, without_name};
use crate::error::{Limit, QueryError, Result};
use model::{Labels, LabelsBuilder, METRIC_NAME};
use promql::metricsql::{Binary, BinaryOp, Expr, Join, Matching, binary_of_numbers};
use std::collections::HashMap;

/// Applies the operation to its evaluated sides.
///
/// # Errors
/// When several series of one side match one of the other and nothing says how, or a join would
/// make more than `samples_max` samples.
pub(super) fn apply(
    node: &Binary,
    left: Vec<Series>,
    right: Vec<Series>,
    samples_max: u64,
) -> Result<Vec<Series>> {
    match node.op {
        BinaryOp::And => Ok(and(node, left, right)),
        BinaryOp::If => Ok(if_there(node, left, right)),
        BinaryOp::Or => Ok(or(node, left, right)),
        BinaryOp::Unless => Ok(unless(node, left, &right, false)),
        BinaryOp::IfNot => Ok(unless(node, left, &right, true)),
        BinaryOp::Default => Ok(default(node, left, right)),
        BinaryOp::Equal | BinaryOp::NotEqual if is_list(&node.left) || is_list(&node.right) => {
            Ok(in_list(node, left, right))
        }
        _ => pointwise(node, left, right, samples_max),
    }
}

fn is_list(expr: &Expr) -> bool {
    match expr {
        Expr::Union(_) => true,
        Expr::Call(call) => call.function.name == "union",
        _ => false,
    }
}

/// `q == (1, 2)`: the points whose value is, or is not, in the list.
fn in_list(node: &Binary, left: Vec<Series>, right: Vec<Series>) -> Vec<Series> {
    let (mut points, list) = if is_list(&node.left) { (right, left) } else { (left, right) };
    let keeps_listed = node.op == BinaryOp::Equal;
    if keeps_listed && list.is_empty() {
        return Vec::new();
    }
    for series in &mut points {
        for (step, value) in series.values.iter_mut().enumerate() {
            let is_listed = list.iter().any(|one| one.values[step] == *value);
            if is_listed != keeps_listed {
                *value = f64::NAN;
            }
        }
    }
    points
}

// ---- arithmetic and comparisons ----

fn pointwise(
    node: &Binary,
    mut left: Vec<Series>,
    mut right: Vec<Series>,
    samples_max: u64,
) -> Result<Vec<Series>> {
    // NaN is a value that can be compared, so comparisons keep series of nothing else.
    if !node.op.is_comparison() {
        left.retain(has_points);
        right.retain(has_points);
    }
    let is_missing = |series: &[Series], fill: Option<f64>| series.is_empty() && fill.is_none();
    if (left.is_empty() && right.is_empty())
        || is_missing(&left, node.fill_left)
        || is_missing(&right, node.fill_right)
    {
        return Ok(Vec::new());
    }
    let pairs = pairs(node, left, right, samples_max)?;
    let drops_nan_right = node.op.is_comparison() && is_comparison_of_series(&node.right);
    Ok(pairs.into_iter().map(|pair| pair.combine(node, drops_nan_right)).collect())
}

/// Two series and the labels of what becomes of them.
struct Pair {
    labels: Labels,
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Pair {
    fn combine(self, node: &Binary, drops_nan_right: bool) -> Series {
        let Pair { labels, left, right } = self;
        let values = left.iter().zip(&right).map(|(a, b)| {
            let (mut a, mut b) = (*a, *b);
            if a.is_nan() != b.is_nan() {
                if drops_nan_right && b.is_nan() && node.fill_right.is_none() {
                    return f64::NAN;
                }
                if a.is_nan() {
                    a = node.fill_left.unwrap_or(a);
                } else {
                    b = node.fill_right.unwrap_or(b);
                }
            }
            point(node, a, b)
        });
        Series { labels, values: values.collect() }
    }
}

fn point(node: &Binary, a: f64, b: f64) -> f64 {
    // A gap that is compared stays a gap, also under `bool`.
    if node.returns_bool && node.op.is_comparison() && a.is_nan() {
        return a;
    }
    binary_of_numbers(node.op, a, b, node.returns_bool)
}

/// Whether an expression compares series, so that its gaps are filtered points.
fn is_comparison_of_series(expr: &Expr) -> bool {
    match expr {
        Expr::Rollup(rollup) if rollup.window.is_none() => is_comparison_of_series(&rollup.expr),
        Expr::Binary(node) => {
            node.op.is_comparison() && !(is_scalar_like(&node.left) && is_scalar_like(&node.right))
        }
        _ => false,
    }
}

fn is_scalar_like(expr: &Expr) -> bool {
    const SCALARS: [&str; 8] =
        ["now", "pi", "scalar", "start", "end", "step", "time", "timezone_offset"];
    match expr {
        Expr::Number(_) | Expr::Duration(_) => true,
        Expr::Binary(node) => is_scalar_like(&node.left) && is_scalar_like(&node.right),
        Expr::Call(call) => SCALARS.contains(&call.function.name),
        _ => false,
    }
}

// ---- matching ----

fn pairs(
    node: &Binary,
    left: Vec<Series>,
    right: Vec<Series>,
    samples_max: u64,
) -> Result<Vec<Pair>> {
    if node.matching.is_none() && node.join.is_none() {
        if is_scalar(&left) {
            let scalar = &left[0].values;
            let pair = |one: Series| Pair {
                labels: result_name(node, one.labels),
                left: scalar.clone(),
                right: one.values,
            };
            return Ok(right.into_iter().map(pair).collect());
        }
        if is_scalar(&right) {
            let scalar = &right[0].values;
            let pair = |one: Series| Pair {
                labels: result_name(node, one.labels),
                left: one.values,
                right: scalar.clone(),
            };
            return Ok(left.into_iter().map(pair).collect());
        }
    }
    let (lefts, mut rights) = (Groups::new(node, left), Groups::new(node, right));
    let mut pairs = Pairs { list: Vec::new(), samples_left: samples_max };
    for (key, many) in lefts.in_order() {
        let others = match rights.take(&key) {
            Some(others) => others,
            None if node.fill_right.is_some() => vec![filler(node, &many[0])],
            None => continue,
        };
        pair_group(node, many, others, &mut pairs)?;
    }
    if node.fill_left.is_some() {
        for (_, many) in rights.in_order() {
            pair_group(node, vec![filler(node, &many[0])], many, &mut pairs)?;
        }
    }
    Ok(pairs.list)
}

/// The pairs of an operation, and how many samples joins may still make.
struct Pairs {
    list: Vec<Pair>,
    samples_left: u64,
}

impl Pairs {
    /// Counts the samples of a join before it is made: a group of many series on both sides makes
    /// a pair of each with each.
    fn reserve(&mut self, many: &[Series], ones: &[Series]) -> Result<()> {
        let steps = many.first().map_or(0, |one| one.values.len());
        let samples = (many.len() as u64).saturating_mul(ones.len() as u64 * steps as u64);
        match self.samples_left.checked_sub(samples) {
            Some(left) => {
                self.samples_left = left;
                Ok(())
            }
            None => {
                let message = format!(
                    "a join of {} with {} series would load too many samples into memory \
                     (query.max-samples); match by more labels",
                    many.len(),
                    ones.len()
                );
                Err(QueryError::Limit { limit: Limit::Samples, message })
            }
        }
    }
}

fn pair_group(
    node: &Binary,
    left: Vec<Series>,
    right: Vec<Series>,
    pairs: &mut Pairs,
) -> Result<()> {
    match &node.join {
        None => {
            let (left, right) = (single("left", left)?, single("right", right)?);
            let labels = matched_labels(node, &result_name(node, left.labels));
            pairs.list.push(Pair { labels, left: left.values, right: right.values });
        }
        Some(join) if join.is_left => {
            pairs.reserve(&left, &right)?;
            for (labels, many, one) in joined(node, join, "right", left, right)? {
                pairs.list.push(Pair { labels, left: many, right: one });
            }
        }
        Some(join) => {
            pairs.reserve(&right, &left)?;
            for (labels, many, one) in joined(node, join, "left", right, left)? {
                pairs.list.push(Pair { labels, left: one, right: many });
            }
        }
    }
    Ok(())
}

/// Labels, values of the "many" side, values of the "one" side.
type Joined = (Labels, Vec<f64>, Vec<f64>);

fn joined(
    node: &Binary,
    join: &Join,
    one_side: &str,
    many: Vec<Series>,
    ones: Vec<Series>,
) -> Result<Vec<Joined>> {
    let mut out = Vec::new();
    for series in many {
        let own = result_name(node, series.labels);
        let mut by_labels: Vec<(Labels, Series)> = Vec::new();
        let mut places: HashMap<Labels, usize> = HashMap::new();
        for one in &ones {
            let labels = with_joined_labels(node, join, &own, &one.labels);
            let place = *places.entry(labels.clone()).or_insert(by_labels.len());
            let Some((_, seen)) = by_labels.get_mut(place) else {
                by_labels.push((labels, one.clone()));
                continue;
            };
            if !merge(&mut seen.values, &one.values) {
                return Err(duplicates(one_side, &seen.labels, &one.labels));
            }
        }
        let row = |(labels, one): (Labels, Series)| (labels, series.values.clone(), one.values);
        out.extend(by_labels.into_iter().map(row));
    }
    Ok(out)
}

/// The labels of the "many" side with those that the join takes from the "one" side.
fn with_joined_labels(node: &Binary, join: &Join, own: &Labels, one: &Labels) -> Labels {
    let kept = match &node.matching {
        Some(matching) if matching.is_on => matching.labels.as_slice(),
        _ => &[],
    };
    let mut labels = own.to_builder();
    if join.labels.iter().any(|label| label == "*") {
        for (name, value) in one.iter().filter(|(name, _)| *name != METRIC_NAME) {
            if !kept.iter().any(|label| label == name) {
                labels.set(&format!("{}{name}", join.prefix), value);
            }
        }
        return labels.finish();
    }
    for name in join.labels.iter().filter(|name| !kept.contains(name)) {
        match one.get(name) {
            Some(value) if name == METRIC_NAME => labels.set(name, value),
            Some(value) => labels.set(&format!("{}{name}", join.prefix), value),
            None => labels.remove(name),
        }
    }
    labels.finish()
}

/// Several series that never have points at the same time are one.
fn single(side: &str, series: Vec<Series>) -> Result<Series> {
    let mut series = series.into_iter();
    let Some(mut first) = series.next() else {
        return Err(QueryError::Execution(format!("no series on the {side} side")));
    };
    for other in series.rev() {
        if !merge(&mut first.values, &other.values) {
            return Err(duplicates(side, &first.labels, &other.labels));
        }
    }
    Ok(first)
}

fn duplicates(side: &str, one: &Labels, other: &Labels) -> QueryError {
    QueryError::Execution(format!(
        "duplicate series on the {side} side: {one:?} and {other:?}; use on(), ignoring(), \
         group_left() or group_right()"
    ))
}

/// Lays `source` over `target`; not when both have points at more than two steps, which staleness
/// may cause, or are too short to tell.
fn merge(target: &mut [f64], source: &[f64]) -> bool {
    const OVERLAP_MAX: usize = 2;
    let both = target.iter().zip(source).filter(|(a, b)| !a.is_nan() && !b.is_nan()).count();
    if OVERLAP_MAX < both || source.len() <= OVERLAP_MAX {
        return false;
    }
    for (target, source) in target.iter_mut().zip(source).filter(|(_, source)| !source.is_nan()) {
        *target = *source;
    }
    true
}

/// A series of gaps for a side that is missing, to be filled.
fn filler(node: &Binary, other: &Series) -> Series {
    let labels = match node.keep_metric_names {
        true => other.labels.clone(),
        false => without_name(&other.labels),
    };
    Series { labels: matched_labels(node, &labels), values: vec![f64::NAN; other.values.len()] }
}

/// The labels without the name, unless the operation keeps it.
fn result_name(node: &Binary, labels: Labels) -> Labels {
    let keeps = node.keep_metric_names || (node.op.is_comparison() && !node.returns_bool);
    if keeps { labels } else { without_name(&labels) }
}

/// What `on` or `ignoring` leave of labels.
fn matched_labels(node: &Binary, labels: &Labels) -> Labels {
    let Some(Matching { is_on, labels: listed }) = &node.matching else { return labels.clone() };
    let is_listed = |name: &str| {
        let keeps_name = *is_on && node.keep_metric_names && name == METRIC_NAME;
        keeps_name || listed.iter().any(|label| label == name)
    };
    let mut builder = LabelsBuilder::new();
    for (name, value) in labels.iter().filter(|(name, _)| is_listed(name) == *is_on) {
        builder.push(name, value);
    }
    builder.finish()
}

/// Series by what they are matched by, in the order in which the keys were first seen.
struct Groups {
    order: Vec<Labels>,
    groups: HashMap<Labels, Vec<Series>>,
}

impl Groups {
    fn new(node: &Binary, series: Vec<Series>) -> Groups {
        let mut groups = Groups { order: Vec::new(), groups: HashMap::new() };
        for one in series {
            let key = key_of(node, &one.labels);
            match groups.groups.get_mut(&key) {
                Some(group) => group.push(one),
                None => {
                    groups.order.push(key.clone());
                    groups.groups.insert(key, vec![one]);
                }
            }
        }
        groups
    }

    fn take(&mut self, key: &Labels) -> Option<Vec<Series>> {
        self.groups.remove(key)
    }

    fn get(&self, key: &Labels) -> Option<&Vec<Series>> {
        self.groups.get(key)
    }

    /// The group of that key, or else the only one if it is one series without labels.
    fn get_or_scalar(&self, key: &Labels) -> Option<&Vec<Series>> {
        self.get(key).or_else(|| {
            let only = self.groups.values().next().filter(|_| self.groups.len() == 1);
            only.filter(|series| is_scalar(series))
        })
    }

    /// The groups that were not taken.
    fn in_order(mut self) -> impl Iterator<Item = (Labels, Vec<Series>)> {
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(move |key| self.groups.remove_entry(&key))
    }
}

fn key_of(node: &Binary, labels: &Labels) -> Labels {
    let labels = match node.keep_metric_names {
        true => labels.clone(),
        false => without_name(labels),
    };
    let Some(Matching { is_on, labels: listed }) = &node.matching else { return labels };
    let mut builder = LabelsBuilder::new();
    for (name, value) in
        labels.iter().filter(|(name, _)| listed.iter().any(|l| l == name) == *is_on)
    {
        builder.push(name, value);
    }
    builder.finish()
}

fn is_scalar(series: &[Series]) -> bool {
    matches!(series, [one] if one.labels.is_empty())
}

fn has_points(series: &Series) -> bool {
    series.values.iter().any(|value| !value.is_nan())
}

// ---- sets ----

fn and(node: &Binary, left: Vec<Series>, right: Vec<Series>) -> Vec<Series> {
    let rights = Groups::new(node, right);
    filter_by(Groups::new(node, left), |key| rights.get(key), false)
}

fn if_there(node: &Binary, left: Vec<Series>, right: Vec<Series>) -> Vec<Series> {
    let rights = Groups::new(node, right);
    filter_by(Groups::new(node, left), |key| rights.get_or_scalar(key), false)
}

/// `unless`, and `ifnot`, whose right side may be one series without labels.
fn unless(node: &Binary, left: Vec<Series>, right: &[Series], takes_scalar: bool) -> Vec<Series> {
    let rights = Groups::new(node, right.to_vec());
    let other = |key: &Labels| match takes_scalar {
        true => rights.get_or_scalar(key),
        false => rights.get(key),
    };
    filter_by(Groups::new(node, left), other, true)
}

/// Keeps the left's points where the right has one, or has none. What has no counterpart goes in
/// the first case, and stays as it is in the second.
fn filter_by<'r>(
    lefts: Groups,
    other: impl Fn(&Labels) -> Option<&'r Vec<Series>>,
    keeps_where_none: bool,
) -> Vec<Series> {
    let mut out = Vec::new();
    for (key, mut group) in lefts.in_order() {
        let Some(right) = other(&key) else {
            if keeps_where_none {
                out.append(&mut group);
            }
            continue;
        };
        for series in &mut group {
            for (step, value) in series.values.iter_mut().enumerate() {
                let is_there = right.iter().any(|one| !one.values[step].is_nan());
                if is_there == keeps_where_none {
                    *value = f64::NAN;
                }
            }
        }
        group.retain(has_points);
        out.append(&mut group);
    }
    out
}

fn default(node: &Binary, left: Vec<Series>, right: Vec<Series>) -> Vec<Series> {
    if left.is_empty() {
        return right;
    }
    let rights = Groups::new(node, right);
    let mut out = Vec::new();
    for (key, mut group) in Groups::new(node, left).in_order() {
        if let Some(right) = rights.get_or_scalar(&key) {
            for series in &mut group {
                for (step, value) in series.values.iter_mut().enumerate() {
                    let filling = right.iter().map(|one| one.values[step]);
                    let mut filling = filling.filter(|value| !value.is_nan());
                    if value.is_nan() {
                        *value = filling.next().unwrap_or(*value);
                    }
                }
            }
        }
        out.append(&mut group);
    }
    out
}

fn or(node: &Binary, left: Vec<Series>, right: Vec<Series>) -> Vec<Series> {
    let mut lefts = Groups::new(node, left);
    lefts.groups.values_mut().for_each(|group| group.retain(has_points));
    let mut added = Vec::new();
    for (key, mut group) in Groups::new(node, right).in_order() {
        if let Some(left) = lefts.groups.get_mut(&key) {
            left.iter_mut().for_each(|left| fill_or_yield(left, &mut group));
            group.retain(has_points);
        }
        added.append(&mut group);
    }
    let mut out: Vec<Series> = lefts.in_order().flat_map(|(_, group)| group).collect();
    super::sort_by_name(&mut out);
    super::sort_by_name(&mut added);
    out.append(&mut added);
    out
}

/// Where the left has a point the right must have none; a right of the same labels fills gaps.
fn fill_or_yield(left: &mut Series, rights: &mut [Series]) {
    // A gap that one right fills is still one for the others.
    let gaps: Vec<bool> = left.values.iter().map(|value| value.is_nan()).collect();
    for right in rights {
        let is_same = left.labels == right.labels;
        let values = left.values.iter_mut().zip(&mut right.values);
        for ((value, other), is_gap) in values.zip(&gaps) {
            if is_same && *is_gap {
                *value = *other;
            }
            if is_same || !is_gap {
                *other = f64::NAN;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_gap_is_a_gap_for_others() {
        let one = |name: &str, values: [f64; 2]| {
            let labels = Labels::from_pairs(&[("__name__", name)]);
            Series { labels, values: values.to_vec() }
        };
        let nan = f64::NAN;
        let mut rights = [one("a", [1.0, 2.0]), one("b", [3.0, 4.0])];
        let mut lefts = [one("a", [nan, 9.0]), one("b", [nan, nan])];
        lefts.iter_mut().for_each(|left| fill_or_yield(left, &mut rights));
        assert_eq!(lefts[0].values, [1.0, 9.0]);
        assert!(lefts[1].values[0] == 3.0 && lefts[1].values[1].is_nan(), "{:?}", lefts[1].values);
        assert!(rights.iter().all(|right| right.values.iter().all(|value| value.is_nan())));
    }

    fn series(name: &str, label: &str) -> Vec<Series> {
        let one = |n: i32| {
            let labels = [("__name__", name.to_string()), (label, n.to_string())];
            Series { labels: Labels::from_pairs(&labels), values: vec![f64::from(n); 2] }
        };
        (1..=3).map(one).collect()
    }

    #[test]
    fn a_join_of_each_with_each_is_bounded() {
        let expr = promql::metricsql::parse("a * on () group_left (x) b").unwrap();
        let Expr::Binary(node) = expr else { panic!("{expr:?}") };
        let joined = |samples_max| apply(&node, series("a", "y"), series("b", "x"), samples_max);
        let rows = joined(18).unwrap();
        assert_eq!(rows.len(), 9);
        assert_eq!(rows[5].values, [6.0; 2], "2 of a by 3 of b");
        let error = joined(17).unwrap_err().to_string();
        assert!(
            error.contains("3 with 3 series") && error.contains("query.max-samples"),
            "{error}"
        );
    }
}
