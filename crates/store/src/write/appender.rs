//! The way in: whatever is written to the store goes through here.
//!
//! ```text
//! append ► rows of one period that fit a record ► Partition::append ► arena and log
//!            └ its partition was dropped meanwhile ► another one takes them
//! ```
//!
//! - Nothing of a request is taken while the store is read-only or its heads are full.
//! - Writers wait for the log before they lock a partition, never under its lock.
//! - Buffers are of one request at a time; they go back when it ends, however it does.

use crate::base::ground::Ground;
use crate::base::locks::lock;
use crate::base::period::{PartitionLength, Period};
use crate::log::exemplars::ExemplarQueue;
use crate::log::metadata::MetadataTable;
use crate::log::store_log::StoreLog;
use crate::partition::Partition;
use crate::partition::changes::ChangeClock;
use crate::partition::partitions::Partitions;
use crate::partition::retention::Retention;
use crate::partition::shared::Shared;
use crate::write::append::{AppendContext, AppendScratch, Taken};
use crate::write::refusal::{Appended, refused_time};
use crate::write::series_limits::SeriesGate;
use crate::{Durability, Error, Limit, Result};
use model::{KeyHasher, Metadata, Row, TimeRange, WriteBatch};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use wal::Lsn;

/// Rows that go into one record of the log: bounds its size and the time the lock is held.
pub(crate) const RECORD_ROWS_MAX: usize = 32 * 1024;
/// Values that go into one record of the log.
pub(crate) const RECORD_VALUES_MAX: usize = 512 * 1024;

/// What takes writes.
pub(crate) struct Appender {
    pub ground: Arc<Ground>,
    pub log: Arc<StoreLog>,
    pub partitions: Arc<Partitions>,
    pub retention: Arc<Retention>,
    pub exemplars: Arc<ExemplarQueue>,
    metadata: Arc<MetadataTable>,
    /// Tells readers what changed.
    changes: Arc<ChangeClock>,
    /// Lets new series in, or not.
    pub gate: SeriesGate,
    pub hasher: KeyHasher,
    /// Buffers that no request uses.
    buffers: Mutex<Vec<AppendScratch>>,
}

/// A request under way.
pub(crate) struct Request<'a> {
    buffers: &'a Mutex<Vec<AppendScratch>>,
    pub scratch: AppendScratch,
    pub appended: Appended,
    /// The last record of the log that was made of it.
    pub last: Option<Lsn>,
    /// Partitions that it made.
    made: usize,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        lock(self.buffers).push(std::mem::take(&mut self.scratch));
    }
}

impl Appender {
    pub fn new(shared: &Shared) -> Result<Appender> {
        Ok(Appender {
            ground: shared.ground.clone(),
            log: shared.log.clone(),
            partitions: shared.partitions.clone(),
            retention: shared.retention.clone(),
            exemplars: shared.exemplars.clone(),
            metadata: shared.metadata.clone(),
            changes: shared.changes.clone(),
            gate: SeriesGate::new(&shared.ground.config.series_limits)?,
            hasher: KeyHasher::new(shared.ground.vfs.random()),
            buffers: Mutex::default(),
        })
    }

    /// Appends a batch; blocks until it is as durable as asked.
    pub fn append(&self, batch: &WriteBatch<'_>, durability: Durability) -> Result<Appended> {
        let mut request = self.begin()?;
        let (length, accepted) = (self.ground.length, self.retention.accepted_span());
        let mut start = 0;
        while start < batch.rows.len() {
            let end = record_end(batch, start);
            let rows = &batch.rows[start..end];
            start = end;
            if let Some(period) = common_period(length, rows, &accepted) {
                self.append_rows(period, batch, rows, &mut request)?;
                continue;
            }
            let timed = rows.iter().map(|row| (*row, row.timestamp));
            let appended = &mut request.appended;
            let mut refuse =
                |row: Row| appended.reject_time(row.position, row.timestamp, &accepted);
            for (period, rows) in by_period(length, timed, &accepted, &mut refuse) {
                self.append_rows(period, batch, &rows, &mut request)?;
            }
        }
        self.end(request, durability)
    }

