//! Strings.

use super::{ALL_KEYS, Command, DENY_OOM, FAST, Group, Keys, ONE_KEY, READONLY, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, NOT_INTEGER, SYNTAX, WRONG_TYPE};
use crate::extended::Extended;
use crate::keyspace::{EVENT_GENERIC, EVENT_STRING, Expire, NEAR_MAX, Nearing, ROOM_CHECK_MIN};
use crate::number::int_arg;
use crate::slots::{LAST_EXPIRY, NEVER};
use crate::value::{Str, Value};

/// The largest string, as Redis has it.
pub const STRING_SIZE_MAX: usize = 512 << 20;
const PAIRS: Keys = Keys::Range { first: 1, last: -1, step: 2 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("append", 3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::String, "2.0.0", "Adds bytes to the end of a string, which is made if it is not there.", append),
    command("decr", 2, WRITE | DENY_OOM | FAST, ONE_KEY, Group::String, "1.0.0", "Takes one off an integer.", decr),
    command("decrby", 3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::String, "1.0.0", "Takes a number off an integer.", decr_by),
    command("get", 2, READONLY | FAST, ONE_KEY, Group::String, "1.0.0", "The bytes of a string.", get),
    command("getdel", 2, WRITE | FAST, ONE_KEY, Group::String, "6.2.0", "The bytes of a string, whose key goes.", get_del),
    command("getex", -2, WRITE | FAST, ONE_KEY, Group::String, "6.2.0", "The bytes of a string, whose expiry may be set.", get_ex),
    command("getrange", 4, READONLY, ONE_KEY, Group::String, "2.4.0", "Some bytes of a string.", get_range),
    command("getset", 3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::String, "1.0.0", "Sets a string and answers what it was.", get_set),
    command("incr", 2, WRITE | DENY_OOM | FAST, ONE_KEY, Group::String, "1.0.0", "Adds one to an integer.", incr),
    command("incrby", 3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::String, "1.0.0", "Adds a number to an integer.", incr_by),
    command("incrbyfloat", 3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::String, "2.6.0", "Adds a float to a number.", incr_by_float),
    command("lcs", -3, READONLY, super::TWO_KEYS, Group::String, "7.0.0", "The longest common subsequence of two strings.", lcs),
    command("mget", -2, READONLY | FAST, ALL_KEYS, Group::String, "1.0.0", "The bytes of several strings.", mget),
    command("mset", -3, WRITE | DENY_OOM, PAIRS, Group::String, "1.0.1", "Sets several strings at once.", mset),
    command("msetnx", -3, WRITE | DENY_OOM, PAIRS, Group::String, "1.0.1", "Sets several strings, if none of them is there.", mset_nx),
    command("psetex", 4, WRITE | DENY_OOM, ONE_KEY, Group::String, "2.6.0", "Sets a string that expires in so many milliseconds.", pset_ex),
    command("set", -3, WRITE | DENY_OOM, ONE_KEY, Group::String, "1.0.0", "Sets a string, whatever the key held.", set),
    command("setex", 4, WRITE | DENY_OOM, ONE_KEY, Group::String, "2.0.0", "Sets a string that expires in so many seconds.", set_ex),
    command("setnx", 3, WRITE | DENY_OOM | FAST, ONE_KEY, Group::String, "1.0.0", "Sets a string if the key is not there.", set_nx),
    command("setrange", 4, WRITE | DENY_OOM, ONE_KEY, Group::String, "2.2.0", "Writes bytes into a string from an offset on.", set_range),
    command("strlen", 2, READONLY | FAST, ONE_KEY, Group::String, "2.2.0", "How many bytes a string has.", strlen),
    command("substr", 4, READONLY, ONE_KEY, Group::String, "1.0.0", "Some bytes of a string; an old name of GETRANGE.", get_range),
];

const TOO_LONG: CommandError = CommandError(std::borrow::Cow::Borrowed(
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
));

fn get(call: &mut Call<'_>) -> Result<(), CommandError> {
    match call.keys.get::<Str>(call.db, call.args[1])? {
        Some(string) => string.with_bytes(|bytes| call.out.bulk(bytes)),
        None => call.out.null(),
    }
    Ok(())
}

fn strlen(call: &mut Call<'_>) -> Result<(), CommandError> {
    let len = call.get::<Str>(call.arg(1))?.map_or(0, Str::len);
    call.out.len(len);
    Ok(())
}

