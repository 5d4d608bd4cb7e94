//! `SLOWLOG`: commands that took long.

use crate::commands::definition::{
    DoorCommand, Flow, command, container, help, misused_subcommand,
};
use crate::dispatch::Context;
use kv::commands::{ADMIN, Group, LOADING, STALE};
use kv::number::parse_i64;
use kv::{CommandError, Reply as _};

/// Commands that are shown unless somebody wants more.
const SHOWN: usize = 10;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("slowlog", -2, 0, Group::Server, "2.2.12", "Commands that took long.", container),
    command("slowlog|get", -2, ADMIN | LOADING | STALE, Group::Server, "2.2.12", "The last ones.", get),
    command("slowlog|help", 2, LOADING | STALE, Group::Server, "6.2.0", "What SLOWLOG can do.", show_help),
    command("slowlog|len", 2, ADMIN | LOADING | STALE, Group::Server, "2.2.12", "How many are kept.", len),
    command("slowlog|reset", 2, ADMIN | LOADING | STALE, Group::Server, "2.2.12", "Forgets them.", reset),
];

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "GET [<count>]",
            "    The last ones, 10 or so many; -1 is all. Each has a number, when it ended, how long",
            "    it took in microseconds, its arguments, the client's address and its name.",
            "LEN",
            "    How many are kept.",
            "RESET",
            "    Forgets them.",
        ],
    )
}

fn get(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let count = match &context.args[2..] {
        [] => SHOWN,
        [text] => {
            let count = parse_i64(text).filter(|count| -1 <= *count);
            let count = count
                .ok_or(CommandError::new("ERR count should be greater than or equal to -1"))?;
            usize::try_from(count).unwrap_or(usize::MAX)
        }
        _ => return Err(misused_subcommand("SLOWLOG", context.args[1])),
    };
    let count = count.min(context.hub.slow.commands.len());
    let out = &mut context.session.out;
    out.array(count);
    for command in context.hub.slow.commands.iter().take(count) {
        out.array(6);
        out.int(i64::try_from(command.id).unwrap_or(i64::MAX));
        out.int(command.at_s);
        out.int(i64::try_from(command.micros).unwrap_or(i64::MAX));
        out.array(command.arguments.len());
        command.arguments.iter().for_each(|argument| out.bulk(argument));
        out.text(&command.address);
        out.bulk(&command.name);
    }
    Ok(Flow::Next)
}

fn len(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let len = context.hub.slow.commands.len();
    context.session.out.len(len);
    Ok(Flow::Next)
}

fn reset(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.hub.slow.commands.clear();
    context.session.out.ok();
    Ok(Flow::Next)
}
