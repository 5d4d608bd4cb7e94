//! One table of everything that reads bytes from outside, for two runners that share a corpus: the
//! blind one (`main.rs`), which is quick and always the same, for CI; and the guided one
//! (`guided.rs`), which looks for inputs that reach more, by hand and at night. What the second one
//! finds is kept in `fuzz/corpus/` and is what the first one begins with.
//!
//! `fuzz/corpus/TARGET.pack` holds what was found (`fuzz/pack`), `fuzz/corpus/TARGET/` inputs that
//! were written by hand, `fuzz/corpus/common/` inputs that every target begins with.

/// A decoder's fuzz function.
pub type Target = (&'static str, fn(&[u8]));

/// Everything that reads bytes from outside.
pub const TARGETS: &[Target] = &[
    ("codec-values", codec::fuzzing::fuzz_values),
    ("codec-timestamps", codec::fuzzing::fuzz_timestamps),
    ("codec-values-round-trip", codec::fuzzing::fuzz_values_round_trip),
    ("codec-timestamps-round-trip", codec::fuzzing::fuzz_timestamps_round_trip),
    ("wal-segment", wal::fuzzing::fuzz_wal_segment),
    ("index-segment", index::fuzzing::fuzz_segment),
    ("index-mutated-segment", index::fuzzing::fuzz_mutated_segment),
    ("index-replay", index::fuzzing::fuzz_replay),
    ("index-pattern", index::fuzzing::fuzz_pattern),
    ("store-part", store::inside::fuzz_part),
    ("store-merge", store::inside::fuzz_merge),
    ("store-backup-manifest", store::inside::fuzz_backup_manifest),
    ("kv-commands", kv::fuzzing::fuzz_commands),
    ("kv-effects", kv::fuzzing::fuzz_effects),
    ("kv-value", kv::fuzzing::fuzz_value),
    ("kv-record", kv::fuzzing::fuzz_record),
    ("kv-segment", kv::fuzzing::fuzz_segment),
    ("kv-dictionary", kv::fuzzing::fuzz_dictionary),
    ("kv-manifest", kv::fuzzing::fuzz_manifest),
    ("kv-index", kv::fuzzing::fuzz_index),
    ("kv-dump", kv::fuzzing::fuzz_dump),
    ("kv-dump-file", kv::fuzzing::fuzz_dump_file),
    ("tables-record", tables::fuzzing::fuzz_record),
    ("tables-row", tables::fuzzing::fuzz_row),
    ("tables-schema", tables::fuzzing::fuzz_schema),
    ("tables-manifest", tables::fuzzing::fuzz_manifest),
    ("tables-file", tables::fuzzing::fuzz_file),
    ("tables-statement", tables::fuzzing::fuzz_statement),
    ("influx-schema-records", influx_schema::fuzzing::fuzz_records),
    ("wire-influx", wire::fuzzing::fuzz_influx),
    ("wire-influx-answer", wire::fuzzing::fuzz_influx_answer),
    ("wire-remote-write-v1", wire::fuzzing::fuzz_remote_write_v1),
    ("wire-remote-write-v2", wire::fuzzing::fuzz_remote_write_v2),
    ("wire-remote-read", wire::fuzzing::fuzz_remote_read),
    ("wire-prometheus-block", wire::fuzzing::fuzz_prometheus_block),
    ("wire-remote-read-answer", wire::fuzzing::fuzz_remote_read_answer),
    ("wire-exposition", wire::fuzzing::fuzz_exposition),
    ("wire-json-lines", wire::fuzzing::fuzz_json_lines),
    ("wire-vm-native", wire::fuzzing::fuzz_vm_native),
    ("wire-compression", wire::fuzzing::fuzz_compression),
    ("wire-params", wire::fuzzing::fuzz_params),
    ("wire-resp", wire::resp::fuzzing::requests),
    ("wire-whisper", wire::fuzzing::fuzz_whisper),
    ("wire-redis-timeseries", wire::fuzzing::fuzz_redis_timeseries),
    ("wire-opentsdb", wire::fuzzing::fuzz_opentsdb),
    ("wire-prom-json", wire::fuzzing::fuzz_prom_json),
    ("influxql", influxql::fuzzing::fuzz_influxql),
    ("flux", flux::fuzzing::fuzz_flux),
    ("promql-parse", promql::fuzzing::fuzz_parse),
    ("promql-metricsql", promql::fuzzing::fuzz_metricsql),
    ("engine-evaluate", engine::fuzzing::fuzz_evaluate),
    ("sql-parquet", sql::fuzzing::fuzz_parquet),
    ("sql-rows", sql::fuzzing::fuzz_rows),
    ("sql-statements", sql::fuzzing::fuzz_statements),
];
/// Bytes of an input.
pub const INPUT_SIZE_MAX: usize = 4096;
