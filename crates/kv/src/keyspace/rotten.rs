//! Records that rotted on disk: who comes upon one notes it, so that it is said.

use super::Keyspace;
use crate::error::{CommandError, Error};
use crate::index::{Address, Place};
use std::collections::HashSet;
use std::path::Path;

/// Records that are told apart; more are not counted.
const FOUND_MAX: usize = 100_000;
/// Records that are told in words between two calls.
const NEWS_MAX: usize = 16;

/// Records that were found to be rotten since the start.
#[derive(Debug, Default)]
pub(crate) struct Rotten {
    found: HashSet<Address>,
    news: Vec<String>,
    /// Records of the log that were left out, in words.
    left_out: Vec<String>,
}

impl Keyspace {
    /// Notes that a record could not be read, if it rotted; what passes is not noted.
    pub(super) fn note_unreadable(&mut self, address: Address, error: &Error) {
        let is_rotten = matches!(error, Error::Corrupt { .. });
        if is_rotten && self.rotten.found.len() < FOUND_MAX && self.rotten.found.insert(address) {
            self.stats.rotten += 1;
            if self.rotten.news.len() < NEWS_MAX {
                self.rotten.news.push(error.to_string());
            }
        }
    }

    /// Notes a record of the log that is left out.
    pub(crate) fn note_left_out(&mut self, what: String) {
        if self.rotten.left_out.len() < NEWS_MAX {
            self.rotten.left_out.push(what);
        }
    }

    /// Unreadable records.
    pub(crate) fn left_out(&self) -> &[String] {
        &self.rotten.left_out
    }

    /// Notes that so many records of a segment cannot be moved out of it.
    pub(crate) fn note_rotten_segment(&mut self, path: &Path, count: u32) {
        if self.rotten.news.len() < NEWS_MAX {
            let path = path.display();
            self.rotten.news.push(format!("{path}: {count} keys have no whole record there"));
        }
    }

    /// What a record that cannot be read is to somebody who wants its value.
    pub(super) fn unreadable_at(&mut self, address: Address, error: Error) -> CommandError {
        self.note_unreadable(address, &error);
        super::unreadable(error)
    }

    /// Which records were found to be rotten since the last call, in words.
    pub fn take_rotten_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.rotten.news)
    }

    /// Takes a key out whose record cannot be read, and which is to go anyway. Returns whether there
    /// was one. Other keys' records are told apart by 48 bits of hash.
    pub(crate) fn forget_unreadable(&mut self, db: u8, key: &[u8]) -> bool {
        let hash = self.hash(key);
        let mut cold = Vec::new();
        self.dbs[usize::from(db)].find(hash, |place| {
            if let Place::Cold(address) = place {
                cold.push(address);
            }
            false
        });
        cold.retain(|address| self.cold.read(*address).is_err());
        for address in &cold {
            self.dbs[usize::from(db)].remove(hash, Place::Cold(*address));
            self.cold.release(*address);
        }
        if !cold.is_empty() {
            self.changes += 1;
            self.tell(db, key);
        }
        !cold.is_empty()
    }
}
