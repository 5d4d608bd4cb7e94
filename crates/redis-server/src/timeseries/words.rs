//! What clients of time series are told when something is wrong, and how numbers are written.

use kv::{CommandError, Reply};
use std::borrow::Cow;

/// An error of fixed words.
const fn words(text: &'static str) -> CommandError {
    CommandError(Cow::Borrowed(text))
}

pub const KEY_EXISTS: CommandError = words("ERR TSDB: key already exists");
pub const NO_KEY: CommandError = words("ERR TSDB: the key does not exist");
pub const NOT_SERIES: CommandError = words("ERR TSDB: the key is not a TSDB key");
pub const INVALID_TIMESTAMP: CommandError = words("ERR TSDB: invalid timestamp");
pub const INVALID_VALUE: CommandError = words("ERR TSDB: invalid value");
pub const OTHER_DATABASE: CommandError = words("ERR TSDB: time series are in database 0 only");
pub const NOT_READABLE: CommandError = words(
    "NOPERM current user doesn't have read permission to one or more keys that match the specified filter",
);
pub const TOO_OLD: CommandError = words("ERR TSDB: Timestamp is older than retention");
pub const BLOCKED: CommandError = words(
    "ERR TSDB: Error at upsert, update is not supported when DUPLICATE_POLICY is set to BLOCK mode",
);
pub const NOT_NEWEST: CommandError =
    words("ERR TSDB: timestamp must be equal to or higher than the maximum existing timestamp");
pub const LABELS: CommandError = words("ERR TSDB: Couldn't parse LABELS");
pub const AGGREGATION: CommandError = words("ERR TSDB: Couldn't parse AGGREGATION");
pub const UNKNOWN_AGGREGATION: CommandError = words("ERR TSDB: Unknown aggregation type");

/// An error of this family.
pub fn error(text: impl std::fmt::Display) -> CommandError {
    CommandError::new(format!("ERR TSDB: {text}"))
}

/// A value: the shortest text that reads back as the same number, in version 2 a status.
pub fn put_value(out: &mut dyn Reply, value: f64) {
    match out.version() {
        2 => out.simple(&value_text(value)),
        _ => out.double(value),
    }
}

/// Zeros that a number may end in, or begin with, before it is written with an exponent.
const ZEROS_MAX: i32 = 7;

/// The shortest text that reads back as the same number.
pub fn value_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if 0.0 < value { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let is_plain =
        -ZEROS_MAX < exponent && exponent < i32::try_from(digits).unwrap_or(17) + ZEROS_MAX;
    match is_plain {
        true => format!("{value}"),
        false => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{}", exponent.abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::value_text;

    #[test]
    fn values_are_short() {
        for (value, text) in [
            (0.1, "0.1"),
            (1.0, "1"),
            (-3.3, "-3.3"),
            (1e21, "1e+21"),
            (1e5, "100000"),
            (1.5e-7, "1.5e-7"),
            (0.00015, "0.00015"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(value_text(value), text);
        }
    }
}
