//! `INFO`: what clients and dashboards ask of a server, under the names that they know.
//!
//! What Redis counts and Quipu has nothing of is 0; what only Quipu has begins with `quipu_`.

use crate::commands::definition::{DoorCommand, Flow, command};
use crate::dispatch::Context;
use crate::registry::registry;
use crate::settings::MEMORY_BASE as BASE_COST;
use crate::version::REDIS_VERSION;
use kv::commands::{Group, LOADING, STALE};
use kv::{CommandError, Reply as _};
use net::process;
use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

/// The family's commands.
#[rustfmt::skip] // a table
pub const COMMANDS: &[DoorCommand] = &[
    command("info", -1, LOADING | STALE, Group::Server, "1.0.0", "What the server knows of itself.", info),
];

type Section = fn(&Context<'_, '_>, &mut String);

/// Sections in the order in which they are shown, and whether they are without being asked for.
const SECTIONS: &[(&str, bool, Section)] = &[
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory),
    ("Persistence", true, persistence),
    ("Stats", true, stats),
    ("Replication", true, replication),
    ("CPU", true, cpu),
    ("Modules", true, modules),
    ("Commandstats", false, command_stats),
    ("Errorstats", true, error_stats),
    ("Latencystats", false, latency_stats),
    ("Cluster", true, cluster),
    ("Keyspace", true, keyspace),
    ("Quipu", true, quipu),
    ("Compression", false, compression),
];

fn info(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let wanted: Vec<String> = context.args[1..]
        .iter()
        .map(|arg| String::from_utf8_lossy(arg).to_ascii_lowercase())
        .collect();
    let says = |word: &str| wanted.iter().any(|one| one == word);
    let is_all = says("all") || says("everything");
    let is_default = wanted.is_empty() || says("default");
    let mut text = String::new();
    for (name, is_usual, write) in SECTIONS {
        if is_all || is_default && *is_usual || says(&name.to_ascii_lowercase()) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let _ = write!(text, "# {name}\r\n");
            write(context, &mut text);
        }
    }
    context.session.out.verbatim("txt", text.as_bytes());
    Ok(Flow::Next)
}

/// Lines of `name:value`.
macro_rules! lines {
    ($text:expr, $($name:literal: $value:expr),* $(,)?) => {
        $(let _ = write!($text, concat!($name, ":{}\r\n"), $value);)*
    };
}

fn server(context: &Context<'_, '_>, text: &mut String) {
    let redis = context.redis;
    let now_ms = context.keys.now_ms();
    let uptime_s = (now_ms - redis.started_ms).max(0) / 1000;
    let hz = context.hub.settings.text("hz");
    let executable = std::env::current_exe().unwrap_or_default();
    lines!(text,
        "redis_version": REDIS_VERSION,
        "redis_git_sha1": "00000000",
        "redis_git_dirty": 0,
        "redis_build_id": "0",
        "redis_mode": "standalone",
        "os": std::env::consts::OS.to_owned() + " " + std::env::consts::ARCH,
        "arch_bits": usize::BITS,
        "monotonic_clock": "POSIX clock_gettime",
        "multiplexing_api": "epoll",
        "atomicvar_api": "c11-builtin",
        "gcc_version": "0.0.0",
        "process_id": std::process::id(),
        "process_supervised": "no",
        "run_id": redis.run_id,
        "tcp_port": redis.address.port(),
        "server_time_usec": now_ms * 1000,
        "uptime_in_seconds": uptime_s,
        "uptime_in_days": uptime_s / 86_400,
        "hz": hz,
        "configured_hz": hz,
        "lru_clock": (now_ms / 1000) & 0xff_ffff,
        "executable": executable.display(),
        "config_file": "",
        "io_threads_active": 0,
        "quipu_version": env!("CARGO_PKG_VERSION"),
    );
}

