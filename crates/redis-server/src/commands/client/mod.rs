//! `CLIENT`: connections, seen and changed by themselves and by others.

mod kill;
mod list;
mod tracking;

pub use list::describe;

use crate::clients::session::ReplyMode;
use crate::commands::definition::{DoorCommand, Flow, command, container, help};
use crate::dispatch::Context;
use kv::commands::{ADMIN, Group, LOADING, NO_SCRIPT, STALE};
use kv::error::SYNTAX;
use kv::number::parse_i64;
use kv::{CommandError, Reply as _};

const USUAL: u32 = NO_SCRIPT | LOADING | STALE;
const OF_ADMIN: u32 = USUAL | ADMIN;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("client", -2, 0, Group::Connection, "2.4.0", "Connections.", container),
    command("client|caching", 3, USUAL, Group::Connection, "6.0.0", "Whether the next command's keys are told of.", tracking::caching),
    command("client|getname", 2, USUAL, Group::Connection, "2.6.9", "The connection's name.", get_name),
    command("client|getredir", 2, USUAL, Group::Connection, "6.0.0", "Which client is told of changes instead.", tracking::get_redir),
    command("client|help", 2, LOADING | STALE, Group::Connection, "5.0.0", "What CLIENT can do.", show_help),
    command("client|id", 2, USUAL, Group::Connection, "5.0.0", "The connection's number.", id),
    command("client|info", 2, USUAL, Group::Connection, "6.2.0", "What is known of the connection.", list::info),
    command("client|kill", -3, OF_ADMIN, Group::Connection, "2.4.0", "Closes connections.", kill::kill),
    command("client|list", -2, OF_ADMIN, Group::Connection, "2.4.0", "What is known of connections.", list::list),
    command("client|no-evict", 3, OF_ADMIN, Group::Connection, "7.0.0", "Whether the connection is kept when memory is short.", no_evict),
    command("client|no-touch", 3, USUAL, Group::Connection, "7.2.0", "Whether reading leaves a trace.", no_touch),
    command("client|pause", -3, OF_ADMIN, Group::Connection, "3.0.0", "Has clients wait for a while.", pause),
    command("client|reply", 3, USUAL, Group::Connection, "3.2.0", "Which answers are sent.", reply),
    command("client|setinfo", 4, USUAL, Group::Connection, "7.2.0", "Says what library the client uses.", set_info),
    command("client|setname", 3, USUAL, Group::Connection, "2.6.9", "Names the connection.", set_name),
    command("client|tracking", -3, USUAL, Group::Connection, "6.0.0", "Whether the client is told when keys that it read have changed.", tracking::tracking),
    command("client|trackinginfo", 2, USUAL, Group::Connection, "6.2.0", "How the client is told of changes.", tracking::info),
    command("client|unblock", -3, OF_ADMIN, Group::Connection, "5.0.0", "Ends another client's wait.", kill::unblock),
    command("client|unpause", 2, OF_ADMIN, Group::Connection, "6.2.0", "Lets clients go on.", unpause),
];

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "CACHING (YES|NO)",
            "    Whether the next command's keys are told of, in OPTIN and OPTOUT modes.",
            "GETREDIR",
            "    Which client is told of changes instead.",
            "GETNAME",
            "    The connection's name.",
            "ID",
            "    The connection's number.",
            "INFO",
            "    What is known of the connection.",
            "KILL <address:port>",
            "    Closes the connection from there.",
            "KILL <option> <value> [<option> <value> ...]",
            "    Closes connections: ID, ADDR, LADDR, TYPE, USER, MAXAGE, SKIPME.",
            "LIST [TYPE <type>|ID <id> ...]",
            "    What is known of connections.",
            "NO-EVICT (ON|OFF)",
            "    Whether the connection is kept when memory is short.",
            "NO-TOUCH (ON|OFF)",
            "    Whether reading leaves a trace.",
            "PAUSE <milliseconds> [WRITE|ALL]",
            "    Has clients wait.",
            "UNPAUSE",
            "    Lets them go on.",
            "REPLY (ON|OFF|SKIP)",
            "    Which answers are sent.",
            "SETINFO (LIB-NAME|LIB-VER) <text>",
            "    Says what library the client uses.",
            "SETNAME <name>",
            "    Names the connection.",
            "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> ...] [OPTIN] [OPTOUT] [NOLOOP]",
            "    Whether the client is told when keys that it read have changed.",
            "TRACKINGINFO",
            "    How it is told.",
            "UNBLOCK <id> [TIMEOUT|ERROR]",
            "    Ends another client's wait.",
        ],
    )
}

