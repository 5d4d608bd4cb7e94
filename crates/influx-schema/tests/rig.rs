//! Schema records on a simulated disk, and the plain maps that they are compared with.

use influx_schema::records::{
    Change, Key, KeyKind, OpenedStore, RecordLog, RecordsConfig, RecordsOpening,
};
use rng::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::StoreConfig;
use vfs::{SimVfs, Vfs};
use wal::{Committer, Consumers, Log, WalConfig};

pub const DATA: &str = "/data";
pub const KINDS: [KeyKind; 5] =
    [KeyKind::Database, KeyKind::Field, KeyKind::AlsoString, KeyKind::String, KeyKind::Policies];

/// Whatever may go wrong when a disk fails.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Values by key.
pub type Map = BTreeMap<String, String>;

/// Schema records that are open, without a store.
pub struct Rig {
    pub records: Arc<RecordLog>,
    pub log: Arc<Log>,
}

/// Small enough that histories reach all of it.
pub fn config() -> RecordsConfig {
    RecordsConfig {
        checkpoint_log_size: 512,
        checkpoint_segments: 3,
        keeper_interval: Duration::ZERO,
        retry_interval: Duration::ZERO,
        scrub_interval: Duration::ZERO,
        background: false,
    }
}

impl Rig {
    /// Opens what a disk holds.
    pub fn open(disk: &SimVfs) -> Outcome<Rig> {
        let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
        let data = Path::new(DATA);
        vfs.create_dir_all(data)?;
        let mut opening = RecordsOpening::look(vfs.clone(), data, config())?;
        let mut consumers = Consumers::default();
        opening.declare(&mut consumers);
        let log_config = WalConfig {
            committer: Committer::Waiter,
            segment_size_max: 2048,
            ..WalConfig::default()
        };
        let log = Arc::new(Log::open(vfs, &data.join("wal"), log_config, consumers)?);
        let records = opening.finish(log.clone())?;
        Ok(Rig { records, log })
    }

    /// Makes changes; durable on return.
    pub fn put(&self, changes: &[Change]) -> Outcome<()> {
        self.records.begin()?;
        Ok(self.records.append(changes)?)
    }

    /// All records.
    pub fn map(&self) -> Map {
        map_of(&mut |kind, on_record| self.records.for_each(kind, on_record))
    }

    /// Ends as a program does.
    pub fn close(&self) -> Outcome<()> {
        self.records.close()?;
        Ok(self.log.close()?)
    }
}

type OnRecord<'a> = &'a mut dyn FnMut(&str, &Arc<str>);

fn map_of(for_each: &mut dyn FnMut(KeyKind, OnRecord<'_>)) -> Map {
    let mut map = Map::new();
    for kind in KINDS {
        for_each(kind, &mut |key, value| {
            map.insert(key.to_string(), value.to_string());
        });
    }
    map
}

/// All records of an open store.
pub fn records_of(opened: &OpenedStore) -> Map {
    map_of(&mut |kind, on_record| opened.schema.for_each(kind, on_record))
}

/// Settings of a store that does nothing by itself.
pub fn store_config() -> StoreConfig {
    StoreConfig { background: false, committer: Committer::Waiter, ..StoreConfig::standard() }
}

/// Opens a store with its schema records.
pub fn open_store(disk: &SimVfs) -> store::Result<OpenedStore> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    OpenedStore::open_with(vfs, Path::new(DATA), store_config(), config())
}

/// Up to three random changes, and what they make of a map.
pub fn draw_changes(dice: &mut Random, before: &Map) -> (Vec<Change>, Map) {
    let mut after = before.clone();
    let mut changes: Vec<Change> = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let number = dice.below(12);
        let name = format!("n{}", dice.below(4));
        let (database, measurement, field) = ("db", "m", name.as_str());
        let key = match number % 5 {
            0 => Key::Database { database: field },
            1 => Key::Field { database, measurement, field },
            2 => Key::AlsoString { database, measurement, field },
            3 => Key::String { number: number as u32 + 1 },
            _ => Key::Policies { database: field },
        };
        // Two changes of one key in one record are no order that anybody makes.
        if changes.iter().any(|change| change.key == key.encode()) {
            continue;
        }
        if dice.below(4) == 0 {
            after.remove(&key.encode());
            changes.push(Change::remove(key));
        } else {
            let value = "v".repeat(dice.below(40) as usize);
            after.insert(key.encode(), value.clone());
            changes.push(Change::put(key, value));
        }
    }
    (changes, after)
}
