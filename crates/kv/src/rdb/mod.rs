//! Values as Redis writes them: in what `DUMP` answers, and in its dump files.
//!
//! ```text
//! payload   type u8 │ value │ version u16 │ CRC-64 of all before
//! file      "REDIS" version, 4 digits, or "VALKEY" version, 3 digits │ words and keys with values │ 255 │ CRC-64 of all before
//! ```
//! Versions up to 12 are read, with every encoding that Redis has had since version 6. Version 10 is
//! written, which Redis 7.0 reads. Hashes whose fields expire are of version 12, which only 7.4 reads: in
//! what `DUMP` answers, and in dumps for replicas that take them.
//!
//! All of it may come from anybody: bytes that are none are an error, and nothing is allocated that
//! the bytes before do not account for.

pub(crate) mod crc64;
mod file;
mod input;
mod load;
mod lzf;
mod modules;
mod packed;
mod save;
mod stream;
mod write;

pub use file::{Found, walk};
pub use input::Failure;
pub use modules::{ModuleKey, ModuleWord, Modules};
pub use save::Reader;
pub use write::{LeftOut, Writer};

use crate::value::Value;
use crc64::crc64;
use input::Input;

/// The newest version that is read.
pub(crate) const VERSION_MAX: u16 = 12;
/// The version that Valkey 9 writes: Redis' version 11, with a type of its own for hashes.
const VERSION_OF_VALKEY: u16 = 80;
/// The version of what is written.
const VERSION: u16 = 10;
/// The same of what that has no words for.
const VERSION_OF_FIELD_EXPIRY: u16 = 12;
/// Version and checksum.
const FOOTER_SIZE: usize = 10;

/// Types of values, as the formats number them.
mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const ZSET: u8 = 3;
    pub const HASH: u8 = 4;
    pub const ZSET_2: u8 = 5;
    pub const MODULE_2: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_QUICKLIST: u8 = 14;
    pub const STREAM: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    pub const LIST_QUICKLIST_2: u8 = 18;
    pub const STREAM_2: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_3: u8 = 21;
    pub const HASH_EXPIRING_EARLY: u8 = 22;
    pub const HASH_LISTPACK_EXPIRING_EARLY: u8 = 23;
    pub const HASH_EXPIRING: u8 = 24;
    pub const HASH_LISTPACK_EXPIRING: u8 = 25;
    /// Number 22 in dumps of Valkey.
    pub const HASH_OF_VALKEY: u8 = 200;
}

/// Whether dumps of that version can be read.
fn is_known(version: u16) -> bool {
    version <= VERSION_MAX || version == VERSION_OF_VALKEY
}

/// The type of a value that a dump of that version numbers so.
fn kind_of(version: u16, number: u8) -> u8 {
    match number {
        kind::HASH_EXPIRING_EARLY if version == VERSION_OF_VALKEY => kind::HASH_OF_VALKEY,
        number => number,
    }
}

/// Why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its frame is not whole, or of a newer version.
    Frame,
    /// What it frames is no value.
    Value,
    /// That takes more memory than a value may.
    TooLarge,
}

/// A value as `DUMP` answers it; none of a type that Redis itself does not have.
pub fn dump(value: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    save::value(&mut out, value, Reader::Newest)?;
    let version = if expires_fields(value) { VERSION_OF_FIELD_EXPIRY } else { VERSION };
    Some(framed(out, version))
}

/// The same for Redis 7.0: fields of hashes stay until somebody says that they have expired.
pub fn dump_for_redis_7(value: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    save::value(&mut out, value, Reader::Redis7)?;
    Some(framed(out, VERSION))
}

/// Whether a value has fields that expire, which Redis 7.0 has not.
pub fn expires_fields(value: &Value) -> bool {
    matches!(value, Value::Hash(hash) if hash.next_expiry().is_some())
}

/// A type and a value with what `DUMP` puts behind them.
pub(crate) fn framed(mut out: Vec<u8>, version: u16) -> Vec<u8> {
    out.extend_from_slice(&version.to_le_bytes());
    let crc = crc64(0, &out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Reads what `DUMP` answers: a value of so many bytes of memory at most.
///
/// # Errors
/// When it is not that.
pub fn restore(payload: &[u8], size_max: usize) -> Result<Value, Refusal> {
    let body = payload.len().checked_sub(FOOTER_SIZE).ok_or(Refusal::Frame)?;
    let (body, footer) = payload.split_at(body);
    let (version, crc) = footer.split_at(2);
    let version = version.first_chunk::<2>().map_or(u16::MAX, |two| u16::from_le_bytes(*two));
    let crc = crc.first_chunk::<8>().map_or(0, |eight| u64::from_le_bytes(*eight));
    if !is_known(version) || crc64(crc64(0, body), &footer[..2]) != crc {
        return Err(Refusal::Frame);
    }
    let mut source = body;
    let mut input = Input::new(&mut source, size_max);
    let kind = input.u8().map_err(|_| Refusal::Value)?;
    let value =
        load::value(&mut input, kind_of(version, kind)).map_err(|failure| match failure {
            Failure::TooLarge { .. } => Refusal::TooLarge,
            Failure::Io(_) | Failure::Corrupt { .. } | Failure::Checksum { .. } => Refusal::Value,
        })?;
    let is_whole = input.is_at_end().map_err(|_| Refusal::Value)?;
    value.filter(|value| is_whole && !value.is_empty()).ok_or(Refusal::Value)
}

#[cfg(test)]
mod tests;
