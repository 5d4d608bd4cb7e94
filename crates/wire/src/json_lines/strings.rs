//! Strings of line protocol as lines, an extension of ours: texts stand where numbers would.
//!
//! ```text
//! {"metric":{"__name__":"door_state:text","host":"a"},"measurement":"door","field":"state",
//!  "strings":["open","shut"],"timestamps":[1549891472010,1549891487010]}
//! ```

use super::decode::timestamp;
use super::encode::push_timestamp;
use super::scan::{Fault, Scan};
use super::{KEY_SIZE_MAX, SAMPLES_PER_LINE_MAX};
use crate::Error;
use crate::influx::report::shorten;
use crate::influx::{STRING_SIZE_MAX, TEXT_SUFFIX};
use crate::prom_json::string::{push_labels, push_string};
use memchr::memmem;
use model::limits::LINE_SIZE_MAX;
use model::{Labels, LabelsBuilder, METRIC_NAME, Timestamp};
use std::sync::Arc;

/// Member of a line that holds its strings.
pub(super) const STRINGS: &str = "strings";

/// A line of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringLine {
    /// Whose.
    pub labels: Labels,
    /// The measurement of line protocol.
    pub measurement: String,
    /// And its field.
    pub field: String,
    /// Times in nanoseconds, and the texts.
    pub samples: Vec<(Timestamp, Arc<str>)>,
}

/// Whether one of the lines of a text has strings. JSON allows white space around the member's name and
/// escapes in it, so a search for bytes only rules lines out.
pub fn has_strings(text: &[u8]) -> bool {
    may_have_strings(text) && text.split(|byte| *byte == b'\n').any(is_line_of_strings)
}

/// Whether the member's name can stand in a text: plain, or with an escape, which letters have only as
/// `\u0073`.
fn may_have_strings(text: &[u8]) -> bool {
    memmem::find(text, b"strings\"").is_some() || memmem::find(text, b"\\u").is_some()
}

/// Whether a line has the member with an array, as the decoder reads it.
fn is_line_of_strings(line: &[u8]) -> bool {
    if LINE_SIZE_MAX < line.len() || !may_have_strings(line) {
        return false;
    }
    let mut is_found = false;
    // A fault behind the member is for the reader of the line to report.
    let _ = Scan::new(line).members(|scan, name| {
        is_found |= name == STRINGS && scan.peek() == Some(b'[');
        scan.skip(0)
    });
    is_found
}

impl StringLine {
    /// Appends all samples, as lines that are no longer than a line may be; nothing where there are none.
    pub fn push(&self, out: &mut Vec<u8>) {
        let mut next = 0;
        while next < self.samples.len() {
            next += self.push_some(next, out);
        }
    }

    /// Appends one line with the samples from `first` on, up to what a line takes; says how many. None
    /// where there are no more.
    pub fn push_some(&self, first: usize, out: &mut Vec<u8>) -> usize {
        let samples = self.samples.get(first..).unwrap_or_default();
        let samples = samples.get(..SAMPLES_PER_LINE).unwrap_or(samples);
        if samples.is_empty() {
            return 0;
        }
        out.extend_from_slice(b"{\"metric\":");
        push_labels(out, &self.labels);
        out.extend_from_slice(b",\"measurement\":");
        push_string(out, &self.measurement);
        out.extend_from_slice(b",\"field\":");
        push_string(out, &self.field);
        out.push(b',');
        push_string(out, STRINGS);
        out.extend_from_slice(b":[");
        let start = out.len();
        let mut count = 0;
        for (_, text) in samples {
            if STRINGS_SIZE_MAX <= out.len() - start {
                break;
            }
            if 0 < count {
                out.push(b',');
            }
            push_string(out, text);
            count += 1;
        }
        out.extend_from_slice(b"],\"timestamps\":[");
        for (idx, (time, _)) in samples.iter().take(count).enumerate() {
            if 0 < idx {
                out.push(b',');
            }
            push_timestamp(out, *time);
        }
        out.extend_from_slice(b"]}\n");
        count
    }

    /// Reads one.
    ///
    /// # Errors
    /// The line is none.
    pub fn read(line: &[u8]) -> Result<StringLine, Error> {
        let bad = |Fault { offset, expected }| Error::malformed("JSON line", offset, expected);
        let mut scan = Scan::new(line);
        let read = read(&mut scan).map_err(bad)?;
        match scan.peek() {
            None => Ok(read),
            Some(_) => Err(bad(Fault { offset: scan.at, expected: "the line's end" })),
        }
    }
}

