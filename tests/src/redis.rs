//! A real Redis beside the server under test, a client for both, and what both hold, to be compared.

use crate::http::connect;
use crate::launch::Server;
use crate::poll;
use crate::programs::{Program, free_port};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// It starts within that, also on a loaded machine.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Databases that are compared.
const DATABASES: u8 = 16;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// Words, an error's included.
    Text(String),
    /// A number.
    Int(i64),
    /// Nothing.
    Null,
    /// Several.
    List(Vec<Reply>),
}

impl Reply {
    /// Its words; empty if it has none.
    pub fn text(&self) -> &str {
        match self {
            Reply::Text(text) => text,
            _ => "",
        }
    }

    /// Its number; -1 if it has none.
    pub fn int(&self) -> i64 {
        match self {
            Reply::Int(int) => *int,
            _ => -1,
        }
    }

    /// What it holds.
    pub fn list(&self) -> &[Reply] {
        match self {
            Reply::List(list) => list,
            _ => &[],
        }
    }
}

/// A connection to a Redis or to the door.
pub struct RedisClient(BufReader<TcpStream>);

impl RedisClient {
    /// To a Redis at that port of loopback.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn at(port: u16) -> Result<RedisClient> {
        Ok(RedisClient(BufReader::new(connect(&format!("127.0.0.1:{port}"))?)))
    }

    /// To the door of a server.
    ///
    /// # Errors
    /// When it has none.
    pub fn of(server: &Server) -> Result<RedisClient> {
        RedisClient::at(door_port(server)?)
    }

    /// What is answered to words; an error is text that begins with `-`.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn call(&mut self, words: &[&[u8]]) -> Result<Reply> {
        self.0.get_mut().write_all(&request(words))?;
        self.reply()
    }

    /// What is answered to commands that are sent together.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn pipeline(&mut self, commands: &[&[&str]]) -> Result<Vec<Reply>> {
        let mut bytes = Vec::new();
        for words in commands {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            bytes.extend(request(&words));
        }
        self.0.get_mut().write_all(&bytes)?;
        commands.iter().map(|_| self.reply()).collect()
    }

    /// The same of a line of words.
    ///
    /// # Errors
    /// As there.
    pub fn say(&mut self, line: &str) -> Result<Reply> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.call(&words)
    }

    /// The same; an error is one here, too.
    ///
    /// # Errors
    /// As there, and when the server refuses.
    pub fn must(&mut self, line: &str) -> Result<Reply> {
        let reply = self.say(line)?;
        ensure!(!reply.text().starts_with('-'), "{line}: {}", reply.text());
        Ok(reply)
    }

    /// Reads the next message of the server, such as a published message or a line of MONITOR.
    ///
    /// # Errors
    /// When the server hung up.
    pub fn next_message(&mut self) -> Result<Reply> {
        self.reply()
    }

    fn reply(&mut self) -> Result<Reply> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line)?;
        let line =
            String::from_utf8_lossy(line.strip_suffix(b"\r\n").context("hung up")?).into_owned();
        let (kind, rest) = line.split_at(1);
        Ok(match (kind, rest) {
            ("+" | "," | "(", _) => Reply::Text(rest.to_owned()),
            ("-", _) => Reply::Text(line),
            (":", _) => Reply::Int(rest.parse()?),
            ("#", _) => Reply::Int(i64::from(rest == "t")),
            ("$" | "*", "-1") | ("_", _) => Reply::Null,
            ("$" | "=", _) => {
                let mut bytes = vec![0; rest.parse::<usize>()? + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                // Each byte one letter, so that nothing is lost.
                Reply::Text(bytes.into_iter().map(char::from).collect())
            }
            ("*" | "~" | ">" | "%", _) => {
                let count = rest.parse::<usize>()? * if kind == "%" { 2 } else { 1 };
                Reply::List((0..count).map(|_| self.reply()).collect::<Result<_>>()?)
            }
            _ => bail!("no answer: {line}"),
        })
    }

    /// A line of `INFO`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn info(&mut self, name: &str) -> Result<String> {
        let text = self.say("INFO everything")?;
        let start = format!("{name}:");
        let line = text.text().lines().find_map(|line| line.strip_prefix(&start));
        Ok(line.with_context(|| format!("no {name}"))?.to_owned())
    }

    /// All keys with their types, contents and times of expiry, in words that are the same for the
    /// same contents.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn contents(&mut self) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for db in 0..DATABASES {
            self.must(&format!("SELECT {db}"))?;
            let mut cursor = "0".to_owned();
            loop {
                let found = self.must(&format!("SCAN {cursor} COUNT 1000"))?;
                for key in found.list()[1].list() {
                    let shown = format!("db{db} {}", key.text());
                    all.insert(shown, self.content(key.text())?);
                }
                cursor = found.list()[0].text().to_owned();
                if cursor == "0" {
                    break;
                }
            }
        }
        self.must("SELECT 0")?;
        Ok(all)
    }

    fn content(&mut self, key: &str) -> Result<String> {
        let bytes: Vec<u8> = key.chars().map(|letter| letter as u8).collect();
        let key = bytes.as_slice();
        let of_type = self.call(&[b"TYPE", key])?;
        let expiry = self.call(&[b"PEXPIRETIME", key])?.int();
        let value = match of_type.text() {
            "string" => self.call(&[b"GET", key])?,
            "list" => self.call(&[b"LRANGE", key, b"0", b"-1"])?,
            "set" => sorted(self.call(&[b"SMEMBERS", key])?, 1),
            "hash" => sorted(self.call(&[b"HGETALL", key])?, 2),
            "zset" => scored(&self.call(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"])?)?,
            "stream" => self.stream(key)?,
            other => Reply::Text(other.to_owned()),
        };
        Ok(format!("{} {expiry} {value:?}", of_type.text()))
    }

    fn stream(&mut self, key: &[u8]) -> Result<Reply> {
        let mut parts = vec![self.call(&[b"XRANGE", key, b"-", b"+"])?];
        let about = self.call(&[b"XINFO", b"STREAM", key])?;
        let names = ["length", "last-generated-id", "max-deleted-entry-id", "entries-added"];
        parts.extend(fields(&about, &names));
        let groups = self.call(&[b"XINFO", b"GROUPS", key])?;
        for group in groups.list() {
            // How many entries a group has read Redis 7.0 does not tell its replicas.
            let names = ["name", "consumers", "pending", "last-delivered-id"];
            parts.extend(fields(group, &names));
            let name = fields(group, &["name"]).remove(0);
            let name = name.text().as_bytes();
            let pending = self.call(&[b"XPENDING", key, name, b"-", b"+", b"10000"])?;
            for entry in pending.list() {
                // The third is how long ago, which passes.
                let [id, consumer, _, count] = entry.list() else { bail!("no entry: {entry:?}") };
                parts.extend([id.clone(), consumer.clone(), count.clone()]);
            }
            let consumers = self.call(&[b"XINFO", b"CONSUMERS", key, name])?;
            let names = consumers.list().iter().flat_map(|one| fields(one, &["name", "pending"]));
            parts.push(sorted(Reply::List(names.collect()), 2));
        }
        Ok(Reply::List(parts))
    }
}

/// Members and scores, the scores in one form: Redis 7.0 writes more digits than later versions.
fn scored(reply: &Reply) -> Result<Reply> {
    let score = |text: &str| -> Result<Reply> {
        let score: f64 = text.parse().with_context(|| format!("no score: {text}"))?;
        Ok(Reply::Text(format!("{score:?}")))
    };
    let items = reply.list().iter().enumerate();
    let shown = items.map(|(at, item)| match at % 2 {
        0 => Ok(item.clone()),
        _ => score(item.text()),
    });
    Ok(Reply::List(shown.collect::<Result<_>>()?))
}

/// A command as it is sent.
fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn fields(about: &Reply, names: &[&str]) -> Vec<Reply> {
    let pairs = about.list().chunks(2);
    let wanted = pairs.filter(|pair| names.contains(&pair[0].text()));
    wanted.map(|pair| pair[1].clone()).collect()
}

fn sorted(list: Reply, of: usize) -> Reply {
    let mut items: Vec<Vec<Reply>> = list.list().chunks(of).map(<[Reply]>::to_vec).collect();
    items.sort();
    Reply::List(items.concat())
}

/// What ends the answers that [`LineClient::say`] reads.
const END: &[u8] = b"+PONG\r\n";

/// A client of the door that speaks in lines, as by hand.
pub struct LineClient(TcpStream);

impl LineClient {
    /// To the door of a server.
    ///
    /// # Errors
    /// When it has none.
    pub fn of(server: &Server) -> Result<LineClient> {
        Ok(LineClient(connect(&format!("127.0.0.1:{}", door_port(server)?))?))
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the server hung up, or takes nothing.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.0.write_all(bytes)?)
    }

    /// What is answered to lines, with spaces for line ends. Not within a transaction: what ends the
    /// answers would be queued.
    ///
    /// # Errors
    /// When the server hung up.
    pub fn say(&mut self, lines: &str) -> Result<String> {
        self.send(format!("{lines}\r\nPING\r\n").as_bytes())?;
        let (mut answer, mut bytes) = (Vec::new(), [0; 4096]);
        while !answer.ends_with(END) {
            let count = self.0.read(&mut bytes)?;
            ensure!(0 < count, "the server hung up after {}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&bytes[..count]);
        }
        answer.truncate(answer.len() - END.len());
        Ok(String::from_utf8(answer)?.replace("\r\n", " ").trim_end().to_owned())
    }

    /// All that comes until the server hangs up.
    ///
    /// # Errors
    /// When it does not.
    pub fn rest(&mut self) -> Result<String> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest)?;
        Ok(String::from_utf8(rest)?)
    }

    /// The one line that answers a line, within a transaction too.
    ///
    /// # Errors
    /// When the server hung up.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        self.send(format!("{line}\r\n").as_bytes())?;
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while !answer.ends_with(b"\r\n") {
            self.0.read_exact(&mut byte)?;
            answer.push(byte[0]);
        }
        Ok(String::from_utf8(answer)?.trim_end().to_owned())
    }
}

