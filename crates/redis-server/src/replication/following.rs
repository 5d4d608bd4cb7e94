//! Following a primary, by whatever comes between.
//!
//! ```text
//! connect ─► AUTH, REPLCONF ─► PSYNC ─► +FULLRESYNC ─► spool: the dump, checked, then loaded
//!    ▲                               └► +CONTINUE                  │
//!    └── a second later ◄── anything that breaks ◄── commands ◄────┘   REPLCONF ACK each second
//! ```

use super::hello::FIELD_EXPIRY;
use super::link::{Stage, State};
use super::spool::Spool;
use super::tls::{self, TlsWords, Wire};
use crate::clients::session::Session;
use crate::commands::Flow;
use crate::redis::Redis;
use crate::replication::feed::put_command;
use kv::{Kv, KvDurability};
use net::listeners::accept::Stop;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use wire::resp::{Limits, Parsed, Requests};

/// How long to wait after something broke.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How often the primary is told how far this server is.
const ACK_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes that are read at a time.
const READ_SIZE: usize = 64 << 10;
/// Longest line of a handshake.
const LINE_SIZE_MAX: usize = 4096;
/// What a primary may send.
const LIMITS: Limits = Limits { arguments_max: 1 << 20, bulk_size_max: 512 << 20 };

/// Follows whomever the link says, until the server ends.
pub async fn run(door: Arc<Redis>, stop: Stop) {
    follow_all(&door, stop).await;
    door.replication.link.is_ended.store(true, Relaxed);
}

async fn follow_all(door: &Arc<Redis>, mut stop: Stop) {
    loop {
        let link = &door.replication.link;
        let (primary, generation) = {
            let state = link.state();
            (state.primary.clone(), state.generation)
        };
        let Some((host, port)) = primary else {
            tokio::select! {
                () = link.changed.notified() => continue,
                _ = stop.wait_for(|is_stopping| *is_stopping) => return,
            }
        };
        let session = door.enter_primary();
        let mut following = Following {
            door,
            generation,
            stream: None,
            bytes: Vec::new(),
            requests: Requests::default(),
            session,
        };
        let ended = tokio::select! {
            ended = unwound(following.follow(&host, port)) => ended,
            () = link.changed.notified() => Ok(()),
            _ = stop.wait_for(|is_stopping| *is_stopping) => Ok(()),
        };
        door.leave(&following.session);
        if *stop.borrow() {
            return;
        }
        if let Err(reason) = ended {
            tracing::warn!("the primary {host}:{port}: {reason}; trying again");
            let mut state = link.state();
            if state.stage == Stage::Connected || state.down_since_ms == 0 {
                state.down_since_ms = door.kv.now_ms();
            }
            (state.stage, state.failure) = (Stage::Connect, reason);
        }
        tokio::select! {
            () = sleep(RETRY_PAUSE) => {}
            () = link.changed.notified() => {}
            _ = stop.wait_for(|is_stopping| *is_stopping) => return,
        }
    }
}

/// The outcome of following a primary; an error if that panicked, so that whoever asks hears of it
/// and it is tried again.
async fn unwound(following: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let mut following = pin!(following);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| following.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err("it failed; the log says how".to_owned())))
    })
    .await
}

/// What the primary said to `PSYNC`.
enum Begins {
    /// All anew: the name of its feed and where it is.
    Anew(String, u64),
    /// Where this server was, perhaps under another name.
    On(Option<String>),
}

struct Following<'a> {
    door: &'a Arc<Redis>,
    generation: u64,
    stream: Option<Box<dyn Wire>>,
    /// What came and is not used yet.
    bytes: Vec<u8>,
    requests: Requests,
    session: Session,
}