fn clients(context: &Context<'_, '_>, text: &mut String) {
    let hub = &*context.hub;
    let output = hub.clients.values().map(|client| client.outbox.len()).max().unwrap_or(0);
    let input = hub.clients.values().map(|client| client.state.query_size.load(Relaxed)).max();
    lines!(text,
        "connected_clients": hub.clients.len(),
        "cluster_connections": 0,
        "maxclients": hub.settings.hot.clients_max,
        "client_recent_max_input_buffer": input.unwrap_or(0),
        "client_recent_max_output_buffer": output,
        "blocked_clients": hub.blocked.len() + hub.postponed.len(),
        "tracking_clients": hub.tracked.clients,
        "pubsub_clients": hub.clients.values().filter(|one| 0 < one.subscription_count()).count(),
        "watching_clients":
            hub.clients.values().filter(|one| one.state.is_watching.load(Relaxed)).count(),
        "clients_in_timeout_table":
            hub.blocked.values().filter(|blocked| blocked.wait.deadline_ms.is_some()).count(),
        "total_watched_keys": hub.watched_count(),
        "total_blocking_keys":
            hub.blocked.values().map(|blocked| blocked.wait.keys.len()).sum::<usize>(),
    );
}

/// Bytes as a person reads them.
pub fn human(bytes: u64) -> String {
    let units = ["B", "K", "M", "G", "T", "P"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while 1024.0 <= size && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes}B") } else { format!("{size:.2}{}", units[unit]) }
}

/// Bytes of memory, by what holds them.
pub struct MemoryUse {
    /// Of keys and values.
    pub keys: u64,
    /// Of the index.
    pub index: u64,
    /// Of connections.
    pub clients: u64,
    /// Of all that.
    pub used: u64,
    /// In RAM.
    pub resident: u64,
    /// All there is in the machine.
    pub machine: u64,
}

impl MemoryUse {
    /// What is used now.
    pub fn now(context: &Context<'_, '_>) -> MemoryUse {
        let hub = &*context.hub;
        let clients: usize = hub
            .clients
            .values()
            .map(|client| CLIENT_COST + client.outbox.len() + client.state.query_size.load(Relaxed))
            .sum();
        let keys = context.keys.hot_size() as u64;
        let index = context.keys.index_size() as u64;
        let used = context.keys.memory_used() as u64 + clients as u64 + BASE_COST;
        MemoryUse {
            keys,
            index,
            clients: clients as u64,
            used,
            resident: net::memory::used().unwrap_or(used),
            machine: machine_memory(),
        }
    }
}

/// Bytes of a connection besides what it sends and gets, about.
const CLIENT_COST: usize = 20 << 10;

