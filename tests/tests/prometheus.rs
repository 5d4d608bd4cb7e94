//! A real Prometheus scrapes a real node exporter and writes to Quipu, which is restarted meanwhile:
//! afterwards both have the same samples and give the same answers.

use anyhow::{Result, ensure};
use e2e::{Launch, Matrix, Program, Prometheus, Server, Vector, answers, free_port, poll};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No step takes longer, also on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Every sample of the test lies within this range.
const RANGE: &str = "15m";

/// Expressions that both must answer alike; their samples all lie in the last minutes.
const EXPRESSIONS: &[&str] = &[
    "up",
    "count({__name__=~\".+\"})",
    "count by (__name__, job) ({__name__=~\".+\"})",
    "rate(node_cpu_seconds_total[20s])",
    "sum by (mode) (rate(node_cpu_seconds_total[30s]))",
    "sum without (cpu, mode) (increase(node_cpu_seconds_total{mode!=\"idle\"}[30s]))",
    "topk(3, sum by (mode) (node_cpu_seconds_total))",
    "bottomk(2, node_cpu_seconds_total{mode=\"idle\"})",
    "histogram_quantile(0.9, sum by (le, handler) (prometheus_http_request_duration_seconds_bucket))",
    "histogram_quantile(0.5, rate(prometheus_tsdb_compaction_chunk_range_seconds_bucket[30s]))",
    "avg_over_time(node_load1[30s])",
    "quantile_over_time(0.75, go_goroutines[30s])",
    "stddev by (job) (go_memstats_alloc_bytes)",
    "node_memory_MemFree_bytes / on (instance, job) node_memory_MemTotal_bytes",
    "node_filesystem_avail_bytes / ignoring (nothing) node_filesystem_size_bytes > 0.001",
    "max_over_time(deriv(node_load1[10s])[20s:5s])",
    "changes(node_time_seconds[30s])",
    "label_replace(up, \"host\", \"$1\", \"instance\", \"(.*):.*\")",
    "scrape_samples_scraped offset 5s",
    "timestamp(up)",
    "absent(nothing_of_that_name{job=\"x\"})",
    "predict_linear(node_memory_MemFree_bytes[30s], 3600)",
];

/// Prometheus and what it scrapes.
struct Peer {
    prometheus: Prometheus,
    exporter: Option<Program>,
}

impl Peer {
    fn start(directory: &Path, quipu: &Server) -> Result<Peer> {
        let exporter_authority = format!("127.0.0.1:{}", free_port()?);
        let exporter = Program::start(
            "prometheus-node-exporter",
            &[format!("--web.listen-address={exporter_authority}")],
            &directory.join("node.log"),
        )?;
        let prometheus = Prometheus::start(directory, &[], |authority| {
            let targets = [exporter_authority, authority.to_string()];
            configuration(Some(&targets), quipu.url())
        })?;
        Ok(Peer { prometheus, exporter: Some(exporter) })
    }

    /// The same with nothing to scrape: what was scraped gets stale markers.
    fn stop_scraping(&mut self, quipu: &Server) -> Result<()> {
        self.prometheus.reconfigure(&configuration(None, quipu.url()))?;
        self.exporter = None;
        Ok(())
    }

    fn get(&self, query: &str, time: f64) -> Result<e2e::Response> {
        self.prometheus.get(&answers::instant_path(query, time))
    }

    fn metric(&self, prefix: &str) -> Result<f64> {
        let text = self.prometheus.get("/metrics")?.text();
        let lines = text.lines().filter(|line| line.starts_with(prefix));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }
}

/// Without targets the jobs stay: Prometheus writes stale markers for targets that are gone, not for
/// jobs that are.
fn configuration(targets: Option<&[String; 2]>, quipu: &str) -> String {
    let mut text = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\n\
         remote_write:\n\
         - url: {quipu}/api/v1/write\n\
         \x20 queue_config: {{ batch_send_deadline: 500ms, min_backoff: 30ms, max_backoff: 500ms }}\n\
         scrape_configs:\n"
    );
    for (idx, job) in ["node", "self"].iter().enumerate() {
        let target = targets.map_or(String::new(), |targets| format!("'{}'", targets[idx]));
        text.push_str(&format!(
            "- job_name: {job}\n  static_configs: [ {{ targets: [{target}] }} ]\n"
        ));
    }
    text
}

fn now() -> Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}

/// Waits until Quipu has that many scrapes of the node exporter.
fn wait_for_scrapes(quipu: &Server, count: f64) -> Result<()> {
    poll("scrapes", PATIENCE, || {
        let up = quipu.vector("count_over_time(up{job=\"node\"}[15m])", now()?)?;
        let found: f64 = up.values().filter_map(|text| text.parse::<f64>().ok()).sum();
        ensure!(count <= found, "{found} of {count} scrapes");
        Ok(())
    })
}

/// Waits until Prometheus has nothing left to send and Quipu has what Prometheus has.
fn wait_until_equal(peer: &Peer, quipu: &Server, time: f64) -> Result<Matrix> {
    let all = format!("{{__name__=~\".+\"}}[{RANGE}]");
    poll("equal samples", PATIENCE, || {
        let pending = peer.metric("prometheus_remote_storage_samples_pending")?;
        ensure!(pending == 0.0, "{pending} samples pending");
        let expected = peer.get(&all, time)?.matrix()?;
        same(&expected, &quipu.matrix(&all, time)?)?;
        Ok(expected)
    })
}

