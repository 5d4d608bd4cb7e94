//! Samples of many series: of all with certain labels, or of keys that are named.

use super::aggregate::{ROWS_MAX, Rows};
use super::filter::{Filter, demand, find_all, find_readable, matchers};
use super::range::{
    Multi, Query, newest_shown, put_rows, put_rows_by, put_sample, rows_of, rows_of_key, shown_from,
};
use super::samples::{self, Sample, joined, matchers_of};
use super::series::{self, Found};
use super::words::{error, put_value};
use crate::commands::Flow;
use crate::dispatch::Context;
use kv::number::parse_i64;
use kv::{CommandError, Reply};
use std::collections::{BTreeMap, BTreeSet};

/// `TS.MRANGE from to .. FILTER ..`
pub fn mrange(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    many(context, false)
}

/// `TS.MREVRANGE from to .. FILTER ..`
pub fn mrevrange(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    many(context, true)
}

/// A series and its rows.
type Answered = (Found, Rows);

fn many(context: &mut Context<'_, '_>, is_reverse: bool) -> Result<Flow, CommandError> {
    let query = Query::parse(context, 1, is_reverse)?;
    query.multi.check()?;
    let found = find_all(context, &query.multi.filters)?;
    let mut answered: Vec<Answered> = Vec::with_capacity(found.len());
    let mut value_count = 0;
    for (found, from_ms, samples) in read_all(context, &query, found)? {
        let rows = rows_of(context, &query, &found, from_ms, samples)?;
        value_count += rows.values.len();
        if ROWS_MAX < value_count {
            return Err(error(format!(
                "more than {ROWS_MAX} rows; COUNT does not make them fewer"
            )));
        }
        // Without samples nobody knows whether a series of others is still there.
        let leaves_out = found.record.is_none() || query.multi.leaves_empty_out;
        if !(leaves_out && rows.times.is_empty()) {
            answered.push((found, rows));
        }
    }
    match query.multi.group.is_some() {
        true => put_groups(&mut context.session.out, &query, answered),
        false => put_all(&mut context.session.out, &query, &answered),
    }
    Ok(Flow::Next)
}

/// The samples of the range of all series, and from when on they are shown: one look at the store for
/// all that have no past.
fn read_all(
    context: &mut Context<'_, '_>,
    query: &Query,
    found: Vec<Found>,
) -> Result<Vec<(Found, i64, Vec<Sample>)>, CommandError> {
    let app = &context.redis.app;
    let mut sets = vec![matchers(&query.multi.filters)];
    sets.extend(found.iter().flat_map(|one| one.sets.iter().rev().skip(1)).map(matchers_of));
    let mut map = samples::read(app, &sets, samples::time_range(query.from_ms, query.to_ms))?;
    let mut all = Vec::with_capacity(found.len());
    for found in found {
        let from_ms = shown_from(context, &found, query.from_ms)?;
        let mut samples = joined(&mut map, &found.sets);
        samples.retain(|sample| from_ms <= sample.ms);
        all.push((found, from_ms, samples));
    }
    Ok(all)
}

fn put_all(out: &mut dyn Reply, query: &Query, answered: &[Answered]) {
    out.map_or_array(answered.len());
    for (found, rows) in answered {
        let is_map = begin(out, &found.key, 2, 3);
        put_labels(out, &query.multi, &found.labels);
        if is_map {
            let aggregators = query.aggregation.iter().flat_map(|one| &one.aggregators);
            let names: Vec<&str> = aggregators.map(|one| one.name()).collect();
            put_names(out, "aggregators", &names);
        }
        put_rows(out, query, rows);
    }
}

/// Begins the entry of a key: in version 3 a pair of a map, whose array has `len3` elements; in
/// version 2 an array of the key and `len2` more. Returns whether it is a map.
fn begin(out: &mut dyn Reply, key: &[u8], len2: usize, len3: usize) -> bool {
    let is_map = out.version() == 3;
    if is_map {
        out.bulk(key);
        out.array(len3);
    } else {
        out.array(1 + len2);
        out.bulk(key);
    }
    is_map
}

fn put_names(out: &mut dyn Reply, name: &str, names: &[&str]) {
    out.map(1);
    out.text(name);
    out.array(names.len());
    names.iter().for_each(|name| out.text(name));
}

trait MapOrArray {
    /// A map in version 3, an array of as many entries in version 2.
    fn map_or_array(&mut self, len: usize);
}

