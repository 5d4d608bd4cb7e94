//! `CONFIG`: the parameters. What is set holds until the server ends, or for good after
//! `CONFIG REWRITE`, which writes what was changed to a file in the data directory.

use crate::acl::{User, sha256};
use crate::commands::definition::{DoorCommand, Flow, command, container, help};
use crate::dispatch::Context;
use crate::hub::Hub;
use crate::redis::Redis;
use crate::settings::parse::Kind;
use crate::settings::{MEMORY_MIN, Settings, read_line};
use kv::commands::{ADMIN, Group, LOADING, NO_SCRIPT, STALE};
use kv::credentials::CredentialFile;
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

fn show_help(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
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

fn get(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
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

fn set(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
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
        let name = name.to_ascii_lowercase();
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
        let name = String::from_utf8_lossy(pair[0]).to_ascii_lowercase();
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
    let most = redis.app.config.memory_limit / app::config::KV_SHARE;
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
        let known: [(&str, String); 9] = [
            ("port", self.address.port().to_string()),
            ("bind", self.address.ip().to_string()),
            ("databases", keys.database_count().to_string()),
            ("dir", config.data_dir.display().to_string()),
            ("maxclients", self.connections_max.to_string()),
            ("timeout", (idle_ms / 1000).to_string()),
            ("enable-debug-command", config.redis_debug.clone()),
            ("maxmemory", config.kv.memory_max.to_string()),
            ("appendfsync", durability_name(config.kv.durability).to_owned()),
        ];
        for (name, value) in known {
            hub.settings.put(name, value);
        }
        hub.settings_before = hub.settings.clone();
        let loaded = self.load_settings(&mut hub, &mut keys);
        let loaded = loaded.and_then(|()| self.load_users(&mut hub).map(drop));
        if let Err(reason) = loaded {
            tracing::error!("clients of Redis are refused: {reason}");
            let shown = reason.replace(&format!("{}/", config.data_dir.display()), "");
            let shown = format!("clients of Redis are refused: {shown}");
            self.app.closed.credentials.get_or_init(|| shown);
            self.credentials_fault.get_or_init(|| reason);
        }
    }

    /// Sets the parameters of `settings.conf`.
    ///
    /// # Errors
    /// When the file is damaged or lost, or a parameter of a file without a checksum is wrong.
    fn load_settings(&self, hub: &mut Hub, keys: &mut Keyspace) -> Result<(), String> {
        let Some(file) = self.kv.read_credentials(FILE_NAME)? else { return Ok(()) };
        let path = self.file_of(FILE_NAME);
        let on_unknown = &mut |what: String| tracing::warn!("{}:{what}", path.display());
        let set = read_settings(&file, &mut hub.settings, on_unknown);
        let set = set.map_err(|reason| format!("{}:{reason}", path.display()))?;
        self.apply(hub, keys, &set);
        if !(file.is_sealed && file.is_listed) {
            self.kv.write_credentials(FILE_NAME, &file.bytes)?;
        }
        Ok(())
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

/// Sets the parameters of a file of settings, and returns their names. Lines of another version go to
/// `on_unknown`.
///
/// # Errors
/// When a line cannot be read, with its number.
pub fn read_settings(
    file: &CredentialFile,
    settings: &mut Settings,
    on_unknown: &mut dyn FnMut(String),
) -> Result<Vec<&'static str>, String> {
    let mut set: Vec<&str> = Vec::new();
    for (at, line) in String::from_utf8_lossy(&file.bytes).lines().enumerate() {
        let number = at + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let read = read_line(line).ok_or_else(|| "expected `name \"value\"`".to_owned());
        let read = read.and_then(|(name, value)| {
            let put = settings.set(name, &value);
            put.map(|()| name).map_err(|reason| format!("{name}: {reason}"))
        });
        match read {
            Ok(name) => set.extend(Settings::parameter(name).map(|one| one.name)),
            // Another version wrote it.
            Err(reason) if file.is_sealed && !line.starts_with("requirepass") => {
                on_unknown(format!("{number}: {reason}"));
            }
            Err(reason) => return Err(format!("{number}: {reason}")),
        }
    }
    Ok(set)
}

/// The hash that a password is given as: `#` and the 64 digits of its SHA-256, as users have it.
fn hash_of(password: &str) -> Option<&str> {
    let hash = password.strip_prefix('#')?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (hash.len() == 64 && hash.bytes().all(is_digit)).then_some(hash)
}

/// Gives the default user the one password that `requirepass` says.
fn set_password(hub: &mut Hub) {
    let password = hub.settings.text("requirepass").to_owned();
    let Some(user) = hub.acl.user(b"default") else { return };
    let mut user = User::clone(user);
    user.passwords.clear();
    user.needs_no_password = password.is_empty();
    if !password.is_empty() {
        let hash = hash_of(&password).map_or_else(|| sha256(password.as_bytes()), str::to_owned);
        user.passwords.push(hash);
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

fn reset_stat(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let keys = context.keys.stats;
    context.hub.stats.reset(keys);
    context.session.out.ok();
    Ok(Flow::Next)
}

fn rewrite(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let mut settings = context.hub.settings.clone();
    let password = settings.text("requirepass").to_owned();
    if !password.is_empty() && hash_of(&password).is_none() {
        settings.put("requirepass", format!("#{}", sha256(password.as_bytes())));
    }
    let lines = settings.lines_unlike(&context.hub.settings_before);
    let kv = context.redis.kv.clone();
    context.session.work =
        Some(Box::new(move |out| match kv.write_credentials(FILE_NAME, lines.as_bytes()) {
            Ok(()) => out.ok(),
            Err(error) => out.error(&format!("ERR Rewriting config file: {error}")),
        }));
    Ok(Flow::Work)
}
