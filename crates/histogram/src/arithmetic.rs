//! Adding, subtracting and scaling histograms.

use crate::custom::{Remap, shared_bounds};
use crate::merge::{Operation, coarsened, merge};
use crate::native::{Bucket, Histogram, ResetHint};
use crate::resolution::Resolution;
use crate::schema::upper_bound;
use crate::zero::Term;
use std::borrow::Cow;

/// Histograms with custom bounds and with those of a schema have no buckets in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("histograms with exponential buckets and with custom buckets cannot be combined")]
pub struct Incompatible;

/// What happened on the way and a person may want to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// One came after a reset, the other did not.
    pub hints_collided: bool,
    /// Custom bounds differed: the result has those that all have.
    pub bounds_reconciled: bool,
}

impl Notes {
    /// What is noted in either.
    pub fn and(self, other: Notes) -> Notes {
        Notes {
            hints_collided: self.hints_collided || other.hints_collided,
            bounds_reconciled: self.bounds_reconciled || other.bounds_reconciled,
        }
    }
}

impl Histogram {
    /// Multiplies all counts and the sum. By a negative number it becomes a gauge.
    pub fn mul(&mut self, factor: f64) {
        self.change_numbers(|number| number * factor);
        if factor < 0.0 {
            self.reset_hint = ResetHint::Gauge;
        }
    }

    /// Divides all counts and the sum. By zero the buckets go and the rest is infinite or not a
    /// number. By a negative number it becomes a gauge.
    pub fn div(&mut self, divisor: f64) {
        if divisor == 0.0 {
            self.positive.clear();
            self.negative.clear();
        }
        self.change_numbers(|number| number / divisor);
        if divisor < 0.0 {
            self.reset_hint = ResetHint::Gauge;
        }
    }

    fn change_numbers(&mut self, change: impl Fn(f64) -> f64) {
        // Without a zero bucket its count stays zero, whatever zero times infinity is.
        if !self.has_custom_bounds() {
            self.zero_count = change(self.zero_count);
        }
        self.count = change(self.count);
        self.sum = change(self.sum);
        for bucket in self.positive.iter_mut().chain(&mut self.negative) {
            bucket.count = change(bucket.count);
        }
    }

    /// Adds the observations of `other`. The result has the coarser schema of both, the wider zero
    /// bucket (or a wider one), and those of the custom bounds that both have. Buckets that become
    /// empty stay: see [`Histogram::compact`].
    pub fn add(&mut self, other: &Histogram) -> Result<Notes, Incompatible> {
        self.combine(other, Operation::Add)
    }

    /// As [`Histogram::add`], taking observations away. An operator `-` has to make the result a
    /// gauge.
    pub fn sub(&mut self, other: &Histogram) -> Result<Notes, Incompatible> {
        self.combine(other, Operation::Subtract)
    }

    fn combine(&mut self, other: &Histogram, operation: Operation) -> Result<Notes, Incompatible> {
        self.check_compatible(other)?;
        let mut notes = Notes { hints_collided: self.adjust_hint(other), ..Notes::default() };
        if !self.has_custom_bounds() {
            let theirs = self.reconcile_zero(other);
            self.zero_count = operation.apply(self.zero_count, theirs.count);
        }
        self.count = operation.apply(self.count, other.count);
        self.sum = operation.apply(self.sum, other.sum);
        if !self.has_custom_bounds() {
            self.combine_exponential(other, operation);
        } else if self.custom_bounds == other.custom_bounds {
            merge(&mut self.positive, &other.positive, operation);
        } else {
            notes.bounds_reconciled = true;
            self.combine_custom(other, operation);
        }
        Ok(notes)
    }

    /// Whether both have custom bounds, or neither.
    pub fn check_compatible(&self, other: &Histogram) -> Result<(), Incompatible> {
        match self.has_custom_bounds() == other.has_custom_bounds() {
            true => Ok(()),
            false => Err(Incompatible),
        }
    }

    /// What is known of resets when `other` has been added: equal hints stay, a gauge makes a
    /// gauge, else nothing is known. Tells whether "reset" met "no reset".
    pub(crate) fn adjust_hint(&mut self, other: &Histogram) -> bool {
        use ResetHint::{Gauge, Unknown};
        match (self.reset_hint, other.reset_hint) {
            (own, theirs) if own == theirs => false,
            (Gauge, _) => false,
            (_, Gauge) => {
                self.reset_hint = Gauge;
                false
            }
            (own, theirs) => {
                self.reset_hint = Unknown;
                own != Unknown && theirs != Unknown
            }
        }
    }

    fn combine_exponential(&mut self, other: &Histogram, operation: Operation) {
        self.reduce_to(other.schema);
        let (schema, threshold) = (self.schema, self.zero_threshold);
        for (own, theirs) in
            [(&mut self.positive, &other.positive), (&mut self.negative, &other.negative)]
        {
            let theirs = match Resolution::between(other.schema, schema) {
                Some(resolution) => Cow::Owned(coarsened(theirs, resolution)),
                None => Cow::Borrowed(theirs),
            };
            let inside = |bucket: &Bucket| upper_bound(schema, bucket.index) <= threshold;
            merge(own, &theirs[theirs.partition_point(inside)..], operation);
        }
    }

