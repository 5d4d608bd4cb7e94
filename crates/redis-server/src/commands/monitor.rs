//! `MONITOR`: every command that is executed, shown to who asks.

use crate::commands::definition::{DoorCommand, Flow, command};
use crate::dispatch::Context;
use kv::commands::{ADMIN, Group, LOADING, NO_SCRIPT, STALE};
use kv::{CommandError, Reply as _};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("monitor", 1, ADMIN | NO_SCRIPT | LOADING | STALE, Group::Server, "1.0.0", "Shows every command that is executed.", monitor),
];

fn monitor(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    if context.mode != kv::Mode::Client {
        return Err(CommandError::new("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    let id = context.session.id;
    context.hub.monitors.insert(id);
    if let Some(client) = context.hub.clients.get_mut(&id) {
        client.is_monitor = true;
    }
    context.session.out.ok();
    Ok(Flow::Next)
}
