//! A consumer of the log that is none of the store's: a map of keys, in the log until it is saved to
//! one small file. And a program that has it beside a store on one log.

use crate::stores;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use store::WAL_DIR;
use store::{Error, Store, StoreConfig, StoreOpening};
use vfs::{SimVfs, Vfs};
use wal::kinds::{KEYS, KIND_KEYS};
use wal::{Consumer, Consumers, Log};

const DATA: &str = "/data";
/// Where the keys are saved: outside of the store, which knows nothing of them.
const FOLDER: &str = "/keys";
const FILE: &str = "/keys/saved";

/// All keys. A change is a record of a key and eight bytes of value, or of a key that is removed.
#[derive(Default)]
pub struct Keys {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    map: BTreeMap<u8, u64>,
    /// The file has what log segments below this one hold.
    saved_from: u64,
    /// The first segment with a change that the file lacks.
    dirty_from: Option<u64>,
    /// Records replayed.
    replayed: u64,
}

impl Keys {
    /// Reads the file.
    fn look(disk: &SimVfs) -> Keys {
        let mut state = State::default();
        if disk.exists(Path::new(FILE)).unwrap() {
            let bytes = disk.read(Path::new(FILE)).unwrap();
            let (saved_from, pairs) = bytes.split_first_chunk::<8>().unwrap();
            state.saved_from = u64::from_le_bytes(*saved_from);
            pairs.chunks(9).for_each(|pair| state.change(pair));
        }
        Keys { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn consumer(&self) -> Consumer<'_> {
        let from = self.state().saved_from;
        Consumer {
            name: KEYS,
            kinds: &[KIND_KEYS],
            replay_from: from,
            next_segment_min: from,
            take: Box::new(|record| {
                let mut state = self.state();
                assert_eq!(record.kind, KIND_KEYS);
                state.change(record.payload);
                state.dirty_from.get_or_insert(record.segment);
                state.replayed += 1;
                Ok(())
            }),
        }
    }

    /// Puts a value, or removes it; durable on return.
    pub fn put(&self, log: &Log, key: u8, value: Option<u64>) -> Result<(), Error> {
        let lsn = {
            let mut state = self.state();
            let mut record = vec![key];
            record.extend(value.into_iter().flat_map(u64::to_le_bytes));
            let segment = log.wal().stats().segment;
            let lsn = log.wal().append(KIND_KEYS, &record)?;
            state.dirty_from.get_or_insert(segment);
            state.change(&record);
            lsn
        };
        Ok(log.wal().wait_durable(lsn)?)
    }

    /// Saves all keys, so that the log is needed for none.
    pub fn save(&self, disk: &SimVfs, log: &Log) -> Result<(), Error> {
        let mut state = self.state();
        let next = log.wal().rotate();
        let mut bytes = next.to_le_bytes().to_vec();
        for (key, value) in &state.map {
            bytes.push(*key);
            bytes.extend(value.to_le_bytes());
        }
        disk.create_dir_all(Path::new(FOLDER))?;
        vfs::write_atomic(disk, Path::new(FILE), &bytes)?;
        state.saved_from = next;
        state.dirty_from = None;
        Ok(())
    }

    pub fn map(&self) -> BTreeMap<u8, u64> {
        self.state().map.clone()
    }

    pub fn replayed(&self) -> u64 {
        self.state().replayed
    }
}

impl State {
    fn change(&mut self, record: &[u8]) {
        match <[u8; 8]>::try_from(&record[1..]) {
            Ok(value) => drop(self.map.insert(record[0], u64::from_le_bytes(value))),
            Err(_) => drop(self.map.remove(&record[0])),
        }
    }
}

/// A program that has a store and keys on one log.
pub struct Program {
    pub disk: SimVfs,
    pub keys: Arc<Keys>,
    pub store: Arc<Store>,
    pub log: Arc<Log>,
}

impl Program {
    pub fn open(disk: &SimVfs) -> Result<Program, Error> {
        Program::open_with(disk, stores::config())
    }

    pub fn open_with(disk: &SimVfs, config: StoreConfig) -> Result<Program, Error> {
        let vfs = Arc::new(disk.clone());
        let mut opening = StoreOpening::look(vfs.clone(), Path::new(DATA), config)?;
        let keys = Arc::new(Keys::look(disk));
        let config = opening.log_config();
        let mut consumers = Consumers::default();
        opening.declare(&mut consumers);
        consumers.declare(keys.consumer());
        let log = Log::open(vfs, &Path::new(DATA).join(WAL_DIR), config, consumers)?;
        let log = Arc::new(log);
        let store = opening.finish(log.clone())?;
        let needed = keys.clone();
        log.attach(KEYS, Box::new(move || needed.state().dirty_from));
        Ok(Program { disk: disk.clone(), keys, store, log })
    }

    pub fn put(&self, key: u8, value: u64) {
        self.keys.put(&self.log, key, Some(value)).unwrap();
    }

    /// Saves the keys and cuts the log.
    pub fn save(&self) -> Result<Option<wal::Pin>, Error> {
        self.keys.save(&self.disk, &self.log)?;
        Ok(self.log.cut()?)
    }

    /// A clean stop.
    pub fn close(self) -> Result<(), Error> {
        self.save()?;
        self.store.close()?;
        Ok(self.log.close()?)
    }
}
