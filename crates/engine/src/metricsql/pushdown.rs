//! Conditions that one side of an operation has are put on the other side, too.
//!
//! `a{job="x"} / b` can only match series of `b` with `job="x"`, so it reads no others. For
//! `default` this is more than a saving: VictoriaMetrics does it there as well, and its answers
//! lack what only the side without the condition has.

use super::Series;
use super::rollup::series_argument;
use model::{METRIC_NAME, MatchOp, Matcher};
use promql::Grouping;
use promql::metricsql::{Aggregate, Binary, BinaryOp, Call, Expr, FunctionKind, Selector};
use std::collections::{BTreeMap, BTreeSet};

/// Spreads the conditions of all operations in a tree.
pub(super) fn push_down(expr: &mut Expr) {
    expr.for_each_child_mut(&mut push_down);
    if let Expr::Binary(binary) = expr {
        spread(binary);
    }
}

fn spread(binary: &mut Binary) {
    match (binary.fill_left, binary.fill_right) {
        (Some(_), Some(_)) => {}
        (Some(_), None) => {
            let shared = matched(binary, conditions(&binary.right));
            demand(&mut binary.left, &shared);
        }
        (None, Some(_)) => {
            let shared = matched(binary, conditions(&binary.left));
            demand(&mut binary.right, &shared);
        }
        (None, None) => {
            let shared = matched(binary, of_operation(binary));
            demand(&mut binary.left, &shared);
            demand(&mut binary.right, &shared);
        }
    }
}

// ---- what is known of an expression's series ----

/// The conditions that all series of an expression meet.
fn conditions(expr: &Expr) -> Vec<Matcher> {
    match expr {
        Expr::Number(_) | Expr::String(_) | Expr::Duration(_) => Vec::new(),
        Expr::Selector(selector) => of_selector(selector),
        Expr::Rollup(rollup) => conditions(&rollup.expr),
        Expr::Union(union) => shared_by_all(&union.expressions),
        Expr::Binary(binary) => of_operation(binary),
        Expr::Call(call) => match carrier(call) {
            Carrier::None => Vec::new(),
            Carrier::All => shared_by_all(&call.arguments),
            Carrier::One(idx) => {
                let carried = call.arguments.get(idx).map(conditions).unwrap_or_default();
                after_labels(call, carried)
            }
        },
        Expr::Aggregate(aggregate) => {
            let carried = match aggregate_carrier(aggregate) {
                Carrier::None => Vec::new(),
                Carrier::All => shared_by_all(&aggregate.arguments),
                Carrier::One(idx) => {
                    aggregate.arguments.get(idx).map(conditions).unwrap_or_default()
                }
            };
            grouped(aggregate, carried)
        }
    }
}

fn of_selector(selector: &Selector) -> Vec<Matcher> {
    let unnamed = |set: &Vec<Matcher>| -> Vec<Matcher> {
        set.iter().filter(|one| one.name != METRIC_NAME).cloned().collect()
    };
    let mut sets = selector.sets.iter();
    let first = sets.next().map(unnamed).unwrap_or_default();
    sets.fold(first, |shared, set| both(&shared, &unnamed(set)))
}

fn of_operation(binary: &Binary) -> Vec<Matcher> {
    let (left, right) = (conditions(&binary.left), conditions(&binary.right));
    match (binary.op, &binary.join) {
        (BinaryOp::Or, _) => matched(binary, both(&left, &right)),
        (BinaryOp::Unless | BinaryOp::IfNot, _) => matched(binary, left),
        (_, Some(join)) if join.is_left => either(left, &matched(binary, right)),
        (_, Some(_)) => either(matched(binary, left), &right),
        (_, None) => matched(binary, either(left, &right)),
    }
}

fn shared_by_all(expressions: &[Expr]) -> Vec<Matcher> {
    let mut expressions = expressions.iter();
    let first = expressions.next().map(conditions).unwrap_or_default();
    expressions.fold(first, |shared, expr| both(&shared, &conditions(expr)))
}

fn both(left: &[Matcher], right: &[Matcher]) -> Vec<Matcher> {
    right.iter().filter(|one| left.contains(one)).cloned().collect()
}

fn either(mut left: Vec<Matcher>, right: &[Matcher]) -> Vec<Matcher> {
    let added: Vec<Matcher> = right.iter().filter(|one| !left.contains(one)).cloned().collect();
    left.extend(added);
    left
}

/// The conditions on labels that both sides of an operation must share.
fn matched(binary: &Binary, mut conditions: Vec<Matcher>) -> Vec<Matcher> {
    if let Some(matching) = &binary.matching {
        conditions.retain(|one| matching.labels.contains(&one.name) == matching.is_on);
    }
    conditions
}

/// The conditions on labels that an aggregation keeps.
fn grouped(aggregate: &Aggregate, mut conditions: Vec<Matcher>) -> Vec<Matcher> {
    match &aggregate.grouping {
        None => conditions.clear(),
        Some(Grouping::By(labels)) => conditions.retain(|one| labels.contains(&one.name)),
        Some(Grouping::Without(labels)) => conditions.retain(|one| !labels.contains(&one.name)),
    }
    if aggregate.function.name == "count_values" {
        without_label(aggregate.arguments.first(), &mut conditions);
    }
    conditions
}

