//! SHOW and EXPLAIN.

use super::compile::{Circumstances, compile, condition_and_range};
use super::condition::{alternatives, split};
use super::read_request::paged;
use super::{Evaluator, Result};
use crate::answer::{Answer, Series};
use crate::ast::{
    Counted, DataType, Expr, KeyFilter, Listing, MeasurementName, Page, Select, Source, Statement,
};
use crate::source::{EvalError, Place};
use crate::time::{TIME_MAX, TIME_MIN};
use crate::token::Op;
use crate::value::Value;
use model::{Labels, Matcher, TimeRange};
use std::collections::BTreeMap;

/// Columns of text.
fn list(name: &str, columns: &[&str], rows: Vec<Vec<Value>>) -> Series {
    let columns = columns.iter().map(|column| (*column).to_string()).collect();
    Series { name: name.to_string(), tags: Vec::new(), columns, rows }
}

fn names(all: impl IntoIterator<Item = String>) -> Vec<Vec<Value>> {
    all.into_iter().map(|name| vec![Value::text(&name)]).collect()
}

/// A measurement that a listing is about, and what must hold of its series.
struct Listed {
    /// Storage names of the policies to list.
    databases: Vec<String>,
    measurement: String,
    range: TimeRange,
    /// All matchers of any of these sets.
    sets: Vec<Vec<Matcher>>,
}

impl Listed {
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let (measurement, range) = (self.measurement.as_str(), self.range);
        self.databases.iter().map(move |database| Place { database, measurement, range })
    }
}

/// Whose measurements a listing's sources are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Databases {
    /// Lists the statement's database with all of its policies; ignores the databases of FROM.
    Own,
    /// Lists the database and the policy that FROM names.
    Named,
    /// Lists the database that FROM names with all of its policies.
    NamedWhole,
}

