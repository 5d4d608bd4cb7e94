//! Transactions: commands that are done together, unless a key that is watched has changed.

use crate::clients::session::{ReplyMode, Session};
use crate::commands::definition::{DoorCommand, Flow, command};
use crate::dispatch::{Context, silence};
use crate::hub::Hub;
use crate::registry::Known;
use kv::commands::command as command_on_keys;
use kv::commands::{ALL_KEYS, ALLOW_BUSY, FAST, Group, LOADING, NO_SCRIPT, STALE};
use kv::{CommandError, Keyspace, Mode, Reply as _};
use std::sync::atomic::Ordering;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("discard", 1, NO_SCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, Group::Transactions, "2.0.0", "Forgets the commands since MULTI.", discard),
    command("exec", 1, NO_SCRIPT | LOADING | STALE, Group::Transactions, "1.2.0", "Does the commands since MULTI together.", exec),
    command("multi", 1, NO_SCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, Group::Transactions, "1.2.0", "Begins to gather commands.", multi),
    command("unwatch", 1, NO_SCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, Group::Transactions, "2.2.0", "Watches no key any more.", unwatch),
    command_on_keys("watch", -2, NO_SCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, ALL_KEYS, Group::Transactions, "2.2.0", "Lets EXEC do nothing if a key has changed.", watch),
];

fn multi(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    if context.session.transaction.is_some() {
        return Err(CommandError::new("ERR MULTI calls can not be nested"));
    }
    context.session.transaction = Some(Default::default());
    context.session.state.queued.store(0, Ordering::Relaxed);
    context.session.out.ok();
    Ok(Flow::Next)
}

fn discard(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    if context.session.transaction.take().is_none() {
        return Err(CommandError::new("ERR DISCARD without MULTI"));
    }
    context.session.state.queued.store(-1, Ordering::Relaxed);
    watch_nothing(context);
    context.session.out.ok();
    Ok(Flow::Next)
}

fn watch_nothing(context: &mut Context<'_, '_>) {
    forget_watched(context.session, context.keys, context.hub);
}

fn forget_watched(session: &mut Session, keys: &mut Keyspace, hub: &mut Hub) {
    session.state.is_watching.store(false, Ordering::Relaxed);
    if std::mem::take(&mut session.is_watching) {
        hub.unwatch(session.id, keys);
    }
    session.is_dirty.store(false, Ordering::Relaxed);
}

/// Forgets a transaction that may not be done.
pub fn abort(session: &mut Session, keys: &mut Keyspace, hub: &mut Hub) {
    session.transaction = None;
    session.state.queued.store(-1, Ordering::Relaxed);
    forget_watched(session, keys, hub);
}

fn unwatch(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    watch_nothing(context);
    context.session.out.ok();
    Ok(Flow::Next)
}

fn watch(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    if context.session.transaction.is_some() {
        return Err(CommandError::new("ERR WATCH inside MULTI is not allowed"));
    }
    for key in &context.args[1..] {
        // One that has expired by now is gone, and does not change by going later.
        context.keys.exists(context.session.db, key)?;
    }
    // Clients that watched it before learn of its end; this one does not.
    context.redis.after(context.session.id, context.keys, context.hub);
    for key in &context.args[1..] {
        context.hub.watch(context.session.id, context.session.db, key, context.keys);
    }
    context.session.is_watching = true;
    context.session.state.is_watching.store(true, Ordering::Relaxed);
    context.session.out.ok();
    Ok(Flow::Next)
}

fn exec(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let transaction = context.session.transaction.take();
    let transaction = transaction.ok_or(CommandError::new("ERR EXEC without MULTI"))?;
    context.session.state.queued.store(-1, Ordering::Relaxed);
    if context.session.is_watching {
        for (db, key) in context.hub.watched_by(context.session.id) {
            context.keys.exists(db, &key)?;
        }
    }
    // What was expired in the meantime is noticed now.
    context.redis.after(context.session.id, context.keys, context.hub);
    let is_dirty = context.session.is_dirty.load(Ordering::Relaxed);
    watch_nothing(context);
    if transaction.is_spoiled {
        return Err(CommandError::new(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    // Who wants no answers gets the messages within alone.
    let is_silent = |session: &Session| session.reply == ReplyMode::Off;
    if is_dirty {
        if !is_silent(context.session) {
            context.session.out.null_array();
        }
        return Ok(Flow::Next);
    }
    if !is_silent(context.session) {
        context.session.out.array(transaction.commands.len());
    }
    for queued in &transaction.commands {
        let args: Vec<&[u8]> = queued.iter().map(Vec::as_slice).collect();
        let Some(known) = Known::find(&args) else { continue };
        let Context { redis, session, keys, hub, .. } = context;
        // Rules may have changed since it was queued.
        if let Err(error) = redis.allow(session, keys, hub, known, &args, "multi") {
            if !is_silent(session) {
                session.out.error(&error.0);
            }
            continue;
        }
        let before = session.out.0.bytes().len();
        redis.run(session, keys, hub, known, &args, Mode::Inside);
        if is_silent(session) {
            silence(session, &args, before);
        }
        if 0 < hub.tracked.clients {
            let touched = keys.take_touched();
            hub.tell_watchers(&touched);
            hub.tell_between(touched, session.id);
        }
    }
    Ok(Flow::Next)
}
