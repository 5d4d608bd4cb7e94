//! Who is there, who listens to which channel, who waits for which key, who watches which.

mod guard;
mod invalidation;

pub use guard::{HubGuard, HubMutex};

use crate::acl::Acl;
use crate::clients::client::{Class, Client};
use crate::clients::pause::Pause;
use crate::clients::tracking;
use crate::memory::client_memory::{ClientMemory, SharedMessage};
use crate::out::Out;
use crate::settings::Settings;
use crate::settings::event_classes::{KEYEVENT_EVENTS, KEYSPACE_EVENTS};
use crate::stats::Stats;
use crate::stats::latency::Latency;
use crate::stats::slow::SlowLog;
use kv::keyspace::{Event, Touched};
use kv::{Keyspace, Reply as _, Wait};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A key of a database.
pub type DbKey = (u8, Vec<u8>);

/// A command that waits.
#[derive(Debug)]
pub struct Blocked {
    /// What it waits for.
    pub wait: Wait,
    /// Its database.
    pub db: u8,
    /// The command, to be tried again; empty if it only waits for its time.
    pub arguments: Vec<Vec<u8>>,
    /// What is answered when its time is up.
    pub otherwise: Vec<u8>,
    /// Where the milliseconds that are left stand among the arguments, if the client's own connection
    /// says the command again when its key changed; else whoever changed it tries it again.
    pub said_again: Option<usize>,
    /// Whether it is to be said again.
    pub is_due: bool,
    /// The offset that so many replicas are to have, if it waits for that.
    pub replicas: Option<(u64, usize)>,
    /// Whether the client wants no answer to it (`CLIENT REPLY`).
    pub is_silent: bool,
}

impl Blocked {
    /// A command that whoever changes its keys tries again.
    pub fn new(wait: Wait, db: u8, arguments: Vec<Vec<u8>>, otherwise: Vec<u8>) -> Blocked {
        Blocked {
            wait,
            db,
            arguments,
            otherwise,
            said_again: None,
            is_due: false,
            replicas: None,
            is_silent: false,
        }
    }

    /// What the client gets instead of that answer.
    pub fn heard<'a>(&self, answer: &'a [u8]) -> &'a [u8] {
        if self.is_silent { &[] } else { answer }
    }

    /// The command as it is said again, by then.
    pub fn request(mut self, now_ms: i64) -> Vec<u8> {
        if let (Some(at), Some(deadline_ms)) = (self.said_again, self.wait.deadline_ms)
            && let Some(left) = self.arguments.get_mut(at)
        {
            // No time left is not for ever.
            *left = (deadline_ms - now_ms).max(1).to_string().into_bytes();
        }
        let mut request = format!("*{}\r\n", self.arguments.len()).into_bytes();
        for argument in &self.arguments {
            request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            request.extend_from_slice(argument);
            request.extend_from_slice(b"\r\n");
        }
        request
    }
}

