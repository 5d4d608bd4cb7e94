//! Columns side by side: what the functions and variables of a statement have at the same times.

use super::condition::{Level, evaluate};
use super::fill::number_of;
use super::plan::{Plan, PlanSource, extra_columns};
use super::point::{Direction, Key, Point, Stream};
use super::read_request::{Ref, Scope, Wanted, paged};
use super::rewrite::refusal_of_truths;
use super::together::fields_of;
use super::window::Windows;
use super::{Evaluator, Result, compile, point_cost, row_cost};
use crate::ast::{DataType, Expr, Fill};
use crate::source::EvalError;
use crate::time::{TIME_MAX, TIME_MIN};
use crate::value::Value;
use std::collections::BTreeMap;

/// The rows of one key.
#[derive(Clone, Debug, Default)]
pub struct TableSeries {
    pub key: Key,
    pub rows: Vec<(i64, Vec<Value>)>,
    /// The places of the rows among those of all series, where more than these are read as one: for a
    /// query around this one.
    pub ranks: Vec<i64>,
}

impl TableSeries {
    /// Ranks rows by their windows, of which all series' rows are together; or by their times.
    fn rank(&mut self, windows: Option<&Windows>, direction: Direction) {
        let rank = |time: i64| {
            let rank = windows.map_or(time, |windows| windows.around(time).0);
            if direction == Direction::Up { rank } else { rank.saturating_neg() }
        };
        self.ranks = self.rows.iter().map(|(time, _)| rank(*time)).collect();
    }
}

/// What a statement selects.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Without the time.
    pub columns: Vec<String>,
    pub tag_names: Vec<String>,
    pub series: Vec<TableSeries>,
}

/// The functions and variables of a statement's fields.
#[derive(Default)]
pub(super) struct Symbols {
    pub calls: Vec<Expr>,
    pub refs: Vec<Ref>,
}

impl Symbols {
    fn collect(&mut self, expr: &Expr) {
        match expr {
            Expr::Var { name, kind } => {
                let found = Ref { name: name.clone(), kind: *kind };
                if !self.refs.contains(&found) {
                    self.refs.push(found);
                }
            }
            Expr::Call { name, args } if compile::is_math(name) => {
                args.iter().for_each(|arg| self.collect(arg));
            }
            Expr::Call { .. } if !self.calls.contains(expr) => self.calls.push(expr.clone()),
            Expr::Binary { left, right, .. } => {
                self.collect(left);
                self.collect(right);
            }
            Expr::Paren(inner) => self.collect(inner),
            _ => {}
        }
    }

    /// Whether rows are of windows: not those that are made of one row and the one before.
    fn has_windows(&self) -> bool {
        self.calls.iter().any(|call| match call {
            Expr::Call { name, args } if compile::is_transformation(name) => {
                matches!(args.first(), Some(Expr::Call { .. }))
            }
            _ => true,
        })
    }

    /// What a row needs to know of a column.
    fn resolved(&self, expr: &Expr) -> Resolved {
        let expr = self.resolve(expr);
        let slot = match &expr {
            Expr::Var { name, .. } => name.parse().ok(),
            _ => None,
        };
        slot.map_or(Resolved::Expr(expr), Resolved::Slot)
    }

    /// The expression with variables that are numbers of slots.
    fn resolve(&self, expr: &Expr) -> Expr {
        let slot = |at: usize| Expr::Var { name: at.to_string(), kind: DataType::Unknown };
        match expr {
            Expr::Var { name, kind } => {
                let at = self.refs.iter().position(|r| r.name == *name && r.kind == *kind);
                slot(self.calls.len() + at.unwrap_or(usize::MAX - self.calls.len()))
            }
            Expr::Call { name, args } if compile::is_math(name) => {
                let args = args.iter().map(|arg| self.resolve(arg)).collect();
                Expr::Call { name: name.clone(), args }
            }
            Expr::Call { .. } => {
                slot(self.calls.iter().position(|call| call == expr).unwrap_or(usize::MAX))
            }
            Expr::Binary { op, left, right } => Expr::Binary {
                op: *op,
                left: Box::new(self.resolve(left)),
                right: Box::new(self.resolve(right)),
            },
            Expr::Paren(inner) => self.resolve(inner),
            other => other.clone(),
        }
    }
}

