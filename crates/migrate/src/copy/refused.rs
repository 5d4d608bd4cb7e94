//! What a server says of samples that it refuses, told so that people find them: whose they are, and when
//! they were.
//!
//! It names the number of a series of the request, or of a line, and nanoseconds:
//! `series 3: timestamp 1356998400000000000 ns is older than the retention keeps`.

use super::target::Door;
use crate::series::shortened;
use cli::calendar::rfc3339;
use model::{Labels, LabelsBuilder, METRIC_NAME};
use std::borrow::Cow;
use wire::json_lines::read_line;
use wire::protobuf::Message;

/// What stands behind nanoseconds.
const NANOS: &str = " ns";
/// Characters of a line that are shown.
const SHOWN_LEN_MAX: usize = 200;

/// The words of an answer, with the times that people read, and instead of each number whose it is.
pub fn words(door: &Door, body: &[u8], said: &str) -> String {
    let body = plain(door, body);
    let lines = said.lines().map(|line| {
        let line = with_times(line);
        let Some((number, unit)) = number_of(&line) else { return line };
        match named(door, &body, number) {
            Some(name) => line.replacen(&format!("{unit} {number}: "), &format!("{name}: "), 1),
            None => line,
        }
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// The number that a line begins with, and of what it is.
fn number_of(line: &str) -> Option<(usize, &str)> {
    let (head, _) = line.split_once(": ")?;
    let (unit, number) = head.split_once(' ')?;
    let is_unit = unit == "series" || unit == "line";
    number.parse().ok().filter(|_| is_unit).map(|number| (number, unit))
}

/// Nanoseconds as people read them.
fn with_times(line: &str) -> String {
    let mut found = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(NANOS) {
        let (before, behind) = rest.split_at(at);
        let text = before.trim_end_matches(|one: char| one.is_ascii_digit() || one == '-');
        let number = before.get(text.len()..).unwrap_or_default();
        found.push_str(text);
        match number.parse::<i64>() {
            Ok(nanos) if text.ends_with("timestamp ") => found.push_str(&rfc3339(nanos)),
            _ => found.extend([number, NANOS]),
        }
        rest = behind.get(NANOS.len()..).unwrap_or_default();
    }
    found + rest
}

/// A request as it was before it was packed.
fn plain<'b>(door: &Door, body: &'b [u8]) -> Cow<'b, [u8]> {
    match door {
        Door::RemoteWrite => {
            Cow::Owned(snap::raw::Decoder::new().decompress_vec(body).unwrap_or_default())
        }
        Door::Lines(_) | Door::Json => Cow::Borrowed(body),
    }
}

/// The series, or the line, of that number in a request.
fn named(door: &Door, body: &[u8], number: usize) -> Option<String> {
    match door {
        Door::RemoteWrite => series_at(body, number).map(|labels| shortened(&labels).to_string()),
        Door::Lines(_) => {
            let text = String::from_utf8_lossy(line_at(body, number)?).into_owned();
            Some(text.chars().take(SHOWN_LEN_MAX).collect())
        }
        Door::Json => {
            let line = read_line(line_at(body, number)?).ok();
            line.map(|(labels, _)| shortened(&labels).to_string())
        }
    }
}

/// Lines are counted from 1.
fn line_at(body: &[u8], number: usize) -> Option<&[u8]> {
    body.split(|byte| *byte == b'\n').nth(number.checked_sub(1)?)
}

/// The labels of a series of a request of remote write; they are counted from 0.
fn series_at(request: &[u8], number: usize) -> Option<Labels> {
    let mut message = Message::new(request);
    let mut count = 0;
    while let Ok(Some((field, value))) = message.next_field() {
        if field != 1 {
            continue;
        }
        if count == number {
            return labels_of(value.bytes().ok()?);
        }
        count += 1;
    }
    None
}

fn labels_of(series: &[u8]) -> Option<Labels> {
    let mut labels = LabelsBuilder::new();
    let mut message = Message::new(series);
    while let Ok(Some((field, value))) = message.next_field() {
        if field != 1 {
            continue;
        }
        let (mut name, mut text) = (String::new(), String::new());
        let mut pair = Message::new(value.bytes().ok()?);
        while let Ok(Some((field, value))) = pair.next_field() {
            match field {
                1 => name = value.text().ok()?,
                2 => text = value.text().ok()?,
                _ => {}
            }
        }
        labels.push(if name.is_empty() { METRIC_NAME } else { &name }, &text);
    }
    Some(labels.sorted().ok()?.into_labels())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::LinesPlace;
    use wire::remote_write::encode::{MillisSample, RequestV1};

    const SAID: &str = "0 samples stored, 3 series or samples refused:\nseries 1: timestamp 1356998400000000000 ns \
                        is older than the retention keeps\nseries 0: timestamp -5 ns is too late\n...";

    #[test]
    fn refusals_name_the_series_and_the_time() {
        let mut request = RequestV1::default();
        let sample = MillisSample { millis: 1_356_998_400_000, value: 1.0 };
        for host in ["a", "b"] {
            request.series(&[("__name__", "cpu"), ("host", host)], &[sample]);
        }
        let body = snap::raw::Encoder::new().compress_vec(request.as_bytes()).unwrap();
        let found = words(&Door::RemoteWrite, &body, SAID);
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines[0], "0 samples stored, 3 series or samples refused:");
        assert!(lines[1].starts_with("cpu{host=\"b\"}: timestamp 2013-01-01T00:00:00"), "{found}");
        assert!(
            lines[2].starts_with("cpu{host=\"a\"}: timestamp 1969-12-31T23:59:59.999"),
            "{found}"
        );
        assert_eq!(lines[3], "...");
        assert_eq!(words(&Door::RemoteWrite, b"no snappy", SAID).lines().count(), 4);
        assert_eq!(words(&Door::Json, b"", "nothing in é7 ns"), "nothing in é7 ns");
    }

    #[test]
    fn lines_are_shown() {
        let said = "1 sample stored, 1 line or sample refused:\nline 2: timestamp 1 ns is older";
        let door = Door::Lines(LinesPlace::default());
        let found = words(&door, b"cpu v=1 2\ncpu,host=a v=1 1\n", said);
        assert!(
            found.ends_with("cpu,host=a v=1 1: timestamp 1970-01-01T00:00:00.000000001Z is older"),
            "{found}"
        );
        let json = b"\n{\"metric\":{\"__name__\":\"a\"},\"values\":[1],\"timestamps\":[1]}\n";
        assert!(words(&Door::Json, json, said).contains("\na{}: timestamp"));
    }
}
