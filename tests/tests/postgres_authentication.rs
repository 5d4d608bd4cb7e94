//! Every message of PostgreSQL's protocol in every state before authentication has finished: nothing
//! runs, and one error at most is answered.

use anyhow::{Context, Result, ensure};
use e2e::Server;
use e2e::postgres::{Psql, door_port, launch};
use e2e::tls::{certificate, send_encrypted};
use rng::Random;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
/// Connections that send random bytes.
const RANDOM_COUNT: usize = 200;
const STARTUP: &[u8] = b"\0\0\0\x22\0\x03\0\0user\0somebody\0database\0x\0\0";
const CANCEL: &[u8] = b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02";
const STATEMENT: &str = "CREATE TABLE pwned (a int)";

fn message(kind: char, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [&[kind as u8], size.to_be_bytes().as_slice(), body].concat()
}

fn query() -> Vec<u8> {
    message('Q', format!("{STATEMENT}\0").as_bytes())
}

fn extended() -> Vec<u8> {
    [
        message('P', format!("\0{STATEMENT}\0\0\0").as_bytes()),
        message('B', b"\0\0\0\0\0\0\0\0"),
        message('E', b"\0\0\0\0\0"),
        message('S', b""),
    ]
    .concat()
}

fn initial(mechanism: &str) -> Vec<u8> {
    let first = b"n,,n=,r=abcdefghijklmnopqrstuvwx";
    let size = u32::try_from(first.len()).unwrap_or(0).to_be_bytes();
    message('p', &[mechanism.as_bytes(), b"\0", &size, first].concat())
}

fn wrong_proof(nonce: &str) -> Vec<u8> {
    let proof = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    message('p', format!("c=biws,r={nonce},p={proof}").as_bytes())
}

/// The messages that lead to each state.
fn states() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let (startup, scram) = (STARTUP.to_vec(), initial("SCRAM-SHA-256"));
    let nowhere = message('p', b"NOPE\0\xff\xff\xff\xff");
    vec![
        ("before startup", vec![]),
        ("after startup", vec![startup.clone()]),
        ("after the first SASL message", vec![startup.clone(), scram.clone()]),
        ("after an unknown mechanism", vec![startup.clone(), nowhere]),
        ("after a mechanism that is not offered", vec![startup.clone(), initial("OAUTHBEARER")]),
        ("after a first message cut short", vec![startup.clone(), message('p', b"SCRAM")]),
        ("after a wrong proof", vec![startup, scram, wrong_proof("abcdefghijklmnopqrstuvwx")]),
    ]
}

/// A message of every type.
fn payloads() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("query", query()),
        ("extended", extended()),
        ("parse", message('P', format!("\0{STATEMENT}\0\0\0").as_bytes())),
        ("bind", message('B', b"\0\0\0\0\0\0\0\0")),
        ("execute", message('E', b"\0\0\0\0\0")),
        ("describe", message('D', b"S\0")),
        ("close", message('C', b"S\0")),
        ("flush", message('H', b"")),
        ("sync", message('S', b"")),
        ("copy data", message('d', b"a 1\n")),
        ("copy done", message('c', b"")),
        ("copy fail", message('f', b"no\0")),
        ("function call", message('F', b"\0\0\0\x01\0\0\0\0\0\0")),
        ("password", message('p', b"open sesame\0")),
        ("terminate", message('X', b"")),
        ("unknown", message('@', b"")),
        ("startup", STARTUP.to_vec()),
        ("cancel", CANCEL.to_vec()),
    ]
}

/// What is answered until the connection ends; an end by a reset is one, too.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Only requests of the handshake, and at most one error, fatal and the last.
fn check(what: &str, mut answer: &[u8]) -> Result<()> {
    let whole = answer.to_vec();
    let mut has_failed = false;
    while let [kind, a, b, c, d, ..] = *answer {
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        let body = answer.get(5..=size).with_context(|| format!("{what}: {whole:?}"))?;
        ensure!(!has_failed, "{what}: something came after the error: {whole:?}");
        match kind {
            // Of SASL: the mechanisms, then a challenge.
            b'R' => ensure!(matches!(body.get(3), Some(10 | 11)), "{what}: {whole:?}"),
            b'E' => {
                has_failed = true;
                ensure!(body.starts_with(b"SFATAL\0"), "{what}: {whole:?}");
            }
            // That no newer version of the protocol is spoken.
            b'v' => {}
            _ => anyhow::bail!("{what}: {:?} was answered: {whole:?}", kind as char),
        }
        answer = &answer[size + 1..];
    }
    ensure!(answer.is_empty(), "{what}: {whole:?}");
    Ok(())
}

