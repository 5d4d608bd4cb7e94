//! SHA-1, by which scripts are named. FIPS 180-4, section 6.1. Not for secrets.

/// The digest as 40 lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(bytes: &[u8]) -> [u8; 20] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().for_each(|block| mix(&mut state, block));
    // The end: one bit, zeros, and the length in bits.
    let mut tail = rest.to_vec();
    tail.push(0x80);
    while tail.len() % 64 != 56 {
        tail.push(0);
    }
    tail.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_be_bytes());
    tail.as_chunks::<64>().0.iter().for_each(|block| mix(&mut state, block));
    let mut out = [0; 20];
    let (words, _) = out.as_chunks_mut::<4>();
    words.iter_mut().zip(state).for_each(|(place, word)| *place = word.to_be_bytes());
    out
}

fn mix(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..80 {
        words[at] =
            (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.iter().enumerate() {
        let (f, k) = match at {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e);
        let next = next.wrapping_add(k).wrapping_add(*word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (place, add) in state.iter_mut().zip([a, b, c, d, e]) {
        *place = place.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn the_standards_examples() {
        assert_eq!(hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(long), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(hex(&[b'a'; 1_000_000]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }
}
