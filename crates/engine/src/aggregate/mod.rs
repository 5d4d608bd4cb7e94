//! Aggregations: rows into groups.
//!
//! [`cells`] adds rows into one number per group and step, as they stream by; [`ranked`] picks
//! rows and so needs them all. Rows are added in the order in which they come, which is the
//! source's order for selectors and rollups: sums are compensated, so the order hardly shows,
//! and the source promises to keep it, so the same data give the same bits. Where rows come from
//! elsewhere they are taken in the order of their labels ([`crate::order`]). Steps that another
//! database makes itself are asked of it ([`elsewhere`]).

mod cells;
mod count_values;
mod elsewhere;
mod groups;
mod ranked;

pub(crate) use groups::Groups;

use crate::call::Evaluate;
use crate::error::Result;
use crate::eval::Evaluator;
use crate::gap::ABSENT;
use crate::histograms::aggregate::MixedGroups;
use crate::order::is_source_order;
use crate::reservation::Reservation;
use crate::row::{Row, RowSink, Wanted};
use crate::time::Grid;
use crate::transform::histogram::warn_of_extreme_quantiles;
use crate::vector::Vector;
use promql::{Aggregate, AggregateOp, Expr, Grouping};

impl Evaluator<'_> {
    /// The value of an aggregation at every step.
    pub fn aggregate(&self, aggregate: &Aggregate, grid: Grid) -> Result<Vector> {
        match self.folded_elsewhere(aggregate, grid)? {
            Some(folded) => self.behind_folded(folded, aggregate, grid),
            None => self.aggregate_here(aggregate, grid),
        }
    }

    fn aggregate_here(&self, aggregate: &Aggregate, grid: Grid) -> Result<Vector> {
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
                warn_of_extreme_quantiles(context, &q, parameter.without_parens().span());
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
            if row.values.iter().all(|value| crate::gap::is_absent(*value)) {
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
