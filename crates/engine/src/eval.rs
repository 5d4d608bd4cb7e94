//! One match over the tree.
//!
//! An expression is evaluated for all steps at once: a scalar to one number per step, a vector
//! to rows ([`Vector`]). Where rows need not be kept they are streamed instead: a selector or a
//! rollup of one under an aggregation feeds its rows straight into the groups, so
//! `avg by (host) (avg_over_time(m[1h]))` never holds more than one series and the groups.
//!
//! What does not depend on the step (everything below a fixed `@`) is evaluated once and spread.

use crate::call::{CallContext, Evaluate};
use crate::context::{Collision, Context, RangeScope};
use crate::error::{QueryError, Result};
use crate::functions::{self, Kernel};
use crate::gap::{ABSENT, to_number};
use crate::histograms::cells::has_numbers;
use crate::histograms::results::take_points;
use crate::histograms::rollup::MixedRollup;
use crate::histograms::samples::MixedSamples;
use crate::histograms::totals::{Reading, ReadingScope};
use crate::names::{Key, NameState, is_metadata_label};
use crate::options::{NameRemoval, QueryOptions};
use crate::result::{HistogramPoints, Matrix};
use crate::rollup::{EdgedWindows, Rollup, RollupCall, check_edges};
use crate::row::{Row, RowSink, Wanted};
use crate::rows::RowMaker;
use crate::scalar::Scalar;
use crate::selector::Uniqueness;
use crate::staleness::StaleFilter;
use crate::step_samples::{Scope, Tally};
use crate::time::{Grid, Reference, to_ns};
use crate::transform;
use crate::vector::Vector;
use crate::windows::Windows;
use histogram::{Histogram, ResetHint};
use model::Labels;
use model::sample::NANOS_PER_MILLI;
use promql::{Call, Edges, Expr, FunctionKind, MatrixSelector, Span, Subquery, UnaryOp, ValueType};
use std::sync::Arc;

/// Evaluates expressions within one query.
pub(crate) struct Evaluator<'a> {
    pub context: &'a Context<'a>,
}

impl Evaluate for Evaluator<'_> {
    fn string(&self, expr: &Expr) -> Result<String> {
        match expr.without_parens() {
            Expr::String(literal) => Ok(literal.value.clone()),
            _ => Err(QueryError::Execution("only literals are strings".to_string())),
        }
    }

    fn scalar(&self, expr: &Expr, grid: Grid) -> Result<Scalar> {
        match expr {
            Expr::Number(number) => Ok(Scalar::Constant(number.value)),
            Expr::Paren(paren) => self.scalar(&paren.expr, grid),
            Expr::Unary(unary) => {
                let value = self.scalar(&unary.expr, grid)?;
                if unary.op == UnaryOp::Plus {
                    return Ok(value);
                }
                Ok(value.zip(&Scalar::Constant(0.0), grid.len, |value, _| to_number(-value)))
            }
            Expr::Binary(binary) => {
                let left = self.scalar(&binary.left, grid)?;
                let right = self.scalar(&binary.right, grid)?;
                let op = binary.op;
                if op.is_trim() {
                    let op = promql::quote(op.as_str());
                    let message = format!("operator {op} not allowed for Scalar operations");
                    return Err(QueryError::Execution(message));
                }
                Ok(left.zip(&right, grid.len, |a, b| crate::operators::scalar_op(op, a, b)))
            }
            Expr::Call(call) => self.scalar_call(call, grid),
            _ => Err(QueryError::Execution("expected a scalar".to_string())),
        }
    }

    fn vector(&self, expr: &Expr, grid: Grid) -> Result<Vector> {
        self.context.check()?;
        if 1 < grid.len && is_step_invariant(expr) {
            let _scope = self.context.counting(Scope::All);
            let once = self.vector(expr, grid.first())?;
            return once.broadcast(self.context, grid.len);
        }
        match expr {
            Expr::Paren(paren) => self.vector(&paren.expr, grid),
            Expr::Vector(_) => self.collect(expr, grid),
            Expr::Call(call) if call.function.kind == FunctionKind::Rollup => {
                self.collect(expr, grid)
            }
            Expr::Call(call) => self.vector_call(call, grid),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate, grid),
            Expr::Binary(binary) => self.binary(binary, grid),
            Expr::Unary(unary) => {
                let mut vector = self.vector(&unary.expr, grid)?;
                if unary.op == UnaryOp::Minus {
                    vector.map_values(|value| -value);
                    vector.map_histograms(crate::histograms::functions::negated);
                    vector = vector.without_names(self.context.options.name_removal)?;
                }
                Ok(vector)
            }
            _ => Err(QueryError::Execution("expected an instant vector".to_string())),
        }
    }

    fn stream(
        &self,
        expr: &Expr,
        grid: Grid,
        wanted: Wanted<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let is_spread = 1 < grid.len && is_step_invariant(expr);
        match expr {
            Expr::Paren(paren) => return self.stream(&paren.expr, grid, wanted, sink),
            Expr::Vector(selector) if !is_spread => {
                return self.context.stream_selector(selector, grid, wanted, sink);
            }
            Expr::Call(call) if !is_spread => {
                if let Some(rollup) = functions::rollup(call.function.name) {
                    return self.stream_rollup(rollup, call, grid, wanted, sink);
                }
            }
            _ => {}
        }
        self.vector(expr, grid)?.stream(sink)
    }

    fn stream_presence(&self, call: &Call, grid: Grid, sink: &mut RowSink<'_>) -> Result<()> {
        self.stream_rollup(Rollup::Absent, call, grid, Some(&[]), sink)
    }
}

