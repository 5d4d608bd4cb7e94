//! Fuzz functions of everything here that reads bytes: of the log, of the file of an unfinished deletion,
//! and of the files of schema records.

use crate::records::fuzz_decoders;

/// Decodes any bytes as each of them; what decodes is encoded again and decodes to the same.
pub fn fuzz_records(bytes: &[u8]) {
    fuzz_decoders(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_bytes_of_each_kind_decode_to_the_same_or_not_at_all() {
        let inputs: [&[u8]; 3] = [
            b"\x01\x01\x0bfield\0d\0m\0f\x05float\x02\x0adatabase\0x",
            b"\x07\x01\x01\x0bfield\0d\0m\0f\x05float\x02\x0adatabase\0x",
            b"QPSCHEM1\x02\x02\x07\x02\x02k0\x02v0\x02k1\x02v1",
        ];
        for input in inputs {
            (0..=input.len()).for_each(|end| fuzz_records(&input[..end]));
            for bit in 0..8 * input.len() {
                let mut changed = input.to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                fuzz_records(&changed);
            }
        }
    }
}
