//! Fields of hashes that expire: when, and what is done with them at once.
//!
//! That an expired field is not seen, and goes, is the keyspace's care: whoever finds the key finds a
//! hash without it. What is logged are absolute times.

use super::hash::remove_if_empty;
use crate::call::Call;
use crate::error::{CommandError, WRONG_TYPE};
use crate::keyspace::EVENT_HASH;
use crate::number::{int_arg, parse_i64};
use crate::reply::Reply;
use crate::value::Hash;

/// There is no such field.
const NO_FIELD: i64 = -2;
/// The field does not expire.
const NO_EXPIRY: i64 = -1;
/// The condition does not hold.
const NOT_DONE: i64 = 0;
/// Done.
const DONE: i64 = 1;
/// The time is past: the field went at once.
const DELETED: i64 = 2;

const NO_FIELDS_WORD: CommandError = CommandError(std::borrow::Cow::Borrowed(
    "ERR Mandatory argument FIELDS is missing or not at the right position",
));
const WRONG_FIELD_COUNT: CommandError = CommandError(std::borrow::Cow::Borrowed(
    "ERR The `numfields` parameter must match the number of arguments",
));

/// An error if the key is no hash: before anything is said of the arguments.
fn check_type(call: &mut Call<'_>) -> Result<(), CommandError> {
    match call.keys.value(call.db, call.args[1])? {
        Some(crate::Value::Hash(_)) | None => Ok(()),
        Some(_) => Err(WRONG_TYPE),
    }
}

/// The fields behind the word `FIELDS` at that place and their number; `words` are the error when
/// that is none.
fn fields_at<'a>(
    call: &Call<'a>,
    at: usize,
    words: &'static str,
) -> Result<&'a [&'a [u8]], CommandError> {
    let word = call.args.get(at).filter(|word| word.eq_ignore_ascii_case(b"fields"));
    word.ok_or(NO_FIELDS_WORD)?;
    let count = call.args.get(at + 1).and_then(|count| parse_i64(count));
    let count = count.filter(|count| 0 < *count).ok_or(CommandError::new(words))?;
    let fields = call.args.get(at + 2..).unwrap_or_default();
    match i64::try_from(fields.len()) == Ok(count) {
        true => Ok(fields),
        false => Err(WRONG_FIELD_COUNT),
    }
}

const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

/// The moment that a time means, given in units of so many milliseconds from `base_ms` on.
fn expire_arg(
    call: &Call<'_>,
    text: &[u8],
    unit_ms: i64,
    base_ms: i64,
) -> Result<i64, CommandError> {
    let time = int_arg(text)?;
    if time < 0 {
        return Err(CommandError::new("ERR invalid expire time, must be >= 0"));
    }
    let at = time.checked_mul(unit_ms).and_then(|ms| ms.checked_add(base_ms));
    at.filter(|at| *at <= Hash::SET_EXPIRY_MAX_MS).ok_or_else(|| {
        let name = call.command.info.name;
        CommandError::new(format!("ERR invalid expire time in '{name}' command"))
    })
}

// ---- setting it ----

pub(super) fn hexpire(call: &mut Call<'_>) -> Result<(), CommandError> {
    let base_ms = call.now_ms();
    expire(call, 1000, base_ms)
}

pub(super) fn hpexpire(call: &mut Call<'_>) -> Result<(), CommandError> {
    let base_ms = call.now_ms();
    expire(call, 1, base_ms)
}

pub(super) fn hexpire_at(call: &mut Call<'_>) -> Result<(), CommandError> {
    expire(call, 1000, 0)
}

pub(super) fn hpexpire_at(call: &mut Call<'_>) -> Result<(), CommandError> {
    expire(call, 1, 0)
}

/// On what an expiry is changed.
#[derive(Clone, Copy)]
enum Condition {
    Always,
    IfNone,
    IfAny,
    IfLater,
    IfEarlier,
}

impl Condition {
    fn of(word: &[u8]) -> Option<Condition> {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => Some(Condition::IfNone),
            b"xx" => Some(Condition::IfAny),
            b"gt" => Some(Condition::IfLater),
            b"lt" => Some(Condition::IfEarlier),
            _ => None,
        }
    }

    fn allows(self, before: Option<i64>, at: i64) -> bool {
        match self {
            Condition::Always => true,
            Condition::IfNone => before.is_none(),
            Condition::IfAny => before.is_some(),
            // No expiry is later than any.
            Condition::IfLater => before.is_some_and(|before| before < at),
            Condition::IfEarlier => before.is_none_or(|before| at < before),
        }
    }
}

