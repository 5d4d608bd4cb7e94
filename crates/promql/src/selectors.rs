//! The selectors of an expression, whatever stands around them: what asks for exemplars means those
//! of all series that the expression reads.

use crate::{Expr, metricsql};
use model::Matcher;
use std::collections::HashSet;

/// The matchers of an expression that is one selector without offset or `@`; none of any other.
pub fn matchers_of(expr: Expr) -> Option<Vec<Matcher>> {
    match expr {
        Expr::Vector(selector) if selector.offset_ms == 0 && selector.at.is_none() => {
            Some(selector.matchers)
        }
        _ => None,
    }
}

/// The matchers of each selector of the expression, in the order of the text, equal ones once.
pub fn selectors(expr: &Expr) -> Vec<Vec<Matcher>> {
    let mut sets = Sets::default();
    collect(expr, &mut sets);
    sets.list
}

/// Matchers of selectors, in order, equal ones once.
#[derive(Default)]
struct Sets {
    list: Vec<Vec<Matcher>>,
    known: HashSet<Vec<Matcher>>,
}

fn add(set: &[Matcher], sets: &mut Sets) {
    if !sets.known.contains(set) {
        sets.known.insert(set.to_vec());
        sets.list.push(set.to_vec());
    }
}

fn collect(expr: &Expr, sets: &mut Sets) {
    match expr {
        Expr::Number(_) | Expr::String(_) => {}
        Expr::Vector(selector) => add(&selector.matchers, sets),
        Expr::Matrix(matrix) => add(&matrix.selector.matchers, sets),
        Expr::Subquery(node) => collect(&node.expr, sets),
        Expr::Call(node) => node.arguments.iter().for_each(|argument| collect(argument, sets)),
        Expr::Aggregate(node) => {
            node.parameter.iter().for_each(|parameter| collect(parameter, sets));
            collect(&node.expr, sets);
        }
        Expr::Binary(node) => {
            collect(&node.left, sets);
            collect(&node.right, sets);
        }
        Expr::Unary(node) => collect(&node.expr, sets),
        Expr::Paren(node) => collect(&node.expr, sets),
    }
}

/// The same of a MetricsQL expression.
pub fn metricsql_selectors(mut expr: metricsql::Expr) -> Vec<Vec<Matcher>> {
    let mut sets = Sets::default();
    collect_metricsql(&mut expr, &mut sets);
    sets.list
}

fn collect_metricsql(expr: &mut metricsql::Expr, sets: &mut Sets) {
    if let metricsql::Expr::Selector(selector) = expr {
        selector.sets.iter().for_each(|set| add(set, sets));
    }
    expr.for_each_child_mut(&mut |child| collect_metricsql(child, sets));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sets: &[Vec<Matcher>]) -> Vec<String> {
        let text =
            |set: &Vec<Matcher>| set.iter().map(Matcher::to_string).collect::<Vec<_>>().join(",");
        sets.iter().map(text).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(texts(&selectors(&crate::parse(text).expect(text))), expected, "{text}");
        let expr = metricsql::parse(text).expect(text);
        assert_eq!(texts(&metricsql_selectors(expr)), expected, "{text} in MetricsQL");
    }

    #[test]
    fn every_selector_once() {
        let (a, b) = ["__name__=\"a\"", "__name__=\"b\""].into();
        check("1", &[]);
        check("a", &[a]);
        check("-(a)", &[a]);
        check("rate(a[5m] offset 1h) / sum by (x) (b @ 7)", &[a, b]);
        check("max_over_time(rate(a[1m])[1h:5m]) > scalar(b) or a", &[a, b]);
        check("topk(scalar(a), b)", &[a, b]);
        check("histogram_quantile(0.9, sum by (le) (rate(b[5m]))) unless a", &[b, a]);
        let expr = metricsql::parse("sum({a=\"1\" or b=\"2\"}) @ b").expect("it parses");
        assert_eq!(texts(&metricsql_selectors(expr)), ["a=\"1\"", "b=\"2\"", b]);
    }
}