impl Evaluator<'_> {
    fn scalar_call(&self, call: &Call, grid: Grid) -> Result<Scalar> {
        match kernel(call)? {
            Kernel::Scalar(kernel) => kernel(&self.call(call, grid)),
            _ => Err(unknown(call.function.name)),
        }
    }

    /// What a function's kernel sees.
    fn call<'c>(&'c self, call: &'c Call, grid: Grid) -> CallContext<'c> {
        CallContext { context: self.context, call, grid, evaluator: self }
    }

    /// Streams an expression's rows into a vector.
    fn collect(&self, expr: &Expr, grid: Grid) -> Result<Vector> {
        let mut vector = Vector::new(self.context, grid.len);
        self.stream(expr, grid, None, &mut |row| {
            vector.push_mixed(self.context, row.key(), row.values, row.cells)
        })?;
        Ok(vector)
    }

    fn vector_call(&self, call: &Call, grid: Grid) -> Result<Vector> {
        let of = &self.call(call, grid);
        match kernel(call)? {
            Kernel::Number(function) => transform::math::each(of, function),
            Kernel::Date(part) => transform::date::each(of, part),
            Kernel::Totals(value) => transform::histogram::each(of, Reading::Totals, value),
            Kernel::Buckets(value) => transform::histogram::each(of, Reading::Buckets, value),
            Kernel::Vector(kernel) => kernel(of),
            Kernel::Rollup(_) | Kernel::Scalar(_) => Err(unknown(call.function.name)),
        }
    }

    // ---- windows ----

    fn stream_rollup(
        &self,
        rollup: Rollup,
        call: &Call,
        grid: Grid,
        wanted: Wanted<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let span = call.arguments[0].without_parens().span();
        let mut parameters = Vec::new();
        let mut window = None;
        for argument in &call.arguments {
            match argument.value_type() {
                ValueType::Matrix => window = Some(argument.without_parens()),
                _ => parameters.push(self.scalar(argument, grid)?),
            }
        }
        if rollup == Rollup::Quantile
            && !parameters[0].values().iter().all(|q| transform::histogram::is_share(*q))
        {
            let q = parameters[0].clone();
            let warn = |row: &Row<'_>| {
                for (step, value) in row.values.iter().enumerate() {
                    if !crate::gap::is_absent(*value) {
                        transform::histogram::warn_of_quantile(self.context, q.at(step), span);
                    }
                }
            };
            return self.stream_windows(
                (rollup, call),
                (window, parameters),
                grid,
                wanted,
                &mut |row| {
                    warn(row);
                    sink(row)
                },
            );
        }
        self.stream_windows((rollup, call), (window, parameters), grid, wanted, sink)
    }

    fn stream_windows(
        &self,
        (rollup, call): (Rollup, &Call),
        (window, parameters): (Option<&Expr>, Vec<Scalar>),
        grid: Grid,
        wanted: Wanted<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let span = call.arguments[0].without_parens().span();
        match window {
            Some(Expr::Matrix(matrix)) => {
                check_edges(call.function.name, matrix.selector.edges)?;
                let selector = &matrix.selector;
                let reference = self.context.reference(grid, selector.at, selector.offset_ms);
                let (range_ms, steps) = (matrix.range_ms, own(grid));
                let call = RollupCall { rollup, range_ms, reference, steps, parameters, span };
                self.rollup_of_selector(&call, matrix, wanted, sink)
            }
            Some(Expr::Subquery(subquery)) => {
                let reference = self.context.reference(grid, subquery.at, subquery.offset_ms);
                let (range_ms, steps) = (subquery.range_ms, own(grid));
                let call = RollupCall { rollup, range_ms, reference, steps, parameters, span };
                self.rollup_of_subquery(&call, subquery, sink)
            }
            _ => Err(QueryError::Execution("expected a range vector".to_string())),
        }
    }

    /// What a rollup leaves of its series' names.
    pub fn rollup_name(&self, rollup: Rollup) -> NameState {
        let removal = self.context.options.name_removal;
        let keeps = rollup.keeps_name()
            || rollup == Rollup::Absent
            || (removal == NameRemoval::KeepOverTime && rollup.keeps_scale());
        if keeps { NameState::Kept } else { NameState::dropped(removal) }
    }

    fn rollup_of_selector(
        &self,
        call: &RollupCall,
        matrix: &MatrixSelector,
        wanted: Wanted<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let (selector, collision) = (&matrix.selector, &self.context.collision);
        let name = self.rollup_name(call.rollup);
        let is_watched = collision.get() == Collision::Watched;
        let checked_name = if is_watched { NameState::Dropped } else { name };
        let mut uniqueness = Uniqueness::of_selector(selector, checked_name);
        let expects_counter = call.rollup.expects_counter();
        // Equal labels and wrong names are only seen where all labels are.
        let needs_all = expects_counter || (uniqueness.is_needed() && !is_watched);
        // What groups do not see of a row need not be read.
        let is_seen = |label: &&str| name != NameState::Dropped || !is_metadata_label(label);
        let seen: Option<Vec<&str>> =
            wanted.map(|wanted| wanted.iter().copied().filter(is_seen).collect());
        let wanted = if needs_all { None } else { seen.as_deref() };
        let mut counters = CounterNames::default();
        let edged = self.edged_windows(matrix, call.reference);
        let plain = Windows::new(call.reference, call.range_ms).time_range();
        let range = edged.map_or(plain, |edged| edged.time_range());
        let sets = std::slice::from_ref(&selector.matchers);
        let options = self.context.options;
        let tally = self.context.tally();
        let begin = || RollupRows::of(call, edged, options, tally);
        let mut mixed = None;
        let mut make = |labels: &Labels, samples: &MixedSamples<'_>, row: &mut _, cells: &mut _| {
            let new = || MixedRollup::new(self.context, call, edged);
            mixed.get_or_insert_with(new).make(labels, samples, row, cells)
        };
        let mut visit = |labels: &Labels, values: &[f64], cells: &[_]| {
            if expects_counter && (cells.is_empty() || has_numbers(values, cells)) {
                counters.check(self.context, call.span, labels, values);
            }
            let row = Row { labels, name, values, cells };
            match collision.get() {
                Collision::Unwatched => uniqueness.add(&row)?,
                Collision::Watched if uniqueness.collides(&row) => collision.set(Collision::Found),
                Collision::Watched | Collision::Found => {}
            }
            sink(&row)
        };
        if edged.is_none() && call.rollup.knows_starts() && self.context.has_starts(sets, range)? {
            return self.context.read_rows_with_starts(call, (sets, range), &mut visit);
        }
        let steps = call.steps.len;
        self.context.read_rows((sets, range), wanted, steps, &begin, &mut make, &mut visit)
    }

    /// The windows of a selector that has values at their edges.
    fn edged_windows(&self, matrix: &MatrixSelector, reference: Reference) -> Option<EdgedWindows> {
        let edges = matrix.selector.edges;
        let lookback_ms = self.context.options.lookback_ms;
        let windows = EdgedWindows { edges, reference, range_ms: matrix.range_ms, lookback_ms };
        (edges != Edges::Samples).then_some(windows)
    }

    fn rollup_of_subquery(
        &self,
        call: &RollupCall,
        subquery: &Subquery,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let mut windows = Windows::new(call.reference, call.range_ms);
        let mut row = vec![ABSENT; call.steps.len];
        let name = self.rollup_name(call.rollup);
        let mut uniqueness = Uniqueness::new(name);
        let mut counters = CounterNames::default();
        let mut mixed = None;
        let series = self.subquery(subquery, call.reference, Scope::Nowhere)?;
        let tally = self.context.tally();
        for mut series in series {
            // Subqueries within each other come here long after each of them looked first.
            self.context.check()?;
            series.forget_resets();
            let SubquerySeries { key, times, values, histogram_times, histograms } = &series;
            let mut cells = Vec::new();
            if histograms.is_empty() {
                let (options, bounds) = (self.context.options, windows.of(times));
                if let Some(tally) = tally {
                    tally.add_windows(bounds);
                }
                call.fill_watched(options, times, values, bounds, &mut row)?;
            } else {
                cells.resize(row.len(), None);
                let samples = MixedSamples { times, values, histogram_times, histograms };
                let new = || MixedRollup::new(self.context, call, None);
                let maker = mixed.get_or_insert_with(new);
                maker.make(&key.labels, &samples, &mut row, &mut cells)?;
            }
            if call.rollup.expects_counter() && (cells.is_empty() || has_numbers(&row, &cells)) {
                counters.check(self.context, call.span, &key.labels, &row);
            }
            let is_late = key.drops_name && name == NameState::Kept;
            let name = if is_late { NameState::DroppedLate } else { name };
            let row = Row { labels: &key.labels, name, values: &row, cells: &cells };
            uniqueness.add(&row)?;
            sink(&row)?;
        }
        Ok(())
    }

    /// The samples that a subquery makes for windows that end at the points of `reference`.
    fn subquery(
        &self,
        subquery: &Subquery,
        reference: Reference,
        counted: Scope,
    ) -> Result<impl Iterator<Item = SubquerySeries> + use<>> {
        let step_ms = subquery.step_ms.unwrap_or(self.context.options.subquery_step_ms).max(1);
        let begin_ms = reference.first_ms.saturating_sub(subquery.range_ms);
        // Steps are multiples of the step's length; the first is after the window's open end.
        let start_ms = begin_ms.div_euclid(step_ms).saturating_add(1).saturating_mul(step_ms);
        let (mut keys, mut values, mut inner) = (Vec::new(), Vec::new(), Grid::instant(0));
        let mut cells = None;
        if let Some(grid) = Grid::span(start_ms, reference.last_ms(), step_ms) {
            self.context.check_steps(grid)?;
            inner = grid;
            let _range = RangeScope::begin(&self.context.is_range, start_ms < reference.last_ms());
            let _scope = ReadingScope::begin(&self.context.reading, Reading::Buckets);
            let _counting = self.context.counting(counted);
            let vector = self.vector(&subquery.expr, grid)?;
            (keys, values, cells) = vector.into_parts();
        }
        let histograms = take_points(inner, &mut values, cells);
        let mut histograms = histograms.into_iter();
        let rows: Vec<Vec<f64>> = values.chunks_exact(inner.len).map(<[f64]>::to_vec).collect();
        Ok(keys.into_iter().zip(rows).map(move |(key, row)| {
            let there = row.iter().enumerate().filter(|(_, v)| !crate::gap::is_absent(**v));
            let (times, values) = there.map(|(step, v)| (to_ns(inner.at_ms(step)), *v)).unzip();
            let points = histograms.next().unwrap_or_default().into_iter();
            let (histogram_times, histograms) =
                points.map(|(at_ms, one)| (to_ns(at_ms), Arc::unwrap_or_clone(one))).unzip();
            SubquerySeries { key, times, values, histogram_times, histograms }
        }))
    }

    /// The samples of a range vector at one moment: the value of `foo[5m]`.
    pub fn matrix(&self, expr: &Expr, at_ms: i64) -> Result<Matrix> {
        let grid = Grid::instant(at_ms);
        let mut series: Vec<(Labels, Vec<(i64, f64)>)> = Vec::new();
        let mut histograms: Vec<HistogramPoints> = Vec::new();
        let kept = crate::reservation::Reservation::new(&self.context.usage);
        match expr.without_parens() {
            Expr::Matrix(matrix) => {
                let selector = &matrix.selector;
                let reference = self.context.reference(grid, selector.at, selector.offset_ms);
                let edged = self.edged_windows(matrix, reference);
                let range = match &edged {
                    None => Windows::new(reference, matrix.range_ms).time_range(),
                    Some(edged) => edged.time_range(),
                };
                let mut filter = StaleFilter::default();
                let sets = std::slice::from_ref(&selector.matchers);
                self.context.read_samples(sets, range, None, &mut |labels, samples| {
                    let (times, values) = filter.apply(samples.times, samples.values);
                    if !samples.histograms.is_empty() && edged.is_some() {
                        return Err(no_edges_of_histograms(selector.edges));
                    }
                    let made = edged.map(|edged| edged.samples(times, values));
                    let (times, values) =
                        made.as_ref().map_or((times, values), |(times, values)| (times, values));
                    let samples = MixedSamples { times, values, ..*samples };
                    kept.grow(samples.len(), 16 * samples.len());
                    self.context.check_memory()?;
                    if let Some(tally) = self.context.tally() {
                        tally.add(0, samples.len());
                    }
                    if !samples.is_empty() {
                        series.push((labels.clone(), points(times, values)));
                        histograms.push(samples.histogram_points());
                    }
                    Ok(())
                })?;
            }
            Expr::Subquery(subquery) => {
                let reference = self.context.reference(grid, subquery.at, subquery.offset_ms);
                for one in self.subquery(subquery, reference, Scope::Own)? {
                    let SubquerySeries { key, times, values, histogram_times, .. } = &one;
                    let samples = MixedSamples {
                        times,
                        values,
                        histogram_times,
                        histograms: &one.histograms,
                    };
                    histograms.push(samples.histogram_points());
                    let points = points(times, values);
                    let key =
                        if key.drops_name { key.nameless(NameRemoval::AtOnce) } else { one.key };
                    series.push((key.labels, points));
                }
            }
            _ => return Err(QueryError::Execution("expected a range vector".to_string())),
        }
        if histograms.iter().all(Vec::is_empty) {
            histograms.clear();
        }
        Ok(Matrix::of_points(series).with_histograms(histograms))
    }
}

