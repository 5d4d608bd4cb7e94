//! Rows of InfluxDB on their way: they become lines again, so that what they are here is what they were if
//! somebody had written them to Quipu's own door: names of `measurement_field`, the label `db`, nanoseconds,
//! and the types of fields.

use super::exact::{Exact, When};
use super::series::Filter;
use model::{Labels, LabelsBuilder, METRIC_NAME, TimeRange};
use std::sync::Arc;
use wire::influx::answer::{AnswerRow, AnswerValue};
use wire::influx::encode::{
    push_field_name, push_field_text, push_field_value, push_key, push_whole_value,
};
use wire::influx::{FieldType, TEXT_SUFFIX};
use wire::json_lines::StringLine;
use wire::moved_labels;

/// The label that Quipu's door gives to what was written with `db=`.
pub const DATABASE: &str = "db";

/// Rows of a measurement that have the same tags.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Value of the label `db`: the database, or `database.policy`; nothing for none.
    pub database: String,
    /// Retention policy if it is not the database's default, else nothing.
    pub policy: String,
    /// The database's default policy; nothing where that is not known.
    pub default_policy: String,
    /// The measurement.
    pub measurement: String,
    /// Without the metric's name and the database.
    pub tags: Labels,
    /// Names and types of their fields.
    pub fields: Vec<(String, FieldType)>,
    /// Times in nanoseconds, and a value for each field.
    pub rows: Vec<AnswerRow>,
    /// The texts that rows name.
    pub texts: Arc<Vec<Arc<str>>>,
}

/// Database and retention policy that lines are written to; empty for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinesPlace {
    /// What is said as `db=`.
    pub database: String,
    /// Value of the parameter `rp`.
    pub policy: String,
    /// Policy that is stored under the database's own name.
    pub default_policy: String,
}

/// Lines for one database.
pub struct Lines {
    /// Database and policy to write to.
    pub place: LinesPlace,
    /// The lines.
    pub text: Vec<u8>,
    /// How many values they have.
    pub samples: u64,
}

impl Points {
    /// The labels of the series of a field.
    fn labels(&self, field: &str, kind: FieldType) -> Labels {
        let mut labels = LabelsBuilder::new();
        // Without a database a tag `db` is the label `db`.
        let added = if self.database.is_empty() { "" } else { DATABASE };
        for (name, value) in self.tags.iter() {
            labels.push(&moved_labels::stored_name(name, added), value);
        }
        if !added.is_empty() {
            labels.set(added, &self.database);
        }
        let ending = if kind == FieldType::String { TEXT_SUFFIX } else { "" };
        labels.set(METRIC_NAME, &format!("{}_{field}{ending}", self.measurement));
        labels.finish()
    }

    /// Leaves what is of a time, and of the series that are copied.
    pub fn tidy(&mut self, range: &TimeRange, filter: &Filter) {
        self.rows.retain(|row| range.contains(row.time));
        let takes: Vec<bool> = self
            .fields
            .iter()
            .map(|(name, kind)| filter.takes(&self.labels(name, *kind)))
            .collect();
        if takes.iter().all(|takes| *takes) {
            return;
        }
        let kept = |at: usize| takes.get(at).copied().unwrap_or(false);
        let mut at = 0..;
        self.fields.retain(|_| at.next().is_some_and(kept));
        for row in &mut self.rows {
            let mut at = 0..;
            row.values.retain(|_| at.next().is_some_and(kept));
        }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.rows.iter().map(|row| row.values.iter().flatten().count()).sum()
    }

    fn text(&self, value: AnswerValue) -> Option<&Arc<str>> {
        match value {
            AnswerValue::Text(at) => self.texts.get(at as usize),
            AnswerValue::Number(_) | AnswerValue::Long(_) => None,
        }
    }

    /// How many texts are lost, as nothing but lines says them.
    pub fn texts_lost(&self, filter: &Filter) -> u64 {
        let is_text = |value: &&AnswerValue| matches!(value, AnswerValue::Text(_));
        let values = self.rows.iter().flat_map(|row| row.values.iter().flatten());
        let count = values.filter(is_text).count() as u64;
        if 0 < count && self.heads(filter).is_none() { count } else { 0 }
    }

    /// The series of its texts, with the labels that they have in the new place.
    pub fn strings(&self, filter: &Filter) -> Vec<StringLine> {
        let mut all = Vec::new();
        for (at, (field, kind)) in self.fields.iter().enumerate() {
            if *kind != FieldType::String {
                continue;
            }
            let text = |row: &AnswerRow| {
                let text = self.text(row.values.get(at).copied().flatten()?)?;
                Some((row.time, text.clone()))
            };
            let samples: Vec<(i64, Arc<str>)> = self.rows.iter().filter_map(text).collect();
            if !samples.is_empty() {
                let labels = filter.relabelled(self.labels(field, *kind));
                let (measurement, field) = (self.measurement.clone(), field.clone());
                all.push(StringLine { labels, measurement, field, samples });
            }
        }
        all
    }

