//! A hash: not written yet.

use super::{Stored, boxed_variant};
use codec::bytes::Reader;

/// A hash.
#[derive(Clone, Debug, Default)]
pub struct Hash {}

impl Stored for Hash {
    boxed_variant!(Hash);

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut Reader<'_>) -> Result<Hash, codec::Error> {
        Ok(Hash {})
    }

    fn heap_size(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        true
    }
}
