//! Keys of any type: there or not, when they expire, what they are, all of them.

use super::{ALL_KEYS, Command, FAST, Group, Keys, ONE_KEY, READONLY, TWO_KEYS, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, NO_KEY, SYNTAX};
use crate::glob;
use crate::keyspace::{EVENT_GENERIC, EVENT_NEW, Expire, check_corrupt};
use crate::number::int_arg;
use crate::slots::{LAST_EXPIRY, NEVER};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("dbsize", 1, READONLY | FAST, Keys::None, Group::Server, "1.0.0", "How many keys the database has.", dbsize),
    command("del", -2, WRITE, ALL_KEYS, Group::Generic, "1.0.0", "Removes keys.", del),
    command("exists", -2, READONLY | FAST, ALL_KEYS, Group::Generic, "1.0.0", "How many of the keys are there.", exists),
    command("expire", -3, WRITE | FAST, ONE_KEY, Group::Generic, "1.0.0", "Sets when a key expires, in seconds from now.", expire),
    command("expireat", -3, WRITE | FAST, ONE_KEY, Group::Generic, "1.2.0", "Sets when a key expires, in seconds since the epoch.", expire_at),
    command("expiretime", 2, READONLY | FAST, ONE_KEY, Group::Generic, "7.0.0", "When a key expires, in seconds since the epoch.", expire_time),
    command("flushall", -1, WRITE | super::DANGEROUS, Keys::None, Group::Server, "1.0.0", "Removes all keys of all databases.", flush_all),
    command("flushdb", -1, WRITE | super::DANGEROUS, Keys::None, Group::Server, "1.0.0", "Removes all keys of the database.", flush_db),
    command("keys", 2, READONLY | super::DANGEROUS, Keys::None, Group::Generic, "1.0.0", "All keys that fit a pattern.", keys),
    command("persist", 2, WRITE | FAST, ONE_KEY, Group::Generic, "2.2.0", "Keeps a key from expiring.", persist),
    command("pexpire", -3, WRITE | FAST, ONE_KEY, Group::Generic, "2.6.0", "Sets when a key expires, in milliseconds from now.", pexpire),
    command("pexpireat", -3, WRITE | FAST, ONE_KEY, Group::Generic, "2.6.0", "Sets when a key expires, in milliseconds since the epoch.", pexpire_at),
    command("pexpiretime", 2, READONLY | FAST, ONE_KEY, Group::Generic, "7.0.0", "When a key expires, in milliseconds since the epoch.", pexpire_time),
    command("pttl", 2, READONLY | FAST, ONE_KEY, Group::Generic, "2.6.0", "In how many milliseconds a key expires.", pttl),
    command("randomkey", 1, READONLY, Keys::None, Group::Generic, "1.0.0", "Any key.", random_key),
    command("rename", 3, WRITE, TWO_KEYS, Group::Generic, "1.0.0", "Gives a key another name, whatever that held.", rename),
    command("renamenx", 3, WRITE | FAST, TWO_KEYS, Group::Generic, "1.0.0", "Gives a key another name, if that is free.", rename_nx),
    command("scan", -2, READONLY, Keys::None, Group::Generic, "2.8.0", "Some keys, and where to go on.", scan),
    command("touch", -2, READONLY | FAST, ALL_KEYS, Group::Generic, "3.2.1", "Marks keys as used; how many are there.", exists),
    command("ttl", 2, READONLY | FAST, ONE_KEY, Group::Generic, "1.0.0", "In how many seconds a key expires.", ttl),
    command("type", 2, READONLY | FAST, ONE_KEY, Group::Generic, "1.0.0", "What type a key's value has.", type_of),
    command("unlink", -2, WRITE | FAST, ALL_KEYS, Group::Generic, "4.0.0", "Removes keys; large values are freed in the background.", del),
];

fn dbsize(call: &mut Call<'_>) -> Result<(), CommandError> {
    let len = call.keys.len(call.db);
    call.out.len(len);
    Ok(())
}

