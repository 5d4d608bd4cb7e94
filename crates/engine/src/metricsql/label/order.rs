//! `sort_by_label` and its kin: the order of series by the values of labels.

use super::super::{Argument, CallContext, Series};
use crate::error::Result;
use std::cmp::Ordering;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    let (compare, is_descending): (fn(&str, &str) -> Ordering, bool) = match context.name {
        "sort_by_label" => (str::cmp, false),
        "sort_by_label_desc" => (str::cmp, true),
        "sort_by_label_numeric" => (compare_numeric, false),
        "sort_by_label_numeric_desc" => (compare_numeric, true),
        _ => return context.fail("no such function"),
    };
    context.expect_at_least(arguments, 2)?;
    let mut series = context.take(arguments, 0)?;
    let names = context.texts(arguments, 1)?;
    series.sort_by(|a, b| {
        let mut orders = names.iter().map(|name| {
            compare(a.labels.get(name).unwrap_or(""), b.labels.get(name).unwrap_or(""))
        });
        let order = orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
        if is_descending { order.reverse() } else { order }
    });
    Ok(series)
}

/// Numbers in text by what they are worth, what is between them as text; numbers come first.
fn compare_numeric(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    while !a.is_empty() && !b.is_empty() {
        let (number_a, tail_a) = split_number(a);
        let (number_b, tail_b) = split_number(b);
        let order = match (number_a, number_b) {
            (Some(number_a), Some(number_b)) => number_a.total_cmp(&number_b),
            (number_a, number_b) => number_b.is_some().cmp(&number_a.is_some()),
        };
        let (text_a, rest_a) = split_text(tail_a);
        let (text_b, rest_b) = split_text(tail_b);
        let order = order.then_with(|| text_a.cmp(text_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    b.is_empty().cmp(&a.is_empty())
}

/// The number that the text begins with, with a sign and a fraction, and the rest.
fn split_number(text: &str) -> (Option<f64>, &str) {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut has_dot = false;
    let end = unsigned.bytes().position(|byte| {
        let is_first_dot = byte == b'.' && !std::mem::replace(&mut has_dot, true);
        !byte.is_ascii_digit() && !is_first_dot
    });
    let size = text.len() - unsigned.len() + end.unwrap_or(unsigned.len());
    let (number, rest) = text.split_at(size);
    if !number.bytes().any(|byte| byte.is_ascii_digit()) {
        return (None, text);
    }
    // Zero has one sign.
    (number.parse().ok().map(|number: f64| number + 0.0), rest)
}

/// The text up to the next digit, and the rest.
fn split_text(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| byte.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_order() {
        let mut texts = ["x10", "", "x2", "10", "-3", "9.5", "x", "y1", "x2.5", "9.50a"];
        texts.sort_by(|a, b| compare_numeric(a, b));
        assert_eq!(texts, ["", "-3", "9.5", "9.50a", "10", "x", "x2", "x2.5", "x10", "y1"]);
        assert_eq!(compare_numeric("1", "1.0"), Ordering::Equal);
        assert_eq!(compare_numeric("-0", "0"), Ordering::Equal);
    }
}
