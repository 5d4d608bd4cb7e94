//! A running VictoriaMetrics, read by its export of JSON lines: numbers come as it shows them.

use super::days;
use super::totals;
use crate::series::{Filter, Series};
use crate::source::{Sink, Source, Total, Window};
use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http_client::client::{Client, encode};
use http_client::json::json_of;
pub use http_client::json_lines::{FIRST, LINES_TYPE, Lines, ROWS_PER_LINE, seconds};
use http_client::retry::retried;
use hyper::Method;
use jiff::civil::date;
use jiff::tz::TimeZone;
use model::{TimeRange, Timestamp};
use std::sync::Arc;

/// Path that exports JSON lines.
pub const EXPORT_PATH: &str = "/api/v1/export";
/// All series: those with a name, and those without, which are told of.
const ALL: [&str; 2] = ["{__name__!=\"\"}", "{__name__=\"\"}"];

/// The server.
pub struct VictoriaMetrics {
    client: Client,
    filter: Arc<Filter>,
    range: TimeRange,
}

impl VictoriaMetrics {
    /// What a server has of that time.
    pub fn new(client: Client, filter: Arc<Filter>, range: TimeRange) -> VictoriaMetrics {
        VictoriaMetrics { client, filter, range }
    }

    /// Whether it has series of a time, as far as its index tells.
    fn has(&mut self, range: &TimeRange) -> anyhow::Result<bool> {
        let (first, last) = range.whole_millis();
        let path = format!(
            "/api/v1/labels?deny_partial_response=1&limit=1&start={}&end={}",
            first / 1000,
            last / 1000
        );
        let answer = json_of(&mut self.client, &path)?;
        ensure!(answer["isPartial"] != true, "a part of the cluster does not answer: {path}");
        let labels = answer["data"].as_array().context("no list of labels")?;
        Ok(!labels.is_empty())
    }

    /// Whether it exports samples of a window.
    fn gives_any(&mut self, window: &Window) -> anyhow::Result<bool> {
        let mut is_any = false;
        self.read(window, &mut |_| {
            is_any = true;
            Ok(())
        })?;
        Ok(is_any)
    }

    /// The months of a time that have series, as far as its index tells.
    fn months(&mut self, range: &TimeRange) -> anyhow::Result<Vec<TimeRange>> {
        let of = |nanos: i64| jiff::Timestamp::from_nanosecond(i128::from(nanos));
        let year = |nanos: i64| anyhow::Ok(of(nanos)?.to_zoned(TimeZone::UTC).year());
        let mut found = Vec::new();
        for year in (year(range.start)?..=year(range.end)?).rev() {
            let whole = span(year, 1, year + 1, 1)?.intersect(range);
            if !self.has(&whole)? {
                continue;
            }
            for month in (1..=12i8).rev() {
                let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
                let part = span(year, month, next_year, next)?.intersect(range);
                if !part.is_empty() && self.has(&part)? {
                    found.push(part);
                }
            }
        }
        Ok(found)
    }
}

/// The part of a time in the first day of 1970.
fn first_day(range: &TimeRange) -> Window {
    let range = TimeRange::new(0, FIRST - 1).intersect(range);
    Window { name: "1970-01-01".to_string(), range, samples: None }
}

/// From the beginning of a month to just before the beginning of another one.
fn span(year: i16, month: i8, end_year: i16, end_month: i8) -> anyhow::Result<TimeRange> {
    let nanos = |year, month| -> anyhow::Result<i64> {
        let start = date(year, month, 1).to_zoned(TimeZone::UTC)?.timestamp().as_nanosecond();
        Ok(i64::try_from(start).unwrap_or(i64::MAX))
    };
    Ok(TimeRange::new(nanos(year, month)?, nanos(end_year, end_month)? - 1))
}

