//! What histograms and start timestamps share on their way into a partition: they are taken one
//! after the other, each whole or not at all, and have rows of hidden entities.

use crate::Result;
use crate::log::log_record::unit_of;
use crate::partition::{Partition, PartitionState};
use crate::write::append::{AppendContext, AppendScratch, Taken};
use crate::write::refusal::{Refusal, Told};
use index::EntityId;
use wal::Reservation;

/// What is taken one after the other.
pub(crate) trait OneByOne {
    /// One of them.
    type One;

    /// Its time.
    fn timestamp(&self, one: &Self::One) -> i64;

    /// Finds or registers the entities of its rows, makes the log keep room for them, and pushes
    /// them. What it refuses has left nothing but registrations, which are in the log.
    fn take(
        &mut self,
        one: &Self::One,
        state: &mut PartitionState,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<()>;

    /// Notes that it was not taken.
    fn refuse(&mut self, one: &Self::One, refusal: Refusal);
}

impl Partition {
    /// Appends some of this partition's time, as many as one record of the log takes.
    pub(crate) fn append_each<T: OneByOne>(
        &self,
        all: &[T::One],
        how: &mut T,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
    ) -> Result<Taken> {
        scratch.encoder.start(unit_of(all.iter().map(|one| how.timestamp(one))));
        let (mut state, mut room) = self.begin_record(context)?;
        let version = context.changes.now();
        let mut taken = Taken::default();
        for one in all {
            scratch.fresh.clear();
            match how.take(one, &mut state, context, scratch, &mut room) {
                Ok(()) => state.changed.note(how.timestamp(one), version),
                Err(refusal) => match refusal.unless_full(scratch.encoder.is_empty()) {
                    Ok(refusal) => how.refuse(one, refusal),
                    Err(error) => {
                        taken.full = Some(error);
                        break;
                    }
                },
            }
            taken.count += 1;
        }
        // What was refused late may have left registrations, which later rows need.
        self.end_record(state, context, scratch, room, taken)
    }
}

impl PartitionState {
    /// Appends a row of a hidden entity.
    #[inline]
    pub(crate) fn push_hidden(
        &mut self,
        entity: EntityId,
        timestamp: i64,
        values: &[f64],
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
    ) {
        if self.is_first_of_hour(entity) && !scratch.fresh.contains(&entity) {
            self.note_active_hidden(entity, context.active_count());
        }
        self.head.arena.push(entity, timestamp, values);
        scratch.encoder.row(entity, timestamp, values);
    }
}
