//! One damage at a time to each file of a store that holds everything: nothing is changed, a loss is
//! said, `verify` finds it, and a repair loses nothing more.
//!
//! `cargo test -p store --test all damage_matrix -- --nocapture` prints the table of
//! `docs/format/damage.md`.

use crate::damaged::{
    self, SECOND, TURN, copy, files, partial, remove, repair, settled, small_store, try_open,
    verify,
};
use crate::stores;
use model::{Metadata, MetricKind, TimeRange};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use store::Durability;
use vfs::{SimVfs, Vfs};

type Samples = BTreeMap<(String, i64), u64>;

/// What can happen to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Damage {
    Flip,
    Half,
    Zeros,
    Removed,
    OlderCopy,
}

const DAMAGES: [Damage; 5] =
    [Damage::Flip, Damage::Half, Damage::Zeros, Damage::Removed, Damage::OlderCopy];
/// Where bits are flipped, as shares of the file.
const FLIPS: [f64; 4] = [0.02, 0.3, 0.6, 0.97];

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Outcome {
    is_found: bool,
    is_refused: bool,
    is_lost: bool,
    is_said: bool,
}

/// A store, and an older copy of it.
fn build() -> (SimVfs, SimVfs) {
    let older = small_store(1);
    let disk = copy(&older);
    let store = stores::open(&disk, stores::config());
    store.reserve_string_numbers(3).unwrap();
    let help = Metadata { metric: "b".into(), kind: MetricKind::Gauge, ..Metadata::default() };
    store.put_metadata(&[help]).unwrap();
    damaged::append(&store, 0..40, TURN + 900 * SECOND);
    damaged::append_exemplars(&store, TURN + 901 * SECOND);
    store.flush().unwrap();
    damaged::append(&store, 35..45, TURN + 910 * SECOND);
    disk.advance(2 * SECOND as u64);
    damaged::append(&store, 36..46, TURN + 920 * SECOND);
    damaged::append(&store, 37..47, TURN + 930 * SECOND);
    store.wait_durable().unwrap();
    drop(store);
    (settled(&disk), older)
}

/// The kind of a file: its path without numbers.
fn kind_of(path: &Path) -> String {
    let path = path.strip_prefix(damaged::DATA).unwrap().to_string_lossy().into_owned();
    let piece = |piece: &str| match piece.as_bytes()[0] {
        b'0'..=b'9' => match piece.split_once('.') {
            Some((_, ending)) => format!("N.{ending}"),
            None => "P".to_string(),
        },
        _ => piece.to_string(),
    };
    path.split('/').map(piece).collect::<Vec<_>>().join("/")
}

/// Copies of the disk with a damage; none if the damage changes nothing.
fn damaged_copies(disk: &SimVfs, older: &SimVfs, path: &Path, damage: Damage) -> Vec<SimVfs> {
    let bytes = disk.read(path).unwrap();
    let with = |change: &dyn Fn(&SimVfs)| {
        let copied = copy(disk);
        change(&copied);
        settled(&copied)
    };
    match damage {
        Damage::Flip => {
            let offset = |share: f64| (bytes.len() as f64 * share) as u64;
            let flip = |share: f64| with(&|disk| disk.flip_bit(path, offset(share), 2).unwrap());
            FLIPS.into_iter().map(flip).collect()
        }
        Damage::Half => vec![with(&|disk| disk.truncate(path, bytes.len() as u64 / 2).unwrap())],
        Damage::Zeros => vec![with(&|disk| damaged::write(disk, path, &vec![0; bytes.len()]))],
        Damage::Removed => vec![with(&|disk| remove(disk, path))],
        Damage::OlderCopy => match older.read(path) {
            Ok(old) if old != bytes => vec![with(&|disk| damaged::write(disk, path, &old))],
            _ => Vec::new(),
        },
    }
}

/// Samples of a store, and whether anything says that it is not whole.
fn look(disk: &SimVfs) -> Option<(Samples, bool)> {
    let store = try_open(&copy(disk)).ok()?;
    let (found, missing) = partial(&store, TimeRange::ALL);
    let is_cut = 0 < store.stats().log_cut_bytes;
    Some((found, !missing.is_empty() || !store.damage().is_empty() || is_cut))
}