/// The line of one series with another metric name; all else stays as it is. `None` for a line without one.
pub fn rename_metric(line: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut span = None;
    let mut scan = Scan::new(line);
    let read = scan.members(|scan, member| match member {
        "metric" => scan.members(|scan, label| {
            scan.peek();
            let start = scan.at;
            scan.string()?;
            if label == METRIC_NAME {
                span = Some(start..scan.at);
            }
            Ok(())
        }),
        _ => scan.skip(0),
    });
    let span = span.filter(|_| read.is_ok())?;
    let mut renamed = line.get(..span.start)?.to_vec();
    push_string(&mut renamed, name);
    renamed.extend_from_slice(line.get(span.end..)?);
    Some(renamed)
}

/// The texts of a line that get no numbers: by the limit that each is over, how many and why the first of
/// them.
#[derive(Debug, Default)]
pub(super) struct RefusedTexts {
    /// All of them.
    pub count: u64,
    of_limit: Vec<(String, u64)>,
}

impl RefusedTexts {
    /// Counts one.
    pub fn add(&mut self, reason: String) {
        self.count += 1;
        match self.of_limit.iter_mut().find(|(known, _)| limit_of(known) == limit_of(&reason)) {
            Some((_, count)) => *count += 1,
            None => self.of_limit.push((reason, 1)),
        }
    }

    /// What is said of them.
    pub fn words(&self, line: &StringLine) -> String {
        let StringLine { measurement, field, samples, .. } = line;
        let [measurement, field] = [measurement, field].map(|name| shorten(name.as_bytes()));
        let of_limit = self.of_limit.iter().map(|(reason, count)| format!("{count}: {reason}"));
        let reasons: Vec<String> = of_limit.collect();
        format!(
            "field {field:?} of {measurement:?}: {} of {} strings are left out: {}",
            self.count,
            samples.len(),
            reasons.join("; ")
        )
    }
}

/// The limit that words name, at their end; what stands before it is of one text.
fn limit_of(words: &str) -> &str {
    words.rfind('(').and_then(|at| words.get(at..)).unwrap_or_default()
}

/// Samples of one line.
pub const SAMPLES_PER_LINE: usize = 10_000;
const _: () = assert!(SAMPLES_PER_LINE <= SAMPLES_PER_LINE_MAX);
/// Bytes of the strings of a line, behind which comes no other: with the longest one, each byte of which
/// may take six, there is room for labels in what a line may have.
const STRINGS_SIZE_MAX: usize = 1 << 20;
const _: () = assert!(STRINGS_SIZE_MAX + 8 * STRING_SIZE_MAX + 4 * KEY_SIZE_MAX <= LINE_SIZE_MAX);

