//! The clock that retention goes by: it waits before it believes a jump ahead.
//!
//! A wall clock that is wrong for a minute must not cost years of samples. So the time that is
//! trusted goes on with the time that passes, and the wall clock is followed where it keeps to that:
//!
//! ```text
//! wall <= trusted + passed + slack   followed, also backwards, at once
//! further ahead                      trusted goes on as time passes; after `wait` it is believed
//! ```
//!
//! A start trusts no time after the newest sample: what was trusted later may have been a clock that
//! was set right since, before the file was written again. A store to which nothing comes waits then.
//!
//! What is trusted is kept in `DATA/clock` (see `docs/format/manifest.md`), for a jump may come with
//! a restart; so is how long a jump has been waited out, for a machine that is off each night.
//! Samples from the future are told by the latest time that was trusted: a clock that is set back
//! for a while refuses none that it took before.

use crate::Result;
use crate::base::directory::side_file::SideFile;
use crate::base::locks::lock;
use codec::{Reader, put_i64_zigzag};
use std::path::Path;
use std::sync::Mutex;
use vfs::Vfs;

/// The file's name.
pub const FILE_NAME: &str = "clock";
const MAGIC: &[u8; 8] = b"QPCLOCK1";
/// How far the wall clock may be ahead of the time that passed and still be followed.
const SLACK_NS: i64 = 600_000_000_000;
/// How often the file is written while the store is open.
const WRITE_NS: i64 = model::sample::NANOS_PER_HOUR;

/// What the file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockRecord {
    /// The time that was trusted, nanoseconds since the epoch.
    pub trusted_ns: i64,
    /// How far the wall clock was ahead; 0 when it was followed.
    pub ahead_ns: i64,
    /// How long it had been.
    pub waited_ns: i64,
}

/// The clock.
#[derive(Debug)]
pub struct RetentionClock {
    /// How long a clock must be ahead to be believed; 0 believes at once.
    wait_ns: i64,
    state: Mutex<TrustedTime>,
    /// Held by the one who writes the file: flush and retention may both want to.
    writing: Mutex<()>,
}

/// A wall clock and the time that had passed when it was read.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    time_ns: i64,
    passed_ns: i64,
}

impl Anchor {
    /// What the clock says when so much time has passed.
    fn at(&self, passed_ns: i64) -> i64 {
        self.time_ns.saturating_add(passed_ns.saturating_sub(self.passed_ns))
    }
}

/// A jump ahead that is not believed yet.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// How far, when it was first seen.
    ahead_ns: i64,
    /// Since when; of time before a restart, too, so it may be negative.
    since_ns: i64,
}

#[derive(Debug)]
struct TrustedTime {
    trusted: Anchor,
    latest: Anchor,
    jump: Option<Jump>,
    /// When the file was written last, by the time that passed.
    written_ns: Option<i64>,
}

impl RetentionClock {
    /// A clock that goes on from what the file says, or from the newest sample if that is older or
    /// there is no file. It never starts ahead of the wall clock.
    pub fn new(
        wait_ns: i64,
        record: Option<ClockRecord>,
        newest_sample: Option<i64>,
        vfs: &dyn Vfs,
    ) -> RetentionClock {
        let (wall, passed_ns) = (vfs.now(), passed_ns(vfs));
        let known = record.map(|record| record.trusted_ns);
        let oldest = known.into_iter().chain(newest_sample).chain([wall]).min().unwrap_or(wall);
        let trusted = Anchor { time_ns: oldest, passed_ns };
        let ahead_ns = wall.saturating_sub(known.unwrap_or(oldest).min(wall));
        // What is as far ahead as it was, but for a time that the machine may have been off.
        let is_same = |record: &ClockRecord| {
            let least = record.ahead_ns.saturating_sub(SLACK_NS);
            let most = record.ahead_ns.saturating_add(wait_ns);
            0 < record.waited_ns && (least..=most).contains(&ahead_ns)
        };
        let jump = record.filter(is_same).map(|record| Jump {
            ahead_ns: wall.saturating_sub(oldest),
            since_ns: passed_ns.saturating_sub(record.waited_ns),
        });
        let latest = record.map_or(trusted.time_ns, |record| record.trusted_ns);
        let latest = Anchor { time_ns: latest, passed_ns };
        let state = TrustedTime { trusted, latest, jump, written_ns: None };
        RetentionClock { wait_ns, state: Mutex::new(state), writing: Mutex::default() }
    }

