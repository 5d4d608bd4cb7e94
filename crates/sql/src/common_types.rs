//! Types that PostgreSQL does not bring together: the results of `CASE`, the arguments of `COALESCE` and its like, and
//! the columns of a `UNION`. DataFusion makes texts of such.

use crate::error::SqlError;
use crate::jsonb_functions::{JSONB, TYPE_KEY};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::{Cast, WindowFunction};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable as _, LogicalPlan, Operator, RecursiveQuery, Union,
    WindowFrameBound, WindowFrameUnits,
};

/// PostgreSQL's categories of types, as far as they are told apart here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Category {
    Number,
    Text,
    Boolean,
    Time,
    Interval,
    Bytes,
    Jsonb,
}

impl Category {
    fn new(field: &Field) -> Option<Category> {
        // A `uuid` and a `jsonb` are texts to DataFusion. Other types may have the name of what they were made of.
        if let Some(name) = field.metadata().get(TYPE_KEY).filter(|_| field.data_type().is_string())
        {
            return (name == JSONB).then_some(Category::Jsonb);
        }
        match field.data_type() {
            DataType::Boolean => Some(Category::Boolean),
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => Some(Category::Text),
            DataType::Date32 | DataType::Timestamp(..) | DataType::Time64(_) => {
                Some(Category::Time)
            }
            DataType::Interval(_) => Some(Category::Interval),
            DataType::Binary | DataType::BinaryView => Some(Category::Bytes),
            ty if ty.is_numeric() => Some(Category::Number),
            _ => None,
        }
    }

    /// The category of a value; none where its type is open, as that of a text between quotes and a parameter.
    fn of(expr: &Expr, schema: &DFSchema) -> Option<Category> {
        match expr {
            Expr::Alias(alias) => Category::of(&alias.expr, schema),
            Expr::Placeholder(_) => None,
            Expr::Literal(value, _) if value.data_type().is_string() || value.is_null() => None,
            other => Category::new(&other.to_field(schema).ok()?.1),
        }
    }

    /// Whether values of both may be of one type. Some values of `jsonb` are known as texts alone.
    fn matches(self, other: Category) -> bool {
        use Category::{Jsonb, Text};
        self == other || matches!((self, other), (Jsonb, Text) | (Text, Jsonb))
    }

    fn name(self) -> &'static str {
        match self {
            Category::Number => "numeric",
            Category::Text => "text",
            Category::Boolean => "boolean",
            Category::Time => "timestamp",
            Category::Interval => "interval",
            Category::Bytes => "bytea",
            Category::Jsonb => "jsonb",
        }
    }
}

fn refusal(code: &'static str, words: String) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(code, words)))
}

/// Refuses values of two categories where all become one.
fn check_common<'a>(
    values: impl IntoIterator<Item = &'a Expr>,
    schema: &DFSchema,
    place: &str,
) -> Result<()> {
    let mut known = values.into_iter().filter_map(|one| Category::of(one, schema));
    let Some(first) = known.next() else { return Ok(()) };
    match known.find(|one| !one.matches(first)) {
        Some(other) => {
            let (first, other) = (first.name(), other.name());
            Err(refusal("42804", format!("{place} types {first} and {other} cannot be matched")))
        }
        None => Ok(()),
    }
}

/// Refuses an expression whose parts have no common type.
///
/// # Errors
/// `42804`, `42883` and `42725`, as PostgreSQL has them.
pub fn check(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::Case(case) => {
            let results = case.else_expr.iter().map(|one| &**one);
            let results = results.chain(case.when_then_expr.iter().map(|(_, then)| &**then));
            check_common(results, schema, "CASE")
        }
        Expr::ScalarFunction(called) => match called.name() {
            name @ ("coalesce" | "greatest" | "least") => {
                check_common(&called.args, schema, &name.to_uppercase())
            }
            _ => Ok(()),
        },
        Expr::WindowFunction(called) => check_window(called, schema),
        Expr::BinaryExpr(binary) => check_operator(binary, schema),
        _ => Ok(()),
    }
}

