//! Histories in which single calls of the disk fail, or it is full for a while, and all goes on: what was
//! acknowledged is there, now and after any end.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{DATA, Map, Rig, create, draw_change, insert, map_of, row};
use rng::Random;
use vfs::SimVfs;
use vfs::sim::{Call, Errno, FaultPlan};

const STEPS: u64 = 100;

/// Plays a history until the log takes nothing more, with three lives of the process. Returns the states
/// that may be found.
fn play(disk: &SimVfs, seed: u64) -> Vec<Map> {
    let mut dice = Random(seed);
    let mut states = vec![Map::new()];
    for _ in 0..3 {
        disk.set_plan(&FaultPlan::draw(dice.next(), 400));
        let Ok(rig) = Rig::open(disk) else {
            disk.set_plan(&FaultPlan::default());
            continue;
        };
        let map = rig.map();
        assert!(states.contains(&map));
        states = vec![map];
        for _ in 0..STEPS {
            let before = rig.map();
            assert_eq!(before, states[0]);
            let mut staged = rig.tables.begin();
            let _ = staged.apply(vec![draw_change(&mut dice, &before)]);
            let after = map_of(staged.tables());
            if rig.tables.commit(staged).is_err() {
                assert_eq!(rig.map(), before, "nobody sees what is not durable");
                states.push(after);
                return states;
            }
            states = vec![after];
            match dice.below(8) {
                0..=2 => drop(rig.tables.keep()),
                3 => drop(rig.tables.checkpoint()),
                _ => {}
            }
        }
        drop(rig.close());
        disk.set_plan(&FaultPlan::default());
    }
    states
}

#[test]
fn nothing_acknowledged_is_lost_whatever_fails_and_goes_on() {
    let seed = rng::seed().unwrap_or(1);
    println!("SEED={seed}");
    for history in 0..120 {
        let history_seed = rng::mix(seed ^ (history << 32));
        let disk = SimVfs::new(history_seed);
        let states = play(&disk, history_seed);
        disk.set_plan(&FaultPlan::default());
        disk.give_room();
        for (what, found) in [("killed", disk.kill()), ("without power", disk.crash())] {
            let what = format!("history {history_seed}, {what}");
            let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
            let map = rig.map();
            assert!(states.contains(&map), "{what}: {map:?} is none of {states:?}");
        }
    }
}

/// Fills tables on a disk on which one call of a checkpoint fails, and goes on.
fn go_on_after(call: Call, number: u64, errno: Errno) {
    let what = format!("{call:?} {number} {errno:?}");
    let disk = SimVfs::new(number);
    let rig = Rig::open(&disk).expect("a new disk");
    rig.tables.apply(vec![create("t"), create("u")]).expect("a good disk");
    rig.tables.checkpoint().expect("a good disk");
    rig.tables.apply(vec![insert("t", vec![row(1, "a")])]).expect("a good disk");
    disk.fail_call(call, number, errno);
    let failed = rig.tables.checkpoint();
    disk.set_plan(&FaultPlan::default());
    assert!(0 < rig.tables.logged_size() || failed.is_ok(), "{what}: it is still to be saved");
    // Whatever failed, if it was not the log statements go on.
    if rig.tables.apply(vec![insert("u", vec![row(2, "b")])]).is_ok() {
        rig.tables.checkpoint().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(rig.tables.logged_size(), 0);
    }
    let map = rig.map();
    drop(rig);
    for found in [disk.kill(), disk.crash()] {
        let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(rig.map(), map, "{what}");
        let report = tables::verify::verify(&found, DATA.as_ref(), "/data/wal".as_ref());
        let report = report.expect("it is there").expect("it is there");
        assert_eq!((report.problems, report.tables), (Vec::new(), 2), "{what}");
    }
}

#[test]
fn a_checkpoint_that_failed_is_made_again() {
    for errno in [Errno::Io, Errno::Full] {
        for call in [Call::Create, Call::Append, Call::Sync, Call::SyncDir, Call::Rename] {
            (0..4).for_each(|number| go_on_after(call, number, errno));
        }
    }
}

#[test]
fn a_full_disk_refuses_and_forgets_nothing() {
    let disk = SimVfs::new(3);
    let rig = Rig::open(&disk).expect("a new disk");
    rig.tables.apply(vec![create("t")]).expect("a good disk");
    disk.set_free_space(700);
    let mut acknowledged = rig.map();
    for id in 0..100 {
        match rig.tables.apply(vec![insert("t", vec![row(id, &format!("name {id}"))])]) {
            Ok(_) => acknowledged = rig.map(),
            Err(error) => {
                assert!(matches!(error, tables::Error::Wal(_)), "{error}");
                break;
            }
        }
        drop(rig.tables.checkpoint());
    }
    assert_eq!(rig.map(), acknowledged);
    assert!(rig.tables.apply(vec![create("u")]).is_err(), "the log takes nothing more");
    drop(rig);
    let found = disk.crash();
    found.set_free_space(1 << 20);
    let rig = Rig::open(&found).expect("there is room");
    let is_there =
        acknowledged["t"].1.iter().all(|(id, row)| rig.map()["t"].1.get(id) == Some(row));
    assert!(is_there && !acknowledged["t"].1.is_empty());
}
