//! Buffers that bodies were received in, to be used again.

use std::sync::Mutex;

/// Free buffers.
#[derive(Default)]
pub struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

/// Buffers kept, and bytes of each: 32 MiB of memory at most, enough for the usual batches.
const BUFFERS_MAX: usize = 8;
const BUFFER_SIZE_MAX: usize = 4 << 20;

impl Buffers {
    /// An empty buffer, with room if one was given back.
    pub fn take(&self) -> Vec<u8> {
        self.free.lock().expect("no panic while held").pop().unwrap_or_default()
    }

    /// Keeps a buffer's memory for the next body.
    pub fn give_back(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() == 0 || BUFFER_SIZE_MAX < buffer.capacity() {
            return;
        }
        buffer.clear();
        let mut free = self.free.lock().expect("no panic while held");
        if free.len() < BUFFERS_MAX {
            free.push(buffer);
        }
    }
}
