//! A store and a consumer of another kind on one log: what each has logged comes back to it, the log
//! is cut where neither needs it, who is switched off loses nothing, and a record of a later version
//! keeps all of it from opening.
//!
//! `SEED=n` chooses another history for the deaths at every write.

use crate::damaged::{self, Answers, SECOND, TURN, answers, files, repair, verify, write};
use crate::keys::Program;
use crate::rows::{self, Rows};
use crate::stores;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{Durability, Error, Store, StoreConfig};
use vfs::{SimVfs, Vfs};
use wal::kinds::{EXEMPLARS, KEYS, METADATA, SERIES};

const WAL: &str = "/data/wal";

fn disk(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(TURN);
    disk
}

fn first_segment(disk: &SimVfs) -> u64 {
    wal::first_segment(disk, Path::new(WAL)).unwrap().unwrap()
}

fn row_count(store: &Store) -> u64 {
    store.stats().head_samples + store.stats().part_samples
}

#[test]
fn each_gets_its_own_records_back_after_a_kill_and_after_a_crash() {
    let mut disk = disk(1);
    let program = Program::open(&disk).unwrap();
    for round in 0..5u8 {
        damaged::append(&program.store, 0..4, TURN + i64::from(round) * SECOND);
        program.put(round, u64::from(round) * 7);
    }
    program.keys.put(&program.log, 2, None).unwrap();
    let expected = BTreeMap::from([(0, 0), (1, 7), (3, 21), (4, 28)]);
    assert_eq!(program.keys.map(), expected);
    let rows = row_count(&program.store);
    assert_eq!(rows, 5 * (2 + 3 + 2 + 3));
    drop(program);
    for next in [SimVfs::kill, SimVfs::crash] {
        disk = next(&disk);
        let program = Program::open(&disk).unwrap();
        assert_eq!((program.keys.map(), program.keys.replayed()), (expected.clone(), 6));
        assert_eq!(row_count(&program.store), rows);
    }
    Program::open(&disk).unwrap().close().unwrap();
    let left = ["/data/wal/END", "/data/wal/START"].map(PathBuf::from);
    assert_eq!(files(&disk, WAL), left, "nobody needs any of it");
    let program = Program::open(&disk.crash()).unwrap();
    assert_eq!((program.keys.map(), program.keys.replayed()), (expected, 0));
    assert_eq!(row_count(&program.store), rows);
}

#[test]
fn the_log_is_cut_where_neither_needs_it() {
    let disk = disk(1);
    let program = Program::open(&disk).unwrap();
    program.put(1, 10);
    damaged::append(&program.store, 0..4, TURN);
    assert_eq!((program.store.stats().wal_pinned_by, first_segment(&disk)), (None, 0));
    program.store.flush().unwrap();
    // What the store has in parts stays for the keys, and is no reason to flush again.
    let stats = program.store.stats();
    assert_eq!((stats.wal_pinned_by, first_segment(&disk)), (Some(KEYS), 0));
    assert_eq!(
        (stats.wal_pinned_bytes, stats.wal_bytes),
        (program.log.wal().size(), stats.wal_bytes)
    );
    assert!(0 < stats.wal_pinned_bytes && !program.store.is_flush_due());
    damaged::append(&program.store, 0..4, TURN + SECOND);
    let pin = program.save().unwrap().unwrap();
    assert_eq!((pin.consumer, pin.segment), (SERIES, first_segment(&disk)));
    assert!(0 < pin.segment, "the first row that is in no part");
    assert!(program.store.stats().wal_pinned_bytes <= program.log.wal().size());
    program.store.flush().unwrap();
    assert_eq!((program.log.pin(), program.log.wal().size()), (None, 0));
}

