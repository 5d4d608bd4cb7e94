//! Histories in which single calls of the disk fail, or it is full for a while, and all goes on: what was
//! acknowledged is there, now and after any end.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{Map, Rig, draw_changes};
use influx_schema::records::{Change, Key};
use rng::Random;
use vfs::SimVfs;
use vfs::sim::{Call, Errno, FaultPlan};

const STEPS: u64 = 60;

/// Plays a history until the log takes nothing more, with three lives of the process. Returns the states
/// that may be found.
fn play(disk: &SimVfs, seed: u64) -> Vec<Map> {
    let mut dice = Random(seed);
    let mut states = vec![Map::new()];
    for _ in 0..3 {
        disk.set_plan(&FaultPlan::draw(dice.next(), 300));
        let Ok(rig) = Rig::open(disk) else {
            disk.set_plan(&FaultPlan::default());
            continue;
        };
        let map = rig.map();
        assert!(states.contains(&map), "{map:?} is none of {states:?}");
        states = vec![map];
        for _ in 0..STEPS {
            let (changes, after) = draw_changes(&mut dice, &states[0]);
            if rig.put(&changes).is_err() {
                states.push(after);
                return states;
            }
            states = vec![after];
            match dice.below(8) {
                0..=2 => drop(rig.records.keep()),
                3 => drop(rig.records.checkpoint()),
                4 => drop(rig.records.scrub()),
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
        let seed = rng::mix(seed ^ (history << 32));
        let disk = SimVfs::new(seed);
        let states = play(&disk, seed);
        disk.set_plan(&FaultPlan::default());
        disk.give_room();
        for (what, found) in [("killed", disk.kill()), ("without power", disk.crash())] {
            let what = format!("history {seed}, {what}");
            let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
            let map = rig.map();
            assert!(states.contains(&map), "{what}: {map:?} is none of {states:?}");
        }
    }
}

fn put(rig: &Rig, number: u32, value: &str) -> bool {
    rig.put(&[Change::put(Key::String { number }, value)]).is_ok()
}

#[test]
fn checkpoint_that_failed_is_made_again() {
    for errno in [Errno::Io, Errno::Full] {
        for call in [Call::Create, Call::Append, Call::Sync, Call::SyncDir, Call::Rename] {
            for number in 0..4 {
                let what = format!("{call:?} {number} {errno:?}");
                let disk = SimVfs::new(number);
                let rig = Rig::open(&disk).expect("a new disk");
                assert!(put(&rig, 1, "a"));
                rig.records.checkpoint().expect("a good disk");
                assert!(put(&rig, 2, "b"));
                disk.fail_call(call, number, errno);
                drop(rig.records.checkpoint());
                disk.set_plan(&FaultPlan::default());
                // Whatever failed, if it was not the log changes go on.
                if put(&rig, 3, "c") {
                    rig.records.checkpoint().unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(rig.log.pin(), None, "{what}");
                }
                let map = rig.map();
                drop(rig);
                for found in [disk.kill(), disk.crash()] {
                    let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(rig.map(), map, "{what}");
                    assert_eq!(rig.records.take_damage(), [], "{what}");
                }
            }
        }
    }
}

#[test]
fn first_write_of_the_files_that_failed_is_made_again() {
    for call in [Call::Create, Call::Append, Call::Sync, Call::SyncDir, Call::Rename] {
        for number in 0..3 {
            let what = format!("{call:?} {number}");
            let disk = SimVfs::new(number);
            let rig = Rig::open(&disk).expect("a new disk");
            disk.fail_call(call, number, Errno::Full);
            let is_put = put(&rig, 1, "a");
            disk.set_plan(&FaultPlan::default());
            let expected = if is_put || put(&rig, 1, "a") { 1 } else { 0 };
            drop(rig);
            for found in [disk.kill(), disk.crash()] {
                let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(expected <= rig.map().len(), "{what}");
            }
        }
    }
}
