//! A whole dump file, walked key by key.

use super::input::{Failure, Input};
use super::{is_known, kind_of, load};
use crate::config::{GROWTH_MAX, VALUE_SIZE_MAX};
use crate::value::Value;
use std::io::Read;

/// Words between the keys.
pub mod word {
    pub const SLOT_INFO: u8 = 244;
    pub const FUNCTION: u8 = 245;
    pub const MODULE: u8 = 247;
    pub const IDLE: u8 = 248;
    pub const FREQUENCY: u8 = 249;
    pub const NOTE: u8 = 250;
    pub const SIZES: u8 = 251;
    pub const EXPIRES_MS: u8 = 252;
    pub const EXPIRES_S: u8 = 253;
    pub const DATABASE: u8 = 254;
    pub const END: u8 = 255;
}

/// What is found in a file.
#[derive(Debug)]
pub enum Found {
    /// A key with its value.
    Key {
        /// Its database.
        db: u64,
        /// The key.
        key: Vec<u8>,
        /// Its value; none of a type that only a module knows.
        value: Option<Value>,
        /// When it expires, in milliseconds since the epoch.
        expire_ms: Option<i64>,
    },
    /// The code of a library of functions.
    Function(Vec<u8>),
    /// A note about the file: its name and what it says.
    Note(Vec<u8>, Vec<u8>),
}

/// Walks a file: `each` gets what is found and how many bytes were read by then.
///
/// # Errors
/// When the file is none, or is damaged; as `each`.
pub fn walk<E: From<Failure>>(
    source: &mut dyn Read,
    mut each: impl FnMut(Found, u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut input = Input::new(source, VALUE_SIZE_MAX + GROWTH_MAX);
    let version = header(&mut input)?;
    if !is_known(version) {
        return Err(input.corrupt("a version that is not known").into());
    }
    let (mut db, mut expire_ms) = (0, None);
    loop {
        let next = input.u8()?;
        match next {
            word::END => break,
            word::DATABASE => db = input.length()?,
            word::EXPIRES_S => expire_ms = Some(i64::from(input.u32()?) * 1000),
            word::EXPIRES_MS => expire_ms = Some(input.i64()?),
            word::FUNCTION => each(Found::Function(input.string()?), input.offset())?,
            word::NOTE => {
                let note = Found::Note(input.string()?, input.string()?);
                each(note, input.offset())?;
            }
            word::SLOT_INFO..=word::SIZES => skip(&mut input, next)?,
            kind => {
                let key = input.string()?;
                let value = load::value(&mut input, kind_of(version, kind))?;
                let found = Found::Key { db, key, value, expire_ms: expire_ms.take() };
                each(found, input.offset())?;
            }
        }
    }
    Ok(check(&mut input, version)?)
}

/// Compares the checksum behind the last word with that of what was read.
pub(super) fn check(input: &mut Input<'_>, version: u16) -> Result<(), Failure> {
    let crc = input.crc();
    // Versions before had none, and who switched it off wrote zero.
    let said = if version < 5 { 0 } else { input.u64()? };
    match said == 0 || said == crc {
        true => Ok(()),
        false => Err(Failure::Checksum { offset: input.offset() }),
    }
}

pub(super) fn header(input: &mut Input<'_>) -> Result<u16, Failure> {
    let header: [u8; 9] = input.array()?;
    let digits = header.strip_prefix(b"REDIS").or_else(|| header.strip_prefix(b"VALKEY"));
    let digits = digits.and_then(|text| std::str::from_utf8(text).ok());
    let version = digits.and_then(|digits| digits.parse::<u16>().ok());
    version.filter(|version| 0 < *version).ok_or_else(|| input.corrupt("no dump of Redis"))
}

/// Skips what is not about keys.
pub(super) fn skip(input: &mut Input<'_>, word: u8) -> Result<(), Failure> {
    match word {
        word::SIZES => {
            input.length()?;
            input.length()?;
        }
        word::SLOT_INFO => {
            for _ in 0..3 {
                input.length()?;
            }
        }
        word::IDLE => {
            input.length()?;
        }
        word::FREQUENCY => {
            input.u8()?;
        }
        word::MODULE => load::skip_module(input)?,
        _ => return Err(input.corrupt("unknown word")),
    }
    Ok(())
}
