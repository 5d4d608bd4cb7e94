//! An InfluxDB as a legacy backend: 1.x, and 2.x by what it keeps of the old API. Its series are what
//! its lines would have been at Quipu's own door, and what `quipu migrate influxdb` makes of them.
//!
//! ```text
//! matchers ─ plan (what the catalog has of it) ─► SELECT .. GROUP BY *          samples
//!                                                 SELECT .. GROUP BY * LIMIT 1  series
//!                                                 SHOW TAG KEYS, SHOW TAG VALUES
//! ```
//!
//! Lists of whole measurements come from its index, which knows shards and not times; everything
//! else is what samples say.

mod asking;
mod catalog;
pub mod known;
mod plan;
mod read_catalog;
mod words;

use super::backend::Request;
use super::faults::refusal;
use super::limits::SAMPLE_SIZE;
use anyhow::Context as _;
use catalog::Catalog;
use http_client::influxql::quoted;
use influx_schema::borrowed_strings::{Lent, Loan};
use influx_schema::strings::TextTable;
use known::Known;
use model::{Labels, LabelsBuilder, METRIC_NAME, TimeRange};
use plan::{Naming, Plan, Wanted};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;
use store::{Asked, FoundSeries, Grain};
use wire::influx::FieldType;
use wire::influx::columns::{ColumnsSeries, NumberOf};
use wire::moved_labels;
use words::{Extent, Table};

/// How long the catalog is believed: what is old changes seldom.
const CATALOG_TIME: Duration = Duration::from_secs(60);
/// How long, while another one asks for it.
const CATALOG_TIME_MAX: Duration = Duration::from_secs(600);
/// Fields of a statement with samples.
const FIELDS_AT_ONCE: usize = 20;
/// Measurements of a statement with names.
const MEASUREMENTS_AT_ONCE: usize = 100;

/// What the server has, as it said within the last minute.
fn catalog(request: &mut Request<'_>) -> anyhow::Result<Arc<Catalog>> {
    let known = request.influx();
    if let Some(kept) = known.kept(CATALOG_TIME) {
        return Ok(kept);
    }
    let turn = known.asking.try_lock();
    if let Some(kept) = turn.is_err().then(|| known.kept(CATALOG_TIME_MAX)).flatten() {
        return Ok(kept);
    }
    let found = Arc::new(read_catalog::read(request, known.last().as_deref())?);
    known.keep(found.clone())?;
    Ok(found)
}

/// What a question is about; says what no answer to it has.
fn plan<'c>(
    request: &Request<'_>,
    catalog: &'c Catalog,
    asked: &Asked<'_>,
) -> anyhow::Result<Plan<'c>> {
    let plan = Plan::new(catalog, asked.sets, request.influx().naming(), request.deadline())?;
    catalog.lacks.iter().cloned().chain(plan.left_out()).for_each(|words| asked.lacks.note(words));
    Ok(plan)
}

/// Whether it has any measurement.
pub fn has_any(request: &mut Request<'_>) -> anyhow::Result<bool> {
    Ok(!catalog(request)?.is_empty())
}

/// A statement for samples or series.
struct Statement<'p> {
    wanted: &'p Wanted<'p>,
    fields: &'p [&'p (String, FieldType)],
    text: String,
}

/// All statements, made as they are asked for: there may be as many as there are fields.
fn statements<'p>(
    plan: &'p Plan<'_>,
    range: TimeRange,
    extent: Extent,
) -> impl Iterator<Item = Statement<'p>> {
    // A row of several fields might begin with one of them alone.
    let at_once = if extent == Extent::First { 1 } else { FIELDS_AT_ONCE };
    plan.list.iter().flat_map(move |wanted| {
        let table = Table {
            database: &wanted.database.name,
            policy: &wanted.policy.name,
            measurement: &wanted.measurement.name,
        };
        wanted.fields.chunks(at_once).map(move |fields| {
            let text = words::select(table, fields, (&range, &wanted.condition), extent);
            Statement { wanted, fields, text }
        })
    })
}

/// As many statements as one request may have, all of one database.
fn batch<'p>(rest: &mut Peekable<impl Iterator<Item = Statement<'p>>>) -> Vec<Statement<'p>> {
    let (mut room, mut some) = (asking::Room::default(), Vec::<Statement<'p>>::new());
    let is_same = |one: &Statement<'_>, first: &Statement<'_>| {
        one.wanted.database.name == first.wanted.database.name
    };
    while let Some(one) = rest.next_if(|one| {
        some.first().is_none_or(|first| is_same(one, first)) && room.takes(&one.text)
    }) {
        some.push(one);
    }
    some
}

/// What comes of a field of a series.
type OnField<'a> =
    dyn FnMut(Labels, FieldType, &wire::influx::columns::Points) -> anyhow::Result<()> + 'a;

