//! One connection: bytes in, batches of commands, bytes out.
//!
//! ```text
//! read ─► as many commands as are whole, under one lock ─► commit ─► (on disk, if always) ─► write
//! ```
//! A batch ends early when its answers grow large: nothing more is executed for a client that does
//! not read.

use super::client::{Client, Outbox};
use super::commands::Flow;
use super::hub::Hub;
use super::out::Out;
use super::session::{ReplyMode, Session};
use crate::app::App;
use crate::listeners::accept::{Door, Stop};
use crate::listeners::connections::Connection;
use kv::{Kv, KvDurability, Reply as _};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until};
use wire::resp::{Limits, Parsed, Requests};

/// Bytes that are read at a time.
const READ_SIZE: usize = 16 << 10;
/// Answers that end a batch.
const BATCH_ANSWER_SIZE: usize = 256 << 10;
/// Buffers larger than this are given back when they are empty.
const KEPT_SIZE_MAX: usize = 64 << 10;
/// Arguments of a command.
const ARGUMENTS_MAX: usize = 1 << 20;
/// Bytes of a command of somebody who has not said who they are.
const UNKNOWN_BULK_SIZE_MAX: usize = 16 << 10;
/// Arguments of such a command.
const UNKNOWN_ARGUMENTS_MAX: usize = 10;

/// The door.
pub struct Redis {
    /// What all doors share.
    pub app: Arc<App>,
    /// The keys.
    pub kv: Arc<Kv>,
    /// Where it listens.
    pub address: SocketAddr,
    hub: Mutex<Hub>,
    idle_timeout: Option<Duration>,
}

impl Redis {
    /// A door to those keys.
    pub fn new(
        app: Arc<App>,
        kv: Arc<Kv>,
        idle_timeout: Option<Duration>,
        address: SocketAddr,
    ) -> Redis {
        Redis { app, kv, address, hub: Mutex::default(), idle_timeout }
    }

    /// What connections share. Locked after the keys.
    pub fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, peer: Option<SocketAddr>) -> Session {
        let now_ms = self.kv.now_ms();
        let mut hub = self.hub();
        let (outbox, is_dirty) = (Arc::<Outbox>::default(), Arc::<AtomicBool>::default());
        let id = hub.new_id();
        let client = Client {
            id,
            peer,
            outbox: outbox.clone(),
            is_dirty: is_dirty.clone(),
            version: 2,
            name: Vec::new(),
            db: 0,
            since_ms: now_ms,
            active_ms: now_ms,
            last_command: "NULL",
        };
        hub.clients.insert(id, client);
        Session {
            id,
            peer,
            db: 0,
            is_known: !self.app.config.credentials.are_required(),
            out: Out::new(2),
            outbox,
            transaction: None,
            is_dirty,
            is_watching: false,
            channels: HashSet::new(),
            patterns: HashSet::new(),
            shard_channels: HashSet::new(),
            reply: ReplyMode::On,
        }
    }

    fn leave(&self, session: &Session) {
        let mut keys = self.kv.lock();
        self.hub().remove(session.id, &mut keys);
    }
}

impl Door for Redis {
    const NO_ROOM: &'static [u8] = b"-ERR max number of clients reached\r\n";

    async fn serve<S>(self: Arc<Self>, stream: S, connection: Arc<Connection>, stop: Stop)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let session = self.enter(connection.peer);
        let mut served = Served {
            redis: &self,
            stream,
            connection,
            stop,
            session,
            requests: Requests::default(),
            bytes: Vec::new(),
            is_waiting: false,
        };
        served.serve().await;
        let session = served.session;
        self.leave(&session);
    }
}

/// What comes next for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// More bytes are needed.
    Read,
    /// There is more to execute once the answers are sent.
    Execute,
    /// It ends.
    End,
}

/// What ended a wait.
enum Woken {
    /// Something is in the outbox.
    ByOthers,
    /// So many bytes came; none at the end.
    ByClient(usize),
    ByTime,
    ToEnd,
}

