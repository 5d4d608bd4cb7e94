//! A replica's connection: first a dump of all keys, unless it only has to go on, then the feed.
//!
//! ```text
//! PSYNC ─► +CONTINUE ──────────────────────────────────────────► feed from its offset on
//!       └► +FULLRESYNC ─► $EOF:mark, dump piece by piece, mark ─► (its first ACK) ─► feed
//! ```
//! The dump is of the moment when it begins; what changes meanwhile waits in the feed.

use super::feed::{Replica, Stage};
use super::hello::Hello;
use crate::clients::session::Session;
use crate::redis::Redis;
use crate::version::REDIS_VERSION;
use kv::keyspace::DumpFormat;
use net::listeners::accept::Stop;
use net::listeners::connections::Connection;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use wire::resp::{Limits, Parsed, Requests};

/// Bytes of a dump that are made under one hold of the lock.
const PIECE_SIZE: usize = 128 << 10;
/// How long to wait until another dump has ended.
const DUMP_PATIENCE: Duration = Duration::from_secs(60);
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// What a replica may say at a time.
const LIMITS: Limits = Limits { arguments_max: 64, bulk_size_max: 4096 };
const SAID_SIZE_MAX: usize = 64 << 10;

/// The connection of a replica.
pub struct Serving<'a, S> {
    /// The door.
    pub redis: &'a Redis,
    /// Its bytes.
    pub stream: &'a mut S,
    /// Who it is.
    pub session: &'a mut Session,
    /// What it said that nobody has read yet.
    pub said: Vec<u8>,
    /// Its place among the connections.
    pub connection: &'a Connection,
    /// The word to stop.
    pub stop: Stop,
}

/// Why a connection ended.
type Ended = String;

/// Takes a dump's place when it ends, however that comes.
struct Dump<'a>(&'a Redis);

