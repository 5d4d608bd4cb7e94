//! Histories of commands that die at any change of the disk, by power or by kill, while keys go cold,
//! segments are emptied and checkpoints are made: what was acknowledged is there, and what is there
//! is a state that there was.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{Commands, DATA, Hooked, Map, Rig, draw_alike, draw_of_large, draw_record};
use kv::KvConfig;
use rng::Random;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use vfs::SimVfs;

/// Milliseconds since the epoch at which histories begin.
const START_MS: i64 = 1_700_000_000_000;

fn disk(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(START_MS * 1_000_000);
    disk
}

/// What histories are about.
#[derive(Clone, Copy)]
struct Theme {
    /// Draws commands that become one record of the log.
    draw: fn(&mut Random, i64) -> Commands,
    /// Records of one history.
    steps: u64,
    /// Histories, and deaths of each.
    histories: u64,
    deaths: u64,
    settings: fn(KvConfig) -> KvConfig,
}

/// What was done beside commands, so that a test knows that it was.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    compacted: u64,
    coded: u64,
    frozen: u64,
    trained: u64,
}

impl Work {
    fn of(rig: &Rig) -> Work {
        let stats = rig.kv.lock().stats;
        let trained = rig.kv.compression().trained;
        let (compacted, coded, frozen) = (stats.compacted, stats.coded, stats.frozen);
        Work { compacted, coded, frozen, trained }
    }

    fn add(&mut self, other: Work) {
        self.compacted += other.compacted;
        self.coded += other.coded;
        self.frozen += other.frozen;
        self.trained += other.trained;
    }
}

/// A history: the commands that it draws, and what they left.
struct History {
    theme: Theme,
    dice: Random,
    /// What was done beside them.
    work: Work,
    /// The states that there were.
    states: Vec<Map>,
    /// The last one that was acknowledged.
    acknowledged: usize,
    is_over: bool,
}

impl History {
    fn new(theme: Theme, seed: u64) -> History {
        History {
            theme,
            dice: Random(seed),
            work: Work::default(),
            states: vec![Map::new()],
            acknowledged: 0,
            is_over: false,
        }
    }

    /// Does the next record of commands.
    fn step(&mut self, rig: &Rig) {
        if self.is_over {
            return;
        }
        let result = rig.run_all(&(self.theme.draw)(&mut self.dice, rig.kv.now_ms()));
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
    let settings = history.lock().unwrap().theme.settings;
    let rig = Arc::new(Rig::open_as(hooked.clone(), Path::new(DATA), settings)?);
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
fn run(disk: &SimVfs, theme: Theme, seed: u64) -> History {
    let history = Arc::new(Mutex::new(History::new(theme, seed)));
    play(disk, &history);
    Arc::into_inner(history).expect("all else is closed").into_inner().unwrap()
}

fn play(disk: &SimVfs, history: &Arc<Mutex<History>>) {
    let Ok(mut rig) = open(disk, history) else { return };
    let steps = history.lock().unwrap().theme.steps;
    for _ in 0..steps {
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
                history.lock().unwrap().work.add(Work::of(&rig));
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
    history.lock().unwrap().work.add(Work::of(&rig));
}

/// A state without the keys that have expired since.
fn alive(state: &Map, now_ms: i64) -> Map {
    let alive = state.iter().filter(|(_, (_, expire))| now_ms < *expire);
    alive.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Which keys differ, and how their values begin.
fn difference(expected: &Map, found: &Map) -> Vec<String> {
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let differing = keys.into_iter().filter(|key| expected.get(*key) != found.get(*key));
    let told = |map: &Map, key| {
        let (value, expire) = map.get(key)?;
        let beginning = String::from_utf8_lossy(&value[..value.len().min(100)]).into_owned();
        Some(format!("{} bytes, {beginning}.. until {expire}", value.len()))
    };
    let name = |key: &(u8, Vec<u8>)| String::from_utf8_lossy(&key.1).into_owned();
    let tell =
        |key| format!("{}: {:?}, found {:?}", name(key), told(expected, key), told(found, key));
    differing.map(tell).collect()
}

fn check(left: &History, found: &Map, now_ms: i64, what: &str) {
    let later = &left.states[left.acknowledged..];
    let mut differences = later.iter().map(|state| difference(&alive(state, now_ms), found));
    let nearest = differences.by_ref().min_by_key(Vec::len).unwrap_or_default();
    assert!(nearest.is_empty(), "{what}: no state since the last acknowledged one: {nearest:?}");
}

/// Plays histories and lets each die at many moments. Returns what was done beside commands in those
/// that did not.
fn die_at_any_moment(theme: Theme) -> Work {
    let seed = rng::seed().unwrap_or(1);
    println!("SEED={seed}");
    let mut work = Work::default();
    for history in 0..theme.histories {
        let history_seed = rng::mix(seed + history);
        let whole = disk(history_seed);
        work.add(run(&whole, theme, history_seed).work);
        let operations = whole.operations();
        let mut dice = Random(history_seed ^ 1);
        for _ in 0..theme.deaths {
            let at = dice.below(operations + 1);
            let dying = disk(history_seed);
            dying.fail_after(at);
            let left = run(&dying, theme, history_seed);
            for (what, found) in [("killed", dying.kill()), ("without power", dying.crash())] {
                let what = format!("history {history_seed}, {what} at {at} of {operations}");
                prove(&left, &found, &what);
            }
        }
    }
    work
}

/// What a disk holds after a death is what there was, and it goes on from there.
fn prove(left: &History, found: &SimVfs, what: &str) {
    let open = |disk: &SimVfs| {
        let disk = Arc::new(disk.clone());
        Rig::open_as(disk, Path::new(DATA), left.theme.settings)
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    };
    let rig = open(found);
    check(left, &rig.map(), rig.kv.now_ms(), what);
    // A second death soon after takes nothing.
    rig.run(0, &[b"set", b"after", b"x"]).expect("a new disk");
    rig.kv.keep().expect("a new disk");
    let before = rig.map();
    drop(rig);
    assert_eq!(open(&found.crash()).map(), before, "{what}, and once more");
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_disk_dies() {
    let everyday = Theme {
        draw: draw_record,
        steps: 120,
        histories: 6,
        deaths: 60,
        settings: |config| config,
    };
    let work = die_at_any_moment(everyday);
    assert!(0 < work.compacted && 0 < work.coded, "{work:?}");
}

#[test]
fn nothing_is_lost_of_large_collections_whenever_the_disk_dies() {
    let large = Theme {
        draw: draw_of_large,
        steps: 60,
        histories: 3,
        deaths: 6,
        settings: |config| KvConfig {
            // They stay, and are written down while commands go on.
            memory_max: 1 << 20,
            value_size_max: 16 << 20,
            growth_max: 16 << 20,
            large_size: 1 << 10,
            segment_size: 16 << 10,
            piece_size: 8 << 10,
            checkpoint_log_size: 64 << 10,
            ..config
        },
    };
    let work = die_at_any_moment(large);
    assert!(10 < work.frozen && 0 < work.compacted && 0 < work.coded, "{work:?}");
}

#[test]
fn nothing_is_lost_of_values_with_dictionaries_whenever_the_disk_dies() {
    let alike = Theme {
        draw: draw_alike,
        steps: 80,
        histories: 3,
        deaths: 10,
        settings: |config| KvConfig { dictionary_samples: 40, segment_size: 2048, ..config },
    };
    let work = die_at_any_moment(alike);
    assert!(0 < work.trained && 0 < work.coded && 0 < work.compacted, "{work:?}");
}
