//! One match over the tree: every expression becomes series on a grid.

use super::aggregate::{self, Folding};
use super::elsewhere::joined;
use super::pushdown::{decides, demand, shared_conditions};
use super::rollup::{RollupCall, Windows, join_absent, series_argument};
use super::rows::stream_rows;
use super::{Argument, CallContext, LabelMemory, Series, binary, label, string_series, transform};
use crate::context::Context;
use crate::error::{QueryError, Result};
use crate::reservation::Reservation;
use crate::row::Wanted;
use crate::staleness::StaleFilter;
use crate::time::{Grid, to_ns};
use model::sample::NANOS_PER_MILLI;
use model::{Labels, LabelsBuilder, METRIC_NAME, MatchOp, TimeRange};
use promql::Grouping;
use promql::metricsql::{
    Aggregate, Binary, BinaryOp, Call, Duration, Expr, Function, FunctionKind, Rollup, Selector,
    Union, find_function,
};

/// Points that one series of a subquery may have.
const SUBQUERY_POINTS_MAX: usize = 100_000;

/// The steps of a query or of a subquery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// The moments.
    pub grid: Grid,
    /// The end that was asked for: the last moment, or less than a step behind it.
    pub end_ms: i64,
}

/// One series' stored samples: milliseconds and values.
type Samples = (Labels, Vec<(i64, f64)>);

/// Evaluates expressions within one query.
pub(super) struct Evaluator<'a> {
    pub context: &'a Context<'a>,
    /// What the rows of rollups take.
    kept: Reservation,
}

/// What one call of a rollup function looks at.
struct Look<'e> {
    /// The function.
    function: &'static Function,
    keep_metric_names: bool,
    /// Its arguments but the one that is looked at.
    arguments: Vec<Argument>,
    /// What is looked at: a selector, or an expression that a subquery is made of.
    expr: &'e Expr,
    /// Window, step, offset and `@`, where they were written.
    modifiers: Option<&'e Rollup>,
    /// No function stands around it.
    is_bare: bool,
}

