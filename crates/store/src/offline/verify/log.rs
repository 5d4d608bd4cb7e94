//! The log: every record of the store is decoded, every row held against its partition's index.
//! Those of other consumers are counted.

use super::judge::Judge;
use super::{Walk, files};
use std::collections::BTreeMap;
use std::path::Path;
use wal::{Fault, FaultKind, Found};

impl Walk<'_, '_> {
    pub(super) fn log(&mut self, dir: &Path, mut judge: Judge) {
        for name in self.list(dir) {
            self.stray(&dir.join(&name), files::in_log(&name));
            if name.ends_with(".wal") {
                self.reading(&dir.join(&name));
            }
        }
        let report = &mut self.report;
        let mut foreign = BTreeMap::new();
        let inspected = wal::inspect(self.vfs.as_ref(), dir, &mut |found| match found {
            Found::Record(record) => {
                let verdict = judge.judge(&record);
                for words in verdict.words {
                    let file = dir.join(wal::segment_name(record.segment));
                    report.problem(&file, format!("the record at byte {}: {words}", record.offset));
                }
                if let Some(consumer) = verdict.foreign {
                    let of_segment = (record.segment, consumer);
                    *foreign.entry(of_segment).or_insert(0u64) += 1;
                }
            }
            Found::Fault(fault) => match fault.kind {
                FaultKind::TornEnd { .. } => report.note(&fault.file, words_of_fault(&fault)),
                _ => report.problem(&fault.file, words_of_fault(&fault)),
            },
        });
        for ((segment, consumer), count) in foreign {
            let what = format!(
                "{count} records of {consumer}, a consumer of the log that is none of the store's: \
                 they are kept for it and not looked into"
            );
            report.note(&dir.join(wal::segment_name(segment)), what);
        }
        if let Err(error) = inspected {
            report.error(dir, &error.into());
        }
    }
}

/// A fault of the log in words.
pub(crate) fn words_of_fault(fault: &Fault) -> String {
    match &fault.kind {
        FaultKind::Missing { last } if *last == fault.segment => {
            "is missing, though later segments are there".into()
        }
        FaultKind::Missing { last } => {
            format!("is missing, and all segments up to {last} are, though later ones are there")
        }
        FaultKind::Damage { offset, end, what } => {
            format!("is corrupt from byte {offset} to byte {end}: {what}")
        }
        FaultKind::Header { what } => format!("the header is corrupt: {what}"),
        FaultKind::TornEnd { offset, size } => format!(
            "has a torn end: {size} bytes from byte {offset} on, which a crash left of a write that \
             nobody was told is done; the next start cuts them off"
        ),
        FaultKind::Short { offset, end } => format!(
            "ends at byte {offset}, and had been synced up to byte {end}: acknowledged records are \
             missing"
        ),
        FaultKind::Unreadable { error } => {
            format!("cannot be read ({}): {}", error.operation, error.source)
        }
    }
}
