//! One connection: bytes in, batches of commands, bytes out.
//!
//! ```text
//! read ─► as many commands as are whole, under one lock ─► commit ─► (on disk, if always) ─► write
//! ```
//! A batch ends early when its answers grow large: nothing more is executed for a client that does
//! not read. It pauses, and gives the keys back, where a value must be read from disk (`fetching`) or a
//! command needs memory that is not there yet (`room`).

mod ahead;
pub mod closed;
mod foreign;
mod greeting;
mod input;
mod partial;
mod sending;
mod writing;

use crate::clients::client::Piece;
use crate::clients::session::{ReplyMode, Session};
use crate::commands::Flow;
use crate::connection::ahead::{AHEAD_MAX, Ahead, Behind};
use crate::connection::input::Input;
use crate::hub::{Hub, HubGuard};
use crate::memory::client_memory::Charge;
use crate::memory::room::RoomWait;
use crate::out::Out;
use crate::persistence::fetching::{self, Arrived};
use crate::redis::Redis;
use crate::replication::primary::Serving;
use kv::keyspace::Fetch;
use kv::{Keyspace, Kv, KvDurability, Reply as _};
use net::listeners::accept::{Door, Stop};
use net::listeners::connections::Connection;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until};
use wal::Lsn;
use wire::resp::Limits;

/// Answers that end a batch.
const BATCH_ANSWER_SIZE: usize = 256 << 10;
/// Arguments of a command.
const ARGUMENTS_MAX: usize = 1 << 20;
/// Bytes of a command of somebody who has not said who they are.
const UNKNOWN_BULK_SIZE_MAX: usize = 16 << 10;
/// Arguments of such a command.
const UNKNOWN_ARGUMENTS_MAX: usize = 10;

/// Refuses a client. The path stays in the log: the client is not authenticated.
const CREDENTIALS_FAULT: &[u8] =
    b"-ERR a file of users or passwords is damaged: no client is served. The server's log names it\r\n";

impl Door for Redis {
    // Clients know these words: redis-py makes an error of its own type of them.
    const NO_ROOM: &'static [u8] = b"-ERR max number of clients reached\r\n";

    fn refuse_clear_text(_first: u8) -> Option<Vec<u8>> {
        Some(
            b"-ERR this port speaks TLS: connect with TLS (redis-cli --tls, rediss://)\r\n"
                .to_vec(),
        )
    }

    async fn serve<S>(self: Arc<Self>, mut stream: S, connection: Arc<Connection>, stop: Stop)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if self.credentials_fault.get().is_some() {
            let _ = stream.write_all(CREDENTIALS_FAULT).await;
            return;
        }
        let Some(session) = self.enter(connection.peer) else {
            let _ = stream.write_all(Self::NO_ROOM).await;
            return;
        };
        let charge = Charge::new(self.client_memory.clone(), session.state.clone());
        let mut served = Served {
            redis: &self,
            stream,
            connection,
            stop,
            session,
            ahead: Ahead::default(),
            input: Input::default(),
            is_waiting: false,
            is_paused: false,
            fetches: Vec::new(),
            arrived: Arrived::default(),
            fetch_rounds: 0,
            room_wait: RoomWait::default(),
            unsent: VecDeque::new(),
            charge,
            partial_since: None,
            has_greeted: false,
        };
        let ended = catch_panic(served.serve()).await;
        let session = served.session;
        if ended.is_err() {
            // Its commands may be done in part: the client gets no answer, and everybody else goes on.
            tracing::error!(client = session.id, "a command panicked: its connection is closed");
        }
        self.scripting.busy.calm().await;
        self.leave(&session);
    }
}

/// Does work that may panic.
///
/// # Errors
/// The panic.
async fn catch_panic<T>(work: impl Future<Output = T>) -> std::thread::Result<T> {
    let mut work = pin!(work);
    let polled = poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.map_or_else(|panic| Poll::Ready(Err(panic)), |polled| polled.map(Ok))
    });
    polled.await
}

