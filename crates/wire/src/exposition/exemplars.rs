//! `# {labels} value [seconds]` behind a sample: OpenMetrics' exemplars, understood in both formats.

use super::keys;
use super::scan::{Fault, key_end, seconds, split_word, value};
use crate::exemplars::ExemplarLabels;
use model::{Exemplar, Timestamp};

/// Reads what stands behind a sample's `#`; without a time of its own the exemplar has its
/// sample's. The error is a sentence.
pub(super) fn read(text: &[u8], sample_time: Timestamp) -> Result<Exemplar, String> {
    let text = text.trim_ascii_start();
    if text.first() != Some(&b'{') {
        return Err("labels in braces must come first".to_string());
    }
    let (labels, rest) = text.split_at(key_end(text).map_err(|fault| fault.to_string())?);
    let mut collected = ExemplarLabels::default();
    let pushed =
        keys::labels(labels, |name, value| collected.push(name.as_bytes(), value.as_bytes()));
    let labels = pushed.and_then(|()| collected.finish()).map_err(|error| error.to_string())?;
    let event = event(rest.trim_ascii_start(), sample_time).map_err(|fault| fault.to_string())?;
    let (value, timestamp, has_timestamp) = event;
    Ok(Exemplar { labels, value, timestamp, has_timestamp })
}

/// Value, time, and whether it was given.
fn event(text: &[u8], sample_time: Timestamp) -> Result<(f64, Timestamp, bool), Fault> {
    let (value_text, rest) = split_word(text);
    if value_text.is_empty() {
        return Err(Fault::MissingValue);
    }
    let value = value(value_text).ok_or(Fault::InvalidValue)?;
    let (time_text, rest) = split_word(rest);
    if !rest.is_empty() {
        return Err(Fault::Trailing);
    }
    match time_text {
        b"" => Ok((value, sample_time, false)),
        text => Ok((value, seconds(text)?, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Labels;

    /// Labels, value, time, and whether it was given.
    type Wanted<'a> = (&'a [(&'a str, &'a str)], f64, Timestamp, bool);

    #[track_caller]
    fn check(text: &str, expected: Result<Wanted<'_>, &str>) {
        let found = read(text.as_bytes(), 7);
        let expected = expected.map(|(labels, value, timestamp, has_timestamp)| Exemplar {
            labels: Labels::from_pairs(labels),
            value,
            timestamp,
            has_timestamp,
        });
        assert_eq!(found, expected.map_err(str::to_string), "{text}");
    }

    #[test]
    fn exemplars_of_openmetrics() {
        let trace: &[(&str, &str)] = &[("trace_id", "a } b")];
        check(
            "  {trace_id=\"a } b\"} 0.67 1520879607.789",
            Ok((trace, 0.67, 1_520_879_607_789_000_000, true)),
        );
        check("{} 1", Ok((&[], 1.0, 7, false)));
        check("{ a = \"1\", } -Inf 0", Ok((&[("a", "1")], f64::NEG_INFINITY, 0, true)));
        check("", Err("labels in braces must come first"));
        check("a 1", Err("labels in braces must come first"));
        check("{a=\"b\"", Err("labels without a closing brace"));
        check("{a=b} 1", Err("expected '\"' in labels near \"b}\""));
        check("{a=\"1\",a=\"2\"} 1", Err("duplicate label name \"a\""));
        check("{a=\"1\"}", Err("missing value"));
        check("{a=\"1\"} x", Err("invalid value"));
        check("{a=\"1\"} 1 x", Err("invalid timestamp"));
        check("{a=\"1\"} 1 1e30", Err("timestamp outside the years 1677 to 2262"));
        check("{a=\"1\"} 1 2 3", Err("unexpected text behind the sample"));
        let long = format!("{{a=\"{}\"}} 1", "x".repeat(128));
        check(&long, Err("more than 128 characters in an exemplar's labels"));
    }
}
