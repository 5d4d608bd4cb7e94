//! Which series have a sample in the present hour: counted once each, at next to no cost.
//!
//! Row ids grow with time, so one comparison tells a known entity's first row of the hour: the id
//! of its last row is below the one that the hour began with.

use crate::append::AppendContext;
use crate::arena::NO_ROW;
use crate::partition::State;
use crate::period::Period;
use hashbrown::HashSet;
use model::sample::NANOS_PER_HOUR;
use model::{Labels, LabelsBuilder};

/// Where the present hour began.
#[derive(Default)]
pub struct ActiveHour {
    /// Hours since the epoch.
    hour: i64,
    /// An entity whose last row has a lower id has not been counted.
    mark: u32,
    /// The id that the hour before began with.
    mark_before: u32,
    /// Counted series of which values come alone, as (entity, column).
    singles: HashSet<(u32, u16)>,
}

impl ActiveHour {
    /// Counts nobody for the rest of the hour: row ids have started again.
    pub fn restart(&mut self) {
        self.mark = NO_ROW;
        self.mark_before = NO_ROW;
    }
}

impl State {
    /// Begins a new hour if there is one. In the first hour of a partition nobody is counted for
    /// late samples of the partition before: they are counted in the new one.
    pub fn enter_hour(&mut self, period: Period, now_ns: i64) {
        let hour = now_ns.div_euclid(NANOS_PER_HOUR);
        if hour != self.active.hour {
            let is_next = hour == self.active.hour + 1;
            self.active.hour = hour;
            let length = period.length();
            let is_turning = period < length.of(now_ns)
                && length.of(now_ns.saturating_sub(NANOS_PER_HOUR)) == period;
            let mark = if is_turning { NO_ROW } else { self.head.arena.next_row() };
            self.active.mark_before = if is_next { self.active.mark } else { mark };
            self.active.mark = mark;
            self.active.singles = HashSet::new();
        }
    }

    /// Whether anything was appended in this hour or the one before.
    pub fn is_active(&self, now_ns: i64) -> bool {
        now_ns.div_euclid(NANOS_PER_HOUR) <= self.active.hour + 1
    }

    /// Whether an entity got a row in this hour or the one before.
    pub fn was_active_lately(&self, entity: u32) -> bool {
        self.active.mark_before.max(NO_ROW + 1) <= self.head.arena.last_row(entity)
    }

    /// Whether an entity about to get a row has none of this hour yet.
    #[inline]
    pub fn is_first_of_hour(&self, entity: u32) -> bool {
        self.head.arena.last_row(entity) < self.active.mark
    }

    /// Counts an entity's series as active. Those registered in this very group of rows (`fresh`)
    /// were counted when they were let in.
    #[cold]
    pub fn note_active(&mut self, entity: u32, fresh: &[u32], context: &AppendContext<'_>) {
        if !fresh.contains(&entity) {
            self.count_active(entity, None, context);
        }
    }

    /// The same of one column.
    pub fn note_active_single(
        &mut self,
        entity: u32,
        column: u16,
        fresh: &[u32],
        context: &AppendContext<'_>,
    ) {
        let is_new = self.active.singles.insert((entity, column));
        if is_new && self.is_first_of_hour(entity) && !fresh.contains(&entity) {
            self.count_active(entity, Some(column), context);
        }
    }

    fn count_active(&self, entity: u32, column: Option<u16>, context: &AppendContext<'_>) {
        // A rotten index is for those to report who read it on purpose.
        let Ok(Some(block)) = self.series.index.block_of(entity) else { return };
        let columns = match column {
            Some(column) => column..column + 1,
            None => 0..block.columns as u16,
        };
        let count = columns.len() as u64;
        let mut series: Vec<Labels> = Vec::new();
        if context.gate.needs_labels() {
            let mut labels = LabelsBuilder::new();
            for column in columns {
                labels.clear();
                if self.series.index.labels(&block, column, block.slot(entity), &mut labels).is_ok()
                {
                    series.push(labels.finish());
                }
            }
        }
        context.gate.note_active(context.now_ns, count, &series);
    }
}
