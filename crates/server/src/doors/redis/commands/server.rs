//! The server: what it is, how it is set, what it counts.

use super::{DoorCommand, Flow, command};
use crate::doors::redis::dispatch::Context;
use kv::commands::{FAST, Group, LOADING, STALE};
use kv::{CommandError, Reply as _};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("time", 1, LOADING | STALE | FAST, Group::Server, "2.6.0", "The time, in seconds and microseconds.", time),
];

fn time(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let micros = context.redis.app.vfs.now() / 1000;
    context.session.out.array(2);
    context.session.out.bulk_int(micros / 1_000_000);
    context.session.out.bulk_int(micros % 1_000_000);
    Ok(Flow::Next)
}
