//! Broken, hostile and extreme input: each has a named limit and a clear error, the good part of a
//! request is stored, a counter tells, memory stays bounded, and the next request works.

use anyhow::{Context, Result, ensure};
use e2e::http::{connect, head, read_response};
use e2e::protobuf::{bytes, double, label, number};
use e2e::{Launch, Response, Server, poll, run};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::thread::scope;
use std::time::Duration;

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;
/// No bad input may make the process larger than this: some bodies of the largest size.
const RESIDENT_MAX: u64 = 512 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// A server and what holds after each bad request.
struct Victim {
    server: Server,
    rounds: u32,
    _directory: tempfile::TempDir,
}

impl Victim {
    fn start(flags: &[(&str, &str)]) -> Result<Victim> {
        let directory = tempfile::tempdir()?;
        let mut launch = Launch::new(directory.path());
        for (name, value) in flags {
            launch = launch.flag(name, value);
        }
        Ok(Victim { server: launch.start()?, rounds: 0, _directory: directory })
    }

    /// The next request works, memory is bounded, nothing has panicked.
    fn is_well(&mut self, after: &str) -> Result<()> {
        self.rounds += 1;
        let line = format!("next v={} {NOON}", self.rounds);
        self.server.write("/write?precision=ms", line).context(after.to_string())?;
        let found = self.server.export("next_v")?.samples("next_v{}");
        ensure!(found == [format!("{NOON} {}", self.rounds)], "after {after}: {found:?}");
        let resident = self.server.resident_bytes("VmHWM")?;
        ensure!(resident < RESIDENT_MAX, "after {after}: {} MiB", resident >> 20);
        let panics = self.server.metric("quipu_http_panics_total")?;
        ensure!(panics == 0.0, "after {after}: {panics} panics\n{}", self.server.log());
        println!("after {after}: {} MiB at most", resident >> 20);
        Ok(())
    }

    fn limit_hits(&self, limit: &str) -> Result<f64> {
        self.server.metric(&format!("quipu_limit_hits_total{{limit=\"{limit}\"}}"))
    }

    fn lines_refused(&self, protocol: &str) -> Result<f64> {
        let sum = |name: &str| {
            self.server.metric(&format!("quipu_insert_{name}_total{{protocol=\"{protocol}\"}}"))
        };
        Ok(sum("lines_refused")? + sum("rows_refused")?)
    }
}

#[track_caller]
fn refused(answer: &Response, status: u16, parts: &[&str]) {
    let text = answer.text();
    assert_eq!(answer.status, status, "{}", answer.excerpt());
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {}", answer.excerpt());
    }
}

#[test]
fn bad_lines_are_refused_by_number_and_the_others_kept() -> Result<()> {
    let mut victim = Victim::start(&[])?;
    let long_value = format!("m,host={} v=1 {NOON}", "x".repeat(1 << 20));
    let long_label = format!("m,host={} v=1 {NOON}", "x".repeat(5000));
    let many: String = (0..10_000).map(|n| format!(",t{n}=v")).collect();
    let many = format!("m{many} v=1 {NOON}");
    let some: String = (0..70).map(|n| format!(",t{n}=v")).collect();
    let some = format!("m{some} v=1 {NOON}");
    let cases: [(&str, &[u8], &str); 9] = [
        ("half a line", b"m,host=a", "missing fields"),
        ("half a string", b"m,host=a s=\"half", "unbalanced quotes"),
        ("1 MiB of a label", long_value.as_bytes(), "65535"),
        ("5,000 bytes of a label", long_label.as_bytes(), "max-label-value-size"),
        ("10,000 labels", many.as_bytes(), "65535"),
        ("70 labels", some.as_bytes(), "max-labels-per-series"),
        ("invalid UTF-8 in a tag", b"m,host=\xff\xfe v=1", "UTF-8"),
        ("invalid UTF-8 in a name", b"m\xc3( v=1", "UTF-8"),
        ("a number that is none", b"m v=0x10", "invalid number"),
    ];
    for (round, (name, line, reason)) in cases.into_iter().enumerate() {
        let good = |at: usize| format!("good,round={round} v={at} {}\n", NOON + at as i64);
        let body = [good(1).as_bytes(), line, b"\n", good(3).as_bytes()].concat();
        let before = victim.lines_refused("influx")?;
        let answer = victim.server.post("/api/v2/write?precision=ms", &body)?;
        refused(&answer, 400, &["partial write", reason]);
        assert_eq!(answer.json()?["line"], 2, "{name}: {}", answer.excerpt());
        assert_eq!(victim.lines_refused("influx")?, before + 1.0, "{name}");
        let kept = victim.server.export(&format!("good_v{{round=\"{round}\"}}"))?;
        assert_eq!(kept.len(), 2, "{name}");
        let answer = victim.server.post("/write?precision=ms", &body)?;
        refused(&answer, 400, &["partial write", "dropped=1", reason]);
        victim.is_well(name)?;
    }
    assert!(victim.server.export("m_v")?.is_empty());
    victim.server.stop()
}

