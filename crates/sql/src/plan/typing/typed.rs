//! Casts and functions that PostgreSQL has in another way than DataFusion, and that are told apart by
//! the types of what they are given: numbers with a fraction become whole ones by rounding, not by
//! cutting, and to the even one of two; times and numbers become the text that PostgreSQL shows; NaN
//! is the largest number.

use crate::functions::aggregates::charged_aggregates::DISTINCT_ARRAY_AGG;
use crate::functions::aggregates::extremes;
use crate::functions::bounded::{bounded, planned_growth};
use crate::functions::calendar::days::call as move_date;
use crate::functions::calendar::interval_extremes::{GREATEST, LEAST};
use crate::functions::numbers::number_functions::NEGATED;
use crate::functions::numbers::{checked, checked_floats};
use crate::functions::signatures::{check_types, check_window_call};
use crate::functions::text::bytea;
use crate::plan::subqueries::empty_subqueries::nullable;
use crate::plan::typing::casts::cast_changes::{EVEN, change_cast, client_texts, of_one};
use crate::plan::typing::casts::checked_casts::{check_read_as, literals_as_numeric, type_read_by};
use crate::plan::typing::casts::literal_types::literals_as_common;
use crate::plan::typing::common_types::{check_common, check_window};
use crate::plan::typing::comparisons::{check_compared, compared};
use crate::plan::typing::floats::{
    OF_FLOAT8, ONE_OF_SEVERAL, among_floats, as_floats, case_of_floats, is_float, joined,
    matched_sides, one_type, united, wide_reals,
};
use crate::plan::typing::keys::distinct_keys::hide_keys;
use crate::plan::typing::keys::equal_groups::{distinct_by_keys, group_by_keys, key_of};
use crate::plan::typing::keys::grouping_expressions;
use crate::plan::typing::keys::order_keys::{is_numeric, is_parted, ordered};
use crate::plan::typing::keys::sort_keys::{among_by_key, joined_by_key, null_if_equal};
use crate::plan::typing::list_members::{change_membership, with_unknown};
use crate::plan::typing::nested_unnest::unnest_elements;
use crate::plan::typing::number_operators::numeric_call;
use crate::plan::typing::special_types::{
    restore_type, restore_union, restore_unnest, type_name_literal,
};
use crate::plan::typing::window_calls::{change_window_call, without_equal_calls};
use crate::plan::typing::{common_types, operator_types, patterns};
use crate::plan::whole_rows::{of_row, row_of_columns};
use crate::types::error::SqlError;
use crate::types::numeric::conversions::KEY;
use crate::types::time::intervals::WORTH;
use crate::types::time::zones::ZONE;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::arrow::array::{AsArray as _, Float64Array, ListArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, InList, Placeholder, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable as _, LogicalPlan, LogicalPlanBuilder, Operator,
    ScalarUDF, bitwise_and, lit,
};
use std::sync::{Arc, LazyLock};

/// Bytes of a constant that is not copied for each row.
const LONG_TEXT_SIZE: usize = 1 << 10;

/// A plan whose casts are PostgreSQL's.
///
/// # Errors
/// Returns errors of the planner.
pub fn as_postgres_does(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = grouping_expressions::compute_below(plan)?;
    let mut is_restored = false;
    let changed = plan.transform_plans_up(|node| {
        let schema = merge_schema(&node.inputs());
        if let LogicalPlan::Sort(mut sort) = node {
            let is_changed = ordered(&mut sort.expr, &schema);
            return Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), is_changed));
        }
        common_types::check_node(&node)?;
        let node = united(node)?;
        let is_united = node.transformed;
        let node = matched_sides(node.data)?;
        let is_united = is_united || node.transformed;
        is_restored |= is_united;
        let mut node = restore_union(node.data)?;
        if !node.transformed {
            let flat = unnest_elements(node.data)?;
            let is_flattened = flat.transformed;
            node = restore_unnest(flat.data)?;
            node.transformed |= is_flattened;
        }
        if node.transformed {
            is_restored = true;
            return Ok(node);
        }
        let node = distinct_by_keys(node.data)?;
        let (mut node, is_united) = (node.data, is_united || node.transformed);
        let is_joined = match &mut node {
            LogicalPlan::Join(join) => joined(join) | joined_by_key(join),
            LogicalPlan::Aggregate(groups) => hide_keys(groups, &schema),
            _ => false,
        };
        let names = NamePreserver::new(&node);
        let changed = node.transform_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| {
                let changed = change(expr, &schema)?;
                let restored = restore_type(changed.data, &schema)?;
                is_restored |= restored.transformed;
                let is_changed = changed.transformed || restored.transformed;
                Ok(Transformed { transformed: is_changed, ..restored })
            })?;
            Ok(match changed.transformed {
                true => changed.update_data(|expr| name.restore(expr)),
                false => changed,
            })
        })?;
        let is_changed = changed.transformed || is_joined || is_united;
        let changed = changed.map_data(without_equal_calls)?;
        let changed = changed.transform_data(group_by_keys)?;
        let is_changed = is_changed || changed.transformed;
        // Nodes above look at the types of its columns.
        let node = if is_restored { changed.data.recompute_schema()? } else { changed.data };
        Ok(Transformed::new_transformed(node, is_changed))
    });
    let Transformed { data: plan, transformed, .. } = changed?;
    let plan = with_unknown(plan)?;
    let plan = match transformed {
        // Parts of an expression may have got another type, and it with them.
        true => plan.transform_plans_up(|node| node.recompute_schema().map(Transformed::yes))?.data,
        false => plan,
    };
    signed(plan)
}

