//! Consumers that share a log: whose a record is, what stays for whom, and what keeps a log from
//! opening.

use super::{DIRECTORY, config};
use crate::kinds::{KEYS, KIND_KEYS, KIND_METADATA, KIND_ROWS, KIND_TABLES, KINDS};
use crate::kinds::{METADATA, SERIES, TABLES};
use crate::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::{SimVfs, Vfs};

/// Records as a consumer was handed them: the segment, and the first byte.
type Taken = RefCell<Vec<(u64, u8)>>;

/// A consumer that notes what it is handed.
fn consumer<'a>(name: &'static str, kinds: &'static [u8], taken: &'a Taken) -> Consumer<'a> {
    let take: Take<'a> = Box::new(|record: &RecordRef<'_>| {
        taken.borrow_mut().push((record.segment, record.payload[0]));
        Ok(())
    });
    Consumer { name, kinds, replay_from: 0, next_segment_min: 0, take }
}

fn series(taken: &Taken) -> Consumer<'_> {
    consumer(SERIES, &[KIND_ROWS], taken)
}

fn keys(taken: &Taken) -> Consumer<'_> {
    consumer(KEYS, &[KIND_KEYS], taken)
}

fn open(disk: &SimVfs, all: Vec<Consumer<'_>>) -> Result<Log> {
    let mut consumers = Consumers::default();
    all.into_iter().for_each(|one| consumers.declare(one));
    let vfs = Arc::new(disk.clone());
    Log::open(vfs, Path::new(DIRECTORY), config(Committer::Waiter), consumers)
}

/// Attaches a consumer whose need the test sets; `u64::MAX` is none.
fn attach(log: &Log, name: &str, need: u64) -> Arc<AtomicU64> {
    let need = Arc::new(AtomicU64::new(need));
    let shared = need.clone();
    let needed_from = move || Some(shared.load(Ordering::Relaxed)).filter(|need| *need < u64::MAX);
    log.attach(name, Box::new(needed_from));
    need
}

fn put(log: &Log, kind: u8, byte: u8) {
    let lsn = log.wal().append(kind, &[byte]).unwrap();
    log.wal().wait_durable(lsn).unwrap();
}

fn segments(disk: &SimVfs) -> Vec<String> {
    let mut names = disk.list(Path::new(DIRECTORY)).unwrap();
    names.retain(|name| name.ends_with(".wal"));
    names
}

#[test]
fn each_consumer_is_handed_its_own_records_from_where_it_wants_them() {
    let disk = SimVfs::new(1);
    let (rows, changes) = (Taken::default(), Taken::default());
    let log = open(&disk, vec![series(&rows), keys(&changes)]).unwrap();
    for segment in 0..3 {
        assert_eq!(log.wal().stats().segment, segment);
        put(&log, KIND_ROWS, 10 + segment as u8);
        put(&log, KIND_KEYS, 20 + segment as u8);
        log.wal().rotate();
    }
    drop(log);
    let late = Consumer { replay_from: 1, next_segment_min: 9, ..keys(&changes) };
    let log = open(&disk.crash(), vec![late, series(&rows)]).unwrap();
    assert_eq!(*rows.borrow(), [(0, 10), (1, 11), (2, 12)]);
    assert_eq!(*changes.borrow(), [(1, 21), (2, 22)]);
    assert_eq!(log.wal().stats().segment, 9, "none below was written yet, as one of them says");
    assert_eq!((log.off(), log.wal().recovery().record_count), (&[][..], 6));
}

