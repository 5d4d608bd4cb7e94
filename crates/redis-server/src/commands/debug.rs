//! `DEBUG`: what test suites ask for. Off unless `--redis.enable-debug-command` allows it.

use super::persistence::save;
use crate::commands::definition::{DoorCommand, Flow, Run, command, help};
use crate::dispatch::Context;
use kv::commands::{ADMIN, Group, LOADING, NO_SCRIPT, STALE};
use kv::error::{NO_KEY, SYNTAX};
use kv::number::{float_arg, int_arg};
use kv::value::{Stored as _, Str};
use kv::{CommandError, Mode, Reply as _};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// The longest sleep, in seconds: nobody else is served meanwhile.
const SLEEP_MAX_S: f64 = 60.0;
/// Keys that one command may make.
const POPULATE_MAX: i64 = 10_000_000;
/// Keys that are logged as one record while many are made.
const POPULATE_STEP: i64 = 1000;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("debug", -2, ADMIN | NO_SCRIPT | LOADING | STALE, Group::Server, "1.0.0", "What test suites ask for.", debug),
];

fn debug(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let is_local = context.session.peer.is_none_or(|peer| peer.ip().is_loopback());
    let is_allowed = match context.redis.app.config.redis_debug.as_str() {
        "yes" => true,
        "local" => is_local,
        _ => false,
    };
    if !is_allowed {
        return Err(CommandError::new(
            "ERR DEBUG command not allowed. Start the server with --redis.enable-debug-command=local, and run it from a local connection",
        ));
    }
    let name = context.args[1].to_ascii_lowercase();
    let argc = context.args.len();
    match SUBCOMMANDS.iter().find(|one| one.name.as_bytes() == name && one.argc.contains(&argc)) {
        Some(subcommand) => (subcommand.run)(context),
        None => {
            let word = String::from_utf8_lossy(context.args[1]);
            Err(CommandError::new(format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try DEBUG HELP."
            )))
        }
    }
}

/// A word that `DEBUG` knows.
struct Subcommand {
    name: &'static str,
    /// Arguments with both names.
    argc: RangeInclusive<usize>,
    run: Run,
}

const fn subcommand(name: &'static str, argc: RangeInclusive<usize>, run: Run) -> Subcommand {
    Subcommand { name, argc, run }
}

const ANY: usize = usize::MAX;

#[rustfmt::skip] // a table
const SUBCOMMANDS: &[Subcommand] = &[
    subcommand("change-repl-id", 2..=2, change_replication_id),
    subcommand("digest", 2..=2, digest),
    subcommand("digest-value", 2..=ANY, digest_values),
    subcommand("error", 3..=3, error),
    subcommand("help", 2..=2, show_help),
    subcommand("htstats", 3..=ANY, no_statistics),
    subcommand("htstats-key", 3..=ANY, no_statistics),
    subcommand("loadaof", 2..=ANY, reload),
    subcommand("log", 3..=3, log),
    subcommand("object", 3..=ANY, object),
    subcommand("panic", 2..=2, panic),
    subcommand("populate", 3..=5, populate),
    subcommand("protocol", 3..=3, protocol),
    subcommand("reload", 2..=ANY, reload),
    subcommand("sdslen", 3..=3, sds_len),
    subcommand("set-active-expire", 3..=3, set_active_expire),
    subcommand("set-disable-deny-scripts", 3..=3, set_disable_deny_scripts),
    subcommand("sleep", 3..=3, sleep),
    subcommand("stringmatch-len", 4..=4, string_match),
    // Settings of parts of Redis that Quipu does not have: accepted, without effect.
    subcommand("aof-flush-sleep", 2..=ANY, done),
    subcommand("client-enforce-reply-list", 2..=ANY, done),
    subcommand("config-rewrite-force-all", 2..=ANY, done),
    subcommand("dict-resizing", 2..=ANY, done),
    subcommand("jmap", 2..=ANY, done),
    subcommand("pause-cron", 2..=ANY, done),
    subcommand("quicklist-packed-threshold", 2..=ANY, done),
    subcommand("replicate", 2..=ANY, done),
    subcommand("replybuffer", 2..=ANY, done),
    subcommand("set-skip-checksum-validation", 2..=ANY, done),
];

