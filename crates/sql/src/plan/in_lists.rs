//! Several `IN` lists of one column, kept apart while DataFusion simplifies an expression.
//!
//! It joins two of them as sets of what stands in them, where NULL, and a column, is an element as any other:
//!
//! ```text
//! x IN (1, 2) AND x NOT IN (3, NULL)   would become x IN (1, 2), and is true of nothing
//! x IN (y) AND x IN (z)                would become false
//! x NOT IN (1) OR x NOT IN (2)         would become true, and is not known where x is NULL
//! ```
//!
//! So such lists are called each by another name meanwhile.

use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Alias, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyExpressions};
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// What the names begin with that stand for columns meanwhile; no table has one that does.
const APART: &str = "\u{1}apart";

/// Equalities of one column of which two lists could be made.
const EQUALITIES_MIN: usize = 4;

/// DataFusion's rules, with this one in the place of the one that simplifies.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let theirs = SimplifyExpressions::new();
    let mut rules = Optimizer::new().rules;
    for rule in rules.iter_mut().filter(|rule| rule.name() == theirs.name()) {
        *rule = Arc::new(SimplifyApart { theirs: SimplifyExpressions::new() });
    }
    rules
}

/// Simplifies expressions, and joins no lists.
#[derive(Debug)]
struct SimplifyApart {
    theirs: SimplifyExpressions,
}

impl OptimizerRule for SimplifyApart {
    fn name(&self) -> &str {
        self.theirs.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.theirs.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let (mut is_meant, truth) = (false, Truth::of(&plan));
        plan.visit_expressions(|expr| {
            is_meant |= may_be_joined(expr, truth);
            Ok(if is_meant { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        match is_meant {
            true => simplified(plan, config),
            false => self.theirs.rewrite(plan, config),
        }
    }
}

/// Whether an expression has lists that DataFusion may join.
fn may_be_joined(expr: &Expr, truth: Truth) -> bool {
    Counted::of(expr, truth).0.iter().any(|(_, count)| count.may_be_joined())
}

/// What is asked of an expression.
#[derive(Clone, Copy, PartialEq)]
enum Truth {
    /// Whether it is true: what is not known is as false.
    Alone,
    /// Whether it is true, false or not known.
    Whole,
}

impl Truth {
    /// Of the expressions of a node.
    fn of(plan: &LogicalPlan) -> Truth {
        match plan {
            LogicalPlan::Filter(_) | LogicalPlan::TableScan(_) => Truth::Alone,
            _ => Truth::Whole,
        }
    }
}

/// What a column is compared with.
#[derive(Clone, Copy, Default)]
struct Count {
    lists: usize,
    /// Equalities, of which DataFusion makes lists.
    equalities: usize,
    /// Those of them that matter where they are not known.
    whole: usize,
}

impl Count {
    fn may_be_joined(&self) -> bool {
        0 < self.lists && 1 < self.lists + self.equalities || EQUALITIES_MIN <= self.whole
    }
}

/// The columns of an expression that are compared.
#[derive(Default)]
struct Counted<'a>(Vec<(&'a Expr, Count)>);

impl<'a> Counted<'a> {
    fn of(expr: &'a Expr, truth: Truth) -> Counted<'a> {
        let mut counted = Counted::default();
        counted.add(expr, truth);
        counted
    }

    fn of_column(&mut self, subject: &'a Expr) -> &mut Count {
        let known = self.0.iter().position(|(one, _)| *one == subject);
        let at = known.unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push((subject, Count::default()));
        }
        &mut self.0[at].1
    }

    fn add(&mut self, expr: &'a Expr, truth: Truth) {
        let mut left = vec![expr];
        while let Some(expr) = left.pop() {
            if let Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) = expr
                && matches!(op, Operator::And | Operator::Or)
            {
                left.extend([&**other, &**one]);
                continue;
            }
            let is_alone = truth == Truth::Alone && compared(expr).is_some();
            // What is given to it says nothing but that it goes on.
            let _ = expr.apply(|one| {
                if let Expr::InList(list) = one {
                    self.of_column(uncast(&list.expr)).lists += 1;
                } else if let Some((subject, _)) = compared(one) {
                    let count = self.of_column(uncast(subject));
                    count.equalities += 1;
                    count.whole += usize::from(!is_alone);
                }
                Ok(TreeNodeRecursion::Continue)
            });
        }
    }
}

fn uncast(mut expr: &Expr) -> &Expr {
    while let Expr::Cast(Cast { expr: inner, .. }) = expr {
        expr = inner;
    }
    expr
}

/// What DataFusion's rule does with one node.
fn simplified(plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let schema = match &plan {
        // What is asked of a table may be of columns that it does not give.
        LogicalPlan::TableScan(scan) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?
        }
        _ => merge_schema(&plan.inputs()),
    };
    let info = SimplifyContext::builder()
        .with_schema(Arc::new(schema))
        .with_config_options(config.options())
        .with_query_execution_start_time(config.query_execution_start_time())
        .build();
    // Which side of a join an equality's sides are of is known by their order.
    let is_join = matches!(plan, LogicalPlan::Join(_));
    let simplifier = ExprSimplifier::new(info).with_canonicalize(!is_join);
    let is_aggregate = matches!(plan, LogicalPlan::Aggregate(_));
    let (names, truth) = (NamePreserver::new(&plan), Truth::of(&plan));
    let mut simplify = |expr: Expr| {
        let name = names.save(&expr);
        let made = simplified_apart(&simplifier, expr.clone(), truth)?;
        // An aggregate that became something else would want a step of its own.
        if is_aggregate && aggregates(&expr) && !aggregates(&made) {
            return Ok(Transformed::no(expr));
        }
        let is_changed = made != expr;
        Ok(Transformed::new_transformed(name.restore(made), is_changed))
    };
    plan.transform_expressions(|expr| match &expr {
        Expr::GroupingSet(_) => expr.map_children(&mut simplify),
        _ => simplify(expr),
    })
}

