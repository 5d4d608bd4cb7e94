//! A running InfluxDB, asked in InfluxQL: a day of a database, or of another retention policy of it, at a
//! time. Fields are selected by their types, as numbers in JSON do not say what they were.

use super::days;
use super::points::Points;
use super::series::Filter;
use super::source::{Given, Sink, Source, Window};
use super::victoriametrics::Lines;
use crate::commands::client::{Asked, Client, encode};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use hyper::Method;
use model::sample::NANOS_PER_DAY;
use model::{Labels, METRIC_NAME, TimeRange};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use wire::influx::FieldType;
use wire::influx::answer::{AnswerPart, AnswerSeries, read_answer};

/// The scheme of tokens: InfluxDB 2 has a word of its own.
pub const TOKEN: &str = "Token";
/// Rows of a piece of an answer.
const ROWS_AT_ONCE: usize = 5000;
/// Statements of a request, and bytes of them.
const STATEMENTS_MAX: usize = 64;
const QUESTION_SIZE_MAX: usize = 256 << 10;
/// Fields of a statement.
const FIELDS_AT_ONCE: usize = 200;
/// Bytes of an answer about names.
const NAMES_SIZE_MAX: usize = 256 << 20;
/// Its own database, of what it does itself.
const INTERNAL: &str = "_internal";
/// Days that are asked for one by one.
const DAYS_MAX: usize = 100_000;
/// Fields that are named.
const NAMES_SHOWN: usize = 10;

/// The server.
pub struct InfluxDb {
    client: Client,
    filter: Arc<Filter>,
    range: TimeRange,
    /// Those that were asked for; all where none was.
    databases: Vec<String>,
    policies: Vec<Policy>,
    /// What each database has, once it was asked.
    known: BTreeMap<String, Arc<Vec<Measurement>>>,
    /// How many values of text fields were left out, by measurement.
    texts_lost: BTreeMap<String, u64>,
    /// Fields that cannot be asked for.
    unsayable: BTreeSet<String>,
}

/// A retention policy, which has samples of its own.
#[derive(Clone, Debug)]
struct Policy {
    database: String,
    name: String,
    is_default: bool,
    shards: Vec<TimeRange>,
}

/// A measurement and its fields.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// Its name.
    pub name: String,
    /// Names and types of its fields.
    pub fields: Vec<(String, FieldType)>,
}

/// What a statement asks for.
struct Statement<'a> {
    measurement: &'a Measurement,
    /// Which columns come.
    fields: &'a [(String, FieldType)],
    text: String,
}

/// A table of names: a row has its columns by name.
type Rows = Vec<(String, BTreeMap<String, Value>)>;

impl Policy {
    /// The database that Quipu's label `db` says.
    fn label(&self) -> String {
        match self.is_default {
            true => self.database.clone(),
            false => format!("{}.{}", self.database, self.name),
        }
    }

    /// What the names of its windows begin with: names have no slash.
    fn head(&self) -> String {
        format!("{}/{}", self.database, self.name)
    }
}

impl InfluxDb {
    /// What a server has of that time.
    pub fn new(
        client: Client,
        filter: Arc<Filter>,
        range: TimeRange,
        databases: Vec<String>,
    ) -> InfluxDb {
        InfluxDb {
            client,
            filter,
            range,
            databases,
            policies: Vec::new(),
            known: BTreeMap::new(),
            texts_lost: BTreeMap::new(),
            unsayable: BTreeSet::new(),
        }
    }

