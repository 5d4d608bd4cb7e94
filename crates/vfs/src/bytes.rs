//! The bytes of a sealed file: a memory map on a real disk, a vector in tests.

use crate::error::Result;
use crate::file::ReadFile;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// What keeps bytes alive; they must never move or change while it lives.
pub trait Holder: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// Gives memory back that the system can fetch again; nothing by default.
    fn release(&self) {}

    /// How often reading failed so that zeros stand where the file's bytes should; see
    /// [`Bytes::faults`].
    fn faults(&self) -> u32 {
        0
    }
}

impl Holder for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The bytes of a sealed file (or of memory that plays one). Cheap to clone, `Deref` to `[u8]`.
#[derive(Clone)]
pub struct Bytes {
    holder: Arc<dyn Holder>,
}

impl Bytes {
    /// Bytes held in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Bytes {
        Bytes { holder: Arc::new(bytes) }
    }

    /// Bytes kept alive by whatever owns them.
    pub fn from_holder(holder: Arc<dyn Holder>) -> Bytes {
        Bytes { holder }
    }

    /// Lets the system take the pages of a map out of this process' memory until they are read
    /// again. Whoever reads a large file once, from start to end, calls it now and then.
    pub fn release(&self) {
        self.holder.release();
    }

    /// How many pages of a map the disk did not give: a bad sector, a file that was cut short.
    /// They read as zeros. Who decodes looks before and after, and takes for corrupt what it read
    /// in between when the number grew; from then on no checksum is believed to still hold.
    pub fn faults(&self) -> u32 {
        self.holder.faults()
    }

    /// Whether there was any.
    pub fn has_faulted(&self) -> bool {
        self.faults() != 0
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.holder.bytes()
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

impl ReadFile for Bytes {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.get(start..).unwrap_or_default();
        let size = rest.len().min(into.len());
        into[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }
}
