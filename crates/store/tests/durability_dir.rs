//! What a store's directory goes through: lost and damaged manifests, parts and side files, full
//! disks, months that expire, clocks that jump, kills in between. The store opens, serves what is
//! whole, says what is not, and changes nothing that it cannot prove.

use crate::hooks::{HookVfs, io_error};
use crate::rows::Rows;
use crate::stores;
use model::{MatchOp, Matcher, Metadata, TimeRange};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use store::{Durability, Error, Missing, SelectLimits, Store, StoreConfig};
use vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 2024-10-04.
const NOW: i64 = 20_000 * DAY;
const MONTH: &str = "/data/partitions/2024-10";
const LIMITS: SelectLimits =
    SelectLimits { series_max: 1_000_000, deadline: None, cancelled: None, cost_max: u64::MAX };

fn disk(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(NOW);
    disk
}

fn try_open(disk: &SimVfs, config: StoreConfig) -> Result<Arc<Store>, Error> {
    Store::open(Arc::new(disk.clone()), Path::new("/data"), config)
}

fn put(store: &Store, hosts: std::ops::Range<u32>, time: i64) -> Result<u64, Error> {
    let mut rows = Rows::default();
    for host in hosts {
        let value = f64::from(host);
        rows.push(&store.hasher(), &[("host", &format!("h{host}"))], time, &[("m", value)]);
    }
    store.append(&rows.batch(), Durability::Synced).map(|appended| appended.samples)
}

/// By host and time, the values; every host's values are its number.
fn read(store: &Store, range: TimeRange) -> Result<BTreeMap<(String, i64), f64>, Error> {
    let set = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    // What is lost is counted where a test loses something.
    let missing = Missing::new();
    let selection = store.noting(&missing).select(&[set], range, &LIMITS)?;
    let mut out = BTreeMap::new();
    selection.read(0..selection.len(), &mut |idx, times, values| {
        let labels = selection.labels(idx).unwrap();
        let host = labels.get("host").unwrap().to_string();
        for (time, value) in times.iter().zip(values) {
            assert_eq!(host, format!("h{value}"), "a sample of another host");
            out.insert((host.clone(), *time), *value);
        }
    })?;
    Ok(out)
}

fn count(store: &Store) -> usize {
    read(store, TimeRange::ALL).unwrap().len()
}

/// A value of many bits, so that parts are large.
fn fill(store: &Store, round: u32) {
    let mut random = rng::Random(u64::from(round));
    let mut rows = Rows::default();
    for host in 0..300 {
        for t in 0..20 {
            let value = random.below(1 << 50) as f64;
            let time = NOW + i64::from(round * 20 + t) * SECOND;
            rows.push(&store.hasher(), &[("host", &format!("h{host}"))], time, &[("m", value)]);
        }
    }
    store.append(&rows.batch(), Durability::Synced).unwrap();
}

fn samples(store: &Store) -> usize {
    let selection = store.select(&[], TimeRange::ALL, &LIMITS).unwrap();
    let mut count = 0;
    selection.read(0..selection.len(), &mut |_, times, _| count += times.len()).unwrap();
    count
}

fn list(disk: &SimVfs, folder: &str) -> Vec<String> {
    disk.list(Path::new(folder)).unwrap()
}

/// All files and folders below a path, with sizes.
fn tree(disk: &SimVfs, path: &Path, out: &mut Vec<(PathBuf, u64)>) {
    for name in disk.list(path).unwrap() {
        let path = path.join(name);
        match disk.size(&path) {
            Ok(size) => out.push((path, size)),
            Err(_) => tree(disk, &path, out),
        }
    }
}

fn files(disk: &SimVfs) -> Vec<(PathBuf, u64)> {
    let mut out = Vec::new();
    tree(disk, Path::new("/data"), &mut out);
    out.retain(|(path, _)| !path.ends_with("quipu.lock"));
    out
}

fn problems(disk: &SimVfs) -> Vec<String> {
    let report = store::verify(Arc::new(disk.clone()), Path::new("/data"), &mut |_| ()).unwrap();
    report.problems.iter().map(ToString::to_string).collect()
}

/// Replaces a file.
fn overwrite(disk: &SimVfs, path: &Path, bytes: &[u8]) {
    vfs::write_atomic(disk, path, bytes).unwrap();
}

// ------------------------------------------------------------------------------ full disks

#[test]
fn a_merge_without_room_takes_none() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    for round in 0..4 {
        fill(&store, round);
        store.flush().unwrap();
    }
    let parts = || list(&disk, &format!("{MONTH}/parts"));
    let before = parts();
    assert_eq!(before.len(), 4);
    disk.set_free_space(100_000);
    for _ in 0..2 {
        let merged = store.force_merge("");
        assert!(matches!(merged, Err(Error::NoRoom { .. })), "{merged:?}");
        assert_eq!(parts(), before);
        assert_eq!(disk.free_space(Path::new("/data")).unwrap(), 100_000);
    }
    store.merge_as_needed().unwrap();
    assert_eq!(store.read_only_reason(), None);
    disk.set_free_space(1 << 30);
    store.force_merge("").unwrap();
    assert_eq!(parts().len(), 1);
    assert_eq!(samples(&store), 4 * 300 * 20);
}

