//! What the store tells about itself: sizes, counts, cardinality.

use crate::log::exemplars::ExemplarStats;
use crate::partition::PartitionState;
use crate::read::reader::Reader;

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
    pub page_header_bytes: u64,
    /// Headers that a query found parsed since start.
    pub page_header_hits_total: u64,
    /// Headers that a query had to parse since start.
    pub page_header_misses_total: u64,
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
    /// Pages that did not read back as they were encoded and were encoded again in the plain form.
    pub reencoded_pages_total: u64,
    /// What is known to be missing or rotten, how many things by [`crate::DamagePlace`].
    pub damage: [u64; crate::DamagePlace::ALL.len()],
    /// How many were ever noticed, by earlier runs of the program, too.
    pub damage_noticed_total: u64,
    /// How far the scrub is.
    pub scrub: crate::ScrubStats,
    /// Exemplars.
    pub exemplars: ExemplarStats,
    /// Oldest and newest timestamp stored, nanoseconds; `None` when empty.
    pub time_min_max: Option<(i64, i64)>,
    /// Why writes are refused, if they are.
    pub read_only_reason: Option<String>,
    /// Free bytes on the disk.
    pub free_disk_bytes: u64,
}

/// From the oldest sample that is stored to the newest; `None` when there is none.
pub(crate) fn stored_span(reader: &Reader) -> Option<(i64, i64)> {
    let mut stats = StoreStats::default();
    for partition in reader.partitions.all() {
        stats.widen_by(&partition.read());
    }
    stats.time_min_max
}

impl StoreStats {
    /// Adds a partition; the newest comes last.
    pub(crate) fn add_partition(&mut self, state: &PartitionState) {
        self.partitions += 1;
        self.parts += state.disk.parts().len() as u64;
        self.lost_parts += state.disk.lost().len() as u64;
        self.widen_by(state);
        for part in state.disk.parts() {
            self.part_samples += part.part.summary().samples;
            self.part_bytes += part.part.summary().size;
        }
        self.index_bytes += segments_size(&state.series.index);
        self.index_memory_bytes += state.series.memory_size() as u64;
        self.head_bytes += state.head_size() as u64;
        self.head_samples += state.head.samples();
        // A partition that was only prepared is not yet what people mean.
        if !state.disk.parts().is_empty() || state.head.samples() != 0 {
            self.series_current = state.series.visible();
        }
    }

    fn widen_by(&mut self, state: &PartitionState) {
        for span in state.disk.parts().iter().chain(state.head.parts()).map(|part| part.span()) {
            self.widen(span.start, span.end);
        }
        for view in state.head.taken().iter().map(|taken| &taken.view) {
            view.rows().for_each(|row| self.widen(row.timestamp, row.timestamp));
        }
        if let Some((min, max)) = state.head.arena.time_min_max() {
            self.widen(min, max);
        }
    }

    fn widen(&mut self, min: i64, max: i64) {
        let (known_min, known_max) = self.time_min_max.unwrap_or((min, max));
        self.time_min_max = Some((known_min.min(min), known_max.max(max)));
    }
}

/// Bytes of an index's segments on disk.
fn segments_size(index: &index::Index) -> u64 {
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
    /// When to give up; the number of series has no bound here.
    pub limits: crate::SelectLimits,
}

/// What it gets, each list by falling count.
#[derive(Clone, Debug, Default)]
pub struct Cardinality {
    /// Series in all.
    pub series: u64,
    /// Distinct `name=value` pairs.
    pub label_pairs: u64,
    /// Labels of all series together.
    pub series_labels: u64,
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
