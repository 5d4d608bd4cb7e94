//! Sizes and counts of an open store.

use crate::log::exemplars::ExemplarStats;
use crate::partition::{PartitionState, join_spans};

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

impl StoreStats {
    /// Adds a partition; the newest comes last.
    pub(crate) fn add_partition(&mut self, state: &PartitionState) {
        self.partitions += 1;
        self.parts += state.disk.parts().len() as u64;
        self.lost_parts += state.disk.lost().len() as u64;
        self.time_min_max = join_spans(self.time_min_max, state.time_min_max());
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
}

/// Bytes of an index's segments on disk.
fn segments_size(index: &index::Index) -> u64 {
    index.segments().iter().map(|segment| segment.size()).sum()
}