#[test]
fn a_merge_that_fills_the_disk_gives_the_room_back_and_waits() {
    let disk = disk(1);
    let hook = HookVfs::new(&disk);
    let vfs = Arc::new(hook.clone());
    let store = Store::open(vfs, Path::new("/data"), stores::config()).unwrap();
    for round in 0..8 {
        fill(&store, round);
        store.flush().unwrap();
    }
    let parts = || list(&disk, &format!("{MONTH}/parts"));
    let before = parts();
    let tries = Arc::new(Mutex::new(0));
    let (room, counted) = (disk.clone(), tries.clone());
    hook.set(move |operation, path| {
        if operation == "create" && path.extension().is_some_and(|e| e == "part") {
            *counted.lock().unwrap() += 1;
            room.set_free_space(1000);
        }
        Ok(())
    });
    for expected in [1, 1] {
        disk.set_free_space(1 << 30);
        drop(store.merge_as_needed());
        assert_eq!(*tries.lock().unwrap(), expected, "not each round");
        assert_eq!(parts(), before);
    }
    disk.set_free_space(1 << 30);
    disk.advance(SECOND as u64);
    drop(store.merge_as_needed());
    assert_eq!((*tries.lock().unwrap(), parts()), (2, before));
    assert_eq!(disk.free_space(Path::new("/data")).unwrap(), 1000, "nothing is kept");
    assert_eq!(store.read_only_reason(), None);
    hook.set(|_, _| Ok(()));
    disk.set_free_space(1 << 30);
    disk.advance(2 * SECOND as u64);
    store.merge_as_needed().unwrap();
    assert_eq!(parts().len(), 1);
    drop(store);
    let store = stores::open(&disk.crash(), stores::config());
    assert_eq!(samples(&store), 8 * 300 * 20);
}

#[test]
fn a_flush_without_room_is_done_later_and_a_merge_too() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    for round in 0..2 {
        put(&store, 0..10, NOW + round).unwrap();
        store.flush().unwrap();
    }
    put(&store, 0..10, NOW + 2).unwrap();
    for room in [0, 10, 100] {
        disk.set_free_space(room);
        store.flush().expect_err("no room");
        assert_eq!(list(&disk, &format!("{MONTH}/parts")).len(), 2, "nothing half written stays");
    }
    disk.set_free_space(1 << 30);
    store.force_merge("").unwrap();
    assert_eq!(store.read_only_reason(), None);
    store.flush().unwrap();
    store.force_merge("").unwrap();
    assert_eq!(count(&store), 30);
    drop(store);
    let disk = disk.crash();
    assert_eq!(count(&stores::open(&disk, stores::config())), 30);
    assert_eq!(problems(&disk), Vec::<String>::new());
}

/// A start makes the directory and dies before its name is durable; the next one finds it. Before,
/// that one synced nothing above it: what it acknowledged went with the name when power failed.
#[test]
fn a_directory_that_somebody_else_made_is_durable_before_it_is_used() {
    for failed_calls in 0..3 {
        let disk = SimVfs::new(7);
        disk.set_now(NOW);
        disk.fail_syncs(failed_calls);
        for _ in 0..failed_calls {
            let refused = Store::open(Arc::new(disk.clone()), Path::new("/data"), stores::config());
            assert!(refused.is_err());
        }
        let disk = disk.kill();
        let store = stores::open(&disk, stores::config());
        put(&store, 0..10, NOW).unwrap();
        let disk = disk.crash();
        drop(store);
        let found = count(&stores::open(&disk, stores::config()));
        assert_eq!(found, 10, "after {failed_calls} starts");
    }
}

#[test]
fn a_month_that_cannot_be_flushed_does_not_keep_the_others() {
    let disk = disk(1);
    let hook = HookVfs::new(&disk);
    let vfs = Arc::new(hook.clone());
    let store = Store::open(vfs, Path::new("/data"), stores::config()).unwrap();
    put(&store, 0..10, NOW - 60 * DAY).unwrap();
    put(&store, 0..10, NOW).unwrap();
    hook.set(|operation, path| {
        let is_older = path.to_string_lossy().contains("2024-08/parts");
        match operation == "create" && is_older {
            true => Err(io_error("create", path, std::io::ErrorKind::StorageFull)),
            false => Ok(()),
        }
    });
    store.flush().expect_err("no room in one month");
    assert_eq!(list(&disk, &format!("{MONTH}/parts")).len(), 1);
    assert!(0 < store.stats().wal_bytes, "the log keeps what is not flushed");
    drop(store);
    assert_eq!(count(&stores::open(&disk.crash(), stores::config())), 20);
}

