//! Histories of statements that die at any change of the disk, by power or by kill, while checkpoints are
//! made: what was acknowledged is there, and what is there is a state that there was.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{Map, Rig, create, draw_change, insert, map_of, row};
use rng::Random;
use vfs::SimVfs;

const STEPS: u64 = 80;

/// What a history left: the states since the last one that was acknowledged, which is the first.
struct Left {
    states: Vec<Map>,
}

/// Runs a history until it ends or the disk dies.
fn run(disk: &SimVfs, seed: u64) -> Left {
    let mut dice = Random(seed);
    let mut left = Left { states: vec![Map::new()] };
    let Ok(mut rig) = Rig::open(disk) else { return left };
    for _ in 0..STEPS {
        let before = rig.map();
        assert_eq!(before, left.states[0], "readers see what was acknowledged");
        let mut staged = rig.tables.begin();
        for _ in 0..1 + dice.below(3) {
            // One that is refused changes nothing.
            let _ = staged.apply(vec![draw_change(&mut dice, &before)]);
        }
        let after = map_of(staged.tables());
        match rig.tables.commit(staged) {
            Ok(_) => left.states = vec![after],
            Err(_) => {
                assert_eq!(rig.map(), before, "nobody sees what is not durable");
                left.states.push(after);
                return left;
            }
        }
        match dice.below(100) {
            0..=29 => drop(rig.tables.keep()),
            30..=39 => drop(rig.tables.checkpoint()),
            40..=42 => {
                if rig.close().is_err() {
                    return left;
                }
                drop(rig);
                let Ok(opened) = Rig::open(disk) else { return left };
                rig = opened;
            }
            _ => {}
        }
    }
    left
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_disk_dies() {
    let seed = rng::seed().unwrap_or(1);
    println!("SEED={seed}");
    for history in 0..5 {
        let history_seed = rng::mix(seed + history);
        let whole = SimVfs::new(history_seed);
        run(&whole, history_seed);
        let operations = whole.operations();
        let mut dice = Random(history_seed ^ 1);
        for _ in 0..40 {
            let at = dice.below(operations + 1);
            let dying = SimVfs::new(history_seed);
            dying.fail_after(at);
            let left = run(&dying, history_seed);
            for (what, found) in [("killed", dying.kill()), ("without power", dying.crash())] {
                let what = format!("history {history_seed}, {what} at {at} of {operations}");
                let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
                let map = rig.map();
                assert!(left.states.contains(&map), "{what}: {map:?} is none of {:?}", left.states);
                // It goes on from there, and a second death soon after takes nothing.
                rig.tables
                    .apply(vec![create("after"), insert("after", vec![row(1, "x")])])
                    .unwrap();
                rig.tables.checkpoint().expect("a new disk");
                rig.tables.apply(vec![insert("after", vec![row(2, "y")])]).expect("a new disk");
                let before = rig.map();
                drop(rig);
                let again = Rig::open(&found.crash()).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(again.map(), before, "{what}, and once more");
            }
        }
    }
}
