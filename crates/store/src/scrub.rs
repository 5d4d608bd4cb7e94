//! The scrub: reads everything once in a while, so that rot is found while there is a copy to mend it
//! from, and not by the query that needs it.
//!
//! ```text
//! start ► index segments of the newest partitions, so that no query waits for their first check
//! then, once an interval ► every segment, page, set of live series, side file
//!         each round: as many bytes as the rate allows ► what is rotten goes to the damage book
//! ```
//!
//! Nothing is changed and nothing is decoded: only checksums are compared. What is merged away
//! meanwhile is skipped, what comes into being waits for the next pass.

use crate::damage::{Damage, DamagePlace};
use crate::exemplars::{self, ExemplarBook};
use crate::live::live_days_damage;
use crate::manifest::{self, Manifest};
use crate::metadata::{self, MetadataBook};
use crate::missing::Watch;
use crate::partition::{CORRUPT_SUFFIX, INDEX_DIR, LivePart, Partition};
use crate::period::Period;
use crate::read::page_damage;
use crate::store::{PARTITIONS_DIR, Store, lock};
use crate::{Error, Result};
use index::Segment;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Partitions whose index is checked after a start.
const FIRST_PARTITIONS: usize = 2;
/// What a look at a small file counts.
const SMALL_FILE: u64 = 64 << 10;

/// Something to read.
enum Task {
    /// A section of an index segment and those behind it.
    Segment {
        period: Period,
        name: String,
        section: usize,
    },
    /// A slice of a part and those behind it, then the sets of live series.
    Part {
        period: Period,
        file: u64,
        slice: usize,
    },
    /// The manifest of a partition.
    Manifest(Period),
    Metadata,
    Exemplars,
}

/// Where the scrub is.
#[derive(Default)]
pub(crate) struct Scrub {
    tasks: VecDeque<Task>,
    /// Whether the pass under way is the one over everything.
    is_whole_pass: bool,
    /// Whether the first pass, over indexes, was begun.
    has_begun: bool,
    /// Bytes that may be read now; negative when the last piece was larger than that.
    allowance: i64,
    last_round: Option<Duration>,
    stats: ScrubStats,
}

/// How far the scrub is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubStats {
    /// Bytes read since start.
    pub bytes_total: u64,
    /// Passes over everything that came to their end since start.
    pub passes_total: u64,
    /// Bytes of the pass under way, as they were when it began; 0 when there is none.
    pub pass_bytes: u64,
    /// How many of them are read.
    pub pass_done: u64,
    /// Wall clock when a pass last came to its end.
    pub finished_ns: Option<i64>,
}

impl Store {
    /// How far the scrub is.
    pub fn scrub_stats(&self) -> ScrubStats {
        ScrubStats { finished_ns: self.damage.scrubbed_ns(), ..lock(&self.scrub).stats }
    }

    /// What is known to be missing or rotten.
    pub fn damage(&self) -> Vec<Damage> {
        self.damage.list()
    }

    /// The damage that is new since the last call, to be told people.
    pub fn take_damage_news(&self) -> Vec<Damage> {
        self.damage.take_news()
    }

    /// Takes what the book says of earlier runs to heart, and notes what the start came across.
    pub(crate) fn settle_damage(&self) {
        let known = self.damage.list();
        for partition in self.all_partitions() {
            for part in &partition.read().parts {
                let file = self.damage.relative(part.part.name());
                // One that could not be opened and can be now has no rotten page; a header on which
                // nothing depends costs no sample.
                let is_page = |one: &Damage| {
                    one.place == DamagePlace::Page && one.file == file && one.samples != Some(0)
                };
                if known.iter().any(is_page) {
                    part.set_damaged();
                }
                if !part.part.has_sound_header() {
                    self.note_header(&partition, DamagePlace::Page, part.part.name());
                }
            }
        }
        self.forget_old_damage();
    }

