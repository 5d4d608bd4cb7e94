//! Hashes. What is about the expiry of fields is in `hash_expiry.rs`.

use super::generic::{cursor_arg, scan_options};
use super::hash_expiry as expiry;
use super::set::{picks, picks_arg};
use super::{Command, DENY_OOM, FAST, Group, ONE_KEY, READONLY, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, NOT_FLOAT, SYNTAX};
use crate::extended::Extended;
use crate::keyspace::{EVENT_GENERIC, EVENT_HASH};
use crate::number::{int_arg, parse_i64};
use crate::value::{Hash, Stored as _};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("hdel", -3, WRITE | FAST, ONE_KEY, Group::Hash, "2.0.0", "Takes fields out of a hash.", hdel),
    command("hexists", 3, READONLY | FAST, ONE_KEY, Group::Hash, "2.0.0", "Whether a hash has a field.", hexists),
    command("hexpire", -6, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "7.4.0", "Sets when fields expire, in seconds from now.", expiry::hexpire),
    command("hexpireat", -6, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "7.4.0", "Sets when fields expire, in seconds since the epoch.", expiry::hexpire_at),
    command("hexpiretime", -5, READONLY | FAST, ONE_KEY, Group::Hash, "7.4.0", "When fields expire, in seconds since the epoch.", expiry::hexpire_time),
    command("hget", 3, READONLY | FAST, ONE_KEY, Group::Hash, "2.0.0", "A field's value.", hget),
    command("hgetall", 2, READONLY, ONE_KEY, Group::Hash, "2.0.0", "All fields with their values.", hgetall),
    command("hgetdel", -5, WRITE | FAST, ONE_KEY, Group::Hash, "8.0.0", "The values of fields, which go.", expiry::hgetdel),
    command("hgetex", -5, WRITE | FAST, ONE_KEY, Group::Hash, "8.0.0", "The values of fields, whose expiry may be set.", expiry::hgetex),
    command("hincrby", 4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "2.0.0", "Adds a number to a field's integer.", hincrby),
    command("hincrbyfloat", 4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "2.6.0", "Adds a float to a field's number.", hincrbyfloat),
    command("hkeys", 2, READONLY, ONE_KEY, Group::Hash, "2.0.0", "All fields.", hkeys),
    command("hlen", 2, READONLY | FAST, ONE_KEY, Group::Hash, "2.0.0", "How many fields a hash has.", hlen),
    command("hmget", -3, READONLY | FAST, ONE_KEY, Group::Hash, "2.0.0", "The values of fields.", hmget),
    command("hmset", -4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "2.0.0", "Sets fields; an old name of HSET.", hmset),
    command("hpersist", -5, WRITE | FAST, ONE_KEY, Group::Hash, "7.4.0", "Keeps fields from expiring.", expiry::hpersist),
    command("hpexpire", -6, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "7.4.0", "Sets when fields expire, in milliseconds from now.", expiry::hpexpire),
    command("hpexpireat", -6, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "7.4.0", "Sets when fields expire, in milliseconds since the epoch.", expiry::hpexpire_at),
    command("hpexpiretime", -5, READONLY | FAST, ONE_KEY, Group::Hash, "7.4.0", "When fields expire, in milliseconds since the epoch.", expiry::hpexpire_time),
    command("hpttl", -5, READONLY | FAST, ONE_KEY, Group::Hash, "7.4.0", "In how many milliseconds fields expire.", expiry::hpttl),
    command("hrandfield", -2, READONLY, ONE_KEY, Group::Hash, "6.2.0", "Random fields.", hrandfield),
    command("hscan", -3, READONLY, ONE_KEY, Group::Hash, "2.8.0", "Some fields with their values, and where to go on.", hscan),
    command("hset", -4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "2.0.0", "Sets fields.", hset),
    command("hsetex", -6, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "8.0.0", "Sets fields and when they expire.", expiry::hsetex),
    command("hsetnx", 4, WRITE | DENY_OOM | FAST, ONE_KEY, Group::Hash, "2.0.0", "Sets a field that is not there.", hsetnx),
    command("hstrlen", 3, READONLY | FAST, ONE_KEY, Group::Hash, "3.2.0", "How many bytes a field's value has.", hstrlen),
    command("httl", -5, READONLY | FAST, ONE_KEY, Group::Hash, "7.4.0", "In how many seconds fields expire.", expiry::httl),
    command("hvals", 2, READONLY, ONE_KEY, Group::Hash, "2.0.0", "All values.", hvals),
];

// ---- one field ----

