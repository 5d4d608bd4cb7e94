//! `CONFIG`: the parameters. What is set holds until the server ends, or for good after
//! `CONFIG REWRITE`, which writes what was changed to a file in the data directory.

use super::{DoorCommand, Flow, command, container, help};
use crate::doors::redis::acl::{User, sha256};
use crate::doors::redis::connection::Redis;
use crate::doors::redis::dispatch::Context;
use crate::doors::redis::hub::Hub;
use crate::doors::redis::settings::parse::Kind;
use crate::doors::redis::settings::{MEMORY_MIN, Settings, read_line};
use kv::commands::{ADMIN, Group, LOADING, NO_SCRIPT, STALE};
use kv::error::SYNTAX;
use kv::value::stream::BlockLimits;
use kv::{CommandError, Keyspace, KvDurability, Reply as _};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

/// The file of settings, in the folder of keys.
const FILE_NAME: &str = "settings.conf";

const FLAGS: u32 = ADMIN | NO_SCRIPT | LOADING | STALE;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("config", -2, 0, Group::Server, "2.0.0", "The server's parameters.", container),
    command("config|get", -3, FLAGS, Group::Server, "2.0.0", "The parameters that fit patterns.", get),
    command("config|help", 2, LOADING | STALE, Group::Server, "5.0.0", "What CONFIG can do.", show_help),
    command("config|resetstat", 2, FLAGS, Group::Server, "2.0.0", "Sets what INFO counts back.", reset_stat),
    command("config|rewrite", 2, FLAGS, Group::Server, "2.8.0", "Keeps the parameters for the next start.", rewrite),
    command("config|set", -4, FLAGS, Group::Server, "2.0.0", "Sets parameters, all or none.", set),
];

fn show_help(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    help(
        context,
        &[
            "GET <pattern> [<pattern> ...]",
            "    The parameters that fit, with their values.",
            "SET <parameter> <value> [<parameter> <value> ...]",
            "    Sets all of them, or none.",
            "RESETSTAT",
            "    Sets what INFO counts back.",
            "REWRITE",
            "    Keeps the parameters for the next start.",
        ],
    )
}

fn get(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let found = context.hub.settings.fitting(&context.args[2..]);
    let out = &mut context.session.out;
    out.map(found.len());
    for (name, value) in found {
        out.text(name);
        out.text(value);
    }
    Ok(Flow::Next)
}

fn failed(name: &str, reason: &str) -> CommandError {
    CommandError::new(format!(
        "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
    ))
}

fn set(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let pairs = &context.args[2..];
    if !pairs.len().is_multiple_of(2) {
        return Err(SYNTAX);
    }
    let mut seen: Vec<&str> = Vec::new();
    for pair in pairs.chunks(2) {
        let name = String::from_utf8_lossy(pair[0]);
        let parameter = Settings::parameter(&name).ok_or_else(|| {
            CommandError::new(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            ))
        })?;
        let is_same = context.hub.settings.text(&name).as_bytes() == pair[1];
        if matches!(parameter.kind, Kind::Fixed) && !is_same {
            if parameter.name == "port" {
                return Err(failed(&name, "Unable to listen on this port. Check server logs."));
            }
            let is_protected = PROTECTED.contains(&parameter.name);
            let what = if is_protected { "protected" } else { "immutable" };
            return Err(failed(&name, &format!("can't set {what} config")));
        }
        if seen.contains(&parameter.name) {
            return Err(failed(&name, "duplicate parameter"));
        }
        seen.push(parameter.name);
    }
    let mut settings = context.hub.settings.clone();
    for pair in pairs.chunks(2) {
        let name = String::from_utf8_lossy(pair[0]);
        let value = std::str::from_utf8(pair[1]).map_err(|_| failed(&name, "no UTF-8"))?;
        settings.set(&name, value).map_err(|reason| failed(&name, &reason))?;
    }
    check_together(context.redis, &settings, &seen)?;
    context.hub.settings = settings;
    context.redis.apply(context.hub, context.keys, &seen);
    context.session.out.ok();
    Ok(Flow::Next)
}

/// Parameters that may not be set from outside for fear of what could be written where.
const PROTECTED: &[&str] = &["dir", "dbfilename"];

fn check_together(redis: &Redis, settings: &Settings, set: &[&str]) -> Result<(), CommandError> {
    if set.contains(&"maxclients") && redis.connections_max < settings.hot.clients_max {
        return Err(failed(
            "maxclients",
            &format!(
                "The operating system is not able to handle the specified number of clients, try with {} (redis.max-connections)",
                redis.connections_max
            ),
        ));
    }
    let most = redis.app.config.memory_limit / crate::config::KV_SHARE;
    let wanted = u64::try_from(settings.number("maxmemory")).unwrap_or(u64::MAX);
    if set.contains(&"maxmemory") && most < wanted {
        let reason = format!("keys may have a quarter of memory-limit at most, {most} bytes");
        return Err(failed("maxmemory", &reason));
    }
    Ok(())
}

