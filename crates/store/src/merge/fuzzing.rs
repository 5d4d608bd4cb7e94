//! Entry point for fuzzing: a damaged part merges or is refused, without a panic.

use super::input::{MergeInput, MergeOutcome, SliceLimits};
use super::run::run_within;
use crate::part::fuzzing::reseal;
use crate::part::{Part, PartInfo, PartSink, PartWriter};
use codec::Effort;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Reads `data` as a part, its checksums put right, and merges it with itself. A sound part comes
/// out with the samples that it had.
pub fn fuzz_merge(data: &[u8]) {
    let mut bytes = data.to_vec();
    reseal(&mut bytes);
    let Some(part) = open(bytes) else { return };
    let is_sound = part.verify().is_ok();
    let input = || MergeInput { part: &part, tombstones: &[] };
    let limits = SliceLimits { rows_max: 50, samples_max: 1000, column_samples_max: 2000 };
    let go_on = |_| ControlFlow::Continue(());
    let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Dense);
    let Ok(outcome) = run_within(&limits, &[input(), input()], None, &mut writer, &go_on) else {
        assert!(!is_sound, "a sound part merges");
        return;
    };
    let finished = writer.finish(PartInfo { sequence: 1 }).expect("memory takes every byte");
    let merged = open(finished.bytes.unwrap_or_default()).expect("what was written opens");
    merged.verify().expect("what was merged is sound");
    if is_sound && 0 < part.summary().samples {
        let samples = part.summary().samples;
        assert!(outcome == MergeOutcome::Written { samples }, "{outcome:?} of {samples}");
    }
}

fn open(bytes: Vec<u8>) -> Option<Part> {
    Part::open(vfs::Bytes::from_vec(bytes), PathBuf::from("fuzz")).ok()
}