impl Drop for Dump<'_> {
    fn drop(&mut self) {
        self.0.kv.lock().end_dump();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Serving<'_, S> {
    /// Serves it until it goes.
    pub async fn serve(mut self) {
        let hello = self.session.hello.clone();
        let name =
            format!("replica {}", self.session.peer.map_or(String::new(), |a| a.to_string()));
        let ended = self.run(&hello).await;
        let redis = self.redis;
        let left = redis.replication.feed().replicas.remove(&self.session.id);
        if left.is_some() {
            let now_ms = redis.kv.now_ms();
            redis.replication.feed().alone_since_ms = now_ms;
        }
        match ended {
            Ok(()) => tracing::info!("{name} went"),
            Err(reason) => tracing::warn!("{name} is cut off: {reason}"),
        }
    }

    async fn run(&mut self, hello: &Hello) -> Result<(), Ended> {
        if !hello.takes_eof && hello.wanted.is_some() {
            let words: &[u8] =
                b"-ERR Quipu sends dumps without their length: say REPLCONF capa eof\r\n";
            return self.send(words).await;
        }
        let taken_over = match hello.hands_over {
            true => match self.take_over(hello).await {
                Ok(taken_over) => taken_over,
                Err(words) => return self.send(format!("-ERR {words}\r\n").as_bytes()).await,
            },
            false => None,
        };
        let wake = match taken_over.or_else(|| self.go_on(hello)) {
            Some((answer, wake)) => {
                self.send(&answer).await?;
                wake
            }
            None => self.send_all(hello).await?,
        };
        self.follow(&wake).await
    }

    fn limit(&self) -> Duration {
        let seconds = self.redis.hub().settings.number("repl-timeout");
        Duration::from_secs(u64::try_from(seconds).unwrap_or(60).max(1))
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let limit = self.limit();
        let mut stop = self.stop.clone();
        let sending = async {
            self.stream.write_all(bytes).await?;
            // TLS may keep the end back otherwise.
            self.stream.flush().await
        };
        let sent = tokio::select! {
            biased;
            sent = timeout(limit, sending) => sent,
            _ = self.connection.evicted.notified() => return Err("it was evicted".to_owned()),
            _ = stop.wait_for(|is_stopping| *is_stopping) => return Err("the server stops".to_owned()),
        };
        self.connection.touch();
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it took nothing for {limit:?} (repl-timeout)")),
        }
    }

    fn replica(&self, stage: Stage, position: u64) -> Replica {
        let hello = &self.session.hello;
        let peer = self.session.peer.map(|peer| peer.ip().to_string()).unwrap_or_default();
        Replica {
            host: if hello.host.is_empty() { peer } else { hello.host.clone() },
            port: hello.port,
            stage,
            position,
            acked: position,
            acked_ms: self.redis.kv.now_ms(),
            is_cut: None,
            wake: Arc::default(),
        }
    }

    /// Takes over from the primary of this server, which says so, and has it go on where it is: as its
    /// replica. None if what it has is not what is here, or this server has replicas of its own, whose
    /// feed has other offsets: it gets all keys then.
    async fn take_over(&mut self, hello: &Hello) -> Result<Option<(Vec<u8>, Arc<Notify>)>, Ended> {
        let redis = self.redis;
        let (id, next) = hello.wanted.as_ref().ok_or("PSYNC FAILOVER names no feed")?;
        let before = redis.replication.link.state().clone();
        if before.primary.is_none() {
            return Err("PSYNC FAILOVER can't be sent to a master.".to_owned());
        }
        if *id != before.id {
            return Err("PSYNC FAILOVER replid must match my replid.".to_owned());
        }
        let (kv, replication) = (redis.kv.clone(), redis.replication.clone());
        let noted = tokio::task::spawn_blocking(move || replication.link.note_nobody(&kv));
        noted.await.map_err(|_| "it cannot be noted".to_owned())??;
        tracing::info!("takes over from its primary, which said so (PSYNC FAILOVER)");
        redis.scripting.busy.calm().await;
        let wanted = u64::try_from(next - 1).ok().filter(|_| hello.takes_other_id);
        let Some((ours, position)) = redis.replication.link.take_over(redis, wanted) else {
            return Ok(None);
        };
        let mut feed = redis.replication.feed();
        feed.partial_count += 1;
        let replica = self.replica(Stage::Online, position);
        let wake = replica.wake.clone();
        feed.replicas.insert(self.session.id, replica);
        Ok(Some((format!("+CONTINUE {ours}\r\n").into_bytes(), wake)))
    }

    /// Has the replica go on where it was, if what it misses is still there.
    fn go_on(&self, hello: &Hello) -> Option<(Vec<u8>, Arc<Notify>)> {
        let (id, next) = hello.wanted.as_ref()?;
        let position = u64::try_from(next - 1).ok()?;
        let ours = self.redis.hub().replication_id.clone();
        let mut feed = self.redis.replication.feed();
        if *id != ours || !feed.has(position) {
            feed.partial_refused += u64::from(*id != "?");
            return None;
        }
        feed.partial_count += 1;
        let replica = self.replica(Stage::Online, position);
        let wake = replica.wake.clone();
        feed.replicas.insert(self.session.id, replica);
        let answer = match hello.takes_other_id {
            true => format!("+CONTINUE {ours}\r\n"),
            false => "+CONTINUE\r\n".to_owned(),
        };
        Some((answer.into_bytes(), wake))
    }

    /// Begins a dump and the replica's place in the feed, at one moment. None while another is made.
    fn begin(&self) -> Option<(String, u64, Arc<Notify>)> {
        let redis = self.redis;
        let mut keys = redis.kv.lock();
        let now_ms = redis.kv.now_ms();
        keys.set_now(now_ms);
        let codes: Vec<Vec<u8>> =
            redis.scripting.engine().libraries().map(|one| one.code.clone()).collect();
        let seconds = (now_ms / 1000).to_string();
        let notes: [(&str, &[u8]); 4] = [
            ("redis-ver", REDIS_VERSION.as_bytes()),
            ("redis-bits", b"64"),
            ("ctime", seconds.as_bytes()),
            ("quipu-ver", env!("CARGO_PKG_VERSION").as_bytes()),
        ];
        let id = {
            let hub = redis.hub();
            redis.limit_feed(&hub);
            hub.replication_id.clone()
        };
        let mut feed = redis.replication.feed();
        let format = match self.session.hello.takes_field_expiry {
            true => DumpFormat::Newest,
            // More would have the replica cut off while it loads the dump.
            false => DumpFormat::Redis7 { expiry_size_max: feed.behind_max() / 2 },
        };
        if !keys.begin_dump(format, &notes, &codes) {
            return None;
        }
        redis.kv.follow(true);
        (feed.is_on, feed.full_count) = (true, feed.full_count + 1);
        // The replica begins with the first database.
        feed.select_anew();
        let position = feed.end();
        let replica = self.replica(Stage::Dump, position);
        let wake = replica.wake.clone();
        feed.replicas.insert(self.session.id, replica);
        Some((id, position, wake))
    }

    /// Sends all keys.
    async fn send_all(&mut self, hello: &Hello) -> Result<Arc<Notify>, Ended> {
        let started = tokio::time::Instant::now();
        let (id, position, wake) = loop {
            self.redis.scripting.busy.calm().await;
            if let Some(begun) = self.begin() {
                break begun;
            }
            if DUMP_PATIENCE < started.elapsed() {
                self.send(b"-ERR another dump takes too long: try again later\r\n").await?;
                return Err("another dump was under way".to_owned());
            }
            sleep(LOOK_PAUSE).await;
        };
        let _dump = Dump(self.redis);
        let mark = self.redis.new_name();
        let mut head = String::new();
        if !hello.is_old {
            head += &format!("+FULLRESYNC {id} {position}\r\n");
        }
        head += &format!("$EOF:{mark}\r\n");
        self.send(head.as_bytes()).await?;
        loop {
            let piece = {
                self.redis.scripting.busy.calm().await;
                let mut keys = self.redis.kv.lock();
                keys.set_now(self.redis.kv.now_ms());
                let piece = keys.dump_some(PIECE_SIZE);
                // The expiry of fields follows in the feed.
                let sent = self.redis.kv.commit(&mut keys);
                sent.map_err(|error| format!("the log: {error}"))?;
                piece
            };
            let piece = piece.map_err(|error| error.0.into_owned())?;
            self.send(&piece.bytes).await?;
            if let Some(reason) = self.cut_reason() {
                return Err(reason);
            }
            if let Some(left_out) = piece.end {
                if !left_out.is_empty() {
                    tracing::warn!("left out of a dump for a replica: {}", left_out.words());
                    let sum = left_out.blooms + left_out.series + left_out.field_expiries;
                    self.redis.replication.feed().left_out += sum;
                }
                break;
            }
            tokio::task::yield_now().await;
        }
        self.send(mark.as_bytes()).await?;
        self.note(|replica, now_ms| {
            (replica.stage, replica.acked_ms) = (Stage::Loading, now_ms);
        });
        Ok(wake)
    }

    fn note(&self, change: impl FnOnce(&mut Replica, i64)) {
        let now_ms = self.redis.kv.now_ms();
        if let Some(replica) = self.redis.replication.feed().replicas.get_mut(&self.session.id) {
            change(replica, now_ms);
        }
    }

    fn cut_reason(&self) -> Option<String> {
        let feed = self.redis.replication.feed();
        feed.replicas.get(&self.session.id)?.is_cut.clone()
    }

    /// Sends the feed as it grows, and hears how far the replica is.
    async fn follow(&mut self, wake: &Notify) -> Result<(), Ended> {
        let mut requests = Requests::default();
        let limit = self.limit();
        loop {
            let (is_online, silent_ms) = self.look();
            if let Some(reason) = self.cut_reason() {
                return Err(reason);
            }
            if limit.as_millis() < u128::from(silent_ms) {
                return Err(format!("it said nothing for {limit:?} (repl-timeout)"));
            }
            if self.session.outbox.is_closed() {
                return Err("somebody closed it".to_owned());
            }
            let next = match is_online {
                true => self.redis.replication.feed().take(self.session.id),
                false => Vec::new(),
            };
            if !next.is_empty() {
                self.send(&next).await?;
                continue;
            }
            let mut stop = self.stop.clone();
            tokio::select! {
                biased;
                _ = stop.wait_for(|is_stopping| *is_stopping) => return Ok(()),
                _ = self.connection.evicted.notified() => return Err("it was evicted".to_owned()),
                () = self.session.outbox.wake.notified() => {}
                read = self.stream.read_buf(&mut self.said) => match read {
                    Ok(0) | Err(_) => return Ok(()),
                    Ok(_) => self.hear(&mut requests)?,
                },
                () = wake.notified() => {}
                () = sleep(Duration::from_secs(1)) => {}
            }
        }
    }

    /// Whether the replica follows, and for how many milliseconds it has said nothing.
    fn look(&self) -> (bool, u64) {
        let now_ms = self.redis.kv.now_ms();
        let feed = self.redis.replication.feed();
        let Some(replica) = feed.replicas.get(&self.session.id) else { return (false, 0) };
        let silent_ms = u64::try_from(now_ms - replica.acked_ms).unwrap_or(0);
        (replica.stage == Stage::Online, silent_ms)
    }

    /// Reads what the replica said: how far it is.
    fn hear(&mut self, requests: &mut Requests) -> Result<(), Ended> {
        self.connection.touch();
        // While it loads it sends line ends, so that nobody thinks it is gone.
        self.note(|replica, now_ms| replica.acked_ms = now_ms);
        let mut at = 0;
        while let Some(rest) = self.said.get(at..).filter(|rest| !rest.is_empty()) {
            match requests.parse(rest, &LIMITS) {
                Ok(Parsed::Nothing(size)) => at += size,
                Ok(Parsed::Command(size)) => {
                    let words: Vec<&[u8]> = requests.arguments(rest).collect();
                    let acked = acked(&words);
                    at += size;
                    if let Some(offset) = acked {
                        self.note(|replica, _| {
                            (replica.acked, replica.stage) = (offset, Stage::Online);
                        });
                        self.redis.tell_waiting();
                        self.redis.replication.failover.notify();
                    }
                }
                Ok(Parsed::Incomplete(_)) if rest.len() < SAID_SIZE_MAX => break,
                _ => return Err("it said what no replica says".to_owned()),
            }
        }
        self.said.drain(..at);
        Ok(())
    }
}

/// The offset that a replica says it has.
fn acked(words: &[&[u8]]) -> Option<u64> {
    match words {
        [name, word, offset, ..]
            if name.eq_ignore_ascii_case(b"replconf") && word.eq_ignore_ascii_case(b"ack") =>
        {
            std::str::from_utf8(offset).ok()?.parse().ok()
        }
        _ => None,
    }
}

impl Redis {
    /// Answers those who wait until replicas have something, if they do.
    fn tell_waiting(&self) {
        if self.scripting.busy.is_busy() {
            return;
        }
        if !self.hub().blocked.values().any(|blocked| blocked.replicas.is_some()) {
            return;
        }
        let mut keys = self.kv.lock();
        let mut hub = self.hub();
        let mut served = Vec::new();
        for (id, blocked) in &mut hub.blocked {
            let Some((offset, wanted)) = blocked.replicas else { continue };
            let count = self.replication.feed().acked_count(offset);
            blocked.otherwise = format!(":{count}\r\n").into_bytes();
            if wanted <= count {
                served.push((*id, blocked.otherwise.clone()));
            }
        }
        for (id, answer) in served {
            hub.serve(id, &mut keys, &answer);
        }
    }
}
