//! Aggregations that pick rows: `topk`, `bottomk`, `limitk`, `limit_ratio`.
//!
//! Among equal values the row that comes first wins.

use super::groups::Groups;
use crate::annotations::short;
use crate::call::Evaluate;
use crate::context::Context;
use crate::error::{QueryError, Result};
use crate::eval::Evaluator;
use crate::gap::{ABSENT, is_absent};
use crate::histograms::aggregate::note_ignored;
use crate::names::{Key, NameState};
use crate::row::Row;
use crate::scalar::Scalar;
use crate::time::Grid;
use crate::vector::Vector;
use promql::{Aggregate, AggregateOp};
use std::cmp::Ordering;
use xxhash_rust::xxh64::xxh64;

pub(super) fn evaluate(
    evaluator: &Evaluator<'_>,
    aggregate: &Aggregate,
    grid: Grid,
) -> Result<Vector> {
    let context = evaluator.context;
    let Some(parameter) = &aggregate.parameter else {
        return Err(QueryError::Execution("missing aggregation parameter".to_string()));
    };
    let count = evaluator.scalar(parameter, grid)?;
    let mut vector = evaluator.vector_in_order(&aggregate.expr, grid)?;
    if !check_parameter(evaluator, aggregate, &count)? {
        return Ok(Vector::new(context, grid.len));
    }
    if vector.has_histograms() && matches!(aggregate.op, AggregateOp::Topk | AggregateOp::Bottomk) {
        leave_histograms_out(context, aggregate, &count, &mut vector);
    }
    let mut groups = Groups::new(&aggregate.grouping);
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (idx, (key, values)) in vector.rows().enumerate() {
        let group = groups.of(&Row::numbers(&key.labels, NameState::of(key), values));
        if members.len() <= group {
            members.push(Vec::new());
        }
        members[group].push(idx);
    }
    let offsets: Vec<f64> = match aggregate.op {
        AggregateOp::LimitRatio => vector.keys().iter().map(sample_offset).collect(),
        _ => Vec::new(),
    };
    let mut picked = vec![ABSENT; vector.len() * grid.len];
    let mut order = Vec::new();
    let mut present = Vec::new();
    for rows in &members {
        for step in 0..grid.len {
            context.check()?;
            let there = |idx: &&usize| !is_absent(vector.row(**idx)[step]);
            present.clear();
            present.extend(rows.iter().filter(there).copied());
            match aggregate.op {
                AggregateOp::LimitRatio => {
                    present.retain(|idx| is_sampled(offsets[*idx], count.at(step)));
                }
                op => pick(op, &vector, step, count.at(step), &mut present),
            }
            for idx in &present {
                picked[idx * grid.len + step] = vector.row(*idx)[step];
            }
            if grid.len == 1 {
                order.extend_from_slice(&present);
            }
        }
    }
    collect(evaluator, aggregate.op, &vector, &picked, &order)
}

/// The picked rows; those of an instant query in the order in which they were picked.
fn collect(
    evaluator: &Evaluator<'_>,
    op: AggregateOp,
    vector: &Vector,
    picked: &[f64],
    order: &[usize],
) -> Result<Vector> {
    let mut out = Vector::new(evaluator.context, vector.steps());
    let is_instant = vector.steps() == 1;
    let all: Vec<usize> = (0..vector.len()).collect();
    for idx in if is_instant { order } else { &all } {
        let row = &picked[idx * vector.steps()..(idx + 1) * vector.steps()];
        let cells = vector.cells(*idx);
        out.push_mixed(evaluator.context, vector.key(*idx).clone(), row, cells)?;
    }
    out.is_ordered = is_instant && matches!(op, AggregateOp::Topk | AggregateOp::Bottomk);
    Ok(out)
}

/// Histograms have no rank. They are noted where something is picked at all.
fn leave_histograms_out(
    context: &Context<'_>,
    aggregate: &Aggregate,
    count: &Scalar,
    vector: &mut Vector,
) {
    let is_asked = |(idx, step): (usize, usize)| {
        1.0 <= count.at(step) && vector.histogram(idx, step).is_some()
    };
    let steps = vector.steps();
    if (0..vector.len()).flat_map(|idx| (0..steps).map(move |step| (idx, step))).any(is_asked) {
        note_ignored(context, aggregate.op, aggregate.span);
    }
    vector.drop_histograms();
}

