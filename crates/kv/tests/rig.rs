//! A keyspace on a simulated disk, and the plain map that it is compared with.

use kv::{Call, Discard, Kv, KvConfig, KvDurability, KvOpening, Mode, Value};
use rng::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use vfs::{AppendFile, Layer, SimVfs, Vfs};
use wal::{Committer, Consumers, Log, WalConfig};

/// Databases of a history.
pub const DATABASES: u8 = 3;
/// Far above what histories make.
pub const VALUE_SIZE_MAX: usize = 1 << 20;
pub const DATA: &str = "/data";

/// Keys with their encoded values and expiry.
pub type Map = BTreeMap<(u8, Vec<u8>), (Vec<u8>, i64)>;

/// Commands, each with its database and words.
pub type Commands = Vec<(u8, Vec<Vec<u8>>)>;

/// A keyspace that is open.
pub struct Rig {
    pub kv: Arc<Kv>,
    pub log: Arc<Log>,
}

impl Rig {
    /// Opens what a disk holds, with so little memory that every key is cold before long.
    pub fn open(disk: &SimVfs) -> kv::Result<Rig> {
        Rig::open_on(Arc::new(disk.clone()))
    }

    /// The same on a disk that does more than a disk.
    pub fn open_on(vfs: Arc<dyn Vfs>) -> kv::Result<Rig> {
        Rig::open_in(vfs, Path::new(DATA))
    }

    /// The same in another directory.
    pub fn open_in(vfs: Arc<dyn Vfs>, data: &Path) -> kv::Result<Rig> {
        Rig::open_with(vfs, data, 1)
    }

    /// The same with memory for keys.
    pub fn open_with(vfs: Arc<dyn Vfs>, data: &Path, memory_max: usize) -> kv::Result<Rig> {
        // Whoever gives keys memory wants values that are larger than it.
        let value_size_max = VALUE_SIZE_MAX.max(8 * memory_max);
        Rig::open_as(vfs, data, |config| KvConfig {
            memory_max,
            value_size_max,
            growth_max: value_size_max,
            ..config
        })
    }

    /// The same with other settings.
    pub fn open_as(
        vfs: Arc<dyn Vfs>,
        data: &Path,
        settings: impl FnOnce(KvConfig) -> KvConfig,
    ) -> kv::Result<Rig> {
        vfs.create_dir_all(data)?;
        let config = settings(KvConfig {
            memory_max: 1,
            durability: KvDurability::Always,
            databases: usize::from(DATABASES),
            checkpoint_log_size: 2 << 10,
            piece_size: 200,
            value_size_max: VALUE_SIZE_MAX,
            growth_max: VALUE_SIZE_MAX,
            segment_size: 512,
            coding_rest: Duration::ZERO,
            keeper_interval: Duration::ZERO,
            background: false,
            ..KvConfig::default()
        });
        let mut opening = KvOpening::look(vfs.clone(), data, config)?;
        let mut consumers = Consumers::default();
        opening.declare(&mut consumers);
        let log_config = WalConfig {
            committer: Committer::Waiter,
            segment_size_max: 4096,
            ..WalConfig::default()
        };
        let log = Arc::new(Log::open(vfs, &data.join("wal"), log_config, consumers)?);
        let kv = opening.finish(log.clone())?;
        Ok(Rig { kv, log })
    }

    /// Does a command and makes it durable.
    pub fn run(&self, db: u8, words: &[&[u8]]) -> kv::Result<()> {
        self.run_all(&[(db, words.iter().map(|word| word.to_vec()).collect())])
    }

    /// Does commands that become one record of the log, and makes it durable.
    pub fn run_all(&self, commands: &[(u8, Vec<Vec<u8>>)]) -> kv::Result<()> {
        let lsn = {
            let mut keys = self.kv.lock();
            keys.set_now(self.kv.now_ms());
            for (db, words) in commands {
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                let command = kv::commands::find(words[0]).expect("a command");
                Call::run(&mut keys, *db, command, &words, &mut Discard, Mode::Client);
            }
            self.kv.commit(&mut keys)?
        };
        lsn.map_or(Ok(()), |lsn| self.kv.wait_durable(lsn))
    }

    /// All that is there and has not expired.
    pub fn map(&self) -> Map {
        self.try_map().expect("all can be read")
    }

