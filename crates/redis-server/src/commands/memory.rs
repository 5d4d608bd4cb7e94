//! `MEMORY`: what holds memory.

use super::info::MemoryUse;
use crate::commands::definition::{DoorCommand, Flow, command, container, help};
use crate::dispatch::Context;
use allocator::{Freed, give_back};
use kv::commands::command as command_on_keys;
use kv::commands::{Group, Keys, LOADING, READONLY, STALE};
use kv::error::SYNTAX;
use kv::number::int_arg;
use kv::{CommandError, Reply as _};

/// Where the key of `MEMORY USAGE` stands.
const SECOND: Keys = Keys::Range { first: 2, last: 2, step: 1 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("memory", -2, 0, Group::Server, "4.0.0", "What holds memory.", container),
    command("memory|doctor", 2, 0, Group::Server, "4.0.0", "Whether something is wrong with it, in words.", doctor),
    command("memory|help", 2, LOADING | STALE, Group::Server, "4.0.0", "What MEMORY can do.", show_help),
    command("memory|malloc-stats", 2, 0, Group::Server, "4.0.0", "What the allocator says.", malloc_stats),
    command("memory|purge", 2, 0, Group::Server, "4.0.0", "Gives freed memory back to the system.", purge),
    command("memory|stats", 2, 0, Group::Server, "4.0.0", "Memory by what holds it.", stats),
    command_on_keys("memory|usage", -3, READONLY, SECOND, Group::Server, "4.0.0", "The memory of a key and its value.", usage),
];

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "DOCTOR",
            "    Whether something is wrong, in words.",
            "MALLOC-STATS",
            "    What the allocator says.",
            "PURGE",
            "    Gives freed memory back to the system.",
            "STATS",
            "    Memory by what holds it.",
            "USAGE <key> [SAMPLES <count>]",
            "    The memory of a key and its value.",
        ],
    )
}

fn usage(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    for option in context.args[3..].chunks(2) {
        match option {
            // All are counted: how many to look at makes no difference.
            [word, count] if word.eq_ignore_ascii_case(b"samples") && 0 <= int_arg(count)? => {}
            _ => return Err(SYNTAX),
        }
    }
    let cost = context.keys.slot(context.session.db, context.args[2])?.map(|slot| slot.cost);
    match cost {
        Some(cost) => context.session.out.int(i64::from(cost)),
        None => context.session.out.null(),
    }
    Ok(Flow::Next)
}

fn purge(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    give_back(Freed::All);
    context.session.out.ok();
    Ok(Flow::Next)
}

fn malloc_stats(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let of = MemoryUse::now(context);
    let text = format!("in use {} bytes, in RAM {} bytes\n", of.used, of.resident);
    context.session.out.verbatim("txt", text.as_bytes());
    Ok(Flow::Next)
}

fn doctor(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let of = MemoryUse::now(context);
    let max = context.keys.config().memory_max as u64;
    let text = match context.keys.memory_used() as u64 <= max + max / 8 {
        true => format!(
            "Nothing is wrong: keys use {} of {max} bytes (--kv-memory); what does not fit is on disk.\n",
            context.keys.memory_used()
        ),
        false => format!(
            "Keys use {} bytes and may have {max} (--kv-memory): the disk does not keep up, or the index alone, {} bytes, is too large.\n",
            context.keys.memory_used(),
            of.index
        ),
    };
    context.session.out.verbatim("txt", text.as_bytes());
    Ok(Flow::Next)
}

fn stats(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let of = MemoryUse::now(context);
    let keys: usize = (0..context.keys.database_count())
        .map(|db| context.keys.len(u8::try_from(db).unwrap_or(u8::MAX)))
        .sum();
    let peak = context.hub.stats.memory_peak.max(of.used);
    let numbers: [(&str, u64); 13] = [
        ("peak.allocated", peak),
        ("total.allocated", of.used),
        ("startup.allocated", of.used - of.keys - of.index - of.clients),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", of.clients),
        ("cluster.links", 0),
        ("aof.buffer", 0),
        ("lua.caches", 0),
        ("functions.caches", 0),
        ("overhead.total", of.used - of.keys),
        ("keys.count", keys as u64),
        ("keys.bytes-per-key", of.used / keys.max(1) as u64),
    ];
    let shares: [(&str, f64); 3] = [
        ("dataset.percentage", of.keys as f64 * 100.0 / of.used.max(1) as f64),
        ("peak.percentage", of.used as f64 * 100.0 / peak.max(1) as f64),
        ("fragmentation", of.resident as f64 / of.used.max(1) as f64),
    ];
    let out = &mut context.session.out;
    out.map(numbers.len() + shares.len() + 1);
    for (name, number) in numbers {
        out.text(name);
        out.int(i64::try_from(number).unwrap_or(i64::MAX));
    }
    out.text("dataset.bytes");
    out.int(i64::try_from(of.keys).unwrap_or(i64::MAX));
    for (name, share) in shares {
        out.text(name);
        out.double(share);
    }
    Ok(Flow::Next)
}
