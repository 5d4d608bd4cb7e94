//! How far an expression looks from a step, and whether its value at a step depends on nothing
//! else but the samples it sees from there.
//!
//! ```text
//!             t - back                t - front        t
//! ────────────(────────── reads ──────────]────────────┼────────►
//!
//!             x      x + front                x + back
//! ────────────┼──────────[── steps that see x ───)──────────────►
//! ```
//!
//! Refused is what depends on the query's own range (`@`, `start()`), what cannot be seen at single
//! steps (a conflict of two series that are never there at the same step), and whatever is not known
//! here to be free of both.

use crate::functions;
use crate::names_kept::demands_one_name;
use crate::options::{NameRemoval, QueryOptions};
use crate::order::{Names, is_source_order, window, window_names};
use crate::time::{Grid, to_ns};
use model::sample::NANOS_PER_MILLI;
use model::{METRIC_NAME, TimeRange};
use promql::{Aggregate, AggregateOp, Call, Edges, Expr, FunctionKind, Grouping};
use promql::{Subquery, ValueType, VectorSelector};

/// Milliseconds further from the epoch than any sample: there no sum of two overflows.
const MOMENT_MS_MAX: i64 = i64::MAX / NANOS_PER_MILLI;

/// What the steps of an expression read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Where the earliest window begins, before the step; the bound itself is not read.
    back_ms: i64,
    /// Where the latest window ends, before the step; negative when it ends behind it.
    front_ms: i64,
    /// Whether bits depend on the order of the source's series.
    pub needs_order: bool,
}

impl Reach {
    /// Reads nothing.
    const NOTHING: Reach = Reach { back_ms: i64::MIN, front_ms: i64::MAX, needs_order: false };

    /// The reach of an instant vector expression at steps `step_ms` apart; `None` when its values
    /// cannot be kept.
    pub fn of(expr: &Expr, step_ms: i64, options: &QueryOptions) -> Option<Reach> {
        if expr.value_type() != ValueType::Vector || options.name_removal == NameRemoval::Late {
            return None;
        }
        if let Expr::Aggregate(aggregate) = expr.without_parens()
            && !is_sure_of_names(aggregate, options.name_removal)
        {
            return None;
        }
        Walk { options }.expr(expr, step_ms)
    }

    /// The time from the start of the earliest window of a step to the end of its latest.
    pub fn windows_ms(&self) -> i64 {
        self.back_ms.saturating_sub(self.front_ms).max(0)
    }

    /// The times that the steps of a grid read; `None` when they lie beyond all that can be told.
    pub fn reads(&self, grid: Grid) -> Option<TimeRange> {
        if self.back_ms <= self.front_ms {
            // Nothing, wherever it is.
            return Some(TimeRange::new(0, -1));
        }
        let last_ms = grid.at_ms(grid.len - 1);
        let first = grid.start_ms.checked_sub(self.back_ms)?;
        let last = last_ms.checked_sub(self.front_ms)?;
        let is_told = |ms: i64| (-MOMENT_MS_MAX..=MOMENT_MS_MAX).contains(&ms);
        let all = [grid.start_ms, last_ms, first, last, self.back_ms, self.front_ms];
        all.into_iter().all(is_told).then(|| TimeRange::new(to_ns(first) + 1, to_ns(last)))
    }

    /// The steps of a grid that see a sample of these times, as (first, one past the last).
    pub fn seen_from(&self, times: &TimeRange, grid: Grid) -> (usize, usize) {
        if self.back_ms <= self.front_ms || times.is_empty() {
            return (0, 0);
        }
        let milli = i128::from(NANOS_PER_MILLI);
        let first = i128::from(times.start) + i128::from(self.front_ms) * milli;
        let end = i128::from(times.end) + i128::from(self.back_ms) * milli;
        // The first step at or after a moment.
        let step_from = |moment: i128| {
            let since = moment - i128::from(grid.start_ms) * milli;
            let step = i128::from(grid.step_ms) * milli;
            let idx = -(-since).div_euclid(step);
            idx.clamp(0, grid.len as i128) as usize
        };
        (step_from(first), step_from(end))
    }

    fn window(offset_ms: i64, range_ms: i64) -> Option<Reach> {
        let back_ms = offset_ms.checked_add(range_ms)?;
        Some(Reach { back_ms, front_ms: offset_ms, needs_order: false })
    }

    fn and(self, other: Reach) -> Reach {
        Reach {
            back_ms: self.back_ms.max(other.back_ms),
            front_ms: self.front_ms.min(other.front_ms),
            needs_order: self.needs_order || other.needs_order,
        }
    }
}

