//! Rot in segments: every bit that flips costs its segment, and is never an answer.

use super::{Index, refuse_rot};
use crate::error::Error;
use crate::matcher::CompiledMatchers;
use crate::{EntityId, NewEntity, SegmentEntry};
use model::{Labels, LabelsBuilder};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use vfs::{SimVfs, Vfs};

/// Entities of each of the two segments.
const ENTITIES: u32 = 40;

fn with_entity<T>(number: u32, act: impl FnOnce(&NewEntity<'_>) -> T) -> T {
    let host = format!("host_{number}");
    let zone = (number % 3).to_string();
    let tags = [("host", host.as_str()), ("zone", zone.as_str())];
    let names: &[&str] = if number.is_multiple_of(2) { &["a", "b"] } else { &["up"] };
    act(&NewEntity::new(names, &tags))
}

/// Two segments, and what a manifest says of them.
fn build(disk: &SimVfs) -> Vec<SegmentEntry> {
    disk.create_dir_all(Path::new("i")).unwrap();
    disk.create_dir_all("i".as_ref()).unwrap();
    let mut index = Index::open(Arc::new(disk.clone()), "i".as_ref(), &[]).unwrap();
    for first in [0, ENTITIES] {
        for number in first..first + ENTITIES {
            with_entity(number, |entity| index.register(entity, &mut Vec::new()).unwrap());
        }
        index.seal();
        let new = index.freeze_job().unwrap().run().unwrap();
        index.install(&new).unwrap();
    }
    index.segments().iter().map(|segment| segment.entry()).collect()
}

fn open(disk: &SimVfs, named: &[SegmentEntry]) -> Result<Index, Error> {
    Index::open(Arc::new(disk.clone()), "i".as_ref(), named)
}

/// All series but those of rotten segments, and how many of these there are.
fn series(index: &Index) -> (BTreeSet<Labels>, usize) {
    let mut rotten = 0;
    let matchers = CompiledMatchers::compile(&[]).unwrap();
    let found = index.search_noting(&matchers, &mut |_, error| {
        assert!(error.is_corrupt());
        rotten += 1;
        Ok(())
    });
    let mut series = BTreeSet::new();
    let (mut reader, mut labels) = (index.label_reader(), LabelsBuilder::new());
    for one in found.unwrap() {
        for (column, slot) in one.columns.iter().flat_map(|c| one.slots.iter().map(move |s| (c, s)))
        {
            labels.clear();
            reader.match_labels(&one, column, slot, &mut labels).unwrap();
            series.insert(labels.finish());
        }
    }
    (series, rotten)
}

/// What looking up an entity gives: never "not there".
fn look_up(index: &Index, number: u32) -> Result<EntityId, Error> {
    let found = with_entity(number, |entity| index.find_entity(entity))?;
    Ok(found.expect("a known entity is never unknown"))
}

/// Before sections were checked when they are first read, a bit in the planes or the strings gave
/// series other labels, and one in the hashes a known series a second id.
#[test]
fn a_flipped_bit_costs_its_segment_and_is_never_an_answer() {
    let disk = SimVfs::new(1);
    let named = build(&disk);
    let path = Path::new("i").join(&named[0].name);
    let sound = open(&disk, &named).unwrap();
    let (truth, none) = series(&sound);
    assert_eq!((truth.len(), none), (120, 0));
    let second: BTreeSet<Labels> = truth.iter().filter(|one| second_half(one)).cloned().collect();
    let (mut costs, mut lost_tables) = (0, 0);
    for bit in 0..disk.size(&path).unwrap() * 8 {
        disk.flip_bit(&path, bit / 8, (bit % 8) as u8).unwrap();
        if let Ok(index) = open(&disk, &named) {
            let (found, rotten) = series(&index);
            match rotten {
                0 => assert_eq!(found, truth, "bit {bit}"),
                _ => assert_eq!((found, rotten), (second.clone(), 1), "bit {bit}"),
            }
            costs += rotten;
            for number in [0, 7, ENTITIES] {
                match look_up(&index, number) {
                    Ok(id) => assert_eq!(id, look_up(&sound, number).unwrap(), "bit {bit}"),
                    Err(error) => assert!(error.is_corrupt() && number < ENTITIES, "{error}"),
                }
            }
            lost_tables += usize::from(look_up(&index, 0).is_err());
        }
        disk.flip_bit(&path, bit / 8, (bit % 8) as u8).unwrap();
    }
    assert!(5000 < costs && costs < lost_tables + costs, "{costs} {lost_tables}");
}

fn second_half(labels: &Labels) -> bool {
    let host = labels.iter().find(|(name, _)| *name == "host").map(|(_, host)| &host[5..]);
    host.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| ENTITIES <= number))
}