/// Counts are `bigint` to PostgreSQL's clients (`row_number()`, `array_length()`), which know no numbers
/// without a sign.
fn signed(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_count = |field: &Field| *field.data_type() == DataType::UInt64;
    let is_query = !matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
    if !is_query || !plan.schema().fields().iter().any(|field| is_count(field)) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().map(|(qualifier, field)| {
        let column = Expr::from((qualifier, field));
        match is_count(field) {
            true => {
                let wide = Arc::new(field.as_ref().clone().with_data_type(DataType::Int64));
                let cast = Expr::Cast(Cast { expr: Box::new(column), field: wide });
                cast.alias_qualified(qualifier.cloned(), field.name())
            }
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

fn change(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    operator_types::check(&expr, schema)?;
    match expr {
        Expr::ScalarSubquery(subquery) => {
            let made = nullable(&subquery)?;
            let is_changed = made.is_some();
            let made = Expr::ScalarSubquery(made.unwrap_or(subquery));
            Ok(Transformed::new_transformed(made, is_changed))
        }
        Expr::Cast(_) => {
            let changed = change_cast(expr, schema)?;
            Ok(changed.transform_data(|expr| Ok(null_as_given(expr, schema)))?)
        }
        // A constant in a column is one text for all rows.
        Expr::Literal(ScalarValue::Utf8(Some(text)), metadata) if LONG_TEXT_SIZE < text.len() => {
            Ok(Transformed::yes(Expr::Literal(ScalarValue::Utf8View(Some(text)), metadata)))
        }
        // One parameter may stand in two places, which the planner takes for texts of two kinds.
        Expr::Placeholder(Placeholder { id, field: Some(field) })
            if *field.data_type() == DataType::Utf8 =>
        {
            let text = field.as_ref().clone().with_data_type(DataType::Utf8View);
            let field = Some(Arc::new(text));
            Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field })))
        }
        Expr::BinaryExpr(binary) if compares(binary.op) => change_comparison(binary, schema),
        Expr::BinaryExpr(ref binary) if patterns::flags_of(binary.op).is_some() => {
            patterns::as_call(expr)
        }
        Expr::InList(_) | Expr::Between(_) => change_several(expr, schema),
        Expr::ScalarFunction(called) => change_function(called, schema),
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter().map(|(_, then)| &**then);
            check_common("CASE", case.else_expr.as_deref().into_iter().chain(branches), schema)?;
            case_of_floats(case, schema)
        }
        Expr::InSubquery(found) => {
            among_by_key(found, schema)?.transform_data(|found| among_floats(found, schema))
        }
        // What cannot be told is NaN with a sign, by which arrow orders it: below all numbers.
        Expr::Negative(_) if is_float(&expr, schema) => {
            Ok(Transformed::yes(NUMBER.call(vec![expr])))
        }
        Expr::Negative(ref inner) if let Some(call) = checked::negated(inner, schema) => {
            Ok(Transformed::yes(call))
        }
        Expr::Negative(inner) if is_numeric(&inner, schema) => {
            Ok(Transformed::yes(NEGATED.call(vec![*inner])))
        }
        Expr::IsNull(_) | Expr::IsNotNull(_) => Ok(of_row(expr, schema)),
        Expr::BinaryExpr(_) => Ok(change_arithmetic(expr, schema)),
        Expr::AggregateFunction(mut called) => {
            check_types(called.func.name(), &called.params.args, schema)?;
            check_aggregate(&called, schema)?;
            let is_changed = aggregated(&mut called, schema);
            Ok(Transformed::new_transformed(Expr::AggregateFunction(called), is_changed))
        }
        Expr::WindowFunction(mut called) => {
            check_window_call(called.fun.name(), &called.params.args, schema)?;
            check_window(&called, schema)?;
            let is_changed = change_window_call(&mut called, schema)?;
            Ok(Transformed::new_transformed(Expr::WindowFunction(called), is_changed))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// Operators of numbers and dates.
fn change_arithmetic(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(binary) = &expr else { return Transformed::no(expr) };
    let call = checked::call(binary, schema)
        .or_else(|| numeric_call(binary, schema))
        .or_else(|| move_date(binary, schema));
    if let Some(call) = call {
        return Transformed::yes(call);
    }
    if binary.op.is_numerical_operators() && is_float(&expr, schema) {
        let call = checked_floats::call(binary);
        return Transformed::yes(call.unwrap_or_else(|| NUMBER.call(vec![expr])));
    }
    Transformed::no(expr)
}

/// Gives both sides of a comparison one type.
fn change_comparison(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let BinaryExpr { left, op, right } = binary;
    let sides = vec![*left, *right];
    check_compared(&sides, op, schema)?;
    Ok(compared(sides, is_ordering(op), schema)?.update_data(|sides| {
        let [left, right] = <[Expr; 2]>::try_from(sides).expect("two came, two go");
        Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
    }))
}

fn change_function(called: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some(row) = row_of_columns(&called, schema) {
        return Ok(Transformed::yes(row));
    }
    check_call(&called, schema)?;
    change_call(called, schema)
}

fn change_call(mut called: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match (called.func.name(), called.args.as_slice()) {
        // A day is an instant to it: its beginning.
        ("date_trunc", [_, day]) if matches!(day.get_type(schema), Ok(DataType::Date32)) => {
            let instant = DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
            let day = Box::new(called.args.remove(1));
            called.args.push(Expr::Cast(Cast {
                expr: day,
                field: Arc::new(Field::new("timestamp", instant, true)),
            }));
            Transformed::yes(Expr::ScalarFunction(called))
        }
        ("array_has", _) => change_membership(called, schema),
        ("to_hex", [one]) if is_integer(one, schema) => {
            called.args = vec![low_digits(one)];
            Transformed::yes(Expr::ScalarFunction(called))
        }
        ("round", [one]) if is_float(one, schema) => Transformed::yes(EVEN.call(called.args)),
        ("pg_typeof", [one]) if let Some(name) = type_name_literal(one, schema) => {
            Transformed::yes(name)
        }
        (name, _) if OF_FLOAT8.contains(&name) => wide_reals(called, schema),
        ("nullif", [_, _]) if has_open_numeric(&called.args, schema) => {
            called.args = literals_as_numeric(std::mem::take(&mut called.args), schema)?.data;
            return change_call(called, schema);
        }
        ("array_to_string", [list, ..]) if is_shown_list(list, schema) => {
            called.args[0] = SHOWN_LIST.call(vec![std::mem::take(&mut called.args[0])]);
            Transformed::yes(Expr::ScalarFunction(called))
        }
        ("nullif", args) if let Some(case) = null_if_equal(args, schema) => {
            Transformed::yes(Expr::Case(case))
        }
        (name, args)
            if AS_TEXTS.contains(&name) && args.iter().any(|one| is_shown(one, schema)) =>
        {
            let text = |one: Expr| match is_shown(&one, schema) {
                true => SHOWN.call(vec![one]),
                false => one,
            };
            called.args = std::mem::take(&mut called.args).into_iter().map(text).collect();
            Transformed::yes(Expr::ScalarFunction(called))
        }
        ("nullif", _) => {
            let read = literals_as_common(std::mem::take(&mut called.args), schema)?;
            let is_read = read.transformed;
            let made = as_floats(read.data, schema);
            Transformed::new_transformed(made.data, made.transformed || is_read)
        }
        .update_data(|args| {
            called.args = args;
            Expr::ScalarFunction(called)
        }),
        (name, _) if ONE_OF_SEVERAL.contains(&name) || name == "make_array" => {
            let args = one_type(std::mem::take(&mut called.args), schema)?;
            one_of_several(called, args, schema)
        }
        // What the planner makes of brackets and `||` by itself.
        (name, [_, ..]) if let Some(growth) = planned_growth(name) => {
            Transformed::yes(Arc::new(bounded(called.func, growth)).call(called.args))
        }
        _ => Transformed::no(Expr::ScalarFunction(called)),
    })
}

/// A call of arguments of one type; intervals have functions of their own.
fn one_of_several(
    mut called: ScalarFunction,
    args: Transformed<Vec<Expr>>,
    schema: &DFSchema,
) -> Transformed<Expr> {
    let are_intervals = args.data.iter().any(|one| is_parted(one, schema));
    match called.func.name() {
        "greatest" if are_intervals => Transformed::yes(GREATEST.call(args.data)),
        "least" if are_intervals => Transformed::yes(LEAST.call(args.data)),
        _ => args.update_data(|args| {
            called.args = args;
            Expr::ScalarFunction(called)
        }),
    }
}

/// The eight hexadecimal digits of an `integer`, as a `bigint`.
fn low_digits(number: &Expr) -> Expr {
    let field = Arc::new(Field::new("", DataType::Int64, true));
    let wide = Expr::Cast(Cast { expr: Box::new(number.clone()), field });
    bitwise_and(wide, lit(i64::from(u32::MAX)))
}

/// Whether an expression is an `integer`, or a smaller number.
fn is_integer(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Negative(inner) => is_integer(inner, schema),
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => i32::try_from(*number).is_ok(),
        other => matches!(other.get_type(schema), Ok(DataType::Int16 | DataType::Int32)),
    }
}

