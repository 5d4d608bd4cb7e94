//! The server: its clock, and what could be added to it.

use crate::commands::definition::{DoorCommand, Flow, command, container, help};
use crate::dispatch::Context;
use kv::commands::{ADMIN, FAST, Group, LOADING, NO_SCRIPT, STALE};
use kv::{CommandError, Reply as _};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("module", -2, 0, Group::Server, "4.0.0", "Modules, of which there are none.", container),
    command("module|help", 2, LOADING | STALE, Group::Server, "5.0.0", "The subcommands in a few words.", show_help),
    command("module|list", 2, ADMIN | NO_SCRIPT, Group::Server, "4.0.0", "All modules.", modules),
    command("module|load", -3, ADMIN | NO_SCRIPT, Group::Server, "4.0.0", "Loads a module: refused.", no_modules),
    command("module|loadex", -3, ADMIN | NO_SCRIPT, Group::Server, "7.0.0", "Loads a module: refused.", no_modules),
    command("module|unload", 3, ADMIN | NO_SCRIPT, Group::Server, "4.0.0", "Unloads a module: there is none.", no_such_module),
    command("time", 1, LOADING | STALE | FAST, Group::Server, "2.6.0", "The time, in seconds and microseconds.", time),
];

fn time(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let micros = context.redis.app.vfs.now() / 1000;
    context.session.out.array(2);
    context.session.out.bulk_int(micros / 1_000_000);
    context.session.out.bulk_int(micros % 1_000_000);
    Ok(Flow::Next)
}

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "LIST",
            "    All modules: none.",
            "LOAD <path> [<arg> ...], LOADEX <path> ...",
            "    Refused: Bloom filters and time series are built in.",
            "UNLOAD <name>",
            "    Refused, for there is none.",
        ],
    )
}

fn modules(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.session.out.array(0);
    Ok(Flow::Next)
}

fn no_modules(_: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    Err(CommandError::new("ERR MODULE command not allowed. Quipu has no modules"))
}

fn no_such_module(_: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    Err(CommandError::new("ERR Error unloading module: no such module with that name"))
}
