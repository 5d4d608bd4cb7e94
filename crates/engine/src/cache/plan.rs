//! Which steps of a query are taken from an earlier answer, and which are evaluated. Pure.

use super::reach::Reach;
use crate::time::Grid;
use model::TimeRange;
use std::ops::Range;

/// Runs of steps that are evaluated apart: each selects and reads its series anew.
const RUNS_MAX: usize = 8;
/// Steps between two runs up to which it costs less to evaluate them as one.
const GAP_MAX: usize = 4;

/// The steps of a grid.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Those that an earlier answer has, in order.
    pub reused: Vec<Range<usize>>,
    /// All others.
    pub missing: Vec<Range<usize>>,
    /// Where the first step of the grid is on the grid of the earlier answer.
    pub shift: i64,
}

impl Plan {
    /// What to do about a grid when there is an answer for another one, of the same step and phase,
    /// and samples of these times `changed` since.
    pub fn new(held: Grid, grid: Grid, reach: &Reach, changed: &[TimeRange]) -> Plan {
        debug_assert_eq!(held.step_ms, grid.step_ms);
        let since = grid.start_ms as i128 - held.start_ms as i128;
        debug_assert_eq!(since % i128::from(grid.step_ms), 0);
        let shift = (since / i128::from(grid.step_ms)) as i64;
        let mut is_held: Vec<bool> = (0..grid.len as i64)
            .map(|step| (0..held.len as i64).contains(&step.saturating_add(shift)))
            .collect();
        for times in changed {
            let (first, end) = reach.seen_from(times, grid);
            is_held[first..end.max(first)].fill(false);
        }
        let windows_ms = reach.windows_ms();
        let gap_max = GAP_MAX.max((windows_ms / grid.step_ms) as usize);
        let missing = joined(runs(&is_held, false), gap_max);
        for run in &missing {
            is_held[run.clone()].fill(false);
        }
        Plan { reused: runs(&is_held, true), missing, shift }
    }

    /// Evaluates the last step too, if none is.
    pub fn evaluate_some(&mut self) {
        if let (true, Some(last)) = (self.missing.is_empty(), self.reused.last_mut()) {
            last.end -= 1;
            self.missing.push(last.end..last.end + 1);
            self.reused.retain(|run| !run.is_empty());
        }
    }

    /// How many steps are reused.
    pub fn reused_len(&self) -> usize {
        self.reused.iter().map(Range::len).sum()
    }
}

/// The runs of steps that are marked so.
fn runs(marks: &[bool], wanted: bool) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for same in marks.chunk_by(|a, b| a == b) {
        if same[0] == wanted {
            runs.push(start..start + same.len());
        }
        start += same.len();
    }
    runs
}

/// Joins runs with few steps between them; all of them when they are too many.
fn joined(runs: Vec<Range<usize>>, gap_max: usize) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for run in runs {
        match out.last_mut() {
            Some(last) if run.start - last.end <= gap_max => last.end = run.end,
            _ => out.push(run),
        }
    }
    match out.as_slice() {
        [first, .., last] if RUNS_MAX < out.len() => {
            let all = first.start..last.end;
            vec![all]
        }
        _ => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::QueryOptions;
    use model::sample::NANOS_PER_MILLI;

    /// A grid by start and length, ten milliseconds between steps.
    fn grid((start_ms, len): (i64, usize)) -> Grid {
        Grid { start_ms, step_ms: 10, len }
    }

    /// Windows of 20 ms; changes are in milliseconds.
    fn plan(held: (i64, usize), asked: (i64, usize), changed: &[(i64, i64)]) -> Plan {
        let expr = promql::parse("rate(x[20ms])").unwrap();
        let reach = Reach::of(&expr, 10, &QueryOptions::default()).unwrap();
        let ns = |ms: i64| ms * NANOS_PER_MILLI;
        let changed: Vec<TimeRange> =
            changed.iter().map(|(start, end)| TimeRange::new(ns(*start), ns(*end))).collect();
        Plan::new(grid(held), grid(asked), &reach, &changed)
    }

    /// Runs by first step and end.
    fn expected(reused: &[(usize, usize)], missing: &[(usize, usize)], shift: i64) -> Plan {
        let runs = |list: &[(usize, usize)]| list.iter().map(|(start, end)| *start..*end).collect();
        Plan { reused: runs(reused), missing: runs(missing), shift }
    }

    #[test]
    fn only_new_and_changed_steps_are_evaluated() {
        let all = (0, 100);
        assert_eq!(plan((0, 100), (0, 100), &[]), expected(&[all], &[], 0));
        assert_eq!(plan((0, 100), (50, 100), &[]), expected(&[(0, 95)], &[(95, 100)], 5));
        assert_eq!(plan((50, 100), (0, 100), &[]), expected(&[(5, 100)], &[(0, 5)], -5));
        assert_eq!(plan((0, 100), (1000, 100), &[]), expected(&[], &[all], 100));
        assert_eq!(plan((0, 100), (9000, 100), &[]), expected(&[], &[all], 900));
        let late = plan((0, 100), (0, 100), &[(500, 500)]);
        assert_eq!(late, expected(&[(0, 50), (52, 100)], &[(50, 52)], 0));
        let both = plan((0, 100), (0, 100), &[(500, 500), (980, 5000)]);
        assert_eq!(both, expected(&[(0, 50), (52, 98)], &[(50, 52), (98, 100)], 0));
        let near = plan((0, 100), (0, 100), &[(500, 500), (550, 550)]);
        assert_eq!(near, expected(&[(0, 50), (57, 100)], &[(50, 57)], 0));
        let many: Vec<(i64, i64)> = (1..=9).map(|idx| (idx * 100, idx * 100)).collect();
        let many = plan((0, 100), (0, 100), &many);
        assert_eq!(many, expected(&[(0, 10), (92, 100)], &[(10, 92)], 0));
    }

    #[test]
    fn some_step_is_evaluated_when_asked() {
        let mut whole = plan((0, 100), (0, 100), &[]);
        whole.evaluate_some();
        assert_eq!(whole, expected(&[(0, 99)], &[(99, 100)], 0));
        let mut one = plan((0, 1), (0, 1), &[]);
        one.evaluate_some();
        assert_eq!(one, expected(&[], &[(0, 1)], 0));
        let mut moved = plan((0, 100), (50, 100), &[]);
        moved.evaluate_some();
        assert_eq!(moved.reused_len(), 95);
    }
}
