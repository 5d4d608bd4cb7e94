//! Metrics of keys and files against the real binary: the page for users of Velo names only metrics that
//! there are, and metrics move when the work is done.

use anyhow::{Context, Result, ensure};
use e2e::redis::RedisClient;
use e2e::{Launch, Server, poll};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: &str = include_str!("../../docs/velo-metrics.md");
const OF_VELO: &str = include_str!("../../testdata/redis/velo-metrics.txt");

fn start(directory: &Path) -> Result<Server> {
    Launch::new(directory).flag("redis-listen", "127.0.0.1:0").flag("kv-memory", "1MiB").start()
}

/// Names of metrics in a text: words that begin as ours do, up to a letter that no name has.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_of_name(letter));
    let starts = ["quipu_", "process_"];
    words.filter(|word| starts.iter().any(|start| word.starts_with(start))).collect()
}

/// Names of all samples of a scrape, and of all families.
fn names_in(scrape: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in scrape.lines() {
        match line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            Some((name, "histogram")) => {
                names.extend(["_bucket", "_sum", "_count", ""].map(|end| format!("{name}{end}")));
            }
            Some((name, _)) => {
                names.insert(name.to_owned());
            }
            None => {}
        }
    }
    names
}

#[test]
fn the_page_maps_every_metric_of_velo_to_metrics_that_there_are() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let names = names_in(&server.get("/metrics")?.text());
    let missing: Vec<&str> =
        metrics_in(PAGE).into_iter().filter(|one| !names.contains(*one)).collect();
    ensure!(missing.is_empty(), "the page names metrics that there are not: {missing:?}");
    let mut rows = BTreeMap::new();
    let (table, _) = PAGE.split_once("\n## ").context("two tables")?;
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [velo, ours, note] = cells[..] else { anyhow::bail!("three cells: {line}") };
        let is_explained = ours != "none" || 20 < note.len();
        ensure!(is_explained, "neither a metric nor a reason: {line}");
        ensure!(ours == "none" || !metrics_in(ours).is_empty(), "no metric: {line}");
        ensure!(rows.insert(velo.trim_matches('`'), ours).is_none(), "twice: {line}");
    }
    let listed: BTreeSet<&str> = OF_VELO.lines().collect();
    let mapped: BTreeSet<&str> = rows.keys().copied().collect();
    ensure!(listed == mapped && listed.len() == 135, "{:?}", listed.symmetric_difference(&mapped));
    server.stop()
}

/// Waits until a metric is larger than that.
fn wait_above(server: &Server, metric: &str, value: f64) -> Result<()> {
    poll(metric, PATIENCE, || {
        let now = server.metric(metric)?;
        ensure!(value < now, "{now}");
        Ok(())
    })
}

#[test]
fn metrics_of_keys_and_files_move_with_the_work() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let mut client = RedisClient::of(&server)?;
    ensure!(server.metric("quipu_kv_changes_unsaved")? == 0.0);
    let large = "x".repeat(100 << 10);
    client.must(&format!("SET large {large}"))?;
    let small = "y".repeat(300);
    for number in 0..6000 {
        client.must(&format!("SET key:{number} {number}{small}"))?;
    }
    client.must("EXPIRE key:1 1000")?;
    client.must("HSET h a b")?;
    ensure!(server.metric("quipu_kv_keys_added_total")? == 6002.0);
    wait_above(&server, "quipu_kv_changes_unsaved", 6000.0)?;
    let seconds = server.metric("quipu_kv_keys_expiry_seconds")?;
    ensure!((900.0..=1001.0).contains(&seconds), "{seconds}");
    wait_above(&server, "quipu_file_writes_total{kind=\"log\"}", 0.0)?;
    wait_above(&server, "quipu_file_sync_seconds_count{kind=\"log\"}", 0.0)?;
    client.must("SAVE")?;
    ensure!(server.metric("quipu_kv_checkpoints_total")? == 1.0);
    ensure!(server.metric("quipu_kv_changes_unsaved")? == 0.0);
    for metric in [
        "quipu_kv_checkpoint_seconds_total",
        "quipu_kv_index_file_bytes",
        "quipu_kv_large_records",
        "quipu_kv_large_segment_bytes",
        "quipu_kv_record_written_bytes_bucket{le=\"1024\"}",
        "quipu_file_written_bytes_total{kind=\"key_segment\"}",
        "quipu_file_written_bytes_total{kind=\"key_index\"}",
        "quipu_file_sync_seconds_sum{kind=\"key_segment\"}",
        "quipu_kv_log_sequence",
        "quipu_kv_command_duration_seconds_sum{command=\"set\"}",
        "quipu_system_load1",
    ] {
        let value = server.metric(metric)?;
        let is_zero_at_rest = metric == "quipu_system_load1";
        ensure!(0.0 < value || is_zero_at_rest, "{metric} is {value}");
    }
    let sets = server.metric("quipu_kv_command_duration_seconds_count{command=\"set\"}")?;
    let of_all = "quipu_kv_command_duration_seconds_bucket{command=\"set\",le=\"+Inf\"}";
    ensure!((sets, server.metric(of_all)?) == (6001.0, 6001.0), "{sets}");
    let (written, all) = (
        server.metric("quipu_kv_record_written_bytes_bucket{le=\"65536\"}")?,
        server.metric("quipu_kv_record_written_bytes_count")?,
    );
    ensure!(written < all, "the large value is above 64 KiB: {written} of {all}");
    server.stop()?;
    after_a_restart(directory.path(), &large)
}

/// Values are on disk after a restart: reads of small and large ones are counted apart.
fn after_a_restart(directory: &Path, large: &str) -> Result<()> {
    let server = start(directory)?;
    let mut client = RedisClient::of(&server)?;
    ensure!(server.metric("quipu_kv_record_reads_total{size=\"small\"}")? == 0.0);
    ensure!(client.must("GET large")?.text() == large);
    for number in 0..10 {
        client.must(&format!("GET key:{number}"))?;
    }
    ensure!(server.metric("quipu_kv_record_reads_total{size=\"small\"}")? == 10.0);
    ensure!(server.metric("quipu_kv_record_reads_total{size=\"large\"}")? == 1.0);
    let size = server.metric("quipu_kv_record_read_bytes_total{size=\"large\"}")?;
    ensure!(0.0 < size, "{size}");
    for kind in
        ["quipu_file_reads_total", "quipu_file_read_seconds_total", "quipu_file_read_bytes_total"]
    {
        let value = server.metric(&format!("{kind}{{kind=\"key_segment\"}}"))?;
        ensure!(0.0 < value, "{kind} is {value}");
    }
    // What is removed goes with a later checkpoint, and its segments with it.
    client.must("FLUSHALL")?;
    client.must("SAVE")?;
    wait_above(&server, "quipu_kv_removed_segments_total", 0.0)?;
    wait_above(&server, "quipu_kv_removed_segment_bytes_total", 0.0)?;
    wait_above(&server, "quipu_file_removals_total{kind=\"key_segment\"}", 0.0)?;
    server.stop()
}
