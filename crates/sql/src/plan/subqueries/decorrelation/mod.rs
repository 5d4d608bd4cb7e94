//! Correlated subqueries as joins, where DataFusion has no plan for them or a wrong one.
//!
//! The subquery is evaluated once for each distinct combination of the outer columns that it names (its domain), and
//! the rows are joined with the outer rows by these columns:
//!
//! ```text
//! SELECT (SELECT count(*) FROM t WHERE t.x < o.x) FROM o
//!
//! projection of n ─ left join ─┬─ o
//!                   on x = key └─ count(*) AS n, key ─ left join ─┬─ domain: DISTINCT o.x AS key
//!                                 by key               on x < key └─ t
//! ```
//!
//! [`binding`] moves the domain through the subquery; [`outer`] finds the columns; [`eligibility`] tells which
//! subqueries DataFusion plans rightly by itself. EXISTS, IN, ANY and ALL are aggregates of the subquery's rows.

pub(crate) mod binding;
pub(crate) mod domain;
pub(crate) mod eligibility;
pub(crate) mod one_row;
pub(crate) mod outer;
pub(crate) mod quantifiers;

use crate::plan::subqueries::decorrelation::binding::Binder;
use crate::plan::subqueries::decorrelation::domain::Domain;
use crate::plan::subqueries::decorrelation::eligibility::{
    Use, has_own_plan, has_own_plan_as_lateral,
};
use crate::plan::subqueries::decorrelation::outer::{columns_of, outer_columns, refused};
use crate::plan::subqueries::{first_rows, laterals, newest};
use crate::types::error::SqlError;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, JoinType, NullEquality, Result};
use datafusion::functions_aggregate::count::count_all;
use datafusion::functions_aggregate::first_last::first_value;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Subquery,
    SubqueryAlias,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Subqueries of one statement that become joins: each one copies the plan of the outer rows.
const JOINS_MAX: usize = 64;

