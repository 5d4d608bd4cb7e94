//! Numbers and durations: from text and to text.

/// Milliseconds in the units that durations are written with.
const UNITS: [(&str, i64); 7] = [
    ("y", 365 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// The longest duration: what fits nanoseconds in an `i64`.
pub(crate) const DURATION_MS_MAX: i64 = i64::MAX / 1_000_000;

/// The number that a literal stands for: decimal, hexadecimal, octal, binary, `Inf` or `NaN`.
pub(crate) fn parse_number(text: &str) -> Result<f64, String> {
    if let Some(value) = parse_integer(text) {
        return Ok(value as f64);
    }
    let syntax = || format!("strconv.ParseFloat: parsing {text:?}: invalid syntax");
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    if !underscores_separate_digits(text) {
        return Err(syntax());
    }
    let value: f64 = plain.parse().map_err(|_| syntax())?;
    if value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(format!("strconv.ParseFloat: parsing {text:?}: value out of range"));
    }
    Ok(value)
}

/// An integer in Go's syntax, its base told by the prefix; a leading zero means octal.
fn parse_integer(text: &str) -> Option<i64> {
    if !underscores_separate_digits(text) {
        return None;
    }
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let bytes = plain.as_bytes();
    let (radix, digits) = match bytes {
        [b'0', b'x' | b'X', ..] => (16, &plain[2..]),
        [b'0', b'b' | b'B', ..] => (2, &plain[2..]),
        [b'0', b'o' | b'O', ..] => (8, &plain[2..]),
        [b'0', _, ..] => (8, &plain[1..]),
        _ => (10, plain.as_str()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    i64::from_str_radix(digits, radix).ok()
}

/// Whether each underscore stands between two digits, or after the base's prefix.
fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_hexdigit());
    let is_prefix = |at: usize| at == 1 && matches!(bytes.get(1), Some(b'x' | b'X' | b'o' | b'O'));
    bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'_')
        .all(|(at, _)| 0 < at && (is_digit(at - 1) || is_prefix(at - 1)) && is_digit(at + 1))
}

/// The milliseconds of a duration like `1h30m`: each unit at most once, the longest first.
pub fn parse_duration_ms(text: &str) -> Result<i64, String> {
    let malformed = || format!("not a valid duration string: {text:?}");
    if text == "0" {
        return Ok(0);
    }
    if text.is_empty() {
        return Err("empty duration string".to_string());
    }
    let mut rest = text;
    let mut total = 0i64;
    let mut units_left = &UNITS[..];
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit_size = rest[digits..].bytes().take_while(|byte| !byte.is_ascii_digit()).count();
        let unit = &rest[digits..digits + unit_size];
        let Some(at) = UNITS.iter().position(|(name, _)| *name == unit) else {
            return Err(format!("unknown unit {unit:?} in duration {text:?}"));
        };
        let Some(left) = units_left.iter().position(|(name, _)| *name == unit) else {
            return Err(malformed());
        };
        if digits == 0 {
            return Err(malformed());
        }
        units_left = &units_left[left + 1..];
        let count: i64 = rest[..digits].parse().map_err(|_| "duration out of range".to_string())?;
        total = count
            .checked_mul(UNITS[at].1)
            .and_then(|ms| total.checked_add(ms))
            .filter(|ms| *ms <= DURATION_MS_MAX)
            .ok_or_else(|| "duration out of range".to_string())?;
        rest = &rest[digits + unit_size..];
    }
    Ok(total)
}

/// A duration in the fewest units that are exact: `90m` is `1h30m`, `14d` is `2w`.
pub fn format_duration_ms(ms: i64) -> String {
    if ms == 0 {
        return "0s".to_string();
    }
    let mut out = String::new();
    let mut rest = ms.unsigned_abs();
    if ms < 0 {
        out.push('-');
    }
    for (idx, (name, unit)) in UNITS.iter().enumerate() {
        let unit = *unit as u64;
        // Years, weeks and days are only used when nothing is left over: `8d`, not `1w1d`.
        let must_be_exact = idx < 2;
        if must_be_exact && !rest.is_multiple_of(unit) {
            continue;
        }
        let count = rest / unit;
        if 0 < count {
            out.push_str(&format!("{count}{name}"));
            rest -= count * unit;
        }
    }
    out
}

/// A number without exponent and with the fewest digits that give it back.
pub fn format_number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_string()
    } else if value == f64::INFINITY {
        "+Inf".to_string()
    } else if value == f64::NEG_INFINITY {
        "-Inf".to_string()
    } else {
        format!("{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let check = |text: &str, value: f64| {
            assert_eq!(parse_number(text).unwrap().to_bits(), value.to_bits(), "{text}");
        };
        check("0", 0.0);
        check("0x1F", 31.0);
        check("0X_1f", 31.0);
        check("0755", 493.0);
        check("09", 9.0);
        check("1_000_000", 1e6);
        check("1e3", 1000.0);
        check("1.5e-3", 0.0015);
        check(".5", 0.5);
        check("5.", 5.0);
        check("Inf", f64::INFINITY);
        check("9223372036854775808", 9223372036854775808.0);
        assert!(parse_number("nan").unwrap().is_nan());
        for bad in ["", "1e", "0x", "1__0", "_1", "1_", "0xg", "1e999"] {
            assert!(parse_number(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("1s", 1_000),
            ("1h30m", 5_400_000),
            ("8d", 691_200_000),
            ("2w", 1_209_600_000),
            ("1y", 31_536_000_000),
            ("1d1ms", 86_400_001),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration_ms(text), Ok(ms), "{text}");
            assert_eq!(format_duration_ms(ms), text);
        }
        assert_eq!(parse_duration_ms("0"), Ok(0));
        assert_eq!(parse_duration_ms("120s"), Ok(120_000));
        assert_eq!(parse_duration_ms("5m1h"), Err("not a valid duration string: \"5m1h\"".into()));
        assert_eq!(parse_duration_ms("300y"), Err("duration out of range".into()));
        assert_eq!(
            parse_duration_ms("5y1hs"),
            Err("unknown unit \"hs\" in duration \"5y1hs\"".into())
        );
        assert!(parse_duration_ms("").is_err());
        assert!(parse_duration_ms("99999999999999999999y").is_err());
    }
}
