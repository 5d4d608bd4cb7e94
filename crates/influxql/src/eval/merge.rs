//! Points of several series in one order, that of InfluxDB: of equal times, too.

use super::point::{Direction, Point};
use crate::value::Value;
use std::ops::Range;

/// Nanoseconds of a week, and from the first Monday to the epoch, a Thursday.
const WEEK: i64 = 7 * 86_400 * 1_000_000_000;
const SINCE_MONDAY: i64 = 3 * 86_400 * 1_000_000_000;

/// Which of two points comes first.
pub struct Order<'a> {
    pub direction: Direction,
    /// Places of what stands beside the points, by name: of equal times texts decide, as long as both
    /// have one.
    pub beside: &'a [usize],
}

impl Order<'_> {
    fn is_less(&self, a: &Point, b: &Point) -> bool {
        if a.time != b.time {
            return self.direction.order(a.time, b.time).is_lt();
        }
        for at in self.beside {
            match (a.aux.get(*at), b.aux.get(*at)) {
                (Some(Value::Text(a)), Some(Value::Text(b))) if a == b => {}
                (Some(Value::Text(a)), Some(Value::Text(b))) => {
                    return (a < b) == (self.direction == Direction::Up);
                }
                _ => return false,
            }
        }
        false
    }

    /// Points of series one behind the other, each in order and up to one of the `ends`, in one order.
    ///
    /// Of points that are equal nothing promises which comes first; this is a binary heap's choice, of the
    /// series of a week (which InfluxDB stores, and so merges, for itself), as Go's `container/heap` makes
    /// it.
    pub fn merge(&self, mut points: Vec<Point>, ends: &[usize]) -> Vec<Point> {
        if ends.len() < 2 {
            return points;
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let mut runs: Vec<Range<usize>> = starts
            .zip(ends)
            .map(|(start, end)| start..*end)
            .filter(|run| !run.is_empty())
            .collect();
        if self.direction == Direction::Down {
            runs.reverse();
        }
        let mut out = Vec::with_capacity(points.len());
        loop {
            let weeks = runs.iter().map(|run| week(points[run.start].time));
            let week_now = match self.direction {
                Direction::Up => weeks.min(),
                Direction::Down => weeks.max(),
            };
            let Some(now) = week_now else { return out };
            let mut heap = Heap { order: self, points: &mut points, runs: Vec::new() };
            let of_week = |run: &Range<usize>, points: &[Point]| {
                let len = points[run.clone()].partition_point(|point| week(point.time) == now);
                run.start..run.start + len
            };
            for run in &mut runs {
                let part = of_week(run, heap.points);
                run.start = part.end;
                if !part.is_empty() {
                    heap.runs.push(part);
                }
            }
            runs.retain(|run| !run.is_empty());
            heap.drain(&mut out);
        }
    }
}

fn week(time: i64) -> i64 {
    time.saturating_add(SINCE_MONDAY).div_euclid(WEEK)
}

/// Runs by their first points.
struct Heap<'h> {
    order: &'h Order<'h>,
    points: &'h mut [Point],
    runs: Vec<Range<usize>>,
}

impl Heap<'_> {
    fn drain(mut self, out: &mut Vec<Point>) {
        if let [run] = self.runs.as_slice() {
            out.extend(self.points[run.clone()].iter_mut().map(std::mem::take));
            return;
        }
        for at in (0..self.runs.len() / 2).rev() {
            self.sink(at, self.runs.len());
        }
        while let Some(last) = self.runs.len().checked_sub(1) {
            self.runs.swap(0, last);
            self.sink(0, last);
            let Some(mut run) = self.runs.pop() else { return };
            out.push(std::mem::take(&mut self.points[run.start]));
            run.start += 1;
            if !run.is_empty() {
                self.runs.push(run);
                self.rise(self.runs.len() - 1);
            }
        }
    }

    fn is_less(&self, a: usize, b: usize) -> bool {
        let first = |at: usize| &self.points[self.runs[at].start];
        self.order.is_less(first(a), first(b))
    }

    fn sink(&mut self, mut at: usize, len: usize) {
        loop {
            let left = 2 * at + 1;
            if len <= left {
                return;
            }
            let is_right = left + 1 < len && self.is_less(left + 1, left);
            let child = if is_right { left + 1 } else { left };
            if !self.is_less(child, at) {
                return;
            }
            self.runs.swap(at, child);
            at = child;
        }
    }

    fn rise(&mut self, mut at: usize) {
        while 0 < at {
            let parent = (at - 1) / 2;
            if !self.is_less(at, parent) {
                return;
            }
            self.runs.swap(at, parent);
            at = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time: i64, text: &str) -> Point {
        Point { time, value: Value::Null, aux: vec![Value::text(text)] }
    }

    #[test]
    fn texts_decide_where_times_are_equal() {
        let points = vec![point(1, "b"), point(2, "b"), point(1, "a"), point(3, "a")];
        let texts = |direction, points: Vec<Point>| -> Vec<(i64, Value)> {
            let order = Order { direction, beside: &[0] };
            let merged = order.merge(points, &[2, 4]);
            merged.into_iter().map(|point| (point.time, point.aux[0].clone())).collect()
        };
        let [a, b] = ["a", "b"].map(Value::text);
        let up = [(1, a.clone()), (1, b.clone()), (2, b.clone()), (3, a.clone())];
        assert_eq!(texts(Direction::Up, points.clone()), up);
        let points = vec![point(2, "b"), point(1, "b"), point(3, "a"), point(1, "a")];
        assert_eq!(
            texts(Direction::Down, points),
            [(3, a.clone()), (2, b.clone()), (1, b), (1, a)]
        );
    }

    #[test]
    fn nothing_is_lost_where_all_are_equal() {
        let points: Vec<Point> = (0..10).map(|at| point(7 + at % 2 * WEEK, "x")).collect();
        let order = Order { direction: Direction::Up, beside: &[] };
        let merged = order.merge(points, &[2, 2, 4, 6, 8, 10]);
        assert_eq!(merged.len(), 10);
        assert!(merged.windows(2).all(|two| two[0].time <= two[1].time));
    }
}