fn check_window(called: &WindowFunction, schema: &DFSchema) -> Result<()> {
    let name = called.fun.name();
    if let [value, _, default] = called.params.args.as_slice()
        && ["lag", "lead"].contains(&name)
        && let (Some(one), Some(other)) =
            (Category::of(value, schema), Category::of(default, schema))
        && !one.matches(other)
    {
        let (one, other) = (one.name(), other.name());
        let words = format!("function {name}({one}, integer, {other}) does not exist");
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
        && let Ok((_, field)) = by.expr.to_field(schema)
        && (field.metadata().contains_key(TYPE_KEY)
            || matches!(
                Category::new(&field),
                Some(Category::Text | Category::Boolean | Category::Bytes)
            ))
    {
        let of = Category::new(&field).map_or("jsonb", Category::name);
        let words =
            format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {of}");
        return Err(refusal("0A000", words));
    }
    Ok(())
}

/// Whether the type of a value is for sure a float: others may be so here alone.
fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    let is_sure = matches!(expr, Expr::Column(_) | Expr::Cast(_));
    is_sure && expr.get_type(schema).is_ok_and(|ty| ty.is_floating())
}

fn check_operator(binary: &BinaryExpr, schema: &DFSchema) -> Result<()> {
    let BinaryExpr { left, op, right } = binary;
    let is_time = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::Time64(_)));
    match op {
        Operator::Plus if is_time(left) && is_time(right) => {
            let words = "operator is not unique: time without time zone + time without time zone";
            Err(refusal("42725", words.to_string()))
        }
        Operator::Modulo if is_float(left, schema) || is_float(right, schema) => {
            let words = "operator does not exist: double precision % double precision";
            Err(refusal("42883", words.to_string()))
        }
        _ => Ok(()),
    }
}

/// The category of a column of rows, by the expression that it is made of.
fn of_column(plan: &LogicalPlan, at: usize) -> Option<Category> {
    match plan {
        LogicalPlan::Projection(projection) => {
            Category::of(projection.expr.get(at)?, &merge_schema(&plan.inputs()))
        }
        LogicalPlan::Distinct(_) | LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => {
            of_column(plan.inputs().first()?, at)
        }
        other => Category::new(other.schema().fields().get(at)?),
    }
}

fn check_union(union: &Union) -> Result<()> {
    let count = union.inputs.first().map_or(0, |one| one.schema().fields().len());
    (0..count).try_for_each(|at| {
        let mut known = union.inputs.iter().filter_map(|one| of_column(one, at));
        let Some(first) = known.next() else { return Ok(()) };
        match known.find(|one| !one.matches(first)) {
            Some(other) => Err(not_united(first, other)),
            None => Ok(()),
        }
    })
}

fn not_united(one: Category, other: Category) -> DataFusionError {
    let (one, other) = (one.name(), other.name());
    refusal("42804", format!("UNION types {one} and {other} cannot be matched"))
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
                place.and_then(|place| of_column(input, place))
            }
            (other, _) => Category::of(other, &schema),
        };
        if let (Some(first), Some(one)) = (of_column(&query.static_term, at), one)
            && !one.matches(first)
        {
            return Err(not_united(first, one));
        }
    }
    Ok(())
}

/// Whether a column of rows is a text, and no text between quotes or parameter that may be read as something else.
pub fn is_text(plan: &LogicalPlan, at: usize) -> bool {
    of_column(plan, at) == Some(Category::Text)
}

/// Refuses a set operation whose columns have no common types.
///
/// # Errors
/// `42804`.
pub fn check_node(node: &LogicalPlan) -> Result<()> {
    match node {
        LogicalPlan::Union(union) => check_union(union),
        LogicalPlan::RecursiveQuery(query) => check_recursive(query),
        _ => Ok(()),
    }
}
