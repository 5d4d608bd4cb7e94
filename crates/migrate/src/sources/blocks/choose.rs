//! Which blocks are copied, and of which times: each sample once, as it came where anybody still has it so.
//!
//! ```text
//! compacted   [        A        ]      sources a b c       copied
//! older       [ a ][ b ][ c ][ d ]                         d is copied, the others are in A
//! 5 minutes   [    of A    ][  of what is gone  ]          the second half is copied
//! ```
//! Pure: from what blocks say of themselves to what is done. Blocks are only compared with those of the same
//! external labels, as Thanos does it.

use super::meta::Meta;
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// These times of it are copied: milliseconds, the first in it and the end not.
    Copied(Vec<(i64, i64)>),
    /// All of its samples are in another block, which was made of it.
    Joined { into: String },
    /// It was downsampled, and finer blocks have its time.
    Coarse,
}

/// A block and what it says of itself.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it says.
    pub meta: &'a Meta,
}

/// The fates of some blocks, in their order.
pub fn choose(all: &[Candidate<'_>]) -> Vec<Fate> {
    let mut fates = vec![Fate::Copied(Vec::new()); all.len()];
    let mut groups: BTreeMap<&BTreeMap<String, String>, Vec<usize>> = BTreeMap::new();
    for (at, one) in all.iter().enumerate() {
        groups.entry(&one.meta.thanos.labels).or_default().push(at);
    }
    for group in groups.values() {
        let mut by_resolution: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for &at in group {
            by_resolution.entry(all[at].meta.resolution()).or_default().push(at);
        }
        let mut had = Times::default();
        // The finest first.
        for (resolution, blocks) in by_resolution {
            choose_of_resolution(all, &blocks, resolution, &mut had, &mut fates);
        }
    }
    fates
}

fn choose_of_resolution(
    all: &[Candidate<'_>],
    blocks: &[usize],
    resolution: i64,
    had: &mut Times,
    fates: &mut [Fate],
) {
    let joined = joined(all, blocks);
    let kept = blocks.iter().filter(|at| !joined.contains_key(at)).copied();
    for at in kept.clone() {
        let Meta { min_time, max_time, .. } = *all[at].meta;
        let left = match resolution {
            0 => vec![(min_time, max_time)],
            _ => had.lacks(min_time, max_time),
        };
        fates[at] = if left.is_empty() { Fate::Coarse } else { Fate::Copied(left) };
    }
    // Coarse blocks do not hide each other: those whose times overlap are of different samples.
    for at in kept {
        had.add(all[at].meta.min_time, all[at].meta.max_time);
    }
    for (at, into) in joined {
        fates[at] = Fate::Joined { into: all[into].name.to_string() };
    }
}

/// Blocks whose samples are all in another one, and that one.
fn joined(all: &[Candidate<'_>], blocks: &[usize]) -> BTreeMap<usize, usize> {
    let sources = |at: usize| -> BTreeSet<&str> {
        all[at].meta.compaction.sources.iter().map(String::as_str).collect()
    };
    // Those of the most sources first, of as many the oldest: one that is in none of those before it is
    // in none at all.
    let mut sorted: Vec<(usize, BTreeSet<&str>)> =
        blocks.iter().map(|&at| (at, sources(at))).collect();
    sorted.sort_by(|(a, of_a), (b, of_b)| {
        (of_b.len(), all[*a].name).cmp(&(of_a.len(), all[*b].name))
    });
    // By one of their sources, so that few are compared.
    let mut with_source: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (place, (at, own)) in sorted.iter().enumerate() {
        let Meta { min_time, max_time, .. } = *all[*at].meta;
        let holds = |other: &&usize| {
            let (other, theirs) = &sorted[**other];
            let time = &all[*other].meta;
            own.is_subset(theirs) && time.min_time <= min_time && max_time <= time.max_time
        };
        let first = own.iter().next();
        let larger = first.and_then(|first| with_source.get(first)?.iter().find(holds));
        match larger {
            Some(larger) => drop(found.insert(*at, sorted[*larger].0)),
            None => own.iter().for_each(|one| with_source.entry(one).or_default().push(place)),
        }
    }
    let by_name: BTreeMap<&str, usize> = blocks.iter().map(|&at| (all[at].name, at)).collect();
    for &at in blocks {
        for parent in &all[at].meta.compaction.parents {
            let Some(&older) = by_name.get(parent.ulid.as_str()) else { continue };
            if older != at && !is_in(&found, at, older) {
                found.entry(older).or_insert(at);
            }
        }
    }
    found
}

/// Whether a block has gone into another, be it by others.
fn is_in(found: &BTreeMap<usize, usize>, block: usize, into: usize) -> bool {
    let mut at = block;
    // No longer than there are blocks, whatever they say.
    for _ in 0..=found.len() {
        match found.get(&at) {
            Some(&next) if next == into => return true,
            Some(&next) => at = next,
            None => return false,
        }
    }
    true
}

/// Times that somebody has, apart from each other and sorted.
#[derive(Default)]
struct Times(BTreeMap<i64, i64>);

impl Times {
    fn add(&mut self, start: i64, end: i64) {
        let (mut start, mut end) = (start, end);
        if end <= start {
            return;
        }
        let touching: Vec<(i64, i64)> = self
            .0
            .range(..=end)
            .rev()
            .take_while(|(_, last)| start <= **last)
            .map(|(first, last)| (*first, *last))
            .collect();
        for (first, last) in touching {
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }

    /// What of a time nobody has.
    fn lacks(&self, start: i64, end: i64) -> Vec<(i64, i64)> {
        let (mut at, mut left) = (start, Vec::new());
        let before = self.0.range(..=start).next_back().into_iter();
        for (&first, &last) in
            before.chain(self.0.range(start.saturating_add(1)..end.max(start.saturating_add(1))))
        {
            if at < first {
                left.push((at, first));
            }
            at = at.max(last);
        }
        if at < end {
            left.push((at, end));
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::blocks::meta::Parent;

    fn block(min_time: i64, max_time: i64, sources: &str) -> Meta {
        let mut meta = Meta { min_time, max_time, ..Meta::default() };
        meta.compaction.sources = sources.split_whitespace().map(str::to_string).collect();
        meta
    }

    fn coarse(resolution: i64, meta: Meta) -> Meta {
        let mut meta = meta;
        meta.thanos.downsample.resolution = resolution;
        meta
    }

    #[track_caller]
    fn check(blocks: &[(&str, Meta)], expected: &[&str]) {
        let all: Vec<Candidate<'_>> =
            blocks.iter().map(|(name, meta)| Candidate { name, meta }).collect();
        let shown: Vec<String> = choose(&all)
            .into_iter()
            .map(|fate| match fate {
                Fate::Copied(times) => {
                    let all = times.iter().map(|(start, end)| format!("{start}-{end}"));
                    all.collect::<Vec<_>>().join(",")
                }
                Fate::Joined { into } => format!("in {into}"),
                Fate::Coarse => "coarse".to_string(),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_was_joined_is_copied_once() {
        check(
            &[
                ("a", block(0, 2, "a")),
                ("b", block(2, 4, "b")),
                ("c", block(4, 6, "c")),
                ("d", block(6, 8, "d")),
                ("ab", block(0, 4, "a b")),
                ("abc", block(0, 6, "a b c")),
            ],
            &["in abc", "in abc", "in abc", "6-8", "in abc", "0-6"],
        );
        // Of the same sources the first; none is in one of another time.
        check(
            &[("x", block(0, 4, "a b")), ("w", block(0, 4, "a b")), ("a", block(0, 9, "a"))],
            &["in w", "0-4", "0-9"],
        );
        // No sources, no opinion.
        check(&[("x", block(0, 4, "")), ("y", block(0, 4, ""))], &["0-4", "0-4"]);
        // Of others' labels.
        let mut other = block(0, 4, "a b");
        other.thanos.labels.insert("cluster".to_string(), "eu".to_string());
        check(&[("a", block(0, 2, "a")), ("ab", other)], &["0-2", "0-4"]);
    }

    #[test]
    fn parents_are_in_what_was_made_of_them() {
        let of = |meta: Meta, parent: &str| {
            let mut meta = meta;
            meta.compaction.parents = vec![Parent { ulid: parent.to_string() }];
            meta
        };
        // As Prometheus does it when it takes away what was deleted.
        check(
            &[("old", block(0, 4, "old")), ("new", of(block(0, 4, "new"), "old"))],
            &["in new", "0-4"],
        );
        // Whatever they say of each other, one stays.
        check(
            &[("a", of(block(0, 4, "x"), "b")), ("b", of(block(0, 4, "y"), "a"))],
            &["0-4", "in a"],
        );
        check(&[("a", of(block(0, 4, "x"), "a"))], &["0-4"]);
    }

    #[test]
    fn coarse_blocks_stand_in_for_what_is_gone() {
        check(
            &[
                ("raw", block(10, 20, "c")),
                ("of-raw", coarse(300_000, block(10, 20, "c"))),
                ("5m", coarse(300_000, block(5, 20, "b c"))),
                ("1h", coarse(3_600_000, block(0, 30, "a b c d"))),
                ("1h-of-raw", coarse(3_600_000, block(10, 20, "c"))),
            ],
            &["10-20", "in 5m", "5-10", "0-5,20-30", "in 1h"],
        );
        check(
            &[("raw", block(0, 9, "a")), ("5m", coarse(300_000, block(2, 9, "a")))],
            &["0-9", "coarse"],
        );
    }

    #[test]
    fn times_are_joined_and_what_they_lack_is_told() {
        let mut times = Times::default();
        assert_eq!(times.lacks(3, 5), [(3, 5)]);
        for (start, end) in [(10, 20), (30, 40), (20, 22), (5, 5), (1, 3)] {
            times.add(start, end);
        }
        assert_eq!(times.lacks(0, 50), [(0, 1), (3, 10), (22, 30), (40, 50)]);
        assert_eq!(times.lacks(12, 22), []);
        assert_eq!(times.lacks(15, 35), [(22, 30)]);
        times.add(0, 100);
        assert_eq!(times.lacks(i64::MIN, i64::MAX), [(i64::MIN, 0), (100, i64::MAX)]);
    }
}
