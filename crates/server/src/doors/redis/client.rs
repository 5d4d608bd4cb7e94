//! A client as others see it: where to leave bytes for it, and how to close it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Bytes that may wait for a client that does not read, of messages that it did not ask for one by
/// one; beyond it the client is closed.
const OUTBOX_SIZE_MAX: usize = 32 << 20;

/// Where bytes are left for a client by others than its own connection.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Mutex<Vec<u8>>,
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
            self.is_closed.store(true, Ordering::Relaxed);
        } else {
            left.extend_from_slice(bytes);
        }
        drop(left);
        self.wake.notify_one();
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
        self.is_closed.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Whether it is to be closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}

/// A client as the hub knows it.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its number, never given out again.
    pub id: u64,
    /// Who is at the other end.
    pub peer: Option<SocketAddr>,
    /// Where bytes are left for it.
    pub outbox: Arc<Outbox>,
    /// Whether a key that it watches has changed.
    pub is_dirty: Arc<AtomicBool>,
    /// The version of its protocol.
    pub version: u8,
    /// The name that it gave itself.
    pub name: Vec<u8>,
    /// Its database.
    pub db: u8,
    /// When it came, in milliseconds since the epoch.
    pub since_ms: i64,
    /// When it last said something.
    pub active_ms: i64,
    /// Its last command.
    pub last_command: &'static str,
}