#[test]
fn a_directory_that_cannot_be_synced_latches_even_for_want_of_room() {
    for (operation, folder) in [("sync directory", MONTH), ("rename", MONTH)] {
        let disk = disk(1);
        let hook = HookVfs::new(&disk);
        let vfs = Arc::new(hook.clone());
        let store = Store::open(vfs, Path::new("/data"), stores::config()).unwrap();
        put(&store, 0..10, NOW).unwrap();
        store.flush().unwrap();
        put(&store, 0..10, NOW + 1).unwrap();
        hook.set(move |told, path| {
            let is_it = told == operation && path.starts_with(folder);
            let is_manifest = path.ends_with("MANIFEST.tmp") || path.ends_with("2024-10");
            match is_it && is_manifest {
                true => Err(io_error(operation, path, std::io::ErrorKind::StorageFull)),
                false => Ok(()),
            }
        });
        store.flush().expect_err("no room");
        assert!(store.read_only_reason().is_some(), "{operation}");
        drop(store);
        assert_eq!(count(&stores::open(&disk.crash(), stores::config())), 20);
    }
}

// ------------------------------------------------------------------------------ damage

/// The first index segment of the month.
fn segment(disk: &SimVfs) -> PathBuf {
    Path::new(MONTH).join("index").join(&list(disk, &format!("{MONTH}/index"))[0])
}

#[test]
fn a_month_without_its_index_is_kept_and_the_others_serve() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, 0..10, NOW).unwrap();
    put(&store, 0..10, NOW - 60 * DAY).unwrap();
    store.flush().unwrap();
    put(&store, 0..10, NOW + 1).unwrap();
    drop(store);
    let segment = segment(&disk);
    let bytes = disk.read(&segment).unwrap();
    disk.remove(&segment).unwrap();
    for round in 0..2 {
        let store = stores::open(&disk, stores::config());
        let damaged = store.damaged_partitions();
        assert_eq!(damaged.len(), 1);
        assert_eq!(count(&store), 10 + round, "the other month");
        let refused = put(&store, 0..10, NOW + 2);
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
        put(&store, 0..1, NOW - 60 * DAY + 1 + round as i64).unwrap();
        store.flush().unwrap();
        let deleted = store.delete(&[vec![Matcher::equal("host", "x")]], TimeRange::ALL);
        assert!(matches!(deleted, Err(Error::Damaged { .. })), "{deleted:?}");
        store.force_merge("").unwrap();
        assert_eq!(store.stats().damaged_partitions, 1);
        store.close().unwrap();
    }
    // It comes back, and so do its records, which the log has kept.
    overwrite(&disk, &segment, &bytes);
    let store = stores::open(&disk, stores::config());
    assert_eq!(count(&store), 10 + 10 + 10 + 2);
    assert_eq!(store.damaged_partitions(), []);
}

#[test]
fn a_look_that_fails_is_no_absence() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, 0..10, NOW).unwrap();
    store.flush().unwrap();
    drop(store);
    let before = files(&disk);
    let hook = HookVfs::new(&disk);
    hook.set(|operation, path| {
        match operation == "look for" && path.ends_with("2024-10/MANIFEST") {
            true => Err(io_error("look for", path, std::io::ErrorKind::Other)),
            false => Ok(()),
        }
    });
    let store = Store::open(Arc::new(hook), Path::new("/data"), stores::config()).unwrap();
    assert_eq!((count(&store), store.damaged_partitions().len()), (0, 1));
    drop(store);
    let still: Vec<_> = files(&disk).into_iter().filter(|f| before.contains(f)).collect();
    assert_eq!(still, before, "nothing has gone");
    assert_eq!(count(&stores::open(&disk, stores::config())), 10);
}

#[test]
fn a_rotten_segment_costs_its_month() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, 0..10, NOW).unwrap();
    put(&store, 0..10, NOW - 60 * DAY).unwrap();
    store.flush().unwrap();
    drop(store);
    let path = segment(&disk);
    let size = disk.size(&path).unwrap();
    disk.flip_bit(&path, size - 6, 3).unwrap();
    let before = files(&disk);
    let store = stores::open(&disk, stores::config());
    assert_eq!((count(&store), store.damaged_partitions().len()), (10, 1));
    assert_eq!(store.damage().len(), 1);
    let name = store.create_snapshot().unwrap();
    store.close().unwrap();
    drop(store);
    assert!(before.iter().all(|one| files(&disk).contains(one)), "nothing has gone");
    let copy = format!("/data/snapshots/{name}/partitions/2024-10");
    assert_eq!(list(&disk, &copy), list(&disk, MONTH), "all of it is in the snapshot");
}

