//! Fuzz functions of everything here that reads bytes: of the log, of the file of an unfinished deletion,
//! and of the files of schema records.

use crate::records::fuzz_decoders;

/// Decodes any bytes as each of them; what decodes is encoded again and decodes to the same.
pub fn fuzz_records(bytes: &[u8]) {
    fuzz_decoders(bytes);
}
