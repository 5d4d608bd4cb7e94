//! What the door counts, in `/metrics`.

use crate::hub::Hub;
use crate::redis::Redis;
use crate::registry::registry;
use kv::Keyspace;
use kv::cold::SIZE_BOUNDS;
use net::metrics_page::Page;
use net::telemetry::Families;
use std::sync::Weak;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a page waits for the keys: who asks for it is served beside those who write samples.
const PATIENCE: Duration = Duration::from_millis(100);

/// The families of a door, for as long as it is open.
pub struct Metrics(pub Weak<Redis>);

impl Families for Metrics {
    fn write(&self, page: &mut Page) {
        let Some(redis) = self.0.upgrade() else { return };
        let keys = redis.kv.lock_within(PATIENCE);
        let help =
            "Whether a command or a script has taken so long that all else about keys is left out.";
        one(page, "quipu_kv_held_up", "gauge", help, f64::from(u8::from(keys.is_none())));
        let Some(keys) = keys else { return };
        let hub = redis.hub();
        write_commands(page, &hub);
        write_clients(page, &hub);
        write_keys(page, &keys);
        write_memory(page, &keys);
        write_records(page, &keys);
        write_disk(page, &redis, &keys);
        write_compression(page, &redis);
        write_replication(page, &redis);
    }
}

/// A family of one sample.
fn one(page: &mut Page, name: &'static str, kind: &str, help: &str, value: f64) {
    page.family(name, kind, help);
    page.sample("", &[], value);
}

fn write_commands(page: &mut Page, hub: &Hub) {
    type Choose = fn(&super::CommandStats) -> f64;
    let families: [(&str, &str, Choose); 4] = [
        ("quipu_kv_commands_total", "Commands executed, by command.", |one| one.calls as f64),
        ("quipu_kv_commands_failed_total", "Commands that answered an error, by command.", |one| {
            one.failed as f64
        }),
        (
            "quipu_kv_commands_rejected_total",
            "Commands that were not executed: wrong, or not allowed, by command.",
            |one| one.rejected as f64,
        ),
        ("quipu_kv_command_seconds_total", "Time that commands took, by command.", |one| {
            one.micros as f64 / 1e6
        }),
    ];
    let used = || {
        let all = registry().all().iter().zip(&hub.stats.commands);
        all.filter(|(_, stats)| 0 < stats.calls + stats.rejected)
    };
    for (name, help, choose) in families {
        page.family(name, "counter", help);
        for (entry, stats) in used() {
            page.sample("", &[("command", entry.info.name)], choose(stats));
        }
    }
    let help = "Time of commands, by command; empty with latency-tracking no.";
    page.family("quipu_kv_command_duration_seconds", "histogram", help);
    for (entry, stats) in used() {
        // Untracked calls have no bucket, so the sum is scaled to the tracked ones.
        let share = stats.tracked as f64 / stats.calls.max(1) as f64;
        let sum = stats.micros as f64 / 1e6 * share;
        let labels = [("command", entry.info.name)];
        page.histogram(&labels, stats.histogram(), stats.tracked, sum);
    }
    let help = "Errors that were answered.";
    one(page, "quipu_kv_errors_total", "counter", help, hub.stats.error_count as f64);
    page.family(
        "quipu_kv_refused_total",
        "counter",
        "What users were not allowed, by what it was.",
    );
    for (reason, count) in ["command", "key", "channel", "login"].iter().zip(hub.stats.refused) {
        page.sample("", &[("reason", reason)], count as f64);
    }
}

