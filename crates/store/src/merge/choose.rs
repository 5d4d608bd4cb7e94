//! Which parts to merge next: a pure function of their sizes, times and sequence numbers.
//!
//! **Cost.** A merge must grow every sample's part at least [`ChooseLimits::growth_min`]-fold: the
//! inputs' total is at least that many times the largest input. From a flush of some 50 MB to the
//! largest part of a few GB that is two merges, so a sample is encoded three times in its life:
//! flush, merge, merge. Between merges fewer than `growth_min` parts of each magnitude wait, which
//! is what a query has to look through. When too many parts wait all the same (odd sizes), the
//! demand is lowered, because reading from many parts then costs more than writing once more.
//!
//! **Order.** Among equal timestamps of a series the part with the higher sequence wins. The output
//! takes the highest sequence of its inputs. That is right for any run without gaps. With a gap, let
//! `p` be a part that is not merged and `m` an input with a lower sequence: `m`'s samples would rise
//! above `p`'s. So a set may skip `p` only if `p` does not overlap in time with any input of a lower
//! sequence; above `p` are only inputs that were above it before.
//!
//! **Neighbours.** Parts next to each other in time are preferred to parts written one after the
//! other: slices grow, fewer parts overlap a query, and retention drops whole parts. So runs in time
//! order are looked at first (most often both orders are the same), then runs in sequence order,
//! which are always right and therefore always make progress.

/// What the choice knows about a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartFacts {
    /// The caller's name for it.
    pub id: u64,
    /// Bytes.
    pub size: u64,
    /// Samples.
    pub samples: u64,
    /// Earliest timestamp.
    pub min_ts: i64,
    /// Latest timestamp.
    pub max_ts: i64,
    /// Place in the order of writing; no two parts have the same.
    pub sequence: u64,
}

impl PartFacts {
    fn overlaps(&self, other: &PartFacts) -> bool {
        self.min_ts <= other.max_ts && other.min_ts <= self.max_ts
    }
}

/// What bounds a choice.
#[derive(Clone, Copy, Debug)]
pub struct ChooseLimits {
    /// Fewest parts worth a merge.
    pub count_min: usize,
    /// Most parts of one merge, for its memory and open files.
    pub count_max: usize,
    /// Most bytes of the output, estimated as the inputs' total.
    pub size_max: u64,
    /// How many times larger than the largest input the output must be.
    pub growth_min: u64,
    /// From so many parts on, `count_min` and `growth_min` are halved.
    pub parts_max: usize,
}

impl ChooseLimits {
    /// The limits of the store.
    pub const DEFAULT: ChooseLimits = ChooseLimits {
        count_min: 6,
        count_max: 24,
        size_max: 4 << 30,
        growth_min: 6,
        parts_max: 48,
    };
}

// Halved, two parts still have to come together.
const _: () =
    assert!(4 <= ChooseLimits::DEFAULT.count_min && 4 <= ChooseLimits::DEFAULT.growth_min);

/// The parts to merge next, as indexes, oldest first; `None` when there is nothing worth it.
pub fn choose(parts: &[PartFacts], limits: &ChooseLimits) -> Option<Vec<usize>> {
    let mut limits = *limits;
    if limits.parts_max <= parts.len() {
        limits.count_min = (limits.count_min / 2).max(2);
        limits.growth_min = (limits.growth_min / 2).max(2);
    }
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&at| (parts[at].min_ts, parts[at].max_ts, parts[at].sequence));
    let mut chosen = best_run(parts, &order, &limits);
    if chosen.is_none() {
        order.sort_by_key(|&at| parts[at].sequence);
        chosen = best_run(parts, &order, &limits);
    }
    chosen.map(|run| oldest_first(parts, run))
}

/// Sets of parts to merge so that as few as possible are left, each a run in sequence order within
/// `size_max` and `count_max`; for merges that a user asks for.
pub fn choose_all(parts: &[PartFacts], limits: &ChooseLimits) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&at| parts[at].sequence);
    let mut runs = Vec::new();
    let mut run: Vec<usize> = Vec::new();
    let mut size = 0u64;
    for at in order {
        let is_full =
            limits.count_max <= run.len() || limits.size_max < size.saturating_add(parts[at].size);
        if is_full {
            runs.push(std::mem::take(&mut run));
            size = 0;
        }
        run.push(at);
        size = size.saturating_add(parts[at].size);
    }
    runs.push(run);
    debug_assert_eq!(runs.iter().map(Vec::len).sum::<usize>(), parts.len(), "each in one run");
    runs.retain(|run| 2 <= run.len());
    runs
}