impl<'a> Evaluator<'a> {
    pub fn new(context: &'a Context<'a>) -> Evaluator<'a> {
        Evaluator { context, kept: Reservation::new(&context.usage) }
    }

    /// The series that an expression has on a grid. Some may have nothing but gaps.
    pub fn series(&self, expr: &Expr, steps: Steps) -> Result<Vec<Series>> {
        self.context.check()?;
        match expr {
            Expr::Number(number) => self.constant(number.value, steps.grid),
            Expr::Duration(literal) => {
                let seconds = literal.duration.at_step(steps.grid.step_ms) as f64 / 1000.0;
                self.constant(seconds, steps.grid)
            }
            Expr::String(text) => {
                let series = vec![string_series(&text.value, steps.grid.len)];
                self.keep(&series)?;
                Ok(series)
            }
            Expr::Selector(_) => self.look(&default_look(expr, None)?, steps),
            Expr::Rollup(rollup) => self.look(&default_look(&rollup.expr, Some(rollup))?, steps),
            Expr::Call(call) if call.function.kind == FunctionKind::Rollup => {
                self.rollup_call(call, steps)
            }
            Expr::Call(call) => self.call(call, steps),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate, steps),
            Expr::Binary(binary) => self.binary(binary, steps),
            Expr::Union(union) => self.union(union, steps),
        }
    }

    /// Evaluates the side that decides first, and of the other only what can match it.
    fn binary(&self, binary: &Binary, steps: Steps) -> Result<Vec<Series>> {
        let is_right_first = matches!(binary.op, BinaryOp::And | BinaryOp::If)
            || (binary.fill_left.is_some() && binary.fill_right.is_none());
        let (first, second) = match is_right_first {
            true => (&binary.right, &binary.left),
            false => (&binary.left, &binary.right),
        };
        let ahead = self.series(first, steps)?;
        let behind = match decides(binary) {
            false => self.series(second, steps)?,
            true if ahead.is_empty() => return Ok(Vec::new()),
            true => {
                let conditions = shared_conditions(binary, &ahead);
                if conditions.is_empty() {
                    self.series(second, steps)?
                } else {
                    let mut second = second.clone();
                    demand(&mut second, &conditions);
                    self.series(&second, steps)?
                }
            }
        };
        let (left, right) = if is_right_first { (behind, ahead) } else { (ahead, behind) };
        let given = Size::of(&left).plus(Size::of(&right));
        let made = binary::apply(binary, left, right, self.context.options.limits.samples_max)?;
        self.keep_growth(given, made)
    }

    fn union(&self, union: &Union, steps: Steps) -> Result<Vec<Series>> {
        let arguments = self.arguments(&union.expressions, steps)?;
        let given = Size::of_arguments(&arguments);
        let made = transform::call(&self.call_context("union", false, steps), arguments)?;
        self.keep_growth(given, made)
    }

    fn call_context<'n>(&'n self, name: &'n str, keeps: bool, steps: Steps) -> CallContext<'n> {
        let now_ms = self.context.options.metricsql.now_ms;
        let Steps { grid, end_ms } = steps;
        let label_memory = Some(LabelMemory { context: self.context, held: &self.kept });
        CallContext { name, grid, end_ms, now_ms, keep_metric_names: keeps, label_memory }
    }

    fn arguments(&self, expressions: &[Expr], steps: Steps) -> Result<Vec<Argument>> {
        expressions.iter().map(|expr| self.argument(expr, steps)).collect()
    }

    fn argument(&self, expr: &Expr, steps: Steps) -> Result<Argument> {
        match expr {
            Expr::String(text) => Ok(Argument::text(text.value.clone())),
            expr => self.series(expr, steps).map(Argument::Series),
        }
    }

    fn call(&self, call: &Call, steps: Steps) -> Result<Vec<Series>> {
        let arguments = self.arguments(&call.arguments, steps)?;
        let context = self.call_context(call.function.name, call.keep_metric_names, steps);
        let given = Size::of_arguments(&arguments);
        let made = match (call.function.kind, call.arguments.as_slice()) {
            (FunctionKind::Label, _) => label::call(&context, arguments),
            (FunctionKind::Transform, [argument]) if call.function.name == "absent" => {
                let mut series = transform::call(&context, arguments)?;
                series.iter_mut().for_each(|one| one.labels = demanded_labels(argument));
                Ok(series)
            }
            _ => transform::call(&context, arguments),
        };
        self.keep_growth(given, made?)
    }

    fn aggregate(&self, aggregate: &Aggregate, steps: Steps) -> Result<Vec<Series>> {
        let Some(folded) = self.folded_elsewhere(aggregate, steps)? else {
            return self.aggregate_here(aggregate, steps);
        };
        let rest = match steps.grid.behind(folded.steps) {
            Some(grid) => self.aggregate_here(aggregate, Steps { grid, ..steps })?,
            None => Vec::new(),
        };
        let rows = joined(folded, rest, steps.grid.len);
        self.keep(&rows)?;
        Ok(rows)
    }

    fn aggregate_here(&self, aggregate: &Aggregate, steps: Steps) -> Result<Vec<Series>> {
        let Aggregate { function, arguments, grouping, limit, .. } = aggregate;
        let (name, grouping) = (function.name, grouping.as_ref());
        if let [argument] = arguments.as_slice()
            && let Some(folding) = aggregate::folding(name, grouping, *limit, steps.grid.len)
            && let Some(look) = self.plain_look(argument, steps)?
        {
            // VictoriaMetrics has such groups where it aggregates series as it reads them.
            return self.fold_rows(&look, folding.keeping_empty(), grouping, steps);
        }
        let arguments = self.arguments(arguments, steps)?;
        let given = Size::of_arguments(&arguments);
        let context = self.call_context(name, false, steps);
        self.keep_growth(given, aggregate::call(&context, arguments, grouping, *limit)?)
    }

    /// A rollup of a selector whose rows need no more than to be made: no `@`, no subquery.
    fn plain_look<'e>(&self, expr: &'e Expr, steps: Steps) -> Result<Option<Look<'e>>> {
        let look = match expr {
            Expr::Selector(_) => default_look(expr, None)?,
            Expr::Rollup(rollup) => default_look(&rollup.expr, Some(rollup))?,
            Expr::Call(call) if call.function.kind == FunctionKind::Rollup => {
                self.look_of_call(call, steps)?
            }
            _ => return Ok(None),
        };
        let is_plain = matches!(look.expr, Expr::Selector(_))
            && look.modifiers.is_none_or(|one| one.at.is_none())
            && !look.has_step()
            && look.function.name != "absent_over_time";
        Ok(is_plain.then_some(look))
    }

    /// Aggregates the rows of a rollup as they are made: only groups are kept.
    fn fold_rows(
        &self,
        look: &Look<'_>,
        mut folding: Folding,
        grouping: Option<&Grouping>,
        steps: Steps,
    ) -> Result<Vec<Series>> {
        let Expr::Selector(selector) = look.expr else { return Ok(Vec::new()) };
        let wanted: Option<Vec<&str>> = match grouping {
            None => Some(Vec::new()),
            Some(Grouping::By(names)) => Some(names.iter().map(String::as_str).collect()),
            Some(Grouping::Without(_)) => None,
        };
        let windows = self.windows_of(look, steps)?;
        let mut add = |labels: &Labels, values: &[f64]| {
            if folding.add(labels, values) {
                let bytes = 16 * values.len() + labels.as_bytes().len();
                self.kept.grow(values.len() as u64, bytes as u64);
            }
            self.context.check_memory()
        };
        let call = self.rollup_of(look, windows)?;
        if call.makes_one_row() && !selector.sets.iter().all(Vec::is_empty) {
            stream_rows(self.context, &call, selector, wanted.as_deref(), &mut add)?;
        } else {
            let add = &mut |row: Series| add(&row.labels, &row.values);
            self.stream(look, selector, windows, wanted.as_deref(), add)?;
        }
        Ok(folding.finish())
    }

    // ---- windows ----

    fn rollup_call(&self, call: &Call, steps: Steps) -> Result<Vec<Series>> {
        self.look(&self.look_of_call(call, steps)?, steps)
    }

    fn look_of_call<'e>(&self, call: &'e Call, steps: Steps) -> Result<Look<'e>> {
        let name = call.function.name;
        let idx = series_argument(name, call.arguments.len());
        let Some(looked_at) = call.arguments.get(idx) else {
            let context = self.call_context(name, false, steps);
            return context.fail(format!("argument {} is missing", idx + 1));
        };
        let mut arguments = Vec::new();
        for (_, argument) in call.arguments.iter().enumerate().filter(|(other, _)| *other != idx) {
            match argument {
                // The names of `aggr_over_time`.
                Expr::Union(list) if name == "aggr_over_time" => {
                    arguments.extend(self.arguments(&list.expressions, steps)?)
                }
                argument => arguments.push(self.argument(argument, steps)?),
            }
        }
        let (expr, modifiers) = match looked_at {
            Expr::Rollup(rollup) => (&rollup.expr, Some(&**rollup)),
            expr => (expr, None),
        };
        let keep_metric_names = call.keep_metric_names;
        let function = call.function;
        Ok(Look { function, keep_metric_names, arguments, expr, modifiers, is_bare: false })
    }

    /// The rows of a rollup, after `@` and `offset`.
    fn look(&self, look: &Look<'_>, steps: Steps) -> Result<Vec<Series>> {
        let Some(at) = look.modifiers.and_then(|modifiers| modifiers.at.as_ref()) else {
            return self.look_from(look, steps);
        };
        let at_ms = self.moment(at, steps)?;
        let grid = Grid { start_ms: at_ms, len: 1, ..steps.grid };
        let mut series = self.look_from(&look.at_one_step(), Steps { grid, end_ms: at_ms })?;
        for one in &mut series {
            let value = one.values[0];
            one.values.clear();
            one.values.resize(steps.grid.len, value);
        }
        Ok(series)
    }

    /// The moment that stands behind `@`: the first value of an expression of one series.
    fn moment(&self, at: &Expr, steps: Steps) -> Result<i64> {
        let series = self.series(at, steps)?;
        let [one] = series.as_slice() else {
            let message = format!("`@` needs one series, {} given", series.len());
            return Err(QueryError::Execution(message));
        };
        match one.values.iter().find(|value| !value.is_nan()) {
            Some(seconds) => Ok((seconds * 1000.0) as i64),
            None => Err(QueryError::Execution("the value behind `@` is NaN".to_string())),
        }
    }

    /// Where the windows of a call end and how long they are, after `offset`.
    fn windows_of(&self, look: &Look<'_>, steps: Steps) -> Result<Windows> {
        let duration = |of: fn(&Rollup) -> Option<Duration>| {
            look.modifiers.and_then(of).map(|duration| duration.at_step(steps.grid.step_ms))
        };
        let window_ms = duration(|one| one.window);
        if window_ms.is_some_and(|window| window < 0) {
            let context = self.call_context(look.function.name, false, steps);
            return context.fail("the window in brackets is negative");
        }
        let offset_ms = duration(|one| one.offset).unwrap_or(0);
        let start_ms = steps.grid.start_ms.saturating_sub(offset_ms);
        Ok(Windows {
            grid: Grid { start_ms, ..steps.grid },
            end_ms: steps.end_ms.saturating_sub(offset_ms),
            window_ms,
            lookback_ms: self.context.options.metricsql.lookback_ms,
            is_subquery: false,
        })
    }

    fn look_from(&self, look: &Look<'_>, steps: Steps) -> Result<Vec<Series>> {
        let windows = self.windows_of(look, steps)?;
        let rows = match look.expr {
            Expr::Selector(selector) if !look.has_step() => {
                self.of_selector(look, selector, windows)?
            }
            expr => {
                let step = look.modifiers.and_then(|one| one.step);
                let step_ms = step.map(|step| step.at_step(steps.grid.step_ms));
                if step_ms.is_some_and(|step| step < 0) {
                    let context = self.call_context(look.function.name, false, steps);
                    return context.fail("the step in brackets is negative");
                }
                self.of_subquery(look, expr, step_ms, Windows { is_subquery: true, ..windows })?
            }
        };
        match look.function.name {
            "absent_over_time" => {
                let values = join_absent(&rows, steps.grid.len);
                // What is absent from a subquery is not said, not even of a selector.
                let is_said = !look.has_step();
                let labels = if is_said { demanded_labels(look.expr) } else { Labels::default() };
                Ok(vec![Series { labels, values }])
            }
            _ => Ok(rows),
        }
    }

    fn rollup_of(&self, look: &Look<'_>, windows: Windows) -> Result<RollupCall> {
        let name = look.function.name;
        let steps = Steps { grid: windows.grid, end_ms: windows.end_ms };
        let context = self.call_context(name, look.keep_metric_names, steps);
        RollupCall::new(&context, look.arguments.clone(), windows)
    }

    fn of_selector(
        &self,
        look: &Look<'_>,
        selector: &Selector,
        windows: Windows,
    ) -> Result<Vec<Series>> {
        let mut rows = Vec::new();
        self.stream(look, selector, windows, None, &mut |row| {
            self.keep(std::slice::from_ref(&row))?;
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Hands over the rows of a rollup of a selector; labels that are not `wanted` may be missing.
    fn stream(
        &self,
        look: &Look<'_>,
        selector: &Selector,
        windows: Windows,
        wanted: Wanted<'_>,
        sink: &mut dyn FnMut(Series) -> Result<()>,
    ) -> Result<()> {
        if selector.sets.iter().all(Vec::is_empty) {
            return sink(constant(f64::NAN, windows.grid));
        }
        let mut call = self.rollup_of(look, windows)?;
        let mut rows = Vec::new();
        let range = call.time_range();
        self.context.read_series(&selector.sets, range, wanted, &mut |labels, times, values| {
            call.run(labels, times, values, &|| self.context.check(), &mut rows)?;
            rows.drain(..).try_for_each(&mut *sink)
        })
    }

    fn of_subquery(
        &self,
        look: &Look<'_>,
        expr: &Expr,
        step_ms: Option<i64>,
        windows: Windows,
    ) -> Result<Vec<Series>> {
        let mut call = self.rollup_of(look, windows)?;
        let grid = call.subquery_grid(step_ms);
        if SUBQUERY_POINTS_MAX < grid.len {
            return Err(QueryError::Execution(format!(
                "a subquery of {} points, the limit is {SUBQUERY_POINTS_MAX}; take a larger step",
                grid.len
            )));
        }
        self.context.check_steps(grid)?;
        let inner = Steps { grid, end_ms: grid.at_ms(grid.len - 1) };
        let mut rows = Vec::new();
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for series in self.series(expr, inner)? {
            // One series may be windows without number over samples without number.
            self.context.check()?;
            times.clear();
            values.clear();
            let there = series.values.iter().enumerate().filter(|(_, value)| !value.is_nan());
            for (step, value) in there {
                times.push(to_ns(grid.at_ms(step)));
                values.push(*value);
            }
            let before = rows.len();
            call.run(&series.labels, &times, &values, &|| self.context.check(), &mut rows)?;
            self.keep(&rows[before..])?;
        }
        Ok(rows)
    }

    /// Counts rows as held until the end of the query.
    fn keep(&self, rows: &[Series]) -> Result<()> {
        for row in rows {
            let bytes = row.values.len() * 8 + row.labels.as_bytes().len() + size_of::<Series>();
            self.kept.grow(row.values.len() as u64, bytes as u64);
        }
        self.context.check_memory()
    }

    /// One series without labels, counted as held.
    fn constant(&self, value: f64, grid: Grid) -> Result<Vec<Series>> {
        self.context.check_room(8 * grid.len)?;
        let series = vec![constant(value, grid)];
        self.keep(&series)?;
        Ok(series)
    }

    /// Counts what a function made beyond what it was given, which was counted when it was made. New
    /// labels are counted by who makes them.
    fn keep_growth(&self, given: Size, made: Vec<Series>) -> Result<Vec<Series>> {
        let size = Size::of(&made);
        let values = size.values.saturating_sub(given.values);
        let bytes = size.bytes().saturating_sub(given.bytes());
        if values != 0 || bytes != 0 {
            self.kept.grow(values as u64, bytes as u64);
            self.context.check_memory()?;
        }
        Ok(made)
    }

    /// The samples of `selector[window]` up to one moment, as they are stored.
    pub fn samples(&self, selector: &Selector, range: TimeRange) -> Result<Vec<Samples>> {
        let mut series = Vec::new();
        let mut filter = StaleFilter::default();
        self.context.read_series(&selector.sets, range, None, &mut |labels, times, values| {
            let (times, values) = filter.apply(times, values);
            self.kept.grow(times.len() as u64, 16 * times.len() as u64);
            self.context.check_memory()?;
            let times = times.iter().map(|time| time.div_euclid(NANOS_PER_MILLI));
            let points: Vec<(i64, f64)> = times.zip(values.iter().copied()).collect();
            if !points.is_empty() {
                series.push((labels.clone(), points));
            }
            Ok(())
        })?;
        Ok(series)
    }
}

/// How many series and values there are.
#[derive(Clone, Copy, Default)]
struct Size {
    series: usize,
    values: usize,
}

impl Size {
    fn of(series: &[Series]) -> Size {
        let values = series.iter().map(|one| one.values.len()).sum();
        Size { series: series.len(), values }
    }

    fn of_arguments(arguments: &[Argument]) -> Size {
        arguments.iter().fold(Size::default(), |size, argument| match argument {
            Argument::Series(series) => size.plus(Size::of(series)),
            Argument::Text(_) => size,
        })
    }

    fn plus(self, other: Size) -> Size {
        Size { series: self.series + other.series, values: self.values + other.values }
    }

    fn bytes(self) -> usize {
        8 * self.values + size_of::<Series>() * self.series
    }
}

impl Look<'_> {
    /// The same with arguments cut to the one step that `@` leaves.
    fn at_one_step(&self) -> Look<'_> {
        let mut arguments = self.arguments.clone();
        for argument in &mut arguments {
            if let Argument::Series(series) = argument {
                series.iter_mut().for_each(|one| one.values.truncate(1));
            }
        }
        Look { arguments, ..*self }
    }

    /// Whether a colon in brackets makes a subquery, also of a selector. VictoriaMetrics ignores the
    /// colon behind a selector that stands by itself.
    fn has_step(&self) -> bool {
        let has_colon = |one: &Rollup| one.has_colon || one.step.is_some();
        !self.is_bare && self.modifiers.is_some_and(has_colon)
    }
}

/// What a selector, or an expression with a window, means where no function says what to do.
fn default_look<'e>(expr: &'e Expr, modifiers: Option<&'e Rollup>) -> Result<Look<'e>> {
    let function = find_function("default_rollup")
        .ok_or_else(|| QueryError::Execution("default_rollup is not in the table".to_string()))?;
    let arguments = Vec::new();
    Ok(Look { function, keep_metric_names: false, arguments, expr, modifiers, is_bare: true })
}

/// One series without labels.
pub(super) fn constant(value: f64, grid: Grid) -> Series {
    Series { labels: Labels::default(), values: vec![value; grid.len] }
}

/// The labels that series of a selector must have: what is absent would have had them.
fn demanded_labels(expr: &Expr) -> Labels {
    let Expr::Selector(selector) = expr else { return Labels::default() };
    let [set] = selector.sets.as_slice() else { return Labels::default() };
    let mut builder = LabelsBuilder::new();
    for matcher in set {
        if matcher.op == MatchOp::Equal && matcher.name != METRIC_NAME {
            builder.push(&matcher.name, &matcher.value);
        }
    }
    builder.finish()
}