fn connect(server: &Server) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", door_port(server)?))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends all in one packet.
fn pipelined(server: &Server, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = connect(server)?;
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    Ok(rest(&mut stream))
}

/// Waits for the answer to each message of the prefix before the next one is sent.
fn one_by_one(server: &Server, prefix: &[Vec<u8>], payload: &[u8]) -> Result<Vec<u8>> {
    let mut stream = connect(server)?;
    let mut answer = Vec::new();
    for (at, part) in prefix.iter().enumerate() {
        let nonce = String::from_utf8_lossy(&answer).into_owned();
        let nonce = nonce.split_once("r=").and_then(|(_, rest)| rest.split_once(','));
        match (at, nonce) {
            (2, Some((nonce, _))) => stream.write_all(&wrong_proof(nonce))?,
            _ => stream.write_all(part)?,
        }
        let mut head = [0; 5];
        // The server has closed the connection, or reset it before its error could be read.
        if stream.read_exact(&mut head).is_err() {
            break;
        }
        let size = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; size - 4];
        stream.read_exact(&mut body)?;
        answer.extend([head.as_slice(), &body].concat());
    }
    // The server may have closed its side already.
    let _ = stream.write_all(payload);
    let _ = stream.write_all(&query());
    let _ = stream.shutdown(Shutdown::Write);
    answer.extend(rest(&mut stream));
    Ok(answer)
}

/// Over TLS, where a client's end of input does not end the connection.
fn encrypted(server: &Server, bytes: &[u8]) -> Result<Vec<u8>> {
    let address = format!("127.0.0.1:{}", door_port(server)?);
    send_encrypted(&["-starttls", "postgres"], &address, bytes)
}

fn has_run_nothing(psql: &Psql) -> Result<()> {
    psql.ask(&[STATEMENT], "").context("the table was made by who had not authenticated")?;
    Ok(())
}

fn start(directory: &Path, tls: Option<(&str, &str)>) -> Result<(Server, Psql)> {
    let mut launch = launch(directory).flag("http-user", "somebody");
    launch = launch.flag("http-password", "open sesame").flag("login-delay-max", "0");
    if let Some((cert, key)) = tls {
        launch = launch.flag("tls-cert", cert).flag("tls-key", key);
    }
    let server = launch.start()?;
    let psql = Psql::of(&server)?.with("PGPASSWORD", "open sesame");
    Ok((server, psql))
}

#[test]
fn no_message_before_authentication_runs_anything() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path(), None)?;
    for (state, prefix) in states() {
        for (name, payload) in payloads() {
            let what = format!("{state}, {name}");
            let all = [prefix.concat(), payload.clone(), query(), extended()].concat();
            check(&what, &pipelined(&server, &all)?)?;
            check(&what, &one_by_one(&server, &prefix, &payload)?)?;
        }
    }
    has_run_nothing(&psql)
}

#[test]
fn random_bytes_before_authentication_run_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path(), None)?;
    let mut random = Random::seeded(44);
    for _ in 0..RANDOM_COUNT {
        let states = states();
        let (state, prefix) = random.pick(&states);
        let mut bytes = prefix.concat();
        for _ in 0..random.below(4) {
            let length = random.index(12);
            let body: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
            let kind = *random.pick(b"QPBDECSHFdcfpz\0");
            bytes.extend(message(kind as char, &body));
            bytes.extend(query());
        }
        if !bytes.is_empty() && random.below(3) == 0 {
            let at = random.index(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        let answer = pipelined(&server, &bytes)?;
        check(&format!("{state}, {bytes:?}"), &answer)?;
    }
    has_run_nothing(&psql)
}

#[test]
fn no_message_before_authentication_over_tls_runs_anything() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let (server, psql) = start(&directory.path().join("data"), Some((&cert, &key)))?;
    for (state, prefix) in states().into_iter().skip(1) {
        for (name, payload) in payloads() {
            // Without a type they read as the head of a long message, whose rest is waited for.
            if matches!(name, "startup" | "cancel") {
                continue;
            }
            let all = [prefix.concat(), payload, query(), extended()].concat();
            check(&format!("{state}, {name}"), &encrypted(&server, &all)?)?;
        }
    }
    has_run_nothing(&psql)
}

#[test]
fn authentication_does_not_come_twice() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(directory.path()).start()?;
    let all = [STARTUP, &message('p', b"open sesame\0"), &query()].concat();
    let answer = pipelined(&server, &all)?;
    let words = b"authentication came after its end";
    ensure!(answer.windows(words.len()).any(|part| part == words), "{answer:?}");
    has_run_nothing(&Psql::of(&server)?)
}

