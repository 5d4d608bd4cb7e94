//! SHOW and EXPLAIN.

use super::compile::{Circumstances, compile};
use super::condition::split;
use super::inputs::paged;
use super::reduce::Constants;
use super::{Evaluator, Result};
use crate::answer::{Answer, Series};
use crate::ast::{
    Counted, Expr, KeyFilter, Listing, MeasurementName, Page, Select, Source, Statement,
};
use crate::source::{EvalError, Place};
use crate::time::{TIME_MAX, TIME_MIN};
use crate::token::Op;
use crate::value::Value;
use model::{Labels, Matcher, TimeRange};

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
    measurement: String,
    matchers: Vec<Matcher>,
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
        let row = vec![
            Value::text("autogen"),
            Value::text("0s"),
            Value::text("168h0m0s"),
            Value::Integer(1),
            Value::Boolean(true),
        ];
        Ok(Answer::of(vec![list("", columns, vec![row])]))
    }

    fn database_of<'l>(&'l self, listing: &'l Listing) -> Result<&'l str> {
        let database = listing.database.as_deref().unwrap_or(&self.database);
        if database.is_empty() {
            return Err(EvalError::new("database name required"));
        }
        Ok(database)
    }

    fn place<'l>(&self, database: &'l str, measurement: &'l str) -> Place<'l> {
        Place { database, measurement, range: TimeRange::new(TIME_MIN, TIME_MAX) }
    }

    /// The measurements that a listing is about, sorted.
    fn listed(&self, database: &str, listing: &Listing) -> Result<Vec<Listed>> {
        let condition = match &listing.condition {
            None => None,
            Some(condition) => {
                let constants = Constants { now: Some(self.now), zone: None };
                without_time(constants.reduce(condition.clone()))
            }
        };
        let mut out = Vec::new();
        for measurement in self.source.measurements(database)? {
            let is_named = |source: &Source| match source {
                Source::Measurement(named) => match &named.name {
                    MeasurementName::Is(name) => *name == measurement,
                    MeasurementName::Matches(regex) => regex.regex.is_match(&measurement),
                },
                Source::Query(_) => false,
            };
            if !listing.sources.is_empty() && !listing.sources.iter().any(is_named) {
                continue;
            }
            let found = split(condition.as_ref(), &crate::source::Fields::new());
            if found.is_never {
                continue;
            }
            if let Some(rest) = &found.rest {
                let message = format!("invalid tag comparison operator in {rest}");
                return Err(EvalError::new(message));
            }
            out.push(Listed { measurement, matchers: found.matchers });
        }
        Ok(out)
    }

    fn show_measurements(&self, listing: &Listing) -> Result<Answer> {
        let database = self.database_of(listing)?;
        let everything = Listing { condition: None, ..listing.clone() };
        let condition = listing.condition.clone().and_then(without_time);
        let mut found = Vec::new();
        for listed in self.listed(database, &everything)? {
            let is_it = match &condition {
                Some(condition) => self.has_tags(database, &listed.measurement, condition)?,
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
    /// measurements of which no series has it.
    fn has_tags(&self, database: &str, measurement: &str, expr: &Expr) -> Result<bool> {
        match expr {
            Expr::Paren(inner) => self.has_tags(database, measurement, inner),
            Expr::Binary { op: op @ (Op::And | Op::Or), left, right } => {
                let left = self.has_tags(database, measurement, left)?;
                let right = self.has_tags(database, measurement, right)?;
                Ok(if *op == Op::And { left && right } else { left || right })
            }
            Expr::Binary { op, left, right } => {
                let Expr::Var { name, .. } = &**left else {
                    return Err(EvalError::new(format!("left side of '{expr}' must be a tag key")));
                };
                let is_negative = matches!(op, Op::NotEq | Op::NotEqRegex);
                let positive = match op {
                    Op::NotEq => Op::Eq,
                    Op::NotEqRegex => Op::EqRegex,
                    op => *op,
                };
                let (left, right) = (left.clone(), right.clone());
                let positive = Expr::Binary { op: positive, left, right };
                let found = split(Some(&positive), &crate::source::Fields::new());
                let place = self.place(database, measurement);
                let values = self.source.tag_values(&place, name, &found.matchers)?;
                Ok(values.is_empty() == is_negative)
            }
            _ => Err(EvalError::new(format!("invalid condition: {expr}"))),
        }
    }

    fn show_tag_keys(&self, listing: &Listing) -> Result<Answer> {
        let database = self.database_of(listing)?;
        let mut series = Vec::new();
        for listed in self.listed(database, listing)? {
            let place = self.place(database, &listed.measurement);
            let keys = self.source.tag_keys(&place, &listed.matchers)?;
            let rows = page_rows(names(keys), listing.page);
            if !rows.is_empty() {
                series.push(list(&listed.measurement, &["tagKey"], rows));
            }
        }
        let page = listing.series_page;
        Ok(Answer::of(paged(&series, page.limit, page.offset).to_vec()))
    }

    fn tag_values(
        &self,
        database: &str,
        listed: &Listed,
        keys: &KeyFilter,
    ) -> Result<Vec<(String, String)>> {
        let place = self.place(database, &listed.measurement);
        let mut out = Vec::new();
        for key in self.source.tag_keys(&place, &listed.matchers)? {
            if is_wanted(keys, &key) {
                let values = self.source.tag_values(&place, &key, &listed.matchers)?;
                out.extend(values.into_iter().map(|value| (key.clone(), value)));
            }
        }
        Ok(out)
    }

    fn show_tag_values(&self, listing: &Listing, keys: &KeyFilter) -> Result<Answer> {
        let database = self.database_of(listing)?;
        let mut series = Vec::new();
        for listed in self.listed(database, listing)? {
            let pairs = self.tag_values(database, &listed, keys)?;
            let rows = pairs.iter().map(|(key, value)| vec![Value::text(key), Value::text(value)]);
            let rows = page_rows(rows.collect(), listing.page);
            if !rows.is_empty() {
                series.push(list(&listed.measurement, &["key", "value"], rows));
            }
        }
        Ok(Answer::of(series))
    }

    fn count_tag_values(&self, listing: &Listing, keys: &KeyFilter) -> Result<Answer> {
        let database = self.database_of(listing)?;
        let mut series = Vec::new();
        for listed in self.listed(database, listing)? {
            let count = self.tag_values(database, &listed, keys)?.len();
            if count != 0 {
                series.push(counted(&listed.measurement, "count", count));
            }
        }
        Ok(Answer::of(series))
    }

    fn show_field_keys(&self, listing: &Listing) -> Result<Answer> {
        let database = self.database_of(listing)?;
        let mut series = Vec::new();
        for listed in self.listed(database, listing)? {
            let fields = self.fields(database, &listed.measurement)?;
            let rows = fields
                .iter()
                .map(|(name, kind)| vec![Value::text(name), Value::text(kind.as_str())]);
            let rows = page_rows(rows.collect(), listing.page);
            if !rows.is_empty() {
                series.push(list(&listed.measurement, &["fieldKey", "fieldType"], rows));
            }
        }
        Ok(Answer::of(series))
    }

    fn show_series(&self, listing: &Listing) -> Result<Answer> {
        let database = self.database_of(listing)?;
        let mut keys = Vec::new();
        for listed in self.listed(database, listing)? {
            let place = self.place(database, &listed.measurement);
            for labels in self.source.tag_sets(&place, &listed.matchers)? {
                keys.push(series_key(&listed.measurement, &labels));
            }
        }
        keys.sort();
        let rows = page_rows(names(keys), listing.page);
        Ok(answer_of_list("", &["key"], rows))
    }

    fn show_cardinality(&self, what: Counted, listing: &Listing, exact: bool) -> Result<Answer> {
        let database = self.database_of(listing)?;
        let all = self.listed(database, listing)?;
        if what == Counted::Measurements {
            let column = if exact { "count" } else { "cardinality estimation" };
            return Ok(Answer::of(vec![counted("", column, all.len())]));
        }
        let mut series = Vec::new();
        let mut total = 0;
        for listed in all {
            let place = self.place(database, &listed.measurement);
            let count = match what {
                Counted::Series => self.source.tag_sets(&place, &listed.matchers)?.len(),
                Counted::TagKeys => self.source.tag_keys(&place, &listed.matchers)?.len(),
                _ => self.fields(database, &listed.measurement)?.len(),
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
        let plan = compile(select, &circumstances)?;
        self.check_databases(&plan)?;
        let plan = self.rewrite(plan)?;
        let fields: Vec<String> = plan.fields.iter().map(ToString::to_string).collect();
        let mut series = 0;
        for source in &plan.sources {
            for (database, measurement) in self.measurements_of(source)? {
                let fields = self.fields(&database, &measurement)?;
                let matchers = split(plan.condition.as_ref(), &fields).matchers;
                let range = TimeRange::new(plan.range.0, plan.range.1);
                let place = Place { range, ..self.place(&database, &measurement) };
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
        KeyFilter::Matches(regex) => regex.regex.is_match(key),
        KeyFilter::DoesNotMatch(regex) => !regex.regex.is_match(key),
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

/// A condition without what it says about time: series are listed whenever they were.
fn without_time(expr: Expr) -> Option<Expr> {
    match expr {
        Expr::Binary { op: op @ (Op::And | Op::Or), left, right } => {
            match (without_time(*left), without_time(*right)) {
                (Some(left), Some(right)) => {
                    Some(Expr::Binary { op, left: Box::new(left), right: Box::new(right) })
                }
                (left, right) => left.or(right),
            }
        }
        Expr::Binary { ref left, ref right, .. } => {
            let is_time = |expr: &Expr| matches!(expr, Expr::Var { name, .. } if name.eq_ignore_ascii_case("time"));
            if is_time(left) || is_time(right) { None } else { Some(expr) }
        }
        Expr::Paren(inner) => without_time(*inner).map(|inner| Expr::Paren(Box::new(inner))),
        other => Some(other),
    }
}