fn done(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.session.out.ok();
    Ok(Flow::Next)
}

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let names: Vec<String> = SUBCOMMANDS.iter().map(|one| one.name.to_ascii_uppercase()).collect();
    let lines: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| *name != "HELP").collect();
    help(context, &lines)
}

/// Panics, as a fault of the server would. Redis ends then; here the client's connection does.
fn panic(_: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    panic!("DEBUG PANIC");
}

fn set_active_expire(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.keys.expires_by_itself = int_arg(context.args[2])? != 0;
    done(context)
}

fn set_disable_deny_scripts(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.hub.lets_scripts_debug = context.args[2] == b"1";
    done(context)
}

fn reload(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    match context.mode {
        Mode::Client => save(context),
        _ => Err(CommandError::new("ERR DEBUG RELOAD is not allowed in transactions and scripts")),
    }
}

fn error(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    Err(CommandError::new(String::from_utf8_lossy(context.args[2]).into_owned()))
}

fn log(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    tracing::info!("DEBUG LOG: {}", String::from_utf8_lossy(context.args[2]));
    done(context)
}

fn change_replication_id(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let parts = (0..5).map(|_| format!("{:08x}", context.keys.random() & 0xffff_ffff));
    context.hub.replication_id = parts.collect();
    done(context)
}

fn no_statistics(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.session.out.verbatim("txt", b"");
    Ok(Flow::Next)
}

/// Keeps everybody waiting, as its users want it.
fn sleep(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let seconds = float_arg(context.args[2])?;
    if !(0.0..=SLEEP_MAX_S).contains(&seconds) {
        return Err(CommandError::new("ERR DEBUG SLEEP takes 0 to 60 seconds"));
    }
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
        std::thread::park_timeout(left);
    }
    done(context)
}

fn object(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let slot = context.keys.slot(context.session.db, context.args[2])?.ok_or(NO_KEY)?;
    let mut encoded = Vec::new();
    slot.value.encode(&mut encoded);
    let line = format!(
        "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:0",
        slot.value.encoding(),
        encoded.len(),
        slot.used_at
    );
    context.session.out.simple(&line);
    Ok(Flow::Next)
}

fn sds_len(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let key = context.args[2];
    let slot = context.keys.slot(context.session.db, key)?.ok_or(NO_KEY)?;
    let string = Str::of(&slot.value).ok_or(CommandError::new("ERR Not an sds encoded string."))?;
    let (key_len, len) = (key.len(), string.len());
    context.session.out.simple(&format!(
        "key_sds_len:{key_len}, key_sds_avail:0, key_zmalloc: {key_len}, val_sds_len:{len}, val_sds_avail:0, val_zmalloc: {len}"
    ));
    Ok(Flow::Next)
}

fn string_match(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let size = usize::try_from(int_arg(context.args[2])?).map_err(|_| SYNTAX)?;
    if 1 << 20 < size {
        return Err(CommandError::new("ERR DEBUG STRINGMATCH-LEN takes 1048576 bytes at most"));
    }
    let fits = kv::glob::matches(context.args[3], &vec![b'a'; size]);
    context.session.out.int(i64::from(fits));
    Ok(Flow::Next)
}

