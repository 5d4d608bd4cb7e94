//! MurmurHash64A: the hash by which HyperLogLogs and bloom filters of other servers place elements.

const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The hash of bytes.
pub fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, tail) = bytes.as_chunks();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !tail.is_empty() {
        let word = tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}