    fn combine_custom(&mut self, other: &Histogram, operation: Operation) {
        let bounds = shared_bounds(&self.custom_bounds, &other.custom_bounds);
        let mut remap = Remap::to(&bounds);
        remap.put(self.positive.iter().map(Term::from), &self.custom_bounds, Operation::Add);
        remap.put(other.positive.iter().map(Term::from), &other.custom_bounds, operation);
        self.positive =
            remap.finish().map(|term| Bucket { index: term.index, count: term.count }).collect();
        self.custom_bounds = bounds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CUSTOM_SCHEMA;
    use crate::testing::buckets;

    fn sample() -> Histogram {
        Histogram {
            schema: 1,
            zero_threshold: 0.01,
            zero_count: 2.0,
            count: 21.0,
            sum: 33.0,
            positive: buckets(&[(1, 2.0), (2, 4.0), (4, 1.0)]),
            negative: buckets(&[(1, 5.0), (2, 7.0)]),
            ..Histogram::default()
        }
    }

    #[test]
    fn scaling() {
        let mut scaled = sample();
        scaled.mul(2.0);
        assert_eq!((scaled.count, scaled.sum, scaled.zero_count), (42.0, 66.0, 4.0));
        assert_eq!(scaled.positive, buckets(&[(1, 4.0), (2, 8.0), (4, 2.0)]));
        assert_eq!(scaled.negative, buckets(&[(1, 10.0), (2, 14.0)]));
        assert_eq!(scaled.reset_hint, ResetHint::Unknown);
        scaled.div(-2.0);
        assert_eq!((scaled.count, scaled.reset_hint), (-21.0, ResetHint::Gauge));
        let mut divided = sample();
        divided.div(0.0);
        assert_eq!(
            (divided.count, divided.positive.len(), divided.negative.len()),
            (f64::INFINITY, 0, 0)
        );
        assert_eq!((divided.zero_threshold, divided.reset_hint), (0.01, ResetHint::Unknown));
    }

    #[test]
    fn adding_reconciles_schema_and_zero_bucket() {
        let mut total = sample();
        let coarse = Histogram {
            zero_threshold: 1.0,
            zero_count: 10.0,
            count: 13.0,
            sum: 1.0,
            positive: buckets(&[(1, 1.0), (3, 2.0)]),
            ..Histogram::default()
        };
        let mut other_way = coarse.clone();
        assert_eq!(total.add(&coarse), Ok(Notes::default()));
        assert_eq!(other_way.add(&sample()), Ok(Notes::default()));
        assert_eq!(total, other_way);
        assert_eq!((total.schema, total.zero_threshold, total.zero_count), (0, 1.0, 12.0));
        assert_eq!((total.count, total.sum), (34.0, 34.0));
        assert_eq!(total.positive, buckets(&[(1, 7.0), (2, 1.0), (3, 2.0)]));
        assert_eq!(total.negative, buckets(&[(1, 12.0)]));
        assert_eq!(total.sub(&coarse), Ok(Notes::default()));
        assert_eq!((total.count, total.zero_count), (21.0, 2.0));
        assert_eq!(total.positive, buckets(&[(1, 6.0), (2, 1.0), (3, 0.0)]));
    }

    fn custom(bounds: &[f64], counts: &[(i32, f64)]) -> Histogram {
        Histogram {
            schema: CUSTOM_SCHEMA,
            custom_bounds: bounds.to_vec(),
            count: counts.iter().map(|bucket| bucket.1).sum(),
            positive: buckets(counts),
            ..Histogram::default()
        }
    }

    #[test]
    fn adding_reconciles_custom_bounds() {
        let mut total = custom(&[1.0, 2.0, 3.0], &[(0, 1.0), (1, 2.0), (3, 4.0)]);
        let other = custom(&[2.0, 3.0, 4.0], &[(0, 10.0), (2, 20.0), (3, 40.0)]);
        assert_eq!(total.add(&total.clone()), Ok(Notes::default()));
        let noted = Notes { bounds_reconciled: true, ..Notes::default() };
        assert_eq!(total.add(&other), Ok(noted));
        assert_eq!(total.custom_bounds, [2.0, 3.0]);
        assert_eq!(total.positive, buckets(&[(0, 16.0), (2, 68.0)]));
        assert_eq!(total.count, 84.0);
        assert_eq!(total.sub(&other), Ok(noted));
        assert_eq!(total.positive, buckets(&[(0, 6.0), (2, 8.0)]));
        let before = total.clone();
        assert_eq!(total.add(&Histogram::default()), Err(Incompatible));
        assert_eq!(Histogram::default().sub(&total), Err(Incompatible));
        assert_eq!(total, before);
    }

    #[test]
    fn scaling_makes_no_zero_bucket() {
        for scale in [|h: &mut Histogram| h.mul(f64::INFINITY), |h: &mut Histogram| h.div(0.0)] {
            let mut scaled = custom(&[1.0], &[(0, 1.0)]);
            scale(&mut scaled);
            assert_eq!((scaled.zero_count, scaled.count), (0.0, f64::INFINITY));
        }
    }

    #[test]
    fn hints_of_sums() {
        use ResetHint::{Gauge, NoReset, Reset, Unknown};
        for (left, right, hint, collides) in [
            (Unknown, Unknown, Unknown, false),
            (Reset, Reset, Reset, false),
            (NoReset, NoReset, NoReset, false),
            (Reset, NoReset, Unknown, true),
            (Reset, Unknown, Unknown, false),
            (NoReset, Unknown, Unknown, false),
            (Gauge, Reset, Gauge, false),
            (Gauge, Unknown, Gauge, false),
        ] {
            for (left, right) in [(left, right), (right, left)] {
                let mut total = Histogram { reset_hint: left, ..sample() };
                let notes = total.add(&Histogram { reset_hint: right, ..sample() }).unwrap();
                assert_eq!((total.reset_hint, notes.hints_collided), (hint, collides));
            }
        }
    }
}
