//! Sums and means of many histograms, without what rounding takes from them.
//!
//! Each number is kept with what earlier additions lost of it; the two are added up at the end.

use crate::arithmetic::{Incompatible, Notes};
use crate::custom::{Remap, shared_bounds};
use crate::kahan;
use crate::merge::Operation;
use crate::native::{Bucket, Histogram, ResetHint};
use crate::resolution::Resolution;
use crate::schema::{lower_bound, upper_bound};
use crate::zero::{Term, Zero, widened};

/// A sum of at least one histogram.
#[derive(Clone, Debug)]
pub struct HistogramSum {
    /// All but the buckets, which are in `positive` and `negative`.
    total: Histogram,
    positive: Vec<Term>,
    negative: Vec<Term>,
    /// What rounding took from `total`'s numbers.
    lost: Lost,
    /// Whether there is more than the first histogram.
    has_more: bool,
    seen: Seen,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    zero_count: f64,
    count: f64,
    sum: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    reset: bool,
    no_reset: bool,
    bounds_reconciled: bool,
}

impl HistogramSum {
    /// The sum of one histogram.
    pub fn of(first: &Histogram) -> HistogramSum {
        let total = Histogram {
            positive: Vec::new(),
            negative: Vec::new(),
            custom_bounds: first.custom_bounds.clone(),
            ..*first
        };
        let mut sum = HistogramSum {
            total,
            positive: first.positive.iter().map(Term::from).collect(),
            negative: first.negative.iter().map(Term::from).collect(),
            lost: Lost::default(),
            has_more: false,
            seen: Seen::default(),
        };
        sum.see_hint(first);
        sum
    }

    /// Adds one more, under the rules of [`Histogram::add`]. An error leaves the sum as it was.
    pub fn add(&mut self, other: &Histogram) -> Result<(), Incompatible> {
        self.total.check_compatible(other)?;
        self.see_hint(other);
        self.add_unseen(other)
    }

    fn see_hint(&mut self, other: &Histogram) {
        self.seen.reset |= other.reset_hint == ResetHint::Reset;
        self.seen.no_reset |= other.reset_hint == ResetHint::NoReset;
    }

    /// The sum, with the buckets that became empty, and what is noted about all that was added.
    pub fn finish(mut self) -> (Histogram, Notes) {
        let notes = Notes {
            hints_collided: self.seen.reset && self.seen.no_reset,
            bounds_reconciled: self.seen.bounds_reconciled,
        };
        if self.has_more {
            self.total.zero_count += self.lost.zero_count;
            self.total.count += self.lost.count;
            self.total.sum += self.lost.sum;
        }
        self.total.positive = self.completed(&self.positive);
        self.total.negative = self.completed(&self.negative);
        (self.total, notes)
    }

    fn completed(&self, terms: &[Term]) -> Vec<Bucket> {
        let count = |term: &Term| match self.has_more && !self.is_inside_zero(term) {
            true => term.count + term.lost,
            false => term.count,
        };
        terms.iter().map(|term| Bucket { index: term.index, count: count(term) }).collect()
    }

    fn is_inside_zero(&self, term: &Term) -> bool {
        !self.total.has_custom_bounds()
            && upper_bound(self.total.schema, term.index) <= self.total.zero_threshold
    }

    fn add_unseen(&mut self, other: &Histogram) -> Result<(), Incompatible> {
        self.total.check_compatible(other)?;
        self.total.adjust_hint(other);
        self.has_more = true;
        if !self.total.has_custom_bounds() {
            let theirs = self.reconcile_zero(other);
            let total = &mut self.total.zero_count;
            for increase in [theirs.count, theirs.lost] {
                (*total, self.lost.zero_count) = kahan::add(increase, *total, self.lost.zero_count);
            }
        }
        let total = &mut self.total;
        (total.count, self.lost.count) = kahan::add(other.count, total.count, self.lost.count);
        (total.sum, self.lost.sum) = kahan::add(other.sum, total.sum, self.lost.sum);
        if !self.total.has_custom_bounds() {
            self.add_exponential(other);
        } else if self.total.custom_bounds == other.custom_bounds {
            merge(&mut self.positive, other.positive.iter().map(Term::from));
        } else {
            self.add_custom(other);
        }
        Ok(())
    }

