//! The index against the naive one of [`crate::testing`].

use super::Index;
use crate::SegmentEntry;
use crate::testing::{NaiveIndex, random_entity, random_matcher};
use model::Matcher;
use rng::Random;
use std::sync::Arc;

/// Registers `count` random entities, some of them known ones.
fn register(
    index: &mut Index,
    naive: &mut NaiveIndex,
    prng: &mut Random,
    count: usize,
    log: &mut Vec<u8>,
) {
    for _ in 0..count {
        let entity = random_entity(prng);
        let found = entity.with(|e| index.find_entity(e).unwrap());
        assert_eq!(found, naive.ids.get(&entity).copied());
        if found.is_none() {
            let id = entity.with(|e| index.register(e, log).unwrap());
            naive.insert(id, entity);
        }
    }
}

#[track_caller]
fn check(index: &Index, naive: &NaiveIndex, prng: &mut Random, searches: usize) {
    naive.check_find(index);
    naive.check_search(index, &[]);
    naive.check_tags(index);
    naive.check_cardinality(index, &[]);
    naive.check_cardinality(index, &[random_matcher(prng)]);
    for _ in 0..searches {
        let count = 1 + prng.index(4);
        let matchers: Vec<Matcher> = (0..count).map(|_| random_matcher(prng)).collect();
        naive.check_search(index, &matchers);
    }
}

#[test]
fn memory_answers_as_the_naive_index() {
    let mut prng = Random::seeded(1);
    let mut index = Index::open(disk(), "i".as_ref(), &[]).unwrap();
    let mut naive = NaiveIndex::default();
    let mut log = Vec::new();
    for count in [1, 20, 300, 3000] {
        register(&mut index, &mut naive, &mut prng, count, &mut log);
        check(&index, &naive, &mut prng, 25);
    }
    let mut replayed = Index::open(disk(), "i".as_ref(), &[]).unwrap();
    for _ in 0..2 {
        replayed.replay(&log).unwrap();
        check(&replayed, &naive, &mut prng, 10);
    }
}

/// Seals, freezes, installs.
fn freeze(index: &mut Index) {
    index.seal();
    if let Some(job) = index.freeze_job() {
        let new = job.run().unwrap();
        new.segment().verify().unwrap();
        assert!(new.replaces().is_empty());
        index.install(&new).unwrap();
        assert!(matches!(index.install(&new), Err(crate::Error::Changed)));
    }
}

fn entries(index: &Index) -> Vec<SegmentEntry> {
    index.segments().iter().map(|segment| segment.entry()).collect()
}

#[test]
fn segments_and_memory_answer_as_one() {
    let mut prng = Random::seeded(2);
    for rounds in [[2500, 0], [1, 1], [1000, 500], [5, 1500]] {
        let vfs = disk();
        let mut index = Index::open(Arc::clone(&vfs), "i".as_ref(), &[]).unwrap();
        let mut naive = NaiveIndex::default();
        let mut log = Vec::new();
        for count in rounds {
            register(&mut index, &mut naive, &mut prng, count, &mut log);
            index.seal();
            check(&index, &naive, &mut prng, 5);
            freeze(&mut index);
            assert_eq!(index.unfrozen_entity_count(), 0);
            check(&index, &naive, &mut prng, 12);
            register(&mut index, &mut naive, &mut prng, 30, &mut log);
            check(&index, &naive, &mut prng, 12);
        }
        assert_eq!(index.entity_count(), naive.entities.len() as u64);
        let mut reopened = Index::open(vfs, "i".as_ref(), &entries(&index)).unwrap();
        reopened.replay(&log).unwrap();
        reopened.replay(&log).unwrap();
        check(&reopened, &naive, &mut prng, 10);
        assert_eq!(reopened.memory().next_entity(), index.memory().next_entity());
        assert_eq!(reopened.memory().next_series(), index.memory().next_series());
    }
}

