//! What the store tells about itself: sizes, counts, cardinality.

use crate::exemplars::BookStats;
use crate::partition::State;
use crate::store::Store;
use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot of the store's counters and sizes.
#[derive(Clone, Debug, Default)]
pub struct StoreStats {
    /// Partitions on disk or in memory.
    pub partitions: u64,
    /// Parts on disk.
    pub parts: u64,
    /// Samples in parts on disk.
    pub part_samples: u64,
    /// Bytes of parts on disk.
    pub part_bytes: u64,
    /// Bytes of index segments on disk.
    pub index_bytes: u64,
    /// Bytes of the log.
    pub wal_bytes: u64,
    /// Bytes of it that no flush lets go.
    pub wal_pinned_bytes: u64,
    /// Who needs the oldest of it, if that is not what is being written: a consumer of the log.
    pub wal_pinned_by: Option<&'static str>,
    /// Bytes of the head in memory.
    pub head_bytes: u64,
    /// Samples in the head.
    pub head_samples: u64,
    /// Series of the newest partition.
    pub series_current: u64,
    /// Series with a sample in this clock hour, or in the one before if those were more.
    pub series_active: u64,
    /// Series registered since start.
    pub series_new_total: u64,
    /// New series refused since start.
    pub series_refused_total: u64,
    /// Samples taken since start.
    pub samples_appended_total: u64,
    /// Rows rejected since start.
    pub rows_rejected_total: u64,
    /// Flushes since start.
    pub flushes_total: u64,
    /// Merges since start.
    pub merges_total: u64,
    /// Samples replayed from the log at start.
    pub samples_replayed: u64,
    /// Bytes at the end of the log that the start cut off: a write that a crash interrupted, as far
    /// as anybody can tell.
    pub log_cut_bytes: u64,
    /// Background work that failed since start.
    pub job_failures_total: u64,
    /// The last such failure.
    pub last_job_failure: Option<String>,
    /// Groups the log has written and synced since start.
    pub wal_commits_total: u64,
    /// Time spent in that, nanoseconds.
    pub wal_commit_ns_total: u64,
    /// Bytes of key maps and unflushed index in memory.
    pub index_memory_bytes: u64,
    /// Bytes of parsed headers kept for queries.
    pub outline_bytes: u64,
    /// Headers that a query found parsed since start.
    pub outline_hits_total: u64,
    /// Headers that a query had to parse since start.
    pub outline_misses_total: u64,
    /// Merges left out since start because the disk had no room for them.
    pub merges_without_room_total: u64,
    /// Partitions of which nothing is read.
    pub damaged_partitions: u64,
    /// Parts that cannot be opened.
    pub lost_parts: u64,
    /// Files that no manifest names and that nobody knows.
    pub orphans: u64,
    /// Parts and side files in which damage was met since start.
    pub corrupt_parts_total: u64,
    /// What is known to be missing or rotten, how many things by [`crate::DamagePlace`].
    pub damage: [u64; crate::DamagePlace::ALL.len()],
    /// How many were ever noticed, by earlier runs of the program, too.
    pub damage_noticed_total: u64,
    /// How far the scrub is.
    pub scrub: crate::ScrubStats,
    /// The book of exemplars.
    pub exemplars: BookStats,
    /// Oldest and newest timestamp stored, nanoseconds; `None` when empty.
    pub time_min_max: Option<(i64, i64)>,
    /// Why writes are refused, if they are.
    pub read_only_reason: Option<String>,
    /// Free bytes on the disk.
    pub free_disk_bytes: u64,
}

impl Store {
    /// Counters and sizes.
    pub fn stats(&self) -> StoreStats {
        let wal = self.wal.stats();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut stats = StoreStats {
            wal_bytes: wal.size,
            wal_pinned_bytes: read(&self.log_pinned_size).min(wal.size),
            wal_pinned_by: self.log.pin().map(|pin| pin.consumer),
            wal_commits_total: wal.commit_count,
            wal_commit_ns_total: wal.commit_ns_total,
            samples_appended_total: read(&self.counters.samples_appended),
            rows_rejected_total: read(&self.counters.rows_rejected),
            flushes_total: read(&self.counters.flushes),
            merges_total: read(&self.counters.merges),
            merges_without_room_total: read(&self.counters.merges_without_room),
            damaged_partitions: crate::store::lock(&self.damaged).len() as u64,
            orphans: self.orphans.len() as u64,
            corrupt_parts_total: read(&self.counters.corrupt_parts),
            samples_replayed: read(&self.counters.samples_replayed),
            log_cut_bytes: self.wal.recovery().cut_size,
            job_failures_total: read(&self.counters.job_failures),
            last_job_failure: crate::store::lock(&self.last_failure).clone(),
            read_only_reason: self.read_only_reason(),
            free_disk_bytes: self.vfs.free_space(&self.dir).unwrap_or(0),
            ..StoreStats::default()
        };
        stats.series_active = self.gate.active(self.vfs.now());
        (stats.series_new_total, stats.series_refused_total) = self.gate.totals();
        stats.exemplars = self.exemplars.stats();
        (stats.damage, stats.damage_noticed_total) = self.damage.counts();
        stats.scrub = self.scrub_stats();
        stats.outline_bytes = self.outlines.size() as u64;
        (stats.outline_hits_total, stats.outline_misses_total) = self.outlines.hits_and_misses();
        for partition in self.all_partitions() {
            stats.add_partition(&partition.read());
        }
        stats
    }
}