/// What makes a cell of a row.
enum Resolved {
    /// The value of a slot.
    Slot(usize),
    /// An expression whose variables are numbers of slots.
    Expr(Expr),
}

/// The slots of a row, which keep what they have where `fill(previous)` says so.
struct Slots {
    values: Vec<Value>,
    kinds: Vec<DataType>,
    fill: Fill,
}

impl Slots {
    /// Forgets the row before: the next one is of other tags.
    fn clear(&mut self) {
        self.values.fill(Value::Null);
    }

    /// A value that is there, if only to say that there is none.
    fn set(&mut self, at: usize, value: Value) {
        if let Some(slot) = self.values.get_mut(at) {
            *slot = value;
        }
    }

    /// A value, or what stands for none.
    fn put(&mut self, at: usize, value: Value) {
        let Some(slot) = self.values.get_mut(at) else { return };
        if !value.is_null() {
            *slot = value;
        } else if self.fill != Fill::Previous {
            let kind = self.kinds.get(at).copied().unwrap_or_default();
            *slot = number_of(self.fill, kind).unwrap_or_default();
        }
    }
}

impl Evaluator<'_> {
    /// What a statement selects within `range`, grouped by its tags and by `outer` ones.
    pub(super) fn table(&self, plan: &Plan, outer: &[String], range: (i64, i64)) -> Result<Table> {
        self.source.check()?;
        let mut windows = plan.windows();
        windows.start = windows.start.max(range.0);
        windows.end = windows.end.min(range.1);
        let mut dimensions = plan.tag_names();
        dimensions.extend_from_slice(outer);
        dimensions.sort();
        dimensions.dedup();
        let direction = if plan.is_descending { Direction::Down } else { Direction::Up };
        let bounds = if plan.omits_time { range } else { (TIME_MIN, TIME_MAX) };
        let scope = Scope { plan, windows, dimensions, direction, bounds };
        let mut symbols = Symbols::default();
        let mut exprs: Vec<Expr> = Vec::new();
        for field in &plan.fields {
            symbols.collect(&field.expr);
            exprs.push(field.expr.clone());
            for extra in extra_columns(&field.expr) {
                symbols.collect(extra);
                exprs.push(extra.clone());
            }
        }
        let exprs: Vec<Resolved> = exprs.iter().map(|expr| symbols.resolved(expr)).collect();
        let mut kinds: Vec<DataType> =
            symbols.calls.iter().map(|call| self.call_type(call)).collect();
        kinds.extend(symbols.refs.iter().map(|found| found.kind));
        let values = vec![Value::Null; kinds.len()];
        let mut slots = Slots { values, kinds, fill: plan.fill };
        let is_subquery = plan.omits_time && scope.dimensions.as_slice() != outer;
        let is_stored = |source: &PlanSource| matches!(source, PlanSource::Measurement { .. });
        let mut series = match (symbols.calls.is_empty(), is_subquery) {
            (true, true) if plan.sources.iter().all(is_stored) => {
                self.inner_rows(&scope, outer, &symbols.refs, &exprs, &mut slots)?
            }
            (true, _) => self.raw_rows(&scope, &symbols.refs, &exprs, &mut slots)?,
            (false, _) => self.call_rows(&scope, &symbols, &exprs, &mut slots)?,
        };
        for series in series.iter_mut().filter(|series| is_subquery && series.ranks.is_empty()) {
            let windows = symbols.has_windows().then_some(&scope.windows);
            series.rank(windows, direction);
        }
        Ok(Table { columns: plan.column_names(), tag_names: scope.dimensions, series })
    }

    fn raw_rows(
        &self,
        scope: &Scope<'_>,
        refs: &[Ref],
        exprs: &[Resolved],
        slots: &mut Slots,
    ) -> Result<Vec<TableSeries>> {
        let mut out = Vec::new();
        if refs.iter().all(|found| found.kind == DataType::Unknown) {
            return Ok(out);
        }
        let page = scope.plan.page;
        let most = if page.limit == 0 { 0 } else { page.limit.saturating_add(page.offset) };
        let ordering = refs.len();
        let wanted = Wanted { refs, has_driver: false, is_ordered: true, most, ordering };
        let input = self.input(scope, wanted)?;
        for group in &input.groups {
            let all = self.points(&input, group, scope, wanted)?;
            let points = paged(&all, page.limit, page.offset);
            self.count(points.len() * row_cost(exprs.len()))?;
            slots.clear();
            let rows: Vec<(i64, Vec<Value>)> = points
                .iter()
                .map(|point| {
                    for (at, value) in point.aux.iter().enumerate() {
                        slots.put(at, value.clone());
                    }
                    (point.time, row_of(exprs, slots))
                })
                .collect();
            if !rows.is_empty() {
                out.push(TableSeries { key: group.key.clone(), rows, ranks: Vec::new() });
            }
            self.release(all.len() * point_cost(wanted.aux_len()));
        }
        Ok(out)
    }

    /// The same of a subquery whose groups the query around it reads together, by `outer` tags: rows are in
    /// the order of all its series.
    fn inner_rows(
        &self,
        scope: &Scope<'_>,
        outer: &[String],
        refs: &[Ref],
        exprs: &[Resolved],
        slots: &mut Slots,
    ) -> Result<Vec<TableSeries>> {
        if refs.iter().all(|found| found.kind == DataType::Unknown) {
            return Ok(Vec::new());
        }
        let mut all_refs = refs.to_vec();
        let tag = |name: &String| Ref { name: name.clone(), kind: DataType::Tag };
        all_refs.extend(scope.dimensions.iter().map(tag));
        let wide = Scope { dimensions: outer.to_vec(), ..scope.clone() };
        let ordering = refs.len();
        let wanted =
            Wanted { refs: &all_refs, has_driver: false, is_ordered: true, most: 0, ordering };
        let input = self.input(&wide, wanted)?;
        let mut found: BTreeMap<Key, TableSeries> = BTreeMap::new();
        let (mut rank, mut last) = (0, Key::default());
        for group in &input.groups {
            let points = self.points(&input, group, &wide, wanted)?;
            self.count(points.len() * row_cost(exprs.len()))?;
            let len = points.len();
            for point in points {
                let (values, tags) = point.aux.split_at(refs.len());
                let tags = tags.iter().map(|value| match value {
                    Value::Text(text) => text.to_string(),
                    _ => String::new(),
                });
                let key = Key { name: group.key.name.clone(), tags: tags.collect() };
                if key != last {
                    slots.clear();
                    last.clone_from(&key);
                }
                for (at, value) in values.iter().enumerate() {
                    slots.put(at, value.clone());
                }
                let series = found.entry(key).or_default();
                series.rows.push((point.time, row_of(exprs, slots)));
                series.ranks.push(rank);
                rank += 1;
            }
            self.release(len * point_cost(wanted.aux_len()));
        }
        let page = scope.plan.page;
        let mut out: Vec<TableSeries> = Vec::new();
        for (key, TableSeries { rows, ranks, .. }) in found {
            let rows = paged(&rows, page.limit, page.offset).to_vec();
            let ranks = paged(&ranks, page.limit, page.offset).to_vec();
            if !rows.is_empty() {
                out.push(TableSeries { key, rows, ranks });
            }
        }
        if scope.direction == Direction::Down {
            out.reverse();
        }
        Ok(out)
    }

    fn call_rows(
        &self,
        scope: &Scope<'_>,
        symbols: &Symbols,
        exprs: &[Resolved],
        slots: &mut Slots,
    ) -> Result<Vec<TableSeries>> {
        let is_selector = match symbols.calls.as_slice() {
            [Expr::Call { name, .. }] => compile::is_selector(name),
            _ => false,
        };
        let before = self.together(fields_of(symbols));
        let calls = symbols.calls.iter();
        let columns = calls.map(|call| self.column_of(scope, call, &symbols.refs, is_selector));
        let columns: Result<Vec<Vec<Stream>>> = columns.collect();
        self.apart(before);
        let columns = columns?;
        let mut next = vec![0; columns.len()];
        let mut out = Vec::new();
        loop {
            let heads = columns.iter().zip(&next);
            let keys = heads.filter_map(|(streams, at)| streams.get(*at).map(|s| &s.key));
            let first = keys.min_by(|a, b| scope.direction.order_keys(a, b)).cloned();
            let Some(key) = first else { return Ok(out) };
            let mut points: Vec<&[Point]> = Vec::new();
            for (streams, at) in columns.iter().zip(&mut next) {
                points.push(match streams.get(*at) {
                    Some(stream) if stream.key == key => {
                        *at += 1;
                        &stream.points
                    }
                    _ => &[],
                });
            }
            let longest = points.iter().map(|points| points.len()).max().unwrap_or(0);
            self.count(longest * row_cost(exprs.len()))?;
            let rows = side_by_side(&points, scope.direction, exprs, slots);
            out.push(TableSeries { key, rows, ranks: Vec::new() });
        }
    }
}

