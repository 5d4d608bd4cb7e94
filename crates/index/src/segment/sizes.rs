//! What each label costs in a segment.

use super::Segment;
use super::strings::utf8;
use crate::error::{Result, corrupt};
use crate::format::{COLUMN_SIZE, LABEL_SIZE, Section};
use model::METRIC_NAME;

impl Segment {
    /// Bytes of each label: its record, its strings, its postings, its columns with their planes.
    /// In the order of the names, the metric's first.
    ///
    /// # Errors
    /// As [`Segment::block_of`].
    pub fn label_sizes(&self) -> Result<Vec<(String, u64)>> {
        let columns = self.column_sizes()?;
        let label_count = self.counts().label_count;
        let (strings_end, postings_end) =
            (self.section(Section::Strings)?.len(), self.section(Section::Postings)?.len());
        let mut sizes = Vec::with_capacity(label_count as usize);
        let mut text = Vec::new();
        for label in 0..label_count {
            let record = self.label_record(label)?;
            // Labels are written one after the other, so one ends where the next begins; between the
            // metric's name and the first tag lie the names of the tags.
            let (strings, postings) = match label + 1 < label_count {
                true => {
                    let next = self.label_record(label + 1)?;
                    (next.strings_offset, next.postings_offset)
                }
                false => (strings_end as u64, postings_end as u64),
            };
            let name = match label.checked_sub(1) {
                None => METRIC_NAME.to_string(),
                Some(tag) => {
                    self.tag_names()?.get(tag, &mut text)?;
                    utf8(&text)?.to_string()
                }
            };
            let own = strings.checked_sub(record.strings_offset);
            let own = own.zip(postings.checked_sub(record.postings_offset));
            let (strings, postings) = own.ok_or_else(|| corrupt("order of labels"))?;
            let of_columns = columns.get(label as usize).copied().unwrap_or(0);
            sizes.push((name, LABEL_SIZE as u64 + strings + postings + of_columns));
        }
        Ok(sizes)
    }

    /// By label, the bytes of its columns and their planes.
    fn column_sizes(&self) -> Result<Vec<u64>> {
        let mut sizes = vec![0u64; self.counts().label_count as usize];
        let mut lists = super::Lists::default();
        for group in 0..self.counts().group_count {
            let group = self.group_record(group)?;
            self.lists(&group, &mut lists)?;
            for number in group.block_start..group.block_start + group.block_count {
                let block = self.block_record(number)?;
                for (position, tag) in lists.tags.iter().enumerate() {
                    let column = self.column(&group, number, &block, position)?;
                    let size = sizes.get_mut(*tag as usize + 1);
                    *size.ok_or_else(|| corrupt("lists of a group"))? +=
                        (COLUMN_SIZE + column.size()) as u64;
                }
            }
        }
        Ok(sizes)
    }
}
