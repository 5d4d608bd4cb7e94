//! The log without what cannot be read or taken.

use super::aside::Aside;
use super::losses::{Loss, LostOf};
use super::{Act, Planner, check_is_known};
use crate::offline::verify::files;
use crate::offline::verify::judge::{Judge, Verdict};
use crate::offline::verify::log::words_of_fault;
use crate::{Error, Result};
use model::TimeRange;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vfs::Vfs;
use wal::{Fault, FaultKind, Found, Kept, RecordRef};

/// Missing segments in a row that are made up for; more are no gap but two logs.
const GAP_MAX: u64 = 10_000;

/// A segment to be written again.
#[derive(Debug)]
pub struct LogSegmentRewrite {
    dir: PathBuf,
    segment: u64,
    /// By offset, what is left of records that do not stay whole.
    kept: BTreeMap<u64, Kept>,
}

impl LogSegmentRewrite {
    /// Writes the segment, keeps the old one, and puts the new one in its place.
    pub(super) fn run(&self, vfs: &dyn Vfs, aside: &Aside) -> Result<()> {
        let path = self.dir.join(wal::segment_name(self.segment));
        let written = wal::rewrite(vfs, &self.dir, self.segment, &mut |record| match self
            .kept
            .get(&record.offset)
        {
            None | Some(Kept::Whole) => Kept::Whole,
            Some(Kept::Changed(payload)) => Kept::Changed(payload.clone()),
            Some(Kept::Not) => Kept::Not,
        })?;
        aside.keep(&path)?;
        vfs.rename(&written, &path)?;
        Ok(vfs.sync_dir(&self.dir)?)
    }
}

/// What has to be done to the log.
#[derive(Default)]
struct LogRepair {
    /// By segment and offset, what is left of records.
    kept: BTreeMap<u64, BTreeMap<u64, Kept>>,
    /// Why a segment is written again.
    why: BTreeMap<u64, String>,
    missing: BTreeSet<u64>,
    unreadable: Vec<(PathBuf, u64, String)>,
    losses: Vec<Loss>,
    too_wide: Option<String>,
    /// A record that a later version wrote: nothing may be changed.
    unknown: Option<wal::Error>,
}

impl Planner<'_, '_> {
    /// Plans the repair of the log, whose partitions' indexes the judge knows as they will be.
    pub(super) fn log(&mut self, dir: &Path, judge: &mut Judge) -> Result<()> {
        for name in self.list(dir)? {
            self.reading(&dir.join(&name));
            self.stray(dir.join(&name), files::in_log(&name));
        }
        let mut repair = LogRepair::default();
        wal::inspect(self.vfs.as_ref(), dir, &mut |found| match found {
            Found::Record(record) => {
                let verdict = judge.judge(&record);
                repair.check_kind(dir, &record);
                if !verdict.words.is_empty() {
                    repair.record(dir, &record, verdict);
                }
            }
            Found::Fault(fault) => repair.fault(&fault),
        })?;
        if let Some(error) = repair.unknown {
            check_is_known(&error.into())?;
        }
        if let Some(what) = repair.too_wide {
            return Err(Error::Invalid(what));
        }
        for (path, segment, why) in repair.unreadable {
            self.move_aside(path, &why);
            repair.missing.insert(segment);
        }
        for (segment, why) in repair.why {
            let kept = repair.kept.remove(&segment).unwrap_or_default();
            let path = dir.join(wal::segment_name(segment));
            let says = format!("write {} again with what is whole: {why}", path.display());
            let rewrite = LogSegmentRewrite { dir: dir.to_path_buf(), segment, kept };
            self.step(says, Act::RewriteLog(rewrite));
        }
        for segment in repair.missing {
            let path = dir.join(wal::segment_name(segment));
            let says =
                format!("write {}, without records, in place of the lost one", path.display());
            self.step(says, Act::FillGap { dir: dir.to_path_buf(), segment });
        }
        self.losses.append(&mut repair.losses);
        Ok(())
    }
}

impl LogRepair {
    /// Unknown is not damaged.
    fn check_kind(&mut self, dir: &Path, record: &RecordRef<'_>) {
        if wal::kinds::consumer_of(record.kind).is_none() {
            let file = dir.join(wal::segment_name(record.segment));
            let (kind, offset) = (record.kind, record.offset);
            self.unknown.get_or_insert(wal::Error::UnknownKind { kind, file, offset });
        }
    }

    fn record(&mut self, dir: &Path, record: &RecordRef<'_>, verdict: Verdict) {
        let what = format!("the record at byte {}: {}", record.offset, verdict.words.join("; "));
        self.why.entry(record.segment).or_insert_with(|| what.clone());
        self.kept.entry(record.segment).or_default().insert(record.offset, verdict.kept);
        let file = dir.join(wal::segment_name(record.segment));
        let (period, range) = (verdict.period, verdict.lost.unwrap_or(TimeRange::ALL));
        self.losses.push(Loss { file, period, of: LostOf::Unknown(what), range });
    }

    fn fault(&mut self, fault: &Fault) {
        let what = words_of_fault(fault);
        match &fault.kind {
            FaultKind::TornEnd { .. } => return,
            FaultKind::Header { .. } => {
                self.why.entry(fault.segment).or_insert(what);
                return;
            }
            FaultKind::Short { .. } => drop(self.why.entry(fault.segment).or_insert(what.clone())),
            FaultKind::Damage { .. } => drop(self.why.entry(fault.segment).or_insert(what.clone())),
            FaultKind::Missing { last } if GAP_MAX < last - fault.segment => {
                self.too_wide = Some(format!("{} {what}: no gap", fault.file.display()));
            }
            FaultKind::Missing { last } => self.missing.extend(fault.segment..=*last),
            FaultKind::Unreadable { .. } => {
                self.unreadable.push((fault.file.clone(), fault.segment, what.clone()));
            }
        }
        let what = format!("records that no part has yet: the log {what}");
        self.losses.push(Loss::unknown(fault.file.clone(), what));
    }
}