/// Asks statements, and hands on what comes of the series that the plan takes.
fn ask(
    request: &mut Request<'_>,
    asked: &Asked<'_>,
    (plan, extent): (&Plan<'_>, Extent),
    number_of: &mut NumberOf<'_>,
    on_field: &mut OnField<'_>,
) -> anyhow::Result<()> {
    let naming = request.influx().naming();
    let mut rest = statements(plan, asked.range, extent).peekable();
    loop {
        let some = batch(&mut rest);
        let Some(first) = some.first() else { return Ok(()) };
        let database = &first.wanted.database.name;
        let texts: Vec<&str> = some.iter().map(|one| one.text.as_str()).collect();
        let mut on_series = |at: usize, series: ColumnsSeries| {
            let statement = some.get(at).context("an answer to what was not asked")?;
            hand_on(statement, series, (plan, naming), on_field)
        };
        asking::samples(request, (database, &texts), asked, number_of, &mut on_series)?;
    }
}

/// Makes series of the fields of a piece.
fn hand_on(
    statement: &Statement<'_>,
    series: ColumnsSeries,
    (plan, naming): (&Plan<'_>, Naming<'_>),
    on_field: &mut OnField<'_>,
) -> anyhow::Result<()> {
    let mut tags = LabelsBuilder::new();
    for (name, value) in &series.tags {
        // The door refuses such a tag.
        if name != METRIC_NAME {
            tags.push(&moved_labels::stored_name(name, naming.label), value);
        }
    }
    if !naming.label.is_empty() {
        tags.push(naming.label, &statement.wanted.policy.label);
    }
    for (at, column) in series.columns.iter().enumerate() {
        let field = statement.fields.get(at).context("more columns than were asked for")?;
        let (field, kind) = *field;
        let points = if *kind == FieldType::String { &column.texts } else { &column.numbers };
        if points.is_empty() {
            continue;
        }
        let mut labels = tags.clone();
        let Wanted { policy, measurement, .. } = statement.wanted;
        labels.push(METRIC_NAME, &naming.metric(&policy.label, &measurement.name, field, *kind));
        let labels = labels.finish();
        if plan.takes(&labels) {
            on_field(labels, *kind, points)?;
        }
    }
    Ok(())
}

/// The texts of one answer.
struct Strings<'k> {
    texts: Option<&'k TextTable>,
    loan: Loan,
    /// Why one has no place.
    lost: Option<String>,
}