fn del(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut count = 0;
    call.log_nothing();
    for key in &call.args[1..] {
        match call.keys.take(call.db, key) {
            Ok(Some((value, _))) => call.keys.discard(value),
            Ok(None) => continue,
            // Nobody needs the value of what goes.
            Err(_) if call.keys.forget_unreadable(call.db, key) => {}
            Err(error) => return Err(error),
        }
        call.log(&[b"del", key]);
        call.event(EVENT_GENERIC, "del", key);
        count += 1;
    }
    call.out.int(count);
    Ok(())
}

fn exists(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut count = 0;
    for key in &call.args[1..] {
        count += i64::from(call.keys.value(call.db, key)?.is_some());
    }
    call.out.int(count);
    Ok(())
}

fn type_of(call: &mut Call<'_>) -> Result<(), CommandError> {
    let name = call.keys.value(call.db, call.args[1])?.map_or("none", |value| value.type_name());
    call.out.simple(name);
    Ok(())
}

// ---- expiry ----

fn expire(call: &mut Call<'_>) -> Result<(), CommandError> {
    expire_in(call, 1000, true)
}

fn pexpire(call: &mut Call<'_>) -> Result<(), CommandError> {
    expire_in(call, 1, true)
}

fn expire_at(call: &mut Call<'_>) -> Result<(), CommandError> {
    expire_in(call, 1000, false)
}

fn pexpire_at(call: &mut Call<'_>) -> Result<(), CommandError> {
    expire_in(call, 1, false)
}

/// Sets an expiry that is given in units of so many milliseconds, from now or since the epoch.
fn expire_in(call: &mut Call<'_>, unit_ms: i64, is_relative: bool) -> Result<(), CommandError> {
    let key = call.args[1];
    let name = call.command.info.name;
    let invalid = || CommandError::new(format!("ERR invalid expire time in '{name}' command"));
    let condition = condition(call)?;
    let time = int_arg(call.args[2])?.checked_mul(unit_ms).ok_or_else(invalid)?;
    let base = if is_relative { call.now_ms() } else { 0 };
    let at = time.checked_add(base).ok_or_else(invalid)?.min(LAST_EXPIRY);
    let Some(before) = call.keys.expire_of(call.db, key)? else {
        call.out.int(0);
        return Ok(());
    };
    if !condition.allows(before, at) {
        call.out.int(0);
        return Ok(());
    }
    change_expiry(call, key, at)?;
    call.out.int(1);
    Ok(())
}

/// On what an expiry is changed.
#[derive(Default)]
struct Condition {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Condition {
    /// [`NEVER`] is later than any time.
    fn allows(&self, before: i64, at: i64) -> bool {
        !(self.nx && before != NEVER
            || self.xx && before == NEVER
            || self.gt && at <= before
            || self.lt && before <= at)
    }
}

fn condition(call: &Call<'_>) -> Result<Condition, CommandError> {
    let mut condition = Condition::default();
    for word in call.args.get(3..).unwrap_or_default() {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => condition.nx = true,
            b"xx" => condition.xx = true,
            b"gt" => condition.gt = true,
            b"lt" => condition.lt = true,
            _ => {
                let word = String::from_utf8_lossy(word);
                return Err(CommandError::new(format!("ERR Unsupported option {word}")));
            }
        }
    }
    if condition.nx && (condition.xx || condition.gt || condition.lt) {
        let words = "ERR NX and XX, GT or LT options at the same time are not compatible";
        return Err(CommandError::new(words));
    }
    if condition.gt && condition.lt {
        let words = "ERR GT and LT options at the same time are not compatible";
        return Err(CommandError::new(words));
    }
    Ok(condition)
}

