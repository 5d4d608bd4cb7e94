//! Answers of commands on keys, as RESP.

use kv::Reply;
use wire::resp::Answer;

/// An answer in RESP.
#[derive(Debug, Default)]
pub struct Out(pub Answer);

impl Out {
    /// An empty one in that version.
    pub fn new(version: u8) -> Out {
        Out(Answer::new(version))
    }
}

impl Reply for Out {
    fn version(&self) -> u8 {
        self.0.version()
    }
    fn simple(&mut self, text: &str) {
        self.0.simple(text);
    }
    fn error(&mut self, text: &str) {
        self.0.error(text);
    }
    fn int(&mut self, value: i64) {
        self.0.int(value);
    }
    fn bulk(&mut self, bytes: &[u8]) {
        self.0.bulk(bytes);
    }
    fn null(&mut self) {
        self.0.null();
    }
    fn null_array(&mut self) {
        self.0.null_array();
    }
    fn array(&mut self, len: usize) {
        self.0.array(len);
    }
    fn map(&mut self, len: usize) {
        self.0.map(len);
    }
    fn set(&mut self, len: usize) {
        self.0.set(len);
    }
    fn push(&mut self, len: usize) {
        self.0.push(len);
    }
    fn double(&mut self, value: f64) {
        self.0.double(&kv::number::double_text(value));
    }
    fn double_as(&mut self, text: &str) {
        self.0.double(text);
    }
    fn bool(&mut self, value: bool) {
        self.0.bool(value);
    }
    fn big_number(&mut self, text: &str) {
        self.0.big_number(text);
    }
    fn verbatim(&mut self, format: &str, text: &[u8]) {
        self.0.verbatim(format, text);
    }
}
