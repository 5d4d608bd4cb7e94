//! The six operations of the index queries: what each asks, and what a right answer holds.

use crate::http::HttpClient;
use crate::instant::SECOND_NS;
use crate::shapes::unique_names::{SHARED_LABEL, SHARED_VALUE};
use crate::tsbs::queries::percent_encode;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// An answer may take so long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Every sample of every series.
    Data,
    /// All series with their labels.
    MetricNames,
    /// The names of all labels.
    LabelNames,
    /// All values of a label that every series has: the metric's name.
    LabelValues,
    /// What follows `metric_name_`: Graphite's way to walk a tree of names.
    TagValueSuffixes,
    /// All metric names that match a Graphite pattern.
    GraphitePaths,
}

impl Operation {
    pub const ALL: [Operation; 6] = [
        Operation::Data,
        Operation::MetricNames,
        Operation::LabelNames,
        Operation::LabelValues,
        Operation::TagValueSuffixes,
        Operation::GraphitePaths,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Operation::Data => "data",
            Operation::MetricNames => "metric names",
            Operation::LabelNames => "label names",
            Operation::LabelValues => "label values",
            Operation::TagValueSuffixes => "tag value suffixes",
            Operation::GraphitePaths => "Graphite paths",
        }
    }

    /// Path and parameters of the question about a range of time.
    pub fn path(self, start_ns: i64, end_ns: i64) -> String {
        let (start, end) = (start_ns / SECOND_NS, end_ns / SECOND_NS);
        let range = format!("start={start}&end={end}");
        // Only the series that stay: deleted ones are gone for every operation.
        let filter =
            percent_encode(&format!("{{__name__=~\".+\",{SHARED_LABEL}=\"{SHARED_VALUE}\"}}"));
        match self {
            Operation::Data => {
                let query = format!("{{__name__=~\".+\"}}[{}s]", end - start + 1);
                format!("/api/v1/query?time={end}&query={}", percent_encode(&query))
            }
            Operation::MetricNames => format!("/api/v1/series?{range}&match[]={filter}"),
            Operation::LabelNames => format!("/api/v1/labels?{range}&match[]={filter}"),
            Operation::LabelValues => {
                format!("/api/v1/label/__name__/values?{range}&match[]={filter}")
            }
            Operation::TagValueSuffixes => {
                let query = percent_encode("metric_name_*");
                format!("/metrics/find?from={start}&until={end}&delimiter=_&query={query}")
            }
            Operation::GraphitePaths => {
                let query = percent_encode("metric_name_*");
                format!("/metrics/expand?from={start}&until={end}&delimiter=_&query={query}")
            }
        }
    }

    /// How many things the answer must hold for so many series.
    fn expected(self, series: u64) -> u64 {
        match self {
            // Its own, `__name__` and the shared one.
            Operation::LabelNames => series + 2,
            _ => series,
        }
    }

    /// Asks, and checks that the answer is whole.
    ///
    /// # Errors
    /// When the server refuses, or answers with more or less than there is.
    pub fn check(self, client: &mut HttpClient, path: &str, series: u64) -> Result<()> {
        let answer = client.get(path)?;
        ensure!(answer.status == 200, "status {}: {}", answer.status, answer.excerpt());
        let json: Value = serde_json::from_slice(&answer.body)?;
        let list = match self {
            Operation::Data => &json["data"]["result"],
            Operation::TagValueSuffixes | Operation::GraphitePaths
                if json["results"].is_array() =>
            {
                &json["results"]
            }
            Operation::TagValueSuffixes | Operation::GraphitePaths => &json,
            _ => &json["data"],
        };
        let found = list.as_array().context("the answer holds no list")?.len() as u64;
        let expected = self.expected(series);
        ensure!(found == expected, "{found} found, not {expected}");
        Ok(())
    }
}

/// A client that waits long enough.
pub fn client(authority: &str) -> HttpClient {
    HttpClient::new(authority, ANSWER_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_ask_for_whole_seconds() {
        let path = Operation::LabelValues.path(2 * SECOND_NS, 5 * SECOND_NS);
        assert!(
            path.starts_with("/api/v1/label/__name__/values?start=2&end=5&match[]=%7B"),
            "{path}"
        );
        let path = Operation::Data.path(2 * SECOND_NS, 5 * SECOND_NS);
        assert!(path.contains("time=5") && path.ends_with("%5B4s%5D"), "{path}");
    }
}
