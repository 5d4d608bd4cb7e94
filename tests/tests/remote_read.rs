//! Remote read: the same answers as a real Prometheus, which also reads from Quipu what it has not
//! itself.

use anyhow::{Result, ensure};
use e2e::protobuf::{bytes, number};
use e2e::{Client, Launch, Prometheus, Response, answers};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::remote_read::decode::{ReadSeries, decode_frame, decode_samples, split_frames};
use wire::remote_read::{CHUNK_SAMPLES_MAX, CHUNKS_TYPE, SAMPLES_TYPE};
use wire::remote_write::encode::{MillisSample, RequestV1};

/// Matcher types of the protocol.
const EQUAL: u64 = 0;
const NOT_EQUAL: u64 = 1;
const REGEX: u64 = 2;
const NOT_REGEX: u64 = 3;

/// A matcher: type, name, value.
type Asked<'a> = (u64, &'a str, &'a str);

/// One query of a request, with the hints that Prometheus sends.
fn query(start: i64, end: i64, matchers: &[Asked<'_>]) -> Vec<u8> {
    let mut fields = [number(1, start as u64), number(2, end as u64)].concat();
    for (op, name, value) in matchers {
        let fields_of = [number(1, *op), bytes(2, name.as_bytes()), bytes(3, value.as_bytes())];
        fields.extend(bytes(3, &fields_of.concat()));
    }
    let hints = [number(1, 15_000), number(3, start as u64), number(4, end as u64)].concat();
    fields.extend(bytes(4, &hints));
    bytes(1, &fields)
}

fn ask(authority: &str, message: &[u8]) -> Result<Response> {
    post(authority, "/api/v1/read", message, "X-Prometheus-Remote-Read-Version")
}

fn post(authority: &str, path: &str, message: &[u8], version: &str) -> Result<Response> {
    let body = snap::raw::Encoder::new().compress_vec(message)?;
    let headers = [
        ("Content-Type", "application/x-protobuf"),
        ("Content-Encoding", "snappy"),
        ("User-Agent", "test"),
        (version, "0.1.0"),
    ];
    Client::new(authority).post(path, &headers, &body)
}

/// What one message tells.
fn read_samples(authority: &str, queries: &[Vec<u8>]) -> Result<Vec<ReadSeries>> {
    let answer = ask(authority, &queries.concat())?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    ensure!(answer.header("content-type") == SAMPLES_TYPE, "{}", answer.header("content-type"));
    ensure!(answer.header("content-encoding") == "snappy", "not compressed");
    Ok(decode_samples(&snap::raw::Decoder::new().decompress_vec(&answer.body)?)?)
}

/// The frames of a stream, as they came.
fn read_frames(authority: &str, queries: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let accepted = bytes(2, &[1, 0]);
    let answer = ask(authority, &[queries.concat(), accepted].concat())?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    ensure!(answer.header("content-type") == CHUNKS_TYPE, "{}", answer.header("content-type"));
    Ok(split_frames(&answer.body)?.into_iter().map(<[u8]>::to_vec).collect())
}

/// The series of frames, those that span several put together.
fn joined(frames: &[Vec<u8>]) -> Result<Vec<ReadSeries>> {
    let mut found: Vec<ReadSeries> = Vec::new();
    for frame in frames {
        for series in decode_frame(frame)? {
            ensure!(series.chunks.iter().all(|chunk| chunk.len() <= CHUNK_SAMPLES_MAX), "chunks");
            match found.last_mut() {
                Some(last)
                    if (last.query_idx, &last.labels) == (series.query_idx, &series.labels) =>
                {
                    last.chunks.extend(series.chunks);
                }
                _ => found.push(series),
            }
        }
    }
    Ok(found)
}

/// Samples by time and bits.
type Bits = Vec<(i64, u64)>;

/// Labels and samples, whatever the chunks; values by their bits, as NaN is no equal of itself.
fn plain(series: &[ReadSeries]) -> Vec<(usize, String, Bits)> {
    let bits = |sample: &MillisSample| (sample.millis, sample.value.to_bits());
    let samples = |one: &ReadSeries| one.chunks.iter().flatten().map(bits).collect();
    series.iter().map(|one| (one.query_idx, one.labels.to_string(), samples(one))).collect()
}

/// A Prometheus that takes remote write and reads from those sources.
fn start_prometheus(directory: &Path, sources: &str) -> Result<Prometheus> {
    let configuration = format!("remote_read: [ {sources} ]\n");
    Prometheus::start(directory, &["--web.enable-remote-write-receiver"], |_| configuration)
}

fn write(authority: &str, request: &RequestV1) -> Result<()> {
    let version = "X-Prometheus-Remote-Write-Version";
    let answer = post(authority, "/api/v1/write", request.as_bytes(), version)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok(())
}

fn now_ms() -> Result<i64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64)
}