fn aggregates(expr: &Expr) -> bool {
    matches!(expr.clone().unalias_nested().data, Expr::AggregateFunction(_))
}

/// Simplifies lists and equalities by themselves, and then the whole.
fn simplified_apart(simplifier: &ExprSimplifier, expr: Expr, truth: Truth) -> Result<Expr> {
    let expr = if truth == Truth::Alone { true_alone(expr)?.data } else { expr };
    // Each by itself first: a column that is cast is found behind that.
    let each = expr
        .transform_up(|one| match &one {
            Expr::InList(_) => Ok(Transformed::yes(simplifier.simplify(one)?)),
            _ if compared(&one).is_some() => Ok(Transformed::yes(simplifier.simplify(one)?)),
            _ => Ok(Transformed::no(one)),
        })
        .data()?;
    let counted = Counted::of(&each, truth).0.into_iter();
    let meant = counted.filter(|(_, count)| count.may_be_joined()).map(|(one, _)| one.clone());
    let mut apart = Apart { meant: meant.collect(), given: 0 };
    let hidden = each.transform_up(|one| Ok(apart.hide(one))).data()?;
    let made = simplifier.simplify(hidden)?.transform_up(|one| Ok(shown(one))).data()?;
    match truth {
        Truth::Whole => Ok(made),
        Truth::Alone => match true_alone(made)? {
            Transformed { data, transformed: true, .. } => simplifier.simplify(data),
            unchanged => Ok(unchanged.data),
        },
    }
}

/// A condition without what is never true of it: nothing is one of NULL, and nothing is known not to be.
fn true_alone(condition: Expr) -> Result<Transformed<Expr>> {
    let is_null = |one: &Expr| matches!(one, Expr::Literal(value, _) if value.is_null());
    condition.transform_down(|one| match one {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) => {
            Ok(Transformed::no(one))
        }
        Expr::InList(InList { expr, mut list, negated }) if list.iter().any(is_null) => {
            list.retain(|one| !is_null(one));
            let made = match negated || list.is_empty() {
                true => lit(false),
                false => Expr::InList(InList { expr, list, negated }),
            };
            Ok(Transformed::new(made, true, TreeNodeRecursion::Jump))
        }
        one if is_null(&one) => Ok(Transformed::new(lit(false), true, TreeNodeRecursion::Jump)),
        one => Ok(Transformed::new(one, false, TreeNodeRecursion::Jump)),
    })
}

/// Columns whose lists are kept apart.
struct Apart {
    meant: Vec<Expr>,
    /// Names that were given.
    given: usize,
}

impl Apart {
    /// Gives what an expression is about another name.
    fn hide(&mut self, expr: Expr) -> Transformed<Expr> {
        match expr {
            Expr::InList(InList { expr, list, negated }) if self.meant.contains(uncast(&expr)) => {
                self.given += 1;
                let expr = Box::new(expr.alias(format!("{APART}{}", self.given)));
                Transformed::yes(Expr::InList(InList { expr, list, negated }))
            }
            expr => match compared(&expr) {
                Some((subject, side)) if self.meant.contains(uncast(subject)) => {
                    Transformed::yes(renamed(expr, side))
                }
                _ => Transformed::no(expr),
            },
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

/// The column that is compared with a literal for equality, and where it stands.
fn compared(expr: &Expr) -> Option<(&Expr, Side)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else { return None };
    match (&**left, &**right) {
        (side, Expr::Literal(..)) if is_column(side) => Some((left, Side::Left)),
        (Expr::Literal(..), side) if is_column(side) => Some((right, Side::Right)),
        _ => None,
    }
}

fn is_column(side: &Expr) -> bool {
    matches!(uncast(side), Expr::Column(_))
}

/// Equalities of one column stay alike: they are no lists.
fn renamed(expr: Expr, side: Side) -> Expr {
    let Expr::BinaryExpr(BinaryExpr { mut left, op, mut right }) = expr else { return expr };
    let subject = if side == Side::Left { &mut left } else { &mut right };
    **subject = std::mem::take(&mut **subject).alias(APART);
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

/// With its own name again.
fn shown(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::Alias(Alias { expr, name, .. }) if name.starts_with(APART) => Transformed::yes(*expr),
        other => Transformed::no(other),
    }
}