    /// Asks for names.
    fn names(&mut self, question: &str) -> anyhow::Result<Rows> {
        let body = Bytes::from(format!("q={}", encode(question)));
        let asked = Asked { method: Method::POST, path: NAMES_PATH, headers: FORM, body };
        let mut text = Vec::new();
        let reply = self.client.ask(&asked, &mut |bytes| {
            ensure!(text.len() + bytes.len() <= NAMES_SIZE_MAX, "more than {NAMES_SIZE_MAX} bytes");
            text.extend_from_slice(bytes);
            Ok(())
        });
        let reply = reply.with_context(|| question.to_string())?;
        if !reply.status.is_success() {
            bail!("{question}: {}: {}", reply.status, reply.error);
        }
        let mut rows = Rows::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            let answer: Value = serde_json::from_slice(line)
                .with_context(|| format!("{question}: an answer that is no JSON"))?;
            let result = &answer["results"][0];
            for wrong in [&answer["error"], &result["error"]] {
                if let Some(words) = wrong.as_str() {
                    bail!("{question}: {words}");
                }
            }
            rows.append(&mut rows_of(result));
        }
        Ok(rows)
    }

    /// One column of names.
    fn column(&mut self, question: &str, column: &str) -> anyhow::Result<Vec<String>> {
        let rows = self.names(question)?;
        let text = |(_, row): &(String, BTreeMap<String, Value>)| {
            row.get(column).and_then(Value::as_str).map(str::to_string)
        };
        Ok(rows.iter().filter_map(text).collect())
    }

    /// All policies of the databases that are asked for, with the times of their shards.
    fn find_policies(&mut self) -> anyhow::Result<Vec<Policy>> {
        let mut databases = self.column("SHOW DATABASES", "name")?;
        if self.databases.is_empty() {
            databases.retain(|name| name != INTERNAL);
        } else {
            let is_there = |name: &&String| databases.contains(name);
            if let Some(lost) = self.databases.iter().find(|name| !is_there(name)) {
                bail!("no database {lost}; there are: {}", databases.join(", "));
            }
            databases = self.databases.clone();
        }
        let shards = match self.range.start {
            // Whoever says a start may have a server without them, as of version 2.
            i64::MIN => self.shards().context(
                "this server does not say since when it has samples: say --start, as in --start 2026-01-01",
            )?,
            _ => self.shards().unwrap_or_default(),
        };
        let mut policies = Vec::new();
        for database in databases {
            let question = format!("SHOW RETENTION POLICIES ON {}", quoted(&database));
            for (_, row) in self.names(&question)? {
                let name = row.get("name").and_then(Value::as_str).unwrap_or_default().to_string();
                let is_default = row.get("default").and_then(Value::as_bool).unwrap_or(false);
                let own = shards.get(&(database.clone(), name.clone()));
                let shards = match (shards.is_empty(), own) {
                    (true, _) => vec![TimeRange::ALL],
                    (false, own) => own.cloned().unwrap_or_default(),
                };
                policies.push(Policy { database: database.clone(), name, is_default, shards });
            }
        }
        Ok(policies)
    }

    /// The times of the shards of each database and policy.
    fn shards(&mut self) -> anyhow::Result<BTreeMap<(String, String), Vec<TimeRange>>> {
        let mut found: BTreeMap<(String, String), Vec<TimeRange>> = BTreeMap::new();
        for (_, row) in self.names("SHOW SHARDS")? {
            let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
            let time = |name: &str| -> anyhow::Result<i64> {
                let time: jiff::Timestamp = text(name).parse().context("a shard's time")?;
                Ok(i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX))
            };
            let range = TimeRange::new(time("start_time")?, time("end_time")?.saturating_sub(1));
            let key = (text("database").to_string(), text("retention_policy").to_string());
            found.entry(key).or_default().push(range);
        }
        Ok(found)
    }

    /// The measurements of a database.
    fn measurements(&mut self, database: &str) -> anyhow::Result<Arc<Vec<Measurement>>> {
        if let Some(known) = self.known.get(database) {
            return Ok(known.clone());
        }
        let rows = self.names(&format!("SHOW FIELD KEYS ON {}", quoted(database)))?;
        let mut types: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (measurement, row) in rows {
            let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
            let fields = types.entry(measurement).or_default();
            fields.entry(text("fieldKey").into()).or_default().insert(text("fieldType").into());
        }
        let mut found: Vec<Measurement> =
            types.into_iter().map(|(name, fields)| measurement(name, fields)).collect();
        self.unsayable.append(&mut take_unsayable(&mut found));
        let found = Arc::new(found);
        self.known.insert(database.to_string(), found.clone());
        Ok(found)
    }

    /// Asks statements of one database and hands on what comes of them.
    fn ask(
        &mut self,
        database: &str,
        statements: &[Statement<'_>],
        on_series: &mut dyn FnMut(&Statement<'_>, AnswerSeries) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let texts: Vec<&str> = statements.iter().map(|one| one.text.as_str()).collect();
        let question = encode(&texts.join(";"));
        let path = format!(
            "/query?db={}&epoch=ns&chunked=true&chunk_size={ROWS_AT_ONCE}",
            encode(database)
        );
        let body = Bytes::from(format!("q={question}"));
        let asked = Asked { method: Method::POST, path: &path, headers: FORM, body };
        let mut hand_on = |line: &[u8]| {
            for AnswerPart { statement, series, .. } in read_answer(line)? {
                let at = usize::try_from(statement).ok().and_then(|at| statements.get(at));
                let statement = at.context("an answer to what was not asked")?;
                for one in series {
                    on_series(statement, one).with_context(|| statement.text.clone())?;
                }
            }
            Ok(())
        };
        let mut lines = Lines::default();
        let reply = self.client.ask(&asked, &mut |bytes| lines.push(bytes, &mut hand_on))?;
        if !reply.status.is_success() {
            bail!("/query: {}: {}", reply.status, reply.error);
        }
        lines.end(&mut hand_on)
    }
}

/// In pieces, as a server may cut an answer that is whole after so many rows.
const NAMES_PATH: &str = "/query?chunked=true&chunk_size=10000";
const FORM: &[(&str, &str)] = &[("content-type", "application/x-www-form-urlencoded")];

fn rows_of(result: &Value) -> Rows {
    let mut rows = Rows::new();
    for series in result["series"].as_array().into_iter().flatten() {
        let name = series["name"].as_str().unwrap_or_default();
        let columns: Vec<&str> =
            series["columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for values in series["values"].as_array().into_iter().flatten() {
            let values = values.as_array().into_iter().flatten();
            let cell = |(column, value): (&&str, &Value)| ((*column).to_string(), value.clone());
            rows.push((name.to_string(), columns.iter().zip(values).map(cell).collect()));
        }
    }
    rows
}

/// A measurement of which shards say different types: what is a number anywhere is one.
pub fn measurement(name: String, fields: BTreeMap<String, BTreeSet<String>>) -> Measurement {
    let mut found = Measurement { name, ..Measurement::default() };
    for (field, types) in fields {
        let has = |name: &str| types.contains(name);
        if has("float") {
            found.fields.push((field.clone(), FieldType::Float));
        } else if has("integer") || has("unsigned") {
            found.fields.push((field.clone(), FieldType::Integer));
        }
        if has("boolean") {
            found.fields.push((field.clone(), FieldType::Boolean));
        }
        if has("string") {
            found.fields.push((field, FieldType::String));
        }
    }
    found
}

/// Whether InfluxQL can say it: its reader ends at a zero byte and takes `\r` for `\n`. What stands for bytes
/// that are no UTF-8 is not what the server has.
pub fn is_sayable(value: &str) -> bool {
    !value.contains(['\0', '\r', char::REPLACEMENT_CHARACTER])
}

/// Takes away what no statement can name; the names of that, field and measurement.
fn take_unsayable(all: &mut Vec<Measurement>) -> BTreeSet<String> {
    let mut taken = BTreeSet::new();
    for Measurement { name, fields } in all.iter_mut() {
        let is_named = is_sayable(name);
        fields.retain(|(field, _)| {
            let is_kept = is_named && is_sayable(field);
            if !is_kept {
                taken.insert(format!("{field:?} of measurement {name:?}"));
            }
            is_kept
        });
    }
    all.retain(|one| !one.fields.is_empty());
    taken
}

/// An identifier as InfluxQL reads it.
pub fn quoted(name: &str) -> String {
    let mut text = String::from("\"");
    for character in name.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

fn select(columns: &str, policy: &Policy, measurement: &Measurement, range: &TimeRange) -> String {
    // Its first and last instant are no numbers that it reads.
    let (start, end) = (range.start.max(i64::MIN + 2), range.end.min(i64::MAX - 1));
    format!(
        "SELECT {columns} FROM {}.{}.{} WHERE time >= {start} AND time <= {end}",
        quoted(&policy.database),
        quoted(&policy.name),
        quoted(&measurement.name)
    )
}

/// As many statements at a time as a request may have.
fn batches<'s, 'm>(statements: &'s [Statement<'m>]) -> Vec<&'s [Statement<'m>]> {
    let mut batches = Vec::new();
    let mut rest = statements;
    while !rest.is_empty() {
        let mut size = 0;
        let fits = |one: &&Statement<'_>| {
            size += one.text.len();
            size <= QUESTION_SIZE_MAX
        };
        let count = rest.iter().take(STATEMENTS_MAX).take_while(fits).count().max(1);
        let (some, others) = rest.split_at(count);
        batches.push(some);
        rest = others;
    }
    batches
}

