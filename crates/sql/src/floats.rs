//! Where a float stands beside a `numeric` both are floats to PostgreSQL. The planner would take the
//! float for a `numeric`, which has no place for what is very large, or very small.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{
    Case, Cast, Expr, ExprSchemable as _, Join, LogicalPlan, LogicalPlanBuilder, Union,
};
use std::sync::Arc;

/// Expressions of which one may be a float: those that are a `numeric` then are floats, too.
pub fn as_floats(sides: Vec<Expr>, schema: &DFSchema) -> Transformed<Vec<Expr>> {
    let is_decimal = |side: &Expr| is_decimal(side, schema);
    if !sides.iter().any(|side| is_float(side, schema)) || !sides.iter().any(is_decimal) {
        return Transformed::no(sides);
    }
    let wide = |side: Expr| if is_decimal(&side) { as_float(side) } else { side };
    Transformed::yes(sides.into_iter().map(wide).collect())
}

fn as_float(expr: Expr) -> Expr {
    let field = Arc::new(Field::new("", DataType::Float64, true));
    Expr::Cast(Cast { expr: Box::new(expr), field })
}

fn is_decimal(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Decimal128(..) | DataType::Decimal256(..)))
}

/// Functions of values of which one is the answer.
pub const ONE_OF_SEVERAL: &[&str] = &["coalesce", "greatest", "least", "nullif"];

/// The same of the answers of a `CASE`, and of what it compares.
pub fn case_of_floats(case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let Case { expr, when_then_expr, else_expr } = case;
    let count = when_then_expr.len();
    let (whens, thens): (Vec<_>, Vec<_>) = when_then_expr.into_iter().unzip();
    let answers = thens.into_iter().chain(else_expr).map(|one| *one).collect();
    let answers = as_floats(answers, schema);
    let asked = match expr {
        Some(expr) => {
            let sides = [*expr].into_iter().chain(whens.into_iter().map(|one| *one)).collect();
            as_floats(sides, schema).update_data(|mut sides| {
                let whens = sides.split_off(1);
                (sides.pop().map(Box::new), whens)
            })
        }
        None => Transformed::no((None, whens.into_iter().map(|one| *one).collect())),
    };
    let is_changed = answers.transformed || asked.transformed;
    let ((expr, whens), mut thens) = (asked.data, answers.data);
    let else_expr = thens.split_off(count).pop().map(Box::new);
    let both = whens.into_iter().zip(thens).map(|(when, then)| (Box::new(when), Box::new(then)));
    let made = Case { expr, when_then_expr: both.collect(), else_expr };
    Transformed::new_transformed(Expr::Case(made), is_changed)
}

/// The same of a value that is looked for among those of a query.
pub fn among_floats(found: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let InSubquery { expr, mut subquery, negated } = found;
    let among = subquery.subquery.schema().field(0).data_type().clone();
    let (is_changed, expr) = match &among {
        DataType::Float32 | DataType::Float64 if is_decimal(&expr, schema) => {
            (true, Box::new(as_float(*expr)))
        }
        ty if ty.is_decimal() && is_float(&expr, schema) => {
            subquery.subquery = Arc::new(wide_columns(&subquery.subquery, &[true])?);
            (true, expr)
        }
        _ => (false, expr),
    };
    let made = Expr::InSubquery(InSubquery { expr, subquery, negated });
    Ok(Transformed::new_transformed(made, is_changed))
}

/// The same of columns that several queries have together.
pub fn united(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = node else { return Ok(Transformed::no(node)) };
    let types = |at: usize| {
        union.inputs.iter().filter_map(move |one| {
            one.schema().fields().get(at).map(|field| field.data_type().clone())
        })
    };
    let count = union.inputs.first().map_or(0, |one| one.schema().fields().len());
    let is_wide: Vec<bool> = (0..count)
        .map(|at| types(at).any(|ty| ty.is_floating()) && types(at).any(|ty| ty.is_decimal()))
        .collect();
    if !is_wide.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|one| wide_columns(one, &is_wide).map(Arc::new));
    let made = Union::try_new_with_loose_types(inputs.collect::<Result<_>>()?)?;
    Ok(Transformed::yes(LogicalPlan::Union(made)))
}

/// Rows whose columns are floats where they are to be and a `numeric` is.
fn wide_columns(plan: &LogicalPlan, is_wide: &[bool]) -> Result<LogicalPlan> {
    let columns = plan.schema().iter().zip(is_wide).map(|((table, field), is_wide)| {
        let column = Expr::from((table, field));
        match *is_wide && field.data_type().is_decimal() {
            true => as_float(column).alias_qualified(table.cloned(), field.name()),
            false => column,
        }
    });
    LogicalPlanBuilder::from(plan.clone()).project(columns.collect::<Vec<_>>())?.build()
}

/// The same of the columns by which tables are joined.
pub fn joined(join: &mut Join) -> bool {
    let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
    let mut is_changed = false;
    for (one, other) in &mut join.on {
        let meant = match (is_float(one, &left), is_float(other, &right)) {
            (true, _) if is_decimal(other, &right) => other,
            (_, true) if is_decimal(one, &left) => one,
            _ => continue,
        };
        *meant = as_float(meant.clone());
        is_changed = true;
    }
    is_changed
}

/// Whether it is a float.
pub fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Float32 | DataType::Float64))
}
