//! Replicas of this server, and this server as a replica.
//!
//! ```text
//! keys ─► log ─► effects ─► feed (commands of Redis 7.0) ─► primary: a replica's connection
//!                                    dump of all keys   ─►
//! another server ─► link ─► spool (the dump, whole and checked) ─► keys
//!                        └► commands, by the same way as those of clients
//! ```
//! The feed is locked after the keys and the hub.

pub mod failover;
pub mod failover_state;
pub mod feed;
pub mod following;
pub mod hello;
pub mod link;
pub mod migrate;
pub mod obeying;
pub mod primary;
mod role_change;
mod show;
mod spool;
mod state;
mod tls;

pub use hello::FIELD_EXPIRY;
pub use show::{info, role};
pub use state::Replication;

use crate::hub::Hub;
use crate::redis::Redis;
use failover_state::Progress;
use kv::Keyspace;
use kv::effects::Effects;
use std::sync::Arc;

/// Bytes that may wait for a replica where nothing else is said.
const BEHIND_MAX: usize = 256 << 20;

/// Has what is logged be told to replicas, once there are any.
pub fn begin(door: &Arc<Redis>) {
    let weak = Arc::downgrade(door);
    door.kv.set_follower(Box::new(move |effects| {
        if let Some(door) = weak.upgrade() {
            tell(&door, effects);
        }
    }));
}

/// Tells replicas what was logged. Records of several commands are transactions.
fn tell(door: &Redis, effects: &Effects) {
    let mut feed = door.replication.feed();
    let mut is_open = kv::replicate::is_one_command(effects);
    let is_many = !is_open;
    let left_out = kv::replicate::tell(effects, &mut |db, words| {
        if !is_open {
            feed.push(Some(db), &[b"MULTI"]);
            is_open = true;
        }
        feed.push(Some(db), words);
    });
    if is_many && is_open {
        feed.push(None, &[b"EXEC"]);
    }
    feed.left_out += left_out;
    feed.settle();
}

impl Redis {
    /// Tells replicas of a command that is about no keys, behind what was done before it: a message,
    /// or a library of functions.
    pub fn tell_replicas_in_turn(&self, keys: &mut Keyspace, db: u8, args: &[&[u8]]) {
        if self.replication.feed().is_on {
            keys.send_to_replicas(db, args);
        }
    }

    /// Tells replicas something at once: a question to them.
    pub fn tell_replicas(&self, args: &[&[u8]]) {
        let mut feed = self.replication.feed();
        if feed.is_on {
            feed.push(None, args);
            feed.settle();
        }
    }

    /// Tells replicas that this server is there, when nothing else does, and stops telling when there
    /// are none for long.
    pub fn ping_replicas(&self) {
        // One that hands over waits until its replica has all of the feed.
        let is_failing_over = self.replication.failover.progress() != Progress::None;
        if !self.replication.feed().is_on || is_failing_over {
            return;
        }
        let now_ms = self.kv.now_ms();
        let (pause_s, ttl_s) = {
            let hub = self.hub();
            let number = |name: &str| hub.settings.number(name);
            (number("repl-ping-replica-period"), number("repl-backlog-ttl"))
        };
        let mut feed = self.replication.feed();
        if feed.replicas.is_empty() {
            let alone_ms = now_ms - feed.alone_since_ms;
            if 0 < ttl_s && ttl_s.saturating_mul(1000) < alone_ms {
                self.kv.follow(false);
                feed.switch_off();
                drop(feed);
                // What is missed from now on belongs to no feed.
                self.hub().replication_id = self.new_name();
            }
            return;
        }
        if pause_s.saturating_mul(1000) <= now_ms - feed.pinged_ms {
            feed.pinged_ms = now_ms;
            feed.push(None, &[b"PING"]);
            feed.settle();
        }
    }

    /// Has the feed keep what the parameters say.
    pub fn limit_feed(&self, hub: &Hub) {
        let backlog = usize::try_from(hub.settings.number("repl-backlog-size")).unwrap_or(0);
        let limits = hub.settings.text("client-output-buffer-limit");
        let mut words = limits.split_whitespace();
        let of_replicas = words.find(|word| ["slave", "replica"].contains(word));
        let hard = of_replicas.and_then(|_| words.next()?.parse::<usize>().ok());
        let behind = hard.filter(|hard| 0 < *hard).unwrap_or(BEHIND_MAX);
        self.replication.feed().set_limits(backlog, behind.max(backlog));
    }
}
