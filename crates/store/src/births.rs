//! Which entities were registered in which of the last hours, to tell who makes new series.
//! Kept in memory and since start: a bitmap an hour, nearly nothing where ids follow each other.

use crate::partition::State;
use model::sample::NANOS_PER_HOUR;
use roaring::RoaringBitmap;
use std::collections::VecDeque;

/// Hours that are kept: a day, and the one that has begun.
pub const HOURS_KEPT: usize = 25;

/// Entities registered in one clock hour.
pub struct Births {
    /// Hours since the epoch.
    pub hour: i64,
    /// Who.
    pub entities: RoaringBitmap,
    /// How many series they have.
    pub series: u64,
}

impl State {
    /// Notes that an entity with so many series was registered just now.
    pub fn note_birth(&mut self, entity: u32, series: u64, now_ns: i64) {
        let hour = now_ns.div_euclid(NANOS_PER_HOUR);
        if self.births.back().is_none_or(|last| last.hour < hour) {
            if let Some(last) = self.births.back_mut() {
                last.entities.optimize();
            }
            self.births.push_back(Births { hour, entities: RoaringBitmap::new(), series: 0 });
            forget_old(&mut self.births, hour);
        }
        let last = self.births.back_mut().expect("one was pushed");
        last.entities.insert(entity);
        last.series += series;
    }

    /// The births of the last `hours` hours, the one that has begun included.
    pub fn births_since(&self, hours: u32, now_ns: i64) -> impl Iterator<Item = &Births> {
        let first = now_ns.div_euclid(NANOS_PER_HOUR) - i64::from(hours.max(1)) + 1;
        self.births.iter().filter(move |births| first <= births.hour)
    }
}

fn forget_old(births: &mut VecDeque<Births>, hour: i64) {
    births.retain(|births| hour - (HOURS_KEPT as i64) < births.hour);
}
