//! A list: not written yet.

use super::{Stored, boxed_variant};
use codec::bytes::Reader;

/// A list.
#[derive(Clone, Debug, Default)]
pub struct List {}

impl Stored for List {
    boxed_variant!(List);

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut Reader<'_>) -> Result<List, codec::Error> {
        Ok(List {})
    }

    fn heap_size(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        true
    }
}
