//! Moves the domain of a correlated subquery through its plan: each node has the columns of the domain beside its own,
//! and does for each combination of them what it did once.
//!
//! ```text
//! filter                join with the domain     aggregate, DISTINCT ON    grouped by the domain, too
//! window                partitioned by it        LIMIT                     first rows of each combination
//! join, UNION           of both sides with it    aggregate of all rows     left join of the domain below
//! ```

use crate::plan::runs::node::FirstOfRuns;
use crate::plan::subqueries::decorrelation::domain::{Domain, check_volatile, marked};
use crate::plan::subqueries::decorrelation::outer::{
    Names, columns_of, lateral_of, outer_columns, refused, renamed, subquery_of, visible,
};
use crate::types::traversal::Traversal as _;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, Sort, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{FetchType, SkipType};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprFunctionExt as _, Join, Limit, LogicalPlan,
    LogicalPlanBuilder, SubqueryAlias, Union, Values, Window, cast, lit,
};
use std::sync::Arc;

/// A plan with the columns of the domain, and these.
type Bound = (LogicalPlan, Vec<Column>);

/// Moves a domain through the plan of a subquery.
pub struct Binder<'a> {
    domain: &'a Domain,
    names: &'a mut usize,
}

impl<'a> Binder<'a> {
    /// Creates a binder for a domain. `names` counts the generated names.
    pub fn new(domain: &'a Domain, names: &'a mut usize) -> Binder<'a> {
        Binder { domain, names }
    }

    /// The rows of a plan for each combination of the domain.
    ///
    /// # Errors
    /// `0A000` where that is not known.
    pub fn bind(&mut self, plan: &LogicalPlan) -> Result<Bound> {
        check_volatile(plan)?;
        if !self.refers(plan)? {
            return self.beside(plan);
        }
        match plan {
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Sort(_) => {
                self.bind_plain(plan)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let (rows, keys) = self.bind(&alias.input)?;
                let made = SubqueryAlias::try_new(Arc::new(rows), alias.alias.clone())?;
                let named = |key: Column| Column::new(Some(alias.alias.clone()), key.name);
                Ok((LogicalPlan::SubqueryAlias(made), keys.into_iter().map(named).collect()))
            }
            LogicalPlan::Aggregate(aggregate) => self.bind_aggregate(aggregate),
            LogicalPlan::Window(window) => self.bind_window(window),
            LogicalPlan::Limit(limit) => self.bind_limit(limit, &limit.input),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let (rows, keys) = self.bind(input)?;
                Ok((LogicalPlan::Distinct(Distinct::All(Arc::new(rows))), keys))
            }
            LogicalPlan::Distinct(Distinct::On(on)) => self.bind_distinct_on(on),
            LogicalPlan::Union(union) => self.bind_union(union),
            LogicalPlan::Join(join) => self.bind_join(join),
            // A function of columns of outside, as the first table.
            LogicalPlan::Subquery(subquery) => self.bind(&subquery.subquery),
            LogicalPlan::Values(values) => self.bind_values(values),
            LogicalPlan::Unnest(unnest) => {
                let (rows, keys) = self.bind(&unnest.input)?;
                let made = LogicalPlanBuilder::from(rows).unnest_columns_with_options(
                    unnest.exec_columns.clone(),
                    unnest.options.clone(),
                )?;
                Ok((made.build()?, keys))
            }
            other => Err(refused(&format!(
                "a column of the query outside below {} is not known here",
                other.display()
            ))),
        }
    }

    /// Whether a plan names a column of the domain.
    fn refers(&self, plan: &LogicalPlan) -> Result<bool> {
        let columns = outer_columns(plan)?;
        Ok(columns.iter().any(|column| self.domain.columns.contains(column)))
    }

    fn name(&mut self, kind: &str) -> String {
        *self.names += 1;
        format!("\0{kind}{}", self.names)
    }

    /// The domain with columns of new names.
    fn fresh(&mut self) -> Result<Bound> {
        let count = self.domain.columns.len();
        let names: Vec<String> = (0..count).map(|_| self.name("outer")).collect();
        let rows = self.domain.plan(&names)?;
        Ok((rows, names.into_iter().map(Column::from_name).collect()))
    }

    /// The same rows for each combination.
    fn beside(&mut self, plan: &LogicalPlan) -> Result<Bound> {
        let (rows, keys) = self.fresh()?;
        if matches!(plan, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row) {
            return Ok((rows, keys));
        }
        Ok((LogicalPlanBuilder::from(rows).cross_join(plan.clone())?.build()?, keys))
    }

    /// An expression over rows with the columns of the domain.
    fn inward(&self, expr: Expr, keys: &[Column], seen: &DFSchema) -> Result<Expr> {
        let key = |column: &Column| {
            let at = self.domain.columns.iter().position(|one| one == column)?;
            keys.get(at).cloned()
        };
        let names: Names<'_> = &key;
        let made = expr.transform_down(|expr| match expr {
            Expr::OuterReferenceColumn(field, column) => Ok(match key(&column) {
                Some(key) => Transformed::yes(Expr::Column(key)),
                None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
            }),
            expr if subquery_of(&expr).is_some() => {
                crate::plan::subqueries::decorrelation::outer::map_subquery(expr, |subquery| {
                    renamed(subquery, names, seen.clone())
                })
            }
            other => Ok(Transformed::no(other)),
        });
        made.data()
    }

    /// The same of an expression that has a name in its node.
    fn inward_named(&self, expr: &Expr, keys: &[Column], seen: &DFSchema) -> Result<Expr> {
        let name = NamePreserver::new_for_projection().save(expr);
        Ok(name.restore(self.inward(expr.clone(), keys, seen)?))
    }

    fn bind_plain(&mut self, plan: &LogicalPlan) -> Result<Bound> {
        let (rows, keys) = self.bind(plan.inputs()[0])?;
        let seen = visible(plan);
        let is_named = matches!(plan, LogicalPlan::Projection(_));
        let exprs = plan.expressions();
        let exprs = exprs.iter().map(|expr| match is_named {
            true => self.inward_named(expr, &keys, &seen),
            false => self.inward(expr.clone(), &keys, &seen),
        });
        let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
        if is_named {
            exprs.extend(keys.iter().cloned().map(Expr::Column));
        }
        Ok((plan.with_new_exprs(exprs, vec![rows])?, keys))
    }

    fn bind_aggregate(&mut self, aggregate: &Aggregate) -> Result<Bound> {
        let seen = (*aggregate.input.schema()).as_ref().clone();
        let exprs = aggregate.aggr_expr.iter();
        if exprs.clone().any(depends_on_order) && has_order(&aggregate.input) {
            return Err(refused(
                "an aggregate of ordered rows that a column of the query outside picks is not known here",
            ));
        }
        if exprs.clone().any(is_of_outside) {
            return Err(refused("an aggregate of columns of the query outside is not known here"));
        }
        if aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            let words = "grouping sets over rows that a column of the query outside picks are not known here";
            return Err(refused(words));
        }
        let is_total = aggregate.group_expr.is_empty();
        let marker = is_total.then(|| self.name("marker"));
        let (rows, keys) = match &marker {
            Some(marker) => self.padded(&aggregate.input, marker)?,
            None => self.bind(&aggregate.input)?,
        };
        let groups = aggregate.group_expr.iter();
        let mut groups =
            groups.map(|expr| self.inward_named(expr, &keys, &seen)).collect::<Result<Vec<_>>>()?;
        groups.extend(keys.iter().cloned().map(Expr::Column));
        let called = |expr: &Expr| {
            let name = NamePreserver::new_for_projection().save(expr);
            let made = self.inward(expr.clone(), &keys, &seen)?;
            let made = match &marker {
                Some(marker) => where_marked(made, marker)?,
                None => made,
            };
            Ok(name.restore(made))
        };
        let exprs = exprs.map(called).collect::<Result<Vec<_>>>()?;
        let made = Aggregate::try_new(Arc::new(rows), groups, exprs)?;
        Ok((LogicalPlan::Aggregate(made), keys))
    }

    /// The rows of a plan for each combination; a row without the marker for a combination that has none.
    fn padded(&mut self, plan: &LogicalPlan, marker: &str) -> Result<Bound> {
        let (domain, keys) = self.fresh()?;
        if let LogicalPlan::Filter(filter) = plan
            && !self.refers(&filter.input)?
            && !filter.predicate.exists(|one| Ok(subquery_of(one).is_some()))?
        {
            let rows = marked(LogicalPlan::clone(&filter.input), marker)?;
            let seen = visible(plan);
            let condition = self.inward(filter.predicate.clone(), &keys, &seen)?;
            let made = LogicalPlanBuilder::from(domain);
            return Ok((made.join_on(rows, JoinType::Left, [condition])?.build()?, keys));
        }
        let (rows, own) = self.bind(plan)?;
        let rows = marked(rows, marker)?;
        let made = LogicalPlanBuilder::from(domain)
            .join_detailed(
                rows,
                JoinType::Left,
                (keys.clone(), own),
                None,
                NullEquality::NullEqualsNull,
            )?
            .build()?;
        Ok((made, keys))
    }

    fn bind_window(&mut self, window: &Window) -> Result<Bound> {
        if window.window_expr.iter().any(depends_on_order) && has_order(&window.input) {
            return Err(refused(
                "a window without an order over ordered rows that a column of the query outside picks is not known here",
            ));
        }
        let (rows, keys) = self.bind(&window.input)?;
        let seen = (*window.input.schema()).as_ref().clone();
        let called = |expr: &Expr| {
            let name = NamePreserver::new_for_projection().save(expr);
            let made = self.inward(expr.clone(), &keys, &seen)?.transform_up(|expr| match expr {
                Expr::WindowFunction(mut called) => {
                    let parts = &mut called.params.partition_by;
                    parts.extend(keys.iter().cloned().map(Expr::Column));
                    Ok(Transformed::yes(Expr::WindowFunction(called)))
                }
                other => Ok(Transformed::no(other)),
            });
            Ok(name.restore(made.data()?))
        };
        let exprs = window.window_expr.iter().map(called).collect::<Result<Vec<_>>>()?;
        let made = Window::try_new(exprs, Arc::new(rows))?;
        Ok((LogicalPlan::Window(made), keys))
    }

    /// The first rows of an input, which may be in an order below its columns.
    fn bind_limit(&mut self, limit: &Limit, input: &LogicalPlan) -> Result<Bound> {
        let literals = match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => Some((skip, fetch)),
            _ => None,
        };
        let (sorts, rows) = match input {
            LogicalPlan::Sort(sort) => (sort.expr.clone(), &*sort.input),
            LogicalPlan::Projection(projection) if has_order(input) => {
                return self.below(limit, input, &projection.input);
            }
            LogicalPlan::SubqueryAlias(alias) if has_order(input) => {
                return self.below(limit, input, &alias.input);
            }
            _ if has_order(input) => {
                return Err(refused(
                    "LIMIT of rows whose order is that of a subquery is not known here",
                ));
            }
            other => (Vec::new(), other),
        };
        let shown = columns_of(rows);
        let (bound, keys) = self.bind(rows)?;
        let seen = (*rows.schema()).as_ref().clone();
        let sorts = sorts.into_iter().map(|sort| {
            let expr = self.inward(sort.expr.clone(), &keys, &seen)?;
            Ok(sort.with_expr(expr))
        });
        let sorts = sorts.collect::<Result<Vec<_>>>()?;
        let firsts = match literals {
            Some((0, None)) => bound,
            Some((0, Some(count))) if 0 < count => {
                let each = keys.iter().map(|key| Sort::new(Expr::Column(key.clone()), true, false));
                let order = each.chain(sorts.iter().cloned()).collect();
                FirstOfRuns::new(bound, order, keys.len(), count).into_plan()
            }
            _ => self.numbered(bound, &keys, &sorts, limit, shown)?,
        };
        if sorts.is_empty() {
            return Ok((firsts, keys));
        }
        Ok((LogicalPlanBuilder::from(firsts).sort(sorts)?.build()?, keys))
    }

    /// LIMIT below columns or an alias.
    fn below(
        &mut self,
        limit: &Limit,
        node: &LogicalPlan,
        input: &Arc<LogicalPlan>,
    ) -> Result<Bound> {
        let cut = LogicalPlan::Limit(Limit { input: input.clone(), ..limit.clone() });
        self.bind(&node.with_new_exprs(node.expressions(), vec![cut])?)
    }

    /// Rows by their numbers among those of each combination.
    fn numbered(
        &mut self,
        rows: LogicalPlan,
        keys: &[Column],
        sorts: &[Sort],
        limit: &Limit,
        shown: Vec<Expr>,
    ) -> Result<LogicalPlan> {
        let name = self.name("nth");
        let parts: Vec<Expr> = keys.iter().cloned().map(Expr::Column).collect();
        let number = row_number().partition_by(parts.clone());
        let number = match sorts.is_empty() {
            true => number.build()?,
            false => number.order_by(sorts.to_vec()).build()?,
        };
        let nth = || Expr::Column(Column::from_name(&name));
        let count = |expr: &Expr| cast(expr.clone(), DataType::Int64);
        // OFFSET NULL is no offset.
        let skip = || match limit.skip.as_deref() {
            Some(skip) => datafusion::functions::expr_fn::coalesce(vec![count(skip), lit(0_i64)]),
            None => lit(0_i64),
        };
        let mut condition = nth().gt(skip());
        if let Some(fetch) = limit.fetch.as_deref() {
            // LIMIT NULL is no limit; the sum of two numbers may be beyond all.
            let is_within = (nth() - skip()).lt_eq(count(fetch));
            condition = condition.and(is_within.or(count(fetch).is_null()));
        }
        LogicalPlanBuilder::from(rows)
            .window([number.alias(&name)])?
            .filter(condition)?
            .project(shown.into_iter().chain(parts))?
            .build()
    }

    fn bind_distinct_on(&mut self, on: &DistinctOn) -> Result<Bound> {
        let (rows, keys) = self.bind(&on.input)?;
        let seen = (*on.input.schema()).as_ref().clone();
        let own = || keys.iter().cloned().map(Expr::Column);
        let all = |exprs: &[Expr]| {
            exprs
                .iter()
                .map(|expr| self.inward_named(expr, &keys, &seen))
                .collect::<Result<Vec<_>>>()
        };
        let by = on.on_expr.iter().map(|expr| self.inward(expr.clone(), &keys, &seen));
        let by = own().map(Ok).chain(by).collect::<Result<Vec<_>>>()?;
        let mut shown = all(&on.select_expr)?;
        shown.extend(own());
        let sorts = match &on.sort_expr {
            Some(sorts) => {
                let each = own().map(|key| Ok(Sort::new(key, true, false)));
                let sorts = sorts.iter().map(|sort| {
                    Ok(sort.with_expr(self.inward(sort.expr.clone(), &keys, &seen)?))
                });
                Some(each.chain(sorts).collect::<Result<Vec<_>>>()?)
            }
            None => None,
        };
        let made = DistinctOn::try_new(by, shown, sorts, Arc::new(rows))?;
        Ok((LogicalPlan::Distinct(Distinct::On(made)), keys))
    }

    fn bind_union(&mut self, union: &Union) -> Result<Bound> {
        let parts = union
            .inputs
            .iter()
            .map(|input| self.bind(input).map(|bound| (bound, columns_of(input))));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let shown = union.schema.columns();
        self.united(parts, &shown)
    }

    /// The rows of several plans, with columns of these names.
    fn united(&mut self, parts: Vec<(Bound, Vec<Expr>)>, shown: &[Column]) -> Result<Bound> {
        let keys: Vec<String> =
            (0..self.domain.columns.len()).map(|_| self.name("outer")).collect();
        let names: Vec<String> = shown.iter().map(|_| self.name("column")).collect();
        let mut inputs = Vec::new();
        for ((rows, own), columns) in parts {
            let columns = columns.into_iter().zip(&names).map(|(expr, name)| expr.alias(name));
            let own = own.into_iter().zip(&keys).map(|(key, name)| Expr::Column(key).alias(name));
            let made = LogicalPlanBuilder::from(rows).project(columns.chain(own))?.build()?;
            inputs.push(Arc::new(made));
        }
        let made = match <[Arc<LogicalPlan>; 1]>::try_from(inputs) {
            Ok([only]) => Arc::unwrap_or_clone(only),
            Err(inputs) => LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?),
        };
        let named = names.into_iter().zip(shown).map(|(name, column)| {
            let made = Expr::Column(Column::from_name(name));
            made.alias_qualified(column.relation.clone(), column.name.clone())
        });
        let keys: Vec<Column> = keys.into_iter().map(Column::from_name).collect();
        let all = named.chain(keys.iter().cloned().map(Expr::Column));
        Ok((LogicalPlanBuilder::from(made).project(all)?.build()?, keys))
    }

    /// Rows of values that name columns of outside.
    fn bind_values(&mut self, values: &Values) -> Result<Bound> {
        let seen = DFSchema::empty();
        let mut parts = Vec::new();
        for row in &values.values {
            let (rows, keys) = self.fresh()?;
            let row = row.iter().map(|expr| self.inward(expr.clone(), &keys, &seen));
            let row = row.collect::<Result<Vec<_>>>()?;
            parts.push(((rows, keys), row));
        }
        let shown = values.schema.columns();
        self.united(parts, &shown)
    }

    fn bind_join(&mut self, join: &Join) -> Result<Bound> {
        let (left, right) = (self.refers(&join.left)?, self.refers(&join.right)?);
        let is_lateral = lateral_of(&join.right).is_some();
        let (keeps_left, keeps_right) = match join.join_type {
            JoinType::Inner => (false, false),
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                (true, false)
            }
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                (false, true)
            }
            JoinType::Full => (true, true),
        };
        // A side whose rows stay without those of the other one has the domain, too.
        let binds_left = left || keeps_left || is_lateral || !right;
        let binds_right = !is_lateral && (right || keeps_right);
        let ((rows, keys), other) = match (binds_left, binds_right) {
            (true, false) => (self.bind_or_beside(&join.left)?, None),
            (false, true) => (self.bind_or_beside(&join.right)?, None),
            _ => {
                let bound = self.bind_or_beside(&join.left)?;
                (bound, Some(self.bind_or_beside(&join.right)?))
            }
        };
        let seen = visible(&LogicalPlan::Join(join.clone()));
        let filter = join.filter.clone().map(|one| self.inward(one, &keys, &seen)).transpose()?;
        let on = join.on.iter().map(|(left, right)| {
            Ok((
                self.inward(left.clone(), &keys, &seen)?,
                self.inward(right.clone(), &keys, &seen)?,
            ))
        });
        let on = on.collect::<Result<Vec<_>>>()?;
        let (left, right) = match (binds_left, other) {
            (true, None) => {
                let right = LogicalPlan::clone(&join.right);
                (rows, if is_lateral { self.lateral(right, &keys, join)? } else { right })
            }
            (false, _) => (LogicalPlan::clone(&join.left), rows),
            (true, Some((other, own))) => {
                return self.joined(join, (rows, keys), (other, own), (on, filter));
            }
        };
        let made = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on,
            filter,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        Ok((LogicalPlan::Join(made), keys))
    }

    fn bind_or_beside(&mut self, plan: &LogicalPlan) -> Result<Bound> {
        if self.refers(plan)? { self.bind(plan) } else { self.beside(plan) }
    }

    /// LATERAL, whose query names columns of the domain as columns of the left.
    fn lateral(&self, right: LogicalPlan, keys: &[Column], join: &Join) -> Result<LogicalPlan> {
        let key = |column: &Column| {
            let at = self.domain.columns.iter().position(|one| one == column)?;
            keys.get(at).cloned()
        };
        let seen = (*join.left.schema()).as_ref().clone();
        let made = right.transform_down(|node| match node {
            LogicalPlan::Subquery(subquery) => {
                let made = renamed(subquery, &key, seen.clone())?;
                Ok(Transformed::new(LogicalPlan::Subquery(made), true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        });
        made.data()
    }

    /// Joins two sides that both have the columns of the domain.
    fn joined(
        &mut self,
        join: &Join,
        (left, keys): Bound,
        (right, own): Bound,
        (on, filter): (Vec<(Expr, Expr)>, Option<Expr>),
    ) -> Result<Bound> {
        let is_known = matches!(
            join.join_type,
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full
        );
        let has_null_equality = join.null_equality == NullEquality::NullEqualsNull;
        if !is_known && !has_null_equality && !on.is_empty() {
            return Err(refused("a join of this kind in a correlated subquery is not known here"));
        }
        let mut pairs: Vec<(Expr, Expr)> = keys
            .iter()
            .zip(&own)
            .map(|(one, other)| (Expr::Column(one.clone()), Expr::Column(other.clone())))
            .collect();
        let mut filter = filter;
        for (left, right) in on {
            if has_null_equality {
                pairs.push((left, right));
            } else {
                let equal = left.eq(right);
                filter = Some(filter.map_or(equal.clone(), |filter| filter.and(equal)));
            }
        }
        let joined = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            pairs,
            filter,
            join.join_type,
            join.join_constraint,
            NullEquality::NullEqualsNull,
            join.null_aware,
        )?;
        let made = LogicalPlan::Join(joined);
        let shown: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let both = join.join_type == JoinType::Full;
        let of_right = matches!(
            join.join_type,
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
        );
        let names: Vec<String> = keys.iter().map(|_| self.name("outer")).collect();
        let named = keys.iter().zip(&own).zip(&names).map(|((left, right), name)| {
            let (left, right) = (Expr::Column(left.clone()), Expr::Column(right.clone()));
            let value = match (both, of_right) {
                // A key may be NULL: the side that has the row is told by what it joins.
                (true, _) => datafusion::functions::core::expr_fn::coalesce(vec![left, right]),
                (false, true) => right,
                (false, false) => left,
            };
            value.alias(name)
        });
        let all: Vec<Expr> = shown.into_iter().chain(named).collect();
        let made = LogicalPlanBuilder::from(made).project(all)?.build()?;
        Ok((made, names.into_iter().map(Column::from_name).collect()))
    }
}

/// An aggregate of the rows that have the marker.
fn where_marked(expr: Expr, marker: &str) -> Result<Expr> {
    let made = expr.transform_up(|expr| match expr {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            // IS TRUE of a column is nullable to DataFusion's executor alone.
            let is_row = Expr::Column(Column::from_name(marker)).is_not_null();
            let filter = match params.filter.take() {
                Some(filter) => is_row.and(*filter),
                None => is_row,
            };
            params.filter = Some(Box::new(filter));
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
        }
        other => Ok(Transformed::no(other)),
    });
    made.data()
}

/// Whether an aggregate names columns of outside alone: PostgreSQL takes it for one of the query outside.
pub fn is_of_outside(expr: &Expr) -> bool {
    let is_one = |expr: &Expr| match expr {
        Expr::AggregateFunction(called) => {
            let params = &called.params;
            let order = params.order_by.iter().map(|sort| &sort.expr);
            let mut all = params.args.iter().chain(params.filter.as_deref()).chain(order);
            // PostgreSQL has no such aggregate: it is one of ours.
            called.func.name() != "first_value"
                && all.clone().any(Expr::contains_outer)
                && !all.any(Expr::any_column_refs)
        }
        _ => false,
    };
    expr.exists(|expr| Ok(is_one(expr))).unwrap_or(true)
}

/// Whether a step takes rows as they come.
fn depends_on_order(expr: &Expr) -> bool {
    match expr {
        Expr::WindowFunction(called) => {
            let WindowFunction { params, .. } = &**called;
            params.order_by.is_empty()
        }
        other => crate::plan::kept_order::depends_on_order(other),
    }
}

/// Whether the rows of a plan come in an order that it names.
fn has_order(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_) => plan.inputs().into_iter().any(has_order),
        _ => false,
    }
}
