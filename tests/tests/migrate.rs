//! `quipu migrate`: history of a real VictoriaMetrics, a real Prometheus and its blocks in a Quipu, and
//! what happens when sources break off or lie.

use anyhow::{Context, Result, ensure};
use e2e::migration::{lines, migrate, must};
use e2e::victoria::start_victoria;
use e2e::{Client, Launch, Prometheus, Server};
use histogram::{Bucket, Histogram, ResetHint};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::spawn;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::remote_write::encode::{MillisSample, RequestV1};
use wire::remote_write::encode_histograms::{CountForm, MillisHistogram};

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;

/// What VictoriaMetrics shows as no JSON does, and a place where it is not.
fn check_odd_answers(
    victoria: &mut Client,
    server: &Server,
    directory: &Path,
    url: &str,
) -> Result<()> {
    let endless = format!("endless +Inf {}\nendless -Inf {}\n", START * 1000 + 1, START * 1000 + 2);
    victoria.post("/api/v1/import/prometheus", &[], endless.as_bytes())?;
    victoria.get("/internal/force_flush")?;
    let only = ["victoriametrics", url, "--match", "endless"];
    must(server, directory, &only)?;
    let said = must(server, directory, &[&["verify"], &only[..]].concat())?;
    ensure!(said.contains("with 2 samples compared; 0 differ"), "{said}");
    let nowhere = format!("{url}/nowhere");
    let said = migrate(server, directory, &["verify", "victoriametrics", &nowhere])?;
    ensure!(said.code == 2, "it could not look: {}", said.text);
    Ok(())
}

#[test]
fn the_history_of_a_victoriametrics_is_copied_and_compared() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let mut lines = String::new();
    for row in 0..500 {
        for host in 0..4 {
            let at = START + row * 600;
            lines +=
                &format!("cpu,host=h{host},zone=é\\ {host} v={},n={row}i {at}\n", row as f64 / 7.0);
        }
    }
    for year in 0..3 {
        lines += &format!("old v={year} {}\n", START - (year + 1) * 31_536_000);
    }
    let mut victoria = Client::new(&authority);
    let written = victoria.post("/write?precision=s", &[], lines.as_bytes())?;
    ensure!(written.status == 204, "{}", written.excerpt());
    victoria.get("/internal/force_flush")?;

    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let url = format!("http://{authority}");
    let told = must(&server, directory.path(), &["victoriametrics", &url, "--dry-run"])?;
    ensure!(told.contains("2026-09-02") && told.contains("7 windows; nothing"), "{told}");
    ensure!(server.export("{__name__!=\"\"}")?.is_empty(), "a dry run");
    let said = must(&server, directory.path(), &["victoriametrics", &url])?;
    ensure!(said.contains("4003 samples of 7 windows sent; 0 requests"), "{said}");
    ensure!(said.contains("no samples from 2025-08-30"), "{said}");

    let ask = "/api/v1/export?match[]=%7B__name__!%3D%22%22%7D&start=0";
    let (there, here) = (victoria.get(ask)?.export()?, server.get(ask)?.export()?);
    ensure!(there.len() == 4003 && there == here, "{} and {}", there.len(), here.len());
    let said = must(&server, directory.path(), &["verify", "victoriametrics", &url])?;
    ensure!(said.contains("with 4003 samples compared; 0 differ"), "{said}");

    // Clients write to Quipu already: what is newer here is no difference.
    let newer = START + 499 * 600 + 1;
    server.write("/write?precision=s", format!("cpu,host=h1,zone=é\\ 1 n=7 {newer}\n"))?;
    let said = must(&server, directory.path(), &["verify", "victoriametrics", &url])?;
    ensure!(said.contains("with 4003 samples compared; 0 differ"), "{said}");

    // What is missing here, and what is another, is named.
    server.post("/api/v1/admin/tsdb/delete_series?match[]=old_v", "")?;
    server.write("/write?precision=s", format!("cpu,host=h1,zone=é\\ 1 n=7 {START}\n"))?;
    let said = migrate(&server, directory.path(), &["verify", "victoriametrics", &url])?;
    ensure!(said.code == 1, "{}", said.text);
    ensure!(said.text.contains("1 samples there, 0 here"), "{}", said.text);
    ensure!(said.text.contains("other values"), "{}", said.text);
    ensure!(said.text.contains("; 4 differ"));
    check_odd_answers(&mut victoria, &server, directory.path(), &url)?;
    // Copying again mends the one, not what is newer here; a part of it under other labels.
    let again = [
        "victoriametrics",
        &url,
        "--match",
        "old_v",
        "--rename-label",
        "__name__=was",
        "--set-label",
        "__name__=older",
        "--set-label",
        "from=vm",
    ];
    must(&server, directory.path(), &again)?;
    ensure!(server.export("older{from=\"vm\"}")?.len() == 3, "other labels");
    server.stop()
}