    /// The time that retention goes by, nanoseconds since the epoch.
    pub fn now(&self, vfs: &dyn Vfs) -> i64 {
        lock(&self.state).follow(vfs.now(), passed_ns(vfs), self.wait_ns)
    }

    /// The latest time that it may be, by the wall clock and by all that was trusted.
    pub fn latest(&self, vfs: &dyn Vfs) -> i64 {
        let (wall, passed_ns) = (vfs.now(), passed_ns(vfs));
        let mut state = lock(&self.state);
        state.follow(wall, passed_ns, self.wait_ns);
        wall.max(state.latest.at(passed_ns))
    }

    /// How far the wall clock is ahead of what is trusted, and how long it takes until it is
    /// believed, in nanoseconds; `None` when it is followed.
    pub fn waiting(&self, vfs: &dyn Vfs) -> Option<(i64, i64)> {
        let passed_ns = passed_ns(vfs);
        let mut state = lock(&self.state);
        state.follow(vfs.now(), passed_ns, self.wait_ns);
        let jump = state.jump?;
        let waited = passed_ns.saturating_sub(jump.since_ns);
        Some((jump.ahead_ns, self.wait_ns.saturating_sub(waited)))
    }

    /// Whether the file is so old that it should be written again.
    pub fn is_write_due(&self, vfs: &dyn Vfs) -> bool {
        let written = lock(&self.state).written_ns;
        written.is_none_or(|written| WRITE_NS <= passed_ns(vfs).saturating_sub(written))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// On I/O errors; the file is the old or the new one then.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let _one = lock(&self.writing);
        let (wall, passed_ns) = (vfs.now(), passed_ns(vfs));
        let record = {
            let mut state = lock(&self.state);
            let trusted_ns = state.follow(wall, passed_ns, self.wait_ns);
            state.written_ns = Some(passed_ns);
            match state.jump {
                None => ClockRecord { trusted_ns, ..ClockRecord::default() },
                Some(jump) => ClockRecord {
                    // Without the slack, which would add up over restarts.
                    trusted_ns: state.trusted.at(passed_ns),
                    ahead_ns: jump.ahead_ns,
                    waited_ns: passed_ns.saturating_sub(jump.since_ns),
                },
            }
        };
        let mut body = Vec::new();
        for value in [record.trusted_ns, record.ahead_ns, record.waited_ns] {
            put_i64_zigzag(&mut body, value);
        }
        file(dir).write(vfs, &body)
    }
}

impl ClockRecord {
    /// Reads the file of a store's directory, if there is one.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`], [`crate::Error::UnknownVersion`], and I/O errors.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<ClockRecord>> {
        let file = file(dir);
        let Some(body) = file.read(vfs)? else { return Ok(None) };
        decode(&body).map(Some).map_err(|error| file.undecodable(&error))
    }
}

impl TrustedTime {
    /// The trusted time, with what the wall clock says now taken into account.
    fn follow(&mut self, wall: i64, passed_ns: i64, wait_ns: i64) -> i64 {
        let expected = self.trusted.at(passed_ns);
        let ahead_ns = wall.saturating_sub(expected);
        if ahead_ns < -SLACK_NS {
            // What the file trusts is not true.
            self.written_ns = None;
        }
        if wait_ns == 0 || ahead_ns <= SLACK_NS {
            return self.believe(wall, passed_ns, wait_ns);
        }
        // Further or less far ahead is another jump: the clock may have been right in between, while
        // nobody looked.
        let is_same = |jump: &Jump| ahead_ns.abs_diff(jump.ahead_ns) <= SLACK_NS.unsigned_abs();
        let jump = self.jump.filter(is_same).unwrap_or(Jump { ahead_ns, since_ns: passed_ns });
        if wait_ns <= passed_ns.saturating_sub(jump.since_ns) {
            return self.believe(wall, passed_ns, wait_ns);
        }
        self.jump = Some(jump);
        expected.saturating_add(SLACK_NS)
    }

