//! Windows of `GROUP BY time(...)`: whole intervals since the epoch, moved by an offset, of a zone's
//! own midnight.

use crate::time::{TIME_MAX, TIME_MIN};
use jiff::tz::TimeZone;

/// An interval; a duration of 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    pub duration: i64,
    pub offset: i64,
}

impl Interval {
    /// Whether there is none.
    pub fn is_zero(self) -> bool {
        self.duration == 0
    }
}

/// How time is cut.
#[derive(Clone, Debug)]
pub struct Windows {
    pub interval: Interval,
    /// The first and the last nanosecond that are asked for.
    pub start: i64,
    pub end: i64,
    pub zone: Option<TimeZone>,
}

impl Windows {
    /// Whether a time is asked for.
    pub fn covers(&self, time: i64) -> bool {
        self.start <= time && time <= self.end
    }

    /// How far a zone's clocks are from UTC at a time, in nanoseconds.
    pub fn zone_offset(&self, time: i64) -> i64 {
        let Some(zone) = &self.zone else { return 0 };
        let moment = jiff::Timestamp::from_nanosecond(i128::from(time));
        moment.map_or(0, |moment| i64::from(zone.to_offset(moment).seconds()) * 1_000_000_000)
    }

    /// The first nanosecond of the window around `time`, and the one after its last.
    pub fn around(&self, time: i64) -> (i64, i64) {
        let Interval { duration, offset } = self.interval;
        if duration == 0 {
            return (self.start, self.end.saturating_add(1));
        }
        let time = time.saturating_sub(offset);
        let zone = self.zone_offset(time);
        let into = time.saturating_add(zone).rem_euclid(duration);
        let mut start = match TIME_MIN.saturating_add(into) >= time {
            true => TIME_MIN,
            false => time - into,
        };
        let left = duration - into;
        let mut end = match TIME_MAX - left <= time {
            true => TIME_MAX,
            false => time + left,
        };
        if self.zone.is_some() {
            // The clocks may have been changed since the window began, or until it ends. A change of
            // a whole window or more moves nothing.
            let change = zone - self.zone_offset(start);
            if change != 0 && change.abs() < duration {
                start = start.saturating_add(change);
            }
            let end_offset = self.zone_offset(end);
            let change = zone - end_offset;
            if change != 0 && change.abs() < duration {
                // Hours that come twice belong to the window before; hours that are skipped only if
                // the clocks change within the window.
                if 0 < change || self.zone_offset(end.saturating_add(change)) == end_offset {
                    end = end.saturating_add(change);
                }
            }
        }
        (start.saturating_add(offset), end.saturating_add(offset))
    }

    /// The window around `time` if it is the one behind `last`, without the divisions of
    /// [`Windows::around`].
    pub fn next(&self, last: (i64, i64), time: i64) -> Option<(i64, i64)> {
        let Interval { duration, offset } = self.interval;
        let (start, end) = last;
        // Changes of the clock and the ends of time move windows.
        let is_plain = self.zone.is_none()
            && duration != 0
            && end.checked_sub(start) == Some(duration)
            && end < i64::MAX / 4
            && duration.max(offset.abs()) < i64::MAX / 4;
        (is_plain && end <= time && time < end + duration).then(|| (end, end + duration))
    }

    /// Replaces times by those of aggregates' rows. Times in order cost least.
    pub fn label_all<'t>(&self, times: impl Iterator<Item = &'t mut i64>) {
        let mut window = None;
        for time in times {
            let own = match window {
                Some((start, end)) if start <= *time && *time < end => (start, end),
                Some(last) => self.next(last, *time).unwrap_or_else(|| self.around(*time)),
                None => self.around(*time),
            };
            window = Some(own);
            *time = label_of(own);
        }
    }
}

/// Time of an aggregate's row: the start of its window, or the epoch if the query has no start.
fn label_of((start, _): (i64, i64)) -> i64 {
    match start {
        TIME_MIN => 0,
        start => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    #[test]
    fn windows() {
        let interval = Interval { duration: HOUR, offset: 0 };
        let windows = Windows { interval, start: TIME_MIN, end: TIME_MAX, zone: None };
        assert_eq!(windows.around(5), (0, HOUR));
        assert_eq!(windows.around(-5), (-HOUR, 0));
        let interval = Interval { duration: HOUR, offset: 7 };
        let windows = Windows { interval, ..windows };
        assert_eq!(windows.around(5), (7 - HOUR, 7));
        let windows = Windows { interval: Interval::default(), start: TIME_MIN, ..windows };
        assert_eq!(label_of(windows.around(77)), 0);
    }

    #[test]
    fn next_windows_are_those_around() {
        let zones = [None, Some(TimeZone::get("Europe/Berlin").expect("a zone"))];
        for (zone, duration) in [0, 1, 7, HOUR, 24 * HOUR, i64::MAX / 3]
            .into_iter()
            .flat_map(|duration| zones.clone().map(|zone| (zone, duration)))
        {
            for offset in [0, 3, -3, HOUR / 2, 25 * HOUR, -(i64::MAX / 3)] {
                let interval = Interval { duration, offset };
                let windows =
                    Windows { interval, start: TIME_MIN, end: TIME_MAX, zone: zone.clone() };
                let first = 1_711_846_800_000_000_000;
                let times = [TIME_MIN, -1, 0, 1, first, TIME_MAX - duration, TIME_MAX];
                for time in times {
                    let last = windows.around(time);
                    let mut times = vec![time];
                    for time in [last.1, last.1.saturating_add(duration / 2)] {
                        let Some(next) = windows.next(last, time) else { continue };
                        assert_eq!(next, windows.around(time), "{interval:?} {time}");
                        times.push(time);
                    }
                    let labels: Vec<i64> =
                        times.iter().map(|time| label_of(windows.around(*time))).collect();
                    windows.label_all(times.iter_mut());
                    assert_eq!(times, labels, "{interval:?}");
                }
            }
        }
    }

    #[test]
    fn days_of_a_zone() {
        let interval = Interval { duration: 24 * HOUR, offset: 0 };
        let zone = TimeZone::get("America/New_York").ok();
        assert!(zone.is_some());
        let windows = Windows { interval, start: TIME_MIN, end: TIME_MAX, zone };
        // 2016-03-13 had 23 hours there.
        let noon = 1_457_884_800_000_000_000;
        let (start, end) = windows.around(noon);
        assert_eq!((end - start) / HOUR, 23);
    }
}
