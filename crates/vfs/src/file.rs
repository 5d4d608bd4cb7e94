//! A file while it is written, and one that is read here and there. There is no other way to change
//! a file than to append to it.

use crate::error::Result;

/// A file being written, once, from start to end.
///
/// After an error of either method the bytes on the disk are unknown, and asking the system again
/// would not tell: a second `fsync` may succeed although the first one dropped the data. So the
/// handle refuses everything from then on.
pub trait AppendFile: Send {
    /// Appends; the bytes are readable at once and durable after [`AppendFile::sync`].
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes all that was appended durable (data and size).
    fn sync(&mut self) -> Result<()>;

    /// Bytes appended so far.
    fn size(&self) -> u64;
}

/// A sealed file that is read here and there, without being mapped: what is read of it takes no
/// memory of this process afterwards.
pub trait ReadFile: Send + Sync {
    /// Reads from `offset` on as far as there are bytes and room; returns how many.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;

    /// The same if the system has it in memory; none when the disk would have to be waited for, or
    /// when that cannot be told.
    fn read_cached(&self, _offset: u64, _into: &mut [u8]) -> Result<Option<usize>> {
        Ok(None)
    }
}
