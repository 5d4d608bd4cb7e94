//! Strings of line protocol in JSON lines: out, with the measurement and the field that they came as, and
//! in again, where they get numbers of the dictionary (decision 46).
//!
//! A metric that ends in `:text` and is no field that is remembered came by another door: its
//! numbers are none of the dictionary, and are exported as numbers by who asks for it by name.

use super::export::TimeUnit;
use super::export_millis::MilliTimes;
use crate::http::answer::PIECE_SIZE;
use crate::http::partial::Partial;
use crate::influx::query::table_name;
use app::App;
use influx_schema::records::RECORDS_PATH;
use model::{Labels, METRIC_NAME, MatchOp, Matcher, TimeRange};
use net::failure::Failure;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use store::{Asks, Need, SelectLimits, Selection};
use wire::influx::{FieldType, TEXT_SUFFIX, TypedFields};
use wire::json_lines::{SAMPLES_PER_LINE, StringLine, has_strings, rename_metric};
use wire::{ExtraLabels, Start};

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
    unit: TimeUnit,
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
        if app.store.has(Need::Strings) {
            // It has the strings, and says which fields have some.
            partial.note_side_file(app, RECORDS_PATH);
            // An earlier version may have lost them with the file of metadata.
            partial.note_side_file(app, "metadata");
        }
        let mut fields: HashMap<String, HashMap<String, Field>> = HashMap::new();
        for database in app.measurements.databases() {
            for (measurement, all) in app.measurements.measurements(&database, Asks::Own) {
                // One that came as numbers, too, is remembered as one of numbers.
                for field in all.into_keys() {
                    let kind = FieldType::String;
                    let metric = app.measurements.metric(&database, &measurement, &field, kind);
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
        let (app, unit) = (app.clone(), TimeUnit::Nanoseconds);
        let found = Strings { selection, app, fields, unit };
        Ok((!found.selection.is_empty()).then_some(found))
    }

    /// The same with times in another unit.
    pub fn timed(self, unit: TimeUnit) -> Strings {
        Strings { unit, ..self }
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
            let millis = match self.unit {
                TimeUnit::Nanoseconds => None,
                TimeUnit::Milliseconds => Some(MilliTimes::new(times, &[])),
            };
            let cut = millis.map(|millis| (millis.pick(numbers), millis.times));
            let (times, numbers) = match &cut {
                None => (times, numbers),
                Some((numbers, times)) => (&times[..], &numbers[..]),
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

/// Bytes of lines that are copied at once where some of them get other names.
const RENAMED_SIZE: usize = 4 << 20;

/// Lines of a body that are stored under another metric name than they have: two fields whose names join
/// to one metric would be one series.
#[derive(Debug, Default)]
pub struct RenamedLines {
    /// Numbers of lines, ascending, and the names of their metrics.
    names: VecDeque<(u32, String)>,
}

/// Notes the fields that lines of strings of a body name, and chooses the names of their metrics. The
/// decoder reports faults of lines.
///
/// # Errors
/// When the store takes no notes.
pub fn note_fields(app: &App, body: &[u8], extra: &ExtraLabels) -> Result<RenamedLines, Failure> {
    let mut renamed = RenamedLines::default();
    if !has_strings(body) || !app.texts.is_on() {
        return Ok(renamed);
    }
    let label = app.config.insert.database_label.as_str();
    let extra_database = extra.iter().find(|(name, _)| *name == label).map(|(_, value)| value);
    let mut found: BTreeMap<(String, String), BTreeMap<String, FieldType>> = BTreeMap::new();
    for (line, number) in body.split(|byte| *byte == b'\n').zip(Start::default().line..) {
        if !has_strings(line) {
            continue;
        }
        let Ok(line) = StringLine::read(line) else { continue };
        let StringLine { labels, measurement, field, .. } = line;
        let database = match extra_database {
            Some(name) => table_name(app, name),
            None => database_of(app, &labels),
        };
        let name = labels.metric_name().strip_prefix(&measurement).unwrap_or_default();
        let colons = u8::try_from(name.bytes().take_while(|byte| *byte == b':').count());
        app.measurements.claim_name(database, &measurement, &field, colons.unwrap_or(u8::MAX));
        let kind = FieldType::String;
        let metric = app.measurements.metric(database, &measurement, &field, kind);
        if metric != labels.metric_name() {
            renamed.names.push_back((number, metric));
        }
        let fields = found.entry((database.to_string(), measurement)).or_default();
        fields.insert(field, FieldType::String);
    }
    for ((database, measurement), fields) in found {
        let typed = TypedFields { measurement, fields: fields.into_iter().collect() };
        app.measurements.note(&database, &[typed]).map_err(Failure::of_write)?;
    }
    Ok(renamed)
}

impl RenamedLines {
    /// Hands on the lines of a body in pieces, with the names that they get, and where each piece begins.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn each_piece(
        mut self,
        body: &[u8],
        mut take: impl FnMut(&[u8], Start) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut start = Start::default();
        let mut piece = Vec::new();
        while !self.names.is_empty() {
            let rest = body.get(start.offset..).unwrap_or_default();
            let first = start.line;
            piece.clear();
            for line in rest.split_inclusive(|byte| *byte == b'\n') {
                let name = self.names.pop_front_if(|(number, _)| *number == start.line);
                let renamed = name.and_then(|(_, name)| rename_metric(line, &name));
                piece.extend_from_slice(renamed.as_deref().unwrap_or(line));
                let line_number = start.line.saturating_add(1);
                start = Start { offset: start.offset + line.len(), line: line_number };
                if RENAMED_SIZE <= piece.len() {
                    break;
                }
            }
            if rest.is_empty() {
                break;
            }
            take(&piece, Start { offset: 0, line: first })?;
        }
        take(body, start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_lines_keep_their_numbers_and_the_others_stay() {
        let line = |name: &str| format!("{{\"metric\":{{\"__name__\":\"{name}\"}}}}");
        let large = format!("{}{}\n", line("a"), " ".repeat(RENAMED_SIZE));
        let body = format!("{large}\n{}\n{}\n{}", line("a"), line("b"), line("a"));
        for renamed in [vec![], vec![1], vec![3], vec![5], vec![1, 5], vec![1, 3, 4, 5]] {
            let names = renamed.iter().map(|number| (*number, "c".to_string())).collect();
            let mut found = Vec::new();
            let take = |lines: &[u8], start: Start| {
                let text = std::str::from_utf8(&lines[start.offset..]).expect("UTF-8");
                let lines = text.split('\n').zip(start.line..);
                let lines = lines.map(|(line, number)| (number, line.trim_end().to_string()));
                found.extend(lines.filter(|(_, line)| !line.is_empty()));
                Ok(())
            };
            let taken = RenamedLines { names }.each_piece(body.as_bytes(), take);
            assert!(taken.is_ok());
            let expected = [(1, "a"), (3, "a"), (4, "b"), (5, "a")].map(|(number, name)| {
                (number, line(if renamed.contains(&number) { "c" } else { name }))
            });
            assert_eq!(found, expected, "{renamed:?}");
        }
    }
}