/// What all connections share besides the keys.
#[derive(Default)]
pub struct Hub {
    next_id: u64,
    /// All clients by number.
    pub clients: BTreeMap<u64, Client>,
    /// Commands that wait, by client.
    pub blocked: HashMap<u64, Blocked>,
    /// Clients that wait for a key, the first one first.
    waiting: HashMap<DbKey, VecDeque<u64>>,
    /// Clients that watch a key.
    watching: HashMap<DbKey, HashSet<u64>>,
    /// The keys that a client watches.
    watched: HashMap<u64, Vec<DbKey>>,
    /// Who listens to a channel.
    pub channels: HashMap<Vec<u8>, HashSet<u64>>,
    /// Who listens to a pattern of channels.
    pub patterns: BTreeMap<Vec<u8>, HashSet<u64>>,
    /// Who listens to a channel of sharded publishing.
    pub shard_channels: HashMap<Vec<u8>, HashSet<u64>>,
    /// Users and what they may do.
    pub acl: Acl,
    /// Clients that are shown all commands.
    pub monitors: HashSet<u64>,
    /// Which keys which clients have read, to be told of changes.
    pub tracked: tracking::Table,
    /// The parameters.
    pub settings: Settings,
    /// What the parameters were at the start.
    pub settings_before: Settings,
    /// What is counted.
    pub stats: Stats,
    /// Commands that took long.
    pub slow: SlowLog,
    /// Events that took long.
    pub latency: Latency,
    /// Whether clients wait for a while.
    pub pause: Pause,
    /// Whether commands that may change something wait until a replica has taken over.
    pub is_failing_over: bool,
    /// Clients whose next command waits for that.
    pub postponed: HashSet<u64>,
    /// A name of this run, for those who replicate; changes with `DEBUG CHANGE-REPL-ID`.
    pub replication_id: String,
    /// Whether scripts may say `DEBUG`: what test suites switch on.
    pub lets_scripts_debug: bool,
    /// Buffers of all clients.
    pub client_memory: Arc<ClientMemory>,
    /// Clients that were closed for their buffers.
    pub evicted_clients: AtomicU64,
}

/// What those are told who wait while the server becomes a replica.
const BECAME_REPLICA: &[u8] = b"-UNBLOCKED force unblock from blocking operation, instance state \
                                changed (master -> replica?)\r\n";

impl Hub {
    /// One without clients, whose run has that name.
    pub fn new(replication_id: String, client_memory: Arc<ClientMemory>) -> Hub {
        Hub { replication_id, client_memory, ..Hub::default() }
    }

    /// Lets all clients go on that wait because somebody said so.
    pub fn wake_postponed(&self) {
        let clients = self.postponed.iter().filter_map(|id| self.clients.get(id));
        clients.for_each(|client| client.outbox.wake.notify_one());
    }

