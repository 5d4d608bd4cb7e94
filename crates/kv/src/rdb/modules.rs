//! A dump file, read for the values of modules: other keys are passed over, and their bytes are not even
//! looked at but for the checksum.
//!
//! A value is words, one after the other; whoever reads them need not go to their end. Types of values that
//! came with later versions of Redis are an error; later versions that have none of those are read.

use super::file::{self, word};
use super::input::{Failure, Input};
use super::{kind, load};
use crate::config::VALUE_SIZE_MAX;
use std::io::Read;

/// Bytes of a word, and of a key: those of a key of time series are some thousands.
const WORD_SIZE_MAX: usize = 16 << 20;
/// What stands for six bits of a module's name.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Letters of a name, and bits of a version.
const NAME_LEN: u32 = 9;
const VERSION_BITS: u32 = 10;

/// A key whose value is a module's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleKey {
    /// Its database.
    pub db: u64,
    /// The key.
    pub key: Vec<u8>,
    /// When it expires, in milliseconds since the epoch.
    pub expire_ms: Option<i64>,
    /// What the module calls the type.
    pub module: String,
    /// How it writes it.
    pub version: u16,
    /// Where in the file it begins, with what is said of it before; [`Modules::resume`] goes on there.
    pub offset: u64,
}

/// A word of a module's value.
#[derive(Clone, Debug, PartialEq)]
pub enum ModuleWord {
    /// A whole number, with or without a sign.
    Number(u64),
    /// A float.
    Double(f64),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The values of modules in a file.
pub struct Modules<'a> {
    input: Input<'a>,
    version: u16,
    db: u64,
    /// Whether words of the last key are left.
    is_within: bool,
    /// Bytes that stand before the first that was read.
    before: u64,
    skipped: u64,
}

impl<'a> Modules<'a> {
    /// Those of a file from its beginning.
    ///
    /// # Errors
    /// When it is no dump.
    pub fn begin(source: &'a mut dyn Read) -> Result<Modules<'a>, Failure> {
        let mut input = Input::new(source, VALUE_SIZE_MAX);
        let version = file::header(&mut input)?;
        Ok(Modules { input, version, db: 0, is_within: false, before: 0, skipped: 0 })
    }

    /// Those from a key on, of that database: `source` is at the byte that [`ModuleKey::offset`] named. The
    /// checksum is not looked at.
    pub fn resume(source: &'a mut dyn Read, offset: u64, db: u64) -> Modules<'a> {
        let input = Input::new(source, VALUE_SIZE_MAX);
        Modules { input, version: 0, db, is_within: false, before: offset, skipped: 0 }
    }

    /// How many keys of other types were passed over.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many bytes of the file stand before what comes next.
    pub fn offset(&self) -> u64 {
        self.before + self.input.offset()
    }

    /// The next key; none at the end, where the checksum was right.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn next_key(&mut self) -> Result<Option<ModuleKey>, Failure> {
        self.finish_key()?;
        self.find().map_err(|failure| self.placed(failure))
    }

    /// The next word of the key's value; none at its end.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn next_word(&mut self) -> Result<Option<ModuleWord>, Failure> {
        if !self.is_within {
            return Ok(None);
        }
        let word = self.read_word().map_err(|failure| self.placed(failure))?;
        self.is_within = word.is_some();
        Ok(word)
    }

    /// Passes over what is left of the key's value.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn finish_key(&mut self) -> Result<(), Failure> {
        while self.is_within {
            let skipped = load::skip_word(&mut self.input);
            self.is_within = skipped.map_err(|failure| self.placed(failure))?;
        }
        Ok(())
    }

    /// An error with its place in the file.
    fn placed(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Corrupt { offset, what } => {
                Failure::Corrupt { offset: self.before + offset, what }
            }
            other => other,
        }
    }

    fn read_word(&mut self) -> Result<Option<ModuleWord>, Failure> {
        let input = &mut self.input;
        Ok(Some(match input.length()? {
            load::word::END => return Ok(None),
            load::word::SIGNED | load::word::UNSIGNED => ModuleWord::Number(input.length()?),
            load::word::FLOAT => ModuleWord::Double(f64::from(f32::from_bits(input.u32()?))),
            load::word::DOUBLE => ModuleWord::Double(f64::from_bits(input.u64()?)),
            load::word::STRING => ModuleWord::Bytes(input.string_up_to(WORD_SIZE_MAX)?),
            _ => return Err(input.corrupt("unknown word of a module")),
        }))
    }

    fn find(&mut self) -> Result<Option<ModuleKey>, Failure> {
        let (mut offset, mut expire_ms) = (self.offset(), None);
        loop {
            let input = &mut self.input;
            match input.u8()? {
                word::END => {
                    file::check(input, self.version)?;
                    return Ok(None);
                }
                word::DATABASE => self.db = input.length()?,
                word::EXPIRES_S => expire_ms = Some(i64::from(input.u32()?) * 1000),
                word::EXPIRES_MS => expire_ms = Some(input.i64()?),
                word::FUNCTION => input.skip_string()?,
                word::NOTE => {
                    input.skip_string()?;
                    input.skip_string()?;
                }
                next @ word::SLOT_INFO..=word::SIZES => file::skip(input, next)?,
                kind::MODULE_2 => {
                    let key = input.string_up_to(WORD_SIZE_MAX)?;
                    let (module, version) = name_of(input.length()?);
                    self.is_within = true;
                    let db = self.db;
                    return Ok(Some(ModuleKey { db, key, expire_ms, module, version, offset }));
                }
                kind => {
                    input.skip_string()?;
                    load::skip(input, kind)?;
                    self.skipped += 1;
                    (offset, expire_ms) = (self.offset(), None);
                }
            }
        }
    }
}

/// The name and the version that stand in the number of a module's type.
fn name_of(number: u64) -> (String, u16) {
    let letter = |at: u32| {
        let bits = number >> (VERSION_BITS + 6 * (NAME_LEN - 1 - at)) & 0x3f;
        LETTERS.get(bits as usize).map_or(' ', |letter| char::from(*letter))
    };
    ((0..NAME_LEN).map(letter).collect(), (number & ((1 << VERSION_BITS) - 1)) as u16)
}
