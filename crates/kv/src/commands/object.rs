//! `OBJECT`: how a value is kept, and how it was used. `LOLWUT`, for fun.

use super::container::{self, Subcommand};
use super::{Command, FAST, Group, Keys, LOADING, READONLY, STALE, command};
use crate::call::Call;
use crate::error::CommandError;
use crate::number::int_arg;
use crate::value::Value;

const SECOND: Keys = Keys::Range { first: 2, last: 2, step: 1 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("lolwut", -1, READONLY | FAST, Keys::None, Group::Server, "5.0.0", "A picture, and the version.", lolwut),
    command("object", -2, READONLY, SECOND, Group::Generic, "2.2.3", "How a value is kept, and how it was used.", object),
    command("object|encoding", 3, READONLY, SECOND, Group::Generic, "2.2.3", "How a value is kept.", object),
    command("object|freq", 3, READONLY, SECOND, Group::Generic, "4.0.0", "How often a key was used, where that is counted.", object),
    command("object|help", 2, LOADING | STALE, Keys::None, Group::Generic, "6.2.0", "The subcommands in a few words.", object),
    command("object|idletime", 3, READONLY, SECOND, Group::Generic, "2.2.3", "For how many seconds a key was not used.", object),
    command("object|refcount", 3, READONLY, SECOND, Group::Generic, "2.2.3", "How many share the value of a key.", object),
];

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "encoding",
        arity: 3,
        help: ["<key>", "How the value of a key is kept."],
        run: encoding,
    },
    Subcommand {
        name: "freq",
        arity: 3,
        help: ["<key>", "How often a key was used, where that is counted."],
        run: freq,
    },
    Subcommand {
        name: "idletime",
        arity: 3,
        help: ["<key>", "For how many seconds a key was not used."],
        run: idle_time,
    },
    Subcommand {
        name: "refcount",
        arity: 3,
        help: ["<key>", "How many share the value of a key."],
        run: ref_count,
    },
];

/// Integers below this are shared among all keys in Redis, which says so with this count.
const SHARED_INT_END: i64 = 10_000;
const SHARED_COUNT: i64 = i32::MAX as i64;

fn object(call: &mut Call<'_>) -> Result<(), CommandError> {
    container::run(call, SUBCOMMANDS)
}

fn encoding(call: &mut Call<'_>) -> Result<(), CommandError> {
    let slot = call.keys.slot(call.db, call.args[2])?;
    match slot.map(|slot| slot.value.encoding()) {
        Some(name) => call.out.text(name),
        None => call.out.null(),
    }
    Ok(())
}

fn freq(call: &mut Call<'_>) -> Result<(), CommandError> {
    if call.keys.slot(call.db, call.args[2])?.is_none() {
        call.out.null();
        return Ok(());
    }
    Err(CommandError::new(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
    ))
}

fn idle_time(call: &mut Call<'_>) -> Result<(), CommandError> {
    let now_s = call.now_ms() / 1000;
    let slot = call.keys.slot(call.db, call.args[2])?;
    match slot.map(|slot| now_s - i64::from(slot.used_at)) {
        Some(seconds) => call.out.int(seconds.max(0)),
        None => call.out.null(),
    }
    Ok(())
}

fn ref_count(call: &mut Call<'_>) -> Result<(), CommandError> {
    let slot = call.keys.slot(call.db, call.args[2])?;
    let count = slot.map(|slot| match &slot.value {
        Value::Str(string) if string.encoding() == "int" => {
            let is_shared = string.int().is_some_and(|int| (0..SHARED_INT_END).contains(&int));
            if is_shared { SHARED_COUNT } else { 1 }
        }
        _ => 1,
    });
    match count {
        Some(count) => call.out.int(count),
        None => call.out.null(),
    }
    Ok(())
}

/// A quipu: a cord with strings, whose knots are the digits of the numbers that it keeps.
fn lolwut(call: &mut Call<'_>) -> Result<(), CommandError> {
    const STRINGS: usize = 12;
    const KNOTS: usize = 6;
    if let [_, word, version, sizes @ ..] = call.args
        && word.eq_ignore_ascii_case(b"version")
    {
        let has_sizes = matches!(int_arg(version)?, 5 | 6);
        for size in sizes.iter().take(if has_sizes { 3 } else { 0 }) {
            int_arg(size)?;
        }
    }
    let mut text = String::new();
    text += &"═".repeat(STRINGS * 4 + 3);
    let knots: Vec<u64> = (0..STRINGS * KNOTS).map(|_| call.keys.random()).collect();
    for row in knots.chunks(STRINGS) {
        text += "\n  ";
        for knot in row {
            text += if knot % 5 < 3 { " │  " } else { " ●  " };
        }
    }
    text += "\n\nQuipu ver. ";
    text += env!("CARGO_PKG_VERSION");
    text += "\n";
    call.out.verbatim("txt", text.as_bytes());
    Ok(())
}
