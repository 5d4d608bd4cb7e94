//! Replication, of which there is none yet: what clients are told.

use super::{DoorCommand, Flow, command};
use crate::doors::redis::dispatch::Context;
use crate::doors::redis::hub::Blocked;
use kv::call::Otherwise;
use kv::commands::{ADMIN, BLOCKING, FAST, Group, LOADING, NO_SCRIPT, STALE};
use kv::number::parse_i64;
use kv::{CommandError, Mode, Reply as _, Wait};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("failover", -1, ADMIN | NO_SCRIPT | STALE, Group::Server, "6.2.0", "Hands over to a replica.", failover),
    command("replicaof", 3, ADMIN | NO_SCRIPT | STALE, Group::Server, "5.0.0", "Makes the server a replica, or none.", replica_of),
    command("role", 1, NO_SCRIPT | LOADING | STALE | FAST, Group::Server, "2.8.12", "Whether the server is a primary or a replica.", role),
    command("slaveof", 3, ADMIN | NO_SCRIPT | STALE, Group::Server, "1.0.0", "An older name of REPLICAOF.", replica_of),
    command("wait", 3, NO_SCRIPT | BLOCKING, Group::Generic, "3.0.0", "Waits until replicas have what was written.", wait),
    command("waitaof", 4, NO_SCRIPT | BLOCKING, Group::Generic, "7.2.0", "Waits until what was written is on disk.", wait_aof),
];

fn role(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let out = &mut context.session.out;
    out.array(3);
    out.text("master");
    out.int(0);
    out.array(0);
    Ok(Flow::Next)
}

fn replica_of(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let (host, port) = (context.args[1], context.args[2]);
    if !(host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one")) {
        return Err(CommandError::new("ERR Quipu cannot be a replica yet"));
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

fn failover(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    match &context.args[1..] {
        [word] if word.eq_ignore_ascii_case(b"abort") => {
            Err(CommandError::new("ERR No failover in progress."))
        }
        _ => Err(CommandError::new("ERR FAILOVER requires connected replicas.")),
    }
}

/// Until when to wait; none is for ever.
fn deadline(context: &Context<'_>, text: &[u8]) -> Result<Option<i64>, CommandError> {
    let wrong = || CommandError::new("ERR timeout is not an integer or out of range");
    let time_ms = parse_i64(text).ok_or_else(wrong)?;
    if time_ms < 0 {
        return Err(CommandError::new("ERR timeout is negative"));
    }
    let at = context.keys.now_ms().checked_add(time_ms).ok_or_else(wrong)?;
    Ok((time_ms != 0).then_some(at))
}

fn wait(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let replicas = parse_i64(context.args[1]).ok_or(kv::error::NOT_INTEGER)?;
    let deadline_ms = deadline(context, context.args[2])?;
    if replicas <= 0 || context.mode != Mode::Client {
        context.session.out.int(0);
        return Ok(Flow::Next);
    }
    Ok(wait_until(context, deadline_ms, b":0\r\n"))
}

/// Waits for nothing but its time.
fn wait_until(context: &mut Context<'_>, deadline_ms: Option<i64>, answer: &[u8]) -> Flow {
    let wait = Wait { keys: Vec::new(), deadline_ms, otherwise: Otherwise::Null, again: None };
    let (db, id) = (context.session.db, context.session.id);
    let blocked = Blocked::new(wait, db, Vec::new(), answer.to_vec());
    context.hub.block(id, blocked, context.keys);
    Flow::Wait
}

fn wait_aof(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let local = parse_i64(context.args[1]).ok_or(kv::error::NOT_INTEGER)?;
    let replicas = parse_i64(context.args[2]).ok_or(kv::error::NOT_INTEGER)?;
    if !(0..=1).contains(&local) {
        return Err(CommandError::new("ERR value is out of range, must be between 0 and 1"));
    }
    if replicas < 0 {
        return Err(CommandError::new("ERR value is out of range, must be positive"));
    }
    let deadline_ms = deadline(context, context.args[3])?;
    if 0 < replicas && context.mode == Mode::Client {
        return Ok(wait_until(context, deadline_ms, b"*2\r\n:0\r\n:0\r\n"));
    }
    if context.mode != Mode::Client {
        let out = &mut context.session.out;
        out.array(2);
        out.int(0);
        out.int(0);
        return Ok(Flow::Next);
    }
    let kv = context.redis.kv.clone();
    context.session.work = Some(Box::new(move |out| {
        let synced = local == 0 || kv.sync_log().is_ok();
        out.array(2);
        out.int(i64::from(synced));
        out.int(0);
    }));
    Ok(Flow::Work)
}
