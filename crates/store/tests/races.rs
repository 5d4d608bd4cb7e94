//! What comes between the steps of background work: appends while a flush is under way, questions
//! while the list of damage is looked through. Another thread could do all of it; here the disk does,
//! at the moment that counts.

use crate::hooks::HookVfs;
use crate::rows::Rows;
use crate::stores;
use model::{MatchOp, Matcher, Metadata, TimeRange};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::{Durability, Error, SelectLimits, Store, StoreConfig};
use vfs::{SimVfs, Vfs};

const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 20_000 * DAY;
/// Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

fn disk(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(NOW);
    disk
}

fn open(hook: &HookVfs, config: StoreConfig) -> Arc<Store> {
    Store::open(Arc::new(hook.clone()), Path::new("/data"), config).unwrap()
}

fn put(store: &Store, hosts: &[String], time: i64, durability: Durability) {
    let mut rows = Rows::default();
    for host in hosts {
        rows.push(&store.hasher(), &[("host", host)], time, &[("m", 1.0)]);
    }
    store.append(&rows.batch(), durability).unwrap();
}

/// Host and time of all samples.
fn samples(store: &Store) -> BTreeSet<(String, i64)> {
    try_samples(store).unwrap()
}

fn try_samples(store: &Store) -> Result<BTreeSet<(String, i64)>, Error> {
    let limits = SelectLimits {
        series_max: usize::MAX,
        deadline: None,
        cancelled: None,
        cost_max: u64::MAX,
    };
    let set = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    let selection = store.select(&[set], TimeRange::ALL, &limits)?;
    let mut found = BTreeSet::new();
    let mut first_error = None;
    selection.read(0..selection.len(), &mut |idx, times, _| match selection.labels(idx) {
        Ok(labels) => {
            let host = labels.get("host").unwrap_or("").to_string();
            found.extend(times.iter().map(|time| (host.clone(), *time)));
        }
        Err(error) => drop(first_error.get_or_insert(error)),
    })?;
    first_error.map_or(Ok(found), Err)
}

/// Appends so much that the arena is sealed, as hundreds of megabytes a second would.
fn fill(store: &Store, host: &str, start: i64) {
    let mut rows = Rows::default();
    for second in 0..20_000 {
        rows.push(&store.hasher(), &[("host", host)], start + second, &[("m", 1.0)]);
    }
    store.append(&rows.batch(), Durability::Relaxed).unwrap();
}

/// What comes after a flush has rotated the log is in the log behind its manifest, and must be in no
/// part of it: its series are only known to log records that a power failure may take.
#[test]
fn a_flush_takes_nothing_that_came_after_it_began() {
    let disk = disk(1);
    let hook = HookVfs::new(&disk);
    let config =
        StoreConfig { arena_words_max: 3 * store::inside::CHUNK_WORDS, ..stores::config() };
    let store = open(&hook, config.clone());
    put(&store, &["old".into()], NOW, Durability::Synced);
    let (weak, inner): (Weak<Store>, SimVfs) = (Arc::downgrade(&store), disk.clone());
    let mut has_come = false;
    hook.set(move |operation, path| {
        if operation == "create" && path.ends_with("MANIFEST.tmp") && !has_come {
            has_come = true;
            fill(&weak.upgrade().unwrap(), "young", NOW);
        }
        if operation == "look for" && path.ends_with("exemplars") || path.starts_with("/data/wal") {
            // The manifest is written, the log is not.
            inner.fail_after(inner.operations());
        }
        Ok(())
    });
    drop(store.flush());
    drop(store);
    let store = stores::open(&disk.crash(), config);
    put(&store, &["other".into()], NOW + 7, Durability::Synced);
    let found = samples(&store);
    let expected = [("old".to_string(), NOW), ("other".to_string(), NOW + 7)];
    assert_eq!(found.len(), 2, "samples of the young one came to be the other's");
    assert_eq!(found, expected.into_iter().collect());
}

/// Months in which the writers of [`everything_at_once`] write, oldest first: days before now.
const MONTHS: [i64; 3] = [75, 31, 0];

