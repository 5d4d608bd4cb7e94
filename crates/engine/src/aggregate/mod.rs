//! Aggregations: rows into groups.
//!
//! [`cells`] adds rows into one number per group and step, as they stream by; [`ranked`] picks
//! rows and so needs them all. Rows are added in the order in which they come, which is the
//! source's order for selectors and rollups: sums are compensated, so the order hardly shows,
//! and the source promises to keep it, so the same data give the same bits. Where rows come from
//! elsewhere they are taken in the order of their labels ([`crate::order`]).

mod cells;
mod count_values;
mod ranked;

use crate::error::{QueryError, Result};
use crate::eval::Evaluator;
use crate::histograms::aggregate::MixedGroups;
use crate::order::is_source_order;
use crate::selector::{NameState, Row, RowSink, Wanted};
use crate::time::Grid;
use crate::transform::histogram::warn_of_quantiles;
use crate::vector::{ABSENT, Key, Reservation, Vector, is_metadata_label};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use promql::{Aggregate, AggregateOp, Expr, Grouping};
use xxhash_rust::xxh3::xxh3_64;

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
        let mut mixed = MixedGroups::new(context, aggregate, grid.len);
        let mut add = |row: &Row<'_>| {
            if row.values.iter().all(|value| crate::vector::is_absent(*value)) {
                return Ok(());
            }
            let known = groups.len();
            let group = groups.of(row);
            let mut values = row.values;
            if mixed.concern(row) {
                let is_known = group < known;
                values = mixed.take(group, row, |row| {
                    if is_known {
                        cells.finish(group, row);
                    }
                })?;
            }
            if group < known {
                cells.add_row(group, values);
                return Ok(());
            }
            cells.add_group(values);
            let bytes = cells.bytes_per_group() + 128;
            reserved.grow(grid.len as u64, bytes as u64);
            context.check_memory()
        };
        if matches!(aggregate.op, AggregateOp::Count | AggregateOp::Group) {
            // How many there are does not depend on their order, so nothing is sorted.
            self.stream(&aggregate.expr, grid, names.as_deref(), &mut add)?;
        } else {
            self.stream_in_order(&aggregate.expr, grid, names.as_deref(), &mut add)?;
        }
        let mut out = Vector::new(context, grid.len);
        out.reserve(groups.len());
        let (mut row, mut histograms) = (vec![ABSENT; grid.len], Vec::new());
        for (group, key) in groups.keys().into_iter().enumerate() {
            cells.finish(group, &mut row);
            mixed.finish(group, &mut row, &mut histograms);
            out.push_mixed(context, key, &row, &histograms)?;
        }
        Ok(out)
    }

    /// As [`Evaluator::stream`], in an order that does not depend on which steps there are.
    fn stream_in_order(
        &self,
        expr: &Expr,
        grid: Grid,
        wanted: Wanted<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        if is_source_order(expr) {
            return self.stream(expr, grid, wanted, sink);
        }
        self.vector_in_order(expr, grid)?.stream(sink)
    }

    /// As [`Evaluator::vector`], in such an order.
    fn vector_in_order(&self, expr: &Expr, grid: Grid) -> Result<Vector> {
        let mut vector = self.vector(expr, grid)?;
        if !is_source_order(expr) {
            vector.order_by_labels();
        }
        Ok(vector)
    }
}

/// Numbers groups in the order in which they are first seen.
pub(crate) struct Groups {
    grouped: GroupedLabels,
    /// Hashes of the canonical bytes of labels, and where these are in `keys`.
    ids: HashTable<(u64, u32)>,
    /// Labels that make each group, and whether a row of it is to lose its name at the end.
    keys: Vec<Key>,
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
        let grouped = GroupedLabels { names, is_without };
        Groups { grouped, ids: HashTable::new(), keys: Vec::new(), bytes: Vec::new() }
    }

    /// The number of the row's group, a new one if it is the first of it.
    pub fn of(&mut self, row: &Row<'_>) -> usize {
        let Groups { grouped, ids, keys, bytes } = self;
        bytes.clear();
        // Without labels to look for there is one group, whatever the row.
        if grouped.is_without || !grouped.names.is_empty() {
            for pair in row.labels.pairs() {
                if grouped.contains(pair.name, row.name) {
                    bytes.extend_from_slice(pair.bytes);
                }
            }
        }
        let hash = xxh3_64(bytes);
        let is_same = |(known, id): &(u64, u32)| {
            *known == hash && keys[*id as usize].labels.as_bytes() == bytes
        };
        let id = match ids.entry(hash, is_same, |(known, _)| *known) {
            Entry::Occupied(found) => found.get().1 as usize,
            Entry::Vacant(place) => {
                let id = keys.len();
                place.insert((hash, u32::try_from(id).expect("memory for fewer groups")));
                keys.push(Key::new(row.labels.only(|name| grouped.contains(name, row.name))));
                id
            }
        };
        keys[id].drops_name |= row.name == NameState::DroppedLate;
        id
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The keys of all groups, by number.
    pub fn keys(self) -> Vec<Key> {
        self.keys
    }
}

/// Which labels make a group.
struct GroupedLabels {
    /// Names of the labels that make or do not make a group, sorted.
    names: Vec<String>,
    is_without: bool,
}

impl GroupedLabels {
    fn contains(&self, name: &[u8], state: NameState) -> bool {
        if state == NameState::Dropped && is_metadata_label(name) {
            return false;
        }
        let is_listed = match self.names.as_slice() {
            [only] => only.as_bytes() == name,
            names => names.binary_search_by(|probe| probe.as_bytes().cmp(name)).is_ok(),
        };
        match self.is_without {
            true => !is_listed && name != model::METRIC_NAME.as_bytes(),
            false => is_listed,
        }
    }
}

/// The string parameter of `count_values`, which becomes a label's name.
pub(crate) fn label_parameter(evaluator: &Evaluator<'_>, aggregate: &Aggregate) -> Result<String> {
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
