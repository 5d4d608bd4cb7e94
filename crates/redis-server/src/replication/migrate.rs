//! `MIGRATE`: keys to another server, and away from here when they are there.
//!
//! ```text
//! keys (a batch, copied under the lock) ─► RESTORE ... ─► answers ─► those that are in go,
//!                                                                    unless they have changed
//! ```

use super::feed::put_command;
use crate::commands::Flow;
use crate::dispatch::Context;
use kv::error::SYNTAX;
use kv::number::{int_arg, parse_i64};
use kv::{Call, CommandError, Discard, Keyspace, Kv, KvDurability, Mode, Reply as _, rdb};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// The time limit where none is said.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of values that are on their way at a time, but for a value that has more.
const BATCH_SIZE: usize = 4 << 20;
/// Longest answer.
const ANSWER_SIZE_MAX: u64 = 64 << 10;

/// What is to be done.
struct Job {
    host: String,
    port: u16,
    from: u8,
    to: i64,
    timeout: Duration,
    keeps: bool,
    replaces: bool,
    login: Vec<Vec<u8>>,
    keys: Vec<Vec<u8>>,
}

/// The places of the keys among the arguments.
pub fn key_places(args: &[&[u8]]) -> Vec<usize> {
    match args.get(3) {
        Some(key) if !key.is_empty() => vec![3],
        _ => match args.iter().position(|arg| arg.eq_ignore_ascii_case(b"keys")) {
            Some(at) => (at + 1..args.len()).collect(),
            None => Vec::new(),
        },
    }
}

/// Does it.
///
/// # Errors
/// When it is said wrong.
pub fn migrate(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let job = parse(context.args, context.session.db)?;
    let mut is_there = false;
    for key in &job.keys {
        is_there |= context.keys.exists(context.session.db, key)?;
    }
    if !is_there {
        context.session.out.simple("NOKEY");
        return Ok(Flow::Next);
    }
    if context.mode != Mode::Client {
        // A transaction or a script has the keys: they are sent while everybody waits, as by Redis.
        return match run(&mut Source::Held(context.keys), &job) {
            Ok(()) => {
                context.session.out.ok();
                Ok(Flow::Next)
            }
            Err(reason) => Err(CommandError::new(reason)),
        };
    }
    let kv = context.redis.kv.clone();
    context.session.work = Some(Box::new(move |out| match run(&mut Source::Shared(&kv), &job) {
        Ok(()) => out.ok(),
        Err(reason) => out.error(&reason),
    }));
    Ok(Flow::Work)
}

fn parse(args: &[&[u8]], from: u8) -> Result<Job, CommandError> {
    let port = parse_i64(args[2]).and_then(|port| u16::try_from(port).ok());
    let timeout_ms = int_arg(args[5])?;
    let mut job = Job {
        host: String::from_utf8_lossy(args[1]).into_owned(),
        port: port.ok_or(kv::error::NOT_INTEGER)?,
        from,
        to: int_arg(args[4])?,
        timeout: match u64::try_from(timeout_ms) {
            Ok(0) | Err(_) => TIMEOUT,
            Ok(ms) => Duration::from_millis(ms),
        },
        keeps: false,
        replaces: false,
        login: Vec::new(),
        keys: vec![args[3].to_vec()],
    };
    let mut at = 6;
    while let Some(word) = args.get(at) {
        let rest = &args[at + 1..];
        match word.to_ascii_lowercase().as_slice() {
            b"copy" => job.keeps = true,
            b"replace" => job.replaces = true,
            b"auth" if !rest.is_empty() => {
                job.login = vec![rest[0].to_vec()];
                at += 1;
            }
            b"auth2" if 1 < rest.len() => {
                job.login = vec![rest[0].to_vec(), rest[1].to_vec()];
                at += 2;
            }
            b"keys" if !args[3].is_empty() => {
                return Err(CommandError::new(
                    "ERR When using MIGRATE KEYS option, the key argument must be set to the empty \
                     string",
                ));
            }
            b"keys" => {
                job.keys = rest.iter().map(|key| key.to_vec()).collect();
                break;
            }
            _ => return Err(SYNTAX),
        }
        at += 1;
    }
    Ok(job)
}

/// A key that is on its way: its name, and the number of the record that changed it last.
type Sent = (Vec<u8>, u64);

/// Where keys are sent from.
enum Source<'a> {
    /// Others have their turn meanwhile.
    Shared(&'a Kv),
    /// Whoever sends has them.
    Held(&'a mut Keyspace),
}

impl Source<'_> {
    /// Copies some keys.
    fn gather(&mut self, job: &Job, rest: &mut &[Vec<u8>]) -> Result<(Vec<Sent>, Vec<u8>), String> {
        match self {
            Source::Held(keys) => gather(keys, job, rest),
            Source::Shared(kv) => {
                let mut keys = kv.lock();
                keys.set_now(kv.now_ms());
                gather(&mut keys, job, rest)
            }
        }
    }

    /// Takes keys out that are there now, if they are still what was sent.
    fn remove(&mut self, db: u8, sent: &[Sent]) -> Result<(), String> {
        match self {
            Source::Held(keys) => remove(keys, db, sent),
            Source::Shared(kv) => {
                let mut keys = kv.lock();
                keys.set_now(kv.now_ms());
                let removed = remove(&mut keys, db, sent);
                let lsn = kv.commit(&mut keys).map_err(log_failed)?;
                drop(keys);
                if let (Some(lsn), KvDurability::Always) = (lsn, kv.durability()) {
                    kv.wait_durable(lsn).map_err(log_failed)?;
                }
                removed
            }
        }
    }
}

