//! What a program must know to read this store rightly, beyond the versions of its files.
//!
//! A version of a file tells an older program that it cannot read those bytes. Some things change
//! what sound bytes mean: samples that are numbers of a dictionary look to an older program like
//! measured values. A store that has such a thing says so in [`crate::base::directory::partition_length`]'s file
//! before the first of it is durable, and a program that does not know the word does not open it.

use crate::base::directory::partition_length::{self, LengthFile};
use crate::base::period::PartitionLength;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use vfs::Vfs;

/// Something that a store may have, and that an older program would misread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Metrics that end in `:low53` have the low bits of another's samples.
    Integers,
    /// The schema of InfluxDB data is in schema records, and no longer in the table of metadata.
    Schema,
    /// Samples of metrics that end in `:text` are numbers of a dictionary.
    Strings,
}

impl Need {
    /// All there are.
    pub const ALL: [Need; 3] = [Need::Integers, Need::Schema, Need::Strings];

    /// What it is called on disk, for ever: small letters and dashes.
    pub fn word(self) -> &'static str {
        match self {
            Need::Integers => "integers",
            Need::Schema => "schema",
            Need::Strings => "strings",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Need> {
        Need::ALL.into_iter().find(|need| need.word() == word)
    }
}

/// The needs of an open store.
#[derive(Debug)]
pub(crate) struct Needs {
    said: Mutex<BTreeSet<Need>>,
}

impl Needs {
    /// Those that the store's file says, if it can be read; who opens the store has noted damage.
    ///
    /// # Errors
    /// [`Error::UnknownNeed`] and [`Error::UnknownVersion`].
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Needs> {
        let said = match partition_length::read(vfs, dir) {
            Ok(file) => file.map(|file| file.needs).unwrap_or_default(),
            Err(error) if error.is_unknown_version() => return Err(error),
            Err(_) => BTreeSet::new(),
        };
        Ok(Needs { said: Mutex::new(said) })
    }

    /// Whether the store has this.
    pub fn has(&self, need: Need) -> bool {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).contains(&need)
    }

    /// Makes it durable that the store has this, once.
    ///
    /// # Errors
    /// On I/O errors; then nothing of it must be written, and the next call tries again.
    pub fn add(
        &self,
        need: Need,
        vfs: &dyn Vfs,
        dir: &Path,
        length: PartitionLength,
    ) -> Result<()> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.contains(&need) {
            return Ok(());
        }
        let mut needs = said.clone();
        needs.insert(need);
        partition_length::write(vfs, dir, &LengthFile { length, needs })?;
        said.insert(need);
        Ok(())
    }
}

/// The words of a file's needs.
///
/// # Errors
/// [`Error::UnknownNeed`] for one that this program does not know.
pub(crate) fn parse_all<'a>(
    words: impl Iterator<Item = &'a str>,
    file: &Path,
) -> Result<BTreeSet<Need>> {
    let one = |word: &str| {
        let unknown = || Error::UnknownNeed { file: file.to_path_buf(), need: word.to_string() };
        Need::parse(word).ok_or_else(unknown)
    };
    words.map(one).collect()
}
