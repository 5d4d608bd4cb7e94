//! Commands that are about connections, channels, transactions and the server, a file for each
//! family; commands on keys are in `kv`.

mod acl;
mod client;
mod cluster;
mod command;
mod config;
pub mod connection;
mod debug;
mod info;
mod latency;
mod memory;
mod monitor;
mod persistence;
mod pubsub;
mod replication;
pub mod scripting;
mod server;
mod slowlog;
pub mod transactions;

pub use acl::has_all_channels;
pub use client::describe;
#[cfg(test)]
pub use command::group_name;
pub use config::read_settings;
pub use connection::REDIS_VERSION;
pub use persistence::Saving;

use super::dispatch::Context;
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
type Run = fn(&mut Context<'_>) -> Result<Flow, CommandError>;

/// A line of a table of commands without keys.
const fn command(
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

const FAMILIES: &[&[DoorCommand]] = &[
    acl::COMMANDS,
    client::COMMANDS,
    cluster::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    debug::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    memory::COMMANDS,
    monitor::COMMANDS,
    persistence::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    slowlog::COMMANDS,
    transactions::COMMANDS,
    super::timeseries::COMMANDS,
];

/// All commands of the door.
pub fn all() -> impl Iterator<Item = &'static DoorCommand> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// What a command does that has subcommands, when it is said alone.
fn container(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    Err(CommandError::arity(context.info.name))
}

/// The words about a subcommand with too many arguments.
fn misused_subcommand(of: &str, name: &[u8]) -> CommandError {
    let name = String::from_utf8_lossy(name);
    let upper = of.to_ascii_uppercase();
    CommandError::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try {upper} HELP."
    ))
}

/// Answers the lines of a family's help, with what all have in common.
fn help(context: &mut Context<'_>, lines: &[&str]) -> Result<Flow, CommandError> {
    let name = context.info.first_name().to_ascii_uppercase();
    let out = &mut context.session.out;
    out.array(lines.len() + 3);
    out.simple(&format!("{name} <subcommand> [<argument> ...]. The subcommands:"));
    lines.iter().for_each(|line| out.simple(line));
    out.simple("HELP");
    out.simple("    This.");
    Ok(Flow::Next)
}