fn whole(at: i64) -> MillisHistogram {
    let bucket = |index, count: i64| Bucket { index, count: count as f64 };
    let positive = vec![bucket(-3, 2 + at), bucket(-2, 5 + 2 * at), bucket(1, 1)];
    let negative = vec![bucket(0, 3)];
    let count = positive.iter().chain(&negative).map(|one| one.count).sum::<f64>() + 1.0;
    let histogram = Histogram {
        schema: 1,
        reset_hint: ResetHint::Unknown,
        zero_threshold: 0.001,
        zero_count: 1.0,
        count,
        sum: 2.5 * at as f64,
        positive,
        negative,
        custom_bounds: Vec::new(),
    };
    MillisHistogram { millis: 0, histogram, form: CountForm::Whole }
}

/// A Prometheus with floats, histograms with whole counts and a series that has ended.
fn start_prometheus(directory: &Path) -> Result<Prometheus> {
    let flags = [
        "--web.enable-remote-write-receiver",
        "--web.enable-admin-api",
        "--enable-feature=native-histograms",
    ];
    let prometheus =
        Prometheus::start(directory, &flags, |_| "global: {scrape_interval: 1h}\n".to_string())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
    // Its head takes samples of the last hours.
    let first = now - 50 * 60 * 1000;
    let mut request = RequestV1::new();
    for host in 0..3 {
        let name = format!("h{host}");
        let labels = [("__name__", "temp"), ("host", name.as_str()), ("odd", "é \"\\")];
        let value = |at: i64| match at {
            7 => f64::INFINITY,
            299 => model::stale_marker(),
            at => (at * (host + 1)) as f64 / 3.0,
        };
        let samples: Vec<MillisSample> = (0..300)
            .map(|at| MillisSample { millis: first + at * 10_000, value: value(at) })
            .collect();
        request.series(&labels, &samples);
    }
    let histograms: Vec<MillisHistogram> =
        (0..250).map(|at| MillisHistogram { millis: first + at * 10_000, ..whole(at) }).collect();
    request.mixed_series(&[("__name__", "latency"), ("job", "a")], &[], &histograms);
    let body = snap::raw::Encoder::new().compress_vec(request.as_bytes())?;
    let headers = [
        ("content-encoding", "snappy"),
        ("content-type", "application/x-protobuf"),
        ("x-prometheus-remote-write-version", "0.1.0"),
    ];
    let answer = Client::new(prometheus.authority()).post("/api/v1/write", &headers, &body)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok(prometheus)
}

/// What every path that Prometheus knows brings.
fn check_prometheus(server: &Server) -> Result<()> {
    let export = server.export("temp")?;
    ensure!(export.len() == 900 && export.0.len() == 3, "{}", export.len());
    let text = lines(server)?.join("\n");
    ensure!(text.matches("\"Infinity\"").count() == 3, "infinities");
    ensure!(
        text.matches("StaleNaN").count() + text.matches("NaN:7ff0000000000002").count() == 3,
        "ended series"
    );
    let latency = lines(server)?.into_iter().filter(|line| line.contains("\"latency\""));
    let latency: Vec<String> = latency.collect();
    let json: serde_json::Value = serde_json::from_str(latency.first().context("no latency")?)?;
    let found = json["histograms"].as_array().context("no histograms")?;
    ensure!(found.len() == 250, "{} histograms", found.len());
    for (at, one) in (0i64..).zip(found) {
        ensure!(
            one["count"] == 12 + 3 * at || one["count"].as_f64() == Some((12 + 3 * at) as f64),
            "{at}: {one}"
        );
        let counts: Vec<f64> = one["positive"]
            .as_array()
            .context("buckets")?
            .iter()
            .filter_map(|pair| pair[1].as_f64())
            .collect();
        ensure!(counts == [(2 + at) as f64, (5 + 2 * at) as f64, 1.0], "{at}: {one}");
    }
    Ok(())
}

