//! A file while it is written. There is no other way to change a file than to append to it.

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
