//! Functions that take a number for a date, in UTC.

use crate::error::Result;
use crate::eval::Evaluator;
use crate::time::Grid;
use crate::vector::{Key, Vector};
use model::Labels;
use promql::Call;

/// Evaluates a call of such a function; without argument the step's time is the date.
pub(crate) fn call(evaluator: &Evaluator<'_>, call: &Call, grid: Grid) -> Result<Vector> {
    let part = part(call.function.name);
    let Some(argument) = call.arguments.first() else {
        let row: Vec<f64> =
            (0..grid.len).map(|step| part(grid.at_ms(step).div_euclid(1000))).collect();
        let mut vector = Vector::new(evaluator.context, grid.len);
        vector.push(evaluator.context, Key::new(Labels::default()), &row)?;
        return Ok(vector);
    };
    let mut vector = evaluator.vector(argument, grid)?;
    vector.drop_histograms();
    vector.map_values(|value| part(value as i64));
    vector.without_names(evaluator.context.options.name_removal)
}

/// The function from seconds since the epoch to a part of the date.
pub(crate) fn part(name: &str) -> fn(i64) -> f64 {
    match name {
        "minute" => |at| (at.rem_euclid(3600) / 60) as f64,
        "hour" => |at| (at.rem_euclid(86_400) / 3600) as f64,
        // The epoch was a Thursday.
        "day_of_week" => |at| (day(at) + 4).rem_euclid(7) as f64,
        "day_of_month" => |at| civil(day(at)).2 as f64,
        "day_of_year" => |at| {
            let (year, _, _) = civil(day(at));
            (day(at) - days_before(year) + 1) as f64
        },
        "days_in_month" => |at| {
            let (year, month, _) = civil(day(at));
            days_in_month(year, month) as f64
        },
        "month" => |at| civil(day(at)).1 as f64,
        _ => |at| civil(day(at)).0 as f64,
    }
}

fn day(seconds: i64) -> i64 {
    seconds.div_euclid(86_400)
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day number, from the epoch, of the first day of a year.
fn days_before(year: i64) -> i64 {
    let past = year - 1;
    past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) - 719_162
}

/// Year, month and day of a day number, in the Gregorian calendar of all times.
pub(crate) fn civil(day: i64) -> (i64, i64, i64) {
    // 146,097 days are 400 years; the guess is at most a year off.
    let mut year = 1970 + (day as i128 * 400).div_euclid(146_097) as i64;
    while day < days_before(year) {
        year -= 1;
    }
    while days_before(year + 1) <= day {
        year += 1;
    }
    let mut rest = day - days_before(year);
    let mut month = 1;
    while days_in_month(year, month) <= rest {
        rest -= days_in_month(year, month);
        month += 1;
    }
    (year, month, rest + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(civil(11_016), (2000, 2, 29));
        // Any number is a date.
        let (year, _, _) = civil(day(i64::MAX));
        assert_eq!(year, 292_277_026_596);
        civil(day(i64::MIN));
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = (1899, 12, 31);
        for day in -25_568..80_000 {
            assert_eq!(civil(day), expected, "{day}");
            expected.2 += 1;
            if days_in_month(expected.0, expected.1) < expected.2 {
                expected = (expected.0, expected.1 + 1, 1);
            }
            if expected.1 == 13 {
                expected = (expected.0 + 1, 1, 1);
            }
        }
    }

    #[test]
    fn parts() {
        let at = 1_709_210_096; // 2024-02-29 12:34:56, a Thursday.
        let parts = ["minute", "hour", "day_of_week", "day_of_month", "day_of_year"];
        assert_eq!(parts.map(|name| part(name)(at)), [34.0, 12.0, 4.0, 29.0, 60.0]);
        let parts = ["days_in_month", "month", "year"];
        assert_eq!(parts.map(|name| part(name)(at)), [29.0, 2.0, 2024.0]);
        assert_eq!(part("hour")(-1), 23.0);
    }
}
