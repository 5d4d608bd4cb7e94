//! What a walk found: counts, problems and notes.

use crate::{Error, PartitionLength};
use std::fmt;
use std::path::{Path, PathBuf};

/// Problems, or notes, that a report lists; those beyond are counted.
pub const LISTED_MAX: usize = 10_000;

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, or the directory.
    pub file: PathBuf,
    /// What is with it.
    pub what: String,
}

impl Finding {
    /// Whether the sentence has these words.
    pub fn contains(&self, words: &str) -> bool {
        self.to_string().contains(words)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.what)
    }
}

/// A finding is the sentence that it prints.
impl PartialEq<String> for Finding {
    fn eq(&self, sentence: &String) -> bool {
        let printed = self.to_string();
        printed == *sentence
    }
}

/// What walking every checksum and invariant found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Files read.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Samples decoded.
    pub samples: u64,
    /// How long partitions are, where the data says so.
    pub partition_length: Option<PartitionLength>,
    /// Series seen, summed over partitions.
    pub series: u64,
    /// Keys of a keyspace beside the store, where the caller has looked at one.
    pub keys: u64,
    /// Ordinary tables beside the store, where the caller has looked at them.
    pub tables: u64,
    /// Their rows.
    pub table_rows: u64,
    /// What is wrong; empty is good.
    pub problems: Vec<Finding>,
    /// Problems that did not fit the list.
    pub problems_unlisted: u64,
    /// What is odd and costs nothing.
    pub notes: Vec<Finding>,
}

impl VerifyReport {
    /// How many problems there are.
    pub fn problem_count(&self) -> u64 {
        self.problems.len() as u64 + self.problems_unlisted
    }

    pub(crate) fn problem(&mut self, file: &Path, what: impl Into<String>) {
        if LISTED_MAX <= self.problems.len() {
            self.problems_unlisted += 1;
            return;
        }
        self.problems.push(Finding { file: file.to_path_buf(), what: what.into() });
    }

    pub(crate) fn note(&mut self, file: &Path, what: impl Into<String>) {
        if self.notes.len() < LISTED_MAX {
            self.notes.push(Finding { file: file.to_path_buf(), what: what.into() });
        }
    }

    /// A problem in the words of an error about a file.
    pub(crate) fn error(&mut self, file: &Path, error: &Error) {
        self.problem(file, error.without_file());
    }
}
