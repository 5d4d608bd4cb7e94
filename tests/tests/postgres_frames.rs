//! Conversations of PostgreSQL's protocol with bytes changed, cut and repeated: the server lives, and
//! answers the next one.

use anyhow::{Result, ensure};
use e2e::postgres::{Raw, door_port};
use e2e::{Launch, Server};
use rng::Random;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Conversations of the run.
const COUNT: usize = 600;
/// How long a server may think about one. What is said to it has an end, so that it ends, too.
const PATIENCE: Duration = Duration::from_secs(20);

/// A message: its type, none for the first one, and its body.
type Frame = (Option<u8>, Vec<u8>);

fn frame(kind: char, body: &[u8]) -> Frame {
    (Some(kind as u8), body.to_vec())
}

/// What a client says that uses all there is.
fn conversation() -> Vec<Frame> {
    let select = "SELECT $1::int + 1, time, labels FROM metrics WHERE name = $2 LIMIT 3";
    let parse = [b"s\0".as_slice(), select.as_bytes(), b"\0\0\x02\0\0\0\x17\0\0\0\x19"].concat();
    let bind = b"p\0s\0\0\x02\0\x01\0\0\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x01a\0\x01\0\x01";
    let insert = "INSERT INTO metrics (name, value) VALUES ($1, $2)";
    let parse_insert = [b"\0".as_slice(), insert.as_bytes(), b"\0\0\0"].concat();
    vec![
        (
            None,
            b"\0\x03\0\0user\0me\0database\0x\0options\0-c pg_prometheus.job_label=j\0\0".to_vec(),
        ),
        frame('Q', b"COPY metrics FROM STDIN\0"),
        frame('d', b"a{b=\"c\"} 1 1709208000000\n# x\na 2"),
        frame('d', b" 1709208000001\n"),
        frame('c', b""),
        frame('Q', b"BEGIN; DECLARE c CURSOR FOR SELECT * FROM metrics; FETCH 1 FROM c; COMMIT\0"),
        frame('P', &parse),
        frame('D', b"Ss\0"),
        frame('B', bind),
        frame('D', b"Pp\0"),
        frame('E', b"p\0\0\0\0\x01"),
        frame('C', b"Pp\0"),
        frame('S', b""),
        frame('P', &parse_insert),
        frame('B', b"\0\0\0\0\0\x02\0\0\0\x01a\0\0\0\x031.5\0\0"),
        frame('E', b"\0\0\0\0\0"),
        frame('H', b""),
        frame('S', b""),
        frame('Q', b"COPY (SELECT 1) TO STDOUT WITH (FORMAT csv)\0"),
        frame('f', b"no\0"),
        frame('X', b""),
    ]
}

fn bytes_of((kind, body): &Frame) -> Vec<u8> {
    let size = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    let mut bytes: Vec<u8> = kind.iter().copied().collect();
    bytes.extend_from_slice(&size.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Something else than what was meant, in a frame that is whole, or in the bytes of all.
fn mutated(random: &mut Random) -> Vec<u8> {
    let mut frames = conversation();
    for _ in 0..1 + random.below(3) {
        // Mostly within those that come after the first.
        let at = if random.below(20) == 0 { 0 } else { 1 + random.index(frames.len() - 1) };
        let other = random.index(frames.len());
        match random.below(6) {
            0 => {
                frames.remove(at.max(1));
            }
            1 => {
                let copy = frames[other].clone();
                frames.insert(at.max(1), copy);
            }
            2 => {
                let cut = random.index(frames[at].1.len() + 1);
                frames[at].1.truncate(cut);
            }
            3 if !frames[at].1.is_empty() => {
                let byte = random.index(frames[at].1.len());
                frames[at].1[byte] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'\'', b'(', b'x']);
            }
            4 => frames[at].0 = frames[at].0.map(|_| *random.pick(b"QPBDECSHFdcfpXxz\0")),
            _ => {
                let tail = frames[other].1.clone();
                frames[at].1.extend(tail);
            }
        }
    }
    let mut bytes: Vec<u8> = frames.iter().flat_map(bytes_of).collect();
    if random.below(4) == 0 {
        let at = random.index(bytes.len());
        match random.below(2) {
            0 => bytes.truncate(at),
            _ => bytes[at] ^= 1 << random.below(8),
        }
    }
    bytes
}

fn say(server: &Server, bytes: &[u8]) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", door_port(server)?))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // It may have had enough before the end.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            anyhow::bail!("it neither answers nor ends: {bytes:?}")
        }
        _ => Ok(()),
    }
}

#[test]
fn changed_conversations_end_and_the_next_is_answered() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("postgres-listen", "127.0.0.1:0");
    let server = launch.flag("self-scrape-interval", "0").start()?;
    let whole: Vec<u8> = conversation().iter().flat_map(bytes_of).collect();
    say(&server, &whole)?;
    let mut raw = Raw::of(&server)?;
    raw.query("SELECT count(*) FROM metrics WHERE labels->>'job' = 'j'")?;
    let said = raw.until('Z')?;
    ensure!(said[1].body.ends_with(b"3"), "the conversation as it is meant: {said:?}");
    let mut random = Random::seeded(15);
    for _ in 0..COUNT {
        say(&server, &mutated(&mut random))?;
    }
    let mut raw = Raw::of(&server)?;
    raw.query("SELECT 7")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "TDCZ");
    ensure!(server.metric("quipu_connections{listener=\"postgres\"}")? <= 2.0, "connections stay");
    Ok(())
}
