//! A running InfluxDB, asked in InfluxQL: a day of a database, or of another retention policy of it, at a
//! time. Fields are selected by their types, as numbers in JSON do not say what they were.

use super::days;
use crate::points::Points;
use crate::series::Filter;
use crate::source::{Given, Sink, Source, Total, Window};
use anyhow::{Context as _, bail, ensure};
use http_client::client::Client;
use http_client::influxdb::{Measurement, is_sayable, measurement};
use http_client::influxql;
use http_client::influxql::{
    Answer, Form, Row, count_at_once, quoted, shared_label, show_fields, show_fields_of_policy,
    show_policies,
};
use http_client::retry::retried;
use model::sample::{NANOS_PER_DAY, NANOS_PER_SECOND};
use model::{Labels, METRIC_NAME, TimeRange, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use wire::influx::FieldType;
use wire::influx::answer::{AnswerSeries, read_answer};

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
    /// Measurements and fields of each policy; cached.
    known: BTreeMap<String, Arc<Vec<Measurement>>>,
    /// How many values of text fields were left out, by measurement.
    texts_lost: BTreeMap<String, u64>,
    /// Fields that cannot be asked for.
    unsayable: BTreeSet<String>,
    /// Measurements with a tag `__name__`, which is no label of their series.
    renamed: BTreeSet<String>,
}

/// A retention policy, which has samples of its own.
#[derive(Clone, Debug)]
struct Policy {
    database: String,
    name: String,
    is_default: bool,
    /// The database's default policy.
    default: String,
    shards: Vec<TimeRange>,
}

/// What a statement asks for.
struct Statement<'a> {
    measurement: &'a Measurement,
    /// Which columns come.
    fields: &'a [(String, FieldType)],
    text: String,
}

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
            renamed: BTreeSet::new(),
        }
    }

    /// Asks for a list of names.
    fn list<T>(
        &mut self,
        database: &str,
        text: &str,
        of_row: &dyn Fn(&Row<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        let client = &mut self.client;
        let form = Form::of_names(database, &[text]);
        let listed = retried(|| {
            let (mut answer, mut found, mut size) = (Answer::new(1), Vec::new(), 0);
            let mut take = |_, row: Row<'_>| {
                found.push(of_row(&row)?);
                Ok(())
            };
            let reply = client.ask(&form.request(), &mut |bytes| {
                size += bytes.len();
                ensure!(size <= NAMES_SIZE_MAX, "more than {NAMES_SIZE_MAX} bytes");
                answer.push_names(bytes, &mut take)
            })?;
            reply.check(influxql::PATH)?;
            answer.end_names(&mut take)?;
            Ok(found)
        });
        listed.with_context(|| text.to_string())
    }

    /// All policies of the databases that are asked for, with the times of their shards.
    fn find_policies(&mut self) -> anyhow::Result<Vec<Policy>> {
        let name_of = |row: &Row<'_>| Ok(row.text("name").to_string());
        let mut databases = self.list("", "SHOW DATABASES", &name_of)?;
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
            let named = |row: &Row<'_>| Ok((row.text("name").to_string(), row.is_on("default")));
            let listed = self.list(&database, &show_policies(&database), &named)?;
            let default = listed.iter().find(|(_, is_default)| *is_default);
            let default = default.map(|(name, _)| name.clone()).unwrap_or_default();
            for (name, is_default) in listed {
                let own = shards.get(&(database.clone(), name.clone()));
                let shards = match (shards.is_empty(), own) {
                    (true, _) => vec![TimeRange::ALL],
                    (false, own) => own.cloned().unwrap_or_default(),
                };
                let (database, default) = (database.clone(), default.clone());
                policies.push(Policy { database, name, is_default, default, shards });
            }
        }
        Ok(policies)
    }

    /// The times of the shards of each database and policy.
    fn shards(&mut self) -> anyhow::Result<BTreeMap<(String, String), Vec<TimeRange>>> {
        let shard = |row: &Row<'_>| -> anyhow::Result<((String, String), TimeRange)> {
            let range = shard_range(row.text("start_time"), row.text("end_time"))?;
            Ok(((row.text("database").into(), row.text("retention_policy").into()), range))
        };
        let mut found: BTreeMap<(String, String), Vec<TimeRange>> = BTreeMap::new();
        for (key, range) in self.list("", "SHOW SHARDS", &shard)? {
            found.entry(key).or_default().push(range);
        }
        Ok(found)
    }

    /// The policy that a window is of.
    fn policy_of(&self, window: &Window) -> anyhow::Result<Policy> {
        let (head, _) = window.name.rsplit_once('/').context("a window without a day")?;
        let policy = self.policies.iter().find(|one| one.head() == head);
        Ok(policy.context("a window of no database")?.clone())
    }

    /// The measurements of a policy.
    fn measurements(&mut self, policy: &Policy) -> anyhow::Result<Arc<Vec<Measurement>>> {
        if let Some(known) = self.known.get(&policy.head()) {
            return Ok(known.clone());
        }
        let text = match policy.is_default {
            true => show_fields(&policy.database),
            false => show_fields_of_policy(&policy.database, &policy.name),
        };
        let field = |row: &Row<'_>| {
            let [field, kind] = ["fieldKey", "fieldType"].map(|name| row.text(name).to_string());
            Ok((row.name.to_string(), field, kind))
        };
        let mut types: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (measurement, field, kind) in self.list(&policy.database, &text, &field)? {
            types.entry(measurement).or_default().entry(field).or_default().insert(kind);
        }
        let mut found: Vec<Measurement> =
            types.into_iter().map(|(name, fields)| measurement(name, fields)).collect();
        self.unsayable.append(&mut take_unsayable(&mut found));
        let found = Arc::new(found);
        self.known.insert(policy.head(), found.clone());
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
        let (form, mut answer) = (Form::of_samples(database, &texts), Answer::new(texts.len()));
        let mut take = |at: usize, series: AnswerSeries| {
            let statement = statements.get(at).context("an answer to what was not asked")?;
            on_series(statement, series).with_context(|| statement.text.clone())
        };
        let mut read = |line: &[u8]| read_answer(line);
        let reply = self
            .client
            .ask(&form.request(), &mut |bytes| answer.push_samples(bytes, &mut read, &mut take))?;
        reply.check(influxql::PATH)?;
        answer.end_samples(&mut read, &mut take)
    }
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