// ---- what evaluation adds ----

/// Values of one label that are worth a condition.
const VALUES_MAX: usize = 100;

/// Whether the series of one side of an operation tell which of the other can matter.
pub(super) fn decides(binary: &Binary) -> bool {
    let is_sum_of_all =
        |expr: &Expr| matches!(expr, Expr::Aggregate(one) if has_no_labels(one.grouping.as_ref()));
    let takes_all = matches!(binary.op, BinaryOp::Or | BinaryOp::Default);
    let fills_both = binary.fill_left.is_some() && binary.fill_right.is_some();
    let of_all = is_sum_of_all(&binary.left) || is_sum_of_all(&binary.right);
    !(takes_all || fills_both || of_all)
}

fn has_no_labels(grouping: Option<&Grouping>) -> bool {
    match grouping {
        None => true,
        Some(Grouping::By(labels) | Grouping::Without(labels)) => labels.is_empty(),
    }
}

/// Conditions that all of one side's series meet and that the other's must meet to match them:
/// for each label that all have, its values, if they are few.
pub(super) fn shared_conditions(binary: &Binary, series: &[Series]) -> Vec<Matcher> {
    let mut values: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for (name, value) in series.iter().flat_map(|one| one.labels.iter()) {
        if name != METRIC_NAME {
            let (values, count) = values.entry(name).or_default();
            if values.len() <= VALUES_MAX {
                values.insert(value);
            }
            *count += 1;
        }
    }
    let shared = values
        .into_iter()
        .filter(|(_, (values, count))| *count == series.len() && values.len() <= VALUES_MAX);
    let condition = |(name, (values, _)): (&str, (BTreeSet<&str>, usize))| {
        let values: Vec<&str> = values.into_iter().collect();
        match values.as_slice() {
            [value] => Matcher::equal(name, *value),
            many => {
                let escaped: Vec<String> = many.iter().map(|text| regex::escape(text)).collect();
                Matcher::new(name, MatchOp::Regex, escaped.join("|"))
            }
        }
    };
    matched(binary, shared.map(condition).collect())
}

// ---- functions ----

/// Which arguments a call's series come from.
enum Carrier {
    None,
    All,
    One(usize),
}

fn carrier(call: &Call) -> Carrier {
    let (name, count) = (call.function.name, call.arguments.len());
    if call.function.kind == FunctionKind::Rollup {
        return match name {
            "absent_over_time" => Carrier::None,
            _ => Carrier::One(series_argument(name, count)),
        };
    }
    match name {
        "range_normalize" | "union" => Carrier::All,
        "drop_common_labels" | "absent" | "scalar" | "end" | "now" | "pi" | "start" | "step"
        | "time" => Carrier::None,
        "limit_offset" | "histogram_fraction" => Carrier::One(2),
        "buckets_limit"
        | "histogram_quantile"
        | "histogram_share"
        | "range_quantile"
        | "range_trim_outliers"
        | "range_trim_spikes"
        | "range_trim_zscore" => Carrier::One(1),
        "histogram_quantiles" => Carrier::One(count.saturating_sub(1)),
        _ => Carrier::One(0),
    }
}

fn aggregate_carrier(aggregate: &Aggregate) -> Carrier {
    let name = aggregate.function.name;
    match name {
        "limitk" | "outliers_mad" | "outliersk" | "quantile" | "count_values" => Carrier::One(1),
        "quantiles" => Carrier::One(aggregate.arguments.len().saturating_sub(1)),
        "outliers_iqr" => Carrier::One(0),
        _ if name.starts_with("topk") || name.starts_with("bottomk") => Carrier::One(1),
        _ => Carrier::All,
    }
}

/// What a function leaves of conditions by what it does to labels.
fn after_labels(call: &Call, mut conditions: Vec<Matcher>) -> Vec<Matcher> {
    without_changed_labels(call, &mut conditions);
    if call.function.name == "label_set" {
        for pair in call.arguments.get(1..).unwrap_or_default().chunks(2) {
            match pair {
                [Expr::String(name), Expr::String(_)] if name.value == METRIC_NAME => {}
                [Expr::String(name), Expr::String(value)] => {
                    conditions.push(Matcher::equal(&name.value, &value.value));
                }
                _ => return Vec::new(),
            }
        }
    }
    conditions
}

