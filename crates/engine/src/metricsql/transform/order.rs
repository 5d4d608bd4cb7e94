//! Functions that put series into an order, or take some of them by it.

use super::super::arguments::drop_empty;
use super::super::{Argument, CallContext, Series};
use crate::error::Result;
use std::cmp::Ordering;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    if context.name == "limit_offset" {
        return limit_offset(context, arguments);
    }
    let mut series = context.take_only(arguments)?;
    let is_descending = context.name == "sort_desc";
    series.sort_by(|a, b| compare(&a.values, &b.values, is_descending));
    Ok(series)
}

/// By the last points, and where those are equal by the ones before. Gaps are first either way.
fn compare(a: &[f64], b: &[f64], is_descending: bool) -> Ordering {
    let points = a.iter().rev().zip(b.iter().rev());
    let mut orders = points.map(|(a, b)| match (a.is_nan(), b.is_nan()) {
        (false, false) => {
            let ascending = a.partial_cmp(b).unwrap_or(Ordering::Equal);
            if is_descending { ascending.reverse() } else { ascending }
        }
        (a_is_gap, b_is_gap) => b_is_gap.cmp(&a_is_gap),
    });
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Series `offset..offset + limit` of those that have points.
fn limit_offset(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 3, 3)?;
    let limit = context.integer(arguments, 0)?;
    let offset = context.integer(arguments, 1)?;
    let (Ok(limit), Ok(offset)) = (usize::try_from(limit), usize::try_from(offset)) else {
        return context.fail(format!("negative limit {limit} or offset {offset}"));
    };
    let mut series = context.take(arguments, 2)?;
    drop_empty(&mut series);
    Ok(series.into_iter().skip(offset).take(limit).collect())
}