#[test]
fn bad_text_and_json_are_refused_by_number_and_the_others_kept() -> Result<()> {
    let mut victim = Victim::start(&[])?;
    let long = "x".repeat(1 << 20);
    let text: Vec<Vec<u8>> = vec![
        b"m{a=\"b\" 1".to_vec(),
        b"m{a=\"\xff\"} 1".to_vec(),
        b"m one".to_vec(),
        format!("m{{a=\"{long}\"}} 1").into_bytes(),
    ];
    for line in text {
        let body = [b"good 1\n".as_slice(), &line, b"\nfine 2\n"].concat();
        let answer = victim.server.post("/api/v1/import/prometheus", &body)?;
        refused(&answer, 400, &["2 samples stored, 1 line", "line 2: "]);
        assert!(answer.body.len() < 2000, "an error repeats no megabyte");
        victim.is_well("bad text")?;
    }
    let json: Vec<Vec<u8>> = vec![
        br#"{"metric":{"__name__":"m"},"values":[1],"timestamps":[1"#.to_vec(),
        br#"{"metric":{"__name__":"m"},"values":[1,2],"timestamps":[1]}"#.to_vec(),
        b"{\"metric\":{\"__name__\":\"m\xff\"},\"values\":[1],\"timestamps\":[1]}".to_vec(),
        [b"[".repeat(100_000), b"]".repeat(100_000)].concat(),
        [br#"{"a":"#.repeat(100_000), b"}".repeat(100_000)].concat(),
        format!(r#"{{"metric":{{"__name__":"m","a":"{long}"}},"values":[1],"timestamps":[1]}}"#)
            .into_bytes(),
    ];
    for line in json {
        let good =
            |name| format!(r#"{{"metric":{{"__name__":"{name}"}},"values":[1],"timestamps":[1]}}"#);
        let body = [good("good").as_bytes(), b"\n", &line, b"\n", good("fine").as_bytes()].concat();
        let answer = victim.server.post("/api/v1/import", &body)?;
        refused(&answer, 400, &["2 samples stored, 1 line", "line 2: "]);
        assert!(answer.body.len() < 2000, "an error repeats no megabyte");
        victim.is_well("bad JSON")?;
    }
    assert_eq!(victim.lines_refused("exposition")?, 4.0);
    assert_eq!(victim.lines_refused("json_lines")?, 6.0);
    victim.server.stop()
}

#[test]
fn a_line_of_100_mb() -> Result<()> {
    let mut victim = Victim::start(&[])?;
    // A label, a string and a number without end.
    let cases: [(&str, &str, &str); 3] = [
        ("m,host=", " v=1", "> 65535"),
        ("m,host=a s=\"", "\"", "more than 65536 bytes"),
        ("m,host=a v=", "", "invalid number"),
    ];
    for (start, end, limit) in cases {
        let mut body = format!("good v=1\n{start}").into_bytes();
        body.resize(body.len() + 100_000_000, b'0');
        body.extend_from_slice(format!("{end}\ngood,more=yes v=2\n").as_bytes());
        let answer = victim.server.post("/api/v2/write", &body)?;
        refused(&answer, 400, &["partial write", limit]);
        assert_eq!(answer.json()?["line"], 2);
        assert!(answer.body.len() < 2000, "an error repeats no megabyte");
        assert_eq!(victim.server.export("{__name__=\"good_v\", more=\"yes\"}")?.len(), 1);
        victim.is_well(start)?;
        victim.server.write("/api/v1/admin/tsdb/delete_series?match=good_v", "")?;
    }
    // Of fields that are too long the first is told, then that the line is.
    let field = format!("s=\"{}\",", "x".repeat(60_000));
    let body = format!("good v=1\nm {}v=1\ngood,more=yes v=2\n", field.repeat(300));
    let answer = victim.server.post("/write", &body)?;
    refused(&answer, 400, &["partial write", "influx.max-string-size", "dropped=2"]);
    assert!(victim.server.export("m_v")?.is_empty());
    victim.is_well("a line of 18 MB")?;
    // The same without any line end, in all text protocols.
    let body = vec![b'y'; 100_000_000];
    let cases = [
        ("/write", "missing fields"),
        ("/api/v1/import/prometheus", "16777216 (max-line-size)"),
        ("/api/v1/import", "16777216 (max-line-size)"),
    ];
    for (path, limit) in cases {
        let answer = victim.server.post(path, &body)?;
        refused(&answer, 400, &[limit]);
        assert!(answer.body.len() < 2000, "an error repeats no megabyte");
        victim.is_well(path)?;
    }
    victim.server.stop()
}

#[test]
fn bodies_beyond_the_limit_and_bombs() -> Result<()> {
    let mut victim = Victim::start(&[])?;
    let max = 128 << 20;
    let answer = victim.server.post("/write", vec![b'x'; max + 1])?;
    refused(&answer, 413, &["max-body-size", "more than 128.0 MiB"]);
    assert_eq!(victim.limit_hits("max-body-size")?, 1.0);
    victim.is_well("a body of 128 MiB and a byte")?;

    let bomb = gzip_of_zeros(1 << 30)?;
    println!("1 GiB in {} bytes", bomb.len());
    for (hits, path) in
        [(2.0, "/write"), (3.0, "/api/v1/import"), (4.0, "/api/v1/import/prometheus")]
    {
        let answer = victim.server.post_with(path, &[("Content-Encoding", "gzip")], &bomb)?;
        refused(&answer, 413, &["max-body-size", "more than 128.0 MiB"]);
        assert_eq!(victim.limit_hits("max-body-size")?, hits);
        victim.is_well("a gzip bomb")?;
    }
    // Snappy says how large it will be: 4 GiB less one.
    let promise = [b"\xff\xff\xff\xff\x0f".as_slice(), &[0; 100]].concat();
    let answer = remote_write_raw(&victim.server, &promise)?;
    refused(&answer, 413, &["max-body-size"]);
    victim.is_well("a snappy promise")?;
    let answer =
        victim.server.post_with("/write", &[("Content-Encoding", "gzip")], &bomb[..1000])?;
    refused(&answer, 400, &["gzip"]);
    victim.is_well("half a gzip body")?;
    victim.server.stop()
}

#[test]
fn many_bombs_at_a_time() -> Result<()> {
    let mut victim =
        Victim::start(&[("max-bodies-size", "256MiB"), ("insert-queue-duration", "2s")])?;
    let bomb = gzip_of_zeros(1 << 30)?;
    scope(|threads| {
        for _ in 0..24 {
            threads.spawn(|| {
                let headers = [("Content-Encoding", "gzip")];
                let answer = victim.server.post_with("/write", &headers, &bomb).expect("an answer");
                assert!([413, 503].contains(&answer.status), "{}", answer.excerpt());
            });
        }
    });
    victim.is_well("24 bombs at a time")?;
    assert!(1.0 <= victim.limit_hits("max-body-size")?);
    victim.server.stop()?;
    // With as little memory as the flags allow, one large body still finds enough.
    let mut victim = Victim::start(&[("max-bodies-size", "128MiB")])?;
    let mut line = format!("m v=1 {NOON}\n").into_bytes();
    line.resize(100 << 20, b'\n');
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&line)?;
    let headers = [("Content-Encoding", "gzip")];
    let answer = victim.server.post_with("/write?precision=ms", &headers, encoder.finish()?)?;
    assert_eq!(answer.status, 204, "{}", answer.excerpt());
    assert_eq!(victim.server.export("m_v")?.len(), 1);
    victim.is_well("100 MiB of empty lines")?;
    victim.server.stop()
}

fn gzip_of_zeros(size: usize) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..size / zeros.len() {
        encoder.write_all(&zeros)?;
    }
    Ok(encoder.finish()?)
}

fn remote_write_raw(server: &Server, body: &[u8]) -> Result<Response> {
    let headers = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];
    server.post_with("/api/v1/write", &headers, body)
}

