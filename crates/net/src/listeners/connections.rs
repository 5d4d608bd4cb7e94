//! The open connections of a listener, at most a given number, and who goes when there are more.
//!
//! Times are milliseconds since the listener began, in atomics: a socket's reads and writes touch
//! them and must not wait.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::Notify;

/// One connection.
pub struct Connection {
    epoch: Instant,
    /// Who is at its other end.
    pub peer: Option<SocketAddr>,
    /// When a byte last moved in either direction.
    active_at_ms: AtomicU64,
    /// Pieces of work under way: requests without a complete answer, lines that are being stored.
    works: AtomicU32,
    /// Told to close at once, to make room.
    pub evicted: Notify,
}

impl Connection {
    /// Makes the state of a connection that was just accepted.
    pub fn new(epoch: Instant, peer: Option<SocketAddr>) -> Connection {
        let connection = Connection {
            epoch,
            peer,
            active_at_ms: AtomicU64::new(0),
            works: AtomicU32::new(0),
            evicted: Notify::new(),
        };
        connection.touch();
        connection
    }

    /// Milliseconds since the listener began, never 0.
    pub fn now_ms(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64 + 1
    }

    /// Notes that bytes moved; returns when.
    pub fn touch(&self) -> u64 {
        let now_ms = self.now_ms();
        self.active_at_ms.store(now_ms, Relaxed);
        now_ms
    }

    /// When a byte last moved.
    pub fn active_at_ms(&self) -> u64 {
        self.active_at_ms.load(Relaxed)
    }

    /// Whether work is under way.
    pub fn is_busy(&self) -> bool {
        self.works.load(Relaxed) != 0
    }

    /// Marks work as under way until the returned value is dropped.
    pub fn begin(self: &Arc<Connection>) -> AtWork {
        self.works.fetch_add(1, Relaxed);
        AtWork(self.clone())
    }

    /// Since when it is idle, if it is.
    fn idle_since(&self) -> Option<u64> {
        (!self.is_busy()).then(|| self.active_at_ms())
    }
}

/// Work that is under way.
pub struct AtWork(Arc<Connection>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.touch();
        self.0.works.fetch_sub(1, Relaxed);
    }
}

/// Who goes when there are as many connections as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLimit {
    /// The one that has been idle for longest; the new one when none is idle. Who is idle has left
    /// nothing here, and comes again when there is something to say.
    LongestIdle,
    /// The new one. A silent one may listen or wait for something, and nobody outside may end that by
    /// connecting often.
    Newest,
}

/// All open connections of a listener.
pub struct Connections {
    epoch: Instant,
    count_max: usize,
    at_limit: AtLimit,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    by_id: HashMap<u64, Arc<Connection>>,
    /// Told to close, still in `by_id`.
    evicted: usize,
}

/// A place among the open connections; free again when dropped.
pub struct Registered {
    id: u64,
    connections: Arc<Connections>,
    /// The connection's state.
    pub connection: Arc<Connection>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().expect("no panic while held");
        if open.by_id.remove(&self.id).is_none() {
            open.evicted = open.evicted.saturating_sub(1);
        }
    }
}

impl Connections {
    /// Room for `count_max` connections.
    pub fn new(count_max: usize, at_limit: AtLimit) -> Arc<Connections> {
        let (epoch, open) = (Instant::now(), Mutex::default());
        Arc::new(Connections { epoch, count_max, at_limit, open })
    }

    /// How many may be open.
    pub fn count_max(&self) -> usize {
        self.count_max
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        let open = self.open.lock().expect("no panic while held");
        open.by_id.len() + open.evicted
    }

    /// Registers a new connection; at the limit another one may have to go.
    ///
    /// Returns whether one had to, or `None` when the new one cannot stay.
    pub fn register(
        self: &Arc<Connections>,
        peer: Option<SocketAddr>,
    ) -> Option<(Registered, Room)> {
        let mut open = self.open.lock().expect("no panic while held");
        let room = match (open.by_id.len() < self.count_max, self.at_limit) {
            (true, _) => Room::Free,
            (false, AtLimit::LongestIdle) => make_room(&mut open)?,
            (false, AtLimit::Newest) => return None,
        };
        let id = open.next_id;
        open.next_id += 1;
        let connection = Arc::new(Connection::new(self.epoch, peer));
        open.by_id.insert(id, connection.clone());
        Some((Registered { id, connections: self.clone(), connection }, room))
    }
}

/// How a new connection found its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There was one.
    Free,
    /// An idle connection was closed.
    Made,
}

fn make_room(open: &mut Open) -> Option<Room> {
    let idle = open.by_id.iter().filter_map(|(id, c)| c.idle_since().map(|since| (since, *id)));
    let (_, id) = idle.min()?;
    let connection = open.by_id.remove(&id)?;
    connection.evicted.notify_one();
    open.evicted += 1;
    Some(Room::Made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_the_longest_idle_goes() {
        let connections = Connections::new(2, AtLimit::LongestIdle);
        let (first, room) = connections.register(None).expect("room");
        assert_eq!(room, Room::Free);
        let (second, _) = connections.register(None).expect("room");
        let busy = first.connection.begin();
        let (third, room) = connections.register(None).expect("the second is idle");
        assert_eq!(room, Room::Made);
        assert_eq!(connections.count(), 3, "until the second is really gone");
        drop(second);
        assert_eq!(connections.count(), 2);
        let busy_too = third.connection.begin();
        assert!(connections.register(None).is_none(), "all are busy");
        drop((busy, busy_too));
        assert!(connections.register(None).is_some());
    }

    #[test]
    fn at_the_limit_the_newest_goes_where_silence_may_mean_something() {
        let connections = Connections::new(1, AtLimit::Newest);
        let (first, _) = connections.register(None).expect("room");
        assert!(connections.register(None).is_none(), "the first is idle, and stays");
        drop(first);
        assert!(connections.register(None).is_some());
    }
}