fn id(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let id = i64::try_from(context.session.id).unwrap_or(i64::MAX);
    context.session.out.int(id);
    Ok(Flow::Next)
}

// ---- names ----

/// Whether bytes can be shown in a list without being mistaken for more.
fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn get_name(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let name = context.hub.clients.get(&context.session.id).map(|client| client.name.clone());
    let name = name.filter(|name| !name.is_empty());
    context.session.out.bulk_or_null(name.as_deref());
    Ok(Flow::Next)
}

/// A name that a client may have.
///
/// # Errors
/// When it has spaces or what cannot be printed.
pub fn name_arg(name: &[u8]) -> Result<Vec<u8>, CommandError> {
    match is_plain(name) {
        true => Ok(name.to_vec()),
        false => Err(CommandError::new(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        )),
    }
}

fn set_name(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let name = name_arg(context.args[2])?;
    if let Some(client) = context.hub.clients.get_mut(&context.session.id) {
        client.name = name;
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

fn set_info(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (attribute, value) = (context.args[2], context.args[3]);
    let name = attribute.to_ascii_lowercase();
    if name != b"lib-name" && name != b"lib-ver" {
        let attribute = String::from_utf8_lossy(attribute);
        return Err(CommandError::new(format!("ERR Unrecognized option '{attribute}'")));
    }
    if !is_plain(value) {
        let name = String::from_utf8_lossy(&name).into_owned();
        return Err(CommandError::new(format!(
            "ERR {name} cannot contain spaces, newlines or special characters."
        )));
    }
    if let Some(client) = context.hub.clients.get_mut(&context.session.id) {
        match name.as_slice() {
            b"lib-name" => client.lib_name = value.to_vec(),
            _ => client.lib_version = value.to_vec(),
        }
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

// ---- switches ----

/// `ON` or `OFF`.
fn switch_arg(word: &[u8]) -> Result<bool, CommandError> {
    match word.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(SYNTAX),
    }
}

fn no_evict(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let is_kept = switch_arg(context.args[2])?;
    if let Some(client) = context.hub.clients.get_mut(&context.session.id) {
        client.is_kept = is_kept;
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

fn no_touch(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let is_traceless = switch_arg(context.args[2])?;
    context.session.is_traceless = is_traceless;
    if let Some(client) = context.hub.clients.get_mut(&context.session.id) {
        client.is_traceless = is_traceless;
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

fn reply(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    match context.args[2].to_ascii_lowercase().as_slice() {
        b"on" => {
            context.session.reply = ReplyMode::On;
            context.session.out.ok();
        }
        b"off" => context.session.reply = ReplyMode::Off,
        b"skip" if context.session.reply == ReplyMode::Off => {}
        b"skip" if context.session.reply == ReplyMode::SkipNext => {
            context.session.reply = ReplyMode::SkipAgain;
        }
        b"skip" => context.session.reply = ReplyMode::SkipNext,
        _ => return Err(SYNTAX),
    }
    Ok(Flow::Next)
}

// ---- waiting for others ----

fn pause(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let is_of_writes = match &context.args[3..] {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"all") => false,
        [word] if word.eq_ignore_ascii_case(b"write") => true,
        [_] => {
            return Err(CommandError::new("ERR CLIENT PAUSE mode must be WRITE or ALL"));
        }
        _ => return Err(SYNTAX),
    };
    let wrong = "ERR timeout is not an integer or out of range";
    let time_ms = parse_i64(context.args[2]).ok_or(CommandError::new(wrong))?;
    if time_ms < 0 {
        return Err(CommandError::new("ERR timeout is negative"));
    }
    let now_ms = context.keys.now_ms();
    let until_ms = now_ms.checked_add(time_ms).ok_or(CommandError::new(wrong))?;
    context.hub.pause.extend(until_ms, is_of_writes, now_ms);
    if !context.hub.is_failing_over {
        context.keys.keeps_expired_until_ms = context.hub.pause.until_ms;
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

fn unpause(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.hub.pause.until_ms = 0;
    if !context.hub.is_failing_over {
        context.keys.keeps_expired_until_ms = 0;
    }
    context.hub.wake_postponed();
    context.session.out.ok();
    Ok(Flow::Next)
}