#[rustfmt::skip] // one metric, one line
fn write_clients(page: &mut Page, hub: &Hub) {
    let waiting: usize = hub.clients.values().map(|client| client.outbox.len()).sum();
    let input: usize = hub.clients.values().map(|client| client.state.query_size.load(Relaxed)).sum();
    let listening = hub.clients.values().filter(|client| 0 < client.subscription_count()).count();
    let channels = hub.channels.len() + hub.shard_channels.len();
    one(page, "quipu_kv_clients", "gauge", "Clients connected.", hub.clients.len() as f64);
    one(page, "quipu_kv_clients_limit", "gauge", "Clients that may be connected (maxclients).", hub.settings.hot.clients_max as f64);
    one(page, "quipu_kv_clients_blocked", "gauge", "Clients whose command waits.", (hub.blocked.len() + hub.postponed.len()) as f64);
    one(page, "quipu_kv_clients_listening", "gauge", "Clients that listen to channels.", listening as f64);
    one(page, "quipu_kv_clients_tracking", "gauge", "Clients that are told when keys change.", hub.tracked.clients as f64);
    one(page, "quipu_kv_clients_total", "counter", "Connections taken.", hub.stats.connection_count as f64);
    one(page, "quipu_kv_clients_rejected_total", "counter", "Connections for which there was no room (maxclients).", hub.stats.rejected_count as f64);
    one(page, "quipu_kv_clients_evicted_total", "counter", "Connections closed because buffers of all clients took too much memory.", hub.evicted_clients.load(Relaxed) as f64);
    one(page, "quipu_kv_channels", "gauge", "Channels that somebody listens to.", channels as f64);
    one(page, "quipu_kv_patterns", "gauge", "Patterns of channels that somebody listens to.", hub.patterns.len() as f64);
    one(page, "quipu_kv_output_waiting_bytes", "gauge", "Messages that wait for clients to read.", waiting as f64);
    one(page, "quipu_kv_input_waiting_bytes", "gauge", "Bytes of clients that are not executed yet.", input as f64);
    one(page, "quipu_kv_received_bytes_total", "counter", "Bytes from clients.", hub.stats.received as f64);
    one(page, "quipu_kv_sent_bytes_total", "counter", "Bytes to clients.", hub.stats.sent as f64);
}

/// Label of a Redis database. Not `db`: queries of InfluxDB take that for a database of their own.
const DATABASE_LABEL: &str = "redis_db";

