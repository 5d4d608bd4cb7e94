//! State of a connection that other connections read.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize};

/// The last command of a client that has said none.
pub const NO_COMMAND: usize = usize::MAX;

/// What a connection says of itself while it works; written by it alone, read by others.
#[derive(Debug)]
pub struct State {
    /// Its database.
    pub db: AtomicU8,
    /// When it last said something, in milliseconds since the epoch.
    pub active_ms: AtomicI64,
    /// The number of its last command.
    pub last_command: AtomicUsize,
    /// Commands since `MULTI`; -1 without it.
    pub queued: AtomicI64,
    /// Channels that it listens to.
    pub channels: AtomicUsize,
    /// Patterns that it listens to.
    pub patterns: AtomicUsize,
    /// Channels of sharded publishing that it listens to.
    pub shard_channels: AtomicUsize,
    /// Whether a command of its waits.
    pub is_blocked: AtomicBool,
    /// Whether it watches a key.
    pub is_watching: AtomicBool,
    /// Whether it is a replica of this server.
    pub is_replica: AtomicBool,
    /// Whether this server is a replica of it.
    pub is_primary: AtomicBool,
    /// Bytes that it has sent and that are not executed yet.
    pub query_size: AtomicUsize,
    /// Bytes of its buffers, as they count among all clients'.
    pub buffered: AtomicUsize,
    /// Bytes that it sent.
    pub received: AtomicU64,
    /// Bytes that it got.
    pub sent: AtomicU64,
    /// Commands that it had executed.
    pub commands: AtomicU64,
}

impl Default for State {
    fn default() -> State {
        State {
            db: AtomicU8::new(0),
            active_ms: AtomicI64::new(0),
            last_command: AtomicUsize::new(NO_COMMAND),
            queued: AtomicI64::new(-1),
            channels: AtomicUsize::new(0),
            patterns: AtomicUsize::new(0),
            shard_channels: AtomicUsize::new(0),
            is_blocked: AtomicBool::new(false),
            is_watching: AtomicBool::new(false),
            is_replica: AtomicBool::new(false),
            is_primary: AtomicBool::new(false),
            query_size: AtomicUsize::new(0),
            buffered: AtomicUsize::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            commands: AtomicU64::new(0),
        }
    }
}
