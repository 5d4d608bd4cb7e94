//! What both disks do alike, and what a crash of the simulated one may and may not leave.

use super::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Runs a check on a real directory and on a simulated one.
fn on_both(check: fn(&dyn Vfs, &Path)) {
    let directory = tempfile::tempdir().unwrap();
    check(&RealVfs::new(), directory.path());
    let sim = SimVfs::new(1);
    sim.create_dir_all(Path::new("/data")).unwrap();
    check(&sim, Path::new("/data"));
}

fn write(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = vfs.create(path)?;
    file.append(bytes)?;
    file.sync()
}

#[test]
fn files_are_appended_and_read() {
    on_both(|vfs, dir| {
        let path = dir.join("a");
        let mut file = vfs.create(&path).unwrap();
        file.append(b"one").unwrap();
        file.append(b"two").unwrap();
        assert_eq!(file.size(), 6);
        assert_eq!(vfs.read(&path).unwrap(), b"onetwo");
        file.sync().unwrap();
        assert_eq!(&*vfs.map(&path).unwrap(), b"onetwo");
        assert_eq!(vfs.size(&path).unwrap(), 6);
        assert!(vfs.create(&path).err().unwrap().is_already_there());
        vfs.truncate(&path, 4).unwrap();
        assert_eq!(vfs.read(&path).unwrap(), b"onet");
        assert!(vfs.truncate(&path, 5).is_err(), "a file does not grow so");
        assert!(vfs.map(&dir.join("none")).err().unwrap().is_not_found());
        assert!(vfs.create(&dir.join("none/b")).err().unwrap().is_not_found());
    });
}

#[test]
fn an_empty_file_maps_to_nothing() {
    on_both(|vfs, dir| {
        write(vfs, &dir.join("empty"), b"").unwrap();
        assert!(vfs.map(&dir.join("empty")).unwrap().is_empty());
    });
}

#[test]
fn a_map_outlives_its_file() {
    on_both(|vfs, dir| {
        let path = dir.join("a");
        write(vfs, &path, &[7; 10_000]).unwrap();
        let map = vfs.map(&path).unwrap();
        vfs.remove(&path).unwrap();
        assert!(!vfs.exists(&path).unwrap());
        assert!(map.iter().all(|&byte| byte == 7));
        assert_eq!(map.clone().len(), 10_000);
    });
}

#[test]
fn names_are_listed_changed_and_removed() {
    on_both(|vfs, dir| {
        vfs.create_dir_all(&dir.join("x/y")).unwrap();
        vfs.create_dir_all(&dir.join("x/y")).unwrap();
        write(vfs, &dir.join("x/b"), b"b").unwrap();
        write(vfs, &dir.join("x/a"), b"a").unwrap();
        assert_eq!(vfs.list(&dir.join("x")).unwrap(), ["a", "b", "y"]);
        vfs.rename(&dir.join("x/a"), &dir.join("x/b")).unwrap();
        assert_eq!(vfs.read(&dir.join("x/b")).unwrap(), b"a");
        vfs.hard_link(&dir.join("x/b"), &dir.join("c")).unwrap();
        assert!(vfs.hard_link(&dir.join("x/b"), &dir.join("c")).is_err());
        vfs.rename(&dir.join("x"), &dir.join("z")).unwrap();
        assert_eq!(vfs.list(&dir.join("z")).unwrap(), ["b", "y"]);
        assert!(vfs.remove(&dir.join("z")).is_err(), "a directory");
        vfs.sync_dir(dir).unwrap();
        vfs.remove_dir_all(&dir.join("z")).unwrap();
        assert_eq!(vfs.list(dir).unwrap(), ["c"]);
        assert_eq!(vfs.read(&dir.join("c")).unwrap(), b"a");
        assert!(vfs.list(&dir.join("z")).err().unwrap().is_not_found());
    });
}

#[test]
fn a_lock_is_exclusive_and_names_its_owner() {
    on_both(|vfs, dir| {
        let lock = vfs.lock(dir).unwrap();
        let error = vfs.lock(dir).err().unwrap();
        assert!(error.is_locked());
        let pid = std::process::id().to_string();
        assert!(error.to_string().contains(&pid), "{error}");
        drop(lock);
        vfs.lock(dir).unwrap();
        assert_eq!(vfs.list(dir).unwrap(), [LOCK_FILE]);
    });
}

#[test]
fn there_is_room_time_and_randomness() {
    on_both(|vfs, dir| {
        assert!(0 < vfs.free_space(dir).unwrap());
        assert!(vfs.free_space(&dir.join("none")).is_err());
        assert!(0 <= vfs.now());
        assert_ne!(vfs.random(), vfs.random());
    });
}

#[test]
fn atomic_writes_replace_and_ignore_left_overs() {
    on_both(|vfs, dir| {
        let path = dir.join("manifest");
        write(vfs, &dir.join("manifest.tmp"), b"left over").unwrap();
        write_atomic(vfs, &path, b"first").unwrap();
        write_atomic(vfs, &path, b"second").unwrap();
        assert_eq!(vfs.read(&path).unwrap(), b"second");
        assert_eq!(vfs.list(dir).unwrap(), ["manifest"]);
    });
}

