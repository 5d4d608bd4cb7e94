//! InfluxQL: text to tree, and whole statements of TSBS over a part of the store, to JSON.

use crate::hosts::{self, FIELDS};
use crate::path::{HotPath, Pass};
use crate::paths::store;
use ::influxql::ast::DataType;
use ::influxql::{
    Answer, Epoch, EvalError, Evaluator, Fields, Limits, Parameters, Place, SampleSink, SeriesSet,
    Source, Writer, parse,
};
use ::store::{Durability, SelectLimits, Selection, Store};
use model::{Labels, METRIC_NAME, Matcher};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

/// Hosts in the store.
const HOSTS: u64 = 50;
/// Steps ten seconds apart in the store.
const STEPS: u64 = 1080;
/// Parses of a pass.
const ROUNDS: usize = 20;

/// The paths of this file.
pub const PATHS: &[HotPath] = &[
    HotPath {
        name: "parse-influxql",
        unit: "statement",
        about: "parse a statement of TSBS: a field's maximum of 8 hosts by minute",
        prepare: parse_statement,
    },
    HotPath {
        name: "influxql-1-host",
        unit: "query",
        about: "text to JSON over a part: a field's maximum of a host by minute, an hour",
        prepare: || query(&FIELDS[..1], 1, "1m", 60),
    },
    HotPath {
        name: "influxql-8-hosts",
        unit: "query",
        about: "the same of 8 hosts",
        prepare: || query(&FIELDS[..1], 8, "1m", 60),
    },
    HotPath {
        name: "influxql-10-fields",
        unit: "query",
        about: "the same of 10 fields of a host by hour, three hours",
        prepare: || query(&FIELDS, 1, "1h", 180),
    },
];

/// A statement of TSBS.
fn statement(fields: &[&str], hosts: u64, window: &str, minutes: u32) -> String {
    let columns: Vec<String> = fields.iter().map(|field| format!("max({field})")).collect();
    let hosts: Vec<String> =
        (0..hosts).map(|idx| format!("hostname = 'host_{}'", idx * 5)).collect();
    let (hour, minute) = (minutes / 60, minutes % 60);
    format!(
        "SELECT {} FROM cpu WHERE ({}) and time >= '2016-01-01T00:00:00Z' and time < \
         '2016-01-01T{hour:02}:{minute:02}:00Z' GROUP BY time({window})",
        columns.join(", "),
        hosts.join(" or ")
    )
}

fn parse_statement() -> Pass {
    let text = statement(&FIELDS[..1], 8, "1m", 60);
    Pass::new(ROUNDS, move || {
        for _ in 0..ROUNDS {
            black_box(parse(black_box(&text), &Parameters::new()).expect("a good statement"));
        }
    })
}

fn query(fields: &[&str], hosts: u64, window: &str, minutes: u32) -> Pass {
    let store = store::open();
    let batch = store::decode(&store, hosts::lines(HOSTS, STEPS));
    store.append(&batch, Durability::Synced).expect("room");
    store.flush().expect("room");
    let source = Cpu(store);
    let text = statement(fields, hosts, window, minutes);
    Pass::new(1, move || {
        let body = answer(&source, black_box(&text));
        assert!(
            body.starts_with(b"{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"cpu\"")
        );
        black_box(body);
    })
}

fn answer(source: &Cpu, text: &str) -> Vec<u8> {
    let statements = parse(text, &Parameters::new()).expect("a good statement");
    let limits = Limits::of_memory(usize::MAX);
    let evaluator = Evaluator::new(source, "db", i64::MAX, limits);
    let run = |statement| evaluator.run(statement).unwrap_or_default();
    let answers: Vec<Answer> = statements.iter().map(run).collect();
    let mut body = Vec::new();
    let writer = Writer { epoch: Epoch::Text, indent: 0 };
    writer.body(&answers, &mut body).expect("memory takes every byte");
    body
}

/// One measurement in a store.
struct Cpu(Arc<Store>);

fn failed(error: ::store::Error) -> EvalError {
    EvalError::new(error.to_string())
}

impl Source for Cpu {
    fn has_database(&self, _: &str) -> Result<bool, EvalError> {
        Ok(true)
    }

    fn databases(&self) -> Result<Vec<String>, EvalError> {
        Ok(Vec::new())
    }

    fn measurements(&self, _: &str) -> Result<Vec<String>, EvalError> {
        Ok(Vec::new())
    }

    fn fields(&self, _: &str, _: &str) -> Result<Fields, EvalError> {
        Ok(FIELDS.iter().map(|field| ((*field).to_string(), DataType::Integer)).collect())
    }

    fn tag_keys(&self, _: &Place<'_>, _: &[Matcher]) -> Result<Vec<String>, EvalError> {
        Ok(Vec::new())
    }

    fn tag_values(&self, _: &Place<'_>, _: &str, _: &[Matcher]) -> Result<Vec<String>, EvalError> {
        Ok(Vec::new())
    }

    fn tag_sets(&self, _: &Place<'_>, _: &[Matcher]) -> Result<Vec<Labels>, EvalError> {
        Ok(Vec::new())
    }

    fn select(
        &self,
        place: &Place<'_>,
        field: &str,
        matchers: &[Matcher],
    ) -> Result<Box<dyn SeriesSet + '_>, EvalError> {
        let mut set = vec![Matcher::equal(METRIC_NAME, format!("{}_{field}", place.measurement))];
        set.extend_from_slice(matchers);
        let limits = SelectLimits {
            series_max: usize::MAX,
            deadline: None,
            cancelled: None,
            cost_max: u64::MAX,
        };
        let selection = self.0.strict().showing_all().select(&[set], place.range, &limits);
        Ok(Box::new(Selected(selection.map_err(failed)?)))
    }
}

struct Selected(Selection);

impl SeriesSet for Selected {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn tags(&self, _: Option<&[&str]>) -> Result<Vec<Labels>, EvalError> {
        self.0.labels_of(0..self.len()).map_err(failed)
    }

    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), EvalError> {
        self.0.read(range, sink).map_err(failed)
    }
}
