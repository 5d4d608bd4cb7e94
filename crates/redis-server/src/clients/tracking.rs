//! Clients that keep answers and are told when the keys they read have changed.
//!
//! By default the keys that a client reads are remembered for it, whatever the database, and
//! forgotten when it was told; in broadcast mode it is told of all keys that begin with its prefixes.

use kv::keyspace::Touched;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How a client is told of changes.
#[derive(Clone, Debug, Default)]
pub struct Tracking {
    /// The client that is told instead; 0 is the client itself.
    pub redirect: u64,
    /// Whether that client is gone.
    pub is_broken: bool,
    /// What it is told of.
    pub mode: Mode,
    /// Whether it is not told of its own changes.
    pub is_noloop: bool,
    /// What `CLIENT CACHING` said of the next command.
    pub next: Option<bool>,
    /// Prefixes of keys, in broadcast mode.
    pub prefixes: Vec<Vec<u8>>,
}

/// What a client is told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Keys that it read.
    #[default]
    Read,
    /// Those that it read after `CLIENT CACHING YES`.
    OptIn,
    /// Those that it read, but after `CLIENT CACHING NO`.
    OptOut,
    /// All keys with its prefixes.
    Broadcast,
}

/// Which keys which clients have read.
#[derive(Debug, Default)]
pub struct Table {
    /// By key.
    pub readers: HashMap<Box<[u8]>, BTreeSet<u64>>,
    /// Clients by prefix, in broadcast mode.
    pub prefixes: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    /// How many clients want to be told.
    pub clients: usize,
    /// Changes that those in broadcast mode are to hear of when the command is done.
    pub to_broadcast: Vec<Touched>,
}

impl Table {
    /// Keys and clients that are remembered.
    pub fn item_count(&self) -> usize {
        self.readers.values().map(BTreeSet::len).sum()
    }
}
