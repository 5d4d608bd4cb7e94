//! Values that are read while others have the keys: whatever happens to a key meanwhile, what was
//! read never comes back in place of what is there.

use crate::rig::{DATA, Rig, draw};
use kv::keyspace::Fetch;
use rng::Random;
use std::path::Path;
use std::sync::Arc;
use vfs::SimVfs;

const STEPS: u64 = 600;

/// A keyspace whose values are read ahead and settled some commands later, beside one that does
/// without.
struct Pair {
    ahead: Rig,
    plain: Rig,
    disks: [SimVfs; 2],
    /// What was read, and after which step it is settled.
    read: Vec<(u64, Vec<Fetch>)>,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let disks = [SimVfs::new(seed), SimVfs::new(seed)];
        disks.iter().for_each(|disk| disk.set_now(1_700_000_000_000_000_000));
        let open = |disk| Rig::open(disk).expect("a new directory");
        Pair { ahead: open(&disks[0]), plain: open(&disks[1]), disks, read: Vec::new() }
    }

    fn step(&mut self, step: u64, dice: &mut Random) {
        let (db, words) = draw(dice, self.plain.kv.now_ms());
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let mut fetches = Vec::new();
        words.iter().skip(1).for_each(|key| {
            self.ahead.kv.lock().fetch(db, key, &mut fetches);
        });
        fetches.iter_mut().for_each(Fetch::read);
        self.read.push((step + dice.below(4), fetches));
        self.settle(step);
        for rig in [&self.ahead, &self.plain] {
            rig.run(db, &words).expect("a good disk");
        }
        let event = dice.below(12);
        for rig in [&self.ahead, &self.plain] {
            match event {
                0..=4 => rig.kv.keep().expect("a good disk"),
                5 => rig.kv.checkpoint().expect("a good disk"),
                _ => {}
            }
        }
        if event == 6 {
            self.disks.iter().for_each(|disk| disk.advance(100_000_000));
        }
    }

    fn settle(&mut self, step: u64) {
        let mut keys = self.ahead.kv.lock();
        for (due, fetches) in &mut self.read {
            if *due <= step {
                keys.settle(fetches);
            }
        }
        self.read.retain(|(_, fetches)| !fetches.is_empty());
    }
}

#[test]
fn what_was_read_never_replaces_what_is_there() {
    let seed = rng::seed().unwrap_or(1);
    println!("SEED={seed}");
    for history in 0..8 {
        let history_seed = rng::mix(seed + history);
        let mut dice = Random(history_seed);
        let mut pair = Pair::new(history_seed);
        for step in 0..STEPS {
            pair.step(step, &mut dice);
            if step % 40 == 0 {
                assert_eq!(pair.ahead.map(), pair.plain.map(), "history {history_seed}, {step}");
            }
        }
        let stats = pair.ahead.kv.lock().stats;
        assert!(STEPS / 4 < stats.cold_reads, "{stats:?}: little was read");
        pair.ahead.close().expect("a good disk");
        let before = pair.plain.map();
        let again = Rig::open(&pair.disks[0]).expect("whole");
        assert_eq!(again.map(), before, "history {history_seed}, opened again");
    }
}

#[test]
fn a_value_that_is_read_is_there_and_one_that_changed_is_not() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new directory");
    for key in [b"a".as_slice(), b"b", b"c"] {
        rig.run(0, &[b"set", key, &[b'x'; 100]]).expect("a good disk");
    }
    rig.kv.checkpoint().expect("a good disk");
    // Under the hand twice: then they are cold.
    rig.kv.keep().expect("a good disk");
    rig.kv.keep().expect("a good disk");
    let mut fetches = Vec::new();
    {
        let keys = rig.kv.lock();
        assert!(keys.has_cold());
        [b"a".as_slice(), b"b", b"nobody"].iter().for_each(|key| keys.fetch(0, key, &mut fetches));
    }
    assert_eq!(fetches.len(), 2);
    fetches.iter_mut().for_each(Fetch::read);
    assert!(fetches.iter().all(Fetch::is_read));
    rig.run(0, &[b"set", b"a", b"new"]).expect("a good disk");
    let before = rig.kv.lock().stats.cold_reads;
    let mut keys = rig.kv.lock();
    keys.settle(&mut fetches);
    // That of `b` alone.
    assert_eq!(keys.stats.cold_reads, before + 1);
    let text = |value: Option<&kv::Value>| match value {
        Some(kv::Value::Str(text)) => text.bytes().into_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(text(keys.value(0, b"a").expect("readable")), b"new");
    assert_eq!(text(keys.value(0, b"b").expect("readable")), vec![b'x'; 100]);
    assert_eq!(keys.stats.cold_reads, before + 1);
    let mut none = Vec::new();
    keys.fetch(0, b"b", &mut none);
    assert!(none.is_empty(), "what is in memory needs no disk");
}

/// Hot keys after the keeper came.
fn hot_keys(rig: &Rig) -> usize {
    rig.kv.keep().expect("a good disk");
    rig.kv.lock().hot_len()
}

#[test]
fn a_large_value_stays_while_it_is_in_use_unless_it_is_too_large() {
    let disk = SimVfs::new(1);
    disk.set_now(1_700_000_000_000_000_000);
    let rig =
        Rig::open_with(Arc::new(disk.clone()), Path::new(DATA), 1 << 20).expect("a directory");
    let run = |words: &[&[u8]]| rig.run(0, words).expect("a good disk");
    (0..100_u8).for_each(|key| run(&[b"set", &[key], b"small"]));
    run(&[b"set", b"large", &vec![b'x'; 3 << 20]]);
    assert_eq!(hot_keys(&rig), 1, "the small ones went");
    for _ in 0..20 {
        run(&[b"strlen", b"large"]);
        rig.kv.make_room();
        assert_eq!(hot_keys(&rig), 1);
    }
    assert_eq!(rig.kv.lock().stats.cold_reads, 0);
    disk.advance(6_000_000_000);
    assert_eq!(hot_keys(&rig), 0, "nobody used it for long");
    run(&[b"strlen", b"large"]);
    assert_eq!((hot_keys(&rig), rig.kv.lock().stats.cold_reads), (1, 1));
    // As if the clock had run ahead when it was used.
    disk.set_now(1_600_000_000_000_000_000);
    assert_eq!(hot_keys(&rig), 0, "used in the future");
    run(&[b"append", b"large", &vec![b'y'; 2 << 20]]);
    assert_eq!(hot_keys(&rig), 0, "more than four times what keys may have");
}