    /// As [`Histogram`]'s own: the wider zero bucket takes in buckets, with what they lost.
    fn reconcile_zero(&mut self, other: &Histogram) -> Zero {
        let mut theirs = other.zero();
        loop {
            if theirs.threshold < self.total.zero_threshold {
                theirs = other.widened_zero(self.total.zero_threshold);
            }
            if self.total.zero_threshold < theirs.threshold {
                self.widen_zero(theirs.threshold);
            } else {
                return theirs;
            }
        }
    }

    fn widen_zero(&mut self, threshold: f64) {
        let own = Zero { lost: self.lost.zero_count, ..self.total.zero() };
        let schema = self.total.schema;
        let (positive, negative) = (self.positive.iter().copied(), self.negative.iter().copied());
        let wide = widened(own, threshold, schema, positive, negative);
        (self.total.zero_threshold, self.total.zero_count) = (wide.threshold, wide.count);
        self.lost.zero_count = wide.lost;
        let stays = |term: &Term| {
            wide.threshold <= lower_bound(schema, term.index)
                && (term.count != 0.0 || term.lost != 0.0)
        };
        self.positive.retain(stays);
        self.negative.retain(stays);
    }

    fn add_exponential(&mut self, other: &Histogram) {
        if let Some(resolution) = Resolution::between(self.total.schema, other.schema) {
            self.positive = coarsened(self.positive.iter().copied(), resolution);
            self.negative = coarsened(self.negative.iter().copied(), resolution);
            self.total.schema = other.schema;
        }
        let (schema, threshold) = (self.total.schema, self.total.zero_threshold);
        let inside = |term: &Term| upper_bound(schema, term.index) <= threshold;
        for (own, theirs) in
            [(&mut self.positive, &other.positive), (&mut self.negative, &other.negative)]
        {
            let theirs = theirs.iter().map(Term::from);
            match Resolution::between(other.schema, schema) {
                Some(resolution) => {
                    let theirs = coarsened(theirs, resolution);
                    merge(own, theirs.into_iter().skip_while(inside));
                }
                None => merge(own, theirs.skip_while(inside)),
            }
        }
    }

    fn add_custom(&mut self, other: &Histogram) {
        self.seen.bounds_reconciled = true;
        let bounds = shared_bounds(&self.total.custom_bounds, &other.custom_bounds);
        let mut remap = Remap::to(&bounds);
        let theirs = other.positive.iter().map(Term::from);
        remap.put(self.positive.iter().copied(), &self.total.custom_bounds, Operation::Add);
        remap.put(theirs, &other.custom_bounds, Operation::Add);
        self.positive = remap.finish().collect();
        self.total.custom_bounds = bounds;
    }

    /// Changes each number and what it lost alike.
    fn change_numbers(&mut self, change: impl Fn(f64) -> f64) {
        let (total, lost) = (&mut self.total, &mut self.lost);
        for number in [&mut total.zero_count, &mut total.count, &mut total.sum] {
            *number = change(*number);
        }
        for number in [&mut lost.zero_count, &mut lost.count, &mut lost.sum] {
            *number = change(*number);
        }
        for term in self.positive.iter_mut().chain(&mut self.negative) {
            (term.count, term.lost) = (change(term.count), change(term.lost));
        }
    }

    /// Whether any number is larger than `limit` in size. What was lost does not count.
    fn exceeds(&self, limit: f64) -> bool {
        let mut terms = self.positive.iter().chain(&self.negative);
        exceeds(&self.total, limit) || terms.any(|term| limit < term.count.abs())
    }
}