/// Time of a shard, whose end is not in it. Shards at both ends of time begin before the first nanosecond
/// or end behind the last one, and the server says whole seconds.
fn shard_range(start: &str, end: &str) -> anyhow::Result<TimeRange> {
    let nanos = |text: &str| -> anyhow::Result<i128> {
        let time: jiff::Timestamp = text.parse().context("a shard's time")?;
        Ok(time.as_nanosecond())
    };
    let (first, last) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let (start, end) = (nanos(start)?, nanos(end)?);
    // The last second of time has no whole one behind it.
    let is_last = last - i128::from(NANOS_PER_SECOND) < end;
    let end = if is_last { last } else { end - 1 };
    Ok(TimeRange::new(start.clamp(first, last) as i64, end.clamp(first, last) as i64))
}

/// Condition on time.
fn condition(range: &TimeRange) -> String {
    // InfluxDB does not parse its own minimum and maximum time.
    let (start, end) = (range.start.max(i64::MIN + 2), range.end.min(i64::MAX - 1));
    format!("time >= {start} AND time <= {end}")
}

fn select(columns: &str, policy: &Policy, measurement: &Measurement, range: &TimeRange) -> String {
    let time = condition(range);
    format!(
        "SELECT {columns} FROM {}.{}.{} WHERE {time}",
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
        let count = count_at_once(rest.iter().map(|one| one.text.as_str()));
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
        policy: if policy.is_default { String::new() } else { policy.name.clone() },
        default_policy: policy.default.clone(),
        measurement: statement.measurement.name.clone(),
        tags: tags.finish(),
        fields: statement.fields.to_vec(),
        rows: series.rows,
        texts: Arc::new(series.texts),
    }
}