/// Series of many shapes, `count` samples each up to about `end`.
fn series(end: i64, count: i64) -> RequestV1 {
    let mut request = RequestV1::new();
    for (idx, value) in ["a", "b", "c d", "☃", ""].into_iter().enumerate() {
        let sample = |step: i64| {
            // Regular times, and some that are not; whole numbers, broken ones and markers.
            let millis = end - (count - step) * 250 + (step % 7) * (idx as i64);
            let value = match (idx, step) {
                (_, 17) => f64::from_bits(0x7ff0_0000_0000_0002),
                (0, _) => step as f64,
                (1, _) => (step as f64).sin() * 1e6,
                (2, _) => f64::from_bits((step as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2),
                _ => 1.0,
            };
            MillisSample { millis, value }
        };
        let samples: Vec<MillisSample> = (0..count).map(sample).collect();
        let labels = [("__name__", "shape"), ("idx", &idx.to_string()), ("v", value)];
        let labels: Vec<_> = labels.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        request.series(&labels, &samples);
    }
    request.series(&[("__name__", "other")], &[MillisSample { millis: end, value: 1.0 }]);
    request
}

#[test]
fn answers_are_those_of_prometheus() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let quipu = Launch::new(&directory.path().join("quipu")).start()?;
    let peer = start_prometheus(directory.path(), "")?;
    let end = now_ms()? / 1000 * 1000;
    let count = 100;
    let request = series(end, count);
    write(peer.authority(), &request)?;
    write(quipu.authority(), &request)?;
    let start = end - 60_000;
    let ours = quipu.authority();
    for matchers in [
        &[(EQUAL, "__name__", "shape")][..],
        &[(EQUAL, "__name__", "shape"), (NOT_EQUAL, "v", "a")],
        &[(REGEX, "__name__", "sh.*|other"), (NOT_REGEX, "v", "[ab]")],
        &[(NOT_EQUAL, "__name__", ""), (EQUAL, "v", "")],
        &[(EQUAL, "__name__", "nothing")],
    ] {
        let asked = [query(start, end, matchers)];
        let (expected, found) =
            (read_samples(peer.authority(), &asked)?, read_samples(ours, &asked)?);
        assert_eq!(plain(&found), plain(&expected), "{matchers:?}");
        let frames = read_frames(ours, &asked)?;
        // Byte for byte: the chunk too, as Prometheus has not cut it yet.
        let is_same = frames == read_frames(peer.authority(), &asked)?;
        assert!(is_same, "{matchers:?}: other frames");
        assert_eq!(plain(&joined(&frames)?), plain(&found), "{matchers:?}");
    }
    // Both ends of the range belong to it; two queries of one request are told apart.
    let narrow = [
        query(end - 5_000, end - 4_000, &[(EQUAL, "idx", "0")]),
        query(end, end, &[(EQUAL, "__name__", "other")]),
    ];
    let expected = read_samples(peer.authority(), &narrow)?;
    assert_eq!(expected.iter().map(|one| one.query_idx).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(plain(&read_samples(ours, &narrow)?), plain(&expected));
    assert_eq!(plain(&joined(&read_frames(ours, &narrow)?)?), plain(&expected));
    quipu.stop()
}

#[test]
fn prometheus_reads_what_only_quipu_has() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let quipu = Launch::new(&directory.path().join("quipu")).start()?;
    let source = format!("{{ url: {}/api/v1/read, read_recent: true }}", quipu.url());
    let peer = start_prometheus(directory.path(), &source)?;
    // 2024-02-29 12:00:00 UTC: long before that Prometheus was started.
    let end = 1_709_208_000_000;
    write(quipu.authority(), &series(end, 1_000))?;
    let at = end as f64 / 1e3;
    for query in ["shape", "count_over_time(shape[5m])", "sum by (v) (max_over_time(shape[1m]))"] {
        let found = peer.get(&answers::instant_path(query, at))?.vector()?;
        assert!(4 < found.len(), "{query}: {found:?}");
        assert_eq!(found, quipu.vector(query, at)?, "{query}");
    }
    let path = format!("/api/v1/query_range?query=shape&start={}&end={at}&step=1", at - 200.0);
    let found = peer.get(&path)?.matrix()?;
    assert_eq!(found, quipu.get(&path)?.matrix()?);
    quipu.stop()
}