#[test]
fn records_that_cannot_be_replayed_cost_their_month() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, 0..10, NOW).unwrap();
    put(&store, 0..10, NOW - 60 * DAY).unwrap();
    store.flush().unwrap();
    let manifest = Path::new(MONTH).join("MANIFEST");
    let old = disk.read(&manifest).unwrap();
    put(&store, 10..20, NOW).unwrap();
    store.flush().unwrap();
    let new = disk.read(&manifest).unwrap();
    put(&store, 0..20, NOW + 1).unwrap();
    drop(store);
    // An old manifest: the log speaks of series that it does not know.
    overwrite(&disk, &manifest, &old);
    // It would say that the manifest is old.
    disk.remove(Path::new("/data/MANIFEST")).unwrap();
    for _ in 0..2 {
        let store = stores::open(&disk, stores::config());
        let damaged = store.damaged_partitions();
        assert!(damaged[0].reason.contains("unknown entity"), "{damaged:?}");
        assert_eq!(count(&store), 10);
        store.close().unwrap();
    }
    overwrite(&disk, &manifest, &new);
    assert_eq!(count(&stores::open(&disk, stores::config())), 10 + 20 + 20);
}

#[test]
fn a_part_that_cannot_be_opened_stays_and_is_never_merged_over() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    // Each part overwrites what the one before says.
    for round in 0..5 {
        put(&store, 0..10, NOW).unwrap();
        put(&store, round * 10..round * 10 + 10, NOW + 1).unwrap();
        store.flush().unwrap();
    }
    store.delete(&[vec![Matcher::equal("host", "h7")]], TimeRange::ALL).unwrap();
    drop(store);
    let parts = format!("{MONTH}/parts");
    let third = Path::new(&parts).join(&list(&disk, &parts)[2]);
    for kind in [std::io::ErrorKind::Other, std::io::ErrorKind::NotFound] {
        let hook = HookVfs::new(&disk);
        let bad = third.clone();
        hook.set(move |operation, path| match operation == "map" && path == bad {
            true => Err(io_error("map", path, kind)),
            false => Ok(()),
        });
        let store = Store::open(Arc::new(hook), Path::new("/data"), stores::config()).unwrap();
        assert_eq!((store.stats().lost_parts, store.stats().corrupt_parts_total), (1, 1));
        assert_eq!(count(&store), 9 + 40 - 1);
        store.force_merge("").unwrap();
        assert_eq!(list(&disk, &parts).len(), 3, "two before it, it, two behind it");
        store.close().unwrap();
    }
    assert!(disk.exists(&third).unwrap());
    let store = stores::open(&disk, stores::config());
    store.force_merge("").unwrap();
    assert_eq!(list(&disk, &parts).len(), 1);
    assert_eq!(count(&store), 9 + 50 - 1, "the deletion waited for it");
}

/// A damaged part is found when the store opens, which dies at each step.
#[test]
fn no_kill_loses_a_part_that_is_damaged_at_the_start() {
    for step in 0..20 {
        let disk = disk(step);
        let store = stores::open(&disk, stores::config());
        for round in 0..2 {
            put(&store, 0..10, NOW + round).unwrap();
            store.flush().unwrap();
        }
        drop(store);
        let parts = format!("{MONTH}/parts");
        let bad = Path::new(&parts).join(&list(&disk, &parts)[0]);
        let size = disk.size(&bad).unwrap();
        disk.flip_bit(&bad, size - 10, 3).unwrap();
        disk.fail_after(disk.operations() + step);
        let _ = try_open(&disk, stores::config()).map(drop);
        let after = disk.crash();
        let store = stores::open(&after, stores::config());
        assert_eq!((count(&store), store.stats().lost_parts), (10, 1), "step {step}");
        assert!(after.exists(&bad).unwrap(), "step {step}");
    }
}

/// The same when a reader finds it, in a page.
#[test]
fn no_kill_loses_a_part_that_is_damaged_while_it_is_read() {
    for step in 0..10 {
        let disk = disk(step);
        let store = stores::open(&disk, stores::config());
        for round in 0..2 {
            put(&store, 0..10, NOW + round).unwrap();
            store.flush().unwrap();
        }
        drop(store);
        let parts = format!("{MONTH}/parts");
        let before = list(&disk, &parts);
        disk.flip_bit(&Path::new(&parts).join(&before[0]), 24, 3).unwrap();
        let store = stores::open(&disk, stores::config());
        drop(read(&store, TimeRange::ALL));
        disk.fail_after(disk.operations() + step);
        drop(read(&store, TimeRange::ALL));
        drop(store.force_merge(""));
        drop(store);
        let after = disk.crash();
        let store = stores::open(&after, stores::config());
        assert_eq!(store.stats().parts, 2, "step {step}");
        drop(store);
        assert_eq!(list(&after, &parts), before, "step {step}");
    }
}

