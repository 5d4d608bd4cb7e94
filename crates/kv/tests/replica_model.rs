//! Random commands on a primary and what they become on a replica that lags, has another clock, is
//! read, restarts, and gets all keys anew: whenever it has caught up, both store the same.
//!
//! `SEED=n` chooses other histories, `REPLICA_HISTORIES=n` how many there are (`make test-replicas`).

use crate::replica::{apply, disk, keys_of_dump, open_replica, stored};
use crate::rig::{DATABASES, Map, Rig};
use kv::effects::{Effect, Effects};
use kv::keyspace::DumpFormat;
use kv::replicate::field_expiry;
use kv::value::Value;
use kv::{Call, CommandError, Discard, Mode};
use rng::Random;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vfs::SimVfs;

const STEPS: u64 = 150;
/// Histories of a run where nothing else is said.
const HISTORIES: u64 = 12;
/// The farthest that the replica's clock is off, in milliseconds.
const SKEW_MAX_MS: u64 = 3_000;

/// A command with its database.
type Sent = (u8, Vec<Vec<u8>>);

/// What the primary's commands become on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// Quipu's own stream for replicas.
    Quipu,
    /// The same as Redis 7.0 runs it, which has no expiry of fields.
    Redis7,
    /// Commands of a newer Redis.
    Newest,
}

impl Dialect {
    /// The form of dumps.
    fn format(self, dice: &mut Random) -> DumpFormat {
        let redis_7 = DumpFormat::Redis7 { expiry_size_max: usize::MAX };
        match self {
            Dialect::Redis7 => redis_7,
            // As a replica of this server, or as one of another kind that has the commands.
            Dialect::Quipu => *dice.pick(&[DumpFormat::Newest, redis_7]),
            Dialect::Newest => DumpFormat::Newest,
        }
    }
}

/// Bytes of one piece of a dump.
const PIECE_SIZE: usize = 50;

/// Commands on their way to the replica.
#[derive(Clone, Default)]
struct Stream(Arc<Mutex<VecDeque<Sent>>>);

impl Stream {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Sent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, db: u8, words: &[&[u8]]) {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        // Both ends of a transaction are the connection's business.
        if words[0] != b"MULTI" && words[0] != b"EXEC" {
            self.queue().push_back((db, words));
        }
    }
}

/// A command as Redis 7.0 runs it: of scripts it runs the commands that it knows.
fn of_redis_7<'a>(words: &[&'a [u8]]) -> Vec<Vec<&'a [u8]>> {
    let Some(commands) = field_expiry::commands(words) else { return vec![words.to_vec()] };
    let values = commands.iter().filter_map(|words| match words[..] {
        [b"HSETEX", key, _, _, _, field, value] => Some(vec![&b"HSET"[..], key, field, value]),
        _ => None,
    });
    values.collect()
}

/// Sends an effect as a newer Redis does.
fn send_newest(stream: &Stream, effect: &Effect<'_>) {
    let words = effect.arguments.as_slice();
    match words[0] {
        b"\x01flush" => stream.push(effect.db, &[b"FLUSHDB"]),
        b"\x01swap" => {
            stream.push(effect.db, &[b"SWAPDB", effect.db.to_string().as_bytes(), words[1]]);
        }
        b"\x01put" => {
            let value = Value::decode(words[3]).expect("own encoding");
            let expire = if words[2] == b"-1" { b"0" } else { words[2] };
            restore(stream, effect.db, words[1], &value, expire);
        }
        b"\x01gone" => {}
        _ => stream.push(effect.db, words),
    }
}

fn restore(stream: &Stream, db: u8, key: &[u8], value: &Value, expire: &[u8]) {
    let payload = kv::rdb::dump(value).expect("a type of Redis");
    stream.push(db, &[b"RESTORE", key, expire, &payload, b"REPLACE", b"ABSTTL"]);
}

