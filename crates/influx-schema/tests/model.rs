//! Random changes of schema records, checkpoints and restarts, compared with a plain map.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{Map, Rig, draw_changes};
use rng::Random;
use vfs::SimVfs;

const STEPS: u64 = 400;

#[test]
fn records_are_those_of_a_plain_map() {
    let seed = rng::seed().unwrap_or(1);
    println!("SEED={seed}");
    for history in 0..8 {
        let disk = SimVfs::new(history);
        let mut dice = Random(rng::mix(seed + history));
        let mut rig = Rig::open(&disk).expect("a new disk");
        let mut model = Map::new();
        for step in 0..STEPS {
            let (changes, after) = draw_changes(&mut dice, &model);
            rig.put(&changes).expect("a good disk");
            model = after;
            assert_eq!(rig.map(), model, "history {history}, step {step}");
            match dice.below(20) {
                0..=4 => rig.records.keep().expect("a good disk"),
                5 => rig.records.checkpoint().expect("a good disk"),
                6 => rig.records.scrub().expect("a good disk"),
                7 => {
                    if dice.below(2) == 0 {
                        rig.close().expect("a good disk");
                    }
                    drop(rig);
                    rig = Rig::open(&disk).expect("a good disk");
                    assert_eq!(rig.map(), model, "history {history}, step {step}, opened again");
                    assert_eq!(rig.records.take_damage(), []);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn log_is_cut_behind_checkpoints() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new disk");
    let mut dice = Random(1);
    let mut map = Map::new();
    for _ in 0..400 {
        let (changes, after) = draw_changes(&mut dice, &map);
        rig.put(&changes).expect("a good disk");
        map = after;
        rig.records.keep().expect("a good disk");
    }
    let stats = rig.log.wal().stats();
    assert!(4 < stats.segment, "the history filled {} segments", stats.segment);
    assert!(stats.size < 4 * 2048, "{} bytes of log are left", stats.size);
    rig.records.checkpoint().expect("a good disk");
    assert_eq!(rig.log.pin(), None, "the records need nothing of the log");
}
