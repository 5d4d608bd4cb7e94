//! Texts that are booleans or floats.

use datafusion::arrow::datatypes::DataType;

/// A boolean of a text: a word for it, or the beginning of one that begins no other.
pub fn boolean_of(text: &str) -> Option<bool> {
    let text = text.trim_matches(|one: char| one.is_ascii_whitespace()).to_ascii_lowercase();
    let begins = |word: &str, least: usize| least <= text.len() && word.starts_with(&text);
    let is_true = begins("true", 1) || begins("yes", 1) || text == "on" || text == "1";
    let is_false = begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0";
    match (is_true, is_false) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Whether a number of finite digits is infinite as a float, or zero though one of its digits is not.
pub fn is_float_out_of_range(text: &str, to: &DataType) -> bool {
    let text = text.trim();
    let Ok(value) = text.parse::<f64>() else { return false };
    let value = if *to == DataType::Float32 { f64::from(value as f32) } else { value };
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let has_digit = |least: u8| digits.bytes().any(|one| (least..=b'9').contains(&one));
    value.is_infinite() && has_digit(b'0') || value == 0.0 && has_digit(b'1')
}
