//! Scripts and functions: commands that run commands.

use crate::commands::definition::{DoorCommand, Flow, container, misused_subcommand};
use crate::dispatch::Context;
use crate::out::Out;
use crate::scripting::{
    Conflict, Engine, Flags, Job, Library, Refusal, Scripting, keep_libraries, run, sha1_hex,
};
use kv::commands::{
    ALLOW_BUSY, DENY_OOM, Group, Keys, LOADING, MAY_REPLICATE, MOVABLE_KEYS, NO_SCRIPT, READONLY,
    SKIP_MONITOR, STALE, WRITE,
};
use kv::number::int_arg;
use kv::{CommandError, Reply as _};
use std::sync::MutexGuard;

/// A line of the table.
const fn row(
    name: &'static str,
    arity: i32,
    flags: u32,
    keys: Keys,
    since: &'static str,
    summary: &'static str,
    run: fn(&mut Context<'_, '_>) -> Result<Flow, CommandError>,
) -> DoorCommand {
    kv::commands::command(name, arity, flags, keys, Group::Scripting, since, summary, run)
}

/// Flags of what runs a script that may change keys.
const RUNS: u32 = NO_SCRIPT | SKIP_MONITOR | MAY_REPLICATE | STALE | MOVABLE_KEYS;
/// Flags of what runs one that may not.
const READS: u32 = NO_SCRIPT | SKIP_MONITOR | READONLY | STALE | MOVABLE_KEYS;
/// Where their keys stand.
const COUNTED: Keys = Keys::Counted { count_at: 2 };

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    row("eval", -3, RUNS, COUNTED, "2.6.0", "Runs a script.", eval),
    row("eval_ro", -3, READS, COUNTED, "7.0.0", "Runs a script that changes nothing.", eval),
    row("evalsha", -3, RUNS, COUNTED, "2.6.0", "Runs a script that the server has, by its digest.", evalsha),
    row("evalsha_ro", -3, READS, COUNTED, "7.0.0", "The same with one that changes nothing.", evalsha),
    row("script", -2, 0, Keys::None, "2.6.0", "The scripts that the server has.", container),
    row("script|debug", 3, NO_SCRIPT, Keys::None, "3.2.0", "Chooses whether scripts are run step by step.", script),
    row("script|exists", -3, NO_SCRIPT, Keys::None, "2.6.0", "Which scripts the server has.", script),
    row("script|flush", -2, NO_SCRIPT | MAY_REPLICATE, Keys::None, "2.6.0", "Forgets all scripts.", script),
    row("script|help", 2, LOADING | STALE, Keys::None, "5.0.0", "The subcommands in a few words.", script),
    row("script|kill", 2, NO_SCRIPT | ALLOW_BUSY, Keys::None, "2.6.0", "Ends the script that runs.", script),
    row("script|load", 3, NO_SCRIPT | STALE, Keys::None, "2.6.0", "Hands a script over, to be run by its digest.", script),
    row("fcall", -3, RUNS, COUNTED, "7.0.0", "Calls a function.", fcall),
    row("fcall_ro", -3, READS, COUNTED, "7.0.0", "Calls a function that changes nothing.", fcall),
    row("function", -2, 0, Keys::None, "7.0.0", "The libraries of functions that the server has.", container),
    row("function|delete", 3, NO_SCRIPT | WRITE, Keys::None, "7.0.0", "Removes a library.", function_delete),
    row("function|dump", 2, NO_SCRIPT, Keys::None, "7.0.0", "All libraries as bytes.", function_dump),
    row("function|flush", -2, NO_SCRIPT | WRITE, Keys::None, "7.0.0", "Removes all libraries.", function_flush),
    row("function|help", 2, LOADING | STALE, Keys::None, "7.0.0", "The subcommands in a few words.", function_help),
    row("function|kill", 2, NO_SCRIPT | ALLOW_BUSY, Keys::None, "7.0.0", "Ends the function that runs.", function_kill),
    row("function|list", -2, NO_SCRIPT, Keys::None, "7.0.0", "Tells of libraries and their functions.", function_list),
    row("function|load", -3, NO_SCRIPT | WRITE | DENY_OOM, Keys::None, "7.0.0", "Adds a library.", function_load),
    row("function|restore", -3, NO_SCRIPT | WRITE | DENY_OOM, Keys::None, "7.0.0", "Adds libraries from bytes.", function_restore),
    row("function|stats", 2, NO_SCRIPT | ALLOW_BUSY, Keys::None, "7.0.0", "Tells of the function that runs.", function_stats_of),
];