#[test]
fn a_merge_that_meets_damage_leaves_that_part_out_from_then_on() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    for round in 0..4 {
        put(&store, 0..10, NOW + round).unwrap();
        store.flush().unwrap();
    }
    drop(store);
    let parts = format!("{MONTH}/parts");
    disk.flip_bit(&Path::new(&parts).join(&list(&disk, &parts)[1]), 24, 3).unwrap();
    let store = stores::open(&disk, stores::config());
    let merged = store.force_merge("");
    assert!(matches!(merged, Err(Error::Corrupt { .. })), "{merged:?}");
    assert_eq!(list(&disk, &parts).len(), 4);
    assert_eq!(store.damage().len(), 1);
    store.force_merge("").unwrap();
    assert_eq!(list(&disk, &parts).len(), 3, "the last two");
    assert_eq!(store.read_only_reason(), None);
}

#[test]
fn damaged_side_files_cost_themselves() {
    let disk = disk(1);
    let config = StoreConfig { retention_ns: Some(100 * DAY), ..stores::config() };
    let store = stores::open(&disk, config.clone());
    let metadata = |metric: &str| Metadata { metric: metric.into(), ..Metadata::default() };
    store.put_metadata(&[metadata("a")]).unwrap();
    put(&store, 0..10, NOW).unwrap();
    put(&store, 0..10, NOW - 60 * DAY).unwrap();
    store.flush().unwrap();
    disk.set_now(NOW + 90 * DAY);
    store.expire().unwrap();
    store.close().unwrap();
    drop(store);
    for name in ["metadata", "metadata.copy", "dropped", "clock"] {
        disk.flip_bit(&Path::new("/data").join(name), 8, 3).unwrap();
    }
    let store = stores::open(&disk, config);
    let noted: Vec<String> = store.damage().into_iter().map(|note| note.file).collect();
    assert_eq!(noted, ["metadata", "dropped", "clock"]);
    assert_eq!((count(&store), store.metadata(None, 9).len()), (10, 0));
    store.put_metadata(&[metadata("b")]).unwrap();
    store.close().unwrap();
    let names = list(&disk, "/data");
    let set_aside = ["metadata", "metadata.copy", "dropped", "clock"];
    let set_aside = set_aside.map(|name| format!("{name}.corrupt"));
    let written = ["metadata", "metadata.copy", "clock"].map(str::to_string);
    for name in set_aside.into_iter().chain(written) {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
}

#[test]
fn a_newer_version_of_anything_opens_nothing_and_changes_nothing() {
    let names = [
        "metadata",
        "metadata.copy",
        "exemplars",
        "dropped",
        "clock",
        "partitions/2024-10/MANIFEST",
    ];
    for name in names {
        let disk = disk(1);
        let store = stores::open(&disk, stores::config());
        put(&store, 0..10, NOW).unwrap();
        store.flush().unwrap();
        put(&store, 0..10, NOW + 1).unwrap();
        drop(store);
        // A stray that would go, and a damaged file that would be set aside.
        let stray = Path::new(MONTH).join("parts/00000000000000ff.part");
        overwrite(&disk, &stray, b"x");
        let path = Path::new("/data").join(name);
        let other = match name {
            "metadata" | "metadata.copy" => "exemplars",
            _ => "metadata",
        };
        overwrite(&disk, &Path::new("/data").join(other), b"rotten");
        let kind: &[u8] = match name {
            "metadata" | "metadata.copy" => b"QPMETAD3",
            "exemplars" => b"QPEXEMP2",
            "dropped" => b"QPDROPS2",
            "clock" => b"QPCLOCK2",
            _ => b"QPMANIF3",
        };
        let mut bytes = [kind, b"what a newer program writes"].concat();
        bytes.extend(codec::crc32(&bytes).to_le_bytes());
        overwrite(&disk, &path, &bytes);
        let before = files(&disk);
        let refused = try_open(&disk, stores::config()).err();
        let Some(error @ Error::UnknownVersion { .. }) = refused else { panic!("{refused:?}") };
        for word in [name, "newer Quipu", "nothing was changed"] {
            assert!(error.to_string().contains(word), "{error}");
        }
        assert_eq!(files(&disk), before, "{name}");
    }
}

#[test]
fn files_that_nobody_knows_stay() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    for round in 0..3 {
        put(&store, 0..10, NOW + round).unwrap();
        store.flush().unwrap();
    }
    // Numbers 1 to 3 may go, says the manifest.
    store.force_merge("").unwrap();
    let path = |name: &str| Path::new(MONTH).join(name);
    let second = path("parts/0000000000000002.part");
    drop(store);
    overwrite(&disk, &second, b"x");
    let store = stores::open(&disk, stores::config());
    assert!(!disk.exists(&second).unwrap());
    // The next one does not speak of them any more.
    put(&store, 0..10, NOW + 3).unwrap();
    store.close().unwrap();
    drop(store);
    let strays = ["parts/0000000000000002.part", "parts/notes.txt", "index/a.seg"];
    let leftovers = ["parts/00000000000000aa.part", "index/00000000-00000001-0000ff.seg"];
    for name in strays.iter().chain(&leftovers) {
        overwrite(&disk, &path(name), b"x");
    }
    for _ in 0..2 {
        let store = stores::open(&disk, stores::config());
        assert_eq!((count(&store), store.stats().orphans), (40, 3));
        assert!(strays.iter().all(|name| disk.exists(&path(name)).unwrap()));
        assert!(!leftovers.iter().any(|name| disk.exists(&path(name)).unwrap()));
    }
}

