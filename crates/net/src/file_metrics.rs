//! Metrics of files by kind: operations, bytes and time of everything the server reads and writes.

use crate::metrics_page::Page;
use crate::telemetry::Families;
use std::path::Path;
use std::sync::Arc;
use vfs::metered::{IO_BOUNDS_NS, IoCounter};
use vfs::{FileCounters, MeteredVfs, Vfs};

/// A kind of files: its value of the label `kind`, and whether a path is of that kind.
type Kind = (&'static str, fn(&Path) -> bool);

/// All kinds; a path is of the first one that fits.
const KINDS: &[Kind] = &[
    ("log", |path| has_parent(path, store::WAL_DIR)),
    ("part", |path| has_ending(path, "part")),
    ("series_index", |path| has_ending(path, "seg")),
    ("key_segment", |path| has_ending(path, "cold")),
    ("key_index", |path| has_ending(path, "index")),
    ("key_dictionary", |path| has_ending(path, "dict")),
    ("table", |path| has_ending(path, "table")),
    ("other", |_| true),
];

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

fn has_parent(path: &Path, name: &str) -> bool {
    path.parent().and_then(Path::file_name).is_some_and(|found| found == name)
}

fn kind_of(path: &Path) -> usize {
    KINDS.iter().position(|(_, is_kind)| is_kind(path)).unwrap_or(KINDS.len() - 1)
}

/// The counters of all files of the server.
pub struct FileMetrics(Arc<[FileCounters]>);

impl FileMetrics {
    /// Counts the operations of a disk from now on: the disk to use instead, and the counters.
    pub fn watch(disk: Arc<dyn Vfs>) -> (Arc<dyn Vfs>, FileMetrics) {
        let counters: Arc<[FileCounters]> = KINDS.iter().map(|_| FileCounters::default()).collect();
        (Arc::new(MeteredVfs::new(disk, kind_of, counters.clone())), FileMetrics(counters))
    }

    /// A counter with a sample for each kind.
    fn write_counter(
        &self,
        page: &mut Page,
        name: &'static str,
        help: &str,
        value: impl Fn(&FileCounters) -> f64,
    ) {
        page.family(name, "counter", help);
        for ((kind, _), counters) in KINDS.iter().zip(self.0.iter()) {
            page.sample("", &[("kind", kind)], value(counters));
        }
    }
}

/// An operation, and its families: number, seconds, and bytes where it moves some.
struct Operation {
    counter: fn(&FileCounters) -> &IoCounter,
    count: (&'static str, &'static str),
    seconds: (&'static str, &'static str),
    bytes: Option<(&'static str, &'static str)>,
}

#[rustfmt::skip] // a table
const OPERATIONS: &[Operation] = &[
    Operation {
        counter: |counters| &counters.reads,
        count: ("quipu_file_reads_total", "Reads of files, by kind of file."),
        seconds: ("quipu_file_read_seconds_total", "Time of reads of files, by kind of file."),
        bytes: Some(("quipu_file_read_bytes_total", "Bytes read from files, by kind of file.")),
    },
    Operation {
        counter: |counters| &counters.writes,
        count: ("quipu_file_writes_total", "Writes to files, by kind of file."),
        seconds: ("quipu_file_write_seconds_total", "Time of writes to files, by kind of file."),
        bytes: Some(("quipu_file_written_bytes_total", "Bytes written to files, by kind of file.")),
    },
    Operation {
        counter: |counters| &counters.removals,
        count: ("quipu_file_removals_total", "Files removed, by kind of file."),
        seconds: ("quipu_file_removal_seconds_total", "Time of removals of files, by kind of file."),
        bytes: None,
    },
    Operation {
        counter: |counters| &counters.maps,
        count: ("quipu_file_maps_total", "Files mapped into memory, by kind of file; reads of mapped files are not counted."),
        seconds: ("quipu_file_map_seconds_total", "Time of mapping files into memory, by kind of file."),
        bytes: Some(("quipu_file_mapped_bytes_total", "Bytes of files mapped into memory, by kind of file.")),
    },
];

impl Families for FileMetrics {
    fn write(&self, page: &mut Page) {
        for Operation { counter, count, seconds, bytes } in OPERATIONS {
            let totals = |counters: &FileCounters| counter(counters).totals();
            self.write_counter(page, count.0, count.1, |one| totals(one).count() as f64);
            self.write_counter(page, seconds.0, seconds.1, |one| totals(one).ns as f64 / 1e9);
            if let Some((name, help)) = bytes {
                self.write_counter(page, name, help, |one| totals(one).bytes as f64);
            }
        }
        page.family(
            "quipu_file_sync_seconds",
            "histogram",
            "Time of syncs of files, by kind of file.",
        );
        for ((kind, _), counters) in KINDS.iter().zip(self.0.iter()) {
            let totals = counters.syncs.totals();
            let bounds = IO_BOUNDS_NS.iter().map(|bound| *bound as f64 / 1e9);
            let sum = totals.ns as f64 / 1e9;
            page.histogram(&[("kind", kind)], bounds.zip(totals.buckets), totals.count(), sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics_page::check_page;
    use vfs::SimVfs;

    #[test]
    fn paths_have_kinds() {
        for (path, kind) in [
            ("/data/wal/0000000001.wal", "log"),
            ("/data/wal/end", "log"),
            ("/data/partitions/2026-11/parts/0000000000000001.part", "part"),
            ("/data/partitions/2026-11/index/00000010-00abcdef-00004d.seg", "series_index"),
            ("/data/keys/00000001.cold", "key_segment"),
            ("/data/keys/00000001.index", "key_index"),
            ("/data/keys/00000002.dict", "key_dictionary"),
            ("/data/keys/MANIFEST", "other"),
            ("/data/tables/0000000001.table", "table"),
        ] {
            assert_eq!(KINDS[kind_of(Path::new(path))].0, kind, "{path}");
        }
    }

    #[test]
    fn operations_are_on_the_page() {
        let (disk, metrics) = FileMetrics::watch(Arc::new(SimVfs::new(1)));
        disk.create_dir_all(Path::new("/keys")).expect("a good disk");
        let mut file = disk.create(Path::new("/keys/1.cold")).expect("a good disk");
        file.append(b"12345").expect("a good disk");
        let mut page = Page::default();
        metrics.write(&mut page);
        check_page(&page.text);
        for line in [
            "quipu_file_written_bytes_total{kind=\"key_segment\"} 5\n",
            "quipu_file_writes_total{kind=\"key_segment\"} 1\n",
            "quipu_file_sync_seconds_bucket{kind=\"log\",le=\"0.000064\"} 0\n",
        ] {
            assert!(page.text.contains(line), "{line} in {}", page.text);
        }
    }
}
