//! Where a float stands beside a `numeric` both are floats to PostgreSQL. The planner would take the
//! float for a `numeric`, which has no place for what is very large, or very small.

use crate::checked_casts::literals_as_numeric;
use crate::literal_types::read_literals;
use crate::numeric::{NUMERIC, TO_NUMERIC, as_float, keyed};
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

fn is_decimal(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Decimal128(..) | DataType::Decimal256(..)))
}

/// The type of several numbers together, where they are of several types; none of what is not all numbers.
pub fn common_number(types: &[DataType]) -> Option<DataType> {
    let known: Vec<&DataType> = types.iter().filter(|ty| !ty.is_null()).collect();
    let first = known.first()?;
    if known.iter().all(|ty| ty == first) || !known.iter().all(|ty| ty.is_numeric()) {
        return None;
    }
    let any = |is_one: fn(&DataType) -> bool| known.iter().any(|ty| is_one(ty));
    Some(match () {
        () if any(DataType::is_floating) => DataType::Float64,
        () if any(DataType::is_decimal) => NUMERIC,
        () if any(|ty| matches!(ty, DataType::Int64 | DataType::UInt32 | DataType::UInt64)) => {
            DataType::Int64
        }
        () => DataType::Int32,
    })
}

/// A number as one of another type.
fn as_number(expr: Expr, of: &DataType, wanted: &DataType) -> Expr {
    if of == wanted || of.is_null() {
        return expr;
    }
    match wanted {
        DataType::Float64 if of.is_decimal() => as_float(expr),
        _ if *wanted == NUMERIC => TO_NUMERIC.call(vec![expr]),
        _ => {
            let field = Arc::new(Field::new("", wanted.clone(), true));
            Expr::Cast(Cast { expr: Box::new(expr), field })
        }
    }
}

/// Numbers of several types as those of one.
fn as_numbers(sides: Vec<Expr>, schema: &DFSchema) -> Transformed<Vec<Expr>> {
    let types = sides.iter().map(|one| one.get_type(schema)).collect::<Result<Vec<_>>>();
    let Ok(types) = types else { return Transformed::no(sides) };
    let Some(wanted) = common_number(&types) else { return Transformed::no(sides) };
    let both = sides.into_iter().zip(&types);
    Transformed::yes(both.map(|(side, ty)| as_number(side, ty, &wanted)).collect())
}

/// Values that are to be of one type, numbers of several types and literals beside a `numeric` among them.
///
/// # Errors
/// 22P02 when a literal is no number.
pub fn one_type(values: Vec<Expr>, schema: &DFSchema) -> Result<Transformed<Vec<Expr>>> {
    let literals = read_literals(values, schema)?;
    let read = literals_as_numeric(literals.data, schema)?;
    let numbers = as_numbers(read.data, schema);
    let is_changed = literals.transformed || read.transformed || numbers.transformed;
    Ok(Transformed { transformed: is_changed, ..numbers })
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
    let wanted: Vec<Option<DataType>> =
        (0..count).map(|at| common_number(&types(at).collect::<Vec<_>>())).collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|one| wide_columns(one, &wanted).map(Arc::new));
    let made = Union::try_new_with_loose_types(inputs.collect::<Result<_>>()?)?;
    Ok(Transformed::yes(LogicalPlan::Union(made)))
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
