//! Whether a series has any sample from some time on, told at a glance: by what is known of rows and
//! slices, without reading a sample.
//!
//! Who adds a sample to a series that it does not know asks this first: most often there is none as
//! late, and to find that by a selection costs fifty times as much.

use crate::partition::PartitionState;
use crate::partition::head::Head;
use crate::partition::series_map::{GROUP_ROWS, Target};
use crate::read::reader::Reader;
use index::{EntityId, NewEntity};
use model::{Labels, METRIC_NAME, TimeRange, Timestamp};

/// Rows of a series that are looked at; one with more is asked for by a selection.
const ROWS_MAX: usize = 64;

impl Reader {
    /// Whether the series with exactly these labels, whose rows have this hash, has no sample from
    /// `start` on, for sure. If not, nothing is known: where something is lost or rotten, a selection
    /// says so.
    pub fn surely_none_since(&self, labels: &Labels, hash: u128, start: Timestamp) -> bool {
        let range = TimeRange::new(start, Timestamp::MAX);
        if !self.partitions.lost_in(&range).is_empty() {
            return false;
        }
        let names = [labels.metric_name()];
        let tags: Vec<(&str, &str)> =
            labels.iter().filter(|(name, _)| *name != METRIC_NAME).collect();
        let series = NewEntity::new(&names, &tags);
        let partitions = self.partitions.overlapping(&range);
        partitions.iter().all(|partition| {
            partition.read().surely_none_since(&series, hash, start).unwrap_or(false)
        })
    }
}

impl PartitionState {
    fn surely_none_since(
        &self,
        series: &NewEntity<'_>,
        hash: u128,
        start: Timestamp,
    ) -> index::Result<bool> {
        let index = &self.series.index;
        // The map is quick, the index may be on disk.
        let mut known = [None; GROUP_ROWS];
        self.series.map.find_group(&[hash], &mut known);
        let entity = match known[0] {
            Some(Target::Entity(entity)) => entity,
            Some(Target::Pieces(_)) => return Ok(false),
            None => match index.find_entity(series)? {
                Some(entity) => entity,
                None => return Ok(index.find_column(series)?.is_none()),
            },
        };
        if self.head.may_have_row_since(entity, start) {
            return Ok(false);
        }
        let parts = self.disk.parts().iter().chain(self.head.parts());
        let mut late = parts.filter(|part| start <= part.span().end).peekable();
        if late.peek().is_none() {
            return Ok(true);
        }
        let Some(block) = index.block_of(entity)? else { return Ok(false) };
        let is_late = |part: &crate::part::Part| {
            part.slices_of(block.series_start).any(|slice| start <= slice.max_ts)
        };
        Ok(!late.any(|part| is_late(&part.part)))
    }
}

impl Head {
    /// Whether an entity may have a row from `start` on that is not sealed yet.
    fn may_have_row_since(&self, entity: EntityId, start: Timestamp) -> bool {
        if self.singles().next().is_some() {
            return true;
        }
        let first = self.first_unsealed_row();
        let mut id = self.arena.last_row(entity);
        for _ in 0..ROWS_MAX {
            if id < first {
                return false;
            }
            let in_taken = || self.taken().iter().find_map(|taken| taken.view.row(id));
            let Some(row) = self.arena.row(id).or_else(in_taken) else { return true };
            if start <= row.timestamp {
                return true;
            }
            id = row.before;
        }
        true
    }
}