#[test]
fn books_that_cannot_be_written_keep_what_they_need() {
    let metadata = [model::Metadata { metric: "a".into(), ..model::Metadata::default() }];
    let books = [("metadata", METADATA), ("metadata.copy", METADATA), ("exemplars", EXEMPLARS)];
    for (book, needed_by) in books {
        let disk = disk(1);
        let program = Program::open(&disk).unwrap();
        damaged::append(&program.store, 0..4, TURN);
        match needed_by {
            METADATA => program.store.put_metadata(&metadata).unwrap(),
            _ => damaged::append_exemplars(&program.store, TURN),
        }
        // A folder in the book's way.
        let blocked = Path::new("/data").join(format!("{book}.tmp")).join("full");
        disk.create_dir_all(&blocked).unwrap();
        program.store.flush().unwrap_err();
        program.save().unwrap();
        let pin = program.log.pin().unwrap();
        assert_eq!((pin.consumer, pin.segment), (needed_by, 0));
        assert_eq!(first_segment(&disk), 0);
    }
}

#[test]
fn what_the_log_hands_back_to_the_books_is_needed_until_they_are_written() {
    let mut disk = disk(1);
    let metadata = [model::Metadata { metric: "a".into(), ..model::Metadata::default() }];
    let program = Program::open(&disk).unwrap();
    program.store.put_metadata(&metadata).unwrap();
    drop(program);
    disk = disk.crash();
    let program = Program::open(&disk).unwrap();
    assert_eq!(program.log.pin().unwrap().consumer, METADATA);
    damaged::append(&program.store, 0..4, TURN);
    damaged::append_exemplars(&program.store, TURN);
    program.store.flush().unwrap();
    assert_eq!(program.log.pin(), None);
    damaged::append_exemplars(&program.store, TURN + SECOND);
    drop(program);
    disk = disk.crash();
    let program = Program::open(&disk).unwrap();
    assert_eq!(program.log.pin().unwrap().consumer, EXEMPLARS);
    program.store.flush().unwrap();
    assert_eq!((program.log.pin(), program.log.wal().size()), (None, 0));
    drop(program);
    let program = Program::open(&disk.crash()).unwrap();
    assert_eq!(program.store.metadata(None, 10), metadata);
    assert_eq!(program.store.stats().exemplars.exemplars, 2);
}

/// What was acknowledged of what threads do at once: values of one key, and rows, each a number
/// higher than the one before.
#[derive(Default)]
struct Acknowledged {
    key: AtomicU64,
    row: AtomicU64,
    /// Cuts by either.
    cuts: AtomicU64,
    is_over: AtomicBool,
}

fn append_number(store: &Store, number: u64) {
    let mut rows = Rows::default();
    let time = TURN + number as i64;
    rows.push(&store.hasher(), &[("host", "h")], time, &[("a", number as f64)]);
    store.append(&rows.batch(), Durability::Synced).unwrap();
}

/// Appends to both, saves both and cuts, in threads, until `look` returns.
fn all_at_once(program: &Program, done: &Acknowledged, look: &dyn Fn()) {
    let until_over = |act: &dyn Fn(u64)| {
        // One that fails ends the others.
        let _end = End(&done.is_over);
        let mut number = 0;
        while !done.is_over.load(Ordering::Acquire) {
            number += 1;
            act(number);
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until_over(&|number| {
                program.put(1, number);
                done.key.store(number, Ordering::Release);
            });
        });
        scope.spawn(|| {
            until_over(&|number| {
                append_number(&program.store, number);
                done.row.store(number, Ordering::Release);
            });
        });
        scope.spawn(|| {
            until_over(&|_| {
                program.store.flush().unwrap();
                done.cuts.fetch_add(1, Ordering::Relaxed);
            });
        });
        scope.spawn(|| {
            until_over(&|_| {
                program.save().unwrap();
                done.cuts.fetch_add(1, Ordering::Relaxed);
            });
        });
        // A look that fails ends it, too.
        let _end = End(&done.is_over);
        look();
    });
}

