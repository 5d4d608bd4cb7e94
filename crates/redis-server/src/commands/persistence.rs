//! Saving and stopping. All that is acknowledged is in the log already: to save is to make a
//! checkpoint, after which the next start has less to read.

use crate::commands::definition::{DoorCommand, Flow, command};
use crate::dispatch::Context;
use crate::persistence::saving::Saving;
use kv::commands::{ADMIN, ALLOW_BUSY, FAST, Group, LOADING, NO_MULTI, NO_SCRIPT, STALE};
use kv::error::SYNTAX;
use kv::{CommandError, Kv, Reply as _};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("bgrewriteaof", 1, ADMIN | NO_SCRIPT, Group::Server, "1.0.0", "Makes a checkpoint, so that the log can be cut.", bg_rewrite),
    command("bgsave", -1, ADMIN | NO_SCRIPT, Group::Server, "1.0.0", "Makes a checkpoint meanwhile.", bg_save),
    command("lastsave", 1, LOADING | STALE | FAST, Group::Server, "1.0.0", "When the last checkpoint was made that was asked for.", last_save),
    command("save", 1, ADMIN | NO_SCRIPT | NO_MULTI, Group::Server, "1.0.0", "Makes a checkpoint.", save),
    command("shutdown", -1, ADMIN | NO_SCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY, Group::Server, "1.0.0", "Ends the server.", shutdown),
];

/// Has a checkpoint made before the next command of this client; answers `OK`.
pub fn save(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (kv, saving) = (context.redis.kv.clone(), context.redis.saving.clone());
    let changes = context.keys.stats.changes;
    context.session.work = Some(Box::new(move |out| match saving.save(&kv, changes) {
        Ok(()) => out.ok(),
        Err(error) => out.error(&format!("ERR the checkpoint failed: {error}")),
    }));
    Ok(Flow::Work)
}

fn begin(kv: Arc<Kv>, saving: Arc<Saving>, changes: u64) {
    tokio::task::spawn_blocking(move || {
        if let Err(error) = saving.save(&kv, changes) {
            tracing::warn!("a checkpoint of the keys failed: {error}");
        }
    });
}

fn bg_save(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    match &context.args[1..] {
        [] => {}
        [word] if word.eq_ignore_ascii_case(b"schedule") => {}
        _ => return Err(SYNTAX),
    }
    if context.redis.saving.is_on.load(Relaxed) {
        return Err(CommandError::new("ERR Background save already in progress"));
    }
    let redis = context.redis;
    begin(redis.kv.clone(), redis.saving.clone(), context.keys.stats.changes);
    context.session.out.simple("Background saving started");
    Ok(Flow::Next)
}

fn bg_rewrite(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let redis = context.redis;
    begin(redis.kv.clone(), redis.saving.clone(), context.keys.stats.changes);
    context.session.out.simple("Background append only file rewriting started");
    Ok(Flow::Next)
}

fn last_save(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let at_s = context.redis.saving.at_s.load(Relaxed);
    context.session.out.int(at_s);
    Ok(Flow::Next)
}

fn shutdown(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let mut words: Vec<Vec<u8>> =
        context.args[1..].iter().map(|word| word.to_ascii_lowercase()).collect();
    words.sort();
    let is = |word: &[u8]| words.iter().any(|one| one == word);
    let known: [&[u8]; 5] = [b"save", b"nosave", b"now", b"force", b"abort"];
    let is_unknown = words.iter().any(|word| !known.contains(&word.as_slice()));
    if is_unknown || is(b"save") && is(b"nosave") || is(b"abort") && 1 < words.len() {
        return Err(SYNTAX);
    }
    if is(b"abort") {
        return Err(CommandError::new("ERR No shutdown in progress."));
    }
    // What is acknowledged is in the log, and a clean end makes a checkpoint: there is nothing
    // that could be left unsaved.
    context.redis.app.stop_wanted.notify_one();
    Ok(Flow::Close)
}