// ---- setting ----

/// When a string that is set may be, and what becomes of its expiry.
struct SetOptions {
    expire: Expire,
    is_nx: bool,
    is_xx: bool,
    wants_old: bool,
}

/// The unit and origin of a time among options.
#[derive(Clone, Copy)]
enum TimeOption {
    Ex,
    Px,
    ExAt,
    PxAt,
}

impl TimeOption {
    fn of(word: &[u8]) -> Option<TimeOption> {
        match word.to_ascii_lowercase().as_slice() {
            b"ex" => Some(TimeOption::Ex),
            b"px" => Some(TimeOption::Px),
            b"exat" => Some(TimeOption::ExAt),
            b"pxat" => Some(TimeOption::PxAt),
            _ => None,
        }
    }

    /// The moment in milliseconds since the epoch; not later than there are milliseconds.
    fn at(self, text: &[u8], now_ms: i64, command: &str) -> Result<i64, CommandError> {
        let invalid =
            || CommandError::new(format!("ERR invalid expire time in '{command}' command"));
        let time = int_arg(text)?;
        if time <= 0 {
            return Err(invalid());
        }
        let ms = match self {
            TimeOption::Ex | TimeOption::ExAt => time.checked_mul(1000).ok_or_else(invalid)?,
            TimeOption::Px | TimeOption::PxAt => time,
        };
        let at = match self {
            TimeOption::Ex | TimeOption::Px => ms.checked_add(now_ms).ok_or_else(invalid)?,
            TimeOption::ExAt | TimeOption::PxAt => ms,
        };
        Ok(at.min(LAST_EXPIRY))
    }
}

fn set_options(call: &Call<'_>) -> Result<SetOptions, CommandError> {
    let mut options =
        SetOptions { expire: Expire::Never, is_nx: false, is_xx: false, wants_old: false };
    let (mut has_expire, mut time) = (false, None);
    let mut at = 3;
    while let Some(word) = call.args.get(at) {
        let word = word.to_ascii_lowercase();
        match word.as_slice() {
            b"nx" if !options.is_xx => options.is_nx = true,
            b"xx" if !options.is_nx => options.is_xx = true,
            b"get" => options.wants_old = true,
            b"keepttl" if !has_expire => {
                options.expire = Expire::Keep;
                has_expire = true;
            }
            _ => {
                let unit = TimeOption::of(&word).filter(|_| !has_expire).ok_or(SYNTAX)?;
                time = Some((unit, call.args.get(at + 1).ok_or(SYNTAX)?));
                has_expire = true;
                at += 1;
            }
        }
        at += 1;
    }
    // Looked at when all words are known to be in order.
    if let Some((unit, text)) = time {
        options.expire = Expire::At(unit.at(text, call.now_ms(), "set")?);
    }
    Ok(options)
}

fn set(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, value) = (call.args[1], call.args[2]);
    if call.args.len() == 3 {
        put_string(call, key, value, Expire::Never)?;
        call.out.ok();
        return Ok(());
    }
    let options = set_options(call)?;
    let old = match options.wants_old {
        true => call.get::<Str>(key)?.map(|old| old.bytes().into_owned()),
        false => None,
    };
    let is_there = call.keys.exists(call.db, key)?;
    if options.is_nx && is_there || options.is_xx && !is_there {
        match options.wants_old {
            true => call.out.bulk_or_null(old.as_deref()),
            false => call.out.null(),
        }
        return Ok(());
    }
    put_string(call, key, value, options.expire)?;
    log_string(call, key, value, options.expire);
    match options.wants_old {
        true => call.out.bulk_or_null(old.as_deref()),
        false => call.out.ok(),
    }
    Ok(())
}

/// Sets a string and says so.
fn put_string(
    call: &mut Call<'_>,
    key: &[u8],
    value: &[u8],
    expire: Expire,
) -> Result<(), CommandError> {
    call.put(key, Value::Str(Str::new(value)), expire)?;
    call.event(EVENT_STRING, "set", key);
    if matches!(expire, Expire::At(_)) {
        call.event(EVENT_GENERIC, "expire", key);
    }
    Ok(())
}

/// Logs that a string was set, with an absolute time.
fn log_string(call: &mut Call<'_>, key: &[u8], value: &[u8], expire: Expire) {
    match expire {
        Expire::Never => call.log(&[b"set", key, value]),
        Expire::Keep => call.log(&[b"set", key, value, b"keepttl"]),
        Expire::At(at) => {
            let mut digits = itoa::Buffer::new();
            call.log(&[b"set", key, value, b"pxat", digits.format(at).as_bytes()]);
        }
    }
}