/// One series that a subquery makes: times in nanoseconds and values, the histograms apart.
struct SubquerySeries {
    key: Key,
    times: Vec<i64>,
    values: Vec<f64>,
    histogram_times: Vec<i64>,
    histograms: Vec<Histogram>,
}

impl SubquerySeries {
    /// Hints tell of the samples before each, which a subquery may pass over or show twice.
    fn forget_resets(&mut self) {
        for histogram in self.histograms.iter_mut().filter(|one| !one.is_gauge()) {
            histogram.reset_hint = ResetHint::Unknown;
        }
    }
}

fn no_edges_of_histograms(edges: Edges) -> QueryError {
    QueryError::Execution(format!("{} modifier is not supported with histograms", edges.as_str()))
}

fn points(times: &[i64], values: &[f64]) -> Vec<(i64, f64)> {
    times.iter().map(|time| time.div_euclid(NANOS_PER_MILLI)).zip(values.iter().copied()).collect()
}

/// Where a grid's own steps are.
fn own(grid: Grid) -> Reference {
    Reference { first_ms: grid.start_ms, step_ms: grid.step_ms, len: grid.len }
}

fn kernel(call: &Call) -> Result<Kernel> {
    let function = functions::find(call.function.name);
    function.map(|function| function.kernel).ok_or_else(|| unknown(call.function.name))
}

