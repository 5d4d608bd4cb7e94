//! Exemplars: in memory, in the log until the next flush, then in one file.
//!
//! ```text
//! append ► series known? ► room ► queue (lock) ► log   select: labels of the series that have any, matched
//!                           │                                 one by one; there are few
//! flush: rotate the log and copy the queue under one lock ► file { wal_from, exemplars }
//! ```
//!
//! They are a queue: what came first goes first when there are too many.
//! Under its lock the log has the exemplars in the order of the queue, and the file names the first
//! segment with exemplars that it lacks; so file and log together are always the queue as it was.

use crate::base::directory::side_file::SideFile;
use crate::base::file_names::EXEMPLARS_FILE;
use crate::base::locks::lock;
use crate::log::exemplar_record::{ExemplarEncoder, decode_exemplars, exemplar_size_max};
use crate::log::log_record::KIND_EXEMPLARS;
use crate::{Error, Limit, Result, SelectLimits};
use codec::{Reader, put_varint};
use hashbrown::HashMap;
use index::CompiledMatchers;
use model::{Exemplar, Labels, TimeRange, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use vfs::Vfs;
use wal::Wal;

const MAGIC: &[u8; 8] = b"QPEXEMP1";
/// Exemplars of one series: a hundredth of what is kept by default.
pub const PER_SERIES_MAX: usize = 1000;
/// Bytes of memory that exemplars may take on average; those of people's programs take a third.
const SIZE_AVERAGE_MAX: usize = 1024;
/// Bytes of memory of an exemplar besides its labels: itself and its places in list and queue.
const EXEMPLAR_SIZE: usize = 144;
/// Bytes of memory of a series besides its labels.
const SERIES_SIZE: usize = 128;
/// Series that are matched between two looks at the clock.
const SETS_PER_LOOK: usize = 256;

/// The exemplars of one series.
#[derive(Clone, Debug)]
pub struct ExemplarSeries {
    /// The series.
    pub labels: Arc<Labels>,
    /// Its exemplars by time.
    pub exemplars: Vec<Arc<Exemplar>>,
}

/// What became of an exemplar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is new.
    Taken,
    /// It is there already.
    Known,
    /// Its series has a later one, of this time in nanoseconds.
    OutOfOrder(Timestamp),
}

/// Counts and sizes of the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExemplarStats {
    /// Exemplars.
    pub exemplars: u64,
    /// Series that have any.
    pub series: u64,
    /// Bytes of memory, about.
    pub size: u64,
    /// Exemplars taken since start.
    pub taken_total: u64,
    /// Exemplars that had to go for newer ones since start.
    pub evicted_total: u64,
}

/// All exemplars.
pub struct ExemplarQueue {
    /// How many there may be.
    count_max: usize,
    state: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// By series, its exemplars by time; never empty.
    by_series: HashMap<Arc<Labels>, VecDeque<Entry>>,
    /// By number, which is the order of arrival, the series of each exemplar.
    queue: BTreeMap<u64, Arc<Labels>>,
    /// The number of the next one.
    next: u64,
    /// Bytes of memory.
    size: usize,
    /// The file has what log segments below this one hold.
    wal_from: u64,
    /// The first log segment with exemplars that the file lacks.
    dirty_from: Option<u64>,
    /// The same of those that are being written to the file.
    writing_from: Option<u64>,
    /// Whether the file differs.
    is_dirty: bool,
    taken_total: u64,
    evicted_total: u64,
}

struct Entry {
    number: u64,
    exemplar: Arc<Exemplar>,
}

impl ExemplarQueue {
    /// An empty queue of at most so many exemplars.
    pub fn new(count_max: usize) -> ExemplarQueue {
        ExemplarQueue { count_max, state: Mutex::default() }
    }

    /// Reads the queue of a store's directory.
    ///
    /// # Errors
    /// [`Error::Corrupt`], and I/O errors.
    pub fn read(vfs: &dyn Vfs, dir: &Path, count_max: usize) -> Result<ExemplarQueue> {
        let queue = ExemplarQueue::new(count_max);
        let file = file(dir);
        let Some(body) = file.read(vfs)? else { return Ok(queue) };
        let mut reader = Reader::new(&body);
        let wal_from = reader.varint().map_err(|e| file.undecodable(&e))?;
        let start = reader.offset();
        let all = decode_exemplars(&body[start..]);
        let all = all.map_err(|e| codec::Error { offset: start + e.offset, ..e });
        queue.restore(all.map_err(|e| file.undecodable(&e))?);
        let mut state = lock(&queue.state);
        state.wal_from = wal_from;
        state.is_dirty = false;
        drop(state);
        Ok(queue)
    }