fn remote_write(server: &Server, message: &[u8]) -> Result<Response> {
    remote_write_raw(server, &snap::raw::Encoder::new().compress_vec(message)?)
}

#[test]
fn protobuf_that_lies() -> Result<()> {
    let mut victim = Victim::start(&[])?;
    let sample = bytes(2, &[double(1, 1.0), number(2, NOON as u64)].concat());
    let series = |name: &[u8]| bytes(1, &[label(b"__name__", name), sample.clone()].concat());
    let good = series(b"good");
    let whole = snap::raw::Encoder::new().compress_vec(&good.repeat(50))?;
    for size in [1, 2, whole.len() / 2, whole.len() - 1] {
        let answer = remote_write_raw(&victim.server, &whole[..size])?;
        refused(&answer, 400, &["snappy"]);
    }
    victim.is_well("truncated snappy")?;
    let lies: [&[u8]; 6] = [
        b"\x0a\xff\xff\xff\xff\x0f",                     // a series of 4 GiB
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", // of 2^64 - 1
        b"\x0a\x05\x0a\x7f__",                           // a label longer than its series
        b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", // a number without end
        b"\x0b",                                         // a group
        b"\x00\x00",                                     // field 0
    ];
    for lie in lies {
        let answer = remote_write(&victim.server, &[good.as_slice(), lie].concat())?;
        refused(&answer, 400, &["invalid protobuf", "at byte"]);
    }
    victim.is_well("protobuf that lies")?;
    assert!(victim.server.export("good")?.is_empty(), "such a request is refused whole");

    let wrong = series(b"not \xff text");
    let answer = remote_write(&victim.server, &[series(b"a"), wrong, series(b"b")].concat())?;
    refused(&answer, 400, &["2 samples stored", "series 1: ", "UTF-8"]);
    assert_eq!(victim.server.export("{__name__=~\"a|b\"}")?.len(), 2);
    let huge = bytes(
        1,
        &[label(b"__name__", b"h"), label(b"l", &vec![b'x'; 1 << 20]), sample.clone()].concat(),
    );
    let answer = remote_write(&victim.server, &[huge, series(b"c")].concat())?;
    refused(&answer, 400, &["1 sample stored", "series 0: "]);
    victim.is_well("bad series")?;
    // Random bytes: whatever they are, the answer is an error of the client.
    let mut random = rng::Random::seeded(3);
    for _ in 0..200 {
        let size = random.below(200) as usize;
        let noise: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
        for answer in
            [remote_write(&victim.server, &noise)?, remote_write_raw(&victim.server, &noise)?]
        {
            ensure!([204, 400, 413].contains(&answer.status), "{noise:?}: {}", answer.excerpt());
        }
    }
    victim.is_well("noise")?;
    victim.server.stop()
}