/// Replaces correlated subqueries that DataFusion cannot plan by joins.
///
/// # Errors
/// `0A000` for subqueries that have no such join.
pub fn decorrelate(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_correlated = false;
    plan.visit_plans(|node| {
        is_correlated |= node.contains_outer_reference() || has_quantifier(node)?;
        Ok(if is_correlated { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if is_correlated { Decorrelator { names: 0, joins: 0 }.walk(plan) } else { Ok(plan) }
}

/// Returns true for a node that compares a value with the rows of a subquery by ANY or ALL. DataFusion makes EXISTS of
/// it, in which a column of the outer query becomes one of the subquery if their names are equal.
fn has_quantifier(node: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    node.visit_expressions(|expr| {
        is_found |= expr.exists(|one| Ok(matches!(one, Expr::SetComparison(_))))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_found)
}

struct Decorrelator {
    /// Number of names that were made.
    names: usize,
    joins: usize,
}

impl Decorrelator {
    fn walk(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = match plan {
            LogicalPlan::Join(join) => match without_subqueries(join)? {
                LogicalPlan::Join(join) => self.join_lateral(join)?,
                filter => self.join_values(filter)?,
            },
            node if node.inputs().len() == 1 => self.join_values(node)?,
            node => node,
        };
        let plan = plan.map_children(|child| self.walk(child).map(Transformed::yes)).data()?;
        plan.map_subqueries(|query| self.walk(query).map(Transformed::yes)).data()
    }

    /// Joins the subqueries in the expressions of a node with its input.
    fn join_values(&mut self, node: LogicalPlan) -> Result<LogicalPlan> {
        let mut is_meant = false;
        node.visit_expressions(|expr| {
            let conjuncts = Use::conjuncts(&node, expr);
            expr.apply(|expr| {
                is_meant |= is_joined(expr, &node, &conjuncts)?;
                Ok(if is_meant { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })?;
        if !is_meant {
            return Ok(node);
        }
        let shown = columns_of(&node);
        let node = without_plain_conditions(node)?;
        let mut input = node.inputs()[0].clone();
        let names = NamePreserver::new(&node);
        let mut exprs = Vec::new();
        // DISTINCT ON has the same expressions in its ORDER BY.
        let mut known: HashMap<Expr, Expr> = HashMap::new();
        for expr in node.expressions() {
            if let Some(made) = known.get(&expr) {
                exprs.push(made.clone());
                continue;
            }
            let (name, own) = (names.save(&expr), expr.clone());
            // Conditions change when what is within them does: each is looked at before.
            let made = match &node {
                LogicalPlan::Filter(_) => {
                    let all = split_conjunction_owned(expr);
                    let all: Result<Vec<Expr>> = all
                        .into_iter()
                        .map(|one| self.value(one, &node, &mut input, true))
                        .collect();
                    conjunction(all?).unwrap_or_else(|| datafusion::logical_expr::lit(true))
                }
                _ => self.value(expr, &node, &mut input, false)?,
            };
            let made = name.restore(made);
            known.insert(own, made.clone());
            exprs.push(made);
        }
        let made = with_exprs(&node, exprs, input)?;
        match made.schema().fields().len() == shown.len() {
            true => Ok(made),
            false => LogicalPlanBuilder::from(made).project(shown)?.build(),
        }
    }

    /// An expression whose subqueries are columns of the input, to which these are added.
    fn value(
        &mut self,
        expr: Expr,
        node: &LogicalPlan,
        input: &mut LogicalPlan,
        is_condition: bool,
    ) -> Result<Expr> {
        let is_condition = is_condition && Use::is_condition(&expr);
        let is_own = is_condition && has_own_use(&expr, node, true)?;
        let made = expr.transform_up(|one| {
            // The subquery of a condition is looked at with it.
            let is_left = is_own && matches!(one, Expr::InSubquery(_));
            match Use::is_subquery(&one) && !is_left && !has_own_use(&one, node, false)? {
                true => Ok(Transformed::yes(self.subquery(one, input)?)),
                false => Ok(Transformed::no(one)),
            }
        });
        made.data()
    }

    /// The value of a subquery.
    fn subquery(&mut self, expr: Expr, input: &mut LogicalPlan) -> Result<Expr> {
        match expr {
            Expr::ScalarSubquery(Subquery { subquery, .. }) => self.scalar(&subquery, input),
            Expr::Exists(Exists { subquery, negated }) => {
                let found = self.scalar(&quantifiers::exists(&subquery.subquery)?, input)?;
                Ok(if negated { Expr::Not(Box::new(found)) } else { found })
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let plan = quantifiers::is_in(*expr, &subquery.subquery, input.schema())?;
                let found = self.scalar(&plan, input)?;
                Ok(if negated { Expr::Not(Box::new(found)) } else { found })
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let rows = &subquery.subquery;
                let plan = quantifiers::compared(*expr, op, quantifier, rows, input.schema())?;
                self.scalar(&plan, input)
            }
            Expr::Not(inner) => Ok(Expr::Not(Box::new(self.subquery(*inner, input)?))),
            other => Ok(other),
        }
    }

    /// The value of a subquery of one column and one row.
    fn scalar(&mut self, plan: &LogicalPlan, input: &mut LogicalPlan) -> Result<Expr> {
        if let Some(value) = domain::inlined(plan, input.schema())? {
            return Ok(value);
        }
        let first = first_rows::aggregate(plan)?;
        let plan = first.as_ref().unwrap_or(plan);
        let domain = self.domain(input, plan)?;
        let (mut rows, mut keys) = Binder::new(&domain, &mut self.names).bind(plan)?;
        let value = plan.schema().columns().swap_remove(0);
        let name = self.name("value");
        if crate::plan::subqueries::correlated::is_one_row(plan)? {
            let value = Expr::Column(value).alias(&name);
            let shown = keys.iter().cloned().map(Expr::Column).chain([value]);
            rows = LogicalPlanBuilder::from(rows).project(shown)?.build()?;
        } else {
            let (count, groups) = (self.name("count"), keys.iter().cloned().map(Expr::Column));
            let first = first_value(Expr::Column(value), Vec::new()).alias(&name);
            rows = LogicalPlanBuilder::from(rows)
                .aggregate(groups, [first, count_all().alias(&count)])?
                .filter(one_row::CHECK.call(vec![Expr::Column(Column::from_name(count))]))?
                .build()?;
            keys.truncate(domain.columns.len());
        }
        *input = self.joined(input.clone(), rows, (&domain.columns, &keys), &name)?;
        Ok(Expr::Column(Column::from_name(name)))
    }

    /// The outer rows, each with its value.
    fn joined(
        &mut self,
        input: LogicalPlan,
        rows: LogicalPlan,
        (outer, keys): (&[Column], &[Column]),
        value: &str,
    ) -> Result<LogicalPlan> {
        let names: Vec<String> = keys.iter().map(|_| self.name("key")).collect();
        let renamed = keys.iter().zip(&names);
        let renamed = renamed.map(|(key, name)| Expr::Column(key.clone()).alias(name));
        let shown = renamed.chain([Expr::Column(Column::from_name(value))]);
        let rows = LogicalPlanBuilder::from(rows).project(shown)?.build()?;
        let keys: Vec<Column> = names.into_iter().map(Column::from_name).collect();
        if outer.is_empty() {
            return LogicalPlanBuilder::from(input).cross_join(rows)?.build();
        }
        LogicalPlanBuilder::from(input)
            .join_detailed(
                rows,
                JoinType::Left,
                (outer.to_vec(), keys),
                None,
                NullEquality::NullEqualsNull,
            )?
            .build()
    }

    fn domain(&mut self, input: &LogicalPlan, plan: &LogicalPlan) -> Result<Domain> {
        self.joins += 1;
        if JOINS_MAX < self.joins {
            let words = format!("more than {JOINS_MAX} correlated subqueries in a statement");
            return Err(DataFusionError::External(Box::new(SqlError::new("54001", words))));
        }
        let columns = outer_columns(plan)?;
        if columns.iter().any(|column| !input.schema().has_column(column)) {
            return Err(refused("a column of a query further outside is not known here"));
        }
        Domain::new(input, columns)
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("\0{kind}{}", self.names)
    }

    /// Joins the rows that a LATERAL query has for each row of the left.
    fn join_lateral(&mut self, join: Join) -> Result<LogicalPlan> {
        let (subquery, alias) = match &*join.right {
            LogicalPlan::Subquery(subquery) => (subquery, None),
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => match &**input {
                LogicalPlan::Subquery(subquery) => (subquery, Some(alias.clone())),
                _ => return Ok(LogicalPlan::Join(join)),
            },
            _ => return Ok(LogicalPlan::Join(join)),
        };
        let plan = &subquery.subquery;
        let is_known = laterals::lists_of(&join).is_ok_and(|made| made.is_some())
            || newest::first_of_each(&join).is_ok_and(|made| made.is_some())
            || has_own_plan_as_lateral(plan)?;
        if is_known || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return Ok(LogicalPlan::Join(join));
        }
        let domain = self.domain(&join.left, plan)?;
        let (rows, keys) = Binder::new(&domain, &mut self.names).bind(plan)?;
        let names: Vec<String> = keys.iter().map(|_| self.name("key")).collect();
        let renamed = keys.into_iter().zip(&names);
        let renamed = renamed.map(|(key, name)| Expr::Column(key).alias(name));
        let shown = columns_of(plan).into_iter().chain(renamed);
        let mut rows = LogicalPlanBuilder::from(rows).project(shown)?;
        if let Some(alias) = &alias {
            rows = rows.alias(alias.clone())?;
        }
        let keys = names.into_iter().map(|name| Column::new(alias.clone(), name)).collect();
        let equal = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
        let condition = conjunction(equal.chain(join.filter.clone()));
        let shown: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        LogicalPlanBuilder::from(Arc::unwrap_or_clone(join.left))
            .join_detailed(
                rows.build()?,
                join.join_type,
                (domain.columns, keys),
                condition,
                NullEquality::NullEqualsNull,
            )?
            .project(shown)?
            .build()
    }
}

/// The node with other expressions; DataFusion has no such step for DISTINCT ON with an order.
fn with_exprs(node: &LogicalPlan, mut exprs: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Distinct(Distinct::On(DistinctOn {
        on_expr,
        select_expr,
        sort_expr: Some(sorts),
        ..
    })) = node
    else {
        return node.with_new_exprs(exprs, vec![input]);
    };
    let by = exprs.split_off(on_expr.len() + select_expr.len());
    let sorts = sorts.iter().zip(by).map(|(sort, expr)| sort.with_expr(expr)).collect();
    let shown = exprs.split_off(on_expr.len());
    let made = DistinctOn::try_new(exprs, shown, Some(sorts), Arc::new(input))?;
    Ok(LogicalPlan::Distinct(Distinct::On(made)))
}

/// A join whose conditions with correlated subqueries stand in a filter above it, or below it if they are about the
/// optional side alone.
fn without_subqueries(join: Join) -> Result<LogicalPlan> {
    let is_correlated = |expr: &Expr| {
        expr.exists(|one| match outer::subquery_of(one) {
            Some(subquery) => Ok(!outer_columns(&subquery.subquery)?.is_empty()),
            None => Ok(false),
        })
    };
    let all = join.filter.clone().map(split_conjunction_owned).unwrap_or_default();
    let (mut moved, mut plain) = (Vec::new(), Vec::new());
    for condition in all {
        if is_correlated(&condition)? { moved.push(condition) } else { plain.push(condition) }
    }
    let Some(condition) = conjunction(moved) else { return Ok(LogicalPlan::Join(join)) };
    let right = join.right.schema().clone();
    let mut columns: Vec<Column> = condition.column_refs().into_iter().cloned().collect();
    condition.apply(|one| {
        if let Some(subquery) = outer::subquery_of(one) {
            columns.extend(outer_columns(&subquery.subquery)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let is_of_right = columns.iter().all(|column| right.has_column(column));
    let filter = conjunction(plain);
    match join.join_type {
        JoinType::Inner => {
            let made = Arc::new(LogicalPlan::Join(Join { filter, ..join }));
            Filter::try_new(condition, made).map(LogicalPlan::Filter)
        }
        JoinType::Left if is_of_right => {
            let right = LogicalPlan::Filter(Filter::try_new(condition, join.right.clone())?);
            Ok(LogicalPlan::Join(Join { filter, right: Arc::new(right), ..join }))
        }
        _ => Ok(LogicalPlan::Join(join)),
    }
}

/// Whether an expression is a subquery that becomes a join.
fn is_joined(expr: &Expr, node: &LogicalPlan, conjuncts: &[&Expr]) -> Result<bool> {
    let is_condition = conjuncts.iter().any(|one| std::ptr::eq(*one, expr));
    Ok(match Use::is_subquery(expr) {
        true => !has_own_use(expr, node, is_condition)?,
        false => false,
    })
}

/// Whether DataFusion has a plan for a subquery, or an expression is none.
fn has_own_use(expr: &Expr, node: &LogicalPlan, is_condition: bool) -> Result<bool> {
    if matches!(expr, Expr::SetComparison(_)) {
        return Ok(false);
    }
    match Use::of(expr, node, is_condition) {
        Some((used, plan)) => has_own_plan(plan, used),
        None => Ok(true),
    }
}

/// A filter whose conditions without subqueries stand below: the others are evaluated for fewer rows then.
fn without_plain_conditions(node: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Filter(filter) = node else { return Ok(node) };
    let has_subquery = |expr: &Expr| expr.exists(|one| Ok(Use::is_subquery(one))).unwrap_or(true);
    let all = split_conjunction_owned(filter.predicate);
    let (own, plain): (Vec<Expr>, Vec<Expr>) = all.into_iter().partition(has_subquery);
    let mut input = filter.input;
    if let Some(plain) = conjunction(plain) {
        input = Arc::new(LogicalPlan::Filter(Filter::try_new(plain, input)?));
    }
    let own = conjunction(own).unwrap_or_else(|| datafusion::logical_expr::lit(true));
    Filter::try_new(own, input).map(LogicalPlan::Filter)
}
