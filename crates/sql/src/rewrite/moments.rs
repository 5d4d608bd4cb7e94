//! PostgreSQL's words for moments: `'today'::date`, `timestamp 'yesterday'`, `'epoch'::timestamptz`.

use super::expressions::{call, cast, text_literal};
use super::{now, types::arrow_type};
use crate::instants::instant_of;
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

/// The text of a time that is written to the minute, with its seconds, which arrow wants; none of others.
pub fn with_seconds(text: &str, wanted: &SqlType) -> Option<String> {
    let is_time = matches!(arrow_type(wanted), Some(DataType::Timestamp(..)));
    if !is_time && !is_timestamptz(wanted) || instant_of(text).is_none() {
        return None;
    }
    let colon = text.find(':')?;
    let minutes = colon + 1 + text[colon + 1..].bytes().take_while(u8::is_ascii_digit).count();
    let (clock, zone) = text.split_at(minutes);
    (!zone.starts_with(':')).then(|| format!("{clock}:00{zone}"))
}

fn today() -> Expr {
    call("date_trunc", vec![text_literal("day".into()), now()])
}

fn is_timestamptz(wanted: &SqlType) -> bool {
    wanted.to_string().eq_ignore_ascii_case("timestamptz")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::expressions::instant;

    #[test]
    fn times_to_the_minute_get_their_seconds() {
        for (text, whole) in [
            ("2024-01-01 00:00", Some("2024-01-01 00:00:00")),
            ("2024-01-01T10:05Z", Some("2024-01-01T10:05:00Z")),
            ("2024-01-01 10:05+02", Some("2024-01-01 10:05:00+02")),
            ("2024-01-01 10:05:07", None),
            ("2024-01-01", None),
            ("10:05", None),
        ] {
            assert_eq!(with_seconds(text, &instant()).as_deref(), whole, "{text}");
        }
        assert_eq!(with_seconds("2024-01-01 00:00", &SqlType::Text), None);
    }
}
