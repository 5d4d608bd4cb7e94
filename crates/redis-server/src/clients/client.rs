//! A client as others see it: where to leave bytes for it, what it is doing, and how to close it.

use super::client_state::State;
use super::tracking::Tracking;
use crate::memory::client_memory::{ClientMemory, SharedMessage};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes that may wait for a client that does not read, of messages that it did not ask for one by
/// one; beyond it the client is closed.
const OUTBOX_SIZE_MAX: usize = 32 << 20;
/// Messages from this size on are shared by all clients that get them.
const SHARED_SIZE_MIN: usize = 16 << 10;

/// Bytes for a client.
#[derive(Debug)]
pub enum Piece {
    /// Bytes for this client alone.
    Own(Vec<u8>),
    /// Bytes that several clients share.
    Shared(Arc<SharedMessage>),
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Piece::Own(bytes) => bytes,
            Piece::Shared(message) => message,
        }
    }
}

/// Bytes that wait for a client.
#[derive(Debug, Default)]
struct Pending {
    pieces: VecDeque<Piece>,
    /// Bytes of all pieces, and of those that are the client's own.
    size: usize,
    own_size: usize,
}

impl Pending {
    fn push(&mut self, bytes: &[u8]) {
        match self.pieces.back_mut() {
            Some(Piece::Own(own)) => own.extend_from_slice(bytes),
            _ => self.pieces.push_back(Piece::Own(bytes.to_vec())),
        }
        self.size += bytes.len();
        self.own_size += bytes.len();
    }

    fn push_shared(&mut self, message: &Arc<SharedMessage>) {
        if message.len() < SHARED_SIZE_MIN {
            return self.push(message);
        }
        self.size += message.len();
        self.pieces.push_back(Piece::Shared(message.clone()));
    }
}

/// Where bytes are left for a client by others than its own connection.
#[derive(Debug, Default)]
pub struct Outbox {
    pending: Mutex<Pending>,
    memory: Arc<ClientMemory>,
    /// Whether the client is closed for its buffers: nothing more is sent.
    is_evicted: AtomicBool,
    /// Whether something was left or it was closed since that was last asked; read once a command.
    has_news: AtomicBool,
    is_closed: AtomicBool,
    /// Told when there is something new.
    pub wake: Notify,
}

impl Outbox {
    /// Creates an empty one, whose bytes count among all clients'.
    pub fn new(memory: Arc<ClientMemory>) -> Outbox {
        Outbox {
            pending: Mutex::default(),
            memory,
            is_evicted: AtomicBool::new(false),
            has_news: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            wake: Notify::new(),
        }
    }

    /// Leaves bytes.
    pub fn leave(&self, bytes: &[u8]) {
        self.leave_with(bytes.len(), |pending| pending.push(bytes));
    }

    /// Leaves a message that other clients get, too.
    pub fn leave_shared(&self, message: &Arc<SharedMessage>) {
        self.leave_with(message.len(), |pending| pending.push_shared(message));
    }

    fn leave_with(&self, size: usize, push: impl FnOnce(&mut Pending)) {
        let mut pending = self.pending();
        let before = pending.own_size;
        if OUTBOX_SIZE_MAX < pending.size + size {
            *pending = Pending::default();
            self.is_closed.store(true, Relaxed);
        } else {
            push(&mut pending);
        }
        self.memory.replace(before, pending.own_size);
        self.has_news.store(true, Relaxed);
        drop(pending);
        self.wake.notify_one();
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something was left or it was closed since this was last asked, by anybody whom a
    /// lock that the caller holds has let go on before.
    pub fn has_news(&self) -> bool {
        self.has_news.load(Relaxed) && self.has_news.swap(false, Relaxed)
    }

    /// Takes what was left.
    pub fn take(&self) -> VecDeque<Piece> {
        let taken = std::mem::take(&mut *self.pending());
        self.memory.replace(taken.own_size, 0);
        taken.pieces
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.pending().size
    }

    /// Has the connection closed at once: its buffers are too large.
    pub fn evict(&self) {
        self.is_evicted.store(true, Relaxed);
        self.close();
    }

    /// Whether nothing more is to be sent.
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Relaxed)
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

impl Drop for Outbox {
    fn drop(&mut self) {
        self.take();
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

    /// Bytes of its buffers and of what waits for it.
    pub fn buffered(&self) -> usize {
        self.state.buffered.load(Relaxed) + self.outbox.len()
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