fn machine_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn memory(context: &Context<'_, '_>, text: &mut String) {
    let of = MemoryUse::now(context);
    let peak = context.hub.stats.memory_peak.max(of.used);
    let max = u64::try_from(context.hub.settings.number("maxmemory")).unwrap_or(0);
    let overhead = of.index + of.clients + BASE_COST;
    let scripts = context.redis.scripting.figures();
    let (libraries, functions) = context.redis.scripting.counts();
    let scripts_size = scripts.scripts_text + scripts.functions_text;
    let vm_size = (scripts.scripts_vm + scripts.functions_vm) as u64;
    let backlog = context.redis.replication.feed().len();
    let ratio = of.resident as f64 / of.used.max(1) as f64;
    lines!(text,
        "used_memory": of.used,
        "used_memory_human": human(of.used),
        "used_memory_rss": of.resident,
        "used_memory_rss_human": human(of.resident),
        "used_memory_peak": peak,
        "used_memory_peak_human": human(peak),
        "used_memory_peak_perc": format!("{:.2}%", of.used as f64 * 100.0 / peak.max(1) as f64),
        "used_memory_overhead": overhead,
        "used_memory_startup": BASE_COST,
        "used_memory_dataset": of.used.saturating_sub(overhead),
        "used_memory_dataset_perc":
            format!("{:.2}%", of.keys as f64 * 100.0 / (of.used - BASE_COST).max(1) as f64),
        "allocator_allocated": of.used,
        "allocator_active": of.resident,
        "allocator_resident": of.resident,
        "total_system_memory": of.machine,
        "total_system_memory_human": human(of.machine),
        "used_memory_lua": scripts.scripts_vm,
        "used_memory_vm_eval": scripts.scripts_vm,
        "used_memory_lua_human": human(scripts.scripts_vm as u64),
        "used_memory_scripts_eval": scripts.scripts_text,
        "number_of_cached_scripts": scripts.scripts,
        "number_of_functions": functions,
        "number_of_libraries": libraries,
        "used_memory_vm_functions": scripts.functions_vm,
        "used_memory_vm_total": vm_size,
        "used_memory_vm_total_human": human(vm_size),
        "used_memory_functions": scripts.functions_text,
        "used_memory_scripts": scripts_size,
        "used_memory_scripts_human": human(scripts_size as u64),
        "maxmemory": max,
        "maxmemory_human": human(max),
        "maxmemory_policy": context.hub.settings.text("maxmemory-policy"),
        "allocator_frag_ratio": "1.00",
        "allocator_frag_bytes": 0,
        "allocator_rss_ratio": "1.00",
        "allocator_rss_bytes": 0,
        "rss_overhead_ratio": "1.00",
        "rss_overhead_bytes": 0,
        "mem_fragmentation_ratio": format!("{ratio:.2}"),
        "mem_fragmentation_bytes": of.resident.saturating_sub(of.used),
        "mem_not_counted_for_evict": 0,
        "mem_replication_backlog": backlog,
        "mem_total_replication_buffers": backlog,
        "mem_clients_slaves": 0,
        "mem_clients_normal": of.clients,
        "mem_cluster_links": 0,
        "mem_aof_buffer": 0,
        "mem_allocator": allocator::NAME,
        "active_defrag_running": 0,
        "lazyfree_pending_objects": 0,
        "lazyfreed_objects": 0,
    );
}

fn persistence(context: &Context<'_, '_>, text: &mut String) {
    let redis = context.redis;
    let status = if redis.kv.failure().is_some() { "err" } else { "ok" };
    let logged = redis.kv.logged_size();
    lines!(text,
        "loading": u8::from(redis.replication.link.is_loading()),
        "async_loading": 0,
        "current_cow_peak": 0,
        "current_cow_size": 0,
        "current_cow_size_age": 0,
        "current_fork_perc": "0.00",
        "current_save_keys_processed": 0,
        "current_save_keys_total": 0,
        "rdb_changes_since_last_save":
            context.keys.stats.changes.saturating_sub(redis.saving.changes.load(Relaxed)),
        "rdb_bgsave_in_progress": u8::from(redis.saving.is_on.load(Relaxed)),
        "rdb_last_save_time": redis.saving.at_s.load(Relaxed),
        "rdb_last_bgsave_status": status,
        "rdb_last_bgsave_time_sec": 0,
        "rdb_current_bgsave_time_sec": -1,
        "rdb_saves": redis.saving.count.load(Relaxed),
        "rdb_last_cow_size": 0,
        "rdb_last_load_keys_expired": 0,
        "rdb_last_load_keys_loaded": 0,
        "aof_enabled": 1,
        "aof_rewrite_in_progress": 0,
        "aof_rewrite_scheduled": 0,
        "aof_last_rewrite_time_sec": -1,
        "aof_current_rewrite_time_sec": -1,
        "aof_last_bgrewrite_status": status,
        "aof_rewrites": 0,
        "aof_rewrites_consecutive_failures": 0,
        "aof_last_write_status": status,
        "aof_last_cow_size": 0,
        "module_fork_in_progress": 0,
        "module_fork_last_cow_size": 0,
        "aof_current_size": logged,
        "aof_base_size": 0,
        "aof_pending_rewrite": 0,
        "aof_buffer_length": 0,
        "aof_pending_bio_fsync": 0,
        "aof_delayed_fsync": 0,
    );
}

