//! What the root manifest names and is not there: noticed, said, and nothing else fails for it.

use crate::damaged::{
    self, FIRST, SECOND, SECOND_MONTH, TURN, answers, limits, partial, remove, repair, settled,
    small_store, try_open, verify,
};
use crate::stores;
use model::{MatchOp, Matcher, TimeRange};
use std::path::Path;
use vfs::{SimVfs, Vfs};

fn remove_dir(disk: &SimVfs, dir: &str) {
    let dir = Path::new(dir);
    disk.remove_dir_all(dir).unwrap();
    disk.sync_dir(dir.parent().unwrap()).unwrap();
}

/// The samples from the turn of the months on.
fn after_turn() -> TimeRange {
    TimeRange::new(TURN, i64::MAX)
}

#[test]
fn a_missing_partition_is_said_and_the_rest_goes_on() {
    let disk = small_store(1);
    let store = stores::open(&disk, stores::config());
    let (mut truth, none) = partial(&store, TimeRange::ALL);
    assert_eq!(none, Vec::<String>::new());
    drop(store);
    // The log registers the hosts of these.
    truth.retain(|(_, time), _| TURN <= *time || *time == TURN - 1000 * SECOND);
    remove_dir(&disk, FIRST);
    let disk = settled(&disk);
    let problems = verify(&disk).problems;
    let is_missing = |one: &store::Finding| one.to_string().contains("2020-02: the directory");
    assert!(problems.iter().any(is_missing), "{problems:?}");

    let store = stores::open(&disk, stores::config());
    let set = vec![Matcher::new("host", MatchOp::Regex, ".*")];
    assert!(store.select(&[set], TimeRange::ALL, &limits()).is_err(), "not whole");
    let (found, said) = partial(&store, TimeRange::ALL);
    assert_eq!(found, truth, "the other month, and what the log has");
    assert!(said[0].contains("partitions/2020-02"), "{said:?}");
    assert_eq!(partial(&store, after_turn()).1, Vec::<String>::new(), "whole");
    // Writes to its time go on; nothing of theirs is another's, now or later.
    damaged::append(&store, 50..55, TURN - 500 * SECOND);
    let expected = partial(&store, TimeRange::ALL);
    assert_eq!(expected.0.len(), truth.len() + 12);
    drop(store);
    for _ in 0..2 {
        let disk = settled(&disk);
        let store = stores::open(&disk, stores::config());
        assert_eq!(partial(&store, TimeRange::ALL), expected, "it is not forgotten");
        let store = {
            store.flush().unwrap();
            drop(store);
            stores::open(&disk, stores::config())
        };
        assert_eq!(partial(&store, TimeRange::ALL), expected, "after a flush");
        drop(store);
        assert_eq!(verify(&disk).problem_count(), 1);
    }
    let disk = settled(&disk);
    let (_, lost) = repair(&disk).unwrap();
    assert!(lost.iter().any(|one| one.text.contains("2020-02")), "{lost:?}");
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
    let store = stores::open(&disk, stores::config());
    assert_eq!(partial(&store, TimeRange::ALL), (expected.0, Vec::new()), "accepted");
}

/// Before, all records of the partition were passed over.
#[test]
fn unflushed_rows_of_a_missing_partition_are_replayed_if_the_log_has_their_labels() {
    let disk = small_store(6);
    let store = stores::open(&disk, stores::config());
    // Only the index that goes has the labels of these.
    damaged::append(&store, 0..5, TURN - 990 * SECOND);
    damaged::append(&store, 60..65, TURN - 980 * SECOND);
    damaged::append(&store, 3..6, TURN - 975 * SECOND);
    damaged::append(&store, 60..65, TURN - 970 * SECOND);
    let mut expected = partial(&store, TimeRange::ALL).0;
    drop(store);
    let replayed = [-1000, -980, -970].map(|second| TURN + second * SECOND);
    expected.retain(|(_, time), _| TURN <= *time || replayed.contains(time));
    let is_back = |(_, time): &&(String, i64)| replayed.contains(time);
    assert_eq!(expected.keys().filter(is_back).count(), 25 + 12 + 12);
    remove_dir(&disk, FIRST);
    let mut disk = settled(&disk);
    let repaired = damaged::copy(&disk);
    repair(&repaired).unwrap();
    let store = stores::open(&repaired, stores::config());
    assert_eq!(partial(&store, TimeRange::ALL), (expected.clone(), Vec::new()), "a repair first");
    drop(store);
    // Ids that were lost are given out again, behind the rows of the log that have them.
    for round in 0..3 {
        disk = settled(&disk);
        let store = stores::open(&disk, stores::config());
        let (found, said) = partial(&store, TimeRange::ALL);
        assert!(found == expected, "round {round}: {} of {}", found.len(), expected.len());
        assert!(said.iter().any(|one| one.contains("partitions/2020-02")), "{said:?}");
        damaged::append(&store, 80..85, TURN - (900 + round) * SECOND);
        expected = partial(&store, TimeRange::ALL).0;
    }
    let store = stores::open(&disk, stores::config());
    store.flush().unwrap();
    drop(store);
    let disk = settled(&disk);
    assert_eq!(partial(&stores::open(&disk, stores::config()), TimeRange::ALL).0, expected);
    assert_eq!(verify(&disk).problem_count(), 1, "{:?}", verify(&disk).problems);
    repair(&disk).unwrap();
    let store = stores::open(&disk, stores::config());
    assert_eq!(partial(&store, TimeRange::ALL), (expected, Vec::new()), "accepted");
}

