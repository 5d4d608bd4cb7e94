//! A matrix as a VictoriaMetrics writes it, read as quickly as it can be.
//!
//! ```text
//! {"status":"success","data":{"resultType":"matrix","result":[ROW,ROW]},"stats":{..}}
//! ROW = {"metric":{"name":"value"},"values":[[1788048000.5,"1.25"],..]}
//! ```
//!
//! Whatever looks different, to a space or an escape, is left to a reader of JSON: nothing is read here
//! that would be read otherwise there.

use model::Labels;
use serde::de::IgnoredAny;
use std::collections::HashMap;
use store::{Fold, FoldedRow};

/// What stands before the rows.
const HEADS: [&str; 2] = [
    r#"{"status":"success","data":{"resultType":"matrix","result":["#,
    r#"{"status":"success","isPartial":false,"data":{"resultType":"matrix","result":["#,
];
/// Names that say something of the answer, once.
const SAID: [&str; 3] = ["status", "isPartial", "data"];
/// Digits of seconds that are milliseconds in 64 bits.
const DIGITS_MAX: usize = 12;

/// The rows; `None` where something looks different, or is more than `take` allows. It is told before
/// each row how many there are before it.
pub fn rows(
    text: &str,
    fold: &Fold<'_>,
    take: &mut dyn FnMut(usize) -> bool,
) -> Option<Vec<FoldedRow>> {
    let mut rest = HEADS.iter().find_map(|head| text.strip_prefix(head))?;
    let mut rows = Vec::new();
    if !rest.starts_with(']') {
        loop {
            if !take(rows.len()) {
                return None;
            }
            let row;
            (row, rest) = row_of(rest, fold)?;
            rows.push(row);
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => break,
            }
        }
    }
    take(rows.len()).then_some(())?;
    is_end(rest.strip_prefix("]}")?).then_some(rows)
}

/// Whether that is how an answer goes on behind its data.
fn is_end(rest: &str) -> bool {
    if rest == "}" {
        return true;
    }
    let Some(more) = rest.strip_prefix(',') else { return false };
    let read: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_str(&format!("{{{more}"));
    read.is_ok_and(|read| !read.is_empty() && !SAID.iter().any(|name| read.contains_key(*name)))
}