#[test]
fn merged_segments_answer_the_same() {
    let mut prng = Random::seeded(3);
    for sizes in [vec![2000, 1000, 20], vec![1, 2, 3, 4], vec![700; 5]] {
        let mut index = Index::open(disk(), "i".as_ref(), &[]).unwrap();
        let mut naive = NaiveIndex::default();
        for size in sizes {
            register(&mut index, &mut naive, &mut prng, size, &mut Vec::new());
            freeze(&mut index);
        }
        register(&mut index, &mut naive, &mut prng, 100, &mut Vec::new());
        let count = index.segments().len();
        for range in [0..count, 0..1] {
            let new = index.merge_job(range).run(None).unwrap();
            new.segment().verify().unwrap();
            index.install(&new).unwrap();
            assert!(matches!(index.install(&new), Err(crate::Error::Changed)));
            check(&index, &naive, &mut prng, 25);
        }
        assert_eq!(index.segments().len(), 1);
        assert_eq!(index.entity_count(), naive.entities.len() as u64);
    }
}

#[test]
fn dropped_entities_are_gone_and_the_others_stay() {
    let mut prng = Random::seeded(4);
    let mut index = Index::open(disk(), "i".as_ref(), &[]).unwrap();
    let mut naive = NaiveIndex::default();
    for size in [3000, 500] {
        register(&mut index, &mut naive, &mut prng, size, &mut Vec::new());
        freeze(&mut index);
    }
    for keep_one_in in [2, 5, 100, usize::MAX] {
        let is_kept = |_: &u32| prng.index(keep_one_in) == 0;
        let kept: Vec<u32> = naive.entities.keys().copied().filter(is_kept).collect();
        let dead: Vec<u32> =
            naive.entities.keys().copied().filter(|id| kept.binary_search(id).is_err()).collect();
        dead.iter().for_each(|id| naive.remove(*id));
        let is_dead = |id: u32| dead.binary_search(&id).is_ok();
        let count = index.segments().len();
        let new = index.merge_job(0..count).run(Some(&is_dead)).unwrap();
        new.segment().verify().unwrap();
        index.install(&new).unwrap();
        check(&index, &naive, &mut prng, 12);
        for id in &dead {
            assert_eq!(index.block_of(*id).unwrap(), None);
        }
        register(&mut index, &mut naive, &mut prng, 50, &mut Vec::new());
        check(&index, &naive, &mut prng, 10);
        freeze(&mut index);
        check(&index, &naive, &mut prng, 10);
    }
}

#[test]
fn a_failing_disk_changes_nothing_and_a_second_try_succeeds() {
    let mut prng = Random::seeded(9);
    let sim = vfs::SimVfs::new(9);
    vfs::Vfs::create_dir_all(&sim, "i".as_ref()).unwrap();
    let mut index = Index::open(Arc::new(sim.clone()), "i".as_ref(), &[]).unwrap();
    let mut naive = NaiveIndex::default();
    let mut failures = 0;
    for round in 0..3 {
        register(&mut index, &mut naive, &mut prng, 200, &mut Vec::new());
        index.seal();
        register(&mut index, &mut naive, &mut prng, 20, &mut Vec::new());
        for operation in 0.. {
            sim.fail_after(sim.operations() + operation);
            let result = match round {
                0 | 1 => index.freeze_job().unwrap().run(),
                _ => index.merge_job(0..2).run(None),
            };
            sim.fail_after(u64::MAX);
            match result {
                Ok(new) => {
                    index.install(&new).unwrap();
                    break;
                }
                Err(error) => assert!(matches!(error, crate::Error::Io(_)), "{error}"),
            }
            failures += 1;
        }
        check(&index, &naive, &mut prng, 3);
    }
    assert!(10 < failures, "{failures} operations failed");
    let crashed: Arc<dyn vfs::Vfs> = Arc::new(sim.crash());
    let reopened = Index::open(crashed, "i".as_ref(), &entries(&index)).unwrap();
    reopened.segments().iter().for_each(|segment| segment.verify().unwrap());
}

fn disk() -> Arc<dyn vfs::Vfs> {
    let disk = vfs::SimVfs::new(1);
    vfs::Vfs::create_dir_all(&disk, "i".as_ref()).unwrap();
    Arc::new(disk)
}