fn read(scan: &mut Scan<'_>) -> Result<StringLine, Fault> {
    let mut line = StringLine::default();
    let mut labels = LabelsBuilder::new();
    let (mut texts, mut times): (Vec<Arc<str>>, Vec<Timestamp>) = (Vec::new(), Vec::new());
    scan.members(|scan, name| match name {
        "metric" => scan.members(|scan, name| {
            labels.push(name, &scan.string()?);
            Ok(())
        }),
        "measurement" => {
            line.measurement = scan.string()?.into_owned();
            Ok(())
        }
        "field" => {
            line.field = scan.string()?.into_owned();
            Ok(())
        }
        STRINGS => scan.elements(|scan| {
            if SAMPLES_PER_LINE_MAX <= texts.len() {
                return scan.fault("at most 2097152 strings in a line");
            }
            // Most are as the one before.
            let text = scan.string()?;
            let known = texts.last().filter(|last| ***last == *text).cloned();
            texts.push(known.unwrap_or_else(|| text.into()));
            Ok(())
        }),
        "timestamps" => scan.elements(|scan| {
            if SAMPLES_PER_LINE_MAX <= times.len() {
                return scan.fault("at most 2097152 timestamps in a line");
            }
            times.push(timestamp(scan)?);
            Ok(())
        }),
        _ => scan.skip(0),
    })?;
    if texts.len() != times.len() || texts.is_empty() {
        return scan.fault("as many timestamps as strings, and some");
    }
    line.labels = labels.finish();
    // Colons before the underscore are those of `influx::FieldNames`.
    let name = line.labels.metric_name().strip_prefix(line.measurement.as_str());
    let name = name.unwrap_or_default().trim_start_matches(':');
    let expected = format!("_{}{TEXT_SUFFIX}", line.field);
    if name != expected || line.measurement.is_empty() || line.field.is_empty() {
        return scan.fault("a metric that is its measurement and field, and ends in :text");
    }
    line.samples = times.into_iter().zip(texts).collect();
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::influx::Texts;
    use crate::json_lines::{JsonKeys, decode};
    use crate::{ExtraLabels, Start};
    use std::sync::Mutex;

    fn line() -> StringLine {
        let pairs = [("__name__", "door_a_b:text"), ("host", "\"strings\":[")];
        StringLine {
            labels: Labels::from_pairs(&pairs),
            measurement: "door_a".to_string(),
            field: "b".to_string(),
            samples: vec![
                (1, "".into()),
                (-2_000_000, "a\n\"é\\".into()),
                (3_000_001, "a\n\"é\\".into()),
            ],
        }
    }

    #[test]
    fn strings_come_back() {
        let mut out = Vec::new();
        line().push(&mut out);
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert!(has_strings(&out));
        assert_eq!(StringLine::read(out.trim_ascii_end()).unwrap(), line());
        for end in 1..out.len() - 2 {
            assert!(StringLine::read(&out[..end]).is_err(), "{end}");
        }
        let mut none = StringLine { samples: Vec::new(), ..line() };
        none.push(&mut Vec::new());
        // A label may say what it likes.
        none.labels = Labels::from_pairs(&[("a", "\"strings\":[")]);
        let mut text = Vec::new();
        push_labels(&mut text, &none.labels);
        assert!(!has_strings(&text), "{}", String::from_utf8_lossy(&text));
    }

    /// A dictionary of two texts, each of at most four bytes.
    #[derive(Debug, Default)]
    struct Few(Mutex<Vec<String>>);

    impl Texts for Few {
        fn number(&self, text: &str) -> Result<u32, String> {
            let mut all = self.0.lock().expect("nobody panics");
            if let Some(at) = all.iter().position(|known| known == text) {
                return Ok(at as u32 + 1);
            }
            if 4 < text.len() {
                return Err(format!("a string of {} bytes (max-size)", text.len()));
            }
            if all.len() == 2 {
                return Err("2 strings (max-strings)".to_string());
            }
            all.push(text.to_string());
            Ok(all.len() as u32)
        }
    }

    #[test]
    fn only_the_texts_over_a_limit_are_left_out() {
        let keys = JsonKeys::new(ExtraLabels::none()).with_texts(Some(Arc::new(Few::default())));
        let line = |rest: &str| {
            let metric = r#"{"metric":{"__name__":"a_b:text"},"measurement":"a","field":"b""#;
            format!("{metric},{rest}}}\n")
        };
        let body = [
            line(
                r#""strings":["longer","one","two","full","one","longest"],"timestamps":[1,2,3,4,5,6],"start_timestamps":[1,2,0,4,5,6]"#,
            ),
            line(r#""strings":["full","new"],"timestamps":[7,8]"#),
            line(r#""timestamps":[9],"strings":["two"]"#),
            line(r#""strings":["longer","one"],"timestamps":[1,2],"start_timestamps":[1]"#),
        ];
        let body = body.concat();
        let hasher = model::KeyHasher::new(1);
        let decoded = decode(body.as_bytes(), Start::default(), &hasher, &keys).expect("lines");
        let rows = decoded.batch.rows.iter();
        let found: Vec<(i64, f64, u32)> = rows
            .map(|row| (row.timestamp / 1_000_000, decoded.batch.row_values(row)[0], row.position))
            .collect();
        assert_eq!(found, [(2, 1.0, 1), (3, 2.0, 1), (5, 1.0, 1), (9, 2.0, 3)]);
        let starts: Vec<(i64, i64)> =
            decoded.starts.iter().map(|row| (row.timestamp / 1_000_000, row.start_ms)).collect();
        assert_eq!(starts, [(2, 2), (5, 5)], "each of its own sample");
        let told: Vec<(u32, &str)> =
            decoded.errors.kept().iter().map(|one| (one.position, one.reason.as_str())).collect();
        let expected = [
            (
                1,
                "field \"b\" of \"a\": 3 of 6 strings are left out: 2: a string of 6 bytes (max-size); \
                 1: 2 strings (max-strings)",
            ),
            (2, "field \"b\" of \"a\": 2 of 2 strings are left out: 2: 2 strings (max-strings)"),
            (4, "cannot parse JSON line: 1 start_timestamps but 2 timestamps"),
        ];
        assert_eq!(told, expected);
        assert_eq!((decoded.errors.count(), decoded.errors.refused()), (3, 6));
        assert_eq!(decoded.counts.strings, 5);
    }

    #[test]
    fn lines_are_no_longer_than_lines_may_be() {
        // Each byte of the longest text takes six.
        let long: Arc<str> = "\u{1}".repeat(STRING_SIZE_MAX).into();
        let short: Arc<str> = "ok".into();
        for (text, count, lines) in [(&long, 100, 34), (&short, 25_000, 3), (&short, 1, 1)] {
            let samples = (0..count).map(|time| (time, text.clone())).collect();
            let all = StringLine { samples, ..line() };
            let mut out = Vec::new();
            all.push(&mut out);
            let mut found = StringLine::default();
            let mut line_count = 0;
            for text in out.split_inclusive(|byte| *byte == b'\n') {
                assert!(text.len() < LINE_SIZE_MAX / 4, "{}", text.len());
                let samples = std::mem::take(&mut found.samples);
                found = StringLine::read(text.trim_ascii_end()).expect("a line");
                found.samples.splice(0..0, samples);
                line_count += 1;
            }
            assert_eq!((found == all, line_count), (true, lines));
            assert_eq!(all.push_some(all.samples.len(), &mut out), 0);
        }
    }

    #[test]
    fn lines_of_strings_are_found_however_json_is_written() {
        let line = |rest: &str| {
            let metric = r#""metric":{"__name__":"a_b:text"},"measurement":"a","field":"b""#;
            [format!("{{{metric},{rest}}}"), format!("{{{rest},{metric}}}")]
        };
        for rest in [
            r#""strings":["x"],"timestamps":[1]"#,
            r#""strings": ["x"], "timestamps": [1]"#,
            "\"timestamps\"\t:\r[1], \"strings\"\t:\r[ \"x\" ]",
            r#""\u0073trings":["x"],"timestamps":[1]"#,
            r#""\u0073\u0074\u0072\u0069\u006E\u0067\u0073":["x"],"timestamps":[1]"#,
        ] {
            for text in line(rest) {
                assert!(has_strings(text.as_bytes()), "{text}");
                assert!(has_strings(format!("{{}}\n \n{text}\n").as_bytes()), "{text}");
                let read = StringLine::read(text.as_bytes()).expect("a line");
                assert_eq!(read.samples, [(1_000_000, "x".into())], "{text}");
            }
        }
        for other in [
            r#""strings":1"#,
            r#""a":{"strings":["x"]}"#,
            r#""a":"\"strings\":[""#,
            r#""Strings":["x"]"#,
            r#""a":["strings"]"#,
        ] {
            for text in line(other) {
                assert!(!has_strings(text.as_bytes()), "{text}");
            }
        }
    }

    #[test]
    fn a_metric_gets_another_name_and_nothing_else_changes() {
        let line = |name: &str| {
            format!(
                r#" {{"a":["__name__"],"metric": {{"x":"__name__","__name__" : "{name}" ,"y":"\u00e9"}}, "strings": ["b"]}}"#
            )
        };
        let renamed = rename_metric(line("a_b:text").as_bytes(), "a:_b:text").expect("a line");
        assert_eq!(String::from_utf8_lossy(&renamed), line("a:_b:text"));
        for other in ["", "{", r#"{"metric":{"a":"b"}}"#, r#"{"metric":{"__name__":"a"}"#] {
            assert_eq!(rename_metric(other.as_bytes(), "b"), None, "{other}");
        }
    }

    #[test]
    fn what_lies_is_refused() {
        for text in [
            r#"{"metric":{"__name__":"a_b:text"},"measurement":"a","field":"b","strings":["x"],"timestamps":[]}"#,
            r#"{"metric":{"__name__":"a_b"},"measurement":"a","field":"b","strings":["x"],"timestamps":[1]}"#,
            r#"{"metric":{"__name__":"a_b:text"},"strings":["x"],"timestamps":[1]}"#,
            r#"{"metric":{"__name__":"a_b:text"},"measurement":"a","field":"b","strings":[1],"timestamps":[1]}"#,
        ] {
            assert!(StringLine::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