/// Sets when a key that is there expires; at once, if that is past.
pub(super) fn change_expiry(call: &mut Call<'_>, key: &[u8], at: i64) -> Result<(), CommandError> {
    if at == NEVER {
        if call.keys.expire_of(call.db, key)? != Some(NEVER) {
            call.keys.set_expire(call.db, key, NEVER)?;
            call.log(&[b"persist", key]);
            call.event(EVENT_GENERIC, "persist", key);
        }
        return Ok(());
    }
    if call.has_passed(at) {
        call.remove(key)?;
        call.log(&[b"del", key]);
        call.event(EVENT_GENERIC, "del", key);
        return Ok(());
    }
    call.keys.set_expire(call.db, key, at)?;
    call.log(&[b"pexpireat", key, itoa::Buffer::new().format(at).as_bytes()]);
    call.event(EVENT_GENERIC, "expire", key);
    Ok(())
}

fn persist(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let expires = call.keys.expire_of(call.db, key)?.is_some_and(|at| at != NEVER);
    if expires {
        change_expiry(call, key, NEVER)?;
    }
    call.out.int(i64::from(expires));
    Ok(())
}

fn ttl(call: &mut Call<'_>) -> Result<(), CommandError> {
    let now_ms = call.now_ms();
    answer_expiry(call, |at| (at - now_ms).saturating_add(500) / 1000)
}

fn pttl(call: &mut Call<'_>) -> Result<(), CommandError> {
    let now_ms = call.now_ms();
    answer_expiry(call, |at| at - now_ms)
}

fn expire_time(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer_expiry(call, |at| at.saturating_add(500) / 1000)
}

fn pexpire_time(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer_expiry(call, |at| at)
}

fn answer_expiry(call: &mut Call<'_>, answer: impl FnOnce(i64) -> i64) -> Result<(), CommandError> {
    match call.keys.expire_of(call.db, call.args[1])? {
        None => call.out.int(-2),
        Some(NEVER) => call.out.int(-1),
        Some(at) => call.out.int(answer(at).max(0)),
    }
    Ok(())
}

// ---- names ----

fn rename(call: &mut Call<'_>) -> Result<(), CommandError> {
    if !rename_to(call)? {
        return Err(NO_KEY);
    }
    call.out.ok();
    Ok(())
}

fn rename_nx(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (from, to) = (call.args[1], call.args[2]);
    if !call.keys.exists(call.db, from)? {
        return Err(NO_KEY);
    }
    if call.keys.exists(call.db, to)? {
        call.out.int(0);
        return Ok(());
    }
    rename_to(call)?;
    call.out.int(1);
    Ok(())
}

/// Returns whether there was such a key.
fn rename_to(call: &mut Call<'_>) -> Result<bool, CommandError> {
    let (from, to) = (call.args[1], call.args[2]);
    if from == to {
        return call.keys.exists(call.db, from);
    }
    let Some((value, expire_ms)) = call.keys.take(call.db, from)? else { return Ok(false) };
    let expire = if expire_ms == NEVER { Expire::Never } else { Expire::At(expire_ms) };
    if call.keys.events_wanted & EVENT_NEW != 0 && call.keys.exists(call.db, to)? {
        // The old key is deleted first.
        call.event(EVENT_NEW, "new", to);
    }
    call.keys.place(call.db, to, value, expire)?;
    call.log(&[b"del", from]);
    call.log_key(to)?;
    call.event(EVENT_GENERIC, "rename_from", from);
    call.event(EVENT_GENERIC, "rename_to", to);
    Ok(true)
}

// ---- all keys ----

/// Whether the words behind `FLUSHALL` and `FLUSHDB` are known ones.
fn check_flush(call: &Call<'_>) -> Result<(), CommandError> {
    match call.args.get(1..).unwrap_or_default() {
        [] => Ok(()),
        [word] if word.eq_ignore_ascii_case(b"async") || word.eq_ignore_ascii_case(b"sync") => {
            Ok(())
        }
        _ => Err(SYNTAX),
    }
}

fn flush_db(call: &mut Call<'_>) -> Result<(), CommandError> {
    check_flush(call)?;
    call.keys.flush(call.db);
    call.log(&[crate::effects::FLUSH]);
    call.out.ok();
    Ok(())
}

