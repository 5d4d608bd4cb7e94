//! What a snapshot has of the writes and deletions that come while it is made: all that was there
//! before it, nothing that was deleted before it, and of each deletion all or nothing.

use crate::hooks::HookVfs;
use crate::rows::Rows;
use crate::stores;
use model::{MatchOp, Matcher, TimeRange};
use rng::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use store::{Durability, Error, SelectLimits, Store, StoreConfig};
use vfs::SimVfs;

const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 20_000 * DAY;
/// In an earlier month, which has its turn first.
const EARLIER: i64 = NOW - 40 * DAY;
/// Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(20);
/// Who does not wait for its turn comes to an end in this time.
const HASTE: Duration = Duration::from_millis(20);

/// A host and a time.
type Sample = (String, i64);

fn put(store: &Store, host: &str, times: &[i64]) {
    let mut rows = Rows::default();
    for time in times {
        rows.push(&store.hasher(), &[("host", host)], *time, &[("m", 1.0)]);
    }
    assert_eq!(store.append(&rows.batch(), Durability::Synced).unwrap().rejected, 0);
}

fn delete(store: &Store, hosts: &str) -> Result<u64, Error> {
    store.delete(&[vec![Matcher::new("host", MatchOp::Regex, hosts)]], TimeRange::ALL)
}

fn samples(store: &Store) -> BTreeSet<Sample> {
    let limits = SelectLimits {
        series_max: usize::MAX,
        deadline: None,
        cancelled: None,
        cost_max: u64::MAX,
    };
    let set = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    let selection = store.select(&[set], TimeRange::ALL, &limits).unwrap();
    let mut found = BTreeSet::new();
    let mut take = |idx: usize, times: &[i64]| {
        let labels = selection.labels(idx).unwrap();
        let host = labels.get("host").unwrap_or("").to_string();
        found.extend(times.iter().map(|time| (host.clone(), *time)));
    };
    selection.read(0..selection.len(), &mut |idx, times, _| take(idx, times)).unwrap();
    found
}

/// What a snapshot has; on a fork of the disk, so that it stays as it is.
fn samples_of(disk: &SimVfs, name: &str) -> BTreeSet<Sample> {
    let dir = Path::new("/data/snapshots").join(name);
    samples(&Store::open(Arc::new(disk.kill()), &dir, stores::config()).unwrap())
}

fn of(host: &str, times: &[i64]) -> BTreeSet<Sample> {
    times.iter().map(|time| (host.to_string(), *time)).collect()
}

/// A store with one host in two months, on a disk that tells.
fn two_months(seed: u64) -> (SimVfs, HookVfs, Arc<Store>) {
    let disk = SimVfs::new(seed);
    disk.set_now(NOW);
    let hook = HookVfs::new(&disk);
    let store = Store::open(Arc::new(hook.clone()), Path::new("/data"), stores::config()).unwrap();
    put(&store, "old", &[EARLIER, NOW]);
    (disk, hook, store)
}

/// A sample that is neither in the store before the snapshot nor after it is in it all the same: it
/// was written while another month was flushed for it, and deleted by somebody who waited for it.
#[test]
fn what_comes_and_is_deleted_while_a_snapshot_is_made_may_be_in_it() {
    let (disk, hook, store) = two_months(1);
    let weak = Arc::downgrade(&store);
    let (done, ends) = mpsc::channel();
    let mut has_come = false;
    hook.set(move |operation, path| {
        if operation == "create" && path.extension().is_some_and(|it| it == "part") && !has_come {
            has_come = true;
            let (store, done) = (weak.upgrade().unwrap(), done.clone());
            put(&store, "young", &[EARLIER, NOW]);
            std::thread::spawn(move || done.send(delete(&store, "old|young")).unwrap());
        }
        Ok(())
    });
    let name = store.create_snapshot().unwrap();
    assert_eq!(ends.recv_timeout(PATIENCE).unwrap().unwrap(), 2);
    assert_eq!(samples(&store), BTreeSet::new());
    let expected = &of("old", &[EARLIER, NOW]) | &of("young", &[NOW]);
    assert_eq!(samples_of(&disk, &name), expected, "each month as it was when it had its turn");
}

/// Makes a snapshot in the middle of which a deletion begins; `false` when it was over before.
fn delete_before_operation(number: usize) -> bool {
    let (disk, hook, store) = two_months(number as u64);
    put(&store, "gone", &[EARLIER, NOW]);
    delete(&store, "gone").unwrap();
    put(&store, "dying", &[EARLIER, NOW]);
    let weak = Arc::downgrade(&store);
    let (done, ends) = mpsc::channel();
    let (asked, asking) = mpsc::channel();
    let mut operations = 0;
    hook.set(move |_, _| {
        if operations == number {
            let (store, done, asked) = (weak.upgrade().unwrap(), done.clone(), asked.clone());
            std::thread::spawn(move || {
                let deleted = delete(&store, "dying");
                // Nobody asks any more if it waited for its turn.
                let _ = asked.send(());
                done.send(deleted).unwrap();
            });
            let _ = asking.recv_timeout(HASTE);
        }
        operations += 1;
        Ok(())
    });
    let name = store.create_snapshot().unwrap();
    // Nothing comes any more if it has not come yet.
    hook.set(|_, _| Ok(()));
    let deleted = ends.recv_timeout(PATIENCE);
    let old = of("old", &[EARLIER, NOW]);
    let has_begun = deleted.is_ok();
    assert_eq!(samples_of(&disk, &name), &old | &of("dying", &[EARLIER, NOW]), "at {number}");
    if has_begun {
        assert_eq!(deleted.unwrap().unwrap(), 1);
        assert_eq!(samples(&store), old, "at {number}");
    }
    has_begun
}

