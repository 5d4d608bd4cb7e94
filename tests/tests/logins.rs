//! Guesses of passwords are slowed down by address, for every listener that has passwords; others
//! notice nothing.

use anyhow::{Context, Result, ensure};
use e2e::redis::{Reply, door_port};
use e2e::{Client, Launch, RedisClient, Server, poll, run};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::scope;
use std::time::{Duration, Instant};

/// Attempts without a delay, and those that may wait at one time.
const CHECKED_MAX: usize = 5 + 8;
/// A server that looks at many attempts at once may have begun some more.
const CHECKED_AT_ONCE_MAX: usize = 2 * CHECKED_MAX;
const PATIENCE: Duration = Duration::from_secs(20);

fn start(directory: &Path) -> Result<Server> {
    let launch = Launch::new(directory).flag("redis-listen", "127.0.0.1:0");
    launch.flag("http-user", "somebody").flag("http-password", "open sesame").start()
}

/// `somebody:open sesame`
const RIGHT: (&str, &str) = ("Authorization", "Basic c29tZWJvZHk6b3BlbiBzZXNhbWU=");
const WRONG: (&str, &str) = ("Authorization", "Bearer guess");

fn status(client: &mut Client, header: (&str, &str)) -> Result<u16> {
    Ok(client.send("GET", "/api/v1/labels", &[header], &[])?.status)
}

fn log_in(client: &mut RedisClient) -> Result<Reply> {
    client.call(&[b"AUTH", b"somebody", b"open sesame"])
}

/// The status of a request from another address of this machine.
fn status_from_elsewhere(server: &Server) -> Result<String> {
    let url = format!("{}/api/v1/labels", server.url());
    let credentials = "somebody:open sesame";
    let arguments = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "--interface", "127.0.0.2"];
    let output = run("curl", &[arguments.as_slice(), &["-u", credentials, &url]].concat())?;
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn http_slows_down_guesses_by_address() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let mut known = server.client();
    ensure!(status(&mut known, RIGHT)? == 200);
    // Nothing is guessed without credentials.
    for _ in 0..50 {
        ensure!(server.get("/api/v1/labels")?.status == 401);
    }
    let began = Instant::now();
    let statuses: Vec<u16> = scope(|scope| {
        let guess = || status(&mut server.client(), WRONG).unwrap_or(0);
        let threads: Vec<_> = (0..100).map(|_| scope.spawn(guess)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    ensure!(count(401) + count(503) == 100, "{statuses:?}");
    ensure!((1..=CHECKED_AT_ONCE_MAX).contains(&count(401)), "{} were checked", count(401));
    ensure!(Duration::from_millis(90) < began.elapsed(), "no answer waited");
    // A place is free again after the delay; the right credentials are let in at once.
    poll("a place for the right credentials", PATIENCE, || {
        let code = status(&mut server.client(), RIGHT)?;
        ensure!(code == 200, "{code}");
        Ok(())
    })?;
    ensure!(0.0 < server.client_metric("quipu_limit_hits_total{limit=\"login-delay-max\"}")?);
    server.stop()
}

/// `/metrics` for somebody with credentials.
trait Metrics {
    fn client_metric(&self, name: &str) -> Result<f64>;
}

impl Metrics for Server {
    fn client_metric(&self, name: &str) -> Result<f64> {
        self.client().send("GET", "/metrics", &[RIGHT], &[])?.metric(name)
    }
}

#[test]
fn guesses_stop_nobody_else() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let mut known = server.client();
    ensure!(status(&mut known, RIGHT)? == 200);
    let mut keys = RedisClient::of(&server)?;
    ensure!(log_in(&mut keys)?.text() == "OK");
    let (refused, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let guess = || {
        while !is_over.load(Relaxed) {
            if status(&mut server.client(), WRONG).is_ok_and(|code| code == 503) {
                refused.fetch_add(1, Relaxed);
            }
        }
    };
    let checked = scope(|scope| {
        (0..40).for_each(|_| drop(scope.spawn(guess)));
        let checked = poll("a refusal", PATIENCE, || {
            ensure!(0 < refused.load(Relaxed), "none");
            Ok(())
        });
        let checked = checked.and_then(|()| {
            ensure!(status(&mut known, RIGHT)? == 200, "a connection that has authenticated");
            ensure!(status_from_elsewhere(&server)? == "200", "another address");
            ensure!(keys.say("SET k 1")?.text() == "OK");
            Ok(())
        });
        is_over.store(true, Relaxed);
        checked
    });
    checked?;
    server.stop()
}

#[test]
fn redis_slows_down_guesses_in_a_pipeline() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let mut stream = TcpStream::connect(("127.0.0.1", door_port(&server)?))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let guesses = "AUTH guess\r\n".repeat(500) + &"HELLO 3 AUTH somebody guess\r\n".repeat(500);
    stream.write_all((guesses + "GET k\r\nQUIT\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("the end of the connection")?;
    let count = |words: &str| answer.matches(words).count();
    // The pipeline comes in pieces, and places are free again after a second.
    let checked = count("-WRONGPASS");
    ensure!((CHECKED_MAX..100).contains(&checked), "{checked} were checked");
    let refused = count("-ERR too many failed attempts to authenticate");
    ensure!(count("-WRONGPASS") + refused == 1000, "{refused}");
    ensure!(answer.contains("-NOAUTH"), "{answer}");
    poll("a place for the right password", PATIENCE, || {
        let answer = log_in(&mut RedisClient::of(&server)?)?;
        ensure!(answer.text() == "OK", "{answer:?}");
        Ok(())
    })?;
    server.stop()
}

#[test]
fn the_delay_can_be_turned_off() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("bearer-token", "t");
    let server = launch.flag("login-delay-max", "0").start()?;
    let mut client = server.client();
    for _ in 0..200 {
        ensure!(status(&mut client, WRONG)? == 401);
    }
    server.stop()
}
