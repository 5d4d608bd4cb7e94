//! Functions that keep some of a table's rows as they are: `first`, `max`, `limit`, `sort`, `top`
//! and their kin.

use super::{Builtin, Call, function, no_column};
use crate::error::{Error, Result};
use crate::stream::Stream;
use crate::table::{Column, Table};
use crate::value::{Kind, Value, is_less};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "first", select),
    function("", "last", select),
    function("", "min", select),
    function("", "max", select),
    function("", "limit", limit),
    function("", "tail", limit),
    function("", "sort", sort),
    function("", "top", top),
    function("", "bottom", top),
    function("", "distinct", distinct),
    function("", "unique", unique),
    function("", "sample", sample),
    function("", "highestMax", highest),
    function("", "highestAverage", highest),
    function("", "highestCurrent", highest),
    function("", "lowestMin", highest),
    function("", "lowestAverage", highest),
    function("", "lowestCurrent", highest),
];

/// Which row is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pick {
    First,
    Last,
    Min,
    Max,
}

impl Pick {
    /// The one of a function.
    pub(super) fn of(name: &str) -> Option<Pick> {
        Some(match name {
            "first" => Pick::First,
            "last" => Pick::Last,
            "min" => Pick::Min,
            "max" => Pick::Max,
            _ => return None,
        })
    }

    /// # Errors
    /// Fails for a column of a type that has no order in Flux.
    pub(super) fn check(self, kind: Kind) -> Result<()> {
        let needs_order = matches!(self, Pick::Min | Pick::Max);
        if !needs_order || kind.is_number() || kind == Kind::Time {
            return Ok(());
        }
        let name = if self == Pick::Min { "min" } else { "max" };
        let kind = kind.words();
        Err(Error::runtime(format!(
            "{name}: invalid use of function: no implementation for type {kind}"
        )))
    }

    /// The row of those that it keeps, if one has a value.
    pub(super) fn run(self, column: &Column, rows: &[usize]) -> Option<usize> {
        let mut present = rows.iter().copied().filter(|row| !column.get(*row).is_null());
        match self {
            Pick::First => present.next(),
            Pick::Last => present.next_back(),
            // The first of equal ones.
            Pick::Min => present.reduce(|best, row| {
                if is_less(&column.get(row), &column.get(best)) { row } else { best }
            }),
            Pick::Max => present.reduce(|best, row| {
                if is_less(&column.get(best), &column.get(row)) { row } else { best }
            }),
        }
    }
}

/// What is made of each table.
type OfTable<'f> = dyn FnMut(&Table) -> Result<Option<Table>> + 'f;

/// A stream of what is made of each table.
fn map_tables(call: &Call<'_>, stream: &Stream, make: &mut OfTable<'_>) -> Result<Value> {
    let mut out = call.evaluation.collector();
    call.evaluation.each(stream, &mut |table| match make(&table)? {
        Some(made) => out.push(made),
        None => Ok(()),
    })?;
    Ok(Value::Stream(out.finish().stream()))
}

fn select(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let name = call.text_or("column", "_value")?;
    call.done()?;
    let pick = Pick::of(call.name).ok_or_else(|| Error::runtime("no selector"))?;
    map_tables(&call, &stream, &mut |table| {
        let column = table.column(&name).ok_or_else(|| no_column(&name))?;
        pick.check(column.kind)?;
        let rows: Vec<usize> = (0..table.rows).collect();
        Ok(pick.run(column, &rows).map(|row| table.picked(&[row])))
    })
}

/// `quantile(method: "exact_selector")`: the row at that rank.
pub(super) fn select_quantile(
    call: &Call<'_>,
    stream: &Stream,
    name: &str,
    q: f64,
) -> Result<Value> {
    map_tables(call, stream, &mut |table| {
        let column = table.column(name).ok_or_else(|| no_column(name))?;
        let mut rows: Vec<usize> =
            (0..table.rows).filter(|row| !column.get(*row).is_null()).collect();
        rows.sort_by(|a, b| column.get(*a).order(&column.get(*b)));
        let at = ((q * rows.len() as f64).ceil() as usize).saturating_sub(1);
        Ok(rows.get(at.min(rows.len().saturating_sub(1))).map(|row| table.picked(&[*row])))
    })
}

fn limit(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name(format!("{}: missing required argument n", call.name));
    let count = call.count("n")?.ok_or_else(missing)?;
    let offset = call.count("offset")?.unwrap_or(0);
    call.done()?;
    map_tables(&call, &stream, &mut |table| {
        let range = match call.name {
            "tail" => {
                let end = table.rows.saturating_sub(offset);
                end.saturating_sub(count)..end
            }
            _ => offset.min(table.rows)..offset.saturating_add(count).min(table.rows),
        };
        let rows: Vec<usize> = range.collect();
        Ok((!rows.is_empty()).then(|| table.picked(&rows)))
    })
}

