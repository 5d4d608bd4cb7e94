//! HyperLogLogs: how many different elements were seen, about. They are strings, of the bytes that
//! Redis has for them.

mod registers;

use super::{
    ADMIN, ALL_KEYS, Command, DENY_OOM, FAST, Group, Keys, MAY_REPLICATE, ONE_KEY, READONLY, WRITE,
    command,
};
use crate::call::Call;
use crate::error::CommandError;
use crate::keyspace::EVENT_STRING;
use crate::value::Str;
use registers::{Corrupt, Encoding, Registers, count, place_of};

const SECOND: Keys = Keys::Range { first: 2, last: 2, step: 1 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[Command] = &[
    command("pfadd", -2, WRITE | DENY_OOM | FAST, ONE_KEY, Group::HyperLogLog, "2.8.9", "Counts elements in.", pfadd),
    command("pfcount", -2, READONLY | MAY_REPLICATE, ALL_KEYS, Group::HyperLogLog, "2.8.9", "How many different elements were counted in, about, by any of the keys.", pfcount),
    command("pfdebug", 3, WRITE | DENY_OOM | ADMIN, SECOND, Group::HyperLogLog, "2.8.9", "How a key counts.", pfdebug),
    command("pfmerge", -2, WRITE | DENY_OOM, ALL_KEYS, Group::HyperLogLog, "2.8.9", "Has a key count what any of several counted.", pfmerge),
    command("pfselftest", 1, ADMIN, Keys::None, Group::HyperLogLog, "2.8.9", "Tests counting on elements of its own.", pfselftest),
];

const CORRUPT: CommandError =
    CommandError(std::borrow::Cow::Borrowed("INVALIDOBJ Corrupted HLL object detected"));

impl From<Corrupt> for CommandError {
    fn from(_: Corrupt) -> CommandError {
        CORRUPT
    }
}

fn not_valid() -> CommandError {
    CommandError::new("WRONGTYPE Key is not a valid HyperLogLog string value.")
}

/// The bytes of a key that counts, if there is such a key.
fn find<'a>(call: &'a mut Call<'_>, key: &[u8]) -> Result<Option<&'a mut Vec<u8>>, CommandError> {
    let Some(string) = call.get_mut::<Str>(key)? else { return Ok(None) };
    match string.with_bytes(registers::is_valid) {
        true => Ok(Some(string.bytes_mut())),
        false => Err(not_valid()),
    }
}

fn pfadd(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (key, elements) = (call.args[1], &call.args[2..]);
    let is_new = find(call, key)?.is_none();
    if is_new {
        *call.get_or_insert::<Str>(key)? = Str::from_vec(registers::empty());
    }
    let mut has_changed = is_new;
    let mut failed = None;
    if let Some(bytes) = find(call, key)? {
        for element in elements {
            let (index, value) = place_of(element);
            match registers::raise(bytes, index, value) {
                Ok(is_raised) => has_changed |= is_raised,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if has_changed {
            registers::forget_count(bytes);
        }
    }
    if has_changed {
        call.modified(key);
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    if has_changed {
        call.event(EVENT_STRING, "pfadd", key);
    }
    call.out.int(i64::from(has_changed));
    Ok(())
}

fn pfcount(call: &mut Call<'_>) -> Result<(), CommandError> {
    if 2 < call.args.len() {
        let mut merged = Registers::default();
        for key in &call.args[1..] {
            if let Some(bytes) = find(call, key)? {
                merged.merge(bytes)?;
            }
        }
        call.out.int(count(&merged));
        return Ok(());
    }
    let key = call.args[1];
    let Some(bytes) = find(call, key)? else {
        call.out.int(0);
        return Ok(());
    };
    if let Some(known) = registers::known_count(bytes) {
        call.out.int(known);
        return Ok(());
    }
    let mut merged = Registers::default();
    merged.merge(bytes)?;
    let counted = count(&merged);
    // The count is kept in the bytes, so that counting is a change.
    registers::keep_count(bytes, counted);
    call.modified(key);
    call.out.int(counted);
    Ok(())
}

fn pfmerge(call: &mut Call<'_>) -> Result<(), CommandError> {
    let target = call.args[1];
    let mut merged = Registers::default();
    let mut is_dense = false;
    for key in &call.args[1..] {
        if let Some(bytes) = find(call, key)? {
            is_dense |= Encoding::of(bytes) == Encoding::Dense;
            merged.merge(bytes)?;
        }
    }
    if find(call, target)?.is_none() {
        *call.get_or_insert::<Str>(target)? = Str::from_vec(registers::empty());
    }
    if let Some(bytes) = find(call, target)? {
        if is_dense {
            registers::make_dense(bytes)?;
        }
        for (index, value) in merged.set() {
            registers::raise(bytes, index, value)?;
        }
        registers::forget_count(bytes);
    }
    call.modified(target);
    call.event(EVENT_STRING, "pfadd", target);
    call.log_key(target)?;
    call.out.ok();
    Ok(())
}

fn pfdebug(call: &mut Call<'_>) -> Result<(), CommandError> {
    let (word, key) = (call.args[1].to_ascii_lowercase(), call.args[2]);
    let not_there = CommandError::new("ERR The specified key does not exist");
    let bytes = find(call, key)?.ok_or(not_there)?;
    match word.as_slice() {
        b"getreg" => {
            registers::make_dense(bytes)?;
            let mut merged = Registers::default();
            merged.merge(bytes)?;
            call.modified(key);
            call.log_key(key)?;
            call.out.array(registers::COUNT);
            merged.values().iter().for_each(|value| call.out.int(i64::from(*value)));
        }
        b"decode" => {
            let decoded = registers::decode(bytes);
            let words = "ERR HLL encoding is not sparse";
            call.out.text(&decoded.ok_or(CommandError::new(words))?);
        }
        b"encoding" => {
            let encoding = Encoding::of(bytes);
            call.out.simple(if encoding == Encoding::Dense { "dense" } else { "sparse" });
        }
        b"todense" => {
            let is_sparse = Encoding::of(bytes) == Encoding::Sparse;
            if is_sparse {
                registers::make_dense(bytes)?;
                call.modified(key);
                call.log_key(key)?;
            }
            call.out.int(i64::from(is_sparse));
        }
        _ => {
            let word = String::from_utf8_lossy(call.args[1]);
            let words = format!("ERR Unknown PFDEBUG subcommand '{word}'");
            return Err(CommandError::new(words));
        }
    }
    Ok(())
}

/// Elements that the test counts.
const SELF_TEST_ELEMENTS: u32 = 100_000;

fn pfselftest(call: &mut Call<'_>) -> Result<(), CommandError> {
    let mut bytes = registers::empty();
    for element in 0..SELF_TEST_ELEMENTS {
        let (index, value) = place_of(&element.to_le_bytes());
        registers::raise(&mut bytes, index, value)?;
    }
    let mut merged = Registers::default();
    merged.merge(&bytes)?;
    let error = (count(&merged) - i64::from(SELF_TEST_ELEMENTS)).abs();
    // Six standard errors.
    match error < i64::from(SELF_TEST_ELEMENTS / 20) {
        true => call.out.ok(),
        false => call.out.error("TESTFAILED Too big error"),
    }
    Ok(())
}