/// Checks that no two policies become one database: of equal series and times one sample would be lost.
fn check_labels(policies: &[Policy]) -> anyhow::Result<()> {
    let mut known = BTreeMap::new();
    for policy in policies {
        let table = (policy.database.as_str(), policy.name.as_str());
        if let Some(other) = known.insert(policy.label(), table) {
            let label = policy.label();
            bail!(
                "{}: copy each by itself, with --database, and give one of them another name, with \
                 --match '{{db=\"{label}\"}}' --set-label db=NAME",
                shared_label(&label, other, table)
            );
        }
    }
    Ok(())
}

impl Source for InfluxDb {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        self.policies = self.find_policies()?;
        check_labels(&self.policies)?;
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

    fn later(&self, from: Timestamp) -> Vec<Window> {
        let end_of = |policy: &Policy| policy.shards.iter().map(|shard| shard.end).max();
        let window = |policy: &Policy| {
            let range = TimeRange::new(from, end_of(policy)?);
            let name = format!("{}/later", policy.head());
            (!range.is_empty()).then_some(Window { name, range, samples: None })
        };
        self.policies.iter().filter_map(window).collect()
    }

    fn count(&mut self, window: &Window) -> anyhow::Result<Option<Total>> {
        if !self.unsayable.is_empty() {
            // They are counted there, and left out here.
            return Ok(None);
        }
        let policy = self.policy_of(window)?;
        let (database, name) = (quoted(&policy.database), quoted(&policy.name));
        let time = condition(&window.range);
        let text = format!("SELECT count(*) FROM {database}.{name}./.*/ WHERE {time}");
        let counts = self.list(&policy.database, &text, &|row| {
            let values = row.cells().filter(|(column, _)| *column != "time");
            Ok(values.filter_map(|(_, value)| value.as_u64()).sum::<u64>())
        })?;
        Ok(Some(Total::Samples(counts.into_iter().sum())))
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
        if !self.renamed.is_empty() {
            let named = shown(&mut self.renamed.iter().cloned());
            words.push(format!(
                "the tag {METRIC_NAME}, which is the name of a metric here: series that differ in it alone \
                 became one: {named}"
            ));
        }
        if !self.unsayable.is_empty() {
            let (count, named) = (self.unsayable.len(), shown(&mut self.unsayable.iter().cloned()));
            words.push(format!("{count} fields whose names InfluxQL cannot say: {named}"));
        }
        words
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let policy = self.policy_of(window)?;
        let all = self.measurements(&policy)?;
        let statements = statements(&all, &policy, &window.range);
        let filter = self.filter.clone();
        let mut texts_lost: BTreeMap<String, u64> = BTreeMap::new();
        let mut renamed = BTreeSet::new();
        for some in batches(&statements) {
            self.ask(&policy.database, some, &mut |statement, series| {
                let is_name =
                    |(name, value): &(String, String)| name == METRIC_NAME && !value.is_empty();
                if series.tags.iter().any(is_name) {
                    renamed.insert(format!("{}.{}", policy.label(), statement.measurement.name));
                }
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
        self.renamed.append(&mut renamed);
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
    fn shards_at_both_ends_of_time_have_all_of_it() {
        let check = |start: &str, end: &str, expected: (i64, i64)| {
            let range = shard_range(start, end).expect("times");
            assert_eq!((range.start, range.end), expected, "{start} {end}");
            let days = days::windows(&range);
            let [Some(last), Some(first)] = [days.first(), days.last()] else { panic!("no days") };
            assert_eq!((first.range.start, last.range.end), expected, "{start} {end}");
            for (later, day) in days.iter().zip(&days[1..]) {
                assert_eq!(day.range.end + 1, later.range.start, "{day} before {later}");
            }
        };
        let second = |seconds: i64| seconds * NANOS_PER_SECOND;
        let week = (second(1_599_436_800), second(1_600_041_600) - 1);
        check("2020-09-07T00:00:00Z", "2020-09-14T00:00:00Z", week);
        let first = (i64::MIN, second(-9_222_854_400) - 1);
        check("1677-09-20T00:00:00Z", "1677-09-27T00:00:00Z", first);
        let last = (second(9_222_768_000), i64::MAX);
        for end in ["2262-04-11T23:47:16Z", "2262-04-12T00:00:00Z"] {
            check("2262-04-05T00:00:00Z", end, last);
        }
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
            default: "autogen".to_string(),
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
