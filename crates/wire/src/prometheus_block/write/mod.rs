//! Blocks as Prometheus writes them: the bytes of their files, for somebody who puts them there.
//!
//! Whoever writes a block has its series with their chunks first, then all strings and all series in their
//! order: the index has them sorted, and chunks stand in the order of their series.

pub mod chunks;
pub mod index;
pub mod meta;
pub mod pairs;
#[cfg(test)]
mod tests;

use crate::crc32c::crc32c;

/// The file of what was deleted: nothing.
pub fn no_tombstones() -> Vec<u8> {
    let mut bytes = super::tombstones::MAGIC.to_be_bytes().to_vec();
    bytes.push(super::tombstones::VERSION);
    bytes.extend_from_slice(&crc32c(&[]).to_be_bytes());
    bytes
}
