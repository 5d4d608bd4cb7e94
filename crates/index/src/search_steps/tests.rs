//! Searches in steps against whole ones, with writers between the steps.

use super::{COPIED_VALUES_MAX, Completeness, STEP_LOOKS_MAX, Search, Step};
use crate::index::{Index, refuse_rot};
use crate::interrupt::{CancelFlag, Interrupt, Interruption};
use crate::match_union::MatchUnion;
use crate::matcher::CompiledMatchers;
use crate::subset::BlockMatch;
use crate::testing::{OwnedEntity, random_entity, random_matcher};
use crate::{Error, NewEntity, Result};
use model::{METRIC_NAME, MatchOp, Matcher};
use rng::Random;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn new_index() -> Index {
    let disk = vfs::SimVfs::new(1);
    vfs::Vfs::create_dir_all(&disk, "i".as_ref()).unwrap();
    Index::open(Arc::new(disk), "i".as_ref(), &[]).unwrap()
}

fn register(index: &mut Index, entity: &OwnedEntity) {
    entity.with(|entity| {
        if index.find_entity(entity).unwrap().is_none() {
            index.register(entity, &mut Vec::new()).unwrap();
        }
    });
}

fn register_random(index: &mut Index, prng: &mut Random, count: usize) {
    (0..count).for_each(|_| register(index, &random_entity(prng)));
}

fn freeze(index: &mut Index) {
    index.seal();
    if let Some(job) = index.freeze_job() {
        index.install(&job.run().unwrap()).unwrap();
    }
}

fn merge(index: &mut Index) {
    let count = index.segments().len();
    if 1 < count {
        let new = index.merge_job(count - 2..count).run(None).unwrap();
        index.install(&new).unwrap();
    }
}

/// Runs a search to its end; returns how often it gave the lock back.
fn finish(
    search: &mut Search<'_>,
    index: &mut Index,
    between: &mut dyn FnMut(&mut Index),
) -> Result<usize> {
    let mut runs = 0;
    while search.step(index, &mut refuse_rot)? == Step::Run {
        between(index);
        search.run(&mut refuse_rot)?;
        between(index);
        runs += 1;
    }
    Ok(runs)
}

fn random_sets(prng: &mut Random) -> Vec<CompiledMatchers> {
    let matchers = |prng: &mut Random| {
        let count = prng.index(6);
        (0..count).map(|_| random_matcher(prng)).collect::<Vec<Matcher>>()
    };
    let count = 1 + prng.index(3);
    (0..count).map(|_| CompiledMatchers::compile(&matchers(prng)).unwrap()).collect()
}

/// The series that match any set, each once.
fn whole(index: &Index, sets: &[CompiledMatchers]) -> Vec<BlockMatch> {
    let mut union = MatchUnion::default();
    sets.iter().for_each(|set| union.add(index.search(set).unwrap()));
    union.take()
}

fn ordinals(found: &[BlockMatch]) -> RoaringBitmap {
    found.iter().flat_map(BlockMatch::ordinals).collect()
}

const BOTH: [Completeness; 2] = [Completeness::AtStart, Completeness::AtEnd];

#[test]
fn steps_find_what_a_whole_search_finds() {
    let mut prng = Random::seeded(1);
    let mut index = new_index();
    for count in [0, 3, 400, 2000, 30] {
        register_random(&mut index, &mut prng, count);
        for _ in 0..40 {
            let sets = random_sets(&mut prng);
            let expected = match sets.as_slice() {
                [set] => index.search(set).unwrap(),
                sets => whole(&index, sets),
            };
            for completeness in BOTH {
                let mut search = Search::new(&sets, completeness);
                finish(&mut search, &mut index, &mut |_| ()).unwrap();
                assert!(search.take() == expected, "{sets:?}");
                let mut unordered = Search::among(&sets, completeness, None);
                finish(&mut unordered, &mut index, &mut |_| ()).unwrap();
                assert_eq!(ordinals(&unordered.take()), ordinals(&expected), "{sets:?}");
            }
        }
        match prng.index(2) {
            0 => index.seal(),
            _ => freeze(&mut index),
        }
    }
}