    /// The series of its numbers, with the labels that they have in the new place.
    pub fn exact(&self, filter: &Filter) -> Vec<Exact> {
        let series = |(at, (field, kind)): (usize, &(String, FieldType))| {
            let value = |row: &AnswerRow| {
                let when = When { nanos: row.time, start_ms: 0 };
                match row.values.get(at).copied().flatten()? {
                    AnswerValue::Number(value) => Some((when, value)),
                    // Where no line says it, nothing has the bits that are too many.
                    AnswerValue::Long(number) => Some((when, number as f64)),
                    AnswerValue::Text(_) => None,
                }
            };
            let samples = self.rows.iter().filter_map(value).collect();
            let labels = filter.relabelled(self.labels(field, *kind));
            Exact { labels, samples, histograms: Vec::new() }
        };
        let all = self.fields.iter().enumerate().map(series);
        all.filter(|one| 0 < one.len()).collect()
    }

    /// What its lines begin with, and what their fields do; nothing where lines cannot say it.
    fn heads(&self, filter: &Filter) -> Option<Heads> {
        if filter.changes_names() {
            return None;
        }
        // Those of all fields have the same changes.
        let mut labels = filter.relabelled(self.labels("", FieldType::Float)).to_builder();
        let place = self.place(labels.get(DATABASE).unwrap_or_default());
        labels.remove(DATABASE);
        let added = if place.database.is_empty() { "" } else { DATABASE };
        let labels = labels.finish();
        let tags: Vec<(&str, &str)> = labels
            .iter()
            .map(|(name, value)| (moved_labels::own_name(name, added), value))
            .collect();
        let mut key = Vec::new();
        push_key(&mut key, &self.measurement, &Labels::from_pairs(&tags)).ok()?;
        let mut fields = Vec::new();
        for (name, kind) in &self.fields {
            let mut text = Vec::new();
            push_field_name(&mut text, name).ok()?;
            fields.push((text, *kind));
        }
        Some(Heads { place, key, fields })
    }

    /// Database and policy of lines whose database label is `label`.
    fn place(&self, label: &str) -> LinesPlace {
        let own = Some(label).filter(|label| !self.policy.is_empty() && *label == self.database);
        let database = own.and_then(|label| label.strip_suffix(&self.policy)?.strip_suffix('.'));
        let default_policy = self.default_policy.clone();
        match database {
            Some(database) => {
                let (database, policy) = (database.to_string(), self.policy.clone());
                LinesPlace { database, policy, default_policy }
            }
            None if label == self.database && self.policy.is_empty() => {
                LinesPlace { database: label.to_string(), policy: String::new(), default_policy }
            }
            None => LinesPlace { database: label.to_string(), ..LinesPlace::default() },
        }
    }

    /// The same as lines; nothing where lines cannot say it: names of metrics are changed on the way, or the
    /// new labels have what no tag has.
    pub fn lines(&self, filter: &Filter) -> Option<Lines> {
        let Heads { place, key, fields } = self.heads(filter)?;
        let mut lines = Lines { place, text: Vec::new(), samples: 0 };
        for row in &self.rows {
            let mut parts_by = b' ';
            for ((name, kind), value) in fields.iter().zip(&row.values) {
                let Some(value) = value else { continue };
                // What is no text is none of a field of strings, nor the other way round.
                let text = self.text(*value);
                if text.is_some() != (*kind == FieldType::String) {
                    continue;
                }
                if parts_by == b' ' {
                    lines.text.extend_from_slice(&key);
                }
                lines.text.push(parts_by);
                lines.text.extend_from_slice(name);
                match (value, text) {
                    (_, Some(text)) => push_field_text(&mut lines.text, text),
                    (AnswerValue::Number(value), None) => {
                        push_field_value(&mut lines.text, *kind, *value);
                    }
                    (AnswerValue::Long(number), None) => {
                        push_whole_value(&mut lines.text, *kind, *number);
                    }
                    (AnswerValue::Text(_), None) => {}
                }
                parts_by = b',';
                lines.samples += 1;
            }
            if parts_by == b',' {
                lines.text.extend_from_slice(format!(" {}\n", row.time).as_bytes());
            }
        }
        Some(lines)
    }
}

/// What lines begin with.
struct Heads {
    place: LinesPlace,
    key: Vec<u8>,
    fields: Vec<(Vec<u8>, FieldType)>,
}

#[cfg(test)]
mod tests {
    use super::super::series::Series;
    use super::*;
    use clap::Command;
    use wire::remote_write::encode::MillisSample;

