//! The series of the cases: for every i and every n of ten, five combinations with j; in the order
//! of record, all i of one n after the other, or in one that mixes all n.

use anyhow::Result;
use index::{Index, NewEntity};
use std::ops::Range;

/// Values of n.
pub const N_VALUES: u64 = 10;
/// What stands before n, and j.
pub const PAIRS: [(&str, &str); 5] =
    [("", "foo"), ("", "bar"), ("0_", "bar"), ("1_", "bar"), ("2_", "foo")];
/// Series of one value of i.
pub const SERIES_PER_I: u64 = N_VALUES * PAIRS.len() as u64;
/// Values of i that gather in memory before they are frozen: 500,000 series, as in the store.
const I_PER_SEGMENT: u64 = 10_000;

/// The order in which series are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All values of i for one n, then for the next: as the published measurements did.
    Record,
    /// All values of n for one i, then for the next: neighbours differ in every label.
    Mixed,
}

/// Registers the series of some values of i and all of n, mixed.
///
/// # Errors
/// When the index is full or corrupt.
pub fn register(index: &mut Index, i_values: Range<u64>) -> Result<()> {
    let mut log = Vec::new();
    for i in i_values {
        for n in 0..N_VALUES {
            register_pairs(index, i, n, &mut log)?;
        }
    }
    Ok(())
}

/// Registers the five series of an i and an n, looking for each first as the store does.
fn register_pairs(index: &mut Index, i: u64, n: u64, log: &mut Vec<u8>) -> Result<()> {
    let i = i.to_string();
    for (prefix, j) in PAIRS {
        let n = format!("{prefix}{n}");
        let tags = [("i", i.as_str()), ("j", j), ("n", n.as_str())];
        let entity = NewEntity::new(&["m"], &tags);
        if index.find_entity(&entity)?.is_none() {
            index.register(&entity, log)?;
        }
    }
    log.clear();
    Ok(())
}

/// Writes what is in memory as a segment.
///
/// # Errors
/// When the disk fails.
pub fn freeze(index: &mut Index) -> Result<()> {
    index.seal();
    if let Some(job) = index.freeze_job() {
        index.install(&job.run()?)?;
    }
    Ok(())
}

/// Registers all series and merges them into one segment; tells its progress.
///
/// # Errors
/// When the disk fails.
pub fn build(index: &mut Index, i_values: u64, order: Order) -> Result<()> {
    let told = |index: &Index| {
        eprintln!("registered {} of {}", index.series_count(), i_values * SERIES_PER_I);
    };
    match order {
        Order::Record => {
            let mut log = Vec::new();
            for n in 0..N_VALUES {
                (0..i_values).try_for_each(|i| register_pairs(index, i, n, &mut log))?;
                freeze(index)?;
                told(index);
            }
        }
        Order::Mixed => {
            for start in (0..i_values).step_by(I_PER_SEGMENT as usize) {
                register(index, start..i_values.min(start + I_PER_SEGMENT))?;
                freeze(index)?;
                told(index);
            }
        }
    }
    let count = index.segments().len();
    if 1 < count {
        let merged = index.merge_job(0..count).run(None)?;
        index.install(&merged)?;
    }
    Ok(())
}