#[test]
fn series_known_at_the_start_are_found_whatever_happens_between_steps() {
    let mut prng = Random::seeded(2);
    for _ in 0..30 {
        let mut index = new_index();
        for _ in 0..3 {
            let count = 1 + prng.index(300);
            register_random(&mut index, &mut prng, count);
            freeze(&mut index);
        }
        register_random(&mut index, &mut prng, 300);
        for _ in 0..10 {
            let sets = random_sets(&mut prng);
            for completeness in BOTH {
                let before = ordinals(&whole(&index, &sets));
                let mut search = Search::new(&sets, completeness);
                let mut left = 20;
                finish(&mut search, &mut index, &mut |index| {
                    left -= usize::from(left != 0);
                    match prng.index(8) {
                        _ if left == 0 => {}
                        0 => index.seal(),
                        1 => freeze(index),
                        2 => merge(index),
                        _ => register_random(index, &mut prng, 3),
                    }
                })
                .unwrap();
                let after = ordinals(&whole(&index, &sets));
                let found = ordinals(&search.take());
                assert!(before.is_subset(&found) && found.is_subset(&after), "{sets:?}");
                if completeness == Completeness::AtEnd {
                    assert_eq!(found, after, "{sets:?}");
                }
            }
        }
    }
}

fn hosts(index: &mut Index, hosts: std::ops::Range<usize>) {
    for host in hosts {
        let (names, host) = (["cpu"], format!("host-{host}"));
        let tags = [("host", &*host)];
        index.register(&NewEntity::new(&names, &tags), &mut Vec::new()).unwrap();
    }
}

fn regexes(count: usize) -> Vec<Matcher> {
    let own = (0..count)
        .map(|number| Matcher::new("host", MatchOp::NotRegex, format!("host-{number}.*x?[0-9]x")));
    own.chain([Matcher::new("host", MatchOp::NotEqual, "")]).collect()
}

#[test]
fn steps_copy_a_bounded_number_of_values() {
    let count = COPIED_VALUES_MAX * 5 / 2;
    let mut index = new_index();
    hosts(&mut index, 0..count);
    let sets = [CompiledMatchers::compile(&regexes(50)).unwrap()];
    let mut search = Search::new(&sets, Completeness::AtStart);
    // Builds the list of labels, then three times values.
    assert_eq!(finish(&mut search, &mut index, &mut |_| ()).unwrap(), 4);
    assert_eq!(ordinals(&search.take()).len(), count as u64);
}

#[test]
fn simple_patterns_are_tried_in_short_steps() {
    let count = 3 * STEP_LOOKS_MAX as usize;
    let mut index = new_index();
    hosts(&mut index, 0..count);
    let contains = |text: &str| Matcher::new("host", MatchOp::Regex, format!(".*{text}.*"));
    let ends = Matcher::new("host", MatchOp::Regex, ".*7");
    for (matchers, runs) in
        [(vec![ends.clone()], 4), (vec![contains("5"), contains("o"), ends], 11)]
    {
        let sets = [CompiledMatchers::compile(&matchers).unwrap()];
        let mut search = Search::new(&sets, Completeness::AtStart);
        assert_eq!(finish(&mut search, &mut index, &mut |_| ()).unwrap(), runs, "{matchers:?}");
        assert!(search.take() == whole(&index, &sets));
    }
}

#[test]
fn a_regular_expression_is_never_matched_under_the_lock() {
    let mut index = new_index();
    hosts(&mut index, 0..2);
    for (op, value, runs) in [
        (MatchOp::Equal, "host-1", 0),
        (MatchOp::Regex, "host-1|host-2", 0),
        (MatchOp::Regex, "host.*", 0),
        (MatchOp::Regex, "h.*[0-9]", 2),
        (MatchOp::NotRegex, "h.*[0-9]", 2),
    ] {
        let sets = [CompiledMatchers::compile(&[Matcher::new("host", op, value)]).unwrap()];
        let mut search = Search::new(&sets, Completeness::AtStart);
        assert_eq!(finish(&mut search, &mut index, &mut |_| ()).unwrap(), runs, "{value}");
    }
}