/// Whether anything can be picked at all.
fn check_parameter(
    evaluator: &Evaluator<'_>,
    aggregate: &Aggregate,
    count: &Scalar,
) -> Result<bool> {
    let fail = |message: String| Err(QueryError::Execution(message));
    let values = count.values();
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let any_nan = values.iter().any(|value| value.is_nan());
    if aggregate.op == AggregateOp::LimitRatio {
        if largest == 0.0 && smallest == 0.0 && !any_nan {
            return Ok(false);
        }
        if any_nan {
            return fail("Ratio value is NaN".to_string());
        }
        let span = aggregate.parameter.as_ref().map(promql::Expr::span).unwrap_or_default();
        for (value, bound) in [(largest, 1.0_f64), (smallest, -1.0)] {
            if bound.abs() < value.abs() && value.signum() == f64::signum(bound) {
                let (value, bound) = (short(value), short(bound));
                let message = format!(
                    "ratio value should be between -1 and 1, got {value}, capping to {bound}"
                );
                evaluator.context.annotations.warn(span, message);
            }
        }
        return Ok(true);
    }
    if any_nan {
        return fail("Parameter value is NaN".to_string());
    }
    if largest < 1.0 {
        return Ok(false);
    }
    if smallest <= i64::MIN as f64 {
        return fail(format!("Scalar value {} underflows int64", short(smallest)));
    }
    if i64::MAX as f64 <= largest {
        return fail(format!("Scalar value {} overflows int64", short(largest)));
    }
    Ok(true)
}

/// Reduces `rows`, all present at `step`, to those that are picked, in order.
fn pick(op: AggregateOp, vector: &Vector, step: usize, count: f64, rows: &mut Vec<usize>) {
    let count = if count < 1.0 { 0 } else { (count as usize).min(rows.len()) };
    if op != AggregateOp::Limitk && 0 < count {
        let value = |idx: &usize| vector.row(*idx)[step];
        let better = |a: &usize, b: &usize| rank(op, value(a), value(b)).then_with(|| a.cmp(b));
        if count < rows.len() {
            rows.select_nth_unstable_by(count - 1, better);
            rows.truncate(count);
        }
        rows.sort_unstable_by(better);
    }
    rows.truncate(count);
}

/// Best first; NaN is always worst.
fn rank(op: AggregateOp, a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => {
            let ascending = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
            if op == AggregateOp::Topk { ascending.reverse() } else { ascending }
        }
        (a, b) => a.cmp(&b),
    }
}

/// Whether a series is in the sample of a ratio; a negative one picks exactly those that its
/// complement leaves out.
fn is_sampled(offset: f64, ratio: f64) -> bool {
    let ratio = ratio.clamp(-1.0, 1.0);
    if 0.0 <= ratio { offset < ratio } else { 1.0 + ratio <= offset }
}

/// Where a series stands between 0 and 1, always at the same place: by the hash that Prometheus
/// has of its labels, so that both pick the same series.
fn sample_offset(key: &Key) -> f64 {
    let mut bytes = Vec::new();
    for pair in key.labels.pairs() {
        for text in [pair.name, pair.value] {
            let len = text.len() as u32;
            match u8::try_from(len) {
                Ok(len) if len < u8::MAX => bytes.push(len),
                _ => {
                    bytes.push(u8::MAX);
                    bytes.extend_from_slice(&len.to_le_bytes()[..3]);
                }
            }
            bytes.extend_from_slice(text);
        }
    }
    xxh64(&bytes, 0) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Labels;

    #[test]
    fn offsets_are_prometheus_own() {
        // Hashes told by Prometheus 3.14's labels.
        for (labels, hash) in [
            (Labels::default(), 17_241_709_254_077_376_921_u64),
            (
                Labels::from_pairs(&[("__name__", "http_requests"), ("instance", "0")]),
                6_977_925_629_793_450_047,
            ),
            (Labels::from_pairs(&[("a", "x".repeat(254))]), 15_390_423_940_348_798_586),
            (Labels::from_pairs(&[("a", "x".repeat(255))]), 7_843_869_350_762_009_678),
            (
                Labels::from_pairs(&[("a", "é".repeat(300)), ("b", "c".into())]),
                16_420_742_514_300_849_954,
            ),
        ] {
            let key = Key::new(labels);
            assert_eq!(sample_offset(&key), hash as f64 / u64::MAX as f64, "{:?}", key.labels);
        }
    }

    #[test]
    fn a_ratio_and_its_complement_share_out_all_series() {
        for (offset, ratio, is_in) in [
            (0.3, 0.4, true),
            (0.3, -0.6, false),
            (0.4, 0.4, false),
            (0.4, -0.6, true),
            (1.0, 2.0, false),
        ] {
            assert_eq!(is_sampled(offset, ratio), is_in, "{offset} {ratio}");
        }
    }
}