/// Ends what threads do.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn who_appends_saves_and_cuts_at_once_loses_nothing() {
    let disk = disk(1);
    let config = StoreConfig { committer: wal::Committer::Thread, ..stores::config() };
    let program = Program::open_with(&disk, config).unwrap();
    let done = Acknowledged::default();
    let check = |after: &SimVfs, key: u64, row: u64| {
        let found = Program::open(after).unwrap();
        let value = found.keys.map().get(&1).copied().unwrap_or(0);
        assert!(key <= value, "{key} was acknowledged, {value} is there");
        let rows = row_count(&found.store);
        assert!(row <= rows, "{row} rows were acknowledged, {rows} are there");
    };
    all_at_once(&program, &done, &|| {
        for death in 1..=30 {
            for count in [&done.cuts, &done.key, &done.row] {
                let is_over = || done.is_over.load(Ordering::Relaxed);
                while count.load(Ordering::Relaxed) < death * 5 && !is_over() {
                    std::thread::yield_now();
                }
            }
            // First what was acknowledged, then the disk.
            let (key, row) = (done.key.load(Ordering::Acquire), done.row.load(Ordering::Acquire));
            check(&disk.crash(), key, row);
        }
    });
    let (key, row) = (done.key.load(Ordering::Acquire), done.row.load(Ordering::Acquire));
    drop(program);
    check(&disk.crash(), key, row);
}

#[test]
fn a_store_that_is_closed_leaves_the_log_to_the_others() {
    let disk = disk(1);
    let program = Program::open(&disk).unwrap();
    damaged::append(&program.store, 0..4, TURN);
    program.store.close().unwrap();
    program.store.close().unwrap();
    let mut rows = Rows::default();
    rows.push(&program.store.hasher(), &[("host", "late")], TURN, &[("a", 1.0)]);
    let refused = program.store.append(&rows.batch(), Durability::Synced).unwrap_err();
    assert!(matches!(refused, Error::ReadOnly { .. }), "{refused}");
    program.put(1, 5);
    // Nobody else opens it as long as the log is there, be the store gone.
    let Program { store, log, keys, .. } = program;
    drop(store);
    assert!(Program::open(&disk).is_err());
    keys.put(&log, 2, Some(6)).unwrap();
    assert_eq!(log.cut().unwrap().unwrap().consumer, SERIES, "nobody can say what it needs");
    log.close().unwrap();
    drop(log);
    let program = Program::open(&disk.crash()).unwrap();
    assert_eq!(program.keys.map(), BTreeMap::from([(1, 5), (2, 6)]));
    assert_eq!(row_count(&program.store), 10);
}

#[test]
fn who_is_switched_off_keeps_its_records_over_restarts_and_repairs() {
    let mut disk = disk(1);
    let program = Program::open(&disk).unwrap();
    damaged::append(&program.store, 0..4, TURN);
    program.store.flush().unwrap();
    let first = program.log.wal().stats().segment;
    program.put(1, 10);
    program.put(2, 20);
    drop(program);
    for round in 1..4 {
        disk = disk.crash();
        let store = stores::open(&disk, stores::config());
        damaged::append(&store, 0..4, TURN + round * SECOND);
        store.flush().unwrap();
        let stats = store.stats();
        assert_eq!((stats.wal_pinned_by, stats.wal_pinned_bytes), (Some(KEYS), stats.wal_bytes));
        assert!(!store.is_flush_due());
        store.close().unwrap();
        assert_eq!(first_segment(&disk), first, "round {round}");
    }
    let report = verify(&disk);
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(report.notes[0].contains(".wal: 2 records of keys, a consumer of the log"));
    let (steps, _) = repair(&disk).unwrap();
    assert_eq!(steps, Vec::<String>::new());
    // A repair of the segment, of which the header is rotten, keeps them.
    let segment = Path::new(WAL).join(wal::segment_name(first));
    disk.flip_bit(&segment, 29, 1).unwrap();
    let (steps, lost) = repair(&disk).unwrap();
    assert_eq!((steps.len(), lost.len()), (1, 0), "{steps:?} {lost:?}");
    let program = Program::open(&disk).unwrap();
    assert_eq!(program.keys.map(), BTreeMap::from([(1, 10), (2, 20)]));
    assert_eq!(program.log.off(), []);
    program.save().unwrap();
    assert_eq!((program.log.pin(), program.log.wal().size()), (None, 0));
    assert_eq!(row_count(&program.store), 4 * 10);
}

