//! A bloom filter: not written yet.

use super::{Stored, boxed_variant};
use codec::bytes::Reader;

/// A bloom filter.
#[derive(Clone, Debug, Default)]
pub struct Bloom {}

impl Stored for Bloom {
    boxed_variant!(Bloom);

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut Reader<'_>) -> Result<Bloom, codec::Error> {
        Ok(Bloom {})
    }

    fn heap_size(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        true
    }
}
