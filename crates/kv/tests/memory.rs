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
