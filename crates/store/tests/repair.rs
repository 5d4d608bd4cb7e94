//! A store is damaged, verified, repaired and opened: each kind of damage is said in words, and after
//! the repair all that was not listed as lost is there, and nothing else.
//!
//! `SEED=n` chooses other bits, `FLIPS=n` how many.

use crate::damaged;
use crate::damaged::{
    Answers, DATA, FIRST, Lost, SECOND, SECOND_MONTH, TURN, answers, check_repaired, copy, cut,
    files, flip, nth, remove, repair, settled, small_store, verify, write,
};
use crate::stores;
use rng::Random;
use std::path::Path;
use std::sync::Arc;
use vfs::{SimVfs, Vfs};

/// What is done to a store, and what is said of it.
type Damage = (fn(&SimVfs), &'static str);

/// Damages a store, expects these words of verification, repairs, and returns how many samples were
/// there and are, and what was listed as lost.
#[track_caller]
fn case(damage: impl Fn(&SimVfs), words: &[&str]) -> (usize, usize, Vec<Lost>) {
    let disk = small_store(1);
    let truth = answers(&disk).unwrap();
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
    damage(&disk);
    let report = verify(&disk);
    for words in words {
        let is_said = report.problems.iter().any(|problem| problem.contains(words));
        assert!(is_said, "{words:?} is not in {:#?}", report.problems);
    }
    let before = files(&disk, DATA);
    let (steps, lost) = repair(&disk).unwrap();
    println!("{}", steps.join("\n"));
    let found = check_repaired(&disk, &truth, &lost, words.first().unwrap_or(&""));
    // Nothing is deleted: what is not at its place any more is among what was moved aside.
    let after = files(&disk, DATA);
    for file in before.iter().filter(|file| !after.contains(file)) {
        let name = file.strip_prefix(DATA).unwrap();
        assert!(after.iter().any(|moved| moved.ends_with(name)), "{} is gone", file.display());
    }
    (truth.len(), found.len(), lost)
}

fn parts(month: &str) -> String {
    format!("{month}/parts")
}

fn segments(month: &str) -> String {
    format!("{month}/index")
}

#[test]
fn a_sound_store_has_nothing_to_repair() {
    let disk = small_store(1);
    let operations = disk.operations();
    let (steps, lost) = repair(&disk).unwrap();
    assert_eq!((steps.len(), lost.len()), (0, 0), "{steps:?}");
    assert!(disk.operations() - operations < 3, "only the lock is taken");
    assert!(!disk.exists(Path::new("/data/damaged")).unwrap());
}

#[test]
fn a_manifest_that_is_missing_or_corrupt_is_made_again_and_nothing_is_lost() {
    let damages: [Damage; 4] = [
        (|disk| remove(disk, &Path::new(SECOND_MONTH).join("MANIFEST")), "MANIFEST: is missing"),
        (|disk| flip(disk, &Path::new(SECOND_MONTH).join("MANIFEST"), 0.5), "checksum mismatch"),
        (|disk| cut(disk, &Path::new(SECOND_MONTH).join("MANIFEST"), 0.5), "checksum mismatch"),
        (|disk| cut(disk, &Path::new(SECOND_MONTH).join("MANIFEST"), 0.0), "MANIFEST: is corrupt"),
    ];
    for (damage, words) in damages {
        let (before, after, lost) = case(damage, &[words]);
        assert_eq!(before, after);
        assert!(lost[0].text.contains("deletions"), "{lost:?}");
    }
    let (before, after, _) = case(
        |disk| {
            for month in [FIRST, SECOND_MONTH] {
                remove(disk, &Path::new(month).join("MANIFEST"));
            }
        },
        &["2020-02/MANIFEST: is missing", "2020-03/MANIFEST: is missing"],
    );
    assert_eq!(before, after);
}

#[test]
fn samples_deleted_before_a_merge_come_back_with_a_lost_manifest_and_after_one_do_not() {
    for is_merged in [false, true] {
        let disk = small_store(1);
        let store = stores::open(&disk, stores::config());
        let whose = vec![vec![model::Matcher::equal("host", "h1")]];
        store.delete(&whose, model::TimeRange::ALL).unwrap();
        if is_merged {
            store.force_merge("").unwrap();
        }
        drop(store);
        let disk = settled(&disk);
        let before = answers(&disk).unwrap();
        remove(&disk, &Path::new(FIRST).join("MANIFEST"));
        let (_, lost) = repair(&disk).unwrap();
        assert!(lost.iter().any(|one| one.text.contains("come back")), "{lost:?}");
        assert_eq!(verify(&disk).problems, Vec::<String>::new());
        let after = answers(&disk).unwrap();
        assert!(before.iter().all(|(sample, bits)| after.get(sample) == Some(bits)));
        let back = after.keys().filter(|sample| !before.contains_key(sample));
        let back: Vec<_> = back.map(|(labels, _)| labels.get("host").unwrap()).collect();
        assert_eq!(back.is_empty(), is_merged, "{back:?}");
        assert!(back.iter().all(|host| *host == "h1"));
    }
}

#[track_caller]
fn check_same(found: &Answers, expected: &Answers) {
    let missing = expected.iter().filter(|(sample, bits)| found.get(sample) != Some(bits));
    let others = found.keys().filter(|sample| !expected.contains_key(sample));
    let missing: Vec<_> = missing.take(5).collect();
    let others: Vec<_> = others.take(5).collect();
    assert!(missing.is_empty() && others.is_empty(), "missing {missing:?}, new {others:?}");
}

#[test]
fn rows_of_the_deleted_in_the_log_do_not_keep_a_store_with_a_lost_manifest_from_opening() {
    let disk = small_store(1);
    let store = stores::open(&disk, stores::config());
    // Another month's rows keep the log; those of the deleted are in it, too.
    damaged::append(&store, 40..45, TURN + 400 * SECOND);
    damaged::append(&store, 3..7, TURN - 500 * SECOND);
    store.flush().unwrap();
    let whose = vec![vec![model::Matcher::new("host", model::MatchOp::Regex, "h4.")]];
    damaged::append(&store, 40..45, TURN + 410 * SECOND);
    let log: Vec<_> = files(&disk, "/data/wal");
    let kept: Vec<_> = log.iter().map(|path| (path, disk.read(path).unwrap())).collect();
    store.delete(&whose, model::TimeRange::ALL).unwrap();
    store.force_merge("").unwrap();
    damaged::append(&store, 1..3, TURN + 500 * SECOND);
    drop(store);
    let disk = settled(&disk);
    let before = answers(&disk).unwrap();
    // As if the log had not been shortened yet.
    for (path, bytes) in kept.iter().filter(|(path, _)| !disk.exists(path).unwrap()) {
        write(&disk, path, bytes);
    }
    remove(&disk, Path::new("/data/wal/START"));
    check_same(&answers(&disk).unwrap(), &before);
    remove(&disk, &Path::new(SECOND_MONTH).join("MANIFEST"));
    let (steps, lost) = repair(&disk).unwrap();
    // Replay starts behind them; nothing of the log has to go. The second step accepts that `START` is
    // missing.
    assert_eq!((steps.len(), lost.len()), (2, 2), "{steps:#?} {lost:?}");
    assert!(lost[1].text.contains("wal/START"), "{lost:?}");
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
    check_same(&answers(&disk).unwrap(), &before);
}

#[test]
fn a_part_that_does_not_open_is_moved_aside() {
    for share in [0.9999, 0.0] {
        let (before, after, lost) =
            case(|disk| cut(disk, &nth(disk, &parts(FIRST), 0), share), &["is corrupt at byte"]);
        assert!(after < before && lost[0].text.contains("all samples of the part"), "{lost:?}");
    }
    let gone = |disk: &SimVfs| remove(disk, &nth(disk, &parts(FIRST), 1));
    let (before, after, _) = case(gone, &["cannot be read (map)"]);
    assert!(after < before);
}

#[test]
fn a_bad_page_costs_its_samples_and_no_others() {
    let mut worst = 0;
    for share in [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7] {
        let damage = |disk: &SimVfs| flip(disk, &nth(disk, &parts(SECOND_MONTH), 1), share);
        let (before, after, lost) = case(damage, &[".part: is corrupt at byte"]);
        assert!(after <= before && lost.iter().all(|one| one.labels.is_some()), "{lost:?}");
        worst = worst.max(before - after);
    }
    assert!(0 < worst && worst < 200, "{worst}");
}

#[test]
fn a_damaged_segment_of_the_index_is_made_again() {
    for share in [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99] {
        let damage = |disk: &SimVfs| flip(disk, &nth(disk, &segments(FIRST), 0), share);
        let (before, after, lost) = case(damage, &[".seg: is corrupt at byte"]);
        assert_eq!((before, lost.len()), (after, 0));
    }
}

#[test]
fn a_lost_segment_of_the_index_costs_its_series_and_never_mixes_them_up() {
    let damages: [fn(&SimVfs, &Path); 3] = [
        |disk, path| cut(disk, path, 0.6),
        |disk, path| remove(disk, path),
        |disk, path| write(disk, path, b"no segment at all"),
    ];
    for damage in damages {
        for n in [0, 1] {
            let damage = |disk: &SimVfs| damage(disk, &nth(disk, &segments(SECOND_MONTH), n));
            let (before, after, lost) = case(damage, &[".seg: "]);
            assert!(0 < after && after < before);
            assert!(lost.iter().any(|one| one.text.contains("whose labels are lost")), "{lost:?}");
        }
    }
}

#[test]
fn series_that_come_after_a_lost_segment_get_nothing_of_the_lost() {
    let disk = small_store(1);
    let truth = answers(&disk).unwrap();
    remove(&disk, &nth(&disk, &segments(SECOND_MONTH), 1));
    repair(&disk).unwrap();
    let store = stores::open(&disk, stores::config());
    damaged::append(&store, 500..540, TURN + 600 * SECOND);
    store.close().unwrap();
    drop(store);
    let found = answers(&disk).unwrap();
    for ((labels, time), bits) in &found {
        let is_new = *time == TURN + 600 * SECOND;
        assert!(is_new || truth.get(&(labels.clone(), *time)) == Some(bits), "{labels} {time}");
    }
    assert_eq!(verify(&disk).problems, Vec::<String>::new());
}

#[test]
fn a_damaged_record_of_the_log_costs_itself() {
    let mut lost_all = Vec::new();
    for share in [0.1, 0.2, 0.5, 0.9] {
        let damage = |disk: &SimVfs| flip(disk, &nth(disk, "/data/wal", 0), share);
        let (before, after, lost) = case(damage, &[".wal: is corrupt from byte"]);
        lost_all.push(before - after);
        assert!(lost.iter().any(|one| one.text.contains("records that no part has yet")));
    }
    assert!(lost_all.iter().any(|lost| 0 < *lost), "{lost_all:?}");
}

#[test]
fn a_damaged_header_of_the_log_costs_nothing() {
    for byte in [0, 9, 15, 25, 30] {
        let damage = |disk: &SimVfs| {
            disk.flip_bit(&nth(disk, "/data/wal", 0), byte, 2).unwrap();
        };
        let (before, after, _) = case(damage, &["the header is corrupt"]);
        assert_eq!(before, after, "byte {byte}");
    }
}

#[test]
fn a_gap_in_the_log_is_filled() {
    let disk = small_store(1);
    let store = stores::open(&disk, stores::config());
    damaged::append(&store, 0..3, TURN + 900 * SECOND);
    drop(store);
    let disk = copy(&disk);
    let truth = answers(&disk).unwrap();
    let logs = files(&disk, "/data/wal");
    assert_eq!(logs.iter().filter(|path| path.to_str().unwrap().ends_with(".wal")).count(), 3);
    remove(&disk, &logs[1]);
    let report = verify(&disk);
    assert!(report.problems[0].contains("is missing, though later segments"), "{report:?}");
    let (_, lost) = repair(&disk).unwrap();
    let found = check_repaired(&disk, &truth, &lost, "gap");
    assert!(found.len() < truth.len());
}

#[test]
fn a_torn_end_of_the_log_is_a_note() {
    let disk = small_store(1);
    let log = nth(&disk, "/data/wal", 1);
    let bytes = disk.read(&log).unwrap();
    write(&disk, &log, &[&bytes[..], b"half a record"].concat());
    let report = verify(&disk);
    assert_eq!(report.problems, Vec::<String>::new());
    assert!(report.notes.iter().any(|note| note.contains("has a torn end: 13 bytes")));
    assert_eq!(repair(&disk).unwrap().0, Vec::<String>::new());
}

#[test]
fn damaged_side_files_are_moved_aside() {
    let cases: [&[&str]; 2] = [&["metadata", "metadata.copy"], &["exemplars"]];
    for names in cases {
        let flip_all = |disk: &SimVfs| {
            names.iter().for_each(|name| flip(disk, &Path::new(DATA).join(name), 0.6))
        };
        let words: Vec<String> =
            names.iter().map(|name| format!("{name}: is corrupt at byte")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (before, after, lost) = case(flip_all, &words);
        assert_eq!((before, after, lost.len()), (before, before, 1));
    }
}

#[test]
fn orphans_are_moved_aside_and_leftovers_are_notes() {
    let copy_part = |disk: &SimVfs, name: &str| {
        let part = disk.read(&nth(disk, &parts(FIRST), 0)).unwrap();
        write(disk, &Path::new(FIRST).join("parts").join(name), &part);
    };
    let (before, after, lost) = case(
        |disk| {
            copy_part(disk, "0000000000000000.part");
            copy_part(disk, "0000000000000001.part.corrupt");
            let segment = disk.read(&nth(disk, &segments(FIRST), 0)).unwrap();
            let name = "00000000-00ffffff-000000.seg";
            write(disk, &Path::new(FIRST).join("index").join(name), &segment);
            write(disk, Path::new("/data/exemplars.corrupt"), b"x");
            disk.create_dir_all(Path::new("/data/partitions/odd")).unwrap();
        },
        &[
            "0000000000000000.part: is an orphan",
            "0000000000000001.part.corrupt: was set aside as corrupt",
            "00000000-00ffffff-000000.seg: is an orphan",
            "exemplars.corrupt: was set aside as corrupt",
            "odd: is no partition",
        ],
    );
    assert_eq!((before, lost.len()), (after, 0));

    let disk = small_store(1);
    copy_part(&disk, "00000000000000ff.part");
    copy_part(&disk, "00000000000000fe.part.tmp");
    write(&disk, Path::new("/data/metadata.tmp"), b"x");
    write(&disk, Path::new("/data/lost+found"), b"x");
    disk.create_dir_all(Path::new("/data/partitions/2019-01.dropped-1")).unwrap();
    let report = verify(&disk);
    assert_eq!(report.problems, Vec::<String>::new());
    for words in [
        "00000000000000ff.part: was left by a crash",
        "00000000000000fe.part.tmp: was being written",
        "metadata.tmp: was being written",
        "lost+found: is not of the store",
        "2019-01.dropped-1: was dropped",
    ] {
        assert!(report.notes.iter().any(|note| note.contains(words)), "{words}: {report:#?}");
    }
    assert_eq!(repair(&disk).unwrap().0, Vec::<String>::new());
}

#[test]
fn a_repair_that_dies_anywhere_is_done_by_running_it_again() {
    let damages: [fn(&SimVfs); 6] = [
        |disk| {
            remove(disk, &Path::new(SECOND_MONTH).join("MANIFEST"));
            flip(disk, &nth(disk, &parts(SECOND_MONTH), 1), 0.4);
            flip(disk, &nth(disk, &segments(SECOND_MONTH), 0), 0.4);
        },
        |disk| {
            flip(disk, &Path::new(FIRST).join("MANIFEST"), 0.5);
            cut(disk, &nth(disk, &parts(FIRST), 0), 0.5);
        },
        |disk| remove(disk, &nth(disk, &segments(SECOND_MONTH), 1)),
        |disk| {
            flip(disk, &nth(disk, "/data/wal", 0), 0.3);
            flip(disk, Path::new("/data/metadata"), 0.6);
        },
        |disk| {
            flip(disk, Path::new("/data/metadata"), 0.6);
            flip(disk, Path::new("/data/metadata.copy"), 0.6);
        },
        |disk| {
            flip(disk, &nth(disk, &parts(FIRST), 0), 0.3);
            flip(disk, &nth(disk, &parts(FIRST), 1), 0.3);
            cut(disk, &nth(disk, &segments(FIRST), 0), 0.5);
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        let disk = small_store(2);
        let truth = answers(&disk).unwrap();
        damage(&disk);
        let whole = copy(&disk);
        let (_, lost) = repair(&whole).unwrap();
        let expected = check_repaired(&whole, &truth, &lost, "whole");
        let operations = copy(&whole_run(&disk)).operations().max(whole_run(&disk).operations());
        assert!(3 < operations);
        for death in 0..operations {
            let what = format!("damage {number}, death {death}");
            let dying = copy(&disk);
            dying.fail_after(death);
            assert!(repair(&dying).is_err(), "{what}");
            let again = dying.crash();
            let (_, lost_then) = repair(&again).unwrap_or_else(|error| panic!("{what}: {error}"));
            let lost = [lost.clone(), lost_then].concat();
            let found = check_repaired(&again, &truth, &lost, &what);
            assert_eq!(found.len(), expected.len(), "{what}");
        }
    }
}

/// A copy of the disk on which the repair was done.
fn whole_run(disk: &SimVfs) -> SimVfs {
    let whole = copy(disk);
    repair(&whole).unwrap();
    whole
}

/// What a flip did to the answers.
fn is_silent(disk: &SimVfs, truth: &Answers) -> bool {
    match answers(disk) {
        Ok(found) => found == *truth,
        // Said loudly.
        Err(_) => false,
    }
}

#[test]
fn no_flipped_bit_changes_an_answer_unsaid_and_each_is_repaired() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = variable("SEED").unwrap_or(1);
    let flips = variable("FLIPS").unwrap_or(150);
    println!("SEED={seed}");
    let base = small_store(seed);
    let truth = answers(&base).unwrap();
    let all = files(&base, DATA);
    let mut random = Random::seeded(seed);
    let (mut said, mut harmless, mut cost) = (0, 0, 0);
    for flip in 0..flips {
        let path = &all[flip as usize % all.len()];
        let disk = copy(&base);
        let offset = random.next() % disk.size(path).unwrap().max(1);
        disk.flip_bit(path, offset, (random.next() % 8) as u8).unwrap();
        let what = format!("SEED={seed} flip {flip}: byte {offset} of {}", path.display());
        let report = verify(&disk);
        let is_said = !report.problems.is_empty()
            || report.notes.iter().any(|note| note.contains("has a torn end"));
        match is_said {
            true => said += 1,
            false => {
                assert!(is_silent(&disk, &truth), "{what}: an answer changed unsaid");
                harmless += 1;
                continue;
            }
        }
        if report.problems.is_empty() {
            // The end of a log that was killed: what cannot be told from a torn write.
            continue;
        }
        let (_, lost) = repair(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = check_repaired(&disk, &truth, &lost, &what);
        cost = (truth.len() - found.len()).max(cost);
    }
    println!("{said} said, {harmless} harmless, at most {cost} of {} samples lost", truth.len());
}

#[test]
fn a_file_of_a_later_version_is_not_touched() {
    let disk = small_store(1);
    let log = nth(&disk, "/data/wal", 0);
    let mut bytes = disk.read(&log).unwrap();
    bytes[8] = 99;
    let crc = codec::crc32(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    write(&disk, &log, &bytes);
    let report = verify(&disk);
    assert!(report.problems[0].contains("format version 99"), "{report:?}");
    let plan = store::plan_repair(Arc::new(disk.clone()), Path::new(DATA), &mut |_| ());
    let error = plan.err().unwrap().to_string();
    assert!(error.contains("format version 99"), "{error}");
}