impl Source for VictoriaMetrics {
    fn windows(&mut self) -> anyhow::Result<Vec<Window>> {
        let mut range = self.range;
        range.start = range.start.max(FIRST);
        let months = if range.is_empty() { Vec::new() } else { self.months(&range)? };
        let mut found = Vec::new();
        for window in months.iter().flat_map(days::windows) {
            if self.has(&window.range)? {
                found.push(window);
            }
        }
        let first = first_day(&self.range);
        if !first.range.is_empty() && retried(|| self.gives_any(&first))? {
            found.push(first);
        }
        Ok(found)
    }

    fn later(&self, from: Timestamp) -> Vec<Window> {
        vec![Window::later(from)]
    }

    fn count(&mut self, window: &Window) -> anyhow::Result<Option<Total>> {
        totals::by_query(&mut self.client, window)
    }

    fn read(&mut self, window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let (first, last) = window.range.whole_millis();
        // Not with reduce_mem_usage: version 1.79 then mixes values of different series up, at times.
        let mut path = format!(
            "{EXPORT_PATH}?deny_partial_response=1&max_rows_per_line={ROWS_PER_LINE}&start={}&end={}",
            seconds(first),
            // It cuts what it reads to a millisecond before, at times; what is too much is left out here.
            seconds(last + 1)
        );
        match self.filter.selectors.as_slice() {
            [] => ALL.iter().for_each(|one| path.push_str(&format!("&match[]={}", encode(one)))),
            all => all.iter().for_each(|one| path.push_str(&format!("&match[]={}", encode(one)))),
        }
        let mut lines = Lines::default();
        let mut hand_on = |text: &[u8]| give(text, window, sink);
        let reply = self
            .client
            .send(Method::GET, &path, Bytes::new(), &mut |bytes| lines.push(bytes, &mut hand_on))?;
        let empty = reply.check_empty(EXPORT_PATH, LINES_TYPE);
        reply.check(EXPORT_PATH)?;
        empty?;
        lines.end(&mut hand_on)
    }
}

fn give(line: &[u8], window: &Window, sink: &mut Sink<'_>) -> anyhow::Result<()> {
    let (labels, samples) = wire::json_lines::read_line(line)?;
    let mut series = Series { labels, samples, histograms: Vec::new(), repeated: Vec::new() };
    // It has no samples that are no number: they mark where it had none.
    series.samples.retain(|one| !one.value.is_nan());
    series.tidy(&window.range);
    match series.is_empty() {
        true => Ok(()),
        false => sink(series.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Given;
    use model::sample::NANOS_PER_DAY;
    use model::sample::NANOS_PER_MILLI;

    #[test]
    fn the_first_day_of_1970_is_a_window_of_its_own() {
        assert_eq!(first_day(&TimeRange::ALL).range, TimeRange::new(0, FIRST - 1));
        assert_eq!(first_day(&TimeRange::new(5, 7)).range, TimeRange::new(5, 7));
        for later in [FIRST, 20_000 * NANOS_PER_DAY] {
            assert!(first_day(&TimeRange::new(later, i64::MAX)).range.is_empty());
        }
    }

    #[test]
    fn lines_become_series_of_the_window() {
        let range = TimeRange::new(2 * NANOS_PER_MILLI, 9 * NANOS_PER_MILLI);
        let window = Window { name: "w".into(), range, samples: None };
        let mut found = Vec::new();
        let line = br#"{"metric":{"__name__":"a","b":"c"},"values":[1,null,"Infinity",4],"timestamps":[1,2,3,4]}"#;
        give(line, &window, &mut |given| {
            found.push(given);
            Ok(())
        })
        .unwrap();
        let Given::Series(series) = &found[0] else { panic!("series, as its lines are") };
        let samples: Vec<_> = series.samples.iter().map(|one| (one.millis, one.value)).collect();
        assert_eq!(samples, [(3, f64::INFINITY), (4, 4.0)]);
        assert!(give(b"{\"metric\":", &window, &mut |_| Ok(())).is_err(), "cut short");
    }
}
