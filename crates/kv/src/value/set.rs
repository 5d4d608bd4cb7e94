//! A set: not written yet.

use super::{Stored, boxed_variant};
use codec::bytes::Reader;

/// A set.
#[derive(Clone, Debug, Default)]
pub struct Set {}

impl Set {
    /// How many members there are.
    pub fn len(&self) -> usize {
        0
    }

    /// Whether it has a member.
    pub fn contains(&self, _: &[u8]) -> bool {
        false
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::empty()
    }
}

impl Stored for Set {
    boxed_variant!(Set);

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &mut Reader<'_>) -> Result<Set, codec::Error> {
        Ok(Set {})
    }

    fn heap_size(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        true
    }
}