    /// The same on a disk that may fail.
    pub fn try_map(&self) -> Result<Map, kv::CommandError> {
        let mut keys = self.kv.lock();
        keys.set_now(self.kv.now_ms());
        let mut map = Map::new();
        for db in 0..DATABASES {
            let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            keys.scan(db, 0, usize::MAX, |key, value: &Value| {
                found.push((key.to_vec(), encode(value)));
            })?;
            for (key, value) in found {
                let expire = keys.expire_of(db, &key)?.expect("there");
                map.insert((db, key), (value, expire));
            }
        }
        Ok(map)
    }

    pub fn close(&self) -> kv::Result<()> {
        self.kv.close()?;
        Ok(self.log.close()?)
    }
}

/// A value's bytes. Which element of a collection comes first depends on what came before, and means
/// nothing: they are in order here.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut elements: Vec<Vec<u8>> = Vec::new();
    match value {
        Value::Set(set) => elements.extend(set.iter().map(<[u8]>::to_vec)),
        Value::Hash(hash) => elements.extend(hash.iter().map(|(field, value)| {
            let expiry = hash.expiry_of(field).unwrap_or_default().to_string();
            [field, b"=", value, b" until ", expiry.as_bytes()].concat()
        })),
        Value::Zset(zset) => zset.each(0..zset.len(), false, |member, score| {
            elements.push([member, b"=", score.to_string().as_bytes()].concat());
        }),
        _ => {
            let mut encoded = Vec::new();
            value.encode(&mut encoded);
            return encoded;
        }
    }
    elements.sort_unstable();
    elements.join(&b' ')
}

/// What a connection sends at once, and the log keeps as one record.
pub fn draw_record(dice: &mut Random, now_ms: i64) -> Commands {
    let count = if dice.below(3) == 0 { 1 + dice.below(4) } else { 1 };
    (0..count).map(|_| draw(dice, now_ms)).collect()
}

/// A random command: its database and words.
pub fn draw(dice: &mut Random, now_ms: i64) -> (u8, Vec<Vec<u8>>) {
    let db = u8::try_from(dice.below(u64::from(DATABASES))).expect("few");
    let key = |dice: &mut Random| format!("key:{}", dice.below(24)).into_bytes();
    let value = |dice: &mut Random| {
        let size = usize::try_from(dice.below(300)).expect("small");
        let letter = b'a' + u8::try_from(dice.below(26)).expect("small");
        vec![letter; size]
    };
    let words: Vec<Vec<u8>> = match dice.below(100) {
        0..=11 => vec![b"set".to_vec(), key(dice), value(dice)],
        12..=22 => draw_of_list(dice),
        23..=34 => draw_of_collection(dice, 6),
        35..=39 => vec![b"append".to_vec(), key(dice), value(dice)],
        40..=54 => vec![b"incr".to_vec(), format!("n:{}", dice.below(8)).into_bytes()],
        55..=64 => vec![b"del".to_vec(), key(dice), key(dice)],
        65..=72 => vec![b"rename".to_vec(), key(dice), key(dice)],
        73..=80 => vec![b"mset".to_vec(), key(dice), value(dice), key(dice), value(dice)],
        81..=88 => {
            let at = now_ms + 1 + i64::try_from(dice.below(2000)).expect("small");
            vec![b"pexpireat".to_vec(), key(dice), at.to_string().into_bytes()]
        }
        89..=92 => vec![b"persist".to_vec(), key(dice)],
        93..=96 => vec![b"setrange".to_vec(), key(dice), b"3".to_vec(), value(dice)],
        97 => vec![b"getdel".to_vec(), key(dice)],
        98 => {
            let other = dice.below(u64::from(DATABASES));
            vec![b"swapdb".to_vec(), db.to_string().into_bytes(), other.to_string().into_bytes()]
        }
        _ => vec![b"flushdb".to_vec()],
    };
    (db, words)
}

/// A random command on a list of few elements, which is often emptied.
fn draw_of_list(dice: &mut Random) -> Vec<Vec<u8>> {
    let key = format!("l:{}", dice.below(3)).into_bytes();
    let element = vec![b'a' + u8::try_from(dice.below(3)).expect("small")];
    let place = |dice: &mut Random| dice.below(2).to_string().into_bytes();
    match dice.below(8) {
        0..=2 => vec![b"rpush".to_vec(), key, element],
        3 => vec![b"lpush".to_vec(), key, element.clone(), element],
        4 => vec![b"ltrim".to_vec(), key, place(dice), place(dice)],
        5 => vec![b"lrem".to_vec(), key, b"0".to_vec(), element],
        6 => vec![b"linsert".to_vec(), key, b"before".to_vec(), element, b"d".to_vec()],
        _ => vec![b"lpop".to_vec(), key],
    }
}

