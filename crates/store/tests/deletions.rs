//! Deletions of several writes: the machine dies at each of them, and at each write of the start that
//! finishes the deletion. What is deleted is gone or there, all of it, and nothing else is touched.

use crate::rows::Rows;
use crate::stores;
use model::{Exemplar, ExemplarRow, Labels, Matcher, TimeRange};
use std::path::Path;
use std::sync::Arc;
use store::{
    DamagePlace, Durability, Error, SelectLimits, Store, StoreConfig, StoreOpening, WAL_DIR,
};
use vfs::{SimVfs, Vfs};
use wal::{Consumers, Log};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const NOW: i64 = 1_583_020_800 * SECOND;
/// Each is in a month of its own.
const TIMES: [i64; 3] = [NOW - 60 * DAY, NOW - 20 * DAY, NOW];
const DATA: &str = "/data";
const FILE: &str = "/data/deletion";
/// Stands for schema records: durable beside the store, by another consumer of the log.
const RECORD: &str = "/data/record";
const THERE: &[u8] = b"there";
const GONE: &[u8] = b"gone";

fn config() -> StoreConfig {
    StoreConfig { exemplars_max: 100, ..stores::config() }
}

fn try_open(disk: &SimVfs) -> Result<Arc<Store>, Error> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let mut opening = StoreOpening::look(Arc::clone(&vfs), Path::new(DATA), config())?;
    let log_config = opening.log_config();
    let mut consumers = Consumers::default();
    opening.declare(&mut consumers);
    let log = Log::open(vfs, &Path::new(DATA).join(WAL_DIR), log_config, consumers)?;
    opening.finish_with(Arc::new(log), &mut |records| set_record(disk, records))
}

fn open(disk: &SimVfs) -> Arc<Store> {
    try_open(disk).unwrap()
}

fn set_record(disk: &SimVfs, value: &[u8]) -> Result<(), Error> {
    Ok(vfs::write_atomic(disk, Path::new(RECORD), value)?)
}

fn gone() -> Vec<Vec<Matcher>> {
    vec![vec![Matcher::equal("host", "gone")]]
}

/// Samples of hosts at a time, with an exemplar each.
fn put(store: &Store, hosts: &[&str], time: i64) -> Result<(), Error> {
    let mut rows = Rows::default();
    for host in hosts {
        rows.push(&store.hasher(), &[("host", host)], time, &[("m", 1.0)]);
    }
    let batch = rows.batch();
    store.append(&batch, Durability::Synced)?;
    let exemplar = |row: &model::Row| {
        let labels = Labels::from_pairs(&[("trace_id", &time.to_string())]);
        let exemplar = Exemplar { labels, value: 1.0, timestamp: time, has_timestamp: true };
        ExemplarRow { row: *row, exemplar, may_be_first: false }
    };
    let exemplars: Vec<ExemplarRow> = batch.rows.iter().map(exemplar).collect();
    store.append_exemplars(&batch, &exemplars, Durability::Synced).map(drop)
}

/// A store with samples of `gone` and `kept` in three months, in files and in the log.
fn filled(seed: u64) -> (SimVfs, Arc<Store>) {
    let disk = SimVfs::new(seed);
    disk.set_now(NOW);
    let store = open(&disk);
    for time in TIMES {
        put(&store, &["gone", "kept"], time).unwrap();
    }
    set_record(&disk, THERE).unwrap();
    store.flush().unwrap();
    for time in TIMES {
        put(&store, &["gone", "kept"], time + 1).unwrap();
    }
    (disk, store)
}

fn delete(disk: &SimVfs, store: &Store) -> Result<u64, Error> {
    let mut apply = || set_record(disk, GONE);
    store.delete_with_records(&gone(), TimeRange::ALL, GONE, &mut apply)
}