    fn believe(&mut self, wall: i64, passed_ns: i64, wait_ns: i64) -> i64 {
        self.jump = None;
        self.trusted = Anchor { time_ns: wall, passed_ns };
        if wait_ns == 0 || self.latest.at(passed_ns) < wall {
            self.latest = self.trusted;
        }
        wall
    }
}

fn decode(body: &[u8]) -> std::result::Result<ClockRecord, codec::Error> {
    let mut reader = Reader::new(body);
    let (trusted_ns, ahead_ns) = (reader.i64_zigzag()?, reader.i64_zigzag()?);
    let waited_ns = reader.i64_zigzag()?;
    if !reader.is_empty() {
        return Err(reader.corrupt("bytes after the end"));
    }
    Ok(ClockRecord { trusted_ns, ahead_ns, waited_ns })
}

fn passed_ns(vfs: &dyn Vfs) -> i64 {
    i64::try_from(vfs.elapsed().as_nanos()).unwrap_or(i64::MAX)
}

fn file(dir: &Path) -> SideFile {
    SideFile { path: dir.join(FILE_NAME), magic: MAGIC }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    const HOUR: i64 = model::sample::NANOS_PER_HOUR;
    const DAY: i64 = 24 * HOUR;
    const NOW: i64 = 20_000 * DAY;

    fn disk() -> SimVfs {
        let disk = SimVfs::new(1);
        disk.create_dir_all(Path::new("/data")).unwrap();
        disk.set_now(NOW);
        disk
    }

    fn clock(disk: &SimVfs) -> RetentionClock {
        let record = ClockRecord::read(disk, Path::new("/data")).unwrap();
        RetentionClock::new(DAY, record, None, disk)
    }

    #[test]
    fn a_jump_ahead_is_waited_out_and_one_back_is_followed() {
        let disk = disk();
        let clock = clock(&disk);
        assert_eq!(clock.now(&disk), NOW);
        disk.advance(HOUR as u64);
        assert_eq!(clock.now(&disk), NOW + HOUR);
        disk.set_now(NOW + 800 * DAY);
        for _ in 0..100 {
            assert_eq!(clock.now(&disk), NOW + HOUR + SLACK_NS, "asking again is no waiting");
        }
        assert_eq!(clock.latest(&disk), NOW + 800 * DAY);
        assert_eq!(clock.waiting(&disk), Some((800 * DAY - HOUR, DAY)));
        disk.advance(23 * HOUR as u64);
        assert_eq!(clock.now(&disk), NOW + 24 * HOUR + SLACK_NS);
        // Back to what is right, or nearly: nothing is left of it.
        disk.set_now(NOW + 24 * HOUR + 5);
        assert_eq!(clock.now(&disk), NOW + 24 * HOUR + 5);
        assert_eq!(clock.waiting(&disk), None);
        // Ahead again, the wait begins anew; ahead further or less, too.
        disk.set_now(NOW + 100 * DAY);
        clock.now(&disk);
        disk.advance(20 * HOUR as u64);
        disk.set_now(NOW + 200 * DAY);
        clock.now(&disk);
        disk.advance(20 * HOUR as u64);
        disk.set_now(NOW + 150 * DAY);
        clock.now(&disk);
        disk.advance(23 * HOUR as u64);
        assert!(clock.now(&disk) < NOW + 4 * DAY);
        disk.advance(HOUR as u64);
        assert_eq!(clock.now(&disk), NOW + 151 * DAY, "believed");
        disk.set_now(NOW);
        assert_eq!(clock.now(&disk), NOW);
        assert_eq!(clock.latest(&disk), NOW + 151 * DAY);
    }

    /// Found by the campaign: the second jump was taken for the first, and what was in memory went
    /// as too old.
    #[test]
    fn a_clock_that_was_right_while_nobody_looked_begins_to_wait_anew() {
        for second in [600 * DAY, 900 * DAY] {
            let disk = disk();
            let clock = clock(&disk);
            disk.set_now(NOW + 800 * DAY);
            clock.now(&disk);
            disk.set_now(NOW);
            disk.advance(2 * DAY as u64);
            disk.set_now(NOW + 2 * DAY + second);
            assert!(clock.now(&disk) < NOW + 3 * DAY, "{second}");
        }
    }

    #[test]
    fn without_a_wait_it_is_the_wall_clock() {
        let disk = disk();
        let clock = RetentionClock::new(0, None, Some(NOW - DAY), &disk);
        for time in [NOW, NOW + 900 * DAY, 0, NOW] {
            disk.set_now(time);
            assert_eq!((clock.now(&disk), clock.latest(&disk)), (time, time));
        }
    }

    #[test]
    fn a_restart_keeps_what_is_trusted_and_how_long_was_waited() {
        let disk = disk();
        let before = clock(&disk);
        before.write(&disk, Path::new("/data")).unwrap();
        assert!(!before.is_write_due(&disk));
        disk.set_now(NOW + 800 * DAY);
        let after = clock(&disk);
        assert_eq!(after.now(&disk), NOW + SLACK_NS);
        disk.advance(8 * HOUR as u64);
        assert!(after.is_write_due(&disk));
        after.write(&disk, Path::new("/data")).unwrap();
        // A night off, and a day on.
        disk.set_now(NOW + 800 * DAY + 24 * HOUR);
        let third = clock(&disk);
        assert_eq!(third.now(&disk), NOW + 8 * HOUR + SLACK_NS);
        disk.advance(16 * HOUR as u64 - 1);
        assert!(third.now(&disk) < NOW + 2 * DAY);
        disk.advance(1);
        assert_eq!(third.now(&disk), NOW + 800 * DAY + 40 * HOUR);
        // Another jump, with a restart, is not the one that was waited for.
        let fourth = clock(&disk);
        disk.set_now(NOW + 2000 * DAY);
        assert!(fourth.now(&disk) < NOW + 2 * DAY);
        let later = clock(&disk);
        disk.advance(20 * HOUR as u64);
        assert!(later.now(&disk) < NOW + 3 * DAY);
        // A machine that starts without a clock takes the samples of those that have one.
        let before = disk.now();
        disk.set_now(0);
        let lost = clock(&disk);
        assert_eq!((lost.now(&disk), lost.latest(&disk)), (0, NOW + 8 * HOUR));
        disk.set_now(before);
        // Without a file it is the newest sample that says what time it was.
        let bare = RetentionClock::new(DAY, None, Some(NOW - DAY), &disk);
        assert_eq!(bare.now(&disk), NOW - DAY + SLACK_NS);
        // It does so, too, where the file has a later time: that of a clock that was wrong then.
        let record = Some(ClockRecord { trusted_ns: NOW + 900 * DAY, ..ClockRecord::default() });
        let wrong = RetentionClock::new(DAY, record, Some(NOW - DAY), &disk);
        assert_eq!(wrong.now(&disk), NOW - DAY + SLACK_NS);
        let empty = RetentionClock::new(DAY, None, None, &disk);
        assert_eq!(empty.now(&disk), NOW + 2000 * DAY + 20 * HOUR);
    }

    #[test]
    fn the_file_is_as_written_and_rot_is_noticed() {
        let disk = disk();
        disk.set_now(5);
        clock(&disk).write(&disk, Path::new("/data")).unwrap();
        let path = Path::new("/data/clock");
        let bytes = disk.read(path).unwrap();
        assert_eq!(bytes, b"QPCLOCK1\x0a\x00\x00\xc4\\\xd6\xf2", "version 1, for ever");
        for offset in 0..bytes.len() as u64 {
            disk.flip_bit(path, offset, 4).unwrap();
            assert!(ClockRecord::read(&disk, Path::new("/data")).is_err(), "byte {offset}");
            disk.flip_bit(path, offset, 4).unwrap();
        }
    }
}
