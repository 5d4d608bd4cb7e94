//! What functions read: series of fields joined by their tags, or the rows of a subquery, in groups.

use super::condition::{Split, is_tag, split, variables};
use super::field_set::{FieldSet, KnownSets, Samples, SetKey};
use super::held::Held;
use super::merge::Order;
use super::plan::{Plan, PlanSource, extra_columns};
use super::point::{Direction, Key, Point};
use super::read_request::{Ref, Scope, Wanted, paged};
use super::rewrite::output_name;
use super::scan::{Column, Member, Scan, members};
use super::{Evaluator, POINT_SIZE, Result, point_cost};
use crate::ast::{DataType, Expr};
use crate::source::{Fields, Place};
use model::{Labels, Matcher, TimeRange};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Members from which on sets are read ahead, in their own order: a page of the store has samples
/// of many series.
const AHEAD_MEMBERS_MIN: usize = 16;
/// Of the memory that is left, samples that are read ahead take one in so many at most.
const AHEAD_SHARE: usize = 8;
/// Bytes of a sample that was read.
const SAMPLE_SIZE: usize = size_of::<(i64, f64)>();
/// Bytes of a member with its tags, before these are known.
const MEMBER_SIZE: usize = size_of::<Member>() + 96;

/// Members with equal tags, as far as rows are grouped by them.
pub(super) struct Group {
    pub key: Key,
    /// Places in the scans, and there.
    pub members: Vec<(u32, u32)>,
}

impl Group {
    /// Bytes of memory held.
    fn memory_size(&self) -> usize {
        let tags = self.key.tags.iter().map(|tag| size_of::<String>() + tag.len()).sum::<usize>();
        size_of::<Group>() + tags + size_of_val(&*self.members)
    }
}

/// All that is read, in groups.
#[derive(Default)]
pub(super) struct Input<'s> {
    pub scans: Vec<Scan<'s>>,
    pub groups: Vec<Group>,
    known: KnownSets<'s>,
    /// Memory of the groups.
    held: Held,
}

impl<'a> Evaluator<'a> {
    /// Selects what is wanted.
    pub(super) fn input(&self, scope: &Scope<'_>, wanted: Wanted<'_>) -> Result<Input<'a>> {
        let mut input = Input { held: self.hold(0)?, ..Input::default() };
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
        self.source.check()?;
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
            held: self.hold(0)?,
        };
        let known = &mut input.known;
        for (idx, wanted_ref) in wanted.refs.iter().enumerate() {
            let column = self.column(&mut scan, wanted_ref, place, &matchers, known)?;
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
                self.field_set(&mut scan, (name, read), place, &matchers, known)?;
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
        let series: usize = scan.sets.iter().map(|set| set.set.len()).sum();
        let expected = series.saturating_mul(MEMBER_SIZE);
        scan.held.grow(self, expected)?;
        scan.members = members(&scan.sets, names, wanted.has_driver)?;
        scan.filter_by_tags();
        let size = scan.members.iter().map(Member::memory_size).sum();
        scan.held.shrink(expected);
        scan.held.grow(self, size)?;
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
        let mut left = self.memory_left() / SAMPLE_SIZE / AHEAD_SHARE;
        let (mut all, mut count) = (Vec::new(), 0);
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
                    count += found.len();
                    samples.push(found);
                })?;
                if is_too_much {
                    return Ok(());
                }
                start = end;
            }
            all.push(samples);
        }
        scan.held.grow(self, count * SAMPLE_SIZE)?;
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
        known: &mut KnownSets<'a>,
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
        let is_whole = from == DataType::Float && to == DataType::Integer;
        if is_whole && let Some(set) = self.integer_set(scan, &wanted.name, place, matchers)? {
            return Ok(Column::Field { set, from: to, to });
        }
        let set = self.field_set(scan, (&wanted.name, from), place, matchers, known)?;
        scan.sets[set].is_selected = true;
        Ok(Column::Field { set, from, to })
    }

    /// The place of the series of a field of floats with all bits of its integers, if some need these.
    fn integer_set(
        &self,
        scan: &mut Scan<'a>,
        name: &str,
        place: &Place<'_>,
        matchers: &[Matcher],
    ) -> Result<Option<usize>> {
        let kind = DataType::Integer;
        if let Some(at) = scan.sets.iter().position(|set| set.name == name && set.kind == kind) {
            return Ok(Some(at));
        }
        let Some(set) = self.source.select_integers(place, name, matchers)? else {
            return Ok(None);
        };
        scan.held.grow(self, set.memory_size())?;
        let set = FieldSet {
            name: name.to_string(),
            kind,
            set: set.into(),
            is_selected: true,
            ahead: None,
        };
        scan.sets.push(set);
        Ok(Some(scan.sets.len() - 1))
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
        known: &mut KnownSets<'a>,
    ) -> Result<usize> {
        if let Some(at) = scan.sets.iter().position(|set| set.name == name && set.kind == kind) {
            return Ok(at);
        }
        let key = SetKey {
            database: place.database.to_string(),
            measurement: place.measurement.to_string(),
            field: name.to_string(),
            kind,
        };
        let set = match known.get(&key) {
            Some((set, _)) => set.clone(),
            None => {
                let fields = scan.fields.clone();
                let set = match fields.get(name) == Some(&kind) {
                    true => self.series_of(place, (name, &fields), matchers)?,
                    false => self.source.select_texts_beside(place, name, matchers)?.into(),
                };
                known.insert(key, (set.clone(), self.hold(set.memory_size())?));
                set
            }
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
            // SOFFSET alone leaves nothing, as in InfluxDB.
            let page = paged(&all, page.limit, page.offset).iter().take(page.limit);
            let kept: HashSet<&Vec<String>> = page.collect();
            groups.retain(|group| kept.contains(&group.key.tags));
        }
        input.held.grow(self, groups.iter().map(Group::memory_size).sum())?;
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
            let group = Group { key, members };
            input.held.grow(self, group.memory_size())?;
            input.groups.push(group);
        }
        input.scans.push(Scan {
            columns,
            sets: Vec::new(),
            members: Vec::new(),
            table: Some(table),
            rest: scope.plan.condition.clone(),
            tag_rest: None,
            fields: Arc::default(),
            held: Held::default(),
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

    /// Appends the points of a member, oldest first.
    fn read_member(
        &self,
        scan: &Scan<'_>,
        member: usize,
        wanted: Wanted<'_>,
        scope: &Scope<'_>,
        out: &mut Vec<Point>,
    ) -> Result<()> {
        let Some(member) = scan.members.get(member) else { return Ok(()) };
        let samples = scan.samples(member, &scope.windows)?;
        let times = scan.times(&samples, wanted, scope.direction);
        self.check_memory(times.len().saturating_mul(point_cost(wanted.aux_len()) * POINT_SIZE))?;
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
            scan.push(time, &row, &member.tags, wanted.has_driver, out);
        }
        Ok(())
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
                None => self.read_member(scan, *member as usize, wanted, scope, &mut points)?,
            }
            if scope.direction == Direction::Down && scan.table.is_none() {
                points[start..].reverse();
            }
            let end = start.saturating_add(most);
            if most != 0 && end < points.len() {
                points.truncate(end);
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