fn expire(call: &mut Call<'_>, unit_ms: i64, base_ms: i64) -> Result<(), CommandError> {
    check_type(call)?;
    let key = call.args[1];
    let at = expire_arg(call, call.args[2], unit_ms, base_ms)?;
    let condition = Condition::of(call.args[3]);
    let fields_place = if condition.is_some() { 4 } else { 3 };
    let condition = condition.unwrap_or(Condition::Always);
    let words = "ERR Parameter `numFields` should be greater than 0";
    let fields = fields_at(call, fields_place, words)?;
    let is_past = call.has_passed(at);
    if !is_past {
        let growth = fields.iter().map(|field| Hash::expiry_cost(field)).sum();
        call.keys.may_grow_by(call.db, key, growth)?;
    }
    let mut hash = call.keys.get_mut::<Hash>(call.db, key)?;
    let (mut set, mut deleted): (Vec<&[u8]>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    call.out.array(fields.len());
    for field in fields {
        let found = hash.as_mut().filter(|hash| hash.get(field).is_some());
        let Some(hash) = found else {
            call.out.int(NO_FIELD);
            continue;
        };
        if !condition.allows(hash.expiry_of(field), at) {
            call.out.int(NOT_DONE);
        } else if is_past {
            hash.remove(field);
            deleted.push(field);
            call.out.int(DELETED);
        } else {
            hash.set_expiry(field, Some(at));
            set.push(field);
            call.out.int(DONE);
        }
    }
    expiry_set(call, key, at, &set);
    fields_deleted(call, key, &deleted)
}

/// Says that fields expire then, and logs it.
fn expiry_set(call: &mut Call<'_>, key: &[u8], at: i64, fields: &[&[u8]]) {
    if fields.is_empty() {
        return;
    }
    call.modified(key);
    call.keys.note_field_expiry(call.db, key);
    call.event(EVENT_HASH, "hexpire", key);
    let mut digits = itoa::Buffer::new();
    let at = digits.format(at).as_bytes();
    log_fields(call, &[b"hpexpireat", key, at, b"fields"], fields);
}

/// Says that fields went, and logs it; the last one takes the key with it.
fn fields_deleted(call: &mut Call<'_>, key: &[u8], fields: &[&[u8]]) -> Result<(), CommandError> {
    if fields.is_empty() {
        return Ok(());
    }
    call.modified(key);
    call.event(EVENT_HASH, "hdel", key);
    let mut effect: Vec<&[u8]> = vec![b"hdel", key];
    effect.extend(fields);
    call.log(&effect);
    remove_if_empty(call, key)
}

fn log_fields(call: &mut Call<'_>, head: &[&[u8]], fields: &[&[u8]]) {
    let mut digits = itoa::Buffer::new();
    let mut effect = head.to_vec();
    effect.push(digits.format(fields.len()).as_bytes());
    effect.extend(fields);
    call.log(&effect);
}

/// Does something to each field that the arguments name, and answers it. Returns the fields that it
/// changed.
fn change_fields<'a>(
    call: &mut Call<'a>,
    change: impl Fn(Option<&mut Hash>, &[u8], &mut dyn Reply) -> bool,
) -> Result<Vec<&'a [u8]>, CommandError> {
    check_type(call)?;
    let fields = fields_at(call, 2, NOT_POSITIVE)?;
    let mut hash = call.keys.get_mut::<Hash>(call.db, call.args[1])?;
    call.out.array(fields.len());
    let mut changed: Vec<&[u8]> = Vec::new();
    for field in fields {
        if change(hash.as_deref_mut(), field, call.out) {
            changed.push(field);
        }
    }
    Ok(changed)
}

pub(super) fn hpersist(call: &mut Call<'_>) -> Result<(), CommandError> {
    let persisted = change_fields(call, |hash, field, out| {
        let found = hash.filter(|hash| hash.get(field).is_some());
        let expiry = found.as_ref().map(|hash| hash.expiry_of(field).is_some());
        out.int(match expiry {
            None => NO_FIELD,
            Some(false) => NO_EXPIRY,
            Some(true) => DONE,
        });
        if let (Some(hash), Some(true)) = (found, expiry) {
            hash.set_expiry(field, None);
        }
        expiry == Some(true)
    })?;
    fields_persisted(call, call.args[1], &persisted);
    Ok(())
}

fn fields_persisted(call: &mut Call<'_>, key: &[u8], fields: &[&[u8]]) {
    if fields.is_empty() {
        return;
    }
    call.modified(key);
    call.event(EVENT_HASH, "hpersist", key);
    log_fields(call, &[b"hpersist", key, b"fields"], fields);
}

