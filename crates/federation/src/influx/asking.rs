//! Statements on their way to an InfluxDB, and its answers ([`influxql`]).

use super::super::backend::Request;
use http_client::influxql;
use http_client::influxql::{Answer, Form, OnNames};
use store::Asked;
use wire::influx::columns::{ColumnsSeries, NumberOf, read_columns};

pub use http_client::influxql::{Room, count_at_once};

/// Bytes of a piece with samples: in memory it may become twenty times that.
const SAMPLES_SIZE_MAX: usize = 8 << 20;
/// Bytes of a piece with names, which may become fifty times that.
const NAMES_SIZE_MAX: usize = 4 << 20;

/// Asks for names, for a question of the store or, without one, for what is known of the server.
pub fn names(
    request: &mut Request<'_>,
    (database, texts): (&str, &[&str]),
    asked: Option<&Asked<'_>>,
    on_row: &mut OnNames<'_>,
) -> anyhow::Result<()> {
    let form = Form::of_names(database, texts);
    let mut answer = Answer::bounded(texts.len(), NAMES_SIZE_MAX);
    let mut on_bytes = |bytes: &[u8]| answer.push_names(bytes, on_row);
    match asked {
        Some(asked) => drop(request.ask(influxql::PATH, &form.request(), asked, &mut on_bytes)?),
        None => drop(request.own(influxql::PATH, &form.request(), &mut on_bytes)?),
    }
    answer.end_names(on_row)
}

/// Asks for samples. `on_series` gets the number of a statement and a piece of a series.
pub fn samples(
    request: &mut Request<'_>,
    (database, texts): (&str, &[&str]),
    asked: &Asked<'_>,
    number_of: &mut NumberOf<'_>,
    on_series: &mut influxql::OnSeries<'_, ColumnsSeries>,
) -> anyhow::Result<()> {
    let form = Form::of_samples(database, texts);
    let mut answer = Answer::bounded(texts.len(), SAMPLES_SIZE_MAX);
    let mut read = |line: &[u8]| read_columns(line, number_of);
    request.ask(influxql::PATH, &form.request(), asked, &mut |bytes| {
        answer.push_samples(bytes, &mut read, on_series)
    })?;
    answer.end_samples(&mut read, on_series)
}
