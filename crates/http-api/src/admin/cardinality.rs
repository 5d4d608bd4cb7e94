//! Who makes the series, who is new, who is never asked for, and what that costs.
//!
//! `/api/v1/status/tsdb` answers as Prometheus and as VictoriaMetrics do, in one; the lists of bytes
//! are Quipu's own, as are `/api/v1/status/series/new` and `/api/v1/status/series/unqueried`.

use crate::http::answer::Answer;
use crate::http::partial::Partial;
use crate::http::request::Request;
use crate::http::request::selection;
use app::App;
use cli::calendar::{parse_day, rfc3339};
use model::TimeRange;
use model::sample::{NANOS_PER_HOUR, NANOS_PER_MILLI};
use net::failure::Failure;
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Cardinality, CardinalityRequest, NameCount, SelectLimits};

/// Rows of each list, when not asked otherwise, and at most.
const TOP_DEFAULT: usize = 10;
const TOP_MAX: usize = 1000;
/// Hours of new series, when not asked otherwise, and at most.
const HOURS_DEFAULT: u32 = 24;
const HOURS_MAX: u32 = 25;

/// `/api/v1/status/tsdb`: which metrics, labels and pairs make the series of a day.
pub fn tsdb(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let partial = Partial::of(app, request)?;
    let found = partial.noting(app).cardinality(&asked(app, request)?)?;
    let stats = app.store.stats();
    let (min, max) = found.time_min_max.or(stats.time_min_max).unwrap_or((0, 0));
    let mut answer = lists(&found);
    answer["headStats"] = json!({
        "numSeries": found.series,
        "numLabelPairs": found.label_pairs,
        "chunkCount": stats.parts,
        "minTime": min / NANOS_PER_MILLI,
        "maxTime": max / NANOS_PER_MILLI,
    });
    partial.finish(app, Answer::success(answer))
}

/// `/api/v1/series/count`: the number of all series, in a list, as VictoriaMetrics answers.
pub fn series_count(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let partial = Partial::of(app, request)?;
    let limits = SelectLimits { series_max: usize::MAX, ..selection::limits(app, request)? };
    let found = partial.noting(app).select(&[], TimeRange::ALL, &limits)?;
    partial.finish(app, Answer::success(json!([found.len()])))
}

/// `/api/v1/status/series/new`: who was registered in the last hours, by hour, metric and label.
pub fn new_series(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let hours = match request.params.filled("hours").map(str::parse::<u32>) {
        None => HOURS_DEFAULT,
        Some(Ok(hours @ 1..=HOURS_MAX)) => hours,
        Some(_) => {
            return Err(selection::invalid("hours", &format!("a number from 1 to {HOURS_MAX}")));
        }
    };
    let found = app.store.new_series(&asked(app, request)?, hours)?;
    let mut answer = lists(&found.series);
    let hour = |(hour, series): &(i64, u64)| json!({ "start": rfc3339(hour * NANOS_PER_HOUR), "series": series });
    answer["newSeriesByHour"] = found.hours.iter().map(hour).collect();
    answer["since"] = json!(rfc3339(app.started_at));
    Ok(Answer::success(answer))
}

/// `/api/v1/status/series/unqueried`: whose samples nobody has asked for since start.
pub fn unqueried(app: &Arc<App>, request: &Request) -> Result<Answer, Failure> {
    let partial = Partial::of(app, request)?;
    let found = partial.noting(app).unqueried(&asked(app, request)?)?;
    let mut answer = lists(&found);
    answer["since"] = json!(rfc3339(app.started_at));
    partial.finish(app, Answer::success(answer))
}

fn asked(app: &App, request: &Request) -> Result<CardinalityRequest, Failure> {
    let top = request.params.filled("limit").or(request.params.filled("topN"));
    let top_n = match top.map(str::parse::<usize>) {
        None => TOP_DEFAULT,
        Some(Ok(top)) if 0 < top => top.min(TOP_MAX),
        Some(_) => return Err(Failure::bad_input("limit must be a number from 1")),
    };
    let date = request.params.filled("date");
    let day = date
        .map(|text| parse_day(text).ok_or_else(|| selection::invalid("date", &"use YYYY-MM-DD")))
        .transpose()?;
    let focus_label = request.params.filled("focusLabel").map(str::to_string);
    let (sets, limits) = (selection::listing_sets(app, request)?, selection::limits(app, request)?);
    Ok(CardinalityRequest { top_n, day, sets, focus_label, limits })
}

/// The lists of both peers, and those of bytes.
fn lists(found: &Cardinality) -> Value {
    let memory = |row: &NameCount| {
        let hidden = found.hidden_by_metric.iter().find(|hidden| hidden.name == row.name);
        let series = row.count + hidden.map_or(0, |hidden| hidden.count);
        let count = (series as f64 * found.memory_bytes_per_series) as u64;
        NameCount { name: row.name.clone(), count }
    };
    let memory_by_metric: Vec<NameCount> = found.by_metric.iter().map(memory).collect();
    json!({
        "totalSeries": found.series,
        "totalLabelValuePairs": found.series_labels,
        "seriesCountByMetricName": counts(&found.by_metric),
        "seriesCountByLabelName": counts(&found.by_label),
        "seriesCountByFocusLabelValue": counts(&found.by_focus_value),
        "seriesCountByLabelValuePair": counts(&found.by_pair),
        "labelValueCountByLabelName": counts(&found.values_by_label),
        "histogramColumnCountByMetricName": counts(&found.hidden_by_metric),
        "memoryInBytesByLabelName": counts(&found.bytes_by_label),
        "memoryBytesPerSeries": found.memory_bytes_per_series,
        "memoryBytesByMetricName": counts(&memory_by_metric),
        "diskBytes": found.disk_bytes,
        "diskBytesByMetricName": counts(&found.disk_bytes_by_metric),
        "diskBytesByLabelValuePair": counts(&found.disk_bytes_by_pair),
        "indexBytesByLabelName": counts(&found.index_bytes_by_label),
    })
}

fn counts(list: &[NameCount]) -> Value {
    list.iter().map(|row| json!({ "name": row.name, "value": row.count })).collect()
}