#[test]
fn log_that_closed_keys_hold_is_named_and_writes_end_before_the_disk_is_full() {
    let disk = disk(2);
    let program = Program::open(&disk).unwrap();
    program.put(1, 10);
    let first = program.log.wal().stats().segment;
    drop(program);
    let disk = disk.crash();
    let (wal_size_max, free_disk_min) = (4 << 10, 1 << 20);
    let config = StoreConfig { wal_size_max, free_disk_min, ..stores::config() };
    let store = stores::open(&disk, config);
    let append_and_flush = |round: i64| {
        damaged::append(&store, 0..20, TURN + round * SECOND);
        store.flush().unwrap();
        store.check_disk();
        store.stats().wal_pinned_bytes
    };
    let mut rounds = 0..;
    while append_and_flush(rounds.next().unwrap()) <= wal_size_max {
        assert_eq!(store.failures_since(0), None, "not yet");
    }
    let (count, told) = store.failures_since(0).expect("it is told");
    for words in ["keys are closed or switched off", "--wal-size", "--repair"] {
        assert!(told.contains(words), "{told}");
    }
    append_and_flush(rounds.next().unwrap());
    assert_eq!(store.failures_since(count), None, "until it has doubled");
    while append_and_flush(rounds.next().unwrap()) <= 3 * wal_size_max {}
    assert!(store.failures_since(count).is_some(), "it has doubled");
    assert_eq!(store.read_only_reason(), None);
    disk.set_free_space(free_disk_min - 1);
    store.check_disk();
    let reason = store.read_only_reason().expect("the disk is nearly full");
    assert!(reason.contains("free-disk-min") && reason.contains("keys are closed"), "{reason}");
    disk.set_free_space(1 << 40);
    store.check_disk();
    assert_eq!(store.read_only_reason(), None);
    drop(store);
    assert_eq!(first_segment(&disk), first, "nothing is given up without an order");
    let program = Program::open(&disk.crash()).unwrap();
    assert_eq!(program.keys.map(), BTreeMap::from([(1, 10)]));
    program.save().unwrap();
    program.store.flush().unwrap();
    assert_eq!(program.log.pin(), None);
}

/// Appends a record of any kind to a segment, as the format says.
fn append_record(disk: &SimVfs, segment: &Path, kind: u8, payload: &[u8]) {
    let mut bytes = disk.read(segment).unwrap();
    let mut covered = (payload.len() as u32).to_le_bytes().to_vec();
    covered.push(kind);
    covered.extend(payload);
    let salt = codec::crc32(&bytes[12..28]);
    let check = codec::crc32(&covered) ^ salt ^ bytes.len() as u32;
    bytes.extend(check.to_le_bytes());
    bytes.extend(covered);
    write(disk, segment, &bytes);
}