fn stats(context: &Context<'_, '_>, text: &mut String) {
    let (hub, before) = (&*context.hub, &context.hub.stats.keys_before);
    let (stats, of_keys) = (&hub.stats, &context.keys.stats);
    let rates = stats.rates(context.keys.now_ms());
    let feed = context.redis.replication.feed();
    lines!(text,
        "total_connections_received": stats.connection_count,
        "total_commands_processed": stats.command_count,
        "instantaneous_ops_per_sec": rates.commands,
        "total_net_input_bytes": stats.received,
        "total_net_output_bytes": stats.sent,
        "total_net_repl_input_bytes": 0,
        "total_net_repl_output_bytes": 0,
        "instantaneous_input_kbps": format!("{:.2}", rates.received_kb),
        "instantaneous_output_kbps": format!("{:.2}", rates.sent_kb),
        "instantaneous_input_repl_kbps": "0.00",
        "instantaneous_output_repl_kbps": "0.00",
        "rejected_connections": stats.rejected_count,
        "sync_full": feed.full_count,
        "sync_partial_ok": feed.partial_count,
        "sync_partial_err": feed.partial_refused,
        "expired_keys": of_keys.expired - before.expired.min(of_keys.expired),
        "expired_stale_perc": "0.00",
        "expired_time_cap_reached_count": 0,
        "expire_cycle_cpu_milliseconds": 0,
        "evicted_keys": 0,
        "evicted_clients": hub.evicted_clients.load(Relaxed),
        "total_eviction_exceeded_time": 0,
        "current_eviction_exceeded_time": 0,
        "keyspace_hits": of_keys.hits.saturating_sub(before.hits),
        "keyspace_misses": of_keys.misses.saturating_sub(before.misses),
        "pubsub_channels": hub.channels.len(),
        "pubsub_patterns": hub.patterns.len(),
        "pubsubshard_channels": hub.shard_channels.len(),
        "latest_fork_usec": 0,
        "total_forks": 0,
        "migrate_cached_sockets": 0,
        "slave_expires_tracked_keys": 0,
        "active_defrag_hits": 0,
        "active_defrag_misses": 0,
        "active_defrag_key_hits": 0,
        "active_defrag_key_misses": 0,
        "total_active_defrag_time": 0,
        "current_active_defrag_time": 0,
        "tracking_total_keys": hub.tracked.readers.len(),
        "tracking_total_items": hub.tracked.item_count(),
        "tracking_total_prefixes": hub.tracked.prefixes.len(),
        "unexpected_error_replies": 0,
        "total_error_replies": stats.error_count,
        "dump_payload_sanitizations": 0,
        "total_reads_processed": stats.reads,
        "total_writes_processed": stats.writes,
        "io_threaded_reads_processed": 0,
        "io_threaded_writes_processed": 0,
        "reply_buffer_shrinks": 0,
        "reply_buffer_expands": 0,
        "acl_access_denied_auth": stats.refused[3],
        "acl_access_denied_cmd": stats.refused[0],
        "acl_access_denied_key": stats.refused[1],
        "acl_access_denied_channel": stats.refused[2],
    );
}

fn replication(context: &Context<'_, '_>, text: &mut String) {
    crate::replication::info(context, text);
}

fn cpu(_: &Context<'_, '_>, text: &mut String) {
    let seconds = process::figures().cpu_seconds;
    lines!(text,
        "used_cpu_sys": "0.000000",
        "used_cpu_user": format!("{seconds:.6}"),
        "used_cpu_sys_children": "0.000000",
        "used_cpu_user_children": "0.000000",
        "used_cpu_sys_main_thread": "0.000000",
        "used_cpu_user_main_thread": format!("{seconds:.6}"),
    );
}

