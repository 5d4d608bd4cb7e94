//! Where a statement asks for rows that are missing.
//!
//! Its plan has a step that groups by `time_bucket_gapfill`; that becomes one that groups by
//! `time_bucket`, with a [`GapFill`] over it, over `HAVING`, too. What `locf` and `interpolate` of the
//! select list are of becomes a column that it fills.

use crate::functions::gapfill::{GAPFILL, INTERPOLATE, LOCF, external, misplaced, wrong};
use crate::plan::gapfill::node::{Bound, GapFill, missing};
use crate::plan::gapfill::stream::Fill;
use crate::types::error::SqlError;
use crate::types::time::intervals::{counted, time_bucket};
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Alias, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, Between, BinaryExpr, Expr, ExprSchemable as _, Extension, Filter, LogicalPlan,
    Operator, Projection,
};
use std::sync::Arc;

/// A plan whose gaps are filled.
///
/// # Errors
/// Where what fills them stands in a place that says nothing, or nothing says of which time.
pub fn fill_gaps(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| {
        let changed = match node {
            LogicalPlan::Aggregate(grouped) => grouped_by_buckets(grouped)?,
            LogicalPlan::Filter(filter) => under_filter(filter)?,
            LogicalPlan::Projection(projection) => with_fills(projection)?,
            other => Transformed::no(other),
        };
        check(&changed.data)?;
        // What was never null may be.
        let is_changed = changed.transformed;
        let above = !is_changed && changed.data.inputs().iter().any(|input| is_filled(input));
        if above { changed.data.recompute_schema().map(Transformed::yes) } else { Ok(changed) }
    });
    Ok(changed?.data)
}

/// Whether gaps were filled somewhere below.
fn is_filled(plan: &LogicalPlan) -> bool {
    plan.exists(|node| Ok(gap_fill(node).is_some())).unwrap_or(true)
}

fn gap_fill(plan: &LogicalPlan) -> Option<&GapFill> {
    let LogicalPlan::Extension(extension) = plan else { return None };
    extension.node.as_any().downcast_ref()
}

fn extension(node: GapFill) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(node) })
}

fn called<'e>(expr: &'e Expr, name: &str) -> Option<&'e ScalarFunction> {
    match expr {
        Expr::Alias(Alias { expr, .. }) => called(expr, name),
        Expr::ScalarFunction(function) if function.name() == name => Some(function),
        _ => None,
    }
}

/// That none of the functions is left where nothing was made of it.
fn check(plan: &LogicalPlan) -> Result<()> {
    plan.visit_expressions(|expr| {
        expr.apply(|expr| match expr {
            Expr::ScalarFunction(function) => {
                match [GAPFILL, LOCF, INTERPOLATE].iter().find(|name| **name == function.name()) {
                    Some(name) => Err(misplaced(name)),
                    None => Ok(TreeNodeRecursion::Continue),
                }
            }
            _ => Ok(TreeNodeRecursion::Continue),
        })
    })?;
    Ok(())
}

fn grouped_by_buckets(mut grouped: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let is_gapfill = |expr: &Expr| called(expr, GAPFILL).is_some();
    let places: Vec<usize> =
        (0..grouped.group_expr.len()).filter(|at| is_gapfill(&grouped.group_expr[*at])).collect();
    let at = match places.as_slice() {
        [] => return Ok(Transformed::no(LogicalPlan::Aggregate(grouped))),
        [at] => *at,
        _ => {
            let words = "multiple time_bucket_gapfill calls not allowed";
            return Err(external(SqlError::unsupported(words)));
        }
    };
    let expr = grouped.group_expr[at].clone();
    let Some([width, time, start, finish]) =
        called(&expr, GAPFILL).map(|function| function.args.as_slice())
    else {
        return Err(misplaced(GAPFILL));
    };
    let name = expr.schema_name().to_string();
    let known = time.get_type(grouped.input.schema())?;
    let wide = time.clone().cast_to(&counted(&known), grouped.input.schema())?;
    grouped.group_expr[at] = Arc::new(time_bucket()).call(vec![width.clone(), wide]).alias(name);
    let mut bounds = of_conditions(&grouped.input, time);
    for (bound, argument) in [(Bound::Start, start), (Bound::Finish, finish)] {
        if !matches!(argument, Expr::Literal(value, _) if value.is_null()) {
            bounds.push((bound, argument.clone()));
        }
    }
    check_bounds(width, &bounds)?;
    let groups = grouped.group_expr.len();
    let column = |column: usize| match column {
        _ if column == at => Fill::Bucket,
        _ if column < groups => Fill::Group,
        _ => Fill::Null,
    };
    let rows = Aggregate::try_new(grouped.input, grouped.group_expr, grouped.aggr_expr)?;
    let fills = (0..rows.schema.fields().len()).map(column).collect();
    let filled = GapFill::new(LogicalPlan::Aggregate(rows), fills, width.clone(), bounds)?;
    Ok(Transformed::yes(extension(filled)))
}

/// That both ends are known before there are rows.
fn check_bounds(width: &Expr, bounds: &[(Bound, Expr)]) -> Result<()> {
    use Bound::{After, Before, Finish, From, Start, Until};
    if !is_simple(width) {
        return Err(wrong("bucket_width must be a simple expression"));
    }
    for (bound, expr) in bounds {
        let name = if *bound == Start { "start" } else { "finish" };
        if !is_simple(expr) {
            return Err(wrong(&format!("{name} must be a simple expression")));
        }
    }
    let says = |all: [Bound; 3]| bounds.iter().any(|(bound, _)| all.contains(bound));
    if !says([Start, From, After]) {
        return Err(missing("start"));
    }
    if !says([Finish, Before, Until]) {
        return Err(missing("finish"));
    }
    Ok(())
}