/// Before, a merge copied rot under fresh checksums.
#[test]
fn a_merge_never_copies_rot() {
    let disk = SimVfs::new(1);
    let named = build(&disk);
    let path = Path::new("i").join(&named[1].name);
    for byte in (16..disk.size(&path).unwrap() - 300).step_by(11) {
        let index = open(&disk, &named).unwrap();
        // All is read and found right; then it rots where it lies.
        assert_eq!(series(&index).1, 0);
        drop(index);
        disk.flip_bit(&path, byte, 5).unwrap();
        let index = open(&disk, &named).unwrap();
        let merged = index.merge_job(0..2).run(None);
        assert!(matches!(&merged, Err(error) if error.is_corrupt()), "byte {byte}");
        assert!(index.segments()[1].is_damaged() && !index.segments()[0].is_damaged());
        disk.flip_bit(&path, byte, 5).unwrap();
    }
}

#[test]
fn who_needs_all_gets_an_error() {
    let disk = SimVfs::new(1);
    let named = build(&disk);
    let path = Path::new("i").join(&named[0].name);
    disk.flip_bit(&path, 16, 0).unwrap();
    let index = open(&disk, &named).unwrap();
    let matchers = CompiledMatchers::compile(&[]).unwrap();
    for found in [index.search(&matchers), index.search_noting(&matchers, &mut refuse_rot)] {
        assert!(matches!(found, Err(Error::Corrupt { file, .. }) if file == named[0].name));
    }
}

/// On the real file system: the file is cut short under a running index.
#[test]
fn a_segment_cut_short_costs_itself() {
    let dir = tempfile::tempdir().unwrap();
    let sim = SimVfs::new(1);
    let named = build(&sim);
    for SegmentEntry { name, .. } in &named {
        let bytes = sim.read(&Path::new("i").join(name)).unwrap();
        // Room behind the segment's pages, so that there is something to cut.
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    for is_read_before in [true, false] {
        let vfs: Arc<dyn Vfs> = Arc::new(vfs::RealVfs::new());
        let index = Index::open(vfs, dir.path(), &named).unwrap();
        if is_read_before {
            assert_eq!(series(&index).1, 0);
        }
        let path = dir.path().join(&named[0].name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        let (found, rotten) = series(&index);
        assert_eq!((found.len(), rotten), (60, 1));
        assert!(look_up(&index, 3).is_err());
        assert!(look_up(&index, ENTITIES).is_ok(), "what lies in the other");
        assert!(index.merge_job(0..2).run(None).is_err());
        drop(index);
        std::fs::write(&path, whole).unwrap();
    }
}

/// The segments of two months may have one name: without the footer's checksum the one would be taken
/// for the other, and every series for another.
#[test]
fn a_segment_of_another_index_is_none_of_this_one() {
    let (disk, others) = (SimVfs::new(1), SimVfs::new(2));
    let named = build(&disk);
    others.create_dir_all(Path::new("i")).unwrap();
    let mut index = Index::open(Arc::new(others.clone()), "i".as_ref(), &[]).unwrap();
    for number in 0..ENTITIES {
        with_entity(number + 7, |entity| index.register(entity, &mut Vec::new()).unwrap());
    }
    index.seal();
    let other = index.freeze_job().unwrap().run().unwrap().entry();
    assert!(other.name == named[0].name && other.footer != named[0].footer);
    let folder = Path::new("i");
    let bytes = others.read(&folder.join(&other.name)).unwrap();
    vfs::write_atomic(&disk, &folder.join(&named[0].name), &bytes).unwrap();
    let opened = open(&disk, &named);
    assert!(matches!(&opened, Err(Error::Corrupt { file, .. }) if *file == named[0].name));
    assert!(crate::salvage(&named[0], bytes.clone().into(), 9).is_none(), "nothing of it is ours");
    // What nobody named by its footer may be told by its name.
    vfs::write_atomic(&disk, &folder.join(&named[1].name), &bytes).unwrap();
    let unchecked = SegmentEntry::unchecked(named[1].name.clone());
    assert!(matches!(open(&disk, &[unchecked]), Err(Error::Corrupt { .. })));
}
