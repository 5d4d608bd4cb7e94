//! CRC-32 (IEEE 802.3) over a block: finds torn writes and rotten bits, not malice.

/// The checksum of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The same of bytes that come in pieces.
#[derive(Clone, Debug, Default)]
pub struct Crc32(crc32fast::Hasher);

impl Crc32 {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all pieces.
    pub fn finish(self) -> u32 {
        self.0.finalize()
    }
}
