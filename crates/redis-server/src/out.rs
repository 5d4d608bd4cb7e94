//! Answers of commands on keys, as RESP. One command may name a value many times over, or many values:
//! what does not fit is left out, and who has it written answers with an error instead.

use kv::Reply;
use std::sync::OnceLock;
use wire::resp::Answer;

/// Bytes of answers that wait to be sent to a client, at most: more than the largest value has.
const ANSWER_SIZE_MAX: usize = 4 << 30;
/// The same, where the process may not use that much memory.
static SIZE_MAX: OnceLock<usize> = OnceLock::new();

/// Sets the largest answer of this process, once.
pub fn limit_answers(size_max: usize) {
    // Tests have several servers in a process; the first one counts.
    let _ = SIZE_MAX.set(size_max.min(ANSWER_SIZE_MAX));
}

/// Bytes that an answer may have.
pub fn answer_size_max() -> usize {
    SIZE_MAX.get().copied().unwrap_or(ANSWER_SIZE_MAX)
}

/// An answer in RESP.
#[derive(Debug)]
pub struct Out(pub Answer, Room);

/// What may still be written.
#[derive(Debug)]
struct Room {
    size_max: usize,
    is_overfull: bool,
}

/// Bytes of memory that are kept of an answer that did not fit.
const ANSWER_SIZE_KEPT: usize = 64 << 10;

impl Default for Out {
    fn default() -> Out {
        Out::new(2)
    }
}

impl Out {
    /// An empty one in that version.
    pub fn new(version: u8) -> Out {
        Out::with_size_max(version, answer_size_max())
    }

    fn with_size_max(version: u8, size_max: usize) -> Out {
        Out(Answer::new(version), Room { size_max, is_overfull: false })
    }

    /// Puts an error in the place of what was written from a place on, if that did not fit.
    pub fn settle(&mut self, start: usize) {
        if std::mem::take(&mut self.1.is_overfull) {
            self.0.bytes_mut().truncate(start);
            self.0.bytes_mut().shrink_to(ANSWER_SIZE_KEPT);
            let size_max = self.1.size_max;
            self.0.error(&format!(
                "ERR the answer is larger than {size_max} bytes: ask for less at a time"
            ));
        }
    }

    /// Appends an array of `len` elements that `elements` has. If those did not fit, neither does this.
    pub fn append_array(&mut self, len: usize, elements: &Out) {
        self.array(len);
        self.1.is_overfull |= elements.1.is_overfull;
        if let Some(out) = self.room(elements.0.bytes().len()) {
            out.bytes_mut().extend_from_slice(elements.0.bytes());
        }
    }

    /// The answer, if so many bytes of it fit.
    #[inline]
    fn room(&mut self, size: usize) -> Option<&mut Answer> {
        let room = &mut self.1;
        room.is_overfull |= room.size_max < self.0.bytes().len().saturating_add(size);
        match room.is_overfull {
            false => Some(&mut self.0),
            true => None,
        }
    }
}

impl Reply for Out {
    fn version(&self) -> u8 {
        self.0.version()
    }
    fn position(&self) -> usize {
        self.0.bytes().len()
    }
    fn truncate(&mut self, position: usize) {
        self.0.bytes_mut().truncate(position);
    }
    fn simple(&mut self, text: &str) {
        if let Some(out) = self.room(text.len()) {
            out.simple(text);
        }
    }
    fn error(&mut self, text: &str) {
        if let Some(out) = self.room(text.len()) {
            out.error(text);
        }
    }
    fn int(&mut self, value: i64) {
        if let Some(out) = self.room(0) {
            out.int(value);
        }
    }
    fn bulk(&mut self, bytes: &[u8]) {
        if let Some(out) = self.room(bytes.len()) {
            out.bulk(bytes);
        }
    }
    fn null(&mut self) {
        if let Some(out) = self.room(0) {
            out.null();
        }
    }
    fn null_array(&mut self) {
        if let Some(out) = self.room(0) {
            out.null_array();
        }
    }
    fn array(&mut self, len: usize) {
        if let Some(out) = self.room(0) {
            out.array(len);
        }
    }
    fn map(&mut self, len: usize) {
        if let Some(out) = self.room(0) {
            out.map(len);
        }
    }
    fn set(&mut self, len: usize) {
        if let Some(out) = self.room(0) {
            out.set(len);
        }
    }
    fn push(&mut self, len: usize) {
        if let Some(out) = self.room(0) {
            out.push(len);
        }
    }
    fn double(&mut self, value: f64) {
        if let Some(out) = self.room(0) {
            out.double(&kv::number::double_text(value));
        }
    }
    fn double_as(&mut self, text: &str) {
        if let Some(out) = self.room(0) {
            out.double(text);
        }
    }
    fn bool(&mut self, value: bool) {
        if let Some(out) = self.room(0) {
            out.bool(value);
        }
    }
    fn big_number(&mut self, text: &str) {
        if let Some(out) = self.room(text.len()) {
            out.big_number(text);
        }
    }
    fn verbatim(&mut self, format: &str, text: &[u8]) {
        if let Some(out) = self.room(text.len()) {
            out.verbatim(format, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_does_not_fit_becomes_an_error() {
        let mut out = Out::with_size_max(2, 100);
        out.ok();
        let start = out.0.bytes().len();
        out.array(3);
        for _ in 0..3 {
            out.bulk(&[b'x'; 40]);
        }
        assert!(out.0.bytes().len() <= 110, "no more is gathered");
        out.settle(start);
        let text = String::from_utf8_lossy(out.0.bytes()).into_owned();
        assert!(text.starts_with("+OK\r\n-ERR the answer is larger than 100 bytes"), "{text}");
        out.0.bytes_mut().clear();
        out.array(1);
        out.null();
        out.settle(0);
        assert_eq!(out.0.bytes(), b"*1\r\n$-1\r\n");
    }

    #[test]
    fn an_array_of_elements_that_do_not_fit_becomes_an_error() {
        let mut elements = Out::with_size_max(2, 100);
        for _ in 0..3 {
            elements.bulk(&[b'x'; 40]);
        }
        let mut out = Out::with_size_max(2, 1000);
        out.append_array(3, &elements);
        out.settle(0);
        let text = String::from_utf8_lossy(out.0.bytes()).into_owned();
        assert!(text.starts_with("-ERR the answer is larger than"), "{text}");
    }
}