/// Rollups that lose their series' names are evaluated with the names where that fails, for all
/// steps or none (`crate::names`): only what cannot fail is certain.
fn is_sure_of_names(aggregate: &Aggregate, removal: NameRemoval) -> bool {
    let is_by_name = match &aggregate.grouping {
        Grouping::By(labels) => labels.iter().any(|label| label == METRIC_NAME),
        Grouping::Without(_) => false,
    };
    if !is_by_name || removal != NameRemoval::AtOnce {
        return true;
    }
    match aggregate.expr.without_parens() {
        Expr::Vector(_) => true,
        Expr::Call(call) => match window(call) {
            Some(Expr::Matrix(matrix)) => demands_one_name(&matrix.selector),
            _ => false,
        },
        _ => false,
    }
}

struct Walk<'o> {
    options: &'o QueryOptions,
}

impl Walk<'_> {
    /// The reach of any expression but a range vector.
    fn expr(&self, expr: &Expr, step_ms: i64) -> Option<Reach> {
        match expr {
            Expr::Number(_) | Expr::String(_) => Some(Reach::NOTHING),
            Expr::Paren(paren) => self.expr(&paren.expr, step_ms),
            Expr::Unary(unary) => self.expr(&unary.expr, step_ms),
            Expr::Vector(selector) => self.selector(selector, self.options.lookback_ms),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate, step_ms),
            Expr::Call(call) => self.call(call, step_ms),
            Expr::Binary(binary) => {
                let fill = binary.matching.as_ref().map(|matching| matching.fill);
                if fill.is_some_and(|fill| fill.is_any()) {
                    return None;
                }
                Some(self.expr(&binary.left, step_ms)?.and(self.expr(&binary.right, step_ms)?))
            }
            Expr::Matrix(_) | Expr::Subquery(_) => None,
        }
    }

    fn selector(&self, selector: &VectorSelector, range_ms: i64) -> Option<Reach> {
        if selector.at.is_some() || selector.edges != Edges::Samples {
            return None;
        }
        Reach::window(selector.offset_ms, range_ms)
    }

    fn aggregate(&self, aggregate: &Aggregate, step_ms: i64) -> Option<Reach> {
        let depends_on_order = match aggregate.op {
            AggregateOp::Limitk | AggregateOp::LimitRatio => return None,
            AggregateOp::Count | AggregateOp::Group | AggregateOp::CountValues => false,
            _ => true,
        };
        let parameter = match &aggregate.parameter {
            Some(parameter) => self.expr(parameter, step_ms)?,
            None => Reach::NOTHING,
        };
        let mut reach = self.expr(&aggregate.expr, step_ms)?.and(parameter);
        // In any other case rows come in the order of their labels.
        reach.needs_order |= depends_on_order && is_source_order(&aggregate.expr);
        Some(reach)
    }

    fn call(&self, call: &Call, step_ms: i64) -> Option<Reach> {
        match call.function.kind {
            FunctionKind::Rollup => return self.rollup(call, step_ms),
            FunctionKind::Absent => {
                if let Some(window) = window(call) {
                    return self.range_vector(window, step_ms);
                }
            }
            _ => {}
        }
        let is_known =
            functions::find(call.function.name).is_some_and(|function| function.is_cacheable);
        if !is_known {
            return None;
        }
        self.all(call.arguments.iter(), step_ms)
    }

    fn all<'e>(&self, mut exprs: impl Iterator<Item = &'e Expr>, step_ms: i64) -> Option<Reach> {
        exprs.try_fold(Reach::NOTHING, |reach, expr| Some(reach.and(self.expr(expr, step_ms)?)))
    }

    fn rollup(&self, call: &Call, step_ms: i64) -> Option<Reach> {
        let rollup = functions::rollup(call.function.name)?;
        let window = window(call)?;
        let keeps_name = rollup.keeps_name()
            || (self.options.name_removal == NameRemoval::KeepOverTime && rollup.keeps_scale());
        // Series that differ in nothing but the name must not be there in one query, at whatever
        // steps: no single step tells.
        if !keeps_name && window_names(window) == Names::Many {
            return None;
        }
        let is_parameter = |argument: &&Expr| argument.value_type() != ValueType::Matrix;
        let parameters = self.all(call.arguments.iter().filter(is_parameter), step_ms)?;
        Some(self.range_vector(window, step_ms)?.and(parameters))
    }

    fn range_vector(&self, window: &Expr, step_ms: i64) -> Option<Reach> {
        match window {
            Expr::Matrix(matrix) => self.selector(&matrix.selector, matrix.range_ms),
            Expr::Subquery(subquery) => self.subquery(subquery, step_ms),
            _ => None,
        }
    }

    fn subquery(&self, subquery: &Subquery, step_ms: i64) -> Option<Reach> {
        // Between windows that leave gaps it is evaluated, too, and may fail where no step sees it.
        if subquery.at.is_some() || subquery.range_ms < step_ms {
            return None;
        }
        let inner_ms = subquery.step_ms.unwrap_or(self.options.subquery_step_ms).max(1);
        let inner = self.expr(&subquery.expr, inner_ms)?;
        if inner.back_ms <= inner.front_ms {
            return Some(inner);
        }
        let outer = Reach::window(subquery.offset_ms, subquery.range_ms)?;
        Some(Reach {
            back_ms: outer.back_ms.checked_add(inner.back_ms)?,
            front_ms: outer.front_ms.checked_add(inner.front_ms)?,
            needs_order: inner.needs_order,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn reach(text: &str) -> Option<Reach> {
        let options = QueryOptions { experimental_functions: true, ..QueryOptions::default() };
        let parser = promql::Options { experimental_functions: true };
        let expr = promql::parse_with(text, &parser).expect(text);
        Reach::of(&expr, MINUTE, &options)
    }

    #[test]
    fn reaches() {
        for (text, back, front, needs_order) in [
            ("up", 5, 0, false),
            ("up offset 2m", 7, 2, false),
            ("rate(x[10m])", 10, 0, false),
            ("sum(rate(x[10m] offset -3m))", 7, -3, true),
            ("sum by (a) (rate(x[10m])) / sum by (a) (y)", 10, 0, true),
            ("max(sum by (a) (x))", 5, 0, true),
            ("max(count by (a) (x))", 5, 0, false),
            ("count(x) + time()", 5, 0, false),
            ("sum(x) or vector(0)", 5, 0, true),
            ("max_over_time(rate(x[1m])[5m:1m] offset 1m)", 7, 1, false),
            ("sum_over_time(vector(time())[5m:1m]) + on () (up offset 1h)", 65, 60, false),
            ("histogram_quantile(0.9, sum by (le) (rate(x[5m])))", 5, 0, true),
            ("absent_over_time(x[7m])", 7, 0, false),
            ("x * scalar(y offset 30m)", 35, 0, false),
            ("count by (__name__) ({a=\"b\"})", 5, 0, false),
            ("max by (__name__) (max_over_time(x[1h]))", 60, 0, true),
        ] {
            let (back_ms, front_ms) = (back * MINUTE, front * MINUTE);
            assert_eq!(reach(text), Some(Reach { back_ms, front_ms, needs_order }), "{text}");
        }
        assert_eq!(reach("vector(time())"), Some(Reach::NOTHING));
    }

    #[test]
    fn what_cannot_be_kept() {
        for text in [
            "1",
            "time()",
            "x @ 100",
            "rate(x[5m] @ end())",
            "x * start()",
            "vector(step())",
            "sum_over_time(x[5m:1m] @ start())",
            "rate({a=\"b\"}[5m])",
            "max_over_time({a=\"b\"}[5m:1m])",
            "max by (__name__) (max_over_time({a=\"b\"}[1h]))",
            "max by (__name__) (x / y)",
            "max_over_time(x[30s:10s])",
            "limitk(3, x)",
            "info(x)",
            "rate(x[5m] anchored)",
            "x smoothed",
            "x + fill (0) y",
            "sort_by_label(x, \"a\")",
        ] {
            assert_eq!(reach(text), None, "{text}");
        }
    }

    #[test]
    fn a_change_is_seen_from_the_steps_whose_windows_hold_it() {
        let grid = Grid { start_ms: 1000, step_ms: 10, len: 5 };
        let reach = Reach { back_ms: 20, front_ms: 0, needs_order: false };
        let check = |start_ns: i64, end_ns: i64, expected: (usize, usize)| {
            assert_eq!(reach.seen_from(&TimeRange::new(start_ns, end_ns), grid), expected);
        };
        let ns = |ms: i64| ms * NANOS_PER_MILLI;
        check(ns(1010), ns(1010), (1, 3));
        check(ns(1010) + 1, ns(1010) + 1, (2, 4));
        check(ns(1020) - 1, ns(1020) - 1, (2, 4));
        check(ns(980), ns(980), (0, 0));
        check(ns(980) + 1, ns(980) + 1, (0, 1));
        check(ns(1041), ns(2000), (5, 5));
        check(i64::MIN, i64::MAX, (0, 5));
        assert_eq!(reach.reads(grid), Some(TimeRange::new(ns(980) + 1, ns(1040))));
        let far = Grid { start_ms: i64::MAX - 100, step_ms: 10, len: 5 };
        assert_eq!(reach.reads(far), None);
    }
}