// ---- asking for it ----

pub(super) fn httl(call: &mut Call<'_>) -> Result<(), CommandError> {
    let now_ms = call.now_ms();
    answer_expiry(call, |at| (at - now_ms + 999) / 1000)
}

pub(super) fn hpttl(call: &mut Call<'_>) -> Result<(), CommandError> {
    let now_ms = call.now_ms();
    answer_expiry(call, |at| at - now_ms)
}

pub(super) fn hexpire_time(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer_expiry(call, |at| (at + 999) / 1000)
}

pub(super) fn hpexpire_time(call: &mut Call<'_>) -> Result<(), CommandError> {
    answer_expiry(call, |at| at)
}

fn answer_expiry(call: &mut Call<'_>, answer: impl Fn(i64) -> i64) -> Result<(), CommandError> {
    check_type(call)?;
    let fields = fields_at(call, 2, NOT_POSITIVE)?;
    let hash = call.keys.get::<Hash>(call.db, call.args[1])?;
    call.out.array(fields.len());
    for field in fields {
        let found = hash.filter(|hash| hash.get(field).is_some());
        call.out.int(match found.map(|hash| hash.expiry_of(field)) {
            None => NO_FIELD,
            Some(None) => NO_EXPIRY,
            Some(Some(at)) => answer(at),
        });
    }
    Ok(())
}

// ---- together with reading or setting ----

pub(super) fn hgetdel(call: &mut Call<'_>) -> Result<(), CommandError> {
    let deleted = change_fields(call, |hash, field, out| {
        out.bulk_or_null(hash.as_ref().and_then(|hash| hash.get(field)));
        hash.is_some_and(|hash| hash.remove(field))
    })?;
    fields_deleted(call, call.args[1], &deleted)
}

/// What becomes of the expiry of fields that are read or set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldExpire {
    /// It goes.
    Never,
    /// It stays as it is.
    Keep,
    /// It is that time, in milliseconds since the epoch.
    At(i64),
}

/// A time among options: the word, and the time behind it.
fn time_option(call: &Call<'_>, at: usize) -> Result<Option<FieldExpire>, CommandError> {
    let (unit_ms, base_ms) = match call.args[at].to_ascii_lowercase().as_slice() {
        b"ex" => (1000, call.now_ms()),
        b"px" => (1, call.now_ms()),
        b"exat" => (1000, 0),
        b"pxat" => (1, 0),
        _ => return Ok(None),
    };
    let text = call.args.get(at + 1).ok_or(CommandError::new("ERR missing expire time"))?;
    expire_arg(call, text, unit_ms, base_ms).map(|at| Some(FieldExpire::At(at)))
}

pub(super) fn hgetex(call: &mut Call<'_>) -> Result<(), CommandError> {
    check_type(call)?;
    let key = call.args[1];
    let (expire, at) = match call.args[2].eq_ignore_ascii_case(b"persist") {
        true => (FieldExpire::Never, 3),
        false => match time_option(call, 2)? {
            Some(expire) => (expire, 4),
            None => (FieldExpire::Keep, 2),
        },
    };
    let fields = fields_at(call, at, NOT_POSITIVE)?;
    let past = matches!(expire, FieldExpire::At(at) if call.has_passed(at));
    let mut hash = call.keys.get_mut::<Hash>(call.db, key)?;
    let mut changed: Vec<&[u8]> = Vec::new();
    call.out.array(fields.len());
    for field in fields {
        let value = hash.as_ref().and_then(|hash| hash.get(field));
        let is_there = value.is_some();
        call.out.bulk_or_null(value);
        let Some(hash) = hash.as_mut().filter(|_| is_there) else { continue };
        match expire {
            FieldExpire::Keep => continue,
            FieldExpire::Never if hash.expiry_of(field).is_none() => continue,
            FieldExpire::Never => hash.set_expiry(field, None),
            FieldExpire::At(_) if past => drop(hash.remove(field)),
            FieldExpire::At(at) => hash.set_expiry(field, Some(at)),
        }
        changed.push(field);
    }
    match expire {
        FieldExpire::Keep => {}
        FieldExpire::Never => fields_persisted(call, key, &changed),
        FieldExpire::At(_) if past => fields_deleted(call, key, &changed)?,
        FieldExpire::At(at) => expiry_set(call, key, at, &changed),
    }
    Ok(())
}

/// What `HSETEX` is to do.
struct SetFields<'a> {
    expire: FieldExpire,
    /// Only if all of the fields are there, or none of them is.
    if_there: Option<bool>,
    /// Fields and values by turns.
    pairs: &'a [&'a [u8]],
}