/// The statements that ask for all fields of some measurements.
fn statements<'m>(
    all: &'m [Measurement],
    policy: &Policy,
    range: &TimeRange,
) -> Vec<Statement<'m>> {
    let mut statements = Vec::new();
    for measurement in all {
        for fields in measurement.fields.chunks(FIELDS_AT_ONCE) {
            let mut columns = String::new();
            for (at, (name, kind)) in fields.iter().enumerate() {
                let kind = match kind {
                    FieldType::Float => "float",
                    FieldType::Integer | FieldType::Long => "integer",
                    FieldType::Boolean => "boolean",
                    FieldType::String => "string",
                };
                let parts_by = if at == 0 { "" } else { ", " };
                let _ = write!(columns, "{parts_by}{}::{kind} AS c{at}", quoted(name));
            }
            let text = format!("{} GROUP BY *", select(&columns, policy, measurement, range));
            statements.push(Statement { measurement, fields, text });
        }
    }
    statements
}

fn points_of(statement: &Statement<'_>, policy: &Policy, series: AnswerSeries) -> Points {
    // What a series has not is an empty tag, which is none.
    let tags: Vec<&(String, String)> =
        series.tags.iter().filter(|(_, value)| !value.is_empty()).collect();
    let pairs: Vec<(&str, &str)> = tags.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let mut tags = Labels::from_pairs(&pairs).to_builder();
    // The door refuses such a tag.
    tags.remove(METRIC_NAME);
    Points {
        database: policy.label(),
        measurement: statement.measurement.name.clone(),
        tags: tags.finish(),
        fields: statement.fields.to_vec(),
        rows: series.rows,
        texts: Arc::new(series.texts),
    }
}