/// What there is of a host: times of samples, and of exemplars.
fn found(store: &Store, host: &str) -> (Vec<i64>, Vec<i64>) {
    let sets = [vec![Matcher::equal("host", host)]];
    let selection = store.select(&sets, TimeRange::ALL, &SelectLimits::UNLIMITED).unwrap();
    let mut samples = Vec::new();
    selection.read(0..selection.len(), &mut |_, times, _| samples.extend(times)).unwrap();
    let series = store.strict().exemplars(&sets, TimeRange::ALL, &SelectLimits::UNLIMITED).unwrap();
    let exemplars = series.iter().flat_map(|one| &one.exemplars).map(|one| one.timestamp);
    (samples, exemplars.collect())
}

fn all_times() -> (Vec<i64>, Vec<i64>) {
    let times = TIMES.iter().flat_map(|time| [*time, time + 1]);
    // Exemplars of the log that are older than those of the files are not taken.
    (times.collect(), TIMES.into_iter().chain([NOW + 1]).collect())
}

fn has_record(disk: &SimVfs) -> bool {
    disk.read(Path::new(RECORD)).unwrap() == THERE
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    NotBegun,
}

/// Opens the store, which must be whole.
fn outcome(disk: &SimVfs, context: &str) -> Outcome {
    let store = open(disk);
    assert_eq!(store.read_only_reason(), None, "{context}");
    assert_eq!(found(&store, "kept"), all_times(), "{context}");
    assert!(!disk.exists(Path::new(FILE)).unwrap(), "{context}");
    let of_gone = found(&store, "gone");
    let outcome = match has_record(disk) {
        true => Outcome::NotBegun,
        false => Outcome::Done,
    };
    let expected = if outcome == Outcome::Done { Default::default() } else { all_times() };
    assert_eq!(of_gone, expected, "{context}: half done, {outcome:?} by its record");
    // What is made again is hit by no later start.
    if outcome == Outcome::Done {
        put(&store, &["gone"], NOW + 5).unwrap();
        set_record(disk, THERE).unwrap();
        drop(store);
        let after = disk.crash();
        let store = open(&after);
        assert_eq!(found(&store, "gone"), (vec![NOW + 5], vec![NOW + 5]), "{context}");
        assert!(has_record(&after), "{context}");
        store.close().unwrap();
        drop(store);
        let report = store::verify(Arc::new(disk.crash()), Path::new(DATA), &mut |_| ()).unwrap();
        assert_eq!(report.problems, Vec::<String>::new(), "{context}");
    }
    outcome
}

#[test]
fn a_death_at_every_write_leaves_no_half_of_a_deletion() {
    let (disk, store) = filled(0);
    let first = disk.operations();
    delete(&disk, &store).unwrap();
    let last = disk.operations();
    drop(store);
    assert_eq!(outcome(&disk.crash(), "no death"), Outcome::Done);
    let (mut done, mut not_begun) = (0, 0);
    for death in first..last {
        let (disk, store) = filled(death);
        disk.fail_after(death);
        let acknowledged = delete(&disk, &store).is_ok();
        drop(store);
        for (ending, after) in [("power", disk.crash()), ("kill", disk.kill())] {
            let context = format!("death {} of {}, {ending}", death - first, last - first);
            match outcome(&after, &context) {
                Outcome::Done => done += 1,
                Outcome::NotBegun => {
                    assert!(!acknowledged, "{context}");
                    not_begun += 1;
                }
            }
        }
    }
    println!("{done} deletions were done, {not_begun} not begun");
    assert!(0 < done && 0 < not_begun);
}

/// Disks of a deletion that was killed at each of its writes, where it had begun.
fn unfinished() -> Vec<SimVfs> {
    let (disk, store) = filled(0);
    let first = disk.operations();
    delete(&disk, &store).unwrap();
    let deaths = first..disk.operations();
    drop(store);
    let killed = deaths.map(|death| {
        let (disk, store) = filled(death);
        disk.fail_after(death);
        let _ = delete(&disk, &store);
        drop(store);
        disk.kill()
    });
    let all: Vec<SimVfs> = killed.filter(|disk| disk.exists(Path::new(FILE)).unwrap()).collect();
    assert!(5 < all.len(), "{} deaths", all.len());
    all
}

