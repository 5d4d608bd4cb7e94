//! What functions read: series of fields joined by their tags, or the rows of a subquery, in groups.

use super::condition::{Level, Split, all_of, holds, is_tag, may_hold, split, together, variables};
use super::field_set::{FieldSet, Samples};
use super::merge::Order;
use super::plan::{Plan, PlanSource, extra_columns};
use super::point::{Direction, Key, Point};
use super::rewrite::output_name;
use super::table::Table;
use super::window::Windows;
use super::{Evaluator, Result, point_cost};
use crate::ast::{DataType, Expr};
use crate::source::{Fields, Place};
use crate::value::Value;
use model::{Labels, Matcher, TimeRange};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A variable that is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ref {
    pub name: String,
    pub kind: DataType,
}

/// What a statement's parts share.
#[derive(Clone)]
pub struct Scope<'p> {
    pub plan: &'p Plan,
    pub windows: Windows,
    /// The names of the tags that rows are grouped by, sorted.
    pub dimensions: Vec<String>,
    pub direction: Direction,
    /// The first and the last nanosecond that may be read: those of the query around a subquery.
    pub bounds: (i64, i64),
}

/// What is asked of the sources.
#[derive(Clone, Copy)]
pub struct Wanted<'r> {
    pub refs: &'r [Ref],
    /// Whether the first is the one that a function takes: the others stand beside it.
    pub has_driver: bool,
    /// Whether points of one time are wanted in the order of their series.
    pub is_ordered: bool,
    /// How many points of each series will do; 0 is all.
    pub most: usize,
    /// How many of the variables decide which of two points of one time comes first.
    pub ordering: usize,
}

impl Wanted<'_> {
    /// How many values stand beside each point.
    pub fn aux_len(&self) -> usize {
        self.refs.len() - usize::from(self.has_driver && !self.refs.is_empty())
    }

    /// The places of these values, in the order of their names.
    fn beside_by_name(&self) -> Vec<usize> {
        let refs = self.refs.get(..self.ordering).unwrap_or_default();
        let refs = refs.get(self.refs.len() - self.aux_len()..).unwrap_or_default();
        let mut places: Vec<usize> = (0..refs.len()).collect();
        places.sort_by_key(|at| refs.get(*at));
        places
    }
}

/// Members from which on sets are read ahead, in their own order: a page of the store has samples
/// of many series.
const AHEAD_MEMBERS_MIN: usize = 16;
/// Samples that are read ahead at most, for each point that may be held.
const AHEAD_SHARE: usize = 2;

/// No series of that field.
const NONE: u32 = u32::MAX;

/// Where a variable's value is.
#[derive(Clone, Debug)]
enum Column {
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
    tags: Labels,
    first: u32,
    others: Box<[u32]>,
}

impl Member {
    fn series(&self, set: usize) -> u32 {
        match set {
            0 => self.first,
            set => self.others.get(set - 1).copied().unwrap_or(NONE),
        }
    }
}

/// One source.
pub(super) struct Scan<'s> {
    columns: Vec<Column>,
    pub sets: Vec<FieldSet<'s>>,
    members: Vec<Member>,
    /// The rows of a subquery.
    table: Option<Arc<Table>>,
    /// What must hold of each row.
    rest: Option<Expr>,
    /// What had to hold of each member.
    tag_rest: Option<Expr>,
    fields: Arc<Fields>,
}

/// Members with equal tags, as far as rows are grouped by them.
pub(super) struct Group {
    pub key: Key,
    /// Places in the scans, and there.
    pub members: Vec<(u32, u32)>,
}

/// All that is read, in groups.
#[derive(Default)]
pub(super) struct Input<'s> {
    pub scans: Vec<Scan<'s>>,
    pub groups: Vec<Group>,
}

