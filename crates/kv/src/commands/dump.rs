//! `DUMP` and `RESTORE`: values as Redis writes them.

use super::{Command, DENY_OOM, Group, ONE_KEY, READONLY, WRITE, command};
use crate::call::Call;
use crate::error::{CommandError, SYNTAX};
use crate::keyspace::{EVENT_GENERIC, Expire};
use crate::number::int_arg;
use crate::rdb::{self, Refusal};
use crate::slots::LAST_EXPIRY;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("dump", 2, READONLY, ONE_KEY, Group::Generic, "2.6.0", "A key's value as Redis writes it.", dump),
    command("restore", -4, WRITE | DENY_OOM | super::DANGEROUS, ONE_KEY, Group::Generic, "2.6.0", "Makes a key of what DUMP answered.", restore),
    command("restore-asking", -4, WRITE | DENY_OOM | super::DANGEROUS, ONE_KEY, Group::Server, "3.0.0", "As RESTORE, between nodes of a cluster.", restore),
];

fn dump(call: &mut Call<'_>) -> Result<(), CommandError> {
    let size = call.keys.size_of(call.db, call.args[1])?;
    call.keys.take_room(size)?;
    let Some(value) = call.keys.value(call.db, call.args[1])? else {
        call.out.null();
        return Ok(());
    };
    let name = value.type_name();
    let payload = rdb::dump(value);
    let payload = payload
        .ok_or_else(|| CommandError::new(format!("ERR values of type {name} cannot be dumped")))?;
    call.out.bulk(&payload);
    Ok(())
}

/// What follows a payload.
#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
    idle_s: Option<i64>,
    frequency: Option<u8>,
}

fn options(call: &Call<'_>) -> Result<Options, CommandError> {
    let mut options = Options::default();
    let mut at = 4;
    while let Some(word) = call.args.get(at) {
        let value = call.args.get(at + 1);
        match (word.to_ascii_lowercase().as_slice(), value) {
            (b"replace", _) => options.replaces = true,
            (b"absttl", _) => options.is_absolute = true,
            (b"idletime", Some(value)) if options.frequency.is_none() => {
                let negative = || CommandError::new("ERR Invalid IDLETIME value, must be >= 0");
                let seconds = Some(int_arg(value)?).filter(|seconds| 0 <= *seconds);
                options.idle_s = Some(seconds.ok_or_else(negative)?);
                at += 1;
            }
            (b"freq", Some(value)) if options.idle_s.is_none() => {
                let frequency = u8::try_from(int_arg(value)?).map_err(|_| {
                    CommandError::new("ERR Invalid FREQ value, must be >= 0 and <= 255")
                });
                options.frequency = Some(frequency?);
                at += 1;
            }
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    Ok(options)
}

fn restore(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let options = options(call)?;
    let is_there = call.keys.exists(call.db, key)?;
    if is_there && !options.replaces {
        return Err(CommandError::new("BUSYKEY Target key name already exists."));
    }
    let ttl = int_arg(call.args[2])?;
    if ttl < 0 {
        return Err(CommandError::new("ERR Invalid TTL value, must be >= 0"));
    }
    let size_max = call.keys.made_max().saturating_sub(key.len());
    let value = rdb::restore(call.args[3], size_max).map_err(|refusal| match refusal {
        Refusal::TooLarge => CommandError::new(format!(
            "ERR the value is too large: it takes more than {size_max} bytes of memory"
        )),
        Refusal::Frame => CommandError::new("ERR DUMP payload version or checksum are wrong"),
        Refusal::Value => CommandError::new("ERR Bad data format"),
    })?;
    let expire = match (ttl, options.is_absolute) {
        (0, _) => Expire::Never,
        (at, true) => Expire::At(at.min(LAST_EXPIRY)),
        (after, false) => Expire::At(after.saturating_add(call.now_ms()).min(LAST_EXPIRY)),
    };
    if is_there {
        call.remove(key)?;
    }
    if matches!(expire, Expire::At(at) if call.has_passed(at)) {
        if is_there {
            call.log(&[b"del", key]);
            call.event(EVENT_GENERIC, "del", key);
        }
        call.out.ok();
        return Ok(());
    }
    call.put(key, value, expire)?;
    call.log_key(key)?;
    if let Some(seconds) = options.idle_s {
        call.keys.set_idle(call.db, key, seconds)?;
    }
    call.event(EVENT_GENERIC, "restore", key);
    call.out.ok();
    Ok(())
}
