//! Exports in whole milliseconds (`time=ms`), for readers of JSON lines that skip lines with fractions.
//!
//! Of the samples of a series within one millisecond the newest stays, whether it is a number or a
//! histogram.

use model::sample::NANOS_PER_MILLI;

/// Times cut to whole milliseconds, and the indexes of the samples that stay.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MilliTimes {
    /// In nanoseconds.
    pub times: Vec<i64>,
    kept: Vec<usize>,
}

impl MilliTimes {
    /// Keeps of `times` those behind which nothing follows within the same millisecond, neither in
    /// `times` nor in `others`. Both are in order.
    pub fn new(times: &[i64], others: &[i64]) -> MilliTimes {
        let mut millis = MilliTimes::default();
        for (idx, time) in times.iter().enumerate() {
            let other = others.get(others.partition_point(|other| other <= time));
            let mut followers = times.get(idx + 1).into_iter().chain(other);
            if followers.all(|follower| to_milli(*follower) != to_milli(*time)) {
                millis.times.push(to_milli(*time) * NANOS_PER_MILLI);
                millis.kept.push(idx);
            }
        }
        millis
    }

    /// The items of the samples that stay, of one for each sample; none of none.
    pub fn pick<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.kept.iter().filter_map(|idx| items.get(*idx).cloned()).collect()
    }
}

fn to_milli(time: i64) -> i64 {
    time.div_euclid(NANOS_PER_MILLI)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(times: &[i64], others: &[i64], expected: &[(i64, usize)]) {
        let millis = MilliTimes::new(times, others);
        let found = millis.times.iter().map(|time| time / NANOS_PER_MILLI).zip(millis.kept.clone());
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_newest_of_a_millisecond_stays() {
        check(&[], &[], &[]);
        check(&[1_000_000, 2_000_000], &[], &[(1, 0), (2, 1)]);
        check(&[1_000_000, 1_000_001, 1_999_999, 2_000_000], &[], &[(1, 2), (2, 3)]);
        check(&[-1, 0, 1], &[], &[(-1, 0), (0, 2)]);
    }

    #[test]
    fn a_newer_histogram_takes_the_place_of_a_number() {
        let (numbers, histograms) = (&[1_000_000, 2_000_005], &[1_000_001, 2_000_004]);
        check(numbers, histograms, &[(2, 1)]);
        check(histograms, numbers, &[(1, 0)]);
    }

    #[test]
    fn items_follow_their_samples() {
        let millis = MilliTimes::new(&[1_000_000, 1_000_001, 2_000_000], &[]);
        assert_eq!(millis.pick(&["a", "b", "c"]), ["b", "c"]);
        assert_eq!(millis.pick::<i64>(&[]), Vec::<i64>::new());
    }
}
