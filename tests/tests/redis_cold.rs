//! Values on disk against the real binary: a client that sends many commands at once gets their
//! answers in their order, whichever of them had to be read from disk, and so do others beside it.

use anyhow::{Context, Result, ensure};
use e2e::http::connect;
use e2e::redis::door_port;
use e2e::{Launch, Server, poll};
use rng::Random;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const KEYS: usize = 6000;

/// A client that sends much and reads answers.
struct Redis {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Redis {
    fn of(server: &Server) -> Result<Redis> {
        let stream = connect(&format!("127.0.0.1:{}", door_port(server)?))?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Redis { stream, reader })
    }

    /// One answer as text; of arrays all elements, with spaces between them.
    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let line = line.trim_end();
        let Some(sign) = line.chars().next() else { anyhow::bail!("the server hung up") };
        let number = || line[1..].parse::<usize>();
        match sign {
            '$' if line == "$-1" => Ok("nil".to_string()),
            '$' => {
                let mut bytes = vec![0; number()? + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(String::from_utf8(bytes)?)
            }
            '*' => {
                let all = (0..number()?).map(|_| self.answer()).collect::<Result<Vec<_>>>()?;
                Ok(all.join(" "))
            }
            _ => Ok(line.to_string()),
        }
    }

    fn say(&mut self, command: &str) -> Result<String> {
        self.stream.write_all(format!("{command}\r\n").as_bytes())?;
        self.answer()
    }

    /// Sends all lines at once and compares the answers, in their order.
    fn say_all(&mut self, lines: &[(String, String)]) -> Result<()> {
        let text: String = lines.iter().map(|(line, _)| format!("{line}\r\n")).collect();
        let mut stream = self.stream.try_clone()?;
        // Who does not read while it sends much is not read from, either.
        let sending = std::thread::spawn(move || stream.write_all(text.as_bytes()));
        for (line, expected) in lines {
            let answer = self.answer()?;
            ensure!(answer == *expected, "{line}: {answer:?} instead of {expected:?}");
        }
        sending.join().expect("no panic")?;
        Ok(())
    }
}

fn value(number: usize) -> String {
    format!("{number}-{}", "v".repeat(700 + number % 400))
}

fn start(directory: &tempfile::TempDir) -> Result<Server> {
    let launch = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0");
    launch.flag("kv-memory", "1MiB").start()
}

fn fill(redis: &mut Redis) -> Result<()> {
    let set = |number| (format!("SET k:{number} {}", value(number)), "+OK".to_string());
    redis.say_all(&(0..KEYS).map(set).collect::<Vec<_>>())
}

/// A pipeline of everything, and what it answers.
fn pipeline(seed: usize) -> Vec<(String, String)> {
    let mut changed: BTreeMap<usize, String> = BTreeMap::new();
    let mut lines = Vec::new();
    for step in 0..1500 {
        let number = (step * 2_654_435_761 + seed * 97) % (KEYS / 2) * 2 + seed;
        let other = (number + 2 * step) % (KEYS / 2) * 2 + seed;
        let now = |changed: &BTreeMap<usize, String>, number: usize| {
            changed.get(&number).cloned().unwrap_or_else(|| value(number))
        };
        match step % 7 {
            0 => {
                changed.insert(number, format!("new-{step}"));
                lines.push((format!("SET k:{number} new-{step}"), "+OK".to_string()));
            }
            1 => {
                let both = format!("{} {}", now(&changed, number), now(&changed, other));
                lines.push((format!("MGET k:{number} k:{other}"), both));
            }
            2 => {
                let text = now(&changed, number) + "+";
                lines.push((format!("APPEND k:{number} +"), format!(":{}", text.len())));
                changed.insert(number, text);
            }
            3 => {
                lines.push(("MULTI".to_string(), "+OK".to_string()));
                lines.push((format!("GET k:{number}"), "+QUEUED".to_string()));
                lines.push((format!("STRLEN k:{other}"), "+QUEUED".to_string()));
                let both = format!("{} :{}", now(&changed, number), now(&changed, other).len());
                lines.push(("EXEC".to_string(), both));
            }
            4 => lines.push((format!("GET none:{number}"), "nil".to_string())),
            _ => lines.push((format!("GET k:{number}"), now(&changed, number))),
        }
    }
    lines
}

#[test]
fn answers_come_in_order_whatever_lies_on_disk() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let mut redis = Redis::of(&server)?;
    fill(&mut redis)?;
    let hot = |redis: &mut Redis| -> Result<usize> {
        let info = redis.say("INFO quipu")?;
        let hot = info.lines().find_map(|line| line.strip_prefix("quipu_keys_hot:"));
        Ok(hot.context("INFO says it")?.trim().parse()?)
    };
    poll("most keys to be on disk alone", PATIENCE, || {
        let hot = hot(&mut redis)?;
        ensure!(hot < KEYS / 4, "{hot} of {KEYS} are in memory");
        Ok(())
    })?;
    // Two clients at once, of even and of odd keys.
    let mut beside = Redis::of(&server)?;
    let thread = std::thread::spawn(move || beside.say_all(&pipeline(1)));
    redis.say_all(&pipeline(0))?;
    thread.join().expect("no panic")?;
    let script = "return redis.call('GET', KEYS[1])";
    let answer = redis.say(&format!("EVAL \"{script}\" 1 k:{}", KEYS - 1))?;
    ensure!(
        answer.starts_with(&format!("{}-", KEYS - 1)) || answer.starts_with("new-"),
        "{answer}"
    );

    // What is read after a restart is what was there before it, killed without a word.
    redis.say("SET last yes")?;
    let text = redis.say("GET k:4")?;
    ensure!(redis.say("SAVE")? == "+OK", "SAVE");
    drop(server);
    let server = start(&directory)?;
    let mut redis = Redis::of(&server)?;
    assert_eq!((redis.say("GET k:4")?, redis.say("GET last")?), (text, "yes".to_string()));
    Ok(())
}

/// Elements of a large list, and the numbers in each: 15 MiB together.
const LARGE: (usize, u64) = (256, 3000);
/// Clients of it at a time, which would have 700 MiB if each read it for itself.
const READERS: usize = 48;

#[test]
fn many_clients_of_one_large_value_have_it_in_memory_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let mut client = Redis::of(&server)?;
    let mut dice = Random(1);
    for number in 0..LARGE.0 {
        // Nothing that compresses much.
        let text: Vec<_> = (0..LARGE.1).map(|_| format!("{:x}", dice.next())).collect();
        client.say(&format!("RPUSH large {number}-{}", text.concat()))?;
    }
    client.say("SAVE")?;
    // The highest since now.
    std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5")?;
    let before = server.resident_bytes("VmHWM")?;
    let readers: Vec<_> = (0..READERS)
        .map(|number| {
            let mut reader = Redis::of(&server)?;
            Ok(std::thread::spawn(move || -> Result<()> {
                for round in 0..3 {
                    let place = (number + round) % LARGE.0;
                    let element = reader.say(&format!("LINDEX large {place}"))?;
                    ensure!(
                        element.starts_with(&format!("{place}-")),
                        "of {place}: {:?}",
                        element.get(..40)
                    );
                }
                Ok(())
            }))
        })
        .collect::<Result<_>>()?;
    for reader in readers {
        reader.join().expect("no panic")?;
    }
    let grown = server.resident_bytes("VmHWM")?.saturating_sub(before);
    ensure!(
        grown < 300 << 20,
        "{READERS} clients of a large list made it grow by {} MiB",
        grown >> 20
    );
    Ok(())
}