impl MapOrArray for dyn Reply + '_ {
    fn map_or_array(&mut self, len: usize) {
        match self.version() {
            3 => self.map(len),
            _ => self.array(len),
        }
    }
}

/// Pairs: a map in version 3, an array of pairs in version 2.
pub fn put_pairs(out: &mut dyn Reply, pairs: &[(&str, Option<&str>)]) {
    out.map_or_array(pairs.len());
    for (name, value) in pairs {
        if out.version() == 2 {
            out.array(2);
        }
        out.text(name);
        out.bulk_or_null(value.map(str::as_bytes));
    }
}

fn put_labels(out: &mut dyn Reply, multi: &Multi, labels: &[(String, String)]) {
    let value_of = |name: &str| {
        labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    };
    let pairs: Vec<(&str, Option<&str>)> = match &multi.selected {
        Some(names) => names.iter().map(|name| (name.as_str(), value_of(name))).collect(),
        None if multi.has_labels => {
            labels.iter().map(|(name, value)| (name.as_str(), Some(value.as_str()))).collect()
        }
        None => Vec::new(),
    };
    put_pairs(out, &pairs);
}

/// The value of a label among pairs.
fn value_in<'a>(pairs: &[(&str, Option<&'a str>)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(label, _)| *label == name).and_then(|(_, value)| *value)
}

fn put_groups(out: &mut dyn Reply, query: &Query, answered: Vec<Answered>) {
    let Some((label, reducer)) = &query.multi.group else { return };
    let mut groups: BTreeMap<String, Vec<Answered>> = BTreeMap::new();
    for (found, rows) in answered {
        if let Some(value) = found.label(label) {
            groups.entry(value.to_owned()).or_default().push((found, rows));
        }
    }
    out.map_or_array(groups.len());
    for (value, members) in &groups {
        let mut by_time: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (ms, values) in members.iter().flat_map(|(_, rows)| rows.iter()) {
            by_time.entry(ms).or_default().extend(values);
        }
        let rows = Rows {
            values: by_time.values().map(|values| reducer.reduce(values)).collect(),
            times: by_time.into_keys().collect(),
            width: 1,
        };
        let keys: Vec<String> = members
            .iter()
            .map(|(found, _)| String::from_utf8_lossy(&found.key).into_owned())
            .collect();
        let key = format!("{label}={value}");
        let is_map = begin(out, key.as_bytes(), 2, 4);
        let sources = keys.join(",");
        let mut pairs = vec![(label.as_str(), Some(value.as_str()))];
        if !is_map {
            pairs.push(("__reducer__", Some(reducer.name())));
            pairs.push(("__source__", Some(&sources)));
        }
        let shown: Vec<(&str, Option<&str>)> = match &query.multi.selected {
            Some(names) => {
                names.iter().map(|name| (name.as_str(), value_in(&pairs, name))).collect()
            }
            None if query.multi.has_labels => pairs,
            None => Vec::new(),
        };
        put_pairs(out, &shown);
        if is_map {
            put_names(out, "reducers", &[reducer.name()]);
            put_names(out, "sources", &keys.iter().map(String::as_str).collect::<Vec<_>>());
        }
        put_rows(out, query, &rows);
    }
}

/// `TS.MGET [LATEST] [WITHLABELS | SELECTED_LABELS ..] FILTER ..`
pub fn mget(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let query = Query::parse_without_range(context)?;
    query.multi.check()?;
    if query.multi.group.is_some() {
        return Err(error("unknown argument GROUPBY"));
    }
    let mut answered = Vec::new();
    let found = find_all(context, &query.multi.filters)?;
    let foreign = foreign_newest(context, &query.multi.filters, &found)?;
    for found in found {
        let newest = match found.record {
            Some(_) => newest_shown(context, &found, query.is_latest)?,
            None => found.sets.first().and_then(|set| foreign.get(&set.fingerprint()).copied()),
        };
        if found.record.is_some() || newest.is_some() {
            answered.push((found, newest));
        }
    }
    let out: &mut dyn Reply = &mut context.session.out;
    out.map_or_array(answered.len());
    for (found, newest) in &answered {
        begin(out, &found.key, 2, 2);
        put_labels(out, &query.multi, &found.labels);
        put_sample(out, *newest);
    }
    Ok(Flow::Next)
}