fn set_fields<'a>(call: &Call<'a>) -> Result<SetFields<'a>, CommandError> {
    let mut set = SetFields { expire: FieldExpire::Never, if_there: None, pairs: &[] };
    let mut has_expire = false;
    let mut at = 2;
    while let Some(word) = call.args.get(at) {
        let lower = word.to_ascii_lowercase();
        match lower.as_slice() {
            b"fields" => {
                let count = call.args.get(at + 1).and_then(|count| parse_i64(count));
                let count = count.filter(|count| 0 < *count);
                let count = count.ok_or(CommandError::new("ERR invalid number of fields"))?;
                set.pairs = call.args.get(at + 2..).unwrap_or_default();
                let is_right = i64::try_from(set.pairs.len()).ok() == count.checked_mul(2);
                return match is_right {
                    true => Ok(set),
                    false => Err(CommandError::arity(call.command.info.name)),
                };
            }
            b"fnx" | b"fxx" if set.if_there.is_some() => {
                let words = "ERR Only one of FXX or FNX arguments can be specified";
                return Err(CommandError::new(words));
            }
            b"fnx" | b"fxx" => set.if_there = Some(lower == b"fxx"),
            b"ex" | b"px" | b"exat" | b"pxat" | b"keepttl" if has_expire => {
                let words =
                    "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
                return Err(CommandError::new(words));
            }
            b"keepttl" => (set.expire, has_expire) = (FieldExpire::Keep, true),
            _ => {
                let words = || format!("ERR unknown argument: {}", String::from_utf8_lossy(word));
                let expire = time_option(call, at)?;
                set.expire = expire.ok_or_else(|| CommandError::new(words()))?;
                has_expire = true;
                at += 1;
            }
        }
        at += 1;
    }
    Err(NO_FIELDS_WORD)
}

pub(super) fn hsetex(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let set = set_fields(call)?;
    let fields: Vec<&[u8]> = set.pairs.iter().step_by(2).copied().collect();
    let hash = call.get::<Hash>(key)?;
    if let Some(wanted) = set.if_there {
        let is_there = |field: &&[u8]| hash.is_some_and(|hash| hash.get(field).is_some());
        if !fields.iter().all(|field| is_there(field) == wanted) {
            call.out.int(NOT_DONE);
            return Ok(());
        }
    }
    let past = matches!(set.expire, FieldExpire::At(at) if call.has_passed(at));
    if past {
        // Set and gone in a moment: only what was there before is missed.
        if let Some(hash) = call.get_mut::<Hash>(key)? {
            let gone: Vec<&[u8]> = fields.into_iter().filter(|field| hash.remove(field)).collect();
            fields_deleted(call, key, &gone)?;
        }
        call.out.int(DONE);
        return Ok(());
    }
    if let FieldExpire::At(_) = set.expire {
        // The fields' names are kept with their times, too.
        let names = fields.iter().map(|field| Hash::expiry_cost(field));
        let growth = names.chain(set.pairs.iter().map(|bytes| bytes.len())).sum();
        call.keys.may_grow_by(call.db, key, growth)?;
    }
    let hash = call.get_or_insert::<Hash>(key)?;
    for pair in set.pairs.chunks_exact(2) {
        hash.insert(pair[0], pair[1]);
        match set.expire {
            FieldExpire::Keep => {}
            FieldExpire::Never => hash.set_expiry(pair[0], None),
            FieldExpire::At(at) => hash.set_expiry(pair[0], Some(at)),
        }
    }
    call.modified(key);
    call.event(EVENT_HASH, "hset", key);
    if let FieldExpire::At(_) = set.expire {
        call.keys.note_field_expiry(call.db, key);
        call.event(EVENT_HASH, "hexpire", key);
    }
    log_set(call, key, &set);
    call.out.int(DONE);
    Ok(())
}

fn log_set(call: &mut Call<'_>, key: &[u8], set: &SetFields<'_>) {
    let (mut time, mut digits) = (itoa::Buffer::new(), itoa::Buffer::new());
    let mut effect: Vec<&[u8]> = vec![b"hsetex", key];
    match set.expire {
        FieldExpire::Never => {}
        FieldExpire::Keep => effect.push(b"keepttl"),
        FieldExpire::At(at) => effect.extend([b"pxat", time.format(at).as_bytes()]),
    }
    effect.extend([b"fields", digits.format(set.pairs.len() / 2).as_bytes()]);
    effect.extend(set.pairs);
    call.log(&effect);
}
