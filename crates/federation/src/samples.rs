//! The samples of a backend: VictoriaMetrics' exports of blocks and of JSON lines, and remote read.

use super::backend::Request;
use super::rule::{Export, Kind};
use super::{catalogue, influx, selector, unpacking};
use anyhow::{Context as _, ensure};
use http_client::client::encode;
use http_client::json_lines::{FIRST, LINES_TYPE, Lines, ROWS_PER_LINE};
use http_client::remote_read::{Answer, FRAMES_TYPE, READ_PATH, question};
use model::sample::NANOS_PER_MILLI;
use model::{Labels, TimeRange};
use std::collections::HashMap;
use std::time::Instant;
use store::{Asked, FoundSeries};
use wire::remote_read::ReadQuery;

/// Where samples are exported as blocks.
const BLOCKS_PATH: &str = "/api/v1/export/native";
/// Where they are as lines.
const LINES_PATH: &str = "/api/v1/export";

/// Series that come, some of them in pieces.
#[derive(Default)]
struct Gathered {
    places: HashMap<Labels, usize>,
    series: Vec<FoundSeries>,
}

impl Gathered {
    /// The series of some labels.
    fn of(&mut self, labels: &Labels) -> anyhow::Result<&mut FoundSeries> {
        let place = match self.places.get(labels) {
            Some(place) => *place,
            None => {
                let place = self.series.len();
                self.places.insert(labels.clone(), place);
                self.series.push(FoundSeries { labels: labels.clone(), ..Default::default() });
                place
            }
        };
        self.series.get_mut(place).context("a place without a series")
    }
}

/// All series that match, with their samples; the store puts them in order.
pub fn select(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<FoundSeries>> {
    match request.kind() {
        Kind::VictoriaMetrics => export(request, asked),
        Kind::Prometheus => read(request, asked),
        Kind::InfluxDb => influx::select(request, asked),
    }
}

fn export(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<FoundSeries>> {
    if asked.range.end < FIRST {
        return Ok(Vec::new());
    }
    match request.export()? {
        Export::Blocks => blocks(request, asked),
        Export::Lines => lines(request, asked),
    }
}

/// The parameters of an export that say what is asked.
fn export_query(request: &Request<'_>, asked: &Asked<'_>, range: &TimeRange) -> String {
    let mut query = catalogue::span_of(request.kind(), range);
    for text in selector::texts(request.kind(), asked.sets) {
        query.push_str(&format!("&match[]={}", encode(&text)));
    }
    query
}

/// Blocks as VictoriaMetrics has them on disk: they cost it a tenth of what lines of JSON do.
fn blocks(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<FoundSeries>> {
    let query = export_query(request, asked, &asked.range);
    unpacking::series(request, (BLOCKS_PATH, &query), asked)
}

fn lines(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<FoundSeries>> {
    // It cuts what it reads to a millisecond before, at times; what is too much is left out.
    let end = asked.range.end.saturating_add(NANOS_PER_MILLI);
    let range = TimeRange::new(asked.range.start, end);
    let query = export_query(request, asked, &range);
    let query = format!("{query}&max_rows_per_line={ROWS_PER_LINE}");
    let bounds = request.bounds();
    let mut gathered = Gathered::default();
    let mut take = |line: &[u8]| {
        let (labels, samples) = wire::json_lines::read_line(line)?;
        bounds.note_samples(samples.len(), samples.len(), asked)?;
        // It has no samples that are no number: they mark where it had none.
        let numbers = samples.iter().filter(|one| !one.value.is_nan());
        let series = gathered.of(&labels)?;
        for one in numbers {
            series.times.push(one.millis.saturating_mul(NANOS_PER_MILLI));
            series.values.push(one.value);
        }
        bounds.check_series(gathered.series.len(), asked)
    };
    let mut lines = Lines::default();
    let reply =
        request.stream(LINES_PATH, &query, asked, &mut |bytes| lines.push(bytes, &mut take))?;
    reply.check_empty(LINES_PATH, LINES_TYPE)?;
    lines.end(&mut take)?;
    Ok(gathered.series)
}

fn read(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<FoundSeries>> {
    let (first, last) = asked.range.whole_millis();
    let range =
        TimeRange::new(first.saturating_mul(NANOS_PER_MILLI), last.saturating_mul(NANOS_PER_MILLI));
    let (bounds, deadline) = (request.bounds(), request.deadline());
    let mut gathered = Gathered::default();
    for matchers in selector::sets_of(asked.sets) {
        let question = question(&ReadQuery { matchers, range })?;
        let mut take = |found: wire::remote_read::decode::ReadSeries| {
            ensure!(Instant::now() < deadline, "not within its time");
            let count = found.chunks.iter().map(Vec::len).sum::<usize>();
            bounds.note_samples(count + found.histograms.len(), found.weight(), asked)?;
            let series = gathered.of(&found.labels)?;
            for one in found.chunks.iter().flatten() {
                series.times.push(one.millis.saturating_mul(NANOS_PER_MILLI));
                series.values.push(one.value);
            }
            for (millis, histogram) in found.histograms {
                ensure!(histogram.validate().is_ok(), "a native histogram that cannot be");
                series.histogram_times.push(millis.saturating_mul(NANOS_PER_MILLI));
                series.histograms.push(histogram);
            }
            bounds.check_series(gathered.series.len(), asked)
        };
        let mut answer = Answer::new(bounds.size_max());
        let reply =
            request.ask(READ_PATH, &question, asked, &mut |bytes| answer.push(bytes, &mut take))?;
        reply.check_empty(READ_PATH, FRAMES_TYPE)?;
        answer.end(&mut take).context(READ_PATH)?;
    }
    Ok(gathered.series)
}
