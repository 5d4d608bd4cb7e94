//! One source that is read: series of fields joined by their tags, or the rows of a subquery.

use super::Result;
use super::condition::{Level, all_of, holds, is_tag, may_hold, together, variables};
use super::field_set::FieldSet;
use super::held::Held;
use super::point::{Direction, Point};
use super::read_request::Wanted;
use super::table::Table;
use super::window::Windows;
use crate::ast::{DataType, Expr};
use crate::source::Fields;
use crate::token::Op;
use crate::value::Value;
use model::Labels;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Times and values of one series, read now or before.
type SampleSlice<'a> = Cow<'a, [(i64, f64)]>;

/// No series of that field.
const NONE: u32 = u32::MAX;

/// Where a variable's value is.
#[derive(Clone, Debug)]
pub(super) enum Column {
    Field {
        set: usize,
        from: DataType,
        to: DataType,
    },
    Tag(String),
    /// Of a subquery's row, as a value of that type.
    Cell {
        at: usize,
        to: DataType,
    },
    Missing,
}

/// Series of one set of tags.
#[derive(Clone)]
pub(super) struct Member {
    pub tags: Labels,
    first: u32,
    others: Box<[u32]>,
}

impl Member {
    /// Bytes of memory held.
    pub fn memory_size(&self) -> usize {
        size_of::<Member>() + self.tags.as_bytes().len() + size_of_val(&*self.others)
    }

    fn series(&self, set: usize) -> u32 {
        match set {
            0 => self.first,
            set => self.others.get(set - 1).copied().unwrap_or(NONE),
        }
    }
}

/// One source.
pub(super) struct Scan<'s> {
    pub columns: Vec<Column>,
    pub sets: Vec<FieldSet<'s>>,
    pub members: Vec<Member>,
    /// The rows of a subquery.
    pub table: Option<Arc<Table>>,
    /// What must hold of each row.
    pub rest: Option<Expr>,
    /// What had to hold of each member.
    pub tag_rest: Option<Expr>,
    pub fields: Arc<Fields>,
    /// Memory of the members and of what was read ahead.
    pub held: Held,
}