/// How many of the arguments behind a script are keys, and whether that can be.
fn key_count(context: &Context<'_, '_>) -> Result<usize, CommandError> {
    let count = int_arg(context.args[2])?;
    let Ok(count) = usize::try_from(count) else {
        return Err(CommandError::new("ERR Number of keys can't be negative"));
    };
    if context.args.len() - 3 < count {
        return Err(CommandError::new("ERR Number of keys can't be greater than number of args"));
    }
    Ok(count)
}

fn eval(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let digest = sha1_hex(context.args[1]);
    run_script(context, &digest, true)
}

fn evalsha(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    if context.args[1].len() != DIGEST_SIZE {
        return Err(NO_SUCH_SCRIPT);
    }
    let digest = String::from_utf8_lossy(context.args[1]).to_ascii_lowercase();
    run_script(context, &digest, false)
}

/// Letters of a digest.
const DIGEST_SIZE: usize = 40;
/// What is answered when a script is not there.
const NO_SUCH_SCRIPT: CommandError =
    CommandError(std::borrow::Cow::Borrowed("NOSCRIPT No matching script. Please use EVAL."));

fn run_script(
    context: &mut Context<'_, '_>,
    digest: &str,
    has_text: bool,
) -> Result<Flow, CommandError> {
    let key_count = key_count(context)?;
    let args = context.args;
    let redis = context.redis;
    let is_read_only = context.info.name.ends_with("_ro");
    let mut engine = redis.scripting.engine();
    let seed = context.keys.random();
    let body = has_text.then_some(args[1]);
    let script = engine.script(&redis.scripting.busy, digest, body, seed)?;
    let script = script.ok_or(NO_SUCH_SCRIPT)?;
    let (keys, arguments) = args[3..].split_at(key_count);
    may_run(context, script.flags, is_read_only)?;
    let job = Job {
        function: script.function,
        name: digest,
        keys,
        arguments,
        is_read_only: is_read_only || script.flags.no_writes,
        is_function: false,
        allows_growth: script.flags.allow_oom,
    };
    let vm = engine.scripts_vm(&redis.scripting.busy, seed)?;
    run(context, vm, &job)?;
    Ok(Flow::Next)
}