/// Whether an expression is known without looking at rows.
fn is_simple(expr: &Expr) -> bool {
    let depends = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
        ))
    };
    !expr.exists(depends).unwrap_or(true) && !expr.is_volatile()
}

/// What the conditions on rows say of their times.
fn of_conditions(mut rows: &LogicalPlan, time: &Expr) -> Vec<(Bound, Expr)> {
    let mut bounds = Vec::new();
    while let LogicalPlan::Filter(filter) = rows {
        for condition in split_conjunction(&filter.predicate) {
            bounds.extend(of_condition(condition, time));
        }
        rows = &filter.input;
    }
    bounds.retain(|(_, expr)| is_simple(expr));
    bounds
}

fn of_condition(condition: &Expr, time: &Expr) -> Vec<(Bound, Expr)> {
    match condition {
        Expr::Between(Between { expr, negated: false, low, high }) if **expr == *time => {
            vec![(Bound::From, (**low).clone()), (Bound::Until, (**high).clone())]
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (op, other) = match (**left == *time, **right == *time) {
                (true, false) => (Some(*op), right),
                (false, true) => (op.swap(), left),
                _ => return Vec::new(),
            };
            let bound = match op {
                Some(Operator::GtEq) => Bound::From,
                Some(Operator::Gt) => Bound::After,
                Some(Operator::Lt) => Bound::Before,
                Some(Operator::LtEq) => Bound::Until,
                _ => return Vec::new(),
            };
            vec![(bound, (**other).clone())]
        }
        _ => Vec::new(),
    }
}

/// `HAVING` is about groups that there are.
fn under_filter(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let Some(filled) = gap_fill(&filter.input) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let rows = Filter::try_new(filter.predicate, Arc::new(filled.input.clone()))?;
    let filled = filled.with_input(LogicalPlan::Filter(rows))?;
    Ok(Transformed::yes(extension(filled)))
}

/// A column that is filled, of what.
struct Filled {
    name: String,
    of: Expr,
    fill: Fill,
}

/// A select list in which `locf` and `interpolate` are columns.
fn with_fills(projection: Projection) -> Result<Transformed<LogicalPlan>> {
    let mut all: Vec<Filled> = Vec::new();
    let names = NamePreserver::new_for_projection();
    let mut exprs = Vec::with_capacity(projection.expr.len());
    for expr in &projection.expr {
        let name = names.save(expr);
        let changed = expr.clone().transform_down(|expr| {
            let Some((of, fill)) = filled(&expr)? else { return Ok(Transformed::no(expr)) };
            // No client can write NUL, so none has a column of that name.
            let name = format!("gapfill\0{}", all.len());
            all.push(Filled { name: name.clone(), of, fill });
            let column = Expr::Column(Column::new_unqualified(name));
            Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
        })?;
        exprs.push(if changed.transformed { name.restore(changed.data) } else { changed.data });
    }
    if all.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Projection(projection)));
    }
    let rows = filling(projection.input.as_ref().clone(), &all)?;
    let made = Projection::try_new(exprs, Arc::new(rows))?;
    Ok(Transformed::yes(LogicalPlan::Projection(made)))
}

/// What a call of `locf` or `interpolate` fills, and how.
fn filled(expr: &Expr) -> Result<Option<(Expr, Fill)>> {
    let Expr::ScalarFunction(function) = expr else { return Ok(None) };
    Ok(match (function.name(), function.args.as_slice()) {
        (LOCF, [value, Expr::Literal(ScalarValue::Boolean(Some(skips_nulls)), _)]) => {
            let fill = if *skips_nulls { Fill::LastKnown } else { Fill::Last };
            Some((value.clone(), fill))
        }
        (INTERPOLATE, [value]) => Some((value.clone(), Fill::Line)),
        (LOCF, _) => {
            let words = "locf: treat_null_as_missing is true or false";
            return Err(external(SqlError::wrong_value(words)));
        }
        _ => None,
    })
}

/// Rows with columns that are filled beside theirs.
fn filling(rows: LogicalPlan, all: &[Filled]) -> Result<LogicalPlan> {
    if let LogicalPlan::Window(window) = &rows {
        let below = filling(window.input.as_ref().clone(), all)?;
        return rows.with_new_exprs(window.window_expr.clone(), vec![below]);
    }
    let Some(filled) = gap_fill(&rows) else {
        let name = if all.iter().any(|one| one.fill == Fill::Line) { INTERPOLATE } else { LOCF };
        return Err(misplaced(name));
    };
    let mut exprs: Vec<Expr> =
        filled.input.schema().columns().into_iter().map(Expr::Column).collect();
    exprs.extend(all.iter().map(|one| one.of.clone().alias(&one.name)));
    if exprs.len() != filled.fills.len() + all.len() {
        return internal_err!("a column was lost");
    }
    let fills = filled.fills.iter().copied().chain(all.iter().map(|one| one.fill)).collect();
    let below = Projection::try_new(exprs, Arc::new(filled.input.clone()))?;
    let below = LogicalPlan::Projection(below);
    Ok(extension(GapFill::new(below, fills, filled.width.clone(), filled.bounds.clone())?))
}
