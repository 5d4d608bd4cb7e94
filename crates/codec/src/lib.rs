//! Numbers to bytes and back: cursors, checksums, columns of timestamps and of values. Pure.
//!
//! Decoders take bytes from a disk or a socket and never panic; they give [`Error`].
//! Layouts are described in `docs/format/`.

pub mod bytes;
pub mod checksum;
pub mod column;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;

pub use bytes::{Reader, put_i64_zigzag, put_u32, put_u64, put_varint, unzigzag, zigzag};
pub use checksum::{Crc32, crc32};
pub use column::{
    ColumnScratch, Effort, Layout, Paging, TimestampsOutline, TimestampsReader, ValuesOutline,
    ValuesReader, encode_timestamps, encode_timestamps_plainly, encode_values,
    encode_values_plainly,
};
pub use error::Error;
