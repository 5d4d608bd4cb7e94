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

    /// What an aggregate's row says about the time: its window's start, or the epoch where nobody
    /// said when to begin.
    pub fn label(&self, time: i64) -> i64 {
        match self.around(time).0 {
            TIME_MIN => 0,
            start => start,
        }
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
        assert_eq!(windows.label(77), 0);
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
