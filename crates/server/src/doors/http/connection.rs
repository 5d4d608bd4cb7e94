//! The state of each connection, and the rules by which one is closed.
//!
//! ```text
//! no request, no bytes      idle     closed after http.idle-timeout, or earlier to make room
//! no request, some bytes    a head   closed after http.header-timeout (HTTP/1 only)
//! a request                 busy     bounded by the body's time, the query's time, the write time
//! ```
//!
//! Times are milliseconds since the server started, in atomics: the socket's reads and writes
//! touch them and must not wait.

use crate::config::HttpConfig;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// One connection.
pub struct Connection {
    epoch: Instant,
    /// Who is at its other end.
    pub peer: Option<SocketAddr>,
    /// When a byte last moved in either direction.
    active_at: AtomicU64,
    /// When the first byte of a head arrived; 0 when none has.
    head_since: AtomicU64,
    /// Requests without a complete answer.
    requests: AtomicU32,
    /// Whether the client speaks HTTP/2, where bytes between requests are ordinary.
    is_http2: AtomicBool,
    /// Whether any byte has arrived.
    has_spoken: AtomicBool,
    /// Told to close at once, to make room.
    pub evicted: Notify,
}

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Keep,
    /// It has had no request for too long.
    Idle,
    /// Its head takes too long.
    SlowHead,
    /// It was told to end and its client takes no bytes.
    Stuck,
}

impl Connection {
    fn new(epoch: Instant, peer: Option<SocketAddr>) -> Connection {
        let connection = Connection {
            epoch,
            peer,
            active_at: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            requests: AtomicU32::new(0),
            is_http2: AtomicBool::new(false),
            has_spoken: AtomicBool::new(false),
            evicted: Notify::new(),
        };
        connection.active_at.store(connection.now(), Relaxed);
        connection
    }

    /// Milliseconds since the server started, never 0.
    fn now(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64 + 1
    }

    fn was_read(&self, bytes: &[u8]) {
        let now = self.now();
        self.active_at.store(now, Relaxed);
        if !self.has_spoken.swap(true, Relaxed) {
            self.is_http2.store(bytes.starts_with(b"PRI * HTTP/2"), Relaxed);
        }
        if self.requests.load(Relaxed) == 0 && self.head_since.load(Relaxed) == 0 {
            self.head_since.store(now, Relaxed);
        }
    }

    fn was_written(&self) {
        self.active_at.store(self.now(), Relaxed);
    }

    /// Marks a request as under way until the returned value is dropped.
    pub fn begin_request(self: &Arc<Connection>) -> InFlight {
        self.requests.fetch_add(1, Relaxed);
        self.head_since.store(0, Relaxed);
        InFlight(self.clone())
    }

    /// What to do with it now.
    pub fn verdict(&self, http: &HttpConfig) -> Verdict {
        if 0 < self.requests.load(Relaxed) {
            return Verdict::Keep;
        }
        let now = self.now();
        let longer_than =
            |since: u64, limit: Duration| limit.as_millis() as u64 <= now.saturating_sub(since);
        let head_since = self.head_since.load(Relaxed);
        let is_head = head_since != 0 && !self.is_http2.load(Relaxed);
        let active_at = self.active_at.load(Relaxed);
        if is_head && longer_than(head_since, http.header_timeout) {
            return Verdict::SlowHead;
        }
        if longer_than(active_at, http.idle_timeout + http.write_timeout) {
            return Verdict::Stuck;
        }
        if longer_than(active_at, http.idle_timeout) { Verdict::Idle } else { Verdict::Keep }
    }

    /// Since when it is idle, if it is.
    fn idle_since(&self) -> Option<u64> {
        (self.requests.load(Relaxed) == 0).then(|| self.active_at.load(Relaxed))
    }
}

/// A request that is under way.
pub struct InFlight(Arc<Connection>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.was_written();
        self.0.requests.fetch_sub(1, Relaxed);
    }
}

/// All open connections, at most a given number.
pub struct Connections {
    epoch: Instant,
    count_max: usize,
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
    pub fn new(count_max: usize) -> Arc<Connections> {
        let (epoch, open) = (Instant::now(), Mutex::default());
        Arc::new(Connections { epoch, count_max, open })
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        let open = self.open.lock().expect("no panic while held");
        open.by_id.len() + open.evicted
    }

    /// Registers a new connection; at the limit the longest idle one has to go.
    ///
    /// Returns whether one had to, or `None` when all are busy and the new one cannot stay.
    pub fn register(
        self: &Arc<Connections>,
        peer: Option<SocketAddr>,
    ) -> Option<(Registered, Room)> {
        let mut open = self.open.lock().expect("no panic while held");
        let room =
            if open.by_id.len() < self.count_max { Room::Free } else { make_room(&mut open)? };
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

/// A socket that tells its connection when bytes move.
pub struct Watched<S> {
    stream: S,
    connection: Arc<Connection>,
}

impl<S> Watched<S> {
    /// Watches `stream`.
    pub fn new(stream: S, connection: Arc<Connection>) -> Watched<S> {
        Watched { stream, connection }
    }

    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(1..)) = written {
            self.connection.was_written();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if before < buffer.filled().len() {
            self.connection.was_read(&buffer.filled()[before..]);
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Settings};

    fn http(pairs: &[(&str, &str)]) -> HttpConfig {
        Config::new(Settings::from_pairs(pairs).expect("settings")).expect("config").http
    }

    #[test]
    fn at_the_limit_the_longest_idle_goes() {
        let connections = Connections::new(2);
        let (first, room) = connections.register(None).expect("room");
        assert_eq!(room, Room::Free);
        let (second, _) = connections.register(None).expect("room");
        let busy = first.connection.begin_request();
        let (third, room) = connections.register(None).expect("the second is idle");
        assert_eq!(room, Room::Made);
        assert_eq!(connections.count(), 3, "until the second is really gone");
        drop(second);
        assert_eq!(connections.count(), 2);
        let busy_too = third.connection.begin_request();
        assert!(connections.register(None).is_none(), "all are busy");
        drop((busy, busy_too));
        assert!(connections.register(None).is_some());
    }

    #[test]
    fn verdicts() {
        let patient = http(&[]);
        let strict = http(&[("http.idle-timeout", "1ns"), ("http.header-timeout", "1ns")]);
        let connection = Arc::new(Connection::new(Instant::now(), None));
        assert_eq!(connection.verdict(&patient), Verdict::Keep);
        assert_eq!(connection.verdict(&strict), Verdict::Idle);
        connection.was_read(b"GET");
        assert_eq!(connection.verdict(&strict), Verdict::SlowHead);
        let request = connection.begin_request();
        assert_eq!(connection.verdict(&strict), Verdict::Keep);
        drop(request);
        assert_eq!(connection.verdict(&strict), Verdict::Idle);
        let http2 = Arc::new(Connection::new(Instant::now(), None));
        http2.was_read(b"PRI * HTTP/2.0\r\n");
        assert_eq!(http2.verdict(&strict), Verdict::Idle, "frames between requests are ordinary");
    }
}
