//! Series lines: `name{label="value"} 1 2+3x4 _ stale {{count:2 buckets:[2]}}x3`.

use histogram::{Noted, parse_notation};
use model::{Labels, LabelsBuilder, METRIC_NAME, sample::stale_marker};
use promql::parse_duration_ms;

/// Values that one line may stand for.
const VALUES_MAX: usize = 1 << 20;

/// One place in a sequence.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Value(f64),
    Omitted,
    Histogram(Box<Noted>),
}

/// The labels and values of a line.
pub(super) fn parse_line(line: &str) -> Result<(Labels, Vec<Item>), String> {
    let (labels, rest) = parse_metric(line)?;
    Ok((labels, parse_values(rest)?))
}

/// The labels of a series and, by place, how many milliseconds the start timestamp lies from its
/// sample.
pub(super) type StartOffsets = (Labels, Vec<Option<i64>>);

/// The labels of a line of start timestamps and, by place, how many milliseconds each lies from its
/// sample; `None` when the line is none.
pub(super) fn parse_starts(line: &str) -> Result<Option<StartOffsets>, String> {
    let Ok((labels, rest)) = parse_metric(line) else { return Ok(None) };
    let Some(items) = rest.strip_prefix("@st") else { return Ok(None) };
    let mut offsets = Vec::new();
    for item in items.split_whitespace() {
        push_starts(item, &mut offsets).ok_or_else(|| format!("no start timestamp: {item:?}"))?;
        if VALUES_MAX < offsets.len() {
            return Err(format!("more than {VALUES_MAX} values"));
        }
    }
    Ok(Some((labels, offsets)))
}

/// `_`, `_x3`, `-30s`, `-30s-1mx2`, `-1mx3`.
fn push_starts(item: &str, offsets: &mut Vec<Option<i64>>) -> Option<()> {
    let (body, count) = match item.rsplit_once('x') {
        Some((body, count)) => (body, Some(count.parse::<usize>().ok()?)),
        None => (item, None),
    };
    if count.is_some_and(|count| VALUES_MAX < count) {
        return None;
    }
    if body == "_" {
        offsets.extend(std::iter::repeat_n(None, count.unwrap_or(1)));
        return Some(());
    }
    // The sign that splits is not the first.
    let split = body.char_indices().skip(1).find(|(_, c)| matches!(c, '+' | '-'));
    let split = split.map(|(at, _)| body.split_at(at));
    let (first, step) = split.unwrap_or((body, "0"));
    let (first, step) = (signed_ms(first)?, signed_ms(step)?);
    // A repetition stands for the value itself and as many more.
    let times = count.map_or(1, |count| count as i64 + 1);
    offsets.extend((0..times).map(|idx| Some(first + idx * step)));
    Some(())
}

fn signed_ms(text: &str) -> Option<i64> {
    parse_time(text.strip_prefix('+').unwrap_or(text)).ok()
}

/// `name{label="value"}` at the start of the line; also the rest of it.
fn parse_metric(line: &str) -> Result<(Labels, &str), String> {
    let mut labels = LabelsBuilder::new();
    let name_size = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .unwrap_or(line.len());
    let (name, mut rest) = line.split_at(name_size);
    labels.set(METRIC_NAME, name);
    if let Some(inside) = rest.strip_prefix('{') {
        let end = closing_brace(inside).ok_or_else(|| format!("no closing brace: {line:?}"))?;
        parse_labels(&inside[..end], &mut labels)?;
        rest = &inside[end + 1..];
    } else if name.is_empty() {
        return Err(format!("no series: {line:?}"));
    }
    Ok((labels.finish(), rest))
}

/// Where the brace closes that was opened just before `text`; strings are passed over.
fn closing_brace(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some('"' | '\''), '\\') => {
                chars.next();
            }
            (Some(open), _) if open == c => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '}') => return Some(at),
            _ => {}
        }
    }
    None
}

