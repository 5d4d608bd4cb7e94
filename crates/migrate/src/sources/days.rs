//! The time of a source that is asked over the network, cut into days.

use crate::source::Window;
use cli::calendar::rfc3339;
use model::TimeRange;
use model::sample::NANOS_PER_DAY;

/// The days that touch a time, the newest first.
pub fn windows(range: &TimeRange) -> Vec<Window> {
    if range.is_empty() {
        return Vec::new();
    }
    let (first, last) =
        (range.start.div_euclid(NANOS_PER_DAY), range.end.div_euclid(NANOS_PER_DAY));
    let window = |day: i64| {
        // The first and the last day are no whole ones.
        let nanos = |day: i128| day * i128::from(NANOS_PER_DAY);
        let clamp = |nanos: i128| nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let day = i128::from(day);
        let whole = TimeRange::new(clamp(nanos(day)), clamp(nanos(day + 1) - 1));
        let text = rfc3339(whole.start);
        let name = text.split('T').next().unwrap_or(&text).to_string();
        Window { name, range: whole.intersect(range), samples: None }
    };
    (first..=last).rev().map(window).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_day_is_first_and_ends_with_the_time() {
        let noon = 20_000 * NANOS_PER_DAY + NANOS_PER_DAY / 2;
        let all = windows(&TimeRange::new(noon - 2 * NANOS_PER_DAY, noon));
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["2024-10-04", "2024-10-03", "2024-10-02"]);
        assert_eq!(all[0].range, TimeRange::new(20_000 * NANOS_PER_DAY, noon));
        assert_eq!(all[2].range.start, noon - 2 * NANOS_PER_DAY);
        assert!(windows(&TimeRange::new(1, 0)).is_empty());
        let end = i64::MAX;
        assert!(windows(&TimeRange::new(end - 5, end))[0].range.contains(end), "the end of time");
    }
}
