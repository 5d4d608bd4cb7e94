//! A sorted set does what a plain list of pairs does.

use super::*;
use crate::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The naive one.
#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn sorted(&self) -> Vec<(Vec<u8>, f64)> {
        let mut all: Vec<_> =
            self.0.iter().map(|(member, score)| (member.clone(), *score)).collect();
        all.sort_by(|one, other| compare_scores(one.1, other.1).then(one.0.cmp(&other.0)));
        all
    }
}

fn all(zset: &Zset, is_reverse: bool) -> Vec<(Vec<u8>, f64)> {
    let mut found = Vec::new();
    zset.each(0..usize::MAX, is_reverse, |member, score| found.push((member.to_vec(), score)));
    found
}

fn check(zset: &Zset, model: &Model) {
    let expected = model.sorted();
    assert_eq!(all(zset, false), expected);
    assert!(all(zset, true).iter().eq(expected.iter().rev()));
    if let Repr::Large(large) = &zset.0 {
        large.order.check(&large.members);
    }
    for (rank, (member, score)) in expected.iter().enumerate().step_by(7) {
        assert_eq!(zset.rank(member), Some((rank, *score)));
        let first = expected.iter().filter(|(_, other)| other < score).count();
        assert_eq!(zset.count_scores_while(|other| other < *score), first);
    }
    let mut encoded = Vec::new();
    zset.clone().into_value().encode(&mut encoded);
    let decoded = Value::decode(&encoded).expect("own encoding");
    let decoded = Zset::of(&decoded).expect("a sorted set");
    assert_eq!(all(decoded, false), expected);
    let mut again = Vec::new();
    decoded.clone().into_value().encode(&mut again);
    assert_eq!(encoded, again);
}

fn history(seed: u64, steps: u64, members: u64, scores: u64) {
    let mut rng = rng::Random::seeded(seed);
    let (mut zset, mut model) = (Zset::default(), Model::default());
    for step in 0..steps {
        let member = format!("m{}", rng.below(members)).into_bytes();
        let grows = step % 4000 < 2500;
        if rng.below(10) < if grows { 7 } else { 2 } {
            let score = rng.below(scores) as f64 - 3.0;
            let expected = match model.0.insert(member.clone(), score) {
                None => Change::Added,
                Some(before) if before == score => Change::None,
                Some(_) => Change::Moved,
            };
            assert_eq!(zset.insert(&member, score), expected);
        } else {
            assert_eq!(zset.remove(&member), model.0.remove(&member));
        }
        assert_eq!(zset.len(), model.0.len());
        if step % 997 == 0 {
            check(&zset, &model);
        }
    }
    check(&zset, &model);
    for (member, _) in model.sorted() {
        zset.remove(&member);
    }
    assert!(zset.is_empty());
}

#[test]
fn small_and_large_ones_do_what_a_list_does() {
    let seed = rng::seed().unwrap_or(1);
    history(seed, 3_000, 60, 5);
    history(seed + 1, 20_000, 6_000, 4);
    history(seed + 2, 20_000, 6_000, 1 << 30);
}

#[test]
fn scanning_sees_who_is_there_throughout() {
    let mut zset = Zset::default();
    for number in 0..5_000 {
        zset.insert(format!("m{number}").as_bytes(), f64::from(number % 13));
    }
    let mut seen = BTreeSet::new();
    let (mut cursor, mut step) = (0, 0);
    loop {
        cursor = zset.scan(cursor, 100, |member, _| {
            seen.insert(member.to_vec());
        });
        for number in (step..5_000).step_by(61) {
            // Those whose number ends in 7 stay.
            if number % 10 != 7 {
                zset.remove(format!("m{number}").as_bytes());
            } else {
                zset.insert(format!("m{number}").as_bytes(), f64::from(step));
            }
            zset.insert(format!("new{number}").as_bytes(), 1.0);
        }
        step += 1;
        if cursor == 0 {
            break;
        }
    }
    for number in (7..5_000).step_by(10) {
        assert!(seen.contains(format!("m{number}").as_bytes()), "m{number}");
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let mut zset = Zset::default();
    for number in 0..300 {
        zset.insert(format!("m{number}").as_bytes(), f64::from(number));
    }
    let mut encoded = Vec::new();
    zset.into_value().encode(&mut encoded);
    for size in 0..encoded.len() {
        assert!(Value::decode(&encoded[..size]).is_err());
    }
    for damage in [&[5, 0, 255, 255, 255, 255, 15][..], &[5, 1, 255, 255, 255, 255, 15], &[5, 2]] {
        assert!(Value::decode(damage).is_err());
    }
}
