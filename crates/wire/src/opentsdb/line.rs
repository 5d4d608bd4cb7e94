//! Lines as `tsdb scan --import` writes them and `tsdb import` reads them.

use super::{labels_of, millis_of};
use crate::number;
use model::Labels;

/// A line, in pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line<'a> {
    /// The metric's name.
    pub metric: &'a str,
    /// Milliseconds since 1970.
    pub millis: i64,
    /// The value; whole numbers beyond 2^53 are rounded.
    pub value: f64,
    /// What stands behind it: `name=value`, parted by spaces.
    pub tags: &'a str,
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it.
pub fn read_line(line: &[u8]) -> Result<Line<'_>, &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| "no UTF-8")?.trim();
    let mut rest = text;
    let mut word = || {
        let (word, behind) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        rest = behind.trim_start();
        word
    };
    let (metric, time, value) = (word(), word(), word());
    if metric.is_empty() || time.is_empty() || value.is_empty() {
        return Err("a line is: metric timestamp value tag=value ..");
    }
    let millis = time_of(time).ok_or("a timestamp is seconds or milliseconds since 1970")?;
    let value = value_of(value).ok_or("a value is a number")?;
    Ok(Line { metric, millis, value, tags: rest })
}

/// Whole seconds or milliseconds, or seconds with milliseconds behind a dot, as OpenTSDB takes them.
fn time_of(text: &str) -> Option<i64> {
    let digits = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| is_number)
    };
    match text.split_once('.') {
        None => digits(text).map(millis_of),
        Some((seconds, rest)) if rest.len() <= 3 => {
            let scale = [1000, 100, 10, 1].get(rest.len())?;
            let (seconds, rest) = (digits(seconds)?, digits(rest)?);
            seconds.checked_mul(1000)?.checked_add(rest * scale)
        }
        Some(_) => None,
    }
}

fn value_of(text: &str) -> Option<f64> {
    let found = number::decimal(text.as_bytes(), usize::from(text.starts_with('+')))?;
    (found.end == text.len()).then_some(found.value)
}

impl Line<'_> {
    /// The labels of its series.
    ///
    /// # Errors
    /// What is wrong with its tags.
    pub fn labels(&self) -> Result<Labels, String> {
        let mut pairs = Vec::new();
        for tag in self.tags.split_ascii_whitespace() {
            match tag.split_once('=') {
                Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                    pairs.push((name, value));
                }
                _ => return Err(format!("{tag}: a tag is name=value")),
            }
        }
        labels_of(self.metric, pairs.into_iter()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, millis: i64, value: f64, labels: &str) {
        let line = read_line(text.as_bytes()).unwrap();
        assert_eq!((line.millis, line.value), (millis, value), "{text}");
        assert_eq!(line.labels().unwrap().to_string(), labels);
    }

    #[test]
    fn lines_are_samples() {
        check("a.b 1356998400 42.5 host=x", 1_356_998_400_000, 42.5, r#"a.b{host="x"}"#);
        let line = read_line("sys/ms-1 1356998400001 -1.5E300\thost=a=b  cpu_0=é.1\r".as_bytes());
        let line = line.unwrap();
        assert_eq!((line.millis, line.value), (1_356_998_400_001, -1.5e300));
        let expected = [("__name__", "sys/ms-1"), ("cpu_0", "é.1"), ("host", "a=b")];
        assert_eq!(line.labels().unwrap(), Labels::from_pairs(&expected));
        check(
            "m 1356998400.25 9223372036854775807 t=1",
            1_356_998_400_250,
            2f64.powi(63),
            r#"m{t="1"}"#,
        );
        check("m 4294967295 +7", 4_294_967_295_000, 7.0, "m{}");
        check("m 4294967296 7", 4_294_967_296, 7.0, "m{}");
    }

    #[test]
    fn what_is_no_line_is_said() {
        let wrong = |text: &str| match read_line(text.as_bytes()) {
            Ok(line) => line.labels().unwrap_err(),
            Err(why) => why.to_string(),
        };
        assert!(wrong("m 1").starts_with("a line is"));
        assert!(wrong("").starts_with("a line is"));
        for time in ["-5", "x", "1.2345", ".5", "1.", "99999999999999999999"] {
            assert!(wrong(&format!("m {time} 1 a=b")).starts_with("a timestamp"), "{time}");
        }
        assert!(wrong("m 1 1.x a=b").starts_with("a value"));
        assert!(wrong("m 1 1 ab").starts_with("ab: a tag"));
        assert!(wrong("m 1 1 a=").starts_with("a=: a tag"));
        assert!(!wrong("m 1 1 a=b a=c").is_empty() && !wrong("m 1 1 __name__=b").is_empty());
        assert!(read_line(b"m 1 1 a=\xff").is_err());
    }
}
