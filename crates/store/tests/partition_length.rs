//! Partitions of a day, a week, a month, a year: chosen when a directory is made, kept for good,
//! and the same to everything that works by partitions.

use crate::damaged::{
    DATA, Lost, SECOND, answers, append, check_repaired, files, flip, remove, repair, settled,
    verify,
};
use crate::rows::Rows;
use crate::stores;
use std::path::Path;
use std::sync::Arc;
use store::PARTITIONS_MAX;
use store::{Durability, Error, PartitionLength, Store, StoreConfig};
use vfs::{SimVfs, Vfs};

const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// 2024-12-31, noon: a Tuesday, of the first week of 2025.
const NOW: i64 = 20_088 * DAY + 12 * HOUR;
const FILE: &str = "/data/partition-length";

fn new_disk(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(NOW);
    disk
}

fn config(length: impl Into<Option<PartitionLength>>) -> StoreConfig {
    StoreConfig { partition_length: length.into(), ..stores::config() }
}

fn try_open(
    disk: &SimVfs,
    length: impl Into<Option<PartitionLength>>,
) -> Result<Arc<Store>, Error> {
    Store::open(Arc::new(disk.clone()), Path::new(DATA), config(length))
}

fn partitions(disk: &SimVfs) -> Vec<String> {
    let mut names = disk.list(Path::new("/data/partitions")).unwrap();
    names.sort();
    names
}

/// A store with rows of the present period and the one before, half of them in the log.
fn small_store(length: PartitionLength) -> SimVfs {
    let disk = new_disk(1);
    let store = try_open(&disk, length).unwrap();
    let before = length.of(NOW).previous().unwrap().range().end - HOUR;
    for round in 0..2 {
        append(&store, 0..10, NOW + round * SECOND);
        append(&store, 5..15, before + round * SECOND);
        if round == 0 {
            store.flush().unwrap();
        }
    }
    drop(store);
    settled(&disk)
}

#[test]
fn each_length_has_its_names_and_comes_back_without_being_asked_for() {
    let expected = [
        ["2024-12-30", "2024-12-31"],
        ["2024-W52", "2025-W01"],
        ["2024-11", "2024-12"],
        ["2023", "2024"],
    ];
    for (length, names) in PartitionLength::ALL.into_iter().zip(expected) {
        let disk = small_store(length);
        assert_eq!(partitions(&disk), names);
        let before = answers(&disk).unwrap();
        assert_eq!(before.len(), 100);
        for asked in [None, Some(length)] {
            let store = try_open(&disk, asked).unwrap();
            assert_eq!(store.partition_length(), length);
            store.close().unwrap();
        }
        let disk = settled(&disk);
        assert_eq!(answers(&disk).unwrap(), before);
        let report = verify(&disk);
        assert_eq!((report.problem_count(), report.partition_length), (0, Some(length)));
    }
}

#[test]
fn another_length_is_refused_in_words_and_changes_nothing() {
    let disk = small_store(PartitionLength::Week);
    let operations = disk.operations();
    let Err(error) = try_open(&disk, PartitionLength::Year) else { panic!("it is of weeks") };
    let words = "/data has partitions of a week each, not of a year: that is fixed when a directory \
                 is made; leave --partition away, or begin a new directory";
    assert_eq!(error.to_string(), words);
    assert!(disk.operations() - operations < 3, "only the lock is taken");
    assert_eq!(try_open(&disk, None).unwrap().partition_length(), PartitionLength::Week);
}

#[test]
fn a_directory_of_an_earlier_version_has_months() {
    let disk = small_store(PartitionLength::Month);
    let before = answers(&disk).unwrap();
    remove(&disk, Path::new(FILE));
    remove(&disk, Path::new("/data/MANIFEST"));
    assert_eq!(answers(&disk).unwrap(), before);
    let Err(Error::OtherLength { has, .. }) = try_open(&disk, PartitionLength::Day) else {
        panic!("it is of months")
    };
    assert_eq!(has, PartitionLength::Month);
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
    // The same when nothing was flushed yet: only the log is there.
    let disk = new_disk(2);
    let store = try_open(&disk, None).unwrap();
    append(&store, 0..3, NOW);
    drop(store);
    remove(&disk, Path::new(FILE));
    let Err(error) = try_open(&disk, PartitionLength::Day) else { panic!("it is of months") };
    assert!(error.to_string().contains("open it with --partition month"), "{error}");
    assert_eq!(answers(&disk).unwrap().len(), 7);
}