fn unknown(name: &str) -> QueryError {
    QueryError::Execution(format!("function {name:?} is not available here"))
}

/// Makes the rows of a rollup over the series of a selector.
struct RollupRows<'c> {
    call: &'c RollupCall,
    windows: Windows,
    /// Where the windows are when their edges count.
    edged: Option<EdgedWindows>,
    /// Whose deadline is looked at.
    options: &'c QueryOptions,
    /// Where the samples of the windows are counted.
    tally: Option<Tally<'c>>,
    filter: StaleFilter,
}

impl<'c> RollupRows<'c> {
    fn of(
        call: &'c RollupCall,
        edged: Option<EdgedWindows>,
        options: &'c QueryOptions,
        tally: Option<Tally<'c>>,
    ) -> RollupRows<'c> {
        let windows = Windows::new(call.reference, call.range_ms);
        RollupRows { call, windows, edged, options, tally, filter: StaleFilter::default() }
    }
}

impl RowMaker for RollupRows<'_> {
    fn make(&mut self, timestamps: &[i64], values: &[f64], row: &mut [f64]) -> Result<()> {
        let (times, values) = self.filter.apply(timestamps, values);
        match &self.edged {
            None => {
                let bounds = self.windows.of(times);
                if let Some(tally) = self.tally {
                    tally.add_windows(bounds);
                }
                self.call.fill_watched(self.options, times, values, bounds, row)
            }
            Some(edged) => {
                if let Some(tally) = self.tally {
                    tally.add_around(edged, &MixedSamples::numbers(times, values));
                }
                edged.fill(self.call.rollup, times, values, row);
                Ok(())
            }
        }
    }
}