#[test]
fn a_death_at_every_write_of_the_start_that_finishes_a_deletion_harms_nothing() {
    for (number, disk) in unfinished().iter().enumerate() {
        for death in 0.. {
            let start = disk.kill();
            start.fail_after(death);
            let opened = try_open(&start).map(|store| store.read_only_reason());
            if let Ok(None) = opened {
                break;
            }
            let after = if death % 2 == 0 { start.kill() } else { start.crash() };
            let context = format!("step {number}, death {death}");
            assert_eq!(outcome(&after, &context), Outcome::Done, "{context}");
        }
    }
}

#[test]
fn samples_that_come_while_a_deletion_runs_outlive_its_end_by_a_start() {
    let (disk, store) = filled(1);
    let mut put_and_die = || {
        for time in TIMES {
            put(&store, &["gone"], time + 5)?;
        }
        disk.fail_after(0);
        set_record(&disk, GONE)
    };
    let done = store.delete_with_records(&gone(), TimeRange::ALL, GONE, &mut put_and_die);
    assert!(done.is_err(), "{done:?}");
    let refused = put(&store, &["gone"], NOW + 6);
    assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    drop(store);
    for after in [disk.kill(), disk.crash()] {
        let store = open(&after);
        let times = TIMES.map(|time| time + 5).to_vec();
        assert_eq!(found(&store, "gone"), (times.clone(), times));
        assert_eq!(found(&store, "kept"), all_times());
        assert!(!has_record(&after));
    }
}

#[test]
fn a_file_that_comes_back_deletes_nothing_that_was_made_since() {
    let (disk, store) = filled(2);
    let mut bytes = Vec::new();
    let mut apply = || {
        bytes = disk.read(Path::new(FILE)).unwrap();
        set_record(&disk, GONE)
    };
    store.delete_with_records(&gone(), TimeRange::ALL, GONE, &mut apply).unwrap();
    for time in TIMES {
        put(&store, &["gone"], time + 5).unwrap();
    }
    store.flush().unwrap();
    store.close().unwrap();
    drop(store);
    vfs::write_atomic(&disk, Path::new(FILE), &bytes).unwrap();
    let store = open(&disk);
    let times = TIMES.map(|time| time + 5).to_vec();
    assert_eq!(found(&store, "gone"), (times.clone(), times));
    assert_eq!(found(&store, "kept"), all_times());
    assert!(!disk.exists(Path::new(FILE)).unwrap());

    // Nor in partitions where other series have the numbers.
    let disk = SimVfs::new(3);
    disk.set_now(NOW);
    let store = open(&disk);
    for time in TIMES {
        put(&store, &["other", "another"], time).unwrap();
    }
    store.close().unwrap();
    drop(store);
    vfs::write_atomic(&disk, Path::new(FILE), &bytes).unwrap();
    let store = open(&disk);
    assert_eq!(found(&store, "other").0, TIMES);
    assert_eq!(found(&store, "another").0, TIMES);
}

#[test]
fn a_start_on_a_full_disk_hides_what_is_deleted_and_takes_no_writes() {
    let rooms = [0, 100, 300, 1000, 3000];
    for (disk, room) in unfinished().iter().flat_map(|disk| rooms.map(|room| (disk, room))) {
        let full = disk.kill();
        full.take_room(room);
        let store = open(&full);
        assert_eq!(found(&store, "gone"), Default::default(), "{room} bytes");
        assert_eq!(found(&store, "kept"), all_times(), "{room} bytes");
        if store.read_only_reason().is_some() {
            put(&store, &["gone"], NOW + 6).unwrap_err();
        }
        let _ = store.close();
        drop(store);
        full.give_room();
        assert_eq!(outcome(&full.kill(), "there is room again"), Outcome::Done);
    }
}

