//! Counts the samples and series of JSON lines that a command sends or receives.

use crate::quantity::count_of;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

/// Maximum of distinct series that are counted; the count is a lower bound beyond it.
const SERIES_MAX: usize = 1 << 20;

/// Counts lines, in pieces of any size.
#[derive(Debug, Default)]
pub struct LineCounter {
    samples: u64,
    hasher: RandomState,
    /// Hashes of the labels.
    series: HashSet<u64>,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl LineCounter {
    /// Counts the lines that end in `bytes`.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let is_whole = |line: &[u8]| line.ends_with(b"\n");
        if !self.begun.is_empty()
            && let Some(rest) = lines.next()
        {
            let mut line = std::mem::take(&mut self.begun);
            line.extend_from_slice(rest);
            match is_whole(&line) {
                true => self.count(&line),
                false => self.begun = line,
            }
        }
        for line in lines {
            match is_whole(line) {
                true => self.count(line),
                false => self.begun.extend_from_slice(line),
            }
        }
    }

    /// Numbers for people, with a last line that has no end.
    pub fn finish(&mut self) -> String {
        let last = std::mem::take(&mut self.begun);
        self.count(&last);
        let at_least = if self.series.len() < SERIES_MAX { "" } else { "at least " };
        let (samples, series) = (count_of(self.samples, "sample"), self.series.len());
        format!("{samples} of {at_least}{}", count_of(series, "series"))
    }

    fn count(&mut self, line: &[u8]) {
        for member in [b"\"timestamps\"".as_slice(), b"\"histogram_timestamps\""] {
            self.samples += elements_of(line, member);
        }
        if let Some(metric) = metric_of(line).filter(|_| self.series.len() < SERIES_MAX) {
            self.series.insert(self.hasher.hash_one(metric));
        }
    }
}

/// Elements of a member's list of numbers; 0 without the member.
fn elements_of(line: &[u8], member: &[u8]) -> u64 {
    let at = line.windows(member.len()).rposition(|window| window == member);
    let Some(list) = at.and_then(|at| line.get(at + member.len()..)) else { return 0 };
    let list = list.split(|byte| *byte == b']').next().unwrap_or_default();
    let Some(start) = list.iter().position(|byte| *byte == b'[') else { return 0 };
    let elements = list.get(start + 1..).unwrap_or_default();
    match elements.iter().any(u8::is_ascii_digit) {
        true => elements.iter().filter(|byte| **byte == b',').count() as u64 + 1,
        false => 0,
    }
}

/// The object of labels, as it is written.
fn metric_of(line: &[u8]) -> Option<&[u8]> {
    let member = b"\"metric\"";
    let at = line.windows(member.len()).position(|window| window == member)?;
    let object = line.get(at + member.len()..)?;
    let (mut is_text, mut is_escaped) = (false, false);
    for (idx, byte) in object.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'}' if !is_text => return object.get(..idx),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"metric":{"__name__":"a","l":"x}\"y"},"values":[1,2],"timestamps":[1,2]}
{"metric":{"__name__":"a","l":"x}\"y"},"values":[1],"timestamps":[3]}
{"metric":{"__name__":"b"},"values":[],"timestamps":[]}

{"metric":{"__name__":"c"}, "histograms":[], "histogram_timestamps": [1, 2, 3]}
{"timestamps":[4]}"#;

    #[test]
    fn samples_and_series_are_counted_whatever_the_pieces() {
        for size in [1, 7, 64, 10_000] {
            let mut counter = LineCounter::default();
            LINES.as_bytes().chunks(size).for_each(|piece| counter.push(piece));
            assert_eq!(counter.finish(), "7 samples of 3 series", "pieces of {size} bytes");
        }
    }

    #[test]
    fn nothing_is_no_sample() {
        assert_eq!(LineCounter::default().finish(), "0 samples of 0 series");
    }
}
