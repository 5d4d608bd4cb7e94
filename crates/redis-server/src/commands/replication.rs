//! Replication, as clients see it, and what replicas say before they are served.

use crate::commands::definition::{DoorCommand, Flow, command};
use crate::dispatch::Context;
use crate::hub::Blocked;
use crate::replication;
use crate::replication::failover_state::Progress;
use kv::call::Otherwise;
use kv::commands::command as command_on_keys;
use kv::commands::{
    ADMIN, ALLOW_BUSY, BLOCKING, FAST, Group, Keys, LOADING, NO_MULTI, NO_SCRIPT, STALE, WRITE,
};
use kv::number::parse_i64;
use kv::{CommandError, Mode, Reply as _, Wait};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("failover", -1, ADMIN | NO_SCRIPT | STALE, Group::Server, "6.2.0", "Hands over to a replica.", replication::failover::failover),
    command_on_keys("migrate", -6, WRITE, Keys::Found(replication::migrate::key_places), Group::Generic, "2.6.0", "Moves keys to another server.", replication::migrate::migrate),
    command("psync", -3, ADMIN | NO_SCRIPT | NO_MULTI, Group::Server, "2.8.0", "Makes the connection a replica's.", psync),
    command("replconf", -1, ADMIN | NO_SCRIPT | LOADING | STALE | ALLOW_BUSY, Group::Server, "3.0.0", "What a replica says of itself.", repl_conf),
    command("replicaof", 3, ADMIN | NO_SCRIPT | STALE, Group::Server, "5.0.0", "Makes the server a replica, or none.", replica_of),
    command("role", 1, NO_SCRIPT | LOADING | STALE | FAST, Group::Server, "2.8.12", "Whether the server is a primary or a replica.", role),
    command("slaveof", 3, ADMIN | NO_SCRIPT | STALE, Group::Server, "1.0.0", "An older name of REPLICAOF.", replica_of),
    command("sync", 1, ADMIN | NO_SCRIPT | NO_MULTI, Group::Server, "1.0.0", "An older way to become a replica.", sync),
    command("wait", 3, NO_SCRIPT | BLOCKING, Group::Generic, "3.0.0", "Waits until replicas have what was written.", wait),
    command("waitaof", 4, NO_SCRIPT | BLOCKING, Group::Generic, "7.2.0", "Waits until what was written is on disk.", wait_aof),
];

fn role(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    replication::role(context);
    Ok(Flow::Next)
}

fn replica_of(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (host, port) = (context.args[1], context.args[2]);
    let is_nobody = host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one");
    let primary = match is_nobody {
        true => None,
        false => {
            let port = parse_i64(port).and_then(|port| u16::try_from(port).ok());
            let port = port.ok_or(CommandError::new("ERR Invalid master port"))?;
            let host = std::str::from_utf8(host).ok().filter(|host| is_host(host));
            let host = host.ok_or(CommandError::new("ERR Invalid master host"))?;
            Some((host.to_owned(), port))
        }
    };
    let redis = context.redis;
    if redis.replication.failover.progress() != Progress::None {
        return Err(CommandError::new("ERR REPLICAOF not allowed while failing over."));
    }
    let is_known = {
        let state = redis.replication.link.state();
        state.fault.is_empty() && state.primary == primary
    };
    if is_known {
        if primary.is_some() {
            context.session.out.simple("OK Already connected to specified master");
        } else {
            context.session.out.ok();
        }
        return Ok(Flow::Next);
    }
    if context.mode != Mode::Client {
        // A transaction has the keys, which `set` would wait for.
        let Context { redis, keys, hub, session, .. } = context;
        return match redis.replication.link.set_within(&redis.kv, keys, hub, primary) {
            Ok(()) => {
                session.out.ok();
                Ok(Flow::Next)
            }
            Err(reason) => Err(CommandError::new(format!("ERR {reason}"))),
        };
    }
    let door = redis.to_shared().ok_or(CommandError::new("ERR the server ends"))?;
    context.session.work =
        Some(Box::new(move |out| match door.replication.link.set(&door, primary) {
            Ok(()) => out.ok(),
            Err(reason) => out.error(&format!("ERR {reason}")),
        }));
    Ok(Flow::Work)
}

/// Whether it may be a host's name or address.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.len() < 256 && text.chars().all(|letter| letter.is_ascii_graphic())
}

