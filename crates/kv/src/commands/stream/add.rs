//! Entries come, and go.

use super::{count_text, id_arg, write_id};
use crate::call::Call;
use crate::error::{CommandError, NO_KEY, SYNTAX};
use crate::keyspace::EVENT_STREAM;
use crate::number::int_arg;
use crate::value::Stream;
use crate::value::stream::{ENTRY_SIZE_MAX, Id, Keep, pack, parse_u64};

/// Entries that a rough trim takes at most, for each entry that a block may have.
const ROUGH_BLOCKS_MAX: u64 = 100;

/// `XLEN`
pub fn len(call: &mut Call<'_>) -> Result<(), CommandError> {
    let len = call.get::<Stream>(call.arg(1))?.map_or(0, |stream| stream.entries.len());
    call.out.int(count_text(len));
    Ok(())
}

/// What a number of an entry leaves open.
#[derive(Clone, Copy)]
enum NewId {
    /// `*`
    Any,
    /// `ms-*`
    OfTime(u64),
    /// All of it is said.
    Exactly(Id),
}

/// How a stream is trimmed.
struct Trim {
    keep: Keep,
    is_rough: bool,
    count: Option<u64>,
}

/// The options of `XADD` and `XTRIM`.
struct Options {
    trim: Option<Trim>,
    may_create: bool,
    /// The entry's number and the place behind it.
    id: Option<(NewId, usize)>,
}