    /// The first log segment with exemplars that the file lacks.
    pub fn wal_from(&self) -> u64 {
        lock(&self.state).wal_from
    }

    /// Takes the exemplars of a log record again, which is in a segment that the file lacks.
    ///
    /// # Errors
    /// When the bytes are no such record.
    pub fn replay(&self, segment: u64, payload: &[u8]) -> std::result::Result<(), codec::Error> {
        let all = decode_exemplars(payload)?;
        if !all.is_empty() {
            self.restore(all);
            lock(&self.state).dirty_from.get_or_insert(segment);
        }
        Ok(())
    }

    /// Takes what was taken before, whatever has come since.
    fn restore(&self, all: Vec<(Arc<Labels>, Exemplar)>) {
        let mut state = lock(&self.state);
        for (labels, exemplar) in all {
            state.insert(&labels, exemplar);
            state.shrink(self.count_max);
        }
    }

    /// The first log segment with exemplars that the file lacks.
    pub fn log_needed_from(&self) -> Option<u64> {
        let state = lock(&self.state);
        state.writing_from.or(state.dirty_from)
    }

    /// Rotates the log and writes the queue if it has changed; returns the segment that the log goes
    /// on with: the file has what was taken before.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path, wal: &Wal) -> Result<u64> {
        let (next, body) = {
            let mut state = lock(&self.state);
            let next = wal.rotate();
            if !state.is_dirty {
                return Ok(next);
            }
            state.is_dirty = false;
            state.writing_from = state.dirty_from.take();
            (next, state.encode(next))
        };
        let written = file(dir).write(vfs, &body);
        let mut state = lock(&self.state);
        let writing_from = state.writing_from.take();
        match written {
            Ok(()) => state.wal_from = next,
            Err(error) => {
                state.is_dirty = true;
                // What came meanwhile is in later segments.
                state.dirty_from = writing_from.or(state.dirty_from);
                return Err(error);
            }
        }
        Ok(next)
    }

    /// Whether there is an exemplar of the series.
    pub fn has_series(&self, labels: &Labels) -> bool {
        lock(&self.state).by_series.contains_key(labels)
    }

    /// Takes exemplars in their order and logs the new ones; returns what became of each.
    ///
    /// # Errors
    /// When the log fails or has no room; the queue is as before then.
    pub fn append(&self, wal: &Wal, all: &[(Arc<Labels>, Exemplar)]) -> Result<Vec<Verdict>> {
        let mut encoder = ExemplarEncoder::default();
        let size = all.iter().map(|(labels, exemplar)| exemplar_size_max(labels, exemplar)).sum();
        let mut state = lock(&self.state);
        // After the lock is taken, and so given back before it.
        let room = wal.reserve(size)?;
        let mut verdicts = Vec::with_capacity(all.len());
        for (labels, exemplar) in all {
            let verdict = state.judge(labels, exemplar);
            if verdict == Verdict::Taken {
                encoder.push(labels, exemplar);
                state.insert(labels, exemplar.clone());
                state.taken_total += 1;
                state.shrink(self.count_max);
            }
            verdicts.push(verdict);
        }
        let payload = encoder.into_bytes();
        if !payload.is_empty() {
            state.dirty_from.get_or_insert_with(|| wal.stats().segment);
            // Under the lock, so that the log has them in the order taken.
            room.append(KIND_EXEMPLARS, &[&payload])?;
        }
        Ok(verdicts)
    }

    /// The exemplars in a range of the series that match any of the sets, by labels.
    ///
    /// # Errors
    /// [`Error::DeadlineExceeded`], [`Error::LimitExceeded`] for more than so many series.
    pub fn select(
        &self,
        sets: &[CompiledMatchers],
        range: &TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<ExemplarSeries>> {
        let series_max = limits.series_max;
        let mut found = Vec::new();
        for labels in self.matching(sets, limits)? {
            let exemplars = match lock(&self.state).by_series.get(&labels) {
                Some(list) => within(list, range),
                None => continue,
            };
            if exemplars.is_empty() {
                continue;
            }
            if series_max <= found.len() {
                let (value, max) = (found.len() as u64 + 1, series_max as u64);
                let what = "series with exemplars selected";
                return Err(Error::LimitExceeded { limit: Limit::Series, what, value, max });
            }
            found.push(ExemplarSeries { labels, exemplars });
        }
        found.sort_by(|a, b| a.labels.iter().cmp(b.labels.iter()));
        Ok(found)
    }

    /// The series that match. The lock is not held meanwhile.
    fn matching(
        &self,
        sets: &[CompiledMatchers],
        limits: &SelectLimits,
    ) -> Result<Vec<Arc<Labels>>> {
        let mut all: Vec<Arc<Labels>> = lock(&self.state).by_series.keys().cloned().collect();
        let mut looks = 0;
        let mut check = || {
            looks += 1;
            if looks % SETS_PER_LOOK == 0 { limits.check_interrupt() } else { Ok(()) }
        };
        let mut interrupted = Ok(());
        all.retain(|labels| {
            sets.iter().any(|set| {
                if interrupted.is_ok() {
                    interrupted = check();
                }
                interrupted.is_ok() && set.matches(labels)
            })
        });
        interrupted.map(|()| all)
    }

    /// The series that match any of the sets and have exemplars in a range.
    ///
    /// # Errors
    /// [`Error::DeadlineExceeded`] and [`Error::Cancelled`].
    pub fn series_in(
        &self,
        sets: &[CompiledMatchers],
        range: &TimeRange,
        limits: &SelectLimits,
    ) -> Result<Vec<Arc<Labels>>> {
        let mut matching = self.matching(sets, limits)?;
        let state = lock(&self.state);
        let is_in =
            |labels: &Arc<Labels>| state.by_series.get(labels).map(|list| within(list, range));
        matching.retain(|labels| is_in(labels).is_some_and(|found| !found.is_empty()));
        Ok(matching)
    }

    /// Removes the exemplars of some series in a range.
    pub fn delete(&self, series: &[Arc<Labels>], range: &TimeRange) {
        for labels in series {
            lock(&self.state).remove_where(labels, |exemplar| range.contains(exemplar.timestamp));
        }
    }

    /// Removes what is older.
    pub fn drop_before(&self, oldest: Timestamp) {
        let mut state = lock(&self.state);
        let all: Vec<Arc<Labels>> = state.by_series.keys().cloned().collect();
        for labels in all {
            state.remove_where(&labels, |exemplar| exemplar.timestamp < oldest);
        }
    }

    /// Counts and sizes.
    pub fn stats(&self) -> ExemplarStats {
        let state = lock(&self.state);
        ExemplarStats {
            exemplars: state.queue.len() as u64,
            series: state.by_series.len() as u64,
            size: state.size as u64,
            taken_total: state.taken_total,
            evicted_total: state.evicted_total,
        }
    }
}