fn set_nx(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, value) = (call.args[1], call.args[2]);
    let is_there = call.keys.exists(call.db, key)?;
    if !is_there {
        put_string(call, key, value, Expire::Never)?;
    }
    call.out.int(i64::from(!is_there));
    Ok(())
}

fn set_ex(call: &mut Call<'_>) -> Result<(), CommandError> {
    set_expiring(call, TimeOption::Ex, "setex")
}

fn pset_ex(call: &mut Call<'_>) -> Result<(), CommandError> {
    set_expiring(call, TimeOption::Px, "psetex")
}

fn set_expiring(call: &mut Call<'_>, unit: TimeOption, command: &str) -> Result<(), CommandError> {
    let (key, value) = (call.args[1], call.args[3]);
    let expire = Expire::At(unit.at(call.args[2], call.now_ms(), command)?);
    put_string(call, key, value, expire)?;
    log_string(call, key, value, expire);
    call.out.ok();
    Ok(())
}

fn get_set(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, value) = (call.args[1], call.args[2]);
    let old = call.get::<Str>(key)?.map(|old| old.bytes().into_owned());
    put_string(call, key, value, Expire::Never)?;
    log_string(call, key, value, Expire::Never);
    call.out.bulk_or_null(old.as_deref());
    Ok(())
}

fn get_del(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let old = call.get::<Str>(key)?.map(|old| old.bytes().into_owned());
    if old.is_some() {
        call.remove(key)?;
        call.log(&[b"del", key]);
        call.event(EVENT_GENERIC, "del", key);
    }
    call.out.bulk_or_null(old.as_deref());
    Ok(())
}

fn get_ex(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let (mut expire_ms, mut time) = (None, None);
    match call.args.get(2..).unwrap_or_default() {
        [] => {}
        [word] if word.eq_ignore_ascii_case(b"persist") => expire_ms = Some(NEVER),
        [word, text] => time = Some((TimeOption::of(word).ok_or(SYNTAX)?, text)),
        _ => return Err(SYNTAX),
    }
    let Some(bytes) = call.get::<Str>(key)?.map(|old| old.bytes().into_owned()) else {
        call.out.null();
        return Ok(());
    };
    if let Some((unit, text)) = time {
        expire_ms = Some(unit.at(text, call.now_ms(), "getex")?);
    }
    if let Some(expire_ms) = expire_ms {
        super::generic::change_expiry(call, key, expire_ms)?;
    }
    call.out.bulk(&bytes);
    Ok(())
}

// ---- parts of strings ----

/// Refuses to make a string of that length if there is no memory for it.
///
/// # Errors
/// When there is none, or the key's record cannot be read.
pub(super) fn take_room(call: &mut Call<'_>, key: &[u8], len: usize) -> Result<(), CommandError> {
    if len < ROOM_CHECK_MIN {
        return Ok(());
    }
    let before = call.keys.size_of(call.db, key)?;
    call.keys.take_room(len.saturating_sub(before))
}

fn append(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, more) = (call.args[1], call.args[2]);
    let len = call.get::<Str>(key)?.map_or(0, Str::len);
    if STRING_SIZE_MAX < len + more.len() {
        return Err(TOO_LONG);
    }
    call.keys.take_room(more.len())?;
    let string = call.get_or_insert::<Str>(key)?;
    string.bytes_mut().extend_from_slice(more);
    let len = string.len();
    call.modified(key);
    call.event(EVENT_STRING, "append", key);
    call.out.len(len);
    Ok(())
}

fn set_range(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, bytes) = (call.args[1], call.args[3]);
    let offset = int_arg(call.args[2])?;
    let offset =
        usize::try_from(offset).map_err(|_| CommandError::new("ERR offset is out of range"))?;
    let len = call.get::<Str>(key)?.map_or(0, Str::len);
    if bytes.is_empty() {
        call.out.len(len);
        return Ok(());
    }
    let end = offset.checked_add(bytes.len()).filter(|end| *end <= STRING_SIZE_MAX);
    let end = end.ok_or(TOO_LONG)?;
    take_room(call, key, end)?;
    let string = call.get_or_insert::<Str>(key)?.bytes_mut();
    if string.len() < end {
        string.resize(end, 0);
    }
    string[offset..end].copy_from_slice(bytes);
    let len = string.len();
    call.modified(key);
    call.event(EVENT_STRING, "setrange", key);
    call.out.len(len);
    Ok(())
}

