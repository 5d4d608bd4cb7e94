//! The index against the naive one of [`crate::testing`].

use super::Index;
use crate::testing::{NaiveIndex, Prng, random_entity, random_matcher};
use model::Matcher;
use std::sync::Arc;

/// Registers `count` random entities, some of them known ones.
fn register(index: &mut Index, naive: &mut NaiveIndex, prng: &mut Prng, count: usize, log: &mut Vec<u8>) {
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
fn check(index: &Index, naive: &NaiveIndex, prng: &mut Prng, searches: usize) {
    naive.check_find(index);
    naive.check_search(index, &[]);
    for _ in 0..searches {
        let count = 1 + prng.below(4);
        let matchers: Vec<Matcher> = (0..count).map(|_| random_matcher(prng)).collect();
        naive.check_search(index, &matchers);
    }
}

#[test]
fn memory_answers_as_the_naive_index() {
    let mut prng = Prng::new(1);
    let mut index = Index::open(disk(), "i".as_ref(), &[]).unwrap();
    let mut naive = NaiveIndex::default();
    let mut log = Vec::new();
    for count in [1, 20, 300, 3000] {
        register(&mut index, &mut naive, &mut prng, count, &mut log);
        check(&index, &naive, &mut prng, 60);
    }
    let mut replayed = Index::open(disk(), "i".as_ref(), &[]).unwrap();
    for _ in 0..2 {
        replayed.replay(&log).unwrap();
        check(&replayed, &naive, &mut prng, 10);
    }
}

fn disk() -> Arc<dyn vfs::Vfs> {
    Arc::new(vfs::SimVfs::new(1))
}
