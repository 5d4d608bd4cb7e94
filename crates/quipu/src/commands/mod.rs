//! The command line: `quipu serve`, `backup`, `export`, `import`, `kv`, `migrate`, `verify`.

mod banner;
pub mod export;
#[cfg(feature = "sql")]
mod export_parquet;
pub mod import;
#[cfg(feature = "sql")]
mod import_parquet;
pub mod kv;
mod peer_flags;
pub mod serve;
mod suggestions;
pub mod verify;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use cli::error_text::sentence;
use net::flags;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
