//! `count_values`: how often each value occurs, a series per value.

use super::groups::Groups;
use crate::call::Evaluate;
use crate::error::{QueryError, Result};
use crate::eval::Evaluator;
use crate::gap::{ABSENT, is_absent};
use crate::histograms::cells::cell_at;
use crate::names::{Key, NameState};
use crate::row::Row;
use crate::time::Grid;
use crate::vector::Vector;
use promql::{Aggregate, Expr, Grouping};
use std::collections::HashMap;

pub(super) fn evaluate(
    evaluator: &Evaluator<'_>,
    aggregate: &Aggregate,
    grid: Grid,
) -> Result<Vector> {
    let label = label_parameter(evaluator, aggregate)?;
    let grouping = match &aggregate.grouping {
        Grouping::By(names) => {
            let mut names = names.clone();
            names.push(label.clone());
            Grouping::By(names)
        }
        without => without.clone(),
    };
    let vector = evaluator.vector(&aggregate.expr, grid)?;
    let mut groups = Groups::new(&grouping);
    let mut counts: Vec<Vec<f64>> = Vec::new();
    for (idx, (key, values)) in vector.rows().enumerate() {
        evaluator.context.check()?;
        let cells = vector.cells(idx);
        // The groups that this row's values lead to, by the values' bits.
        let mut known: HashMap<u64, usize> = HashMap::new();
        for (step, value) in values.iter().enumerate().filter(|(_, value)| !is_absent(**value)) {
            let group = match cell_at(cells, step) {
                Some(histogram) => group_of(&mut groups, key, &label, &histogram.to_string()),
                None => *known.entry(value.to_bits()).or_insert_with(|| {
                    group_of(&mut groups, key, &label, &promql::format_number(*value))
                }),
            };
            if counts.len() <= group {
                counts.push(vec![ABSENT; grid.len]);
            }
            let count = &mut counts[group][step];
            *count = if is_absent(*count) { 1.0 } else { *count + 1.0 };
        }
    }
    let mut out = Vector::new(evaluator.context, grid.len);
    for (key, row) in groups.keys().into_iter().zip(counts) {
        out.push(evaluator.context, Key::new(key.labels), &row)?;
    }
    Ok(out)
}

fn group_of(groups: &mut Groups, key: &Key, label: &str, value: &str) -> usize {
    let mut builder = key.labels.to_builder();
    builder.set(label, value);
    groups.of(&Row::numbers(&builder.finish(), NameState::Kept, &[]))
}

/// The string parameter of `count_values`, which becomes a label's name.
fn label_parameter(evaluator: &Evaluator<'_>, aggregate: &Aggregate) -> Result<String> {
    let Some(parameter) = &aggregate.parameter else {
        return Err(QueryError::Execution("missing aggregation parameter".to_string()));
    };
    let label = evaluator.string(parameter)?;
    if let Expr::String(literal) = parameter.without_parens()
        && (label.is_empty() || literal.odd_bytes.is_some())
    {
        let message = format!("invalid label name {}", literal.quoted());
        return Err(QueryError::Execution(message));
    }
    Ok(label)
}
