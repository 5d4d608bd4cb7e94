//! Samples of a real Prometheus that are older than what it calls its oldest time, as they came out of order.

use anyhow::{Result, ensure};
use e2e::migration::must;
use e2e::{Client, Launch, Prometheus};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::remote_write::encode::{MillisSample, RequestV1};

const DAY_MS: i64 = 86_400_000;

fn write(authority: &str, millis: i64, value: f64) -> Result<()> {
    let mut request = RequestV1::new();
    request.series(&[("__name__", "m")], &[MillisSample { millis, value }]);
    let body = snap::raw::Encoder::new().compress_vec(request.as_bytes())?;
    let headers = [
        ("content-encoding", "snappy"),
        ("content-type", "application/x-protobuf"),
        ("x-prometheus-remote-write-version", "0.1.0"),
    ];
    let answer = Client::new(authority).post("/api/v1/write", &headers, &body)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok(())
}

#[test]
fn samples_out_of_order_are_copied_and_compared() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let configuration =
        "global: {scrape_interval: 1h}\nstorage: {tsdb: {out_of_order_time_window: 30d}}\n";
    let flags = ["--web.enable-remote-write-receiver"];
    let prometheus = Prometheus::start(directory.path(), &flags, |_| configuration.to_string())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
    for (millis, value) in
        [(now - 3_600_000, 1.0), (now - 5 * DAY_MS, 5.0), (now - 3 * DAY_MS, 3.0)]
    {
        write(prometheus.authority(), millis, value)?;
    }
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let url = format!("http://{}", prometheus.authority());
    let said = must(&server, directory.path(), &["prometheus", &url, "--dry-run"])?;
    ensure!(said.contains("before 20"), "{said}");
    let said = must(&server, directory.path(), &["prometheus", &url])?;
    ensure!(said.contains("3 samples of"), "{said}");
    ensure!(server.export("m")?.len() == 3, "{said}");
    let said = must(&server, directory.path(), &["verify", "prometheus", &url])?;
    ensure!(said.contains("with 3 samples compared; 0 differ"), "{said}");
    server.stop()
}