/// The port of a server's door for Redis' clients.
///
/// # Errors
/// When it has none.
pub fn door_port(server: &Server) -> Result<u16> {
    poll("the address of the door", READY_TIMEOUT, || {
        let log = server.log();
        let (_, rest) = log.rsplit_once("Redis' clients at ").context("not said")?;
        let (address, _) = rest.split_once(' ').context("not whole")?;
        let (_, port) = address.rsplit_once(':').context("no port")?;
        Ok(port.parse()?)
    })
}

/// A Redis that runs and is ready; killed when dropped.
pub struct Redis {
    program: Program,
    /// Where it listens.
    pub port: u16,
}

impl Redis {
    /// Starts it on a free port of loopback, with its files and log in a directory, and more
    /// arguments.
    ///
    /// # Errors
    /// When it is not installed or does not get ready.
    pub fn start(directory: &Path, arguments: &[&str]) -> Result<Redis> {
        let port = free_port()?;
        let (dir, text) = (directory.display().to_string(), port.to_string());
        let fixed = ["--port", &text, "--bind", "127.0.0.1", "--dir", &dir, "--save", ""];
        let all = fixed.iter().chain(arguments).map(|word| (*word).to_owned());
        let log = directory.join(format!("redis-{port}.log"));
        let program = Program::start("redis-server", &all.collect::<Vec<_>>(), &log)?;
        let redis = Redis { program, port };
        poll("a Redis that is ready", READY_TIMEOUT, || {
            let answer = redis.client()?.say("PING")?;
            // One that wants a password is ready, too.
            let is_ready = answer.text() == "PONG" || answer.text().starts_with("-NOAUTH");
            ensure!(is_ready, "{answer:?}");
            Ok(())
        })
        .with_context(|| redis.program.log())?;
        Ok(redis)
    }

    /// A connection of its own.
    ///
    /// # Errors
    /// When it does not take one.
    pub fn client(&self) -> Result<RedisClient> {
        RedisClient::at(self.port)
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        self.program.log()
    }
}
