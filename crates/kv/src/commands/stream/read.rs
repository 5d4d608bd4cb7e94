//! `XREAD` and `XREADGROUP`: what comes after given numbers, now or when it is there.
//!
//! A command that waits is tried again with the numbers that it meant when it came. A stream that is
//! gone by then has another answer than one that never was.

use super::effect::Deliveries;
use super::{id_arg, no_group, write_entries, write_entry, write_id};
use crate::call::{Call, Otherwise};
use crate::error::{CommandError, NOT_INTEGER, SYNTAX, WRONG_TYPE};
use crate::keyspace::EVENT_STREAM;
use crate::number::{int_arg, parse_i64};
use crate::value::Stream;
use crate::value::stream::{Group, Id, Position};
use std::ops::Bound::{Excluded, Unbounded};

/// Entries that one command delivers of a stream to who is to acknowledge them, at most: each takes
/// more memory then than it may have as an entry, and who wants more asks again.
pub(crate) const DELIVERIES_MAX: usize = 1 << 20;

/// What such a command asks for.
struct Request<'a> {
    /// Entries of each stream.
    count: usize,
    /// How long to wait, in milliseconds; 0 for ever.
    block_ms: Option<i64>,
    /// Names of a group and its consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    needs_no_ack: bool,
    is_again: bool,
    /// Where the first key stands.
    keys_at: usize,
    streams: Vec<(&'a [u8], From)>,
}

impl Request<'_> {
    /// How many entries that the group has not read it gets of a stream.
    fn new_count(&self) -> usize {
        match self.needs_no_ack {
            true => self.count,
            false => self.count.min(DELIVERIES_MAX),
        }
    }
}

/// From where a stream is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// What comes after that entry; of a group, what the consumer has not acknowledged.
    After(Id),
    /// What the group has not read.
    New,
}

/// Where the keys stand.
pub fn keys_of(args: &[&[u8]]) -> Vec<usize> {
    let mut at = 1;
    while let Some(word) = args.get(at) {
        at += match word.to_ascii_lowercase().as_slice() {
            b"count" | b"block" => 2,
            b"group" => 3,
            b"streams" => {
                let count = (args.len() - at - 1) / 2;
                return (at + 1..at + 1 + count).collect();
            }
            _ => 1,
        };
    }
    Vec::new()
}

/// `XREAD`
pub fn read(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut request = words(call, false)?;
    let ids = streams_of(call, &mut request)?;
    for (at, (key, text)) in ids.into_iter().enumerate() {
        let stream = match call.keys.get::<Stream>(call.db, key) {
            Err(error) if request.is_again && error == WRONG_TYPE => None,
            found => found?,
        };
        let from = match text {
            b"$" => stream.map_or(Id::MIN, |stream| stream.last_id),
            b">" => {
                return Err(CommandError::new(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
                ));
            }
            _ => id_arg(text, 0)?,
        };
        request.streams[at] = (key, From::After(from));
    }
    let mut served = Vec::new();
    for (key, from) in &request.streams {
        let From::After(id) = from else { continue };
        let found = match call.keys.get::<Stream>(call.db, key) {
            Err(error) if request.is_again && error == WRONG_TYPE => None,
            found => found?,
        };
        let last = found.and_then(|stream| stream.entries.last_id());
        if let (Some(next), true) = (id.next(), last.is_some_and(|last| *id < last)) {
            served.push((*key, next));
        }
    }
    if served.is_empty() {
        wait(call, &request);
        return Ok(());
    }
    write_head(call, served.len());
    for (key, next) in served {
        write_key(call, key);
        let Some(stream) = call.keys.get::<Stream>(call.db, key)? else { continue };
        let found: Vec<_> = stream.entries.range(next, Id::MAX).take(request.count).collect();
        write_entries(call.out, &found);
    }
    Ok(())
}