impl Following<'_> {
    fn limit(&self) -> Duration {
        let seconds = self.door.hub().settings.number("repl-timeout");
        Duration::from_secs(u64::try_from(seconds).unwrap_or(60).max(1))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.door.replication.link.state()
    }

    async fn follow(&mut self, host: &str, port: u16) -> Result<(), String> {
        self.state().stage = Stage::Connecting;
        let connecting = TcpStream::connect((host.trim_matches(['[', ']']), port));
        let connected = timeout(self.limit(), connecting).await;
        let connected = connected.map_err(|_| "it cannot be reached in time".to_owned())?;
        let stream = connected.map_err(|error| format!("it cannot be reached: {error}"))?;
        let _ = stream.set_nodelay(true);
        self.stream = Some(self.wire(host, stream).await?);
        self.introduce().await?;
        match self.ask().await? {
            Begins::Anew(id, offset) => {
                tracing::info!("all keys come from the primary {host}:{port} ({id} at {offset})");
                self.take_all(id, offset).await?;
            }
            Begins::On(id) => {
                let mut state = self.state();
                state.id = id.unwrap_or_else(|| std::mem::take(&mut state.id));
                tracing::info!("the primary {host}:{port} goes on at {}", state.offset);
                let db = state.db;
                drop(state);
                self.session.db = db;
            }
        }
        {
            let now_ms = self.door.kv.now_ms();
            let mut state = self.state();
            state.stage = Stage::Connected;
            (state.heard_ms, state.down_since_ms) = (now_ms, 0);
            state.failure.clear();
        }
        self.follow_commands().await
    }

    // ---- the wire ----

    /// The connection, in TLS if the parameters say so.
    async fn wire(&mut self, host: &str, stream: TcpStream) -> Result<Box<dyn Wire>, String> {
        let words = TlsWords::of(&self.door.hub().settings);
        let Some(words) = words else { return Ok(Box::new(stream)) };
        let limit = self.limit();
        let connecting = tls::connect(words, host.trim_matches(['[', ']']), stream);
        let connected = timeout(limit, connecting).await;
        connected.unwrap_or_else(|_| Err("its TLS is not there in time".to_owned()))
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let limit = self.limit();
        let stream = self.stream.as_mut().ok_or("not connected")?;
        let sending = async {
            stream.write_all(bytes).await?;
            // TLS may keep the end back otherwise.
            stream.flush().await
        };
        match timeout(limit, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("it cannot be told anything: {error}")),
            Err(_) => Err(format!("it takes nothing for {limit:?} (repl-timeout)")),
        }
    }

    async fn read(&mut self) -> Result<(), String> {
        let limit = self.limit();
        let stream = self.stream.as_mut().ok_or("not connected")?;
        self.bytes.reserve(READ_SIZE);
        match timeout(limit, stream.read_buf(&mut self.bytes)).await {
            Ok(Ok(0)) => Err("it hung up".to_owned()),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("it broke off: {error}")),
            Err(_) => Err(format!("it says nothing for {limit:?} (repl-timeout)")),
        }
    }

    /// The next line that is not empty: empty ones say that the other end is busy.
    async fn line(&mut self) -> Result<String, String> {
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                if !line.is_empty() {
                    return Ok(line);
                }
                continue;
            }
            if LINE_SIZE_MAX < self.bytes.len() {
                return Err("it says a line that is too long".to_owned());
            }
            self.read().await?;
        }
    }

    async fn say(&mut self, words: &[&[u8]]) -> Result<String, String> {
        let mut bytes = Vec::new();
        put_command(words, &mut |part| bytes.extend_from_slice(part));
        self.send(&bytes).await?;
        self.line().await
    }

    async fn introduce(&mut self) -> Result<(), String> {
        let (user, password, announced) = {
            let hub = self.door.hub();
            let text = |name: &str| hub.settings.text(name).to_owned();
            (text("masteruser"), text("masterauth"), text("replica-announce-port"))
        };
        if !password.is_empty() {
            let answer = match user.is_empty() {
                true => self.say(&[b"AUTH", password.as_bytes()]).await?,
                false => self.say(&[b"AUTH", user.as_bytes(), password.as_bytes()]).await?,
            };
            if answer.starts_with('-') {
                return Err(format!("it refuses masteruser and masterauth: {answer}"));
            }
        }
        let answer = self.say(&[b"PING"]).await?;
        if answer.starts_with("-NOAUTH") {
            return Err(format!("it wants a password (CONFIG SET masterauth): {answer}"));
        }
        if answer.starts_with('-') {
            return Err(format!("it answers PING with {answer}"));
        }
        let port = match announced.as_str() {
            "" | "0" => self.door.address.port().to_string(),
            announced => announced.to_owned(),
        };
        // Old primaries know none of this, and that does no harm.
        self.say(&[b"REPLCONF", b"listening-port", port.as_bytes()]).await?;
        self.say(&[b"REPLCONF", b"capa", b"eof", b"capa", b"psync2"]).await?;
        self.say(&[b"REPLCONF", b"capa", FIELD_EXPIRY]).await?;
        Ok(())
    }

    async fn ask(&mut self) -> Result<Begins, String> {
        let (id, next, hands_over) = {
            let state = self.state();
            let (id, next) = match state.id.is_empty() || state.is_partial {
                true => ("?".to_owned(), "-1".to_owned()),
                false => (state.id.clone(), (state.offset + 1).to_string()),
            };
            (id, next, state.hands_over)
        };
        let answer = match hands_over {
            true => self.say(&[b"PSYNC", id.as_bytes(), next.as_bytes(), b"FAILOVER"]).await?,
            false => self.say(&[b"PSYNC", id.as_bytes(), next.as_bytes()]).await?,
        };
        if hands_over {
            self.handed_over(&answer).await;
        }
        let words: Vec<&str> = answer.split_whitespace().collect();
        match words[..] {
            ["+FULLRESYNC", id, offset] => {
                // Redis' are signed; what is added to it stays far below what has no place.
                let offset = offset.parse().ok().filter(|at: &u64| i64::try_from(*at).is_ok());
                let offset = offset.ok_or_else(|| format!("it answers {answer}"))?;
                Ok(Begins::Anew(id.to_owned(), offset))
            }
            ["+CONTINUE", ..] if id == "?" => {
                Err(format!("it answers {answer} to who begins anew"))
            }
            ["+CONTINUE"] => Ok(Begins::On(None)),
            ["+CONTINUE", id] => Ok(Begins::On(Some(id.to_owned()))),
            _ => Err(format!("it answers PSYNC with {answer}")),
        }
    }

    /// The replica that is to take over has answered: it does, or it is given up.
    async fn handed_over(&mut self, answer: &str) {
        let failover = &self.door.replication.failover;
        if answer.starts_with('-') {
            return failover.end();
        }
        self.state().hands_over = false;
        super::failover::finish(self.door).await;
    }

    // ---- all keys ----

    async fn take_all(&mut self, id: String, offset: u64) -> Result<(), String> {
        {
            let mut state = self.state();
            state.stage = Stage::Sync;
            (state.dump_read, state.dump_size) = (0, None);
            // Half of it is nothing to go on from.
            state.id.clear();
        }
        let spool = self.receive().await?;
        let (door, generation) = (self.door.clone(), self.generation);
        let mut loading = tokio::task::spawn_blocking(move || spool.load(&door, generation));
        let loaded = loop {
            tokio::select! {
                loaded = &mut loading => break loaded,
                // So that nobody thinks this one is gone.
                () = sleep(ACK_INTERVAL) => self.send(b"\n").await.unwrap_or(()),
            }
        };
        let loaded = loaded.map_err(|_| "loading its dump failed; the log says why".to_owned())?;
        let counts = loaded?;
        tracing::info!("{} keys of the primary are in", counts.keys);
        {
            let mut state = self.state();
            state.left_out = counts.left_out;
            state.dump_count += 1;
            (state.id, state.offset, state.db) = (id, offset, 0);
        }
        self.session.db = 0;
        self.session.transaction = None;
        self.acknowledge().await
    }

    /// Receives a dump into a file.
    async fn receive(&mut self) -> Result<Spool, String> {
        let head = self.line().await?;
        let head = head.strip_prefix('$').ok_or(format!("it sends no dump, but {head}"))?;
        let mark = head.strip_prefix("EOF:").map(|mark| mark.as_bytes().to_vec());
        if mark.as_ref().is_some_and(|mark| mark.len() != 40) {
            return Err("the end of its dump is marked in an unknown way".to_owned());
        }
        let size = match &mark {
            Some(_) => None,
            None => Some(head.parse::<u64>().map_err(|_| format!("a dump of {head} bytes"))?),
        };
        self.state().dump_size = size;
        let mut spool = Spool::create(self.door, size)?;
        loop {
            let is_whole = match (&mark, size) {
                (Some(mark), _) => {
                    let is_whole = self.bytes.ends_with(mark);
                    let kept = if is_whole { 0 } else { mark.len() };
                    let end = self.bytes.len().saturating_sub(mark.len());
                    spool.gather(self.bytes.drain(..end));
                    self.bytes.truncate(kept);
                    is_whole
                }
                (None, size) => {
                    let left = size.unwrap_or(0).saturating_sub(spool.size());
                    let end = self.bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    spool.gather(self.bytes.drain(..end));
                    spool.size() == size.unwrap_or(0)
                }
            };
            spool = spool.write_some(is_whole).await?;
            self.state().dump_read = spool.size();
            if is_whole {
                return Ok(spool);
            }
            self.read().await?;
            self.state().heard_ms = self.door.kv.now_ms();
        }
    }

    // ---- commands ----

    async fn acknowledge(&mut self) -> Result<(), String> {
        let offset = self.state().offset.to_string();
        let mut bytes = Vec::new();
        put_command(&[b"REPLCONF", b"ACK", offset.as_bytes()], &mut |part| {
            bytes.extend_from_slice(part);
        });
        self.send(&bytes).await
    }

    async fn follow_commands(&mut self) -> Result<(), String> {
        let mut ack_at = Instant::now();
        let limit = self.limit();
        let mut heard_at = Instant::now();
        loop {
            self.apply_all().await?;
            if ack_at <= Instant::now() {
                self.acknowledge().await?;
                ack_at = Instant::now() + ACK_INTERVAL;
            }
            if limit < heard_at.elapsed() {
                return Err(format!("it says nothing for {limit:?} (repl-timeout)"));
            }
            let outbox = self.session.outbox.clone();
            let stream = self.stream.as_mut().ok_or("not connected")?;
            self.bytes.reserve(READ_SIZE);
            tokio::select! {
                read = stream.read_buf(&mut self.bytes) => match read {
                    Ok(0) => return Err("it hung up".to_owned()),
                    Ok(_) => {
                        heard_at = Instant::now();
                        self.state().heard_ms = self.door.kv.now_ms();
                    }
                    Err(error) => return Err(format!("it broke off: {error}")),
                },
                () = outbox.wake.notified() => {
                    outbox.take();
                    if outbox.is_closed() {
                        return Err("somebody closed the connection".to_owned());
                    }
                }
                () = sleep_until(ack_at) => {}
            }
        }
    }

    /// Does what has come of commands.
    async fn apply_all(&mut self) -> Result<(), String> {
        loop {
            self.door.scripting.busy.calm().await;
            let batch = self.apply_some()?;
            if let Some(work) = self.session.work.take() {
                let mut out = crate::out::Out::new(2);
                let done = tokio::task::spawn_blocking(move || work(&mut out));
                done.await.map_err(|_| "its command failed; the log says why".to_owned())?;
            }
            if let (Some(lsn), KvDurability::Always) = (batch.lsn, self.door.kv.durability()) {
                let kv = self.door.kv.clone();
                let waited = tokio::task::spawn_blocking(move || kv.wait_durable(lsn)).await;
                if !waited.is_ok_and(|result| result.is_ok()) {
                    return Err("the log failed".to_owned());
                }
            }
            if self.session.transaction.is_none() {
                let read = std::mem::take(&mut self.session.primary_read);
                let mut state = self.state();
                (state.offset, state.db) = (state.offset + read, self.session.db);
            }
            if batch.wants_ack {
                self.acknowledge().await?;
            }
            if !batch.has_more {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    /// Does some commands under one hold of the lock.
    fn apply_some(&mut self) -> Result<Batch, String> {
        let door = self.door.clone();
        let mut batch = Batch::default();
        if self.bytes.is_empty() {
            return Ok(batch);
        }
        let mut keys = door.kv.lock();
        self.session.set_clock(door.app.vfs.now(), &mut keys);
        let mut hub = door.hub();
        self.session.user_generation = hub.acl.generation;
        keys.sees_expired = true;
        let mut at = 0;
        let ended = loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            if rest.is_empty() || batch.wants_ack {
                break Ok(());
            }
            match self.requests.parse(rest, &LIMITS) {
                Ok(Parsed::Nothing(size)) => {
                    at += size;
                    self.session.primary_read += size as u64;
                }
                Ok(Parsed::Command(size)) => {
                    let args: Vec<&[u8]> = self.requests.arguments(rest).collect();
                    batch.wants_ack = is_ask_for_ack(&args);
                    let flow = match batch.wants_ack {
                        true => Flow::Next,
                        false => door.obey(&mut self.session, &mut keys, &mut hub, &args),
                    };
                    at += size;
                    self.session.primary_read += size as u64;
                    if flow != Flow::Next || Kv::is_record_full(&keys) {
                        batch.has_more = true;
                        break Ok(());
                    }
                }
                Ok(Parsed::Incomplete(_)) => break Ok(()),
                Err(error) => break Err(format!("it sends what is no command: {error}")),
            }
        };
        batch.has_more |= batch.wants_ack;
        (keys.sees_expired, keys.is_writing) = (false, false);
        drop(hub);
        batch.lsn = door.kv.commit(&mut keys).map_err(|error| format!("the log: {error}"))?;
        let is_crowded = keys.is_crowded();
        drop(keys);
        if is_crowded {
            door.kv.make_room();
        }
        self.bytes.drain(..at);
        if self.bytes.is_empty() && READ_SIZE * 4 < self.bytes.capacity() {
            self.bytes = Vec::new();
        }
        ended.map(|()| batch)
    }
}

/// What became of some commands.
#[derive(Default)]
struct Batch {
    lsn: Option<wal::Lsn>,
    has_more: bool,
    wants_ack: bool,
}

fn is_ask_for_ack(args: &[&[u8]]) -> bool {
    matches!(args, [name, word, ..]
        if name.eq_ignore_ascii_case(b"replconf") && word.eq_ignore_ascii_case(b"getack"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_while_following_is_an_error_that_is_told() {
        assert_eq!(unwound(async { Ok(()) }).await, Ok(()));
        let ended = unwound(async {
            tokio::task::yield_now().await;
            panic!("on purpose")
        });
        assert!(ended.await.is_err_and(|words| words.contains("the log says how")));
    }
}
