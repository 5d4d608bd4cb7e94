//! How a keyspace is kept.

use crate::value::stream::BlockLimits;
use std::time::Duration;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvDurability {
    /// When it is on disk.
    Always,
    /// At once; it is on disk a second later.
    #[default]
    EverySecond,
    /// At once; it is on disk when the log next writes.
    No,
}

/// Earlier keys of a data directory, as the caller knows of them from elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlierKeys {
    /// There may be none: a folder without files is a new keyspace.
    #[default]
    Unknown,
    /// There were keys, and their manifest is gone: nothing opens until a repair accepts the loss.
    Lost,
}

/// As [`KvConfig::databases`]: the number that the keyspace has. Nothing expires: no client is served.
pub const DATABASES_AS_THERE: usize = 0;
/// Bytes of memory above which a value does not grow, if nothing else is said.
pub const VALUE_SIZE_MAX: usize = 2 << 30;
/// Bytes by which one command lets a value grow, if nothing else is said: all of a command is not more
/// than 1 GiB, and takes some more memory than its bytes.
pub const GROWTH_MAX: usize = 5 << 28;

/// Settings of a keyspace.
#[derive(Clone, Debug)]
pub struct KvConfig {
    /// Bytes that the index and hot keys may take; beyond it cold keys go to disk.
    pub memory_max: usize,
    /// When a write is acknowledged.
    pub durability: KvDurability,
    /// What is known of earlier keys in the data directory.
    pub earlier_keys: EarlierKeys,
    /// Databases, as `SELECT` numbers them; or [`DATABASES_AS_THERE`].
    pub databases: usize,
    /// Bytes of the log after which all that is not on disk is saved, so that the log can be cut.
    pub checkpoint_log_size: u64,
    /// Bytes of the log, of all its consumers, since the first record of keys that no checkpoint has:
    /// from there on a checkpoint is made, however little of it is the keys', so that the log can be
    /// cut. Twice the size of the index that a checkpoint writes, if that is more.
    pub retained_log_size: u64,
    /// Time after which a record of keys is in a checkpoint.
    pub retained_log_age: Duration,
    /// Bytes of a record of the log above which it is written in pieces: far below the most that the
    /// log takes, and never refused for good.
    pub piece_size: usize,
    /// Bytes of memory above which a value does not grow. By one command it may become larger.
    pub value_size_max: usize,
    /// Bytes by how much, at most. Both together, and a key, have to be below 4 GiB, which bounds a
    /// record.
    pub growth_max: usize,
    /// Bytes of a segment of cold values.
    pub segment_size: usize,
    /// Bytes of a value from which on it is written down while commands go on, if it is a large
    /// collection: reading it back takes as long as some thousand small ones.
    pub large_size: u32,
    /// Values from which a dictionary is made.
    pub dictionary_samples: usize,
    /// Whether values on disk are compressed.
    pub is_compressed: bool,
    /// How long they rest there before: most that are overwritten are so soon.
    pub coding_rest: Duration,
    /// Where blocks of a stream's entries end.
    pub stream_blocks: BlockLimits,
    /// How often the keeper looks for work.
    pub keeper_interval: Duration,
    /// Whether a thread keeps the keyspace; tests call [`crate::Kv::keep`] themselves.
    pub background: bool,
}

impl Default for KvConfig {
    fn default() -> KvConfig {
        KvConfig {
            memory_max: 256 << 20,
            durability: KvDurability::default(),
            earlier_keys: EarlierKeys::default(),
            databases: 16,
            checkpoint_log_size: 256 << 20,
            retained_log_size: 256 << 20,
            retained_log_age: Duration::from_secs(3600),
            piece_size: 16 << 20,
            value_size_max: VALUE_SIZE_MAX,
            growth_max: GROWTH_MAX,
            segment_size: 16 << 20,
            large_size: 1 << 20,
            dictionary_samples: 1000,
            is_compressed: true,
            coding_rest: Duration::from_secs(5),
            stream_blocks: BlockLimits::default(),
            keeper_interval: Duration::from_millis(100),
            background: true,
        }
    }
}
