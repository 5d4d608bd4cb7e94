//! A client as others see it: where to leave bytes for it, what it is doing, and how to close it.

use super::tracking::Tracking;
use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Bytes that may wait for a client that does not read, of messages that it did not ask for one by
/// one; beyond it the client is closed.
const OUTBOX_SIZE_MAX: usize = 32 << 20;
/// The last command of a client that has said none.
pub const NO_COMMAND: usize = usize::MAX;

/// Where bytes are left for a client by others than its own connection.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Mutex<Vec<u8>>,
    /// Whether something was left or it was closed since that was last asked; read once a command.
    has_news: AtomicBool,
    is_closed: AtomicBool,
    /// Told when there is something new.
    pub wake: Notify,
}

impl Outbox {
    /// Leaves bytes.
    pub fn leave(&self, bytes: &[u8]) {
        let mut left = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if OUTBOX_SIZE_MAX < left.len() + bytes.len() {
            left.clear();
            self.is_closed.store(true, Relaxed);
        } else {
            left.extend_from_slice(bytes);
        }
        self.has_news.store(true, Relaxed);
        drop(left);
        self.wake.notify_one();
    }

    /// Whether something was left or it was closed since this was last asked, by anybody whom a
    /// lock that the caller holds has let go on before.
    pub fn has_news(&self) -> bool {
        self.has_news.load(Relaxed) && self.has_news.swap(false, Relaxed)
    }

    /// Takes what was left.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Has the connection closed once what was left is sent.
    pub fn close(&self) {
        self.is_closed.store(true, Relaxed);
        self.has_news.store(true, Relaxed);
        self.wake.notify_one();
    }

    /// Whether it is to be closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }
}

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
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            commands: AtomicU64::new(0),
        }
    }
}

/// A client as the hub knows it.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its number, never given out again.
    pub id: u64,
    /// Who is at the other end.
    pub peer: Option<SocketAddr>,
    /// Our end.
    pub local: SocketAddr,
    /// Where bytes are left for it.
    pub outbox: Arc<Outbox>,
    /// Whether a key that it watches has changed.
    pub is_dirty: Arc<AtomicBool>,
    /// What it is doing.
    pub state: Arc<State>,
    /// The version of its protocol.
    pub version: u8,
    /// The name that it gave itself.
    pub name: Vec<u8>,
    /// What its library is called.
    pub lib_name: Vec<u8>,
    /// And its version.
    pub lib_version: Vec<u8>,
    /// The user that it said it is.
    pub user: Arc<[u8]>,
    /// When it came, in milliseconds since the epoch.
    pub since_ms: i64,
    /// How it is told of changes, if it wants to be.
    pub tracking: Option<Tracking>,
    /// Whether it is shown all commands.
    pub is_monitor: bool,
    /// Whether it is not to be closed for want of memory.
    pub is_kept: bool,
    /// Whether its reads leave no trace.
    pub is_traceless: bool,
}

impl Client {
    /// The other end, as text.
    pub fn address(&self) -> String {
        self.peer.map_or_else(|| "?:0".to_owned(), |peer| peer.to_string())
    }

    /// How many channels and patterns it listens to.
    pub fn subscription_count(&self) -> usize {
        let state = &self.state;
        state.channels.load(Relaxed)
            + state.patterns.load(Relaxed)
            + state.shard_channels.load(Relaxed)
    }

    /// The class of clients that it belongs to.
    pub fn class(&self) -> Class {
        if self.state.is_replica.load(Relaxed) {
            Class::Replica
        } else if self.state.is_primary.load(Relaxed) {
            Class::Master
        } else if 0 < self.subscription_count() && !self.is_monitor {
            Class::PubSub
        } else {
            Class::Normal
        }
    }
}

/// A class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Those that command.
    Normal,
    /// Those that listen.
    PubSub,
    /// Replicas of this server.
    Replica,
    /// What this server is a replica of.
    Master,
}

impl Class {
    /// The class of that name.
    pub fn named(name: &[u8]) -> Option<Class> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"normal" => Class::Normal,
            b"pubsub" => Class::PubSub,
            b"replica" | b"slave" => Class::Replica,
            b"master" => Class::Master,
            _ => return None,
        })
    }
}
