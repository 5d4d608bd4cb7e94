//! What a hot path is, and the two ways to run one: so many passes, or for so long.

use crate::process::CpuTime;
use anyhow::Result;
use std::time::{Duration, Instant};

/// One hot path.
pub struct HotPath {
    /// What it is called on the command line and in the record.
    pub name: &'static str,
    /// What one operation is.
    pub unit: &'static str,
    /// What is measured, in one line.
    pub about: &'static str,
    /// Makes the data, which is not measured.
    pub prepare: fn() -> Pass,
}

/// A path that is ready to run. Every pass costs the same: what one leaves behind does not make
/// the next one slower.
pub struct Pass {
    operations: u64,
    run: Box<dyn FnMut()>,
}

impl Pass {
    /// A pass of so many operations.
    pub fn new(operations: usize, run: impl FnMut() + 'static) -> Pass {
        assert!(0 < operations);
        Pass { operations: operations as u64, run: Box::new(run) }
    }
}

/// Runs a path so many times and returns how many operations that were.
pub fn run(path: &HotPath, passes: u64) -> u64 {
    let mut pass = (path.prepare)();
    for _ in 0..passes {
        (pass.run)();
    }
    passes * pass.operations
}

/// Nanoseconds of CPU an operation: the best pass of as many as fit the time, at least three.
///
/// # Errors
/// When the system does not tell CPU time.
pub fn time(path: &HotPath, time_max: Duration) -> Result<f64> {
    let mut pass = (path.prepare)();
    let start = Instant::now();
    let mut best = Duration::MAX;
    let mut passes = 0;
    while passes < 3 || start.elapsed() < time_max {
        let before = CpuTime::of_this_thread()?;
        (pass.run)();
        best = best.min(before.elapsed()?);
        passes += 1;
    }
    Ok(best.as_nanos() as f64 / pass.operations as f64)
}

#[cfg(test)]
mod tests {
    use crate::paths;
    use std::collections::BTreeSet;

    #[test]
    fn every_path_runs_and_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        for path in paths::all() {
            assert!(names.insert(path.name), "{} twice", path.name);
            assert_eq!(super::run(path, 2) % 2, 0, "{}", path.name);
        }
    }
}
