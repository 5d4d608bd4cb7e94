//! Room for records: it counts as pending, and whoever has it is never refused.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

const PENDING_MAX: usize = 1 << 20;
/// A record's bytes besides its payload.
const HEAD: usize = 9;

fn open_limited(vfs: &SimVfs, committer: Committer, record_size_max: usize) -> Wal {
    let config = WalConfig { record_size_max, ..config(committer) };
    let opened = Wal::open(Arc::new(vfs.clone()), Path::new(DIRECTORY), config, 0, &mut |_| Ok(()));
    opened.unwrap()
}

#[test]
fn reserved_room_counts_as_pending_and_is_always_taken() {
    let vfs = SimVfs::new(1);
    let wal = open_limited(&vfs, Committer::Waiter, RECORD_SIZE_MAX);
    let half = PENDING_MAX / 2 - HEAD;
    let mut first = wal.reserve(half).unwrap();
    let second = wal.reserve(half).unwrap();
    for refused in [wal.append(1, b"x").unwrap_err(), first.grow(1).unwrap_err()] {
        let Error::Busy { pending_size, max, .. } = refused else { panic!("{refused}") };
        assert_eq!((pending_size, max), (PENDING_MAX, PENDING_MAX));
    }
    assert!(matches!(wal.reserve(0), Err(Error::Busy { .. })));
    drop(second);
    // Room that was given back is there again, and a small record keeps the rest.
    first.grow(half).unwrap();
    first.append(1, &[b"small"]).unwrap();
    let payload = vec![7; PENDING_MAX - 4 * HEAD];
    wal.append(2, &payload).unwrap();
    wal.close().unwrap();
    let (_, replayed) = open(&vfs.crash(), Committer::Waiter, 0).unwrap();
    assert_eq!(replayed, [(1, b"small".to_vec()), (2, payload)]);
}

#[test]
fn a_record_alone_may_be_larger_than_what_may_be_pending() {
    let vfs = SimVfs::new(1);
    let wal = open_limited(&vfs, Committer::Waiter, 3 * PENDING_MAX);
    let mut alone = wal.reserve(10).unwrap();
    for _ in 0..29 {
        alone.grow(PENDING_MAX / 10).unwrap();
    }
    assert!(matches!(wal.append(1, b"x"), Err(Error::Busy { .. })));
    let error = alone.grow(PENDING_MAX / 5).unwrap_err();
    assert!(
        matches!(error, Error::RecordTooLarge { max, .. } if max == 3 * PENDING_MAX),
        "{error}"
    );
    alone.shrink(PENDING_MAX / 10);
    alone.grow(PENDING_MAX / 5 - 10).expect("just the limit");
    let lsn = alone.append(1, &[&vec![1; 3 * PENDING_MAX - 100]]).unwrap();
    assert!(matches!(wal.reserve(1), Err(Error::Busy { .. })), "it is pending now");
    wal.wait_durable(lsn).unwrap();
    let _ = wal.reserve(3 * PENDING_MAX).unwrap();
    assert!(matches!(wal.reserve(3 * PENDING_MAX + 1), Err(Error::RecordTooLarge { .. })));
}

#[test]
fn a_panic_with_room_in_hand_latches() {
    let vfs = SimVfs::new(1);
    let wal = open_limited(&vfs, Committer::Thread, RECORD_SIZE_MAX);
    let before = wal.append(1, b"before").unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _room = wal.reserve(10).unwrap();
        panic!("between memory and log");
    }));
    assert!(panicked.is_err());
    let error = wal.append(1, b"after").unwrap_err();
    assert!(matches!(&error, Error::Latched { reason } if reason.contains("panicked")), "{error}");
    assert!(wal.reserve(1).is_err());
    // What was durable is; nobody waits for ever.
    let _ = wal.wait_durable(before);
    let (_, replayed) = open(&vfs.crash(), Committer::Thread, 0).unwrap();
    assert!(replayed.len() <= 1);
}

#[test]
fn a_latched_or_closed_log_takes_no_more() {
    let vfs = SimVfs::new(1);
    let wal = open_limited(&vfs, Committer::Waiter, RECORD_SIZE_MAX);
    let (early, late) = (wal.reserve(10).unwrap(), wal.reserve(10).unwrap());
    vfs.fail_syncs(1);
    let lsn = wal.append(1, b"x").unwrap();
    assert!(wal.wait_durable(lsn).is_err());
    assert!(matches!(early.append(1, &[b"y"]), Err(Error::Latched { .. })));
    drop(late);
    let wal = open_limited(&vfs.crash(), Committer::Waiter, RECORD_SIZE_MAX);
    let room = wal.reserve(10).unwrap();
    wal.close().unwrap();
    assert!(matches!(room.append(1, &[b"z"]), Err(Error::Closed)));
    assert!(matches!(wal.reserve(10), Err(Error::Closed)));
}

#[test]
fn threads_reserve_and_append_until_the_queue_is_full() {
    const THREADS: u64 = 8;
    const RECORDS: u64 = 300;
    let vfs = SimVfs::new(1);
    let wal = open_limited(&vfs, Committer::Thread, 64 << 10);
    let write = |thread: u64| {
        let mut dice = Random(thread);
        for number in 0..RECORDS {
            let mut payload = number.to_le_bytes().to_vec();
            let mut room = loop {
                match wal.reserve(payload.len()) {
                    Ok(room) => break room,
                    Err(Error::Busy { .. }) => wal.wait_durable(wal.end()).unwrap(),
                    Err(error) => panic!("{error}"),
                }
            };
            while dice.below(4) != 0 {
                let more = dice.below(40 << 10) as usize;
                match room.grow(more) {
                    Ok(()) => payload.resize(payload.len() + more, number as u8),
                    Err(Error::Busy { .. } | Error::RecordTooLarge { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            match dice.below(8) {
                0 => drop(room),
                _ => drop(room.append(1 + thread as u8, &[&payload]).expect("it has room")),
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let write = &write;
            scope.spawn(move || write(thread));
        }
    });
    // All room was given back: a record as large as what may be pending has some.
    wal.wait_durable(wal.end()).unwrap();
    let appended = wal.stats().record_count;
    wal.close().unwrap();
    let (_, replayed) = open(&vfs.crash(), Committer::Thread, 0).unwrap();
    assert_eq!(replayed.len() as u64, appended);
    assert!(THREADS * RECORDS * 3 / 4 < appended);
}
