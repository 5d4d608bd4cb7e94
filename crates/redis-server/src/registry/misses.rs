//! Events `keymiss`: keys that a command reads and that are not there.
//!
//! Only evaluated while `notify-keyspace-events` has `m`.

use super::access;
use kv::Keyspace;
use kv::commands::{Group, Info};
use kv::keyspace::EVENT_KEY_MISS;
use std::ops::Range;

/// Commands that change keys and report those that they read first.
const READ_BEFORE_WRITE: &[&str] =
    &["getdel", "getex", "getset", "pfcount", "pfmerge", "xack", "xautoclaim", "xclaim"];
/// Commands that look at keys without reading them.
const SILENT: &[&str] = &[
    "eval_ro",
    "evalsha_ro",
    "fcall_ro",
    "memory|usage",
    "object|encoding",
    "object|freq",
    "object|idletime",
    "object|refcount",
    "watch",
];

/// Adds an event for each key that a command reads and that is not there. Returns the events' places.
#[cold]
pub fn note_misses(keys: &mut Keyspace, db: u8, info: &Info, args: &[&[u8]]) -> Range<usize> {
    let start = keys.event_count();
    if SILENT.contains(&info.name) || info.group == Group::TimeSeries {
        return start..start;
    }
    let places = info.key_places(args).unwrap_or_default();
    let accesses = access::of_places(info, args, &places);
    let gets = info.name == "set";
    for (place, flags) in places.into_iter().zip(accesses) {
        let reads = flags & access::RO != 0
            || READ_BEFORE_WRITE.contains(&info.name)
            || gets && flags & access::ACCESS != 0;
        let Some(key) = args.get(place).filter(|_| reads && flags & access::NOT_KEY == 0) else {
            continue;
        };
        // A key whose record cannot be read is there.
        if !keys.exists(db, key).unwrap_or(true) {
            keys.event(EVENT_KEY_MISS, "keymiss", db, key);
        }
    }
    start..keys.event_count()
}
