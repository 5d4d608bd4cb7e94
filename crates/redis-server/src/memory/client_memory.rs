//! Memory of clients' buffers, counted over all of them.
//!
//! Input that is not executed, answers that are not sent and messages that wait count against one
//! limit. Beyond it the clients with the largest buffers are closed, as `maxmemory-clients` of Redis
//! does. A message to many subscribers is one copy.

use crate::clients::client_state::State;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Share of the memory limit that clients' buffers may take.
pub const CLIENTS_SHARE: u64 = 4;
/// Buffers up to this size are not counted: every connection has some.
const UNCOUNTED_SIZE_MAX: usize = 32 << 10;

/// Bytes of all clients' buffers.
#[derive(Debug)]
pub struct ClientMemory {
    used: AtomicUsize,
    limit: usize,
    /// Bytes given back since that was last asked.
    released: AtomicUsize,
}

impl Default for ClientMemory {
    fn default() -> ClientMemory {
        ClientMemory::new(usize::MAX)
    }
}

impl ClientMemory {
    /// Creates the count with its limit in bytes.
    pub fn new(limit: usize) -> ClientMemory {
        ClientMemory { used: AtomicUsize::new(0), limit, released: AtomicUsize::new(0) }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Bytes beyond the limit.
    pub fn excess(&self) -> usize {
        self.used().saturating_sub(self.limit)
    }

    /// Bytes given back since the last call.
    pub fn take_released(&self) -> usize {
        self.released.swap(0, Relaxed)
    }

    /// Replaces a counted size by another.
    pub fn replace(&self, before: usize, after: usize) {
        if before < after {
            self.used.fetch_add(after - before, Relaxed);
        } else if after < before {
            self.used.fetch_sub(before - after, Relaxed);
            self.released.fetch_add(before - after, Relaxed);
        }
    }
}

/// Buffers of one connection; they count until this is dropped.
pub struct Charge {
    memory: Arc<ClientMemory>,
    state: Arc<State>,
}

impl Charge {
    /// Counts nothing yet.
    pub fn new(memory: Arc<ClientMemory>, state: Arc<State>) -> Charge {
        Charge { memory, state }
    }

    /// Sets the size of the buffers. Returns whether all clients are beyond the limit now.
    pub fn set(&self, size: usize) -> bool {
        let size = if size <= UNCOUNTED_SIZE_MAX { 0 } else { size };
        let before = self.state.buffered.load(Relaxed);
        if size == before {
            return false;
        }
        self.state.buffered.store(size, Relaxed);
        self.memory.replace(before, size);
        before < size && 0 < self.memory.excess()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A message that several clients get.
#[derive(Debug)]
pub struct SharedMessage {
    bytes: Vec<u8>,
    memory: Arc<ClientMemory>,
}

impl SharedMessage {
    /// Counts the message until its last client has it.
    pub fn new(bytes: Vec<u8>, memory: &Arc<ClientMemory>) -> Arc<SharedMessage> {
        memory.replace(0, bytes.len());
        Arc::new(SharedMessage { bytes, memory: memory.clone() })
    }
}

impl Deref for SharedMessage {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for SharedMessage {
    fn drop(&mut self) {
        self.memory.replace(self.bytes.len(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_count_until_they_are_dropped() {
        let memory = Arc::new(ClientMemory::new(100_000));
        let charge = |size| {
            let charge = Charge::new(memory.clone(), Arc::default());
            let is_over = charge.set(size);
            (charge, is_over)
        };
        let (small, is_over) = charge(UNCOUNTED_SIZE_MAX);
        assert!(!is_over && memory.used() == 0);
        let (first, is_over) = charge(60_000);
        assert!(!is_over);
        let (second, is_over) = charge(60_000);
        assert!(is_over && memory.excess() == 20_000);
        assert!(!second.set(40_000) && memory.excess() == 0);
        let message = SharedMessage::new(vec![0; 10_000], &memory);
        let copy = message.clone();
        assert_eq!(memory.used(), 110_000);
        drop((message, small, first));
        assert_eq!((memory.used(), &copy[..2]), (50_000, &[0, 0][..]));
        drop((copy, second));
        assert_eq!((memory.used(), memory.take_released()), (0, 130_000));
    }
}