/// Takes options from the third argument on, for `XADD` up to the number of the entry.
fn options(call: &Call<'_>, adds: bool) -> Result<Options, CommandError> {
    let mut options = Options { trim: None, may_create: true, id: None };
    let mut limit = None;
    let mut at = 2;
    while let Some(word) = call.args.get(at) {
        let more = call.argc() - 1 - at;
        let lower = word.to_ascii_lowercase();
        match lower.as_slice() {
            b"maxlen" | b"minid" if 0 < more => {
                if options.trim.is_some() {
                    return Err(CommandError::new(
                        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                    ));
                }
                let sign = call.arg(at + 1);
                let has_sign = 2 <= more && (sign == b"~" || sign == b"=");
                at += 1 + usize::from(has_sign);
                let keep = keep_arg(call.arg(at), lower == b"maxlen")?;
                options.trim = Some(Trim { keep, is_rough: has_sign && sign == b"~", count: None });
            }
            b"limit" if 0 < more => {
                at += 1;
                let count = u64::try_from(int_arg(call.arg(at))?);
                let negative = CommandError::new("ERR The LIMIT argument must be >= 0.");
                limit = Some(count.map_err(|_| negative)?);
            }
            b"nomkstream" if adds => options.may_create = false,
            _ if adds => {
                options.id = Some((new_id(word)?, at + 1));
                break;
            }
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    let rough_max = ROUGH_BLOCKS_MAX * call.keys.config().stream_blocks.entries_max as u64;
    set_limit(&mut options.trim, limit, rough_max)?;
    Ok(options)
}

fn keep_arg(text: &[u8], is_len: bool) -> Result<Keep, CommandError> {
    if !is_len {
        return Ok(Keep::From(id_arg(text, 0)?));
    }
    let len = u64::try_from(int_arg(text)?);
    let negative = CommandError::new("ERR The MAXLEN argument must be >= 0.");
    Ok(Keep::Len(len.map_err(|_| negative)?))
}

/// A limit bounds what a rough trim does; 0 lifts the bound that there is anyway.
fn set_limit(
    trim: &mut Option<Trim>,
    limit: Option<u64>,
    rough_max: u64,
) -> Result<(), CommandError> {
    match (trim, limit) {
        (None, Some(_)) => Err(CommandError::new(
            "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
        )),
        (Some(trim), Some(_)) if !trim.is_rough => Err(CommandError::new(
            "ERR syntax error, LIMIT cannot be used without the special ~ option",
        )),
        (Some(trim), limit) if trim.is_rough => {
            let count = limit.unwrap_or(if rough_max == 0 { 10_000 } else { rough_max });
            trim.count = (count != 0).then_some(count);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn new_id(word: &[u8]) -> Result<NewId, CommandError> {
    if word == b"*" {
        return Ok(NewId::Any);
    }
    if let Some(ms) = word.strip_suffix(b"-*") {
        return parse_u64(ms).map(NewId::OfTime).ok_or(super::INVALID_ID);
    }
    id_arg(word, 0).map(NewId::Exactly)
}

/// `XADD`
pub fn add(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let options = options(call, true)?;
    let arity = || CommandError::arity("xadd");
    let (wanted, at) = options.id.ok_or_else(arity)?;
    let fields = call.args.get(at..).filter(|fields| !fields.is_empty()).ok_or_else(arity)?;
    if fields.len() % 2 == 1 {
        return Err(arity());
    }
    if matches!(wanted, NewId::Exactly(Id::MIN)) {
        return Err(CommandError::new("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let is_there = call.get::<Stream>(key)?.is_some();
    if !is_there && !options.may_create {
        call.out.null();
        return Ok(());
    }
    let last_id = call.get::<Stream>(key)?.map_or(Id::MIN, |stream| stream.last_id);
    let id = number_after(last_id, wanted, call.now_ms())?;
    let entry = pack(fields);
    if ENTRY_SIZE_MAX < entry.len() {
        return Err(CommandError::new("ERR Elements are too large to be stored"));
    }
    let limits = call.keys.config().stream_blocks;
    let stream = call.get_or_insert::<Stream>(key)?;
    stream.push(id, &entry, limits);
    let trimmed = options.trim.as_ref().map(|trim| trim_by(stream, trim));
    let len = stream.entries.len();
    call.modified(key);
    log_added(call, id, fields, trimmed.is_some().then_some(len));
    call.event(EVENT_STREAM, "xadd", key);
    if trimmed.is_some_and(|count| 0 < count) {
        call.event(EVENT_STREAM, "xtrim", key);
    }
    write_id(call.out, id);
    Ok(())
}

/// The number that an entry gets.
fn number_after(last_id: Id, wanted: NewId, now_ms: i64) -> Result<Id, CommandError> {
    let exhausted = || {
        CommandError::new(
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        )
    };
    let small = || {
        CommandError::new(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        )
    };
    if last_id == Id::MAX {
        return Err(exhausted());
    }
    let id = match wanted {
        NewId::Any => {
            let now = Id { ms: u64::try_from(now_ms).unwrap_or(0), seq: 0 };
            // A clock that went back does not take the order along.
            return match last_id.ms < now.ms {
                true => Ok(now),
                false => last_id.next().ok_or_else(exhausted),
            };
        }
        NewId::OfTime(ms) if ms == last_id.ms => {
            Id { ms, seq: last_id.seq.checked_add(1).ok_or_else(small)? }
        }
        NewId::OfTime(ms) => Id { ms, seq: 0 },
        NewId::Exactly(id) => id,
    };
    if last_id < id { Ok(id) } else { Err(small()) }
}

fn log_added(call: &mut Call<'_>, id: Id, fields: &[&[u8]], len: Option<u64>) {
    let (id, key) = (id.text(), call.args[1]);
    let mut digits = itoa::Buffer::new();
    let mut effect: Vec<&[u8]> = vec![b"xadd", key];
    if let Some(len) = len {
        effect.extend([b"maxlen".as_slice(), b"=", digits.format(len).as_bytes()]);
    }
    effect.push(id.as_bytes());
    effect.extend_from_slice(fields);
    call.log(&effect);
}

fn trim_by(stream: &mut Stream, trim: &Trim) -> u64 {
    stream.entries.trim(trim.keep, trim.is_rough, trim.count)
}

/// `XTRIM`
pub fn trim(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let options = options(call, false)?;
    let trim = options.trim.ok_or(CommandError::new(
        "ERR syntax error, XTRIM must be called with a trimming strategy",
    ))?;
    let Some(stream) = call.get_mut::<Stream>(key)? else {
        call.out.int(0);
        return Ok(());
    };
    let count = trim_by(stream, &trim);
    let len = stream.entries.len();
    if 0 < count {
        call.modified(key);
        let mut digits = itoa::Buffer::new();
        call.log(&[b"xtrim", key, b"maxlen", b"=", digits.format(len).as_bytes()]);
        call.event(EVENT_STREAM, "xtrim", key);
    }
    call.out.int(count_text(count));
    Ok(())
}

/// `XDEL`
pub fn del(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    if call.get::<Stream>(key)?.is_none() {
        call.out.int(0);
        return Ok(());
    }
    let ids = call.args[2..].iter().map(|text| id_arg(text, 0));
    let ids: Vec<Id> = ids.collect::<Result<_, _>>()?;
    let Some(stream) = call.get_mut::<Stream>(key)? else { return Ok(()) };
    let count = ids.iter().filter(|id| stream.remove(**id)).count();
    if 0 < count {
        call.modified(key);
        call.event(EVENT_STREAM, "xdel", key);
    }
    call.out.len(count);
    Ok(())
}

/// `XSETID`
pub fn set_id(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let id = id_arg(call.arg(2), 0)?;
    let (mut added, mut max_deleted) = (None, None);
    let mut at = 3;
    while let Some(word) = call.args.get(at) {
        let value = call.args.get(at + 1).ok_or(SYNTAX)?;
        match word.to_ascii_lowercase().as_slice() {
            b"entriesadded" => {
                let count = u64::try_from(int_arg(value)?);
                let negative = CommandError::new("ERR entries_added must be positive");
                added = Some(count.map_err(|_| negative)?);
            }
            b"maxdeletedid" => {
                let deleted = id_arg(value, 0)?;
                if id < deleted {
                    return Err(CommandError::new(
                        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                    ));
                }
                max_deleted = Some(deleted);
            }
            _ => return Err(SYNTAX),
        }
        at += 2;
    }
    let stream = call.get_mut::<Stream>(key)?.ok_or(NO_KEY)?;
    if stream.entries.last_id().is_some_and(|last| id < last) {
        return Err(CommandError::new(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if added.is_some_and(|added| added < stream.entries.len()) {
        return Err(CommandError::new(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    stream.last_id = id;
    stream.entries_added = added.unwrap_or(stream.entries_added);
    // Zero changes nothing.
    if let Some(deleted) = max_deleted.filter(|deleted| *deleted != Id::MIN) {
        stream.max_deleted_id = deleted;
    }
    call.modified(key);
    call.event(EVENT_STREAM, "xsetid", key);
    call.out.ok();
    Ok(())
}
