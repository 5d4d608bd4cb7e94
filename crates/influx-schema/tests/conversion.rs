//! Stores of earlier versions, with the schema among the metadata: they are converted when they open,
//! whenever the machine fails during it.

use crate::rig::{DATA, Map, open_store, records_of};
use codec::put_varint;
use influx_schema::records::{Change, Key};
use model::Metadata;
use std::path::Path;
use std::sync::Arc;
use store::Need;
use vfs::{SimVfs, Vfs};
use wal::kinds::{KIND_METADATA, METADATA};
use wal::{Committer, Consumer, Consumers, Log, WalConfig};

/// Name, help and unit of an entry of the table of metadata.
type Entry = (&'static str, &'static str, &'static str);

const IN_FILES: [Entry; 5] = [
    ("\0influx\0db\0m\0f", "", "integer"),
    ("\0influx\0db\0m\0gone", "", "float"),
    ("\0influx\0db\0m\0f:text", "", "string"),
    ("\0text\x0000000001", "OPEN", ""),
    ("cpu", "help", ""),
];
const IN_LOG: [Entry; 5] = [
    ("\0influx\0db\0m\0f", "1", "float"),
    ("\0influx\0db\0m\0gone", "", "gone"),
    ("\0influx\0created", "", ""),
    ("\0text\x0000000002", "CLOSED", ""),
    ("\0influx-policies\0db", "{}", ""),
];

fn expected() -> Map {
    [
        ("database\0created", ""),
        ("field\0db\0m\0f", "float 1"),
        ("policies\0db", "{}"),
        ("string\x0000000001", "OPEN"),
        ("string\x0000000002", "CLOSED"),
        ("strings\0db\0m\0f", ""),
    ]
    .map(|(key, value)| (key.to_string(), value.to_string()))
    .into()
}

fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, help, unit) in entries {
        out.push(0);
        for text in [name, help, unit] {
            put_varint(&mut out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

/// Writes a store as an earlier version does: a part of the schema in the files of metadata, a part in the log.
fn old_store() -> SimVfs {
    let disk = SimVfs::new(1);
    let opened = open_store(&disk).expect("a new disk");
    opened.store.need(Need::Strings).expect("a good disk");
    opened.store.reserve_string_numbers(2).expect("a good disk");
    opened
        .store
        .put_metadata(&[Metadata { metric: "x".into(), ..Metadata::default() }])
        .expect("ok");
    opened.close().expect("a good disk");
    drop(opened);
    let body = [b"QPMETAD2\x05", &encode(&IN_FILES)[..]].concat();
    let bytes = [&body[..], &codec::crc32(&body).to_le_bytes()].concat();
    for name in ["metadata", "metadata.copy"] {
        vfs::write_atomic(&disk, &Path::new(DATA).join(name), &bytes).expect("written");
    }
    let mut consumers = Consumers::default();
    consumers.declare(Consumer {
        name: METADATA,
        kinds: &[KIND_METADATA],
        replay_from: 0,
        next_segment_min: 0,
        take: Box::new(|_| Ok(())),
    });
    let config = WalConfig { committer: Committer::Waiter, ..WalConfig::default() };
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let log = Log::open(vfs, Path::new("/data/wal"), config, consumers).expect("it opens");
    let lsn = log.wal().append(KIND_METADATA, &encode(&IN_LOG)).expect("a good disk");
    log.wal().wait_durable(lsn).expect("a good disk");
    drop(log);
    assert!(!disk.exists(Path::new("/data/schema")).expect("known"));
    disk.kill()
}

/// Whether a file has a name that begins with a zero byte.
fn has_legacy(disk: &SimVfs, name: &str) -> bool {
    let bytes = disk.read(&Path::new(DATA).join(name)).expect("there");
    [&b"\0influx"[..], b"\0text\0"]
        .iter()
        .any(|start| bytes.windows(start.len()).any(|window| window == *start))
}

#[track_caller]
fn check_converted(disk: &SimVfs, what: &str) {
    let opened = open_store(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(records_of(&opened), expected(), "{what}");
    assert_eq!(opened.store.damage(), [], "{what}");
    assert!(opened.store.has(Need::Schema), "{what}: older programs refuse it");
    assert_eq!(opened.store.legacy_schema(), [], "{what}");
    for name in ["metadata", "metadata.copy"] {
        assert!(!has_legacy(disk, name), "{what}: {name}");
    }
    let names: Vec<String> =
        opened.store.metadata(None, 9).into_iter().map(|entry| entry.metric).collect();
    assert_eq!(names, ["cpu"], "{what}");
}

#[test]
fn old_store_is_converted_when_it_opens() {
    let disk = old_store();
    assert!(has_legacy(&disk, "metadata"));
    check_converted(&disk, "first start");
    check_converted(&disk.kill(), "second start");
    check_converted(&disk.crash(), "second start after a power loss");
}

#[test]
fn death_at_each_operation_of_a_conversion_loses_nothing() {
    for death in 0.. {
        let disk = old_store();
        disk.fail_after(death);
        let is_open = open_store(&disk).is_ok();
        for (ending, after) in [("kill", disk.kill()), ("power", disk.crash())] {
            // A second death, one operation later each time, on what the first one left.
            let again = after.kill();
            again.fail_after(death % 17);
            drop(open_store(&again));
            check_converted(&after, &format!("death {death}, {ending}"));
            check_converted(&again.crash(), &format!("death {death}, {ending}, and once more"));
        }
        if is_open {
            assert!(10 < death, "a conversion has more operations");
            break;
        }
    }
}

#[test]
fn what_the_log_still_has_comes_back_over_no_later_change() {
    let disk = old_store();
    let opened = open_store(&disk).expect("it opens");
    let field = Key::Field { database: "db", measurement: "m", field: "f" };
    let changes =
        [Change::put(field, "boolean"), Change::remove(Key::Database { database: "created" })];
    opened.schema.put(&changes).expect("a good disk");
    drop(opened);
    for after in [disk.kill(), disk.crash()] {
        let opened = open_store(&after).expect("it opens");
        let mut changed = expected();
        changed.insert("field\0db\0m\0f".to_string(), "boolean".to_string());
        changed.remove("database\0created");
        assert_eq!(records_of(&opened), changed);
    }
}

#[test]
fn full_disk_converts_in_memory_and_the_next_change_on_disk() {
    let disk = old_store();
    disk.take_room(0);
    let opened = open_store(&disk).expect("it opens");
    assert_eq!(records_of(&opened), expected());
    disk.give_room();
    drop(opened);
    check_converted(&disk.kill(), "after the disk was full");
    let disk = old_store();
    disk.take_room(0);
    let opened = open_store(&disk).expect("it opens");
    disk.give_room();
    if opened.store.read_only_reason().is_none() {
        opened
            .schema
            .put(&[Change::put(Key::String { number: 3 }, "AUTO")])
            .expect("there is room");
        drop(opened);
        let opened = open_store(&disk.kill()).expect("it opens");
        assert_eq!(records_of(&opened).len(), expected().len() + 1);
    }
}

#[test]
fn unfinished_deletion_of_an_earlier_version_is_finished_first() {
    let old = || {
        let disk = old_store();
        // All of time, no partition, no exemplars, and the entries that change.
        let start = b"QPDELET2\x00\x00\x00\x00";
        let gone =
            encode(&[("\0influx\0db\0m\0f", "", "gone"), ("\0influx\0db\0m\0f:text", "", "gone")]);
        let body = [&start[..], &gone].concat();
        let bytes = [&body[..], &codec::crc32(&body).to_le_bytes()].concat();
        vfs::write_atomic(&disk, Path::new("/data/deletion"), &bytes).expect("written");
        disk
    };
    let mut left = expected();
    left.retain(|key, _| !key.ends_with("\0f"));
    for death in 0.. {
        let disk = old();
        disk.fail_after(death);
        let is_open = open_store(&disk).is_ok();
        for after in [disk.kill(), disk.crash()] {
            let opened = open_store(&after).expect("it opens");
            assert_eq!(records_of(&opened), left, "death {death}");
            assert!(!after.exists(Path::new("/data/deletion")).expect("known"));
        }
        if is_open {
            break;
        }
    }
}
