//! `window` and `aggregateWindow`: rows by time.

use super::aggregates::Fold;
use super::selectors::Pick;
use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::stream::{Collector, Stream};
use crate::table::{Column, Grouped, Table};
use crate::time::{Duration, INFINITE, Windows};
use crate::value::{Record, Value};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "window", window),
    function("", "aggregateWindow", aggregate_window),
    function("", "timedMovingAverage", timed_moving_average),
    function("timezone", "location", location),
    function("timezone", "fixed", fixed),
];

/// Windows of one table.
const WINDOWS_MAX: usize = 1_000_000;

/// How a call cuts time.
struct Cut {
    every: Duration,
    period: Duration,
    offset: Duration,
    zone: Option<TimeZone>,
    creates_empty: bool,
}

/// A window, cut to the time that was asked for, and its rows.
struct Window {
    start: i64,
    stop: i64,
    rows: Vec<usize>,
}

/// The time zone that a location is; none is UTC.
///
/// # Errors
/// When there is no such zone.
pub(crate) fn zone_of(value: &Value) -> Result<Option<TimeZone>> {
    let Value::Record(record) = value else { return Ok(None) };
    let zone = match record.get("zone") {
        Some(Value::Text(name)) if !matches!(&**name, "" | "UTC") => Some(known_zone(name)?),
        _ => None,
    };
    match record.get("offset") {
        Some(Value::Duration(offset)) if !offset.is_zero() => {
            let seconds = i32::try_from(offset.nanos / 1_000_000_000).ok();
            let fixed = seconds.and_then(|seconds| jiff::tz::Offset::from_seconds(seconds).ok());
            let words = || Error::runtime(format!("invalid offset {}", offset.words()));
            fixed.map(TimeZone::fixed).map(Some).ok_or_else(words)
        }
        _ => Ok(zone),
    }
}

fn known_zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name).map_err(|_| Error::runtime(format!("unknown time zone {name:?}")))
}

fn record(zone: &str, offset: Duration) -> Value {
    let fields =
        vec![("zone".into(), Value::text(zone)), ("offset".into(), Value::Duration(offset))];
    Value::Record(Arc::new(Record::new(fields)))
}

fn location(call: Call<'_>) -> Result<Value> {
    let name = call.required_text("name")?;
    call.done()?;
    known_zone(&name)?;
    Ok(record(&name, Duration::default()))
}

fn fixed(call: Call<'_>) -> Result<Value> {
    let offset = call.duration("offset")?.unwrap_or_default();
    call.done()?;
    Ok(record("UTC", offset))
}

impl Cut {
    fn of(call: &Call<'_>, creates_empty: Option<bool>) -> Result<Cut> {
        let every = call.duration("every")?;
        let period = call.duration("period")?;
        let Some(every) = every.or(period) else {
            return Err(Error::name(format!("{}: missing required argument every", call.name)));
        };
        let period = period.unwrap_or(every);
        let is_bad = |duration: Duration| {
            duration.months < 0
                || duration.nanos < 0
                || duration.is_zero()
                || (duration.months != 0 && duration.nanos != 0)
        };
        if is_bad(every) || is_bad(period) {
            let message = format!(
                "{}: every and period must be positive, of months or of smaller units",
                call.name
            );
            return Err(Error::runtime(message));
        }
        let zone = super::scalars::zone(call)?;
        let creates_empty = call.switch("createEmpty")?.or(creates_empty).unwrap_or(false);
        let offset = call.duration("offset")?.unwrap_or_default();
        Ok(Cut { every, period, offset, zone, creates_empty })
    }