impl Evaluator<'_> {
    /// The streams of a function, as far as they are on the statement's page.
    fn column_of(
        &self,
        scope: &Scope<'_>,
        call: &Expr,
        refs: &[Ref],
        is_selector: bool,
    ) -> Result<Vec<Stream>> {
        let page = scope.plan.page;
        let mut streams = self.call(scope, call, refs, is_selector)?;
        if !streams.is_empty() {
            self.check_truths(call)?;
        }
        for stream in &mut streams {
            let kept = paged(&stream.points, page.limit, page.offset);
            if kept.len() != stream.points.len() {
                stream.points = kept.to_vec();
            }
        }
        streams.retain(|stream| !stream.points.is_empty());
        Ok(streams)
    }

    /// Fails in InfluxDB's words where a function is of booleans and may not be; where there are no
    /// points it is never called there.
    fn check_truths(&self, call: &Expr) -> Result<()> {
        let Expr::Call { name, args } = call else { return Ok(()) };
        let Some(arg) = args.first() else { return Ok(()) };
        self.check_truths(arg)?;
        match refusal_of_truths(name) {
            Some(words) if self.call_type(arg) == DataType::Boolean => {
                let found = "*query.booleanInterruptIterator";
                Err(EvalError::new(format!("unsupported {words} iterator type: {found}")))
            }
            _ => Ok(()),
        }
    }
}