/// A first message of SCRAM with that header.
fn initial_with(mechanism: &str, header: &str) -> Vec<u8> {
    let first = format!("{header}n=,r=abcdefghijklmnopqrstuvwx");
    let size = u32::try_from(first.len()).unwrap_or(0).to_be_bytes();
    message('p', &[mechanism.as_bytes(), b"\0", &size, first.as_bytes()].concat())
}

#[test]
fn clients_in_the_clear_are_refused_where_tls_is_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let (server, psql) = start(&directory.path().join("data"), Some((&cert, &key)))?;
    let answer =
        pipelined(&server, &[STARTUP.to_vec(), initial("SCRAM-SHA-256"), query()].concat())?;
    check("in the clear", &answer)?;
    let words = String::from_utf8_lossy(&answer).into_owned();
    ensure!(words.contains("C28000") && words.contains("encrypted connections only"), "{words}");
    ensure!(pipelined(&server, CANCEL)?.is_empty(), "a request to cancel has no answer");
    let clear = Psql::of(&server)?.with("PGPASSWORD", "open sesame").with("PGSSLMODE", "disable");
    let said = clear.say(&["SELECT 1"], "")?;
    ensure!(!said.is_ok && said.error.contains("encrypted connections only"), "{}", said.error);
    has_run_nothing(&psql.with("PGSSLMODE", "require"))
}

#[test]
fn cleartext_can_be_allowed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let data = directory.path().join("data");
    let launch = launch(&data).flag("http-user", "somebody").flag("http-password", "open sesame");
    let launch = launch.flag("tls-cert", &cert).flag("tls-key", &key);
    let server = launch.flag("postgres.allow-cleartext", "true").start()?;
    for mode in ["disable", "require"] {
        let psql = Psql::of(&server)?.with("PGPASSWORD", "open sesame").with("PGSSLMODE", mode);
        ensure!(psql.ask(&["SELECT 1"], "")? == "1", "{mode}");
    }
    server.stop()
}

#[test]
fn the_password_is_bound_to_the_certificate() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let (server, psql) = start(&directory.path().join("data"), Some((&cert, &key)))?;
    let bound = psql.with("PGSSLMODE", "require").with("PGCHANNELBINDING", "require");
    ensure!(bound.ask(&["SELECT 1"], "")? == "1");
    let wrong = Psql::of(&server)?.with("PGPASSWORD", "guess").with("PGSSLMODE", "require");
    let said = wrong.with("PGCHANNELBINDING", "require").say(&["SELECT 1"], "")?;
    ensure!(!said.is_ok && said.error.contains("password authentication failed"), "{}", said.error);
    for (mechanism, header) in [
        // The client could bind, and somebody told it that the server cannot.
        ("SCRAM-SHA-256", "y,,"),
        ("SCRAM-SHA-256", "p=tls-server-end-point,,"),
        ("SCRAM-SHA-256-PLUS", "n,,"),
        ("SCRAM-SHA-256-PLUS", "y,,"),
        ("SCRAM-SHA-256-PLUS", "p=tls-unique,,"),
    ] {
        let all = [STARTUP.to_vec(), initial_with(mechanism, header), query()].concat();
        let answer = encrypted(&server, &all)?;
        check(&format!("{mechanism} {header}"), &answer)?;
        let words = String::from_utf8_lossy(&answer).into_owned();
        ensure!(words.contains("channel binding negotiation"), "{mechanism} {header}: {words}");
    }
    server.stop()
}

#[test]
fn guesses_are_slowed_down() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = launch(directory.path()).flag("http-user", "somebody");
    let server = launch.flag("http-password", "open sesame").start()?;
    let prefix = [STARTUP.to_vec(), initial("SCRAM-SHA-256"), wrong_proof("")];
    let answers: Vec<String> = std::thread::scope(|scope| {
        let guess = || one_by_one(&server, &prefix, b"").unwrap_or_default();
        let threads: Vec<_> = (0..60).map(|_| scope.spawn(guess)).collect();
        let joined = threads.into_iter().filter_map(|thread| thread.join().ok());
        joined.map(|answer| String::from_utf8_lossy(&answer).into_owned()).collect()
    });
    let count = |words: &str| answers.iter().filter(|answer| answer.contains(words)).count();
    let (checked, refused) = (count("C28P01"), count("too many failed attempts"));
    ensure!(checked + refused == 60, "{answers:?}");
    ensure!((1..=26).contains(&checked), "{checked} were checked");
    let psql = Psql::of(&server)?.with("PGPASSWORD", "open sesame");
    e2e::poll("a place for the right password", PATIENCE, || psql.ask(&["SELECT 1"], ""))?;
    server.stop()
}
