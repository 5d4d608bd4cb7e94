//! What `INFO` and `ROLE` say of replication.

use super::feed::Stage;
use super::link;
use crate::dispatch::Context;
use kv::Reply as _;
use std::fmt::Write as _;

/// The lines of `INFO replication`.
pub fn info(context: &Context<'_, '_>, text: &mut String) {
    let link = &context.redis.replication.link;
    let state = link.state().clone();
    let now_ms = context.keys.now_ms();
    let is_replica = state.primary.is_some() || !state.fault.is_empty();
    let role = if is_replica { "slave" } else { "master" };
    line(text, "role", role);
    if !state.fault.is_empty() {
        line(text, "master_link_status", "down");
        line(text, "slave_read_only", 1);
        line(text, "quipu_replica_failure", state.fault.replace(['\r', '\n'], " "));
    }
    if let Some((host, port)) = &state.primary {
        replica_lines(text, &state, host, *port, now_ms);
        let is_on = |name: &str| context.hub.settings.is_on(name);
        line(text, "slave_priority", context.hub.settings.text("replica-priority"));
        line(text, "slave_read_only", u8::from(is_on("replica-read-only")));
        line(text, "replica_announced", u8::from(is_on("replica-announced")));
    }
    let settings = &context.hub.settings;
    let wants_replicas = 0 < settings.hot.replicas_min;
    let good = wants_replicas.then(|| context.redis.good_replicas(settings, now_ms));
    let feed = context.redis.replication.feed();
    line(text, "connected_slaves", feed.replicas.len());
    if let Some(good) = good {
        line(text, "min_slaves_good_slaves", good);
    }
    for (number, replica) in feed.replicas.values().enumerate() {
        let lag = (now_ms - replica.acked_ms).max(0) / 1000;
        let (host, port) = (&replica.host, replica.port);
        let (state, acked) = (replica.stage.name(), replica.acked);
        let what = format!("ip={host},port={port},state={state},offset={acked},lag={lag}");
        line(text, &format!("slave{number}"), what);
    }
    line(text, "master_failover_state", context.redis.replication.failover.progress().name());
    let (id, offset) = match state.primary {
        Some(_) if !state.id.is_empty() => (state.id.as_str(), state.offset),
        _ => (context.hub.replication_id.as_str(), feed.end()),
    };
    line(text, "master_replid", id);
    line(text, "master_replid2", "0".repeat(40));
    line(text, "master_repl_offset", offset);
    line(text, "second_repl_offset", -1);
    line(text, "repl_backlog_active", u8::from(feed.is_on));
    line(text, "repl_backlog_size", context.hub.settings.text("repl-backlog-size"));
    line(text, "repl_backlog_first_byte_offset", if feed.is_on { feed.start() + 1 } else { 0 });
    line(text, "repl_backlog_histlen", feed.len());
    line(text, "quipu_left_out_for_replicas", feed.left_out);
}

fn replica_lines(text: &mut String, state: &link::State, host: &str, port: u16, now_ms: i64) {
    let is_up = state.stage == link::Stage::Connected;
    let seconds = |since_ms: i64| (now_ms - since_ms).max(0) / 1000;
    line(text, "master_host", host);
    line(text, "master_port", port);
    line(text, "master_link_status", if is_up { "up" } else { "down" });
    let heard = if is_up { seconds(state.heard_ms) } else { -1 };
    line(text, "master_last_io_seconds_ago", heard);
    line(text, "master_sync_in_progress", u8::from(state.stage == link::Stage::Sync));
    line(text, "slave_read_repl_offset", state.offset);
    line(text, "slave_repl_offset", state.offset);
    if state.stage == link::Stage::Sync {
        let size = state.dump_size.map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX));
        line(text, "master_sync_total_bytes", size.max(0));
        line(text, "master_sync_read_bytes", state.dump_read);
        let left = state.dump_size.unwrap_or(0).saturating_sub(state.dump_read);
        line(text, "master_sync_left_bytes", left);
        line(text, "master_sync_last_io_seconds_ago", seconds(state.heard_ms));
    }
    if !is_up {
        line(text, "master_link_down_since_seconds", seconds(state.down_since_ms));
    }
    line(text, "quipu_replica_is_whole", u8::from(!state.is_partial && !state.id.is_empty()));
    line(text, "quipu_replica_dumps", state.dump_count);
    line(text, "quipu_replica_refused_commands", state.refused);
    line(text, "quipu_replica_left_out_keys", state.left_out);
    if !state.failure.is_empty() {
        line(text, "quipu_replica_failure", state.failure.replace(['\r', '\n'], " "));
    }
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(text, "{name}:{value}\r\n");
}

/// Answers `ROLE`.
pub fn role(context: &mut Context<'_, '_>) {
    let state = context.redis.replication.link.state().clone();
    let feed = context.redis.replication.feed();
    let out = &mut context.session.out;
    let unknown = (!state.fault.is_empty()).then(|| (String::new(), 0));
    if let Some((host, port)) = state.primary.as_ref().or(unknown.as_ref()) {
        out.array(5);
        out.text("slave");
        out.text(host);
        out.int(i64::from(*port));
        out.text(state.stage.name());
        let is_there = !state.id.is_empty();
        out.int(if is_there { i64::try_from(state.offset).unwrap_or(i64::MAX) } else { -1 });
        return;
    }
    let replicas: Vec<_> =
        feed.replicas.values().filter(|replica| replica.stage == Stage::Online).collect();
    out.array(3);
    out.text("master");
    out.int(i64::try_from(feed.end()).unwrap_or(i64::MAX));
    out.array(replicas.len());
    for replica in replicas {
        out.array(3);
        out.text(&replica.host);
        out.text(&replica.port.to_string());
        out.text(&replica.acked.to_string());
    }
}