    /// Notes a rotten header, on which nothing depends.
    fn note_header(&self, partition: &Partition, place: DamagePlace, path: &Path) {
        let what = "header, on which nothing depends".to_string();
        let damage =
            Damage::of_partition(partition.period, place, self.damage.relative(path), what);
        let (samples, series) = (Some(0), Some(0));
        self.damage.note(Damage { samples, series, ..damage }, self.vfs.now());
    }

    /// Whether a side file stands there as it was set aside: a repair moves it away. Nobody knows
    /// is yes.
    fn is_set_aside(&self, file: &str) -> bool {
        let aside = self.dir.join(format!("{file}{CORRUPT_SUFFIX}"));
        self.vfs.exists(&aside).unwrap_or(true)
    }

    /// Takes entries of partitions and files that are gone out of the damage book. The book is not
    /// held meanwhile: readers note what they meet under locks that are needed here.
    fn forget_old_damage(&self) {
        let mut old = self.damage.list_met();
        old.retain(|(damage, is_met)| !self.is_still_damaged(damage, *is_met));
        if !old.is_empty() {
            let is_old = |one: &Damage, met| old.iter().any(|(old, was)| old == one && *was == met);
            self.damage.retain(|damage, is_met| !is_old(damage, is_met));
        }
    }

    fn is_still_damaged(&self, damage: &Damage, is_met: bool) -> bool {
        let Some(period) = damage.period else {
            // What the log had lost when it was opened is made up for by the next start.
            return is_met || self.is_set_aside(&damage.file);
        };
        let dir = self.dir.join(PARTITIONS_DIR).join(period.name());
        if !self.vfs.exists(&dir).unwrap_or(true) {
            return false;
        }
        let Some(partition) = self.partitions_read().get(&period).map(Arc::clone) else {
            return true;
        };
        match damage.place {
            DamagePlace::Page | DamagePlace::Index => {
                let manifest = &partition.read().manifest;
                let ends = |name: &str| damage.file.ends_with(name);
                manifest.parts.iter().any(|part| ends(&Manifest::part_name(part.file)))
                    || manifest.segments.iter().any(|segment| ends(&segment.name))
            }
            // Met by each start, as long as it is so.
            DamagePlace::Part | DamagePlace::Partition => is_met,
            DamagePlace::SideFile | DamagePlace::Log => true,
        }
    }

    /// Writes the damage book without what is gone, if it has changed; a flush does.
    ///
    /// # Errors
    /// On I/O errors; it is tried again next time.
    pub(crate) fn write_damage(&self) -> Result<()> {
        self.forget_old_damage();
        self.damage.write(self.vfs.as_ref())
    }

    /// What the background does in a round: as much as the rate allows since the last one.
    pub(crate) fn scrub_round(&self) -> Result<()> {
        let rate = i64::try_from(self.config.scrub_rate).unwrap_or(i64::MAX);
        let now = self.vfs.elapsed();
        let allowance = {
            let mut scrub = lock(&self.scrub);
            let since = scrub.last_round.map_or(Duration::ZERO, |last| now.saturating_sub(last));
            let earned = (since.as_secs_f64().min(1.0) * rate as f64) as i64;
            scrub.allowance = scrub.allowance.saturating_add(earned).min(rate);
            scrub.last_round = Some(now);
            scrub.allowance
        };
        if 0 < allowance {
            let read = self.scrub_some(allowance as u64);
            let mut scrub = lock(&self.scrub);
            scrub.allowance = scrub.allowance.saturating_sub_unsigned(read);
        }
        self.damage.write(self.vfs.as_ref())
    }

    /// Reads about `budget` bytes of what is to be read, if anything is; returns how many it were.
    pub fn scrub_some(&self, budget: u64) -> u64 {
        let mut read = 0;
        while read < budget && !self.is_stopping() {
            let Some(task) = self.next_task() else { break };
            let (size, rest) = self.scrub_task(task, budget - read);
            read += size;
            let mut scrub = lock(&self.scrub);
            scrub.stats.bytes_total += size;
            scrub.stats.pass_done += size;
            if let Some(rest) = rest {
                scrub.tasks.push_front(rest);
            } else if scrub.tasks.is_empty() {
                let is_whole_pass = scrub.is_whole_pass;
                (scrub.stats.pass_bytes, scrub.stats.pass_done) = (0, 0);
                scrub.stats.passes_total += u64::from(is_whole_pass);
                if is_whole_pass {
                    self.damage.set_scrubbed(self.vfs.now());
                }
            }
        }
        read
    }