#[test]
fn a_record_that_nobody_knows_keeps_the_store_from_opening_and_nothing_changes() {
    let disk = damaged::small_store(1);
    let truth = answers(&disk).unwrap();
    let segment = Path::new(WAL).join(wal::segment_name(first_segment(&disk)));
    let whole = disk.read(&segment).unwrap();
    append_record(&disk, &segment, 99, b"of a later version");
    let read = |disk: &SimVfs| -> Vec<(PathBuf, Vec<u8>)> {
        let of_store = |path: &PathBuf| !path.ends_with("quipu.lock");
        let all = files(disk, "/data").into_iter().filter(of_store);
        all.map(|path| (path.clone(), disk.read(&path).unwrap())).collect()
    };
    let before = read(&disk);
    let data = Path::new("/data");
    let error = Store::open(Arc::new(disk.clone()), data, stores::config()).err().unwrap();
    let expected = format!("{} has a record of kind 99 at byte {}", segment.display(), whole.len());
    assert!(error.to_string().starts_with(&expected), "{error}: {expected}");
    assert!(error.is_unknown_version());
    let error = Program::open(&disk).err().unwrap();
    assert!(error.to_string().starts_with(&expected), "{error}");
    let report = verify(&disk);
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert!(report.problems[0].contains("its kind, 99, is unknown: a newer Quipu wrote it"));
    let error = repair(&disk).unwrap_err();
    assert!(error.to_string().contains("nothing is repaired"), "{error}");
    assert_eq!(read(&disk), before);
    // The version that knows it goes on where it was.
    write(&disk, &segment, &whole);
    assert_eq!(answers(&disk).unwrap(), truth);
}

/// What was acknowledged, and the one thing that may have happened or not.
#[derive(Clone, Default)]
struct Model {
    rows: Answers,
    rows_in_doubt: Answers,
    keys: BTreeMap<u8, u64>,
    key_in_doubt: Option<(u8, Option<u64>)>,
}

/// Who is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keyed {
    On,
    Off,
}

/// What runs between two starts.
enum Running {
    Both(Program),
    Store(Arc<Store>),
}

impl Running {
    fn open(disk: &SimVfs, keyed: Keyed) -> Result<Running, Error> {
        match keyed {
            Keyed::On => Ok(Running::Both(Program::open(disk)?)),
            Keyed::Off => {
                let vfs = Arc::new(disk.clone());
                let store = Store::open(vfs, Path::new("/data"), stores::config())?;
                Ok(Running::Store(store))
            }
        }
    }

    fn store(&self) -> &Store {
        match self {
            Running::Both(program) => &program.store,
            Running::Store(store) => store,
        }
    }

    fn close(self) -> Result<(), Error> {
        match self {
            Running::Both(program) => program.close(),
            Running::Store(store) => store.close(),
        }
    }
}

/// A history of both, of its own seed.
struct History {
    dice: rng::Random,
    disk: SimVfs,
    running: Option<Running>,
    model: Model,
    round: i64,
}

impl History {
    fn new(seed: u64, disk: SimVfs) -> History {
        let (dice, model) = (rng::Random(seed), Model::default());
        History { dice, disk, running: None, model, round: 0 }
    }

    /// Lives until the disk fails.
    fn live(&mut self, rounds: i64) -> Result<(), Error> {
        self.start(Keyed::On)?;
        for _ in 0..rounds {
            self.round += 1;
            self.step()?;
        }
        self.running.take().expect("it runs").close()
    }

    fn start(&mut self, keyed: Keyed) -> Result<(), Error> {
        // The old one gives the lock back first.
        self.running = None;
        self.running = Some(Running::open(&self.disk, keyed)?);
        Ok(())
    }

    fn step(&mut self) -> Result<(), Error> {
        let keyed = if self.dice.below(3) == 0 { Keyed::Off } else { Keyed::On };
        match self.dice.below(16) {
            0..=3 => self.append(),
            4..=8 => self.change_key(),
            9..=10 => self.running().store().flush(),
            11..=12 => match self.running() {
                Running::Both(program) => program.save().map(drop),
                Running::Store(store) => store.flush(),
            },
            13 => {
                self.running.take().expect("it runs").close()?;
                self.start(keyed)
            }
            // Without a word.
            _ => self.start(keyed),
        }
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs")
    }

