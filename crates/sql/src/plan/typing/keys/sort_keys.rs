//! Numbers of one value are equal, however many digits they show: in groups, joins and lists without duplicates.

use crate::functions::arrays::null_arrays::{LIST_KEY, LIST_WORTH};
use crate::plan::typing::casts::cast_changes::as_interval;
use crate::types::casts::array_casts::cast_to_list;
use crate::types::categories::is_open;
use crate::types::numeric::conversions::{KEY, keyed};
use crate::types::numeric::value::NUMERIC;
use crate::types::time::intervals::{WORTH, is_interval};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{
    Case, Expr, ExprSchemable as _, Join, JoinConstraint, LogicalPlanBuilder, when,
};
use std::sync::Arc;

fn is_numeric(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| ty == NUMERIC)
}

/// The columns by which tables are joined.
pub fn joined_by_key(join: &mut Join) -> bool {
    let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
    let mut is_changed = false;
    for (one, other) in &mut join.on {
        let is_parted =
            |expr: &Expr, schema: &DFSchema| expr.get_type(schema).is_ok_and(|ty| is_interval(&ty));
        if is_parted(one, &left) && is_parted(other, &right) {
            *one = WORTH.call(vec![std::mem::take(one)]);
            *other = WORTH.call(vec![std::mem::take(other)]);
            join.join_constraint = JoinConstraint::On;
            is_changed = true;
            continue;
        }
        let is_one = is_numeric(one, &left) || is_numeric(other, &right);
        let is_plain = |expr: &Expr, schema: &DFSchema| {
            expr.get_type(schema).is_ok_and(|ty| ty.is_decimal() || ty.is_integer())
        };
        if !is_one || !is_plain(one, &left) || !is_plain(other, &right) {
            continue;
        }
        *one = keyed(std::mem::take(one), &left);
        *other = keyed(std::mem::take(other), &right);
        // A key is no column that both sides have by one name; what `USING` merges is merged by now.
        join.join_constraint = JoinConstraint::On;
        is_changed = true;
    }
    is_changed
}

/// A value that is looked for among those of a query.
///
/// # Errors
/// When the plan makes no sense.
pub fn among_by_key(found: InSubquery, schema: &DFSchema) -> Result<Transformed<InSubquery>> {
    let InSubquery { expr, mut subquery, negated } = found;
    let among = subquery.subquery.schema().field(0).data_type().clone();
    let is_exact = |ty: &DataType| ty.is_decimal() || ty.is_integer();
    let is_meant = expr
        .get_type(schema)
        .is_ok_and(|ty| (ty == NUMERIC || among == NUMERIC) && is_exact(&ty) && is_exact(&among));
    let is_parted = is_interval(&among) && expr.get_type(schema).is_ok_and(|ty| is_interval(&ty));
    if !is_meant && !is_parted {
        return Ok(Transformed::no(InSubquery { expr, subquery, negated }));
    }
    let key = if is_parted { &WORTH } else { &KEY };
    let columns = subquery.subquery.schema().iter().enumerate().map(|(at, (table, field))| {
        let column = Expr::from((table, field));
        match at {
            0 => key.call(vec![column]).alias_qualified(table.cloned(), field.name()),
            _ => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project(columns)?;
    subquery.subquery = Arc::new(plan.build()?);
    let expr = Box::new(match is_parted {
        true => WORTH.call(vec![*expr]),
        false => keyed(*expr, schema),
    });
    Ok(Transformed::yes(InSubquery { expr, subquery, negated }))
}

/// Replaces a list and the value to find in it by keys, if one of them is a `numeric` or both are intervals.
pub fn found_by_key(args: Vec<Expr>, schema: &DFSchema) -> Transformed<Vec<Expr>> {
    let [list, value] = args.as_slice() else { return Transformed::no(args) };
    let (Ok(DataType::List(of)), Ok(ty)) = (list.get_type(schema), value.get_type(schema)) else {
        return Transformed::no(args);
    };
    let of = of.data_type();
    if is_interval(of) && is_interval(&ty) {
        let (list, value) = (list.clone(), value.clone());
        return Transformed::yes(vec![LIST_WORTH.call(vec![list]), WORTH.call(vec![value])]);
    }
    let is_exact = |ty: &DataType| ty.is_decimal() || ty.is_integer();
    if !is_exact(of) || !is_exact(&ty) || of.is_integer() && ty.is_integer() {
        return Transformed::no(args);
    }
    let numbers = match *of == NUMERIC {
        true => Some(list.clone()),
        false => cast_to_list(list.clone(), &DataType::new_list(of.clone(), true), &NUMERIC),
    };
    match numbers {
        Some(numbers) => {
            Transformed::yes(vec![LIST_KEY.call(vec![numbers]), keyed(value.clone(), schema)])
        }
        None => Transformed::no(args),
    }
}

/// `nullif` of numbers, of which one is a `numeric`.
pub fn null_if_equal(args: &[Expr], schema: &DFSchema) -> Option<Case> {
    let [value, other] = args else { return None };
    let is_parted = |one: &Expr| one.get_type(schema).is_ok_and(|ty| is_interval(&ty));
    let read = |one: &Expr| if is_open(one) { as_interval(one.clone()) } else { one.clone() };
    let pair = match is_parted(value) || is_parted(other) {
        true => [read(value), read(other)],
        false => [value.clone(), other.clone()],
    };
    let [value, other] = &pair;
    let are_parted = is_parted(value) && is_parted(other);
    let is_exact =
        |one: &Expr| one.get_type(schema).is_ok_and(|ty| ty.is_decimal() || ty.is_integer());
    let is_meant = is_numeric(value, schema) || is_numeric(other, schema);
    if !are_parted && (!is_meant || !is_exact(value) || !is_exact(other)) {
        return None;
    }
    let is_equal = match are_parted {
        true => WORTH.call(vec![value.clone()]).eq(WORTH.call(vec![other.clone()])),
        false => keyed(value.clone(), schema).eq(keyed(other.clone(), schema)),
    };
    let null = ScalarValue::try_from(&value.get_type(schema).ok()?).ok()?;
    let null = Expr::Literal(null, None);
    match when(is_equal, null).otherwise(value.clone()).ok()? {
        Expr::Case(case) => Some(case),
        _ => None,
    }
}