impl<'k> Strings<'k> {
    fn of(known: &'k Known) -> Strings<'k> {
        let texts = known.settings.get().map(|settings| &*settings.texts);
        Strings { texts, loan: Loan::default(), lost: None }
    }

    /// What stands for a text while the answer is read.
    fn place(&mut self, text: &str) -> Option<f64> {
        match self.texts?.borrow(&mut self.loan, text) {
            Ok(number) => Some(number),
            Err(words) => {
                self.lost = Some(words);
                None
            }
        }
    }

    /// The numbers of a whole answer.
    fn lend(self) -> anyhow::Result<Lent> {
        let Some(texts) = self.texts else { return Ok(Lent::default()) };
        let lent = match self.lost {
            None => texts.lend(&self.loan),
            Some(words) => Err(words),
        };
        lent.map_err(|words| refusal(format!("it has {words}")))
    }
}

/// All series that match, with their samples; the store puts them in order.
pub fn select(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<FoundSeries>> {
    let catalog = catalog(request)?;
    let plan = plan(request, &catalog, asked)?;
    let bounds = request.bounds();
    let mut strings = Strings::of(request.influx());
    let (mut places, mut found) = (HashMap::new(), Vec::<FoundSeries>::new());
    let mut of_strings = Vec::new();
    let mut number_of = |text: &str| strings.place(text);
    ask(request, asked, (&plan, Extent::Whole), &mut number_of, &mut |labels, kind, points| {
        let known = places.get(&labels).copied();
        // Labels may be longer than all samples.
        let labels_size = if known.is_none() { labels.as_bytes().len() } else { 0 };
        bounds.note_samples(points.len(), points.len() + labels_size / SAMPLE_SIZE, asked)?;
        let at = match known {
            Some(at) => at,
            None => {
                bounds.check_series(found.len() + 1, asked)?;
                places.insert(labels.clone(), found.len());
                if kind == FieldType::String {
                    of_strings.push(found.len());
                }
                found.push(FoundSeries { labels, grain: Grain::Nano, ..FoundSeries::default() });
                found.len() - 1
            }
        };
        let series = found.get_mut(at).context("a place without a series")?;
        series.times.extend_from_slice(&points.times);
        series.values.extend_from_slice(&points.values);
        Ok(())
    })?;
    // What is refused above takes no numbers.
    let lent = strings.lend()?;
    for at in of_strings {
        let series = found.get_mut(at).context("a place without a series")?;
        series.values.iter_mut().for_each(|value| *value = lent.number(*value));
    }
    Ok(found)
}

/// The labels of series.
pub fn series(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<Labels>> {
    let catalog = catalog(request)?;
    let plan = plan(request, &catalog, asked)?;
    series_of(request, asked, &plan)
}

fn series_of(
    request: &mut Request<'_>,
    asked: &Asked<'_>,
    plan: &Plan<'_>,
) -> anyhow::Result<Vec<Labels>> {
    let (bounds, mut found) = (request.bounds(), BTreeSet::new());
    // That there is a text is enough.
    let mut number_of = |_: &str| Some(0.0);
    ask(request, asked, (plan, Extent::First), &mut number_of, &mut |labels, _, _| {
        found.insert(labels);
        bounds.check_series(found.len(), asked)
    })?;
    Ok(found.into_iter().collect())
}

/// The names of their labels.
pub fn label_names(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<String>> {
    let catalog = catalog(request)?;
    let naming = request.influx().naming();
    let plan = plan(request, &catalog, asked)?;
    let mut names = BTreeSet::new();
    if plan.is_of_whole_measurements() {
        if !plan.list.is_empty() {
            names.extend([METRIC_NAME.to_string(), naming.label.to_string()]);
        }
        let mut tags = BTreeSet::new();
        let verb = (&*catalog, &plan, "SHOW TAG KEYS", "");
        show(request, asked, verb, "tagKey", &mut tags)?;
        let stored = tags.iter().map(|tag| moved_labels::stored_name(tag, naming.label));
        names.extend(stored.map(Cow::into_owned));
        names.remove("");
    } else {
        for labels in series_of(request, asked, &plan)? {
            names.extend(labels.iter().map(|(name, _)| name.to_string()));
        }
    }
    Ok(names.into_iter().collect())
}

/// The values of one of their labels.
pub fn label_values(
    request: &mut Request<'_>,
    name: &str,
    asked: &Asked<'_>,
) -> anyhow::Result<Vec<String>> {
    let catalog = catalog(request)?;
    let naming = request.influx().naming();
    let plan = plan(request, &catalog, asked)?;
    let (bounds, mut values) = (request.bounds(), BTreeSet::new());
    let is_label = !naming.label.is_empty() && name == naming.label;
    if plan.is_of_any_tags && name == METRIC_NAME {
        for Wanted { policy, measurement, fields, .. } in &plan.list {
            for (field, kind) in fields.iter().copied() {
                let metric = naming.metric(&policy.label, &measurement.name, field, *kind);
                if !naming.is_plain() && !plan.takes(&naming.labels(&policy.label, &metric)) {
                    continue;
                }
                values.insert(metric);
                bounds.check_series(values.len(), asked)?;
            }
        }
    } else if plan.is_of_any_tags && is_label {
        values.extend(plan.list.iter().map(|wanted| wanted.policy.label.clone()));
    } else if plan.is_of_whole_measurements() && words::is_tag(name) {
        let with = format!(" WITH KEY = {}", quoted(moved_labels::own_name(name, naming.label)));
        let verb = (&*catalog, &plan, "SHOW TAG VALUES", with.as_str());
        show(request, asked, verb, "value", &mut values)?;
    } else {
        for labels in series_of(request, asked, &plan)? {
            values.extend(labels.get(name).map(str::to_string));
        }
    }
    Ok(values.into_iter().collect())
}

/// Adds a list of the index of whole measurements.
fn show(
    request: &mut Request<'_>,
    asked: &Asked<'_>,
    (catalog, plan, verb, with): (&Catalog, &Plan<'_>, &str, &str),
    column: &str,
    out: &mut BTreeSet<String>,
) -> anyhow::Result<()> {
    let mut measurements: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Wanted { database, measurement, .. } in &plan.list {
        measurements.entry(&database.name).or_default().insert(&measurement.name);
    }
    let (bounds, time) = (request.bounds(), words::span(&asked.range));
    for (database, names) in measurements {
        let count = catalog.measurement_count(database);
        let head = format!("{verb} ON {}", quoted(database));
        let names: Vec<String> = names.into_iter().map(quoted).collect();
        let statement = |from: String| format!("{head}{from}{with} WHERE {time}");
        let texts: Vec<String> = match names.len() == count {
            true => vec![statement(String::new())],
            false => {
                let some = names.chunks(MEASUREMENTS_AT_ONCE);
                some.map(|some| statement(format!(" FROM {}", some.join(", ")))).collect()
            }
        };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut rest = texts.as_slice();
        while !rest.is_empty() {
            let (some, others) = rest.split_at(asking::count_at_once(rest.iter().copied()));
            asking::names(request, (database, some), Some(asked), &mut |_, row| {
                let text = row.text(column);
                if !out.contains(text) {
                    out.insert(text.to_string());
                    bounds.check_series(out.len(), asked)?;
                }
                Ok(())
            })?;
            rest = others;
        }
    }
    Ok(())
}