/// The run of neighbours in `order` that grows its parts most for its cost.
fn best_run(parts: &[PartFacts], order: &[usize], limits: &ChooseLimits) -> Option<Vec<usize>> {
    let mut best: Option<(u64, &[usize])> = None;
    for start in 0..order.len() {
        let (mut total, mut largest) = (0u64, 1u64);
        for end in start..order.len().min(start + limits.count_max) {
            let size = parts[order[end]].size;
            total = total.saturating_add(size);
            largest = largest.max(size);
            if limits.size_max < total {
                break;
            }
            let run = &order[start..=end];
            // In hundredths, so that nearly equal growths differ.
            let growth = total.saturating_mul(100) / largest;
            let is_worth =
                limits.count_min <= run.len() && limits.growth_min.saturating_mul(100) <= growth;
            if is_worth && best.is_none_or(|(most, _)| most < growth) && is_safe(parts, run) {
                best = Some((growth, run));
            }
        }
    }
    best.map(|(_, run)| run.to_vec())
}

/// Whether no part is skipped that an older input would wrongly rise above.
fn is_safe(parts: &[PartFacts], run: &[usize]) -> bool {
    let newest = run.iter().map(|&at| parts[at].sequence).max().unwrap_or(0);
    let is_passed = |skipped: &PartFacts| {
        run.iter().any(|&at| {
            let input = &parts[at];
            input.sequence < skipped.sequence
                && skipped.sequence < newest
                && input.overlaps(skipped)
        })
    };
    !(0..parts.len()).any(|at| !run.contains(&at) && is_passed(&parts[at]))
}

