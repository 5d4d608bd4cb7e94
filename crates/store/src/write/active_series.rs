//! Counts the series of a partition as active when they get their first row of an hour, with the
//! limits that hold for them.

use crate::base::narrow::to_u16;
use crate::partition::PartitionState;
use crate::partition::histograms::names::plain_labels;
use crate::write::series_limits::SeriesGate;
use index::EntityId;
use model::{Labels, LabelsBuilder};

/// Who counts, and when.
#[derive(Clone, Copy)]
pub(crate) struct ActiveCount<'a> {
    /// Has the limits.
    pub gate: &'a SeriesGate,
    /// Wall clock, nanoseconds.
    pub now_ns: i64,
}

impl PartitionState {
    /// Whether an entity got a row in this hour or the one before.
    pub fn was_active_lately(&self, entity: EntityId) -> bool {
        self.active.is_recent(self.head.arena.last_row(entity))
    }

    /// Whether an entity about to get a row has none of this hour yet.
    #[inline]
    pub fn is_first_of_hour(&self, entity: EntityId) -> bool {
        self.active.is_first(self.head.arena.last_row(entity))
    }

    /// Counts an entity's series as active. Those registered in this very group of rows (`fresh`)
    /// were counted when they were let in.
    #[cold]
    pub fn note_active(&mut self, entity: EntityId, fresh: &[EntityId], count: ActiveCount<'_>) {
        if !fresh.contains(&entity) {
            self.count_active(entity, None, count);
        }
    }

    /// The same of one column.
    pub fn note_active_single(
        &mut self,
        entity: EntityId,
        column: u16,
        fresh: &[EntityId],
        count: ActiveCount<'_>,
    ) {
        let is_new = self.active.add_single(entity, column);
        if is_new && self.is_first_of_hour(entity) && !fresh.contains(&entity) {
            self.count_active(entity, Some(column), count);
        }
    }

    /// Counts a hidden entity with the limits that its plain series has.
    #[cold]
    pub fn note_active_hidden(&self, entity: EntityId, count: ActiveCount<'_>) {
        let labels = match count.gate.needs_labels() {
            true => self.plain_labels(entity),
            false => None,
        };
        count.gate.note_active_hidden(count.now_ns, labels.as_ref());
    }

    fn count_active(&self, entity: EntityId, column: Option<u16>, count: ActiveCount<'_>) {
        // A rotten index is for those to report who read it on purpose.
        let Ok(Some(block)) = self.series.index.block_of(entity) else { return };
        let columns = match column {
            Some(column) => column..column + 1,
            None => 0..to_u16(block.columns),
        };
        let series_count = columns.len() as u64;
        let mut series: Vec<Labels> = Vec::new();
        if count.gate.needs_labels() {
            let (index, slot) = (&self.series.index, block.slot(entity));
            let mut labels = LabelsBuilder::new();
            for column in columns {
                labels.clear();
                if index.labels(&block, column, slot, &mut labels).is_ok() {
                    series.push(labels.finish());
                }
            }
        }
        count.gate.note_active(count.now_ns, series_count, &series);
    }

    /// The labels of the series that a hidden entity belongs to.
    fn plain_labels(&self, entity: EntityId) -> Option<Labels> {
        // A rotten index is for those to report who read it on purpose.
        let block = self.series.index.block_of(entity).ok()??;
        let mut labels = LabelsBuilder::new();
        self.series.index.labels(&block, 0, block.slot(entity), &mut labels).ok()?;
        Some(plain_labels(&mut labels))
    }
}
