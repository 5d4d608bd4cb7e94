//! Large values, which a checkpoint writes down while commands change them.

use crate::rig::{Hooked, Rig};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use vfs::{AppendFile, Layer, SimVfs, Vfs};

const FIELDS: usize = 6000;
/// Memory for keys: large values stay.
const MEMORY: usize = 64 << 20;

fn command(db: u8, text: &str) -> (u8, Vec<Vec<u8>>) {
    (db, text.split(' ').map(|word| word.as_bytes().to_vec()).collect())
}

fn run(rig: &Rig, text: &str) {
    rig.run_all(&[command(0, text)]).expect("a good disk");
}

/// A keyspace with a hash, a set and a sorted set, each large, which does those commands while the next
/// checkpoint writes them down.
fn open_with_checkpoint_under(disk: &SimVfs, commands: &'static [&'static str]) -> Arc<Rig> {
    let hooked = Arc::new(Hooked { disk: disk.clone(), hook: Mutex::default() });
    let rig = Rig::open_with(hooked.clone(), Path::new("/data"), MEMORY).expect("new");
    let rig = Arc::new(rig);
    fill(&rig);
    let weak = Arc::downgrade(&rig);
    let mut commands = commands.iter();
    let hook = move || {
        let Some(rig) = weak.upgrade() else { return };
        commands.by_ref().for_each(|text| run(&rig, text));
    };
    *hooked.hook.lock().unwrap() = Some(Box::new(hook));
    rig
}

fn fill(rig: &Rig) {
    let rest = "x".repeat(250);
    for start in (0..FIELDS).step_by(100) {
        let numbers = start..start + 100;
        let all = numbers.flat_map(|n| {
            [
                command(0, &format!("hset h {n} {n}{rest}")),
                command(0, &format!("sadd s {n}{rest}")),
                command(0, &format!("zadd z {n} {n}{rest}")),
            ]
        });
        rig.run_all(&all.collect::<Vec<_>>()).expect("a good disk");
    }
    run(rig, "hpexpire h 100000 fields 2 7 8");
}

fn keys_after_checkpoint_under(commands: &'static [&'static str]) {
    let disk = SimVfs::new(8);
    disk.set_now(1_700_000_000_000_000_000);
    let rig = open_with_checkpoint_under(&disk, commands);
    rig.kv.checkpoint().expect("a good disk");
    let before = rig.map();
    assert_eq!(Rig::open(&disk.kill()).expect("whole").map(), before, "{commands:?}");
    // What changed meanwhile is written by the next one.
    rig.kv.checkpoint().expect("a good disk");
    assert_eq!(rig.map(), before);
    let again = Rig::open(&disk.kill()).expect("whole");
    assert_eq!(again.map(), before, "{commands:?}");
}

#[test]
fn what_changes_while_it_is_written_down_is_kept() {
    keys_after_checkpoint_under(&[]);
    keys_after_checkpoint_under(&["hset h 5 new", "hdel h 4999 17", "hset h more 1"]);
    keys_after_checkpoint_under(&["srem s nobody", "sadd s more", "zincrby z 5 more", "zpopmin z"]);
    keys_after_checkpoint_under(&["hpersist h fields 1 7", "hdel h 8"]);
}

#[test]
fn what_goes_while_it_is_written_down_stays_gone() {
    keys_after_checkpoint_under(&["del h s"]);
    keys_after_checkpoint_under(&["del h", "set other 1", "set another 2", "hset h f v"]);
    keys_after_checkpoint_under(&["rename h i", "set h 1"]);
    keys_after_checkpoint_under(&["set h replaced"]);
    keys_after_checkpoint_under(&["move s 2"]);
    keys_after_checkpoint_under(&["pexpireat z 1700000000001"]);
}

#[test]
fn databases_that_are_emptied_or_exchanged_meanwhile_begin_it_anew() {
    keys_after_checkpoint_under(&["swapdb 0 1"]);
    keys_after_checkpoint_under(&["swapdb 0 1", "swapdb 0 1", "hset h 5 new"]);
    keys_after_checkpoint_under(&["flushdb"]);
    keys_after_checkpoint_under(&["flushdb", "set other 1"]);
}

/// A disk that takes no segment for once.
struct Failing {
    disk: SimVfs,
    fails: AtomicBool,
}

impl Layer for Failing {
    fn below(&self) -> &dyn Vfs {
        &self.disk
    }

    fn create(&self, path: &Path) -> vfs::Result<Box<dyn AppendFile>> {
        let is_segment = path.extension().is_some_and(|end| end == "cold");
        if is_segment && self.fails.load(Ordering::Relaxed) {
            let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(vfs::Error::new("create", path, error));
        }
        self.disk.create(path)
    }
}

#[test]
fn a_disk_that_fails_meanwhile_loses_nothing() {
    let disk = SimVfs::new(9);
    let failing = Arc::new(Failing { disk: disk.clone(), fails: AtomicBool::new(true) });
    let rig = Rig::open_with(failing.clone(), Path::new("/data"), MEMORY).expect("new");
    fill(&rig);
    assert!(rig.kv.checkpoint().is_err());
    let before = rig.map();
    failing.fails.store(false, Ordering::Relaxed);
    run(&rig, "set other 1");
    rig.kv.checkpoint().expect("there is room");
    assert_eq!(rig.map().len(), before.len() + 1);
    drop(rig);
    let mut found = Rig::open(&disk.kill()).expect("whole").map();
    found.remove(&(0, b"other".to_vec()));
    assert_eq!(found, before);
}
