//! Strings of line protocol as lines, an extension of ours: texts stand where numbers would.
//!
//! ```text
//! {"metric":{"__name__":"door_state:text","host":"a"},"measurement":"door","field":"state",
//!  "strings":["open","shut"],"timestamps":[1549891472010,1549891487010]}
//! ```

use super::SAMPLES_PER_LINE_MAX;
use super::decode::timestamp;
use super::encode::push_timestamp;
use super::scan::{Fault, Scan};
use crate::Error;
use crate::influx::TEXT_SUFFIX;
use crate::prom_json::string::{push_labels, push_string};
use memchr::memmem;
use model::{Labels, LabelsBuilder, Timestamp};
use std::sync::Arc;

/// What stands in a line of strings, and in no other: a quote within a text has a backslash before it.
const STRINGS: &[u8] = b"\"strings\":[";

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

/// Whether a line is one of strings, or a text has some.
pub fn has_strings(text: &[u8]) -> bool {
    memmem::find(text, STRINGS).is_some_and(|at| at == 0 || text[at - 1] != b'\\')
}

impl StringLine {
    /// Appends the line; nothing where there are no samples.
    pub fn push(&self, out: &mut Vec<u8>) {
        for samples in self.samples.chunks(SAMPLES_PER_LINE) {
            out.extend_from_slice(b"{\"metric\":");
            push_labels(out, &self.labels);
            out.extend_from_slice(b",\"measurement\":");
            push_string(out, &self.measurement);
            out.extend_from_slice(b",\"field\":");
            push_string(out, &self.field);
            out.push(b',');
            out.extend_from_slice(STRINGS);
            for (idx, (_, text)) in samples.iter().enumerate() {
                if 0 < idx {
                    out.push(b',');
                }
                push_string(out, text);
            }
            out.extend_from_slice(b"],\"timestamps\":[");
            for (idx, (time, _)) in samples.iter().enumerate() {
                if 0 < idx {
                    out.push(b',');
                }
                push_timestamp(out, *time);
            }
            out.extend_from_slice(b"]}\n");
        }
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

/// Samples of one line.
const SAMPLES_PER_LINE: usize = 10_000;
const _: () = assert!(SAMPLES_PER_LINE <= SAMPLES_PER_LINE_MAX);

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
        "strings" => scan.elements(|scan| {
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
    let expected = format!("{}_{}{TEXT_SUFFIX}", line.measurement, line.field);
    if line.labels.metric_name() != expected || line.measurement.is_empty() || line.field.is_empty()
    {
        return scan.fault("a metric that is its measurement and field, and ends in :text");
    }
    line.samples = times.into_iter().zip(texts).collect();
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

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
