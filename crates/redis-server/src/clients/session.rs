//! What one connection has said of itself.

use super::client::{Client, Outbox};
use super::client_state::State;
use crate::acl::User;
use crate::clock::Clock;
use crate::out::Out;
use crate::replication::hello::Hello;
use kv::Keyspace;
use kv::commands::{Info, LOADING, STALE, WRITE};
use net::listeners::accept::Stop;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::sleep;

/// A command that waits for `EXEC`: its name and arguments.
pub type Queued = Vec<Vec<u8>>;

/// The state of a connection.
pub struct Session {
    /// Its number.
    pub id: u64,
    /// Who is at the other end.
    pub peer: Option<SocketAddr>,
    /// Its database.
    pub db: u8,
    /// Whether it has said who it is, or need not.
    pub is_known: bool,
    /// Who it is.
    pub user: Arc<User>,
    /// The generation of users of which that is one.
    pub user_generation: u64,
    /// What others see of its work.
    pub state: Arc<State>,
    /// Answers that gather for it.
    pub out: Out,
    /// Where others leave bytes for it.
    pub outbox: Arc<Outbox>,
    /// The commands since `MULTI`, if one was said.
    pub transaction: Option<Transaction>,
    /// Whether a key that it watches has changed.
    pub is_dirty: Arc<AtomicBool>,
    /// Whether its reads leave no trace.
    pub is_traceless: bool,
    /// Whether it watches any key.
    pub is_watching: bool,
    /// The channels that it listens to.
    pub channels: HashSet<Vec<u8>>,
    /// The patterns of channels that it listens to.
    pub patterns: HashSet<Vec<u8>>,
    /// The channels of sharded publishing that it listens to.
    pub shard_channels: HashSet<Vec<u8>>,
    /// Which answers are left out.
    pub reply: ReplyMode,
    /// Whether commands run for a script now.
    pub is_script: bool,
    /// The last error of a script's commands, which was counted: the script may answer it, too.
    pub counted_error: Vec<u8>,
    /// What takes long and is done without holding the keys, before the next command.
    pub work: Option<Work>,
    /// What it said before it asked to be a replica.
    pub hello: Hello,
    /// Whether it is the primary of which this server is a replica.
    pub is_primary: bool,
    /// Bytes of the primary's commands that are done and not counted yet.
    pub primary_read: u64,
    /// The time, as of when its connection got the keys.
    pub clock: Clock,
    /// Whether samples were appended whose place in the log must be on disk before it is answered.
    pub has_written_samples: bool,
    /// Delay of the next answer after a wrong password.
    pub login_delay: Duration,
}

/// What takes long; writes an answer.
pub type Work = Box<dyn FnOnce(&mut Out) + Send>;

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub struct Transaction {
    /// In order.
    pub commands: Vec<Queued>,
    /// Whether one of them was refused, so that none is done.
    pub is_spoiled: bool,
    /// Whether one of them may change something.
    pub changes: bool,
    /// What they ask of the server's state.
    pub needs: Needs,
    /// Bytes of all of them.
    pub size: usize,
    /// Whether one of them may need memory.
    pub grows: bool,
}

/// Which answers a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// All.
    On,
    /// None.
    Off,
    /// None to the next command.
    SkipNext,
    /// The same, said by a command that was to have no answer itself.
    SkipAgain,
}

/// What a command asks of the state of the server. What scripts ask is looked at when they do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// It writes.
    pub writes: bool,
    /// It wants all keys, which are not there while a dump is loaded.
    pub all_keys: bool,
    /// It wants what a primary has now, where it is not said that older is good enough.
    pub link: bool,
}

impl Needs {
    /// Those of a command.
    pub fn of(info: &Info) -> Needs {
        let (all_keys, link) = (!info.is(LOADING), !info.is(STALE));
        Needs { writes: info.is(WRITE), all_keys, link }
    }

    /// Those of both.
    pub fn and(self, other: Needs) -> Needs {
        Needs {
            writes: self.writes || other.writes,
            all_keys: self.all_keys || other.all_keys,
            link: self.link || other.link,
        }
    }
}

impl Session {
    /// The session of a client that has not said who it is.
    pub fn of(client: &Client, user: Arc<User>, user_generation: u64) -> Session {
        Session {
            id: client.id,
            peer: client.peer,
            db: 0,
            is_known: false,
            user,
            user_generation,
            state: client.state.clone(),
            out: Out::new(2),
            outbox: client.outbox.clone(),
            transaction: None,
            is_dirty: client.is_dirty.clone(),
            is_watching: false,
            is_traceless: false,
            channels: HashSet::new(),
            patterns: HashSet::new(),
            shard_channels: HashSet::new(),
            reply: ReplyMode::On,
            has_written_samples: false,
            login_delay: Duration::ZERO,
            is_script: false,
            counted_error: Vec::new(),
            hello: Hello::default(),
            is_primary: false,
            primary_read: 0,
            clock: Clock::new(0),
            work: None,
        }
    }

    /// Sets the time for the commands that come next: its connection has just got the keys. Returns
    /// it in milliseconds since the epoch.
    pub fn set_clock(&mut self, wall_ns: i64, keys: &mut Keyspace) -> i64 {
        self.clock = Clock::new(wall_ns);
        let now_ms = self.clock.start_ms();
        keys.set_now(now_ms);
        now_ms
    }

    /// Lets others see what it listens to.
    pub fn show_subscriptions(&self) {
        self.state.channels.store(self.channels.len(), Relaxed);
        self.state.patterns.store(self.patterns.len(), Relaxed);
        self.state.shard_channels.store(self.shard_channels.len(), Relaxed);
    }

    /// Whether what `CLIENT CACHING` said still holds after a command: it was that one, or a
    /// transaction is gathering.
    pub fn is_kept_next(&self, info: &Info) -> bool {
        info.name == "client|caching" || self.transaction.is_some()
    }

    /// Makes a client that guesses passwords wait for its answer, unless the server ends.
    pub async fn wait_after_wrong_password(&mut self, stop: &mut Stop) {
        let delay = std::mem::take(&mut self.login_delay);
        if !delay.is_zero() {
            tokio::select! {
                () = sleep(delay) => {}
                _ = stop.wait_for(|is_stopping| *is_stopping) => {}
            }
        }
    }

    /// How many channels and patterns it listens to.
    pub fn subscription_count(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shard_channels.len()
    }
}