/// The rows in the order of those columns, nulls first both ways; equal ones stay as they were.
fn sorted(table: &Table, columns: &[Arc<str>], is_down: &dyn Fn() -> bool) -> Vec<usize> {
    let columns: Vec<&Column> = columns.iter().filter_map(|name| table.column(name)).collect();
    let is_down = is_down();
    let mut rows: Vec<usize> = (0..table.rows).collect();
    let order = |a: &usize, b: &usize| {
        let orders = columns.iter().map(|column| {
            let (one, other) = (column.get(*a), column.get(*b));
            let order = one.order(&other);
            if is_down && !one.is_null() && !other.is_null() { order.reverse() } else { order }
        });
        orders.into_iter().find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
    };
    rows.sort_by(order);
    rows
}

fn sort(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let columns = call.texts("columns")?.unwrap_or_else(|| vec!["_value".into()]);
    let is_down = call.switch("desc")?.unwrap_or(false);
    call.done()?;
    map_tables(&call, &stream, &mut |table| {
        Ok(Some(table.picked(&sorted(table, &columns, &|| is_down))))
    })
}

fn top(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name(format!("{}: missing required argument n", call.name));
    let count = call.count("n")?.ok_or_else(missing)?;
    let columns = call.texts("columns")?.unwrap_or_else(|| vec!["_value".into()]);
    call.done()?;
    map_tables(&call, &stream, &mut |table| {
        let mut rows = sorted(table, &columns, &|| call.name == "top");
        rows.truncate(count);
        Ok(Some(table.picked(&rows)))
    })
}

/// The first row of each value.
fn first_of_each(table: &Table, column: Option<&Column>) -> Vec<usize> {
    let Some(column) = column else { return Vec::new() };
    let mut seen = BTreeSet::new();
    (0..table.rows).filter(|row| seen.insert(Ordered(column.get(*row)))).collect()
}

/// A cell in a sorted set.
struct Ordered(Value);

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> Ordering {
        self.0.kind().cmp(&other.0.kind()).then_with(|| self.0.order(&other.0))
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Ordered) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ordered {}

/// The values of a column, none twice, as `_value`.
fn distinct(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let name = call.text_or("column", "_value")?;
    call.done()?;
    map_tables(&call, &stream, &mut |table| {
        let (kind, values) = match table.column(&name) {
            None => (Kind::Text, vec![Value::text("")]),
            Some(column) if column.is_key => (column.kind, vec![column.get(0)]),
            Some(column) => {
                let rows = first_of_each(table, Some(column));
                (column.kind, rows.iter().map(|row| column.get(*row)).collect())
            }
        };
        let mut made = table.key_alone(values.len());
        made.set(Column::values("_value", kind, values));
        Ok(Some(made))
    })
}

/// The first row of each value of a column.
fn unique(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let name = call.text_or("column", "_value")?;
    call.done()?;
    map_tables(&call, &stream, &mut |table| {
        let column = table.column(&name).ok_or_else(|| no_column(&name))?;
        Ok(Some(table.picked(&first_of_each(table, Some(column)))))
    })
}

/// Every n-th row, beginning with one by its position.
fn sample(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name("sample: missing required argument n");
    let every = call.count("n")?.ok_or_else(missing)?.max(1);
    let start = call.integer("pos")?.and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
    call.optional("column");
    call.done()?;
    map_tables(&call, &stream, &mut |table| {
        let rows: Vec<usize> = (start..table.rows).step_by(every).collect();
        Ok((!rows.is_empty()).then(|| table.picked(&rows)))
    })
}

/// `highestMax(n, column, groupColumns)` and its kin: a row of each group, then the best of them.
fn highest(call: Call<'_>) -> Result<Value> {
    let stream = call.tables()?;
    let missing = || Error::name(format!("{}: missing required argument n", call.name));
    let count = call.count("n")?.ok_or_else(missing)?;
    let name = call.text_or("column", "_value")?;
    let groups = call.texts("groupColumns")?.unwrap_or_default();
    call.done()?;
    let grouped = super::grouping::by(&call, &stream, &groups)?;
    let step = match call.name {
        "highestMax" => "max",
        "lowestMin" => "min",
        "highestCurrent" | "lowestCurrent" => "last",
        _ => "mean",
    };
    let (_charge, list) = (grouped.1, grouped.0);
    let mut builder = crate::table::Builder::default();
    for table in list.iter() {
        let column = table.column(&name).ok_or_else(|| no_column(&name))?;
        let rows: Vec<usize> = (0..table.rows).collect();
        let one = match Pick::of(step) {
            Some(pick) => {
                pick.check(column.kind)?;
                pick.run(column, &rows).map(|row| table.picked(&[row]))
            }
            None => {
                let fold = super::aggregates::Fold::Mean;
                let kind = fold.kind("mean", column.kind)?;
                let mean = Column::values(&name, kind, vec![fold.run(column, &rows)]);
                Some(super::aggregates::one_row(table, mean))
            }
        };
        if let Some(one) = one {
            builder.push(&one, 0, &|_| false).map_err(super::collision)?;
        }
    }
    let all = builder.finish();
    let mut rows = sorted(&all, &[name], &|| call.name.starts_with("highest"));
    rows.truncate(count);
    super::sources::single(&call, all.picked(&rows))
}