fn flush_all(call: &mut Call<'_>) -> Result<(), CommandError> {
    check_flush(call)?;
    for db in 0..call.keys.database_count() {
        let db = u8::try_from(db).unwrap_or(u8::MAX);
        call.keys.flush(db);
        call.log_in(db, &[crate::effects::FLUSH]);
    }
    call.out.ok();
    Ok(())
}

fn keys(call: &mut Call<'_>) -> Result<(), CommandError> {
    let pattern = call.args[1];
    let mut found: Vec<Vec<u8>> = Vec::new();
    let scan = call.keys.scan(call.db, 0, usize::MAX, |key, _| {
        if glob::matches(pattern, key) {
            found.push(key.to_vec());
        }
    })?;
    check_corrupt(scan.corrupt)?;
    call.out.array(found.len());
    for key in &found {
        call.out.bulk(key);
    }
    Ok(())
}

fn random_key(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.keys.random_key(call.db)?;
    call.out.bulk_or_null(key.as_deref());
    Ok(())
}

/// The options that `SCAN` and its like share.
pub(super) struct ScanOptions<'a> {
    /// How much work to do.
    pub count: usize,
    /// What is shown, all without it.
    pub pattern: Option<&'a [u8]>,
    /// The type of what is shown, for `SCAN` alone.
    pub type_name: Option<Vec<u8>>,
}

impl ScanOptions<'_> {
    /// Whether a key, field or member is shown.
    pub fn shows(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name))
    }
}

/// The number of a cursor, as C reads one without sign: with a minus it is counted from the end.
pub(super) fn cursor_arg(text: &[u8]) -> Result<u64, CommandError> {
    let text = std::str::from_utf8(text).ok();
    let number = text.and_then(|text| match text.strip_prefix('-') {
        Some(digits) if !digits.starts_with('+') => digits.parse().ok().map(u64::wrapping_neg),
        Some(_) => None,
        None => text.parse().ok(),
    });
    number.ok_or(CommandError::new("ERR invalid cursor"))
}

/// Reads options from the argument `at` on.
pub(super) fn scan_options<'a>(
    args: &'a [&'a [u8]],
    mut at: usize,
    takes_type: bool,
) -> Result<ScanOptions<'a>, CommandError> {
    let mut options = ScanOptions { count: 10, pattern: None, type_name: None };
    while let Some(word) = args.get(at) {
        let value = args.get(at + 1).ok_or(SYNTAX)?;
        match word.to_ascii_lowercase().as_slice() {
            b"count" => {
                let count = int_arg(value)?;
                options.count =
                    usize::try_from(count).ok().filter(|count| 0 < *count).ok_or(SYNTAX)?;
            }
            b"match" => options.pattern = Some(value),
            b"type" if takes_type => options.type_name = Some(value.to_ascii_lowercase()),
            _ => return Err(SYNTAX),
        }
        at += 2;
    }
    Ok(options)
}

/// Keys that one `SCAN` goes through, whatever `COUNT` says: others wait meanwhile.
const SCAN_KEYS_MAX: usize = 10_000;

fn scan(call: &mut Call<'_>) -> Result<(), CommandError> {
    let cursor = cursor_arg(call.args[1])?;
    let options = scan_options(call.args, 2, true)?;
    let mut found: Vec<Vec<u8>> = Vec::new();
    let count = options.count.min(SCAN_KEYS_MAX);
    let scan = call.keys.scan(call.db, cursor, count, |key, value| {
        let is_type = |name: &Vec<u8>| value.type_name().as_bytes().eq_ignore_ascii_case(name);
        if options.shows(key) && options.type_name.as_ref().is_none_or(is_type) {
            found.push(key.to_vec());
        }
    })?;
    let next = scan.complete()?;
    call.out.array(2);
    call.out.text(&next.to_string());
    call.out.array(found.len());
    for key in &found {
        call.out.bulk(key);
    }
    Ok(())
}