    /// The first row whose time would be refused, by its place in the batch, and why.
    pub fn first_refused_time(&self, batch: &WriteBatch<'_>) -> Option<(usize, String)> {
        let accepted = self.retention.accepted_span();
        let at = batch.rows.iter().position(|row| !accepted.contains(row.timestamp))?;
        Some((at, refused_time(batch.rows[at].timestamp, &accepted)))
    }

    /// The rows whose keys the partitions of their times do not know, by their places in the batch.
    pub fn unknown_keys(&self, batch: &WriteBatch<'_>) -> Vec<usize> {
        let (length, mut start, mut unknown) = (self.ground.length, 0, Vec::new());
        let period_of = |row: &Row| length.of(row.timestamp);
        for rows in batch.rows.chunk_by(|a, b| period_of(a) == period_of(b)) {
            match self.partitions.get(period_of(&rows[0])) {
                Some(partition) => {
                    let hashes = rows.iter().map(|row| row.hash);
                    let found = partition.read().series.map.unknown(hashes);
                    unknown.extend(found.into_iter().map(|at| start + at));
                }
                None => unknown.extend(start..start + rows.len()),
            }
            start += rows.len();
        }
        unknown
    }

    /// Appends rows of one period.
    fn append_rows(
        &self,
        period: Period,
        batch: &WriteBatch<'_>,
        mut rows: &[Row],
        request: &mut Request<'_>,
    ) -> Result<()> {
        while !rows.is_empty() {
            let partition = match self.partition(period, request) {
                // Sent again they are refused again.
                Err(error @ Error::LimitExceeded { .. }) => {
                    let positions = rows.iter().map(|row| row.position);
                    request.appended.reject_all(positions, &error.to_string());
                    return Ok(());
                }
                found => found?,
            };
            let Request { scratch, appended, last, .. } = request;
            let taken = partition.append(batch, rows, &self.context(), scratch, appended);
            if let Some(Taken { lsn, count, .. }) = self.check_taken(&partition, taken)? {
                assert!(0 < count, "a record takes a row, or says why not");
                rows = &rows[count..];
                *last = lsn.or(*last);
            }
        }
        Ok(())
    }

    /// Remembers what metrics are; durable on return.
    pub fn put_metadata(&self, metadata: &[Metadata]) -> Result<()> {
        self.check_writable()?;
        self.log.wait_for_room()?;
        let appended = self.metadata.append(&self.log.wal, metadata);
        match appended.map_err(|error| self.ground.health.latch_if_failed(error))? {
            Some(lsn) => self.log.wait_durable(lsn),
            None => Ok(()),
        }
    }

