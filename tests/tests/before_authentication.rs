//! Every route and every command of clients who have not authenticated, in every state before that: nothing
//! runs, and nothing but refusals is answered. Those of PostgreSQL's protocol are in
//! `postgres_authentication`.

use anyhow::{Result, ensure};
use e2e::http::{connect, read_response};
use e2e::redis::{Reply, door_port};
use e2e::routes::{PARAMETERS, paths};
use e2e::tls::{certificate, send_encrypted};
use e2e::{Launch, RedisClient, Server};
use rng::Random;
use std::collections::BTreeSet;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
/// In names and values of all that is stored.
const MARK: &str = "m4rk";
/// `somebody:open sesame`
const RIGHT: (&str, &str) = ("Authorization", "Basic c29tZWJvZHk6b3BlbiBzZXNhbWU=");
/// Connections that send random bytes.
const RANDOM_COUNT: usize = 200;
/// Paths that say no more than that the server is there.
const OPEN: [&str; 7] =
    ["/ping", "/influx/ping", "/health", "/influx/health", "/ready", "/-/healthy", "/-/ready"];

fn start(launch: Launch) -> Result<Server> {
    let launch = launch.flag("redis-listen", "127.0.0.1:0").flag("login-delay-max", "0");
    let server =
        launch.flag("http-user", "somebody").flag("http-password", "open sesame").start()?;
    Ok(server)
}

fn write_marks(server: &Server) -> Result<()> {
    let mut client = server.client();
    let written = client.post("/write", &[RIGHT], format!("{MARK},t={MARK} v=1").as_bytes())?;
    ensure!(written.status == 204, "{}", written.excerpt());
    let mut keys = known(server)?;
    keys.must(&format!("SET {MARK} {MARK}"))?;
    Ok(())
}

/// A client of Redis' protocol who has authenticated.
fn known(server: &Server) -> Result<RedisClient> {
    let mut client = RedisClient::of(server)?;
    let answer = client.call(&[b"AUTH", b"somebody", b"open sesame"])?;
    ensure!(answer.text() == "OK", "{answer:?}");
    Ok(client)
}

/// All is as it was written.
fn is_untouched(server: &Server) -> Result<()> {
    let mut client = server.client();
    let all = "/api/v1/export?match[]=%7B__name__!=%22%22%7D";
    let export = client.send("GET", all, &[RIGHT], &[])?.export()?;
    ensure!(export.0.keys().eq([&format!("{MARK}_v{{t=\"{MARK}\"}}")]), "{export:?}");
    let snapshots = client.send("GET", "/snapshot/list", &[RIGHT], &[])?.text();
    ensure!(snapshots.contains("\"snapshots\":[]"), "{snapshots}");
    let mut keys = known(server)?;
    ensure!(keys.say("DBSIZE")?.int() == 1 && keys.say(&format!("GET {MARK}"))?.text() == MARK);
    ensure!(
        keys.say("CONFIG GET requirepass")?
            .list()
            .last()
            .is_some_and(|text| text.text().is_empty())
    );
    ensure!(keys.say("ACL LIST")?.list().len() == 1);
    let listening =
        keys.say("PUBSUB NUMPAT")?.int() + keys.say("PUBSUB CHANNELS")?.list().len() as i64;
    ensure!(listening == 0, "somebody listens");
    Ok(())
}

#[test]
fn no_route_answers_without_credentials() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(Launch::new(directory.path()))?;
    write_marks(&server)?;
    let (line, wrong) = (b"pwned v=1".as_slice(), ("Authorization", "Basic eDp5"));
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let mut client = server.client();
    for path in paths(MARK)? {
        for prefix in ["", "/prometheus", "/graphite"] {
            for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
                for headers in [&[][..], &[wrong], &[form], &[("Authorization", "Bearer"), form]] {
                    let target = format!("{prefix}{path}?{PARAMETERS}");
                    let body = if method == "GET" { b"" } else { line };
                    let response = client.send(method, &target, headers, body)?;
                    let what = format!("{method} {target} {headers:?}: {}", response.excerpt());
                    let is_open = OPEN.contains(&path.as_str());
                    match response.status {
                        401 | 404 | 405 => {}
                        200 | 204 if is_open => {}
                        _ => anyhow::bail!("{what}"),
                    }
                    ensure!(!response.text().replace(&target, "").contains("m4rk_v"), "{what}");
                }
            }
        }
    }
    is_untouched(&server)
}