#[test]
fn an_atomic_write_is_old_or_new_after_a_crash_at_any_step() {
    for seed in rng::seeds(0..50) {
        for step in 0.. {
            let vfs = SimVfs::new(seed);
            let path = Path::new("/manifest");
            write_atomic(&vfs, path, b"old content").unwrap();
            vfs.fail_after(vfs.operations() + step);
            let done = write_atomic(&vfs, path, b"new").is_ok();
            let after = vfs.crash();
            let found = after.read(path).unwrap();
            assert!(found == b"new" || (!done && found == b"old content"), "SEED={seed}");
            write_atomic(&after, path, b"next").unwrap();
            if done {
                assert_eq!(step, 5, "create, append, sync, rename, sync directory");
                break;
            }
        }
    }
}

#[test]
fn synced_bytes_survive_and_the_tail_is_torn() {
    let (mut lengths, mut clean) = (BTreeMap::new(), 0);
    for seed in 0..200 {
        let vfs = SimVfs::new(seed);
        let path = Path::new("a");
        let mut file = vfs.create(path).unwrap();
        vfs.sync_dir(Path::new("/")).unwrap();
        file.append(b"kept").unwrap();
        file.sync().unwrap();
        file.append(b"unsynced").unwrap();
        let found = vfs.crash().read(path).unwrap();
        assert!(found.starts_with(b"kept") && found.len() <= 12);
        clean += usize::from(b"keptunsynced".starts_with(&found));
        *lengths.entry(found.len()).or_insert(0) += 1;
    }
    assert_eq!(lengths.len(), 9, "every length occurs: {lengths:?}");
    assert!((50..180).contains(&clean), "some tails are clean, some are not: {clean}");
}

#[test]
fn names_are_lost_or_kept_in_order_within_a_directory() {
    let mut counts = BTreeMap::new();
    for seed in 0..200 {
        let vfs = SimVfs::new(seed);
        for name in ["a", "b", "c"] {
            drop(vfs.create(Path::new(name)).unwrap());
        }
        let names = vfs.crash().list(Path::new("/")).unwrap();
        assert!(["a", "b", "c"].starts_with(&names.iter().map(|n| &**n).collect::<Vec<_>>()));
        *counts.entry(names.len()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 4, "{counts:?}");
}

#[test]
fn a_rename_across_directories_never_loses_the_file() {
    for seed in 0..200 {
        let vfs = SimVfs::new(seed);
        vfs.create_dir_all(Path::new("/from")).unwrap();
        vfs.create_dir_all(Path::new("/to")).unwrap();
        write(&vfs, Path::new("/from/a"), b"x").unwrap();
        vfs.sync_dir(Path::new("/from")).unwrap();
        vfs.rename(Path::new("/from/a"), Path::new("/to/a")).unwrap();
        if seed % 2 == 0 {
            vfs.sync_dir(Path::new("/from")).unwrap();
            assert!(vfs.crash().exists(Path::new("/to/a")).unwrap());
        }
        let after = vfs.crash();
        let places = [Path::new("/from/a"), Path::new("/to/a")];
        assert_eq!(places.iter().filter(|path| after.exists(path).unwrap()).count(), 1);
    }
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let vfs = SimVfs::new(1);
    write(&vfs, Path::new("old"), &[0; 40]).unwrap();
    vfs.set_free_space(10);
    let mut file = vfs.create(Path::new("new")).unwrap();
    file.append(&[1; 8]).unwrap();
    assert!(file.append(&[2; 8]).err().unwrap().is_disk_full());
    assert!(file.append(&[3; 1]).is_err(), "a failed handle stays failed");
    assert_eq!(vfs.free_space(Path::new("/")).unwrap(), 0);
    vfs.remove(Path::new("old")).unwrap();
    assert_eq!(vfs.free_space(Path::new("/")).unwrap(), 40);
    write(&vfs, Path::new("again"), &[4; 40]).unwrap();
}

#[test]
fn failed_syncs_make_nothing_durable_and_are_not_retried() {
    let vfs = SimVfs::new(3);
    let mut file = vfs.create(Path::new("a")).unwrap();
    vfs.fail_syncs(1);
    file.append(b"x").unwrap();
    assert!(file.sync().is_err());
    assert!(file.sync().is_err(), "not retried");
    vfs.sync_dir(Path::new("/")).unwrap();
    vfs.fail_syncs(1);
    assert!(vfs.sync_dir(Path::new("/")).is_err());
    assert!(vfs.sync_dir(Path::new("/")).is_ok());
}

#[test]
fn a_dead_machine_changes_nothing() {
    let vfs = SimVfs::new(5);
    let mut file = vfs.create(Path::new("a")).unwrap();
    file.append(b"x").unwrap();
    vfs.fail_after(vfs.operations());
    assert!(file.append(b"y").is_err());
    assert!(vfs.create(Path::new("b")).is_err());
    assert!(vfs.remove(Path::new("a")).is_err());
    assert_eq!(vfs.read(Path::new("a")).unwrap(), b"x");
    assert_eq!(vfs.operations(), 5);
    assert_eq!(vfs.crash().operations(), 0);
}

#[test]
fn bits_rot_and_clocks_are_set() {
    let vfs = SimVfs::new(1);
    write(&vfs, Path::new("a"), &[0, 0]).unwrap();
    vfs.flip_bit(Path::new("a"), 1, 3).unwrap();
    assert_eq!(vfs.read(Path::new("a")).unwrap(), [0, 8]);
    assert!(vfs.flip_bit(Path::new("a"), 2, 0).is_err());
    vfs.set_now(42);
    assert_eq!((vfs.now(), vfs.crash().now()), (42, 42));
}

/// What a name must be after a crash, as far as that is known.
type Durable = BTreeMap<PathBuf, Vec<u8>>;

#[test]
fn whatever_was_synced_survives_any_history() {
    for seed in rng::seeds(0..200) {
        let vfs = SimVfs::new(seed);
        let mut dice = SimVfs::new(!seed).random();
        let mut next = move || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            dice >> 33
        };
        let mut durable = Durable::new();
        for i in 0..next() % 40 {
            let path = PathBuf::from(format!("/f{i}"));
            let bytes = vec![i as u8; (next() % 100) as usize];
            write(&vfs, &path, &bytes).unwrap();
            if next() % 3 == 0 {
                vfs.sync_dir(Path::new("/")).unwrap();
                for name in vfs.list(Path::new("/")).unwrap() {
                    let path = Path::new("/").join(name);
                    durable.insert(path.clone(), vfs.read(&path).unwrap());
                }
            }
        }
        let after = vfs.crash();
        for (path, bytes) in &durable {
            assert_eq!(&after.read(path).unwrap(), bytes, "SEED={seed} {path:?}");
        }
    }
}