fn check_subset(found: &Samples, truth: &Samples, context: &str) {
    for (sample, value) in found {
        assert_eq!(truth.get(sample), Some(value), "{context}: {sample:?}");
    }
}

/// Damages a store, looks at it, repairs it and looks again.
fn try_one(disk: &SimVfs, truth: &Samples, context: &str) -> Outcome {
    let mut outcome = Outcome { is_found: 0 < verify(disk).problem_count(), ..Outcome::default() };
    let before = look(disk);
    match &before {
        None => outcome.is_refused = true,
        Some((found, is_said)) => {
            check_subset(found, truth, context);
            outcome.is_lost = found.len() < truth.len();
            outcome.is_said = *is_said;
            assert!(*is_said || !outcome.is_lost, "{context}: a loss is not said");
        }
    }
    repair(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(verify(disk).problems, Vec::<String>::new(), "{context}: repaired");
    let (after, _) = look(disk).unwrap_or_else(|| panic!("{context}: refused after a repair"));
    check_subset(&after, truth, context);
    let found = before.map_or(0, |(found, _)| found.len());
    assert!(found <= after.len(), "{context}: a repair loses samples");
    // Writes go on.
    let store = stores::open(disk, stores::config());
    let mut rows = crate::rows::Rows::default();
    rows.push(&store.hasher(), &[("host", "new")], TURN + 950 * SECOND, &[("a", 1.0)]);
    store.append(&rows.batch(), Durability::Synced).unwrap();
    outcome
}

/// One cell of the table.
fn words(outcomes: &BTreeSet<Outcome>) -> String {
    let any = |is: fn(&Outcome) -> bool| outcomes.iter().any(is);
    let all = |is: fn(&Outcome) -> bool| outcomes.iter().all(is);
    let mut words = Vec::new();
    if any(|one| one.is_refused) {
        words.push(if all(|one| one.is_refused) {
            "start refused"
        } else {
            "start may be refused"
        });
    }
    if any(|one| !one.is_refused) {
        words.push(if any(|one| one.is_lost) { "loss" } else { "nothing lost" });
        words.push(if all(|one| one.is_said || one.is_refused) { "said" } else { "-" });
    }
    words.push(if all(|one| one.is_found) { "verify 1" } else { "verify 0" });
    words.join(", ")
}

#[test]
fn each_damage_is_said_and_repaired_and_changes_nothing() {
    let (disk, older) = build();
    let (truth, is_said) = look(&disk).unwrap();
    assert!(!is_said && 300 < truth.len(), "a whole store");
    let mut table: BTreeMap<String, BTreeMap<Damage, BTreeSet<Outcome>>> = BTreeMap::new();
    let paths: Vec<PathBuf> = files(&disk, damaged::DATA);
    for path in &paths {
        let cells = table.entry(kind_of(path)).or_default();
        for damage in DAMAGES {
            for copy in damaged_copies(&disk, &older, path, damage) {
                let context = format!("{} {damage:?}", path.display());
                cells.entry(damage).or_default().insert(try_one(&copy, &truth, &context));
            }
        }
    }
    println!("| file | a bit | half | zeros | removed | older copy |\n|---|---|---|---|---|---|");
    for (kind, cells) in &table {
        let cell = |damage: &Damage| cells.get(damage).map_or("the same".to_string(), words);
        let cells: Vec<String> = DAMAGES.iter().map(cell).collect();
        println!("| `{kind}` | {} |", cells.join(" | "));
        // The log is the only one that may keep a store shut.
        let is_open = |all: &BTreeSet<Outcome>| all.iter().all(|one| !one.is_refused);
        assert!(kind.starts_with("wal/") || table[kind].values().all(is_open), "{kind}");
    }
    let kinds =
        ["MANIFEST", "metadata", "metadata.copy", "exemplars", "strings", "partition-length"];
    for kind in kinds {
        let cells = &table[kind];
        assert!(cells[&Damage::Flip].iter().all(|one| one.is_found && one.is_said), "{kind}");
    }
}