#[test]
fn http_without_credentials_in_odd_forms_runs_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(Launch::new(directory.path()))?;
    write_marks(&server)?;
    let write = "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\npwned v=1";
    let ends = "GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let right = format!("{}: {}", RIGHT.0, RIGHT.1);
    for text in [
        // Behind an open path, in the body of one, behind a refused one.
        format!("GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n{write}{ends}"),
        format!(
            "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{write}{ends}",
            write.len()
        ),
        format!("{write}{write}{ends}"),
        // Credentials where they do not belong.
        format!(
            "POST /write?{right} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\npwned v=1{ends}"
        ),
        format!(
            "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\npwned v=1\r\n{right}\r\n\r\n"
        ),
        format!(
            "POST /write HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\npwned v=1\r\n0\r\n{right}\r\n\r\n{ends}"
        ),
        format!(
            "GET /api/v1/export?u=somebody&p=open%20sesame&match[]=m4rk_v HTTP/1.1\r\nHost: x\r\n\r\n{ends}"
        ),
        // Targets in other forms.
        format!("GET http://x/api/v1/export?match[]=m4rk_v HTTP/1.1\r\nHost: x\r\n\r\n{ends}"),
        format!("GET //api/v1/export?match[]=m4rk_v HTTP/1.1\r\nHost: x\r\n\r\n{ends}"),
        format!(
            "GET /-/healthy/../../api/v1/export?match[]=m4rk_v HTTP/1.1\r\nHost: x\r\n\r\n{ends}"
        ),
        format!("GET /ping%2f..%2fapi/v1/export?match[]=m4rk_v HTTP/1.1\r\nHost: x\r\n\r\n{ends}"),
        "POST /write HTTP/1.0\r\nContent-Length: 9\r\n\r\npwned v=1".to_string(),
        // Two lengths.
        format!(
            "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\npwned v=1{ends}"
        ),
    ] {
        let answer = raw(server.authority(), text.as_bytes())?;
        ensure!(!answer.contains(MARK), "{text}: {answer}");
        ensure!(!answer.contains("HTTP/1.1 204"), "{text}: {answer}");
    }
    let mut random = Random::seeded(7);
    for _ in 0..RANDOM_COUNT {
        let mut bytes = [write.as_bytes(), ends.as_bytes()].concat();
        for _ in 0..=random.below(6) {
            let at = random.index(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        let answer = raw(server.authority(), &bytes)?;
        ensure!(!answer.contains("HTTP/1.1 204") && !answer.contains(MARK), "{bytes:?}: {answer}");
    }
    is_untouched(&server)
}

/// All that is answered to bytes until the connection ends.
fn raw(address: &str, bytes: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    // An end by a reset is one, too.
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// What leads to each state of a client of Redis' protocol who is not known.
const STATES: [(&str, &str); 9] = [
    ("at first", ""),
    ("after a wrong password", "AUTH guess\r\n"),
    ("after a wrong user", "AUTH nobody guess\r\n"),
    ("after HELLO", "HELLO 3\r\n"),
    ("after HELLO with a wrong password", "HELLO 3 AUTH somebody guess\r\n"),
    ("after RESET", "RESET\r\n"),
    ("after MULTI", "MULTI\r\n"),
    ("after SUBSCRIBE", "SUBSCRIBE c\r\n"),
    ("after half of a login", "AUTH\r\nHELLO 3 AUTH somebody\r\n"),
];

/// Commands that have subcommands.
const CONTAINERS: [&str; 16] = [
    "acl", "client", "cluster", "command", "config", "debug", "function", "latency", "memory",
    "module", "object", "pubsub", "script", "slowlog", "xgroup", "xinfo",
];

/// The names of all commands and their subcommands, as the tables of the server have them.
fn commands(server: &Server) -> Result<Vec<String>> {
    let mut client = known(server)?;
    let list = client.say("COMMAND LIST")?;
    let mut names: Vec<String> =
        list.list().iter().map(|name| name.text().replace('|', " ")).collect();
    ensure!(200 < names.len(), "{names:?}");
    let help = client.say("DEBUG HELP")?;
    let words = help.list().iter().skip(1).map(Reply::text).filter(|line| !line.starts_with(' '));
    names.extend(words.map(|word| format!("debug {}", word.to_lowercase())));
    for container in CONTAINERS {
        let count = names.iter().filter(|name| name.starts_with(&format!("{container} "))).count();
        ensure!(4 <= count, "{count} subcommands of {container}: {names:?}");
    }
    Ok(names)
}

/// Beginnings of answers that look at the words of a command alone.
const REFUSALS: [&str; 6] = [
    "-NOAUTH ",
    "-EXECABORT Transaction discarded because of: NOAUTH ",
    "-EXECABORT Transaction discarded because of: wrong number of arguments for ",
    "-ERR wrong number of arguments for ",
    "-ERR unknown command ",
    "-ERR unknown subcommand ",
];

/// Commands for those who have not authenticated, which look at their arguments.
const LOGINS: [&str; 2] = ["auth", "hello"];
/// Beginnings of what they answer besides.
const LOGIN_REFUSALS: [&str; 5] = [
    "-WRONGPASS ",
    "-NOPROTO ",
    "-ERR Protocol version is not an integer ",
    "-ERR Syntax error in HELLO option ",
    "-ERR syntax error",
];

/// Only refusals before a command began are in an answer, but for those of the commands that lead to
/// the state.
fn check_nothing_ran(what: &str, prefix: &str, name: &str, answer: &str) -> Result<()> {
    check_refusals(what, answer)?;
    let has_login = !prefix.is_empty() || LOGINS.contains(&name);
    let login_refusals = if has_login { &LOGIN_REFUSALS[..] } else { &[] };
    for line in answer.lines().filter(|line| line.starts_with('-')) {
        let mut refusals = REFUSALS.iter().chain(login_refusals);
        ensure!(refusals.any(|refusal| line.starts_with(refusal)), "{what}: {line}");
    }
    Ok(())
}

/// Only refusals are in an answer. Those who are not known may say these four.
fn check_refusals(what: &str, answer: &str) -> Result<()> {
    for line in answer.lines() {
        let is_refusal = line.starts_with('-');
        ensure!(is_refusal || line == "+OK" || line == "+RESET", "{what}: {answer}");
    }
    Ok(())
}

/// Commands for all clients.
const OPEN_COMMANDS: [&str; 4] = ["auth", "hello", "quit", "reset"];

/// Arguments some of which fit each command.
fn arguments() -> impl Iterator<Item = String> {
    let some = ["1 m4rk", "0 1"].map(str::to_owned);
    let many = (0..12).map(|count| ["m4rk", "1"].repeat(count)[..count].join(" "));
    some.into_iter().chain(many)
}

#[test]
fn no_command_of_redis_runs_before_authentication() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("redis.enable-debug-command", "yes");
    let server = start(launch)?;
    write_marks(&server)?;
    let address = format!("127.0.0.1:{}", door_port(&server)?);
    for name in commands(&server)? {
        for (state, prefix) in STATES {
            let what = format!("{name} {state}");
            let tries: String =
                arguments().map(|arguments| format!("{name} {arguments}\r\n")).collect();
            let answer =
                raw(&address, format!("{prefix}{tries}EXEC\r\nGET m4rk\r\nQUIT\r\n").as_bytes())?;
            check_nothing_ran(&what, prefix, &name, &answer)?;
            let refused = answer.matches("NOAUTH ").count();
            // Two answer EXEC and GET. Commands with subcommands say that they need one.
            let is_open = OPEN_COMMANDS.contains(&name.as_str());
            let needs_more = CONTAINERS.contains(&name.as_str());
            ensure!(3 <= refused || is_open || needs_more, "{what}: {answer}");
            // QUIT, RESET: nothing else is done.
            let done = answer.lines().filter(|line| line.starts_with('+')).count();
            let is_one_of_them = ["quit", "reset"].contains(&name.as_str());
            ensure!(is_one_of_them || done <= 2, "{what}: {answer}");
        }
    }
    is_untouched(&server)
}

#[test]
fn a_client_of_redis_who_resets_is_not_known_any_more() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(Launch::new(directory.path()))?;
    write_marks(&server)?;
    let mut client = known(&server)?;
    ensure!(client.say("GET m4rk")?.text() == MARK);
    ensure!(client.say("MULTI")?.text() == "OK");
    ensure!(client.say("SET pwned 1")?.text() == "QUEUED");
    ensure!(client.say("RESET")?.text() == "RESET");
    for line in ["EXEC", "GET m4rk", "SET pwned 1", "MULTI", "CLIENT LIST", "PING", "HELLO 3"] {
        let answer = client.say(line)?;
        let text = answer.text();
        ensure!(text.starts_with('-') && text.contains("NOAUTH"), "{line}: {text}");
    }
    let mut client = known(&server)?;
    ensure!(client.say("AUTH guess")?.text().starts_with("-WRONGPASS"));
    ensure!(client.say("GET m4rk")?.text() == MARK, "a wrong password takes nothing away");
    is_untouched(&server)
}