// ------------------------------------------------------------------------------ retention

fn keeping(days: i64) -> StoreConfig {
    StoreConfig { retention_ns: Some(days * DAY), ..stores::config() }
}

#[test]
fn a_month_that_expires_while_it_is_merged_goes_later() {
    let disk = disk(1);
    let hook = HookVfs::new(&disk);
    let vfs = Arc::new(hook.clone());
    let store = Store::open(vfs, Path::new("/data"), keeping(100)).unwrap();
    for round in 0..2 {
        put(&store, 0..10, NOW + round).unwrap();
        store.flush().unwrap();
    }
    let (weak, clock) = (Arc::downgrade(&store), disk.clone());
    let mut is_armed = true;
    hook.set(move |operation, path| {
        if operation == "create"
            && path.extension().is_some_and(|e| e == "part")
            && std::mem::take(&mut is_armed)
        {
            clock.set_now(NOW + 200 * DAY);
            weak.upgrade().unwrap().expire().unwrap();
        }
        Ok(())
    });
    store.force_merge("").unwrap();
    assert_eq!(store.read_only_reason(), None);
    assert_eq!(list(&disk, "/data/partitions"), ["2024-10"]);
    store.expire().unwrap();
    assert_eq!(list(&disk, "/data/partitions"), Vec::<String>::new());
    store.force_merge("").unwrap();
    assert_eq!(list(&disk, "/data/partitions"), Vec::<String>::new(), "nothing makes it anew");
    assert_eq!(store.read_only_reason(), None);
}

#[test]
fn a_clock_is_trusted_by_what_drops_samples_without_a_retention_too() {
    let disk = disk(1);
    let config = StoreConfig { retention_clock_wait_ns: DAY, ..stores::config() };
    let mut store = stores::open(&disk, config.clone());
    put(&store, 0..10, NOW).unwrap();
    assert_eq!(store.trusted_now(), store.now());
    for restart in [false, true] {
        disk.set_now(NOW + 800 * DAY);
        if restart {
            drop(store);
            store = stores::open(&disk, config.clone());
        }
        let ahead = store.now() - store.trusted_now();
        assert!(799 * DAY < ahead, "{ahead}");
        disk.set_now(NOW);
        assert_eq!(store.trusted_now(), store.now(), "set back, it is followed at once");
    }
    disk.set_now(NOW + 800 * DAY);
    store.trusted_now();
    disk.advance(DAY as u64 + 1);
    assert_eq!(store.trusted_now(), store.now(), "it stayed there for a day");
}

#[test]
fn a_clock_that_jumps_ahead_and_back_drops_nothing() {
    let disk = disk(1);
    let config = StoreConfig { retention_clock_wait_ns: DAY, ..keeping(365) };
    let mut store = stores::open(&disk, config.clone());
    put(&store, 0..10, NOW).unwrap();
    store.expire().unwrap();
    for restart in [false, true] {
        disk.set_now(NOW + 800 * DAY);
        if restart {
            drop(store);
            store = stores::open(&disk, config.clone());
        }
        store.expire().unwrap();
        assert_eq!(count(&store), if restart { 22 } else { 10 }, "nothing is hidden, either");
        let (ahead, left) = store.retention_clock_waits().unwrap();
        assert!(799 * DAY < ahead && left <= DAY, "{ahead} {left}");
        // Samples arrive meanwhile, of the jumped clock and of those of other machines.
        put(&store, 20..21, NOW + 800 * DAY).unwrap();
        put(&store, 30..31, NOW + SECOND).unwrap();
        disk.advance(3600 * SECOND as u64);
        store.expire().unwrap();
        disk.set_now(NOW + SECOND);
        put(&store, 100..110, NOW + SECOND).unwrap();
        assert_eq!(count(&store), 22);
        assert_eq!(store.retention_clock_waits(), None);
    }
    drop(store);
    let store = stores::open(&disk.crash(), config);
    assert_eq!(count(&store), 22);
}

