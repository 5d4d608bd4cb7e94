//! `from` and `until`: the times of the other doors, and Graphite's words for units.

use crate::http::request::Request;
use crate::http::request::selection;
use model::{TimeRange, Timestamp};
use net::failure::Failure;
use wire::params;

/// Words for units that start with a letter that our durations give another meaning, or that are
/// longer than ours; the first that fits counts.
const UNITS: &[(&str, &str)] = &[
    ("seconds", "s"),
    ("second", "s"),
    ("sec", "s"),
    ("minutes", "m"),
    ("minute", "m"),
    ("min", "m"),
    ("hours", "h"),
    ("hour", "h"),
    ("days", "d"),
    ("day", "d"),
    ("weeks", "w"),
    ("week", "w"),
    ("years", "y"),
    ("year", "y"),
];

/// Days of the month that `-1mon` goes back.
const DAYS_PER_MONTH: i64 = 30;

/// From `from` (the epoch) to `until` (now).
///
/// # Errors
/// 400 for text that is no time, or an end before the start.
pub fn range(request: &Request) -> Result<TimeRange, Failure> {
    let from = moment(request, "from")?.unwrap_or(0);
    let until = moment(request, "until")?.unwrap_or(request.now);
    if until < from {
        return Err(selection::invalid("until", &"must not be before from"));
    }
    Ok(TimeRange::new(from, until))
}

fn moment(request: &Request, name: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = request.params.filled(name) else { return Ok(None) };
    let parsed = params::parse_time(&plain(text), request.now);
    parsed.map(Some).map_err(|error| selection::invalid(name, &error))
}

/// `-5min` is `-5m` and `-2mon` is `-60d`; all else stays as it is.
fn plain(text: &str) -> String {
    for months in ["months", "month", "mon"] {
        let Some(before) = text.strip_suffix(months) else { continue };
        let digits = before.trim_start_matches(|c: char| !c.is_ascii_digit());
        if let Some(days) = digits.parse().ok().and_then(|n: i64| n.checked_mul(DAYS_PER_MONTH)) {
            return format!("{}{days}d", &before[..before.len() - digits.len()]);
        }
    }
    for (word, unit) in UNITS {
        if let Some(before) = text.strip_suffix(word) {
            return format!("{before}{unit}");
        }
    }
    text.to_string()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn units() {
        for (text, expected) in [
            ("-5min", "-5m"),
            ("-15minutes", "-15m"),
            ("now-2mon", "now-60d"),
            ("-1months", "-30d"),
            ("-7d", "-7d"),
            ("-2weeks", "-2w"),
            ("-30s", "-30s"),
            ("now", "now"),
            ("mon", "mon"),
            ("1709208000", "1709208000"),
            ("2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
