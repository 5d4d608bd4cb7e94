//! The scrub: reads everything once in a while, so that rot is found while there is a copy to mend it
//! from, and not by the query that needs it.
//!
//! ```text
//! start ► index segments of the newest partitions, so that no query waits for their first check
//! then, once an interval ► every segment, page, set of live series, side file
//!         each round: as many bytes as the rate allows ► what is rotten goes to the list of damage
//! ```
//!
//! Nothing is changed and nothing is decoded: only checksums are compared. What is merged away
//! meanwhile is skipped, what comes into being waits for the next pass.

use crate::background::damage_review::{DamageReview, note_header, note_page};
use crate::base::damage::{Damage, DamagePlace};
use crate::base::file_names::{EXEMPLARS_FILE, INDEX_DIR, PARTITION_MANIFEST};
use crate::base::ground::Ground;
use crate::base::locks::lock;
use crate::base::narrow::whole;
use crate::base::period::Period;
use crate::log::exemplars::ExemplarQueue;
use crate::log::metadata::MetadataTable;
use crate::log::metadata_files::{self, StoredMetadata};
use crate::partition::Partition;
use crate::partition::disk::live_part::LivePart;
use crate::partition::disk::manifest::Manifest;
use crate::partition::partitions::Partitions;
use crate::partition::shared::Shared;
use crate::read::live::live_days_damage;
use crate::read::missing::Watch;
use crate::{Error, Result};
use index::Segment;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
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

/// What reads everything.
pub(crate) struct Scrubber {
    ground: Arc<Ground>,
    partitions: Arc<Partitions>,
    metadata: Arc<MetadataTable>,
    damage_review: Arc<DamageReview>,
    progress: Mutex<Progress>,
}

/// Where the scrub is.
#[derive(Default)]
struct Progress {
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

impl Scrubber {
    pub fn new(shared: &Shared, damage_review: Arc<DamageReview>) -> Scrubber {
        Scrubber {
            ground: shared.ground.clone(),
            partitions: shared.partitions.clone(),
            metadata: shared.metadata.clone(),
            damage_review,
            progress: Mutex::default(),
        }
    }

    /// How far the scrub is.
    pub fn stats(&self) -> ScrubStats {
        ScrubStats { finished_ns: self.ground.damage.scrubbed_ns(), ..lock(&self.progress).stats }
    }

    /// What the background does in a round: as much as the rate allows since the last one.
    pub fn round(&self) -> Result<()> {
        let rate = i64::try_from(self.ground.config.scrub_rate).unwrap_or(i64::MAX);
        let now = self.ground.vfs.elapsed();
        let allowance = {
            let mut scrub = lock(&self.progress);
            let since = scrub.last_round.map_or(Duration::ZERO, |last| now.saturating_sub(last));
            let earned = whole(since.as_secs_f64().min(1.0) * rate as f64);
            scrub.allowance = scrub.allowance.saturating_add(earned).min(rate);
            scrub.last_round = Some(now);
            scrub.allowance
        };
        if 0 < allowance {
            let read = self.read_some(allowance as u64);
            let mut scrub = lock(&self.progress);
            scrub.allowance = scrub.allowance.saturating_sub_unsigned(read);
        }
        self.ground.damage.write(self.ground.vfs.as_ref())
    }

    /// Reads about `budget` bytes of what is to be read, if anything is; returns how many it were.
    pub fn read_some(&self, budget: u64) -> u64 {
        let mut read = 0;
        while read < budget && !self.ground.signals.is_stopping() {
            let Some(task) = self.next_task() else { break };
            let (size, rest) = self.scrub_task(task, budget - read);
            read += size;
            let mut scrub = lock(&self.progress);
            scrub.stats.bytes_total += size;
            scrub.stats.pass_done += size;
            if let Some(rest) = rest {
                scrub.tasks.push_front(rest);
            } else if scrub.tasks.is_empty() {
                let is_whole_pass = scrub.is_whole_pass;
                (scrub.stats.pass_bytes, scrub.stats.pass_done) = (0, 0);
                scrub.stats.passes_total += u64::from(is_whole_pass);
                if is_whole_pass {
                    self.ground.damage.set_scrubbed(self.ground.vfs.now());
                }
            }
        }
        read
    }

    fn next_task(&self) -> Option<Task> {
        let mut scrub = lock(&self.progress);
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
        let (interval, now) = (self.ground.config.scrub_interval_ns, self.ground.vfs.now());
        let has_passed = |last: i64| now < last || interval <= now - last;
        0 < interval && self.ground.damage.scrubbed_ns().is_none_or(has_passed)
    }

