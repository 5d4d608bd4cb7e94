//! The common type of values of several types. Beside a float PostgreSQL reads a `numeric` as a float; the planner would
//! read the float as a `numeric`, which has no room for very large and very small numbers. Dates beside timestamps are
//! timestamps.

use crate::plan::typing::casts::cast_changes::read_literal;
use crate::plan::typing::casts::checked_casts::literals_as_numeric;
use crate::plan::typing::casts::literal_types::literals_as_common;
use crate::plan::typing::number_operators::as_float;
use crate::plan::typing::special_types::{ResolvedType, column_type};
use crate::types::categories::{common_number, common_time, one_number};
use crate::types::numeric::conversions::{TO_NUMERIC, keyed};
use crate::types::numeric::value::NUMERIC;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, JoinType, NullEquality, Result};
use datafusion::logical_expr::expr::{InSubquery, ScalarFunction};
use datafusion::logical_expr::{
    Case, Cast, Expr, ExprSchemable as _, Join, LogicalPlan, LogicalPlanBuilder, Projection, Union,
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

fn is_decimal(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Decimal128(..) | DataType::Decimal256(..)))
}

/// A number as one of another type.
fn as_number(expr: Expr, of: &DataType, wanted: &DataType) -> Expr {
    if of == wanted || of.is_null() {
        return expr;
    }
    match wanted {
        DataType::Float64 if of.is_decimal() => as_float(expr),
        DataType::Float32 if of.is_decimal() => {
            let field = Arc::new(Field::new("", wanted.clone(), true));
            Expr::Cast(Cast { expr: Box::new(as_float(expr)), field })
        }
        _ if *wanted == NUMERIC => TO_NUMERIC.call(vec![expr]),
        _ => {
            let field = Arc::new(Field::new("", wanted.clone(), true));
            Expr::Cast(Cast { expr: Box::new(expr), field })
        }
    }
}

/// Casts numbers, or times, of several types to one.
fn as_common(sides: Vec<Expr>, schema: &DFSchema) -> Transformed<Vec<Expr>> {
    let types = sides.iter().map(|one| one.get_type(schema)).collect::<Result<Vec<_>>>();
    let Ok(types) = types else { return Transformed::no(sides) };
    let common = common_number(&types).or_else(|| common_time(&types));
    let Some(wanted) = common else { return Transformed::no(sides) };
    let both = sides.into_iter().zip(&types);
    Transformed::yes(both.map(|(side, ty)| as_number(side, ty, &wanted)).collect())
}

/// Values that are to be of one type, numbers of several types and literals beside a `numeric` among them.
///
/// # Errors
/// 22P02 when a literal is no number.
pub fn one_type(values: Vec<Expr>, schema: &DFSchema) -> Result<Transformed<Vec<Expr>>> {
    let literals = literals_as_common(values, schema)?;
    let read = literals_as_numeric(literals.data, schema)?;
    let is_read = literals.transformed || read.transformed;
    let values = as_common(read.data, schema);
    Ok(Transformed { transformed: is_read || values.transformed, ..values })
}

/// Functions of `double precision` that DataFusion has for `real`, too.
pub const OF_FLOAT8: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cot",
    "degrees", "radians", "sin", "sinh", "tan", "tanh",
];

/// Casts the arguments of such a function that are `real`.
pub fn wide_reals(mut called: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let is_real = |one: &Expr| matches!(one.get_type(schema), Ok(DataType::Float32));
    if !called.args.iter().any(is_real) {
        return Transformed::no(Expr::ScalarFunction(called));
    }
    let field = Arc::new(Field::new("", DataType::Float64, true));
    let wide = |one: Expr| match is_real(&one) {
        true => Expr::Cast(Cast { expr: Box::new(one), field: field.clone() }),
        false => one,
    };
    called.args = called.args.into_iter().map(wide).collect();
    Transformed::yes(Expr::ScalarFunction(called))
}

/// Functions of values of which one is the answer.
pub const ONE_OF_SEVERAL: &[&str] = &["coalesce", "greatest", "least", "nullif"];

