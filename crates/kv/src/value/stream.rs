//! A stream: not written yet.

use super::{Stored, boxed_variant};
use codec::bytes::Reader;

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {}

impl Stored for Stream {
    boxed_variant!(Stream);

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut Reader<'_>) -> Result<Stream, codec::Error> {
        Ok(Stream {})
    }

    fn heap_size(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        true
    }
}