#[test]
fn times_at_both_ends_of_what_there_is() -> Result<()> {
    let mut victim = Victim::start(&[])?;
    let (first, last) = (-9_223_372_036_854_775_806_i64, 9_223_372_036_854_775_806_i64);
    let body = format!("m,at=first v=1 {first}\nm,at=last v=2 {last}\nm,at=zero v=3 0\n");
    let answer = victim.server.post("/write", &body)?;
    refused(&answer, 400, &["partial write", "future-retention"]);
    assert_eq!(victim.server.export("m_v")?.len(), 2);
    victim.is_well("the years 1677 and 2262")?;
    // Beyond them there is no time at all.
    for beyond in ["9223372036854775807", "-9223372036854775808", "99999999999999999999"] {
        let answer = victim.server.post("/write", format!("m,at=beyond v=1 {beyond}"))?;
        ensure!(answer.status == 400, "{beyond}: {}", answer.excerpt());
    }
    let answer = victim.server.post("/write?precision=s", "m,at=beyond v=1 9223372037")?;
    ensure!(answer.status == 400, "{}", answer.excerpt());
    victim.server.stop()?;

    let mut victim = Victim::start(&[("future-retention", "250y")])?;
    victim.server.write("/write", &body)?;
    let expected = |server: &Server| -> Result<()> {
        let export = server.export("m_v")?;
        assert_eq!(export.samples("m_v{at=\"first\"}"), ["-9223372036854.775806 1"]);
        assert_eq!(export.samples("m_v{at=\"last\"}"), ["9223372036854.775806 2"]);
        assert_eq!(export.samples("m_v{at=\"zero\"}"), ["0 3"]);
        Ok(())
    };
    expected(&victim.server)?;
    victim.server = victim.server.restart()?;
    expected(&victim.server)?;
    victim.is_well("the years 1677 and 2262, kept")?;
    victim.server.stop()
}