struct History {
    dice: Random,
    dialect: Dialect,
    primary: Rig,
    primary_disk: SimVfs,
    replica: Rig,
    replica_disk: SimVfs,
    stream: Stream,
}

impl History {
    fn new(seed: u64, dialect: Dialect) -> History {
        let (primary_disk, replica_disk) = (disk(), disk());
        let primary = Rig::open(&primary_disk).expect("a good disk");
        let replica = open_replica(&replica_disk);
        let stream = Stream::default();
        let sent = stream.clone();
        primary.kv.set_follower(Box::new(move |effects: &Effects| match dialect {
            Dialect::Quipu => {
                kv::replicate::tell(effects, &mut |db, words| sent.push(db, words));
            }
            Dialect::Redis7 => {
                kv::replicate::tell(effects, &mut |db, words| {
                    of_redis_7(words).iter().for_each(|words| sent.push(db, words));
                });
            }
            Dialect::Newest => {
                let effects = effects.decode().expect("own bytes");
                effects.iter().for_each(|effect| send_newest(&sent, effect));
            }
        }));
        primary.kv.follow(true);
        let dice = Random(seed);
        History { dice, dialect, primary, primary_disk, replica, replica_disk, stream }
    }

    fn run(mut self) {
        for _ in 0..STEPS {
            self.step();
        }
        self.catch_up();
        self.promote();
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..=9 => self.write(),
            10 | 11 => self.pass_time(),
            12..=14 => {
                let count = self.dice.below(1 + self.stream.queue().len() as u64);
                self.receive(count);
            }
            15 | 16 => self.read(),
            17 => {
                self.primary.kv.keep().expect("a good disk");
                self.replica.kv.keep().expect("a good disk");
            }
            18 => self.catch_up(),
            _ if self.dice.below(2) == 0 => self.restart(),
            _ => self.send_all_anew(),
        }
    }

    /// Clients of the primary run commands, which are one record of its log.
    fn write(&mut self) {
        let count = 1 + self.dice.below(3);
        let commands: Vec<Sent> =
            (0..count).map(|_| draw(&mut self.dice, self.primary.kv.now_ms())).collect();
        self.primary.run_all(&commands).expect("a good disk");
    }

    /// Both clocks go on; that of the replica jumps now and then.
    fn pass_time(&mut self) {
        let passed = self.dice.below(300) * 1_000_000;
        self.primary_disk.advance(passed);
        self.replica_disk.advance(passed);
        if self.dice.below(4) == 0 {
            let skew = self.dice.below(2 * SKEW_MAX_MS) as i64 - SKEW_MAX_MS as i64;
            self.replica_disk.set_now((self.primary.kv.now_ms() + skew) * 1_000_000);
        }
    }

    /// The replica applies some of what is on its way.
    fn receive(&mut self, count: u64) {
        for _ in 0..count {
            let next = self.stream.queue().pop_front();
            let Some((db, words)) = next else { return };
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            apply(&self.replica, db, &words);
        }
    }

    /// A client reads from the replica: what has expired there is not seen, and nothing changes.
    fn read(&mut self) {
        let mut keys = self.replica.kv.lock();
        let now_ms = self.replica.kv.now_ms();
        keys.set_now(now_ms);
        for _ in 0..10 {
            let db = u8::try_from(self.dice.below(u64::from(DATABASES))).expect("few");
            let key = draw_key(&mut self.dice);
            let name = *self.dice.pick(&["type", "hgetall", "hlen", "pttl", "get", "exists"]);
            let command = kv::commands::find(name.as_bytes()).expect("a command");
            let words = [name.as_bytes(), key.as_bytes()];
            Call::run(&mut keys, db, command, &words, &mut Discard, Mode::Client);
            if let Some(expire_ms) = keys.expire_of(db, key.as_bytes()).expect("a good disk") {
                assert!(now_ms < expire_ms, "{key} is seen though it has expired");
            }
        }
        let logged = self.replica.kv.commit(&mut keys).expect("a good disk");
        assert!(logged.is_none(), "reading changed the replica");
    }

    fn restart(&mut self) {
        self.replica.close().expect("a good disk");
        self.replica = Rig::open(&self.replica_disk).expect("a good disk");
    }

    /// The link was broken for too long: the replica gets all keys.
    fn send_all_anew(&mut self) {
        let bytes = loop {
            // A dump ends early when a database is emptied or exchanged meanwhile.
            if let Ok(bytes) = self.dump() {
                break bytes;
            }
        };
        let behind: Vec<Sent> = self.stream.queue().drain(..).collect();
        self.stream.push(0, &[b"FLUSHALL"]);
        for (db, key, value, expire_ms) in keys_of_dump(&bytes) {
            let expire = expire_ms.unwrap_or(0).to_string();
            restore(&self.stream, db, &key, &value, expire.as_bytes());
        }
        self.stream.queue().extend(behind);
    }

    /// A dump of all keys, while clients go on. What they do stands in the stream.
    fn dump(&mut self) -> Result<Vec<u8>, CommandError> {
        let format = self.dialect.format(&mut self.dice);
        {
            let mut keys = self.primary.kv.lock();
            keys.set_now(self.primary.kv.now_ms());
            self.stream.queue().clear();
            assert!(keys.begin_dump(format, &[], &[]), "another dump is under way");
        }
        let mut bytes = Vec::new();
        loop {
            let piece = {
                let mut keys = self.primary.kv.lock();
                keys.set_now(self.primary.kv.now_ms());
                let piece = keys.dump_some(PIECE_SIZE)?;
                self.primary.kv.commit(&mut keys).expect("a good disk");
                piece
            };
            bytes.extend(piece.bytes);
            if piece.end.is_some() {
                return Ok(bytes);
            }
            self.write();
        }
    }

    fn catch_up(&mut self) {
        self.receive(u64::MAX);
        self.compare();
    }

    fn compare(&self) {
        let (mut one, other) = (stored(&self.primary), stored(&self.replica));
        // Dumps have no keys that have expired. The primary will say that they have.
        let now_ms = self.primary.kv.now_ms();
        one.retain(|place, (_, at)| now_ms < *at || other.contains_key(place));
        let (one, other) = (self.comparable(one), self.comparable(other));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let differing = one.iter().filter(|(place, content)| other.get(*place) != Some(*content));
        let missing: Vec<String> = differing
            .map(|(place, content)| {
                let found = other.get(place).map(|(value, at)| (text(value), *at));
                format!("{}: {} {}, not {found:?}", text(&place.1), text(&content.0), content.1)
            })
            .collect();
        let more: Vec<_> = other.keys().filter(|place| !one.contains_key(*place)).collect();
        assert!(missing.is_empty() && more.is_empty(), "{missing:?} {more:?}");
    }

    /// What both sides are to have in common.
    fn comparable(&self, map: Map) -> Map {
        let has_times = self.dialect != Dialect::Redis7;
        let without_times = |value: Vec<u8>| {
            let text = String::from_utf8_lossy(&value).into_owned();
            let words: Vec<&str> = text.split(' ').collect();
            let mut kept = Vec::new();
            for (at, word) in words.iter().enumerate() {
                let is_time = 0 < at && words[at - 1] == "until";
                kept.push(if is_time { "" } else { word });
            }
            kept.join(" ").into_bytes()
        };
        let entries = map.into_iter();
        entries
            .map(|(place, (value, at))| match has_times || place.1[0] != b'h' {
                true => (place, (value, at)),
                false => (place, (without_times(value), at)),
            })
            .collect()
    }

    /// The replica takes over, and expires by itself what the primary would have.
    fn promote(&mut self) {
        self.replica.kv.lock().leaves_expired = false;
        let now_ms = self.primary.kv.now_ms() + 5_000;
        for (rig, disk) in
            [(&self.primary, &self.primary_disk), (&self.replica, &self.replica_disk)]
        {
            disk.set_now(now_ms * 1_000_000);
            rig.kv.keep().expect("a good disk");
        }
        if self.dialect != Dialect::Redis7 {
            self.compare();
        }
        let due = stored(&self.replica).into_values().filter(|(_, at)| *at <= now_ms - 200);
        assert_eq!(due.count(), 0);
    }
}

