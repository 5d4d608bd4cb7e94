//! What clients say of the types of parameters. Such a parameter is planned as a value of its type; one of which nothing
//! is said is taken for what stands beside it, as PostgreSQL does.
//!
//! DataFusion's planner is told of the types of the first parameters, `$1` and so on, up to some. So those that are
//! declared are called by the first numbers while it plans.

use crate::parse::query::Query;
use crate::parse::rewrite::queries::named_rows::name_rows;
use crate::parse::rewrite::queries::outer_relations::rename_outer_relations;
use crate::parse::rewrite::queries::query_forms::values_as_unions;
use crate::plan::context::Context;
use crate::types::hidden::Hidden;
use crate::types::names::show_alias;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, SchemaError};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan, Statement as Planned};
use datafusion::sql::parser;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Plans a query; what it is told of its parameters holds. Where the planner takes a relation of an outer query for a
/// column, relations that are named within subqueries get names that no column has.
///
/// # Errors
/// When it makes no sense.
pub(crate) async fn planned(context: &Hidden<Context>, query: &Query) -> Result<LogicalPlan> {
    match planned_once(context, query, Change::None).await {
        Ok(plan) if !names_part(&plan)? => Ok(plan),
        Err(error) if is_of_values(&error) => planned_once(context, query, Change::Values).await,
        Err(error)
            if let Some(name) = missing_name(&error)
                && show_alias(&mut query.rephrased().statement.clone(), &name) =>
        {
            with_aliases(context, query, name, error).await
        }
        Err(error) if let Some(name) = missing_column(&error) => {
            with_rows(context, query, name, error).await
        }
        Err(error) if !error.find_root().strip_backtrace().contains("Cannot access field") => {
            Err(error)
        }
        _ => planned_once(context, query, Change::OuterRelations).await,
    }
}

/// Names of columns beside `t.*` that one statement reads.
const ALIASES_MAX: usize = 32;

/// Plans a query that reads columns beside `t.*` by their names.
async fn with_aliases(
    context: &Hidden<Context>,
    query: &Query,
    name: String,
    first: DataFusionError,
) -> Result<LogicalPlan> {
    let mut names = vec![name];
    loop {
        let error = match planned_once(context, query, Change::Aliases(names.clone())).await {
            Ok(plan) => return Ok(plan),
            Err(error) => error,
        };
        match missing_name(&error) {
            Some(name) if !names.contains(&name) && names.len() < ALIASES_MAX => names.push(name),
            Some(_) => return Err(first),
            None => return Err(error),
        }
    }
}

/// Names of relations that stand for rows in one statement.
const ROWS_MAX: usize = 8;

/// Plans a query in which a name without a column may be a relation's row.
async fn with_rows(
    context: &Hidden<Context>,
    query: &Query,
    name: String,
    error: DataFusionError,
) -> Result<LogicalPlan> {
    let (mut names, mut error) = (vec![name], error);
    while names.len() <= ROWS_MAX {
        let mut statement = query.rephrased().statement.clone();
        if !names.iter().all(|name| name_rows(&mut statement, name)) {
            return Err(error);
        }
        error = match planned_once(context, query, Change::Rows(names.clone())).await {
            Ok(plan) => return Ok(plan),
            Err(error) => error,
        };
        match missing_column(&error) {
            Some(name) if !names.contains(&name) => names.push(name),
            _ => break,
        }
    }
    Err(error)
}

