//! Commands of the primary, done here: they may do everything, but to time series.

use crate::doors::redis::acl::User;
use crate::doors::redis::commands::Flow;
use crate::doors::redis::connection::Redis;
use crate::doors::redis::session::Session;
use kv::Keyspace;
use kv::keyspace::Emptying;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Commands of the primary that could not be done which are named in the log.
const NAMED_COUNT_MAX: u64 = 10;

impl Redis {
    /// A session for the primary's commands, which may do everything.
    pub(super) fn enter_primary(&self) -> Session {
        let mut session = self.enter_always(None);
        session.is_known = true;
        session.is_primary = true;
        session.state.is_primary.store(true, Relaxed);
        session.user = Arc::new(User::default_one());
        session
    }

    /// Does a command of the primary.
    pub(super) fn obey(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut crate::doors::redis::hub::Hub,
        args: &[&[u8]],
        guards: bool,
    ) -> Flow {
        if guards && empties(keys, session.db, args) {
            return Flow::Next;
        }
        if guards && session.db == kv::series::SERIES_DB && harms_series(keys, args) {
            let name = String::from_utf8_lossy(args.first().copied().unwrap_or_default());
            self.refuse(&format!("{name} would change time series of this server"));
            return Flow::Next;
        }
        let flow = self.execute(session, keys, hub, args);
        if flow == Flow::Wait {
            hub.unblock(session.id, keys);
        }
        if let [b'-', words @ ..] = session.out.0.bytes() {
            let name = String::from_utf8_lossy(args.first().copied().unwrap_or_default());
            self.refuse(&format!("{name}: {}", String::from_utf8_lossy(words).trim_end()));
        }
        session.out.0.bytes_mut().clear();
        match flow {
            Flow::Work => Flow::Work,
            _ => Flow::Next,
        }
    }

    /// Counts a command of the primary that was not done.
    fn refuse(&self, what: &str) {
        let mut state = self.replication.link.state();
        state.refused += 1;
        if state.refused <= NAMED_COUNT_MAX {
            tracing::warn!("a command of the primary was not done: {what}");
        }
    }
}

/// Empties databases with time series, which stay, if that is what a command wants.
fn empties(keys: &mut Keyspace, db: u8, args: &[&[u8]]) -> bool {
    let name = args.first().copied().unwrap_or_default();
    let mut at = match () {
        () if name.eq_ignore_ascii_case(b"flushall") => Emptying::default(),
        () if name.eq_ignore_ascii_case(b"flushdb") => Emptying::one(db),
        () => return false,
    };
    // What cannot be read stays, and is said where it is read.
    while keys.empty_some(&mut at).unwrap_or(false) {}
    true
}

/// Whether a command would change a key that is a time series here.
fn harms_series(keys: &mut Keyspace, args: &[&[u8]]) -> bool {
    let Some(known) = crate::doors::redis::dispatch::Known::find(args) else { return false };
    let info = known.info();
    if info.name == "swapdb" {
        return true;
    }
    info.key_places(args).unwrap_or_default().iter().any(|at| {
        let key = args.get(*at).copied().unwrap_or_default();
        let found = keys.slot(kv::series::SERIES_DB, key);
        matches!(found, Ok(Some(slot)) if matches!(slot.value, kv::Value::Series(_)))
    })
}