fn hget(call: &mut Call<'_>) -> Result<(), CommandError> {
    let hash = call.keys.get::<Hash>(call.db, call.args[1])?;
    call.out.bulk_or_null(hash.and_then(|hash| hash.get(call.args[2])));
    Ok(())
}

fn hexists(call: &mut Call<'_>) -> Result<(), CommandError> {
    let field = call.args[2];
    let is_there = call.get::<Hash>(call.args[1])?.is_some_and(|hash| hash.get(field).is_some());
    call.out.int(i64::from(is_there));
    Ok(())
}

fn hstrlen(call: &mut Call<'_>) -> Result<(), CommandError> {
    let field = call.args[2];
    let value = call.get::<Hash>(call.args[1])?.and_then(|hash| hash.get(field));
    let len = value.map_or(0, <[u8]>::len);
    call.out.len(len);
    Ok(())
}

fn hsetnx(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, field, value) = (call.args[1], call.args[2], call.args[3]);
    let is_there = call.get::<Hash>(key)?.is_some_and(|hash| hash.get(field).is_some());
    if !is_there {
        call.get_or_insert::<Hash>(key)?.insert(field, value);
        call.modified(key);
        call.event(EVENT_HASH, "hset", key);
    }
    call.out.int(i64::from(!is_there));
    Ok(())
}

fn hincrby(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, field) = (call.args[1], call.args[2]);
    let by = int_arg(call.args[3])?;
    let not_integer = CommandError::new("ERR hash value is not an integer");
    let old = match call.get::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => parse_i64(value).ok_or(not_integer)?,
        None => 0,
    };
    let overflow = CommandError::new("ERR increment or decrement would overflow");
    let new = old.checked_add(by).ok_or(overflow)?;
    let mut digits = itoa::Buffer::new();
    call.get_or_insert::<Hash>(key)?.insert(field, digits.format(new).as_bytes());
    call.modified(key);
    call.event(EVENT_HASH, "hincrby", key);
    call.out.int(new);
    Ok(())
}

fn hincrbyfloat(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, field) = (call.args[1], call.args[2]);
    let by = Extended::parse(call.args[3]).ok_or(NOT_FLOAT)?;
    if matches!(by, Extended::Infinite { .. }) {
        return Err(CommandError::new("ERR value is NaN or Infinity"));
    }
    let not_float = CommandError::new("ERR hash value is not a float");
    let old = match call.get::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => Extended::parse(value).ok_or(not_float)?,
        None => Extended::ZERO,
    };
    let new = old.plus(by).filter(|new| matches!(new, Extended::Finite { .. }));
    let words = "ERR increment would produce NaN or Infinity";
    let text = new.ok_or(CommandError::new(words))?.text();
    let hash = call.get_or_insert::<Hash>(key)?;
    hash.insert(field, text.as_bytes());
    let expires = hash.expiry_of(field).is_some();
    call.modified(key);
    call.event(EVENT_HASH, "hincrbyfloat", key);
    match expires {
        true => call.log(&[b"hsetex", key, b"keepttl", b"fields", b"1", field, text.as_bytes()]),
        // Every version of Redis has this one.
        false => call.log(&[b"hset", key, field, text.as_bytes()]),
    }
    call.out.text(&text);
    Ok(())
}

// ---- several fields ----

fn hset(call: &mut Call<'_>) -> Result<(), CommandError> {
    let added = set_pairs(call)?;
    call.out.len(added);
    Ok(())
}

fn hmset(call: &mut Call<'_>) -> Result<(), CommandError> {
    set_pairs(call)?;
    call.out.ok();
    Ok(())
}

/// Sets what the arguments say, never to expire. Returns how many fields are new.
fn set_pairs(call: &mut Call<'_>) -> Result<usize, CommandError> {
    let (key, pairs) = (call.args[1], &call.args[2..]);
    if !pairs.len().is_multiple_of(2) {
        return Err(CommandError::arity(call.command.info.name));
    }
    let hash = call.get_or_insert::<Hash>(key)?;
    let mut added = 0;
    for pair in pairs.chunks_exact(2) {
        added += usize::from(hash.insert(pair[0], pair[1]));
        hash.set_expiry(pair[0], None);
    }
    call.modified(key);
    call.event(EVENT_HASH, "hset", key);
    Ok(added)
}

fn hmget(call: &mut Call<'_>) -> Result<(), CommandError> {
    let hash = call.keys.get::<Hash>(call.db, call.args[1])?;
    call.out.array(call.args.len() - 2);
    for field in &call.args[2..] {
        call.out.bulk_or_null(hash.and_then(|hash| hash.get(field)));
    }
    Ok(())
}