/// A random command on a hash, a set or a sorted set of so many elements, about.
pub fn draw_of_collection(dice: &mut Random, elements: u64) -> Vec<Vec<u8>> {
    let element = |dice: &mut Random| format!("e{}", dice.below(elements));
    let (n, one, other) = (dice.below(2), element(dice), element(dice));
    let text = match dice.below(16) {
        0..=2 => format!("hset h:{n} {one} {} {other} x", dice.below(1000)),
        3 => format!("hdel h:{n} {one} {other}"),
        4 => format!("hincrby h:{n} {one} 5"),
        // Far away: states are compared by keys that have expired, not by fields.
        5 => format!("hpexpireat h:{n} {} fields 1 {one}", 1_900_000_000_000 + dice.below(20_000)),
        6 | 7 => format!("sadd s:{n} {one} {other}"),
        8 => format!("srem s:{n} {one}"),
        9 => format!("smove s:{n} s:{} {one}", 1 - n),
        10 | 11 => format!("zadd z:{n} {} {one}", dice.below(100)),
        12 => format!("zincrby z:{n} 1.5 {one}"),
        13 => format!("zrem z:{n} {one} {other}"),
        14 => format!("sunionstore s:{n} s:0 s:1"),
        _ => format!("zunionstore z:{n} 2 z:0 z:1"),
    };
    words(&text)
}

/// A random record of commands on collections that are so large that they are written down while
/// commands go on.
pub fn draw_of_large(dice: &mut Random, now_ms: i64) -> Commands {
    let db = u8::try_from(dice.below(2)).expect("few");
    let n = dice.below(2);
    let kind = *dice.pick(&["h", "s", "z"]);
    let text = match dice.below(40) {
        0..=5 => return vec![(db, draw_whole(dice, kind, n))],
        6 | 7 => format!("rename {kind}:{n} {kind}:{}", 1 - n),
        8 => format!("copy {kind}:{n} {kind}:{} replace", 1 - n),
        9 => format!("move {kind}:{n} {}", 1 - db),
        10 => format!("del {kind}:{n}"),
        11 => format!("pexpireat {kind}:{n} {}", 1_700_000_000_000 + dice.below(60_000)),
        12 => "swapdb 0 1".to_owned(),
        13 if dice.below(4) == 0 => "flushdb".to_owned(),
        14..=22 => return (0..20).map(|_| draw(dice, now_ms)).collect(),
        _ => return vec![(db, draw_of_collection(dice, LARGE))],
    };
    vec![(db, words(&text))]
}

/// Elements of a collection in pieces.
const LARGE: u64 = 4200;

fn draw_whole(dice: &mut Random, kind: &str, n: u64) -> Vec<Vec<u8>> {
    let value = dice.below(10);
    let all = (0..LARGE).map(|one| match kind {
        "h" => format!(" e{one} {value}"),
        "s" => format!(" e{one}"),
        _ => format!(" {value} e{one}"),
    });
    let command = match kind {
        "h" => "hset",
        "s" => "sadd",
        _ => "zadd",
    };
    words(&format!("{command} {kind}:{n}{}", all.collect::<String>()))
}

/// A random record of values that are alike, so that dictionaries are made of them.
pub fn draw_alike(dice: &mut Random, _now_ms: i64) -> Commands {
    let set = |dice: &mut Random| {
        let (user, id) = (dice.below(300), dice.next());
        let value =
            format!("{{\"id\":{id},\"name\":\"user {user}\",\"roles\":[\"reader\"],\"on\":true}}");
        (0, vec![b"set".to_vec(), format!("user:{user}").into_bytes(), value.into_bytes()])
    };
    (0..1 + dice.below(12)).map(|_| set(dice)).collect()
}

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// What is done when a file is about to be made.
type Hook = Box<dyn FnMut() + Send>;

/// A disk that calls somebody before it makes a file: commands come while a checkpoint is made.
pub struct Hooked {
    pub disk: SimVfs,
    pub hook: Mutex<Option<Hook>>,
}

impl Layer for Hooked {
    fn below(&self) -> &dyn Vfs {
        &self.disk
    }

    fn create(&self, path: &Path) -> vfs::Result<Box<dyn AppendFile>> {
        // Taken out meanwhile: what it does may make files, too. Those of the log are made under its
        // lock, when nobody else can do a command.
        let is_ours = path.starts_with("/data/keys");
        let mut slot = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        let hook = if is_ours { slot.take() } else { None };
        drop(slot);
        if let Some(mut hook) = hook {
            hook();
            *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(hook);
        }
        self.disk.create(path)
    }
}
