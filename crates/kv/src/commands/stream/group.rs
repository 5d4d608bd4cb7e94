//! Consumer groups: made, changed, removed; what they got acknowledged.

use super::effect::Deliveries;
use super::id_arg;
use crate::call::Call;
use crate::commands::container::{self, Subcommand};
use crate::error::{CommandError, SYNTAX};
use crate::keyspace::EVENT_STREAM;
use crate::number::int_arg;
use crate::value::Stream;
use crate::value::stream::{Group, Id};

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "create",
        arity: -5,
        help: [
            "<key> <groupname> <id|$> [MKSTREAM] [ENTRIESREAD entries_read]",
            "Makes a group that reads what comes after an entry ($: the last one).",
        ],
        run: create,
    },
    Subcommand {
        name: "createconsumer",
        arity: 5,
        help: ["<key> <groupname> <consumer>", "Makes a consumer of a group."],
        run: create_consumer,
    },
    Subcommand {
        name: "delconsumer",
        arity: 5,
        help: [
            "<key> <groupname> <consumer>",
            "Removes a consumer with all that it has not acknowledged.",
        ],
        run: del_consumer,
    },
    Subcommand {
        name: "destroy",
        arity: 4,
        help: ["<key> <groupname>", "Removes a group."],
        run: destroy,
    },
    Subcommand {
        name: "setid",
        arity: -5,
        help: [
            "<key> <groupname> <id|$> [ENTRIESREAD entries_read]",
            "Sets the entry after which a group reads on.",
        ],
        run: set_id,
    },
];

/// `XGROUP`
pub fn xgroup(call: &mut Call<'_>) -> Result<(), CommandError> {
    container::run(call, SUBCOMMANDS)
}

const NO_STREAM: CommandError = CommandError(std::borrow::Cow::Borrowed(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
));

fn no_such_group(call: &Call<'_>) -> CommandError {
    let key = String::from_utf8_lossy(call.arg(2));
    let group = String::from_utf8_lossy(call.arg(3));
    CommandError::new(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

/// The options behind the number of `CREATE` and `SETID`: whether to make the stream, and how many
/// entries are read.
fn group_options(call: &Call<'_>, creates: bool) -> Result<(bool, Option<u64>), CommandError> {
    let (mut makes_stream, mut read) = (false, None);
    let mut at = 5;
    while let Some(word) = call.args.get(at) {
        match word.to_ascii_lowercase().as_slice() {
            b"mkstream" if creates => makes_stream = true,
            b"entriesread" if at + 1 < call.argc() => {
                at += 1;
                let count = int_arg(call.arg(at))?;
                if count < -1 {
                    return Err(CommandError::new(
                        "ERR value for ENTRIESREAD must be positive or -1",
                    ));
                }
                read = u64::try_from(count).ok();
            }
            _ => return Err(super::wrong_subcommand(call)),
        }
        at += 1;
    }
    Ok((makes_stream, read))
}

/// The number after which to read.
fn from_arg(text: &[u8], last_id: Id) -> Result<Id, CommandError> {
    if text == b"$" { Ok(last_id) } else { id_arg(text, 0) }
}

fn create(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name) = (call.arg(2), call.arg(3));
    let (makes_stream, read) = group_options(call, true)?;
    let last_id = call.get::<Stream>(key)?.map(|stream| stream.last_id);
    if last_id.is_none() && !makes_stream {
        return Err(NO_STREAM);
    }
    let id = from_arg(call.arg(4), last_id.unwrap_or_default())?;
    let stream = call.get_or_insert::<Stream>(key)?;
    if !stream.add_group(name, Group::new(id, read)) {
        return Err(CommandError::new("BUSYGROUP Consumer Group name already exists"));
    }
    call.modified(key);
    call.event(EVENT_STREAM, "xgroup-create", key);
    call.out.ok();
    Ok(())
}

fn set_id(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.arg(2);
    let (_, read) = group_options(call, false)?;
    let id = call.arg(4);
    let missing = no_such_group(call);
    let name = call.arg(3);
    let stream = call.get_mut::<Stream>(key)?.ok_or(NO_STREAM)?;
    if stream.group(name).is_none() {
        return Err(missing);
    }
    let id = match id {
        b"-" => Id::MIN,
        b"+" => Id::MAX,
        _ => from_arg(id, stream.last_id)?,
    };
    stream.change_group(name, |group, _| (group.last_id, group.entries_read) = (id, read));
    call.modified(key);
    call.event(EVENT_STREAM, "xgroup-setid", key);
    call.out.ok();
    Ok(())
}

fn destroy(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name) = (call.arg(2), call.arg(3));
    let was_there = call.get_mut::<Stream>(key)?.ok_or(NO_STREAM)?.remove_group(name);
    if was_there {
        call.modified(key);
        call.event(EVENT_STREAM, "xgroup-destroy", key);
    }
    call.out.int(i64::from(was_there));
    Ok(())
}

fn create_consumer(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name, consumer) = (call.arg(2), call.arg(3), call.arg(4));
    let (missing, now_ms) = (no_such_group(call), call.now_ms());
    let stream = call.keys.get_growing::<Stream>(call.db, key)?.ok_or(NO_STREAM)?;
    let is_new = stream.change_group(name, |group, _| {
        group.consumer(consumer).is_none() && group.see(consumer, now_ms)
    });
    let is_new = is_new.ok_or(missing)?;
    if is_new {
        call.modified(key);
        Deliveries::default().log(call, key, name, consumer)?;
        call.event(EVENT_STREAM, "xgroup-createconsumer", key);
    }
    call.out.int(i64::from(is_new));
    Ok(())
}

fn del_consumer(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name, consumer) = (call.arg(2), call.arg(3), call.arg(4));
    let missing = no_such_group(call);
    let stream = call.get_mut::<Stream>(key)?.ok_or(NO_STREAM)?;
    let removed = stream.change_group(name, |group, _| group.remove_consumer(consumer));
    let removed = removed.ok_or(missing)?;
    if removed.is_some() {
        call.modified(key);
        call.event(EVENT_STREAM, "xgroup-delconsumer", key);
    }
    call.out.len(removed.unwrap_or(0));
    Ok(())
}

/// `XACK`
pub fn ack(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name) = (call.arg(1), call.arg(2));
    let has_group = call.get::<Stream>(key)?.is_some_and(|stream| stream.group(name).is_some());
    if !has_group {
        call.out.int(0);
        return Ok(());
    }
    let ids = call.args[3..].iter().map(|text| id_arg(text, 0));
    let ids: Vec<Id> = ids.collect::<Result<_, _>>()?;
    let stream = call.get_mut::<Stream>(key)?.ok_or(SYNTAX)?;
    let count = stream
        .change_group(name, |group, _| ids.iter().filter(|id| group.acknowledge(**id)).count());
    let count = count.unwrap_or(0);
    if 0 < count {
        call.modified(key);
    }
    call.out.len(count);
    Ok(())
}