fn hdel(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, fields) = (call.args[1], &call.args[2..]);
    let hash = call.get_mut::<Hash>(key)?;
    let removed = hash.map_or(0, |hash| fields.iter().filter(|field| hash.remove(field)).count());
    if 0 < removed {
        call.modified(key);
        call.event(EVENT_HASH, "hdel", key);
        remove_if_empty(call, key)?;
    }
    call.out.len(removed);
    Ok(())
}

pub(super) fn remove_if_empty(call: &mut Call<'_>, key: &[u8]) -> Result<(), CommandError> {
    if call.keys.remove_if_empty(call.db, key)? {
        call.event(EVENT_GENERIC, "del", key);
    }
    Ok(())
}

// ---- all fields ----

fn hlen(call: &mut Call<'_>) -> Result<(), CommandError> {
    let len = call.get::<Hash>(call.args[1])?.map_or(0, Hash::len);
    call.out.len(len);
    Ok(())
}

fn hgetall(call: &mut Call<'_>) -> Result<(), CommandError> {
    let hash = call.keys.get::<Hash>(call.db, call.args[1])?;
    call.out.map(hash.map_or(0, Hash::len));
    for (field, value) in hash.into_iter().flat_map(Hash::iter) {
        call.out.bulk(field);
        call.out.bulk(value);
    }
    Ok(())
}

fn hkeys(call: &mut Call<'_>) -> Result<(), CommandError> {
    let hash = call.keys.get::<Hash>(call.db, call.args[1])?;
    call.out.array(hash.map_or(0, Hash::len));
    hash.into_iter().flat_map(Hash::iter).for_each(|(field, _)| call.out.bulk(field));
    Ok(())
}

fn hvals(call: &mut Call<'_>) -> Result<(), CommandError> {
    let hash = call.keys.get::<Hash>(call.db, call.args[1])?;
    call.out.array(hash.map_or(0, Hash::len));
    hash.into_iter().flat_map(Hash::iter).for_each(|(_, value)| call.out.bulk(value));
    Ok(())
}

fn hscan(call: &mut Call<'_>) -> Result<(), CommandError> {
    let cursor = cursor_arg(call.args[2])?;
    let Some(hash) = call.keys.get::<Hash>(call.db, call.args[1])? else {
        call.out.array(2);
        call.out.text("0");
        call.out.array(0);
        return Ok(());
    };
    // The one option without a value.
    let mut args = call.args.to_vec();
    let mut has_values = true;
    let mut at = 3;
    while at < args.len() {
        if args[at].eq_ignore_ascii_case(b"novalues") {
            args.remove(at);
            has_values = false;
        } else {
            at += 2;
        }
    }
    let options = scan_options(&args, 3, false)?;
    let (next, mut found) = hash.scan(cursor, options.count);
    found.retain(|(field, _)| options.shows(field));
    call.out.array(2);
    call.out.text(&next.to_string());
    call.out.array(found.len() * if has_values { 2 } else { 1 });
    for (field, value) in found {
        call.out.bulk(field);
        if has_values {
            call.out.bulk(value);
        }
    }
    Ok(())
}

fn hrandfield(call: &mut Call<'_>) -> Result<(), CommandError> {
    let rest = call.args.get(2..).unwrap_or_default();
    let count = rest.first().map(|count| picks_arg(count)).transpose()?;
    let has_values = match rest.get(1..).unwrap_or_default() {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"withvalues") => true,
        _ => return Err(SYNTAX),
    };
    if has_values && count.is_some_and(|count| i64::MAX as u64 / 2 < count.unsigned_abs()) {
        return Err(CommandError::new("ERR value is out of range"));
    }
    let mut rng = call.keys.fork_rng();
    let Some(hash) = call.keys.get::<Hash>(call.db, call.args[1])? else {
        match count {
            Some(_) => call.out.array(0),
            None => call.out.null(),
        }
        return Ok(());
    };
    let Some(count) = count else {
        let field = hash.get_at(rng.index(hash.len())).map(|(field, _)| field);
        call.out.bulk_or_null(field);
        return Ok(());
    };
    let picked = picks(&mut rng, count, hash.len(), hash.heap_size() / hash.len())?;
    let is_nested = has_values && 3 <= call.out.version();
    call.out.array(picked.len() * if has_values && !is_nested { 2 } else { 1 });
    for at in picked {
        let (field, value) = hash.get_at(at).unwrap_or_default();
        if is_nested {
            call.out.array(2);
        }
        call.out.bulk(field);
        if has_values {
            call.out.bulk(value);
        }
    }
    Ok(())
}