/// The name of a column that the planner does not find.
fn missing_name(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => match &**error {
            SchemaError::FieldNotFound { field, .. } => Some(field.name.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The name of a column without a table that the planner does not find.
fn missing_column(error: &DataFusionError) -> Option<String> {
    let DataFusionError::SchemaError(error, _) = error.find_root() else { return None };
    match &**error {
        SchemaError::FieldNotFound { field, .. } if field.relation.is_none() => {
            Some(field.name.clone())
        }
        _ => None,
    }
}

/// How a statement is changed that the planner does not take as it is.
#[derive(Clone, PartialEq, Eq)]
enum Change {
    None,
    /// Relations of outer queries get names that no column has.
    OuterRelations,
    /// `VALUES` becomes a union: the planner wants the same type of all cells of a column, literals in quotes among them.
    Values,
    /// Names of relations are their rows.
    Rows(Vec<String>),
    /// Columns beside `t.*` have these names, which may be those of columns of `t`.
    Aliases(Vec<String>),
}

fn is_of_values(error: &DataFusionError) -> bool {
    let text = error.find_root().strip_backtrace();
    let is_one = |words: &str| text.contains(words) && text.contains("across values list");
    is_one("Inconsistent metadata") || is_one("Inconsistent data type")
}

/// Whether the planner took `x.y` for a part of a column that has none.
fn names_part(plan: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    plan.visit_plans(|node| {
        let schema = merge_schema(&node.inputs());
        node.visit_expressions(|expr| {
            let is_part = |one: &Expr| match one {
                Expr::ScalarFunction(called) if called.name() == "get_field" => {
                    called.args.first().is_some_and(|of| {
                        let has_parts = |ty: &DataType| {
                            matches!(ty, DataType::Struct(_) | DataType::Map(..) | DataType::Null)
                        };
                        of.get_type(&schema).is_ok_and(|ty| !has_parts(&ty))
                    })
                }
                _ => false,
            };
            is_found |= expr.exists(|one| Ok(is_part(one)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_found)
}

async fn planned_once(
    context: &Hidden<Context>,
    query: &Query,
    change: Change,
) -> Result<LogicalPlan> {
    let rephrased = query.rephrased();
    let said = query.declared().said(rephrased.statement.clone(), &rephrased.parameters);
    let (statement, names) = said;
    let mut statement = statement;
    match change {
        Change::None => {}
        Change::OuterRelations => {
            let renamed = rename_outer_relations(&mut statement);
            renamed.map_err(|error| DataFusionError::External(Box::new(error)))?;
        }
        Change::Values => values_as_unions(&mut statement),
        Change::Aliases(names) => names.iter().for_each(|name| {
            show_alias(&mut statement, name);
        }),
        Change::Rows(names) => names.iter().for_each(|name| {
            name_rows(&mut statement, name);
        }),
    }
    let statement = parser::Statement::Statement(Box::new(statement));
    let plan = match rephrased.is_reusable {
        true => context.state().statement_to_plan(statement).await?,
        // Arguments of functions in FROM are worked out while it is planned, `now()` among them.
        false => context.plan_now(statement).await?,
    };
    match plan {
        LogicalPlan::Statement(Planned::Prepare(prepare)) => {
            let plan = renamed(Arc::unwrap_or_clone(prepare.input), &names)?;
            with_types(plan, &query.declared().types)
        }
        other => Ok(other),
    }
}

/// Gives parameters their names again.
fn renamed(plan: LogicalPlan, names: &BTreeMap<String, String>) -> Result<LogicalPlan> {
    if names.iter().all(|(other, own)| other == own) {
        return Ok(plan);
    }
    let named = |expr: Expr| match expr {
        Expr::Placeholder(Placeholder { id, field }) => {
            let id = names.get(&id).cloned().unwrap_or(id);
            Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
        }
        other => Ok(Transformed::no(other)),
    };
    plan.transform_plans_up(|node| {
        let kept = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = kept.save(&expr);
            Ok(expr.transform_up(named)?.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

/// Gives parameters within arrays, whose types the planner does not look up, their types.
fn with_types(plan: LogicalPlan, types: &BTreeMap<String, DataType>) -> Result<LogicalPlan> {
    let mut is_typed = false;
    let mut typed = |expr: Expr| match expr {
        Expr::Placeholder(Placeholder { id, field: None }) if let Some(ty) = types.get(&id) => {
            is_typed = true;
            let field = Some(Arc::new(Field::new(&id, ty.clone(), true)));
            Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
        }
        other => Ok(Transformed::no(other)),
    };
    let plan = plan.transform_plans_up(|node| {
        let kept = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = kept.save(&expr);
            Ok(expr.transform_up(&mut typed)?.update_data(|expr| name.restore(expr)))
        })
    });
    let plan = plan?.data;
    if !is_typed {
        return Ok(plan);
    }
    plan.transform_plans_up(|node| node.recompute_schema().map(Transformed::yes)).data()
}