fn repl_conf(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let pairs = &context.args[1..];
    if !pairs.len().is_multiple_of(2) {
        return Err(kv::error::SYNTAX);
    }
    for pair in pairs.chunks(2) {
        let hello = &mut context.session.hello;
        let value = pair[1];
        match pair[0].to_ascii_lowercase().as_slice() {
            b"listening-port" => {
                let port = parse_i64(value).and_then(|port| u16::try_from(port).ok());
                hello.port = port.ok_or(kv::error::NOT_INTEGER)?;
            }
            b"ip-address" => {
                let host = std::str::from_utf8(value).ok().filter(|host| is_host(host));
                hello.host = host.ok_or(CommandError::new("ERR invalid ip-address"))?.to_owned();
            }
            b"capa" if value.eq_ignore_ascii_case(b"eof") => hello.takes_eof = true,
            b"capa" if value.eq_ignore_ascii_case(b"psync2") => hello.takes_other_id = true,
            b"capa" if value.eq_ignore_ascii_case(replication::FIELD_EXPIRY) => {
                hello.takes_field_expiry = true;
            }
            b"capa" | b"version" => {}
            // Of a connection that is no replica's these say nothing, and are not answered.
            b"ack" | b"getack" => return Ok(Flow::Next),
            b"rdb-only" | b"rdb-filter-only" if parse_i64(value) == Some(0) => {}
            option => {
                let option = String::from_utf8_lossy(option).replace(['\r', '\n'], " ");
                return Err(CommandError::new(format!(
                    "ERR Unrecognized REPLCONF option: {option}"
                )));
            }
        }
    }
    context.session.out.ok();
    Ok(Flow::Next)
}

fn psync(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let next = parse_i64(context.args[2]).ok_or(kv::error::NOT_INTEGER)?;
    let id = String::from_utf8_lossy(context.args[1]).into_owned();
    context.session.hello.wanted = Some((id, next));
    let word = context.args.get(3);
    context.session.hello.hands_over = word.is_some_and(|it| it.eq_ignore_ascii_case(b"failover"));
    become_replica(context)
}

fn sync(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    (context.session.hello.wanted, context.session.hello.is_old) = (None, true);
    become_replica(context)
}

/// From now on the connection is a replica's.
fn become_replica(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let link = &context.redis.replication.link;
    let is_up = link.state().stage == replication::link::Stage::Connected;
    if link.is_replica() && !is_up {
        return Err(CommandError::new(
            "NOMASTERLINK Can't SYNC while not connected with my master",
        ));
    }
    Ok(Flow::Replicate)
}

/// Until when to wait; none is for ever.
fn deadline(context: &Context<'_, '_>, text: &[u8]) -> Result<Option<i64>, CommandError> {
    let wrong = || CommandError::new("ERR timeout is not an integer or out of range");
    let time_ms = parse_i64(text).ok_or_else(wrong)?;
    if time_ms < 0 {
        return Err(CommandError::new("ERR timeout is negative"));
    }
    let at = context.keys.now_ms().checked_add(time_ms).ok_or_else(wrong)?;
    Ok((time_ms != 0).then_some(at))
}

fn wait(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let redis = context.redis;
    if redis.replication.link.is_replica() {
        return Err(CommandError::new(
            "ERR WAIT cannot be used with replica instances. Please also note that writes to \
             replicas are just local and are not propagated.",
        ));
    }
    let wanted = parse_i64(context.args[1]).ok_or(kv::error::NOT_INTEGER)?;
    let deadline_ms = deadline(context, context.args[2])?;
    // Send earlier changes of the same batch first. A transaction stays in one piece.
    if context.mode == Mode::Client {
        redis.kv.commit(context.keys).map_err(|error| CommandError::new(format!("ERR {error}")))?;
    }
    let (offset, count) = {
        let feed = redis.replication.feed();
        (feed.end(), feed.acked_count(feed.end()))
    };
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if wanted <= count || context.mode != Mode::Client {
        context.session.out.int(i64::try_from(count).unwrap_or(i64::MAX));
        return Ok(Flow::Next);
    }
    redis.tell_replicas(&[b"REPLCONF", b"GETACK", b"*"]);
    let flow = wait_until(context, deadline_ms, format!(":{count}\r\n").as_bytes());
    if let Some(blocked) = context.hub.blocked.get_mut(&context.session.id) {
        blocked.replicas = Some((offset, wanted));
    }
    Ok(flow)
}

/// Waits for nothing but its time.
fn wait_until(context: &mut Context<'_, '_>, deadline_ms: Option<i64>, answer: &[u8]) -> Flow {
    let wait = Wait { keys: Vec::new(), deadline_ms, otherwise: Otherwise::Null, again: None };
    let (db, id) = (context.session.db, context.session.id);
    let blocked = Blocked::new(wait, db, Vec::new(), answer.to_vec());
    context.hub.block(id, blocked, context.keys);
    Flow::Wait
}

fn wait_aof(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
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
