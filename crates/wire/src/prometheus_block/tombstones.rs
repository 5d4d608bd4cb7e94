//! What was deleted of a block and is still in its chunks.

use super::index::signed;
use crate::Error;
use crate::crc32c::crc32c;
use crate::protobuf::Message;
use std::collections::HashMap;

pub(super) const MAGIC: u32 = 0x0130_ba30;
pub(super) const VERSION: u8 = 1;
const HEADER_SIZE: usize = 5;

/// First and last times in milliseconds, both deleted, by the place of a series in the index divided by
/// [`super::index::ALIGNMENT`].
pub type Tombstones = HashMap<u64, Vec<(i64, i64)>>;

/// Those of a file.
///
/// # Errors
/// It is no such file, or its checksum is another.
pub fn parse(bytes: &[u8]) -> Result<Tombstones, Error> {
    let bad = |reason| Error::malformed("tombstones", 0, reason);
    let (header, rest) = bytes.split_first_chunk::<HEADER_SIZE>().ok_or_else(|| bad("a header"))?;
    let [a, b, c, d, version] = *header;
    if (u32::from_be_bytes([a, b, c, d]), version) != (MAGIC, VERSION) {
        return Err(bad("the magic number of tombstones, version 1"));
    }
    let (body, sum) = rest.split_last_chunk::<4>().ok_or_else(|| bad("a checksum"))?;
    if crc32c(body) != u32::from_be_bytes(*sum) {
        return Err(bad("its checksum"));
    }
    let mut all = Tombstones::new();
    let mut message = Message::new(body);
    while !message.is_done() {
        let reference = message.varint()?;
        let (first, last) = (signed(message.varint()?), signed(message.varint()?));
        all.entry(reference).or_default().push((first, last));
    }
    Ok(all)
}
