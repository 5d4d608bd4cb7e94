//! Records that are replayed over keys some of which are newer, or gone.

use crate::rig::{Hooked, Rig};
use std::path::Path;
use std::sync::{Arc, Mutex};
use vfs::{SimVfs, Vfs};

fn command(db: u8, text: &str) -> (u8, Vec<Vec<u8>>) {
    (db, text.split(' ').map(|word| word.as_bytes().to_vec()).collect())
}

fn run(rig: &Rig, text: &str) {
    rig.run_all(&[command(0, text)]).expect("a good disk");
}

#[test]
fn what_follows_an_exchange_within_its_record_is_kept() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new directory");
    for text in ["rpush l a b c d", "set gone x", "set n 1", "set there x"] {
        run(&rig, text);
    }
    rig.kv.checkpoint().expect("a good disk");
    let record = [
        command(0, "append there before"),
        command(0, "swapdb 0 1"),
        command(1, "rpush l e f g h"),
        command(1, "swapdb 0 1"),
        command(0, "rpush l i j k l"),
        command(0, "del gone"),
        command(0, "incr n"),
        command(0, "rename there here"),
    ];
    rig.run_all(&record).expect("a good disk");
    let before = rig.map();
    drop(rig);
    assert_eq!(Rig::open(&disk.kill()).expect("whole").map(), before);
}

#[test]
fn what_follows_a_new_group_within_its_record_is_kept() {
    let disk = SimVfs::new(1);
    let rig = Rig::open(&disk).expect("a new directory");
    // The key of XGROUP is not its first argument.
    let record = [command(0, "xgroup create x g $ mkstream"), command(0, "xadd x 26-3 f v")];
    rig.run_all(&record).expect("a good disk");
    let before = rig.map();
    drop(rig);
    assert_eq!(Rig::open(&disk.kill()).expect("whole").map(), before);
}

/// A keyspace that does those commands while the next checkpoint is made: after it began, and before
/// it copies the index.
pub fn open_with_checkpoint_under(disk: &SimVfs, commands: &'static [&'static str]) -> Arc<Rig> {
    let hooked = Arc::new(Hooked { disk: disk.clone(), hook: Mutex::default() });
    let rig = Arc::new(Rig::open_on(hooked.clone()).expect("a new directory"));
    run(&rig, "rpush l a");
    run(&rig, "zadd z 1 a");
    rig.kv.checkpoint().expect("a good disk");
    let weak = Arc::downgrade(&rig);
    let mut commands = commands.iter();
    let hook = move || {
        let Some(rig) = weak.upgrade() else { return };
        commands.by_ref().for_each(|text| run(&rig, text));
    };
    *hooked.hook.lock().unwrap() = Some(Box::new(hook));
    run(&rig, "set other x");
    rig
}

fn keys_after_checkpoint_under(commands: &'static [&'static str]) {
    let disk = SimVfs::new(2);
    let rig = open_with_checkpoint_under(&disk, commands);
    rig.kv.checkpoint().expect("a good disk");
    let before = rig.map();
    drop(rig);
    assert_eq!(Rig::open(&disk.kill()).expect("whole").map(), before, "{commands:?}");
}

#[test]
fn a_snapshot_is_of_one_moment_whatever_came_while_it_was_made() {
    let disk = SimVfs::new(3);
    let commands = &["rename l m", "set new x", "rpush m b", "zadd z 2 b"];
    let rig = open_with_checkpoint_under(&disk, commands);
    let to = Path::new("/snapshot");
    rig.kv.snapshot(to).expect("a good disk");
    let before = rig.map();
    assert_eq!(before.len(), 4, "{commands:?} were done meanwhile");
    run(&rig, "del m");
    let verified = |disk: &SimVfs| {
        let report = kv::verify::verify(disk, to).expect("listable").expect("keys");
        assert_eq!((report.problems, report.leftovers), (Vec::new(), Vec::new()));
    };
    let copy = disk.crash();
    verified(&copy);
    let vfs: Arc<dyn Vfs> = Arc::new(copy.clone());
    let opened = Rig::open_in(vfs.clone(), to).expect("whole");
    assert_eq!(opened.map(), before);
    // It goes on from there, with and without a checkpoint of its own.
    run(&opened, "del z");
    drop(opened);
    let again = Rig::open_in(vfs.clone(), to).expect("whole");
    assert_eq!(again.map().len(), 3);
    again.close().expect("a good disk");
    drop(again);
    verified(&copy);
    assert_eq!(Rig::open_in(vfs, to).expect("whole").map().len(), 3);
}

#[test]
fn what_was_emptied_while_a_checkpoint_was_made_stays_empty() {
    keys_after_checkpoint_under(&["rpush l b", "ltrim l 0 0", "lrem l 0 a"]);
    keys_after_checkpoint_under(&["rpush l b", "ltrim l 0 0", "lrem l 0 a", "rpush l c"]);
    keys_after_checkpoint_under(&["zadd z 2 b", "zpopmax z", "zrem z a"]);
    keys_after_checkpoint_under(&["zincrby z 4 a", "zremrangebyscore z 5 5"]);
    keys_after_checkpoint_under(&["rpush l b", "rpoplpush l m", "rpoplpush l m"]);
}
