//! Changes of role: this server becomes a replica, a primary, or the replica of its replica.

use super::link::{Link, State};
use crate::hub::Hub;
use crate::redis::Redis;
use kv::primary::{PrimaryRecord, ReplicaState};
use kv::{Keyspace, Kv};
use std::sync::atomic::Ordering::Relaxed;

/// Whether the keys are all of a primary's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wholeness {
    /// A dump was loaded in part before.
    Partial,
    /// What the state says.
    AsKnown,
}

impl Link {
    /// Follows somebody else, or nobody, for good.
    ///
    /// # Errors
    /// In words for the client.
    pub fn set(&self, door: &Redis, primary: Option<(String, u16)>) -> Result<(), String> {
        self.note(&door.kv, primary.as_ref())?;
        let mut keys = door.kv.lock();
        keys.set_now(door.kv.now_ms());
        self.enter(&mut keys, &mut door.hub(), primary, Wholeness::AsKnown);
        Ok(())
    }

    /// The same for who has the keys and the hub, as a transaction has.
    ///
    /// # Errors
    /// As [`Link::set`].
    pub fn set_within(
        &self,
        kv: &Kv,
        keys: &mut Keyspace,
        hub: &mut Hub,
        primary: Option<(String, u16)>,
    ) -> Result<(), String> {
        self.note(kv, primary.as_ref())?;
        self.enter(keys, hub, primary, Wholeness::AsKnown);
        Ok(())
    }

    /// Follows nobody any more, and begins a feed where the primary's ended, for the primary itself: if
    /// that is where it is wanted, and nobody has the feed of before. Returns its name and offset.
    pub fn take_over(&self, door: &Redis, wanted: Option<u64>) -> Option<(String, u64)> {
        // Nothing is written between the primary's last command and the first of the feed.
        let mut keys = door.kv.lock();
        let mut hub = door.hub();
        let offset = {
            let mut state = self.state();
            let (offset, generation) = (state.offset, state.generation + 1);
            *state = State { generation, ..State::default() };
            offset
        };
        (keys.leaves_expired, keys.sees_expired) = (false, false);
        self.is_replica.store(false, Relaxed);
        self.is_loading.store(false, Relaxed);
        hub.replication_id = door.new_name();
        door.limit_feed(&hub);
        self.changed.notify_one();
        let mut feed = door.replication.feed();
        if wanted != Some(offset) || !feed.replicas.is_empty() {
            return None;
        }
        feed.begin_at(offset);
        door.kv.follow(true);
        Some((hub.replication_id.clone(), offset))
    }

    /// Follows a replica of this server, which is to take over, from an offset of the feed of that name.
    ///
    /// # Errors
    /// In words, when it cannot be written down.
    pub fn hand_over(
        &self,
        door: &Redis,
        primary: (String, u16),
        id: String,
        offset: u64,
    ) -> Result<(), String> {
        self.keep(&door.kv, Some(&primary), false)?;
        let mut keys = door.kv.lock();
        let mut hub = door.hub();
        let mut state = self.state();
        *state = State {
            primary: Some(primary),
            generation: state.generation + 1,
            down_since_ms: door.kv.now_ms(),
            id,
            offset,
            hands_over: true,
            ..State::default()
        };
        keys.leaves_expired = true;
        self.is_replica.store(true, Relaxed);
        hub.end_waits(&mut keys);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    fn enter(
        &self,
        keys: &mut Keyspace,
        hub: &mut Hub,
        primary: Option<(String, u16)>,
        wholeness: Wholeness,
    ) {
        let mut state = self.state();
        let is_replica = primary.is_some();
        let is_partial = is_replica && (wholeness == Wholeness::Partial || state.is_partial);
        *state = State {
            primary,
            generation: state.generation + 1,
            down_since_ms: keys.now_ms(),
            is_partial,
            ..State::default()
        };
        (keys.leaves_expired, keys.sees_expired) = (is_replica, false);
        self.is_replica.store(is_replica, Relaxed);
        self.is_loading.store(is_partial, Relaxed);
        if is_replica {
            hub.end_waits(keys);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Goes on with the primary of the last run. Where its file is damaged the server is a replica without
    /// a link.
    pub fn recall(&self, door: &Redis) {
        let record = match door.kv.read_primary() {
            Ok(Some(record)) => record,
            Ok(None) => return,
            Err(reason) => return self.enter_without_primary(door, reason),
        };
        let PrimaryRecord { host, port, state } = record;
        if state == ReplicaState::Snapshot {
            tracing::info!(
                "the keys are a snapshot of a replica of {host}:{port}: they follow nobody"
            );
            let forgotten = self.keep(&door.kv, None, false);
            return forgotten.unwrap_or_else(|error| tracing::warn!("{error}"));
        }
        tracing::info!("a replica of {host}:{port}, as before (REPLICAOF NO ONE ends that)");
        let is_partial = state == ReplicaState::Partial;
        let whole = if is_partial { Wholeness::Partial } else { Wholeness::AsKnown };
        let primary = (host, port);
        // An earlier version wrote it without a checksum.
        if let Err(error) = self.keep(&door.kv, Some(&primary), is_partial) {
            tracing::warn!("{error}");
        }
        let mut keys = door.kv.lock();
        keys.set_now(door.kv.now_ms());
        self.enter(&mut keys, &mut door.hub(), Some(primary), whole);
    }

    /// Follows nobody and takes no writes until a person decides.
    fn enter_without_primary(&self, door: &Redis, reason: String) {
        tracing::error!("keys take no writes and follow no primary: {reason}");
        let mut keys = door.kv.lock();
        let mut state = self.state();
        *state = State { generation: state.generation + 1, fault: reason, ..State::default() };
        keys.leaves_expired = true;
        self.is_replica.store(true, Relaxed);
    }
}