/// Random operations on both disks: each succeeds on both or fails on both, and they look alike.
#[test]
fn the_simulated_disk_does_what_the_real_one_does() {
    const NAMES: [&str; 8] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f"];
    for seed in rng::seeds(0..8) {
        let directory = tempfile::tempdir().unwrap();
        let real = RealVfs::new();
        let sim = SimVfs::new(seed);
        let dice = SimVfs::new(!seed);
        for step in 0..150 {
            let operation = dice.random();
            let [from, to] = [dice.random(), dice.random()].map(|n| NAMES[(n % 8) as usize]);
            let on_real = operate(&real, directory.path(), operation, from, to);
            let on_sim = operate(&sim, Path::new("/"), operation, from, to);
            let context = format!("SEED={seed} step {step}: {} {from} {to}", operation % 8);
            assert_eq!(on_real.is_ok(), on_sim.is_ok(), "{context}: {on_real:?} {on_sim:?}");
            assert_eq!(tree(&real, directory.path()), tree(&sim, Path::new("/")), "{context}");
        }
    }
}

fn operate(vfs: &dyn Vfs, dir: &Path, operation: u64, from: &str, to: &str) -> Result<()> {
    let (from, to) = (dir.join(from), dir.join(to));
    let size = operation >> 8 & 63;
    match operation % 8 {
        0 | 1 => write(vfs, &from, &vec![operation as u8; size as usize]),
        2 => vfs.create_dir_all(&from),
        3 => vfs.rename(&from, &to),
        4 => vfs.hard_link(&from, &to),
        5 => vfs.remove(&from),
        6 if size < 20 => vfs.remove_dir_all(&from),
        6 => vfs.sync_dir(&from),
        _ => vfs.truncate(&from, size),
    }
}

/// All paths below a directory; files with their content.
fn tree(vfs: &dyn Vfs, dir: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut entries = Vec::new();
    for name in vfs.list(dir).unwrap() {
        let path = dir.join(&name);
        let content = vfs.read(&path).ok();
        let below = if content.is_none() { tree(vfs, &path) } else { Vec::new() };
        if let Some(content) = &content {
            assert_eq!(vfs.size(&path).unwrap(), content.len() as u64);
            assert_eq!(*vfs.map(&path).unwrap(), **content);
        }
        entries.push((name.clone(), content));
        entries
            .extend(below.into_iter().map(|(path, content)| (format!("{name}/{path}"), content)));
    }
    entries
}

#[test]
fn released_pages_are_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sealed");
    let content: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    let vfs = RealVfs::new();
    let mut file = vfs.create(&path).unwrap();
    file.append(&content).unwrap();
    file.sync().unwrap();
    let bytes = vfs.map(&path).unwrap();
    assert_eq!(&bytes[..], &content[..]);
    bytes.release();
    assert_eq!(&bytes[..], &content[..]);
    vfs.remove(&path).unwrap();
    bytes.release();
    assert_eq!(&bytes[..], &content[..], "a removed file stays readable");
}