fn snapshot(prometheus: &Prometheus, directory: &Path) -> Result<PathBuf> {
    let answer =
        Client::new(prometheus.authority()).post("/api/v1/admin/tsdb/snapshot", &[], b"")?;
    let name = answer.data()?["name"].as_str().context("no name")?.to_string();
    Ok(directory.join("prometheus/snapshots").join(name))
}

#[test]
fn a_prometheus_and_its_blocks_are_copied_alike() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let prometheus = start_prometheus(directory.path())?;
    let live = Launch::new(&directory.path().join("live")).start()?;
    let url = format!("http://{}", prometheus.authority());
    let said = must(&live, directory.path(), &["prometheus", &url, "--start", "now-2h"])?;
    ensure!(said.contains("1150 samples"), "{said}");
    check_prometheus(&live)?;
    let verify = ["verify", "prometheus", &url, "--start", "now-2h"];
    let said = must(&live, directory.path(), &verify)?;
    ensure!(said.contains("1150 samples compared; 0 differ"), "{said}");
    // What two selectors choose is counted once.
    let twice = [&verify[..], &["--match", "temp", "--match", "{host=\"h1\"}"]].concat();
    let said = must(&live, directory.path(), &twice)?;
    ensure!(said.contains("900 samples compared; 0 differ"), "{said}");

    let blocks = snapshot(&prometheus, directory.path())?;
    let place = blocks.to_string_lossy().into_owned();
    let cold = Launch::new(&directory.path().join("cold")).start()?;
    let said = must(&cold, directory.path(), &["prometheus-blocks", &place])?;
    ensure!(said.contains("1150 samples"), "{said}");
    check_prometheus(&cold)?;
    must(&cold, directory.path(), &["verify", "prometheus-blocks", &place])?;
    // A Quipu is a source, too.
    let other = Launch::new(&directory.path().join("other")).start()?;
    must(&other, directory.path(), &["quipu", cold.url()])?;
    check_prometheus(&other)?;

    // Blocks that rot are named, and nothing is called done.
    let block = std::fs::read_dir(&blocks)?.next().context("no block")??.path();
    lose_a_page(&cold, directory.path(), &block)?;
    label_as_thanos(directory.path(), &block)?;
    // Of the index the strings, for nothing else but series is read.
    for (file, word, at) in [("chunks/000001", "chunk at", 2000), ("index", "index", 20)] {
        let path = block.join(file);
        let sound = std::fs::read(&path)?;
        let mut rotten = sound.clone();
        rotten[at] ^= 0x20;
        std::fs::write(&path, &rotten)?;
        let said = migrate(&cold, directory.path(), &["prometheus-blocks", &place])?;
        ensure!(said.code == 1 && said.text.contains(word), "{file}: {}", said.text);
        ensure!(said.text.contains("checksum"), "{file}: {}", said.text);
        std::fs::write(&path, &sound[..sound.len() / 2])?;
        let said = migrate(&cold, directory.path(), &["prometheus-blocks", &place])?;
        ensure!(said.code == 1, "{file} cut short: {}", said.text);
        std::fs::write(&path, &sound)?;
    }
    must(&cold, directory.path(), &["prometheus-blocks", &place])?;
    let empty = directory.path().to_string_lossy().into_owned();
    let said = migrate(&cold, directory.path(), &["prometheus-blocks", &empty])?;
    ensure!(said.code == 1 && said.text.contains("no blocks"), "{}", said.text);
    cold.stop()
}

/// A page of the index that is zero is no end of it.
fn lose_a_page(server: &Server, directory: &Path, block: &Path) -> Result<()> {
    let index = block.join("index");
    let sound = std::fs::read(&index)?;
    let contents = &sound[sound.len() - 52..];
    let series = usize::try_from(u64::from_be_bytes(contents[8..16].try_into()?))?;
    let start = series.next_multiple_of(16);
    let mut lost = sound.clone();
    lost[start..start + 32].fill(0);
    std::fs::write(&index, &lost)?;
    let place = block.to_string_lossy().into_owned();
    let said = migrate(server, directory, &["prometheus-blocks", &place])?;
    ensure!(said.code == 1 && said.text.contains("a series of no bytes"), "{}", said.text);
    std::fs::write(&index, &sound)?;
    // And what an index has is what its block says that it has.
    let meta = block.join("meta.json");
    let text = std::fs::read_to_string(&meta)?;
    std::fs::write(&meta, text.replace("\"numSeries\": 4", "\"numSeries\": 5"))?;
    let said = migrate(server, directory, &["prometheus-blocks", &place])?;
    ensure!(said.code == 1 && said.text.contains("4 series, meta.json says 5"), "{}", said.text);
    Ok(std::fs::write(&meta, text)?)
}