/// Appends one sample of a series of its own after the other; returns those that were acknowledged.
fn write_some(store: &Store, writer: usize, count: i64) -> BTreeSet<(String, i64)> {
    let mut done = BTreeSet::new();
    for number in 0..count {
        // Few hosts of many samples, and a new one now and then.
        let host = format!("w{writer}-{}", if number % 5 == 0 { number } else { number % 3 });
        for days in MONTHS {
            let time = NOW - days * DAY + number;
            let mut rows = Rows::default();
            rows.push(&store.hasher(), &[("host", &host)], time, &[("m", 1.0), ("n", 2.0)]);
            if store.append(&rows.batch(), Durability::Synced).is_ok_and(|it| it.rejected == 0) {
                done.insert((host.clone(), time));
            }
        }
    }
    done
}

/// Writers, flushes, merges, snapshots, deletions of others' series, queries, and a month that
/// expires, is dropped and comes again: nobody waits for ever, nothing acknowledged is lost.
fn everything_at_once(seed: u64) {
    let disk = disk(seed);
    let wait = StoreConfig { retention_clock_wait_ns: 0, ..stores::config() };
    let committer = wal::Committer::Thread;
    let retention_ns = Some(100 * DAY);
    let config = StoreConfig { retention_ns, committer, ..wait };
    let store = stores::open(&disk, config.clone());
    let is_over = AtomicBool::new(false);
    let jobs: [&(dyn Fn() -> Result<(), Error> + Sync); 7] = [
        &|| store.flush(),
        &|| store.force_merge(""),
        &|| store.merge_as_needed(),
        &|| store.create_snapshot().and_then(|name| store.delete_snapshot(&name)),
        &|| store.delete(&[vec![Matcher::equal("host", "nobody")]], TimeRange::ALL).map(drop),
        &|| match try_samples(&store) {
            // What expired meanwhile has left the index: to be asked again.
            Err(Error::SeriesDropped) => Ok(()),
            answer => answer.map(drop),
        },
        &|| {
            // The oldest month is too old for a moment.
            disk.set_now(NOW + 55 * DAY);
            let expired = store.expire();
            disk.set_now(NOW);
            expired.and(store.expire())
        },
    ];
    let acknowledged = std::thread::scope(|scope| {
        for job in jobs {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    job().unwrap();
                    std::thread::yield_now();
                }
            });
        }
        let store = &store;
        let writers: Vec<_> =
            (0..2).map(|writer| scope.spawn(move || write_some(store, writer, 150))).collect();
        let done = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        is_over.store(true, Ordering::Relaxed);
        done
    });
    let check = |store: &Store, what: &str| {
        let found = samples(store);
        let is_young = |sample: &&(String, i64)| NOW - 40 * DAY < sample.1;
        let acknowledged: &BTreeSet<(String, i64)> = &acknowledged;
        let lost: Vec<_> =
            acknowledged.iter().filter(is_young).filter(|one| !found.contains(*one)).collect();
        assert!(lost.is_empty(), "SEED={seed} {what}: {} lost, such as {:?}", lost.len(), lost[0]);
        let invented = found.iter().find(|one| !acknowledged.contains(*one));
        assert_eq!(invented, None, "SEED={seed} {what}");
    };
    check(&store, "at the end");
    drop(store);
    check(&stores::open(&disk.kill(), config.clone()), "killed");
    check(&stores::open(&disk.crash(), config), "without power");
}

#[test]
fn everything_at_once_loses_nothing() {
    for seed in rng::seeds(0..3) {
        everything_at_once(seed);
    }
}

/// Retention and a flush, or the end, may come to write the same small file at one moment.
#[test]
fn two_who_write_the_clock_wait_for_each_other() {
    let hook = HookVfs::new(&disk(1));
    let config = StoreConfig { retention_ns: Some(100 * DAY), ..stores::config() };
    let store = open(&hook, config);
    let weak = Arc::downgrade(&store);
    let (done, ends) = mpsc::channel();
    let (asked, asking) = mpsc::channel();
    hook.set(move |operation, path| {
        if operation == "rename" && path.ends_with("clock.tmp") {
            let (store, done, asked) = (weak.upgrade().unwrap(), done.clone(), asked.clone());
            std::thread::spawn(move || {
                done.send(store.close()).unwrap();
                asked.send(()).unwrap();
            });
            // Who does not wait for its turn comes to an end in this time.
            let _ = asking.recv_timeout(Duration::from_millis(100));
        }
        Ok(())
    });
    store.expire().unwrap();
    ends.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(store.read_only_reason(), None);
}

