//! Files whose checksums are right and whose content is not: by a mistake of whoever wrote them.
//! Nothing of them ends in a panic; they do not open, or what they say is lived with.

use crate::rows::Rows;
use crate::stores;
use model::{Matcher, Metadata, MetricKind, TimeRange};
use rng::Random;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Durability, SelectLimits, Store};
use vfs::{SimVfs, Vfs};

const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 20_000 * DAY;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };
/// Bytes of a side file before its body.
const MAGIC_SIZE: usize = 8;
/// The largest number that a varint says.
const LARGEST: [u8; 10] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];

fn append(store: &Store) -> Result<(), store::Error> {
    let mut rows = Rows::default();
    for host in ["a", "b"] {
        rows.push(&store.hasher(), &[("host", host)], NOW, &[("m", 1.0), ("n", 2.0)]);
    }
    store.append(&rows.batch(), Durability::Synced).map(drop)
}

/// A store with a part, a deletion and side files.
fn some_store() -> SimVfs {
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    let store = stores::open(&disk, stores::config());
    let (metric, help, unit) = ("m".to_string(), "what it is".to_string(), String::new());
    store.put_metadata(&[Metadata { kind: MetricKind::Gauge, metric, help, unit }]).unwrap();
    for _ in 0..2 {
        append(&store).unwrap();
        store.flush().unwrap();
    }
    store.delete(&[vec![Matcher::equal("host", "b")]], TimeRange::ALL).unwrap();
    store.close().unwrap();
    disk
}

/// Everything that a store does with its files; errors are fine.
fn live(disk: &SimVfs) {
    let opened = Store::open(Arc::new(disk.clone()), Path::new("/data"), stores::config());
    let Ok(store) = opened else { return };
    if let Ok(selection) = store.select(&[vec![]], TimeRange::ALL, &LIMITS) {
        let _ = selection.read(0..selection.len(), &mut |_, _, _| {});
    }
    let _ = append(&store);
    let _ = store.flush();
    let _ = store.force_merge("");
    let _ = store.close();
}

/// Puts a body into the file, with the checksum that it has.
fn put(disk: &SimVfs, path: &Path, magic_size: usize, body: &[u8]) {
    let mut bytes = disk.read(path).unwrap();
    bytes.truncate(magic_size);
    bytes.extend_from_slice(body);
    // The checksum covers all, but in the first version of a side file, where it covers the body.
    let is_first = bytes[..magic_size].ends_with(b"1") && !path.ends_with("MANIFEST");
    let covered = if is_first { magic_size } else { 0 };
    let checksum = codec::crc32(&bytes[covered..]).to_le_bytes();
    bytes.extend_from_slice(&checksum);
    vfs::write_atomic(disk, path, &bytes).unwrap();
}

/// A body in which something else stands than was written.
fn falsify(body: &mut Vec<u8>, dice: &mut Random) {
    for _ in 0..1 + dice.below(3) {
        let at = dice.index(body.len().max(1)).min(body.len());
        match dice.below(4) {
            0 => drop(body.splice(at..at, LARGEST)),
            1 if at < body.len() => drop(body.splice(at..at + 1, LARGEST)),
            2 => body.truncate(at),
            _ if at < body.len() => body[at] = dice.next().to_le_bytes()[0],
            _ => body.push(0),
        }
    }
}

#[test]
fn false_files_do_not_end_in_a_panic() {
    let disk = some_store();
    let files: Vec<PathBuf> = disk.files().into_iter().map(|(path, _)| path).collect();
    let is_meant = |path: &&PathBuf| {
        let in_data = path.parent() == Some(Path::new("/data"));
        path.ends_with("MANIFEST") || (in_data && !path.ends_with(vfs::LOCK_FILE))
    };
    let meant: Vec<&PathBuf> = files.iter().filter(is_meant).collect();
    assert!(3 <= meant.len(), "{files:?}");
    let mut dice = Random::seeded(7);
    for path in meant {
        let bytes = disk.read(path).unwrap();
        let body = &bytes[MAGIC_SIZE..bytes.len() - 4];
        for _ in 0..40 {
            let mut changed = body.to_vec();
            falsify(&mut changed, &mut dice);
            let copy = disk.kill();
            put(&copy, path, MAGIC_SIZE, &changed);
            live(&copy);
        }
    }
}