#[test]
fn a_deletion_that_finds_no_room_is_finished_by_the_next_start() {
    let mut reasons = 0;
    for room in (0..20_000).step_by(97) {
        let (disk, store) = filled(room);
        // What it flushes first is no part of it.
        store.flush().unwrap();
        disk.take_room(room);
        let done = delete(&disk, &store);
        let reason = store.read_only_reason();
        drop(store);
        disk.give_room();
        let outcome = outcome(&disk.kill(), &format!("{room} bytes"));
        assert!(done.is_err() || outcome == Outcome::Done, "{room} bytes");
        reasons += usize::from(reason.is_some() && outcome == Outcome::Done);
    }
    println!("{reasons} deletions were finished by a start");
}

#[test]
fn a_damaged_file_is_noted_and_set_aside() {
    for disk in unfinished() {
        disk.flip_bit(Path::new(FILE), 12, 3).unwrap();
        let store = open(&disk);
        assert_eq!(found(&store, "kept"), all_times());
        let damage = store.damage();
        let noted =
            damage.iter().any(|one| one.place == DamagePlace::SideFile && one.file == "deletion");
        assert!(noted, "{damage:?}");
        put(&store, &["kept"], NOW + 6).unwrap();
        assert!(disk.exists(Path::new("/data/deletion.corrupt")).unwrap());
    }
}

#[test]
fn a_deletion_of_one_write_needs_no_file() {
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    let hooked = crate::hooks::HookVfs::new(&disk);
    let store = Store::open(Arc::new(hooked.clone()), Path::new(DATA), config()).unwrap();
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("host", "gone")], NOW, &[("m", 1.0)]);
    store.append(&rows.batch(), Durability::Synced).unwrap();
    hooked.set(|_, path| {
        assert_ne!(path, Path::new(FILE));
        Ok(())
    });
    assert_eq!(store.delete(&gone(), TimeRange::ALL).unwrap(), 1);
    assert_eq!(found(&store, "gone"), Default::default());
    drop(store);
    assert_eq!(found(&open(&disk.crash()), "gone"), Default::default());
}

/// Hosts that lists name, whatever the time.
fn listed(store: &Store) -> Vec<String> {
    let all = [vec![Matcher::equal("__name__", "m")]];
    store.strict().label_values("host", &all, TimeRange::ALL, &SelectLimits::UNLIMITED).unwrap()
}

#[test]
fn series_that_a_deletion_by_time_empties_leave_the_lists_at_once() {
    let disk = SimVfs::new(11);
    disk.set_now(NOW);
    let store = open(&disk);
    put(&store, &["gone", "kept"], NOW).unwrap();
    store.flush().unwrap();
    put(&store, &["gone", "kept"], NOW + 1).unwrap();
    let delete = |start: i64, end: i64| store.delete(&gone(), TimeRange::new(start, end)).unwrap();
    // Each of two deletions leaves the other half of the samples.
    delete(NOW, NOW);
    assert_eq!(listed(&store), ["gone", "kept"]);
    assert_eq!(found(&store, "gone").0, [NOW + 1]);
    delete(NOW + 1, NOW + SECOND);
    assert_eq!(listed(&store), ["kept"]);
    assert_eq!(found(&store, "kept").0, [NOW, NOW + 1]);
    // A series that gets a new sample is listed again, whatever the time of the sample.
    put(&store, &["gone"], NOW - 5).unwrap();
    assert_eq!(listed(&store), ["gone", "kept"]);
    store.flush().unwrap();
    assert_eq!(found(&store, "gone").0, [NOW - 5]);
    delete(NOW - 5, NOW - 5);
    drop(store);
    let store = open(&disk.crash());
    assert_eq!(listed(&store), ["kept"]);
    store.close().unwrap();
}
