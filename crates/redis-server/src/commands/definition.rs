//! Definition of a command on connections and the server: a row of its family's table.

use crate::dispatch::Context;
use kv::commands::{Group, Keys, Line};
use kv::{CommandError, Reply as _};

/// What comes after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next one.
    Next,
    /// It waits for a key; nothing more is executed until then.
    Wait,
    /// It was not executed: it waits until others may go on.
    Pause,
    /// The session's work is to be done; it writes the answer.
    Work,
    /// The connection is a replica's from now on.
    Replicate,
    /// The connection ends once the answer is sent.
    Close,
}

/// A command of the door.
pub type DoorCommand = Line<Run>;

/// Does a command: writes the answer, or returns the error that is answered.
pub type Run = fn(&mut Context<'_, '_>) -> Result<Flow, CommandError>;

/// A line of a table of commands without keys.
pub const fn command(
    name: &'static str,
    arity: i32,
    flags: u32,
    group: Group,
    since: &'static str,
    summary: &'static str,
    run: Run,
) -> DoorCommand {
    kv::commands::command(name, arity, flags, Keys::None, group, since, summary, run)
}

/// What a command does that has subcommands, when it is said alone.
pub fn container(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    Err(CommandError::arity(context.info.name))
}

/// The words about a subcommand with too many arguments.
pub fn misused_subcommand(of: &str, name: &[u8]) -> CommandError {
    let name = String::from_utf8_lossy(name);
    let upper = of.to_ascii_uppercase();
    CommandError::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try {upper} HELP."
    ))
}

/// Answers the lines of a family's help, with what all have in common.
pub fn help(context: &mut Context<'_, '_>, lines: &[&str]) -> Result<Flow, CommandError> {
    let name = context.info.first_name().to_ascii_uppercase();
    let out = &mut context.session.out;
    out.array(lines.len() + 3);
    out.simple(&format!("{name} <subcommand> [<argument> ...]. The subcommands:"));
    lines.iter().for_each(|line| out.simple(line));
    out.simple("HELP");
    out.simple("    This.");
    Ok(Flow::Next)
}
