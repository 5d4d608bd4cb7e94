//! Where a command writes its answer: what RESP2 and RESP3 can say, without their bytes.

use std::borrow::Cow;

/// An answer under way. Aggregates announce how many elements follow, each written in turn.
pub trait Reply {
    /// The protocol's version, 2 or 3, for the few answers whose shape differs.
    fn version(&self) -> u8;
    /// Bytes written so far.
    fn position(&self) -> usize;
    /// Drops what was written behind a position.
    fn truncate(&mut self, position: usize);
    /// A short status such as `OK`, without line ends.
    fn simple(&mut self, text: &str);
    /// An error: a code in capitals, then words.
    fn error(&mut self, text: &str);
    /// An integer.
    fn int(&mut self, value: i64);
    /// Bytes.
    fn bulk(&mut self, bytes: &[u8]);
    /// Nothing, where bytes might be.
    fn null(&mut self);
    /// Nothing, where an array might be.
    fn null_array(&mut self);
    /// An array of so many elements.
    fn array(&mut self, len: usize);
    /// A map of so many pairs; an array of twice as many in version 2.
    fn map(&mut self, len: usize);
    /// A set of so many elements; an array in version 2.
    fn set(&mut self, len: usize);
    /// Data that nobody asked for, of so many elements; an array in version 2.
    fn push(&mut self, len: usize);
    /// A float; its text as bytes in version 2.
    fn double(&mut self, value: f64);
    /// A float whose text has other digits than [`Reply::double`] gives it.
    fn double_as(&mut self, text: &str);
    /// A truth value; 1 or 0 in version 2.
    fn bool(&mut self, value: bool);
    /// An integer of any length, as text; bytes in version 2.
    fn big_number(&mut self, text: &str);
    /// Text of a format of three letters; bytes in version 2.
    fn verbatim(&mut self, format: &str, text: &[u8]);

    /// `OK`.
    fn ok(&mut self) {
        self.simple("OK");
    }

    /// Text.
    fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// An integer's digits as bytes.
    fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A count.
    fn len(&mut self, count: usize) {
        self.int(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Bytes, or nothing.
    fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Bytes that may be borrowed.
    fn cow(&mut self, bytes: Cow<'_, [u8]>) {
        self.bulk(&bytes);
    }
}

/// Answers that nobody reads: while the log is replayed.
#[derive(Debug, Default)]
pub struct Discard;

impl Reply for Discard {
    fn version(&self) -> u8 {
        2
    }
    fn position(&self) -> usize {
        0
    }
    fn truncate(&mut self, _: usize) {}
    fn simple(&mut self, _: &str) {}
    fn error(&mut self, _: &str) {}
    fn int(&mut self, _: i64) {}
    fn bulk(&mut self, _: &[u8]) {}
    fn null(&mut self) {}
    fn null_array(&mut self) {}
    fn array(&mut self, _: usize) {}
    fn map(&mut self, _: usize) {}
    fn set(&mut self, _: usize) {}
    fn push(&mut self, _: usize) {}
    fn double(&mut self, _: f64) {}
    fn double_as(&mut self, _: &str) {}
    fn bool(&mut self, _: bool) {}
    fn big_number(&mut self, _: &str) {}
    fn verbatim(&mut self, _: &str, _: &[u8]) {}
}
