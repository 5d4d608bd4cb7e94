//! PostgreSQL's words for moments: `'today'::date`, `timestamp 'yesterday'`, `'epoch'::timestamptz`.

use super::expressions::{call, cast, text_literal};
use super::{now, types::arrow_type};
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType as SqlType, Expr};

/// What such a word means where a time or a date is wanted; none where it is none. Days begin in UTC.
pub fn moment(text: &str, wanted: &SqlType) -> Option<Expr> {
    let is_time = matches!(arrow_type(wanted), Some(DataType::Timestamp(..) | DataType::Date32));
    if !is_time && !is_timestamptz(wanted) {
        return None;
    }
    let days = match text.trim().to_ascii_lowercase().as_str() {
        "now" => return Some(now()),
        "epoch" => return Some(text_literal("1970-01-01 00:00:00".into())),
        "today" => return Some(today()),
        "yesterday" => "-1 days",
        "tomorrow" => "1 days",
        _ => return None,
    };
    let interval = SqlType::Interval { fields: None, precision: None };
    let sum = Expr::BinaryOp {
        left: Box::new(today()),
        op: BinaryOperator::Plus,
        right: Box::new(cast(text_literal(days.into()), interval)),
    };
    Some(Expr::Nested(Box::new(sum)))
}

fn today() -> Expr {
    call("date_trunc", vec![text_literal("day".into()), now()])
}

fn is_timestamptz(wanted: &SqlType) -> bool {
    wanted.to_string().eq_ignore_ascii_case("timestamptz")
}
