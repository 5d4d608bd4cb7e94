//! The buckets that a statement wants rows of.

use crate::functions::gapfill::{external, wrong};
use crate::types::error::SqlError;
use crate::types::time::intervals::{
    begin_of, bucket, floor, month_of, number_out_of_range, out_of_range, positive, worth,
};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::Result;

/// Rows that a statement may ask for in one place.
pub const BUCKETS_MAX: usize = 1_000_000;

/// How long a bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// In microseconds, or whatever is counted.
    Even(i64),
    Months(i64),
}

/// Buckets from the first to before an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    step: Step,
    /// When the first begins.
    pub start: i64,
    finish: i64,
}

impl Buckets {
    /// Of times.
    ///
    /// # Errors
    /// Where there are none, or too many.
    pub fn of_times(width: &IntervalMonthDayNano, start: i64, finish: i64) -> Result<Buckets> {
        let start = bucket(width, start, None)?;
        let step = match width.months {
            0 => Step::Even(i64::try_from(worth(width)).map_err(|_| out_of_range())?),
            months => Step::Months(i64::from(months)),
        };
        Buckets { step, start, finish }.checked()
    }

    /// Of whole numbers.
    ///
    /// # Errors
    /// Where there are none, or too many.
    pub fn of_numbers(width: i64, start: i64, finish: i64) -> Result<Buckets> {
        let start = floor(start, positive(width)?, 0);
        let start = start.ok_or_else(|| number_out_of_range(&DataType::Int64))?;
        Buckets { step: Step::Even(width), start, finish }.checked()
    }

    fn checked(self) -> Result<Buckets> {
        if self.finish <= self.start {
            return Err(wrong("start must be before finish"));
        }
        let count = match self.step {
            Step::Even(width) => {
                let length = i128::from(self.finish) - i128::from(self.start);
                (length - 1) / i128::from(width) + 1
            }
            Step::Months(months) => {
                let length = month_of(self.finish)? - month_of(self.start)?;
                i128::from(length.div_euclid(months)) + 1
            }
        };
        if i128::try_from(BUCKETS_MAX).is_ok_and(|most| most < count) {
            return Err(too_many(&count.to_string()));
        }
        Ok(self)
    }

    /// The one after a bucket; none after the last.
    pub fn after(&self, bucket: i64) -> Option<i64> {
        let next = match self.step {
            Step::Even(width) => bucket.checked_add(width)?,
            // A month past all calendars is past the end.
            Step::Months(months) => begin_of(month_of(bucket).ok()? + months).ok()?,
        };
        (next < self.finish).then_some(next)
    }
}

/// That more rows would be made than may be.
pub fn too_many(count: &str) -> datafusion::common::DataFusionError {
    let words = format!("time_bucket_gapfill would make {count} rows; {BUCKETS_MAX} are the most");
    external(SqlError::limit(words).with_hint("Ask for a shorter time, or for wider buckets."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::time::instants::instant_of;

    fn interval(months: i32, days: i32, seconds: i64) -> IntervalMonthDayNano {
        IntervalMonthDayNano::new(months, days, seconds * 1_000_000_000)
    }

    fn all(buckets: Buckets) -> Vec<i64> {
        std::iter::successors(Some(buckets.start), |at| buckets.after(*at)).collect()
    }

    #[test]
    fn buckets_go_from_the_first_to_before_the_end() {
        let time = |text: &str| instant_of(text).unwrap();
        let months =
            Buckets::of_times(&interval(1, 0, 0), time("2024-01-31"), time("2024-04-01")).unwrap();
        let expected = ["2024-01-01", "2024-02-01", "2024-03-01"].map(time);
        assert_eq!(all(months), expected);
        let (start, finish) = (time("2024-01-01 00:03"), time("2024-01-01 00:10:00.000001"));
        let minutes = Buckets::of_times(&interval(0, 0, 300), start, finish).unwrap();
        assert_eq!(all(minutes).len(), 3);
        assert_eq!(all(Buckets::of_numbers(10, -5, 11).unwrap()), [-10, 0, 10]);
        let ends = Buckets::of_numbers(10, i64::MAX - 15, i64::MAX).unwrap();
        assert_eq!(all(ends).len(), 2);
    }

    #[test]
    fn none_and_too_many_are_refused() {
        let code = |buckets: Result<Buckets>| SqlError::from(buckets.unwrap_err()).code;
        assert_eq!(code(Buckets::of_numbers(10, 20, 20)), "22023");
        assert_eq!(code(Buckets::of_numbers(0, 20, 30)), "22023");
        assert_eq!(code(Buckets::of_numbers(1, i64::MIN, i64::MAX)), "54000");
        assert!(Buckets::of_numbers(1, 0, 1_000_000).is_ok());
        assert_eq!(code(Buckets::of_numbers(1, 0, 1_000_001)), "54000");
        for (start, finish) in [(i64::MIN, 0), (0, i64::MAX), (i64::MIN, i64::MAX)] {
            for width in [interval(1, 0, 0), interval(0, 0, 1)] {
                assert!(Buckets::of_times(&width, start, finish).is_err());
            }
        }
    }
}