/// Rows of points of equal times.
fn side_by_side(
    columns: &[&[Point]],
    direction: Direction,
    exprs: &[Resolved],
    slots: &mut Slots,
) -> Vec<(i64, Vec<Value>)> {
    let mut next = vec![0; columns.len()];
    let longest = columns.iter().map(|points| points.len()).max().unwrap_or(0);
    let mut rows = Vec::with_capacity(longest);
    slots.clear();
    loop {
        let times =
            columns.iter().zip(&next).filter_map(|(points, at)| Some(points.get(*at)?.time));
        let Some(time) = times.min_by(|a, b| direction.order(*a, *b)) else { return rows };
        for (at, points) in columns.iter().enumerate() {
            match points.get(next[at]).filter(|point| point.time == time) {
                Some(point) => {
                    next[at] += 1;
                    slots.set(at, point.value.clone());
                    for (idx, value) in point.aux.iter().enumerate() {
                        slots.put(columns.len() + idx, value.clone());
                    }
                }
                None => slots.put(at, Value::Null),
            }
        }
        rows.push((time, row_of(exprs, slots)));
    }
}

/// The cells of a row, with room for its time before them.
fn row_of(exprs: &[Resolved], slots: &Slots) -> Vec<Value> {
    let lookup = |name: &str, _: DataType| {
        let at = name.parse::<usize>().ok();
        at.and_then(|at| slots.values.get(at)).cloned().unwrap_or_default()
    };
    let mut row = Vec::with_capacity(exprs.len() + 1);
    row.extend(exprs.iter().map(|expr| match expr {
        Resolved::Slot(at) => slots.values.get(*at).cloned().unwrap_or_default(),
        Resolved::Expr(expr) => evaluate(expr, Level::Rows, &lookup),
    }));
    row
}