#[test]
fn random_bytes_of_redis_before_authentication_run_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(Launch::new(directory.path()))?;
    write_marks(&server)?;
    let address = format!("127.0.0.1:{}", door_port(&server)?);
    let mut random = Random::seeded(11);
    let set = "*3\r\n$3\r\nSET\r\n$5\r\npwned\r\n$1\r\n1\r\n";
    for _ in 0..RANDOM_COUNT {
        let (state, prefix) = *random.pick(&STATES);
        let mut bytes = [prefix.as_bytes(), set.as_bytes(), b"FLUSHALL\r\nGET m4rk\r\n"].concat();
        for _ in 0..random.below(8) {
            let at = random.index(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        check_refusals(&format!("{state}, {bytes:?}"), &raw(&address, &bytes)?)?;
    }
    is_untouched(&server)
}

/// What is answered over TLS until the connection ends.
fn encrypted(address: &str, bytes: &[u8]) -> Result<String> {
    Ok(String::from_utf8_lossy(&send_encrypted(&[], address, bytes)?).into_owned())
}

#[test]
fn nothing_runs_in_the_clear_where_tls_is_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let launch = Launch::new(&directory.path().join("data"));
    let launch = launch.flag("tls-cert", &cert).flag("tls-key", &key);
    let launch = launch.flag("influx-listen", "127.0.0.1:0");
    let server = launch.flag("redis-listen", "127.0.0.1:0").start()?;
    let keys = format!("127.0.0.1:{}", door_port(&server)?);
    let log = server.log();
    let lines =
        log.split("127.0.0.1:").map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let mut ports: BTreeSet<String> = lines.flatten().map(str::to_string).collect();
    ports.remove("");
    ports.insert(server.port().to_string());
    let http = "POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\npwned v=1";
    let mut count = 0;
    for port in ports {
        let ask = |bytes: &[u8]| raw(&format!("127.0.0.1:{port}"), bytes);
        // Some numbers in the log are no ports that listen.
        let Ok(answer) = ask(b"SET pwned 1\r\npwned v=1\r\nGET k\r\n") else { continue };
        ensure!(!answer.contains("OK"), "{port}: {answer}");
        let answer = ask(http.as_bytes())?;
        let is_refused = answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://");
        ensure!(!answer.contains("HTTP/1") || is_refused, "{port}: {answer}");
        count += 1;
    }
    ensure!(3 <= count, "{count} of three listeners: {log}");
    let answer = encrypted(&keys, b"EXISTS pwned\r\nQUIT\r\n")?;
    ensure!(answer.starts_with(":0"), "{answer}");
    let labels = "GET /api/v1/label/__name__/values HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = encrypted(server.authority(), labels.as_bytes())?;
    ensure!(answer.contains("200 OK") && !answer.contains("pwned"), "{answer}");
    Ok(())
}

