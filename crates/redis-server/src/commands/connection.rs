//! The connection: who is there, in which version, on which database.

use super::client::name_arg;
use crate::acl::User;
use crate::clients::session::{ReplyMode, Session};
use crate::commands::definition::{DoorCommand, Flow, command};
use crate::dispatch::Context;
use crate::hub::Hub;
use crate::redis::Redis;
use crate::version::REDIS_VERSION;
use kv::commands::{ALLOW_BUSY, FAST, Group, LOADING, NO_AUTH, NO_MULTI, NO_SCRIPT, STALE};
use kv::error::SYNTAX;
use kv::number::int_arg;
use kv::{CommandError, Reply as _};
use net::login_limiter;
use net::telemetry::Limit;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("auth", -2, NO_SCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, Group::Connection, "1.0.0", "Says who the client is.", auth),
    command("echo", 2, LOADING | STALE | FAST, Group::Connection, "1.0.0", "Answers what it got.", echo),
    command("hello", -1, NO_SCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, Group::Connection, "6.0.0", "Chooses the version of the protocol and tells of the server.", hello),
    command("ping", -1, FAST, Group::Connection, "1.0.0", "Answers PONG, or what it got.", ping),
    command("quit", -1, NO_SCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, Group::Connection, "1.0.0", "Ends the connection.", quit),
    command("reset", 1, NO_SCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY | NO_MULTI, Group::Connection, "6.2.0", "Makes the connection as it was when it began.", reset),
    command("select", 2, LOADING | STALE | FAST, Group::Connection, "1.0.0", "Chooses the database.", select),
];

fn ping(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let is_listening = 0 < context.session.subscription_count();
    let out = &mut context.session.out;
    match context.args {
        [_] if is_listening && out.version() < 3 => {
            out.array(2);
            out.bulk(b"pong");
            out.bulk(b"");
        }
        [_] => out.simple("PONG"),
        [_, text] if is_listening && out.version() < 3 => {
            out.array(2);
            out.bulk(b"pong");
            out.bulk(text);
        }
        [_, text] => out.bulk(text),
        _ => return Err(CommandError::arity("ping")),
    }
    Ok(Flow::Next)
}

fn echo(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.session.out.bulk(context.args[1]);
    Ok(Flow::Next)
}

fn quit(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.session.out.ok();
    Ok(Flow::Close)
}

fn select(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let number = i32::try_from(int_arg(context.args[1])?).map_err(|_| kv::error::BEYOND_32_BITS)?;
    let number = u8::try_from(number).ok();
    let number = number.filter(|db| usize::from(*db) < context.keys.database_count());
    // Scripts compare this text, so it names no remedy.
    let number = number.ok_or(CommandError::new("ERR DB index is out of range"))?;
    context.session.db = number;
    context.session.state.db.store(number, Relaxed);
    context.session.out.ok();
    Ok(Flow::Next)
}

/// What AUTH and HELLO need: no keys, so that they are answered while a script has them.
pub struct Login<'a> {
    /// The door.
    pub redis: &'a Redis,
    /// Who says it.
    pub session: &'a mut Session,
    /// What connections share.
    pub hub: &'a mut Hub,
    /// The command.
    pub args: &'a [&'a [u8]],
    /// The time.
    pub now_ms: i64,
}