/// Whether what a script says of itself allows it to run now.
fn may_run(
    context: &Context<'_, '_>,
    flags: Flags,
    is_read_only: bool,
) -> Result<(), CommandError> {
    if flags.is_silent || flags.no_writes {
        return Ok(());
    }
    if is_read_only {
        return Err(CommandError::new(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    if context.hub.settings.hot.refuses_growth && !flags.allow_oom {
        return Err(CommandError::new(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
        ));
    }
    match context.redis.refusal_for(context.session.is_primary) {
        Some(reason) => Err(CommandError::new(format!("MISCONF Quipu takes no writes: {reason}"))),
        None => context.redis.check_replicas(&context.hub.settings, context.keys.now_ms()),
    }
}

fn script(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let args = context.args;
    let name = args[1].to_ascii_lowercase();
    let redis = context.redis;
    let arity = |name: &'static str| Err(CommandError::arity(name));
    match (name.as_slice(), args.len()) {
        (b"load", 3) => {
            let digest = sha1_hex(args[2]);
            let mut engine = redis.scripting.engine();
            let seed = context.keys.random();
            engine.script(&redis.scripting.busy, &digest, Some(args[2]), seed)?;
            engine.cache.keep_source(&digest, args[2]);
            context.session.out.text(&digest);
        }
        (b"load", _) => return arity("script|load"),
        (b"exists", 3..) => {
            let engine = redis.scripting.engine();
            context.session.out.array(args.len() - 2);
            for digest in &args[2..] {
                let digest = String::from_utf8_lossy(digest).to_ascii_lowercase();
                context.session.out.int(i64::from(engine.cache.contains(&digest)));
            }
        }
        (b"exists", _) => return arity("script|exists"),
        (b"flush", _) => {
            if !is_plain_flush(args) {
                let words = "ERR SCRIPT FLUSH only support SYNC|ASYNC option";
                return Err(CommandError::new(words));
            }
            redis.scripting.engine().flush();
            context.session.out.ok();
        }
        (b"kill", 2) => {
            refused(redis.scripting.busy.kill(false), false)?;
            context.session.out.ok();
        }
        (b"kill", _) => return arity("script|kill"),
        (b"debug", 3) => match args[2].to_ascii_lowercase().as_slice() {
            b"no" => context.session.out.ok(),
            b"yes" | b"sync" => {
                return Err(CommandError::new("ERR scripts cannot be run step by step here"));
            }
            _ => return Err(CommandError::new("ERR Use SCRIPT DEBUG YES/SYNC/NO")),
        },
        (b"debug", _) => return arity("script|debug"),
        (b"help", 2) => help(context, SCRIPT_HELP),
        (b"help", _) => return arity("script|help"),
        _ => return Err(misused_subcommand("script", args[1])),
    }
    Ok(Flow::Next)
}

/// Whether the words behind `FLUSH` are none or one of the two.
fn is_plain_flush(args: &[&[u8]]) -> bool {
    match args {
        [_, _] => true,
        [_, _, how] => how.eq_ignore_ascii_case(b"sync") || how.eq_ignore_ascii_case(b"async"),
        _ => false,
    }
}

/// Why a script was not ended, in words.
pub fn refused(killed: Result<(), Refusal>, is_function: bool) -> Result<(), CommandError> {
    killed.map_err(|refusal| match refusal {
        Refusal::Idle => CommandError::new("NOTBUSY No scripts in execution right now."),
        Refusal::OtherKind => busy_error(!is_function),
        Refusal::HasWritten => CommandError::new(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
        ),
    })
}

/// What others hear while a script runs for too long.
pub fn busy_error(is_function: bool) -> CommandError {
    let kill = if is_function { "FUNCTION" } else { "SCRIPT" };
    CommandError::new(format!(
        "BUSY Redis is busy running a script. You can only call {kill} KILL or SHUTDOWN NOSAVE."
    ))
}

const SCRIPT_HELP: &[&str] = &[
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DEBUG (YES|SYNC|NO)",
    "    Only NO: scripts are not run step by step.",
    "EXISTS <sha1> [<sha1> ...]",
    "    1 for each script that the server has, 0 for others.",
    "FLUSH [ASYNC|SYNC]",
    "    Forgets all scripts.",
    "KILL",
    "    Ends the script that runs, unless it has written.",
    "LOAD <script>",
    "    Hands a script over without running it.",
    "HELP",
    "    Prints this help.",
];

fn help(context: &mut Context<'_, '_>, lines: &[&str]) {
    context.session.out.array(lines.len());
    lines.iter().for_each(|line| context.session.out.simple(line));
}

/// Writes what runs.
pub fn function_stats(scripting: &Scripting, out: &mut Out) {
    let running = scripting.busy.shown().filter(|running| running.is_function);
    out.map(2);
    out.text("running_script");
    match running {
        None => out.null(),
        Some(running) => {
            out.map(3);
            out.text("name");
            out.text(&running.name);
            out.text("command");
            out.array(running.command.len());
            running.command.iter().for_each(|word| out.bulk(word));
            out.text("duration_ms");
            let millis = running.started.elapsed().as_millis();
            out.int(i64::try_from(millis).unwrap_or(i64::MAX));
        }
    }
    let (libraries, functions) = scripting.counts();
    out.text("engines");
    out.map(1);
    out.text("LUA");
    out.map(2);
    out.text("libraries_count");
    out.len(libraries);
    out.text("functions_count");
    out.len(functions);
}

// ---- functions ----

fn fcall(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let redis = context.redis;
    let args = context.args;
    let is_read_only = context.info.name.ends_with("_ro");
    let engine = redis.scripting.engine();
    let name = String::from_utf8_lossy(args[1]);
    let (function, vm) =
        engine.function(&name).ok_or(CommandError::new("ERR Function not found"))?;
    let count = int_arg(args[2]);
    let count = count.map_err(|_| CommandError::new("ERR Bad number of keys provided"))?;
    let Ok(count) = usize::try_from(count) else {
        return Err(CommandError::new("ERR Number of keys can't be negative"));
    };
    if args.len() - 3 < count {
        return Err(CommandError::new("ERR Number of keys can't be greater than number of args"));
    }
    may_run(context, function.flags, is_read_only)?;
    let (keys, arguments) = args[3..].split_at(count);
    let callback = vm.lua.registry_value(&function.function);
    let callback = callback.map_err(|error| CommandError::new(format!("ERR {error}")))?;
    let job = Job {
        function: callback,
        name: &function.name,
        keys,
        arguments,
        is_read_only: is_read_only || function.flags.no_writes,
        is_function: true,
        allows_growth: function.flags.allow_oom,
    };
    run(context, vm, &job)?;
    Ok(Flow::Next)
}

fn function_load(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let redis = context.redis;
    let (mut replaces, mut at) = (false, 2);
    while at + 1 < context.args.len() {
        if !context.args[at].eq_ignore_ascii_case(b"replace") {
            let word = String::from_utf8_lossy(context.args[at]);
            return Err(CommandError::new(format!("ERR Unknown option given: {word}")));
        }
        replaces = true;
        at += 1;
    }
    let Some(code) = context.args.get(at) else {
        return Err(CommandError::new("ERR Function code is missing"));
    };
    let conflict = if replaces { Conflict::Replace } else { Conflict::Refuse };
    redis.scripting.check_libraries()?;
    let mut engine = redis.scripting.engine();
    let name = engine.add_library(&redis.scripting.busy, context.keys.random(), code, conflict)?;
    Ok(answer_when_kept(context, engine, move |out| out.text(&name)))
}

/// Answers once the libraries are on disk, as they are now. Others are served meanwhile.
fn answer_when_kept(
    context: &mut Context<'_, '_>,
    engine: MutexGuard<'_, Engine>,
    answer: impl FnOnce(&mut Out) + Send + 'static,
) -> Flow {
    let (scripting, kv) = (&context.redis.scripting, context.redis.kv.clone());
    let number = scripting.note_libraries(&engine);
    drop(engine);
    let keeping = scripting.keeping.clone();
    if keeping.is_kept(number) {
        answer(&mut context.session.out);
        return Flow::Next;
    }
    context.session.work = Some(Box::new(move |out| match keep_libraries(&keeping, &kv, number) {
        Ok(()) => answer(out),
        Err(error) => out.error(&error.0),
    }));
    Flow::Work
}

fn function_delete(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let redis = context.redis;
    redis.scripting.check_libraries()?;
    let mut engine = redis.scripting.engine();
    let name = String::from_utf8_lossy(context.args[2]);
    if !engine.remove_library(&name) {
        return Err(CommandError::new("ERR Library not found"));
    }
    Ok(answer_when_kept(context, engine, |out| out.ok()))
}

fn function_flush(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    if 3 < context.args.len() {
        return Err(misused_subcommand("function", context.args[1]));
    }
    if !is_plain_flush(context.args) {
        return Err(CommandError::new("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    let redis = context.redis;
    let mut engine = redis.scripting.engine();
    redis.scripting.give_libraries_up(&redis.kv)?;
    engine.flush_libraries();
    Ok(answer_when_kept(context, engine, |out| out.ok()))
}

fn function_dump(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let dump = context.redis.scripting.engine().dump();
    context.session.out.bulk(&dump);
    Ok(Flow::Next)
}

fn function_restore(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let redis = context.redis;
    let policy = context.args.get(3).map(|word| word.to_ascii_lowercase());
    let (conflict, flushes) = match (policy.as_deref(), context.args.len()) {
        (_, 5..) => return Err(misused_subcommand("function", context.args[1])),
        (None | Some(b"append"), _) => (Conflict::Refuse, false),
        (Some(b"replace"), _) => (Conflict::Replace, false),
        (Some(b"flush"), _) => (Conflict::Refuse, true),
        _ => {
            return Err(CommandError::new(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    if !flushes {
        redis.scripting.check_libraries()?;
    }
    let mut engine = redis.scripting.engine();
    let seed = context.keys.random();
    engine.restore(&redis.scripting.busy, seed, context.args[2], conflict, flushes)?;
    redis.scripting.give_libraries_up(&redis.kv)?;
    Ok(answer_when_kept(context, engine, |out| out.ok()))
}

fn function_list(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (mut pattern, mut with_code, mut at) = (None, false, 2);
    while let Some(word) = context.args.get(at) {
        match word.to_ascii_lowercase().as_slice() {
            b"withcode" if !with_code => with_code = true,
            b"libraryname" if pattern.is_none() => {
                at += 1;
                let Some(name) = context.args.get(at) else {
                    return Err(CommandError::new("ERR library name argument was not given"));
                };
                pattern = Some(name.to_ascii_lowercase());
            }
            _ => {
                let word = String::from_utf8_lossy(word);
                return Err(CommandError::new(format!("ERR Unknown argument {word}")));
            }
        }
        at += 1;
    }
    let engine = context.redis.scripting.engine();
    let is_wanted = |library: &&Library| match &pattern {
        Some(pattern) => kv::glob::matches(pattern, library.name.to_ascii_lowercase().as_bytes()),
        None => true,
    };
    let libraries: Vec<&Library> = engine.libraries().filter(is_wanted).collect();
    let out = &mut context.session.out;
    out.array(libraries.len());
    libraries.iter().for_each(|library| write_library(out, library, with_code));
    Ok(Flow::Next)
}

fn write_library(out: &mut Out, library: &Library, with_code: bool) {
    out.map(3 + usize::from(with_code));
    out.text("library_name");
    out.text(&library.name);
    out.text("engine");
    out.text("LUA");
    out.text("functions");
    out.array(library.functions.len());
    for function in &library.functions {
        out.map(3);
        out.text("name");
        out.text(&function.name);
        out.text("description");
        out.bulk_or_null(function.description.as_deref());
        out.text("flags");
        let flags = function.flags.names();
        out.set(flags.len());
        flags.iter().for_each(|flag| out.simple(flag));
    }
    if with_code {
        out.text("library_code");
        out.bulk(&library.code);
    }
}

fn function_kill(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    refused(context.redis.scripting.busy.kill(true), true)?;
    context.session.out.ok();
    Ok(Flow::Next)
}

fn function_stats_of(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    function_stats(&context.redis.scripting, &mut context.session.out);
    Ok(Flow::Next)
}

fn function_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(context, FUNCTION_HELP);
    Ok(Flow::Next)
}

const FUNCTION_HELP: &[&str] = &[
    "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DELETE <library>",
    "    Removes a library.",
    "DUMP",
    "    All libraries as bytes for RESTORE.",
    "FLUSH [ASYNC|SYNC]",
    "    Removes all libraries.",
    "KILL",
    "    Ends the function that runs, unless it has written.",
    "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
    "    Libraries with their functions, and with their code if wanted.",
    "LOAD [REPLACE] <code>",
    "    Adds a library, whose first line is #!lua name=<name>.",
    "RESTORE <bytes> [FLUSH|APPEND|REPLACE]",
    "    Adds the libraries of a DUMP.",
    "STATS",
    "    The function that runs, and how many there are.",
    "HELP",
    "    Prints this help.",
];
