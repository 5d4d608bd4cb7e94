//! Schema records: what InfluxDB's clients have declared, by key, durable beside the samples.
//!
//! Format: `docs/format/schema.md`. Decision:
//! `docs/decisions/0054-schema-records.md`.

mod changes;
mod files;
mod key;
mod opening;
mod record_log;
pub mod repair;
mod table;
pub mod verify;

pub use changes::{Change, encode_changes};
pub use files::{RECORDS_PATH, SCHEMA_DIR};
pub use key::{Key, KeyKind};
pub use opening::{RecordsOpening, has_records};
pub use record_log::{RecordLog, RecordsConfig};
pub use table::{RECORDS_MAX, RECORDS_SIZE_MAX};

use std::path::Path;

/// Decodes any bytes as each kind of bytes that is on disk.
///
/// # Panics
/// When what decodes is not the same after it was encoded: a mistake of the program.
#[doc(hidden)]
pub fn fuzz_decoders(bytes: &[u8]) {
    if let Ok(changes) = changes::decode_changes(bytes) {
        assert_eq!(changes::decode_changes(&encode_changes(&changes)), Ok(changes));
    }
    if let Ok((number, changes)) = changes::decode_record(bytes) {
        let encoded = changes::encode_record(number, changes.iter());
        assert_eq!(changes::decode_record(&encoded), Ok((number, changes)));
    }
    // As a file with a right checksum, which no change by chance has.
    let whole = [bytes, &codec::crc32(bytes).to_le_bytes()].concat();
    if let Ok(contents) = files::Contents::decode(Path::new("records"), &whole) {
        let encoded =
            files::Contents::encode(contents.generation, &contents.table, contents.log_from);
        let again = files::Contents::decode(Path::new("records"), &encoded);
        assert_eq!(again.ok(), Some(contents));
    }
}