    fn next_task(&self) -> Option<Task> {
        let mut scrub = lock(&self.scrub);
        if scrub.tasks.is_empty() {
            scrub.is_whole_pass = scrub.has_begun;
            let tasks = match scrub.has_begun {
                false => self.first_tasks(),
                true if self.is_scrub_due() => self.all_tasks(),
                true => return None,
            };
            scrub.has_begun = true;
            (scrub.stats.pass_bytes, scrub.stats.pass_done) = (tasks.1, 0);
            scrub.tasks = tasks.0;
            if scrub.tasks.is_empty() {
                drop(scrub);
                return self.next_task();
            }
        }
        scrub.tasks.pop_front()
    }

    fn is_scrub_due(&self) -> bool {
        let (interval, now) = (self.config.scrub_interval_ns, self.vfs.now());
        let has_passed = |last: i64| now < last || interval <= now - last;
        0 < interval && self.damage.scrubbed_ns().is_none_or(has_passed)
    }

    /// The segments of the newest partitions, and their size.
    fn first_tasks(&self) -> (VecDeque<Task>, u64) {
        let (mut tasks, mut size) = (VecDeque::new(), 0);
        for partition in self.all_partitions().iter().rev().take(FIRST_PARTITIONS) {
            size += push_segments(partition, &mut tasks);
        }
        (tasks, size)
    }

    /// Everything, the newest partitions first.
    fn all_tasks(&self) -> (VecDeque<Task>, u64) {
        let (mut tasks, mut size) = (VecDeque::new(), 2 * SMALL_FILE);
        tasks.extend([Task::Metadata, Task::Exemplars]);
        for partition in self.all_partitions().iter().rev() {
            let period = partition.period;
            tasks.push_back(Task::Manifest(period));
            size += SMALL_FILE + push_segments(partition, &mut tasks);
            for part in &partition.read().parts {
                let file = part.entry.file;
                tasks.push_back(Task::Part { period, file, slice: 0 });
                size += part.part.summary().size;
            }
        }
        (tasks, size)
    }

    /// Reads of a task what fits the budget, at least a piece; how much it was, and what is left.
    fn scrub_task(&self, task: Task, budget: u64) -> (u64, Option<Task>) {
        match task {
            Task::Segment { period, name, section } => {
                let partition = self.partitions_read().get(&period).map(Arc::clone);
                let Some(partition) = partition else { return (0, None) };
                let segments = partition.read().index.segments().to_vec();
                let Some(segment) = segments.into_iter().find(|one| one.name() == name) else {
                    return (0, None);
                };
                self.scrub_section(&partition, &segment, section);
                let rest = section + 1;
                let is_left = rest < Segment::SECTIONS;
                let rest = is_left.then_some(Task::Segment { period, name, section: rest });
                (segment.section_size(section), rest)
            }
            Task::Part { period, file, slice } => {
                let partition = self.partitions_read().get(&period).map(Arc::clone);
                let Some(partition) = partition else { return (0, None) };
                let parts = partition.read().parts.clone();
                let Some(part) = parts.into_iter().find(|part| part.entry.file == file) else {
                    return (0, None);
                };
                let (size, slice) = self.scrub_part(&partition, &part, slice, budget);
                (size, slice.map(|slice| Task::Part { period, file, slice }))
            }
            Task::Manifest(period) => {
                let dir = self.dir.join(PARTITIONS_DIR).join(period.name());
                let read = Manifest::read(self.vfs.as_ref(), &dir).map(drop);
                let path = dir.join(manifest::FILE_NAME);
                self.scrub_small(Some(period), self.damage.relative(&path), read)
            }
            Task::Metadata => {
                let read = MetadataBook::read(self.vfs.as_ref(), &self.dir).map(drop);
                self.scrub_small(None, metadata::FILE_NAME.to_string(), read)
            }
            Task::Exemplars => {
                let read = ExemplarBook::read(self.vfs.as_ref(), &self.dir, usize::MAX).map(drop);
                self.scrub_small(None, exemplars::FILE_NAME.to_string(), read)
            }
        }
    }