    fn append(&mut self) -> Result<(), Error> {
        let store = self.running.as_ref().expect("it runs").store();
        let mut rows = Rows::default();
        for idx in 0..3 {
            let host = format!("h{}", self.dice.below(5));
            // Two months.
            let time = TURN + (self.round - 20) * SECOND + idx;
            let value = self.dice.below(1000) as f64;
            let tags = [("host", host.as_str())];
            rows.push(&store.hasher(), &tags, time, &[("a", value)]);
            self.model.rows_in_doubt.insert((rows::labels(&tags, "a"), time), value.to_bits());
        }
        store.append(&rows.batch(), Durability::Synced)?;
        let sent = std::mem::take(&mut self.model.rows_in_doubt);
        self.model.rows.extend(sent);
        Ok(())
    }

    fn change_key(&mut self) -> Result<(), Error> {
        let Some(Running::Both(program)) = &self.running else { return self.append() };
        let key = self.dice.below(12) as u8;
        let value = (self.dice.below(4) != 0).then(|| self.dice.next());
        self.model.key_in_doubt = Some((key, value));
        program.keys.put(&program.log, key, value)?;
        self.model.change(key, value);
        self.model.key_in_doubt = None;
        Ok(())
    }
}

impl Model {
    fn change(&mut self, key: u8, value: Option<u64>) {
        match value {
            Some(value) => drop(self.keys.insert(key, value)),
            None => drop(self.keys.remove(&key)),
        }
    }

    /// Compares with what is there once all is switched on.
    fn check(&self, disk: &SimVfs, context: &str) {
        let found = answers(disk).unwrap();
        for (sample, bits) in &self.rows {
            assert_eq!(found.get(sample), Some(bits), "{context}: {sample:?}");
        }
        for (sample, bits) in &found {
            let known = [&self.rows, &self.rows_in_doubt];
            let was_sent = known.iter().any(|rows| rows.get(sample) == Some(bits));
            assert!(was_sent, "{context}: {sample:?} was never sent");
        }
        let program = Program::open(disk).unwrap();
        let keys = program.keys.map();
        let mut with_doubt = self.clone();
        if let Some((key, value)) = self.key_in_doubt {
            with_doubt.change(key, value);
        }
        assert!(keys == self.keys || keys == with_doubt.keys, "{context}: {keys:?}");
        // Once both have saved all, nothing of the log stays.
        program.store.flush().unwrap();
        assert_eq!(program.save().unwrap(), None, "{context}");
        assert_eq!(program.log.wal().size(), 0, "{context}");
        drop(program);
        let report = verify(disk);
        assert_eq!(report.problems, Vec::<String>::new(), "{context}");
    }
}

const ROUNDS: i64 = 60;

#[test]
fn a_death_at_every_write_costs_neither_of_them_anything() {
    for seed in rng::seeds([3, 8]) {
        let whole = disk(seed);
        let mut history = History::new(seed, whole.clone());
        history.live(ROUNDS).unwrap();
        history.model.check(&whole.crash(), "whole");
        let operations = whole.operations();
        println!("SEED={seed}: {operations} operations");
        assert!(200 < operations && 3 < history.model.keys.len() && 20 < history.model.rows.len());
        for death in 0..operations {
            let disk = disk(seed ^ death);
            disk.fail_after(death);
            let mut history = History::new(seed, disk.clone());
            history.live(ROUNDS).expect_err("the disk fails");
            let model = std::mem::take(&mut history.model);
            drop(history);
            let has_store = |disk: &SimVfs| disk.exists(Path::new("/data/partitions")).unwrap();
            for (ending, after) in [("power", disk.crash()), ("kill", disk.kill())] {
                let context = format!("SEED={seed} death {death} by {ending}");
                if !has_store(&after) {
                    assert!(model.rows.is_empty() && model.keys.is_empty(), "{context}");
                    continue;
                }
                model.check(&after.kill(), &context);
                // The keys are off for a while, in which the store flushes, and dies again.
                let alone = stores::open(&after, stores::config());
                alone.flush().unwrap();
                drop(alone);
                model.check(&after.crash(), &format!("{context}, off, on"));
            }
        }
    }
}