#[test]
fn a_deletion_waits_for_the_snapshot_that_is_being_made() {
    let operations = (0..).find(|number| !delete_before_operation(*number)).unwrap();
    assert!(20 < operations, "{operations} operations of a snapshot");
}

/// When something first became of a sample, in steps of [`Ledger::moment`]; [`NEVER`] if it did not.
#[derive(Clone, Copy, Debug)]
struct Fate {
    sent: u64,
    acknowledged: u64,
    deleting: u64,
    deleted: u64,
}

const NEVER: u64 = u64::MAX;

/// What became of all samples, and when.
#[derive(Default)]
struct Ledger {
    moment: AtomicU64,
    fates: Mutex<BTreeMap<Sample, Fate>>,
}

impl Ledger {
    /// Later than all before.
    fn now(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    fn send(&self, store: &Store, host: &str, times: &[i64]) {
        let sent = self.now();
        let fate = Fate { sent, acknowledged: NEVER, deleting: NEVER, deleted: NEVER };
        let fates = of(host, times).into_iter().map(|sample| (sample, fate));
        self.fates.lock().unwrap().extend(fates);
        put(store, host, times);
        let now = self.now();
        self.note(host, |fate| fate.acknowledged = fate.acknowledged.min(now));
    }

    fn delete(&self, store: &Store, host: &str) {
        let now = self.now();
        self.note(host, |fate| fate.deleting = fate.deleting.min(now));
        delete(store, host).unwrap();
        let now = self.now();
        self.note(host, |fate| fate.deleted = fate.deleted.min(now));
    }

    fn note(&self, host: &str, mut change: impl FnMut(&mut Fate)) {
        let mut fates = self.fates.lock().unwrap();
        fates.iter_mut().filter(|((its, _), _)| its == host).for_each(|(_, fate)| change(fate));
    }

    /// What is wrong with a snapshot made between two moments.
    fn judge(&self, found: &BTreeSet<Sample>, begin: u64, end: u64) -> Option<String> {
        let fates = self.fates.lock().unwrap();
        let mut whole: BTreeMap<&str, bool> = BTreeMap::new();
        for (sample, fate) in fates.iter() {
            let is_there = found.contains(sample);
            let may_be = fate.sent < end && begin < fate.deleted;
            let must_be = fate.acknowledged < begin && end < fate.deleting;
            if is_there && !may_be || !is_there && must_be {
                return Some(format!("{sample:?}: there {is_there}, {begin}..{end}, {fate:?}"));
            }
            if fate.acknowledged < begin && *whole.entry(&sample.0).or_insert(is_there) != is_there
            {
                return Some(format!("{sample:?}: deleted by half, {begin}..{end}, {fate:?}"));
            }
        }
        let invented = found.iter().find(|sample| !fates.contains_key(*sample));
        invented.map(|sample| format!("{sample:?} was never sent"))
    }
}

/// Hosts of a writer in [`snapshots_under_load`].
const HOSTS: u64 = 60;

/// A few samples of one host after the other in both months; now and then a host is deleted that is
/// not written any more.
fn write_and_delete(store: &Store, ledger: &Ledger, writer: u64, mut random: Random) {
    for number in 0..HOSTS {
        let host = format!("w{writer}-{number}");
        for second in 0..2 + random.below(4) as i64 {
            ledger.send(store, &host, &[EARLIER + second, NOW + second]);
        }
        if random.below(2) == 0 {
            ledger.delete(store, &format!("w{writer}-{}", random.below(number + 1)));
        }
    }
}

/// Snapshots made and looked into while others write, delete, flush and merge.
fn snapshots_under_load(seed: u64) {
    let disk = SimVfs::new(seed);
    disk.set_now(NOW);
    let config = StoreConfig { committer: wal::Committer::Thread, ..stores::config() };
    let store = stores::open(&disk, config);
    let (ledger, is_over) = (Ledger::default(), AtomicBool::new(false));
    let snapshots = AtomicU64::new(0);
    let jobs: [&(dyn Fn() + Sync); 3] =
        [&|| store.flush().unwrap(), &|| store.force_merge("").unwrap(), &|| {
            let begin = ledger.now();
            let name = store.create_snapshot().unwrap();
            let end = ledger.now();
            let wrong = ledger.judge(&samples_of(&disk, &name), begin, end);
            assert_eq!(wrong, None, "SEED={seed}");
            store.delete_snapshot(&name).unwrap();
            snapshots.fetch_add(1, Ordering::Relaxed);
        }];
    std::thread::scope(|scope| {
        for job in jobs {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    job();
                    std::thread::yield_now();
                }
            });
        }
        let (store, ledger) = (&store, &ledger);
        let write = |writer| move || write_and_delete(store, ledger, writer, Random(seed + writer));
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(write(writer))).collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    assert_ne!(snapshots.into_inner(), 0, "SEED={seed}");
    let end = ledger.now();
    assert_eq!(ledger.judge(&samples(&store), end, end), None, "SEED={seed} at the end");
}

#[test]
fn snapshots_under_load_have_what_was_there() {
    for seed in rng::seeds(0..3) {
        snapshots_under_load(seed);
    }
}
