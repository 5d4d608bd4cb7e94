//! PostgreSQL's words for moments: `'today'::date`, `timestamp 'yesterday'`, `'epoch'::timestamptz`.

use crate::parse::rewrite::expressions::{call, cast, literal, now, text_literal};
use crate::parse::rewrite::types::{arrow_type, interval_to_field};
use crate::types::time::instants::instant_of;
use crate::types::time::interval_texts::interval_text;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType as SqlType, Expr, Interval};

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

/// Rewrites `interval '1 year 3 mons' year to month`. Returns none for an interval without fields, and for a whole number
/// of one field.
pub fn interval_of_fields(interval: &Interval) -> Option<Expr> {
    let (text, first) = (literal(&interval.value)?, interval.leading_field.as_ref()?);
    if interval.last_field.is_none() && text.trim().parse::<i64>().is_ok() {
        return None;
    }
    let last = interval.last_field.as_ref().unwrap_or(first).to_string();
    // `1:30` means minutes and seconds for this type, and hours and minutes for all others.
    let is_short = first.to_string() == "MINUTE" && last == "SECOND";
    let mut value = (*interval.value).clone();
    if is_short && text.matches(':').count() == 1 && !text.contains(' ') {
        value = text_literal(format!("0:{}", text.trim()));
    }
    // The parser has the digits of `second(1)` in the place of those of a leading field.
    let digits = interval.fractional_seconds_precision.or(interval.leading_precision);
    Some(interval_to_field(&value, Some(&last), digits))
}

/// Writes the text of an interval without a unit as DataFusion reads it.
pub fn read_interval(interval: &mut Interval) {
    if let (Some(text), None) = (literal(&interval.value), &interval.leading_field) {
        *interval.value = text_literal(interval_text(&text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::rewrite::expressions::instant;

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