/// The same of the answers of a `CASE`, and of what it compares.
///
/// # Errors
/// 22P02 when a literal is no number.
pub fn case_of_floats(case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Case { expr, when_then_expr, else_expr } = case;
    let count = when_then_expr.len();
    let (whens, thens): (Vec<_>, Vec<_>) = when_then_expr.into_iter().unzip();
    let answers = thens.into_iter().chain(else_expr).map(|one| *one).collect();
    let answers = one_type(answers, schema)?;
    let asked = match expr {
        Some(expr) => {
            let sides = [*expr].into_iter().chain(whens.into_iter().map(|one| *one)).collect();
            let read = literals_as_numeric(sides, schema)?;
            let is_read = read.transformed;
            let floats = as_floats(read.data, schema);
            let is_floats = floats.transformed;
            let is_keyed = !is_floats
                && floats.data.iter().any(|one| one.get_type(schema).is_ok_and(|ty| ty == NUMERIC));
            let asked = match is_keyed {
                true => floats.data.into_iter().map(|one| keyed(one, schema)).collect(),
                false => floats.data,
            };
            Transformed::new_transformed(asked, is_read || is_keyed || is_floats).update_data(
                |mut sides| {
                    let whens = sides.split_off(1);
                    (sides.pop().map(Box::new), whens)
                },
            )
        }
        None => Transformed::no((None, whens.into_iter().map(|one| *one).collect())),
    };
    let is_changed = answers.transformed || asked.transformed;
    let ((expr, whens), mut thens) = (asked.data, answers.data);
    let else_expr = thens.split_off(count).pop().map(Box::new);
    let both = whens.into_iter().zip(thens).map(|(when, then)| (Box::new(when), Box::new(then)));
    let made = Case { expr, when_then_expr: both.collect(), else_expr };
    Ok(Transformed::new_transformed(Expr::Case(made), is_changed))
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
            let wanted = [Some(DataType::Float64)];
            subquery.subquery = Arc::new(wide_columns(&subquery.subquery, &wanted)?);
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
    let wanted = (0..count).map(|at| {
        let types: Vec<DataType> = types(at).collect();
        let is_open = |one: &Arc<LogicalPlan>| column_type(one, at) == ResolvedType::Unknown;
        if !union.inputs.iter().any(is_open) {
            return common_number(&types).or_else(|| common_time(&types));
        }
        // Literals in quotes have the type of the others.
        let both = types.into_iter().zip(&union.inputs);
        let known: Vec<DataType> =
            both.filter(|(_, input)| !is_open(input)).map(|(ty, _)| ty).collect();
        one_number(&known).or_else(|| common_time(&known)).or_else(|| one_type_of(&known))
    });
    let wanted: Vec<Option<DataType>> = wanted.collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|one| {
        let read = read_literals(one, &wanted)?;
        wide_columns(&read, &wanted).map(Arc::new)
    });
    let made = Union::try_new_with_loose_types(inputs.collect::<Result<_>>()?)?;
    Ok(Transformed::yes(LogicalPlan::Union(made)))
}

/// Returns the type that all values have, and none if it is a text type.
fn one_type_of(types: &[DataType]) -> Option<DataType> {
    let first = types.iter().find(|ty| !ty.is_null())?;
    let is_one = types.iter().all(|ty| ty.is_null() || ty == first);
    (is_one && !first.is_string()).then(|| first.clone())
}

/// Reads the quoted literals of a projection as values of the column types.
fn read_literals(plan: &LogicalPlan, wanted: &[Option<DataType>]) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(made) = plan else { return Ok(plan.clone()) };
    let mut columns = Vec::with_capacity(made.expr.len());
    for ((expr, wanted), (table, field)) in made.expr.iter().zip(wanted).zip(plan.schema().iter()) {
        columns.push(match (wanted, expr.clone().unalias()) {
            (Some(wanted), literal @ Expr::Literal(..)) if field.data_type().is_string() => {
                let read = read_literal(literal, wanted, made.input.schema())?;
                read.alias_qualified(table.cloned(), field.name())
            }
            _ => expr.clone(),
        });
    }
    Ok(LogicalPlan::Projection(Projection::try_new(columns, made.input.clone())?))
}

/// Rows whose columns are floats where they are to be and a `numeric` is.
fn wide_columns(plan: &LogicalPlan, wanted: &[Option<DataType>]) -> Result<LogicalPlan> {
    let columns = plan.schema().iter().zip(wanted).map(|((table, field), wanted)| {
        let column = Expr::from((table, field));
        match wanted {
            Some(wanted) if wanted != field.data_type() => {
                let made = as_number(column, field.data_type(), wanted);
                made.alias_qualified(table.cloned(), field.name())
            }
            _ => column,
        }
    });
    LogicalPlanBuilder::from(plan.clone()).project(columns.collect::<Vec<_>>())?.build()
}

/// Gives both sides of `EXCEPT` or `INTERSECT`, which are a join by then, columns of the same types.
///
/// # Errors
/// Returns errors of the planner.
pub fn matched_sides(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &node else { return Ok(Transformed::no(node)) };
    let is_meant = matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull;
    let (left, right) = (join.left.schema().fields(), join.right.schema().fields());
    if !is_meant || left.len() != right.len() {
        return Ok(Transformed::no(node));
    }
    let common = |(one, other): (&FieldRef, &FieldRef)| {
        let types = [one.data_type().clone(), other.data_type().clone()];
        common_number(&types).or_else(|| common_time(&types))
    };
    let wanted: Vec<Option<DataType>> = left.iter().zip(right).map(common).collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(node));
    }
    let made = Join::try_new(
        Arc::new(wide_columns(&join.left, &wanted)?),
        Arc::new(wide_columns(&join.right, &wanted)?),
        join.on.clone(),
        join.filter.clone(),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    Ok(Transformed::yes(LogicalPlan::Join(made)))
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