impl Store {
    /// Consumers of the log that are switched off and have records in it, which it keeps.
    pub fn off_in_log(&self) -> &[wal::Off] {
        self.log.off()
    }

    /// Bytes of memory that tables will need at once when they grow next, if that is near.
    pub fn memory_ahead(&self) -> u64 {
        let ahead = |partition: &std::sync::Arc<crate::partition::Partition>| {
            partition.read().map.growth_ahead() as u64
        };
        self.all_partitions().iter().map(ahead).sum()
    }
}

impl StoreStats {
    /// Adds a partition; the newest comes last.
    fn add_partition(&mut self, state: &State) {
        self.partitions += 1;
        self.parts += state.parts.len() as u64;
        self.lost_parts += state.lost_parts.len() as u64;
        for part in state.parts.iter().chain(state.memory_parts.iter().map(|m| &m.part)) {
            let summary = part.part.summary();
            self.widen(summary.min_ts, summary.max_ts);
        }
        for part in &state.parts {
            self.part_samples += part.part.summary().samples;
            self.part_bytes += part.part.summary().size;
        }
        for view in state.taken.iter().map(|taken| &taken.view) {
            view.rows().for_each(|row| self.widen(row.timestamp, row.timestamp));
        }
        if let Some((min, max)) = state.arena.time_min_max() {
            self.widen(min, max);
        }
        self.index_bytes += segments_size(&state.index);
        self.index_memory_bytes += (state.index.memory_size() + state.map.size()) as u64;
        self.head_bytes += state.head_size() as u64;
        self.head_samples += state.head_samples();
        // A partition that was only prepared is not yet what people mean.
        if !state.parts.is_empty() || state.head_samples() != 0 {
            self.series_current = state.visible_series();
        }
    }

    fn widen(&mut self, min: i64, max: i64) {
        let (known_min, known_max) = self.time_min_max.unwrap_or((min, max));
        self.time_min_max = Some((known_min.min(min), known_max.max(max)));
    }
}

/// Bytes of an index's segments on disk.
pub fn segments_size(index: &index::Index) -> u64 {
    index.segments().iter().map(|segment| segment.size()).sum()
}

/// A name and how many series (or bytes) it accounts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameCount {
    /// Metric, label name, or `name=value`.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// What the cardinality explorer asks.
#[derive(Clone, Debug)]
pub struct CardinalityRequest {
    /// How many rows of each list.
    pub top_n: usize,
    /// UTC day number since the epoch; `None` is the newest with data.
    pub day: Option<i32>,
    /// Only series that match one of these; empty is all.
    pub sets: Vec<Vec<model::Matcher>>,
    /// A label whose values get a list of their own.
    pub focus_label: Option<String>,
}

/// What it gets, each list by falling count.
#[derive(Clone, Debug, Default)]
pub struct Cardinality {
    /// Series in all.
    pub series: u64,
    /// Distinct `name=value` pairs.
    pub label_pairs: u64,
    /// Series by metric.
    pub by_metric: Vec<NameCount>,
    /// Distinct values by label name.
    pub values_by_label: Vec<NameCount>,
    /// Bytes of distinct values by label name.
    pub bytes_by_label: Vec<NameCount>,
    /// Series by label name.
    pub by_label: Vec<NameCount>,
    /// Series by `name=value`.
    pub by_pair: Vec<NameCount>,
    /// Series by value of the label asked about.
    pub by_focus_value: Vec<NameCount>,
    /// Series inside the store that native histograms take, by the metric they belong to; in no
    /// other count of series here.
    pub hidden_by_metric: Vec<NameCount>,
    /// Bytes on disk of all samples of these series, in the partition of the day.
    pub disk_bytes: u64,
    /// The same by metric.
    pub disk_bytes_by_metric: Vec<NameCount>,
    /// The same by `name=value`.
    pub disk_bytes_by_pair: Vec<NameCount>,
    /// Bytes on disk that labels take in the partition's index, whoever has them.
    pub index_bytes_by_label: Vec<NameCount>,
    /// Bytes of memory that knowing a series takes, on average; hidden ones are series, too.
    pub memory_bytes_per_series: f64,
    /// Oldest and newest timestamp of the head, nanoseconds.
    pub time_min_max: Option<(i64, i64)>,
}

/// Series that were registered lately.
#[derive(Clone, Debug, Default)]
pub struct NewSeries {
    /// Hours since the epoch, and how many were registered in each; oldest first.
    pub hours: Vec<(i64, u64)>,
    /// Who they are.
    pub series: Cardinality,
}