/// What comes next for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// More bytes are needed.
    Read,
    /// There is more to execute once the answers are sent.
    Execute,
    /// There is more to execute once some values are read from disk.
    Fetch,
    /// Continues once there is memory for the next command.
    Room,
    /// It is a replica's from now on.
    Replicate,
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
    /// The commands that come next, read and not yet executed.
    ahead: Ahead,
    /// What was read and is not yet executed.
    input: Input,
    /// Whether a command waits for a key.
    is_waiting: bool,
    /// Whether the next command waits because somebody said so.
    is_paused: bool,
    /// What is to be read from disk for the commands that come next.
    fetches: Vec<Fetch>,
    /// What was read of that.
    arrived: Arrived,
    /// How often that was done for the one that comes next.
    fetch_rounds: u32,
    /// State of the wait for memory of the next command.
    room_wait: RoomWait,
    /// Messages before the answers that gather in the session.
    unsent: VecDeque<Piece>,
    /// Buffers of the connection, as they count among all clients'.
    charge: Charge,
    /// When the connection began to wait for the rest of a command.
    partial_since: Option<Instant>,
    /// Whether the first bytes of the connection are known to be commands.
    has_greeted: bool,
}

/// What became of a batch, or of the part of it that was done under one lock.
struct Batch {
    next: Next,
    /// What must be durable before it is answered; nothing may be answered if the log failed.
    durable_at: kv::Result<Option<Lsn>>,
    is_crowded: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Served<'_, S> {
    async fn serve(&mut self) {
        loop {
            let next = if self.is_waiting { Next::Read } else { self.execute().await };
            self.note_partial(next);
            self.count_buffers();
            self.session.wait_after_wrong_password(&mut self.stop).await;
            let Ok(heard) = self.write().await else { return };
            match next {
                Next::End => return,
                Next::Replicate => return self.replicate().await,
                Next::Execute | Next::Read | Next::Fetch | Next::Room => {}
            }
            let may_go_on = !self.is_waiting && !self.is_paused;
            if next == Next::Execute || (0 < heard && may_go_on) {
                // Others have their turn, too.
                tokio::task::yield_now().await;
                continue;
            }
            if !self.wait().await {
                let _ = self.write().await;
                return;
            }
            self.count_buffers();
        }
    }

    /// Serves a replica until it goes.
    async fn replicate(&mut self) {
        self.session.state.is_replica.store(true, Relaxed);
        let serving = Serving {
            redis: self.redis,
            stream: &mut self.stream,
            session: &mut self.session,
            said: self.input.take(),
            connection: &self.connection,
            stop: self.stop.clone(),
        };
        serving.serve().await;
    }

