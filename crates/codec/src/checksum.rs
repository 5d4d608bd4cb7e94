//! CRC-32 (IEEE 802.3) over a block: finds torn writes and rotten bits, not malice.

/// The checksum of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