fn modules(_: &Context<'_, '_>, _: &mut String) {}

fn command_stats(context: &Context<'_, '_>, text: &mut String) {
    for (entry, stats) in registry().all().iter().zip(&context.hub.stats.commands) {
        if stats.calls == 0 && stats.rejected == 0 {
            continue;
        }
        let each = stats.micros as f64 / stats.calls.max(1) as f64;
        let _ = write!(
            text,
            "cmdstat_{}:calls={},usec={},usec_per_call={each:.2},rejected_calls={},failed_calls={}\r\n",
            entry.info.name, stats.calls, stats.micros, stats.rejected, stats.failed
        );
    }
}

fn error_stats(context: &Context<'_, '_>, text: &mut String) {
    for (code, count) in &context.hub.stats.errors {
        let _ = write!(text, "errorstat_{code}:count={count}\r\n");
    }
}

fn latency_stats(context: &Context<'_, '_>, text: &mut String) {
    let shares = context.hub.settings.text("latency-tracking-info-percentiles").to_owned();
    for (entry, stats) in registry().all().iter().zip(&context.hub.stats.commands) {
        if stats.tracked == 0 {
            continue;
        }
        let of: Vec<String> = shares
            .split_whitespace()
            .map(|share| {
                let micros = stats.percentile(share.parse().unwrap_or(50.0));
                format!("p{share}={micros:.3}")
            })
            .collect();
        let _ = write!(text, "latency_percentiles_usec_{}:{}\r\n", entry.info.name, of.join(","));
    }
}

fn cluster(_: &Context<'_, '_>, text: &mut String) {
    lines!(text, "cluster_enabled": 0);
}

fn keyspace(context: &Context<'_, '_>, text: &mut String) {
    for db in 0..context.keys.database_count() {
        let number = u8::try_from(db).unwrap_or(u8::MAX);
        let keys = context.keys.len(number);
        if 0 < keys {
            let expires = context.keys.expiring(number);
            let _ = write!(text, "db{db}:keys={keys},expires={expires},avg_ttl=0\r\n");
        }
    }
}

fn quipu(context: &Context<'_, '_>, text: &mut String) {
    let cold = context.keys.cold_stats();
    let stats = &context.keys.stats;
    let compression = context.redis.kv.compression();
    lines!(text,
        "quipu_keys_hot": context.keys.hot_len(),
        "quipu_index_bytes": context.keys.index_size(),
        "quipu_hot_bytes": context.keys.hot_size(),
        "quipu_cold_reads": stats.cold_reads,
        "quipu_rotten_records": stats.rotten,
        "quipu_cooled_keys": stats.cooled,
        "quipu_compacted_segments": stats.compacted,
        "quipu_coded_segments": stats.coded,
        "quipu_frozen_values": stats.frozen,
        "quipu_segments": cold.segments,
        "quipu_segment_bytes": cold.size,
        "quipu_segment_live_bytes": cold.live_size,
        "quipu_compression_plain_bytes": compression.plain_size,
        "quipu_compression_coded_bytes": compression.coded_size,
        "quipu_dictionaries_trained": compression.trained,
        "quipu_log_bytes_since_checkpoint": context.redis.kv.logged_size(),
    );
}

/// Groups that are shown, those with most bytes.
const GROUPS_MAX: usize = 1000;

fn compression(context: &Context<'_, '_>, text: &mut String) {
    let mut groups = context.redis.kv.compression_by_group();
    groups.sort_by_key(|(_, plain, _)| std::cmp::Reverse(*plain));
    for (number, (name, plain, coded)) in groups.iter().take(GROUPS_MAX).enumerate() {
        let name = String::from_utf8_lossy(name).replace(|letter: char| letter.is_control(), "?");
        let _ = write!(text, "group_{number}:plain={plain},coded={coded},name={name}\r\n");
    }
}
