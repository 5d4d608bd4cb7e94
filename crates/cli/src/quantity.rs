//! Sizes and durations as people write them in flags: `256MiB`, `30d`, `1h30m`.
//!
//! Pure text to number and back; `net::settings` calls it for every flag of such a kind.

pub use model::size::format_size;

/// Units of size, longest names first so that `MiB` is not read as `M`.
const SIZE_UNITS: [(&str, u64); 14] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("B", 1),
    ("", 1),
];

/// Units of time in nanoseconds, longest names first.
const DURATION_UNITS: [(&str, u64); 9] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("y", 365 * DAY),
    ("w", 7 * DAY),
    ("d", DAY),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
];

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// Bytes from text such as `4096`, `256MiB`, `1.5GB`; units of 1024 carry an `i` or stand alone.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (number, unit) = split_number(text);
    let factor = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()));
    let (Ok(number), Some((_, factor))) = (number.parse::<f64>(), factor) else {
        return Err(format!("{text:?} is no size; write it like 256MiB"));
    };
    let size = number * *factor as f64;
    if size < 0.0 || (1u64 << 60) as f64 <= size {
        return Err(format!("{text:?} is out of range for a size"));
    }
    Ok(size as u64)
}

/// Nanoseconds from text such as `0`, `500ms`, `1h30m`, `90d`. A year is 365 days.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(0);
    }
    let refuse = || format!("{text:?} is no duration; write it like 30s, 1h30m or 90d");
    let mut total = 0.0;
    if rest.is_empty() {
        return Err(refuse());
    }
    while !rest.is_empty() {
        let (number, tail) = split_number(rest);
        let number: f64 = number.parse().map_err(|_| refuse())?;
        let unit = DURATION_UNITS.iter().find(|(name, _)| {
            tail.strip_prefix(name).is_some_and(|t| !t.starts_with(|c: char| c.is_alphabetic()))
        });
        let (name, factor) = unit.ok_or_else(refuse)?;
        total += number * *factor as f64;
        rest = &tail[name.len()..];
    }
    // The clock itself ends 292 years after 1970.
    if i64::MAX as f64 <= total {
        return Err(format!("{text:?} is longer than 292 years"));
    }
    Ok(total as u64)
}

fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

/// A number with its noun: `1 table`, `2 tables`.
pub fn count_of(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    match (count, noun.ends_with('s')) {
        (1, _) | (_, true) => format!("{count} {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A number for people: `999`, `1.5k`, `2.0M`.
pub fn format_count(count: u64) -> String {
    for (unit, name) in [(1_000_000_000u64, "G"), (1_000_000, "M"), (1000, "k")] {
        if unit <= count {
            return format!("{:.1}{name}", count as f64 / unit as f64);
        }
    }
    count.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!([999, 1500, 2_000_000].map(format_count), ["999", "1.5k", "2.0M"]);
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("256MiB"), Ok(256 << 20));
        assert_eq!(parse_size("1.5 kib"), Ok(1536));
        assert_eq!(parse_size("2GB"), Ok(2_000_000_000));
        assert_eq!(parse_size("8m"), Ok(8 << 20));
        for bad in ["", "MiB", "1XB", "-1", "1e3", "99999999TB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!([0, 1, 2].map(|n: u64| count_of(n, "row")), ["0 rows", "1 row", "2 rows"]);
        assert_eq!([1, 2].map(|n: usize| count_of(n, "series")), ["1 series", "2 series"]);
        assert_eq!(format_size(1536), "1.5 KiB");
        assert_eq!(format_size(12), "12 B");
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("0"), Ok(0));
        assert_eq!(parse_duration("500ms"), Ok(500_000_000));
        assert_eq!(parse_duration("1h30m"), Ok(5_400 * SECOND));
        assert_eq!(parse_duration("90d"), Ok(90 * DAY));
        assert_eq!(parse_duration("1.5s"), Ok(1_500_000_000));
        for bad in ["", "5", "d", "5x", "1h30", "-1s", "300y", "5mins"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
