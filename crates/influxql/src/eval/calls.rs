//! Functions over what the sources have.

use super::fill::Filling;
use super::functions::fold::{Cells, Fold};
use super::functions::holt_winters::Forecast;
use super::functions::reduce;
use super::functions::stream_functions::Transformation;
use super::inputs::Input;
use super::plan::PlanSource;
use super::point::{Direction, Key, Point, Stream};
use super::read_request::{Ref, Scope, Wanted};
use super::rewrite::{takes_text, type_of_call};
use super::{Evaluator, Result};
use crate::ast::{DataType, Expr, Fill};
use crate::source::EvalError;
use std::sync::Mutex;

impl Evaluator<'_> {
    /// The streams of a function, by their keys in the statement's order. `refs` stand beside what
    /// a selector picks; a lone selector keeps the times of what it picks.
    pub(super) fn call(
        &self,
        scope: &Scope<'_>,
        call: &Expr,
        refs: &[Ref],
        is_selector: bool,
    ) -> Result<Vec<Stream>> {
        let Expr::Call { name, args } = call else { return Ok(Vec::new()) };
        let Some(arg) = args.first() else { return Ok(Vec::new()) };
        if self.call_type(arg) == DataType::String && !takes_text(name) {
            let message = format!("unsupported {name} iterator type *query.stringIterator");
            return Err(EvalError::new(message));
        }
        match name.as_str() {
            "derivative"
            | "non_negative_derivative"
            | "difference"
            | "non_negative_difference"
            | "moving_average"
            | "elapsed" => self.transform(&earlier(scope), name, args, is_selector),
            "cumulative_sum" | "integral" => self.transform(scope, name, args, is_selector),
            "holt_winters" | "holt_winters_with_fit" => self.holt_winters(scope, name, args),
            "top" | "bottom" if 2 < args.len() => self.top_of_tags(scope, name, args, refs),
            _ => {
                if let (Some(fold), Expr::Var { kind, .. }, []) = (Fold::parse(name), arg, refs)
                    && !(fold == Fold::First && *kind == DataType::Boolean)
                    && let Some(streams) = self.fold(scope, fold, name, arg, is_selector)?
                {
                    return Ok(streams);
                }
                if self.is_end(scope, name) {
                    return self.ends(scope, name, arg, refs, is_selector);
                }
                self.aggregate(scope, name, args, refs, is_selector)
            }
        }
    }

    /// Whether a function takes one point of all of the time of what is stored.
    fn is_end(&self, scope: &Scope<'_>, name: &str) -> bool {
        let is_stored = |source: &PlanSource| matches!(source, PlanSource::Measurement { .. });
        matches!(name, "first" | "last")
            && scope.windows.interval.is_zero()
            && scope.plan.sources.iter().all(is_stored)
    }

    /// The first or last points; of several at one time the better of those two that come first in the
    /// order of the rows: InfluxDB looks at no more.
    fn ends(
        &self,
        scope: &Scope<'_>,
        name: &str,
        arg: &Expr,
        refs: &[Ref],
        is_selector: bool,
    ) -> Result<Vec<Stream>> {
        let Expr::Var { name: field, kind } = arg else { return Ok(Vec::new()) };
        let mut all = vec![Ref { name: field.clone(), kind: *kind }];
        all.extend_from_slice(refs);
        let ordering = all.len();
        let wanted = Wanted { refs: &all, has_driver: true, is_ordered: true, most: 1, ordering };
        let mut inner = scope.clone();
        inner.direction = if name == "first" { Direction::Up } else { Direction::Down };
        let input = self.input(&inner, wanted)?;
        let mut out = Vec::new();
        for group in &input.groups {
            let mut points = self.points(&input, group, &inner, wanted)?;
            points.truncate(2);
            points = in_windows(&inner, name, std::slice::from_ref(arg), *kind, &points);
            let points = self.finished(scope, name, *kind, refs.len(), is_selector, points)?;
            if !points.is_empty() {
                out.push(Stream { key: group.key.clone(), points });
            }
        }
        out.sort_by(|a, b| scope.direction.order_keys(&a.key, &b.key));
        Ok(out)
    }

    /// The type of a function's values.
    pub(super) fn call_type(&self, call: &Expr) -> DataType {
        match call {
            Expr::Var { kind, .. } => *kind,
            Expr::Call { name, args } => {
                let arg = args.first().map_or(DataType::Unknown, |arg| self.call_type(arg));
                type_of_call(name, arg)
            }
            _ => DataType::Unknown,
        }
    }

    /// Visits the streams that a function's argument has.
    fn argument(
        &self,
        scope: &Scope<'_>,
        arg: &Expr,
        refs: &[Ref],
        is_selector: bool,
        visit: &mut dyn FnMut(Stream) -> Result<()>,
    ) -> Result<()> {
        let Expr::Var { name, kind } = arg else {
            return self.call(scope, arg, &[], is_selector)?.into_iter().try_for_each(visit);
        };
        let mut all = vec![Ref { name: name.clone(), kind: *kind }];
        all.extend_from_slice(refs);
        let ordering = all.len();
        let wanted = Wanted { refs: &all, has_driver: true, is_ordered: true, most: 0, ordering };
        let input = self.input(scope, wanted)?;
        for group in &input.groups {
            let points = self.points(&input, group, scope, wanted)?;
            if !points.is_empty() {
                visit(Stream { key: group.key.clone(), points })?;
            }
        }
        Ok(())
    }

    fn transform(
        &self,
        scope: &Scope<'_>,
        name: &str,
        args: &[Expr],
        is_selector: bool,
    ) -> Result<Vec<Stream>> {
        let kind = self.call_type(&args[0]);
        let (windows, direction) = (&scope.windows, scope.direction);
        let transformation = Transformation { name, args, kind, windows, direction };
        let mut out = Vec::new();
        self.argument(scope, &args[0], &[], is_selector, &mut |stream| {
            let mut points = transformation.apply(&stream.points);
            // InfluxDB's integral of whole numbers says when its time begins, that of others not.
            if name == "integral" && kind == DataType::Integer {
                windows.label_all(points.iter_mut().map(|point| &mut point.time));
            }
            if !points.is_empty() {
                out.push(Stream { key: stream.key, points });
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn holt_winters(&self, scope: &Scope<'_>, name: &str, args: &[Expr]) -> Result<Vec<Stream>> {
        let [inner, Expr::Integer(horizon), Expr::Integer(season)] = args else {
            return Ok(Vec::new());
        };
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let forecast = Forecast {
            horizon: size(*horizon),
            season: size(*season),
            interval: scope.windows.interval.duration.max(1),
            has_fit: name == "holt_winters_with_fit",
        };
        let mut out = Vec::new();
        self.argument(scope, inner, &[], false, &mut |stream| {
            let points = forecast.points(self, &stream.points)?;
            if !points.is_empty() {
                out.push(Stream { key: stream.key, points });
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn aggregate(
        &self,
        scope: &Scope<'_>,
        name: &str,
        args: &[Expr],
        refs: &[Ref],
        is_selector: bool,
    ) -> Result<Vec<Stream>> {
        let kind = self.call_type(&args[0]);
        let mut out = Vec::new();
        self.argument(scope, &args[0], refs, is_selector, &mut |stream| {
            let mut points = in_windows(scope, name, args, kind, &stream.points);
            if name == "distinct" {
                scope.windows.label_all(points.iter_mut().map(|point| &mut point.time));
            }
            let keeps_times = matches!(name, "distinct" | "top" | "bottom" | "sample");
            if !keeps_times {
                points = self.finished(scope, name, kind, refs.len(), is_selector, points)?;
            }
            if !points.is_empty() {
                out.push(Stream { key: stream.key, points });
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Points labelled with their windows, and windows without points filled.
    fn finished(
        &self,
        scope: &Scope<'_>,
        name: &str,
        kind: DataType,
        aux_len: usize,
        is_selector: bool,
        mut points: Vec<Point>,
    ) -> Result<Vec<Point>> {
        let windows = &scope.windows;
        let has_windows = !windows.interval.is_zero();
        if is_selector && !has_windows {
            return Ok(points);
        }
        windows.label_all(points.iter_mut().map(|point| &mut point.time));
        if !has_windows || scope.plan.fill == Fill::None {
            return Ok(points);
        }
        let fill = match (name, scope.plan.fill) {
            ("count", Fill::Null) => Fill::Integer(0),
            (_, fill) => fill,
        };
        let (kind, direction) = (type_of_call(name, kind), scope.direction);
        Filling { fill, windows, direction, kind, aux_len }.apply(self, points)
    }

    /// The greatest or least of those that are the greatest or least of their tags.
    fn top_of_tags(
        &self,
        scope: &Scope<'_>,
        name: &str,
        args: &[Expr],
        refs: &[Ref],
    ) -> Result<Vec<Stream>> {
        let mut inner = scope.clone();
        for arg in &args[1..args.len() - 1] {
            if let Expr::Var { name, .. } = arg {
                inner.dimensions.push(name.clone());
            }
        }
        inner.dimensions.sort();
        inner.dimensions.dedup();
        let kind = self.call_type(&args[0]);
        let best = if name == "top" { "max" } else { "min" };
        let mut merged: Vec<Stream> = Vec::new();
        self.argument(&inner, &args[0], refs, true, &mut |stream| {
            let points = in_windows(&inner, best, &args[..1], kind, &stream.points);
            let tags = scope.dimensions.iter().map(|name| {
                let at = inner.dimensions.iter().position(|other| other == name);
                at.and_then(|at| stream.key.tags.get(at)).cloned().unwrap_or_default()
            });
            let key = Key { name: stream.key.name.clone(), tags: tags.collect() };
            match merged.iter_mut().find(|other| other.key == key) {
                Some(other) => other.points.extend(points),
                None => merged.push(Stream { key, points }),
            }
            Ok(())
        })?;
        for stream in &mut merged {
            stream.points.sort_by(|a, b| scope.direction.order(a.time, b.time));
            stream.points = in_windows(scope, name, args, kind, &stream.points);
        }
        merged.sort_by(|a, b| scope.direction.order_keys(&a.key, &b.key));
        Ok(merged)
    }

    /// The same of functions that need no order, without a copy of the samples; none where there
    /// are rows to look at.
    fn fold(
        &self,
        scope: &Scope<'_>,
        fold: Fold,
        name: &str,
        arg: &Expr,
        is_selector: bool,
    ) -> Result<Option<Vec<Stream>>> {
        let Expr::Var { name: field, kind } = arg else { return Ok(None) };
        let refs = [Ref { name: field.clone(), kind: *kind }];
        let wanted =
            Wanted { refs: &refs, has_driver: true, is_ordered: false, most: 0, ordering: 1 };
        let input = self.input(scope, wanted)?;
        if input.scans.iter().any(|scan| scan.foldable().is_none()) {
            return Ok(None);
        }
        let cells = self.fold_all(scope, fold, &input)?;
        if self.is_end(scope, name) && cells.iter().any(Cells::has_tie) {
            return Ok(None);
        }
        let mut out = Vec::new();
        for (group, cells) in input.groups.iter().zip(cells) {
            let points = cells.points(fold, *kind, scope.direction);
            let points = self.finished(scope, name, *kind, 0, is_selector, points)?;
            if !points.is_empty() {
                out.push(Stream { key: group.key.clone(), points });
            }
        }
        Ok(Some(out))
    }

    /// The windows of all groups: every set is read once, in its own order.
    fn fold_all(&self, scope: &Scope<'_>, fold: Fold, input: &Input<'_>) -> Result<Vec<Cells>> {
        let mut cells: Vec<Cells> = Vec::new();
        cells.resize_with(input.groups.len(), Cells::default);
        for (at, scan) in input.scans.iter().enumerate() {
            let Some(set) = scan.foldable() else { continue };
            let mut group_of = vec![u32::MAX; set.set.len()];
            for (idx, group) in input.groups.iter().enumerate() {
                for (_, member) in group.members.iter().filter(|(scan, _)| *scan as usize == at) {
                    if let Some(slot) = group_of.get_mut(scan.first_series(*member) as usize) {
                        *slot = idx as u32;
                    }
                }
            }
            let casts = scan.first_cast().filter(|(from, to)| from != to);
            let truncates = casts.is_some_and(|(from, to)| {
                from == DataType::Float && matches!(to, DataType::Integer | DataType::Unsigned)
            });
            let cells = Mutex::new(&mut cells);
            let mut whole: Vec<f64> = Vec::new();
            let mut failure = None;
            set.set.read(0..set.set.len(), &mut |idx, times, values| {
                let group = group_of.get(idx).copied().unwrap_or(u32::MAX) as usize;
                let mut cells = cells.lock().unwrap_or_else(|broken| broken.into_inner());
                let Some(cells) = cells.get_mut(group) else { return };
                let values = match truncates {
                    true => {
                        whole.clear();
                        whole.extend(values.iter().map(|value| value.trunc()));
                        whole.as_slice()
                    }
                    false => values,
                };
                let before = cells.len();
                cells.add(fold, &scope.windows, times, values);
                failure = failure.take().or(self.count((cells.len() - before) * 2).err());
            })?;
            if let Some(failure) = failure {
                return Err(failure);
            }
        }
        Ok(cells)
    }
}

/// The scope with one more window before its first, as far as there may be one: what needs a point's
/// forerunner.
fn earlier<'p>(scope: &Scope<'p>) -> Scope<'p> {
    let mut scope = scope.clone();
    let duration = scope.windows.interval.duration;
    let (first, last) = scope.bounds;
    let windows = &mut scope.windows;
    match scope.direction {
        Direction::Up => {
            let start = windows.start.saturating_sub(duration).max(first);
            windows.start = windows.start.min(start);
        }
        Direction::Down => {
            let end = windows.end.saturating_add(duration).min(last);
            windows.end = windows.end.max(end);
        }
    }
    scope
}

/// A function over the points of each window.
fn in_windows(
    scope: &Scope<'_>,
    name: &str,
    args: &[Expr],
    kind: DataType,
    points: &[Point],
) -> Vec<Point> {
    let mut out = Vec::new();
    let mut rest = points;
    while let Some(first) = rest.first() {
        let (start, end) = scope.windows.around(first.time);
        let is_out = |point: &Point| point.time < start || end <= point.time;
        let len = rest.iter().position(is_out).unwrap_or(rest.len()).max(1);
        let (window, after) = rest.split_at(len);
        rest = after;
        let present: Vec<Point>;
        let window = match window.iter().any(|point| point.value.is_null()) {
            true => {
                present = window.iter().filter(|p| !p.value.is_null()).cloned().collect();
                present.as_slice()
            }
            false => window,
        };
        if window.is_empty() {
            continue;
        }
        let picked = reduce(name, args, kind, window);
        let has_times = picked.iter().any(|picked| picked.time.is_some());
        let begin = out.len();
        out.extend(picked.into_iter().map(|picked| Point {
            time: picked.time.unwrap_or(start),
            value: picked.value,
            aux: picked.aux,
        }));
        if has_times {
            // Upwards within a window, whichever way windows go.
            out[begin..].sort_by_key(|point| point.time);
        }
    }
    out
}
