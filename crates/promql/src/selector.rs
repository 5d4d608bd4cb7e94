//! Selectors in requests and settings: expressions that are nothing else.

use model::Matcher;
use promql::Expr;

/// The matchers of an expression that is a selector and nothing else.
pub fn matchers_of(expr: Expr) -> Option<Vec<Matcher>> {
    match expr {
        Expr::Vector(selector) if selector.offset_ms == 0 && selector.at.is_none() => {
            Some(selector.matchers)
        }
        _ => None,
    }
}
