//! The command line: `quipu serve`, `backup`, `export`, `import`, `kv`, `migrate`, `verify`.

mod arguments;
mod backup;
#[cfg(feature = "s3")]
mod bucket;
mod checkpoint;
pub mod client;
pub mod export;
#[cfg(feature = "sql")]
mod export_parquet;
pub mod import;
#[cfg(feature = "sql")]
mod import_parquet;
pub mod kv;
pub mod migrate;
mod redis;
pub mod serve;
mod target_store;
pub mod verify;

use crate::flags;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

/// What went wrong in a command, and the exit code that tells scripts.
const FAILED: u8 = 1;

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
    let is_serve = arguments.get(1).is_some_and(|command| command == "serve");
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            if let Some(flag) = meant(&error).filter(|_| is_serve) {
                eprintln!("\ndid you mean --{flag}?");
            }
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match dispatch(&matches) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("quipu: {}", sentence(&error));
            ExitCode::from(FAILED)
        }
    }
}

/// The flag of `serve` that is much like one which is not known.
fn meant(error: &clap::Error) -> Option<&'static str> {
    let given = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(given))) => given,
        _ => return None,
    };
    flags::similar(given.strip_prefix("--")?)
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
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
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
