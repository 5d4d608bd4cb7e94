//! What the owner of a store decides; every field is a flag of the binary.

use crate::base::period::PartitionLength;
use model::Matcher;
use model::limits::Limits;

/// How sure a writer wants to be before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Answer once the log is synced.
    Synced,
    /// Answer once the samples are in memory and on their way to the log.
    Relaxed,
}

/// Row ids are `u32`; the arena is renewed before they run out, with room for what arrives until
/// then.
pub const ARENA_WORDS_MAX: usize = 3 << 30;

/// Which series a limit is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitScope {
    /// All there are.
    All,
    /// Those of each metric for themselves.
    EachMetric,
    /// Those that match.
    Matching(Vec<Matcher>),
}

/// Bounds on the series of one scope; `u64::MAX` is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesLimit {
    /// What messages call it: the flag, and the scope if the flag has several.
    pub name: String,
    /// Which series count.
    pub scope: LimitScope,
    /// Active series.
    pub active_max: u64,
    /// New series in a clock hour.
    pub new_hourly_max: u64,
    /// New series in a UTC day.
    pub new_daily_max: u64,
}

/// Settings of one store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// Bytes of memory the head may hold, samples being flushed included.
    pub head_size_max: usize,
    /// Index segments are joined to one of about this many bytes at most: to write it takes four
    /// times as much memory where series have nothing in common.
    pub segment_merge_size_max: u64,
    /// Bytes the log may hold before the head is flushed.
    pub wal_size_max: u64,
    /// How long partitions are; `None` for what the directory has, and months in a new one.
    pub partition_length: Option<PartitionLength>,
    /// Samples older than this many nanoseconds are dropped; `None` keeps everything.
    pub retention_ns: Option<i64>,
    /// How long a wall clock must stay ahead of the time that passes before the retention believes
    /// it, nanoseconds; 0 believes at once.
    pub retention_clock_wait_ns: i64,
    /// Samples further in the future than this many nanoseconds are refused.
    pub future_ns_max: i64,
    /// Below this many free bytes on disk writes are refused.
    pub free_disk_min: u64,
    /// A head with unflushed samples older than this many nanoseconds is flushed.
    pub flush_age_ns_max: i64,
    /// Everything is read once in so many nanoseconds, to find rot early; 0 for never.
    pub scrub_interval_ns: i64,
    /// Bytes a second that are read for it.
    pub scrub_rate: u64,
    /// Limits on label sets.
    pub limits: Limits,
    /// Which new series are taken.
    pub series_limits: Vec<SeriesLimit>,
    /// New partitions that one request may make; its rows for others are refused.
    pub partitions_per_request_max: usize,
    /// Exemplars that are kept, of all series together; the oldest go first. 0 keeps none.
    pub exemplars_max: usize,
    /// Row ids after which a partition's arena starts again; tests use few.
    pub arena_words_max: usize,
    /// Bytes that may wait for the log's disk, reserved ones included; tests use few. Writers wait
    /// once a quarter of it does.
    pub wal_pending_max: usize,
    /// The largest record of the log; tests use small ones.
    pub wal_record_max: usize,
    /// Who syncs the log: a thread, or (in tests that must be repeatable) whoever waits.
    pub committer: wal::Committer,
    /// Whether background threads flush, merge and expire. Off, the caller does it by hand: tests.
    pub background: bool,
}

impl StoreConfig {
    /// What the binary uses when no flag says otherwise.
    pub fn standard() -> StoreConfig {
        StoreConfig {
            head_size_max: 256 << 20,
            segment_merge_size_max: 192 << 20,
            wal_size_max: 512 << 20,
            partition_length: None,
            retention_ns: None,
            retention_clock_wait_ns: model::sample::NANOS_PER_DAY,
            future_ns_max: 2 * model::sample::NANOS_PER_DAY,
            free_disk_min: 100 << 20,
            flush_age_ns_max: model::sample::NANOS_PER_HOUR,
            scrub_interval_ns: 30 * model::sample::NANOS_PER_DAY,
            scrub_rate: 16 << 20,
            limits: Limits::DEFAULT,
            series_limits: Vec::new(),
            partitions_per_request_max: 1000,
            exemplars_max: 100_000,
            arena_words_max: ARENA_WORDS_MAX,
            wal_pending_max: 64 << 20,
            wal_record_max: wal::RECORD_SIZE_MAX,
            committer: wal::Committer::Thread,
            background: true,
        }
    }
}
