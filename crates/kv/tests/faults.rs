//! Histories in which single calls of the disk fail, or it is full for a while, and all goes on: what was
//! acknowledged is there, now and after any end.
//!
//! `SEED=n` chooses other histories.

use crate::rig::{Hooked, Map, Rig, draw_record};
use rng::Random;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use vfs::SimVfs;
use vfs::sim::{Call, Errno, FaultPlan};

const STEPS: u64 = 100;
const START_MS: i64 = 1_700_000_000_000;

fn disk(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(START_MS * 1_000_000);
    disk
}

/// What may be found: the states since the last acknowledged one.
struct Played {
    states: Vec<Map>,
}

fn alive(state: &Map, now_ms: i64) -> Map {
    let alive = state.iter().filter(|(_, (_, expire))| now_ms < *expire);
    alive.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Plays a history until the log takes nothing more, with two lives of the process.
fn play(disk: &SimVfs, seed: u64) -> Played {
    let mut dice = Random(seed);
    let mut played = Played { states: vec![Map::new()] };
    for _ in 0..2 {
        disk.set_plan(&FaultPlan::draw(dice.next(), 400));
        let Ok(rig) = Rig::open(disk) else {
            disk.set_plan(&FaultPlan::default());
            continue;
        };
        for _ in 0..STEPS {
            let is_kept = rig.run_all(&draw_record(&mut dice, rig.kv.now_ms())).is_ok();
            if is_kept {
                played.states.clear();
            }
            // Each fault happens once.
            let state = (0..10).find_map(|_| rig.try_map().ok());
            let state = state.expect("the disk gives it in the end");
            played.states.push(state);
            if !is_kept {
                return played;
            }
            match dice.below(8) {
                0..=2 => drop(rig.kv.keep()),
                3 => drop(rig.kv.checkpoint()),
                _ => {}
            }
        }
        drop(rig.close());
        disk.set_plan(&FaultPlan::default());
    }
    played
}

#[test]
fn nothing_acknowledged_is_lost_whatever_fails_and_goes_on() {
    let seed = rng::seed().unwrap_or(1);
    println!("SEED={seed}");
    for history in 0..100 {
        let history_seed = rng::mix(seed ^ (history << 32));
        let disk = disk(history_seed);
        let played = play(&disk, history_seed);
        disk.set_plan(&FaultPlan::default());
        disk.give_room();
        for (what, found) in [("killed", disk.kill()), ("without power", disk.crash())] {
            let what = format!("history {history_seed}, {what}");
            let rig = Rig::open(&found).unwrap_or_else(|error| panic!("{what}: {error}"));
            let (map, now_ms) = (rig.map(), rig.kv.now_ms());
            let is_there = played.states.iter().any(|state| alive(state, now_ms) == map);
            assert!(is_there, "{what}: {map:?} is none of {:?}", played.states);
        }
    }
}

/// Values that are alike, so that a dictionary is trained of them.
fn value(n: u64) -> Vec<u8> {
    let id = rng::mix(n);
    format!("{{\"id\":{id},\"name\":\"user {n}\",\"roles\":[\"reader\",\"writer\"],\"on\":true}}")
        .into_bytes()
}

/// Lets a write fail while a dictionary is trained, and goes on. Returns what there is then; none if it
/// was the log's, which takes nothing more.
fn keys_after_failure(failing: u64) -> Option<usize> {
    let disk = disk(failing);
    let rig = Rig::open(&disk).expect("a new directory");
    for n in 0..1500 {
        let key = format!("user:{n}").into_bytes();
        rig.run(0, &[b"set", &key, &value(n)]).ok()?;
        if n < 1000 || n % 50 != 0 {
            continue;
        }
        if n == 1000 {
            disk.fail_call(Call::Rename, failing, Errno::Full);
        }
        drop(rig.kv.keep());
        disk.set_plan(&FaultPlan::default());
    }
    rig.kv.checkpoint().ok()?;
    rig.close().ok()?;
    drop(rig);
    let rig = Rig::open(&disk.crash()).unwrap_or_else(|error| panic!("{failing}: {error}"));
    Some(rig.map().len())
}

#[test]
fn a_dictionary_that_could_not_be_written_codes_nothing() {
    let found: Vec<Option<usize>> = (0..4).map(keys_after_failure).collect();
    assert!(found.contains(&Some(1500)), "{found:?}");
    assert!(found.iter().flatten().all(|count| *count == 1500), "{found:?}");
}

#[test]
fn a_checkpoint_is_made_though_databases_are_emptied_meanwhile() {
    let disk = disk(7);
    let hooked = Arc::new(Hooked { disk: disk.clone(), hook: Mutex::default() });
    let rig = Arc::new(Rig::open_on(hooked.clone()).expect("a new directory"));
    for n in 0..20 {
        rig.run(0, &[b"set", format!("k{n}").as_bytes(), b"v"]).expect("a good disk");
    }
    let (weak, left) = (Arc::downgrade(&rig), Arc::new(AtomicU32::new(3)));
    let counted = left.clone();
    let empty = move || {
        let Some(rig) = weak.upgrade() else { return };
        let is_due =
            counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if is_due.is_ok() {
            rig.run(1, &[b"flushdb"]).expect("a good disk");
        }
    };
    *hooked.hook.lock().unwrap() = Some(Box::new(empty));
    rig.kv.snapshot(std::path::Path::new("/snapshot")).expect("a good disk");
    assert_eq!(left.load(Ordering::Relaxed), 0);
    let snapshot = Rig::open_in(Arc::new(disk), std::path::Path::new("/snapshot")).expect("whole");
    assert_eq!(snapshot.map(), rig.map());
}

#[test]
fn databases_are_exchanged_while_their_keys_go_cold() {
    let disk = disk(9);
    let rig = Rig::open(&disk).expect("a new directory");
    for n in 0..200 {
        rig.run(0, &[b"set", format!("k{n}").as_bytes(), &value(n)]).expect("a good disk");
    }
    // Cold, and not on disk yet.
    rig.kv.make_room();
    rig.run(0, &[b"swapdb", b"0", b"1"]).expect("a good disk");
    let before = rig.map();
    rig.kv.keep().expect("a good disk");
    rig.kv.checkpoint().expect("a good disk");
    assert_eq!(rig.map(), before);
    drop(rig);
    assert_eq!(Rig::open(&disk.crash()).expect("whole").map(), before);
}
