//! Channels: messages to all who listen, kept for nobody.

use crate::clients::session::Session;
use crate::commands::definition::{
    DoorCommand, Flow, command, container, help, misused_subcommand,
};
use crate::dispatch::Context;
use crate::hub::Hub;
use kv::commands::command as command_on_keys;
use kv::commands::{
    ALL_KEYS, FAST, Group, LOADING, MAY_REPLICATE, NO_SCRIPT, ONE_KEY, PUBSUB, STALE,
};
use kv::{CommandError, Mode, Reply as _};
use std::collections::{BTreeMap, HashMap, HashSet};

const LISTEN: u32 = PUBSUB | NO_SCRIPT | LOADING | STALE;
const SEND: u32 = PUBSUB | LOADING | STALE | FAST;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("psubscribe", -2, LISTEN, Group::PubSub, "2.0.0", "Listens to all channels that fit patterns.", psubscribe),
    command("publish", 3, SEND | MAY_REPLICATE, Group::PubSub, "2.0.0", "Sends a message to all who listen to a channel.", publish),
    command("pubsub", -2, 0, Group::PubSub, "2.8.0", "Who listens to what.", container),
    command("pubsub|channels", -2, PUBSUB | LOADING | STALE, Group::PubSub, "2.8.0", "Channels that somebody listens to.", channels),
    command("pubsub|help", 2, LOADING | STALE, Group::PubSub, "6.2.0", "What PUBSUB can do.", show_help),
    command("pubsub|numpat", 2, PUBSUB | LOADING | STALE, Group::PubSub, "2.8.0", "How many patterns are listened to.", num_pat),
    command("pubsub|numsub", -2, PUBSUB | LOADING | STALE, Group::PubSub, "2.8.0", "How many listen to channels.", num_sub),
    command("pubsub|shardchannels", -2, PUBSUB | LOADING | STALE, Group::PubSub, "7.0.0", "Channels of shards that somebody listens to.", shard_channels),
    command("pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE, Group::PubSub, "7.0.0", "How many listen to channels of shards.", shard_num_sub),
    command("punsubscribe", -1, LISTEN, Group::PubSub, "2.0.0", "Listens no more to patterns.", punsubscribe),
    command_on_keys("spublish", 3, SEND | MAY_REPLICATE, ONE_KEY, Group::PubSub, "7.0.0", "Sends a message to all who listen to a channel of a shard.", spublish),
    command_on_keys("ssubscribe", -2, LISTEN, ALL_KEYS, Group::PubSub, "7.0.0", "Listens to channels of shards.", ssubscribe),
    command("subscribe", -2, LISTEN, Group::PubSub, "2.0.0", "Listens to channels.", subscribe),
    command_on_keys("sunsubscribe", -1, LISTEN, ALL_KEYS, Group::PubSub, "7.0.0", "Listens no more to channels of shards.", sunsubscribe),
    command("unsubscribe", -1, LISTEN, Group::PubSub, "2.0.0", "Listens no more to channels.", unsubscribe),
];

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "CHANNELS [<pattern>]",
            "    Channels that somebody listens to.",
            "NUMPAT",
            "    How many patterns are listened to.",
            "NUMSUB [<channel> ...]",
            "    How many listen to channels, patterns left out.",
            "SHARDCHANNELS [<pattern>]",
            "    Channels of shards that somebody listens to.",
            "SHARDNUMSUB [<channel> ...]",
            "    How many listen to channels of shards.",
        ],
    )
}

fn publish(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let count = context.hub.publish(context.args[1], context.args[2]);
    context.session.out.int(count);
    Ok(Flow::Next)
}

fn spublish(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let count = context.hub.publish_sharded(context.args[1], context.args[2]);
    context.session.out.int(count);
    Ok(Flow::Next)
}

// ---- listening ----

/// What is listened to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Channel,
    Pattern,
    Shard,
}

impl Kind {
    /// What a session listens to of the kind.
    fn of(self, session: &mut Session) -> &mut HashSet<Vec<u8>> {
        match self {
            Kind::Channel => &mut session.channels,
            Kind::Pattern => &mut session.patterns,
            Kind::Shard => &mut session.shard_channels,
        }
    }

    fn begin_word(self) -> &'static str {
        match self {
            Kind::Channel => "subscribe",
            Kind::Pattern => "psubscribe",
            Kind::Shard => "ssubscribe",
        }
    }

    fn end_word(self) -> &'static str {
        match self {
            Kind::Channel => "unsubscribe",
            Kind::Pattern => "punsubscribe",
            Kind::Shard => "sunsubscribe",
        }
    }

    fn add(self, hub: &mut Hub, name: &[u8], id: u64) {
        let listeners = match self {
            Kind::Channel => hub.channels.entry(name.to_vec()).or_default(),
            Kind::Pattern => hub.patterns.entry(name.to_vec()).or_default(),
            Kind::Shard => hub.shard_channels.entry(name.to_vec()).or_default(),
        };
        listeners.insert(id);
    }

    fn take(self, hub: &mut Hub, name: &[u8], id: u64) {
        match self {
            Kind::Channel => take_from(&mut hub.channels, name, id),
            Kind::Shard => take_from(&mut hub.shard_channels, name, id),
            Kind::Pattern => take_from_patterns(&mut hub.patterns, name, id),
        }
    }
}

