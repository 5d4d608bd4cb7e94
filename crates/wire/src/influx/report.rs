//! Refused lines in InfluxDB's words, for the answer's body.
//!
//! ```text
//! some lines were good:  partial write: unable to parse 'cpu': missing fields dropped=1
//! none was good:         unable to parse 'cpu': missing fields
//! ```

use crate::decoded::LineErrors;
use crate::narrow::body_offset;
use model::Rejection;
use std::fmt::Display;

/// Bytes of a line that an error message repeats.
pub const ERROR_LINE_SIZE_MAX: usize = 256;

/// The text of the `error` member: what the decoder and the store refused.
///
/// `written` is the number of samples that were stored; without any the write was not partial.
/// `rejected` counts all rows that the store refused, of which `rejections` are some.
pub fn error_text(
    body: &[u8],
    errors: &LineErrors,
    rejections: &[Rejection],
    rejected: u64,
    written: u64,
) -> String {
    let mut reasons: Vec<String> = errors.kept().iter().map(|e| e.reason.clone()).collect();
    let mut lines = LineFinder { body, at: 0, line: 1 };
    let mut last = None;
    let mut dropped = errors.count() + rejected;
    for rejection in rejections {
        // Long integers make two rows of one line.
        if last.replace(rejection.position) == Some(rejection.position) {
            dropped = dropped.saturating_sub(1);
            continue;
        }
        let text = lines.find(rejection.position);
        reasons.push(unable_to_parse(text, &rejection.reason));
    }
    let joined = reasons.join("\n");
    if written == 0 {
        return joined;
    }
    format!("partial write: {joined} dropped={dropped}")
}

/// A line that was refused, as InfluxDB 3 tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub number: u32,
    /// Its text, the end cut away when it is long.
    pub text: String,
    /// Why.
    pub reason: String,
}

/// The lines that the decoder and the store refused, in order.
pub fn bad_lines(body: &[u8], errors: &LineErrors, rejections: &[Rejection]) -> Vec<BadLine> {
    let of_decoder = errors.kept().iter().map(|error| (error.position, &error.reason));
    let of_store = rejections.iter().map(|row| (row.position, &row.reason));
    let mut all: Vec<(u32, &String)> = of_decoder.chain(of_store).collect();
    all.sort_by_key(|(number, _)| *number);
    // Long integers make two rows of one line.
    all.dedup();
    let mut lines = LineFinder { body, at: 0, line: 1 };
    let tell = |(number, reason): (u32, &String)| {
        let text = shorten(lines.find(number));
        let sentence = format!("unable to parse '{text}': ");
        let reason = reason.strip_prefix(&sentence).unwrap_or(reason).to_string();
        BadLine { number, text, reason }
    };
    all.into_iter().map(tell).collect()
}

/// InfluxDB's sentence for a bad line.
pub(super) fn unable_to_parse(line: &[u8], fault: &impl Display) -> String {
    format!("unable to parse '{}': {fault}", shorten(line))
}

/// The text, its end cut away when it is long.
pub(crate) fn shorten(text: &[u8]) -> String {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    match text.get(..ERROR_LINE_SIZE_MAX) {
        Some(start) => format!("{}...", String::from_utf8_lossy(start)),
        None => String::from_utf8_lossy(text).into_owned(),
    }
}

/// Finds lines by increasing number.
struct LineFinder<'a> {
    body: &'a [u8],
    at: usize,
    line: u32,
}

impl<'a> LineFinder<'a> {
    fn find(&mut self, line: u32) -> &'a [u8] {
        if line < self.line {
            (self.at, self.line) = (0, 1);
        }
        while self.line < line && self.at < self.body.len() {
            let end = line_end(self.body, self.at);
            let text = self.body.get(self.at..end).unwrap_or_default();
            self.line += 1 + body_offset(memchr::memchr_iter(b'\n', text).count());
            self.at = end + 1;
        }
        let end = line_end(self.body, self.at);
        self.body.get(self.at..end).unwrap_or_default()
    }
}

/// Where the line at `start` ends: at a newline that no string field holds, or at the body's end.
///
/// A quote opens a string only right behind a field's `=`. When it is never closed the line ends
/// at its first newline, so that half a line costs its neighbours nothing.
pub fn line_end(body: &[u8], start: usize) -> usize {
    let rest = body.get(start..).unwrap_or_default();
    if rest.trim_ascii_start().first() == Some(&b'#') {
        return memchr::memchr(b'\n', rest).map_or(body.len(), |found| start + found);
    }
    let (mut in_fields, mut in_string) = (false, false);
    let mut first_newline = None;
    let mut previous = 0u8;
    let mut at = start;
    while let Some(&byte) = body.get(at) {
        match byte {
            b'\\' if in_string => at += 1,
            b'"' if in_string => in_string = false,
            b'\n' if in_string => {
                first_newline = first_newline.or(Some(at));
            }
            b'\n' if previous != b'\\' => return at,
            b'"' if in_fields && previous == b'=' => in_string = true,
            b' ' if previous != b'\\' => in_fields = true,
            _ => {}
        }
        previous = byte;
        at += 1;
    }
    first_newline.filter(|_| in_string).unwrap_or(body.len())
}
