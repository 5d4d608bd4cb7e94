//! Package `join`, and `experimental.join`: rows of two streams merged by a function.
//!
//! Tables are joined with those of the same group key, which stays the group key of the result.

use super::experimental::key_names;
use super::sources::of_record;
use super::{Builtin, Call, collision, function};
use crate::ast::{Body, Expr, ExprKind, Logic};
use crate::error::{Error, Result};
use crate::table::{Builder, Key, Table};
use crate::value::{Record, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("experimental", "join", join_by_time),
    function("join", "inner", join_by_method),
    function("join", "left", join_by_method),
    function("join", "right", join_by_method),
    function("join", "full", join_by_method),
    function("join", "tables", join_by_argument),
    function("join", "time", join_by_argument),
];

/// Bytes of memory of the compared columns of a row, about.
const KEY_SIZE: usize = 128;

/// Columns that must be equal: of the left side, and of the right side.
type Pairs = Vec<(Arc<str>, Arc<str>)>;

/// A join of two streams.
struct Join {
    on: Pairs,
    merge: Value,
    /// Names of the two parameters of `merge`.
    params: [&'static str; 2],
    keeps_left: bool,
    keeps_right: bool,
}

/// `experimental.join(left:, right:, fn: (left, right) => ({..}))`
fn join_by_time(call: Call<'_>) -> Result<Value> {
    let params = ["left", "right"];
    let merge = call.required_function("fn", &params)?;
    let on = vec![("_time".into(), "_time".into())];
    let join = Join { on, merge, params, keeps_left: false, keeps_right: false };
    join.run(&call)
}

/// `join.inner(left: <-, right:, on: (l, r) => l.a == r.a, as: (l, r) => ({..}))` and the other joins of the package.
fn join_by_method(call: Call<'_>) -> Result<Value> {
    let on = pairs(&call)?;
    merged_by(&call, on, call.name)
}

/// `join.tables(.., method:)` and `join.time(.., method: "inner")`
fn join_by_argument(call: Call<'_>) -> Result<Value> {
    let (on, method) = match call.name {
        "time" => (vec![("_time".into(), "_time".into())], call.text_or("method", "inner")?),
        _ => (pairs(&call)?, call.required_text("method")?),
    };
    merged_by(&call, on, &method)
}

fn merged_by(call: &Call<'_>, on: Pairs, method: &str) -> Result<Value> {
    let (keeps_left, keeps_right) = match method {
        "inner" => (false, false),
        "left" => (true, false),
        "right" => (false, true),
        "full" => (true, true),
        other => {
            let message = format!("invalid method {other:?}: use inner, left, right or full");
            return Err(Error::runtime(message));
        }
    };
    let params = ["l", "r"];
    let merge = call.required_function("as", &params)?;
    Join { on, merge, params, keeps_left, keeps_right }.run(call)
}

/// The columns that `on` compares.
///
/// # Errors
/// When it is anything but comparisons of a column of each side for equality.
fn pairs(call: &Call<'_>) -> Result<Pairs> {
    let function = call.required_function("on", &["l", "r"])?;
    let invalid = || {
        let message = "argument on must compare columns of both sides for equality, as (l, r) => \
                       l.host == r.host and l._time == r._time";
        Error::runtime(message)
    };
    let Value::Closure(closure) = &function else { return Err(invalid()) };
    let Body::Expr(body) = &closure.function.body else { return Err(invalid()) };
    let mut found = Vec::new();
    collect_pairs(body, &mut found).ok_or_else(invalid)?;
    Ok(found)
}

fn collect_pairs(expr: &Expr, found: &mut Pairs) -> Option<()> {
    match &expr.kind {
        ExprKind::Logical { op: Logic::And, terms } => {
            terms.iter().try_for_each(|term| collect_pairs(term, found))
        }
        ExprKind::Binary { op: "==", left, right } => {
            let pair = match (column_of(left)?, column_of(right)?) {
                (("l", left), ("r", right)) | (("r", right), ("l", left)) => (left, right),
                _ => return None,
            };
            found.push(pair);
            Some(())
        }
        _ => None,
    }
}

/// The side and the name in `l.host`.
fn column_of(expr: &Expr) -> Option<(&str, Arc<str>)> {
    let ExprKind::Member { object, name } = &expr.kind else { return None };
    let ExprKind::Name(side) = &object.kind else { return None };
    Some((side, name.clone()))
}

/// Rows of both sides that have one key.
#[derive(Default)]
struct Matches {
    left: Vec<usize>,
    right: Vec<usize>,
}

impl Join {
    fn run(&self, call: &Call<'_>) -> Result<Value> {
        let left = match call.input("left")? {
            Value::Stream(stream) => stream,
            other => return Err(call.wrong("left", "stream of tables", &other)),
        };
        let right = call.stream("right")?;
        call.done()?;
        let (lefts, _left_charge) = call.evaluation.ready(&left)?;
        let (rights, _right_charge) = call.evaluation.ready(&right)?;
        let mut of_key: BTreeMap<Key, (Option<&Table>, Option<&Table>)> = BTreeMap::new();
        for table in lefts.iter() {
            of_key.entry(table.key()).or_default().0 = Some(table);
        }
        for table in rights.iter() {
            of_key.entry(table.key()).or_default().1 = Some(table);
        }
        let mut out = call.evaluation.collector();
        for (left, right) in of_key.into_values() {
            let is_joined = match (left, right) {
                (Some(_), Some(_)) => true,
                (Some(_), None) => self.keeps_left,
                _ => self.keeps_right,
            };
            if !is_joined {
                continue;
            }
            let table = self.join_tables(call, left, right)?;
            if table.rows != 0 {
                out.push(table)?;
            }
        }
        Ok(Value::Stream(out.finish().stream()))
    }

