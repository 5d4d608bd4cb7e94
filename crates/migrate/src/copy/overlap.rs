//! What Quipu had before a copy began, day by day, and what came to the same days: somebody may want to know
//! where the samples of two are mixed.

use super::progress::{Days, Progress};
use crate::series::Filter;
use crate::source::{Given, Window};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use cli::calendar::rfc3339;
use cli::quantity::format_count;
use http_client::client::{Asked, Client, encode};
use hyper::Method;
use model::sample::{NANOS_PER_DAY, NANOS_PER_MILLI, NANOS_PER_SECOND};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the count may take: it is no reason not to copy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of an answer.
const ANSWER_SIZE_MAX: usize = 16 << 20;
/// Days that are counted: an answer of a range has no more steps.
const DAYS_MAX: i64 = 10_000;
/// Days that are told of.
const DAYS_SHOWN: usize = 31;
/// All series but those of the server itself.
const EVERYTHING: &str = "{__name__!=\"\",job!=\"quipu\"}";

/// What a server has on the days of some windows.
///
/// # Errors
/// When it does not say so in time.
pub fn count(client: &mut Client, filter: &Filter, windows: &[Window]) -> anyhow::Result<Days> {
    let deadline = Instant::now() + PATIENCE;
    let about = ask(client, deadline, "/api/v1/status/runtimeinfo")?;
    let Some(oldest_ms) = about["data"]["minTimeMs"].as_i64() else { return Ok(Days::new()) };
    let start = windows.iter().map(|one| one.range.start).min().unwrap_or_default();
    let end = windows.iter().map(|one| one.range.end).max().unwrap_or_default();
    let first = start.max(oldest_ms.saturating_mul(NANOS_PER_MILLI)).div_euclid(NANOS_PER_DAY);
    let last = end.div_euclid(NANOS_PER_DAY);
    let mut days = Days::new();
    if last < first {
        return Ok(days);
    }
    ensure!(last - first < DAYS_MAX, "{} days are too many to count", last - first + 1);
    let selectors = match filter.selectors.as_slice() {
        // With other labels the selectors mean something else here.
        all if !all.is_empty() && !filter.changes_labels() => all.to_vec(),
        _ => vec![EVERYTHING.to_string()],
    };
    for selector in selectors {
        // MetricsQL counts series of different names that are alike but for those.
        let query = encode(&format!("sum(count_over_time({selector}[1d]))"));
        // A day ends before its midnight.
        let at = |day: i64| (day + 1) * (NANOS_PER_DAY / NANOS_PER_SECOND) - 1;
        let path = format!(
            "/api/v1/query_range?nolegacy=1&dialect=metricsql&query={query}&start={}.999&end={}.999&step=86400",
            at(first),
            at(last)
        );
        let answer = ask(client, deadline, &path)?;
        for point in answer["data"]["result"][0]["values"].as_array().into_iter().flatten() {
            let seconds = point[0].as_f64().context("a point without a time")?;
            let count = point[1].as_str().and_then(|text| text.parse::<f64>().ok());
            let nanos = (seconds as i64).saturating_mul(NANOS_PER_SECOND);
            *days.entry(date(nanos)).or_default() += count.unwrap_or_default() as u64;
        }
    }
    days.retain(|_, count| 0 < *count);
    Ok(days)
}

/// Asks the target, up to a deadline.
pub(crate) fn ask(
    client: &mut Client,
    deadline: Instant,
    path: &str,
) -> anyhow::Result<serde_json::Value> {
    let asked = Asked { method: Method::GET, path, headers: &[], body: Bytes::new() };
    let mut text = Vec::new();
    let reply = client.ask_until(deadline, &asked, &mut |bytes| {
        ensure!(text.len() + bytes.len() <= ANSWER_SIZE_MAX, "more than {ANSWER_SIZE_MAX} bytes");
        text.extend_from_slice(bytes);
        Ok(())
    })?;
    match reply.status.is_success() {
        true => serde_json::from_slice(&text).context("an answer that is no JSON"),
        false => bail!("{}: {}", reply.status, reply.error),
    }
}