/// Labels as a selector would have them: parsed as one, all conditions being `=`.
fn parse_labels(inside: &str, labels: &mut LabelsBuilder) -> Result<(), String> {
    if inside.trim().is_empty() {
        return Ok(());
    }
    // A condition of our own keeps the parser from refusing sets that match everything.
    let text = format!(
        "{{{inside}{}__any__=\"x\"}}",
        if inside.trim_end().ends_with(',') { "" } else { "," }
    );
    let expr = promql::parse(&text).map_err(|error| error.to_string())?;
    let promql::Expr::Vector(selector) = expr else {
        return Err(format!("no labels: {inside:?}"));
    };
    for matcher in selector.matchers {
        if matcher.name != "__any__" {
            labels.set(&matcher.name, &matcher.value);
        }
    }
    Ok(())
}

/// The values of a line: items separated by spaces.
fn parse_values(text: &str) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = if rest.starts_with("{{") {
            histogram_end(rest).ok_or_else(|| format!("no end of histogram: {rest:?}"))?
        } else {
            rest.find(char::is_whitespace).unwrap_or(rest.len())
        };
        push_item(&rest[..end], &mut items)?;
        if VALUES_MAX < items.len() {
            return Err(format!("more than {VALUES_MAX} values"));
        }
        rest = rest[end..].trim_start();
    }
    Ok(items)
}

/// Where `{{...}}`, with what is added to it and how often, ends.
fn histogram_end(text: &str) -> Option<usize> {
    let mut end = text.find("}}")? + 2;
    while matches!(text.as_bytes()[end..], [b'+' | b'-', b'{', b'{', ..]) {
        end += text[end..].find("}}")? + 2;
    }
    let rest = &text[end..];
    Some(end + rest.find(char::is_whitespace).unwrap_or(rest.len()))
}

fn push_item(item: &str, items: &mut Vec<Item>) -> Result<(), String> {
    let bad = || format!("no value: {item:?}");
    if item.starts_with("{{") {
        return push_histograms(item, items);
    }
    let repeat = item.rsplit_once('x').map(|(_, count)| count);
    let count = match repeat {
        Some(count) => Some(count.parse::<usize>().map_err(|_| bad())?),
        None => None,
    };
    if count.is_some_and(|count| VALUES_MAX < count) {
        return Err(format!("more than {VALUES_MAX} values"));
    }
    let body = item.rsplit_once('x').map_or(item, |(body, _)| body);
    if body == "_" {
        items.extend(std::iter::repeat_n(Item::Omitted, count.unwrap_or(1)));
        return Ok(());
    }
    // A repetition stands for the value itself and as many more.
    let times = count.map_or(1, |count| count + 1);
    let (mut value, step) = split_step(body).ok_or_else(bad)?;
    for _ in 0..times {
        items.push(Item::Value(value));
        if step != 0.0 {
            value += step;
        }
    }
    Ok(())
}