fn within(list: &VecDeque<Entry>, range: &TimeRange) -> Vec<Arc<Exemplar>> {
    let start = list.partition_point(|entry| entry.exemplar.timestamp < range.start);
    let inside = list.range(start..).take_while(|entry| entry.exemplar.timestamp <= range.end);
    inside.map(|entry| Arc::clone(&entry.exemplar)).collect()
}

impl Queue {
    /// What a new exemplar is to those of its series.
    fn judge(&self, labels: &Labels, exemplar: &Exemplar) -> Verdict {
        let Some(list) = self.by_series.get(labels) else { return Verdict::Taken };
        let newest = &list.back().expect("lists are never empty").exemplar;
        if newest.is_same(exemplar) {
            return Verdict::Known;
        }
        if newest.timestamp < exemplar.timestamp {
            return Verdict::Taken;
        }
        // What was sent before and comes again, as after an answer that got lost, is no fault.
        let instant = TimeRange::new(exemplar.timestamp, exemplar.timestamp);
        if within(list, &instant).iter().any(|known| known.is_alike(exemplar)) {
            return Verdict::Known;
        }
        match exemplar.timestamp < newest.timestamp {
            true => Verdict::OutOfOrder(newest.timestamp),
            false => Verdict::Taken,
        }
    }

    /// Adds an exemplar as the newest of the queue.
    fn insert(&mut self, labels: &Arc<Labels>, exemplar: Exemplar) {
        self.is_dirty = true;
        let number = self.next;
        self.next += 1;
        self.size += size_of_exemplar(&exemplar);
        let known = self.by_series.get_key_value(labels).map(|(known, _)| Arc::clone(known));
        let labels = known.unwrap_or_else(|| {
            self.size += SERIES_SIZE + labels.as_bytes().len();
            self.by_series.insert(Arc::clone(labels), VecDeque::new());
            Arc::clone(labels)
        });
        let list = self.by_series.get_mut(&labels).expect("it was there or is now");
        let at = list.partition_point(|entry| entry.exemplar.timestamp <= exemplar.timestamp);
        list.insert(at, Entry { number, exemplar: Arc::new(exemplar) });
        let too_many = (PER_SERIES_MAX < list.len()).then(|| list[0].number);
        let before = self.queue.insert(number, Arc::clone(&labels));
        assert!(before.is_none(), "numbers are given once");
        if let Some(number) = too_many {
            self.evict(number, &labels);
        }
    }