impl<'s> Scan<'s> {
    /// The one set whose samples may be added up as they come, and the series of each member.
    pub fn foldable(&self) -> Option<&FieldSet<'s>> {
        match (self.sets.as_slice(), &self.rest, &self.table) {
            // Texts are looked up one by one.
            ([set], None, None) if set.kind != DataType::String => {
                set.set.integers().is_none().then_some(set)
            }
            _ => None,
        }
    }

    /// The series of a member in the first set.
    pub fn first_series(&self, member: u32) -> u32 {
        self.members.get(member as usize).map_or(NONE, |member| member.first)
    }

    /// What the first column makes of a sample.
    pub fn first_cast(&self) -> Option<(DataType, DataType)> {
        match self.columns.first() {
            Some(Column::Field { from, to, .. }) => Some((*from, *to)),
            _ => None,
        }
    }

    /// Applies what of the condition is about tags alone to the members, once and for all.
    pub fn filter_by_tags(&mut self) {
        let Some(mut rest) = self.rest.take() else { return };
        let fields = &self.fields;
        rest.change(&mut |expr| need_tag(expr, fields));
        let is_tag = |(name, kind): &(String, DataType)| is_tag(name, *kind, fields);
        let (of_tags, others): (Vec<Expr>, Vec<Expr>) =
            all_of(rest).into_iter().partition(|part| variables(part).iter().all(is_tag));
        self.rest = together(others);
        self.tag_rest = together(of_tags);
        if let Some(of_tags) = &self.tag_rest {
            self.members.retain(|member| tags_hold(of_tags, &member.tags));
        }
    }

    /// Where the samples for a variable of a condition are.
    fn set_of(&self, name: &str, kind: DataType) -> Option<usize> {
        let of =
            |kind: DataType| self.sets.iter().position(|set| set.name == name && set.kind == kind);
        let texts = if kind == DataType::String { of(kind) } else { None };
        texts.or_else(|| of(*self.fields.get(name)?))
    }

    /// Whether a series with these tags may have rows that are wanted.
    pub fn may_hold(&self, labels: &Labels) -> bool {
        let lookup = |name: &str, _: DataType| Value::text(labels.get(name).unwrap_or(""));
        self.tag_rest.as_ref().is_none_or(|rest| tags_hold(rest, labels))
            && self.rest.as_ref().is_none_or(|rest| may_hold(rest, &self.fields, &lookup))
    }

    /// The samples of a member, by set.
    pub fn samples(&self, member: &Member, windows: &Windows) -> Result<Vec<SampleSlice<'_>>> {
        let mut samples: Vec<SampleSlice<'_>> = Vec::with_capacity(self.sets.len());
        for (at, set) in self.sets.iter().enumerate() {
            let series = member.series(at);
            let ahead = set.ahead.as_ref().and_then(|ahead| ahead.get(series as usize));
            samples.push(match ahead {
                Some(ahead) => Cow::Borrowed(ahead),
                None if series == NONE => Cow::Borrowed(&[]),
                None => {
                    let mut found = Vec::new();
                    let series = series as usize;
                    set.read(windows, series..series + 1, &mut |samples| found = samples)?;
                    Cow::Owned(found)
                }
            });
        }
        Ok(samples)
    }

    /// The times at which a member has points that may be wanted.
    pub fn times(
        &self,
        samples: &[Cow<'_, [(i64, f64)]>],
        wanted: Wanted<'_>,
        direction: Direction,
    ) -> Vec<i64> {
        let mut times: Vec<i64> = Vec::new();
        for (at, set) in self.sets.iter().enumerate() {
            if if wanted.has_driver { at == 0 } else { set.is_selected } {
                times.extend(samples[at].iter().map(|(time, _)| time));
            }
        }
        if !wanted.has_driver {
            times.sort_unstable();
            times.dedup();
        }
        // Each time makes a point, unless a condition or a text that is missing rules it out.
        let is_text = self.sets.iter().any(|set| set.kind == DataType::String);
        if wanted.most != 0 && wanted.most < times.len() && self.rest.is_none() && !is_text {
            match direction {
                Direction::Up => times.truncate(wanted.most),
                Direction::Down => drop(times.drain(..times.len() - wanted.most)),
            }
        }
        times
    }

    pub fn push(
        &self,
        time: i64,
        row: &[Option<f64>],
        tags: &Labels,
        has_driver: bool,
        out: &mut Vec<Point>,
    ) {
        if let Some(rest) = &self.rest {
            let lookup = |name: &str, kind: DataType| {
                if is_tag(name, kind, &self.fields) {
                    return Value::text(tags.get(name).unwrap_or(""));
                }
                let at = self.set_of(name, kind);
                let sample = at.and_then(|at| Some((at, (*row.get(at)?)?)));
                sample.map_or(Value::Null, |(at, sample)| {
                    self.sets[at].value(sample).cast(self.sets[at].kind, kind)
                })
            };
            if !holds(rest, Level::Index, &lookup) {
                return;
            }
        }
        let value = |column: &Column| match column {
            Column::Field { set, from, to } => match row.get(*set).copied().flatten() {
                Some(sample) => self.sets[*set].value(sample).cast(*from, *to),
                None => Value::Null,
            },
            Column::Tag(name) => tags.get(name).map_or(Value::Null, Value::text),
            _ => Value::Null,
        };
        push_point(time, self.columns.iter().map(value), has_driver, out);
    }

    /// The rows of a subquery's series, and their ranks, if it has any.
    pub fn read_rows(
        &self,
        table: &Table,
        member: usize,
        has_driver: bool,
        out: &mut Vec<Point>,
        ranks: &mut Vec<i64>,
    ) {
        let Some(series) = table.series.get(member) else { return };
        let tag = |name: &str| {
            let at = table.tag_names.iter().position(|other| other == name)?;
            series.key.tags.get(at).map(String::as_str)
        };
        for (idx, (time, cells)) in series.rows.iter().enumerate() {
            if let Some(rest) = &self.rest {
                let lookup = |name: &str, kind: DataType| match table
                    .columns
                    .iter()
                    .position(|other| other == name)
                {
                    Some(at) => cells.get(at).cloned().unwrap_or_default().of_type(kind),
                    None => Value::text(tag(name).unwrap_or("")),
                };
                if !holds(rest, Level::Filter, &lookup) {
                    continue;
                }
            }
            let value = |column: &Column| match column {
                Column::Cell { at, to } => cells.get(*at).cloned().unwrap_or_default().of_type(*to),
                // InfluxDB's rows have no tags that a series has not, those of its subqueries do.
                Column::Tag(name) => Value::text(tag(name).unwrap_or("")),
                _ => Value::Null,
            };
            let driver = self.columns.first().filter(|_| has_driver);
            let is_driven = driver.is_none_or(|column| match column {
                Column::Cell { to, .. } => value(column).is_of(*to),
                _ => true,
            });
            if is_driven {
                let before = out.len();
                push_point(*time, self.columns.iter().map(value), has_driver, out);
                ranks.extend(series.ranks.get(idx).filter(|_| before < out.len()));
            }
        }
    }
}