    fn scrub_section(&self, partition: &Partition, segment: &Segment, section: usize) {
        let watch = self.watch(None);
        if let Err(error) = segment.verify_section(section) {
            // It is in the book then, and nobody waits for an answer.
            drop(watch.leave_out_segment(partition, segment, error));
        }
        if section == 0 && !segment.has_sound_header() {
            let path = partition.dir.join(INDEX_DIR).join(segment.name());
            self.note_header(partition, DamagePlace::Index, &path);
        }
    }

    /// Reads slices from `slice` on; returns where to go on.
    fn scrub_part(
        &self,
        partition: &Partition,
        part: &Arc<LivePart>,
        slice: usize,
        budget: u64,
    ) -> (u64, Option<usize>) {
        let watch = self.watch(None);
        let (mut size, mut next) = (0, slice);
        while next < part.part.slices().len() && size < budget {
            size += part.part.slice_size(next);
            let checked = part.part.check_slice(next, &mut |error| {
                self.note_page(&watch, partition, part, next, &error);
                Ok(())
            });
            debug_assert!(checked.is_ok(), "rot is noted");
            next += 1;
        }
        let is_done = part.part.slices().len() <= next;
        if is_done {
            for day in 0..part.part.day_count() {
                if let Err(error) = part.part.live_day(day) {
                    part.set_damaged();
                    let damage = live_days_damage(&watch, partition, part, &error);
                    self.damage.note(damage, self.vfs.now());
                }
            }
        }
        part.part.release();
        (size, (!is_done).then_some(next))
    }

    /// Notes that a page of a part is rotten, and that the part is.
    pub(crate) fn note_page(
        &self,
        watch: &Watch,
        partition: &Partition,
        part: &LivePart,
        slice: usize,
        error: &Error,
    ) {
        part.set_damaged();
        let damage = page_damage(watch, partition, part, slice, error);
        self.damage.note(damage, self.vfs.now());
    }

    /// Notes that a merge met rot in a part. Which slice it is in the error's place tells.
    pub(crate) fn note_damaged_part(&self, partition: &Partition, part: &LivePart, error: &Error) {
        let slices = part.part.slices();
        let at = match error {
            Error::Corrupt { offset, .. } => *offset,
            _ => 0,
        };
        let slice = slices.partition_point(|slice| slice.offset() <= at).saturating_sub(1);
        part.set_damaged();
        if slice < slices.len() {
            self.note_page(&self.watch(None), partition, part, slice, error);
        }
    }

    fn scrub_small(
        &self,
        period: Option<Period>,
        file: String,
        read: Result<()>,
    ) -> (u64, Option<Task>) {
        match read {
            // What a start set aside is as lost as it was, whatever has been written since.
            Ok(()) if self.is_set_aside(&file) => {}
            Ok(()) => self
                .damage
                .retain(|damage, _| damage.place != DamagePlace::SideFile || damage.file != file),
            Err(error @ Error::Corrupt { .. }) => {
                let what = error.to_string();
                let damage = Damage::of_store(DamagePlace::SideFile, file, what);
                self.damage.note(Damage { period, ..damage }, self.vfs.now());
            }
            // The disk will say so again to who needs the file.
            Err(_) => {}
        }
        (SMALL_FILE, None)
    }
}

/// Adds a partition's segments; returns their size.
fn push_segments(partition: &Partition, tasks: &mut VecDeque<Task>) -> u64 {
    let period = partition.period;
    let mut size = 0;
    for segment in partition.read().index.segments() {
        size += segment.size();
        let name = segment.name().to_string();
        tasks.push_back(Task::Segment { period, name, section: 0 });
    }
    size
}
