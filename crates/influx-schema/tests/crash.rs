//! Histories of changes that die at every operation of the disk, by power or by kill, while checkpoints are
//! made: what was acknowledged is there, and what is there is a state that there was.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{DATA, Map, Rig, draw_changes};
use influx_schema::records::verify;
use rng::Random;
use std::path::Path;
use vfs::SimVfs;

const STEPS: u64 = 40;

/// Runs a history until it ends or the disk dies. Returns the states since the last acknowledged one,
/// which is the first.
fn run(disk: &SimVfs, seed: u64) -> Vec<Map> {
    let mut dice = Random(seed);
    let mut states = vec![Map::new()];
    let Ok(mut rig) = Rig::open(disk) else { return states };
    for _ in 0..STEPS {
        let (changes, after) = draw_changes(&mut dice, &states[0]);
        match rig.put(&changes) {
            Ok(()) => states = vec![after],
            Err(_) => {
                states.push(after);
                return states;
            }
        }
        match dice.below(100) {
            0..=29 => drop(rig.records.keep()),
            30..=39 => drop(rig.records.checkpoint()),
            40..=44 => {
                if rig.close().is_err() {
                    return states;
                }
                drop(rig);
                let Ok(opened) = Rig::open(disk) else { return states };
                rig = opened;
            }
            _ => {}
        }
    }
    states
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_disk_dies() {
    let seed = rng::seed().unwrap_or(1);
    println!("SEED={seed}");
    for history in 0..3 {
        let seed = rng::mix(seed + history);
        let whole = SimVfs::new(seed);
        run(&whole, seed);
        for at in 0..=whole.operations() {
            let dying = SimVfs::new(seed);
            dying.fail_after(at);
            let states = run(&dying, seed);
            for (what, found) in [("killed", dying.kill()), ("without power", dying.crash())] {
                let what = format!("history {seed}, {what} at {at} of {}", whole.operations());
                let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
                let map = rig.map();
                assert!(states.contains(&map), "{what}: {map:?} is none of {states:?}");
                assert_eq!(rig.records.take_damage(), [], "{what}: no crash is damage");
                // It goes on from there, and a second death soon after takes nothing.
                let (changes, after) = draw_changes(&mut Random(at), &map);
                rig.put(&changes).expect("a new disk");
                rig.records.checkpoint().expect("a new disk");
                drop(rig);
                let again = found.crash();
                let rig = Rig::open(&again).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(rig.map(), after, "{what}, and once more");
                drop(rig);
                let data = Path::new(DATA);
                let report = verify::verify(&again, data, &data.join("wal")).expect("it is read");
                let problems = report.map(|report| report.problems).unwrap_or_default();
                assert_eq!(problems, [], "{what}");
            }
        }
    }
}
