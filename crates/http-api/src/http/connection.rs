//! What HTTP adds to the state of a connection, and the rules by which one is closed.
//!
//! ```text
//! no request, no bytes      idle     closed after http.idle-timeout, or earlier to make room
//! no request, some bytes    a head   closed after http.header-timeout (HTTP/1 only)
//! a request                 busy     bounded by the body's time, the query's time, the write time
//! ```
//!
//! The write time is measured for each answer by itself: of those on one connection of HTTP/2 a client
//! may take some and leave others, and say something now and then.

use app::config::HttpConfig;
use net::listeners::connections::{AtWork, Connection};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One connection that speaks HTTP.
pub struct HttpConnection {
    /// What every connection has.
    pub connection: Arc<Connection>,
    /// When the first byte of a head arrived; 0 when none has.
    head_since_ms: AtomicU64,
    /// Whether the client speaks HTTP/2, where bytes between requests are ordinary.
    is_http2: AtomicBool,
    /// Whether any byte has arrived.
    has_spoken: AtomicBool,
    /// Whether the last request with credentials had the right ones.
    is_authenticated: AtomicBool,
    /// The answers that wait for the client, by number, and since when.
    untaken: Mutex<Vec<(u64, u64)>>,
    /// The number of the next answer.
    next_answer: AtomicU64,
}

/// An answer on its way; the request is over when this is dropped.
pub struct Outgoing {
    connection: Arc<HttpConnection>,
    number: u64,
    _at_work: AtWork,
}

impl Outgoing {
    /// Notes that the client has to take bytes before more are asked for.
    pub fn wait_for_client(&self) {
        let now_ms = self.connection.connection.now_ms();
        let mut untaken = self.connection.untaken();
        match untaken.iter_mut().find(|(number, _)| *number == self.number) {
            Some((_, since_ms)) => *since_ms = now_ms,
            None => untaken.push((self.number, now_ms)),
        }
    }

    /// Notes that the client waits for us.
    pub fn wait_for_door(&self) {
        self.connection.untaken().retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.wait_for_door();
    }
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
    /// Its client takes no bytes of an answer, or was told to end and does not.
    Stuck,
}

impl HttpConnection {
    /// A connection on which nothing has been said.
    pub fn new(connection: Arc<Connection>) -> HttpConnection {
        HttpConnection {
            connection,
            head_since_ms: AtomicU64::new(0),
            is_http2: AtomicBool::new(false),
            has_spoken: AtomicBool::new(false),
            is_authenticated: AtomicBool::new(false),
            untaken: Mutex::default(),
            next_answer: AtomicU64::new(0),
        }
    }

    /// An answer to a request, whose head is about to go.
    pub fn answer(self: &Arc<HttpConnection>, at_work: AtWork) -> Outgoing {
        let number = self.next_answer.fetch_add(1, Relaxed);
        let outgoing = Outgoing { connection: self.clone(), number, _at_work: at_work };
        outgoing.wait_for_client();
        outgoing
    }

    /// Whether the last request with credentials had the right ones.
    pub fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Relaxed)
    }

    /// Notes whether credentials were right.
    pub fn set_authenticated(&self, is_authenticated: bool) {
        self.is_authenticated.store(is_authenticated, Relaxed);
    }

    fn untaken(&self) -> std::sync::MutexGuard<'_, Vec<(u64, u64)>> {
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn was_read(&self, bytes: &[u8]) {
        let now_ms = self.connection.touch();
        if !self.has_spoken.swap(true, Relaxed) {
            self.is_http2.store(bytes.starts_with(b"PRI * HTTP/2"), Relaxed);
        }
        if !self.connection.is_busy() && self.head_since_ms.load(Relaxed) == 0 {
            self.head_since_ms.store(now_ms, Relaxed);
        }
    }

    /// Whether the next byte is the first one of a request.
    pub(super) fn is_between_requests(&self) -> bool {
        let is_head = self.head_since_ms.load(Relaxed) != 0;
        !self.connection.is_busy() && !is_head && !self.is_http2.load(Relaxed)
    }

    /// Marks a request as under way until the returned value is dropped.
    pub fn begin_request(&self) -> AtWork {
        let at_work = self.connection.begin();
        self.head_since_ms.store(0, Relaxed);
        at_work
    }

    /// What to do with it now.
    pub fn verdict(&self, http: &HttpConfig) -> Verdict {
        let now_ms = self.connection.now_ms();
        let longer_than =
            |since: u64, limit: Duration| limit.as_millis() as u64 <= now_ms.saturating_sub(since);
        if self.untaken().iter().any(|(_, since_ms)| longer_than(*since_ms, http.write_timeout)) {
            return Verdict::Stuck;
        }
        if self.connection.is_busy() {
            return Verdict::Keep;
        }
        let head_since_ms = self.head_since_ms.load(Relaxed);
        let is_head = head_since_ms != 0 && !self.is_http2.load(Relaxed);
        let active_at_ms = self.connection.active_at_ms();
        if is_head && longer_than(head_since_ms, http.header_timeout) {
            return Verdict::SlowHead;
        }
        if longer_than(active_at_ms, http.idle_timeout + http.write_timeout) {
            return Verdict::Stuck;
        }
        if longer_than(active_at_ms, http.idle_timeout) { Verdict::Idle } else { Verdict::Keep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    pub use app::config::{Config, Settings};
    use std::time::Instant;

    fn http(pairs: &[(&str, &str)]) -> HttpConfig {
        Config::new(Settings::from_pairs(pairs).expect("settings")).expect("config").http
    }

    fn connection() -> HttpConnection {
        HttpConnection::new(Arc::new(Connection::new(Instant::now(), None)))
    }

    #[test]
    fn an_answer_that_is_not_taken_ends_its_connection() {
        let patient = http(&[]);
        let strict = http(&[("http.write-timeout", "1ns")]);
        let connection = Arc::new(connection());
        let answers = [(); 2].map(|()| connection.answer(connection.begin_request()));
        assert_eq!(connection.verdict(&patient), Verdict::Keep);
        assert_eq!(connection.verdict(&strict), Verdict::Stuck);
        answers[1].wait_for_door();
        assert_eq!(connection.verdict(&strict), Verdict::Stuck, "the other is not taken");
        answers[0].wait_for_door();
        assert_eq!(connection.verdict(&strict), Verdict::Keep, "the doors work");
        answers[1].wait_for_client();
        assert_eq!(connection.verdict(&strict), Verdict::Stuck);
        drop(answers);
        assert_eq!(connection.verdict(&strict), Verdict::Keep);
        assert!(!connection.connection.is_busy());
    }

    #[test]
    fn verdicts() {
        let patient = http(&[]);
        let strict = http(&[("http.idle-timeout", "1ns"), ("http.header-timeout", "1ns")]);
        let connection = connection();
        assert_eq!(connection.verdict(&patient), Verdict::Keep);
        assert_eq!(connection.verdict(&strict), Verdict::Idle);
        connection.was_read(b"GET");
        assert_eq!(connection.verdict(&strict), Verdict::SlowHead);
        let request = connection.begin_request();
        assert_eq!(connection.verdict(&strict), Verdict::Keep);
        drop(request);
        assert_eq!(connection.verdict(&strict), Verdict::Idle);
        let http2 = self::connection();
        http2.was_read(b"PRI * HTTP/2.0\r\n");
        assert_eq!(http2.verdict(&strict), Verdict::Idle, "frames between requests are ordinary");
    }
}
