//! Functions, of which there are none yet: what clients ask of an empty library.

use super::{DoorCommand, Flow, command, container};
use crate::doors::redis::dispatch::Context;
use kv::commands::{Group, NO_SCRIPT, WRITE};
use kv::error::SYNTAX;
use kv::{CommandError, Reply as _};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("function", -2, 0, Group::Scripting, "7.0.0", "Libraries of functions.", container),
    command("function|flush", -2, NO_SCRIPT | WRITE, Group::Scripting, "7.0.0", "Removes all libraries.", flush),
    command("function|list", -2, NO_SCRIPT, Group::Scripting, "7.0.0", "All libraries.", list),
];

fn flush(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    match context.args {
        [_, _] => {}
        [_, _, mode] if mode.eq_ignore_ascii_case(b"async") => {}
        [_, _, mode] if mode.eq_ignore_ascii_case(b"sync") => {}
        _ => return Err(SYNTAX),
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

fn list(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    context.session.out.array(0);
    Ok(Flow::Next)
}
