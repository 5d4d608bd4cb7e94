//! MD5 (<https://www.rfc-editor.org/rfc/rfc1321>): by which people tell rows apart, and nothing else.

use std::fmt::Write as _;

/// How far each step of a round turns.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// What is added in each step: the sine of its number.
fn sine(step: u32) -> u32 {
    (f64::from(step + 1).sin().abs() * 4_294_967_296.0) as u32
}

/// The sum in hexadecimal digits.
pub fn md5_hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(32);
    for byte in md5(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let sines: [u32; 64] = std::array::from_fn(|step| sine(u32::try_from(step).unwrap_or(0)));
    let mut blocks = bytes.chunks_exact(64);
    for block in &mut blocks {
        mix(&mut state, block, &sines);
    }
    let rest = blocks.remainder();
    let mut last = rest.to_vec();
    last.push(0x80);
    let whole = if rest.len() < 56 { 56 } else { 120 };
    last.resize(whole, 0);
    last.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    last.chunks_exact(64).for_each(|block| mix(&mut state, block, &sines));
    let mut sum = [0; 16];
    for (four, word) in sum.chunks_exact_mut(4).zip(state) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    sum
}

fn mix(state: &mut [u32; 4], block: &[u8], sines: &[u32; 64]) {
    let mut words = [0u32; 16];
    for (word, four) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = four.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte));
    }
    let [mut a, mut b, mut c, mut d] = *state;
    for (step, sine) in sines.iter().enumerate() {
        let (mixed, word) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(words[word % 16]).wrapping_add(*sine);
        let turned = sum.rotate_left(TURNS[step / 16][step % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
    }
    for (one, mixed) in state.iter_mut().zip([a, b, c, d]) {
        *one = one.wrapping_add(mixed);
    }
}

#[cfg(test)]
mod tests {
    use super::md5_hex;

    #[test]
    fn sums_are_those_of_the_standard() {
        for (text, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ] {
            assert_eq!(md5_hex(text.as_bytes()), expected, "{text}");
        }
        let eighty =
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(md5_hex(eighty.as_bytes()), "57edf4a22be3c955ac49da2e2107b67a");
        assert_eq!(md5_hex("a".repeat(56).as_bytes()), "3b0c8ac703f828b04c6c197006d17218");
    }
}
