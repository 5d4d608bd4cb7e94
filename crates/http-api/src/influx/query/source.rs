//! The store as InfluxQL sees it: databases are values of a label, measurements and fields are what
//! lines said, and metrics that came otherwise are measurements of their own with a field `value`.

use super::longs::Longs;
use app::App;
pub use influx_schema::NAMELESS_DATABASE;
use influx_schema::schema::Measurements;
use influx_schema::strings::TextTable;
use influxql::ast::DataType;
use influxql::{
    EvalError, Fields, Place, RetentionPolicy, SampleSink, SeriesSet, SharedSet, Source,
};
use model::{Labels, METRIC_NAME, MatchOp, Matcher, TimeRange};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use store::{Questions, SelectLimits, Selection};
use wire::influx::FieldType;
use wire::moved_labels;

/// The field of a metric that did not come as lines.
const PLAIN_FIELD: &str = "value";

/// The store for one request.
pub struct StoreSource<'a> {
    pub app: &'a App,
    pub questions: Questions<'a>,
    pub limits: SelectLimits,
}

fn failed(error: impl ToString) -> EvalError {
    EvalError::new(error.to_string())
}

/// All of time.
const EVER: TimeRange = TimeRange { start: i64::MIN, end: i64::MAX };

/// What the table of measurements calls a database.
pub fn table_name<'n>(app: &App, database: &'n str) -> &'n str {
    match app.config.insert.database_label.is_empty() || database == NAMELESS_DATABASE {
        true => "",
        false => database,
    }
}

/// What the series of a database have in common.
pub fn database_matcher(app: &App, database: &str) -> Option<Matcher> {
    let label = app.config.insert.database_label.as_str();
    match (label, database) {
        ("", _) => None,
        (label, NAMELESS_DATABASE) => {
            Some(Matcher::new(label, MatchOp::Regex, format!("|{NAMELESS_DATABASE}")))
        }
        (label, database) => Some(Matcher::equal(label, database)),
    }
}

/// The matcher of metrics with one of these names.
pub fn name_matcher(names: &[String]) -> Matcher {
    match names {
        [name] => Matcher::equal(METRIC_NAME, name.as_str()),
        names => {
            let escaped: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
            Matcher::new(METRIC_NAME, MatchOp::Regex, escaped.join("|"))
        }
    }
}