fn write_keys(page: &mut Page, keys: &Keyspace) {
    let dbs = || (0..keys.database_count()).map(|db| u8::try_from(db).unwrap_or(u8::MAX));
    page.family("quipu_kv_keys", "gauge", "Keys, by database.");
    for db in dbs().filter(|db| *db == 0 || !keys.is_empty(*db)) {
        page.sample("", &[(DATABASE_LABEL, &db.to_string())], keys.len(db) as f64);
    }
    page.family("quipu_kv_keys_expiring", "gauge", "Keys that expire, about, by database.");
    for db in dbs().filter(|db| *db == 0 || !keys.is_empty(*db)) {
        page.sample("", &[(DATABASE_LABEL, &db.to_string())], keys.expiring(db) as f64);
    }
    let help = "Seconds until keys expire, of all keys together; by quipu_kv_keys_expiring it is the mean.";
    one(page, "quipu_kv_keys_expiry_seconds", "gauge", help, keys.expiry_seconds());
    let databases = keys.database_count();
    one(page, "quipu_kv_databases", "gauge", "Databases.", databases as f64);
    let stats = &keys.stats;
    let counters: [(&'static str, &str, u64); 14] = [
        ("quipu_kv_keys_added_total", "Keys that were added.", stats.added),
        ("quipu_kv_checkpoints_total", "Checkpoints of all keys.", stats.checkpoints),
        ("quipu_kv_removed_segments_total", "Segments that were removed.", stats.removed_segments),
        (
            "quipu_kv_removed_segment_bytes_total",
            "Bytes of segments that were removed.",
            stats.removed_size,
        ),
        ("quipu_kv_hits_total", "Lookups that found a key.", stats.hits),
        ("quipu_kv_misses_total", "Lookups that found none.", stats.misses),
        ("quipu_kv_expired_total", "Keys that expired.", stats.expired),
        ("quipu_kv_changes_total", "Changes of keys.", stats.changes),
        ("quipu_kv_cold_reads_total", "Values read from disk.", stats.cold_reads),
        ("quipu_kv_rotten_records_total", "Records found to be rotten.", stats.rotten),
        ("quipu_kv_cooled_total", "Hot keys that gave way to others.", stats.cooled),
        (
            "quipu_kv_compacted_segments_total",
            "Segments whose live records compaction moved to others.",
            stats.compacted,
        ),
        ("quipu_kv_coded_segments_total", "Segments copied with their values coded.", stats.coded),
        (
            "quipu_kv_frozen_total",
            "Large values written down while commands went on.",
            stats.frozen,
        ),
    ];
    for (name, help, value) in counters {
        one(page, name, "counter", help, value as f64);
    }
}

#[rustfmt::skip] // one metric, one line
fn write_memory(page: &mut Page, keys: &Keyspace) {
    one(page, "quipu_kv_keys_hot", "gauge", "Keys in memory with their values.", keys.hot_len() as f64);
    one(page, "quipu_kv_memory_bytes", "gauge", "Memory of keys.", keys.memory_used() as f64);
    one(page, "quipu_kv_memory_index_bytes", "gauge", "Memory of the index of keys.", keys.index_size() as f64);
    one(page, "quipu_kv_memory_hot_bytes", "gauge", "Memory of hot keys and their values.", keys.hot_size() as f64);
    one(page, "quipu_kv_memory_limit_bytes", "gauge", "Memory that keys may use.", keys.config().memory_max as f64);
}

#[rustfmt::skip] // one metric, one line
fn write_disk(page: &mut Page, redis: &Redis, keys: &Keyspace) {
    let cold = keys.cold_stats();
    let saved_at_s = redis.saving.at_s.load(Relaxed);
    one(page, "quipu_kv_segments", "gauge", "Segments of cold values.", cold.segments as f64);
    one(page, "quipu_kv_segment_bytes", "gauge", "Bytes of segments.", cold.size as f64);
    one(page, "quipu_kv_segment_live_bytes", "gauge", "Bytes of segments that count, about.", cold.live_size as f64);
    one(page, "quipu_kv_segment_records", "gauge", "Values in segments that count.", cold.live_records as f64);
    one(page, "quipu_kv_segments_empty", "gauge", "Segments that go with the next checkpoint.", cold.empty_segments as f64);
    one(page, "quipu_kv_large_records", "gauge", "Values of 64 KiB and more in segments, by the mean of each segment.", cold.large_records as f64);
    one(page, "quipu_kv_large_segment_bytes", "gauge", "Bytes of segments with such values.", cold.large_size as f64);
    one(page, "quipu_kv_index_file_bytes", "gauge", "Bytes of the index file of the last checkpoint.", redis.kv.index_file_size() as f64);
    one(page, "quipu_kv_checkpoint_seconds_total", "counter", "Time of checkpoints.", keys.stats.checkpoint_ns as f64 / 1e9);
    one(page, "quipu_kv_changes_unsaved", "gauge", "Changes of keys since the last checkpoint began.", keys.stats.changes.saturating_sub(keys.stats.saved_changes) as f64);
    one(page, "quipu_kv_log_sequence", "gauge", "Number of the next record of keys in the log; restarts keep it.", keys.log_sequence() as f64);
    one(page, "quipu_kv_log_bytes", "gauge", "Bytes of the log since the last checkpoint began.", redis.kv.logged_size() as f64);
    one(page, "quipu_kv_saved_timestamp_seconds", "gauge", "When the last checkpoint was made that a client asked for, or the start.", saved_at_s as f64);
    one(page, "quipu_kv_log_failed", "gauge", "Whether nothing can be written any more, for the log failed.", f64::from(u8::from(redis.kv.failure().is_some())));
}

/// Records that are written to segments and read from them.
fn write_records(page: &mut Page, keys: &Keyspace) {
    let sizes = keys.record_sizes();
    let help = "Sizes of keys with their values as they are written to segments.";
    page.family("quipu_kv_record_written_bytes", "histogram", help);
    let bounds = SIZE_BOUNDS.iter().map(|bound| *bound as f64);
    page.histogram(&[], bounds.zip(sizes.buckets), sizes.count(), sizes.size as f64);
    let (reads, decompressed) = keys.cold_reads();
    let by_size = [("small", reads.small.totals()), ("large", reads.large.totals())];
    type Choose = fn(&kv::cold::Totals) -> f64;
    let families: [(&str, &str, Choose); 3] = [
        (
            "quipu_kv_record_reads_total",
            "Values read from segments; large ones have 64 KiB or more.",
            |one| one.count as f64,
        ),
        ("quipu_kv_record_read_bytes_total", "Bytes of values read from segments.", |one| {
            one.size as f64
        }),
        (
            "quipu_kv_record_read_seconds_total",
            "Time of reading values from segments, decompression included.",
            |one| one.ns as f64 / 1e9,
        ),
    ];
    for (name, help, value) in families {
        page.family(name, "counter", help);
        for (size, totals) in &by_size {
            page.sample("", &[("size", size)], value(totals));
        }
    }
    let help = "Values that were decompressed for readers.";
    one(page, "quipu_kv_decompressed_values_total", "counter", help, decompressed.count as f64);
    let help = "Bytes of values after decompression.";
    one(page, "quipu_kv_decompressed_bytes_total", "counter", help, decompressed.size as f64);
    let (name, help) = ("quipu_kv_decompression_seconds_total", "Time of decompression.");
    one(page, name, "counter", help, decompressed.ns as f64 / 1e9);
}

#[rustfmt::skip] // one metric, one line
fn write_compression(page: &mut Page, redis: &Redis) {
    let compression = redis.kv.compression();
    one(page, "quipu_kv_compression_plain_bytes_total", "counter", "Bytes of values before they were coded.", compression.plain_size as f64);
    one(page, "quipu_kv_compression_coded_bytes_total", "counter", "Bytes of values after they were coded.", compression.coded_size as f64);
    one(page, "quipu_kv_compression_values_total", "counter", "Values that compression was tried on.", compression.values as f64);
    one(page, "quipu_kv_compressed_values_total", "counter", "Values that compression made shorter.", compression.coded as f64);
    one(page, "quipu_kv_compression_skipped_values_total", "counter", "Values that were too short for compression.", compression.skipped as f64);
    one(page, "quipu_kv_compression_seconds_total", "counter", "Time of compression.", compression.ns as f64 / 1e9);
    one(page, "quipu_kv_compression_samples", "gauge", "Values that wait as samples of dictionaries.", compression.samples as f64);
    one(page, "quipu_kv_dictionaries_trained_total", "counter", "Dictionaries that were trained.", compression.trained as f64);
    one(page, "quipu_kv_dictionary_training_seconds_total", "counter", "Time of training dictionaries.", compression.train_ns as f64 / 1e9);
    let used = redis.kv.compression_by_dictionary();
    type Choose = fn(&kv::cold::DictionaryStats) -> u64;
    let families: [(&'static str, &str, Choose); 3] = [
        ("quipu_kv_dictionary_values_total", "Values compressed, by dictionary.", |one| one.values),
        ("quipu_kv_dictionary_plain_bytes_total", "Bytes before compression, by dictionary.", |one| one.plain_size),
        ("quipu_kv_dictionary_coded_bytes_total", "Bytes after compression, by dictionary.", |one| one.coded_size),
    ];
    for (name, help, choose) in families {
        page.family(name, "counter", help);
        for (number, one) in &used {
            page.sample("", &[("dictionary", &number.to_string())], choose(one) as f64);
        }
    }
}

#[rustfmt::skip] // one metric, one line
fn write_replication(page: &mut Page, redis: &Redis) {
    let feed = redis.replication.feed();
    one(page, "quipu_kv_replicas", "gauge", "Replicas that follow this server.", feed.replicas.len() as f64);
    one(page, "quipu_kv_replication_offset_bytes", "gauge", "End of the replication stream.", feed.end() as f64);
    one(page, "quipu_kv_replication_backlog_bytes", "gauge", "Bytes of the replication stream in memory.", feed.len() as f64);
}
