//! `XINFO`: what is known of a stream, its groups and their consumers.

use super::{count_text, write_entries, write_entry, write_id};
use crate::call::Call;
use crate::commands::container::{self, Subcommand};
use crate::error::{CommandError, NO_KEY};
use crate::number::int_arg;
use crate::reply::Reply;
use crate::value::Stream;
use crate::value::stream::{Consumer, Group, Id, Position};

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "consumers",
        arity: 4,
        help: ["<key> <groupname>", "The consumers of a group."],
        run: consumers,
    },
    Subcommand {
        name: "groups",
        arity: 3,
        help: ["<key>", "The groups of a stream."],
        run: groups,
    },
    Subcommand {
        name: "stream",
        arity: -3,
        help: ["<key> [FULL [COUNT <count>]]", "A stream; all of it with FULL."],
        run: stream,
    },
];

/// Entries that `FULL` shows of a stream and what is pending, unless told otherwise.
const SHOWN_COUNT: usize = 10;

/// `XINFO`
pub fn xinfo(call: &mut Call<'_>) -> Result<(), CommandError> {
    container::run(call, SUBCOMMANDS)
}

fn write_count(out: &mut dyn Reply, name: &str, count: u64) {
    out.text(name);
    out.int(count_text(count));
}

fn write_count_or_null(out: &mut dyn Reply, name: &str, count: Option<i64>) {
    out.text(name);
    match count {
        Some(count) => out.int(count),
        None => out.null(),
    }
}

fn write_named_id(out: &mut dyn Reply, name: &str, id: Id) {
    out.text(name);
    write_id(out, id);
}

fn consumers(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, name, now_ms) = (call.arg(2), call.arg(3), call.now_ms());
    let stream = call.keys.get::<Stream>(call.db, key)?.ok_or(NO_KEY)?;
    let group = stream.group(name).ok_or_else(|| {
        let (key, name) = (String::from_utf8_lossy(key), String::from_utf8_lossy(name));
        CommandError::new(format!("NOGROUP No such consumer group '{name}' for key name '{key}'"))
    })?;
    let out = &mut *call.out;
    out.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        out.map(4);
        out.text("name");
        out.bulk(name);
        write_count(out, "pending", consumer.pending.len() as u64);
        out.text("idle");
        out.int(now_ms.saturating_sub(consumer.seen_ms).max(0));
        out.text("inactive");
        out.int(consumer.active_ms.map_or(-1, |at| now_ms.saturating_sub(at).max(0)));
    }
    Ok(())
}

fn groups(call: &mut Call<'_>) -> Result<(), CommandError> {
    let stream = call.keys.get::<Stream>(call.db, call.arg(2))?.ok_or(NO_KEY)?;
    let position = stream.position();
    let out = &mut *call.out;
    out.array(stream.groups().len());
    for (name, group) in stream.groups() {
        out.map(6);
        out.text("name");
        out.bulk(name);
        write_count(out, "consumers", group.consumers().len() as u64);
        write_count(out, "pending", group.pending().len() as u64);
        write_named_id(out, "last-delivered-id", group.last_id);
        write_count_or_null(out, "entries-read", group.entries_read.map(count_text));
        write_count_or_null(out, "lag", position.lag(group));
    }
    Ok(())
}

fn stream(call: &mut Call<'_>) -> Result<(), CommandError> {
    call.get::<Stream>(call.arg(2))?.ok_or(NO_KEY)?;
    let mut shown = None;
    let full = |word: &[u8]| word.eq_ignore_ascii_case(b"full");
    match call.args.get(3..).unwrap_or_default() {
        [] => {}
        [word] if full(word) => shown = Some(SHOWN_COUNT),
        [word, count, value] if full(word) && count.eq_ignore_ascii_case(b"count") => {
            let count = usize::try_from(int_arg(value)?).unwrap_or(SHOWN_COUNT);
            shown = Some(if count == 0 { usize::MAX } else { count });
        }
        _ => return Err(super::wrong_subcommand(call)),
    }
    let stream = call.keys.get::<Stream>(call.db, call.arg(2))?.ok_or(NO_KEY)?;
    let out = &mut *call.out;
    out.map(if shown.is_some() { 9 } else { 10 });
    write_count(out, "length", stream.entries.len());
    let blocks = stream.entries.block_count() as u64;
    write_count(out, "radix-tree-keys", blocks);
    write_count(out, "radix-tree-nodes", blocks + 1);
    write_named_id(out, "last-generated-id", stream.last_id);
    write_named_id(out, "max-deleted-entry-id", stream.max_deleted_id);
    write_count(out, "entries-added", stream.entries_added);
    let first_id = stream.entries.first_id().unwrap_or_default();
    write_named_id(out, "recorded-first-entry-id", first_id);
    match shown {
        Some(count) => write_full(out, stream, count),
        None => write_ends(out, stream),
    }
    Ok(())
}

fn write_ends(out: &mut dyn Reply, stream: &Stream) {
    write_count(out, "groups", stream.groups().len() as u64);
    let mut range = stream.entries.range(Id::MIN, Id::MAX);
    let first = range.next();
    // Of a single entry both ends are the same.
    let last = range.next_back().or(first);
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        out.text(name);
        match entry {
            Some((id, entry)) => write_entry(out, id, entry),
            None => out.null(),
        }
    }
}

fn write_full(out: &mut dyn Reply, stream: &Stream, count: usize) {
    out.text("entries");
    let entries: Vec<_> = stream.entries.range(Id::MIN, Id::MAX).take(count).collect();
    write_entries(out, &entries);
    out.text("groups");
    out.array(stream.groups().len());
    let position = stream.position();
    for (name, group) in stream.groups() {
        write_group(out, name, group, &position, count);
    }
}

fn write_group(
    out: &mut dyn Reply,
    name: &[u8],
    group: &Group,
    position: &Position<'_>,
    count: usize,
) {
    out.map(7);
    out.text("name");
    out.bulk(name);
    write_named_id(out, "last-delivered-id", group.last_id);
    write_count_or_null(out, "entries-read", group.entries_read.map(count_text));
    write_count_or_null(out, "lag", position.lag(group));
    write_count(out, "pel-count", group.pending().len() as u64);
    out.text("pending");
    out.array(group.pending().len().min(count));
    for (id, pending) in group.pending().iter().take(count) {
        out.array(4);
        write_id(out, *id);
        out.bulk(&pending.consumer);
        out.int(pending.delivered_ms);
        out.int(count_text(pending.count));
    }
    out.text("consumers");
    out.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        write_consumer(out, name, consumer, group, count);
    }
}

fn write_consumer(
    out: &mut dyn Reply,
    name: &[u8],
    consumer: &Consumer,
    group: &Group,
    count: usize,
) {
    out.map(5);
    out.text("name");
    out.bulk(name);
    out.text("seen-time");
    out.int(consumer.seen_ms);
    out.text("active-time");
    out.int(consumer.active_ms.unwrap_or(-1));
    write_count(out, "pel-count", consumer.pending.len() as u64);
    out.text("pending");
    out.array(consumer.pending.len().min(count));
    for id in consumer.pending.iter().take(count) {
        let pending = group.pending().get(id);
        out.array(3);
        write_id(out, *id);
        out.int(pending.map_or(0, |pending| pending.delivered_ms));
        out.int(pending.map_or(0, |pending| count_text(pending.count)));
    }
}
