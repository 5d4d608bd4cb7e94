//! Which entities were registered in which of the last hours, to tell who makes new series.
//! Kept in memory and since start: a bitmap an hour, nearly nothing where ids follow each other.

use model::sample::NANOS_PER_HOUR;
use roaring::RoaringBitmap;
use std::collections::VecDeque;

/// Hours that are kept: a day, and the one that has begun.
pub(crate) const HOURS_KEPT: usize = 25;

/// Entities registered in one clock hour.
pub(crate) struct NewInHour {
    /// Hours since the epoch.
    pub hour: i64,
    /// Who.
    pub entities: RoaringBitmap,
    /// How many series they have.
    pub series: u64,
}

/// Entities registered in the last hours, the oldest hour first.
#[derive(Default)]
pub(crate) struct NewEntities {
    hours: VecDeque<NewInHour>,
}

impl NewEntities {
    /// Notes that an entity with so many series was registered just now. A clock that was set back
    /// adds to the newest hour.
    pub fn note(&mut self, entity: u32, series: u64, now_ns: i64) {
        let hour = now_ns.div_euclid(NANOS_PER_HOUR);
        match self.hours.back_mut() {
            Some(last) if hour <= last.hour => {
                last.entities.insert(entity);
                last.series += series;
            }
            last => {
                if let Some(last) = last {
                    last.entities.optimize();
                }
                let entities = RoaringBitmap::from([entity]);
                self.hours.push_back(NewInHour { hour, entities, series });
                self.hours.retain(|one| hour - (HOURS_KEPT as i64) < one.hour);
            }
        }
    }

    /// Those of the last `hours` hours, the one that has begun included.
    pub fn since(&self, hours: u32, now_ns: i64) -> impl Iterator<Item = &NewInHour> {
        let first = now_ns.div_euclid(NANOS_PER_HOUR) - i64::from(hours.max(1)) + 1;
        self.hours.iter().filter(move |one| first <= one.hour)
    }
}
