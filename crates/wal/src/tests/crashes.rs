//! Crashes at every change of a long seeded history, several lives in a row.

use super::*;

/// What the log must give back.
#[derive(Default)]
struct Model {
    /// All records since `from`.
    records: Vec<Record>,
    /// How many of them were waited for.
    durable_count: usize,
    /// What the store's manifest would say.
    from: u64,
}

/// Does random things until the machine dies or `steps` are done. Returns whether it lived.
fn live(wal: &Wal, model: &mut Model, dice: &mut Random, steps: u64) -> bool {
    for _ in 0..steps {
        if step(wal, model, dice).is_err() {
            return false;
        }
    }
    true
}

fn step(wal: &Wal, model: &mut Model, dice: &mut Random) -> Result<()> {
    match dice.below(20) {
        0 => {
            // A flush: what was appended before the rotation is elsewhere now.
            let from = wal.rotate();
            model.records.clear();
            model.durable_count = 0;
            model.from = from;
            wal.remove_before(from)
        }
        1 => {
            wal.rotate();
            Ok(())
        }
        2..8 => {
            let record = any_record(dice);
            let lsn = wal.append(record.0, &record.1)?;
            model.records.push(record);
            wal.wait_durable(lsn)?;
            model.durable_count = model.records.len();
            Ok(())
        }
        _ => {
            let record = any_record(dice);
            let (start, end) = record.1.split_at(record.1.len() / 2);
            wal.append_parts(record.0, &[start, end])?;
            model.records.push(record);
            Ok(())
        }
    }
}

/// Reopens after a crash, checks what is replayed, and makes the model forget what was lost.
fn reopen(vfs: &SimVfs, committer: Committer, model: &mut Model, context: &str) -> Wal {
    let (wal, replayed) = open(vfs, committer, model.from)
        .unwrap_or_else(|error| panic!("{context}: opening fails: {error}"));
    assert!(model.durable_count <= replayed.len(), "{context}: acknowledged records are lost");
    assert!(replayed.len() <= model.records.len(), "{context}: records out of nowhere");
    assert_eq!(replayed, model.records[..replayed.len()], "{context}");
    model.records.truncate(replayed.len());
    model.durable_count = replayed.len();
    wal
}

/// One history whose first life ends at change `death`. Returns whether it outlived that.
fn history(seed: u64, death: u64, committer: Committer) -> bool {
    let context = format!("SEED={seed} death at {death}");
    let mut dice = Random(seed);
    let mut model = Model::default();
    let mut vfs = SimVfs::new(seed ^ death.rotate_left(32));
    vfs.fail_after(death);
    let Ok((wal, _)) = open(&vfs, committer, 0) else {
        reopen(&vfs.crash(), committer, &mut model, &context);
        return false;
    };
    let lived = live(&wal, &mut model, &mut dice, 60) && wal.close().is_ok();
    drop(wal);
    for life in 0..3 {
        vfs = vfs.crash();
        // The recovery may be cut short too.
        let operations = dice.below(12);
        let interrupted = vfs.crash();
        interrupted.fail_after(operations);
        if open(&interrupted, committer, model.from).is_err() {
            vfs = interrupted.crash();
        }
        let wal = reopen(&vfs, committer, &mut model, &format!("{context}, life {life}"));
        vfs.fail_after(vfs.operations() + dice.below(60));
        live(&wal, &mut model, &mut dice, 20);
        drop(wal);
    }
    lived
}

#[test]
fn a_crash_at_any_change_loses_nothing_acknowledged() {
    for seed in rng::seeds(0..12) {
        for death in 0.. {
            if history(seed, death, Committer::Waiter) {
                assert!(40 < death, "the history has changes to die at");
                break;
            }
        }
    }
}

#[test]
fn a_crash_under_the_commit_thread_loses_nothing_acknowledged() {
    for seed in rng::seeds(0..4) {
        for death in (0..400).step_by(3) {
            history(seed, death, Committer::Thread);
        }
    }
}

#[test]
fn a_crash_before_the_first_sync_leaves_an_empty_log() {
    for seed in 0..100 {
        let vfs = SimVfs::new(seed);
        let (wal, _) = open(&vfs, Committer::Waiter, 0).unwrap();
        // Create and write the header, then die.
        vfs.fail_after(vfs.operations() + 2);
        let lsn = wal.append(1, b"lost").unwrap();
        assert!(wal.wait_durable(lsn).is_err());
        let after = vfs.crash();
        let (wal, replayed) = open(&after, Committer::Waiter, 0).unwrap();
        assert!(replayed.is_empty());
        let lsn = wal.append(1, b"next").unwrap();
        wal.wait_durable(lsn).unwrap();
        assert_eq!(open(&after.crash(), Committer::Waiter, 0).unwrap().1.len(), 1);
    }
}