fn oldest_first(parts: &[PartFacts], mut run: Vec<usize>) -> Vec<usize> {
    run.sort_by_key(|&at| parts[at].sequence);
    let rises = |a: &usize, b: &usize| parts[*a].sequence < parts[*b].sequence;
    debug_assert!(run.is_sorted_by(rises), "no two parts have the same place");
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ChooseLimits =
        ChooseLimits { count_min: 4, count_max: 8, size_max: 1000, growth_min: 4, parts_max: 100 };

    /// Parts of (size, first day, last day), in the order of writing.
    fn parts(list: &[(u64, i64, i64)]) -> Vec<PartFacts> {
        let part = |(at, &(size, min_ts, max_ts)): (usize, &(u64, i64, i64))| {
            let sequence = 10 + at as u64;
            PartFacts { id: at as u64, size, samples: size, min_ts, max_ts, sequence }
        };
        list.iter().enumerate().map(part).collect()
    }

    #[track_caller]
    fn check(list: &[(u64, i64, i64)], expected: Option<&[usize]>) {
        assert_eq!(choose(&parts(list), &LIMITS).as_deref(), expected);
    }

    #[test]
    fn parts_of_a_size_are_merged_once_there_are_enough() {
        check(&[], None);
        check(&[(10, 0, 1)], None);
        check(&[(10, 0, 1), (10, 2, 3), (10, 4, 5)], None);
        check(&[(10, 0, 1), (10, 2, 3), (10, 4, 5), (10, 6, 7)], Some(&[0, 1, 2, 3]));
        check(&[(100, 0, 1), (10, 2, 3), (10, 4, 5), (10, 6, 7)], None);
        check(&[(100, 0, 1), (10, 2, 3), (10, 4, 5), (10, 6, 7), (11, 8, 9)], None);
        check(&[(100, 0, 1), (9, 2, 3), (9, 4, 5), (9, 6, 7), (9, 8, 9)], Some(&[1, 2, 3, 4]));
    }

    #[test]
    fn the_output_stays_within_its_limits() {
        check(&[(260, 0, 1), (260, 2, 3), (260, 4, 5), (260, 6, 7)], None);
        check(&[(250, 0, 1), (250, 2, 3), (250, 4, 5), (250, 6, 7)], Some(&[0, 1, 2, 3]));
        let many: Vec<_> = (0..20).map(|day| (10, day, day)).collect();
        check(&many, Some(&[0, 1, 2, 3, 4, 5, 6, 7]));
    }

    #[test]
    fn neighbours_in_time_come_together() {
        // Two streams, one live and one filling in the past, written in turns.
        let streams: Vec<_> =
            (0..8).map(|at| (10, 100 * (at % 2) + at, 100 * (at % 2) + at)).collect();
        let limits = ChooseLimits { count_max: 4, ..LIMITS };
        assert_eq!(choose(&parts(&streams), &limits), Some(vec![0, 2, 4, 6]));
    }

    #[test]
    fn an_older_sample_never_rises_above_a_newer_one() {
        // Part 2 is large and overlaps parts 0 and 1, which must stay below it.
        let list = [(10, 0, 5), (10, 6, 9), (900, 0, 9), (10, 10, 11), (10, 12, 13)];
        check(&list, None);
        // It may be skipped when it only overlaps newer ones...
        let list = [(10, 0, 1), (10, 2, 3), (900, 12, 13), (10, 10, 11), (10, 12, 12)];
        check(&list, Some(&[0, 1, 3, 4]));
        // ...or when nothing newer is in the set.
        let list = [(10, 0, 1), (10, 2, 3), (10, 4, 5), (10, 6, 7), (900, 0, 13)];
        check(&list, Some(&[0, 1, 2, 3]));
    }

    #[test]
    fn too_many_parts_lower_the_demand() {
        let list: Vec<_> = (0..9).map(|at| (1 << at, at, at)).collect();
        check(&list, None);
        let limits = ChooseLimits { parts_max: 9, growth_min: 2, ..LIMITS };
        assert!(
            choose(&parts(&list), &limits).is_none(),
            "no power of two is half of the lower ones"
        );
        let list: Vec<_> = (0..9).map(|at| (100 + 30 * (at as u64 % 3), at, at)).collect();
        check(&list, Some(&[2, 3, 4, 5, 6, 7, 8]));
        let limits = ChooseLimits { growth_min: 16, parts_max: 9, ..LIMITS };
        assert!(choose(&parts(&list), &limits).is_none());
        let limits = ChooseLimits { growth_min: 10, parts_max: 9, ..LIMITS };
        assert!(choose(&parts(&list), &limits).is_some());
    }

    #[test]
    fn a_forced_merge_leaves_as_few_as_fit() {
        let all = |list: &[(u64, i64, i64)]| choose_all(&parts(list), &LIMITS);
        assert_eq!(all(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(all(&[(10, 0, 1)]), Vec::<Vec<usize>>::new());
        assert_eq!(all(&[(10, 0, 1), (900, 2, 3)]), [vec![0, 1]]);
        assert_eq!(
            all(&[(10, 0, 1), (990, 2, 3), (10, 0, 9), (10, 0, 9)]),
            [vec![0, 1], vec![2, 3]]
        );
        assert_eq!(all(&[(2000, 0, 1), (10, 2, 3), (10, 4, 5)]), [vec![1, 2]]);
        assert_eq!(all(&[(10, 0, 1); 9]), [vec![0, 1, 2, 3, 4, 5, 6, 7]]);
    }

    /// Plays partitions of flushes and counts how often each byte is written.
    #[test]
    fn a_sample_is_encoded_about_three_times() {
        let limits = ChooseLimits::DEFAULT;
        let mut live: Vec<PartFacts> = Vec::new();
        let (mut flushed, mut written, mut most) = (0u64, 0u64, 0);
        for at in 0..2000u64 {
            let size = (40 << 20) + (at * 7919) % (20 << 20);
            let day = at as i64;
            live.push(PartFacts {
                id: at,
                size,
                samples: 1,
                min_ts: day,
                max_ts: day + 1,
                sequence: at,
            });
            (flushed, written) = (flushed + size, written + size);
            while let Some(run) = choose(&live, &limits) {
                let inputs: Vec<PartFacts> = run.iter().map(|&at| live[at]).collect();
                let merged = PartFacts {
                    id: inputs[0].id,
                    size: inputs.iter().map(|part| part.size).sum(),
                    samples: 1,
                    min_ts: inputs.iter().map(|part| part.min_ts).min().unwrap(),
                    max_ts: inputs.iter().map(|part| part.max_ts).max().unwrap(),
                    sequence: inputs.iter().map(|part| part.sequence).max().unwrap(),
                };
                live.retain(|part| !inputs.contains(part));
                live.push(merged);
                written += merged.size;
            }
            most = most.max(live.iter().filter(|part| part.size < 1 << 30).count());
        }
        let times = written as f64 / flushed as f64;
        assert!(times <= 3.2, "each byte is written {times} times");
        assert!(most <= 16, "{most} small parts");
    }
}
