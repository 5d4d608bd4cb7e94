//! Snapshots, and what verification says of whole and of damaged files.

use crate::rig::{DATA, Map, Rig, draw, encode};
use kv::config::EarlierKeys;
use rng::Random;
use std::path::Path;
use std::sync::Arc;
use vfs::{SimVfs, Vfs};

const SNAPSHOT: &str = "/snapshot";

/// A disk with keys on it, closed, and what the keys are.
fn filled(seed: u64) -> (SimVfs, Rig) {
    let disk = SimVfs::new(seed);
    disk.set_now(1_700_000_000_000_000_000);
    let rig = Rig::open(&disk).expect("a new directory");
    let mut dice = Random(seed);
    for _ in 0..400 {
        let (db, words) = draw(&mut dice, rig.kv.now_ms());
        if words[0] != b"flushdb" {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            rig.run(db, &words).expect("a good disk");
        }
        if dice.below(20) == 0 {
            rig.kv.keep().expect("a good disk");
        }
    }
    (disk, rig)
}

/// The disk after a kill, with a bit of each record of cold values flipped.
fn killed_with_damaged_records(disk: &SimVfs) -> SimVfs {
    let damaged = disk.kill();
    for (path, size) in disk.files() {
        let is_cold = path.extension().is_some_and(|end| end == "cold");
        (0..if is_cold { size } else { 0 }).step_by(16).for_each(|offset| {
            damaged.flip_bit(&path, offset + 12, 1).expect("there");
        });
    }
    damaged
}

#[test]
fn a_snapshot_is_a_keyspace_of_its_own() {
    let (disk, rig) = filled(1);
    let before = rig.map();
    rig.kv.snapshot(Path::new(SNAPSHOT)).expect("a good disk");
    rig.run(0, &[b"set", b"later", b"x"]).expect("a good disk");
    for _ in 0..3 {
        rig.kv.checkpoint().expect("a good disk");
    }
    rig.close().expect("a good disk");
    let vfs: Arc<dyn Vfs> = Arc::new(disk.crash());
    let report = kv::verify::verify(vfs.as_ref(), Path::new(SNAPSHOT)).expect("listable");
    let report = report.expect("keys");
    assert_eq!((report.problems, report.keys), (Vec::new(), before.len() as u64));
    let snapshot = Rig::open_in(vfs, Path::new(SNAPSHOT)).expect("whole");
    assert_eq!(snapshot.map(), before);
    snapshot.run(0, &[b"set", b"own", b"x"]).expect("a good disk");
}

#[test]
fn a_snapshot_has_what_stands_beside_keys() {
    let (disk, rig) = filled(5);
    rig.kv.write_beside("functions", b"of scripts").expect("a good disk");
    rig.kv.snapshot(Path::new(SNAPSHOT)).expect("a good disk");
    let beside = Path::new(SNAPSHOT).join(kv::kv::KEYS_DIR).join("functions");
    assert_eq!(disk.read(&beside).expect("linked"), b"of scripts");
    let report = kv::verify::verify(&disk, Path::new(SNAPSHOT)).expect("listable").expect("keys");
    assert!(report.leftovers.is_empty(), "{:?}", report.leftovers);
}

#[test]
fn a_missing_file_of_functions_is_found() {
    let (disk, rig) = filled(5);
    // Any bytes with a checksum behind them.
    let text = kv::Value::Str(kv::value::Str::new(b"libraries"));
    rig.kv.write_functions(&kv::rdb::dump(&text).expect("a string")).expect("a good disk");
    rig.kv.snapshot(Path::new(SNAPSHOT)).expect("a good disk");
    let problems = || {
        let report = kv::verify::verify(&disk, Path::new(SNAPSHOT)).expect("listable");
        report.expect("keys").problems
    };
    assert_eq!(problems(), Vec::new());
    let functions = Path::new(SNAPSHOT).join(kv::kv::KEYS_DIR).join("functions");
    disk.remove(&functions).expect("there");
    let found = problems();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == functions && found[0].1.contains("is missing"), "{found:?}");
}

