//! Deletions of samples together with schema records: the machine dies at each write, and both are gone or
//! both are there.

use crate::rig::{open_store, records_of};
use influx_schema::records::{Change, Key, OpenedStore, encode_changes};
use model::{KeyDecoder, LabelError, LabelsBuilder, Matcher, Row, Shape, TimeRange, WriteBatch};
use std::borrow::Cow;
use store::{Durability, SelectLimits};
use vfs::SimVfs;

const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 18_322 * DAY;

/// A key that stands for one host.
struct OneHost;

impl KeyDecoder for OneHost {
    fn tags(&self, _: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        tags.push("host", "gone");
        Ok(())
    }

    fn metric_name(&self, _: &[u8], field: &str, name: &mut String) -> Result<(), LabelError> {
        name.push_str(field);
        Ok(())
    }
}

fn append(opened: &OpenedStore, timestamp: i64) {
    let hasher = opened.store.hasher();
    let fields: Vec<Box<str>> = vec!["m_f".into()];
    let shape = Shape { hash: hasher.shape(b"test", &fields), fields };
    let row = Row {
        hash: hasher.hash(b"k", shape.hash),
        timestamp,
        key_offset: 0,
        key_size: 1,
        shape: 0,
        values_start: 0,
        position: 0,
    };
    let batch = WriteBatch {
        bytes: Cow::Borrowed(b"k"),
        shapes: vec![shape],
        rows: vec![row],
        values: vec![1.0],
        decoder: &OneHost,
    };
    opened.store.append(&batch, Durability::Synced).expect("a good disk");
}

fn matchers() -> Vec<Vec<Matcher>> {
    vec![vec![Matcher::equal("host", "gone")]]
}

fn changes() -> Vec<Change> {
    let field = Key::Field { database: "db", measurement: "m", field: "f" };
    vec![Change::remove(field), Change::remove(Key::Database { database: "db" })]
}

/// A store with samples in two months and with records of them.
fn filled(seed: u64) -> (SimVfs, OpenedStore) {
    let disk = SimVfs::new(seed);
    disk.set_now(NOW);
    let opened = open_store(&disk).expect("a new disk");
    let field = Key::Field { database: "db", measurement: "m", field: "f" };
    let records = [Change::put(field, "float"), Change::put(Key::Database { database: "db" }, "")];
    opened.schema.put(&records).expect("a good disk");
    [NOW, NOW - 60 * DAY].iter().for_each(|time| append(&opened, *time));
    opened.store.flush().expect("a good disk");
    (disk, opened)
}

fn delete(opened: &OpenedStore) -> store::Result<u64> {
    let mut apply = || opened.schema.apply_deletion(&changes());
    let encoded = encode_changes(&changes());
    opened.store.delete_with_records(&matchers(), TimeRange::ALL, &encoded, &mut apply)
}

fn sample_count(opened: &OpenedStore) -> usize {
    let limits = SelectLimits::UNLIMITED;
    let selection = opened.store.select(&matchers(), TimeRange::ALL, &limits).expect("selected");
    let mut count = 0;
    selection.read(0..selection.len(), &mut |_, times, _| count += times.len()).expect("read");
    count
}

#[test]
fn samples_and_records_are_deleted_together() {
    let (disk, opened) = filled(0);
    let first = disk.operations();
    delete(&opened).expect("a good disk");
    let last = disk.operations();
    assert_eq!((sample_count(&opened), records_of(&opened).len()), (0, 0));
    drop(opened);
    let (mut done, mut not_begun) = (0, 0);
    for death in first..last {
        let (disk, opened) = filled(death);
        disk.fail_after(death);
        let acknowledged = delete(&opened).is_ok();
        drop(opened);
        for after in [disk.kill(), disk.crash()] {
            let opened = open_store(&after).expect("it opens");
            match (sample_count(&opened), records_of(&opened).len()) {
                (0, 0) => done += 1,
                (2, 2) => {
                    assert!(!acknowledged, "death {death}");
                    not_begun += 1;
                }
                half => panic!("death {death}: {half:?}"),
            }
        }
    }
    assert!(0 < done && 0 < not_begun, "{done} done, {not_begun} not begun");
}