fn get_range(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (start, end) = (int_arg(call.args[2])?, int_arg(call.args[3])?);
    let Some(string) = call.keys.get::<Str>(call.db, call.args[1])? else {
        call.out.bulk(b"");
        return Ok(());
    };
    string.with_bytes(|bytes| {
        let range = string_range(start, end, bytes.len());
        call.out.bulk(bytes.get(range).unwrap_or_default());
    });
    Ok(())
}

/// The part of something of that length that `start` and `end` mean, both from the end where they
/// are negative, and both included.
fn string_range(start: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    let len_i64 = i64::try_from(len).unwrap_or(i64::MAX);
    if start < 0 && end < 0 && end < start {
        return 0..0;
    }
    let from_end = |at: i64| if at < 0 { (at + len_i64).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(len_i64 - 1));
    if end < start || len == 0 {
        return 0..0;
    }
    usize::try_from(start).unwrap_or(0)..usize::try_from(end + 1).unwrap_or(0)
}

// ---- numbers ----

fn incr(call: &mut Call<'_>) -> Result<(), CommandError> {
    add(call, 1)
}

fn decr(call: &mut Call<'_>) -> Result<(), CommandError> {
    add(call, -1)
}

fn incr_by(call: &mut Call<'_>) -> Result<(), CommandError> {
    let by = int_arg(call.args[2])?;
    add(call, by)
}

fn decr_by(call: &mut Call<'_>) -> Result<(), CommandError> {
    let by = int_arg(call.args[2])?;
    let by = by.checked_neg().ok_or(CommandError::new("ERR decrement would overflow"))?;
    add(call, by)
}

fn add(call: &mut Call<'_>, by: i64) -> Result<(), CommandError> {
    let key = call.args[1];
    let old = match call.get::<Str>(key)? {
        Some(string) => string.int().ok_or(NOT_INTEGER)?,
        None => 0,
    };
    let overflow = CommandError::new("ERR increment or decrement would overflow");
    let new = old.checked_add(by).ok_or(overflow)?;
    *call.get_or_insert::<Str>(key)? = Str::from_int(new);
    call.modified(key);
    call.event(EVENT_STRING, "incrby", key);
    call.out.int(new);
    Ok(())
}

fn incr_by_float(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, by) = (call.args[1], call.args[2]);
    let old = match call.get::<Str>(key)? {
        Some(string) => string.with_bytes(Extended::parse).ok_or(crate::error::NOT_FLOAT)?,
        None => Extended::ZERO,
    };
    let by = Extended::parse(by).ok_or(crate::error::NOT_FLOAT)?;
    let new = old.plus(by).filter(|new| matches!(new, Extended::Finite { .. }));
    let words = "ERR increment would produce NaN or Infinity";
    let text = new.ok_or(CommandError::new(words))?.text();
    call.put(key, Value::Str(Str::new(text.as_bytes())), Expire::Keep)?;
    call.event(EVENT_STRING, "incrbyfloat", key);
    call.log(&[b"set", key, text.as_bytes(), b"keepttl"]);
    call.out.text(&text);
    Ok(())
}

// ---- several keys ----

