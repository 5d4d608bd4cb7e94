//! Numbers of strings are never given out twice, whichever files are lost, and however often.

use crate::damaged::{TURN, remove, settled};
use crate::stores;
use model::Metadata;
use std::path::{Path, PathBuf};
use vfs::{SimVfs, Vfs};

const FILES: [&str; 3] = ["/data/metadata", "/data/metadata.copy", "/data/strings"];
const MANIFEST: &str = "/data/MANIFEST";

/// Opens the store, gives a string the next number as the server does, and closes or kills it.
fn give_number(disk: &SimVfs, is_closed: bool) -> u32 {
    let store = stores::open(disk, stores::config());
    let number = store.reserved_string_number().unwrap_or(0) + 1;
    store.reserve_string_numbers(number).unwrap();
    let name = format!("m{number}");
    store.put_metadata(&[Metadata { metric: name, ..Metadata::default() }]).unwrap();
    if is_closed {
        store.close().unwrap();
    }
    number
}

fn contents(disk: &SimVfs, paths: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
    let there = paths.iter().map(Path::new).filter(|path| disk.exists(path).unwrap());
    there.map(|path| (path.to_path_buf(), disk.read(path).unwrap())).collect()
}

/// Damages a file.
type Damage = fn(&SimVfs, &Path);

#[test]
fn repeated_loss_of_the_dictionary_never_reuses_a_number() {
    let damages: [(&str, Damage); 2] =
        [("removed", remove), ("flip", |disk, path| disk.flip_bit(path, 9, 0).unwrap())];
    for (what, damage) in damages {
        for is_closed in [true, false] {
            let mut disk = SimVfs::new(1);
            disk.set_now(TURN);
            let mut last = 0;
            for round in 0..5 {
                let number = give_number(&disk, is_closed);
                assert!(last < number, "{what}, round {round}: {number} after {last}");
                last = number;
                disk = settled(&disk);
                let there = FILES.map(Path::new);
                there.iter().filter(|path| disk.exists(path).unwrap()).for_each(|path| {
                    damage(&disk, path);
                });
            }
        }
    }
}

#[test]
fn older_copy_of_either_file_does_not_lower_the_reserved_number() {
    for paths in [&FILES[..], &[MANIFEST], &FILES[2..]] {
        let mut disk = SimVfs::new(1);
        disk.set_now(TURN);
        give_number(&disk, true);
        let older = contents(&disk, paths);
        let mut last = 0;
        for round in 0..4 {
            let number = give_number(&disk, true);
            assert!(last < number, "{paths:?}, round {round}: {number} after {last}");
            last = number;
            disk = settled(&disk);
            for (path, bytes) in &older {
                vfs::write_atomic(&disk, path, bytes).unwrap();
            }
        }
    }
}

#[test]
fn loss_of_the_manifest_does_not_lower_the_reserved_number() {
    let mut disk = SimVfs::new(1);
    disk.set_now(TURN);
    let first = give_number(&disk, true);
    disk = settled(&disk);
    remove(&disk, Path::new(MANIFEST));
    let second = give_number(&disk, true);
    assert!(first < second);
    disk = settled(&disk);
    FILES.iter().for_each(|path| remove(&disk, Path::new(path)));
    assert!(second < give_number(&disk, true));
}

#[test]
fn lost_dictionary_of_a_store_without_a_flush_is_reported() {
    let disk = SimVfs::new(1);
    disk.set_now(TURN);
    let store = stores::open(&disk, stores::config());
    store.reserve_string_numbers(1).unwrap();
    drop(store);
    let disk = settled(&disk);
    remove(&disk, Path::new("/data/strings"));
    let problems = crate::damaged::verify(&disk).problems;
    assert!(problems.iter().any(|one| one.file.ends_with("metadata")), "{problems:?}");
    let store = stores::open(&disk, stores::config());
    assert!(store.damage().iter().any(|one| one.file == "metadata"), "{:?}", store.damage());
}