/// Notes metrics that `rate` is used on though their names say they are no counters.
#[derive(Default)]
struct CounterNames {
    last: String,
}

impl CounterNames {
    fn check(&mut self, context: &Context<'_>, span: Span, labels: &Labels, row: &[f64]) {
        const ENDINGS: [&str; 4] = ["_total", "_sum", "_count", "_bucket"];
        let name = labels.metric_name();
        if name == self.last || row.iter().all(|value| crate::gap::is_absent(*value)) {
            return;
        }
        self.last = name.to_string();
        if !name.is_empty() && !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            let name = promql::quote(name);
            context.annotations.info(
                span,
                format!(
                    "metric might not be a counter, name does not end in \
                     _total/_sum/_count/_bucket: {name}"
                ),
            );
        }
    }
}

/// Whether an expression has the same value at every step of any grid.
pub(crate) fn is_step_invariant(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::String(_) => true,
        Expr::Vector(selector) => selector.at.is_some(),
        Expr::Matrix(matrix) => matrix.selector.at.is_some(),
        Expr::Subquery(subquery) => subquery.at.is_some(),
        Expr::Paren(paren) => is_step_invariant(&paren.expr),
        Expr::Unary(unary) => is_step_invariant(&unary.expr),
        Expr::Binary(binary) => is_step_invariant(&binary.left) && is_step_invariant(&binary.right),
        Expr::Aggregate(aggregate) => {
            is_step_invariant(&aggregate.expr)
                && aggregate.parameter.as_ref().is_none_or(is_step_invariant)
        }
        Expr::Call(call) => is_call_invariant(call),
    }
}

fn is_call_invariant(call: &Call) -> bool {
    let uses_the_step = match call.function.name {
        "time" | "predict_linear" => true,
        // Of a bare selector it is the samples' own time.
        "timestamp" => !matches!(call.arguments[0].without_parens(), Expr::Vector(_)),
        _ => call.function.kind == FunctionKind::Date && call.arguments.is_empty(),
    };
    !uses_the_step && call.arguments.iter().all(is_step_invariant)
}