/// Labels that Thanos gives to a whole block tell its series from those of others.
fn label_as_thanos(directory: &Path, block: &Path) -> Result<()> {
    let meta = block.join("meta.json");
    let text = std::fs::read_to_string(&meta)?;
    let mut json: serde_json::Value = serde_json::from_str(&text)?;
    json["thanos"] = serde_json::json!({"labels": {"cluster": "a", "host": "of the block"}});
    std::fs::write(&meta, json.to_string())?;
    let server = Launch::new(&directory.join("thanos")).start()?;
    let place = block.to_string_lossy().into_owned();
    let chosen = ["prometheus-blocks", &place, "--match", "latency{cluster=\"a\"}"];
    must(&server, directory, &chosen)?;
    let found = lines(&server)?;
    ensure!(found.len() == 1 && found[0].contains("\"cluster\":\"a\""), "{found:?}");
    ensure!(found[0].contains("\"host\":\"of the block\""), "{found:?}");
    must(&server, directory, &[&["verify"], &chosen[..]].concat())?;
    Ok(std::fs::write(&meta, text)?)
}

/// An old server of two days, which breaks off in the middle of the older one as often as it is told to.
fn flaky(breaks: usize) -> Result<(u16, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let left = Arc::new(AtomicUsize::new(breaks));
    let shared = left.clone();
    spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = BufReader::new(&stream).lines().map_while(Result::ok);
            let asked = head.next().unwrap_or_default();
            let _: Vec<String> = head.take_while(|line| !line.is_empty()).collect();
            let is_older = asked.contains(&format!("start={}", START - 86_400));
            let body = match asked.contains("/labels") {
                true => "{\"status\":\"success\",\"data\":[\"__name__\"]}".to_string(),
                false => {
                    let at = if is_older { START - 86_400 } else { START } * 1000;
                    let line = |n: i64| {
                        format!(
                            "{{\"metric\":{{\"__name__\":\"m\",\"n\":\"{n}\"}},\"values\":[{n}],\"timestamps\":[{}]}}\n",
                            at + n
                        )
                    };
                    (0..50).map(line).collect()
                }
            };
            let is_broken = is_older
                && !asked.contains("/labels")
                && shared
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                    .is_ok();
            let sent = if is_broken { body.len() / 2 } else { body.len() };
            let head = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&body.as_bytes()[..sent]);
        }
    });
    Ok((port, left))
}

/// The one file that remembers a copy.
fn progress_file(directory: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "progress") {
            found.push(path);
        }
    }
    ensure!(found.len() == 1, "{found:?}");
    found.pop().context("no progress file")
}

#[test]
fn what_was_refused_is_not_done() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(&directory.path().join("quipu"));
    let server = launch.clone().flag("retention", "30d").start()?;
    let (port, _) = flaky(0)?;
    let url = format!("http://127.0.0.1:{port}");
    let (start, end) = ((START - 86_400).to_string(), (START + 86_399).to_string());
    let to = format!("http://127.0.0.1:{}", server.port());
    let arguments = ["victoriametrics", &url, "--start", &start, "--end", &end];
    for _ in 0..2 {
        let said = migrate(&server, directory.path(), &arguments)?;
        ensure!(said.code == 1 && said.text.contains("not done: 2 windows"), "{}", said.text);
        ensure!(said.text.contains("2026-08-29, 2026-08-30"), "{}", said.text);
        let words = "m{n=\"0\"}: timestamp 2026-08-29T00:00:00Z is older than the retention keeps";
        ensure!(said.text.contains(words), "whose and when: {}", said.text);
        progress_file(directory.path())?;
    }
    let port = server.port();
    server.stop()?;
    // The cause is mended: the same command copies it.
    let server = launch.flag("retention", "100y").port(port).start()?;
    ensure!(server.url() == to, "the same place");
    must(&server, directory.path(), &arguments)?;
    ensure!(server.export("m")?.len() == 100, "all of it");
    ensure!(progress_file(directory.path()).is_err(), "nothing is left to do");
    server.stop()
}