fn take_from(map: &mut HashMap<Vec<u8>, HashSet<u64>>, name: &[u8], id: u64) {
    let Some(listeners) = map.get_mut(name) else { return };
    listeners.remove(&id);
    if listeners.is_empty() {
        map.remove(name);
    }
}

fn take_from_patterns(map: &mut BTreeMap<Vec<u8>, HashSet<u64>>, name: &[u8], id: u64) {
    let Some(listeners) = map.get_mut(name) else { return };
    listeners.remove(&id);
    if listeners.is_empty() {
        map.remove(name);
    }
}

/// One line of an answer: what was done, to which channel, and how many are left.
fn answer(context: &mut Context<'_, '_>, kind: Kind, word: &str, channel: Option<&[u8]>) {
    let session = &mut *context.session;
    let count = match kind {
        Kind::Shard => session.shard_channels.len(),
        _ => session.channels.len() + session.patterns.len(),
    };
    session.show_subscriptions();
    session.out.push(3);
    session.out.text(word);
    session.out.bulk_or_null(channel);
    session.out.len(count);
}

fn listen(context: &mut Context<'_, '_>, kind: Kind) -> Result<Flow, CommandError> {
    if context.mode != Mode::Client
        && context.session.out.version() < 3
        && context.session.is_script
    {
        return Err(CommandError::new("ERR SUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    for name in &context.args[1..] {
        let id = context.session.id;
        if kind.of(context.session).insert(name.to_vec()) {
            kind.add(context.hub, name, id);
        }
        answer(context, kind, kind.begin_word(), Some(name));
    }
    Ok(Flow::Next)
}

fn listen_no_more(context: &mut Context<'_, '_>, kind: Kind) -> Result<Flow, CommandError> {
    let named: Vec<Vec<u8>> = match context.args.len() {
        1 => kind.of(context.session).iter().cloned().collect(),
        _ => context.args[1..].iter().map(|name| name.to_vec()).collect(),
    };
    if named.is_empty() {
        answer(context, kind, kind.end_word(), None);
    }
    for name in named {
        kind.of(context.session).remove(&name);
        kind.take(context.hub, &name, context.session.id);
        answer(context, kind, kind.end_word(), Some(&name));
    }
    Ok(Flow::Next)
}

fn subscribe(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    listen(context, Kind::Channel)
}

fn psubscribe(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    listen(context, Kind::Pattern)
}

fn ssubscribe(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    listen(context, Kind::Shard)
}

fn unsubscribe(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    listen_no_more(context, Kind::Channel)
}

fn punsubscribe(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    listen_no_more(context, Kind::Pattern)
}

fn sunsubscribe(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    listen_no_more(context, Kind::Shard)
}

// ---- who listens ----

type Channels = HashMap<Vec<u8>, HashSet<u64>>;

fn list(context: &mut Context<'_, '_>, of: fn(&Hub) -> &Channels) -> Result<Flow, CommandError> {
    let pattern = match &context.args[2..] {
        [] => None,
        [pattern] => Some(*pattern),
        _ => return Err(misused_subcommand("PUBSUB", context.args[1])),
    };
    let names: Vec<&Vec<u8>> = of(context.hub)
        .keys()
        .filter(|name| pattern.is_none_or(|pattern| kv::glob::matches(pattern, name)))
        .collect();
    let out = &mut context.session.out;
    out.array(names.len());
    names.iter().for_each(|name| out.bulk(name));
    Ok(Flow::Next)
}

fn count(context: &mut Context<'_, '_>, of: fn(&Hub) -> &Channels) -> Result<Flow, CommandError> {
    let names = &context.args[2..];
    let out = &mut context.session.out;
    // No map in version 3 either.
    out.array(2 * names.len());
    for name in names {
        out.bulk(name);
        out.len(of(context.hub).get(*name).map_or(0, HashSet::len));
    }
    Ok(Flow::Next)
}

fn channels(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    list(context, |hub| &hub.channels)
}

fn shard_channels(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    list(context, |hub| &hub.shard_channels)
}

fn num_sub(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    count(context, |hub| &hub.channels)
}

fn shard_num_sub(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    count(context, |hub| &hub.shard_channels)
}

fn num_pat(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let count = context.hub.patterns.len();
    context.session.out.len(count);
    Ok(Flow::Next)
}
