//! Answers are whole or errors: damage that is met midway, a panic, a portal that failed.

use crate::damage::{files, fill, flip};
use anyhow::{Context, Result, ensure};
use e2e::http::{connect, read_response};
use e2e::postgres::{Raw, launch as with_postgres};
use e2e::protobuf::{bytes, number};
use e2e::redis::RedisClient;
use e2e::{Launch, Response, Server, poll};
use rng::Random;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;
/// Samples that need several pieces of an answer.
const MANY: i64 = 40_000;

/// A server with the series `early_v`, whose page is damaged, and the sound `late_v` and `a_v`.
fn damaged(directory: &Path) -> Result<Server> {
    fill(directory)?;
    let server = Launch::new(directory).start()?;
    let mut random = Random::seeded(3);
    let mut line = |second: i64| format!("a v={} {}\n", random.next() >> 12, NOON + second);
    let body: String = (0..MANY).map(&mut line).collect();
    server.write("/write?precision=s", body)?;
    server.post("/internal/force_flush", "")?;
    server.stop()?;
    flip(&files(directory, "parts")?[0], 40)?;
    Launch::new(directory).start()
}

/// Sends a request of HTTP/1.0.
fn get_by_http_1_0(server: &Server, path: &str) -> Result<Response> {
    let mut stream = connect(server.authority())?;
    let head = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", server.authority());
    stream.write_all(head.as_bytes())?;
    read_response(&mut BufReader::new(stream))
}

#[test]
fn answers_to_http_1_0_are_whole_or_errors() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = damaged(directory.path())?;
    // `a_v` is on its way when the damage to `early_v` is met.
    let path = "/api/v1/export?match[]={__name__=~\"a_v|early_v\"}&deny_partial_response=1";
    let broken = get_by_http_1_0(&server, path)?;
    ensure!(broken.status == 503, "{}", broken.excerpt());
    let whole = get_by_http_1_0(&server, "/api/v1/export?match[]=a_v")?;
    let size: usize = whole.header("content-length").parse().context("a length")?;
    ensure!(whole.status == 200 && 64 << 10 < size && size == whole.body.len(), "{size}");
    server.stop()
}

/// A remote read of series by a regular expression on their names.
fn remote_read(server: &Server, path: &str, names: &str, accepted: &[u8]) -> Result<Response> {
    let matcher = [number(1, 2), bytes(2, b"__name__"), bytes(3, names.as_bytes())].concat();
    let times = [number(1, NOON as u64 * 1000), number(2, (NOON + MANY) as u64 * 1000)];
    let query = bytes(1, &[times.concat(), bytes(3, &matcher)].concat());
    let body = snap::raw::Encoder::new().compress_vec(&[query.as_slice(), accepted].concat())?;
    server.client().post(path, &[("Content-Encoding", "snappy")], &body)
}

#[test]
fn formats_without_warnings_are_denied_where_samples_are_damaged() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = damaged(directory.path())?;
    let is_denied = |answer: &Response| answer.status == 503 && answer.text().contains("denied");
    let (path, streamed) = ("/api/v1/read", bytes(2, &[1, 0]));
    for accepted in [&[][..], streamed.as_slice()] {
        let answer = remote_read(&server, path, "early_v", accepted)?;
        ensure!(is_denied(&answer), "{}", answer.excerpt());
        let answer = remote_read(&server, path, "a_v|late_v", accepted)?;
        ensure!(answer.status == 200, "{}", answer.excerpt());
        let path = format!("{path}?deny_partial_response=0");
        let answer = remote_read(&server, &path, "early_v", accepted)?;
        let found = (answer.status, answer.header("x-quipu-partial"));
        ensure!(found == (200, "true"), "{found:?}");
    }
    // The damage is met while frames are on their way: the body breaks off.
    let broken = remote_read(&server, path, "a_v|early_v", &streamed);
    ensure!(broken.is_err(), "{:?}", broken.map(|answer| (answer.status, answer.body.len())));
    let federate = format!("/federate?match[]=early_v&max_lookback=1h&end={}", NOON + 299);
    let select = "/query?db=quipu&q=SELECT%20v%20FROM%20early";
    let v3 = "/api/v3/query_influxql?db=quipu&q=SELECT%20v%20FROM%20early";
    let csv = server.client().send("GET", select, &[("Accept", "application/csv")], &[])?;
    let flux = format!(
        "from(bucket: \"quipu\") |> range(start: {NOON}) |> filter(fn: (r) => r._measurement == \"early\")"
    );
    let head = [("Content-Type", "application/vnd.flux")];
    let flux = server.client().post("/api/v2/query", &head, flux.as_bytes())?;
    for answer in [server.get(&federate)?, server.get(v3)?, csv, flux] {
        ensure!(is_denied(&answer), "{}", answer.excerpt());
    }
    let allowed = server.get(&format!("{federate}&deny_partial_response=0"))?;
    let found = (allowed.status, allowed.header("x-quipu-partial"));
    ensure!(found == (200, "true"), "{found:?}");
    server.stop()
}

/// Rows of which the 50000th cannot be made.
const FAILING: &str = "SELECT 1 / (50000 - g) FROM generate_series(1, 100000) AS t(g)";