#[test]
fn a_flipped_bit_is_found_and_no_answer_is_wrong() {
    let (disk, rig) = filled(2);
    rig.close().expect("a good disk");
    let before = rig.map();
    drop(rig);
    let verify = |disk: &SimVfs| {
        let report = kv::verify::verify(disk, Path::new(DATA)).expect("listable").expect("keys");
        assert!(report.leftovers.is_empty(), "{:?}", report.leftovers);
        report.problems
    };
    assert_eq!(verify(&disk), Vec::new());
    let mut dice = Random(3);
    let files = disk.files();
    let keys: Vec<_> = files.iter().filter(|(path, _)| path.starts_with("/data/keys")).collect();
    assert!(3 < keys.len());
    for round in 0..300 {
        let rotten = disk.kill();
        let (path, size) = dice.pick(&keys);
        let offset = dice.below(*size);
        rotten.flip_bit(path, offset, (round % 8) as u8).expect("there");
        let what = format!("{} at {offset}", path.display());
        // Between records there are zeros that nobody reads.
        let is_found = !verify(&rotten).is_empty();
        let Ok(rig) = Rig::open(&rotten) else {
            assert!(is_found, "{what}: it does not open, and verification is silent");
            continue;
        };
        for ((db, key), (value, _)) in &before {
            let mut keys = rig.kv.lock();
            match keys.value(*db, key) {
                Ok(Some(found)) => {
                    assert_eq!(encode(found), *value, "{what}");
                }
                Ok(None) => panic!("{what}: a key is gone in silence"),
                Err(_) => assert!(is_found, "{what}: verification is silent"),
            }
        }
    }
}

#[test]
fn a_rotten_value_costs_one_key_and_may_be_replaced() {
    let disk = SimVfs::new(6);
    disk.set_now(1_700_000_000_000_000_000);
    let rig = Rig::open(&disk).expect("a new directory");
    let letters = |letter: u8| vec![letter; 100];
    for (key, letter) in [(b"a", b'a'), (b"b", b'b'), (b"c", b'c'), (b"d", b'd')] {
        rig.run(0, &[b"set", key, &letters(letter)]).expect("a good disk");
    }
    rig.kv.checkpoint().expect("a good disk");
    // In the log alone: changes of what will have rotted.
    rig.run(0, &[b"append", b"b", b"x"]).expect("a good disk");
    rig.run(0, &[b"set", b"c", b"new"]).expect("a good disk");
    drop(rig);
    let rotten = killed_with_damaged_records(&disk);
    let rig = Rig::open(&rotten).expect("it opens all the same");
    let read = |key: &[u8]| {
        let mut keys = rig.kv.lock();
        keys.value(0, key).map(|value| value.is_some())
    };
    assert!(read(b"a").is_err() && read(b"b").is_err() && read(b"d").is_err());
    assert_eq!(read(b"c"), Ok(true));
    assert_eq!(names(&rig), [b"c"], "those that are whole are listed all the same");
    {
        let mut keys = rig.kv.lock();
        let scan = keys.scan(0, 0, usize::MAX, |_, _| ()).expect("a good disk");
        assert_eq!((scan.next, scan.corrupt), (0, 3));
        assert!(scan.complete().is_err(), "a list of all names is refused");
        // The one that was replaced was met while the log was replayed.
        assert_eq!((keys.stats.rotten, keys.take_rotten_news().len()), (4, 4));
    }
    rig.run(0, &[b"set", b"a", b"again"]).expect("a good disk");
    rig.run(0, &[b"del", b"b"]).expect("a good disk");
    rig.run(0, &[b"rename", b"c", b"d"]).expect("a good disk");
    assert_eq!(names(&rig), [b"a", b"d"]);
    drop(rig);
    assert_eq!(names(&Rig::open(&rotten.crash()).expect("whole")), [b"a", b"d"]);
}

fn names(rig: &Rig) -> Vec<Vec<u8>> {
    rig.map().into_keys().map(|(_, key)| key).collect()
}

