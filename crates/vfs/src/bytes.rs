//! The bytes of a sealed file: a memory map on a real disk, a vector in tests.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of a sealed file (or of memory that plays one). Cheap to clone, `Deref` to `[u8]`.
#[derive(Clone)]
pub struct Bytes {
    /// Keeps the map or vector alive; the slice must never move or change while it lives.
    holder: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

impl Bytes {
    /// Bytes held in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Bytes {
        Bytes { holder: Arc::new(bytes) }
    }

    /// Bytes kept alive by whatever owns them.
    pub fn from_holder(holder: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Bytes {
        Bytes { holder }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.holder).as_ref()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes::from_vec(bytes)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.len())
    }
}
