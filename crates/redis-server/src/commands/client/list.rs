//! `CLIENT LIST` and `CLIENT INFO`: a line for each connection.

use super::super::Flow;
use crate::clients::client::{Class, Client};
use crate::clients::tracking::Mode;
use crate::dispatch::Context;
use crate::hub::Hub;
use crate::registry::registry;
use kv::error::SYNTAX;
use kv::number::parse_i64;
use kv::{CommandError, Reply as _};
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a connection that are accounted besides what it sends and gets.
const CLIENT_COST: usize = 20 << 10;
/// Bytes of the buffer that what clients send is read into.
const BUFFER_SIZE: usize = 16 << 10;

pub fn info(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let now_ms = context.keys.now_ms();
    let client = context.hub.clients.get(&context.session.id);
    let line = client.map(|client| describe(context.hub, client, now_ms)).unwrap_or_default();
    context.session.out.verbatim("txt", (line + "\n").as_bytes());
    Ok(Flow::Next)
}

pub fn list(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let options = &context.args[2..];
    let is = |word: &[u8], at: usize| {
        options.get(at).is_some_and(|option| option.eq_ignore_ascii_case(word))
    };
    let mut class = None;
    let mut ids: Option<Vec<u64>> = None;
    if options.len() == 2 && is(b"type", 0) {
        let name = options[1];
        class = Some(Class::named(name).ok_or_else(|| unknown_class(name))?);
    } else if 2 <= options.len() && is(b"id", 0) {
        let mut wanted = Vec::new();
        for option in &options[1..] {
            let id = parse_i64(option).and_then(|id| u64::try_from(id).ok());
            wanted.push(id.filter(|id| 0 < *id).ok_or(CommandError::new("ERR Invalid client ID"))?);
        }
        ids = Some(wanted);
    } else if !options.is_empty() {
        return Err(SYNTAX);
    }
    let (hub, now_ms) = (&*context.hub, context.keys.now_ms());
    let shown: Vec<&Client> = match ids {
        Some(ids) => ids.iter().filter_map(|id| hub.clients.get(id)).collect(),
        None => hub.clients.values().collect(),
    };
    let lines: String = shown
        .into_iter()
        .filter(|client| class.is_none_or(|class| client.class() == class))
        .map(|client| describe(hub, client, now_ms) + "\n")
        .collect();
    context.session.out.verbatim("txt", lines.as_bytes());
    Ok(Flow::Next)
}

pub fn unknown_class(name: &[u8]) -> CommandError {
    CommandError::new(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(name)))
}

/// The letters of what a client is and does.
fn letters(hub: &Hub, client: &Client) -> String {
    let state = &client.state;
    let mut letters = String::new();
    let mut add = |holds: bool, letter: char| {
        if holds {
            letters.push(letter);
        }
    };
    add(client.is_monitor, 'O');
    add(0 < client.subscription_count(), 'P');
    add(0 <= state.queued.load(Relaxed), 'x');
    add(state.is_blocked.load(Relaxed), 'b');
    if let Some(tracking) = &client.tracking {
        add(true, 't');
        add(tracking.is_broken, 'R');
        add(tracking.mode == Mode::Broadcast, 'B');
    }
    add(client.is_dirty.load(Relaxed), 'd');
    add(client.outbox.is_closed(), 'c');
    add(client.is_kept, 'e');
    add(client.is_traceless, 'T');
    debug_assert!(hub.clients.contains_key(&client.id));
    if letters.is_empty() { "N".to_owned() } else { letters }
}

/// A client's line.
pub fn describe(hub: &Hub, client: &Client, now_ms: i64) -> String {
    let state = &client.state;
    let query = state.query_size.load(Relaxed);
    let free = BUFFER_SIZE.saturating_sub(query);
    let answer = client.outbox.len();
    let last = registry().all().get(state.last_command.load(Relaxed));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let active_ms = state.active_ms.load(Relaxed);
    let redirect = client.tracking.as_ref().map_or(-1, |tracking| tracking.redirect as i64);
    [
        format!("id={}", client.id),
        format!("addr={}", client.address()),
        format!("laddr={}", client.local),
        format!("fd={}", client.id),
        format!("name={}", text(&client.name)),
        format!("age={}", (now_ms - client.since_ms).max(0) / 1000),
        format!("idle={}", (now_ms - active_ms).max(0) / 1000),
        format!("flags={}", letters(hub, client)),
        format!("db={}", state.db.load(Relaxed)),
        format!("sub={}", state.channels.load(Relaxed)),
        format!("psub={}", state.patterns.load(Relaxed)),
        format!("ssub={}", state.shard_channels.load(Relaxed)),
        format!("multi={}", state.queued.load(Relaxed)),
        format!("qbuf={query}"),
        format!("qbuf-free={free}"),
        format!("argv-mem={query}"),
        "multi-mem=0".to_owned(),
        format!("rbs={BUFFER_SIZE}"),
        "rbp=0".to_owned(),
        "obl=0".to_owned(),
        format!("oll={}", usize::from(0 < answer)),
        format!("omem={answer}"),
        format!("tot-mem={}", CLIENT_COST + query + answer),
        "events=r".to_owned(),
        format!("cmd={}", last.map_or("NULL", |entry| entry.info.name)),
        format!("user={}", text(&client.user)),
        format!("redir={redirect}"),
        format!("resp={}", client.version),
        format!("lib-name={}", text(&client.lib_name)),
        format!("lib-ver={}", text(&client.lib_version)),
    ]
    .join(" ")
}