    /// Waits for something to do. Returns false at the end.
    async fn wait(&mut self) -> bool {
        let deadline = self.deadline();
        let timer = async {
            match deadline {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let outbox = self.session.outbox.clone();
        let reads = !self.is_paused;
        let woken = tokio::select! {
            biased;
            () = outbox.wake.notified() => Woken::ByOthers,
            read = self.stream.read_buf(self.input.room()), if reads => {
                Woken::ByClient(read.unwrap_or(0))
            }
            _ = self.connection.evicted.notified() => Woken::ToEnd,
            _ = self.stop.wait_for(|is_stopping| *is_stopping) => Woken::ToEnd,
            () = timer => Woken::ByTime,
        };
        let was_waiting = self.is_waiting;
        let goes_on = self.wake(woken).await;
        match was_waiting && !self.is_waiting {
            true => goes_on && self.settle().await,
            false => goes_on,
        }
    }

    /// Does what ended a wait. Returns false at the end.
    async fn wake(&mut self, woken: Woken) -> bool {
        match woken {
            Woken::ByOthers if self.is_due() => {
                self.redis.scripting.busy.calm().await;
                self.say_again()
            }
            Woken::ByOthers => self.take_outbox(),
            Woken::ByClient(size) => self.take_bytes(size),
            Woken::ByTime if self.is_paused => true,
            Woken::ByTime => {
                self.redis.scripting.busy.calm().await;
                self.time_is_up()
            }
            Woken::ToEnd => false,
        }
    }

    /// Waits until what others did for the command that waited is as durable as if it had done it.
    /// Returns false when it never will be.
    async fn settle(&mut self) -> bool {
        if self.redis.kv.durability() != KvDurability::Always {
            return true;
        }
        self.redis.scripting.busy.calm().await;
        // Whoever did it commits before the lock is free.
        drop(self.redis.kv.lock());
        let lsn = self.redis.kv.log_end();
        let is_durable = self.redis.durable.wait(lsn).await;
        if !is_durable {
            self.session.out.0.bytes_mut().clear();
            self.say_that_the_log_failed();
        }
        is_durable
    }

    fn say_that_the_log_failed(&mut self) {
        let reason = self.redis.kv.failure().unwrap_or_default();
        self.session.out.error(&format!("MISCONF the log failed: {reason}"));
    }

    /// When to stop waiting: for a key, or for a client that says nothing.
    fn deadline(&self) -> Option<Instant> {
        let at = |until_ms: i64| {
            let left = until_ms - self.redis.kv.now_ms();
            Instant::now() + Duration::from_millis(u64::try_from(left).unwrap_or(0))
        };
        if self.is_paused {
            let hub = self.redis.hub();
            // Who is woken when it ends needs no time for that.
            return (!hub.is_failing_over).then(|| at(hub.pause.until_ms));
        }
        if self.is_waiting {
            let hub = self.redis.hub();
            let blocked = hub.blocked.get(&self.session.id)?;
            return blocked.wait.deadline_ms.map(at);
        }
        let partial = self.partial_deadline();
        let idle_ms = self.redis.idle_timeout_ms.load(Relaxed);
        if idle_ms == 0 || 0 < self.session.subscription_count() {
            return partial;
        }
        let active_ms = self.session.state.active_ms.load(Relaxed);
        let idle = at(active_ms.saturating_add(i64::try_from(idle_ms).unwrap_or(i64::MAX)));
        Some(partial.map_or(idle, |partial| partial.min(idle)))
    }

    /// A command has waited in vain, or the client has said nothing for too long.
    fn time_is_up(&mut self) -> bool {
        if !self.is_waiting {
            self.say_if_late();
            return false;
        }
        let mut keys = self.redis.kv.lock();
        let mut hub = self.redis.hub();
        if let Some(blocked) = hub.unblock(self.session.id, &mut keys) {
            self.session.out.0.bytes_mut().extend_from_slice(blocked.heard(&blocked.otherwise));
        }
        drop((hub, keys));
        // Served at the last moment: the answer is in the outbox.
        self.take_outbox()
    }

    /// Whether the command that waits is to be said again.
    fn is_due(&self) -> bool {
        let hub = self.redis.hub();
        self.is_waiting && hub.blocked.get(&self.session.id).is_some_and(|blocked| blocked.is_due)
    }

    /// Has the command that waits executed again, before what came behind it.
    fn say_again(&mut self) -> bool {
        let mut keys = self.redis.kv.lock();
        let mut hub = self.redis.hub();
        if let Some(blocked) = hub.unblock(self.session.id, &mut keys) {
            if blocked.is_silent && self.session.reply == ReplyMode::On {
                self.session.reply = ReplyMode::SkipNext;
            }
            self.input.put_before(&blocked.request(self.redis.kv.now_ms()));
            self.ahead.forget();
        }
        drop((hub, keys));
        self.take_outbox()
    }

    /// Takes what others left. Returns false when the connection is to be closed.
    fn take_outbox(&mut self) -> bool {
        let redis = self.redis;
        self.take_outbox_in(&redis.hub())
    }

    /// The same for who has the hub, so that nobody leaves anything meanwhile.
    fn take_outbox_in(&mut self, hub: &Hub) -> bool {
        for piece in self.session.outbox.take() {
            self.add_piece(piece);
        }
        self.is_waiting = self.is_waiting && hub.blocked.contains_key(&self.session.id);
        !self.session.outbox.is_closed()
    }

    fn limits(&self, hub: &Hub) -> Limits {
        match self.session.is_known {
            true => Limits {
                arguments_max: ARGUMENTS_MAX,
                bulk_size_max: hub.settings.hot.bulk_size_max,
            },
            false => Limits {
                arguments_max: UNKNOWN_ARGUMENTS_MAX,
                bulk_size_max: UNKNOWN_BULK_SIZE_MAX,
            },
        }
    }

    /// Executes what has been read, and makes it as durable as promised.
    async fn execute(&mut self) -> Next {
        if self.input.is_empty() {
            return Next::Read;
        }
        let redis = self.redis;
        if redis.scripting.busy.is_busy() {
            return self.execute_busy();
        }
        self.is_paused = false;
        let _at_work = self.connection.begin();
        let start = (self.unsent.len(), self.session.out.0.bytes().len());
        let mut durable_at = None;
        let batch = loop {
            let batch = self.execute_locked();
            if redis.scripting.busy.calm_down() {
                // Another thread serves the door now; this one may not take the lock again.
                tokio::task::yield_now().await;
            }
            if batch.is_crowded {
                redis.kv.make_room();
            }
            durable_at = batch.durable_at.as_ref().ok().copied().flatten().or(durable_at);
            if !matches!(batch.next, Next::Fetch | Next::Room) || batch.durable_at.is_err() {
                break batch;
            }
            if batch.next == Next::Room {
                self.wait_for_room().await;
                continue;
            }
            self.arrived = fetching::read(&redis.flights, std::mem::take(&mut self.fetches)).await;
            if self.arrived.fetches.is_empty() && !self.arrived.is_to_repeat {
                // What cannot be read is answered by the command itself.
                self.fetch_rounds = fetching::ROUNDS_MAX;
            }
            redis.scripting.busy.calm().await;
        };
        let durable = match (&batch.durable_at, durable_at) {
            (Err(_), _) => false,
            (Ok(_), None) => true,
            (Ok(_), Some(lsn)) => redis.durable.wait(lsn).await,
        };
        if !durable {
            // Nothing of the batch may look as if it were kept.
            self.drop_answers(start);
            self.say_that_the_log_failed();
            return Next::End;
        }
        self.work().await;
        batch.next
    }

    /// Executes what can be without the disk, under one lock.
    fn execute_locked(&mut self) -> Batch {
        let redis = self.redis;
        let mut keys = redis.kv.lock();
        let now_ms = self.session.set_clock(redis.app.vfs.now(), &mut keys);
        keys.settle(&mut std::mem::take(&mut self.arrived).fetches);
        let mut hub = redis.hub();
        self.note_batch(&mut hub, now_ms);
        // What others left before comes before the answers: nothing comes behind `UNSUBSCRIBE`.
        self.take_outbox_in(&hub);
        let ceiling = redis.room.ceiling(&redis.app.memory, &redis.client_memory, &keys);
        keys.set_ceiling(ceiling);
        let next = self.execute_all(&mut keys, &mut hub);
        keys.set_ceiling(usize::MAX);
        drop(hub);
        let committed = redis.kv.commit(&mut keys);
        let is_always = redis.kv.durability() == KvDurability::Always;
        let has_written_samples = std::mem::take(&mut self.session.has_written_samples);
        let samples_end = has_written_samples.then(|| redis.kv.log_end());
        Batch {
            next,
            durable_at: committed.map(|lsn| samples_end.or(lsn.filter(|_| is_always))),
            is_crowded: keys.is_crowded(),
        }
    }

    /// Does what takes long, while others have their turn.
    async fn work(&mut self) {
        let Some(work) = self.session.work.take() else { return };
        let mut out = Out::new(self.session.out.version());
        let done = tokio::task::spawn_blocking(move || {
            work(&mut out);
            out.settle(0);
            out
        });
        match done.await {
            Ok(out) => self.session.out.0.bytes_mut().extend_from_slice(out.0.bytes()),
            Err(_) => self.session.out.error("ERR it failed; the log of the server says why"),
        }
    }

    /// Counts what came, and lets others see it.
    fn note_batch(&self, hub: &mut Hub, now_ms: i64) {
        let state = &self.session.state;
        hub.postponed.remove(&self.session.id);
        state.active_ms.store(now_ms, Relaxed);
        state.query_size.store(self.input.len(), Relaxed);
        let received = state.received.swap(0, Relaxed);
        hub.stats.received += received;
        hub.stats.sent += state.sent.swap(0, Relaxed);
        hub.stats.reads += u64::from(0 < received);
        hub.stats.read(now_ms);
    }

    fn execute_all(&mut self, keys: &mut Keyspace, hub: &mut HubGuard<'_>) -> Next {
        let mut at = 0;
        // Keys go cold only while nobody holds them.
        let has_cold = keys.has_cold();
        let next = loop {
            if self.ahead.first().is_none()
                && let Err(next) = self.read_ahead(&mut at, keys, hub)
            {
                break next;
            }
            let Some(command) = self.ahead.first() else { break Next::Read };
            let (start, end) = (command.start(), command.end());
            let args = command.arguments(&self.input);
            let may_fetch = has_cold && self.fetch_rounds < fetching::ROUNDS_MAX;
            if may_fetch && fetching::gather(&self.session, keys, &args, &mut self.fetches) {
                let limits = self.limits(hub);
                let behind = self.input.get(end);
                fetching::look_ahead(&self.session, keys, behind, &limits, &mut self.fetches);
                self.fetch_rounds += 1;
                at = start;
                break Next::Fetch;
            }
            self.fetch_rounds = 0;
            if self.room_wait.has_to_wait(keys, &args) {
                at = start;
                break Next::Room;
            }
            let flow = self.redis.execute(&mut self.session, keys, hub, &args);
            self.ahead.drop_first();
            at = end;
            self.is_waiting = flow == Flow::Wait;
            // What a command has left for its own client comes behind its answer, before the next.
            if self.session.outbox.has_news() && !self.take_outbox_in(hub) {
                break Next::End;
            }
            match flow {
                Flow::Next => {}
                Flow::Wait => break Next::Read,
                Flow::Pause => {
                    at = start;
                    self.is_paused = true;
                    hub.postponed.insert(self.session.id);
                    break Next::Read;
                }
                Flow::Work => break Next::Execute,
                Flow::Replicate => break Next::Replicate,
                Flow::Close => break Next::End,
            }
            if BATCH_ANSWER_SIZE < self.session.out.0.bytes().len() || Kv::is_record_full(keys) {
                break Next::Execute;
            }
        };
        self.done_up_to(at);
        match hub.settings.hot.query_size_max < self.input.len() {
            true => Next::End,
            false => next,
        }
    }

    /// Reads the next commands and prefetches what they look up; what comes next if there is none.
    fn read_ahead(&mut self, at: &mut usize, keys: &Keyspace, hub: &Hub) -> Result<(), Next> {
        let limits = self.limits(hub);
        // Who says who they are has other limits behind that.
        let count_max = if self.session.is_known { AHEAD_MAX } else { 1 };
        let from = self.ahead.stopped_at().max(*at);
        let behind = self.ahead.read(&self.input, from, &limits, count_max);
        if self.ahead.first().is_some() {
            self.ahead.bring_near(&self.input, &self.session, keys);
            return Ok(());
        }
        *at = self.ahead.stopped_at();
        Err(self.nothing_ahead(behind))
    }

    /// What comes next for a connection of which there is no whole command.
    fn nothing_ahead(&mut self, behind: Behind) -> Next {
        match behind {
            Behind::More | Behind::Nothing => Next::Read,
            Behind::Missing(size) => {
                self.input.reserve(size.min(1 << 20));
                Next::Read
            }
            Behind::Wrong(words) => {
                // Who has not said who they are has lower limits, and is told so.
                let words = match self.session.is_known {
                    true => words,
                    false => words.replace("invalid", "unauthenticated"),
                };
                if self.session.reply == ReplyMode::On {
                    self.session.out.error(&format!("ERR Protocol error: {words}"));
                }
                Next::End
            }
        }
    }

    /// Drops what was executed, and what was read of commands behind it.
    fn done_up_to(&mut self, at: usize) {
        self.ahead.leave(at);
        self.input.drop_front(at);
        self.session.state.query_size.store(self.input.len(), Relaxed);
    }

    /// Answers what can be answered while a script takes long.
    fn execute_busy(&mut self) -> Next {
        let mut at = 0;
        let next = loop {
            let limits = self.limits(&self.redis.hub());
            let behind = self.ahead.read(&self.input, at, &limits, 1);
            let Some(command) = self.ahead.first() else {
                at = self.ahead.stopped_at();
                break self.nothing_ahead(behind);
            };
            let args = command.arguments(&self.input);
            let flow = self.redis.execute_busy(&mut self.session, &args);
            at = command.end();
            self.ahead.drop_first();
            if flow == Flow::Close {
                break Next::End;
            }
        };
        self.done_up_to(at);
        next
    }
}