impl Redis {
    /// Parameters as the flags say them, and as the file of settings does.
    pub fn begin_settings(&self) {
        let mut keys = self.kv.lock();
        let mut hub = self.hub();
        let config = &self.app.config;
        let idle_ms = self.idle_timeout_ms.load(Relaxed);
        let known: [(&str, String); 8] = [
            ("port", self.address.port().to_string()),
            ("bind", self.address.ip().to_string()),
            ("databases", keys.database_count().to_string()),
            ("dir", config.data_dir.display().to_string()),
            ("maxclients", self.connections_max.to_string()),
            ("timeout", (idle_ms / 1000).to_string()),
            ("maxmemory", config.kv.memory_max.to_string()),
            ("appendfsync", durability_name(config.kv.durability).to_owned()),
        ];
        for (name, value) in known {
            hub.settings.put(name, value);
        }
        hub.settings_before = hub.settings.clone();
        let path = self.file_of(FILE_NAME);
        let lines = match self.app.vfs.exists(&path) {
            Ok(true) => self.app.vfs.read(&path).unwrap_or_default(),
            _ => Vec::new(),
        };
        let mut set: Vec<&str> = Vec::new();
        for line in String::from_utf8_lossy(&lines).lines() {
            let Some((name, value)) = read_line(line) else { continue };
            let parameter = Settings::parameter(name);
            match hub.settings.set(name, &value) {
                Ok(()) => set.extend(parameter.map(|parameter| parameter.name)),
                Err(reason) => tracing::warn!("{}: {name}: {reason}", path.display()),
            }
        }
        self.apply(&mut hub, &mut keys, &set);
        if let Err(reason) = self.load_users(&mut hub) {
            tracing::error!("users are not as their file says: {reason}");
        }
    }

    /// A file in the folder of keys.
    pub fn file_of(&self, name: &str) -> PathBuf {
        self.app.config.data_dir.join(kv::kv::KEYS_DIR).join(name)
    }

    /// Does what parameters mean that were set.
    pub fn apply(&self, hub: &mut Hub, keys: &mut Keyspace, set: &[&str]) {
        for name in set {
            match *name {
                "notify-keyspace-events" => keys.events_wanted = hub.settings.hot.events,
                "maxmemory" => {
                    let flag = self.app.config.kv.memory_max;
                    let wanted = u64::try_from(hub.settings.number(name)).unwrap_or(0);
                    let bytes = match wanted {
                        0 => flag,
                        wanted => usize::try_from(wanted.max(MEMORY_MIN)).unwrap_or(flag),
                    };
                    keys.set_memory_max(bytes);
                }
                "appendfsync" => self.kv.set_durability(durability_of(hub.settings.text(name))),
                "timeout" => {
                    self.idle_timeout_ms.store(hub.settings.hot.timeout_s * 1000, Relaxed);
                    // They reckon anew when to stop waiting.
                    hub.clients.values().for_each(|client| client.outbox.wake.notify_one());
                }
                "requirepass" => set_password(hub),
                "repl-backlog-size" | "client-output-buffer-limit" => self.limit_feed(hub),
                "stream-node-max-entries" | "stream-node-max-bytes" => {
                    let number = |name| usize::try_from(hub.settings.number(name)).unwrap_or(0);
                    keys.set_stream_blocks(BlockLimits {
                        entries_max: number("stream-node-max-entries"),
                        size_max: number("stream-node-max-bytes"),
                    });
                }
                "tracking-table-max-keys" => hub.forget_excess(),
                "slowlog-max-len" => hub.slow.commands.truncate(hub.settings.hot.slow_len_max),
                _ => {}
            }
        }
    }
}

/// Gives the default user the one password that `requirepass` says.
fn set_password(hub: &mut Hub) {
    let password = hub.settings.text("requirepass").to_owned();
    let Some(user) = hub.acl.user(b"default") else { return };
    let mut user = User::clone(user);
    user.passwords.clear();
    user.needs_no_password = password.is_empty();
    if !password.is_empty() {
        user.passwords.push(sha256(password.as_bytes()));
    }
    hub.acl.put(user);
}

fn durability_name(durability: KvDurability) -> &'static str {
    match durability {
        KvDurability::Always => "always",
        KvDurability::EverySecond => "everysec",
        KvDurability::No => "no",
    }
}

fn durability_of(name: &str) -> KvDurability {
    match name {
        "always" => KvDurability::Always,
        "no" => KvDurability::No,
        _ => KvDurability::EverySecond,
    }
}

fn reset_stat(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let keys = context.keys.stats;
    context.hub.stats.reset(keys);
    context.session.out.ok();
    Ok(Flow::Next)
}

fn rewrite(context: &mut Context<'_>) -> Result<Flow, CommandError> {
    let lines = context.hub.settings.lines_unlike(&context.hub.settings_before);
    let (vfs, path) = (context.redis.app.vfs.clone(), context.redis.file_of(FILE_NAME));
    context.session.work =
        Some(Box::new(move |out| match vfs::write_atomic(vfs.as_ref(), &path, lines.as_bytes()) {
            Ok(()) => out.ok(),
            Err(error) => out.error(&format!("ERR Rewriting config file: {error}")),
        }));
    Ok(Flow::Work)
}
