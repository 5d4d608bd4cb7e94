//! Keys under other names and in other databases: `COPY`, `MOVE`, `SWAPDB`.

use super::{Command, FAST, Group, Keys, ONE_KEY, TWO_KEYS, WRITE, command};
use crate::call::Call;
use crate::error::{BEYOND_32_BITS, CommandError, SYNTAX};
use crate::keyspace::{EVENT_GENERIC, EVENT_NEW, Expire};
use crate::number::{int_arg, parse_i64};
use crate::slots::NEVER;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("copy", -3, WRITE | super::DENY_OOM, TWO_KEYS, Group::Generic, "6.2.0", "Copies a key's value to another key.", copy),
    command("move", 3, WRITE | FAST, ONE_KEY, Group::Generic, "1.0.0", "Moves a key to another database.", move_key),
    command("swapdb", 3, WRITE | FAST | super::DANGEROUS, Keys::None, Group::Server, "4.0.0", "Exchanges two databases.", swap_db),
];

const NO_DB: CommandError =
    CommandError(std::borrow::Cow::Borrowed("ERR DB index is out of range"));
const SAME: CommandError =
    CommandError(std::borrow::Cow::Borrowed("ERR source and destination objects are the same"));

/// A database's number.
fn db_arg(call: &Call<'_>, text: &[u8]) -> Result<u8, CommandError> {
    let number = i32::try_from(int_arg(text)?).map_err(|_| BEYOND_32_BITS)?;
    let number = u8::try_from(number).map_err(|_| NO_DB)?;
    match usize::from(number) < call.keys.database_count() {
        true => Ok(number),
        false => Err(NO_DB),
    }
}

fn copy(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (from, to) = (call.args[1], call.args[2]);
    let (mut db, mut replaces, mut at) = (call.db, false, 3);
    while let Some(word) = call.args.get(at) {
        match (word.to_ascii_lowercase().as_slice(), call.args.get(at + 1)) {
            (b"replace", _) => replaces = true,
            (b"db", Some(number)) => {
                db = db_arg(call, number)?;
                at += 1;
            }
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    if db == call.db && from == to {
        return Err(SAME);
    }
    let size = call.keys.size_of(call.db, from)?;
    // One more copy is logged.
    call.keys.take_room(size.saturating_mul(2))?;
    let Some(value) = call.keys.value(call.db, from)?.cloned() else {
        call.out.int(0);
        return Ok(());
    };
    let expire_ms = call.keys.expire_of(call.db, from)?.unwrap_or(NEVER);
    let is_there = call.keys.exists(db, to)?;
    if is_there && !replaces {
        call.out.int(0);
        return Ok(());
    }
    let expire = if expire_ms == NEVER { Expire::Never } else { Expire::At(expire_ms) };
    call.keys.put(db, to, value, expire)?;
    call.log_key_in(db, to)?;
    if is_there {
        // The old key is deleted first.
        call.keys.event(EVENT_NEW, "new", db, to);
    }
    call.keys.event(EVENT_GENERIC, "copy_to", db, to);
    call.out.int(1);
    Ok(())
}

fn move_key(call: &mut Call<'_>) -> Result<(), CommandError> {
    let key = call.args[1];
    let db = db_arg(call, call.args[2])?;
    if db == call.db {
        return Err(SAME);
    }
    if !call.keys.exists(call.db, key)? || call.keys.exists(db, key)? {
        call.out.int(0);
        return Ok(());
    }
    let Some((value, expire_ms)) = call.keys.take(call.db, key)? else { return Ok(()) };
    let expire = if expire_ms == NEVER { Expire::Never } else { Expire::At(expire_ms) };
    call.keys.place(db, key, value, expire)?;
    call.log(&[b"del", key]);
    call.log_key_in(db, key)?;
    call.event(EVENT_GENERIC, "move_from", key);
    call.keys.event(EVENT_GENERIC, "move_to", db, key);
    call.out.int(1);
    Ok(())
}

fn swap_db(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut dbs = [0; 2];
    for (at, which) in ["first", "second"].into_iter().enumerate() {
        let number = parse_i64(call.args[at + 1]).filter(|number| i32::try_from(*number).is_ok());
        let invalid = || CommandError::new(format!("ERR invalid {which} DB index"));
        dbs[at] = number.ok_or_else(invalid)?;
    }
    let in_range = |number: i64| {
        let number = u8::try_from(number).ok();
        let number = number.filter(|number| usize::from(*number) < call.keys.database_count());
        number.ok_or(NO_DB)
    };
    let [one, other] = [in_range(dbs[0])?, in_range(dbs[1])?];
    if one != other {
        call.keys.swap(one, other)?;
        call.log_in(one, &[crate::effects::SWAP, other.to_string().as_bytes()]);
    }
    call.out.ok();
    Ok(())
}
