//! A disk that counts the operations on its files, by kind of file: how many, bytes, time.
//!
//! An operation costs two readings of the monotonic clock and four atomic additions, which is far less
//! than the system call between them. Files that are mapped are read by the processor: their reads
//! cannot be counted, only the maps.

use crate::error::Result;
use crate::{AppendFile, Bytes, Layer, ReadFile, Vfs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Upper bounds of the buckets of [`IoCounter`], in nanoseconds: 64 us, four times as much each, 4.2 s.
pub const IO_BOUNDS_NS: [u64; 9] = [
    64_000,
    256_000,
    1_000_000,
    4_000_000,
    16_000_000,
    64_000_000,
    256_000_000,
    1_000_000_000,
    4_000_000_000,
];

/// Counter of one operation on one kind of file.
#[derive(Debug, Default)]
pub struct IoCounter {
    buckets: [AtomicU64; IO_BOUNDS_NS.len() + 1],
    bytes: AtomicU64,
    ns: AtomicU64,
}

/// Values of an [`IoCounter`] at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoTotals {
    /// Operations by time, the last ones above all bounds. Not cumulative.
    pub buckets: [u64; IO_BOUNDS_NS.len() + 1],
    /// Bytes moved.
    pub bytes: u64,
    /// Time in nanoseconds.
    pub ns: u64,
}

impl IoTotals {
    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl IoCounter {
    /// Counts an operation that began at `started`.
    fn add(&self, started: Instant, bytes: usize) {
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let bucket = IO_BOUNDS_NS.iter().take_while(|bound| **bound < ns).count();
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.ns.fetch_add(ns, Relaxed);
    }

    /// The values now.
    pub fn totals(&self) -> IoTotals {
        IoTotals {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].load(Relaxed)),
            bytes: self.bytes.load(Relaxed),
            ns: self.ns.load(Relaxed),
        }
    }
}

/// Counters of one kind of file. Failed operations are not counted.
#[derive(Debug, Default)]
pub struct FileCounters {
    /// Reads with a buffer.
    pub reads: IoCounter,
    /// Appends.
    pub writes: IoCounter,
    /// Syncs of file contents; no bytes.
    pub syncs: IoCounter,
    /// Removals; no bytes.
    pub removals: IoCounter,
    /// Maps; the bytes are those of the files.
    pub maps: IoCounter,
}

/// A disk whose operations are counted.
pub struct MeteredVfs {
    disk: Arc<dyn Vfs>,
    kind_of: fn(&Path) -> usize,
    counters: Arc<[FileCounters]>,
}

impl MeteredVfs {
    /// Counts the operations of `disk`: those on a path in the counters with the number `kind_of(path)`.
    ///
    /// # Panics
    /// At the first operation on a path whose number has no counters.
    pub fn new(
        disk: Arc<dyn Vfs>,
        kind_of: fn(&Path) -> usize,
        counters: Arc<[FileCounters]>,
    ) -> MeteredVfs {
        MeteredVfs { disk, kind_of, counters }
    }

    fn kind(&self, path: &Path) -> FileKind {
        let number = (self.kind_of)(path);
        assert!(number < self.counters.len(), "every kind of file has counters");
        FileKind { counters: self.counters.clone(), number }
    }
}

/// The counters of an open file's kind.
struct FileKind {
    counters: Arc<[FileCounters]>,
    number: usize,
}

impl std::ops::Deref for FileKind {
    type Target = FileCounters;
    fn deref(&self) -> &FileCounters {
        &self.counters[self.number]
    }
}

impl Layer for MeteredVfs {
    fn below(&self) -> &dyn Vfs {
        self.disk.as_ref()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let file = self.disk.create(path)?;
        Ok(Box::new(MeteredAppend { file, kind: self.kind(path) }))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        let started = Instant::now();
        let bytes = self.disk.map(path)?;
        self.kind(path).maps.add(started, bytes.len());
        Ok(bytes)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>> {
        let file = self.disk.open(path)?;
        Ok(Box::new(MeteredRead { file, kind: self.kind(path) }))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let started = Instant::now();
        let bytes = self.disk.read(path)?;
        self.kind(path).reads.add(started, bytes.len());
        Ok(bytes)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let started = Instant::now();
        self.disk.remove(path)?;
        self.kind(path).removals.add(started, 0);
        Ok(())
    }
}

/// A file being written whose operations are counted.
struct MeteredAppend {
    file: Box<dyn AppendFile>,
    kind: FileKind,
}

impl AppendFile for MeteredAppend {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let started = Instant::now();
        self.file.append(bytes)?;
        self.kind.writes.add(started, bytes.len());
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let started = Instant::now();
        self.file.sync()?;
        self.kind.syncs.add(started, 0);
        Ok(())
    }

    fn size(&self) -> u64 {
        self.file.size()
    }
}

/// A sealed file whose reads are counted.
struct MeteredRead {
    file: Box<dyn ReadFile>,
    kind: FileKind,
}

impl ReadFile for MeteredRead {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let started = Instant::now();
        let got = self.file.read_at(offset, into)?;
        self.kind.reads.add(started, got);
        Ok(got)
    }

    fn read_cached(&self, offset: u64, into: &mut [u8]) -> Result<Option<usize>> {
        let started = Instant::now();
        let got = self.file.read_cached(offset, into)?;
        if let Some(got) = got {
            self.kind.reads.add(started, got);
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimVfs;

    fn kind_of(path: &Path) -> usize {
        usize::from(path.extension().is_some_and(|end| end == "log"))
    }

    #[test]
    fn operations_are_counted_by_kind_of_file() {
        let counters: Arc<[FileCounters]> = (0..2).map(|_| FileCounters::default()).collect();
        let disk: Arc<dyn Vfs> = Arc::new(SimVfs::new(1));
        let metered = MeteredVfs::new(disk, kind_of, counters.clone());
        let vfs: &dyn Vfs = &metered;
        vfs.create_dir_all(Path::new("/data")).unwrap();
        let (log, other) = (Path::new("/data/1.log"), Path::new("/data/other"));
        let mut file = vfs.create(log).unwrap();
        file.append(b"12345").unwrap();
        file.append(b"678").unwrap();
        file.sync().unwrap();
        assert_eq!(file.size(), 8);
        vfs.create(other).unwrap().append(b"x").unwrap();
        let mut buffer = [0; 4];
        assert_eq!(vfs.open(log).unwrap().read_at(6, &mut buffer).unwrap(), 2);
        assert_eq!(vfs.read(other).unwrap(), b"x");
        assert_eq!(vfs.map(log).unwrap().len(), 8);
        assert!(vfs.read(Path::new("/data/missing.log")).is_err(), "a failure is not counted");
        vfs.remove(log).unwrap();
        let amounts = |counter: &IoCounter| {
            let totals = counter.totals();
            (totals.count(), totals.bytes)
        };
        let [others, logs] = &*counters else { panic!("two kinds") };
        assert_eq!((amounts(&logs.writes), amounts(&others.writes)), ((2, 8), (1, 1)));
        assert_eq!((amounts(&logs.syncs), amounts(&others.syncs)), ((1, 0), (0, 0)));
        assert_eq!((amounts(&logs.reads), amounts(&others.reads)), ((1, 2), (1, 1)));
        assert_eq!((amounts(&logs.maps), amounts(&others.maps)), ((1, 8), (0, 0)));
        assert_eq!((amounts(&logs.removals), amounts(&others.removals)), ((1, 0), (0, 0)));
    }
}