impl Source for InfluxDb {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        self.policies = self.find_policies()?;
        let mut windows = Vec::new();
        for policy in &self.policies {
            let mut days: BTreeMap<i64, Window> = BTreeMap::new();
            for shard in &policy.shards {
                let range = shard.intersect(&self.range);
                let count = range.end.saturating_sub(range.start) / NANOS_PER_DAY;
                let is_few = usize::try_from(count).is_ok_and(|count| count <= DAYS_MAX);
                ensure!(
                    range.is_empty() || is_few,
                    "{count} days, with a request for each: say --start"
                );
                for day in days::windows(&range) {
                    let whole = days
                        .entry(day.range.start.div_euclid(NANOS_PER_DAY))
                        .or_insert(day.clone());
                    whole.range.start = whole.range.start.min(day.range.start);
                    whole.range.end = whole.range.end.max(day.range.end);
                }
            }
            for (_, mut day) in days {
                day.name = format!("{}/{}", policy.head(), day.name);
                windows.push(day);
            }
        }
        windows.sort_by_key(|one| std::cmp::Reverse(one.range.end));
        Ok(windows)
    }

    fn is_disjoint(&self) -> bool {
        true
    }

    fn left_out(&self) -> Vec<String> {
        let shown = |names: &mut dyn Iterator<Item = String>| {
            let mut named: Vec<String> = names.take(NAMES_SHOWN + 1).collect();
            if NAMES_SHOWN < named.len() {
                named.truncate(NAMES_SHOWN);
                named.push("..".to_string());
            }
            named.join(", ")
        };
        let mut words = Vec::new();
        let all: u64 = self.texts_lost.values().sum();
        if 0 < all {
            let mut named = self.texts_lost.iter().map(|(name, count)| format!("{name} ({count})"));
            let named = shown(&mut named);
            words.push(format!("{all} values of text fields, which only lines can say: {named}"));
        }
        if !self.unsayable.is_empty() {
            let (count, named) = (self.unsayable.len(), shown(&mut self.unsayable.iter().cloned()));
            words.push(format!("{count} fields whose names InfluxQL cannot say: {named}"));
        }
        words
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let (head, _) = window.name.rsplit_once('/').context("a window without a day")?;
        let policy = self.policies.iter().find(|one| one.head() == head);
        let policy = policy.context("a window of no database")?.clone();
        let all = self.measurements(&policy.database)?;
        let statements = statements(&all, &policy, &window.range);
        let filter = self.filter.clone();
        let mut texts_lost: BTreeMap<String, u64> = BTreeMap::new();
        for some in batches(&statements) {
            self.ask(&policy.database, some, &mut |statement, series| {
                let mut given = Given::Points(points_of(statement, &policy, series));
                if !given.tidy(&window.range, &filter) {
                    return Ok(());
                }
                let lost = given.texts_lost(&filter);
                if 0 < lost {
                    let name = format!("{}.{}", policy.label(), statement.measurement.name);
                    *texts_lost.entry(name).or_default() += lost;
                }
                sink(given)
            })?;
        }
        for (name, lost) in texts_lost {
            *self.texts_lost.entry(name).or_default() += lost;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_said_is_taken_away_and_named() {
        let measurement = |name: &str, fields: &[&str]| Measurement {
            name: name.to_string(),
            fields: fields.iter().map(|one| ((*one).to_string(), FieldType::Float)).collect(),
        };
        let mut all = vec![measurement("a\rb", &["v"]), measurement("m", &["v", "x\0"])];
        let taken = take_unsayable(&mut all);
        assert_eq!((all.len(), all[0].fields.len()), (1, 1));
        let taken: Vec<String> = taken.into_iter().collect();
        assert_eq!(taken, [r#""v" of measurement "a\rb""#, r#""x\0" of measurement "m""#]);
    }

    #[test]
    fn fields_are_asked_for_by_their_types() {
        let types = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
        let fields = BTreeMap::from([
            ("a\"b".to_string(), types(&["float", "integer"])),
            ("n".to_string(), types(&["integer", "boolean"])),
            ("s".to_string(), types(&["string"])),
        ]);
        let all = [measurement("m\\".to_string(), fields)];
        let policy = Policy {
            database: "d".to_string(),
            name: "rp".to_string(),
            is_default: false,
            shards: Vec::new(),
        };
        assert_eq!(policy.label(), "d.rp");
        let all = statements(&all, &policy, &TimeRange::new(1, 2));
        assert_eq!(
            all[0].text,
            "SELECT \"a\\\"b\"::float AS c0, \"n\"::integer AS c1, \"n\"::boolean AS c2, \
             \"s\"::string AS c3 FROM \"d\".\"rp\".\"m\\\\\" WHERE time >= 1 AND time <= 2 GROUP BY *"
        );
        assert_eq!(batches(&all).len(), 1);
    }
}
