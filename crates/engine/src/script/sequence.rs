//! Series lines: `name{label="value"} 1 2+3x4 _ stale`.

use model::{Labels, LabelsBuilder, METRIC_NAME, sample::stale_marker};

/// Values that one line may stand for.
const VALUES_MAX: usize = 1 << 20;

/// One place in a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item {
    Value(f64),
    Omitted,
    /// A native histogram, which is not understood yet.
    Histogram,
}

/// The labels and values of a line.
pub(super) fn parse_line(line: &str) -> Result<(Labels, Vec<Item>), String> {
    let (labels, rest) = parse_metric(line)?;
    Ok((labels, parse_values(rest)?))
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
    let is_histogram = item.starts_with("{{");
    let repeat = match is_histogram {
        true => item.rsplit_once("}}").and_then(|(_, tail)| tail.strip_prefix('x')),
        false => item.rsplit_once('x').map(|(_, count)| count),
    };
    let count = match repeat {
        Some(count) => Some(count.parse::<usize>().map_err(|_| bad())?),
        None => None,
    };
    if count.is_some_and(|count| VALUES_MAX < count) {
        return Err(format!("more than {VALUES_MAX} values"));
    }
    let body = if is_histogram { item } else { item.rsplit_once('x').map_or(item, |(b, _)| b) };
    if body == "_" {
        items.extend(std::iter::repeat_n(Item::Omitted, count.unwrap_or(1)));
        return Ok(());
    }
    // A repetition stands for the value itself and as many more.
    let times = count.map_or(1, |count| count + 1);
    if is_histogram {
        items.extend(std::iter::repeat_n(Item::Histogram, times));
        return Ok(());
    }
    let (mut value, step) = split_step(body).ok_or_else(bad)?;
    for _ in 0..times {
        items.push(Item::Value(value));
        if step != 0.0 {
            value += step;
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((items.len(), items[2]), (6, Item::Histogram));
        assert_eq!(parse_line("{} 3").unwrap(), (Labels::default(), vec![value(3.0)]));
        for bad in ["", "a{b=\"c\" 1", "a 1x", "a 1+x3", "a b", "a 1x99999999999"] {
            assert!(parse_line(bad).is_err(), "{bad}");
        }
    }
}