    fn windows(&self) -> Windows<'_> {
        let zone = self.zone.as_ref();
        Windows { every: self.every, period: self.period, offset: self.offset, zone }
    }

    /// The windows of a table, in order.
    fn split(
        &self,
        call: &Call<'_>,
        held: &mut Collector,
        table: &Table,
        time: &Column,
    ) -> Result<Vec<Window>> {
        let times = (0..table.rows).filter_map(|row| time.time(row));
        let seen = times.clone().min().zip(times.max());
        let Some(bounds) = table.bounds.or(seen.map(|(low, high)| (low, high.saturating_add(1))))
        else {
            return Ok(Vec::new());
        };
        if self.every == INFINITE {
            let rows = (0..table.rows).collect();
            return Ok(vec![Window { start: bounds.0, stop: bounds.1, rows }]);
        }
        held.reserve(table.rows * size_of::<usize>())?;
        let windows = self.windows();
        let mut found: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        if self.creates_empty {
            self.fill(&windows, bounds, &mut found)?;
        }
        let mut last: Option<(i64, i64)> = None;
        let mut entries = 0_usize;
        for row in 0..table.rows {
            call.evaluation.tick(row)?;
            let Some(at) = time.time(row) else { continue };
            if self.period == self.every {
                let start = match last {
                    Some((start, stop)) if start <= at && at < stop => start,
                    _ => windows.start_of(at),
                };
                let stop = windows.stop_of(start);
                last = Some((start, stop));
                // Windows of the last days of months leave gaps.
                if at < stop {
                    found.entry(start).or_default().push(row);
                }
                continue;
            }
            let mut start = windows.start_of(at);
            while at < windows.stop_of(start) {
                entries += 1;
                if entries.is_multiple_of(1024) {
                    held.reserve(1024 * 32)?;
                    call.evaluation.check_time()?;
                }
                found.entry(start).or_default().push(row);
                start = windows.previous(start);
            }
        }
        too_many(found.len())?;
        held.reserve(found.len() * 64)?;
        Ok(clipped(found, &windows, table.bounds))
    }

    /// All windows of the time, without rows.
    fn fill(
        &self,
        windows: &Windows<'_>,
        bounds: (i64, i64),
        found: &mut BTreeMap<i64, Vec<usize>>,
    ) -> Result<()> {
        let first = windows.start_of(bounds.0);
        // There is no window before the first moment of all, nor behind the last one.
        let before = std::iter::successors(Some(first), |start| {
            Some(windows.previous(*start)).filter(|before| before < start)
        });
        for start in before.skip(1).take_while(|start| bounds.0 < windows.stop_of(*start)) {
            found.insert(start, Vec::new());
            too_many(found.len())?;
        }
        let behind = std::iter::successors(Some(first), |start| {
            Some(windows.next(*start)).filter(|behind| start < behind)
        });
        for start in behind.take_while(|start| *start < bounds.1) {
            found.insert(start, Vec::new());
            too_many(found.len())?;
        }
        Ok(())
    }
}

/// Windows by their start, cut to the time that was asked for.
fn clipped(
    found: BTreeMap<i64, Vec<usize>>,
    windows: &Windows<'_>,
    bounds: Option<(i64, i64)>,
) -> Vec<Window> {
    let mut cut: Vec<Window> = Vec::with_capacity(found.len());
    for (start, rows) in found {
        let stop = windows.stop_of(start);
        let (start, stop) = match bounds {
            Some((first, last)) => (start.max(first), stop.min(last)),
            None => (start, stop),
        };
        match cut.last_mut() {
            _ if stop <= start => {}
            // Windows with the same bounds have the same group key: they are one table.
            Some(last) if (last.start, last.stop) == (start, stop) => {
                last.rows.extend(rows);
                last.rows.sort_unstable();
            }
            _ => cut.push(Window { start, stop, rows }),
        }
    }
    cut
}

fn too_many(count: usize) -> Result<()> {
    match WINDOWS_MAX < count {
        true => Err(Error::limit(format!(
            "more than {WINDOWS_MAX} windows of one table: ask for longer ones, or for less time"
        ))),
        false => Ok(()),
    }
}

/// The rows of a window as a table.
fn cut_out(table: &Table, window: &Window, (start_name, stop_name): (&str, &str)) -> Table {
    let mut piece = table.picked(&window.rows);
    let columns = [(start_name, window.start), (stop_name, window.stop)];
    let missing: Vec<Column> = columns
        .iter()
        .filter(|(name, _)| piece.column(name).is_none())
        .map(|(name, time)| Column::key(name, Value::Time(*time)))
        .collect();
    piece.columns.splice(0..0, missing);
    for (name, time) in columns {
        piece.set(Column::key(name, Value::Time(time)));
    }
    piece
}

