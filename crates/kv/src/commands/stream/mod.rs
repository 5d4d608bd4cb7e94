//! Streams: entries in order, read from a number on, alone or in groups of consumers.

mod add;
mod claim;
mod effect;
mod group;
mod info;
mod range;
mod read;

pub(super) use effect::apply as apply_deliveries;
#[cfg(test)]
pub(crate) use read::DELIVERIES_MAX;

use super::{BLOCKING, LOADING, MOVABLE_KEYS, STALE};
use super::{Command, DENY_OOM, FAST, Group as Family, Keys, ONE_KEY, READONLY, WRITE, command};
use crate::call::Call;
use crate::error::CommandError;
use crate::reply::Reply;
use crate::value::stream::{Fields, Id};

const SECOND: Keys = Keys::Range { first: 2, last: 2, step: 1 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("xack", -4, WRITE | FAST, ONE_KEY, Family::Stream, "5.0.0", "Acknowledges entries that a group's consumers got.", group::ack),
    command("xadd", -5, WRITE | DENY_OOM | FAST, ONE_KEY, Family::Stream, "5.0.0", "Adds an entry to a stream, which is made if it is not there.", add::add),
    command("xautoclaim", -6, WRITE | FAST, ONE_KEY, Family::Stream, "6.2.0", "Takes over what consumers have not acknowledged for long.", claim::auto_claim),
    command("xclaim", -6, WRITE | FAST, ONE_KEY, Family::Stream, "5.0.0", "Takes over entries that another consumer has not acknowledged.", claim::claim),
    command("xdel", -3, WRITE | FAST, ONE_KEY, Family::Stream, "5.0.0", "Takes entries out of a stream.", add::del),
    command("xgroup", -2, WRITE | DENY_OOM, SECOND, Family::Stream, "5.0.0", "Makes, changes and removes consumer groups.", group::xgroup),
    command("xgroup|create", -5, WRITE | DENY_OOM, SECOND, Family::Stream, "5.0.0", "Makes a consumer group.", group::xgroup),
    command("xgroup|createconsumer", 5, WRITE | DENY_OOM, SECOND, Family::Stream, "6.2.0", "Makes a consumer of a group.", group::xgroup),
    command("xgroup|delconsumer", 5, WRITE, SECOND, Family::Stream, "5.0.0", "Removes a consumer with all that it has not acknowledged.", group::xgroup),
    command("xgroup|destroy", 4, WRITE, SECOND, Family::Stream, "5.0.0", "Removes a consumer group.", group::xgroup),
    command("xgroup|help", 2, LOADING | STALE, Keys::None, Family::Stream, "5.0.0", "The subcommands in a few words.", group::xgroup),
    command("xgroup|setid", -5, WRITE, SECOND, Family::Stream, "5.0.0", "Sets the entry after which a group reads on.", group::xgroup),
    command("xinfo", -2, READONLY, SECOND, Family::Stream, "5.0.0", "What is known of a stream, its groups and their consumers.", info::xinfo),
    command("xinfo|consumers", 4, READONLY, SECOND, Family::Stream, "5.0.0", "The consumers of a group.", info::xinfo),
    command("xinfo|groups", 3, READONLY, SECOND, Family::Stream, "5.0.0", "The groups of a stream.", info::xinfo),
    command("xinfo|help", 2, LOADING | STALE, Keys::None, Family::Stream, "5.0.0", "The subcommands in a few words.", info::xinfo),
    command("xinfo|stream", -3, READONLY, SECOND, Family::Stream, "5.0.0", "What is known of a stream.", info::xinfo),
    command("xlen", 2, READONLY | FAST, ONE_KEY, Family::Stream, "5.0.0", "How many entries a stream has.", add::len),
    command("xpending", -3, READONLY, ONE_KEY, Family::Stream, "5.0.0", "What a group's consumers have not acknowledged.", claim::pending),
    command("xrange", -4, READONLY, ONE_KEY, Family::Stream, "5.0.0", "Entries between two numbers.", range::range),
    command("xread", -4, READONLY | BLOCKING | MOVABLE_KEYS, Keys::Found(read::keys_of), Family::Stream, "5.0.0", "Entries of streams after given numbers; may wait for them.", read::read),
    command("xreadgroup", -7, WRITE | BLOCKING | MOVABLE_KEYS, Keys::Found(read::keys_of), Family::Stream, "5.0.0", "Entries that no other consumer of a group got; may wait for them.", read::read_group),
    command("xrevrange", -4, READONLY, ONE_KEY, Family::Stream, "5.0.0", "Entries between two numbers, the newest first.", range::rev_range),
    command("xsetid", -3, WRITE | DENY_OOM | FAST, ONE_KEY, Family::Stream, "5.0.0", "Sets the number of a stream's last entry.", add::set_id),
    command("xtrim", -4, WRITE, ONE_KEY, Family::Stream, "5.0.0", "Takes the oldest entries out of a stream.", add::trim),
];

const INVALID_ID: CommandError = CommandError(std::borrow::Cow::Borrowed(
    "ERR Invalid stream ID specified as stream command argument",
));

/// The number of an entry; `seq` where it says only a time.
fn id_arg(text: &[u8], seq: u64) -> Result<Id, CommandError> {
    Id::parse(text, seq).ok_or(INVALID_ID)
}

/// The start of an interval, itself included.
fn start_arg(text: &[u8]) -> Result<Id, CommandError> {
    let (is_exclusive, id) = bound_arg(text, 0)?;
    let next = if is_exclusive { id.next() } else { Some(id) };
    next.ok_or(CommandError::new("ERR invalid start ID for the interval"))
}

/// The end of an interval, itself included.
fn end_arg(text: &[u8]) -> Result<Id, CommandError> {
    let (is_exclusive, id) = bound_arg(text, u64::MAX)?;
    let previous = if is_exclusive { id.previous() } else { Some(id) };
    previous.ok_or(CommandError::new("ERR invalid end ID for the interval"))
}

fn bound_arg(text: &[u8], seq: u64) -> Result<(bool, Id), CommandError> {
    match text {
        b"-" => Ok((false, Id::MIN)),
        b"+" => Ok((false, Id::MAX)),
        // An excluded end is a number.
        [b'(', rest @ ..] if !rest.is_empty() => Ok((true, id_arg(rest, seq)?)),
        _ => Ok((false, id_arg(text, seq)?)),
    }
}

fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (String::from_utf8_lossy(key), String::from_utf8_lossy(group));
    CommandError::new(format!("NOGROUP No such key '{key}' or consumer group '{group}'"))
}

fn write_id(out: &mut dyn Reply, id: Id) {
    out.text(&id.text());
}

/// Number, and fields with values.
fn write_entry(out: &mut dyn Reply, id: Id, entry: &[u8]) {
    let fields = Fields::new(entry);
    out.array(2);
    write_id(out, id);
    out.array(fields.len());
    fields.for_each(|field| out.bulk(field));
}

fn write_entries(out: &mut dyn Reply, entries: &[(Id, &[u8])]) {
    out.array(entries.len());
    for (id, entry) in entries {
        write_entry(out, *id, entry);
    }
}

/// What a subcommand takes cannot be made of its arguments.
fn wrong_subcommand(call: &Call<'_>) -> CommandError {
    let container = call.command.info.first_name().to_ascii_uppercase();
    let word = String::from_utf8_lossy(call.arg(1));
    CommandError::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{word}'. Try {container} HELP."
    ))
}

/// A count as clients see it.
fn count_text(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