/// `XREADGROUP`
pub fn read_group(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut request = words(call, true)?;
    let ids = streams_of(call, &mut request)?;
    let (group, _) = request.group.ok_or(SYNTAX)?;
    let mut served = Vec::new();
    for (at, (key, text)) in ids.into_iter().enumerate() {
        let last_read = find_group(call, key, group, request.is_again)?;
        let from = match text {
            b"$" => {
                return Err(CommandError::new(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
                ));
            }
            b">" => From::New,
            _ => match id_arg(text, 0)? {
                // Nothing comes after it, so it stands for the other.
                Id::MAX => From::New,
                id => From::After(id),
            },
        };
        let earlier = request.streams[..at].iter().filter(|one| **one == (key, From::New)).count();
        let last_read = match earlier {
            0 => last_read,
            times => read_by_then(call, key, last_read, request.new_count().saturating_mul(times))?,
        };
        request.streams[at] = (key, from);
        let last = call.get::<Stream>(key)?.and_then(|stream| stream.entries.last_id());
        if from != From::New || last.is_some_and(|last| last_read < last) {
            served.push((key, from));
        }
    }
    if served.is_empty() {
        wait(call, &request);
        return Ok(());
    }
    write_head(call, served.len());
    for (key, from) in served {
        write_key(call, key);
        serve(call, &request, key, from)?;
    }
    Ok(())
}

/// The number of the last entry that a group will have read, of a stream that is named twice.
fn read_by_then(
    call: &mut Call<'_>,
    key: &[u8],
    last_read: Id,
    count: usize,
) -> Result<Id, CommandError> {
    let stream = call.get::<Stream>(key)?;
    let next = stream.zip(last_read.next());
    let last =
        next.and_then(|(stream, next)| stream.entries.range(next, Id::MAX).take(count).last());
    Ok(last.map_or(last_read, |(id, _)| id))
}

/// The number of the last entry that a group has read.
fn find_group(
    call: &mut Call<'_>,
    key: &[u8],
    group: &[u8],
    is_again: bool,
) -> Result<Id, CommandError> {
    let stream = match call.keys.get::<Stream>(call.db, key) {
        Ok(Some(stream)) => stream,
        _ if is_again => {
            return Err(CommandError::new("UNBLOCKED the stream key no longer exists"));
        }
        Err(error) => return Err(error),
        Ok(None) => {
            let CommandError(words) = no_group(key, group);
            return Err(CommandError::new(format!("{words} in XREADGROUP with GROUP option")));
        }
    };
    let found = stream.group(group).map(|group| group.last_id);
    found.ok_or_else(|| match is_again {
        true => CommandError::new(
            "NOGROUP the consumer group this client was blocked on no longer exists",
        ),
        false => {
            let CommandError(words) = no_group(key, group);
            CommandError::new(format!("{words} in XREADGROUP with GROUP option"))
        }
    })
}

/// Reads the words before the keys.
fn words<'a>(call: &Call<'a>, is_of_group: bool) -> Result<Request<'a>, CommandError> {
    let mut request = Request {
        count: usize::MAX,
        block_ms: None,
        group: None,
        needs_no_ack: false,
        is_again: call.woken_by.is_some(),
        keys_at: 0,
        streams: Vec::new(),
    };
    let only_group = |name: &str| {
        CommandError::new(format!(
            "ERR The {name} option is only supported by XREADGROUP. You called XREAD instead."
        ))
    };
    let mut at = 1;
    while let Some(word) = call.args.get(at) {
        let more = call.argc() - 1 - at;
        match word.to_ascii_lowercase().as_slice() {
            b"block" if 0 < more => {
                at += 1;
                request.block_ms = Some(timeout_arg(call.arg(at), call.now_ms())?);
            }
            b"count" if 0 < more => {
                at += 1;
                let count = usize::try_from(int_arg(call.arg(at))?).unwrap_or(0);
                request.count = if count == 0 { usize::MAX } else { count };
            }
            b"streams" if 0 < more => {
                request.keys_at = at + 1;
                break;
            }
            b"group" if 2 <= more => {
                if !is_of_group {
                    return Err(only_group("GROUP"));
                }
                request.group = Some((call.arg(at + 1), call.arg(at + 2)));
                at += 2;
            }
            b"noack" if is_of_group => request.needs_no_ack = true,
            b"noack" => return Err(only_group("NOACK")),
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    if request.keys_at == 0 {
        return Err(SYNTAX);
    }
    if is_of_group && request.group.is_none() {
        return Err(CommandError::new("ERR Missing GROUP option for XREADGROUP"));
    }
    Ok(request)
}

fn timeout_arg(text: &[u8], now_ms: i64) -> Result<i64, CommandError> {
    let Some(timeout) = parse_i64(text) else {
        return Err(CommandError::new("ERR timeout is not an integer or out of range"));
    };
    if timeout < 0 {
        return Err(CommandError::new("ERR timeout is negative"));
    }
    match timeout.checked_add(now_ms) {
        Some(_) => Ok(timeout),
        None => Err(CommandError::new("ERR timeout is out of range")),
    }
}

/// Keys with the texts of their numbers; makes room for what those mean.
fn streams_of<'a>(
    call: &Call<'a>,
    request: &mut Request<'a>,
) -> Result<Vec<(&'a [u8], &'a [u8])>, CommandError> {
    let rest = call.args.get(request.keys_at..).unwrap_or_default();
    if rest.len() % 2 != 0 {
        return Err(CommandError::new(
            "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
        ));
    }
    let (keys, ids) = rest.split_at(rest.len() / 2);
    request.streams = keys.iter().map(|key| (*key, From::New)).collect();
    Ok(keys.iter().copied().zip(ids.iter().copied()).collect())
}