fn log_failed(error: kv::Error) -> String {
    format!("MISCONF the log: {error}")
}

fn run(source: &mut Source<'_>, job: &Job) -> Result<(), String> {
    let mut target = Target::open(job)?;
    let mut failure = None;
    let mut rest = job.keys.as_slice();
    while !rest.is_empty() {
        let (sent, bytes) = source.gather(job, &mut rest)?;
        target.write(&bytes)?;
        let mut done = Vec::new();
        for key in sent {
            match target.answer()? {
                Ok(()) => done.push(key),
                Err(reason) => {
                    failure
                        .get_or_insert(format!("ERR Target instance replied with error: {reason}"));
                }
            }
        }
        if !job.keeps {
            source.remove(job.from, &done)?;
        }
    }
    failure.map_or(Ok(()), Err)
}

fn gather(
    keys: &mut Keyspace,
    job: &Job,
    rest: &mut &[Vec<u8>],
) -> Result<(Vec<Sent>, Vec<u8>), String> {
    let (mut sent, mut bytes) = (Vec::new(), Vec::new());
    let now_ms = keys.now_ms();
    while let Some((key, behind)) = rest.split_first()
        && bytes.len() < BATCH_SIZE
    {
        *rest = behind;
        let slot = keys.slot(job.from, key).map_err(|error| error.0.into_owned())?;
        let Some(slot) = slot else { continue };
        let payload = rdb::dump(&slot.value).ok_or_else(|| {
            let name = slot.value.type_name();
            format!("ERR values of type {name} cannot be migrated: Redis has none")
        })?;
        let ttl = match slot.expire_ms {
            kv::slots::NEVER => 0,
            at => at.saturating_sub(now_ms).max(1),
        };
        let ttl = ttl.to_string();
        let mut words: Vec<&[u8]> = vec![b"RESTORE", key, ttl.as_bytes(), &payload];
        if job.replaces {
            words.push(b"REPLACE");
        }
        put_command(&words, &mut |part| bytes.extend_from_slice(part));
        sent.push((key.clone(), slot.seq));
    }
    Ok((sent, bytes))
}

fn remove(keys: &mut Keyspace, db: u8, sent: &[Sent]) -> Result<(), String> {
    let del = kv::commands::find(b"del").ok_or("ERR DEL is missing")?;
    let mut changed = None;
    for (key, seq) in sent {
        let slot = keys.slot(db, key).map_err(|error| error.0.into_owned())?;
        match slot.map(|slot| slot.seq) {
            Some(now) if now == *seq => {
                let args: [&[u8]; 2] = [b"del", key];
                Call::run(keys, db, del, &args, &mut Discard, Mode::Inside);
            }
            Some(_) => changed = Some(key),
            None => {}
        }
    }
    match changed {
        Some(key) => Err(format!(
            "ERR key {} changed while it was sent: it is at both ends; MIGRATE it again with REPLACE",
            String::from_utf8_lossy(key)
        )),
        None => Ok(()),
    }
}

/// The other server.
struct Target {
    stream: BufReader<TcpStream>,
}

impl Target {
    fn open(job: &Job) -> Result<Target, String> {
        let failed = || "IOERR error or timeout connecting to the client".to_owned();
        let host = job.host.trim_matches(['[', ']']);
        let addresses = (host, job.port).to_socket_addrs().map_err(|_| failed())?;
        let connected = addresses
            .into_iter()
            .find_map(|address| TcpStream::connect_timeout(&address, job.timeout).ok());
        let stream = connected.ok_or_else(failed)?;
        let limited = stream
            .set_read_timeout(Some(job.timeout))
            .and_then(|()| stream.set_write_timeout(Some(job.timeout)))
            .and_then(|()| stream.set_nodelay(true));
        limited.map_err(|_| failed())?;
        let mut target = Target { stream: BufReader::new(stream) };
        if !job.login.is_empty() {
            let mut words: Vec<&[u8]> = vec![b"AUTH"];
            words.extend(job.login.iter().map(Vec::as_slice));
            target.say(&words)?;
        }
        target.say(&[b"SELECT", job.to.to_string().as_bytes()])?;
        Ok(target)
    }

    fn say(&mut self, words: &[&[u8]]) -> Result<(), String> {
        let mut bytes = Vec::new();
        put_command(words, &mut |part| bytes.extend_from_slice(part));
        self.write(&bytes)?;
        let answer = self.answer()?;
        answer.map_err(|reason| format!("ERR Target instance replied with error: {reason}"))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.stream.get_mut().write_all(bytes);
        written.map_err(|_| "IOERR error or timeout writing to target instance".to_owned())
    }

    /// An answer of one line: done, or why not.
    fn answer(&mut self) -> Result<Result<(), String>, String> {
        let failed = || "IOERR error or timeout reading to target instance".to_owned();
        let mut line = Vec::new();
        let read =
            std::io::Read::take(&mut self.stream, ANSWER_SIZE_MAX).read_until(b'\n', &mut line);
        read.map_err(|_| failed())?;
        let line = line.strip_suffix(b"\r\n").ok_or_else(failed)?;
        match line.split_first() {
            Some((b'-', reason)) => Ok(Err(String::from_utf8_lossy(reason).into_owned())),
            Some(_) => Ok(Ok(())),
            None => Err(failed()),
        }
    }
}