#[test]
fn the_oldest_need_decides_what_is_cut() {
    let disk = SimVfs::new(1);
    let (rows, changes) = (Taken::default(), Taken::default());
    let log = open(&disk, vec![series(&rows), keys(&changes)]).unwrap();
    for byte in 0..4 {
        put(&log, KIND_ROWS, byte);
        log.wal().rotate();
    }
    let whole = log.wal().size();
    // Nobody has said anything, and then one of the two.
    let pin = Pin { consumer: SERIES, segment: 0, size: whole };
    assert_eq!((log.cut().unwrap(), log.pin()), (Some(pin), Some(pin)));
    let of_series = attach(&log, SERIES, 2);
    assert_eq!(log.cut().unwrap().unwrap().consumer, KEYS);
    assert_eq!(segments(&disk).len(), 4);
    let of_keys = attach(&log, KEYS, 1);
    let pin = Pin { consumer: KEYS, segment: 1, size: whole / 4 * 3 };
    assert_eq!((log.cut().unwrap(), log.wal().size()), (Some(pin), whole / 4 * 3));
    of_keys.store(u64::MAX, Ordering::Relaxed);
    let pin = Pin { consumer: SERIES, segment: 2, size: whole / 2 };
    assert_eq!((log.pin(), log.cut().unwrap(), segments(&disk).len()), (Some(pin), Some(pin), 2));
    // What is in the current segment pins nothing yet.
    of_series.store(4, Ordering::Relaxed);
    put(&log, KIND_ROWS, 4);
    assert_eq!((log.cut().unwrap(), log.pin()), (None, None));
    assert_eq!(segments(&disk), ["0000000004.wal"]);
    log.close().unwrap();
    drop(log);
    open(&disk.crash(), vec![series(&rows), keys(&changes)]).unwrap();
    assert_eq!(*rows.borrow(), [(4, 4)]);
}

#[test]
fn what_is_appended_while_others_are_asked_stays() {
    let disk = SimVfs::new(1);
    let (rows, changes) = (Taken::default(), Taken::default());
    let log = open(&disk, vec![series(&rows), keys(&changes)]).unwrap();
    put(&log, KIND_ROWS, 1);
    log.wal().rotate();
    // The first has answered; then it appends, and the log goes on to another segment.
    attach(&log, SERIES, u64::MAX);
    let wal = log.wal().clone();
    let needed_from = move || {
        wal.append(KIND_ROWS, &[2]).unwrap();
        wal.rotate();
        None
    };
    log.attach(KEYS, Box::new(needed_from));
    log.cut().unwrap();
    log.close().unwrap();
    drop(log);
    open(&disk.crash(), vec![series(&rows), keys(&changes)]).unwrap();
    assert_eq!(*rows.borrow(), [(1, 2)]);
}

#[test]
fn a_consumer_that_is_off_keeps_its_records_until_it_is_on_again() {
    let mut disk = SimVfs::new(1);
    let (rows, changes) = (Taken::default(), Taken::default());
    let log = open(&disk, vec![series(&rows), keys(&changes)]).unwrap();
    put(&log, KIND_ROWS, 1);
    log.wal().rotate();
    put(&log, KIND_KEYS, 2);
    put(&log, KIND_ROWS, 3);
    put(&log, KIND_KEYS, 4);
    drop(log);
    for start in 0..4 {
        disk = disk.crash();
        let log = open(&disk, vec![series(&Taken::default())]).unwrap();
        let off = Off { consumer: KEYS, from_segment: 1, record_count: 2 };
        assert_eq!(log.off(), [off]);
        put(&log, KIND_ROWS, 9);
        log.wal().rotate();
        attach(&log, SERIES, u64::MAX);
        let pin = log.cut().unwrap().unwrap();
        assert_eq!((pin.consumer, pin.segment), (KEYS, 1), "start {start}");
        assert_eq!(segments(&disk)[0], "0000000001.wal");
        log.close().unwrap();
    }
    let log = open(&disk.crash(), vec![series(&rows), keys(&changes)]).unwrap();
    assert_eq!(log.off(), []);
    assert_eq!(*changes.borrow(), [(1, 2), (1, 4)]);
    for name in [SERIES, KEYS] {
        attach(&log, name, u64::MAX);
    }
    assert_eq!((log.cut().unwrap(), log.wal().size()), (None, 0));
}