#[test]
fn many_sets_are_searched_in_several_steps() {
    let mut index = new_index();
    hosts(&mut index, 0..100);
    let set = |number: usize| {
        let expression = format!("host-{}[0-9]*", number % 10);
        CompiledMatchers::compile(&[Matcher::new("host", MatchOp::Regex, expression)]).unwrap()
    };
    let sets: Vec<CompiledMatchers> = (0..200).map(set).collect();
    let mut search = Search::new(&sets, Completeness::AtStart);
    assert!(4 < finish(&mut search, &mut index, &mut |_| ()).unwrap());
    assert!(search.take() == whole(&index, &sets));
}

/// Cancels a search at its `at`-th look.
#[derive(Debug)]
struct CancelAt {
    at: usize,
    looks: AtomicUsize,
}

impl CancelFlag for CancelAt {
    fn is_cancelled(&self) -> bool {
        self.at <= self.looks.fetch_add(1, Ordering::Relaxed)
    }
}

#[test]
fn a_search_ends_when_it_is_cancelled() {
    let mut index = new_index();
    hosts(&mut index, 0..3000);
    let looks = |index: &mut Index, at: usize| {
        let flag = Arc::new(CancelAt { at, looks: AtomicUsize::new(0) });
        let interrupt = Interrupt { deadline: None, cancelled: Some(flag.clone()) };
        let sets = CompiledMatchers::compile(&regexes(30)).unwrap().interrupted_by(interrupt);
        let sets = [sets];
        let mut search = Search::new(&sets, Completeness::AtStart);
        let ended = finish(&mut search, index, &mut |_| ());
        (ended, flag.looks.load(Ordering::Relaxed))
    };
    for is_frozen in [false, true] {
        if is_frozen {
            freeze(&mut index);
        }
        let (ended, all) = looks(&mut index, usize::MAX);
        assert!(ended.is_ok() && 3000 * 30 / 300 <= all, "{all} looks");
        for at in [0, all / 2, all - 1] {
            let (ended, seen) = looks(&mut index, at);
            let is_cancelled = matches!(ended, Err(Error::Interrupted(Interruption::Cancelled)));
            assert!(is_cancelled && seen == at + 1, "{seen} of {all}: {ended:?}");
        }
    }
}

#[test]
fn conditions_on_many_labels_mean_the_same() {
    let mut prng = Random::seeded(3);
    let mut index = new_index();
    let mut entities = Vec::new();
    for _ in 0..500 {
        let mut tags = BTreeMap::new();
        for tag in 0..40 {
            if prng.index(4) != 0 {
                tags.insert(format!("t{tag}"), prng.index(3).to_string());
            }
        }
        entities.push(OwnedEntity { names: vec!["m".to_string()], tags });
    }
    entities.iter().for_each(|entity| register(&mut index, entity));
    for _ in 0..50 {
        // Those of one entity, so that some series match.
        let example = &entities[prng.index(entities.len())];
        let count = 10 + prng.index(30);
        let matcher = |tag: usize| match example.tags.get(&format!("t{tag}")) {
            Some(value) if tag.is_multiple_of(3) => Matcher::equal(format!("t{tag}"), value),
            Some(_) => Matcher::new(format!("t{tag}"), MatchOp::NotEqual, "none"),
            None => Matcher::new(format!("t{tag}"), MatchOp::NotRegex, "[5-9]"),
        };
        let mut matchers: Vec<Matcher> = (0..count).map(matcher).collect();
        matchers.push(Matcher::new(METRIC_NAME, MatchOp::Regex, "m|n"));
        let set = CompiledMatchers::compile(&matchers).unwrap();
        let expected = entities.iter().filter(|one| set.matches(&one.labels(0))).count();
        let found = ordinals(&index.search(&set).unwrap()).len();
        assert!(0 < found && found == expected as u64, "{matchers:?}");
    }
}
