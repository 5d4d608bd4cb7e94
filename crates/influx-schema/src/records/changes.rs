//! Changes of schema records, and their bytes in the log and in the file of an unfinished deletion.
//!
//! ```text
//! log record   number varint │ changes
//! changes      format u8 = 1 │ (1 │ key text │ value text   or   2 │ key text) *
//! text         size varint │ UTF-8
//! ```

use super::key::Key;
use codec::{Reader, put_varint};
use std::sync::Arc;

/// Format that this version writes.
const FORMAT: u8 = 1;
/// A record gets a value.
const PUT: u8 = 1;
/// A record is removed.
const REMOVE: u8 = 2;

/// Change of one schema record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Key of the record.
    pub key: String,
    /// New value; `None` removes the record.
    pub value: Option<Arc<str>>,
}

impl Change {
    /// Gives a record a value.
    pub fn put(key: Key<'_>, value: impl Into<Arc<str>>) -> Change {
        Change { key: key.encode(), value: Some(value.into()) }
    }

    /// Removes a record.
    pub fn remove(key: Key<'_>) -> Change {
        Change { key: key.encode(), value: None }
    }

    /// Bytes of the texts.
    pub(crate) fn size(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// Why changes cannot be decoded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChangesError {
    /// A newer program wrote them.
    #[error("a newer Quipu wrote changes of schema records in format {0}")]
    Newer(u8),
    /// They are not what any program writes.
    #[error("changes of schema records are corrupt at byte {}: {}", .0.offset, .0.what)]
    Corrupt(#[from] codec::Error),
}

/// Encodes changes for the file of an unfinished deletion.
pub fn encode_changes(changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::new();
    put_changes(&mut out, changes.iter());
    out
}

/// The payload of a log record.
pub(crate) fn encode_record<'a>(number: u64, changes: impl Iterator<Item = &'a Change>) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, number);
    put_changes(&mut out, changes);
    out
}

fn put_changes<'a>(out: &mut Vec<u8>, changes: impl Iterator<Item = &'a Change>) {
    out.push(FORMAT);
    for change in changes {
        out.push(if change.value.is_some() { PUT } else { REMOVE });
        put_text(out, &change.key);
        if let Some(value) = &change.value {
            put_text(out, value);
        }
    }
}

/// Appends a text.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads a text.
pub(super) fn read_text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, codec::Error> {
    let size = reader.varint_size(reader.remaining())?;
    let bytes = reader.slice(size)?;
    std::str::from_utf8(bytes).map_err(|_| reader.corrupt("invalid UTF-8"))
}

/// Reads what [`encode_changes`] wrote.
pub(crate) fn decode_changes(bytes: &[u8]) -> Result<Vec<Change>, ChangesError> {
    read_changes(&mut Reader::new(bytes))
}

/// Reads the payload of a log record: its number and the changes.
pub(crate) fn decode_record(payload: &[u8]) -> Result<(u64, Vec<Change>), ChangesError> {
    let mut reader = Reader::new(payload);
    Ok((reader.varint()?, read_changes(&mut reader)?))
}

fn read_changes(reader: &mut Reader<'_>) -> Result<Vec<Change>, ChangesError> {
    match reader.u8()? {
        FORMAT => {}
        0 => return Err(reader.corrupt("format 0").into()),
        newer => return Err(ChangesError::Newer(newer)),
    }
    let mut changes = Vec::new();
    while !reader.is_empty() {
        let kind = reader.u8()?;
        let key = read_text(reader)?.to_string();
        let value = match kind {
            PUT => Some(read_text(reader)?.into()),
            REMOVE => None,
            _ => return Err(reader.corrupt("unknown kind of change").into()),
        };
        changes.push(Change { key, value });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<Change> {
        let field = Key::Field { database: "d", measurement: "m", field: "f" };
        vec![Change::put(field, "float"), Change::remove(Key::Database { database: "x" })]
    }

    #[test]
    fn changes_have_these_bytes_in_format_1() {
        let bytes = b"\x01\x01\x0bfield\0d\0m\0f\x05float\x02\x0adatabase\0x";
        assert_eq!(encode_changes(&example()), bytes);
        assert_eq!(decode_changes(bytes), Ok(example()));
        let record = [&b"\xac\x02"[..], bytes].concat();
        assert_eq!(encode_record(300, example().iter()), record);
        assert_eq!(decode_record(&record), Ok((300, example())));
    }

    #[test]
    fn other_bytes_are_refused_without_a_panic() {
        let record = encode_record(300, example().iter());
        // Behind the format and behind the first change the bytes are a shorter record.
        let shorter = [3, 3 + 2 + 11 + 1 + 5];
        for cut in 0..record.len() {
            let is_whole = decode_record(&record[..cut]).is_ok();
            assert_eq!(is_whole, shorter.contains(&cut), "cut at {cut}");
        }
        for bit in 0..8 * record.len() {
            let mut changed = record.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let _ = decode_record(&changed);
        }
        assert_eq!(decode_changes(b"\x02"), Err(ChangesError::Newer(2)));
    }
}