    /// The segments of the newest partitions, and their size.
    fn first_tasks(&self) -> (VecDeque<Task>, u64) {
        let (mut tasks, mut size) = (VecDeque::new(), 0);
        for partition in self.partitions.all().iter().rev().take(FIRST_PARTITIONS) {
            size += push_segments(partition, &mut tasks);
        }
        (tasks, size)
    }

    /// Everything, the newest partitions first.
    fn all_tasks(&self) -> (VecDeque<Task>, u64) {
        let (mut tasks, mut size) = (VecDeque::new(), 2 * SMALL_FILE);
        tasks.extend([Task::Metadata, Task::Exemplars]);
        for partition in self.partitions.all().iter().rev() {
            let period = partition.period;
            tasks.push_back(Task::Manifest(period));
            size += SMALL_FILE + push_segments(partition, &mut tasks);
            for part in partition.read().disk.parts() {
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
                let partition = self.partitions.get(period);
                let Some(partition) = partition else { return (0, None) };
                let segments = partition.read().series.index.segments().to_vec();
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
                let partition = self.partitions.get(period);
                let Some(partition) = partition else { return (0, None) };
                let parts = partition.read().disk.parts().to_vec();
                let Some(part) = parts.into_iter().find(|part| part.entry.file == file) else {
                    return (0, None);
                };
                let (size, slice) = self.scrub_part(&partition, &part, slice, budget);
                (size, slice.map(|slice| Task::Part { period, file, slice }))
            }
            Task::Manifest(period) => {
                let dir = self.ground.partition_dir(period);
                let read = Manifest::read(self.ground.vfs.as_ref(), &dir).map(drop);
                let path = dir.join(PARTITION_MANIFEST);
                self.scrub_small(Some(period), self.ground.damage.relative(&path), read)
            }
            Task::Metadata => self.scrub_metadata(),
            Task::Exemplars => {
                let read =
                    ExemplarQueue::read(self.ground.vfs.as_ref(), &self.ground.dir, usize::MAX)
                        .map(drop);
                self.scrub_small(None, EXEMPLARS_FILE.to_string(), read)
            }
        }
    }

    fn scrub_section(&self, partition: &Partition, segment: &Segment, section: usize) {
        let watch = Watch::new(&self.ground, None);
        if let Err(error) = segment.verify_section(section) {
            // It is in the list then, and nobody waits for an answer.
            drop(watch.leave_out_segment(partition, segment, error));
        }
        if section == 0 && !segment.has_sound_header() {
            let path = partition.dir.join(INDEX_DIR).join(segment.name());
            note_header(&self.ground, partition, DamagePlace::Index, &path);
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
        let (mut size, mut next) = (0, slice);
        while next < part.part.slices().len() && size < budget {
            size += part.part.slice_size(next);
            let checked = part.part.check_slice(next, &mut |error| {
                note_page(&self.ground, partition, part, next, &error);
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
                    let damage = live_days_damage(&self.ground.damage, partition, part, &error);
                    self.ground.damage.note(damage, self.ground.vfs.now());
                }
            }
        }
        part.part.release();
        (size, (!is_done).then_some(next))
    }

    /// Reads both files of the table of metadata. If one is damaged the next flush writes both
    /// again: the table in memory is whole.
    fn scrub_metadata(&self) -> (u64, Option<Task>) {
        // The disk will report other errors to who needs the file.
        if let Ok(stored) = StoredMetadata::read(self.ground.vfs.as_ref(), &self.ground.dir) {
            if !stored.faults.is_empty() {
                self.metadata.request_rewrite();
            }
            for name in metadata_files::NAMES {
                match stored.faults.iter().find(|fault| fault.file == name) {
                    None => drop(self.scrub_small(None, name.to_string(), Ok(()))),
                    Some(fault) => {
                        let damage = fault.harmless_damage("the next flush writes it again");
                        self.ground.damage.note(damage, self.ground.vfs.now());
                    }
                }
            }
        }
        (SMALL_FILE, None)
    }

    fn scrub_small(
        &self,
        period: Option<Period>,
        file: String,
        read: Result<()>,
    ) -> (u64, Option<Task>) {
        match read {
            // What a start set aside is as lost as it was, whatever has been written since.
            Ok(()) if self.damage_review.is_set_aside(&file) => {}
            Ok(()) => self
                .ground
                .damage
                .retain(|damage, _| damage.place != DamagePlace::SideFile || damage.file != file),
            Err(error @ Error::Corrupt { .. }) => {
                let what = error.to_string();
                let damage = Damage::of_store(DamagePlace::SideFile, file, what);
                self.ground.damage.note(Damage { period, ..damage }, self.ground.vfs.now());
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
    for segment in partition.read().series.index.segments() {
        size += segment.size();
        let name = segment.name().to_string();
        tasks.push_back(Task::Segment { period, name, section: 0 });
    }
    size
}