/// Whether a `numeric` stands beside a literal in quotes.
fn has_open_numeric(args: &[Expr], schema: &DFSchema) -> bool {
    let is_open = |one: &Expr| matches!(one, Expr::Literal(value, _) if value.try_as_str().flatten().is_some());
    args.iter().any(is_open)
        && args.iter().any(|one| one.get_type(schema).is_ok_and(|ty| ty.is_decimal()))
}

/// Whether the elements of a list have texts of their own in PostgreSQL.
fn is_shown_list(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::List(of)) if is_shown_type(of.data_type()))
}

fn is_interval_list(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::List(of)) if matches!(of.data_type(), DataType::Interval(_)))
}

/// Checks the types of a call that its signature says nothing of.
fn check_call(called: &ScalarFunction, schema: &DFSchema) -> Result<()> {
    match (called.func.name(), called.args.as_slice()) {
        (name @ ("coalesce" | "greatest" | "least"), args) => {
            check_common(&name.to_ascii_uppercase(), args.iter(), schema)
        }
        ("make_array", args) => check_common("ARRAY", args.iter(), schema),
        ("date_bin", [Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(width)), _), ..])
            if width.months != 0 =>
        {
            let words = "timestamps cannot be binned into intervals containing months or years";
            Err(DataFusionError::External(Box::new(SqlError::unsupported(words))))
        }
        ("array_min" | "array_max", [list]) if is_interval_list(list, schema) => {
            let words = "intervals of an array are not compared here, but by = ANY";
            Err(DataFusionError::External(Box::new(SqlError::unsupported(words))))
        }
        (reader, [value]) if let Some(of) = type_read_by(reader) => {
            check_read_as(value, of, schema)
        }
        (name, args) => check_types(name, args, schema),
    }
}