fn draw_key(dice: &mut Random) -> String {
    format!("{}:{}", dice.pick(&["k", "k", "h", "h", "l"]), dice.below(3))
}

/// A command of a client of the primary.
fn draw(dice: &mut Random, now_ms: i64) -> Sent {
    let db = u8::try_from(dice.below(u64::from(DATABASES))).expect("few");
    let (n, other, ms) = (dice.below(3), dice.below(3), 1 + dice.below(600));
    let (field, second) = (dice.below(4), dice.below(4));
    let at = now_ms + ms as i64;
    let key = draw_key(dice);
    let line = match dice.below(40) {
        0 | 1 => format!("set k:{n} {ms}"),
        2..=4 => format!("set k:{n} {ms} px {ms}"),
        5 => format!("set k:{n} {ms} keepttl"),
        6..=8 => format!("pexpire {key} {ms}"),
        9 => format!("pexpireat {key} {at}"),
        10 => format!("pexpire {key} {ms} gt"),
        11 | 12 => format!("persist {key}"),
        13 => format!("getex k:{n} px {ms}"),
        14 => format!("append k:{n} x"),
        15 => format!("del {key}"),
        16 if dice.below(2) == 0 => format!("copy h:{n} h:{other} replace"),
        16 => format!("copy k:{n} k:{other} replace"),
        17 => format!("rename h:{n} h:{other}"),
        18..=21 => format!("hset h:{n} f{field} {ms} f{second} x"),
        22..=25 => format!("hpexpire h:{n} {ms} fields 2 f{field} f{second}"),
        26 | 27 => format!("hpersist h:{n} fields 1 f{field}"),
        28 if dice.below(2) == 0 => format!("hsetex h:{n} keepttl fields 1 f{field} {ms}"),
        28 => format!("hsetex h:{n} px {ms} fields 1 f{field} {ms}"),
        29 => format!("hgetex h:{n} px {ms} fields 1 f{field}"),
        30 => format!("hgetdel h:{n} fields 1 f{field}"),
        31 => format!("hdel h:{n} f{field}"),
        32 => format!("hincrbyfloat h:{n} f{field} 1"),
        33 => format!("rpush l:{n} {ms}"),
        34 => format!("lpop l:{n}"),
        35 => format!("hpexpire h:{n} {ms} nx fields 1 f{field}"),
        36 => format!("move {key} {}", (db + 1) % DATABASES),
        37 => format!("get {key}"),
        38 if dice.below(4) == 0 => format!("swapdb {db} {other}"),
        39 if dice.below(8) == 0 => "flushdb".to_owned(),
        _ => format!("hgetall h:{n}"),
    };
    (db, line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
}

fn run_histories(dialect: Dialect) {
    let histories = std::env::var("REPLICA_HISTORIES").ok().and_then(|text| text.parse().ok());
    for seed in rng::seeds(1..=histories.unwrap_or(HISTORIES)) {
        println!("SEED={seed} {dialect:?}");
        History::new(seed, dialect).run();
    }
}

#[test]
fn a_replica_of_quipu_stores_what_its_primary_does() {
    run_histories(Dialect::Quipu);
}

#[test]
fn a_redis_without_expiry_of_fields_stores_what_its_primary_does() {
    run_histories(Dialect::Redis7);
}

#[test]
fn a_replica_of_a_newer_redis_stores_what_its_primary_does() {
    run_histories(Dialect::Newest);
}
