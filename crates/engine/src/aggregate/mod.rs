//! Aggregations: rows into groups.
//!
//! [`cells`] adds rows into one number per group and step, as they stream by; [`ranked`] picks
//! rows and so needs them all. Rows are added in the order in which they come, which is the
//! source's order for selectors and rollups: sums are compensated, so the order hardly shows,
//! and the source promises to keep it, so the same data give the same bits.

mod cells;
mod count_values;
mod ranked;

use crate::error::{QueryError, Result};
use crate::eval::Evaluator;
use crate::selector::{NameState, Row};
use crate::time::Grid;
use crate::transform::histogram::warn_of_quantiles;
use crate::vector::{ABSENT, Key, Reservation, Vector, is_metadata_label};
use model::LabelsBuilder;
use model::labels::push_pair;
use promql::{Aggregate, AggregateOp, Grouping};
use std::collections::HashMap;

impl Evaluator<'_> {
    /// The value of an aggregation at every step.
    pub fn aggregate(&self, aggregate: &Aggregate, grid: Grid) -> Result<Vector> {
        match aggregate.op {
            AggregateOp::Topk
            | AggregateOp::Bottomk
            | AggregateOp::Limitk
            | AggregateOp::LimitRatio => ranked::evaluate(self, aggregate, grid),
            AggregateOp::CountValues => count_values::evaluate(self, aggregate, grid),
            _ => self.aggregate_cells(aggregate, grid),
        }
    }

    fn aggregate_cells(&self, aggregate: &Aggregate, grid: Grid) -> Result<Vector> {
        let context = self.context;
        let parameter = match &aggregate.parameter {
            Some(parameter) => {
                let q = self.scalar(parameter, grid)?;
                warn_of_quantiles(context, &q, parameter.span());
                Some(q)
            }
            None => None,
        };
        let mut cells = cells::for_op(aggregate.op, grid.len, parameter);
        let mut groups = Groups::new(&aggregate.grouping);
        let reserved = Reservation::new(&context.usage);
        let names: Option<Vec<&str>> = match &aggregate.grouping {
            Grouping::By(names) => Some(names.iter().map(String::as_str).collect()),
            Grouping::Without(_) => None,
        };
        self.stream(&aggregate.expr, grid, names.as_deref(), &mut |row| {
            if row.values.iter().all(|value| crate::vector::is_absent(*value)) {
                return Ok(());
            }
            let known = groups.len();
            let group = groups.of(row);
            if known <= group {
                cells.add_group();
                let bytes = cells.bytes_per_group() + 128;
                reserved.grow(grid.len as u64, bytes as u64);
                context.check_memory()?;
            }
            cells.add_row(group, row.values);
            Ok(())
        })?;
        let mut out = Vector::new(context, grid.len);
        let mut row = vec![ABSENT; grid.len];
        for (group, key) in groups.keys().into_iter().enumerate() {
            cells.finish(group, &mut row);
            out.push(context, key, &row)?;
        }
        Ok(out)
    }
}

/// Numbers groups in the order in which they are first seen.
pub(crate) struct Groups {
    /// Names of the labels that make or do not make a group, sorted.
    names: Vec<String>,
    is_without: bool,
    /// Groups by the canonical bytes of their labels.
    ids: HashMap<Box<[u8]>, usize>,
    /// Whether a row of the group is to lose its name at the end.
    drops_name: Vec<bool>,
    /// Memory for the bytes of the row at hand.
    bytes: Vec<u8>,
}

impl Groups {
    pub fn new(grouping: &Grouping) -> Groups {
        let (names, is_without) = match grouping {
            Grouping::By(names) => (names, false),
            Grouping::Without(names) => (names, true),
        };
        let mut names = names.clone();
        names.sort_unstable();
        Groups { names, is_without, ids: HashMap::new(), drops_name: Vec::new(), bytes: Vec::new() }
    }

    /// The number of the row's group, a new one if it is the first of it.
    pub fn of(&mut self, row: &Row<'_>) -> usize {
        self.bytes.clear();
        // Without labels to look for there is one group, whatever the row.
        if self.is_without || !self.names.is_empty() {
            for (name, value) in row.labels.iter() {
                if self.makes_group(name, row.name) {
                    push_pair(&mut self.bytes, name, value);
                }
            }
        }
        let id = match self.ids.get(self.bytes.as_slice()) {
            Some(id) => *id,
            None => {
                let id = self.ids.len();
                self.ids.insert(self.bytes.as_slice().into(), id);
                self.drops_name.push(false);
                id
            }
        };
        self.drops_name[id] |= row.name == NameState::DroppedLate;
        id
    }

    fn makes_group(&self, name: &str, state: NameState) -> bool {
        if state == NameState::Dropped && is_metadata_label(name) {
            return false;
        }
        let is_listed = match self.names.as_slice() {
            [only] => only == name,
            names => names.binary_search_by(|probe| probe.as_str().cmp(name)).is_ok(),
        };
        if self.is_without { !is_listed && name != model::METRIC_NAME } else { is_listed }
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The keys of all groups, by number.
    pub fn keys(self) -> Vec<Key> {
        let mut keys: Vec<Key> = self
            .drops_name
            .iter()
            .map(|drops_name| Key {
                labels: LabelsBuilder::new().finish(),
                drops_name: *drops_name,
            })
            .collect();
        for (bytes, id) in self.ids {
            // The bytes were made pair by pair, in order.
            keys[id].labels = model::Labels::from_canonical(&bytes).unwrap_or_default();
        }
        keys
    }
}

/// The string parameter of `count_values`, which becomes a label's name.
pub(crate) fn label_parameter(evaluator: &Evaluator<'_>, aggregate: &Aggregate) -> Result<String> {
    let Some(parameter) = &aggregate.parameter else {
        return Err(QueryError::Execution("missing aggregation parameter".to_string()));
    };
    let label = evaluator.string(parameter)?;
    if label.is_empty() {
        return Err(QueryError::Execution("invalid label name \"\"".to_string()));
    }
    Ok(label)
}