fn window(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let cut = Cut::of(&call, None)?;
    let time_name = call.text_or("timeColumn", "_time")?;
    let (start, stop) =
        (call.text_or("startColumn", "_start")?, call.text_or("stopColumn", "_stop")?);
    call.done()?;
    let mut grouped = Grouped::default();
    let mut out = call.evaluation.collector();
    let mut empty = Vec::new();
    call.evaluation.each(&stream, &mut |table| {
        let time = table.column(&time_name).ok_or_else(|| no_column(&time_name))?;
        let mut held = call.evaluation.collector();
        for window in cut.split(&call, &mut held, &table, time)? {
            let piece = cut_out(&table, &window, (&start, &stop));
            out.reserve(piece.size())?;
            if piece.rows == 0 {
                empty.push(piece);
                continue;
            }
            let builder = grouped.builder(piece.key(), table.bounds);
            let is_key = |name: &str| piece.column(name).is_some_and(|column| column.is_key);
            for row in 0..piece.rows {
                builder.push(&piece, row, &is_key).map_err(super::collision)?;
            }
        }
        Ok(())
    })?;
    let mut all: Vec<Table> = grouped.finish().collect();
    if !empty.is_empty() {
        all.extend(empty);
        all.sort_by_cached_key(Table::key);
    }
    for table in all {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

/// What `aggregateWindow` does with each window.
enum Step {
    Fold(Fold, &'static str),
    Pick(Pick),
    /// A function of the query's own.
    Call(Value),
}

/// Where the results of windows go.
struct Target {
    column: Arc<str>,
    /// `_start` or `_stop`.
    source: Arc<str>,
    time: Arc<str>,
}

impl Target {
    fn time_of(&self, window: &Window) -> i64 {
        if &*self.source == "_start" { window.start } else { window.stop }
    }
}

fn aggregate_window(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let cut = Cut::of(&call, Some(true))?;
    let step = match call.required("fn")? {
        Value::Builtin(builtin) if builtin.package.is_empty() => {
            match (Fold::of(builtin.name), Pick::of(builtin.name)) {
                (Some(fold), _) => Step::Fold(fold, builtin.name),
                (_, Some(pick)) => Step::Pick(pick),
                _ => Step::Call(Value::Builtin(builtin)),
            }
        }
        value @ (Value::Closure(_) | Value::Builtin(_)) => Step::Call(value),
        other => return Err(call.wrong("fn", "function", &other)),
    };
    let target = Target {
        column: call.text_or("column", "_value")?,
        source: call.text_or("timeSrc", "_stop")?,
        time: call.text_or("timeDst", "_time")?,
    };
    call.done()?;
    windowed(&call, &stream, &cut, &step, &target)
}

fn timed_moving_average(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let cut = Cut::of(&call, None)?;
    let column = call.text_or("column", "_value")?;
    call.done()?;
    let step = Step::Fold(Fold::Mean, "mean");
    let target = Target { column, source: "_stop".into(), time: "_time".into() };
    windowed(&call, &stream, &cut, &step, &target)
}

fn windowed(
    call: &Call<'_>,
    stream: &Stream,
    cut: &Cut,
    step: &Step,
    target: &Target,
) -> Result<Value> {
    let mut out = call.evaluation.collector();
    // Tables that are windows themselves become one again.
    let mut grouped = Grouped::default();
    call.evaluation.each(stream, &mut |table| {
        let time = table.column("_time").ok_or_else(|| no_column("_time"))?;
        let column = table.column(&target.column).ok_or_else(|| no_column(&target.column))?;
        // What the windows take is given back with the table.
        let mut held = call.evaluation.collector();
        let mut windows = cut.split(call, &mut held, &table, time)?;
        if let (Step::Fold(Fold::Count | Fold::Sum | Fold::Mean, _), Some((_, stop))) =
            (step, table.bounds)
        {
            // A row at the very end, as another window leaves one, counts for selectors alone.
            let is_within = |row: &usize| time.time(*row).is_some_and(|at| at < stop);
            windows.iter_mut().for_each(|window| window.rows.retain(is_within));
        }
        let made = match step {
            Step::Fold(fold, name) => folded(&table, (*fold, name), &windows, target)?,
            Step::Pick(pick) => {
                pick.check(column.kind)?;
                let picked = windows
                    .iter()
                    .map(|window| (target.time_of(window), pick.run(column, &window.rows)));
                // An empty window is a row of nulls, if empty ones are wanted.
                let (times, rows): (Vec<i64>, Vec<Option<usize>>) =
                    picked.filter(|(_, row)| cut.creates_empty || row.is_some()).unzip();
                finish(table.picked_or_null(&rows), &windows, times, target)
            }
            Step::Call(function) => called(call, &table, (cut, &windows), function, target)?,
        };
        out.reserve(made.size())?;
        let builder = grouped.builder(made.key(), made.bounds);
        let is_key = |name: &str| made.column(name).is_some_and(|column| column.is_key);
        for row in 0..made.rows {
            builder.push(&made, row, &is_key).map_err(super::collision)?;
        }
        Ok(())
    })?;
    for table in grouped.finish().filter(|table| table.rows != 0) {
        out.push(table)?;
    }
    Ok(Value::Stream(out.finish().stream()))
}

/// A row for each window, of what is made of its values.
fn folded(
    table: &Table,
    (fold, name): (Fold, &str),
    windows: &[Window],
    target: &Target,
) -> Result<Table> {
    let column = table.column(&target.column).ok_or_else(|| no_column(&target.column))?;
    let kind = fold.kind(name, column.kind)?;
    let values: Vec<Value> = windows.iter().map(|window| fold.run(column, &window.rows)).collect();
    let times = windows.iter().map(|window| target.time_of(window)).collect();
    let value = match values.iter().all(|value| matches!(value, Value::Float(_))) {
        true => Column::floats(&target.column, values.iter().filter_map(Value::as_f64).collect()),
        false => Column::values(&target.column, kind, values),
    };
    let rows = windows.len();
    let keys = table.key_alone(rows);
    let columns = table.columns.iter().filter_map(|one| match &*one.name {
        name if name == &*target.column => Some(value.clone()),
        name if name == &*target.time => Some(one.clone()),
        name => keys.column(name).cloned(),
    });
    let mut made = Table { columns: columns.collect(), rows, bounds: table.bounds };
    made.set(value.clone());
    Ok(finish(made, windows, times, target))
}

/// The table with the times of its windows, and the whole time as its bounds.
fn finish(mut table: Table, windows: &[Window], times: Vec<i64>, target: &Target) -> Table {
    let start = windows.first().map(|window| window.start);
    let stop = windows.last().map(|window| window.stop);
    let bounds = table.bounds.or(start.zip(stop)).unwrap_or_default();
    table.set(Column::times(&target.time, times));
    let ends = Window { start: bounds.0, stop: bounds.1, rows: Vec::new() };
    let rows = table.rows;
    let mut table =
        cut_out(&table, &Window { rows: (0..rows).collect(), ..ends }, ("_start", "_stop"));
    table.rows = rows;
    table
}

/// Windows through a function of the query's own, one stream of them for each table.
fn called(
    call: &Call<'_>,
    table: &Table,
    (cut, windows): (&Cut, &[Window]),
    function: &Value,
    target: &Target,
) -> Result<Table> {
    let mut pieces = call.evaluation.collector();
    for window in windows {
        pieces.push(cut_out(table, window, ("_start", "_stop")))?;
    }
    let stream = Value::Stream(pieces.finish().stream());
    let mut args = vec![("tables", stream)];
    let takes_column = match function {
        Value::Closure(closure) => {
            closure.function.params.iter().any(|param| &*param.name == "column")
        }
        _ => true,
    };
    if takes_column {
        args.push(("column", Value::Text(target.column.clone())));
    }
    let Value::Stream(result) = call.apply(function, &args)? else {
        return Err(Error::runtime("fn must return a stream of tables"));
    };
    let mut builder = crate::table::Builder::default();
    builder.bounds = table.bounds;
    let mut times = Vec::new();
    let is_key = |name: &str| table.column(name).is_some_and(|column| column.is_key);
    call.evaluation.each(&result, &mut |piece| {
        let piece = match piece.rows == 0 && cut.creates_empty {
            true => piece.picked_or_null(&[None]),
            false => piece,
        };
        let source = piece.column(&target.source).ok_or_else(|| no_column(&target.source))?;
        for row in 0..piece.rows {
            times.push(source.time(row).unwrap_or_default());
            builder.push(&piece, row, &is_key).map_err(super::collision)?;
        }
        Ok(())
    })?;
    let order = |name: &str| table.columns.iter().position(|column| &*column.name == name);
    let mut made = finish(builder.finish(), windows, times, target);
    made.columns.sort_by_key(|column| order(&column.name).unwrap_or(usize::MAX));
    Ok(made)
}