/// Makes keys `PREFIX:0`, `PREFIX:1`, ... unless they are there.
fn populate(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let count = int_arg(context.args[2])?;
    if !(0..=POPULATE_MAX).contains(&count) {
        return Err(kv::error::OUT_OF_RANGE);
    }
    let prefix = context.args.get(3).copied().unwrap_or(b"key");
    let size = match context.args.get(4) {
        Some(text) => usize::try_from(int_arg(text)?).map_err(|_| SYNTAX)?,
        None => 0,
    };
    if kv::commands::string::STRING_SIZE_MAX < size {
        return Err(kv::error::OUT_OF_RANGE);
    }
    let set = kv::commands::find(b"set").ok_or(SYNTAX)?;
    let mut key = Vec::new();
    for number in 0..count {
        key.clear();
        key.extend_from_slice(prefix);
        key.extend_from_slice(format!(":{number}").as_bytes());
        if context.keys.exists(context.session.db, &key)? {
            continue;
        }
        let mut value = format!("value:{number}").into_bytes();
        if 0 < size {
            value.resize(size, 0);
        }
        let args: [&[u8]; 3] = [b"set", &key, &value];
        let (db, mode) = (context.session.db, Mode::Inside);
        kv::Call::run(context.keys, db, set, &args, &mut kv::Discard, mode);
        if number % POPULATE_STEP == 0 || kv::Kv::is_record_full(context.keys) {
            context.redis.kv.commit(context.keys).map_err(|_| SYNTAX)?;
        }
    }
    done(context)
}

#[allow(clippy::approx_constant, reason = "the number that clients expect of this order")]
fn protocol(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let out = &mut context.session.out;
    match context.args[2].to_ascii_lowercase().as_slice() {
        b"string" => out.text("Hello World"),
        b"integer" => out.int(12345),
        // What clients expect, and no better known number.
        b"double" => out.double(3141.0 / 1000.0),
        b"null" => out.null(),
        b"array" => {
            out.array(3);
            (0..3).for_each(|number| out.int(number));
        }
        b"set" => {
            out.set(3);
            (0..3).for_each(|number| out.int(number));
        }
        b"map" => {
            out.map(3);
            for number in 0..3 {
                out.int(number);
                out.bool(number == 1);
            }
        }
        b"attrib" => {
            if out.version() < 3 {
                out.text("Some real reply following the attribute");
                return Ok(Flow::Next);
            }
            let attribute = b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n";
            out.0.bytes_mut().extend_from_slice(attribute);
            out.text("Some real reply following the attribute");
        }
        b"push" => {
            out.push(2);
            out.text("server-cpu-usage");
            out.int(42);
        }
        b"verbatim" => out.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => out.bool(true),
        b"false" => out.bool(false),
        b"bignum" => out.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(CommandError::new(
                "ERR Wrong protocol type name. Please use one of the following: string|integer|double|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(Flow::Next)
}

/// 160 bits of bytes; what is equal gives equal ones.
fn hash(bytes: &[u8]) -> [u8; 20] {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let mut hash = [0; 20];
    hash.copy_from_slice(digest.as_ref());
    hash
}

fn mix(all: &mut [u8; 20], one: [u8; 20]) {
    all.iter_mut().zip(one).for_each(|(all, one)| *all ^= one);
}

fn hex(bytes: [u8; 20]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let mut all = [0; 20];
    for db in 0..context.keys.database_count() {
        let db = u8::try_from(db).unwrap_or(u8::MAX);
        let scan = context.keys.scan(db, 0, usize::MAX, |key, value| {
            let mut bytes = vec![db];
            bytes.extend_from_slice(key);
            value.encode(&mut bytes);
            mix(&mut all, hash(&bytes));
        })?;
        scan.complete()?;
    }
    context.session.out.simple(&hex(all));
    Ok(Flow::Next)
}

fn digest_values(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let names = &context.args[2..];
    context.session.out.array(names.len());
    for key in names {
        let mut bytes = Vec::new();
        let slot = context.keys.slot(context.session.db, key)?;
        let is_there = slot.is_some();
        if let Some(slot) = slot {
            slot.value.encode(&mut bytes);
        }
        let shown = if is_there { hex(hash(&bytes)) } else { hex([0; 20]) };
        context.session.out.text(&shown);
    }
    Ok(Flow::Next)
}
