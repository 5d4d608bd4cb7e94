//! Scripts and functions: commands that run commands.

use super::{DoorCommand, Flow};
use crate::doors::redis::dispatch::Context;
use crate::doors::redis::out::Out;
use crate::doors::redis::scripting::{Flags, Job, Refusal, Scripting, run, sha1_hex};
use kv::commands::{
    ALLOW_BUSY, Group, Info, Keys, MAY_REPLICATE, MOVABLE_KEYS, NO_SCRIPT, READONLY, SKIP_MONITOR,
    STALE,
};
use kv::number::int_arg;
use kv::{CommandError, Reply as _};

/// A line of the table.
const fn row(
    name: &'static str,
    arity: i32,
    flags: u32,
    keys: Keys,
    since: &'static str,
    summary: &'static str,
    run: fn(&mut Context<'_>) -> Result<Flow, CommandError>,
) -> DoorCommand {
    let info = Info { name, arity, flags, keys, group: Group::Scripting, since, summary };
    DoorCommand { info, run }
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
    row("script", -2, 0, Keys::None, "2.6.0", "The scripts that the server has.", script),
    row("script|debug", 3, NO_SCRIPT, Keys::None, "3.2.0", "Chooses whether scripts are run step by step.", script),
    row("script|exists", -3, NO_SCRIPT, Keys::None, "2.6.0", "Which scripts the server has.", script),
    row("script|flush", -2, NO_SCRIPT | MAY_REPLICATE, Keys::None, "2.6.0", "Forgets all scripts.", script),
    row("script|help", 2, STALE, Keys::None, "5.0.0", "The subcommands in a few words.", script),
    row("script|kill", 2, NO_SCRIPT | ALLOW_BUSY, Keys::None, "2.6.0", "Ends the script that runs.", script),
    row("script|load", 3, NO_SCRIPT | STALE, Keys::None, "2.6.0", "Hands a script over, to be run by its digest.", script),
];

/// How many of the arguments behind a script are keys, and whether that can be.
fn key_count(context: &Context<'_>) -> Result<usize, CommandError> {
    let count = int_arg(context.args[2])?;
    let Ok(count) = usize::try_from(count) else {
        return Err(CommandError::new("ERR Number of keys can't be negative"));
    };
    if context.args.len() - 3 < count {
        return Err(CommandError::new("ERR Number of keys can't be greater than number of args"));
    }
    Ok(count)
}

fn eval(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let digest = sha1_hex(context.args[1]);
    run_script(context, &digest, true)
}

fn evalsha(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let digest = String::from_utf8_lossy(context.args[1]).to_ascii_lowercase();
    run_script(context, &digest, false)
}

/// What is answered when a script is not there.
const NO_SUCH_SCRIPT: CommandError =
    CommandError(std::borrow::Cow::Borrowed("NOSCRIPT No matching script. Please use EVAL."));

fn run_script(
    context: &mut Context<'_>,
    digest: &str,
    has_text: bool,
) -> Result<Flow, CommandError> {
    let key_count = key_count(context)?;
    let args = context.args;
    let redis = context.redis;
    let is_read_only = context.info.name.ends_with("_ro");
    let mut engine = redis.scripting.engine();
    let seed = context.keys.random();
    let script = match has_text {
        true => engine.script(&redis.scripting.busy, digest, args[1], seed)?,
        false => engine.cache.get(digest).ok_or(NO_SUCH_SCRIPT)?,
    };
    let (keys, arguments) = args[3..].split_at(key_count);
    may_run(context, script.flags, is_read_only)?;
    let job = Job {
        function: script.function,
        name: digest,
        keys,
        arguments,
        is_read_only: is_read_only || script.flags.no_writes,
        is_function: false,
    };
    let vm = engine.scripts_vm(&redis.scripting.busy, seed)?;
    run(context, vm, &job)?;
    Ok(Flow::Next)
}

/// Whether what a script says of itself allows it to run now.
fn may_run(context: &Context<'_>, flags: Flags, is_read_only: bool) -> Result<(), CommandError> {
    if flags.is_silent || flags.no_writes {
        return Ok(());
    }
    if is_read_only {
        return Err(CommandError::new(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    match context.redis.kv.failure() {
        Some(reason) => Err(CommandError::new(format!(
            "MISCONF Quipu takes no writes until it is restarted, for its log failed: {reason}"
        ))),
        None => Ok(()),
    }
}

/// The words about an unknown subcommand.
fn unknown(container: &str, name: &[u8]) -> CommandError {
    let name = String::from_utf8_lossy(name);
    let upper = container.to_ascii_uppercase();
    CommandError::new(format!("ERR unknown subcommand '{name}'. Try {upper} HELP."))
}

fn script(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let args = context.args;
    let name = args[1].to_ascii_lowercase();
    let redis = context.redis;
    let arity = |name: &'static str| Err(CommandError::arity(name));
    match (name.as_slice(), args.len()) {
        (b"load", 3) => {
            let digest = sha1_hex(args[2]);
            let mut engine = redis.scripting.engine();
            let seed = context.keys.random();
            engine.script(&redis.scripting.busy, &digest, args[2], seed)?;
            engine.cache.mark_loaded(&digest);
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
        _ => return Err(unknown("script", args[1])),
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

fn help(context: &mut Context<'_>, lines: &[&str]) {
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