/// Who says what somebody else has just said waits for the disk, too.
#[test]
fn metadata_that_is_known_is_acknowledged_only_once_it_is_durable() {
    let disk = disk(1);
    let config = StoreConfig { committer: wal::Committer::Thread, ..stores::config() };
    let store = stores::open(&disk, config);
    let entry = Metadata { metric: "m".into(), help: "said".into(), ..Metadata::default() };
    std::thread::scope(|scope| {
        disk.stall();
        let (first, entry) = (&store, &entry);
        scope.spawn(move || first.put_metadata(std::slice::from_ref(entry)).unwrap());
        disk.wait_for_stalled(1);
        let (answer, answered) = mpsc::channel();
        scope.spawn(move || answer.send(first.put_metadata(std::slice::from_ref(entry))));
        let early = answered.recv_timeout(Duration::from_millis(100)).is_ok();
        disk.resume();
        assert!(!early, "acknowledged while the disk stood still");
        answered.recv_timeout(PATIENCE).unwrap().unwrap();
    });
}

/// Damages the footer of the first index segment of a month, so that the month does not open.
fn damage_index(disk: &SimVfs, month: &Path) {
    let index = month.join("index");
    let segment = index.join(&disk.list(&index).unwrap()[0]);
    disk.flip_bit(&segment, disk.size(&segment).unwrap() - 6, 3).unwrap();
}

/// What a damaged month keeps in the log is no reason to flush the others all the time.
#[test]
fn a_log_that_a_damaged_month_pins_is_not_flushed_over_and_over() {
    let disk = disk(1);
    let config = StoreConfig { wal_size_max: 40_000, ..stores::config() };
    let store = stores::open(&disk, config.clone());
    put(&store, &["old".into()], NOW - 60 * DAY, Durability::Synced);
    store.flush().unwrap();
    fill(&store, "old", NOW - 60 * DAY);
    put(&store, &["old".into()], NOW - 60 * DAY, Durability::Synced);
    drop(store);
    damage_index(&disk, Path::new("/data/partitions/2024-08"));
    let store = stores::open(&disk, config);
    put(&store, &["a".into()], NOW, Durability::Synced);
    assert_eq!(store.damaged_partitions().len(), 1);
    assert!(store.is_flush_due(), "the log is long");
    store.flush().unwrap();
    assert!(40_000 < store.stats().wal_bytes);
    assert!(!store.is_flush_due());
    for round in 0..40 {
        fill(&store, "a", NOW + round);
    }
    assert!(store.is_flush_due(), "it has grown");
}

/// Who looks through the list of damage holds nothing that a reader needs: a disk that is slow then,
/// or a writer in between, would stop both.
#[test]
fn nobody_waits_for_the_list_of_damage_to_be_looked_through() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, &["a".into()], NOW, Durability::Synced);
    put(&store, &["b".into()], NOW - 60 * DAY, Durability::Synced);
    store.flush().unwrap();
    drop(store);
    let month = Path::new("/data/partitions/2024-08");
    damage_index(&disk, month);
    let hook = HookVfs::new(&disk);
    let store = open(&hook, stores::config());
    assert_eq!(store.damaged_partitions().len(), 1);
    let weak = Arc::downgrade(&store);
    let (asked, answers) = mpsc::channel();
    hook.set(move |operation, path| {
        if operation == "look for" && path == month {
            let (store, (answer, answered)) = (weak.upgrade().unwrap(), mpsc::channel());
            std::thread::spawn(move || answer.send(store.damage().len()));
            asked.send(answered.recv_timeout(PATIENCE)).unwrap();
        }
        Ok(())
    });
    store.flush().unwrap();
    assert_eq!(answers.try_recv().unwrap(), Ok(1));
}