/// Fails with the first difference.
fn same(expected: &Matrix, found: &Matrix) -> Result<()> {
    for (labels, samples) in expected {
        let others = found.get(labels);
        let Some(others) = others else { anyhow::bail!("{labels} is missing") };
        let different = samples.iter().find(|sample| !others.contains(sample));
        ensure!(different.is_none(), "{labels}: {different:?} is missing");
        ensure!(samples == others, "{labels}: {} and {} samples", samples.len(), others.len());
    }
    let more = found.keys().find(|labels| !expected.contains_key(*labels));
    ensure!(more.is_none(), "{more:?} is only here");
    Ok(())
}

/// A moment near `time` whose milliseconds are far from those of every sample: whether a range
/// includes its left end does not matter then.
fn between_samples(matrix: &Matrix, time: f64) -> f64 {
    let mut phases: Vec<i64> =
        matrix.values().flatten().map(|(millis, _)| millis.rem_euclid(1000)).collect();
    phases.sort_unstable();
    phases.dedup();
    let next = phases.iter().skip(1).copied().chain([phases[0] + 1000]);
    let widest = phases.iter().zip(next).map(|(&a, b)| (b - a, (a + b) / 2)).max();
    let (_, middle) = widest.expect("samples");
    time.floor() + (middle.rem_euclid(1000) as f64) / 1000.0
}

/// The same series with the same values; sums may differ in their last digits, as versions of
/// Prometheus add up in different ways.
fn alike(query: &str, expected: &Vector, found: &Vector) -> Result<()> {
    let (a, b): (Vec<_>, Vec<_>) = (expected.keys().collect(), found.keys().collect());
    ensure!(a == b, "{query}: {a:?} and {b:?}");
    for (labels, text) in expected {
        let other = &found[labels];
        let (a, b) = (text.parse::<f64>()?, other.parse::<f64>()?);
        let is_close = (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
        ensure!(text == other || is_close, "{query}: {labels} is {text} and {other}");
    }
    Ok(())
}

#[test]
fn what_prometheus_has_quipu_has() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(&directory.path().join("quipu"));
    let quipu = launch.start()?;
    let port = quipu.port();
    let mut peer = Peer::start(directory.path(), &quipu)?;
    wait_for_scrapes(&quipu, 10.0)?;

    quipu.stop()?;
    poll("failed sends", PATIENCE, || {
        let retried = peer.metric("prometheus_remote_storage_samples_retried_total")?;
        ensure!(0.0 < retried, "nothing was sent meanwhile");
        Ok(())
    })?;
    let quipu = launch.port(port).start()?;
    wait_for_scrapes(&quipu, 30.0)?;

    let busy = now()?;
    peer.stop_scraping(&quipu)?;
    // The last thing that Prometheus writes are stale markers, which only an export shows.
    poll("stale markers", PATIENCE, || {
        let up = quipu.export("up")?;
        let stale = |samples: &Vec<(String, String)>| {
            samples.last().is_some_and(|(_, value)| value == "\"NaN:7ff0000000000002\"")
        };
        ensure!(up.0.len() == 2 && up.0.values().all(stale), "{} series", up.0.len());
        Ok(())
    })?;
    let end = now()?;
    let expected = wait_until_equal(&peer, &quipu, end)?;
    let count: usize = expected.values().map(Vec::len).sum();
    println!("{} series, {count} samples are equal", expected.len());
    assert!(500 < expected.len() && 10_000 < count, "{} series, {count} samples", expected.len());

    let quipu = quipu.restart()?;
    let all = format!("{{__name__=~\".+\"}}[{RANGE}]");
    same(&expected, &quipu.matrix(&all, end)?)?;
    let middle = between_samples(&expected, busy - 5.0);
    for query in EXPRESSIONS {
        for time in [middle, middle - 3.0] {
            let expected = peer.get(query, time)?.vector()?;
            alike(query, &expected, &quipu.vector(query, time)?)?;
            ensure!(!expected.is_empty(), "{query} has no answer to compare");
        }
    }
    // Nobody is up any more, which only stale markers can say so soon.
    assert_eq!(peer.get("up", end)?.vector()?.len(), 0);
    assert_eq!(quipu.vector("up", end)?.len(), 0);
    ranges(&peer, &quipu, middle)?;
    quipu.stop()
}

/// A graph of the whole time is the same on both.
fn ranges(peer: &Peer, quipu: &Server, end: f64) -> Result<()> {
    for query in ["up", "rate(node_cpu_seconds_total[10s])", "node_memory_MemFree_bytes"] {
        let query = answers::percent(query);
        let start = end - 40.0;
        let path =
            format!("/api/v1/query_range?query={query}&start={start:.3}&end={end:.3}&step=1");
        let expected = peer.prometheus.get(&path)?.matrix()?;
        let found = quipu.get(&path)?.matrix()?;
        ensure!(expected.keys().eq(found.keys()), "{query}: other series");
        for (labels, samples) in &expected {
            ensure!(samples.len() == found[labels].len(), "{query}: {labels}");
            for ((at, a), (other_at, b)) in samples.iter().zip(&found[labels]) {
                let (x, y) = (a.parse::<f64>()?, b.parse::<f64>()?);
                let is_close = a == b || (x - y).abs() <= 1e-9 * x.abs().max(y.abs());
                ensure!(at == other_at && is_close, "{query}: {labels}: {at} {a}, {other_at} {b}");
            }
        }
    }
    Ok(())
}
