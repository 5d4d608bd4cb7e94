//! Promscale's operators and functions: what they are here, and which have no meaning.

use crate::functions::json::jsonb_parts::NAMELESS;
use crate::parse::rewrite::expressions::{arguments, call, is_named, literal, text_literal};
use crate::parse::rewrite::operators::dot_is_any;
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Function, SelectItem, SetExpr};

/// The schema of its functions.
pub const API_SCHEMA: &str = "prom_api";

/// Functions that would change for how long a metric is kept.
const RETENTION: &[&str] = &[
    "set_default_retention_period",
    "set_metric_retention_period",
    "reset_metric_retention_period",
];

/// `labels ? (key == value)`, as DataFusion knows it: a label that is not there is equal to nothing,
/// and unequal to all.
pub fn matched(labels: &Expr, matcher: &Expr) -> Option<Expr> {
    let Expr::Nested(inner) = matcher else { return None };
    let Expr::BinaryOp { left: key, op: BinaryOperator::Custom(op), right: value } = &**inner
    else {
        return None;
    };
    let (plain, is_wanted) = match op.as_str() {
        "==" => (BinaryOperator::Eq, true),
        "!==" => (BinaryOperator::Eq, false),
        "==~" => (BinaryOperator::PGRegexMatch, true),
        "!=~" => (BinaryOperator::PGRegexMatch, false),
        _ => return None,
    };
    let mut value = value.clone();
    if plain == BinaryOperator::PGRegexMatch {
        dot_is_any(&mut value);
    }
    let (labels, key) = (Box::new(labels.clone()), key.clone());
    let label = Expr::BinaryOp { left: labels, op: BinaryOperator::LongArrow, right: key };
    let left = Box::new(Expr::Nested(Box::new(label)));
    let is_so = Box::new(Expr::Nested(Box::new(Expr::BinaryOp { left, op: plain, right: value })));
    Some(match is_wanted {
        true => Expr::IsTrue(is_so),
        false => Expr::IsNotTrue(is_so),
    })
}

/// What a function of Promscale's is here.
///
/// # Errors
/// When it has no meaning here.
pub fn promscale(function: &Function) -> Result<Option<Expr>, SqlError> {
    let Some(args) = arguments(function) else { return Ok(None) };
    let is = |name: &str| is_named(&function.name, name);
    if RETENTION.iter().any(|name| is(name)) {
        let words = "all metrics are kept for as long as --retention says, with which the \
                     server is started";
        return Err(SqlError::unsupported(words));
    }
    if is("label_cardinality") {
        let words = "label_cardinality is not known here, since the id of a label is its value: ask \
                     SELECT count(*) FROM metrics_labels WHERE labels->>'key' = 'value'";
        return Err(SqlError::unsupported(words));
    }
    if is("drop_metric") {
        let words = "drop_metric is known as SELECT drop_metric('name'), alone in its statement";
        return Err(SqlError::unsupported(words));
    }
    Ok(match args.as_slice() {
        // The id of a label is its value.
        [id] if is("val") => Some((*id).clone()),
        [left, right] if is("eq") => Some(Expr::BinaryOp {
            left: Box::new(nameless(left)),
            op: BinaryOperator::Eq,
            right: Box::new(nameless(right)),
        }),
        _ => None,
    })
}

/// Labels to be compared with others.
fn nameless(labels: &Expr) -> Expr {
    let labels = match literal(labels) {
        Some(text) => call(crate::types::casts::cast_functions::JSONB_IN, vec![text_literal(text)]),
        None => labels.clone(),
    };
    call(NAMELESS, vec![labels])
}

/// The metric of `SELECT drop_metric('name')`.
pub fn dropped_metric(body: &SetExpr) -> Option<String> {
    let SetExpr::Select(select) = body else { return None };
    let [SelectItem::UnnamedExpr(Expr::Function(function))] = select.projection.as_slice() else {
        return None;
    };
    let is_plain = select.from.is_empty() && select.selection.is_none() && select.having.is_none();
    if !is_plain || !is_named(&function.name, "drop_metric") {
        return None;
    }
    match arguments(function)?.as_slice() {
        [name] => literal(name),
        _ => None,
    }
}