/// Drops the conditions on labels that a function makes anew or takes away.
fn without_changed_labels(call: &Call, conditions: &mut Vec<Matcher>) {
    let rest = call.arguments.get(1..).unwrap_or_default();
    match call.function.name {
        "label_replace" | "label_join" | "label_map" | "label_match" | "label_mismatch"
        | "label_transform" => without_label(rest.first(), conditions),
        "label_copy" | "label_move" => {
            rest.chunks(2).for_each(|pair| without_label(pair.get(1), conditions));
        }
        "label_set" => rest.chunks(2).for_each(|pair| without_label(pair.first(), conditions)),
        "label_del" | "label_uppercase" | "label_lowercase" | "labels_equal" => {
            rest.iter().for_each(|label| without_label(Some(label), conditions));
        }
        "label_keep" => conditions.retain(|one| {
            let is_kept =
                |label: &Expr| matches!(label, Expr::String(text) if text.value == one.name);
            rest.iter().any(is_kept)
        }),
        "count_values_over_time" => without_label(call.arguments.first(), conditions),
        _ => {}
    }
}

/// Drops the conditions on the label that an argument names; all if it may be any.
fn without_label(label: Option<&Expr>, conditions: &mut Vec<Matcher>) {
    match label {
        Some(Expr::String(text)) => conditions.retain(|one| one.name != text.value),
        _ => conditions.clear(),
    }
}

// ---- putting conditions on an expression ----

/// Adds conditions to the selectors of an expression, as far down as they mean the same.
pub(super) fn demand(expr: &mut Expr, wanted: &[Matcher]) {
    if wanted.is_empty() {
        return;
    }
    match expr {
        Expr::Number(_) | Expr::String(_) | Expr::Duration(_) => {}
        Expr::Selector(selector) => {
            for set in &mut selector.sets {
                *set = either(std::mem::take(set), wanted);
            }
        }
        Expr::Rollup(rollup) => demand(&mut rollup.expr, wanted),
        Expr::Union(union) => demand_of_all(&mut union.expressions, wanted),
        Expr::Binary(binary) => {
            let wanted = matched(binary, wanted.to_vec());
            demand(&mut binary.left, &wanted);
            demand(&mut binary.right, &wanted);
        }
        Expr::Call(call) => {
            let mut wanted = wanted.to_vec();
            without_changed_labels(call, &mut wanted);
            demand_of(carrier(call), &mut call.arguments, &wanted);
        }
        Expr::Aggregate(aggregate) => {
            let wanted = grouped(aggregate, wanted.to_vec());
            demand_of(aggregate_carrier(aggregate), &mut aggregate.arguments, &wanted);
        }
    }
}

fn demand_of(carrier: Carrier, arguments: &mut [Expr], wanted: &[Matcher]) {
    match carrier {
        Carrier::None => {}
        Carrier::All => demand_of_all(arguments, wanted),
        Carrier::One(idx) => arguments.iter_mut().skip(idx).take(1).for_each(|e| demand(e, wanted)),
    }
}

fn demand_of_all(expressions: &mut [Expr], wanted: &[Matcher]) {
    expressions.iter_mut().for_each(|expr| demand(expr, wanted));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut expr = promql::metricsql::parse(text).unwrap();
        push_down(&mut expr);
        let expected = promql::metricsql::parse(expected).unwrap();
        assert_eq!(expr.to_string(), expected.to_string(), "{text}");
    }

    #[test]
    fn conditions_go_where_they_mean_the_same() {
        check(r#"a{x="1"} + b{y="2"}"#, r#"a{x="1",y="2"} + b{y="2",x="1"}"#);
        check(r#"a{x="1"} + on (z) b"#, r#"a{x="1"} + on (z) b"#);
        check(r#"a{x="1"} + on (x) b"#, r#"a{x="1"} + on (x) b{x="1"}"#);
        check(r#"a{x="1"} + ignoring (x) b"#, r#"a{x="1"} + ignoring (x) b"#);
        check(r#"a{x="1"} or b"#, r#"a{x="1"} or b"#);
        check(r#"a{x="1"} unless b"#, r#"a{x="1"} unless b{x="1"}"#);
        check(r#"a default b{x="1"}"#, r#"a{x="1"} default b{x="1"}"#);
        check(r#"a{x="1"} + fill(0) b"#, r#"a{x="1"} + fill(0) b"#);
        check(r#"a{x="1"} + fill_right(0) b"#, r#"a{x="1"} + fill_right(0) b{x="1"}"#);
        check(r#"sum(a{x="1"}) + b"#, r#"sum(a{x="1"}) + b"#);
        check(r#"sum(a{x="1"}) by (x) + b"#, r#"sum(a{x="1"}) by (x) + b{x="1"}"#);
        check(
            r#"b + sum(rate(a[5m])) by (x) * c{x="1"}"#,
            r#"b{x="1"} + sum(rate(a{x="1"}[5m])) by (x) * c{x="1"}"#,
        );
        check(r#"label_set(a, "x", "2") + b{x="1"}"#, r#"label_set(a, "x", "2") + b{x="1",x="2"}"#);
        check(
            r#"label_replace(a, "x", "", "y", "") + b{x="1",z="2"}"#,
            r#"label_replace(a{z="2"}, "x", "", "y", "") + b{x="1",z="2"}"#,
        );
        check(r#"a{x="1" or y="2"} + b{z="3"}"#, r#"a{x="1",z="3" or y="2",z="3"} + b{z="3"}"#);
    }
}