    /// Begins a request, with buffers that have grown already if there are some.
    pub fn begin(&self) -> Result<Request<'_>> {
        self.check_writable()?;
        let scratch = lock(&self.buffers).pop().unwrap_or_default();
        let (buffers, appended) = (&self.buffers, Appended::default());
        Ok(Request { buffers, scratch, appended, last: None, made: 0 })
    }

    /// Counts what a request has appended, and waits for the disk if it is asked for.
    pub fn end(&self, mut request: Request<'_>, durability: Durability) -> Result<Appended> {
        let mut appended = std::mem::take(&mut request.appended);
        let last = request.last;
        drop(request);
        let counters = &self.ground.counters;
        counters.samples_appended.fetch_add(appended.samples, Ordering::Relaxed);
        counters.rows_rejected.fetch_add(appended.rejected, Ordering::Relaxed);
        if self.partitions.flush_size() <= self.partitions.head_size() {
            self.ground.signals.wake();
        }
        if let (Some(lsn), Durability::Synced) = (last, durability) {
            self.log.wait_durable(lsn)?;
        }
        std::mem::take(&mut appended.postponed).check()?;
        Ok(appended)
    }

    /// The partition of a period for a request, made if it is not there, once the log has room.
    ///
    /// # Errors
    /// As [`Partitions::get_or_make`], and [`Error::LimitExceeded`] when the request has made as many
    /// as one may.
    pub fn partition(&self, period: Period, request: &mut Request<'_>) -> Result<Arc<Partition>> {
        self.log.wait_for_room()?;
        if let Some(partition) = self.partitions.get(period) {
            return Ok(partition);
        }
        let max = self.ground.config.partitions_per_request_max;
        if max <= request.made {
            let (limit, what) = (Limit::RequestPartitions, "new partitions in one request");
            let (value, max) = (request.made as u64 + 1, max as u64);
            return Err(Error::LimitExceeded { limit, what, value, max });
        }
        let partition = self.partitions.get_or_make(period)?;
        request.made += 1;
        Ok(partition)
    }

    /// What a partition needs to append.
    #[inline]
    pub fn context(&self) -> AppendContext<'_> {
        AppendContext {
            wal: &self.log.wal,
            limits: &self.ground.config.limits,
            gate: &self.gate,
            changes: &self.changes,
            arena_words_max: self.ground.config.arena_words_max,
            now_ns: self.ground.vfs.now(),
        }
    }

    /// What a record took; `None` when its partition is gone, and another one is to be asked for.
    pub fn check_taken(
        &self,
        partition: &Partition,
        taken: Result<Taken>,
    ) -> Result<Option<Taken>> {
        match taken {
            Ok(taken) => Ok(Some(taken)),
            Err(Error::PartitionDropped) => {
                self.ground.health.check_disk_is_trusted()?;
                // Until it is gone, or is kept after all.
                drop(partition.lock_change());
                Ok(None)
            }
            Err(error) => match partition.unsealable() {
                None => Err(self.ground.health.latch_if_failed(error)),
                Some(reason) => {
                    let _change = partition.lock_change();
                    self.partitions.give_up(partition, reason);
                    Ok(None)
                }
            },
        }
    }

    /// Refuses writes: the disk has failed or is nearly full, or heads are.
    pub fn check_writable(&self) -> Result<()> {
        self.ground.health.check_writable()?;
        let (size, max) = (self.partitions.head_size(), self.ground.config.head_size_max);
        if max <= size {
            self.ground.signals.wake();
            return Err(Error::HeadFull { size, max });
        }
        Ok(())
    }
}

/// Where the rows from `start` on stop fitting one record.
fn record_end(batch: &WriteBatch<'_>, start: usize) -> usize {
    let most = batch.rows.len().min(start + RECORD_ROWS_MAX);
    let first_value = batch.rows[start].values_start as usize;
    let fits =
        |row: &Row| (row.values_start as usize).wrapping_sub(first_value) < RECORD_VALUES_MAX;
    if fits(&batch.rows[most - 1]) {
        return most;
    }
    start + batch.rows[start..most].iter().take_while(|row| fits(row)).count().max(1)
}

/// The period of all rows, when it is one and all may be taken: no row need be copied then.
fn common_period(length: PartitionLength, rows: &[Row], accepted: &TimeRange) -> Option<Period> {
    let period = length.of(rows.first()?.timestamp);
    let range = period.range().intersect(accepted);
    rows.iter().all(|row| range.contains(row.timestamp)).then_some(period)
}

/// What has a time by its period, each in order of arrival; `refuse` is told of what is not accepted.
pub(crate) fn by_period<T>(
    length: PartitionLength,
    timed: impl Iterator<Item = (T, i64)>,
    accepted: &TimeRange,
    refuse: &mut dyn FnMut(T),
) -> BTreeMap<Period, Vec<T>> {
    let mut by_period: BTreeMap<Period, Vec<T>> = BTreeMap::new();
    for (one, timestamp) in timed {
        match accepted.contains(timestamp) {
            true => by_period.entry(length.of(timestamp)).or_default().push(one),
            false => refuse(one),
        }
    }
    by_period
}
