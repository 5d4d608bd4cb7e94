//! Histories of commands that die at any change of the disk, by power or by kill, while keys go cold,
//! segments are emptied and checkpoints are made: what was acknowledged is there, and what is there
//! is a state that there was.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{Hooked, Map, Rig, draw_record};
use random::Random;
use std::sync::{Arc, Mutex};
use vfs::SimVfs;

const STEPS: u64 = 120;
/// Milliseconds since the epoch at which histories begin.
const START_MS: i64 = 1_700_000_000_000;

fn disk(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(START_MS * 1_000_000);
    disk
}

/// A history: the commands that it draws, and what they left.
struct History {
    dice: Random,
    /// The states that there were.
    states: Vec<Map>,
    /// The last one that was acknowledged.
    acknowledged: usize,
    is_over: bool,
}

impl History {
    fn new(seed: u64) -> History {
        History { dice: Random(seed), states: vec![Map::new()], acknowledged: 0, is_over: false }
    }

    /// Does the next record of commands.
    fn step(&mut self, rig: &Rig) {
        if self.is_over {
            return;
        }
        let result = rig.run_all(&draw_record(&mut self.dice, rig.kv.now_ms()));
        self.states.push(rig.map());
        match result {
            Ok(()) => self.acknowledged = self.states.len() - 1,
            Err(_) => self.is_over = true,
        }
    }
}

/// Opens a keyspace in which commands come while files are made.
fn open(disk: &SimVfs, history: &Arc<Mutex<History>>) -> kv::Result<Arc<Rig>> {
    let hooked = Arc::new(Hooked { disk: disk.clone(), hook: Mutex::default() });
    let rig = Arc::new(Rig::open_on(hooked.clone())?);
    let (weak, history) = (Arc::downgrade(&rig), Arc::clone(history));
    let hook = move || {
        let Some(rig) = weak.upgrade() else { return };
        // Made by a command of the history itself: its log grows.
        let Ok(mut history) = history.try_lock() else { return };
        for _ in 0..history.dice.below(4) {
            history.step(&rig);
            if history.dice.below(2) == 0 {
                // What was just changed goes cold, and the checkpoint under way may show it.
                rig.kv.make_room();
            }
        }
    };
    *hooked.hook.lock().unwrap() = Some(Box::new(hook));
    Ok(rig)
}

/// Runs a history until it ends or the disk dies.
fn run(disk: &SimVfs, seed: u64) -> History {
    let history = Arc::new(Mutex::new(History::new(seed)));
    play(disk, &history);
    Arc::into_inner(history).expect("all else is closed").into_inner().unwrap()
}

fn play(disk: &SimVfs, history: &Arc<Mutex<History>>) {
    let Ok(mut rig) = open(disk, history) else { return };
    for _ in 0..STEPS {
        let event = {
            let mut history = history.lock().unwrap();
            history.step(&rig);
            history.dice.below(100)
        };
        match event {
            0..=39 => drop(rig.kv.keep()),
            40..=46 => drop(rig.kv.checkpoint()),
            47..=48 => {
                if rig.close().is_err() {
                    return;
                }
                drop(rig);
                let Ok(opened) = open(disk, history) else { return };
                rig = opened;
                let history = history.lock().unwrap();
                let expected = alive(&history.states[history.acknowledged], rig.kv.now_ms());
                assert_eq!(rig.map(), expected, "after a clean restart");
            }
            49..=60 => disk.advance(300 * 1_000_000),
            _ => {}
        }
        if history.lock().unwrap().is_over {
            return;
        }
    }
}

/// A state without the keys that have expired since.
fn alive(state: &Map, now_ms: i64) -> Map {
    let alive = state.iter().filter(|(_, (_, expire))| now_ms < *expire);
    alive.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn check(left: &History, found: &Map, now_ms: i64, what: &str) {
    let later = &left.states[left.acknowledged..];
    let is_there = later.iter().any(|state| alive(state, now_ms) == *found);
    assert!(is_there, "{what}: {found:?} is no state since the last acknowledged one: {later:?}");
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_disk_dies() {
    let seed = random::seed().unwrap_or(1);
    println!("SEED={seed}");
    for history in 0..6 {
        let history_seed = random::mix(seed + history);
        let whole = disk(history_seed);
        run(&whole, history_seed);
        let operations = whole.operations();
        let mut dice = Random(history_seed ^ 1);
        for _ in 0..60 {
            let at = dice.below(operations + 1);
            let dying = disk(history_seed);
            dying.fail_after(at);
            let left = run(&dying, history_seed);
            for (what, found) in [("killed", dying.kill()), ("without power", dying.crash())] {
                let what = format!("history {history_seed}, {what} at {at} of {operations}");
                let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
                check(&left, &rig.map(), rig.kv.now_ms(), &what);
                // It goes on from there, and a second death soon after takes nothing.
                rig.run(0, &[b"set", b"after", b"x"]).expect("a new disk");
                rig.kv.keep().expect("a new disk");
                let before = rig.map();
                drop(rig);
                let again = Rig::open(&found.crash()).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(again.map(), before, "{what}, and once more");
            }
        }
    }
}