/// The date of a time.
fn date(nanos: i64) -> String {
    let text = rfc3339(nanos);
    text.split('T').next().unwrap_or(&text).to_string()
}

/// Counts what comes to days that had samples before.
#[derive(Default)]
pub struct Counter {
    /// What came, by days since 1970.
    days: BTreeMap<i64, u64>,
    /// The day of the last sample, and how many it had.
    last: (i64, u64),
}

impl Counter {
    /// Takes what comes.
    pub fn take(&mut self, given: &Given) {
        given.each_time(&mut |nanos, count| {
            let day = nanos.div_euclid(NANOS_PER_DAY);
            if day != self.last.0 {
                self.put();
                self.last.0 = day;
            }
            self.last.1 += count;
        });
    }

    fn put(&mut self) {
        let (day, count) = std::mem::take(&mut self.last);
        if 0 < count {
            *self.days.entry(day).or_default() += count;
        }
    }

    /// Adds it to what came before.
    pub fn finish(mut self, progress: &mut Progress) {
        self.put();
        for (day, count) in self.days {
            let date = date(day.saturating_mul(NANOS_PER_DAY));
            if progress.had.contains_key(&date) {
                *progress.came.entry(date).or_default() += count;
            }
        }
    }
}

/// Says on which days both had samples.
pub fn say(progress: &Progress) {
    let both: Vec<(&String, &u64, &u64)> = progress
        .came
        .iter()
        .filter_map(|(day, came)| Some((day, came, progress.had.get(day)?)))
        .collect();
    if both.is_empty() {
        return;
    }
    cli::print_line!("days of which both had samples:");
    for (day, came, had) in both.iter().take(DAYS_SHOWN) {
        cli::print_line!("{day}: {} came, {} were here", format_count(**came), format_count(**had));
    }
    if DAYS_SHOWN < both.len() {
        cli::print_line!("and {} more", both.len() - DAYS_SHOWN);
    }
}

/// Says on which days of windows there are samples already.
pub fn tell(days: &Days, windows: &[Window]) {
    let is_touched = |day: &str| {
        let overlaps = |one: &Window| {
            date(one.range.start).as_str() <= day && day <= date(one.range.end).as_str()
        };
        windows.iter().any(overlaps)
    };
    let touched: Vec<(&String, &u64)> = days.iter().filter(|(day, _)| is_touched(day)).collect();
    if touched.is_empty() {
        return;
    }
    cli::print_line!("days of these windows that have samples here:");
    for (day, count) in touched.iter().take(DAYS_SHOWN) {
        cli::print_line!("{day}: {} are here", format_count(**count));
    }
    if DAYS_SHOWN < touched.len() {
        cli::print_line!("and {} more", touched.len() - DAYS_SHOWN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Series;
    use model::Labels;
    use wire::remote_write::encode::MillisSample;

    #[test]
    fn only_days_that_had_samples_are_counted() {
        let day = NANOS_PER_DAY / NANOS_PER_MILLI;
        let sample = |millis| MillisSample { millis, value: 1.0 };
        let samples = [0, 1, day - 1, day, 2 * day, 0].map(sample).to_vec();
        let series = Series {
            labels: Labels::default(),
            samples,
            histograms: Vec::new(),
            repeated: Vec::new(),
        };
        let mut counter = Counter::default();
        counter.take(&series.into());
        let mut progress = Progress::default();
        progress.had.insert("1970-01-01".to_string(), 7);
        progress.had.insert("1970-01-03".to_string(), 7);
        progress.came.insert("1970-01-01".to_string(), 1);
        counter.finish(&mut progress);
        let came: Vec<(&str, u64)> =
            progress.came.iter().map(|(day, count)| (day.as_str(), *count)).collect();
        assert_eq!(came, [("1970-01-01", 5), ("1970-01-03", 1)]);
    }
}