impl Evaluator<'_> {
    /// The answer to a SHOW statement; none to any other.
    pub(super) fn show(&self, statement: &Statement) -> Option<Answer> {
        let answer = match statement {
            Statement::ShowDatabases => self.show_databases(),
            Statement::ShowRetentionPolicies { database } => {
                self.show_policies(database.as_deref())
            }
            Statement::ShowMeasurements { listing } => self.show_measurements(listing),
            Statement::ShowTagKeys { listing } => self.show_tag_keys(listing),
            Statement::ShowTagValues { listing, keys } => self.show_tag_values(listing, keys),
            Statement::ShowFieldKeys { listing } => self.show_field_keys(listing),
            Statement::ShowSeries { listing } => self.show_series(listing),
            Statement::ShowCardinality { counted, listing, exact } => {
                self.show_cardinality(*counted, listing, *exact)
            }
            Statement::ShowTagValuesCardinality { listing, keys } => {
                self.count_tag_values(listing, keys)
            }
            Statement::ShowUsers => Ok(Answer::of(vec![list("", &["user", "admin"], Vec::new())])),
            Statement::ShowGrants { .. } => Err(EvalError::new("user not found")),
            Statement::ShowSubscriptions => Ok(Answer::default()),
            Statement::ShowShards => self.show_empty(&[
                "id",
                "database",
                "retention_policy",
                "shard_group",
                "start_time",
                "end_time",
                "expiry_time",
                "owners",
            ]),
            Statement::ShowShardGroups => {
                let columns = &[
                    "id",
                    "database",
                    "retention_policy",
                    "start_time",
                    "end_time",
                    "expiry_time",
                ];
                Ok(Answer::of(vec![list("shard groups", columns, Vec::new())]))
            }
            Statement::ShowContinuousQueries => self.show_empty(&["name", "query"]),
            _ => return None,
        };
        Some(answer.unwrap_or_else(|error| Answer::failed(error.to_string())))
    }

    /// A table without rows for each database.
    fn show_empty(&self, columns: &[&str]) -> Result<Answer> {
        let databases = self.source.databases()?;
        Ok(Answer::of(databases.iter().map(|name| list(name, columns, Vec::new())).collect()))
    }

    fn show_databases(&self) -> Result<Answer> {
        let rows = names(self.source.databases()?);
        Ok(Answer::of(vec![list("databases", &["name"], rows)]))
    }

    fn show_policies(&self, database: Option<&str>) -> Result<Answer> {
        let database = database.unwrap_or(&self.database);
        self.check_database(database)?;
        let columns = &["name", "duration", "shardGroupDuration", "replicaN", "default"];
        let policies = self.source.policies(database)?.into_iter();
        let rows = policies.map(|policy| {
            vec![
                Value::text(&policy.name),
                Value::text(&go_duration(policy.duration)),
                Value::text(&go_duration(policy.shard_duration)),
                Value::Integer(policy.replication),
                Value::Boolean(policy.is_default),
            ]
        });
        Ok(Answer::of(vec![list("", columns, rows.collect())]))
    }

    fn database_of<'l>(&'l self, listing: &'l Listing) -> Result<&'l str> {
        let database = listing.database.as_deref().unwrap_or(&self.database);
        if database.is_empty() {
            return Err(EvalError::new("database name required"));
        }
        Ok(database)
    }

    /// What a listing is about, by measurement. Those that InfluxDB makes a SELECT of look into the
    /// databases that their sources name.
    fn listed(&self, listing: &Listing, databases: Databases) -> Result<Vec<Listed>> {
        let circumstances = Circumstances { now: self.now, database: &self.database };
        let condition = listing.condition.as_ref();
        let (condition, (first, last)) = condition_and_range(condition, &circumstances)?;
        let range = TimeRange::new(first.unwrap_or(TIME_MIN), last.unwrap_or(TIME_MAX));
        let condition = condition.and_then(without_fields);
        let sets = alternatives(condition.as_ref())
            .map_err(|_| EvalError::new("invalid tag comparison operator"))?;
        let own = listing.database.as_deref().unwrap_or(&self.database);
        let mut names: BTreeMap<Vec<String>, Vec<&MeasurementName>> = BTreeMap::new();
        for source in &listing.sources {
            let Source::Measurement(named) = source else { continue };
            let (other, policy) = match databases {
                Databases::Own => (None, None),
                _ => (named.database.as_deref(), named.policy.as_deref()),
            };
            let stored = self.stored_names(other.unwrap_or(own), policy, databases)?;
            names.entry(stored).or_default().push(&named.name);
        }
        if names.is_empty() {
            names.insert(self.stored_names(own, None, databases)?, Vec::new());
        }
        let mut out = Vec::new();
        for (databases, names) in names {
            for (measurement, databases) in self.measurements_in(&databases)? {
                let is_named = |name: &&MeasurementName| match name {
                    MeasurementName::Is(name) => *name == measurement,
                    MeasurementName::Matches(regex) => regex.regex().is_match(&measurement),
                };
                if names.is_empty() || names.iter().any(is_named) {
                    out.push(Listed { databases, measurement, range, sets: sets.clone() });
                }
            }
        }
        out.retain(|listed| !listed.sets.is_empty() && !listed.range.is_empty());
        out.sort_by(|a, b| a.measurement.cmp(&b.measurement));
        Ok(out)
    }

    /// Names under which the policies are stored that a source is about.
    fn stored_names(
        &self,
        database: &str,
        policy: Option<&str>,
        databases: Databases,
    ) -> Result<Vec<String>> {
        self.check_database(database)?;
        if databases == Databases::Own {
            return self.source.policy_databases(database);
        }
        let stored = self.policy_database(database, policy)?;
        match databases {
            Databases::Named => Ok(vec![stored]),
            _ => self.source.policy_databases(database),
        }
    }

    /// Measurements of several stored names, each with the names that have it.
    fn measurements_in(&self, databases: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for database in databases {
            for measurement in self.source.measurements(database)? {
                found.entry(measurement).or_default().push(database.clone());
            }
        }
        Ok(found)
    }

    fn show_measurements(&self, listing: &Listing) -> Result<Answer> {
        let database = self.database_of(listing)?;
        if !self.source.has_database(database)? {
            return Ok(Answer::default());
        }
        let mut has_time = false;
        if let Some(condition) = &listing.condition {
            condition.walk(&mut |expr| has_time |= is_time(expr));
        }
        if has_time {
            let message = "SHOW MEASUREMENTS doesn't support time in WHERE clause";
            return Err(EvalError::new(message));
        }
        let everything = Listing { condition: None, ..listing.clone() };
        let mut found = Vec::new();
        for listed in self.listed(&everything, Databases::Own)? {
            let is_it = match &listing.condition {
                Some(condition) => self.has_tags(&listed, condition)?,
                None => true,
            };
            if is_it {
                found.push(listed.measurement);
            }
        }
        let found = paged(&found, listing.page.limit, listing.page.offset).to_vec();
        Ok(answer_of_list("measurements", &["name"], names(found)))
    }

    /// Whether a condition is about a measurement: one that says that a tag is not something is about
    /// measurements that have the tag, but no series of which it is that.
    fn has_tags(&self, listed: &Listed, expr: &Expr) -> Result<bool> {
        match expr {
            Expr::Paren(inner) => self.has_tags(listed, inner),
            Expr::Binary { op: op @ (Op::And | Op::Or), left, right } => {
                let left = self.has_tags(listed, left)?;
                let right = self.has_tags(listed, right)?;
                Ok(if *op == Op::And { left && right } else { left || right })
            }
            Expr::Binary { op, left, right } => {
                let Expr::Var { name, .. } = &**left else {
                    return Err(EvalError::new(format!("left side of '{expr}' must be a tag key")));
                };
                match (op, &**right) {
                    (Op::Eq | Op::NotEq, Expr::Text(_)) => {}
                    (Op::EqRegex | Op::NotEqRegex, Expr::Regex(_)) => {}
                    (Op::Eq | Op::NotEq, _) => {
                        let op = op.as_str();
                        let message = format!("right side of '{op}' must be a tag value string");
                        return Err(EvalError::new(message));
                    }
                    _ => return Err(EvalError::new("invalid tag comparison operator")),
                }
                let is_negative = matches!(op, Op::NotEq | Op::NotEqRegex);
                let mut values = Vec::new();
                for place in listed.places() {
                    values.extend(self.source.tag_values(&place, name, &[])?);
                }
                let is_found = values.iter().any(|value| match &**right {
                    Expr::Text(text) => value == text,
                    Expr::Regex(regex) => regex.regex().is_match(value),
                    _ => false,
                });
                Ok(!values.is_empty() && is_found != is_negative)
            }
            _ => Err(EvalError::new(format!("invalid condition: {expr}"))),
        }
    }

    fn listed_keys(&self, listed: &Listed) -> Result<Vec<String>> {
        union(listed, |place, matchers| self.source.tag_keys(place, matchers))
    }

    fn listed_series(&self, listed: &Listed) -> Result<Vec<Labels>> {
        union(listed, |place, matchers| self.source.tag_sets(place, matchers))
    }

    fn show_tag_keys(&self, listing: &Listing) -> Result<Answer> {
        let mut series = Vec::new();
        for listed in self.listed(listing, Databases::Own)? {
            let keys = self.listed_keys(&listed)?;
            let rows = page_rows(names(keys), listing.page);
            if !rows.is_empty() {
                series.push(list(&listed.measurement, &["tagKey"], rows));
            }
        }
        let page = listing.series_page;
        Ok(Answer::of(paged(&series, page.limit, page.offset).to_vec()))
    }

    fn tag_values(&self, listed: &Listed, keys: &KeyFilter) -> Result<Vec<(String, String)>> {
        let mut out = Vec::new();
        for key in self.listed_keys(listed)? {
            if is_wanted(keys, &key) {
                let of = |place: &Place<'_>, matchers: &[Matcher]| {
                    self.source.tag_values(place, &key, matchers)
                };
                let values = union(listed, of)?;
                out.extend(values.into_iter().map(|value| (key.clone(), value)));
            }
        }
        Ok(out)
    }

    fn show_tag_values(&self, listing: &Listing, keys: &KeyFilter) -> Result<Answer> {
        let mut series = Vec::new();
        for listed in self.listed(listing, Databases::Own)? {
            let pairs = self.tag_values(&listed, keys)?;
            let rows = pairs.iter().map(|(key, value)| vec![Value::text(key), Value::text(value)]);
            let rows = page_rows(rows.collect(), listing.page);
            if !rows.is_empty() {
                series.push(list(&listed.measurement, &["key", "value"], rows));
            }
        }
        Ok(Answer::of(series))
    }

    fn count_tag_values(&self, listing: &Listing, keys: &KeyFilter) -> Result<Answer> {
        let mut series = Vec::new();
        for listed in self.listed(listing, Databases::Own)? {
            let count = self.tag_values(&listed, keys)?.len();
            if count != 0 {
                series.push(counted(&listed.measurement, "count", count));
            }
        }
        Ok(Answer::of(series))
    }

    fn show_field_keys(&self, listing: &Listing) -> Result<Answer> {
        let mut series = Vec::new();
        for listed in self.listed(listing, Databases::Named)? {
            let mut rows = Vec::new();
            for database in &listed.databases {
                let fields = self.fields(database, &listed.measurement)?;
                for (name, kind) in fields.iter() {
                    rows.push(vec![Value::text(name), Value::text(kind.as_str())]);
                    if self.source.has_texts_beside(database, &listed.measurement, name) {
                        let kind = DataType::String.as_str();
                        rows.push(vec![Value::text(name), Value::text(kind)]);
                    }
                }
            }
            let rows = page_rows(rows, listing.page);
            if !rows.is_empty() {
                series.push(list(&listed.measurement, &["fieldKey", "fieldType"], rows));
            }
        }
        Ok(Answer::of(series))
    }

    fn show_series(&self, listing: &Listing) -> Result<Answer> {
        let mut keys = Vec::new();
        for listed in self.listed(listing, Databases::NamedWhole)? {
            for labels in self.listed_series(&listed)? {
                keys.push(series_key(&listed.measurement, &labels));
            }
        }
        keys.sort();
        let rows = page_rows(names(keys), listing.page);
        Ok(answer_of_list("", &["key"], rows))
    }

    fn show_cardinality(&self, what: Counted, listing: &Listing, exact: bool) -> Result<Answer> {
        let is_whole = !exact && matches!(what, Counted::Series | Counted::Measurements);
        let databases = if is_whole { Databases::NamedWhole } else { Databases::Named };
        let all = self.listed(listing, databases)?;
        if what == Counted::Measurements {
            let column = if exact { "count" } else { "cardinality estimation" };
            let counts =
                if all.is_empty() && exact { vec![] } else { vec![counted("", column, all.len())] };
            return Ok(Answer::of(counts));
        }
        let mut series = Vec::new();
        let mut total = 0;
        for listed in all {
            let count = match what {
                Counted::Series => self.listed_series(&listed)?.len(),
                Counted::TagKeys => self.listed_keys(&listed)?.len(),
                _ => {
                    let count = |database| Ok(self.fields(database, &listed.measurement)?.len());
                    listed
                        .databases
                        .iter()
                        .map(|database| count(database))
                        .sum::<Result<usize>>()?
                }
            };
            total += count;
            if count != 0 {
                series.push(counted(&listed.measurement, "count", count));
            }
        }
        if what == Counted::Series && !exact {
            return Ok(Answer::of(vec![counted("", "cardinality estimation", total)]));
        }
        Ok(Answer::of(series))
    }

    /// What a SELECT will read.
    pub(super) fn explain(&self, select: &Select) -> Result<Answer> {
        let circumstances = Circumstances { now: self.now, database: &self.database };
        let mut plan = compile(select, &circumstances)?;
        self.resolve_databases(&mut plan)?;
        self.list_measurements(&mut plan, &mut 0)?;
        let plan = self.rewrite(plan)?;
        let fields: Vec<String> = plan.fields.iter().map(ToString::to_string).collect();
        let mut series = 0;
        for source in &plan.sources {
            for (database, measurement) in self.measurements_of(source)? {
                let fields = self.fields(&database, &measurement)?;
                let matchers = split(plan.condition.as_ref(), &fields).matchers;
                let range = TimeRange::new(plan.range.0, plan.range.1);
                let place = Place { database: &database, measurement: &measurement, range };
                series += self.source.tag_sets(&place, &matchers)?.len();
            }
        }
        let lines = vec![
            format!("EXPRESSION: {}", fields.join(", ")),
            format!("NUMBER OF SERIES: {series}"),
        ];
        Ok(Answer::of(vec![list("", &["QUERY PLAN"], names(lines))]))
    }
}

