//! Commands that are about connections, channels, transactions and the server, a file for each
//! family; commands on keys are in `kv`.

mod connection;
mod pubsub;
mod server;
mod transactions;

use super::dispatch::Context;
use kv::CommandError;
use kv::commands::{Group, Info, Keys};
use std::collections::HashMap;
use std::sync::OnceLock;

/// What comes after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next one.
    Next,
    /// It waits for a key; nothing more is executed until then.
    Wait,
    /// The connection ends once the answer is sent.
    Close,
}

/// A command of the door.
pub struct DoorCommand {
    /// What is known of it.
    pub info: Info,
    /// Does it: writes the answer, or returns the error that is answered.
    pub run: fn(&mut Context<'_>) -> Result<Flow, CommandError>,
}

/// A line of a table of commands without keys.
const fn command(
    name: &'static str,
    arity: i32,
    flags: u32,
    group: Group,
    since: &'static str,
    summary: &'static str,
    run: fn(&mut Context<'_>) -> Result<Flow, CommandError>,
) -> DoorCommand {
    DoorCommand { info: Info { name, arity, flags, keys: Keys::None, group, since, summary }, run }
}

const FAMILIES: &[&[DoorCommand]] =
    &[connection::COMMANDS, pubsub::COMMANDS, server::COMMANDS, transactions::COMMANDS];

/// All commands of the door.
pub fn all() -> impl Iterator<Item = &'static DoorCommand> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The command of that name, in any case.
pub fn find(name: &[u8]) -> Option<&'static DoorCommand> {
    static BY_NAME: OnceLock<HashMap<&'static [u8], &'static DoorCommand>> = OnceLock::new();
    let by_name = BY_NAME
        .get_or_init(|| all().map(|command| (command.info.name.as_bytes(), command)).collect());
    by_name.get(name.to_ascii_lowercase().as_slice()).copied()
}
