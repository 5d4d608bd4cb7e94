//! One file of a store is replaced by an older copy of itself: what an answer has too much or lacks is
//! named, and the start and `verify` name the file.

use crate::damaged::{
    self, SECOND, SECOND_MONTH, TURN, copy, files, partial, repair, settled, verify,
};
use crate::hooks::HookVfs;
use crate::stores;
use model::{MatchOp, Matcher, TimeRange};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Store;
use vfs::{SimVfs, Vfs};

type Samples = BTreeMap<(String, i64), u64>;

const MANIFEST: &str = "/data/partitions/2020-03/MANIFEST";
const ROOT: &str = "/data/MANIFEST";

fn delete(store: &Store, host: &str) {
    let matcher = Matcher::new("host", MatchOp::Equal, host);
    assert!(0 < store.delete(&[vec![matcher]], TimeRange::ALL).unwrap(), "{host} is there");
}

fn append_and_flush(store: &Store, round: u32) {
    let time = TURN + i64::from(round) * 10 * SECOND;
    damaged::append(store, round * 5..round * 5 + 10, time);
    damaged::append(store, round * 5..round * 5 + 10, time + SECOND);
    store.flush().unwrap();
}

/// The disk after each change of a store's files, with samples of one month.
fn history() -> Vec<SimVfs> {
    let disk = SimVfs::new(1);
    disk.set_now(TURN + 7200 * SECOND);
    let store = stores::open(&disk, stores::config());
    let mut disks = Vec::new();
    for round in 0..3 {
        append_and_flush(&store, round);
        disks.push(settled(&disk));
    }
    // One partition and no exemplars: one write alone.
    delete(&store, "h3");
    disks.push(settled(&disk));
    store.force_merge("").unwrap();
    disks.push(settled(&disk));
    delete(&store, "h7");
    disks.push(settled(&disk));
    append_and_flush(&store, 3);
    append_and_flush(&store, 4);
    disks.push(settled(&disk));
    store.merge_as_needed().unwrap();
    delete(&store, "h11");
    store.force_merge("").unwrap();
    disks.push(settled(&disk));
    disks
}

/// Samples, what an answer says of itself, and the files that the start names; opens a copy.
fn look(disk: &SimVfs) -> (Samples, Vec<String>, Vec<String>) {
    let store = stores::open(&copy(disk), stores::config());
    let (found, said) = partial(&store, TimeRange::ALL);
    (found, said, store.damage().into_iter().map(|damage| damage.file).collect())
}

fn with_older(disk: &SimVfs, older: &SimVfs, path: &Path) -> Option<SimVfs> {
    let old = older.read(path).ok()?;
    (old != disk.read(path).unwrap()).then(|| {
        let disk = copy(disk);
        damaged::write(&disk, path, &old);
        settled(&disk)
    })
}

#[test]
fn older_manifest_of_a_partition_is_named_after_every_change() {
    let disks = history();
    let path = Path::new(MANIFEST);
    let mut swapped = 0;
    for (now, disk) in disks.iter().enumerate() {
        let (truth, said, named) = look(disk);
        assert_eq!((said, named), (Vec::new(), Vec::new()), "step {now}: a whole store");
        assert_eq!(verify(disk).problems, Vec::<String>::new(), "step {now}");
        for (then, older) in disks[..now].iter().enumerate() {
            let disk = with_older(disk, older, path).expect("each change writes another manifest");
            let context = format!("the manifest of step {then} at step {now}");
            let problems = verify(&disk).problems;
            assert!(
                problems.iter().any(|one| one.contains("older copy")),
                "{context}: {problems:?}"
            );
            let (found, said, named) = look(&disk);
            assert!(said.iter().any(|one| one.contains("MANIFEST")), "{context}: {said:?}");
            assert!(named.iter().any(|file| path.ends_with(file)), "{context}: {named:?}");
            assert!(truth.keys().all(|sample| found.contains_key(sample)), "{context}");
            repair(&disk).unwrap();
            assert_eq!(verify(&disk).problems, Vec::<String>::new(), "{context}: repaired");
            swapped += 1;
        }
    }
    assert_eq!(swapped, disks.len() * (disks.len() - 1) / 2);
}