/// A row, and what stands behind it.
fn row_of<'t>(text: &'t str, fold: &Fold<'_>) -> Option<(FoldedRow, &'t str)> {
    let (labels, rest) = labels_of(text.strip_prefix(r#"{"metric":{"#)?)?;
    let mut rest = rest.strip_prefix(r#","values":["#)?;
    let mut values = vec![f64::NAN; fold.len];
    let mut next = 0;
    loop {
        let (millis, value);
        (millis, value, rest) = point_of(rest)?;
        // Most have a value at each step.
        let step = if millis == fold.at_ms(next) { next } else { step_at(millis, fold)? };
        *values.get_mut(step)? = value;
        next = step + 1;
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    Some((FoldedRow { labels, values }, rest.strip_prefix("]}")?))
}

/// The labels of `"name":"value",..}`, and what stands behind them.
fn labels_of(mut rest: &str) -> Option<(Labels, &str)> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    if let Some(behind) = rest.strip_prefix('}') {
        return Some((Labels::default(), behind));
    }
    loop {
        let (name, value);
        (name, rest) = plain_text(rest)?;
        (value, rest) = plain_text(rest.strip_prefix(':')?)?;
        let is_new = pairs.iter().all(|(known, _)| *known != name);
        (is_new && !name.is_empty() && !value.is_empty()).then(|| pairs.push((name, value)))?;
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((Labels::from_pairs(&pairs), rest.strip_prefix('}')?)),
        }
    }
}

/// A string without escapes, and what stands behind it.
fn plain_text(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('"')?;
    // Most are short: no search is begun for them.
    let end = text.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
    let (inside, rest) = text.split_at(end);
    Some((inside, rest.strip_prefix('"')?))
}

/// Milliseconds and value of `[seconds,"value"]`, and what stands behind it.
fn point_of(text: &str) -> Option<(i64, f64, &str)> {
    let text = text.strip_prefix('[')?;
    let (seconds, rest) = text.split_at(text.bytes().position(|byte| byte == b',')?);
    let rest = rest.strip_prefix(',')?;
    let (value, rest) = plain_text(rest)?;
    Some((millis_of(seconds)?, value.parse().ok()?, rest.strip_prefix(']')?))
}

/// The milliseconds of seconds with three digits behind the point at most.
fn millis_of(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = (1..=DIGITS_MAX).contains(&whole.len()) && (1..=3).contains(&part.len());
    if !is_number
        || !are_digits(whole)
        || !are_digits(part)
        || (whole.len() > 1 && whole.starts_with('0'))
    {
        return None;
    }
    let number = |text: &str| text.bytes().fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0'));
    let unit = [100, 10, 1].get(part.len() - 1)?;
    Some(number(whole) * 1000 + number(part) * unit)
}

/// Number of the step at a time in milliseconds; `None` where no step is.
pub(super) fn step_at(millis: i64, fold: &Fold<'_>) -> Option<usize> {
    let behind_ms = millis.checked_sub(fold.start_ms)?;
    let is_step = 0 <= behind_ms && behind_ms % fold.step_ms == 0;
    usize::try_from(behind_ms / fold.step_ms).ok().filter(|_| is_step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{SeriesFold, WindowFold};

    fn read(text: &str) -> Option<Vec<FoldedRow>> {
        let (window, series, by) = (WindowFold::Avg, SeriesFold::Max, &[][..]);
        let fold =
            Fold { window, window_ms: 90_000, series, by, start_ms: 1_500, step_ms: 500, len: 3 };
        rows(text, &fold, &mut |_| true)
    }

    fn whole(result: &str, end: &str) -> String {
        format!(
            r#"{{"status":"success","isPartial":false,"data":{{"resultType":"matrix","result":[{result}]}}{end}"#
        )
    }

    #[test]
    fn what_it_writes_is_read() {
        let two = r#"{"metric":{"h":"a","__name__":"x"},"values":[[1.5,"1"],[2.5,"+Inf"]]},{"metric":{},"values":[[2,"-3e-2"]]}"#;
        for end in ["}", r#","stats":{"seriesFetched": "2","executionTimeMsec":1}}"#] {
            let rows = read(&whole(two, end)).expect("rows");
            assert_eq!(rows[0].labels, Labels::from_pairs(&[("h", "a"), ("__name__", "x")]));
            assert_eq!((rows[0].values[0], rows[0].values[2]), (1.0, f64::INFINITY));
            assert!(rows[0].values[1].is_nan() && rows[1].labels.is_empty());
            assert_eq!((rows.len(), rows[1].values[1]), (2, -0.03));
        }
        assert_eq!(read(&whole("", "}")), Some(Vec::new()));
    }

    #[test]
    fn what_looks_different_is_left_to_others() {
        let good = r#"{"metric":{"h":"a"},"values":[[1.5,"1"]]}"#;
        for end in
            ["", "} ", "}}", ",}", r#","isPartial":true}"#, r#","status":"error"}"#, r#","a":1"#]
        {
            assert_eq!(read(&whole(good, end)), None, "{end}");
        }
        for bad in [
            r#"{"metric":{"h":"a"},"values":[[1.6,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[3,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1.5000,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[01.5,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[15e-1,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[-1,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1.5,"x"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1.5,1]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1.5,"1"],]}"#,
            r#"{"metric":{"h":"a"},"values":[]}"#,
            r#"{"metric":{"h":"a\n"},"values":[[1.5,"1"]]}"#,
            r#"{"metric":{"h":"a","h":"b"},"values":[[1.5,"1"]]}"#,
            r#"{"metric":{"h":""},"values":[[1.5,"1"]]}"#,
            r#"{"metric":{"h":"a"},"values":[[1.5,"1"]]},"#,
            "{}",
        ] {
            assert_eq!(read(&whole(bad, "}")), None, "{bad}");
        }
        let spaced = whole(good, "}").replace("\"data\":", "\"data\": ");
        assert_eq!(read(&spaced), None);
    }

    #[test]
    fn whatever_is_cut_or_changed_is_an_answer_or_none() {
        let good = r#"{"metric":{"h":"ä"},"values":[[1.5,"1"],[2,"NaN"]]}"#;
        let text = whole(&format!("{good},{good}"), r#","stats":{"a":"2"}}"#);
        for at in 0..text.len() {
            for byte in [0, b'"', b'[', b'}', b',', b'9', 0xff] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = byte;
                if let Ok(text) = std::str::from_utf8(&bytes) {
                    let _ = read(text);
                }
            }
            let _ = text.get(..at).map(read);
        }
    }
}
