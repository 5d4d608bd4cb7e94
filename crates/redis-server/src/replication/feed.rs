//! What replicas are sent: one stream of commands for all, of which the end is kept.
//!
//! ```text
//! 0 ........... start ======= position of a replica ======= end      bytes since the feed began
//!   forgotten         kept: the backlog, and what replicas wait for
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;

/// Bytes that are taken at a time for one replica.
const TAKEN_SIZE_MAX: usize = 256 << 10;

/// How far a replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It gets a dump.
    Dump,
    /// It has got one and loads it.
    Loading,
    /// It follows.
    Online,
}

impl Stage {
    /// As `INFO` says it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Dump => "send_bulk",
            Stage::Loading | Stage::Online => "online",
        }
    }
}

/// A replica.
#[derive(Debug)]
pub struct Replica {
    /// Its host.
    pub host: String,
    /// The port at which it listens itself.
    pub port: u16,
    /// How far it is.
    pub stage: Stage,
    /// What it was sent, or is about to be.
    pub position: u64,
    /// What it says it has.
    pub acked: u64,
    /// When it said so, in milliseconds since the epoch.
    pub acked_ms: i64,
    /// Why it is to be cut off.
    pub is_cut: Option<String>,
    /// Told when there is more for it.
    pub wake: Arc<Notify>,
}

/// The stream.
#[derive(Debug, Default)]
pub struct Feed {
    bytes: VecDeque<u8>,
    /// The offset of the first byte that is kept.
    start: u64,
    /// The database that the stream has selected.
    db: Option<u8>,
    /// Bytes that are kept for those who come back.
    backlog_size: usize,
    /// Bytes that may wait for a replica.
    behind_max: usize,
    /// Whether changes are told.
    pub is_on: bool,
    /// Replicas by the number of their connection.
    pub replicas: BTreeMap<u64, Replica>,
    /// Values that were left out, for Redis has none such.
    pub left_out: u64,
    /// Since when there is no replica, in milliseconds since the epoch.
    pub alone_since_ms: i64,
    /// When replicas were last told that this server is there.
    pub pinged_ms: i64,
    /// Whole dumps that were sent.
    pub full_count: u64,
    /// Replicas that came back and went on.
    pub partial_count: u64,
    /// Those that could not.
    pub partial_refused: u64,
}

impl Feed {
    /// The offset behind the last byte.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The offset of the first byte that is kept.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes that are kept.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Sets what is kept, and what may wait for one replica.
    pub fn set_limits(&mut self, backlog_size: usize, behind_max: usize) {
        (self.backlog_size, self.behind_max) = (backlog_size, behind_max);
    }

    /// Bytes that may wait for one replica.
    pub fn behind_max(&self) -> usize {
        self.behind_max
    }

    /// Forgets all, as when nobody follows any more: then changes are not told.
    pub fn switch_off(&mut self) {
        self.start = self.end();
        self.bytes = VecDeque::new();
        (self.is_on, self.db) = (false, None);
    }

    /// Begins anew at an offset.
    pub fn begin_at(&mut self, offset: u64) {
        self.bytes = VecDeque::new();
        (self.start, self.is_on, self.db) = (offset, true, None);
    }

    /// The next command selects its database, whatever was selected before.
    pub fn select_anew(&mut self) {
        self.db = None;
    }

    /// Adds a command on a database, or on none.
    pub fn push(&mut self, db: Option<u8>, words: &[&[u8]]) {
        if let (Some(wanted), true) = (db, db != self.db) {
            self.db = db;
            self.push_words(&[b"SELECT", wanted.to_string().as_bytes()]);
        }
        self.push_words(words);
    }

    fn push_words(&mut self, words: &[&[u8]]) {
        put_command(words, &mut |bytes| self.bytes.extend(bytes));
    }

    /// Wakes replicas, cuts those off that are too far behind, and forgets what nobody needs.
    pub fn settle(&mut self) {
        let end = self.end();
        let mut needed = end.saturating_sub(self.backlog_size as u64);
        for replica in self.replicas.values_mut() {
            let behind = end.saturating_sub(replica.position);
            if self.behind_max as u64 <= behind && replica.is_cut.is_none() {
                replica.is_cut = Some(format!(
                    "it is {behind} bytes behind: client-output-buffer-limit replica is {}",
                    self.behind_max
                ));
            }
            if replica.is_cut.is_none() {
                needed = needed.min(replica.position);
            }
            replica.wake.notify_one();
        }
        let gone = needed.saturating_sub(self.start);
        let gone = usize::try_from(gone).unwrap_or(usize::MAX).min(self.bytes.len());
        self.bytes.drain(..gone);
        self.start += gone as u64;
        if self.bytes.capacity() / 4 > self.bytes.len().max(1 << 20) {
            self.bytes.shrink_to(self.bytes.len() * 2);
        }
    }

    /// Whether the stream can go on from that offset.
    pub fn has(&self, offset: u64) -> bool {
        self.is_on && (self.start..=self.end()).contains(&offset)
    }

    /// Takes what comes next for a replica.
    pub fn take(&mut self, id: u64) -> Vec<u8> {
        let Some(replica) = self.replicas.get_mut(&id) else { return Vec::new() };
        let from = usize::try_from(replica.position.saturating_sub(self.start)).unwrap_or(0);
        let to = self.bytes.len().min(from.saturating_add(TAKEN_SIZE_MAX));
        let taken: Vec<u8> = self.bytes.range(from.min(to)..to).copied().collect();
        replica.position += taken.len() as u64;
        taken
    }

    /// How many replicas have what is before an offset.
    pub fn acked_count(&self, offset: u64) -> usize {
        let online = self.replicas.values().filter(|replica| replica.stage == Stage::Online);
        online.filter(|replica| offset <= replica.acked).count()
    }
}

/// A command as it is sent.
pub fn put_command(words: &[&[u8]], out: &mut dyn FnMut(&[u8])) {
    out(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out(format!("${}\r\n", word.len()).as_bytes());
        out(word);
        out(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(position: u64) -> Replica {
        Replica {
            host: String::new(),
            port: 1,
            stage: Stage::Online,
            position,
            acked: 0,
            acked_ms: 0,
            is_cut: None,
            wake: Arc::default(),
        }
    }

    #[test]
    fn what_is_needed_is_kept() {
        let mut feed = Feed { is_on: true, ..Feed::default() };
        feed.set_limits(50, 500);
        feed.replicas.insert(1, replica(0));
        feed.push(Some(0), &[b"SET", b"a", b"1"]);
        feed.push(Some(0), &[b"SET", b"a", b"2"]);
        feed.settle();
        let sent = feed.take(1);
        let select = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";
        assert!(sent.starts_with(select) && sent.ends_with(b"\r\n2\r\n"));
        assert_eq!(sent.len() as u64, feed.end());
        feed.settle();
        assert_eq!(feed.len(), 50, "the backlog");
        assert!(feed.has(feed.end() - 50) && !feed.has(feed.end() - 51));
        feed.push(Some(0), &[b"SET", b"a", &[b'x'; 600]]);
        feed.settle();
        let cut = feed.replicas[&1].is_cut.clone().unwrap_or_default();
        assert!(cut.contains("client-output-buffer-limit replica is 500"), "{cut}");
        assert_eq!(feed.len(), 50, "nobody needs it");
    }
}