#[test]
fn nothing_runs_before_authentication_over_tls() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let launch = Launch::new(&directory.path().join("data"));
    let server = start(launch.flag("tls-cert", &cert).flag("tls-key", &key))?;
    let keys = format!("127.0.0.1:{}", door_port(&server)?);
    for (state, prefix) in STATES {
        let all = format!("{prefix}SET pwned 1\r\nFLUSHALL\r\nCONFIG GET *\r\nMONITOR\r\nQUIT\r\n");
        check_refusals(state, &encrypted(&keys, all.as_bytes())?)?;
    }
    let write = "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\npwned v=1";
    let read = "GET /api/v1/labels HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = encrypted(server.authority(), format!("{write}{read}").as_bytes())?;
    ensure!(answer.matches("401 Unauthorized").count() == 2, "{answer}");
    let known = format!(
        "GET /api/v1/label/__name__/values HTTP/1.1\r\nHost: x\r\n{}: {}\r\nConnection: close\r\n\r\n",
        RIGHT.0, RIGHT.1
    );
    let answer = encrypted(server.authority(), known.as_bytes())?;
    ensure!(answer.contains("200 OK") && !answer.contains("pwned"), "{answer}");
    let answer = encrypted(&keys, b"AUTH somebody \"open sesame\"\r\nDBSIZE\r\nQUIT\r\n")?;
    ensure!(answer.contains(":0"), "{answer}");
    Ok(())
}

#[test]
fn a_connection_stays_unknown_behind_a_request_with_credentials() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(Launch::new(directory.path()))?;
    write_marks(&server)?;
    let mut stream = connect(server.authority())?;
    let head =
        |credentials: &str| format!("GET /api/v1/labels HTTP/1.1\r\nHost: x\r\n{credentials}\r\n");
    write!(stream, "{}", head(&format!("{}: {}\r\n", RIGHT.0, RIGHT.1)))?;
    let mut answers = BufReader::new(stream.try_clone()?);
    ensure!(read_response(&mut answers)?.status == 200);
    write!(stream, "{}", head(""))?;
    ensure!(read_response(&mut answers)?.status == 401, "each request has its own");
    is_untouched(&server)
}
