//! A sorted set: not written yet.

use super::{Stored, boxed_variant};
use codec::bytes::Reader;

/// A sorted set.
#[derive(Clone, Debug, Default)]
pub struct Zset {}

impl Stored for Zset {
    boxed_variant!(Zset);

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut Reader<'_>) -> Result<Zset, codec::Error> {
        Ok(Zset {})
    }

    fn heap_size(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        true
    }
}
