//! Walks every checksum and invariant of a store that is not open. Changes nothing.

use crate::exemplar_record::decode_exemplars;
use crate::exemplars::{self, ExemplarBook};
use crate::log_record::{KIND_EXEMPLARS, KIND_METADATA, KIND_ROWS, RowsRecord, decode_metadata};
use crate::manifest::{FILE_NAME, Manifest};
use crate::metadata::MetadataBook;
use crate::partition::{CORRUPT_SUFFIX, INDEX_DIR, PARTS_DIR, open_part};
use crate::span::Month;
use crate::stats::{VerifyReport, segments_size};
use crate::store::{PARTITIONS_DIR, WAL_DIR};
use crate::{Error, Result};
use index::Index;
use std::path::Path;
use std::sync::Arc;
use vfs::Vfs;

/// Checks the store in `dir`; `progress` is told each file before it is read.
///
/// # Errors
/// When another process has the store open, or a directory cannot be listed. What is wrong with
/// the data is in the report.
pub fn verify(
    vfs: Arc<dyn Vfs>,
    dir: &Path,
    progress: &mut dyn FnMut(&Path),
) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let root = dir.join(PARTITIONS_DIR);
    if !vfs.exists(&root)? {
        return Err(Error::Invalid(format!("{} holds no store", dir.display())));
    }
    let _lock = vfs.lock(dir)?;
    for name in vfs.list(&root)? {
        match Month::parse(&name) {
            Some(month) => verify_partition(&vfs, &root.join(&name), month, progress, &mut report),
            // What is left of a dropped month goes when the store opens.
            None if name.contains(crate::strays::DROPPED_INFIX) => {}
            None => report.problems.push(format!("{name} in {} is no month", root.display())),
        }
    }
    if let Err(error) = MetadataBook::read(vfs.as_ref(), dir) {
        report.problems.push(error.to_string());
    }
    if let Err(error) = ExemplarBook::read(vfs.as_ref(), dir, usize::MAX) {
        report.problems.push(error.to_string());
    }
    let aside = format!("{}{CORRUPT_SUFFIX}", exemplars::FILE_NAME);
    if vfs.exists(&dir.join(&aside))? {
        report.problems.push(format!("{aside} in {} was set aside as corrupt", dir.display()));
    }
    // A snapshot has none.
    if vfs.exists(&dir.join(WAL_DIR))? {
        verify_log(vfs.as_ref(), &dir.join(WAL_DIR), progress, &mut report);
    }
    Ok(report)
}

fn verify_partition(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    month: Month,
    progress: &mut dyn FnMut(&Path),
    report: &mut VerifyReport,
) {
    progress(&dir.join(FILE_NAME));
    let manifest = match Manifest::read(vfs.as_ref(), dir) {
        Ok(manifest) => manifest.unwrap_or_default(),
        Err(error) => return report.problems.push(error.to_string()),
    };
    let index = match Index::open(Arc::clone(vfs), &dir.join(INDEX_DIR), &manifest.segments) {
        Ok(index) => index,
        Err(error) => return report.problems.push(error.to_string()),
    };
    progress(&dir.join(INDEX_DIR));
    for segment in index.segments() {
        if let Err(error) = segment.verify() {
            report.problems.push(error.to_string());
        }
    }
    report.files += 1 + manifest.segments.len() as u64;
    report.bytes += segments_size(&index);
    report.series += index.series_count();
    for entry in &manifest.parts {
        let path = dir.join(PARTS_DIR).join(Manifest::part_name(entry.file));
        progress(&path);
        if let Err(error) = verify_part(vfs.as_ref(), &path, month, &index, report) {
            report.problems.push(error.to_string());
        }
    }
    let aside = vfs.list(&dir.join(PARTS_DIR)).unwrap_or_default();
    for name in aside.iter().filter(|name| name.ends_with(CORRUPT_SUFFIX)) {
        report.problems.push(format!("{name} in {} was set aside as corrupt", dir.display()));
    }
}

fn verify_part(
    vfs: &dyn Vfs,
    path: &Path,
    month: Month,
    index: &Index,
    report: &mut VerifyReport,
) -> Result<()> {
    let part = open_part(vfs, path)?;
    part.verify()?;
    let summary = part.summary();
    report.files += 1;
    report.bytes += summary.size;
    report.samples += summary.samples;
    let mut complain = |what: String| report.problems.push(format!("{}: {what}", path.display()));
    let range = month.range();
    if !range.contains(summary.min_ts) || !range.contains(summary.max_ts) {
        complain(format!("samples outside of {}", month.name()));
    }
    for slice in part.slices() {
        let block = index.block_of_ordinal(slice.series_start)?;
        let agrees = block.is_some_and(|block| {
            block.series_start == slice.series_start
                && block.capacity == slice.capacity
                && block.columns == slice.columns
        });
        if !agrees {
            complain(format!("series {} is not in the index as stored", slice.series_start));
        }
    }
    Ok(())
}

fn verify_log(
    vfs: &dyn Vfs,
    dir: &Path,
    progress: &mut dyn FnMut(&Path),
    report: &mut VerifyReport,
) {
    progress(dir);
    let checked = wal::check(vfs, dir, &mut |record| {
        match record.kind {
            KIND_ROWS => {
                RowsRecord::parse(record.payload)?;
            }
            KIND_METADATA => {
                decode_metadata(record.payload)?;
            }
            KIND_EXEMPLARS => {
                decode_exemplars(record.payload)?;
            }
            kind => return Err(format!("a record of unknown kind {kind}").into()),
        }
        Ok(())
    });
    match checked {
        Ok(recovery) => {
            report.files += recovery.segment_count;
            report.bytes += recovery.payload_size;
        }
        Err(error) => report.problems.push(error.to_string()),
    }
}