#[test]
fn a_clock_that_stays_ahead_is_believed() {
    let disk = disk(1);
    let config = StoreConfig { retention_clock_wait_ns: DAY, ..keeping(365) };
    let store = stores::open(&disk, config);
    put(&store, 0..10, NOW).unwrap();
    store.flush().unwrap();
    disk.set_now(NOW + 800 * DAY);
    for _ in 0..24 {
        store.expire().unwrap();
        assert_eq!(count(&store), 10);
        disk.advance(3600 * SECOND as u64);
    }
    store.expire().unwrap();
    assert_eq!((count(&store), list(&disk, "/data/partitions").len()), (0, 0));
}

/// Who insists drops at once; then no sample of the new hosts is ever one of the old.
#[test]
fn a_month_made_anew_never_takes_old_records_for_its_own() {
    for flush in [false, true] {
        let disk = disk(1);
        let store = stores::open(&disk, keeping(365));
        put(&store, 0..10, NOW).unwrap();
        if flush {
            store.flush().unwrap();
            put(&store, 0..12, NOW + 5).unwrap();
        }
        disk.set_now(NOW + 800 * DAY);
        store.expire().unwrap();
        assert_eq!(list(&disk, "/data/partitions"), Vec::<String>::new());
        disk.set_now(NOW + SECOND);
        assert_eq!(count(&store), 0);
        put(&store, 100..110, NOW + SECOND).unwrap();
        drop(store);
        let mut disk = disk.crash();
        for round in 1..4 {
            let store = stores::open(&disk, keeping(365));
            let found = read(&store, TimeRange::ALL).unwrap();
            assert_eq!(found.len(), 10 * round, "{found:?}");
            assert_eq!(store.damaged_partitions(), []);
            put(&store, 100..110, NOW + SECOND + round as i64).unwrap();
            if round == 2 {
                store.flush().unwrap();
            }
            drop(store);
            disk = disk.crash();
        }
    }
}

/// Old months go and the machine dies at each step; the month is there or gone, and comes anew.
#[test]
fn no_kill_while_a_month_is_dropped_mixes_hosts_up() {
    for step in 0..40 {
        let disk = disk(step);
        let store = stores::open(&disk, keeping(365));
        put(&store, 0..10, NOW).unwrap();
        store.flush().unwrap();
        put(&store, 5..15, NOW + 1).unwrap();
        disk.set_now(NOW + 800 * DAY);
        disk.fail_after(disk.operations() + step);
        let expired = store.expire();
        drop(store);
        let after = disk.crash();
        after.set_now(NOW + 2);
        let store = stores::open(&after, keeping(365));
        assert_eq!(store.damaged_partitions(), [], "step {step}");
        let found = read(&store, TimeRange::ALL).unwrap().len();
        assert!([0, 10, 20].contains(&found), "step {step}: {found}");
        assert!(expired.is_err() || found == 0, "step {step}: {found}");
        put(&store, 100..110, NOW + 2).unwrap();
        assert_eq!(count(&store), found + 10, "step {step}");
        drop(store);
        let after = after.crash();
        let store = stores::open(&after, keeping(365));
        assert_eq!(count(&store), found + 10, "step {step}");
        store.close().unwrap();
        drop(store);
        assert_eq!(problems(&after), Vec::<String>::new(), "step {step}");
    }
}

/// The log has records of a month that was dropped, and of the same month made anew. A lost or
/// damaged `dropped` must not give the samples of one to the series of the other.
#[test]
fn samples_of_a_month_made_anew_keep_their_series_without_dropped() {
    for (damage, is_manifest_damaged) in
        [("remove", false), ("flip", false), ("remove", true), ("flip", true)]
    {
        let disk = disk(1);
        let store = stores::open(&disk, keeping(365));
        put(&store, 0..10, NOW).unwrap();
        disk.set_now(NOW + 800 * DAY);
        store.expire().unwrap();
        disk.set_now(NOW + 2);
        put(&store, 50..60, NOW + 2).unwrap();
        let expected = read(&store, TimeRange::ALL).unwrap();
        assert_eq!(expected.len(), 10);
        drop(store);
        let after = disk.crash();
        let file = Path::new("/data/dropped");
        match damage {
            "remove" => after.remove(file).unwrap(),
            _ => after.flip_bit(file, 9, 1).unwrap(),
        }
        if is_manifest_damaged {
            after.flip_bit(&Path::new(MONTH).join("MANIFEST"), 9, 1).unwrap();
        }
        let store = stores::open(&after, keeping(365));
        assert_eq!(store.damaged_partitions(), [], "{damage}");
        assert_eq!(read(&store, TimeRange::ALL).unwrap(), expected, "{damage}");
        let is_noted = store.damage().iter().any(|one| one.file == "dropped");
        assert!(is_noted, "{damage}: {:?}", store.damage());
    }
}