/// Duration as Go prints it: `168h0m0s`, `0s`.
fn go_duration(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// Merges the results of all places and matcher sets: sorted, without duplicates.
fn union<T: Ord>(
    listed: &Listed,
    mut of: impl FnMut(&Place<'_>, &[Matcher]) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let parts = listed.places().flat_map(|place| listed.sets.iter().map(move |s| (place, s)));
    let mut all = Vec::new();
    for (place, set) in parts {
        all.extend(of(&place, set)?);
    }
    if listed.databases.len() == 1 && listed.sets.len() == 1 {
        return Ok(all);
    }
    all.sort();
    all.dedup();
    Ok(all)
}

fn answer_of_list(name: &str, columns: &[&str], rows: Vec<Vec<Value>>) -> Answer {
    match rows.is_empty() {
        true => Answer::default(),
        false => Answer::of(vec![list(name, columns, rows)]),
    }
}

fn page_rows(rows: Vec<Vec<Value>>, page: Page) -> Vec<Vec<Value>> {
    if page == Page::default() {
        return rows;
    }
    paged(&rows, page.limit, page.offset).to_vec()
}

fn counted(name: &str, column: &str, count: usize) -> Series {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    list(name, &[column], vec![vec![Value::Integer(count)]])
}

fn is_wanted(keys: &KeyFilter, key: &str) -> bool {
    match keys {
        KeyFilter::Is(name) => name == key,
        KeyFilter::IsNot(name) => name != key,
        KeyFilter::Matches(regex) => regex.regex().is_match(key),
        KeyFilter::DoesNotMatch(regex) => !regex.regex().is_match(key),
        KeyFilter::In(names) => names.iter().any(|name| name == key),
    }
}

/// A series as line protocol writes it.
fn series_key(measurement: &str, labels: &Labels) -> String {
    let mut out = measurement.replace(',', "\\,").replace(' ', "\\ ");
    let escape = |text: &str| text.replace(',', "\\,").replace('=', "\\=").replace(' ', "\\ ");
    for (name, value) in labels.iter() {
        out.push(',');
        out.push_str(&escape(name));
        out.push('=');
        out.push_str(&escape(value));
    }
    out
}

fn is_time(expr: &Expr) -> bool {
    matches!(expr, Expr::Var { name, .. } if name.eq_ignore_ascii_case("time"))
}
/// A condition without comparisons with booleans and numbers, which InfluxDB passes over in a listing: no tag has such
/// values. None if nothing is left.
fn without_fields(condition: Expr) -> Option<Expr> {
    match condition {
        Expr::Paren(inner) => without_fields(*inner).map(|inner| Expr::Paren(Box::new(inner))),
        Expr::Binary { op: op @ (Op::And | Op::Or), left, right } => {
            match (without_fields(*left), without_fields(*right)) {
                (Some(left), Some(right)) => {
                    Some(Expr::Binary { op, left: Box::new(left), right: Box::new(right) })
                }
                (one, other) if op == Op::And => one.or(other),
                _ => None,
            }
        }
        Expr::Binary { op: Op::Eq | Op::NotEq, left, right }
            if matches!(*left, Expr::Var { .. })
                && matches!(
                    *right,
                    Expr::Boolean(_) | Expr::Number(_) | Expr::Integer(_) | Expr::Unsigned(_)
                ) =>
        {
            None
        }
        other => Some(other),
    }
}