#[test]
fn older_copy_of_any_file_never_changes_answers_in_silence() {
    let disks = history();
    for (now, disk) in disks.iter().enumerate() {
        let (truth, _, _) = look(disk);
        let paths: Vec<PathBuf> = files(disk, damaged::DATA);
        for (path, older) in
            paths.iter().flat_map(|path| disks[..now].iter().map(move |o| (path, o)))
        {
            let Some(disk) = with_older(disk, older, path) else { continue };
            let (found, said, _) = look(&disk);
            let is_same = found == truth;
            assert!(is_same || !said.is_empty(), "step {now}: {} changes samples", path.display());
        }
    }
}

/// Retention removes parts with a manifest that has no new part.
#[test]
fn older_manifest_is_named_after_parts_expired() {
    let disk = SimVfs::new(2);
    let hour = 3600 * SECOND;
    disk.set_now(TURN + 2 * hour);
    let store = stores::open_keeping(&disk, Some(24 * hour));
    append_and_flush(&store, 0);
    disk.set_now(TURN + 20 * hour);
    damaged::append(&store, 0..5, TURN + 20 * hour);
    store.flush().unwrap();
    let older = settled(&disk);
    disk.set_now(TURN + 30 * hour);
    store.expire().unwrap();
    let disk = settled(&disk);
    let swapped = with_older(&disk, &older, Path::new(MANIFEST)).expect("a part has gone");
    let problems = verify(&swapped).problems;
    assert!(problems.iter().any(|one| one.contains("older copy")), "{problems:?}");
    assert!(!look(&swapped).1.is_empty());
}

/// The manifest of the partition is durable before the root manifest names it.
#[test]
fn crash_between_the_two_manifests_is_no_damage() {
    let base = history().remove(2);
    let mut deaths = 0;
    for death in 1.. {
        let disk = copy(&base);
        let store = stores::open(&disk, stores::config());
        disk.fail_after(disk.operations() + death);
        let matcher = Matcher::new("host", MatchOp::Equal, "h3");
        let is_done =
            store.delete(&[vec![matcher]], TimeRange::ALL).is_ok() && store.force_merge("").is_ok();
        drop(store);
        for disk in [disk.crash(), disk.kill()] {
            let (_, said, named) = look(&disk);
            assert_eq!((said, named), (Vec::new(), Vec::new()), "died at operation {death}");
        }
        if is_done {
            break;
        }
        deaths += 1;
    }
    assert!(10 < deaths, "{deaths}");
}

#[test]
fn flush_and_merge_round_write_the_root_manifest_once() {
    let disk = SimVfs::new(3);
    disk.set_now(TURN + 7200 * SECOND);
    let hooked = HookVfs::new(&disk);
    let store =
        Store::open(Arc::new(hooked.clone()), Path::new(damaged::DATA), stores::config()).unwrap();
    append_and_flush(&store, 0);
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    hooked.set(move |operation, path| {
        let is_root = path == Path::new(ROOT) || path == Path::new("/data/MANIFEST.tmp");
        if operation == "rename" && is_root {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    let written = |what: &dyn Fn()| {
        let before = count.load(Ordering::Relaxed);
        what();
        count.load(Ordering::Relaxed) - before
    };
    damaged::append(&store, 0..50, TURN + 900 * SECOND);
    // The log's next segment is named before its first record, and the flush names the manifest.
    assert_eq!(written(&|| store.flush().unwrap()), 1, "a flush");
    damaged::append(&store, 0..50, TURN + 910 * SECOND);
    assert_eq!(written(&|| store.flush().unwrap()), 1, "a flush");
    assert_eq!(written(&|| store.flush().unwrap()), 0, "nothing to flush");
    assert_eq!(written(&|| store.force_merge("").unwrap()), 1, "a merge round");
    assert_eq!(written(&|| store.force_merge("").unwrap()), 0, "nothing to merge");
    assert_eq!(written(&|| delete(&store, "h3")), 1, "a deletion");
    assert_eq!(disk.list(Path::new(SECOND_MONTH)).unwrap(), ["MANIFEST", "index", "parts"]);
}