#[test]
fn lost_dictionary_is_reported_and_its_numbers_stay_reserved() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    store.reserve_string_numbers(3).unwrap();
    let reserved = store.reserved_string_number().unwrap();
    assert!(3 <= reserved);
    let metadata = Metadata { metric: "m".into(), ..Metadata::default() };
    store.put_metadata(&[metadata]).unwrap();
    put(&store, 0..10, NOW).unwrap();
    store.flush().unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(problems(&disk), Vec::<String>::new());
    for name in ["metadata", "metadata.copy"] {
        disk.remove(&Path::new("/data").join(name)).unwrap();
    }
    assert_eq!(problems(&disk).len(), 1, "verify misses the files");
    let store = stores::open(&disk, stores::config());
    let noted: Vec<String> = store.damage().into_iter().map(|note| note.file).collect();
    assert_eq!(noted, ["metadata"]);
    assert_eq!(store.reserved_string_number(), Some(reserved));
}

#[test]
fn a_damaged_month_goes_when_it_is_old() {
    let disk = disk(1);
    let store = stores::open(&disk, keeping(365));
    put(&store, 0..10, NOW).unwrap();
    store.flush().unwrap();
    put(&store, 0..10, NOW + 1).unwrap();
    drop(store);
    let segment = segment(&disk);
    disk.flip_bit(&segment, disk.size(&segment).unwrap() - 6, 3).unwrap();
    let store = stores::open(&disk, keeping(365));
    assert_eq!(store.damaged_partitions().len(), 1);
    disk.set_now(NOW + 800 * DAY);
    store.expire().unwrap();
    assert_eq!((store.damaged_partitions(), list(&disk, "/data/partitions")), (vec![], vec![]));
    disk.set_now(NOW + 2);
    put(&store, 50..60, NOW + 2).unwrap();
    drop(store);
    let store = stores::open(&disk.crash(), keeping(365));
    assert_eq!((count(&store), store.damaged_partitions()), (10, vec![]));
}

// ------------------------------------------------------------------------------ snapshots

#[test]
fn snapshots_that_were_never_finished_go() {
    let disk = disk(1);
    let store = stores::open(&disk, stores::config());
    put(&store, 0..10, NOW).unwrap();
    store.flush().unwrap();
    let start = disk.operations();
    store.create_snapshot().unwrap();
    let steps = disk.operations() - start;
    drop(store);
    for cut in 0..steps {
        let store = stores::open(&disk, stores::config());
        disk.fail_after(disk.operations() + cut);
        let _ = store.create_snapshot();
        disk.fail_after(u64::MAX);
        drop(store);
    }
    let store = stores::open(&disk, stores::config());
    let name = store.create_snapshot().unwrap();
    let listed = store.snapshots().unwrap();
    assert_eq!(list(&disk, "/data/snapshots"), listed);
    drop(store);
    let disk = disk.crash();
    let dir = PathBuf::from(format!("/data/snapshots/{name}"));
    let report = store::verify(Arc::new(disk.clone()), &dir, &mut |_| ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    let copy = Store::open(Arc::new(disk), &dir, stores::config()).unwrap();
    assert_eq!(count(&copy), 10);
}

#[test]
fn a_snapshot_is_there_or_gone_whenever_its_deletion_dies() {
    for step in 0..20 {
        let disk = disk(step);
        let store = stores::open(&disk, stores::config());
        put(&store, 0..10, NOW).unwrap();
        let name = store.create_snapshot().unwrap();
        disk.fail_after(disk.operations() + step);
        let _ = store.delete_snapshot(&name);
        drop(store);
        let after = disk.crash();
        let store = stores::open(&after, stores::config());
        let left = store.snapshots().unwrap();
        assert_eq!(list(&after, "/data/snapshots"), left, "step {step}");
        for name in left {
            let dir = PathBuf::from(format!("/data/snapshots/{name}"));
            let copy = Store::open(Arc::new(after.clone()), &dir, stores::config()).unwrap();
            assert_eq!(count(&copy), 10, "step {step}");
        }
    }
}

// ------------------------------------------------------------------------------ threads

#[test]
fn a_panic_in_the_background_is_said_and_latches() {
    let disk = disk(1);
    let hook = HookVfs::new(&disk);
    let config = StoreConfig { background: true, flush_age_ns_max: 0, ..stores::config() };
    let store = Store::open(Arc::new(hook.clone()), Path::new("/data"), config).unwrap();
    hook.set(|operation, path| {
        let is_part = path.extension().is_some_and(|e| e == "part");
        assert!(operation != "create" || !is_part, "simulated bug");
        Ok(())
    });
    put(&store, 0..10, NOW).unwrap();
    let (count, last) = loop {
        match store.failures_since(0) {
            Some(failures) => break failures,
            None => std::thread::yield_now(),
        }
    };
    assert!(1 <= count && last.contains("panic: simulated bug"), "{last}");
    assert!(store.read_only_reason().unwrap().contains("simulated bug"));
    assert!(matches!(put(&store, 0..10, NOW + 1), Err(Error::ReadOnly { .. })));
    store.close().unwrap();
    drop(store);
    assert_eq!(self::count(&stores::open(&disk, stores::config())), 10);
}