struct Served<'a, S> {
    redis: &'a Redis,
    stream: S,
    connection: Arc<Connection>,
    stop: Stop,
    session: Session,
    requests: Requests,
    /// What was read and is not yet executed.
    bytes: Vec<u8>,
    /// Whether a command waits for a key.
    is_waiting: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Served<'_, S> {
    async fn serve(&mut self) {
        loop {
            let next = if self.is_waiting { Next::Read } else { self.execute().await };
            if self.write().await.is_err() || next == Next::End {
                return;
            }
            if next == Next::Execute {
                // Others have their turn, too.
                tokio::task::yield_now().await;
                continue;
            }
            if !self.wait().await {
                let _ = self.write().await;
                return;
            }
        }
    }

    /// Waits for something to do. Returns false at the end.
    async fn wait(&mut self) -> bool {
        if self.bytes.capacity() - self.bytes.len() < READ_SIZE / 4 {
            self.bytes.reserve(READ_SIZE.max(self.bytes.len()));
        }
        let deadline = self.deadline();
        let timer = async {
            match deadline {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let outbox = self.session.outbox.clone();
        let woken = tokio::select! {
            biased;
            () = outbox.wake.notified() => Woken::ByOthers,
            read = self.stream.read_buf(&mut self.bytes) => Woken::ByClient(read.unwrap_or(0)),
            _ = self.connection.evicted.notified() => Woken::ToEnd,
            _ = self.stop.wait_for(|is_stopping| *is_stopping) => Woken::ToEnd,
            () = timer => Woken::ByTime,
        };
        match woken {
            Woken::ByOthers => self.take_outbox(),
            Woken::ByClient(size) => {
                self.connection.touch();
                0 < size
            }
            Woken::ByTime => self.time_is_up(),
            Woken::ToEnd => false,
        }
    }

    /// When to stop waiting: for a key, or for a client that says nothing.
    fn deadline(&self) -> Option<Instant> {
        if self.is_waiting {
            let hub = self.redis.hub();
            let blocked = hub.blocked.get(&self.session.id)?;
            let left = blocked.wait.deadline_ms? - self.redis.kv.now_ms();
            return Some(Instant::now() + Duration::from_millis(u64::try_from(left).unwrap_or(0)));
        }
        match self.session.subscription_count() {
            0 => self.redis.idle_timeout.map(|time| Instant::now() + time),
            _ => None,
        }
    }

    /// A command has waited in vain, or the client has said nothing for too long.
    fn time_is_up(&mut self) -> bool {
        if !self.is_waiting {
            return false;
        }
        let mut keys = self.redis.kv.lock();
        let mut hub = self.redis.hub();
        if let Some(blocked) = hub.unblock(self.session.id, &mut keys) {
            match blocked.wait.otherwise {
                kv::call::Otherwise::NullArray => self.session.out.null_array(),
                kv::call::Otherwise::Null => self.session.out.null(),
            }
        }
        drop((hub, keys));
        // Served at the last moment: the answer is in the outbox.
        self.take_outbox()
    }

    /// Takes what others left. Returns false when the connection is to be closed.
    fn take_outbox(&mut self) -> bool {
        let left = self.session.outbox.take();
        self.session.out.0.bytes_mut().extend_from_slice(&left);
        if self.is_waiting {
            self.is_waiting = self.redis.hub().blocked.contains_key(&self.session.id);
        }
        !self.session.outbox.is_closed()
    }

    fn limits(&self) -> Limits {
        match self.session.is_known {
            true => Limits {
                arguments_max: ARGUMENTS_MAX,
                bulk_size_max: kv::commands::string::STRING_SIZE_MAX,
            },
            false => Limits {
                arguments_max: UNKNOWN_ARGUMENTS_MAX,
                bulk_size_max: UNKNOWN_BULK_SIZE_MAX,
            },
        }
    }

    /// Executes what has been read, and makes it as durable as promised.
    async fn execute(&mut self) -> Next {
        if self.bytes.is_empty() {
            return Next::Read;
        }
        let redis = self.redis;
        let _at_work = self.connection.begin();
        let start = self.session.out.0.bytes().len();
        let (next, committed, is_crowded) = {
            let mut keys = redis.kv.lock();
            keys.set_now(redis.kv.now_ms());
            let mut hub = redis.hub();
            let next = self.execute_all(&mut keys, &mut hub);
            drop(hub);
            let committed = redis.kv.commit(&mut keys);
            (next, committed, keys.is_crowded())
        };
        if is_crowded {
            redis.kv.make_room();
        }
        let durable = match committed {
            Ok(Some(lsn)) if redis.kv.durability() == KvDurability::Always => {
                let kv = redis.kv.clone();
                let waited = tokio::task::spawn_blocking(move || kv.wait_durable(lsn)).await;
                waited.is_ok_and(|result| result.is_ok())
            }
            Ok(_) => true,
            Err(_) => false,
        };
        if !durable {
            // Nothing of the batch may look as if it were kept.
            self.session.out.0.bytes_mut().truncate(start);
            let reason = redis.kv.failure().unwrap_or_default();
            self.session.out.error(&format!("MISCONF the log failed: {reason}"));
            return Next::End;
        }
        next
    }

    fn execute_all(&mut self, keys: &mut kv::Keyspace, hub: &mut Hub) -> Next {
        let mut at = 0;
        let next = loop {
            let limits = self.limits();
            let rest = self.bytes.get(at..).unwrap_or_default();
            if rest.is_empty() {
                break Next::Read;
            }
            let size = match self.requests.parse(rest, &limits) {
                Ok(Parsed::Command(size)) => size,
                Ok(Parsed::Nothing(size)) => {
                    at += size;
                    continue;
                }
                Ok(Parsed::Incomplete(wanted)) => {
                    self.bytes.reserve(wanted.saturating_sub(rest.len()).min(1 << 20));
                    break Next::Read;
                }
                Err(error) => {
                    self.session.out.error(&format!("ERR Protocol error: {error}"));
                    break Next::End;
                }
            };
            let args: Vec<&[u8]> = self.requests.arguments(rest).collect();
            let flow = self.redis.execute(&mut self.session, keys, hub, &args);
            at += size;
            match flow {
                Flow::Next => {}
                Flow::Wait => {
                    self.is_waiting = true;
                    break Next::Read;
                }
                Flow::Close => break Next::End,
            }
            if BATCH_ANSWER_SIZE < self.session.out.0.bytes().len() || Kv::is_record_full(keys) {
                break Next::Execute;
            }
        };
        self.bytes.drain(..at);
        if self.bytes.is_empty() && KEPT_SIZE_MAX < self.bytes.capacity() {
            self.bytes = Vec::new();
        }
        next
    }

    /// Sends what has gathered.
    async fn write(&mut self) -> std::io::Result<()> {
        if self.session.out.0.bytes().is_empty() {
            return Ok(());
        }
        let mut stopped = self.stop.clone();
        let bytes = self.session.out.0.bytes_mut();
        let written = tokio::select! {
            biased;
            written = self.stream.write_all(bytes) => written,
            _ = self.connection.evicted.notified() => Err(std::io::ErrorKind::TimedOut.into()),
            _ = stopped.wait_for(|is_stopping| *is_stopping) => {
                Err(std::io::ErrorKind::ConnectionAborted.into())
            }
        };
        bytes.clear();
        if KEPT_SIZE_MAX < bytes.capacity() {
            *bytes = Vec::new();
        }
        self.connection.touch();
        written
    }
}