/// As many open files for this process as the system allows.
fn raise_file_limit() -> Result<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find(|line| line.starts_with("Max open files")).context("a limit")?;
    let hard: usize = line.split_whitespace().nth(4).context("a hard limit")?.parse()?;
    let pid = std::process::id().to_string();
    let raised = run("prlimit", &["--pid", &pid, &format!("--nofile={hard}:{hard}")]);
    println!("file limit {hard}, raised: {}", raised.is_ok_and(|output| output.status.success()));
    Ok(hard)
}

#[test]
fn thousands_of_idle_connections() -> Result<()> {
    let files = raise_file_limit()?;
    // The server keeps half of its files for the store.
    let count = (files / 2).saturating_sub(100).min(4000);
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).with_many_files().start()?;
    let idle = (0..count).map(|_| connect(server.authority())).collect::<Result<Vec<_>>>()?;
    // Half of them have sent a part of a head.
    for stream in idle.iter().step_by(2) {
        let mut stream = stream;
        stream.write_all(b"POST /write HTTP/1.1\r\nHo")?;
    }
    server.write("/write", "m v=1")?;
    poll("connections", PATIENCE, || {
        let open = server.metric("quipu_http_connections")?;
        ensure!(count as f64 <= open, "{open} of {count}");
        Ok(())
    })?;
    let resident = server.resident_bytes("VmRSS")?;
    println!("{count} idle connections: {} MiB", resident >> 20);
    assert!(resident < 300 << 20, "{} MiB", resident >> 20);
    drop(idle);
    poll("none left", PATIENCE, || {
        let open = server.metric("quipu_http_connections")?;
        ensure!(open < 10.0, "{open}");
        Ok(())
    })?;
    server.stop()
}