#[test]
fn a_kind_that_nobody_knows_stops_the_opening_and_nothing_changes() {
    for (committer, is_clean) in [(Committer::Waiter, true), (Committer::Thread, false)] {
        let disk = SimVfs::new(1);
        let directory = Path::new(DIRECTORY);
        let vfs = Arc::new(disk.clone());
        let wal = Wal::open(vfs, directory, config(committer), 0, &mut |_| Ok(())).unwrap();
        wal.append(KIND_ROWS, b"known").unwrap();
        let lsn = wal.append(200, b"of a later version").unwrap();
        wal.wait_durable(lsn).unwrap();
        if is_clean {
            wal.close().unwrap();
        }
        drop(wal);
        let read = |disk: &SimVfs| -> Vec<(String, Vec<u8>)> {
            let names = disk.list(directory).unwrap().into_iter();
            names.map(|name| (name.clone(), disk.read(&directory.join(name)).unwrap())).collect()
        };
        let before = read(&disk);
        let rows = Taken::default();
        let error = open(&disk, vec![series(&rows)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/data/wal/0000000000.wal has a record of kind 200 at byte 46, which this program does \
             not know: a newer Quipu wrote it; nothing was changed"
        );
        assert!(matches!(error, Error::UnknownKind { kind: 200, offset: 46, .. }), "{error:?}");
        assert_eq!(read(&disk), before);
    }
}

#[test]
fn who_refuses_a_record_is_not_taken_for_an_unknown_kind() {
    let disk = SimVfs::new(1);
    let log = open(&disk, vec![series(&Taken::default())]).unwrap();
    put(&log, KIND_ROWS, 1);
    drop(log);
    let refuse = Consumer {
        take: Box::new(|_: &RecordRef<'_>| Err("not like this".into())),
        ..series(&Taken::default())
    };
    let error = open(&disk, vec![refuse]).unwrap_err();
    assert!(matches!(error, Error::Replay { offset: 32, .. }), "{error}");
}

/// What a mistake of the program says.
fn panic_of(mistake: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(mistake)).expect_err("a mistake is met");
    panic.downcast_ref::<String>().expect("words").clone()
}

#[test]
fn mistakes_of_who_shares_a_log_are_met_at_once() {
    let taken = Taken::default();
    let declare = |all: Vec<Consumer<'_>>| panic_of(|| drop(open(&SimVfs::new(1), all)));
    let twice = declare(vec![series(&taken), consumer(METADATA, &[KIND_ROWS], &taken)]);
    assert_eq!(twice, format!("kind 1 is declared by {METADATA} and by series"));
    let foreign = declare(vec![consumer(TABLES, &[KIND_TABLES, KIND_KEYS], &taken)]);
    assert!(foreign.contains("kind 4 belongs to another in the table of kinds"), "{foreign}");
    let unknown = declare(vec![consumer(KEYS, &[200], &taken)]);
    assert!(unknown.contains("kind 200 belongs to another"), "{unknown}");
    let log = open(&SimVfs::new(1), vec![series(&taken)]).unwrap();
    let undeclared = panic_of(|| drop(log.wal().append(KIND_METADATA, b"whose?")));
    assert_eq!(undeclared, "nobody declared kind 2");
    attach(&log, SERIES, 0);
    assert_eq!(panic_of(|| drop(attach(&log, SERIES, 0))), "series is attached twice");
    assert_eq!(panic_of(|| drop(attach(&log, KEYS, 0))), "keys was not declared");
}

#[test]
fn the_table_of_kinds_is_the_one_that_the_format_describes() {
    let page = include_str!("../../../../docs/format/wal.md");
    for known in KINDS {
        let row = format!("| {} | `{}` | {} |", known.kind, known.consumer, known.content);
        assert!(page.contains(&row), "docs/format/wal.md lacks {row:?}");
        assert_eq!(kinds::consumer_of(known.kind), Some(known.consumer));
    }
    assert_eq!((kinds::consumer_of(0), kinds::consumer_of(255)), (None, None));
}
