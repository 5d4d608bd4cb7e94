//! What was done to keys, as commands that Redis 7.0 knows: for replicas.
//!
//! Most effects are such commands already. A whole value is `RESTORE`d, deliveries of streams become
//! claims, and the expiry of fields becomes scripts ([`field_expiry`]). Types that Redis has not are left
//! out: a key that becomes one of those goes.

pub mod field_expiry;

use crate::commands::{self, Group};
use crate::effects::{DELIVER, Effect, Effects, FLUSH, ForReplicas, GONE, PUT, SWAP};
use crate::keyspace::Keyspace;
use crate::kv::Kv;
use crate::rdb;
use crate::value::Value;
use crate::value::stream::Id;
use codec::bytes::{Reader, unzigzag};

/// Whether keys are a replica's; also where the file that says so is damaged.
pub(crate) fn is_replica(kv: &Kv) -> bool {
    kv.read_primary().map_or(true, |record| record.is_some_and(|record| record.is_followed()))
}

/// Takes a command on a database.
pub type Each<'a> = &'a mut dyn FnMut(u8, &[&[u8]]);

/// The newest version whose commands are sent as they are.
const VERSION: (u32, u32) = (7, 0);

/// How an effect is told.
enum Way {
    /// As it is.
    AsItIs,
    /// As commands of an older version.
    Older,
    /// As one of [`crate::commands::internal`].
    Internal,
    /// Not at all.
    Never,
}

impl Keyspace {
    /// Has a command that changes no key sent to replicas, behind the changes of those before it.
    pub fn send_to_replicas(&mut self, db: u8, arguments: &[&[u8]]) {
        self.effects.push_for_replicas(db, arguments);
    }
}

/// Tells the effects of one record. Returns how many were left out, as Redis has no such values.
pub fn tell(effects: &Effects, each: Each<'_>) -> u64 {
    let Ok(decoded) = effects.decode() else { return 0 };
    let mut left_out = 0;
    let mut for_replicas = effects.for_replicas().iter().peekable();
    for (effect, number) in decoded.iter().zip(0..) {
        // Nothing comes before an effect that it follows.
        while let Some(next) = for_replicas.next_if(|it| it.effect_count <= number) {
            tell_words(next, each);
        }
        match way(effect) {
            Way::AsItIs => each(effect.db, &effect.arguments),
            Way::Older => left_out += u64::from(!field_expiry::send(effect, each)),
            Way::Internal => left_out += internal(effect, each),
            Way::Never => left_out += 1,
        }
    }
    for_replicas.for_each(|it| tell_words(it, each));
    left_out
}

/// Whether one command tells all of a record, so that it needs no transaction.
pub fn is_one_command(effects: &Effects) -> bool {
    if effects.count() + effects.for_replicas().len() as u64 != 1 {
        return false;
    }
    let effect = effects.decode().unwrap_or_default().pop();
    effect.is_none_or(|effect| match way(&effect) {
        Way::AsItIs | Way::Never => true,
        Way::Older => false,
        Way::Internal => ![PUT, DELIVER].contains(&effect.arguments[0]),
    })
}

fn tell_words(command: &ForReplicas, each: Each<'_>) {
    let words: Vec<&[u8]> = command.arguments.iter().map(Vec::as_slice).collect();
    each(command.db, &words);
}

fn way(effect: &Effect<'_>) -> Way {
    let name = effect.arguments.first().copied().unwrap_or_default();
    if name.first() == Some(&1) {
        return Way::Internal;
    }
    let Some(command) = commands::find(name) else { return Way::Never };
    if matches!(command.info.group, Group::Bloom | Group::TimeSeries) {
        return Way::Never;
    }
    if is_newer(command.info.since) { Way::Older } else { Way::AsItIs }
}

/// Whether a command is newer than the version whose commands are sent as they are.
fn is_newer(since: &str) -> bool {
    let mut numbers = since.split('.').map(|number| number.parse().unwrap_or(0));
    VERSION < (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Tells an effect that is no command. Returns how much of it was left out.
fn internal(effect: &Effect<'_>, each: Each<'_>) -> u64 {
    let db = effect.db;
    let argument = |at: usize| effect.arguments.get(at).copied().unwrap_or_default();
    match effect.arguments[0] {
        name if name == FLUSH => each(db, &[b"FLUSHDB"]),
        name if name == SWAP => {
            each(db, &[b"SWAPDB", db.to_string().as_bytes(), argument(1)]);
        }
        name if name == PUT => {
            let expire_ms = crate::number::parse_i64(argument(2)).unwrap_or(-1);
            let Ok(value) = Value::decode(argument(3)) else { return 1 };
            return restore(db, argument(1), &value, expire_ms, each);
        }
        // The effect before takes the last element from a replica, too.
        name if name == GONE => {}
        name if name == DELIVER => deliver(effect, each),
        _ => return 1,
    }
    0
}

fn restore(db: u8, key: &[u8], value: &Value, expire_ms: i64, each: Each<'_>) -> u64 {
    let Some(payload) = rdb::dump_for_redis_7(value) else {
        each(db, &[b"DEL", key]);
        return 1;
    };
    let expire = expire_ms.max(0).to_string();
    each(db, &[b"RESTORE", key, expire.as_bytes(), &payload, b"REPLACE", b"ABSTTL"]);
    if let Value::Hash(hash) = value {
        field_expiry::send_hash(db, key, hash, each);
    }
    0
}

/// Deliveries of a stream, as claims; see [`crate::commands::stream`].
fn deliver(effect: &Effect<'_>, each: Each<'_>) {
    let db = effect.db;
    // When the consumer last got something, which comes last, is nothing that can be told.
    let [_, key, group, consumer, seen, last_id, read, what, gone, ..] = effect.arguments[..]
    else {
        return;
    };
    if seen != b"-1" {
        each(db, &[b"XGROUP", b"CREATECONSUMER", key, group, consumer]);
    }
    each(db, &[b"XGROUP", b"SETID", key, group, last_id, b"ENTRIESREAD", read]);
    let mut reader = Reader::new(what);
    while let Ok(id) = Id::read(&mut reader) {
        let (Ok(delivered), Ok(count)) = (reader.varint(), reader.varint()) else { return };
        let (id, delivered) = (id.text(), unzigzag(delivered).to_string());
        let count = count.to_string();
        #[rustfmt::skip] // as it is said
        each(db, &[
            b"XCLAIM", key, group, consumer, b"0", id.as_bytes(), b"TIME", delivered.as_bytes(),
            b"RETRYCOUNT", count.as_bytes(), b"FORCE", b"JUSTID",
        ]);
    }
    let mut reader = Reader::new(gone);
    while let Ok(id) = Id::read(&mut reader) {
        each(db, &[b"XACK", key, group, id.text().as_bytes()]);
    }
}
