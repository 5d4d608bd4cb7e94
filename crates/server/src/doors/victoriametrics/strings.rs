//! Strings of line protocol in JSON lines: out, with the measurement and the field that they came as, and
//! in again, where they get numbers of the dictionary (decision 46).
//!
//! A metric that ends in `:text` and is no field that is remembered came by another door: its
//! numbers are none of the dictionary, and are exported as numbers by who asks for it by name.

use crate::app::App;
use crate::doors::http::answer::PIECE_SIZE;
use crate::doors::http::partial::Partial;
use crate::doors::influx::query::table_name;
use crate::failure::Failure;
use model::{Labels, METRIC_NAME, MatchOp, Matcher, TimeRange};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use store::{Asks, SelectLimits, Selection};
use wire::influx::{FieldType, TEXT_SUFFIX, TypedFields};
use wire::json_lines::{SAMPLES_PER_LINE, StringLine, has_strings};

/// Series read at once.
const SERIES_PER_READ: usize = 128;

/// Measurement and field of a metric of strings.
type Field = (String, String);

/// The strings of a selection.
pub struct Strings {
    selection: Selection,
    app: Arc<App>,
    /// By database, then by the metric's name.
    fields: HashMap<String, HashMap<String, Field>>,
}

impl Strings {
    /// Finds them; `None` when there are none.
    ///
    /// # Errors
    /// Those of a selection.
    pub fn find(
        app: &Arc<App>,
        partial: &Partial,
        sets: &[Vec<Matcher>],
        range: TimeRange,
        limits: &SelectLimits,
    ) -> Result<Option<Strings>, Failure> {
        let mut fields: HashMap<String, HashMap<String, Field>> = HashMap::new();
        for database in app.measurements.databases() {
            for (measurement, all) in app.measurements.measurements(&database, Asks::Own) {
                // One that came as numbers, too, is remembered as one of numbers.
                for field in all.into_keys() {
                    let metric = format!("{measurement}_{field}{TEXT_SUFFIX}");
                    let of = fields.entry(database.clone()).or_default();
                    of.insert(metric, (measurement.clone(), field));
                }
            }
        }
        if fields.is_empty() {
            return Ok(None);
        }
        let ending = Matcher::new(METRIC_NAME, MatchOp::Regex, format!(".+{TEXT_SUFFIX}"));
        let sets: Vec<Vec<Matcher>> =
            sets.iter().map(|set| [&set[..], std::slice::from_ref(&ending)].concat()).collect();
        let selection = partial.noting(app).own().select(&sets, range, limits)?;
        let found = Strings { selection, app: app.clone(), fields };
        Ok((!found.selection.is_empty()).then_some(found))
    }

    /// Whether a series has numbers of the dictionary.
    pub fn has(&self, labels: &Labels) -> bool {
        self.field_of(labels).is_some()
    }

    fn field_of(&self, labels: &Labels) -> Option<&Field> {
        let metric = labels.metric_name();
        if !metric.ends_with(TEXT_SUFFIX) {
            return None;
        }
        let database = database_of(&self.app, labels);
        self.fields.get(database)?.get(metric)
    }

    /// Writes all of them as lines.
    ///
    /// # Errors
    /// When they cannot be read, or `out` takes nothing more.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (count, mut first) = (self.selection.len(), 0);
        while first < count {
            let end = (first + SERIES_PER_READ).min(count);
            self.write_some(out, first..end)?;
            first = end;
        }
        Ok(())
    }

    fn write_some(&self, out: &mut dyn Write, range: Range<usize>) -> io::Result<()> {
        let all = self.selection.labels_of(range.clone()).map_err(io::Error::other)?;
        let mut buffer = Vec::new();
        // The sink cannot fail, so it remembers the first error and does nothing from then on.
        let mut written = Ok(());
        let first = range.start;
        let read = self.selection.read(range, &mut |idx, times, numbers| {
            let labels = &all[idx - first];
            let Some((measurement, field)) = self.field_of(labels).filter(|_| written.is_ok())
            else {
                return;
            };
            let mut line = StringLine {
                labels: labels.clone(),
                measurement: measurement.clone(),
                field: field.clone(),
                samples: Vec::new(),
            };
            let text = |(time, number): (&i64, &f64)| Some((*time, self.app.texts.text(*number)?));
            let mut pieces = times.chunks(SAMPLES_PER_LINE).zip(numbers.chunks(SAMPLES_PER_LINE));
            written = pieces.try_for_each(|(times, numbers)| {
                line.samples = times.iter().zip(numbers).filter_map(text).collect();
                write_line(&line, &mut buffer, out)
            });
        });
        written?;
        read.map_err(io::Error::other)?;
        out.write_all(&buffer)
    }
}

/// Adds a line to the buffer; whenever that is a piece, `out` takes it.
fn write_line(line: &StringLine, buffer: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
    let mut next = 0;
    while next < line.samples.len() {
        next += line.push_some(next, buffer);
        if PIECE_SIZE <= buffer.len() {
            out.write_all(buffer)?;
            buffer.clear();
        }
    }
    Ok(())
}

/// What the table of measurements calls the database of a series.
fn database_of<'l>(app: &App, labels: &'l Labels) -> &'l str {
    table_name(app, labels.get(&app.config.insert.database_label).unwrap_or_default())
}

/// Remembers the fields that lines of strings of a body name; what is wrong with a line is said when it is
/// stored.
///
/// # Errors
/// When the store takes no notes.
pub fn learn(app: &App, body: &[u8]) -> Result<(), Failure> {
    if !has_strings(body) || !app.texts.is_on() {
        return Ok(());
    }
    let mut found: BTreeMap<(String, String), BTreeMap<String, FieldType>> = BTreeMap::new();
    for line in body.split(|byte| *byte == b'\n').filter(|line| has_strings(line)) {
        let Ok(line) = StringLine::read(line.trim_ascii()) else { continue };
        let database = database_of(app, &line.labels);
        let fields = found.entry((database.to_string(), line.measurement)).or_default();
        fields.insert(line.field, FieldType::String);
    }
    for ((database, measurement), fields) in found {
        let typed = TypedFields { measurement, fields: fields.into_iter().collect() };
        app.measurements.note(&app.store, &database, &[typed]).map_err(Failure::of_write)?;
    }
    Ok(())
}
