//! The command line: `quipu serve`, `backup`, `export`, `import`, `kv`, `migrate`, `verify`.

/// Prints a line to standard output. Whoever closed it, as `head` does, reads no more lines.
macro_rules! print_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

#[path = "../../../cli/src/arguments.rs"]
mod arguments;
#[path = "../../../backup/src/lib.rs"]
mod backup;
mod banner;
#[cfg(feature = "s3")]
#[path = "../../../http-client/src/object_store.rs"]
mod bucket;
#[path = "../../../cli/src/checkpoint.rs"]
mod checkpoint;
#[path = "../../../http-client/src/client.rs"]
pub mod client;
pub mod export;
#[cfg(feature = "sql")]
mod export_parquet;
pub mod import;
#[cfg(feature = "sql")]
mod import_parquet;
pub mod kv;
#[path = "../../../cli/src/line_counter.rs"]
mod line_counter;
#[path = "../../../migrate/src/lib.rs"]
pub mod migrate;
mod peer_flags;
#[path = "../../../http-client/src/resp.rs"]
mod redis;
pub mod serve;
#[path = "../../../http-client/src/server_trust.rs"]
mod server_trust;
mod suggestions;
#[path = "../../../http-client/src/target_store.rs"]
mod target_store;
pub mod verify;

use crate::flags;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use suggestions::suggestion;

/// What went wrong in a command, and the exit code that tells scripts.
const FAILED: u8 = 1;
/// Exit code when standard output is closed: 128 + SIGPIPE, as shells report it.
const BROKEN_PIPE: u8 = 141;

/// The whole command line.
pub fn command() -> Command {
    Command::new("quipu")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Quipu keeps metrics: every sample durable, exact, and back at once.")
        .after_help(
            "quipu serve                 run the database in ./quipu-data on http://127.0.0.1:8428\n\
             quipu serve --help          all its flags\n\
             quipu COMMAND --help        those of another command",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(flags::serve_command())
        .subcommand(backup::command())
        .subcommand(export::command())
        .subcommand(import::command())
        .subcommand(kv::command())
        .subcommand(migrate::command())
        .subcommand(verify::command())
}

/// Runs the command that the arguments name.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    if let Some(error) = peer_flags::error_for_go_flags(&arguments) {
        eprintln!("quipu: {error}");
        return ExitCode::from(FAILED);
    }
    let go_flag = arguments.iter().skip(2).find_map(go_flag);
    let matches = match command().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => {
            return fail_to_parse(&error, &arguments, go_flag.as_deref());
        }
    };
    match dispatch(&matches) {
        Ok(code) => code,
        Err(error) if is_closed_output(&error) => ExitCode::from(BROKEN_PIPE),
        Err(error) => {
            eprintln!("quipu: {}", sentence(&error));
            ExitCode::from(FAILED)
        }
    }
}

/// Error: the reader of standard output has closed it, as `head` does.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
struct ClosedOutput;

/// Whether a write to standard output failed because its reader has closed it.
fn is_closed_output(error: &anyhow::Error) -> bool {
    // Errors of sockets have a context.
    let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.is::<ClosedOutput>() || error.downcast_ref::<io::Error>().is_some_and(is_broken)
}

/// The error of a write to standard output.
fn output_error(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => ClosedOutput.into(),
        _ => anyhow::Error::new(error).context("standard output"),
    }
}

/// Prints the parser's error or the help that was asked for, with a hint where a flag is unknown.
fn fail_to_parse(error: &clap::Error, arguments: &[OsString], go_flag: Option<&str>) -> ExitCode {
    let is_serve = arguments.get(1).is_some_and(|command| command == "serve");
    // clap takes the h of -httpListenAddr for -h and prints the help.
    if let Some(hint) = go_flag.filter(|_| is_serve).and_then(peer_flags::hint) {
        eprintln!("quipu serve: flags begin with two dashes; {hint}");
        return ExitCode::from(FAILED);
    }
    let _ = error.print();
    if let Some(hint) = unknown_flag_hint(error).filter(|_| is_serve) {
        eprintln!("\n{hint}");
    } else if let Some(hint) = suggestion(error, &command(), arguments) {
        eprintln!("\n{hint}");
    }
    ExitCode::from(error.exit_code() as u8)
}

/// The name of a flag with one dash, as Go's programs have them.
fn go_flag(argument: &OsString) -> Option<String> {
    let name = argument.to_str()?.strip_prefix('-')?;
    let name = name.split('=').next().filter(|name| 1 < name.len() && !name.starts_with('-'))?;
    Some(name.to_string())
}

/// A flag of `serve` that does what an unknown one does in another database, or is spelled alike.
fn unknown_flag_hint(error: &clap::Error) -> Option<String> {
    let given = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(given))) => given,
        _ => return None,
    };
    let name = given.trim_start_matches('-');
    let similar = || Some(format!("did you mean --{}?", flags::similar(name)?));
    peer_flags::hint(name).or_else(similar)
}

fn dispatch(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("backup", matches)) => backup::run(matches),
        Some(("export", matches)) => export::run(matches),
        Some(("import", matches)) => import::run(matches),
        Some(("kv", matches)) => kv::run(matches),
        Some(("migrate", matches)) => migrate::run(matches),
        Some(("verify", matches)) => verify::run(matches),
        _ => unreachable!("clap asks for a command"),
    }
}

/// The error and its causes, down to the first that has its own causes in its words.
fn sentence(error: &anyhow::Error) -> String {
    let mut words = Vec::new();
    for cause in error.chain() {
        words.push(cause.to_string());
        if tells_its_causes(cause) {
            break;
        }
    }
    words.join(": ")
}

/// Errors of the rooms below say all there is to say; those of others say their own part.
fn tells_its_causes(error: &(dyn Error + 'static)) -> bool {
    error.is::<store::Error>() || error.is::<wal::Error>() || error.is::<vfs::Error>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn each_cause_is_said_once() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let said = full().to_string();
        let file = || vfs::Error::new("append", std::path::Path::new("/d/log"), full());
        let opening = |error: store::Error| anyhow::Error::new(error).context("cannot open");
        let expected = format!("cannot open: append /d/log: {said}");
        assert_eq!(sentence(&opening(store::Error::Io(file()))), expected);
        assert_eq!(sentence(&opening(store::Error::Wal(wal::Error::Io(file())))), expected);
        let read = anyhow::Error::new(full()).context("file.progress").context("export");
        assert_eq!(sentence(&read), format!("export: file.progress: {said}"));
    }
}
