//! Random commands with short times on a primary, while its replica is stopped, cut off and started
//! again: at the end of each round both hold the same, and after a failover, too.
//!
//! `SEED=n` chooses other rounds, `REPLICA_ROUNDS=n` how many there are (`make test-replicas`).

use crate::redis_moving::quipu;
use crate::redis_replication::{await_same, follow};
use anyhow::{Result, ensure};
use e2e::launch::{Server, signal};
use e2e::redis::{Reply, door_port};
use e2e::{Redis, RedisClient, poll};
use rng::Random;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Rounds of a run where nothing else is said.
const ROUNDS: u64 = 4;
/// Commands of one round.
const COMMANDS: u64 = 150;
/// Commands that are sent together, at most.
const PIPELINE_MAX: u64 = 8;

/// What the primary can do besides what all can.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    Stay,
    Expire,
}

struct Rounds<'a> {
    dice: Random,
    fields: Fields,
    primary: &'a mut RedisClient,
    server: Option<Server>,
    replica: RedisClient,
}

impl Rounds<'_> {
    fn run(mut self, rounds: u64) -> Result<()> {
        for _ in 0..rounds {
            self.round()?;
        }
        // The replica takes over with all that is left.
        self.primary.must("SET last 1")?;
        ensure!(0 < self.primary.must("WAIT 1 30000")?.int());
        self.replica.must("REPLICAOF NO ONE")?;
        await_same(self.primary, &mut self.replica)
    }

    fn round(&mut self) -> Result<()> {
        let mut sent = 0;
        while sent < COMMANDS {
            match self.dice.below(30) {
                0 => self.stop_for_a_while()?,
                1 if self.dice.below(4) == 0 => {
                    self.primary.must("CLIENT KILL TYPE replica")?;
                }
                2 if self.dice.below(8) == 0 => self.restart()?,
                3 => self.pass_time()?,
                _ => {}
            }
            sent += self.send()?;
        }
        await_same(self.primary, &mut self.replica)?;
        if self.fields == Fields::Expire {
            self.await_same_times()?;
        }
        assert_eq!(self.replica.info("quipu_replica_refused_commands")?, "0");
        Ok(())
    }

    /// Waits until fields of hashes expire at the same time on both.
    fn await_same_times(&mut self) -> Result<()> {
        poll("that fields expire at the same time", PATIENCE, || {
            for n in 0..4 {
                let line = format!("HPEXPIRETIME h:{n} FIELDS 4 f0 f1 f2 f3");
                let (one, other) = (self.primary.must(&line)?, self.replica.must(&line)?);
                ensure!(one == other, "h:{n}: {one:?}, not {other:?}");
            }
            Ok(())
        })
    }

    /// Sends some commands at once, as a transaction now and then. Returns how many.
    fn send(&mut self) -> Result<u64> {
        let count = 1 + self.dice.below(PIPELINE_MAX);
        let mut lines: Vec<String> =
            (0..count).map(|_| draw(&mut self.dice, self.fields)).collect();
        if self.dice.below(4) == 0 {
            lines.insert(0, "MULTI".to_owned());
            lines.push("EXEC".to_owned());
        }
        let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
        let commands: Vec<&[&str]> = words.iter().map(Vec::as_slice).collect();
        self.primary.pipeline(&commands)?;
        Ok(count)
    }

    /// The replica hears nothing until times have passed that began meanwhile.
    fn stop_for_a_while(&mut self) -> Result<()> {
        let Some(server) = &self.server else { return Ok(()) };
        let pid = server.pid();
        signal("STOP", pid)?;
        for _ in 0..5 {
            self.send()?;
        }
        self.pass_time()?;
        for _ in 0..5 {
            self.send()?;
        }
        signal("CONT", pid)
    }

    fn pass_time(&mut self) -> Result<()> {
        let time_ms = 1 + self.dice.below(300);
        self.primary.must(&format!("SET clock x PX {time_ms}"))?;
        poll("that time passes", PATIENCE, || {
            ensure!(self.primary.must("EXISTS clock")? == Reply::Int(0));
            Ok(())
        })
    }

    fn restart(&mut self) -> Result<()> {
        if let Some(server) = self.server.take() {
            let server = server.restart()?;
            self.replica = RedisClient::of(&server)?;
            self.server = Some(server);
        }
        Ok(())
    }
}

/// A command of a client.
fn draw(dice: &mut Random, fields: Fields) -> String {
    let (n, other, ms) = (dice.below(4), dice.below(4), 1 + dice.below(400));
    let (field, second) = (dice.below(4), dice.below(4));
    let key = format!("{}:{}", dice.pick(&["k", "k", "h", "l"]), dice.below(4));
    // Some fields outlive the round.
    let field_ms = ms * dice.pick(&[1, 1_000_000]);
    match dice.below(if fields == Fields::Expire { 34 } else { 25 }) {
        0 | 1 => format!("SET k:{n} {ms}"),
        2..=4 => format!("SET k:{n} {ms} PX {ms}"),
        5 => format!("SET k:{n} {ms} KEEPTTL"),
        6..=9 => format!("PEXPIRE {key} {ms}"),
        10 => format!("EXPIRE {key} 100"),
        11 | 12 => format!("PERSIST {key}"),
        13 => format!("GETEX k:{n} PX {ms}"),
        14 => format!("APPEND k:{n} x"),
        15 => format!("DEL {key}"),
        16 => format!("COPY k:{n} k:{other} REPLACE"),
        17 => format!("RENAME h:{n} h:{other}"),
        18..=20 => format!("HSET h:{n} f{field} {ms} f{second} x"),
        21 => format!("RPUSH l:{n} {ms}"),
        22 => format!("LPOP l:{n}"),
        23 if dice.below(10) == 0 => "FLUSHALL".to_owned(),
        23 | 24 => format!("PUBLISH ch {ms}"),
        25..=27 => format!("HPEXPIRE h:{n} {field_ms} FIELDS 2 f{field} f{second}"),
        28 | 29 => format!("HPERSIST h:{n} FIELDS 1 f{field}"),
        30 => format!("HSETEX h:{n} PX {field_ms} FIELDS 1 f{field} {ms}"),
        31 => format!("HGETEX h:{n} PX {field_ms} FIELDS 1 f{field}"),
        32 => format!("HINCRBYFLOAT h:{n} f{field} 1"),
        _ => format!("HDEL h:{n} f{field}"),
    }
}

fn rounds(fields: Fields, primary: &mut RedisClient, port: u16) -> Result<()> {
    let rounds = std::env::var("REPLICA_ROUNDS").ok().and_then(|text| text.parse().ok());
    let seed = rng::seed().unwrap_or(1);
    println!("SEED={seed}");
    let directory = tempfile::tempdir()?;
    let server = quipu(directory.path())?;
    let mut replica = RedisClient::of(&server)?;
    follow(&mut replica, port)?;
    let (dice, server) = (Random(seed), Some(server));
    Rounds { dice, fields, primary, server, replica }.run(rounds.unwrap_or(ROUNDS))
}

#[test]
fn a_replica_of_redis_ends_up_with_what_its_primary_has() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &["--repl-diskless-sync-delay", "0"])?;
    rounds(Fields::Stay, &mut redis.client()?, redis.port)
}

#[test]
fn a_replica_of_quipu_ends_up_with_what_its_primary_has() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let first = quipu(&directory.path().join("first"))?;
    rounds(Fields::Expire, &mut RedisClient::of(&first)?, door_port(&first)?)
}
