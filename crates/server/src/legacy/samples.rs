//! The samples of a backend: VictoriaMetrics' export of JSON lines, and remote read.

use super::backend::Request;
use super::rule::Kind;
use super::{catalogue, selector};
use crate::commands::client::encode;
use crate::commands::migrate::days;
use crate::commands::migrate::remote_read::{Answer, READ_PATH, question};
use crate::commands::migrate::victoriametrics::{FIRST, Lines, ROWS_PER_LINE};
use anyhow::{Context as _, ensure};
use model::sample::NANOS_PER_MILLI;
use model::{Labels, TimeRange};
use std::collections::HashMap;
use std::time::Instant;
use store::{Asked, FoundSeries};
use wire::remote_read::ReadQuery;

/// Where samples are exported.
const EXPORT_PATH: &str = "/api/v1/export";

/// Series that come, some of them in pieces.
#[derive(Default)]
struct Gathered(HashMap<Labels, FoundSeries>);

impl Gathered {
    fn series(&mut self, labels: Labels) -> &mut FoundSeries {
        self.0.entry(labels).or_insert_with_key(|labels| FoundSeries {
            labels: labels.clone(),
            ..Default::default()
        })
    }
}

/// All series that match, with their samples; the store puts them in order.
pub fn select(request: &mut Request<'_>, asked: &Asked<'_>) -> anyhow::Result<Vec<FoundSeries>> {
    let mut gathered = Gathered::default();
    match request.kind() {
        Kind::VictoriaMetrics => export(request, asked, &mut gathered)?,
        Kind::Prometheus => read(request, asked, &mut gathered)?,
    }
    Ok(gathered.0.into_values().collect())
}

fn export(
    request: &mut Request<'_>,
    asked: &Asked<'_>,
    gathered: &mut Gathered,
) -> anyhow::Result<()> {
    if asked.range.end < FIRST {
        return Ok(());
    }
    // It cuts what it reads to a millisecond before, at times; what is too much is left out.
    let end = asked.range.end.saturating_add(NANOS_PER_MILLI);
    let span = catalogue::span_of(request.kind(), &TimeRange::new(asked.range.start, end));
    let mut query = format!("{span}&max_rows_per_line={ROWS_PER_LINE}");
    for text in selector::texts(request.kind(), asked.sets) {
        query.push_str(&format!("&match[]={}", encode(&text)));
    }
    let mut lines = Lines::default();
    let bounds = request.bounds();
    let mut take = |line: &[u8]| {
        let (labels, samples) = wire::json_lines::read_line(line)?;
        bounds.note_samples(samples.len(), samples.len(), asked)?;
        // It has no samples that are no number: they mark where it had none.
        let numbers = samples.iter().filter(|one| !one.value.is_nan());
        let series = gathered.series(labels);
        for one in numbers {
            series.times.push(one.millis.saturating_mul(NANOS_PER_MILLI));
            series.values.push(one.value);
        }
        bounds.check_series(gathered.0.len(), asked)
    };
    request.stream(EXPORT_PATH, &query, asked, &mut |bytes| lines.push(bytes, &mut take))?;
    lines.end(&mut take)
}

fn read(
    request: &mut Request<'_>,
    asked: &Asked<'_>,
    gathered: &mut Gathered,
) -> anyhow::Result<()> {
    let (first, last) = days::millis(&asked.range);
    let range =
        TimeRange::new(first.saturating_mul(NANOS_PER_MILLI), last.saturating_mul(NANOS_PER_MILLI));
    let (bounds, deadline) = (request.bounds(), request.deadline());
    for matchers in selector::sets_of(asked.sets) {
        let question = question(&ReadQuery { matchers, range })?;
        let mut take = |found: wire::remote_read::decode::ReadSeries| {
            ensure!(Instant::now() < deadline, "not within its time");
            let count = found.chunks.iter().map(Vec::len).sum::<usize>();
            bounds.note_samples(count + found.histograms.len(), found.weight(), asked)?;
            let series = gathered.series(found.labels);
            for one in found.chunks.iter().flatten() {
                series.times.push(one.millis.saturating_mul(NANOS_PER_MILLI));
                series.values.push(one.value);
            }
            for (millis, histogram) in found.histograms {
                ensure!(histogram.validate().is_ok(), "a native histogram that cannot be");
                series.histogram_times.push(millis.saturating_mul(NANOS_PER_MILLI));
                series.histograms.push(histogram);
            }
            bounds.check_series(gathered.0.len(), asked)
        };
        let mut answer = Answer::new(bounds.size_max());
        request.ask(READ_PATH, &question, asked, &mut |bytes| answer.push(bytes, &mut take))?;
        answer.end(&mut take).context(READ_PATH)?;
    }
    Ok(())
}