impl StoreSource<'_> {
    fn database(&self, database: &str) -> Vec<Matcher> {
        database_matcher(self.app, database).into_iter().collect()
    }

    fn written(&self, database: &str, measurement: &str) -> Option<influx_schema::schema::Fields> {
        let asks = self.questions.asks();
        self.app.measurements.fields(table_name(self.app, database), measurement, asks)
    }

    fn measurements_of(&self, database: &str) -> Measurements {
        let asks = self.questions.asks();
        self.app.measurements.measurements(table_name(self.app, database), asks)
    }

    /// The metric of a field.
    fn metric_of(
        &self,
        database: &str,
        measurement: &str,
        (field, kind): (&str, FieldType),
    ) -> String {
        self.app.measurements.metric(table_name(self.app, database), measurement, field, kind)
    }

    /// The metric of the low bits of a field.
    fn low_metric_of(&self, database: &str, measurement: &str, field: &str) -> String {
        self.app.measurements.low_metric(table_name(self.app, database), measurement, field)
    }

    /// The names of the metrics of a measurement.
    pub fn metrics(&self, database: &str, measurement: &str) -> Vec<String> {
        match self.written(database, measurement) {
            Some(fields) => {
                let mut names = Vec::with_capacity(fields.len());
                for (field, kind) in &fields {
                    names.push(self.metric_of(database, measurement, (field, *kind)));
                    if self.has_texts_beside(database, measurement, field) {
                        let text = (field.as_str(), FieldType::String);
                        names.push(self.metric_of(database, measurement, text));
                    }
                }
                names
            }
            None => vec![measurement.to_string()],
        }
    }

    /// What the series of a measurement that match have in common.
    pub fn series_of(
        &self,
        database: &str,
        measurement: &str,
        matchers: &[Matcher],
    ) -> Vec<Matcher> {
        let mut set = vec![name_matcher(&self.metrics(database, measurement))];
        set.extend(self.database(database));
        set.extend(self.stored_matchers(matchers));
        set
    }

    /// Matchers on tags as matchers on labels.
    fn stored_matchers(&self, matchers: &[Matcher]) -> impl Iterator<Item = Matcher> {
        matchers.iter().map(|matcher| {
            let name = self.label_of_tag(&matcher.name).into_owned();
            Matcher { name, ..matcher.clone() }
        })
    }

    /// Label of a tag: one that has the name of the label of databases is stored under another.
    fn label_of_tag<'t>(&self, tag: &'t str) -> Cow<'t, str> {
        moved_labels::stored_name(tag, &self.app.config.insert.database_label)
    }

    /// What the series of a measurement that match have in common, those of low bits among them.
    pub fn stored_series_of(
        &self,
        database: &str,
        measurement: &str,
        matchers: &[Matcher],
    ) -> Vec<Matcher> {
        let mut names = self.metrics(database, measurement);
        let fields = self.written(database, measurement).unwrap_or_default();
        // A field of floats may have been one of integers.
        let may_have = |kind: &FieldType| !matches!(kind, FieldType::String | FieldType::Boolean);
        let with_lows = fields.iter().filter(|(_, kind)| may_have(kind));
        let low = |field: &str| self.low_metric_of(database, measurement, field);
        names.extend(with_lows.map(|(field, _)| low(field)));
        let mut set = vec![name_matcher(&names)];
        set.extend(self.database(database));
        set.extend(self.stored_matchers(matchers));
        set
    }

    /// A metric of a measurement that is another's, too, and that one: in stores of earlier versions `a`
    /// with a field `b_c` and `a_b` with a field `c` have one.
    pub fn shared_metric(&self, database: &str, measurement: &str) -> Option<(String, String)> {
        let all = self.measurements_of(database);
        let own: BTreeSet<String> = self.metrics(database, measurement).into_iter().collect();
        for other in all.keys().filter(|other| *other != measurement) {
            let mut metrics = self.metrics(database, other).into_iter();
            if let Some(metric) = metrics.find(|metric| own.contains(metric)) {
                return Some((metric, other.clone()));
            }
        }
        None
    }

    fn set_of(&self, place: &Place<'_>, matchers: &[Matcher]) -> Vec<Vec<Matcher>> {
        vec![self.series_of(place.database, place.measurement, matchers)]
    }

    /// The metric of a field, and its type if it came as lines.
    fn metric(&self, place: &Place<'_>, field: &str) -> (String, Option<FieldType>) {
        let (table, asks) = (table_name(self.app, place.database), self.questions.asks());
        let kind = self.app.measurements.field(table, place.measurement, field, asks);
        let name = match kind {
            Some(kind) => self.metric_of(place.database, place.measurement, (field, kind)),
            None => place.measurement.to_string(),
        };
        (name, kind)
    }

    /// The series with one of these names that match.
    fn series_named(
        &self,
        place: &Place<'_>,
        names: &[String],
        matchers: &[Matcher],
        limits: &SelectLimits,
    ) -> Result<Selection, EvalError> {
        let mut set = vec![name_matcher(names)];
        set.extend(self.database(place.database));
        set.extend(self.stored_matchers(matchers));
        self.questions.select(&[set], place.range, limits).map_err(failed)
    }

    fn selected(
        &self,
        selection: Arc<Selection>,
        runs: Vec<Range<usize>>,
        kind: Option<FieldType>,
    ) -> Selected {
        let database_label = self.app.config.insert.database_label.clone();
        let texts = (kind == Some(FieldType::String)).then(|| self.app.texts.clone());
        Selected { selection, runs, database_label, texts }
    }

    /// The series of a field with all bits of their numbers.
    fn exact<'s>(
        &'s self,
        place: &Place<'_>,
        (field, kind): (&str, Option<FieldType>),
        matchers: &[Matcher],
        series: Selected,
    ) -> Result<Box<dyn SeriesSet + 's>, EvalError> {
        if kind != Some(FieldType::Long) || series.is_empty() {
            return Ok(Box::new(series));
        }
        let lows = self.low_bits(place, field, matchers)?;
        Ok(if lows.is_empty() { Box::new(series) } else { Box::new(Longs::join(series, lows)?) })
    }

    /// The series of the low bits of a field.
    fn low_bits(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Selected, EvalError> {
        let name = self.low_metric_of(place.database, place.measurement, field);
        let (app, limits) = (self.app, self.limits.clone());
        // Nobody else has low bits.
        let here = StoreSource { app, questions: self.questions.own(), limits };
        let lows = here.series_named(place, &[name], matchers, &self.limits)?;
        let all = 0..lows.len();
        Ok(self.selected(Arc::new(lows), vec![all], None))
    }

    /// Whether a label is a tag.
    fn is_tag(&self, label: &str) -> bool {
        label != METRIC_NAME && label != self.app.config.insert.database_label
    }

    /// Fails for who must not be kept waiting: a list may be of the whole index.
    fn may_list(&self) -> Result<(), EvalError> {
        self.limits.check_cost(u64::MAX).map_err(failed)
    }

    /// The names of all metrics of a database.
    fn live_names(&self, database: &str) -> Result<Vec<String>, EvalError> {
        self.may_list()?;
        let sets: Vec<Vec<Matcher>> = match self.database(database) {
            set if set.is_empty() => Vec::new(),
            set => vec![set],
        };
        self.questions.label_values(METRIC_NAME, &sets, EVER, &self.limits).map_err(failed)
    }
}

