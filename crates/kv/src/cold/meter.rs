//! Counters of records on disk: sizes of those written, reads, decompression.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Upper bounds of the buckets of [`RecordSizes`], in bytes.
pub const SIZE_BOUNDS: [u64; 9] =
    [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20];
/// Records from this size on count as large.
pub const LARGE_SIZE: u64 = 64 << 10;

/// Histogram of sizes of records that were written.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordSizes {
    /// Records by size, the last ones above all bounds. Not cumulative.
    pub buckets: [u64; SIZE_BOUNDS.len() + 1],
    /// Bytes of all.
    pub size: u64,
}

impl RecordSizes {
    pub(crate) fn add(&mut self, size: usize) {
        let size = size as u64;
        self.buckets[SIZE_BOUNDS.iter().take_while(|bound| **bound < size).count()] += 1;
        self.size += size;
    }

    /// Number of records.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Time since an instant, in nanoseconds.
pub(super) fn nanoseconds_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Number of operations, bytes and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations.
    pub count: u64,
    /// Bytes.
    pub size: u64,
    /// Time in nanoseconds.
    pub ns: u64,
}

/// Counter of operations that run on several threads.
#[derive(Debug, Default)]
pub struct Meter {
    count: AtomicU64,
    size: AtomicU64,
    ns: AtomicU64,
}

impl Meter {
    pub(crate) fn add(&self, size: usize, started: Instant) {
        self.count.fetch_add(1, Relaxed);
        self.size.fetch_add(size as u64, Relaxed);
        self.ns.fetch_add(nanoseconds_since(started), Relaxed);
    }

    /// The values now.
    pub fn totals(&self) -> Totals {
        Totals {
            count: self.count.load(Relaxed),
            size: self.size.load(Relaxed),
            ns: self.ns.load(Relaxed),
        }
    }
}

/// Reads of records by size.
#[derive(Debug, Default)]
pub struct ReadMeter {
    /// Records below [`LARGE_SIZE`].
    pub small: Meter,
    /// The others.
    pub large: Meter,
}

impl ReadMeter {
    pub(crate) fn add(&self, size: usize, started: Instant) {
        let is_large = LARGE_SIZE <= size as u64;
        let meter = if is_large { &self.large } else { &self.small };
        meter.add(size, started);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_by_size() {
        let mut sizes = RecordSizes::default();
        [1, 64, 65, 16 << 20, (16 << 20) + 1].into_iter().for_each(|size| sizes.add(size));
        assert_eq!(sizes.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!((sizes.count(), sizes.size), (5, 131 + (32 << 20)));
        let reads = ReadMeter::default();
        [65_535, 65_536].into_iter().for_each(|size| reads.add(size, Instant::now()));
        assert_eq!((reads.small.totals().count, reads.large.totals().size), (1, 65_536));
    }
}