fn exceeds(histogram: &Histogram, limit: f64) -> bool {
    let buckets = histogram.positive.iter().chain(&histogram.negative);
    [histogram.zero_count, histogram.count, histogram.sum]
        .into_iter()
        .chain(buckets.map(|bucket| bucket.count))
        .chain(histogram.custom_bounds.iter().copied())
        .any(|number| limit < number.abs())
}

/// Adds counts to those of the same index, or puts them in as they are.
fn merge(into: &mut Vec<Term>, from: impl Iterator<Item = Term>) {
    let mut at = 0;
    let mut missing = Vec::new();
    for term in from {
        while into.get(at).is_some_and(|own| own.index < term.index) {
            at += 1;
        }
        match into.get_mut(at) {
            Some(own) if own.index == term.index => increase(own, term),
            _ => missing.push(term),
        }
    }
    if !missing.is_empty() {
        into.extend(missing);
        // Two ascending runs: the sort finds and merges them.
        into.sort_by_key(|term| term.index);
    }
}

fn increase(own: &mut Term, by: Term) {
    (own.count, own.lost) = kahan::add(by.count, own.count, own.lost);
    if by.lost != 0.0 {
        (own.count, own.lost) = kahan::add(by.lost, own.count, own.lost);
    }
}

fn coarsened(terms: impl Iterator<Item = Term>, resolution: Resolution) -> Vec<Term> {
    let mut coarse: Vec<Term> = Vec::new();
    for term in terms {
        let index = resolution.index(term.index);
        match coarse.last_mut() {
            Some(last) if last.index == index => increase(last, term),
            _ => coarse.push(Term { index, ..term }),
        }
    }
    coarse
}

/// Sums of numbers below this stay finite, whatever buckets are merged on the way.
const SMALL: f64 = 1e300;

/// The mean of at least one histogram: their sum by their count. If the sum would be infinite, a
/// running mean that each further one moves.
#[derive(Clone, Debug)]
pub struct HistogramMean {
    /// The sum, or the running mean.
    sum: HistogramSum,
    count: f64,
    is_running: bool,
}

impl HistogramMean {
    /// The mean of one histogram.
    pub fn of(first: &Histogram) -> HistogramMean {
        HistogramMean { sum: HistogramSum::of(first), count: 1.0, is_running: false }
    }

    /// Takes in one more: see [`HistogramSum::add`].
    pub fn add(&mut self, other: &Histogram) -> Result<(), Incompatible> {
        self.sum.total.check_compatible(other)?;
        self.sum.see_hint(other);
        self.count += 1.0;
        if !self.is_running && self.add_to_sum(other)? {
            return Ok(());
        }
        let (before, count) = (self.count - 1.0, self.count);
        if !self.is_running {
            self.is_running = true;
            self.sum.change_numbers(|number| number / before);
        }
        let part = before / count;
        self.sum.change_numbers(|number| number * part);
        let mut share = other.clone();
        share.div(count);
        self.sum.add_unseen(&share)
    }

    /// Whether the sum stayed finite; if not, it stays as it was.
    fn add_to_sum(&mut self, other: &Histogram) -> Result<bool, Incompatible> {
        if !self.sum.exceeds(SMALL) && !exceeds(other, SMALL) {
            return self.sum.add_unseen(other).map(|()| true);
        }
        let mut sum = self.sum.clone();
        sum.add_unseen(other)?;
        let bounds_reconciled = sum.seen.bounds_reconciled;
        let is_finite = !sum.exceeds(f64::MAX);
        if is_finite {
            self.sum = sum;
        }
        self.sum.seen.bounds_reconciled |= bounds_reconciled;
        Ok(is_finite)
    }

    /// The mean, with the buckets that became empty, and what is noted about all that was added.
    pub fn finish(mut self) -> (Histogram, Notes) {
        if !self.is_running {
            let count = self.count;
            self.sum.change_numbers(|number| number / count);
        }
        self.sum.finish()
    }
}