    /// The number of a new client.
    pub fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.stats.connection_count += 1;
        self.next_id
    }

    /// Has all clients leave.
    pub fn close_all(&self) {
        self.clients.values().for_each(|client| client.outbox.close());
    }

    /// Takes a client out with all that is known of it.
    pub fn remove(&mut self, id: u64, keys: &mut Keyspace) {
        self.remove_marks(id, keys);
        self.clients.remove(&id);
        keys.observe(self.is_observed());
    }

    /// Closes a client's connection; it counts no more from now on.
    pub fn kill(&mut self, id: u64, keys: &mut Keyspace) {
        if let Some(client) = self.clients.get(&id) {
            client.outbox.close();
        }
        self.remove(id, keys);
    }

    /// Whether somebody wants to hear of changes.
    pub fn is_observed(&self) -> bool {
        !self.watching.is_empty() || 0 < self.tracked.clients
    }

    /// Keys that are watched.
    pub fn watched_count(&self) -> usize {
        self.watching.len()
    }

    /// Takes out what a client waits for, watches and listens to.
    pub fn remove_marks(&mut self, id: u64, keys: &mut Keyspace) {
        self.unblock(id, keys);
        self.unwatch(id, keys);
        self.track_no_more(id);
        self.monitors.remove(&id);
        self.postponed.remove(&id);
        self.listen_no_more(id);
    }

    /// A client listens to nothing any more.
    fn listen_no_more(&mut self, id: u64) {
        // Most clients listen to nothing, and those that do may listen to very much.
        if self.clients.get(&id).is_some_and(|client| client.subscription_count() == 0) {
            return;
        }
        for channels in [&mut self.channels, &mut self.shard_channels] {
            channels.retain(|_, listeners| {
                listeners.remove(&id);
                !listeners.is_empty()
            });
        }
        self.patterns.retain(|_, listeners| {
            listeners.remove(&id);
            !listeners.is_empty()
        });
    }

    // ---- waiting for keys ----

    /// Notes that a client waits.
    pub fn block(&mut self, id: u64, blocked: Blocked, keys: &mut Keyspace) {
        for key in &blocked.wait.keys {
            let queue = self.waiting.entry((blocked.db, key.clone())).or_default();
            if !queue.contains(&id) {
                queue.push_back(id);
                keys.wait_for(blocked.db, key);
            }
        }
        if let Some(client) = self.clients.get(&id) {
            client.state.is_blocked.store(true, Ordering::Relaxed);
        }
        self.blocked.insert(id, blocked);
    }

    /// Ends a client's wait with that answer.
    pub fn serve(&mut self, id: u64, keys: &mut Keyspace, answer: &[u8]) {
        let Some(blocked) = self.unblock(id, keys) else { return };
        if let Some(client) = self.clients.get(&id) {
            client.outbox.leave(blocked.heard(answer));
        }
    }

    /// Notes that a client waits no more. Returns what it waited for.
    pub fn unblock(&mut self, id: u64, keys: &mut Keyspace) -> Option<Blocked> {
        let blocked = self.blocked.remove(&id)?;
        if let Some(client) = self.clients.get(&id) {
            client.state.is_blocked.store(false, Ordering::Relaxed);
        }
        for key in &blocked.wait.keys {
            let place = (blocked.db, key.clone());
            let Some(queue) = self.waiting.get_mut(&place) else { continue };
            let before = queue.len();
            queue.retain(|waiting| *waiting != id);
            if queue.len() < before {
                keys.wait_no_more(blocked.db, key);
            }
            if queue.is_empty() {
                self.waiting.remove(&place);
            }
        }
        Some(blocked)
    }

    /// Ends all waits and the connections that wait: what they wait for comes to another server now.
    pub fn end_waits(&mut self, keys: &mut Keyspace) {
        let waiting: Vec<u64> = self.blocked.keys().copied().collect();
        for id in waiting {
            let Some(blocked) = self.unblock(id, keys) else { continue };
            self.stats.error(b"UNBLOCKED ");
            if let Some(client) = self.clients.get(&id) {
                client.outbox.leave(blocked.heard(BECAME_REPLICA));
                client.outbox.close();
            }
        }
    }

    /// Who waits for a key, the first one first.
    pub fn waiting_for(&self, db: u8, key: &[u8]) -> Vec<u64> {
        let queue = self.waiting.get(&(db, key.to_vec()));
        queue.map(|queue| queue.iter().copied().collect()).unwrap_or_default()
    }

    // ---- watching keys ----

    /// Notes that a client watches a key.
    pub fn watch(&mut self, id: u64, db: u8, key: &[u8], keys: &mut Keyspace) {
        let place = (db, key.to_vec());
        if self.watching.entry(place.clone()).or_default().insert(id) {
            self.watched.entry(id).or_default().push(place);
            keys.watch(db, key);
        }
        keys.observe(true);
    }

    /// Keys that a client watches.
    pub fn watched_by(&self, id: u64) -> Vec<DbKey> {
        self.watched.get(&id).cloned().unwrap_or_default()
    }

    /// Notes that a client watches nothing more.
    pub fn unwatch(&mut self, id: u64, keys: &mut Keyspace) {
        for place in self.watched.remove(&id).unwrap_or_default() {
            keys.watch_no_more(place.0, &place.1);
            let Some(watchers) = self.watching.get_mut(&place) else { continue };
            watchers.remove(&id);
            if watchers.is_empty() {
                self.watching.remove(&place);
            }
        }
        keys.observe(self.is_observed());
    }

    /// Tells those who watch what was changed.
    pub fn tell_watchers(&self, touched: &[Touched]) {
        let mut mark = |watchers: &HashSet<u64>| {
            let clients = watchers.iter().filter_map(|id| self.clients.get(id));
            clients.for_each(|client| client.is_dirty.store(true, Ordering::Relaxed));
        };
        for one in touched {
            match one {
                Touched::Key(db, key) | Touched::Expired(db, key) | Touched::Watched(db, key) => {
                    self.watching.get(&(*db, key.to_vec())).into_iter().for_each(&mut mark);
                }
                // Of those that were there, each is told.
                Touched::Database(_) => {}
            }
        }
    }

    // ---- channels ----

    /// Leaves a message with all that listen to a channel. Returns how many do.
    pub fn publish(&self, channel: &[u8], message: &[u8]) -> i64 {
        let mut count = 0;
        if let Some(listeners) = self.channels.get(channel) {
            count += self.leave_all(listeners, &[b"message", channel, message]);
        }
        for (pattern, listeners) in &self.patterns {
            if kv::glob::matches(pattern, channel) {
                count += self.leave_all(listeners, &[b"pmessage", pattern, channel, message]);
            }
        }
        self.evict_largest();
        count
    }

    /// The same on a channel of sharded publishing.
    pub fn publish_sharded(&self, channel: &[u8], message: &[u8]) -> i64 {
        let listeners = self.shard_channels.get(channel);
        let words: &[&[u8]] = &[b"smessage", channel, message];
        let count = listeners.map_or(0, |listeners| self.leave_all(listeners, words));
        self.evict_largest();
        count
    }

    /// Leaves words that they did not ask for with clients: one copy for all that speak the same
    /// version of the protocol. Returns how many clients there are.
    fn leave_all(&self, listeners: &HashSet<u64>, words: &[&[u8]]) -> i64 {
        let mut messages: [Option<Arc<SharedMessage>>; 2] = [None, None];
        for client in listeners.iter().filter_map(|id| self.clients.get(id)) {
            let message = messages[usize::from(2 < client.version)].get_or_insert_with(|| {
                let mut out = Out::new(client.version);
                out.push(words.len());
                words.iter().for_each(|word| out.bulk(word));
                SharedMessage::new(std::mem::take(out.0.bytes_mut()), &self.client_memory)
            });
            client.outbox.leave_shared(message);
        }
        i64::try_from(listeners.len()).unwrap_or(i64::MAX)
    }

    /// Leaves a line with all clients that are shown all commands.
    pub fn leave_with_monitors(&self, line: String) {
        let message = SharedMessage::new(line.into_bytes(), &self.client_memory);
        let clients = self.monitors.iter().filter_map(|id| self.clients.get(id));
        clients.for_each(|client| client.outbox.leave_shared(&message));
        self.evict_largest();
    }

    /// Closes the clients with the largest buffers until all others are within the limit.
    pub fn evict_largest(&self) {
        let mut excess = self.client_memory.excess();
        if excess == 0 {
            return;
        }
        let mut largest = Vec::new();
        for client in self.clients.values() {
            let size = client.buffered();
            if client.outbox.is_evicted() {
                // Its connection is about to free these buffers.
                excess = excess.saturating_sub(size);
            } else if !client.is_kept && matches!(client.class(), Class::Normal | Class::PubSub) {
                largest.push((size, client));
            }
        }
        largest.sort_unstable_by_key(|(size, _)| std::cmp::Reverse(*size));
        for (size, client) in largest {
            if excess == 0 || size == 0 {
                break;
            }
            client.outbox.evict();
            self.evicted_clients.fetch_add(1, Ordering::Relaxed);
            excess = excess.saturating_sub(size);
        }
    }

    /// Publishes what happened to keys, as `notify-keyspace-events` wants it.
    pub fn tell_events(&self, events: &[Event], wanted: u32) {
        for Event { name, db, key, .. } in events {
            if wanted & KEYSPACE_EVENTS != 0 {
                let mut channel = format!("__keyspace@{db}__:").into_bytes();
                channel.extend_from_slice(key);
                self.publish(&channel, name.as_bytes());
            }
            if wanted & KEYEVENT_EVENTS != 0 {
                let channel = format!("__keyevent@{db}__:{name}");
                self.publish(channel.as_bytes(), key);
            }
        }
    }
}