#[test]
fn at_the_limit_the_longest_idle_connection_makes_room() -> Result<()> {
    let mut victim = Victim::start(&[("http.max-connections", "20")])?;
    let mut idle = Vec::new();
    for _ in 0..50 {
        idle.push(connect(victim.server.authority())?);
        victim.server.get("/-/healthy")?;
    }
    assert!(30.0 <= victim.limit_hits("http.max-connections")?);
    // The first ones were closed by the server.
    let mut byte = [0];
    assert_eq!(idle[0].read(&mut byte)?, 0);
    victim.is_well("more connections than allowed")?;
    victim.server.stop()
}

/// Sends the head of a write and the first bytes of its body.
fn begin_body(server: &Server) -> Result<TcpStream> {
    let mut stream = connect(server.authority())?;
    stream.write_all(head("POST", "/write", server.authority(), &[], 1000).as_bytes())?;
    stream.write_all(b"slow v=1\nslow v")?;
    Ok(stream)
}

#[test]
fn slow_and_silent_senders() -> Result<()> {
    let flags = [
        ("http.body-timeout", "300ms"),
        ("http.header-timeout", "300ms"),
        ("http.idle-timeout", "700ms"),
    ];
    let mut victim = Victim::start(&flags)?;
    let mut slow = BufReader::new(begin_body(&victim.server)?);
    let mut silent = connect(victim.server.authority())?;
    let mut half_head = connect(victim.server.authority())?;
    half_head.write_all(b"POST /write HTTP/1.1\r\nHost: x\r\n")?;
    let answer = read_response(&mut slow)?;
    refused(&answer, 408, &["http.body-timeout", "15 bytes"]);
    // The others are closed.
    let mut rest = Vec::new();
    half_head.read_to_end(&mut rest)?;
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{rest:?}");
    assert_eq!(silent.read(&mut [0])?, 0);
    assert_eq!(victim.limit_hits("http.body-timeout")?, 1.0);
    for limit in ["http.header-timeout", "http.idle-timeout"] {
        assert!(1.0 <= victim.limit_hits(limit)?, "{limit}");
    }
    assert!(victim.server.export("slow_v")?.is_empty(), "half a body is no body");
    victim.is_well("slow senders")?;
    victim.server.stop()
}

#[test]
fn clients_that_go_away() -> Result<()> {
    let mut victim = Victim::start(&[])?;
    for _ in 0..20 {
        drop(begin_body(&victim.server)?);
    }
    poll("all are gone", PATIENCE, || {
        let open = victim.server.metric("quipu_http_connections")?;
        ensure!(open <= 2.0, "{open} connections");
        Ok(())
    })?;
    let gone = victim.server.metric("quipu_http_clients_gone_total")?;
    let broken = victim.server.metric("quipu_http_requests_total{path=\"/write\",code=\"400\"}");
    assert!(20.0 <= gone + broken.unwrap_or(0.0), "{gone} gone");
    assert!(victim.server.export("slow_v")?.is_empty(), "half a body is no body");
    victim.is_well("clients that went away while sending")?;

    let body: String = (0..200_000).map(|n| format!("big,n={n} v={n} {NOON}\n")).collect();
    victim.server.write("/write?precision=ms", body)?;
    for _ in 0..5 {
        let mut stream = connect(victim.server.authority())?;
        let path = "/api/v1/export?match=big_v";
        stream.write_all(head("GET", path, victim.server.authority(), &[], 0).as_bytes())?;
        stream.read_exact(&mut [0; 1000])?;
    }
    victim.is_well("clients that went away while reading")?;
    poll("no query runs", PATIENCE, || {
        let running = victim.server.metric("quipu_queries_running")?;
        ensure!(running == 0.0, "{running} run");
        Ok(())
    })?;
    victim.server.stop()
}

#[test]
fn requests_that_are_no_http() -> Result<()> {
    let mut victim = Victim::start(&[])?;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(200_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5000));
    let noise: [&[u8]; 5] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"POST /write HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in noise {
        let mut stream = connect(victim.server.authority())?;
        // The server may have closed before everything was sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    victim.is_well("requests that are no HTTP")?;
    victim.server.stop()
}