/// Series joined by their tags: those with a series of the driver, or of any field that is selected.
pub(super) fn members(
    sets: &[FieldSet<'_>],
    names: Option<&[&str]>,
    has_driver: bool,
) -> Result<Vec<Member>> {
    if let [set] = sets {
        let tags = match names {
            Some([]) => vec![Labels::default(); set.set.len()],
            names => set.set.tags(names)?,
        };
        let member = |(idx, tags)| Member { tags, first: idx as u32, others: Box::default() };
        let mut members: Vec<Member> = tags.into_iter().enumerate().map(member).collect();
        if names.is_none() {
            members.sort_by(|a, b| by_tags(&a.tags, &b.tags));
        }
        return Ok(members);
    }
    let mut by_labels: HashMap<Labels, usize> = HashMap::new();
    let mut members: Vec<Member> = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        let may_begin = if has_driver { at == 0 } else { set.is_selected };
        for (idx, tags) in set.set.tags(None)?.into_iter().enumerate() {
            let member = match by_labels.get(&tags) {
                Some(member) => *member,
                None if may_begin => {
                    by_labels.insert(tags.clone(), members.len());
                    let others = vec![NONE; sets.len() - 1].into_boxed_slice();
                    members.push(Member { tags, first: NONE, others });
                    members.len() - 1
                }
                None => continue,
            };
            match at {
                0 => members[member].first = idx as u32,
                at => members[member].others[at - 1] = idx as u32,
            }
        }
    }
    members.sort_by(|a, b| by_tags(&a.tags, &b.tags));
    Ok(members)
}

/// The order of InfluxDB's series: by their tags as they are written.
fn by_tags(a: &Labels, b: &Labels) -> std::cmp::Ordering {
    a.iter().cmp(b.iter())
}

/// A comparison of a field with a tag, whatever it asks for, holds of no series without the tag.
fn need_tag(expr: &mut Expr, fields: &Fields) {
    let Expr::Binary { op: Op::Eq | Op::NotEq, left, right } = &*expr else { return };
    let tag = |expr: &Expr| match expr {
        Expr::Var { name, kind } if is_tag(name, *kind, fields) => Some(name.clone()),
        _ => None,
    };
    let (tag, field) = match (tag(left), tag(right)) {
        (Some(tag), None) => (tag, right),
        (None, Some(tag)) => (tag, left),
        _ => return,
    };
    if !matches!(**field, Expr::Var { .. }) {
        return;
    }
    let tag = Box::new(Expr::Var { name: tag, kind: DataType::Tag });
    let has_tag =
        Expr::Binary { op: Op::NotEq, left: tag, right: Box::new(Expr::Text(String::new())) };
    let comparison = std::mem::replace(expr, Expr::Boolean(false));
    let (left, right) = (Box::new(comparison), Box::new(has_tag));
    *expr = Expr::Paren(Box::new(Expr::Binary { op: Op::And, left, right }));
}

/// Whether a condition about tags alone holds of a series.
fn tags_hold(rest: &Expr, labels: &Labels) -> bool {
    holds(rest, Level::Index, &|name, _| Value::text(labels.get(name).unwrap_or("")))
}

fn push_point(
    time: i64,
    mut values: impl Iterator<Item = Value>,
    has_driver: bool,
    out: &mut Vec<Point>,
) {
    let value = if has_driver { values.next().unwrap_or_default() } else { Value::Null };
    if has_driver && value.is_null() {
        return;
    }
    out.push(Point { time, value, aux: values.collect() });
}
