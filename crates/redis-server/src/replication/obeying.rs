//! Commands of the primary, done here: they may do everything, but to time series.

use crate::acl::User;
use crate::clients::session::Session;
use crate::commands::Flow;
use crate::dispatch::Context;
use crate::hub::HubGuard;
use crate::redis::Redis;
use kv::keyspace::Emptying;
use kv::number::parse_i64;
use kv::replicate::field_expiry;
use kv::series::SERIES_DB;
use kv::{Keyspace, Reply as _};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Commands of the primary that could not be done which are named in the log.
const NAMED_COUNT_MAX: u64 = 10;
/// The argument of `COPY` that names the copy.
const COPY_PLACE: usize = 2;

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
        hub: &mut HubGuard<'_>,
        args: &[&[u8]],
    ) -> Flow {
        let exact = without_limit(args);
        let args = exact.as_deref().unwrap_or(args);
        let Some(commands) = field_expiry::commands(args) else {
            return self.obey_one(session, keys, hub, args);
        };
        for args in &commands {
            self.obey_one(session, keys, hub, args);
        }
        Flow::Next
    }

    fn obey_one(
        &self,
        session: &mut Session,
        keys: &mut Keyspace,
        hub: &mut HubGuard<'_>,
        args: &[&[u8]],
    ) -> Flow {
        let flow = self.execute(session, keys, hub, args);
        if flow == Flow::Wait {
            hub.unblock(session.id, keys);
        }
        if let [b'-', words @ ..] = session.out.0.bytes() {
            self.note_refused(args, words);
        }
        session.out.0.bytes_mut().clear();
        match flow {
            Flow::Work => Flow::Work,
            _ => Flow::Next,
        }
    }

    /// Counts a command of the primary that was answered with an error.
    pub fn note_refused(&self, args: &[&[u8]], words: &[u8]) {
        let name = String::from_utf8_lossy(args.first().copied().unwrap_or_default());
        self.refuse(&format!("{name}: {}", String::from_utf8_lossy(words).trim_end()));
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

/// The same command without `LIMIT`, if a Redis made an exact trim of `XADD` or `XTRIM` of a rough one: it
/// leaves the limit in place, with which clients may not ask for an exact trim.
fn without_limit<'a>(args: &[&'a [u8]]) -> Option<Vec<&'a [u8]>> {
    let name = args.first()?;
    if !name.eq_ignore_ascii_case(b"xadd") && !name.eq_ignore_ascii_case(b"xtrim") {
        return None;
    }
    let is =
        |at: usize, word: &[u8]| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
    let (mut at, mut is_exact, mut limit) = (2, false, None);
    loop {
        if is(at, b"maxlen") || is(at, b"minid") {
            is_exact = is(at + 1, b"=");
            at += if is_exact || is(at + 1, b"~") { 3 } else { 2 };
        } else if is(at, b"limit") {
            limit = Some(at);
            at += 2;
        } else if is(at, b"nomkstream") {
            at += 1;
        } else {
            break;
        }
    }
    let limit = limit.filter(|limit| is_exact && limit + 2 <= args.len())?;
    Some([&args[..limit], &args[limit + 2..]].concat())
}

/// Does a command of the primary that would change time series of this server so that they stay.
/// Returns whether it did. Transactions and scripts get here with each of their commands in turn.
pub fn spares_series(context: &mut Context<'_, '_>) -> bool {
    if !context.session.is_primary || !context.keys.lists_series() {
        return false;
    }
    let (name, db) = (context.info.name, context.session.db);
    match name {
        "flushall" => empty(context.keys, Emptying::default()),
        "flushdb" => empty(context.keys, Emptying::one(db)),
        _ if harms_series(context) => {
            context.redis.refuse(&format!("{name} would change time series of this server"));
        }
        _ => return false,
    }
    context.session.out.ok();
    true
}

/// Empties databases, but for time series.
fn empty(keys: &mut Keyspace, mut at: Emptying) {
    // What cannot be read stays, and is said where it is read.
    while keys.empty_some(&mut at).unwrap_or(false) {}
}

/// Whether a command would change a key that is a time series here.
fn harms_series(context: &mut Context<'_, '_>) -> bool {
    let args = context.args;
    let is_series_db = |text: &[u8]| parse_i64(text) == Some(i64::from(SERIES_DB));
    if context.info.name == "swapdb" {
        return args[1..].iter().any(|db| is_series_db(db));
    }
    let mut places = match context.session.db {
        SERIES_DB => context.info.key_places(args).unwrap_or_default(),
        _ => Vec::new(),
    };
    let options = args.get(COPY_PLACE + 1..).unwrap_or_default();
    if context.info.name == "copy"
        && let Some(at) = options.iter().position(|word| word.eq_ignore_ascii_case(b"db"))
    {
        // The copy comes into that database.
        places.retain(|place| *place != COPY_PLACE);
        places.extend(options.get(at + 1).filter(|db| is_series_db(db)).map(|_| COPY_PLACE));
    }
    places.iter().any(|at| {
        let key = args.get(*at).copied().unwrap_or_default();
        let found = context.keys.slot(SERIES_DB, key);
        matches!(found, Ok(Some(slot)) if matches!(slot.value, kv::Value::Series(_)))
    })
}

#[cfg(test)]
mod tests {
    use super::without_limit;

    #[test]
    fn limits_of_exact_trims_are_left_out() {
        for (line, expected) in [
            ("XADD x MAXLEN = 1 LIMIT 6 7-0 f v", Some("XADD x MAXLEN = 1 7-0 f v")),
            (
                "xadd x LIMIT 6 NOMKSTREAM minid = 3-0 7-0 f v",
                Some("xadd x NOMKSTREAM minid = 3-0 7-0 f v"),
            ),
            ("XTRIM x MAXLEN = 1 LIMIT 6", Some("XTRIM x MAXLEN = 1")),
            ("XADD x MAXLEN = 1 7-0 LIMIT v", None),
            ("XTRIM x MAXLEN ~ 1 LIMIT 6", None),
            ("XADD x 7-0 LIMIT v", None),
            ("XTRIM x MAXLEN = 1 LIMIT", None),
            ("LPOS x MAXLEN = 1 LIMIT 6", None),
        ] {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let exact = without_limit(&args).map(|args| args.join(&b' '));
            assert_eq!(exact.as_deref(), expected.map(str::as_bytes), "{line}");
        }
    }
}