/// Refuses `string_agg` of `bytea`: DataFusion returns a text.
fn check_aggregate(called: &AggregateFunction, schema: &DFSchema) -> Result<()> {
    let is_bytes = |one: &Expr| one.get_type(schema).is_ok_and(|ty| bytea::is_bytes(&ty));
    if called.func.name() != "string_agg" || !called.params.args.iter().any(is_bytes) {
        return Ok(());
    }
    let hint = "Use decode(string_agg(encode(.., 'hex'), ''), 'hex').";
    let error = SqlError::unsupported("string_agg of bytea is not known here").with_hint(hint);
    Err(DataFusionError::External(Box::new(error)))
}

/// Changes what an aggregate is, and what its values are ordered by; says whether it did.
fn aggregated(called: &mut AggregateFunction, schema: &DFSchema) -> bool {
    let is_ordered = ordered(&mut called.params.order_by, schema);
    if is_unordered_list(called) {
        let value = called.params.args[0].clone();
        called.params.order_by = vec![value.sort(true, false)];
        return true;
    }
    let [value] = called.params.args.as_mut_slice() else { return is_ordered };
    if called.params.distinct
        && called.func.name() == "count"
        && let Some(key) = value.get_type(schema).ok().and_then(|ty| key_of(value, &ty))
    {
        *value = key;
        return true;
    }
    let is_keyed = called.params.distinct && is_numeric(value, schema);
    if is_keyed {
        *value = KEY.call(vec![std::mem::take(value)]);
    }
    if called.params.distinct && called.func.name() == "array_agg" {
        order_distinct(called, schema);
        return true;
    }
    if is_keyed {
        return true;
    }
    let (own, is_least) = match called.func.name() {
        "min" => (&*extremes::MIN, true),
        "max" => (&*extremes::MAX, false),
        _ => return is_ordered,
    };
    if is_float(value, schema) {
        called.func = own.clone();
    } else if is_parted(value, schema) {
        // Of those that are worth the same the first.
        called.params.order_by = vec![WORTH.call(vec![value.clone()]).sort(is_least, false)];
        called.params.distinct = false;
        called.func = first_value_udaf();
    } else {
        return is_ordered;
    }
    true
}