fn type_of(kind: FieldType) -> DataType {
    match kind {
        FieldType::Float => DataType::Float,
        FieldType::Integer | FieldType::Long => DataType::Integer,
        FieldType::Boolean => DataType::Boolean,
        FieldType::String => DataType::String,
    }
}

impl Source for StoreSource<'_> {
    fn check(&self) -> Result<(), EvalError> {
        self.limits.check_interrupt().map_err(failed)
    }

    fn has_database(&self, database: &str) -> Result<bool, EvalError> {
        let (app, label) = (self.app, &self.app.config.insert.database_label);
        if !label.is_empty() && app.policies.owner(database).is_some() {
            // Samples of a policy are read and deleted by the names of its database and itself.
            return Ok(false);
        }
        let is_noted = || app.measurements.has(database) || app.policies.has(database);
        if label.is_empty() || database == NAMELESS_DATABASE || is_noted() {
            return Ok(true);
        }
        self.may_list()?;
        let sets = [self.database(database)];
        let found = self.questions.label_values(label, &sets, EVER, &self.limits);
        Ok(!found.map_err(failed)?.is_empty())
    }

    fn databases(&self) -> Result<Vec<String>, EvalError> {
        let label = &self.app.config.insert.database_label;
        let mut names: BTreeSet<String> = BTreeSet::new();
        names.insert(NAMELESS_DATABASE.to_string());
        if !label.is_empty() {
            self.may_list()?;
            names.extend(self.app.measurements.databases());
            names.extend(self.app.policies.databases());
            let found = self.questions.label_values(label, &[], EVER, &self.limits);
            names.extend(found.map_err(failed)?);
        }
        names.remove("");
        names.retain(|name| self.app.policies.owner(name).is_none());
        Ok(names.into_iter().collect())
    }

    fn policies(&self, database: &str) -> Result<Vec<RetentionPolicy>, EvalError> {
        Ok(self.app.policies.get(database).listed())
    }

    fn policy_database(&self, database: &str, policy: Option<&str>) -> Result<String, EvalError> {
        let unknown = match self.app.policies.stored_name(database, policy) {
            Ok(stored) => return Ok(stored),
            Err(unknown) => unknown,
        };
        // Samples that a copy or a legacy backend has brought under the name of a policy.
        let stored = format!("{database}.{unknown}");
        let has_label = !self.app.config.insert.database_label.is_empty();
        match policy.is_some() && has_label && self.has_database(&stored)? {
            true => Ok(stored),
            false => Err(EvalError::new(format!("retention policy not found: {unknown}"))),
        }
    }

    fn policy_databases(&self, database: &str) -> Result<Vec<String>, EvalError> {
        Ok(self.app.policies.stored_names(database))
    }

    fn measurements(&self, database: &str) -> Result<Vec<String>, EvalError> {
        let names = self.live_names(database)?;
        let written = self.measurements_of(database);
        let mut of_metric: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (measurement, fields) in &written {
            for (field, kind) in fields {
                let name = self.metric_of(database, measurement, (field, *kind));
                of_metric.entry(name).or_default().push(measurement);
                // Low bits are no measurement, and have none without their samples.
                of_metric.entry(self.low_metric_of(database, measurement, field)).or_default();
                let texts = self.metric_of(database, measurement, (field, FieldType::String));
                of_metric.entry(texts).or_default().push(measurement);
            }
        }
        let mut found: BTreeSet<String> = BTreeSet::new();
        for name in names {
            match of_metric.get(&name) {
                Some(measurements) => found.extend(measurements.iter().map(|m| (*m).to_string())),
                None => {
                    found.insert(name);
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    fn fields(&self, database: &str, measurement: &str) -> Result<Fields, EvalError> {
        let typed = |fields: influx_schema::schema::Fields| {
            fields.into_iter().map(|(name, kind)| (name, type_of(kind))).collect()
        };
        if let Some(fields) = self.written(database, measurement) {
            return Ok(typed(fields));
        }
        self.may_list()?;
        let mut set = vec![Matcher::equal(METRIC_NAME, measurement)];
        set.extend(self.database(database));
        let found = self.questions.label_values(METRIC_NAME, &[set], EVER, &self.limits);
        let is_there = !found.map_err(failed)?.is_empty();
        // A legacy backend that was away before may have said by now what it has.
        if let Some(fields) = self.written(database, measurement) {
            return Ok(typed(fields));
        }
        Ok(is_there.then(|| (PLAIN_FIELD.to_string(), DataType::Float)).into_iter().collect())
    }

    fn tag_keys(&self, place: &Place<'_>, matchers: &[Matcher]) -> Result<Vec<String>, EvalError> {
        self.may_list()?;
        let sets = self.set_of(place, matchers);
        let found = self.questions.label_names(&sets, place.range, &self.limits);
        let mut names = found.map_err(failed)?;
        names.retain(|name| self.is_tag(name));
        let label = &self.app.config.insert.database_label;
        for name in &mut names {
            *name = moved_labels::own_name(name, label).to_string();
        }
        names.sort();
        Ok(names)
    }

    fn all_tag_keys(&self, place: &Place<'_>) -> Result<Vec<String>, EvalError> {
        let mut keys = self.tag_keys(place, &[])?;
        let Place { database, measurement, .. } = *place;
        if let Some(known) = self.app.tag_keys.get(database, measurement) {
            keys.extend(known);
        } else {
            // Legacy backends are asked for the time of the query alone, and damage of other times
            // makes no answer partial.
            let (app, limits) = (self.app, self.limits.clone());
            let questions = app.store.strict().own().showing_all();
            let here = StoreSource { app, questions, limits };
            if let Ok(known) = here.tag_keys(&Place { range: EVER, ..*place }, &[]) {
                app.tag_keys.put(database, measurement, &known);
                keys.extend(known);
            }
        }
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    fn tag_values(
        &self,
        place: &Place<'_>,
        key: &str,
        matchers: &[Matcher],
    ) -> Result<Vec<String>, EvalError> {
        let label = self.label_of_tag(key);
        if !self.is_tag(&label) {
            return Ok(Vec::new());
        }
        self.may_list()?;
        let sets = self.set_of(place, matchers);
        self.questions.label_values(&label, &sets, place.range, &self.limits).map_err(failed)
    }

    fn tag_sets(&self, place: &Place<'_>, matchers: &[Matcher]) -> Result<Vec<Labels>, EvalError> {
        self.may_list()?;
        let sets = self.set_of(place, matchers);
        let found = self.questions.series(&sets, place.range, &self.limits).map_err(failed)?;
        let label = &self.app.config.insert.database_label;
        let mut tags: Vec<Labels> = found.iter().map(|labels| tags_of(labels, label)).collect();
        tags.sort();
        tags.dedup();
        Ok(tags)
    }

    fn select(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Box<dyn SeriesSet + '_>, EvalError> {
        let (name, kind) = self.metric(place, field);
        let selection = self.series_named(place, &[name], matchers, &self.limits)?;
        let all = 0..selection.len();
        let series = self.selected(Arc::new(selection), vec![all], kind);
        self.exact(place, (field, kind), matchers, series)
    }

    fn has_texts_beside(&self, database: &str, measurement: &str, field: &str) -> bool {
        let (table, asks) = (table_name(self.app, database), self.questions.asks());
        self.app.measurements.has_texts_beside(table, measurement, field, asks)
    }

    fn select_texts_beside(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Box<dyn SeriesSet + '_>, EvalError> {
        let text = (field, FieldType::String);
        let name = self.metric_of(place.database, place.measurement, text);
        let selection = self.series_named(place, &[name], matchers, &self.limits)?;
        let all = 0..selection.len();
        Ok(Box::new(self.selected(Arc::new(selection), vec![all], Some(FieldType::String))))
    }

    fn select_integers(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Option<Box<dyn SeriesSet + '_>>, EvalError> {
        if !matches!(self.metric(place, field), (_, Some(FieldType::Float))) {
            return Ok(None);
        }
        let lows = self.low_bits(place, field, matchers)?;
        if lows.is_empty() {
            return Ok(None);
        }
        let (name, kind) = self.metric(place, field);
        let selection = self.series_named(place, &[name], matchers, &self.limits)?;
        let all = 0..selection.len();
        let series = self.selected(Arc::new(selection), vec![all], kind);
        Ok(Some(Box::new(Longs::join(series, lows)?)))
    }

    fn select_together(
        &self,
        place: &Place<'_>,
        fields: &[&str],
        matchers: &[Matcher],
    ) -> Result<Vec<SharedSet<'_>>, EvalError> {
        // Looking for many series is little beside reading them, and they have a limit.
        let are_few = self.limits.cost_max < u64::MAX;
        if fields.len() < 2 || !are_few {
            let one = |field: &&str| self.select(place, field, matchers).map(SharedSet::from);
            return fields.iter().map(one).collect();
        }
        let metrics: Vec<(String, Option<FieldType>)> =
            fields.iter().map(|field| self.metric(place, field)).collect();
        let names: Vec<String> = metrics.iter().map(|(name, _)| name.clone()).collect();
        let cost_max = self.limits.cost_max.saturating_mul(fields.len() as u64);
        let limits = SelectLimits { cost_max, ..self.limits.clone() };
        let selection = Arc::new(self.series_named(place, &names, matchers, &limits)?);
        let runs = runs_by_name(&selection, &names)?;
        let kinds = metrics.iter().map(|(_, kind)| *kind);
        let of_field = |((field, kind), runs): ((&&str, _), Vec<Range<usize>>)| {
            let series = self.selected(selection.clone(), runs, kind);
            self.exact(place, (field, kind), matchers, series).map(SharedSet::from)
        };
        fields.iter().zip(kinds).zip(runs).map(of_field).collect()
    }
}

/// Where the series of each name are in a selection.
fn runs_by_name(
    selection: &Selection,
    names: &[String],
) -> Result<Vec<Vec<Range<usize>>>, EvalError> {
    let mut runs: Vec<Vec<Range<usize>>> = vec![Vec::new(); names.len()];
    let (mut last, mut at) = (None, None);
    for idx in 0..selection.len() {
        let key = selection.keys(idx).name;
        if last != Some(key) {
            let found = &mut at;
            let mut sink = |_, labels: Labels| {
                *found = names.iter().position(|name| name == labels.metric_name());
            };
            let wanted = Some([METRIC_NAME].as_slice());
            selection.read_labels(idx..idx + 1, wanted, &mut sink).map_err(failed)?;
            last = Some(key);
        }
        let Some(runs) = at.and_then(|at| runs.get_mut(at)) else { continue };
        match runs.last_mut() {
            Some(run) if run.end == idx => run.end += 1,
            _ => runs.push(idx..idx + 1),
        }
    }
    Ok(runs)
}

/// The labels that are tags, under the names of the tags.
fn tags_of(labels: &Labels, database_label: &str) -> Labels {
    let is_tag = |name: &[u8]| name != METRIC_NAME.as_bytes() && name != database_label.as_bytes();
    let tags = labels.only(is_tag);
    let own = |name| moved_labels::own_name(name, database_label);
    if tags.iter().all(|(name, _)| own(name).len() == name.len()) {
        return tags;
    }
    let pairs: Vec<(&str, &str)> = tags.iter().map(|(name, value)| (own(name), value)).collect();
    Labels::from_pairs(&pairs)
}

/// The series of a field.
pub(super) struct Selected {
    /// Maybe with those of other fields.
    selection: Arc<Selection>,
    /// Where they are there, increasing.
    runs: Vec<Range<usize>>,
    database_label: String,
    /// Of a field of strings.
    texts: Option<Arc<TextTable>>,
}

impl Selected {
    /// The parts of the runs that are the series of `range`, each with its first one's number here.
    fn runs_of(&self, range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let mut first = 0;
        self.runs.iter().filter_map(move |run| {
            let start = range.start.max(first);
            let end = range.end.min(first + run.len());
            let of_run =
                run.start + start.saturating_sub(first)..run.start + end.saturating_sub(first);
            first += run.len();
            (start < end).then_some((start, of_run))
        })
    }
}

impl SeriesSet for Selected {
    fn len(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }

    fn memory_size(&self) -> usize {
        // Fields share a selection by their series.
        let all = self.selection.len().max(1);
        self.selection.memory_size() / all * self.len()
    }

    fn tags(&self, wanted: Option<&[&str]>) -> Result<Vec<Labels>, EvalError> {
        let mut out = Vec::with_capacity(self.len());
        let label = &self.database_label;
        let stored = |tag| moved_labels::stored_name(tag, label);
        let stored: Option<Vec<Cow<'_, str>>> =
            wanted.map(|tags| tags.iter().copied().map(stored).collect());
        let names: Option<Vec<&str>> =
            stored.as_ref().map(|names| names.iter().map(|name| &**name).collect());
        for run in &self.runs {
            let mut sink = |_, labels: Labels| out.push(tags_of(&labels, label));
            self.selection.read_labels(run.clone(), names.as_deref(), &mut sink).map_err(failed)?;
        }
        Ok(out)
    }

    fn text(&self, sample: f64) -> Option<Arc<str>> {
        self.texts.as_ref()?.text(sample)
    }

    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), EvalError> {
        for (first, run) in self.runs_of(range) {
            let start = run.start;
            let mut sink = |idx, times: &[i64], values: &[f64]| {
                sink(first + (idx - start), times, values);
            };
            self.selection.read(run, &mut sink).map_err(failed)?;
        }
        Ok(())
    }
}