/// Nothing is there.
fn wait(call: &mut Call<'_>, request: &Request<'_>) {
    let Some(block_ms) = request.block_ms else {
        call.out.null_array();
        return;
    };
    let keys: Vec<&[u8]> = request.streams.iter().map(|(key, _)| *key).collect();
    let deadline_ms = (block_ms != 0).then(|| call.now_ms().saturating_add(block_ms));
    call.wait_for(&keys, deadline_ms, Otherwise::NullArray);
    let ids = request.streams.iter().map(|(_, from)| match from {
        From::After(id) => id.text().into_bytes(),
        From::New => b">".to_vec(),
    });
    let ids: Vec<Vec<u8>> = ids.collect();
    let mut again: Vec<&[u8]> = Vec::new();
    again.extend_from_slice(call.args.get(..request.keys_at + keys.len()).unwrap_or_default());
    again.extend(ids.iter().map(Vec::as_slice));
    call.wait_with(&again);
}

fn write_head(call: &mut Call<'_>, len: usize) {
    match call.out.version() {
        2 => call.out.array(len),
        _ => call.out.map(len),
    }
}

fn write_key(call: &mut Call<'_>, key: &[u8]) {
    if call.out.version() == 2 {
        call.out.array(2);
    }
    call.out.bulk(key);
}

/// Answers a group's consumer what it gets of one stream.
fn serve(
    call: &mut Call<'_>,
    request: &Request<'_>,
    key: &[u8],
    from: From,
) -> Result<(), CommandError> {
    let Some((name, consumer)) = request.group else { return Ok(()) };
    let now_ms = call.now_ms();
    let mut done = Deliveries::default();
    let out = &mut *call.out;
    let Some(stream) = call.keys.get_growing::<Stream>(call.db, key)? else {
        return Err(NOT_INTEGER);
    };
    stream.change_group(name, |group, position| {
        done.is_new_consumer = group.see(consumer, now_ms);
        match from {
            From::New => {
                let Some(next) = group.last_id.next() else { return out.array(0) };
                let found = position.entries.range(next, Id::MAX).take(request.new_count());
                let found: Vec<_> = found.collect();
                let ids = found.iter().map(|(id, _)| *id);
                take_new(group, position, consumer, now_ms, ids, request, &mut done);
                write_entries(out, &found);
            }
            From::After(id) => {
                let of_consumer = group.consumer(consumer).map(|consumer| &consumer.pending);
                let range = of_consumer.map(|ids| ids.range((Excluded(id), Unbounded)));
                let ids = range.into_iter().flatten().take(request.count).copied();
                let ids: Vec<Id> = ids.collect();
                out.array(ids.len());
                for id in ids {
                    let Some(entry) = position.entries.get(id) else {
                        out.array(2);
                        write_id(out, id);
                        out.null_array();
                        continue;
                    };
                    group.deliver_again(id, now_ms);
                    done.note(id, group);
                    write_entry(out, id, entry);
                }
            }
        }
    });
    if done.is_empty() {
        return Ok(());
    }
    call.modified(key);
    done.log(call, key, name, consumer)?;
    if done.is_new_consumer {
        call.event(EVENT_STREAM, "xgroup-createconsumer", key);
    }
    Ok(())
}

/// Hands entries that the group has not read to a consumer.
fn take_new(
    group: &mut Group,
    position: &Position<'_>,
    consumer: &[u8],
    now_ms: i64,
    ids: impl Iterator<Item = Id>,
    request: &Request<'_>,
    done: &mut Deliveries,
) {
    for id in ids {
        group.entries_read = position.read_after(group.entries_read, id);
        group.last_id = id;
        done.has_moved = true;
        if !request.needs_no_ack {
            group.assign(id, consumer, now_ms, 1);
            done.note(id, group);
        }
    }
    if done.has_moved {
        group.activate(consumer, now_ms);
    }
}
