//! Values of keys, a file for each type: in memory, and encoded for the disk and the log.
//!
//! ```text
//! encoded value    type u8 │ what the type writes
//! ```

pub mod bloom;
pub mod element;
pub mod entries;
pub mod hash;
pub mod list;
pub mod series;
pub mod set;
pub mod shared;
pub mod stream;
pub mod string;
pub mod zset;

pub use bloom::Bloom;
pub use hash::Hash;
pub use list::List;
pub use series::Series;
pub use set::Set;
pub use stream::Stream;
pub use string::Str;
pub use zset::Zset;

use codec::bytes::{Reader, put_varint};

/// A value.
#[derive(Debug, Clone)]
pub enum Value {
    /// Bytes.
    Str(Str),
    /// A list.
    List(Box<List>),
    /// A set.
    Set(Box<Set>),
    /// A hash.
    Hash(Box<Hash>),
    /// A sorted set.
    Zset(Box<Zset>),
    /// A stream.
    Stream(Box<Stream>),
    /// A bloom filter.
    Bloom(Box<Bloom>),
    /// A time series without its samples.
    Series(Box<Series>),
}

/// A type of values.
pub trait Stored: Sized {
    /// The value as this type, if it is one.
    fn of(value: &Value) -> Option<&Self>;
    /// The same, to be changed.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    /// As a value.
    fn into_value(self) -> Value;
    /// Appends what [`Stored::decode`] reads.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads what [`Stored::encode`] wrote; the bytes may be anything.
    ///
    /// # Errors
    /// When they are none.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, codec::Error>;
    /// Bytes of memory besides the struct itself, about; in constant time.
    fn heap_size(&self) -> usize;
    /// Whether nothing is left, so that the key goes. A string may be empty and stay.
    fn is_empty(&self) -> bool;
}

/// Implements the three conversions of [`Stored`] for a boxed variant.
macro_rules! boxed_variant {
    ($variant:ident) => {
        fn of(value: &crate::Value) -> Option<&Self> {
            match value {
                crate::Value::$variant(inner) => Some(inner),
                _ => None,
            }
        }
        fn of_mut(value: &mut crate::Value) -> Option<&mut Self> {
            match value {
                crate::Value::$variant(inner) => Some(inner),
                _ => None,
            }
        }
        fn into_value(self) -> crate::Value {
            crate::Value::$variant(Box::new(self))
        }
    };
}
pub(crate) use boxed_variant;

/// Calls a method of [`Stored`] on whatever a value is.
macro_rules! on_each {
    ($value:expr, $inner:ident => $call:expr) => {
        match $value {
            Value::Str($inner) => $call,
            Value::List($inner) => $call,
            Value::Set($inner) => $call,
            Value::Hash($inner) => $call,
            Value::Zset($inner) => $call,
            Value::Stream($inner) => $call,
            Value::Bloom($inner) => $call,
            Value::Series($inner) => $call,
        }
    };
}

impl Value {
    /// The type's name, as `TYPE` answers it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Str(_) => "string",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::Hash(_) => "hash",
            Value::Zset(_) => "zset",
            Value::Stream(_) => "stream",
            Value::Bloom(_) => "MBbloom--",
            Value::Series(_) => "TSDB-TYPE",
        }
    }

    /// How it is kept, in the words of `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        match self {
            Value::Str(string) => string.encoding(),
            Value::List(list) => list.encoding(),
            Value::Set(set) => set.encoding(),
            Value::Hash(hash) => hash.encoding(),
            Value::Zset(zset) => zset.encoding(),
            Value::Stream(_) => "stream",
            Value::Bloom(_) | Value::Series(_) => "raw",
        }
    }

    /// The number that stands for the type on disk.
    fn tag(&self) -> u8 {
        match self {
            Value::Str(_) => 1,
            Value::List(_) => 2,
            Value::Set(_) => 3,
            Value::Hash(_) => 4,
            Value::Zset(_) => 5,
            Value::Stream(_) => 6,
            Value::Bloom(_) => 7,
            Value::Series(_) => 8,
        }
    }

    /// Appends what [`Value::decode`] reads.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.tag());
        on_each!(self, inner => inner.encode(out));
    }

    /// Reads a value; the bytes may be anything.
    ///
    /// # Errors
    /// When they are none.
    pub fn decode(bytes: &[u8]) -> Result<Value, codec::Error> {
        let mut reader = Reader::new(bytes);
        let tag = reader.u8()?;
        let value = match tag {
            1 => Str::decode(&mut reader)?.into_value(),
            2 => List::decode(&mut reader)?.into_value(),
            3 => Set::decode(&mut reader)?.into_value(),
            4 => Hash::decode(&mut reader)?.into_value(),
            5 => Zset::decode(&mut reader)?.into_value(),
            6 => Stream::decode(&mut reader)?.into_value(),
            7 => Bloom::decode(&mut reader)?.into_value(),
            8 => Series::decode(&mut reader)?.into_value(),
            _ => return Err(reader.corrupt("unknown type of value")),
        };
        match reader.is_empty() {
            true => Ok(value),
            false => Err(reader.corrupt("bytes behind the value")),
        }
    }

    /// It as it is now, to be encoded while commands go on to change it, and for nothing else: nothing
    /// is found in it. None where that would take as long as to encode it at once.
    pub fn freeze(&self) -> Option<Value> {
        match self {
            Value::Set(set) => set.freeze().map(Stored::into_value),
            Value::Hash(hash) => hash.freeze().map(Stored::into_value),
            Value::Zset(zset) => zset.freeze().map(Stored::into_value),
            _ => None,
        }
    }

    /// Bytes of memory besides the enum itself, about.
    pub fn heap_size(&self) -> usize {
        on_each!(self, inner => inner.heap_size())
    }

    /// Whether nothing is left of a collection; never so for a string or a stream.
    pub fn is_empty(&self) -> bool {
        on_each!(self, inner => inner.is_empty())
    }
}

/// Appends bytes with their size before them.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what [`put_bytes`] wrote.
///
/// # Errors
/// When there are fewer bytes.
pub fn read_bytes<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], codec::Error> {
    let size = read_len(reader)?;
    reader.slice(size)
}

/// Reads a count of things of at least one byte each.
///
/// # Errors
/// When there are not so many bytes.
pub fn read_len(reader: &mut Reader<'_>) -> Result<usize, codec::Error> {
    let len = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
    match len <= reader.remaining() {
        true => Ok(len),
        false => Err(reader.corrupt("more than there are bytes")),
    }
}
