//! Who wants to hear of changes: clients that wait for a key, watch one, or read events.

use super::{Event, Keyspace, Touched};

impl Keyspace {
    /// Notes that a command waits for a key.
    pub fn wait_for(&mut self, db: u8, key: &[u8]) {
        *self.waited_for.entry((db, key.into())).or_default() += 1;
    }

    /// Notes that one command less waits for a key.
    pub fn wait_no_more(&mut self, db: u8, key: &[u8]) {
        let waited = (db, key.into());
        if let Some(count) = self.waited_for.get_mut(&waited) {
            *count -= 1;
            if *count == 0 {
                self.waited_for.remove(&waited);
            }
        }
    }

    /// The keys that somebody waits for and that were changed since the last call, in order.
    pub fn take_ready(&mut self) -> Vec<(u8, Box<[u8]>)> {
        std::mem::take(&mut self.ready)
    }

    /// Notes that a transaction watches a key.
    pub fn watch(&mut self, db: u8, key: &[u8]) {
        *self.watched.entry((db, key.into())).or_default() += 1;
    }

    /// Notes that one transaction less watches a key.
    pub fn watch_no_more(&mut self, db: u8, key: &[u8]) {
        let watched = (db, key.into());
        if let Some(count) = self.watched.get_mut(&watched) {
            *count -= 1;
            if *count == 0 {
                self.watched.remove(&watched);
            }
        }
    }

    /// Tells of the watched keys of a database that are there, in it or in the other one.
    pub(super) fn tell_watched(&mut self, db: u8, other: u8) {
        let of_db = self.watched.keys().filter(|(watched, _)| *watched == db);
        let keys: Vec<Box<[u8]>> = of_db.map(|(_, key)| key.clone()).collect();
        for key in keys {
            // What cannot be read was there.
            let is_there =
                self.exists(db, &key).unwrap_or(true) || self.exists(other, &key).unwrap_or(true);
            if is_there {
                self.touched.push(Touched::Watched(db, key));
            }
        }
    }

    /// Whether changes are to be told to [`Keyspace::take_touched`].
    pub fn observe(&mut self, is_observed: bool) {
        self.is_observed = is_observed;
    }

    /// Whether there is anything that somebody wants to hear of.
    pub fn has_news(&self) -> bool {
        !(self.events.is_empty() && self.touched.is_empty() && self.ready.is_empty())
    }

    /// What was changed since the last call.
    pub fn take_touched(&mut self) -> Vec<Touched> {
        std::mem::take(&mut self.touched)
    }

    /// Notes an event, if somebody wants its class.
    pub fn event(&mut self, class: u32, name: &'static str, db: u8, key: &[u8]) {
        if self.events_wanted & class != 0 {
            self.events.push(Event { class, name, db, key: key.into() });
        }
    }

    /// Takes the events from `start` to `end` back: the command that they are about failed.
    pub fn drop_events(&mut self, start: usize, end: usize) {
        self.events.drain(start..end.min(self.events.len()));
    }

    /// Returns the number of events that [`Keyspace::take_events`] would return.
    pub fn event_count(&self) -> usize {
        self.events.len()
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}