    /// Lets the oldest go until the rest is within bounds.
    fn shrink(&mut self, count_max: usize) {
        let size_max = count_max.saturating_mul(SIZE_AVERAGE_MAX);
        while count_max < self.queue.len() || size_max < self.size {
            let Some((&number, labels)) = self.queue.first_key_value() else { return };
            let labels = Arc::clone(labels);
            self.evict(number, &labels);
        }
    }

    fn evict(&mut self, number: u64, labels: &Arc<Labels>) {
        self.evicted_total += 1;
        let list = self.by_series.get_mut(labels).expect("queue and lists agree");
        let at = list.iter().position(|entry| entry.number == number);
        let entry = list.remove(at.expect("queue and lists agree")).expect("it was found there");
        let is_last = list.is_empty();
        assert!(self.queue.remove(&number).is_some(), "queue and lists agree");
        self.size -= size_of_exemplar(&entry.exemplar);
        if is_last {
            self.remove_series(labels);
        }
    }

    /// Removes the exemplars of a series that `is_unwanted` names.
    fn remove_where(&mut self, labels: &Arc<Labels>, is_unwanted: impl Fn(&Exemplar) -> bool) {
        let Some(list) = self.by_series.get_mut(labels) else { return };
        let (queue, size, is_dirty) = (&mut self.queue, &mut self.size, &mut self.is_dirty);
        list.retain(|entry| {
            if !is_unwanted(&entry.exemplar) {
                return true;
            }
            *is_dirty = true;
            *size -= size_of_exemplar(&entry.exemplar);
            queue.remove(&entry.number);
            false
        });
        if list.is_empty() {
            self.remove_series(labels);
        }
    }

    fn remove_series(&mut self, labels: &Arc<Labels>) {
        self.by_series.remove(labels);
        self.size -= SERIES_SIZE + labels.as_bytes().len();
    }

    /// The file's bytes: exemplars in the order of the queue.
    fn encode(&self, wal_from: u64) -> Vec<u8> {
        let mut encoder = ExemplarEncoder::default();
        let of_series = |(labels, list)| {
            let list: &VecDeque<Entry> = list;
            list.iter().map(move |entry| (entry.number, labels, &entry.exemplar))
        };
        let mut all: Vec<(u64, &Arc<Labels>, &Arc<Exemplar>)> =
            self.by_series.iter().flat_map(of_series).collect();
        all.sort_unstable_by_key(|(number, _, _)| *number);
        assert_eq!(all.len(), self.queue.len(), "queue and lists agree");
        all.iter().for_each(|(_, labels, exemplar)| encoder.push(labels, exemplar));
        let mut body = Vec::new();
        put_varint(&mut body, wal_from);
        body.extend_from_slice(&encoder.into_bytes());
        body
    }
}

fn file(dir: &Path) -> SideFile {
    SideFile { path: dir.join(EXEMPLARS_FILE), magic: MAGIC }
}

fn size_of_exemplar(exemplar: &Exemplar) -> usize {
    EXEMPLAR_SIZE + exemplar.labels.as_bytes().len()
}