impl<'a> Login<'a> {
    fn of(context: &'a mut Context<'_, '_>) -> Login<'a> {
        let now_ms = context.keys.now_ms();
        let Context { redis, session, hub, args, .. } = context;
        Login { redis, session, hub, args, now_ms }
    }
}

fn auth(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    say_who(&mut Login::of(context))
}

fn hello(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    greet(&mut Login::of(context))
}

/// `AUTH`.
///
/// # Errors
/// When the password is wrong.
pub fn say_who(context: &mut Login<'_>) -> Result<Flow, CommandError> {
    let (user, password) = match context.args {
        [_, password] => (b"default".as_slice(), *password),
        [_, user, password] => (*user, *password),
        _ => return Err(SYNTAX),
    };
    let default = context.hub.acl.user(b"default");
    if context.args.len() == 2 && default.is_some_and(|user| context.redis.lets_in(user)) {
        return Err(CommandError::new(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
        ));
    }
    log_in(context, user, password)?;
    context.session.out.ok();
    Ok(Flow::Next)
}

/// Lets a client in who knows a user's password, or what the flags say.
fn log_in(context: &mut Login<'_>, name: &[u8], password: &[u8]) -> Result<(), CommandError> {
    let app = &context.redis.app;
    if !app.logins.may_try(context.session.peer) {
        app.telemetry.limit_hit(Limit::FailedLogins);
        return Err(CommandError::new(format!("ERR {}", login_limiter::REFUSAL)));
    }
    let credentials = &app.config.credentials;
    let by_flags = credentials.are_required() && {
        let (name, password) = (std::str::from_utf8(name), std::str::from_utf8(password));
        name.is_ok_and(|name| {
            password.is_ok_and(|password| {
                credentials.allow_user(name, password)
                    || name == "default" && credentials.allow_password(password)
            })
        })
    };
    let name = if by_flags { b"default" } else { name };
    let user = context.hub.acl.user(name).cloned();
    let is_default = name == b"default";
    // Without a password of its own the default user has that of the flags alone.
    let needs_flags = is_default && credentials.are_required();
    let is_right = |user: &User| {
        let by_password =
            user.allows_password(password) && !(needs_flags && user.needs_no_password);
        user.is_on && (by_flags || by_password)
    };
    let Some(user) = user.filter(|user| is_right(user)) else {
        let name = name.to_vec();
        let delay = app.logins.fail("Redis", context.session.peer);
        context.session.login_delay = context.session.login_delay.max(delay);
        context.redis.refused(context.session, context.now_ms, context.hub, &name);
        let words = "WRONGPASS invalid username-password pair or user is disabled.";
        return Err(match needs_flags {
            true => CommandError::new(format!(
                "{words} The user default has the password of --http-user, or --bearer-token."
            )),
            false => CommandError::new(words),
        });
    };
    become_user(context.session, context.hub, user);
    context.session.is_known = true;
    Ok(())
}

/// Makes the client that user.
fn become_user(session: &mut Session, hub: &mut Hub, user: Arc<User>) {
    if let Some(client) = hub.clients.get_mut(&session.id) {
        client.user = user.name.clone();
    }
    session.user = user;
    session.user_generation = hub.acl.generation;
}

/// `HELLO`.
///
/// # Errors
/// When the version is unknown, or the password wrong.
pub fn greet(context: &mut Login<'_>) -> Result<Flow, CommandError> {
    let mut at = 1;
    let mut version = context.session.out.version();
    if let Some(text) = context.args.get(1) {
        let wanted = int_arg(text).map_err(|_| {
            CommandError::new("ERR Protocol version is not an integer or out of range")
        })?;
        version = match wanted {
            2 => 2,
            3 => 3,
            _ => return Err(CommandError::new("NOPROTO unsupported protocol version")),
        };
        at = 2;
    }
    let mut name = None;
    while let Some(word) = context.args.get(at) {
        match word.to_ascii_lowercase().as_slice() {
            b"auth" if at + 2 < context.args.len() => {
                log_in(context, context.args[at + 1], context.args[at + 2])?;
                at += 3;
            }
            b"setname" if at + 1 < context.args.len() => {
                name = Some(name_arg(context.args[at + 1])?);
                at += 2;
            }
            _ => {
                let word = String::from_utf8_lossy(word);
                return Err(CommandError::new(format!(
                    "ERR Syntax error in HELLO option '{word}'"
                )));
            }
        }
    }
    if !context.session.is_known {
        return Err(CommandError::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    context.session.out.0.set_version(version);
    if let Some(client) = context.hub.clients.get_mut(&context.session.id) {
        client.version = version;
        if let Some(name) = name {
            client.name = name;
        }
    }
    let id = i64::try_from(context.session.id).unwrap_or(i64::MAX);
    let out = &mut context.session.out;
    out.map(7);
    out.text("server");
    out.text("redis");
    out.text("version");
    out.text(REDIS_VERSION);
    out.text("proto");
    out.int(i64::from(version));
    out.text("id");
    out.int(id);
    out.text("mode");
    out.text("standalone");
    out.text("role");
    out.text("master");
    out.text("modules");
    out.array(0);
    Ok(Flow::Next)
}

fn reset(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    context.hub.remove_marks(context.session.id, context.keys);
    let session = &mut *context.session;
    session.db = 0;
    session.transaction = None;
    session.is_watching = false;
    session.is_dirty.store(false, Relaxed);
    session.is_traceless = false;
    session.channels.clear();
    session.patterns.clear();
    session.shard_channels.clear();
    session.out.0.set_version(2);
    if let Some(client) = context.hub.clients.get_mut(&session.id) {
        client.version = 2;
        client.name.clear();
        client.is_monitor = false;
        client.is_kept = false;
        client.is_traceless = false;
    }
    // One that is to have no answer has none.
    if session.reply == ReplyMode::Off {
        session.reply = ReplyMode::On;
    }
    session.state.db.store(0, Relaxed);
    session.state.queued.store(-1, Relaxed);
    session.show_subscriptions();
    if let Some(user) = context.hub.acl.user(b"default").cloned() {
        context.session.is_known = context.redis.lets_in(&user);
        become_user(context.session, context.hub, user);
    }
    context.session.out.simple("RESET");
    Ok(Flow::Next)
}