    /// Joins two tables of one group key, in the order of the compared columns.
    fn join_tables(
        &self,
        call: &Call<'_>,
        left: Option<&Table>,
        right: Option<&Table>,
    ) -> Result<Table> {
        let count = |table: Option<&Table>| table.map_or(0, |table| table.rows);
        call.evaluation.hold((count(left) + count(right)) * KEY_SIZE)?;
        let mut matches: BTreeMap<Key, Matches> = BTreeMap::new();
        let mut unmatched = Matches::default();
        for row in 0..count(left) {
            call.evaluation.tick(row)?;
            match self.key_of(left, row, |pair| &pair.0)? {
                Some(key) => matches.entry(key).or_default().left.push(row),
                None => unmatched.left.push(row),
            }
        }
        for row in 0..count(right) {
            call.evaluation.tick(row)?;
            match self.key_of(right, row, |pair| &pair.1)? {
                Some(key) => matches.entry(key).or_default().right.push(row),
                None => unmatched.right.push(row),
            }
        }
        let Some(any) = left.or(right) else { return Ok(Table::default()) };
        let mut rows = MergedRows { join: self, any, builder: Builder::default() };
        rows.builder.bounds = any.bounds;
        for found in matches.into_values() {
            let (no_left, no_right) = (found.left.is_empty(), found.right.is_empty());
            for a in &found.left {
                for b in &found.right {
                    rows.push(call, record(left, any, Some(*a)), record(right, any, Some(*b)))?;
                }
            }
            if no_left || no_right {
                rows.push_unmatched(call, (left, right), &found)?;
            }
        }
        rows.push_unmatched(call, (left, right), &unmatched)?;
        Ok(rows.builder.finish())
    }

    /// Values of the compared columns of a row; nothing where one is null, which equals nothing.
    fn key_of(
        &self,
        table: Option<&Table>,
        row: usize,
        side: impl Fn(&(Arc<str>, Arc<str>)) -> &Arc<str>,
    ) -> Result<Option<Key>> {
        let Some(table) = table else { return Ok(None) };
        let mut cells = Vec::with_capacity(self.on.len());
        for (at, pair) in self.on.iter().enumerate() {
            let name = side(pair);
            let missing = || {
                Error::runtime(format!("cannot join: a table has no column {name:?} to compare"))
            };
            let value = table.column(name).ok_or_else(missing)?.get(row);
            if value.is_null() {
                return Ok(None);
            }
            cells.push((at.to_string().into(), value));
        }
        Ok(Some(Key(cells)))
    }
}

/// A row as a record; without a row one that has nothing but the group key.
fn record(table: Option<&Table>, any: &Table, row: Option<usize>) -> Value {
    let record = match (table, row) {
        (Some(table), Some(row)) => table.row(row),
        _ => Record::row(any.key().0),
    };
    Value::Record(Arc::new(record))
}

/// The table that the merged rows make.
struct MergedRows<'j> {
    join: &'j Join,
    /// A table with the group key.
    any: &'j Table,
    builder: Builder,
}

impl MergedRows<'_> {
    fn push(&mut self, call: &Call<'_>, left: Value, right: Value) -> Result<()> {
        let [first, second] = self.join.params;
        let made = call.apply(&self.join.merge, &[(first, left), (second, right)])?;
        let Value::Record(made) = made else {
            let message = format!("{}: the function must return a record", call.name);
            return Err(Error::runtime(message));
        };
        let keys = key_names(self.any);
        let is_key = |name: &str| keys.iter().any(|key| &**key == name);
        let mut one = of_record(&made.fields)?;
        for column in &mut one.columns {
            column.is_key = is_key(&column.name);
        }
        if one.key() != self.any.key() {
            let message = format!("{}: the function may not modify the group key", call.name);
            return Err(Error::runtime(message));
        }
        call.evaluation.tick(self.builder.rows)?;
        let size = self.builder.push(&one, 0, &is_key).map_err(collision)?;
        call.evaluation.hold(size)
    }

    /// Rows without a match, if the join keeps those of their side.
    fn push_unmatched(
        &mut self,
        call: &Call<'_>,
        (left, right): (Option<&Table>, Option<&Table>),
        rows: &Matches,
    ) -> Result<()> {
        let any = self.any;
        for row in rows.left.iter().filter(|_| self.join.keeps_left).copied().collect::<Vec<_>>() {
            self.push(call, record(left, any, Some(row)), record(right, any, None))?;
        }
        for row in rows.right.iter().filter(|_| self.join.keeps_right).copied().collect::<Vec<_>>()
        {
            self.push(call, record(left, any, None), record(right, any, Some(row)))?;
        }
        Ok(())
    }
}