fn mget(call: &mut Call<'_>) -> Result<(), CommandError> {
    call.out.array(call.args.len() - 1);
    for some in call.args[1..].chunks(NEAR_MAX) {
        call.keys.bring_near(call.db, some.iter().map(|key| (*key, Nearing::Reads)));
        for key in some {
            match call.keys.get::<Str>(call.db, key) {
                Ok(Some(string)) => string.with_bytes(|bytes| call.out.bulk(bytes)),
                Ok(None) => call.out.null(),
                Err(error) if error == WRONG_TYPE => call.out.null(),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn mset(call: &mut Call<'_>) -> Result<(), CommandError> {
    if call.args.len().is_multiple_of(2) {
        return Err(CommandError::arity(call.command.info.name));
    }
    set_all(call)?;
    call.out.ok();
    Ok(())
}

fn mset_nx(call: &mut Call<'_>) -> Result<(), CommandError> {
    if call.args.len().is_multiple_of(2) {
        return Err(CommandError::arity(call.command.info.name));
    }
    for key in call.args[1..].iter().step_by(2) {
        if call.keys.exists(call.db, key)? {
            call.out.int(0);
            return Ok(());
        }
    }
    set_all(call)?;
    call.out.int(1);
    Ok(())
}

fn set_all(call: &mut Call<'_>) -> Result<(), CommandError> {
    let args = call.args;
    for some in args[1..].chunks(2 * NEAR_MAX) {
        call.keys.bring_near(call.db, some.iter().step_by(2).map(|key| (*key, Nearing::Writes)));
        for pair in some.chunks_exact(2) {
            let [key, value] = pair else { continue };
            put_string(call, key, value, Expire::Never)?;
            log_string(call, key, value, Expire::Never);
        }
    }
    Ok(())
}

/// Cells of the table that finding a common subsequence fills, at most: 1 GiB.
const LCS_CELLS_MAX: usize = 1 << 28;

fn lcs(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (mut wants_len, mut wants_idx, mut with_len, mut min_len) = (false, false, false, 0);
    let mut at = 3;
    while let Some(word) = call.args.get(at) {
        match word.to_ascii_lowercase().as_slice() {
            b"len" => wants_len = true,
            b"idx" => wants_idx = true,
            b"withmatchlen" => with_len = true,
            b"minmatchlen" if at + 1 < call.args.len() => {
                min_len = usize::try_from(int_arg(call.args[at + 1])?.max(0)).unwrap_or(0);
                at += 1;
            }
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    let words = "ERR The specified keys must contain string values";
    let mut texts = Vec::new();
    for key in &call.args[1..3] {
        let text =
            call.keys.get::<Str>(call.db, key).map_err(|error| match error == WRONG_TYPE {
                true => CommandError::new(words),
                false => error,
            })?;
        texts.push(text.map(|text| text.bytes().into_owned()).unwrap_or_default());
    }
    if wants_len && wants_idx {
        let words = "ERR If you want both the length and indexes, please just use IDX.";
        return Err(CommandError::new(words));
    }
    let (a, b) = (&texts[0], &texts[1]);
    let cells = (a.len() + 1).checked_mul(b.len() + 1).filter(|cells| *cells <= LCS_CELLS_MAX);
    if cells.is_none() {
        return Err(CommandError::new(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let found = common_subsequence(a, b);
    if wants_len {
        call.out.len(found.bytes.len());
        return Ok(());
    }
    if !wants_idx {
        call.out.bulk(&found.bytes);
        return Ok(());
    }
    let shown: Vec<&Match> = found.matches.iter().filter(|one| min_len <= one.len).collect();
    call.out.map(2);
    call.out.text("matches");
    call.out.array(shown.len());
    for one in shown {
        call.out.array(2 + usize::from(with_len));
        for start in [one.a, one.b] {
            call.out.array(2);
            call.out.len(start);
            call.out.len(start + one.len - 1);
        }
        if with_len {
            call.out.len(one.len);
        }
    }
    call.out.text("len");
    call.out.len(found.bytes.len());
    Ok(())
}

/// A stretch that both strings have.
struct Match {
    a: usize,
    b: usize,
    len: usize,
}

struct Common {
    bytes: Vec<u8>,
    /// From the end to the start.
    matches: Vec<Match>,
}

fn common_subsequence(a: &[u8], b: &[u8]) -> Common {
    let width = b.len() + 1;
    let mut lens = vec![0u32; (a.len() + 1) * width];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            lens[(i + 1) * width + j + 1] = match x == y {
                true => lens[i * width + j] + 1,
                false => lens[i * width + j + 1].max(lens[(i + 1) * width + j]),
            };
        }
    }
    let mut common = Common { bytes: Vec::new(), matches: Vec::new() };
    let (mut i, mut j) = (a.len(), b.len());
    while 0 < i && 0 < j {
        if a[i - 1] == b[j - 1] {
            common.bytes.push(a[i - 1]);
            match common.matches.last_mut() {
                Some(last) if last.a == i && last.b == j => {
                    (last.a, last.b, last.len) = (i - 1, j - 1, last.len + 1);
                }
                _ => common.matches.push(Match { a: i - 1, b: j - 1, len: 1 }),
            }
            (i, j) = (i - 1, j - 1);
        } else if lens[i * width + j - 1] < lens[(i - 1) * width + j] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    common.bytes.reverse();
    common
}
