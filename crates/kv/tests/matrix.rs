//! Every kind of file, damaged in every way: what opens, what is lost, what is reported. The outcomes are
//! in `docs/format/keys.md`.

use crate::rig::{DATA, Map, Rig, encode};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::sim::Rot;
use vfs::{SimVfs, Vfs};

const KEYS: u64 = 400;

fn open(disk: &SimVfs) -> kv::Result<Rig> {
    Rig::open_as(Arc::new(disk.clone()), Path::new(DATA), |config| kv::KvConfig {
        memory_max: 1 << 20,
        segment_size: 8 << 10,
        checkpoint_log_size: 1 << 30,
        dictionary_samples: 50,
        ..config
    })
}

/// A value that others of its kind make shorter.
fn value(number: u64) -> Vec<u8> {
    let id = rng::mix(number);
    format!(
        "{{\"id\":{id},\"user\":\"name {number}\",\"roles\":[\"reader\",\"writer\"],\"on\":true}}"
    )
    .into_bytes()
}

/// Keys in several segments, some of them coded with a dictionary, and what they are. Two checkpoints are
/// made after the first; the manifest of the first is returned, too.
fn filled() -> (SimVfs, Map, Vec<u8>) {
    let disk = SimVfs::new(1);
    disk.set_now(1_700_000_000_000_000_000);
    let rig = open(&disk).expect("a new directory");
    for number in 0..KEYS {
        let key = format!("user:{number}").into_bytes();
        rig.run(0, &[b"set", &key, &value(number)]).expect("a good disk");
    }
    rig.kv.checkpoint().expect("a good disk");
    let old = disk.read(Path::new("/data/keys/MANIFEST")).expect("there");
    for _ in 0..20 {
        rig.kv.keep().expect("a good disk");
    }
    rig.run(0, &[b"set", b"last", b"x"]).expect("a good disk");
    rig.kv.checkpoint().expect("a good disk");
    let map = rig.map();
    rig.close().expect("a good disk");
    rig.log.close().expect("a good disk");
    (disk, map, old)
}

/// The first file with that ending.
fn file(disk: &SimVfs, end: &str) -> (PathBuf, u64) {
    let is_it =
        |path: &Path| path.starts_with("/data/keys") && path.to_string_lossy().ends_with(end);
    let found = disk.files().into_iter().find(|(path, _)| is_it(path));
    found.unwrap_or_else(|| panic!("no file {end}"))
}

fn problems(disk: &SimVfs) -> usize {
    let report = kv::verify::verify(disk, Path::new(DATA)).expect("listable").expect("keys");
    report.problems.len()
}

/// How many keys are gone, and how many cannot be read; one with another value is a failure.
#[track_caller]
fn compare(rig: &Rig, expected: &Map, what: &str) -> (usize, usize) {
    let (mut gone, mut unreadable) = (0, 0);
    for ((db, key), (value, _)) in expected {
        let mut keys = rig.kv.lock();
        match keys.value(*db, key) {
            Ok(Some(found)) => assert_eq!(encode(found), *value, "{what}: {key:?}"),
            Ok(None) => gone += 1,
            Err(_) => unreadable += 1,
        }
    }
    (gone, unreadable)
}

/// What damage to a file comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It is served as it was.
    Whole,
    /// It is served, and some keys answer with an error, then and after a repair.
    SomeKeys,
    /// Redis is closed until a repair, which loses nothing.
    Closed,
    /// Redis is closed until a repair, after which some keys answer with an error.
    ClosedSomeKeys,
}