#[test]
fn progress_counts_for_one_store() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("quipu");
    let server = Launch::new(&data).start()?;
    let (port, left) = flaky(1000)?;
    let url = format!("http://127.0.0.1:{port}");
    let (start, end) = ((START - 86_400).to_string(), (START + 86_399).to_string());
    let arguments = ["victoriametrics", &url, "--start", &start, "--end", &end];
    let said = migrate(&server, directory.path(), &arguments)?;
    // What stands before the break is stored, though its day is not done.
    let count = server.export("m")?.len();
    ensure!(said.code == 1 && (50..100).contains(&count), "{count}: {}", said.text);
    left.store(0, Ordering::SeqCst);
    let port = server.port();
    server.stop()?;
    std::fs::remove_dir_all(&data)?;
    let server = Launch::new(&data).port(port).start()?;
    let said = must(&server, directory.path(), &arguments)?;
    ensure!(said.contains("another store than the one"), "{said}");
    ensure!(said.contains("100 samples of 2 windows sent"), "{said}");
    ensure!(server.export("m")?.len() == 100, "all of it");
    server.stop()?;
    let verified = e2e::launch::quipu(&["verify", "--data-dir"])?.arg(&data).output()?;
    let words = String::from_utf8_lossy(&verified.stdout).into_owned();
    ensure!(verified.status.success() && !words.contains("note"), "{words}");
    Ok(())
}

#[test]
fn a_copy_begins_anew_where_the_server_lost_what_was_sent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let (port, left) = flaky(1000)?;
    let url = format!("http://127.0.0.1:{port}");
    let (start, end) = ((START - 86_400).to_string(), (START + 86_399).to_string());
    let arguments = ["victoriametrics", &url, "--start", &start, "--end", &end];
    let said = migrate(&server, directory.path(), &arguments)?;
    ensure!(said.code == 1, "{}", said.text);
    server.post("/api/v1/admin/tsdb/delete_series?match[]=m", "")?;
    ensure!(server.export("m")?.is_empty(), "nothing is left");
    left.store(0, Ordering::SeqCst);
    let said = must(&server, directory.path(), &arguments)?;
    ensure!(said.contains("lost samples") && said.contains("begins anew"), "{said}");
    ensure!(said.contains("100 samples of 2 windows sent"), "{said}");
    ensure!(server.export("m")?.len() == 100, "all of it");
    server.stop()
}

#[test]
fn nobody_copies_a_server_to_itself() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let url = format!("{}/", server.url());
    let said = migrate(&server, directory.path(), &["quipu", &url, "--start", "1"])?;
    ensure!(
        said.code == 1 && said.text.contains("is where it is to be copied to"),
        "{}",
        said.text
    );
    server.stop()
}

#[test]
fn a_source_that_breaks_off_is_read_again_and_a_later_run_goes_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let (port, left) = flaky(2)?;
    let url = format!("http://127.0.0.1:{port}");
    let (start, end) = ((START - 86_400).to_string(), (START + 86_399).to_string());
    let arguments = ["victoriametrics", &url, "--start", &start, "--end", &end];
    let said = must(&server, directory.path(), &arguments)?;
    ensure!(said.matches("reading it again").count() == 2, "{said}");
    ensure!(
        said.contains("100 samples of 2 windows sent"),
        "what comes again is counted once: {said}"
    );
    ensure!(server.export("m")?.len() == 100, "each sample once");

    left.store(1000, Ordering::SeqCst);
    let other = Launch::new(&directory.path().join("other")).start()?;
    let said = migrate(&other, directory.path(), &arguments)?;
    ensure!(
        said.code == 1 && said.text.contains("run it again to go on from here"),
        "{}",
        said.text
    );
    let progress_file = progress_file(directory.path())?;
    let progress = std::fs::read_to_string(&progress_file)?;
    ensure!(progress.contains("2026-08-30") && !progress.contains("2026-08-29"), "{progress}");
    // Another copy is not its continuation.
    let name = progress_file.to_string_lossy().trim_end_matches(".progress").to_string();
    let another = ["victoriametrics", &url, "--match", "x", "--progress", &name];
    let said = migrate(&other, directory.path(), &another)?;
    ensure!(said.code == 1 && said.text.contains("of another copy"), "{}", said.text);
    left.store(0, Ordering::SeqCst);
    let said = must(&other, directory.path(), &arguments)?;
    ensure!(
        said.contains("going on: 1 of 2 windows are done") && said.contains("50 samples"),
        "{said}"
    );
    ensure!(other.export("m")?.len() == 100, "all of it");
    let said = migrate(&other, directory.path(), &["victoriametrics", "ftp://x"])?;
    ensure!(said.code == 1 && said.text.contains("must begin with http://"), "{}", said.text);
    other.stop()
}