/// Whatever the machine dies at: the directory is of years, or it is as new as before.
#[test]
fn a_death_at_creation_leaves_the_length_that_was_asked_for_or_none() {
    let (mut death, mut has_lived, mut has_told) = (0u64, false, false);
    while !has_lived {
        for kind in 0..2 {
            let disk = new_disk(death);
            disk.fail_after(death);
            let opened = try_open(&disk, PartitionLength::Year);
            let opened = opened.and_then(|store| {
                let mut rows = Rows::default();
                rows.push(&store.hasher(), &[("host", "h")], NOW, &[("a", 1.0)]);
                store.append(&rows.batch(), Durability::Synced)
            });
            has_lived = opened.is_ok() && disk.operations() < death;
            let disk = if kind == 0 { disk.crash() } else { disk.kill() };
            disk.set_now(NOW);
            match try_open(&disk, PartitionLength::Day) {
                Ok(store) => {
                    assert_eq!(store.partition_length(), PartitionLength::Day, "death {death}");
                    append(&store, 0..3, NOW);
                    assert!(opened.is_err(), "death {death}: what was there is gone");
                }
                Err(Error::OtherLength { has, .. }) => {
                    assert_eq!(has, PartitionLength::Year, "death {death}");
                    let store = try_open(&disk, None).unwrap();
                    append(&store, 0..3, NOW + SECOND);
                    has_told = true;
                }
                Err(error) => panic!("death {death}: {error}"),
            }
        }
        death += 1;
    }
    assert!(has_told && 5 < death, "deaths fall before and after the file is written");
}

#[test]
fn a_damaged_file_is_made_up_for_by_names_or_by_the_log() {
    for length in PartitionLength::ALL {
        let disk = small_store(length);
        let before = answers(&disk).unwrap();
        flip(&disk, Path::new(FILE), 0.6);
        let problems = verify(&disk).problems;
        assert!(problems.iter().any(|one| one.contains("partition-length: is corrupt")));
        let store = try_open(&disk, None).unwrap();
        assert_eq!(store.partition_length(), length);
        assert!(store.damage().iter().any(|one| one.file == "partition-length"));
        store.close().unwrap();
        drop(store);
        assert_eq!(answers(&settled(&disk)).unwrap(), before);
        let is_back = disk.exists(Path::new(FILE)).unwrap();
        assert_eq!(is_back, length != PartitionLength::Month, "months need none");
    }
    let disk = new_disk(3);
    let store = try_open(&disk, PartitionLength::Day).unwrap();
    append(&store, 0..3, NOW);
    drop(store);
    flip(&disk, Path::new(FILE), 0.6);
    let Err(error) = try_open(&disk, None) else { panic!("nothing says that it is of days") };
    assert!(error.to_string().contains("open it with --partition day"), "{error}");
    drop(try_open(&disk, PartitionLength::Day).unwrap());
    assert_eq!(answers(&disk).unwrap().len(), 7);
}

#[test]
fn a_partition_of_another_length_is_neither_read_nor_passed_over() {
    let disk = small_store(PartitionLength::Year);
    let before = answers(&disk).unwrap();
    disk.create_dir_all(Path::new("/data/partitions/2024-10/parts")).unwrap();
    let disk = settled(&disk);
    let Err(error) = try_open(&disk, None) else { panic!("who knows what is in it") };
    assert!(error.to_string().contains("2024-10 is a partition of a month"), "{error}");
    let problems = verify(&disk).problems;
    assert!(problems[0].contains("2024-10: is a partition of another length"), "{problems:?}");
    let (steps, lost) = repair(&disk).unwrap();
    assert_eq!((steps.len(), lost.len()), (1, 0), "{steps:?}");
    check_repaired(&disk, &before, &[], "moved aside");
}