    fn points() -> Points {
        let row = |time, values: [Option<f64>; 3], text: Option<u32>| {
            let numbers = values.iter().map(|value| value.map(AnswerValue::Number));
            let values = numbers.chain([text.map(AnswerValue::Text)]).collect();
            AnswerRow { time, values }
        };
        Points {
            database: "d b".to_string(),
            policy: String::new(),
            default_policy: String::new(),
            measurement: "m,x".to_string(),
            tags: Labels::from_pairs(&[("host", "a b")]),
            fields: [
                ("f", FieldType::Float),
                ("n", FieldType::Integer),
                ("on", FieldType::Boolean),
                ("s", FieldType::String),
            ]
            .map(|(name, kind)| (name.to_string(), kind))
            .to_vec(),
            rows: vec![
                row(1_999_999, [Some(0.1), Some(3.0), Some(1.0)], Some(1)),
                row(2_000_001, [None, Some(4.0), None], None),
                row(2_000_002, [None, None, None], Some(0)),
                row(3_000_000, [None, None, None], None),
            ],
            texts: Arc::new(vec!["a\n=".into(), "b\"\\".into()]),
        }
    }

    fn filter(arguments: &[&str]) -> Filter {
        let command = super::super::series::arguments(Command::new("x"));
        Filter::of(&command.try_get_matches_from([&["x"], arguments].concat()).unwrap()).unwrap()
    }

    #[test]
    fn rows_are_lines_in_their_types() {
        let lines = points().lines(&Filter::all()).unwrap();
        assert_eq!((lines.place.database.as_str(), lines.samples), ("d b", 6));
        let expected = "m\\,x,host=a\\ b f=0.1,n=3i,on=t,s=\"b\\\"\\\\\" 1999999\n\
                        m\\,x,host=a\\ b n=4i 2000001\nm\\,x,host=a\\ b s=\"a\n=\" 2000002\n";
        assert_eq!(String::from_utf8(lines.text).unwrap(), expected);
        let changed = filter(&["--rename-label", "db=base", "--drop-label", "host"]);
        let lines = points().lines(&changed).unwrap();
        assert_eq!(lines.place, LinesPlace::default());
        let of_policy =
            Points { database: "x.y.z".to_string(), policy: "y.z".to_string(), ..points() };
        let place = |filter: &Filter| of_policy.lines(filter).unwrap().place;
        let expected = LinesPlace {
            database: "x".to_string(),
            policy: "y.z".to_string(),
            default_policy: String::new(),
        };
        assert_eq!(place(&Filter::all()), expected);
        let set = filter(&["--set-label", "db=e"]);
        let expected = LinesPlace { database: "e".to_string(), ..LinesPlace::default() };
        assert_eq!(place(&set), expected);
        assert!(lines.text.starts_with(b"m\\,x,base=d\\ b f=0.1"));
        let renamed = filter(&["--set-label", "__name__=x"]);
        assert!(points().lines(&renamed).is_none());
        assert_eq!((points().texts_lost(&renamed), points().texts_lost(&Filter::all())), (2, 0));
        let mut odd = points();
        odd.tags = Labels::from_pairs(&[("host", "a\nb")]);
        assert!(odd.lines(&Filter::all()).is_none());
    }

    #[test]
    fn a_tag_called_db_stays_beside_the_database() {
        let tags = [("db", "shop"), ("exported_db", "x")];
        let odd = Points { tags: Labels::from_pairs(&tags), ..points() };
        let expected = [("db", "d b"), ("exported_db", "shop"), ("exported_exported_db", "x")];
        let labels = odd.labels("f", FieldType::Float);
        let labels: Vec<(&str, &str)> =
            labels.iter().filter(|(name, _)| *name != "__name__").collect();
        assert_eq!(labels, expected);
        let lines = odd.lines(&Filter::all()).unwrap();
        assert_eq!(lines.place.database, "d b");
        assert!(lines.text.starts_with(b"m\\,x,db=shop,exported_db=x f=0.1"));
    }

    #[test]
    fn rows_are_series_of_their_fields() {
        let series: Vec<Series> =
            points().exact(&Filter::all()).into_iter().map(Exact::into_series).collect();
        assert_eq!(series.len(), 3);
        let pairs = [("__name__", "m,x_n"), ("db", "d b"), ("host", "a b")];
        assert_eq!(series[1].labels, Labels::from_pairs(&pairs));
        let sample = |(millis, value)| MillisSample { millis, value };
        assert_eq!(series[1].samples, [(1, 3.0), (2, 4.0)].map(sample));
        let strings = points().strings(&Filter::all());
        assert_eq!((strings.len(), strings[0].labels.metric_name()), (1, "m,x_s:text"));
        let expected: [(i64, Arc<str>); 2] =
            [(1_999_999, "b\"\\".into()), (2_000_002, "a\n=".into())];
        assert_eq!(strings[0].samples, expected);
        let mut some = points();
        some.tidy(
            &TimeRange::new(2_000_000, 9_000_000),
            &filter(&["--match", "{__name__=~\"m,x_n|m,x_on\"}"]),
        );
        assert_eq!((some.fields.len(), some.rows.len(), some.len()), (2, 3, 1));
        assert_eq!(some.exact(&Filter::all()).len(), 1);
    }
}
