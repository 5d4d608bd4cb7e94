//! The series that have a label, counted without a look at any of them: groups know both numbers.

use super::postings::Posting;
use super::{Lists, Segment};
use crate::error::Result;

impl Segment {
    /// Whether some series have a tag of this name.
    pub(crate) fn knows_tag(&self, name: &str) -> Result<bool> {
        let found = self.tag_names().and_then(|names| names.find(name.as_bytes()));
        self.settle(found.map(|tag| tag.is_some()))
    }

    /// How many series have a tag of this name.
    pub(crate) fn series_with_tag(&self, name: &str) -> Result<u64> {
        let Some(tag) = self.tag_names()?.find(name.as_bytes())? else { return Ok(0) };
        let postings = self.tag_postings()?;
        let group_count = self.counts().group_count;
        let mut groups = Vec::new();
        match postings.get(tag)? {
            Posting::Dense => groups.extend(0..group_count),
            _ => postings.append(tag, group_count, &mut groups)?,
        }
        let mut lists = Lists::default();
        let mut series = 0;
        for group in groups {
            let record = self.group_record(group)?;
            self.lists(&record, &mut lists)?;
            if lists.tags.binary_search(&tag).is_ok() {
                series += u64::from(record.entity_count) * u64::from(record.name_count);
            }
        }
        Ok(series)
    }
}