/// Damages a file and looks at the outcome, before and after a repair.
#[track_caller]
fn check(disk: &SimVfs, map: &Map, what: &str, expected: Outcome) {
    let verified = problems(disk);
    assert!(0 < verified, "{what}: verification is silent");
    let closed = [Outcome::Closed, Outcome::ClosedSomeKeys].contains(&expected);
    match open(&disk.kill()) {
        Err(error) => assert!(closed, "{what}: it does not open: {error}"),
        Ok(rig) => {
            assert!(!closed, "{what}: it opens");
            let (gone, unreadable) = compare(&rig, map, what);
            assert_eq!(gone, 0, "{what}: keys are gone in silence");
            assert_eq!(0 < unreadable, expected == Outcome::SomeKeys, "{what}: {unreadable}");
        }
    }
    let repaired = disk.kill();
    let plan = kv::repair::plan(&repaired, Path::new(DATA)).expect("listable");
    plan.unwrap_or_else(|| panic!("{what}: nothing to repair")).apply(&repaired).expect("good");
    assert_eq!(problems(&repaired), 0, "{what}, repaired");
    let rig = open(&repaired).unwrap_or_else(|error| panic!("{what}, repaired: {error}"));
    let (gone, unreadable) = compare(&rig, map, what);
    let loses = [Outcome::SomeKeys, Outcome::ClosedSomeKeys].contains(&expected);
    assert_eq!(gone, 0, "{what}, repaired: keys are gone");
    assert_eq!(0 < unreadable, loses, "{what}, repaired: {unreadable} of {}", map.len());
}

#[test]
fn damage_costs_what_it_hits_and_is_reported() {
    use Outcome::{Closed, ClosedSomeKeys, SomeKeys, Whole};
    let (good, map, _) = filled();
    for (end, flip, cut, lost) in [
        ("/MANIFEST", Whole, Whole, Whole),
        ("/MANIFEST.copy", Whole, Whole, Whole),
        (".index", Closed, Closed, Closed),
        (".cold", SomeKeys, ClosedSomeKeys, ClosedSomeKeys),
        (".dict", ClosedSomeKeys, ClosedSomeKeys, ClosedSomeKeys),
    ] {
        let (path, size) = file(&good, end);
        let damaged = |rot: &Rot| {
            let disk = good.kill();
            disk.rot(rot).expect("a file");
            disk
        };
        let flips = [4, size / 2, size - 2].map(|offset| offset.min(size - 1));
        for offset in flips.into_iter().filter(|offset| end != ".cold" || *offset == size / 2) {
            let disk = damaged(&Rot::Flip { path: path.clone(), offset, bit: 2 });
            check(&disk, &map, &format!("{end}: flip at {offset} of {size}"), flip);
        }
        let disk = damaged(&Rot::Cut { path: path.clone(), size: size / 2 });
        check(&disk, &map, &format!("{end}: half"), cut);
        let disk = good.kill();
        vfs::write_atomic(&disk, &path, &vec![0; size as usize]).expect("a good disk");
        let zeros = if end == ".cold" { SomeKeys } else { lost };
        check(&disk, &map, &format!("{end}: zeros"), zeros);
        if end != "/MANIFEST.copy" {
            // Stores of earlier versions have no copy.
            let disk = damaged(&Rot::Drop { path: path.clone() });
            check(&disk, &map, &format!("{end}: removed"), lost);
        }
    }
}

#[test]
fn an_older_manifest_is_not_taken_for_the_newest() {
    let (good, map, old) = filled();
    let path = Path::new("/data/keys/MANIFEST");
    let disk = good.kill();
    vfs::write_atomic(&disk, path, &old).expect("a good disk");
    check(&disk, &map, "an older MANIFEST", Outcome::Whole);
    // Both older: the files that they name are gone.
    let disk = good.kill();
    for name in [path, Path::new("/data/keys/MANIFEST.copy")] {
        vfs::write_atomic(&disk, name, &old).expect("a good disk");
    }
    assert!(open(&disk.kill()).is_err());
    assert!(0 < problems(&disk));
}

#[test]
fn segment_of_another_size_is_reported_since_a_start_refuses_it() {
    let (good, map, _) = filled();
    let (path, _) = file(&good, ".cold");
    let disk = good.kill();
    let longer = [disk.read(&path).expect("there"), vec![0]].concat();
    vfs::write_atomic(&disk, &path, &longer).expect("a good disk");
    check(&disk, &map, "a segment with a byte behind it", Outcome::Closed);
}