#[test]
fn damage_is_found_and_repaired_under_names_of_each_length() {
    for length in PartitionLength::ALL {
        let disk = small_store(length);
        let truth = answers(&disk).unwrap();
        let name = length.of(NOW).name();
        flip(&disk, &Path::new("/data/partitions").join(&name).join("MANIFEST"), 0.5);
        let problems = verify(&disk).problems;
        assert!(problems[0].contains(&format!("{name}/MANIFEST: is corrupt")), "{problems:?}");
        let (_, lost): (_, Vec<Lost>) = repair(&disk).unwrap();
        let found = check_repaired(&disk, &truth, &lost, &name);
        assert_eq!(found, truth, "only deletions go with a manifest");
        // A part of another partition.
        let (from, to) =
            (format!("{DATA}/partitions/{name}"), length.of(NOW).previous().unwrap().name());
        let part = disk.list(Path::new(&format!("{from}/parts"))).unwrap().remove(0);
        let aside = Path::new(DATA).join("partitions").join(to).join("parts/00000000000000ff.part");
        disk.hard_link(&Path::new(&from).join("parts").join(part), &aside).unwrap();
        let disk = settled(&disk);
        repair(&disk).unwrap();
        check_repaired(&disk, &truth, &[], &name);
    }
}

#[test]
fn retention_drops_whole_partitions_and_parts_in_them() {
    for length in PartitionLength::ALL {
        let disk = new_disk(4);
        let kept = StoreConfig { retention_ns: Some(2 * DAY), ..config(length) };
        let open = || stores::open(&disk, kept.clone());
        let store = open();
        let first = length.of(NOW).next().unwrap();
        let start = first.range().start;
        disk.set_now(start + HOUR);
        append(&store, 0..3, start + HOUR);
        store.flush().unwrap();
        disk.set_now(start + 12 * HOUR);
        append(&store, 0..3, start + 12 * HOUR);
        store.flush().unwrap();
        let parts = || {
            let dir = format!("/data/partitions/{}/parts", first.name());
            disk.list(Path::new(&dir)).map(|names| names.len())
        };
        assert_eq!(parts().unwrap(), 2, "{length}");
        // The first part is too old, the second is not; a day is kept as a whole until all of it
        // is.
        disk.set_now(start + 2 * DAY + 6 * HOUR);
        store.expire().unwrap();
        assert_eq!(parts().unwrap(), 1, "{length}");
        disk.set_now(first.range().end + DAY);
        append(&store, 0..3, first.range().end + DAY);
        store.expire().unwrap();
        store.flush().unwrap();
        assert!(partitions(&disk).contains(&first.name()), "{length}: its end is kept");
        disk.set_now(first.range().end + 2 * DAY + 2);
        store.expire().unwrap();
        let left = partitions(&disk);
        assert!(!left.contains(&first.name()) && left.len() == 1, "{length}: {left:?}");
        drop(store);
        drop(open());
        let mut after = Rows::default();
        let store = open();
        after.push(&store.hasher(), &[("host", "h0")], first.range().end, &[("a", 1.0)]);
        let refused = store.append(&after.batch(), Durability::Synced).unwrap();
        assert_eq!(refused.rejected, 1, "{length}");
    }
}

#[test]
fn the_rollover_of_each_length_is_prepared_shortly_before_it() {
    for length in PartitionLength::ALL {
        let disk = new_disk(5);
        let store = try_open(&disk, length).unwrap();
        let rollover = length.of(NOW).range().end + 1;
        let ahead = length.rollover_ahead_ns();
        assert!(ahead * 4 <= length.of(NOW).range().end - length.of(NOW).range().start);
        disk.set_now(rollover - ahead - HOUR);
        append(&store, 0..30, rollover - ahead - HOUR);
        store.prepare_rollover_fully().unwrap();
        assert_eq!(store.stats().partitions, 1, "{length}: too early");
        disk.set_now(rollover - ahead / 2);
        append(&store, 0..20, rollover - ahead / 2);
        // Somebody's clock is ahead, by more than a day.
        append(&store, 20..21, rollover + DAY + HOUR);
        store.prepare_rollover_fully().unwrap();
        let before = store.stats().series_new_total;
        disk.set_now(rollover + SECOND);
        append(&store, 0..20, rollover + SECOND);
        assert_eq!(store.stats().series_new_total, before, "{length}: all were known");
    }
}

