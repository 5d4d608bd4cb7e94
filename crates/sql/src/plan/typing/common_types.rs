//! Types that PostgreSQL does not bring together: the results of `CASE`, the arguments of `COALESCE` and its like, the
//! columns of a `UNION`, the sides of an operator (<https://www.postgresql.org/docs/15/typeconv-union-case.html>).
//! DataFusion makes texts of such.

use crate::types::categories::{Category, known_type, refusal};
use datafusion::common::{DFSchema, NullEquality, Result};
use datafusion::logical_expr::expr::{Cast, WindowFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Distinct, Expr, Join, JoinType, LogicalPlan, RecursiveQuery, Union, WindowFrameBound,
    WindowFrameUnits,
};

/// Checks that values may have one type, in the order in which PostgreSQL looks at them.
///
/// # Errors
/// 42804 when two are of types without a common one.
pub fn check_common<'a>(
    place: &str,
    values: impl Iterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> Result<()> {
    check_types(place, values.map(|one| known_type(one, schema)))
}

fn check_types(place: &str, types: impl Iterator<Item = Option<(Category, String)>>) -> Result<()> {
    let mut first: Option<(Category, String)> = None;
    for (category, name) in types.flatten() {
        match &first {
            None => first = Some((category, name)),
            Some((known, known_name)) if clashes(*known, category) => {
                let words = format!("{place} types {known_name} and {name} cannot be matched");
                return Err(refusal("42804", words));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Whether two categories have no common type. Functions may lose the name of a special type, so texts clash with
/// none of these.
fn clashes(one: Category, other: Category) -> bool {
    let is_text = |one| matches!(one, Category::Text | Category::Special);
    one != other && !(is_text(one) && is_text(other))
}

/// The columns of united queries may be literals without a type.
fn check_union(union: &Union) -> Result<()> {
    let count = union.inputs.first().map_or(0, |one| one.schema().fields().len());
    (0..count).try_for_each(|at| {
        check_types("UNION", union.inputs.iter().map(|one| column_type(one, at)))
    })
}

/// The type of a column of a plan, by the expression that makes the column.
pub fn column_type(plan: &LogicalPlan, at: usize) -> Option<(Category, String)> {
    match plan {
        LogicalPlan::Projection(made) => known_type(made.expr.get(at)?, made.input.schema()),
        LogicalPlan::Distinct(Distinct::All(input)) => column_type(input, at),
        LogicalPlan::Sort(sort) => column_type(&sort.input, at),
        LogicalPlan::Limit(limit) => column_type(&limit.input, at),
        LogicalPlan::Union(_) | LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => None,
        other => {
            let column = Expr::from(other.schema().qualified_field(at));
            known_type(&column, other.schema())
        }
    }
}

/// Refuses calls of windows whose types PostgreSQL has no function for.
///
/// # Errors
/// `42883` and `0A000`, as PostgreSQL has them.
pub fn check_window(called: &WindowFunction, schema: &DFSchema) -> Result<()> {
    let name = called.fun.name();
    if let [value, _, default] = called.params.args.as_slice()
        && ["lag", "lead"].contains(&name)
        && let (Some((one, one_name)), Some((other, other_name))) =
            (known_type(value, schema), known_type(default, schema))
        && clashes(one, other)
    {
        let words = format!("function {name}({one_name}, integer, {other_name}) does not exist");
        return Err(refusal("42883", words));
    }
    let frame = &called.params.window_frame;
    let is_offset = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) => !value.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    let is_one = frame.units == WindowFrameUnits::Range
        && (is_offset(&frame.start_bound) || is_offset(&frame.end_bound));
    if let (true, [by]) = (is_one, called.params.order_by.as_slice())
        && let Some((category, of)) = known_type(&by.expr, schema)
        && matches!(
            category,
            Category::Text | Category::Special | Category::Boolean | Category::Bytea
        )
    {
        let words =
            format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {of}");
        return Err(refusal("0A000", words));
    }
    Ok(())
}

/// The recursive term is cast to the types of the first before it is here.
fn check_recursive(query: &RecursiveQuery) -> Result<()> {
    let LogicalPlan::Projection(projection) = &*query.recursive_term else { return Ok(()) };
    let schema = merge_schema(&query.recursive_term.inputs());
    for (at, expr) in projection.expr.iter().enumerate() {
        let Expr::Cast(Cast { expr: inner, .. }) = expr.clone().unalias() else { continue };
        // A column of a projection that the planner cast itself is looked at where it is made.
        let one = match (&*inner, query.recursive_term.inputs().first()) {
            (Expr::Column(column), Some(input)) => {
                let place = input.schema().maybe_index_of_column(column);
                place.and_then(|place| column_type(input, place))
            }
            (other, _) => known_type(other, &schema),
        };
        check_types("UNION", [column_type(&query.static_term, at), one].into_iter())?;
    }
    Ok(())
}

/// INTERSECT and EXCEPT are joins by all columns, in which NULL equals NULL.
fn check_rows_of_both(join: &Join) -> Result<()> {
    let place = match join.join_type {
        JoinType::LeftSemi => "INTERSECT",
        JoinType::LeftAnti => "EXCEPT",
        _ => return Ok(()),
    };
    let count = join.left.schema().fields().len();
    if join.null_equality != NullEquality::NullEqualsNull || join.on.len() != count {
        return Ok(());
    }
    join.on.iter().try_for_each(|(left, right)| {
        let sides = [(&join.left, left), (&join.right, right)];
        let types = sides.into_iter().map(|(input, expr)| match expr {
            Expr::Column(column) => {
                let at = input.schema().maybe_index_of_column(column);
                at.and_then(|at| column_type(input, at))
            }
            other => known_type(other, input.schema()),
        });
        check_types(place, types)
    })
}

/// Refuses a set operation whose columns have no common types.
///
/// # Errors
/// `42804`.
pub fn check_node(node: &LogicalPlan) -> Result<()> {
    match node {
        LogicalPlan::Union(union) => check_union(union),
        LogicalPlan::RecursiveQuery(query) => check_recursive(query),
        LogicalPlan::Join(join) => check_rows_of_both(join),
        _ => Ok(()),
    }
}
