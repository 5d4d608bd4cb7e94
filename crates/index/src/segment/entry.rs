//! What a manifest says of a segment: its name, and what tells it from all others of that name.
//!
//! Segments of two months may have one name. The footer has the checksums of all sections, so its own
//! checksum tells whether a file is the one that was named.

use super::Segment;
use crate::entity::EntityId;
use crate::error::{Error, Result};
use crate::format::{SUFFIX, segment_name};
use std::ops::Range;

/// A segment as a manifest names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentEntry {
    /// The file's name.
    pub name: String,
    /// The checksum of its footer; `None` where an earlier version of the manifest did not say.
    pub footer: Option<u32>,
}

impl SegmentEntry {
    /// An entry of a name alone.
    pub fn unchecked(name: String) -> SegmentEntry {
        SegmentEntry { name, footer: None }
    }
}

impl Segment {
    /// What a manifest is to say of it.
    pub fn entry(&self) -> SegmentEntry {
        SegmentEntry { name: self.name.clone(), footer: Some(self.footer.crc) }
    }

    /// Fails when it is not the file that a manifest names.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn check_entry(&self, entry: &SegmentEntry) -> Result<()> {
        match entry.footer.is_none_or(|footer| footer == self.footer.crc) {
            true => Ok(()),
            false => Err(self.foreign("the footer that the manifest names")),
        }
    }

    /// Fails when the name says other entities than the footer.
    pub(super) fn check_name(&self) -> Result<()> {
        let named = parse_segment_name(&self.name);
        match named.is_none_or(|(entities, _)| entities == self.entities()) {
            true => Ok(()),
            false => Err(self.foreign("the entities that the name says")),
        }
    }

    fn foreign(&self, what: &'static str) -> Error {
        let offset = self.footer.sections.iter().map(|place| place.range.end).max().unwrap_or(0);
        Error::Corrupt { file: self.name.clone(), offset: offset as u64, what }
    }
}

/// The entities that a segment of this name holds, and its place in the order of writing.
pub fn parse_segment_name(name: &str) -> Option<(Range<EntityId>, u32)> {
    let mut fields = name.strip_suffix(SUFFIX)?.split('-');
    let mut number = || u32::from_str_radix(fields.next()?, 16).ok();
    let (start, end, sequence) = (number()?, number()?, number()?);
    (segment_name(start..end, sequence) == name).then_some((start..end, sequence))
}