#[test]
fn a_snapshot_is_of_the_same_length() {
    for length in PartitionLength::ALL {
        let disk = small_store(length);
        let before = answers(&disk).unwrap();
        let store = try_open(&disk, None).unwrap();
        let name = store.create_snapshot().unwrap();
        drop(store);
        let dir = Path::new("/data/snapshots").join(name);
        assert!(files(&disk, dir.to_str().unwrap()).contains(&dir.join("partition-length")));
        let copy = Store::open(Arc::new(disk.clone()), &dir, config(length)).unwrap();
        let samples = copy.stats().part_samples;
        assert_eq!((copy.partition_length(), samples), (length, before.len() as u64));
    }
}

#[test]
fn changes_are_told_in_partitions_of_each_length() {
    for length in PartitionLength::ALL {
        let disk = new_disk(6);
        let store = try_open(&disk, length).unwrap();
        let period = length.of(NOW).previous().unwrap();
        append(&store, 0..3, period.range().start);
        let version = store.take_version();
        // The last instants of the period, where the table of changes ends.
        append(&store, 0..3, period.range().end);
        let changed = store.changed_since(version, &model::TimeRange::ALL);
        assert_eq!(changed.len(), 1, "{length}");
        assert!(
            changed[0].contains(period.range().end) && !changed[0].contains(period.range().start)
        );
        assert_eq!(changed[0].end, period.range().end, "{length}");
    }
}

/// Backfill into days comes to the limit after 22 years: what is beyond is refused by row, the rest
/// is taken.
#[test]
fn there_are_as_many_partitions_as_the_limit_says() {
    let disk = new_disk(7);
    let store = try_open(&disk, PartitionLength::Day).unwrap();
    let mut rows = Rows::default();
    for day in 2..PARTITIONS_MAX as i64 + 5 {
        rows.push(&store.hasher(), &[("host", "h")], NOW - day * DAY, &[("a", 1.0)]);
    }
    let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
    assert_eq!((appended.samples, appended.rejected), (PARTITIONS_MAX as u64, 3));
    let reason = &appended.rejections[0].reason;
    assert_eq!(reason, "8193 partitions, the limit is 8192 (partition)");
    // One that is there takes more.
    append(&store, 0..3, NOW - 100 * DAY);
    drop(store);
    assert_eq!(answers(&settled(&disk)).unwrap().len(), PARTITIONS_MAX + 7);
}

/// One sender of old rows must not keep out what everybody sends now.
#[test]
fn backfill_up_to_the_limit_leaves_room_for_the_present() {
    let disk = new_disk(8);
    let store = try_open(&disk, PartitionLength::Day).unwrap();
    let mut rows = Rows::default();
    for day in 2..PARTITIONS_MAX as i64 + 3 {
        rows.push(&store.hasher(), &[("host", "h")], NOW - day * DAY, &[("a", 1.0)]);
    }
    let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
    assert_eq!((appended.samples, appended.rejected), (PARTITIONS_MAX as u64, 1));
    for day in 0..3 {
        disk.set_now(NOW + day * DAY);
        append(&store, 0..3, NOW + day * DAY);
    }
    drop(store);
    assert_eq!(answers(&settled(&disk)).unwrap().len(), PARTITIONS_MAX + 3 * 7);
}

/// Old times by accident, or on purpose, make no thousands of directories at once.
#[test]
fn a_request_makes_no_more_partitions_than_one_may() {
    let disk = new_disk(9);
    let config = StoreConfig {
        partition_length: Some(PartitionLength::Day),
        partitions_per_request_max: 5,
        ..stores::config()
    };
    let store = stores::open(&disk, config);
    let rows = || {
        let mut rows = Rows::default();
        for day in 0..12 {
            rows.push(&store.hasher(), &[("host", "a")], NOW - day * DAY, &[("m", 1.0)]);
        }
        rows.batch()
    };
    for (stored, refused) in [(5, 7), (10, 2), (12, 0), (12, 0)] {
        let appended = store.append(&rows(), Durability::Synced).unwrap();
        assert_eq!((appended.samples, appended.rejected), (stored, refused));
        let words = "6 new partitions in one request, the limit is 5 (max-partitions-per-request)";
        assert!(appended.rejections.iter().all(|one| one.reason.starts_with(words)));
    }
    store.flush().unwrap();
    assert_eq!(partitions(&disk).len(), 12);
}