impl<'a> Evaluator<'a> {
    /// Selects what is wanted.
    pub(super) fn input(&self, scope: &Scope<'_>, wanted: Wanted<'_>) -> Result<Input<'a>> {
        let mut input = Input::default();
        for source in &scope.plan.sources {
            match source {
                PlanSource::Measurement { .. } => {
                    for (database, measurement) in self.measurements_of(source)? {
                        let place = Place {
                            database: &database,
                            measurement: &measurement,
                            range: TimeRange::new(scope.windows.start, scope.windows.end),
                        };
                        self.add_measurement(scope, wanted, &place, &mut input)?;
                    }
                }
                PlanSource::Query(inner) => self.add_query(scope, wanted, inner, &mut input)?,
            }
        }
        input.groups.sort_by(|a, b| scope.direction.order_keys(&a.key, &b.key));
        // Sources may have groups in common.
        let mut merged: Vec<Group> = Vec::with_capacity(input.groups.len());
        for group in std::mem::take(&mut input.groups) {
            match merged.last_mut() {
                Some(last) if last.key == group.key => last.members.extend(group.members),
                _ => merged.push(group),
            }
        }
        input.groups = merged;
        Ok(input)
    }

    fn add_measurement(
        &self,
        scope: &Scope<'_>,
        wanted: Wanted<'_>,
        place: &Place<'_>,
        input: &mut Input<'a>,
    ) -> Result<()> {
        let fields = self.fields(place.database, place.measurement)?;
        let Split { matchers, rest, is_never } = split(scope.plan.condition.as_ref(), &fields);
        if is_never || place.range.is_empty() {
            return Ok(());
        }
        let mut scan = Scan {
            columns: Vec::new(),
            sets: Vec::new(),
            members: Vec::new(),
            table: None,
            rest,
            tag_rest: None,
            fields: fields.clone(),
        };
        for (idx, wanted_ref) in wanted.refs.iter().enumerate() {
            let column = self.column(&mut scan, wanted_ref, place, &matchers)?;
            if wanted.has_driver && idx == 0 && !matches!(column, Column::Field { .. }) {
                return Ok(());
            }
            scan.columns.push(column);
        }
        if scan.sets.is_empty() {
            return Ok(());
        }
        let conditions = scan.rest.as_ref().map(variables).unwrap_or_default();
        for (name, kind) in &conditions {
            if !is_tag(name, *kind, &fields)
                && let Some(read) = self.kind_read(&fields, name, *kind, place)
            {
                self.field_set(&mut scan, (name, read), place, &matchers)?;
            }
        }
        let selected = scan.sets.iter().filter(|set| set.is_selected).count();
        let is_simple = scan.sets.len() == 1 && selected == 1;
        let needs_all = wanted.is_ordered || !is_simple;
        let mut names: Vec<&str> = scope.dimensions.iter().map(String::as_str).collect();
        names.extend(scan.columns.iter().filter_map(|column| match column {
            Column::Tag(name) => Some(name.as_str()),
            _ => None,
        }));
        let conditions = conditions.iter().filter(|(name, kind)| is_tag(name, *kind, &fields));
        names.extend(conditions.map(|(name, _)| name.as_str()));
        let names = if needs_all { None } else { Some(names.as_slice()) };
        scan.members = members(&scan.sets, names, wanted.has_driver)?;
        self.count(scan.members.len())?;
        scan.filter_by_tags();
        if wanted.is_ordered {
            self.read_ahead(scope, wanted, &mut scan)?;
        }
        self.group_members(scope, place, &matchers, scan, input)
    }

    /// Reads all sets in their own order, unless that is too much to hold, or mostly in vain.
    fn read_ahead(&self, scope: &Scope<'_>, wanted: Wanted<'_>, scan: &mut Scan<'_>) -> Result<()> {
        let members = scan.members.len();
        let longest = scan.sets.iter().map(|set| set.set.len()).max().unwrap_or(0);
        if members < AHEAD_MEMBERS_MIN || members * 2 < longest {
            return Ok(());
        }
        // A condition may rule out the points that would do, and what stands beside a point may come after
        // other samples of its field.
        let needs_all = scan.rest.is_some() || (wanted.has_driver && 1 < scan.sets.len());
        let most = if needs_all { 0 } else { wanted.most };
        let mut left = self.limits.points_max / AHEAD_SHARE;
        let mut all = Vec::new();
        for set in &scan.sets {
            let mut samples: Vec<Samples> = Vec::with_capacity(set.set.len());
            let mut start = 0;
            while start < set.set.len() {
                let end = set.set.len().min(start + AHEAD_MEMBERS_MIN * 16);
                let mut is_too_much = false;
                set.read(&scope.windows, start..end, &mut |mut found| {
                    if most != 0 && most < found.len() {
                        match scope.direction {
                            Direction::Up => found.truncate(most),
                            Direction::Down => drop(found.drain(..found.len() - most)),
                        }
                        found.shrink_to_fit();
                    }
                    is_too_much |= left < found.len();
                    left = left.saturating_sub(found.len());
                    samples.push(found);
                })?;
                if is_too_much {
                    return Ok(());
                }
                start = end;
            }
            all.push(samples);
        }
        for (set, samples) in scan.sets.iter_mut().zip(all) {
            set.ahead = Some(samples);
        }
        Ok(())
    }

    fn column(
        &self,
        scan: &mut Scan<'a>,
        wanted: &Ref,
        place: &Place<'_>,
        matchers: &[Matcher],
    ) -> Result<Column> {
        if wanted.kind == DataType::Tag {
            return Ok(Column::Tag(wanted.name.clone()));
        }
        let to = wanted.kind;
        let from = self.kind_read(&scan.fields, &wanted.name, to, place);
        let Some(from) = from else { return Ok(Column::Missing) };
        let can = match (from, to) {
            (_, DataType::Unknown | DataType::AnyField) => true,
            (from, to) => from == to || (from.is_number() && to.is_number()),
        };
        if !can {
            return Ok(Column::Missing);
        }
        let set = self.field_set(scan, (&wanted.name, from), place, matchers)?;
        scan.sets[set].is_selected = true;
        Ok(Column::Field { set, from, to })
    }

    /// The type of what is read for a variable: a field of numbers may have strings besides.
    fn kind_read(
        &self,
        fields: &Fields,
        name: &str,
        wanted: DataType,
        place: &Place<'_>,
    ) -> Option<DataType> {
        let Place { database, measurement, .. } = place;
        let kind = *fields.get(name)?;
        let is_beside = wanted == DataType::String
            && kind != DataType::String
            && self.source.has_texts_beside(database, measurement, name);
        Some(if is_beside { DataType::String } else { kind })
    }

    /// The place of a field's series of a type, which are selected if they were not.
    fn field_set(
        &self,
        scan: &mut Scan<'a>,
        (name, kind): (&str, DataType),
        place: &Place<'_>,
        matchers: &[Matcher],
    ) -> Result<usize> {
        if let Some(at) = scan.sets.iter().position(|set| set.name == name && set.kind == kind) {
            return Ok(at);
        }
        let fields = scan.fields.clone();
        let set = match fields.get(name) == Some(&kind) {
            true => self.series_of(place, (name, &fields), matchers)?,
            false => self.source.select_texts_beside(place, name, matchers)?.into(),
        };
        scan.sets.push(FieldSet {
            name: name.to_string(),
            kind,
            set,
            is_selected: false,
            ahead: None,
        });
        Ok(scan.sets.len() - 1)
    }

    fn group_members(
        &self,
        scope: &Scope<'_>,
        place: &Place<'_>,
        matchers: &[Matcher],
        scan: Scan<'a>,
        input: &mut Input<'a>,
    ) -> Result<()> {
        let name: Arc<str> = place.measurement.into();
        let at = input.scans.len() as u32;
        let mut groups: Vec<Group> = Vec::new();
        let mut by_tags: HashMap<Vec<String>, usize> = HashMap::new();
        for (idx, member) in scan.members.iter().enumerate() {
            let tags = group_tags(&member.tags, &scope.dimensions);
            let group = match by_tags.get(&tags) {
                Some(group) => *group,
                None => {
                    by_tags.insert(tags.clone(), groups.len());
                    let key = Key { name: name.clone(), tags };
                    groups.push(Group { key, members: Vec::new() });
                    groups.len() - 1
                }
            };
            groups[group].members.push((at, idx as u32));
        }
        let page = scope.plan.series_page;
        if page.limit != 0 || page.offset != 0 {
            let mut all: Vec<Vec<String>> = Vec::new();
            for labels in self.source.tag_sets(place, matchers)? {
                if scan.may_hold(&labels) {
                    all.push(group_tags(&labels, &scope.dimensions));
                }
            }
            all.sort_by_cached_key(|tags| written_tags(&scope.dimensions, tags));
            all.dedup();
            let kept: HashSet<&Vec<String>> = paged(&all, page.limit, page.offset).iter().collect();
            groups.retain(|group| kept.contains(&group.key.tags));
        }
        input.groups.extend(groups);
        input.scans.push(scan);
        Ok(())
    }

    fn add_query(
        &self,
        scope: &Scope<'_>,
        wanted: Wanted<'_>,
        inner: &Plan,
        input: &mut Input<'a>,
    ) -> Result<()> {
        let columns: Vec<Column> =
            wanted.refs.iter().map(|wanted| inner_column(inner, wanted)).collect();
        if wanted.has_driver {
            match columns.first() {
                None | Some(Column::Missing) => return Ok(()),
                Some(Column::Cell { to: DataType::Unknown | DataType::AnyField, .. }) => {
                    return Ok(());
                }
                _ => {}
            }
        }
        let range = (scope.windows.start, scope.windows.end);
        let table = self.subquery(inner, &scope.dimensions, range)?;
        let at = input.scans.len() as u32;
        for (idx, series) in table.series.iter().enumerate() {
            let tag = |name: &String| {
                let at = table.tag_names.iter().position(|other| other == name);
                at.and_then(|at| series.key.tags.get(at)).cloned().unwrap_or_default()
            };
            let tags = scope.dimensions.iter().map(tag).collect();
            let key = Key { name: series.key.name.clone(), tags };
            let members = vec![(at, idx as u32)];
            // Neighbours may belong together now: they are merged when all are sorted.
            input.groups.push(Group { key, members });
        }
        input.scans.push(Scan {
            columns,
            sets: Vec::new(),
            members: Vec::new(),
            table: Some(table),
            rest: scope.plan.condition.clone(),
            tag_rest: None,
            fields: Arc::default(),
        });
        Ok(())
    }

    /// The points of a group, in the statement's order.
    pub(super) fn points(
        &self,
        input: &Input<'a>,
        group: &Group,
        scope: &Scope<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Vec<Point>> {
        let mut points: Vec<Point> = Vec::new();
        let scans = group.members.chunk_by(|(a, _), (b, _)| a == b);
        let mut scan_count = 0;
        for members in scans {
            scan_count += 1;
            let of_scan = self.points_of_scan(input, members, scope, wanted)?;
            match points.is_empty() {
                true => points = of_scan,
                false => points.extend(of_scan),
            }
        }
        if 1 < scan_count {
            points.sort_by(|a, b| scope.direction.order(a.time, b.time));
        }
        Ok(points)
    }

    fn points_of_scan(
        &self,
        input: &Input<'a>,
        members: &[(u32, u32)],
        scope: &Scope<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Vec<Point>> {
        let most = wanted.most;
        let mut points = Vec::new();
        let Some((scan, _)) = members.first() else { return Ok(points) };
        let scan = &input.scans[*scan as usize];
        let mut ends = Vec::with_capacity(members.len());
        let mut ranks = Vec::new();
        for (_, member) in members {
            let start = points.len();
            match &scan.table {
                Some(table) => {
                    let has_driver = wanted.has_driver;
                    scan.read_rows(table, *member as usize, has_driver, &mut points, &mut ranks);
                }
                None => scan.read(*member as usize, wanted.has_driver, scope, &mut points)?,
            }
            if scope.direction == Direction::Down && scan.table.is_none() {
                points[start..].reverse();
            }
            if most != 0 && start + most < points.len() {
                points.truncate(start + most);
            }
            ends.push(points.len());
            self.count((points.len() - start) * point_cost(wanted.aux_len()))?;
        }
        if members.len() < 2 {
            return Ok(points);
        }
        if ranks.len() == points.len() {
            // Equal ones in the order of their series, whichever way time goes.
            let mut ranked: Vec<(i64, usize)> = ranks.into_iter().zip(0..).collect();
            let series = |at: usize| ends.partition_point(|end| *end <= at);
            match scope.direction {
                Direction::Up => ranked.sort_by_key(|(rank, _)| *rank),
                Direction::Down => {
                    ranked.sort_by_key(|(rank, at)| (*rank, Reverse(series(*at)), *at))
                }
            }
            let point = |(_, at): (i64, usize)| points.get_mut(at).map(std::mem::take);
            return Ok(ranked.into_iter().filter_map(point).collect());
        }
        let order = Order { direction: scope.direction, beside: &wanted.beside_by_name() };
        Ok(order.merge(points, &ends))
    }
}

/// The page of a list; no limit is all.
pub(super) fn paged<T>(list: &[T], limit: usize, offset: usize) -> &[T] {
    let rest = list.get(offset..).unwrap_or_default();
    let len = if limit == 0 { rest.len() } else { rest.len().min(limit) };
    &rest[..len]
}

/// Names and values of the tags that there are: InfluxDB pages groups in the order of these texts.
fn written_tags(names: &[String], values: &[String]) -> String {
    let present = || names.iter().zip(values).filter(|(_, value)| !value.is_empty());
    let names = present().map(|(name, _)| name.as_str());
    let parts: Vec<&str> = names.chain(present().map(|(_, value)| value.as_str())).collect();
    parts.join("|")
}

fn group_tags(labels: &Labels, dimensions: &[String]) -> Vec<String> {
    let value = |name: &String| labels.get(name).unwrap_or("").to_string();
    dimensions.iter().map(value).collect()
}

/// Where a subquery has a variable of the query around it.
fn inner_column(inner: &Plan, wanted: &Ref) -> Column {
    let (name, to) = (wanted.name.as_str(), wanted.kind);
    let mut at = 0;
    for field in &inner.fields {
        if output_name(field) == name {
            return Column::Cell { at, to };
        }
        let extra = extra_columns(&field.expr);
        let is_it = |expr: &Expr| matches!(expr, Expr::Var { name: other, .. } if other == name);
        if let Some(idx) = extra.iter().position(is_it) {
            return Column::Cell { at: at + 1 + idx, to: DataType::String };
        }
        at += 1 + extra.len();
    }
    match inner.tag_names().iter().any(|tag| tag == name) {
        true => Column::Tag(name.to_string()),
        false => Column::Missing,
    }
}

/// Series joined by their tags: those with a series of the driver, or of any field that is selected.
fn members(sets: &[FieldSet<'_>], names: Option<&[&str]>, has_driver: bool) -> Result<Vec<Member>> {
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
    fn filter_by_tags(&mut self) {
        let Some(rest) = self.rest.take() else { return };
        let fields = &self.fields;
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
    fn may_hold(&self, labels: &Labels) -> bool {
        let lookup = |name: &str, _: DataType| Value::text(labels.get(name).unwrap_or(""));
        self.tag_rest.as_ref().is_none_or(|rest| tags_hold(rest, labels))
            && self.rest.as_ref().is_none_or(|rest| may_hold(rest, &self.fields, &lookup))
    }

    fn read(
        &self,
        member: usize,
        has_driver: bool,
        scope: &Scope<'_>,
        out: &mut Vec<Point>,
    ) -> Result<()> {
        let Some(member) = self.members.get(member) else { return Ok(()) };
        let mut samples: Vec<Cow<'_, [(i64, f64)]>> = Vec::with_capacity(self.sets.len());
        for (at, set) in self.sets.iter().enumerate() {
            let series = member.series(at);
            let ahead = set.ahead.as_ref().and_then(|ahead| ahead.get(series as usize));
            samples.push(match ahead {
                Some(ahead) => Cow::Borrowed(ahead),
                None if series == NONE => Cow::Borrowed(&[]),
                None => {
                    let mut found = Vec::new();
                    let series = series as usize;
                    set.read(&scope.windows, series..series + 1, &mut |samples| found = samples)?;
                    Cow::Owned(found)
                }
            });
        }
        let mut times: Vec<i64> = Vec::new();
        for (at, set) in self.sets.iter().enumerate() {
            if if has_driver { at == 0 } else { set.is_selected } {
                times.extend(samples[at].iter().map(|(time, _)| time));
            }
        }
        if !has_driver {
            times.sort_unstable();
            times.dedup();
        }
        let mut next = vec![0; samples.len()];
        let mut row = vec![None; samples.len()];
        for time in times {
            for (at, samples) in samples.iter().enumerate() {
                while samples.get(next[at]).is_some_and(|(other, _)| *other < time) {
                    next[at] += 1;
                }
                let sample = samples.get(next[at]).filter(|(other, _)| *other == time);
                row[at] = sample.map(|(_, value)| *value);
            }
            self.push(time, &row, &member.tags, has_driver, out);
        }
        Ok(())
    }

    fn push(
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
    fn read_rows(
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