/// `{{...}}`, as often as `xN` says, or changed by another one each time.
fn push_histograms(item: &str, items: &mut Vec<Item>) -> Result<(), String> {
    let bad = || format!("no histograms: {item:?}");
    let (mut noted, mut rest) = parse_notation(item).map_err(|error| error.to_string())?;
    let mut change: Option<(bool, Noted)> = None;
    if let Some(tail) = rest.strip_prefix(['+', '-']) {
        let is_added = rest.starts_with('+');
        let (by, tail) = parse_notation(tail).map_err(|error| error.to_string())?;
        (change, rest) = (Some((is_added, by)), tail);
    }
    let times = match (rest.strip_prefix('x'), rest) {
        (Some(count), _) => count.parse::<usize>().map_err(|_| bad())?,
        (None, "") if change.is_none() => 0,
        _ => return Err(bad()),
    };
    if VALUES_MAX < times {
        return Err(format!("more than {VALUES_MAX} values"));
    }
    for _ in 0..=times {
        if let Some((_, by)) = &change {
            // The hint that counts is that of the change.
            noted.hint = by.hint.map(|_| noted.histogram.reset_hint);
        }
        items.push(Item::Histogram(Box::new(noted.clone())));
        if let Some((is_added, by)) = &change {
            let next = &mut noted.histogram;
            let changed = if *is_added { next.add(&by.histogram) } else { next.sub(&by.histogram) };
            changed.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// `2+3` as 2 and 3, `-2-3` as -2 and -3, `5` as 5 and 0.
fn split_step(body: &str) -> Option<(f64, f64)> {
    if body == "stale" {
        return Some((stale_marker(), 0.0));
    }
    if let Some(value) = parse_number(body) {
        return Some((value, 0.0));
    }
    // The sign that splits is none of an exponent.
    let bytes = body.as_bytes();
    (1..bytes.len())
        .filter(|at| matches!(bytes[*at], b'+' | b'-'))
        .filter(|at| !matches!(bytes[at - 1], b'e' | b'E'))
        .find_map(|at| Some((parse_number(&body[..at])?, parse_number(&body[at..])?)))
}

/// A number as scripts write it.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['+', '-']);
    let first = digits.bytes().next()?;
    let is_word = digits.eq_ignore_ascii_case("inf") || digits.eq_ignore_ascii_case("nan");
    if !is_word && !first.is_ascii_digit() && first != b'.' {
        return None;
    }
    text.parse().ok()
}

/// A time or duration: `5m`, `90` (seconds), `-30s`.
pub(super) fn parse_time(text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    match digits.parse::<f64>() {
        Ok(seconds) => Ok(sign * (seconds * 1000.0).round() as i64),
        Err(_) => Ok(sign * parse_duration_ms(digits)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use histogram::Histogram;

    #[test]
    fn start_timestamps_lie_around_their_samples() {
        let offsets = |line: &str| parse_starts(line).map(|found| found.map(|(_, all)| all));
        let found = offsets("a{b=\"c\"}@st _ -30s-1mx2 _x2 0 +5ms -1mx1").unwrap().unwrap();
        let some = |ms: i64| Some(ms);
        let repeated = [some(-30_000), some(-90_000), some(-150_000)];
        let rest = [None, None, some(0), some(5), some(-60_000), some(-60_000)];
        assert_eq!(found, [&[None][..], &repeated, &rest].concat());
        assert_eq!(offsets("a 1 2"), Ok(None));
        assert_eq!(offsets("a@stx"), Err("no start timestamp: \"x\"".to_string()));
        for bad in ["a@st x3", "a@st 1q", "a@st é-1m", "a@st -1mx99999999999"] {
            assert!(offsets(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn histograms_grow_and_shrink() {
        let counts = |line: &str| -> Vec<f64> {
            let (_, items) = parse_line(line).unwrap();
            let count = |item: &Item| match item {
                Item::Histogram(noted) => noted.histogram.count,
                _ => f64::NAN,
            };
            items.iter().map(count).collect()
        };
        assert_eq!(
            counts("a {{count:1}}+{{count:2}}x2 {{count:9}}-{{count:4}}x1"),
            [1.0, 3.0, 5.0, 9.0, 5.0]
        );
        for bad in ["a {{count:1", "a {{count:1}}+{{count:2}}", "a {{count:1}}y", "a {{}}x-1"] {
            assert!(parse_line(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lines() {
        let (labels, items) = parse_line("a{b=\"c }\", d='e'} 1 2+3x2 _x2 -1-0.5x1 7x1").unwrap();
        assert_eq!(labels, Labels::from_pairs(&[("__name__", "a"), ("b", "c }"), ("d", "e")]));
        let value = Item::Value;
        let expected = [
            value(1.0),
            value(2.0),
            value(5.0),
            value(8.0),
            Item::Omitted,
            Item::Omitted,
            value(-1.0),
            value(-1.5),
            value(7.0),
            value(7.0),
        ];
        assert_eq!(items, expected);
        let (labels, items) = parse_line("{\"a.b\"} 1e-3 NaN {{sum:1 count:2}}x2 -Inf").unwrap();
        assert_eq!(labels.metric_name(), "a.b");
        let histogram = Histogram { sum: 1.0, count: 2.0, ..Histogram::default() };
        let noted = Noted { histogram, hint: None };
        assert_eq!((items.len(), &items[2]), (6, &Item::Histogram(Box::new(noted))));
        assert_eq!(parse_line("{} 3").unwrap(), (Labels::default(), vec![value(3.0)]));
        for bad in ["", "a{b=\"c\" 1", "a 1x", "a 1+x3", "a b", "a 1x99999999999"] {
            assert!(parse_line(bad).is_err(), "{bad}");
        }
    }
}