/// Spoils files of keys, repairs them, and returns what opens then beside what was there.
fn repaired(disk: &SimVfs, what: &str) -> Map {
    let problems = |disk: &SimVfs| {
        let report = kv::verify::verify(disk, Path::new(DATA)).expect("listable").expect("keys");
        report.problems
    };
    let plan = kv::repair::plan(disk, Path::new(DATA)).unwrap_or_else(|e| panic!("{what}: {e}"));
    let plan =
        plan.unwrap_or_else(|| panic!("{what}: {:?}, and nothing to repair", problems(disk)));
    assert!(!plan.steps().is_empty(), "{what}");
    let folder = plan.apply(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(disk.exists(&folder.join("REPORT")).expect("listable"), "{what}");
    assert_eq!(problems(disk), Vec::new(), "{what}, repaired");
    let again = kv::repair::plan(disk, Path::new(DATA)).expect("listable");
    assert!(again.is_none(), "{what}: repaired, and there is more to do");
    let rig = Rig::open(disk).unwrap_or_else(|error| panic!("{what}, repaired: {error}"));
    let map = rig.map();
    rig.run(0, &[b"set", b"after", b"x"]).expect("a good disk");
    rig.close().expect("a good disk");
    map
}

#[test]
fn keys_whose_values_are_lost_stay_unreadable_after_a_repair() {
    let disk = SimVfs::new(6);
    disk.set_now(1_700_000_000_000_000_000);
    let rig = Rig::open(&disk).expect("a new directory");
    let elements: Vec<Vec<u8>> = (0..30).map(|n| format!("element {n}").into_bytes()).collect();
    for element in &elements {
        rig.run(0, &[b"rpush", b"list", element]).expect("a good disk");
    }
    rig.run(0, &[b"set", b"counter", b"41"]).expect("a good disk");
    rig.run(0, &[b"set", b"other", b"1"]).expect("a good disk");
    rig.kv.checkpoint().expect("a good disk");
    // In the log alone: changes of what will be lost.
    rig.run(0, &[b"rpush", b"list", b"late"]).expect("a good disk");
    rig.run(0, &[b"incr", b"counter"]).expect("a good disk");
    rig.run(0, &[b"set", b"other", b"2"]).expect("a good disk");
    rig.log.close().expect("a good disk");
    drop(rig);
    let rotten = killed_with_damaged_records(&disk);
    let plan = kv::repair::plan(&rotten, Path::new(DATA)).expect("listable").expect("damage");
    assert!(plan.losses()[0].contains("get an error until"), "{:?}", plan.losses());
    plan.apply(&rotten).expect("a good disk");
    for round in 0..2 {
        let report = kv::verify::verify(&rotten, Path::new(DATA)).expect("listable").expect("keys");
        assert_eq!((report.problems, report.keys), (Vec::new(), 3));
        assert!(kv::repair::plan(&rotten, Path::new(DATA)).expect("listable").is_none());
        let rig = Rig::open(&rotten).expect("it opens");
        {
            let mut keys = rig.kv.lock();
            assert!(keys.value(0, b"list").is_err() && keys.value(0, b"counter").is_err());
            assert!(keys.value(0, b"other").expect("set anew").is_some(), "round {round}");
        }
        // Commands that build on the value change nothing.
        rig.run(0, &[b"rpush", b"list", b"later"]).expect("a good disk");
        rig.close().expect("a good disk");
    }
    let rig = Rig::open(&rotten).expect("it opens");
    rig.run(0, &[b"set", b"counter", b"7"]).expect("a good disk");
    rig.run(0, &[b"del", b"list"]).expect("a good disk");
    assert_eq!(names(&rig), [b"counter".to_vec(), b"other".to_vec()]);
    rig.close().expect("a good disk");
    drop(rig);
    assert_eq!(names(&Rig::open(&rotten).expect("whole")).len(), 2);
}

#[test]
fn a_repair_keeps_all_that_is_whole_and_deletes_nothing() {
    let (disk, rig) = filled(4);
    rig.close().expect("a good disk");
    let before = rig.map();
    drop(rig);
    let mut dice = Random(5);
    let files = disk.files();
    let is_of_keys = |path: &Path| path.starts_with("/data/keys");
    let keys: Vec<_> = files.iter().filter(|(path, _)| is_of_keys(path)).collect();
    let (mut kept, mut rounds) = (0, 0);
    for round in 0..200 {
        let rotten = disk.kill();
        let (path, size) = dice.pick(&keys);
        let offset = dice.below(*size);
        let what = match round % 5 {
            0 => {
                rotten.remove(path).expect("there");
                format!("{} removed", path.display())
            }
            1 => {
                rotten.truncate(path, offset).expect("there");
                format!("{} cut at {offset}", path.display())
            }
            _ => {
                rotten.flip_bit(path, offset, (round % 8) as u8).expect("there");
                format!("{} at {offset}", path.display())
            }
        };
        let report = kv::verify::verify(&rotten, Path::new(DATA)).expect("listable").expect("keys");
        if report.problems.is_empty() {
            continue;
        }
        let count = rotten.files().len();
        let found = repaired(&rotten, &what);
        assert!(count <= rotten.files().len(), "{what}: a file was deleted");
        rounds += 1;
        // What is there again of what had been deleted, and older states, are listed as lost.
        let is_index_made_anew =
            path.ends_with("MANIFEST") || path.extension().is_some_and(|end| end == "index");
        if !is_index_made_anew {
            for (key, value) in &found {
                assert_eq!(before.get(key), Some(value), "{what}: {key:?}");
            }
        }
        for (key, value) in &before {
            assert!(!is_index_made_anew || found.get(key) == Some(value), "{what}: {key:?}");
            kept += u64::from(found.contains_key(key));
        }
    }
    assert!(100 < rounds && 9 * rounds * before.len() as u64 / 10 < kept, "{kept} in {rounds}");
}

/// What is in the keys' directory, and whose bytes are those of values.
fn segments(rig: &Rig) -> kv::cold::ColdStats {
    rig.kv.lock().cold_stats()
}

/// A value that others of its kind make shorter.
fn session(number: u64, turn: u64) -> Vec<u8> {
    let id = rng::mix(number + (turn << 32));
    format!(
        "{{\"id\":{id},\"user\":\"name {number}\",\"roles\":[\"reader\",\"writer\"],\"on\":true}}"
    )
    .into_bytes()
}

#[test]
fn values_are_coded_once_they_have_rested_and_those_that_are_overwritten_first_are_not() {
    const KEYS: u64 = 3000;
    let disk = SimVfs::new(5);
    let config = |config: kv::KvConfig| kv::KvConfig {
        memory_max: 16 << 20,
        segment_size: 64 << 10,
        checkpoint_log_size: 1 << 30,
        coding_rest: std::time::Duration::from_secs(5),
        ..config
    };
    let open = || Rig::open_as(Arc::new(disk.clone()), Path::new(DATA), config);
    let rig = open().expect("a new directory");
    let set_all = |rig: &Rig, turn: u64| {
        for number in 0..KEYS {
            let key = format!("session:{number}").into_bytes();
            rig.run(0, &[b"set", &key, &session(number, turn)]).expect("a good disk");
        }
    };
    for turn in 0..3 {
        set_all(&rig, turn);
        rig.kv.checkpoint().expect("a good disk");
        disk.advance(1_000_000_000);
        rig.kv.keep().expect("a good disk");
        assert_eq!(rig.kv.compression().values, 0, "they have not rested");
    }
    let plain = segments(&rig);
    disk.advance(5_000_000_000);
    for _ in 0..20 {
        rig.kv.keep().expect("a good disk");
    }
    let coded = segments(&rig);
    assert_eq!(rig.kv.compression().values, KEYS, "once each");
    assert_eq!((coded.plain_size, coded.live_records), (0, KEYS));
    assert!(10 * coded.live_size < 8 * plain.live_size, "{coded:?} after {plain:?}");
    rig.kv.checkpoint().expect("a good disk");
    assert_eq!(segments(&rig).size, coded.live_size, "what was copied is gone");
    let before = rig.map();
    rig.close().expect("a good disk");
    drop(rig);
    let rig = open().expect("closed well");
    assert_eq!(rig.map(), before);
    // Nothing is coded again after a start, and what was closed before it had rested is.
    set_all(&rig, 9);
    rig.close().expect("a good disk");
    drop(rig);
    let rig = open().expect("closed well");
    disk.advance(5_000_000_000);
    let before = rig.map();
    for _ in 0..20 {
        rig.kv.keep().expect("a good disk");
    }
    assert_eq!((rig.kv.compression().values, segments(&rig).plain_size), (KEYS, 0));
    drop(rig);
    assert_eq!(open().expect("killed").map(), before);
}

#[test]
fn lost_keys_stay_closed_and_a_repair_passes_over_what_the_log_has_of_them() {
    let disk = SimVfs::new(7);
    disk.set_now(1_700_000_000_000_000_000);
    let open = |disk: &SimVfs, earlier_keys| {
        Rig::open_as(Arc::new(disk.clone()), Path::new(DATA), |config| kv::KvConfig {
            earlier_keys,
            ..config
        })
    };
    let rig = open(&disk, EarlierKeys::Unknown).expect("a new directory");
    for _ in 0..10 {
        rig.run(0, &[b"incr", b"n"]).expect("a good disk");
    }
    rig.kv.checkpoint().expect("a good disk");
    for _ in 0..10 {
        rig.run(0, &[b"incr", b"n"]).expect("a good disk");
    }
    let disk = disk.kill();
    for name in disk.list(Path::new("/data/keys")).expect("a folder") {
        disk.remove(&Path::new("/data/keys").join(name)).expect("a file");
    }
    for _ in 0..2 {
        let error = open(&disk, EarlierKeys::Lost).err().expect("closed").to_string();
        assert!(error.contains("the data directory had keys"), "{error}");
    }
    let plan = kv::repair::plan_lost(&disk, Path::new(DATA)).expect("listable").expect("a plan");
    assert!(plan.losses()[0].contains("all keys"), "{:?}", plan.losses());
    plan.apply(&disk).expect("a good disk");
    assert!(kv::repair::plan(&disk, Path::new(DATA)).expect("listable").is_none());
    for _ in 0..2 {
        let rig = open(&disk, EarlierKeys::Unknown).expect("repaired");
        assert!(names(&rig).iter().all(|key| key == b"after"), "{:?}", names(&rig));
        rig.run(0, &[b"set", b"after", b"x"]).expect("a good disk");
        rig.close().expect("a good disk");
    }
    let rig = open(&disk, EarlierKeys::Unknown).expect("repaired");
    assert_eq!(names(&rig), [b"after"]);
}

#[test]
fn log_with_every_change_restores_lost_keys() {
    let disk = SimVfs::new(7);
    let rig = Rig::open(&disk).expect("a new directory");
    rig.run(0, &[b"incr", b"n"]).expect("a good disk");
    let disk = disk.kill();
    for name in disk.list(Path::new("/data/keys")).expect("a folder") {
        disk.remove(&Path::new("/data/keys").join(name)).expect("a file");
    }
    let plan = kv::repair::plan_lost(&disk, Path::new(DATA)).expect("listable");
    assert!(plan.is_none(), "{:?}", plan.map(|plan| plan.losses().to_vec()));
    assert_eq!(names(&Rig::open(&disk).expect("good")), [b"n"]);
}

/// Changes files in the folder of keys.
fn remove(disk: &SimVfs, names: &[&str]) {
    for name in names {
        disk.remove(&Path::new("/data/keys").join(name)).expect("a file");
    }
}

#[test]
fn removed_users_and_their_list_are_refused_at_every_start() {
    const RULES: &[u8] = b"user default off\n";
    for (removed, is_of_earlier_version) in [
        (&["credentials", "users.acl"][..], false),
        (&["credentials", "users.acl"][..], true),
        (&["credentials"][..], false),
        (&["credentials"][..], true),
    ] {
        let disk = SimVfs::new(7);
        let rig = Rig::open(&disk).expect("a new directory");
        match is_of_earlier_version {
            // The start records a list that the manifest does not have yet.
            true => kv::credentials::write(&disk, Path::new("/data/keys"), "users.acl", RULES),
            false => rig.kv.write_credentials("users.acl", RULES),
        }
        .expect("a good disk");
        let disk = disk.kill();
        if is_of_earlier_version {
            drop(Rig::open(&disk).expect("whole"));
        }
        let disk = disk.kill();
        let rig = Rig::open(&disk).expect("whole");
        let file = rig.kv.read_credentials("users.acl").expect("whole").expect("there");
        assert_eq!(file.bytes, RULES);
        rig.close().expect("a good disk");
        remove(&disk, removed);
        let report = kv::verify::verify(&disk, Path::new(DATA)).expect("listable").expect("keys");
        assert!(!report.problems.is_empty(), "{removed:?}: verification is silent");
        for _ in 0..2 {
            let rig = Rig::open(&disk).expect("the keys are whole");
            let error = rig.kv.read_credentials("users.acl").expect_err("lost");
            assert!(error.contains("credentials: the file is missing"), "{error}");
            rig.kv.write_credentials("users.acl", RULES).expect_err("nothing is made anew");
            rig.run(0, &[b"incr", b"n"]).expect("a good disk");
            rig.kv.checkpoint().expect("a good disk");
            rig.close().expect("a good disk");
        }
        let list = Path::new("/data/keys/credentials");
        vfs::write_atomic(&disk, list, b"# checksum accept\n").expect("a good disk");
        let rig = Rig::open(&disk).expect("the keys are whole");
        rig.kv.read_credentials("users.acl").expect("a person accepted it");
    }
}