/// The newest samples of the series of other doors.
fn foreign_newest(
    context: &Context<'_, '_>,
    filters: &[Filter],
    found: &[Found],
) -> Result<std::collections::HashMap<u128, Sample>, CommandError> {
    let foreign = found.iter().filter(|one| one.record.is_none());
    let wanted: Vec<u128> =
        foreign.flat_map(|one| one.sets.iter().map(|set| set.fingerprint())).collect();
    let sets = [matchers(filters)];
    samples::newest(&context.redis.app, &sets, &wanted, (0, samples::TIME_MS_MAX))
}

/// `TS.QUERYINDEX filter ..`
pub fn queryindex(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let filters = context.args[1..].iter().map(|text| Filter::parse(text));
    let filters: Vec<Filter> = filters.collect::<Result<_, _>>()?;
    demand(&filters)?;
    let mut found = find_readable(context, &filters)?;
    let foreign = foreign_newest(context, &filters, &found)?;
    found.retain(|one| {
        one.record.is_some() || one.sets.iter().any(|set| foreign.contains_key(&set.fingerprint()))
    });
    context.session.out.set(found.len());
    found.iter().for_each(|one| context.session.out.bulk(&one.key));
    Ok(Flow::Next)
}

/// `TS.QUERYLABELS LABELS | VALUES label [FILTER filter ..]`
pub fn querylabels(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let unknown = || error("TS.QUERYLABELS wants LABELS, or VALUES and a label");
    let (label, rest) = match &context.args[1..] {
        [word, rest @ ..] if word.eq_ignore_ascii_case(b"LABELS") => (None, rest),
        [word, label, rest @ ..] if word.eq_ignore_ascii_case(b"VALUES") => (Some(*label), rest),
        _ => return Err(unknown()),
    };
    let filters: Vec<Filter> = match rest {
        [] => Vec::new(),
        [word, all @ ..] if word.eq_ignore_ascii_case(b"FILTER") && !all.is_empty() => {
            all.iter().map(|text| Filter::parse(text)).collect::<Result<_, _>>()?
        }
        _ => return Err(error("TS.QUERYLABELS wants FILTER and conditions behind it")),
    };
    if !filters.is_empty() {
        demand(&filters)?;
    }
    let found = find_readable(context, &filters)?;
    let mut words: BTreeSet<&str> = BTreeSet::new();
    for (name, value) in found.iter().flat_map(|one| &one.labels) {
        match label {
            None => words.insert(name),
            Some(label) => label == name.as_bytes() && words.insert(value),
        };
    }
    context.session.out.set(words.len());
    words.iter().for_each(|word| context.session.out.text(word));
    Ok(Flow::Next)
}

// ---- keys that are named ----

/// `TS.NRANGE numkeys key .. from to ..`
pub fn nrange(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    of_keys(context, false)
}

/// `TS.NREVRANGE numkeys key .. from to ..`
pub fn nrevrange(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    of_keys(context, true)
}

fn of_keys(context: &mut Context<'_, '_>, is_reverse: bool) -> Result<Flow, CommandError> {
    let args = context.args;
    let count = parse_i64(args[1]).and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| 0 < *count);
    let count = count.ok_or_else(|| error("numkeys should be greater than 0"))?;
    // The keys, and behind them a range.
    if args.len() - 2 < count.saturating_add(2) {
        return Err(CommandError::arity(context.info.name));
    }
    let query = Query::parse_of_keys(context, count, is_reverse)?;
    let mut columns = Vec::with_capacity(count);
    for (key, of_key) in args[2..2 + count].iter().zip(query.of_keys(count)) {
        let found = series::find(context, key)?;
        columns.push(rows_of_key(context, &of_key, &found)?);
    }
    let rows = beside(&columns)?;
    put_rows_by(&mut context.session.out, &query, &rows, |out, ms, values| {
        out.array(2);
        out.int(ms);
        out.array(values.len());
        values.iter().for_each(|value| put_value(out, *value));
    });
    Ok(Flow::Next)
}

/// The rows of all, beside each other: what has nothing at a time is NaN there.
fn beside(columns: &[Rows]) -> Result<Rows, CommandError> {
    let width: usize = columns.iter().map(|one| one.width).sum();
    let mut by_time: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let mut start = 0;
    for one in columns {
        for (ms, values) in one.iter() {
            let row = by_time.entry(ms).or_insert_with(|| vec![f64::NAN; width]);
            row[start..start + one.width].copy_from_slice(values);
            if ROWS_MAX < by_time.len().saturating_mul(width) {
                return Err(error(format!("more than {ROWS_MAX} values")));
            }
        }
        start += one.width;
    }
    let values = by_time.values().flatten().copied().collect();
    Ok(Rows { values, times: by_time.into_keys().collect(), width })
}
