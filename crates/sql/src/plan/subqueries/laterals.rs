//! `FROM metrics, LATERAL jsonb_each(labels)`: DataFusion knows lists that become rows, but not of
//! the rows of a table to the left. What it plans for them,
//!
//! ```text
//! join ─┬─ left                          becomes      names of the right ─ unnest ─ lists ─ left
//!       └─ names ─ unnest ─ lists of the left's columns ─ one row
//! ```

use crate::plan::subqueries::newest::first_of_each;
use crate::types::error::SqlError;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{
    Column, DataFusionError, NullHandling, Result, ScalarValue, TableReference, UnnestOptions,
};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{
    Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, SubqueryAlias,
};

/// A plan whose lists stand over what they are lists of.
///
/// # Errors
/// When rows of the left are wanted in a way that is not known.
pub fn unnested(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| match node {
        LogicalPlan::Join(join) => {
            let made = match first_of_each(&join)? {
                Some(made) => Some(made),
                None => lists_of(&join)?,
            };
            Ok(match made {
                Some(made) => Transformed::yes(made),
                None => Transformed::no(LogicalPlan::Join(join)),
            })
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(changed?.data)
}

/// None for joins with other things than lists of the left.
pub fn lists_of(join: &Join) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) = join.right.as_ref() else {
        return Ok(None);
    };
    let LogicalPlan::Subquery(subquery) = input.as_ref() else { return Ok(None) };
    let keeps_left = match (join.join_type, &join.filter) {
        _ if !join.on.is_empty() => return Ok(None),
        (JoinType::Inner, _) => false,
        (JoinType::Left, None) => true,
        (JoinType::Left, Some(Expr::Literal(ScalarValue::Boolean(Some(true)), _))) => true,
        _ => {
            let words = "a join with what a function makes of each row is known as CROSS JOIN, \
                         JOIN .. ON and LEFT JOIN .. ON true";
            return Err(DataFusionError::External(Box::new(SqlError::unsupported(words))));
        }
    };
    let onto = Onto { left: &join.left, alias, keeps_left };
    let Some((made, Names::Own)) = onto.plan(&subquery.subquery)? else { return Ok(None) };
    match &join.filter {
        Some(filter) if !keeps_left => {
            LogicalPlanBuilder::from(made).filter(filter.clone())?.build().map(Some)
        }
        _ => Ok(Some(made)),
    }
}

/// What the columns beside those of the left are called.
#[derive(PartialEq)]
enum Names {
    /// There are none.
    None,
    /// As the planner calls lists.
    Lists,
    /// As the statement calls them.
    Own,
}

struct Onto<'a> {
    left: &'a LogicalPlan,
    alias: &'a TableReference,
    /// Whether rows of the left stay of whose lists nothing becomes a row.
    keeps_left: bool,
}

impl Onto<'_> {
    /// A plan that makes rows of one row, over the left instead.
    fn plan(&self, plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Names)>> {
        match plan {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => {
                Ok(Some((self.left.clone(), Names::None)))
            }
            LogicalPlan::Projection(projection) => {
                let Some((input, names)) = self.plan(&projection.input)? else { return Ok(None) };
                let left = self.left.schema().columns().into_iter().map(Expr::Column);
                let own = projection.expr.iter().map(|expr| self.own(expr, &names));
                let exprs = left.map(Ok).chain(own).collect::<Result<Vec<_>>>()?;
                let made = LogicalPlanBuilder::from(input).project(exprs)?.build()?;
                let names = if names == Names::None { Names::Lists } else { Names::Own };
                Ok(Some((made, names)))
            }
            LogicalPlan::Unnest(unnest) => {
                let Some((input, Names::Lists)) = self.plan(&unnest.input)? else {
                    return Ok(None);
                };
                let columns = unnest.exec_columns.clone();
                let options = match self.keeps_left {
                    true => unnest
                        .options
                        .clone()
                        .with_null_handling(NullHandling::PreserveAndExpandEmpty),
                    false => UnnestOptions::clone(&unnest.options),
                };
                let made = LogicalPlanBuilder::from(input);
                let made = made.unnest_columns_with_options(columns, options)?.build()?;
                Ok(Some((made, Names::Lists)))
            }
            _ => Ok(None),
        }
    }

    /// An expression of the right, over columns of those names.
    fn own(&self, expr: &Expr, names: &Names) -> Result<Expr> {
        let inward = expr.clone().transform_up(|expr| {
            Ok(match expr {
                Expr::OuterReferenceColumn(_, column) if self.left.schema().has_column(&column) => {
                    Transformed::yes(Expr::Column(column))
                }
                Expr::Column(column) if *names == Names::Own && column.relation.is_none() => {
                    let column = Column::new(Some(self.alias.clone()), column.name);
                    Transformed::yes(Expr::Column(column))
                }
                other => Transformed::no(other),
            })
        });
        let inward = inward?.data;
        if *names == Names::None {
            return Ok(inward);
        }
        // Two such functions of one statement may have columns of one name.
        let name = expr.schema_name().to_string();
        let plain = match inward {
            Expr::Alias(Alias { expr, .. }) => *expr,
            other => other,
        };
        Ok(plain.alias_qualified(Some(self.alias.clone()), name))
    }
}
