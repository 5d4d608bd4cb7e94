//! Invalidation messages for clients that cache replies.

use super::Hub;
use crate::clients::tracking::{Mode, Tracking};
use crate::out::Out;
use kv::Reply as _;
use kv::keyspace::Touched;
use std::collections::{BTreeMap, HashMap};

/// The channel of invalidations, for clients of version 2.
pub const CHANNEL: &[u8] = b"__redis__:invalidate";

impl Hub {
    /// Remembers that a client has read keys, if it is to be told of them.
    pub fn note_reads(&mut self, id: u64, keys: &[&[u8]]) {
        let tracking = self.clients.get_mut(&id).and_then(|client| client.tracking.as_mut());
        let Some(tracking) = tracking else { return };
        let next = tracking.next;
        let wants = match tracking.mode {
            Mode::Read => true,
            Mode::OptIn => next == Some(true),
            Mode::OptOut => next != Some(false),
            Mode::Broadcast => false,
        };
        if !wants {
            return;
        }
        for key in keys {
            self.tracked.readers.entry((*key).into()).or_default().insert(id);
        }
        self.forget_excess();
    }

    /// Tells of keys at random until no more are remembered than may be.
    pub fn forget_excess(&mut self) {
        let most = self.settings.hot.tracked_keys_max;
        while 0 < most && most < self.tracked.readers.len() {
            let Some(key) = self.tracked.readers.keys().next().cloned() else { return };
            self.tell_readers(&key, None);
        }
    }

    /// Tells those who keep answers what was changed, and by whom. Between the commands of a
    /// transaction: what is read behind a change is kept again.
    pub fn tell_between(&mut self, touched: Vec<Touched>, by: u64) {
        if self.tracked.clients == 0 {
            return;
        }
        for one in &touched {
            match one {
                Touched::Key(_, key) => self.tell_readers(key, Some(by)),
                // Also who made it expire did not mean this change.
                Touched::Expired(_, key) => self.tell_readers(key, None),
                Touched::Watched(..) | Touched::Database(_) => {}
            }
        }
        // Once, however many databases `FLUSHALL` has emptied.
        if touched.iter().any(|one| matches!(one, Touched::Database(_))) {
            self.tell_all_gone();
        }
        self.tracked.to_broadcast.extend(touched);
    }

    /// The same behind it, where also those hear of it who are told of all changes.
    pub fn tell_trackers(&mut self, touched: Vec<Touched>, by: u64) {
        self.tell_between(touched, by);
        let touched = std::mem::take(&mut self.tracked.to_broadcast);
        if self.tracked.prefixes.is_empty() {
            return;
        }
        // One message for each prefix.
        let mut broadcast: BTreeMap<(Vec<u8>, u64), Vec<&[u8]>> = BTreeMap::new();
        for one in &touched {
            let (key, by) = match one {
                Touched::Key(_, key) => (key, Some(by)),
                Touched::Expired(_, key) => (key, None),
                Touched::Watched(..) | Touched::Database(_) => continue,
            };
            for (prefix, clients) in &self.tracked.prefixes {
                if !key.starts_with(prefix) {
                    continue;
                }
                for id in clients.iter().filter(|id| !self.is_own_change(**id, by)) {
                    let keys = broadcast.entry((prefix.clone(), *id)).or_default();
                    if !keys.contains(&&**key) {
                        keys.push(key);
                    }
                }
            }
        }
        for ((_, id), keys) in broadcast {
            self.tell_invalid(id, Some(&keys));
        }
    }

    /// Whether a change is of a client that does not want to hear of its own.
    fn is_own_change(&self, id: u64, by: Option<u64>) -> bool {
        let own = self.clients.get(&id).and_then(|client| client.tracking.as_ref());
        own.is_none_or(|tracking| tracking.is_noloop && by == Some(id))
    }

    fn tell_readers(&mut self, key: &[u8], by: Option<u64>) {
        let Some(readers) = self.tracked.readers.remove(key) else { return };
        for id in readers {
            let own = self.clients.get(&id).and_then(|client| client.tracking.as_ref());
            let Some(tracking) = own else { continue };
            if tracking.mode == Mode::Broadcast || tracking.is_noloop && by == Some(id) {
                continue;
            }
            self.tell_invalid(id, Some(&[key]));
        }
    }

    /// A database was emptied: whatever clients keep may be wrong.
    fn tell_all_gone(&mut self) {
        self.tracked.readers.clear();
        let ids: Vec<u64> = self
            .clients
            .values()
            .filter(|client| client.tracking.is_some())
            .map(|client| client.id)
            .collect();
        for id in ids {
            self.tell_invalid(id, None);
        }
    }

    /// Leaves an invalidation for a client, or for the one that it named.
    fn tell_invalid(&mut self, id: u64, keys: Option<&[&[u8]]>) {
        let Some(client) = self.clients.get(&id) else { return };
        let redirect = client.tracking.as_ref().map_or(0, |tracking| tracking.redirect);
        let target = if redirect == 0 { Some(client) } else { self.clients.get(&redirect) };
        let Some(target) = target else {
            self.note_broken(id);
            return;
        };
        let mut out = Out::new(target.version);
        match (target.version, redirect) {
            (3, _) => {
                out.push(2);
                out.bulk(b"invalidate");
            }
            // Only those who listen to the channel can take it.
            (_, 0) => return,
            _ => {
                let listens = self.channels.get(CHANNEL).is_some_and(|all| all.contains(&redirect));
                if !listens {
                    return;
                }
                out.push(3);
                out.bulk(b"message");
                out.bulk(CHANNEL);
            }
        }
        match keys {
            Some(keys) => {
                out.array(keys.len());
                keys.iter().for_each(|key| out.bulk(key));
            }
            None => out.null_array(),
        }
        target.outbox.leave(out.0.bytes());
    }

    /// The client that was to be told is gone: its owner is, once.
    fn note_broken(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let Some(tracking) = client.tracking.as_mut() else { return };
        if std::mem::replace(&mut tracking.is_broken, true) || client.version < 3 {
            return;
        }
        let mut out = Out::new(client.version);
        out.push(2);
        out.bulk(b"tracking-redir-broken");
        out.int(i64::try_from(tracking.redirect).unwrap_or(i64::MAX));
        client.outbox.leave(out.0.bytes());
    }

    /// What `CLIENT CACHING` said was of the command that ran.
    pub fn forget_caching(&mut self, id: u64) {
        if self.tracked.clients == 0 {
            return;
        }
        let client = self.clients.get_mut(&id);
        if let Some(tracking) = client.and_then(|client| client.tracking.as_mut()) {
            tracking.next = None;
        }
    }

    /// Ends that a client is told of changes.
    pub fn track_no_more(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let Some(tracking) = client.tracking.take() else { return };
        self.tracked.clients -= 1;
        for prefix in tracking.prefixes {
            if let Some(clients) = self.tracked.prefixes.get_mut(&prefix) {
                clients.remove(&id);
                if clients.is_empty() {
                    self.tracked.prefixes.remove(&prefix);
                }
            }
        }
        if self.tracked.clients == 0 {
            // Nobody hears of changes now, so nothing would take these away; and who begins anew is
            // not to be told of what it read before.
            self.tracked.readers = HashMap::new();
        }
    }

    /// Begins to tell a client of changes, or changes how.
    pub fn track(&mut self, id: u64, tracking: Tracking) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.tracking.is_none() {
            self.tracked.clients += 1;
        }
        for prefix in &tracking.prefixes {
            self.tracked.prefixes.entry(prefix.clone()).or_default().insert(id);
        }
        client.tracking = Some(tracking);
    }
}