#[test]
fn streams_are_sorted_and_cut_into_frames() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let quipu = Launch::new(directory.path()).flag("query.max-samples", "100000").start()?;
    let mut request = RequestV1::new();
    let end = 1_709_208_000_000;
    let samples: Vec<MillisSample> =
        (0..500).map(|idx| MillisSample { millis: end + idx, value: idx as f64 }).collect();
    for idx in 0..300 {
        request
            .series(&[("__name__", "many"), ("idx", &format!("{}", idx * 7919 % 300))], &samples);
    }
    write(quipu.authority(), &request)?;
    let asked = [query(end, end + 1000, &[(EQUAL, "__name__", "many")])];
    let found = joined(&read_frames(quipu.authority(), &asked)?)?;
    assert_eq!(found.len(), 300);
    assert!(found.is_sorted_by(|a, b| a.labels.iter().lt(b.labels.iter())));
    assert!(found.iter().all(|series| series.chunks.concat() == samples));
    // All of it in one message is more than query.max-samples.
    let refused = ask(quipu.authority(), &asked.concat())?;
    assert_eq!(refused.status, 422, "{}", refused.excerpt());
    assert!(refused.text().contains("query.max-samples"), "{}", refused.excerpt());
    quipu.stop()
}

#[test]
fn bad_requests_are_told_what_is_wrong() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let quipu = Launch::new(directory.path()).start()?;
    let regex = query(0, 1, &[(REGEX, "a", "(")]);
    let kind = query(0, 1, &[(9, "a", "b")]);
    for (message, status, part) in [
        (vec![0x0a, 0x7f], 400, "protobuf"),
        (regex, 400, "("),
        (kind, 400, "matcher type 9"),
        (query(0, 1, &[]).repeat(101), 413, "queries per request"),
        ([query(0, 1, &[]), bytes(2, &[7])].concat(), 400, "accepted_response_types"),
    ] {
        let answer = ask(quipu.authority(), &message)?;
        assert_eq!(answer.status, status, "{}", answer.excerpt());
        assert!(answer.text().contains(part), "{part}: {}", answer.excerpt());
    }
    let answer = Client::new(quipu.authority()).post("/api/v1/read", &[], b"no snappy")?;
    assert_eq!(answer.status, 400, "{}", answer.excerpt());
    // Nothing is asked, or an empty time: nothing is answered.
    assert!(read_samples(quipu.authority(), &[])?.is_empty());
    assert!(read_samples(quipu.authority(), &[query(5, -5, &[(EQUAL, "a", "b")])])?.is_empty());
    quipu.stop()
}
