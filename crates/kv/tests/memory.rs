//! Little memory for keys.

use crate::rig::Rig;
use std::path::Path;
use std::sync::Arc;
use vfs::SimVfs;

#[test]
fn values_in_use_stay_where_the_index_alone_takes_more_than_there_is() {
    const KEYS: usize = 5000;
    let memory = 64 << 10;
    let disk = Arc::new(SimVfs::new(1));
    let rig = Rig::open_with(disk, Path::new(crate::rig::DATA), memory).expect("a new directory");
    let names: Vec<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
    for some in names.chunks(100) {
        let all = some
            .iter()
            .map(|name| (0, vec![b"set".to_vec(), name.clone().into_bytes(), vec![b'v'; 50]]));
        rig.run_all(&all.collect::<Vec<_>>()).expect("a good disk");
        rig.kv.keep().expect("a good disk");
    }
    let used = rig.kv.lock().memory_used();
    assert!(memory < used && used < 8 * memory, "the index takes {used} bytes");
    let (few, reads) = (&names[..8], || rig.kv.lock().stats.cold_reads);
    let look = || {
        for name in few {
            rig.run(0, &[b"get", name.as_bytes()]).expect("a good disk");
            rig.kv.keep().expect("a good disk");
        }
    };
    look();
    let before = reads();
    (0..10).for_each(|_| look());
    assert_eq!(reads(), before, "they are in use");
    assert!(rig.kv.lock().hot_len() < KEYS / 4, "the others are not in memory");
}

#[test]
fn names_are_found_a_piece_at_a_time_whatever_happens_meanwhile() {
    const KEYS: usize = 3000;
    let disk = Arc::new(SimVfs::new(2));
    disk.set_now(1_700_000_000_000_000_000);
    let rig = Rig::open_with(disk.clone(), Path::new(crate::rig::DATA), 16 << 10).expect("new");
    let run = |words: &[&str]| {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        rig.run(0, &words).expect("a good disk");
    };
    for number in 0..KEYS {
        run(&["set", &format!("key:{number}"), &"v".repeat(50)]);
    }
    run(&["set", "gone", "x", "px", "1000"]);
    rig.kv.checkpoint().expect("a good disk");
    for _ in 0..50 {
        rig.kv.keep().expect("a good disk");
    }
    assert!(rig.kv.lock().hot_len() < KEYS / 2, "the others are not in memory");
    disk.advance(2_000_000_000);
    let is_wanted = |name: &[u8]| name != b"key:7";
    let mut found: Vec<Vec<u8>> = Vec::new();
    let pieces = rig.kv.lock().piece_count(0);
    for number in 0..pieces {
        let now_ms = rig.kv.now_ms();
        let mut keys = rig.kv.lock();
        keys.set_now(now_ms);
        let mut piece = keys.piece(0, number, is_wanted).expect("a good disk");
        drop(keys);
        // Others have the keys before the names are read: segments are written anew.
        if number % 64 == 0 {
            for other in (number..KEYS).step_by(3) {
                run(&["set", &format!("key:{other}"), "changed"]);
            }
            rig.kv.checkpoint().expect("a good disk");
            rig.kv.keep().expect("a good disk");
        }
        if !piece.read(is_wanted) {
            piece = rig.kv.lock().whole_piece(0, number, is_wanted).expect("a good disk");
        }
        found.extend(piece.names().map(<[u8]>::to_vec));
    }
    found.sort();
    let wanted = (0..KEYS).filter(|number| *number != 7);
    let mut wanted: Vec<Vec<u8>> = wanted.map(|n| format!("key:{n}").into_bytes()).collect();
    wanted.sort();
    assert_eq!(found, wanted);
}