#[test]
fn failed_portals_cannot_be_run_again() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_postgres(directory.path()).start()?;
    let mut raw = Raw::of(&server)?;
    let say = |raw: &mut Raw, text: &str| -> Result<String> {
        raw.query(text)?;
        Ok(Raw::kinds(&raw.until('Z')?))
    };
    say(&mut raw, "BEGIN")?;
    raw.execute(FAILING, "p", 10)?;
    ensure!(Raw::kinds(&raw.sync()?).contains("Ds"), "ten rows come");
    say(&mut raw, "SAVEPOINT s")?;
    raw.fetch("p", 0)?;
    assert_eq!(Raw::code(&raw.sync()?)?, "22012");
    say(&mut raw, "ROLLBACK TO s")?;
    raw.fetch("p", 0)?;
    assert_eq!(Raw::code(&raw.sync()?)?, "55000", "the portal has failed");
    say(&mut raw, "ROLLBACK")?;
    say(&mut raw, "BEGIN")?;
    say(&mut raw, &format!("DECLARE c CURSOR FOR {FAILING}"))?;
    say(&mut raw, "SAVEPOINT s")?;
    for code in ["22012", "55000", "55000"] {
        raw.query("FETCH ALL FROM c")?;
        assert_eq!(Raw::code(&raw.until('Z')?)?, code);
        say(&mut raw, "ROLLBACK TO s")?;
    }
    server.stop()
}

pub fn with_redis(directory: &Path) -> Launch {
    let launch = Launch::new(directory).flag("redis-listen", "127.0.0.1:0");
    launch.flag("redis.enable-debug-command", "local")
}

/// Flips a bit of a value in the segments of keys.
pub fn flip_value(directory: &Path, value: &str) -> Result<()> {
    let all = std::fs::read_dir(directory.join("keys"))?;
    let all: Vec<PathBuf> = all.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    for path in all.iter().filter(|path| path.extension().is_some_and(|end| end == "cold")) {
        let content = std::fs::read(path)?;
        if let Some(at) = content.windows(value.len()).position(|some| some == value.as_bytes()) {
            return flip(path, at);
        }
    }
    anyhow::bail!("{value} is in no segment")
}

#[test]
fn commands_over_a_corrupt_record_answer_errors() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path()).start()?;
    let mut client = RedisClient::of(&server)?;
    for key in ["a", "b", "c"] {
        client.must(&format!("SET name:{key} the-value-of-{key}"))?;
        client.must(&format!("RPUSH keys {key}"))?;
    }
    server.stop()?;
    flip_value(directory.path(), "the-value-of-b")?;
    let server = with_redis(directory.path()).start()?;
    let mut client = RedisClient::of(&server)?;
    let fails = |client: &mut RedisClient, words: &[&str]| -> Result<String> {
        // An array that lacks elements would take the answer behind it for one.
        let replies = client.pipeline(&[words, &["PING"]])?;
        ensure!(replies[1].text() == "PONG", "{words:?}: {replies:?}");
        ensure!(replies[0].text().starts_with("-ERR"), "{words:?}: {replies:?}");
        Ok(replies[0].text().to_string())
    };
    fails(&mut client, &["MGET", "name:a", "name:b", "name:c"])?;
    fails(&mut client, &["SORT", "keys", "BY", "none", "GET", "name:*"])?;
    fails(&mut client, &["EVAL", "return redis.call('MGET', 'name:a', 'name:b')", "0"])?;
    let said = fails(&mut client, &["KEYS", "*"])?;
    ensure!(said.contains("1 keys cannot be read"), "{said}");
    // The error of SCAN names the cursor behind the record.
    let mut names = Vec::new();
    let mut cursor = "0".to_string();
    let mut errors = 0;
    loop {
        let reply = client.say(&format!("SCAN {cursor} COUNT 1"))?;
        let next = match reply.text().strip_prefix("-ERR ") {
            Some(words) => {
                errors += 1;
                let next = words.split("SCAN ").nth(1).and_then(|end| end.split(' ').next());
                next.context("a cursor")?.to_string()
            }
            None => {
                names.extend(reply.list()[1].list().iter().map(|name| name.text().to_string()));
                reply.list()[0].text().to_string()
            }
        };
        if next == "0" {
            break;
        }
        cursor = next;
    }
    ensure!(errors == 1 && names.len() <= 3, "{errors} errors, {names:?}");
    client.must("DEL name:b")?;
    ensure!(client.must("KEYS *")?.list().len() == 3, "the corrupt record is gone");
    server.stop()
}

#[test]
fn a_panic_in_a_command_closes_its_connection_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path()).start()?;
    let mut other = RedisClient::of(&server)?;
    other.must("DEBUG SET-DISABLE-DENY-SCRIPTS 1")?;
    // No `pcall` of a script hides it.
    let script = ["EVAL", "redis.pcall('DEBUG', 'PANIC') return 1", "0"];
    for words in [&["DEBUG", "PANIC"][..], &script[..]] {
        let mut client = RedisClient::of(&server)?;
        client.must("PING")?;
        // The answers before it are not sent, either.
        let answered = client.pipeline(&[&["SET", "key", "value"], words, &["PING"]]);
        ensure!(answered.is_err(), "{answered:?}");
        poll("the client to be forgotten", Duration::from_secs(20), || {
            ensure!(other.info("connected_clients")? == "1", "it is still there");
            Ok(())
        })?;
    }
    ensure!(other.must("EVAL return(7) 0")?.int() == 7, "scripts go on");
    other.must("SET key other")?;
    server.stop()
}
