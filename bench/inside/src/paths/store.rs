//! Rows to the head and the log, and back from parts.

use crate::hosts::{self, FIELDS, START_NS};
use crate::path::{HotPath, Pass};
use ::store::inside::{GROUP_ROWS, SeriesMap, Target};
use ::store::{Durability, Store, StoreConfig};
use model::WriteBatch;
use rng::Random;
use std::sync::Arc;
use vfs::SimVfs;
use wire::influx::{self, InfluxKeys, Options, Precision};
use wire::{ExtraLabels, Start};

/// Hosts, each a row of ten values at every step.
const HOSTS: u64 = 1000;
/// Known keys: twice what the map's rows of a pass, so that most look-ups miss the first cache.
const KEYS: usize = 20_000;
/// Keys looked up in a pass.
const LOOK_UPS: usize = 4096;
/// Passes after which the head is flushed; far more than the guard makes.
const PASSES_PER_FLUSH: u64 = 64;

/// The paths of this file.
pub const PATHS: &[HotPath] = &[
    HotPath {
        name: "find-row",
        unit: "row",
        about: "from the hash of a known row's key to its entity, in groups as the ingest does",
        prepare: find_row,
    },
    HotPath {
        name: "append-row",
        unit: "row",
        about: "append a decoded row of 10 values of a known entity to head and log",
        prepare: append_row,
    },
    HotPath {
        name: "append-new-row",
        unit: "row",
        about: "append a decoded row of a new entity: labels decoded, checked and registered",
        prepare: append_new_row,
    },
];

fn find_row() -> Pass {
    let mut random = Random(7);
    let mut map = SeriesMap::new();
    let mut hashes = Vec::new();
    for entity in 0..KEYS as u32 {
        let hash = u128::from(random.next()) << 64 | u128::from(random.next());
        map.insert(hash, Target::Entity(entity));
        hashes.push(hash);
    }
    hashes.truncate(LOOK_UPS);
    Pass::new(LOOK_UPS, move || {
        let mut found = [None; GROUP_ROWS];
        for group in hashes.chunks(GROUP_ROWS) {
            map.find_group(group, &mut found);
            assert!(found.iter().all(Option::is_some));
        }
    })
}

/// An empty store that starts no thread, on a disk in memory whose clock is that of the data.
pub fn open() -> Arc<Store> {
    let disk = SimVfs::new(1);
    disk.set_now(START_NS);
    let config = StoreConfig {
        background: false,
        committer: wal::Committer::Waiter,
        ..StoreConfig::standard()
    };
    Store::open(Arc::new(disk), "store".as_ref(), config).expect("an empty store")
}

/// Lines as a batch for ever: this process ends when its path has run.
pub fn decode(store: &Store, text: String) -> WriteBatch<'static> {
    let keys: &'static InfluxKeys = Box::leak(Box::new(InfluxKeys::new(ExtraLabels::none())));
    let options = Options { precision: Precision::Nanosecond, now: 0 };
    let text: &'static str = text.leak();
    let decoded =
        influx::decode(text.as_bytes(), Start::default(), &options, &store.hasher(), keys);
    decoded.expect("good lines").batch
}

fn append_row() -> Pass {
    let store = open();
    let mut batch = decode(&store, hosts::lines(HOSTS, 1));
    store.append(&batch, Durability::Synced).expect("room");
    let mut passes = 0;
    Pass::new(HOSTS as usize, move || {
        for row in &mut batch.rows {
            row.timestamp += 10_000_000_000;
        }
        let appended = store.append(&batch, Durability::Synced).expect("room");
        assert_eq!(appended.samples, HOSTS * FIELDS.len() as u64);
        passes += 1;
        if passes % PASSES_PER_FLUSH == 0 {
            store.flush().expect("room");
        }
    })
}

fn append_new_row() -> Pass {
    let text = hosts::lines(HOSTS, 1);
    Pass::new(HOSTS as usize, move || {
        let store = open();
        let batch = decode(&store, text.clone());
        let appended = store.append(&batch, Durability::Synced).expect("room");
        assert_eq!(appended.samples, HOSTS * FIELDS.len() as u64);
    })
}