/// Returns true for `string_agg(DISTINCT x, ..)` without ORDER BY: PostgreSQL sorts the values to find those that are equal.
fn is_unordered_list(called: &AggregateFunction) -> bool {
    let params = &called.params;
    params.distinct && params.order_by.is_empty() && called.func.name() == "string_agg"
}

/// Sorts the values of `array_agg(DISTINCT x)`, as PostgreSQL does to find those that are equal.
fn order_distinct(called: &mut AggregateFunction, schema: &DFSchema) {
    called.func = DISTINCT_ARRAY_AGG.clone();
    let params = &mut called.params;
    if let ([value], true) = (params.args.as_slice(), params.order_by.is_empty()) {
        let mut sorts = vec![value.clone().sort(true, false)];
        let is_key = is_numeric(value, schema);
        if is_key || !ordered(&mut sorts, schema) {
            params.order_by = vec![value.clone().sort(true, false)];
        }
    }
}

/// Functions that make a text of whatever they are given.
const AS_TEXTS: &[&str] = &["concat", "concat_ws"];

/// Whether a value has a text of its own in PostgreSQL.
fn is_shown(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| is_shown_type(&ty))
}

fn is_shown_type(ty: &DataType) -> bool {
    ty.is_decimal() || ty.is_floating() || *ty == DataType::Boolean || ty.is_temporal()
}

fn is_ordering(op: Operator) -> bool {
    use Operator::{Gt, GtEq, Lt, LtEq};
    matches!(op, Gt | GtEq | Lt | LtEq)
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// The same of what is compared with several at once.
fn change_several(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::InList(InList { expr, list, negated }) => {
            let sides: Vec<Expr> = [*expr].into_iter().chain(list).collect();
            check_compared(&sides, Operator::Eq, schema)?;
            compared(sides, false, schema)?.update_data(|mut sides| {
                let list = sides.split_off(1);
                let expr = sides.pop().expect("the first is there");
                Expr::InList(InList { expr: Box::new(expr), list, negated })
            })
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let sides = vec![*expr, *low, *high];
            check_compared(&sides, Operator::GtEq, schema)?;
            compared(sides, true, schema)?.update_data(|sides| {
                let [expr, low, high] = <[Expr; 3]>::try_from(sides).expect("three came");
                let (low, high) = (Box::new(low), Box::new(high));
                Expr::Between(Between { expr: Box::new(expr), negated, low, high })
            })
        }
        other => Transformed::no(other),
    })
}

/// A cast to a field of a name is as null as that field says when it runs, and as what is cast when it is
/// planned: DataFusion wants both to be the same.
fn null_as_given(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::Cast(Cast { expr: inner, field }) = &expr else { return Transformed::no(expr) };
    match inner.nullable(schema) {
        Ok(is_nullable) if !field.name().is_empty() && is_nullable != field.is_nullable() => {
            let field = Arc::new(field.as_ref().clone().with_nullable(is_nullable));
            Transformed::yes(Expr::Cast(Cast { expr: inner.clone(), field }))
        }
        _ => Transformed::no(expr),
    }
}

/// With the one NaN that there is.
static NUMBER: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let same = |types: &[DataType]| types.first().cloned().unwrap_or(DataType::Float64);
    of_one("pg_number", same, |array| {
        let wide = cast(array, &DataType::Float64)?;
        let wide = wide.as_primitive::<Float64Type>();
        let values: Float64Array = wide.unary(|one| if one.is_nan() { f64::NAN } else { one });
        Ok(cast(&values, array.data_type())?)
    })
});

/// The same, with booleans as clients see them.
static SHOWN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| of_one("pg_shown", |_| DataType::Utf8View, client_texts));

/// The same of the elements of lists.
static SHOWN_LIST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    of_one(
        "pg_shown_list",
        |_| DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true))),
        |array| {
            let field = Arc::new(Field::new_list_field(DataType::Utf8View, true));
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let texts = client_texts(&values)?;
            Ok(Arc::new(ListArray::try_new(field, offsets, texts, nulls)?))
        },
    )
});
