//! CRC-64 of Jones' polynomial, lowest bit first, without inversions.

/// The polynomial, its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

const TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before: u64 = tables[table - 1][byte];
            tables[table][byte] = tables[0][(before & 0xff) as usize] ^ before >> 8;
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// The checksum of bytes that follow those of checksum `crc`; 0 to begin.
pub fn crc64(mut crc: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        crc ^= u64::from_le_bytes(*word);
        let mut next = 0;
        for (table, byte) in TABLES.iter().rev().zip(crc.to_le_bytes()) {
            next ^= table[usize::from(byte)];
        }
        crc = next;
    }
    for byte in rest {
        crc = TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8;
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_polynomial() {
        assert_eq!(crc64(0, b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(crc64(0, b"12345"), b"6789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
