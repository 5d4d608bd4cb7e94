//! Channels: messages to all who listen, kept for nobody.

use super::{DoorCommand, Flow, command};
use crate::doors::redis::dispatch::Context;
use kv::commands::{FAST, Group, LOADING, NO_SCRIPT, PUBSUB, STALE};
use kv::{CommandError, Reply as _};

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("publish", 3, PUBSUB | LOADING | STALE | FAST, Group::PubSub, "2.0.0", "Sends a message to all who listen to a channel.", publish),
    command("subscribe", -2, PUBSUB | NO_SCRIPT | LOADING | STALE, Group::PubSub, "2.0.0", "Listens to channels.", subscribe),
    command("unsubscribe", -1, PUBSUB | NO_SCRIPT | LOADING | STALE, Group::PubSub, "2.0.0", "Listens no more to channels.", unsubscribe),
    command("psubscribe", -2, PUBSUB | NO_SCRIPT | LOADING | STALE, Group::PubSub, "2.0.0", "Listens to all channels that fit patterns.", psubscribe),
    command("punsubscribe", -1, PUBSUB | NO_SCRIPT | LOADING | STALE, Group::PubSub, "2.0.0", "Listens no more to patterns.", punsubscribe),
];

fn publish(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let count = context.hub.publish(context.args[1], context.args[2]);
    context.session.out.int(count);
    Ok(Flow::Next)
}

/// One line of an answer: what was done, to which channel, and how many are left.
fn answer(context: &mut Context<'_>, word: &str, channel: Option<&[u8]>) {
    let count = context.session.channels.len() + context.session.patterns.len();
    context.session.show_subscriptions();
    let out = &mut context.session.out;
    out.push(3);
    out.text(word);
    out.bulk_or_null(channel);
    out.len(count);
}

fn subscribe(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    for channel in &context.args[1..] {
        let id = context.session.id;
        if context.session.channels.insert(channel.to_vec()) {
            context.hub.channels.entry(channel.to_vec()).or_default().insert(id);
        }
        answer(context, "subscribe", Some(channel));
    }
    Ok(Flow::Next)
}

fn psubscribe(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    for pattern in &context.args[1..] {
        let id = context.session.id;
        if context.session.patterns.insert(pattern.to_vec()) {
            context.hub.patterns.entry(pattern.to_vec()).or_default().insert(id);
        }
        answer(context, "psubscribe", Some(pattern));
    }
    Ok(Flow::Next)
}

fn unsubscribe(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let named: Vec<Vec<u8>> = match context.args.len() {
        1 => context.session.channels.iter().cloned().collect(),
        _ => context.args[1..].iter().map(|channel| channel.to_vec()).collect(),
    };
    if named.is_empty() {
        answer(context, "unsubscribe", None);
    }
    for channel in named {
        context.session.channels.remove(&channel);
        if let Some(listeners) = context.hub.channels.get_mut(&channel) {
            listeners.remove(&context.session.id);
            if listeners.is_empty() {
                context.hub.channels.remove(&channel);
            }
        }
        answer(context, "unsubscribe", Some(&channel));
    }
    Ok(Flow::Next)
}

fn punsubscribe(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let named: Vec<Vec<u8>> = match context.args.len() {
        1 => context.session.patterns.iter().cloned().collect(),
        _ => context.args[1..].iter().map(|pattern| pattern.to_vec()).collect(),
    };
    if named.is_empty() {
        answer(context, "punsubscribe", None);
    }
    for pattern in named {
        context.session.patterns.remove(&pattern);
        if let Some(listeners) = context.hub.patterns.get_mut(&pattern) {
            listeners.remove(&context.session.id);
            if listeners.is_empty() {
                context.hub.patterns.remove(&pattern);
            }
        }
        answer(context, "punsubscribe", Some(&pattern));
    }
    Ok(Flow::Next)
}