/// A record that is cut where an entity is unknown may lack rows of the histograms before.
#[test]
fn histograms_of_a_record_that_is_cut_are_left_out() {
    let disk = small_store(7);
    let store = stores::open(&disk, stores::config());
    let one = |host: u32, second: i64| {
        let labels = crate::rows::labels(&[("host", format!("h{host}").as_str())], "hist");
        (labels, TURN - second * SECOND, crate::rows::histogram(u64::from(host)))
    };
    let put = |list: &[(model::Labels, i64, histogram::Histogram)]| {
        let batch = crate::rows::histograms(list);
        store.append_histograms(&batch, store::Durability::Synced).unwrap();
    };
    put(&[one(70, 600), one(71, 600)]);
    put(&[one(70, 500), one(0, 500), one(71, 500)]);
    drop(store);
    remove_dir(&disk, FIRST);
    let store = stores::open(&settled(&disk), stores::config());
    let missing = store::Missing::new();
    let set = vec![Matcher::equal("__name__", "hist")];
    let range = TimeRange::new(TURN - 700 * SECOND, TURN - 1);
    let selection = store.noting(&missing).select(&[set], range, &limits()).unwrap();
    let (mut floats, mut found) = (0, Vec::new());
    let read = selection.read_mixed(0..selection.len(), &mut |_, times, _, h_times, _| {
        floats += times.len();
        found.extend(h_times.iter().map(|time| (TURN - time) / SECOND));
    });
    read.unwrap();
    assert_eq!((floats, found), (0, vec![600, 600]));
    assert!(!missing.is_empty());
}

#[test]
fn a_store_without_any_of_its_partitions_is_refused_until_the_loss_is_accepted() {
    let disk = small_store(2);
    for month in [FIRST, SECOND_MONTH] {
        remove_dir(&disk, month);
    }
    let disk = settled(&disk);
    let error = try_open(&disk).err().expect("refused").to_string();
    for word in ["2 partitions", "mounted", "quipu verify --repair"] {
        assert!(error.contains(word), "{error}");
    }
    repair(&disk).unwrap();
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
    let store = stores::open(&disk, stores::config());
    damaged::append(&store, 0..5, TURN + 400 * SECOND);
    assert_eq!(partial(&store, TimeRange::ALL).1, Vec::<String>::new());
}

#[test]
fn a_missing_file_beside_the_partitions_is_said() {
    let cases: [&[&str]; 3] =
        [&["metadata", "metadata.copy"], &["exemplars"], &["partition-length"]];
    for names in cases {
        let name = names[0];
        let disk = small_store(3);
        let truth = answers(&disk).unwrap();
        for name in names {
            remove(&disk, &Path::new(damaged::DATA).join(name));
        }
        let disk = settled(&disk);
        let problems = verify(&disk).problems;
        let is_named = problems.iter().any(|one| one.to_string().contains(name));
        assert!(is_named && problems.len() == 1, "{problems:?}");
        for _ in 0..2 {
            let store = stores::open(&disk, stores::config());
            let damage = store.damage();
            assert!(damage.iter().any(|one| one.file == name), "{name}: {damage:?}");
            store.flush().unwrap();
        }
        assert_eq!(answers(&disk).unwrap(), truth, "no sample is lost");
        repair(&disk).unwrap();
        assert_eq!(verify(&disk).problems, Vec::<String>::new());
        let store = stores::open(&disk, stores::config());
        assert_eq!(store.damage(), [], "accepted");
    }
}

#[test]
fn a_lost_root_manifest_is_written_anew() {
    for is_removed in [false, true] {
        let disk = small_store(4);
        let truth = answers(&disk).unwrap();
        let path = Path::new("/data/MANIFEST");
        match is_removed {
            true => remove(&disk, path),
            false => damaged::flip(&disk, path, 0.5),
        }
        let disk = settled(&disk);
        assert_eq!(verify(&disk).problem_count(), u64::from(!is_removed));
        assert_eq!(answers(&disk).unwrap(), truth);
        drop(stores::open(&disk, stores::config()));
        assert!(disk.exists(path).unwrap());
        assert_eq!(verify(&disk).problem_count(), u64::from(!is_removed), "it was set aside");
    }
}

#[test]
fn stores_of_earlier_versions_have_none_and_get_one() {
    let disk = small_store(5);
    remove(&disk, Path::new("/data/MANIFEST"));
    let disk = settled(&disk);
    drop(stores::open(&disk, stores::config()));
    remove_dir(&disk, SECOND_MONTH);
    let store = stores::open(&settled(&disk), stores::config());
    assert_eq!(store.damage().len(), 1);
}
