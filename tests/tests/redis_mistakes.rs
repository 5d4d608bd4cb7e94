//! Mistakes of clients against the real binary: each gets an answer that names cause and remedy.

use anyhow::{Result, ensure};
use e2e::http::connect;
use e2e::redis::{LineClient, RedisClient, door_port};
use e2e::tls::{certificate, send_encrypted};
use e2e::{Launch, Server};
use std::io::{Read as _, Write as _};
use std::path::Path;

fn launch(directory: &Path) -> Launch {
    Launch::new(directory).flag("redis-listen", "127.0.0.1:0")
}

/// All that the server answers to bytes until it hangs up.
fn answer_to(port: u16, bytes: &[u8]) -> Result<String> {
    let mut stream = connect(&format!("127.0.0.1:{port}"))?;
    stream.write_all(bytes)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The first bytes of a client of TLS 1.2 and later.
const CLIENT_HELLO: &[u8] = b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03";

#[test]
fn other_protocols_on_the_port_get_an_answer() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(directory.path()).start()?;
    let port = door_port(&server)?;
    for request in [
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n",
        "POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx",
    ] {
        let answer = answer_to(port, request.as_bytes())?;
        ensure!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        ensure!(answer.contains("is for Redis clients and does not speak HTTP"), "{answer}");
        ensure!(answer.contains("Send HTTP requests to http://"), "{answer}");
    }
    let answer = answer_to(port, CLIENT_HELLO)?;
    ensure!(answer.starts_with("-ERR this port does not speak TLS"), "{answer}");
    ensure!(answer.contains("--tls-cert"), "{answer}");
    // A line that only begins so is a command, also in two pieces.
    let mut client = LineClient::of(&server)?;
    ensure!(client.say("SET a HTTP")? == "+OK");
    client.send(b"GE")?;
    ensure!(client.say("T a")? == "$4 HTTP");
    server.stop()
}

#[test]
fn clients_without_tls_are_told_that_the_port_needs_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let data = directory.path().join("data");
    let server = launch(&data).flag("tls-cert", &cert).flag("tls-key", &key).start()?;
    let port = door_port(&server)?;
    let answer = answer_to(port, b"*1\r\n$4\r\nPING\r\n")?;
    ensure!(
        answer == "-ERR this port speaks TLS: connect with TLS (redis-cli --tls, rediss://)\r\n",
        "{answer}"
    );
    let answer = answer_to(server.port(), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    ensure!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    ensure!(answer.contains("this port speaks TLS: use an address with https://"), "{answer}");
    let size = answer.len() - answer.find("\r\n\r\n").unwrap_or(0) - 4;
    ensure!(answer.contains(&format!("content-length: {size}\r\n")), "{answer}");
    // Those with TLS are served.
    let pong = send_encrypted(&[], &format!("127.0.0.1:{port}"), b"PING\r\nQUIT\r\n")?;
    ensure!(pong.starts_with(b"+PONG\r\n"), "{}", String::from_utf8_lossy(&pong));
    server.stop()
}

/// Fails unless the reply to a line begins with the words.
fn expect(client: &mut RedisClient, line: &str, words: &str) -> Result<()> {
    let reply = client.say(line)?;
    ensure!(reply.text().starts_with(words), "{line}: {reply:?}");
    Ok(())
}

fn with_password(directory: &Path) -> Result<Server> {
    launch(directory).flag("http-user", "ali").flag("http-password", "open sesame").start()
}

#[test]
fn wrong_passwords_and_too_many_clients_get_an_error() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_password(directory.path())?;
    let mut client = RedisClient::of(&server)?;
    expect(&mut client, "GET a", "-NOAUTH Authentication required")?;
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled. The user default has the \
                 password of --http-user, or --bearer-token.";
    expect(&mut client, "AUTH wrong", wrong)?;
    ensure!(client.call(&[b"AUTH", b"open sesame"])?.text() == "OK");
    client.must("ACL SETUSER other on >pw +@all ~*")?;
    let reply = client.say("AUTH other wrong")?;
    let words = "-WRONGPASS invalid username-password pair or user is disabled.";
    ensure!(reply.text() == words, "{reply:?}");
    client.must("CONFIG SET maxclients 1")?;
    let answer = answer_to(door_port(&server)?, b"")?;
    // Clients know these words.
    ensure!(answer == "-ERR max number of clients reached\r\n", "{answer}");
    ensure!(server.metric("quipu_kv_clients_limit").is_err(), "/metrics has a password as well");
    server.stop()
}
