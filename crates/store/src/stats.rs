//! What the store tells about itself: sizes, counts, cardinality, the outcome of a check.

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
    /// Bytes of the head in memory.
    pub head_bytes: u64,
    /// Samples in the head.
    pub head_samples: u64,
    /// Series of the newest partition.
    pub series_current: u64,
    /// Series registered since start.
    pub series_registered_total: u64,
    /// Samples taken since start.
    pub samples_appended_total: u64,
    /// Rows rejected since start.
    pub rows_rejected_total: u64,
    /// Flushes since start.
    pub flushes_total: u64,
    /// Merges since start.
    pub merges_total: u64,
    /// Parts set aside as corrupt since start.
    pub corrupt_parts_total: u64,
    /// Oldest and newest timestamp stored, nanoseconds; `None` when empty.
    pub time_min_max: Option<(i64, i64)>,
    /// Why writes are refused, if they are.
    pub read_only_reason: Option<String>,
    /// Free bytes on the disk.
    pub free_disk_bytes: u64,
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
    /// Series by `name=value`.
    pub by_pair: Vec<NameCount>,
    /// Oldest and newest timestamp of the head, nanoseconds.
    pub time_min_max: Option<(i64, i64)>,
}

/// What walking every checksum and invariant found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Files read.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Samples decoded.
    pub samples: u64,
    /// Series seen, summed over partitions.
    pub series: u64,
    /// What is wrong, a sentence each; empty is good.
    pub problems: Vec<String>,
}
