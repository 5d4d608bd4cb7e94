//! A whole dump file, written piece by piece.

use super::crc64::crc64;
use super::file::word;
use super::save::{self, Reader, put_bytes, put_length};
use super::{VERSION, VERSION_OF_FIELD_EXPIRY, expires_fields};
use crate::value::Value;

/// A file that is being written. What it takes gathers until [`Writer::take`].
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    crc: u64,
    /// The database that keys are written to now.
    db: Option<u8>,
    reader: Reader,
}

impl Writer {
    /// An empty file for a reader.
    pub fn new(reader: Reader) -> Writer {
        let version = match reader {
            Reader::Newest => VERSION_OF_FIELD_EXPIRY,
            Reader::Redis7 => VERSION,
        };
        let out = format!("REDIS{version:04}").into_bytes();
        Writer { out, crc: 0, db: None, reader }
    }

    /// Bytes that have gathered.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// What has gathered since the last call, for the file.
    pub fn take(&mut self) -> Vec<u8> {
        self.crc = crc64(self.crc, &self.out);
        std::mem::take(&mut self.out)
    }

    /// A note about the file: whoever does not know it skips it.
    pub fn note(&mut self, name: &str, value: &[u8]) {
        self.out.push(word::NOTE);
        put_bytes(&mut self.out, name.as_bytes());
        put_bytes(&mut self.out, value);
    }

    /// The code of a library of functions.
    pub fn function(&mut self, code: &[u8]) {
        self.out.push(word::FUNCTION);
        put_bytes(&mut self.out, code);
    }

    /// A key. Returns whether Redis has such values; else nothing was written.
    pub fn key(&mut self, db: u8, key: &[u8], value: &Value, expire_ms: Option<i64>) -> bool {
        if matches!(value, Value::Bloom(_) | Value::Series(_)) {
            return false;
        }
        if self.db != Some(db) {
            self.out.push(word::DATABASE);
            put_length(&mut self.out, u64::from(db));
            self.db = Some(db);
        }
        if let Some(expire_ms) = expire_ms {
            self.out.push(word::EXPIRES_MS);
            self.out.extend_from_slice(&expire_ms.to_le_bytes());
        }
        // The type stands before the key, the rest behind it.
        let kind_at = self.out.len();
        self.out.push(0);
        put_bytes(&mut self.out, key);
        let value_at = self.out.len();
        save::value(&mut self.out, value, self.reader);
        self.out[kind_at] = self.out.remove(value_at);
        true
    }

    /// The end of the file.
    pub fn end(&mut self) {
        self.out.push(word::END);
        let crc = crc64(self.crc, &self.out);
        self.out.extend_from_slice(&crc.to_le_bytes());
    }
}

/// What a dump leaves out, for those who read it: counted, and the first ones named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Bloom filters.
    pub blooms: u64,
    /// Time series.
    pub series: u64,
    /// Hashes that came without the times at which their fields expire.
    pub field_expiries: u64,
    /// Names of some of them, and what they are.
    pub named: Vec<String>,
}

/// Names that are kept.
const NAMED_LEN_MAX: usize = 20;
/// Bytes of a name that are kept.
const NAME_SIZE_MAX: usize = 128;
/// The notes in which a file says it.
const COUNT_NOTE: &str = "quipu-left-out";
const NAME_NOTE: &str = "quipu-left-out-key";

impl LeftOut {
    /// Notes what is left out of a key, if anything is.
    pub fn note(&mut self, db: u8, key: &[u8], value: &Value) {
        let (count, what) = match value {
            Value::Bloom(_) => (&mut self.blooms, "bloom filter"),
            Value::Series(_) => (&mut self.series, "time series"),
            value if expires_fields(value) => (&mut self.field_expiries, "expiry of fields"),
            _ => return,
        };
        *count += 1;
        if self.named.len() < NAMED_LEN_MAX {
            let shown = key.get(..NAME_SIZE_MAX).unwrap_or(key);
            self.named.push(format!("{what} db{db} {}", String::from_utf8_lossy(shown)));
        }
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.blooms + self.series + self.field_expiries == 0
    }

    /// In words.
    pub fn words(&self) -> String {
        format!(
            "{} bloom filters, {} time series, the expiry of fields of {} hashes",
            self.blooms, self.series, self.field_expiries
        )
    }

    /// Says it in a file.
    pub fn write(&self, writer: &mut Writer) {
        if self.is_empty() {
            return;
        }
        let counts = format!("{} {} {}", self.blooms, self.series, self.field_expiries);
        writer.note(COUNT_NOTE, counts.as_bytes());
        self.named.iter().for_each(|name| writer.note(NAME_NOTE, name.as_bytes()));
    }

    /// Takes a note of a file, if it is about this.
    pub fn read(&mut self, name: &[u8], value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        if name == NAME_NOTE.as_bytes() && self.named.len() < NAMED_LEN_MAX {
            self.named.push(text.into_owned());
        } else if name == COUNT_NOTE.as_bytes() {
            let mut counts = text.split(' ').map(|count| count.parse().unwrap_or(0));
            let mut next = || counts.next().unwrap_or(0);
            (self.blooms, self.series, self.field_expiries) = (next(), next(), next());
        }
    }
}
