//! What was done to keys, as commands that Redis 7.0 knows: for replicas.
//!
//! Most effects are such commands already. A whole value is `RESTORE`d, deliveries of streams become
//! claims, and a key that a newer command changed is sent whole. Types that Redis has not are left
//! out: a key that becomes one of those goes.

use crate::commands::internal::{DELIVER, FLUSH, GONE, PUT, SWAP};
use crate::commands::{self, Group};
use crate::effects::{Effect, Effects};
use crate::keyspace::Keyspace;
use crate::rdb;
use crate::slots::NEVER;
use crate::value::Value;
use crate::value::stream::Id;
use codec::bytes::{Reader, unzigzag};
use std::collections::BTreeSet;

/// Takes a command on a database.
pub type Each<'a> = &'a mut dyn FnMut(u8, &[&[u8]]);

/// The newest version whose commands are sent as they are.
const VERSION: (u32, u32) = (7, 0);

/// How an effect is told.
enum Way {
    /// As it is.
    AsItIs,
    /// As `HSET`.
    Hset,
    /// As one of [`crate::commands::internal`].
    Internal,
    /// By what its key is like at the end.
    Whole,
    /// Not at all.
    Never,
}

/// Tells the effects of one record. Returns how many were left out, as Redis has no such values.
pub fn tell(keys: &mut Keyspace, effects: &Effects, each: Each<'_>) -> u64 {
    let Ok(effects) = effects.decode() else { return 0 };
    let is_whole = |effect: &&Effect<'_>| matches!(way(effect), Way::Whole);
    let whole: BTreeSet<(u8, &[u8])> = effects.iter().filter(is_whole).map(place).collect();
    let (mut left_out, mut exchanged) = (0, BTreeSet::new());
    for effect in effects.iter().filter(|effect| !whole.contains(&place(effect))) {
        match way(effect) {
            Way::AsItIs => each(effect.db, &effect.arguments),
            Way::Hset => {
                let [_, key, .., field, value] = effect.arguments[..] else { continue };
                each(effect.db, &[b"HSET", key, field, value]);
            }
            Way::Internal => {
                if effect.arguments[0] == SWAP {
                    exchanged.insert(effect.db);
                    exchanged.extend(other_database(effect));
                }
                left_out += internal(effect, each);
            }
            Way::Whole => {}
            Way::Never => left_out += 1,
        }
    }
    // Last, for a database may have been emptied or exchanged before.
    for (db, key) in whole {
        left_out += tell_key(keys, db, key, each);
        for other in exchanged.iter().filter(|other| **other != db) {
            left_out += tell_key(keys, *other, key, each);
        }
    }
    left_out
}

/// The key that an effect is on.
fn place<'a>(effect: &Effect<'a>) -> (u8, &'a [u8]) {
    let command = effect.arguments.first().and_then(|name| commands::find(name));
    let at = command.map_or(Some(1), |command| command.info.first_key_place(&effect.arguments));
    let key = at.and_then(|at| effect.arguments.get(at)).copied();
    (effect.db, key.unwrap_or_default())
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
    let mut numbers = command.info.since.split('.').map(|number| number.parse().unwrap_or(0));
    let since = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match since <= VERSION {
        true => Way::AsItIs,
        false if is_plain_hset(effect) => Way::Hset,
        false => Way::Whole,
    }
}

/// Whether it is how sums of floats in hashes are logged.
fn is_plain_hset(effect: &Effect<'_>) -> bool {
    matches!(effect.arguments[..], [b"hsetex", _, b"keepttl", b"fields", b"1", _, _])
}

fn other_database(effect: &Effect<'_>) -> Option<u8> {
    let number = effect.arguments.get(1).and_then(|text| crate::number::parse_i64(text))?;
    u8::try_from(number).ok()
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

/// Tells a key as it is now.
fn tell_key(keys: &mut Keyspace, db: u8, key: &[u8], each: Each<'_>) -> u64 {
    match keys.slot(db, key) {
        Ok(Some(slot)) => {
            let expire_ms = if slot.expire_ms == NEVER { -1 } else { slot.expire_ms };
            restore(db, key, &slot.value, expire_ms, each)
        }
        _ => {
            each(db, &[b"DEL", key]);
            0
        }
    }
}

fn restore(db: u8, key: &[u8], value: &Value, expire_ms: i64, each: Each<'_>) -> u64 {
    let Some(payload) = rdb::dump_for_redis_7(value) else {
        each(db, &[b"DEL", key]);
        return 1;
    };
    let expire = expire_ms.max(0).to_string();
    each(db, &[b"RESTORE", key, expire.as_bytes(), &payload, b"REPLACE", b"ABSTTL"]);
    u64::from(rdb::expires_fields(value))
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
