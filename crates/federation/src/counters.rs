//! What is counted of legacy backends.

use net::metrics_page::{Number, Page};
use net::telemetry::Families;
use std::sync::Arc;
use std::time::Duration;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Answered,
    /// It was not, or not as it should be.
    Failed,
    /// It would have been more than a limit allows.
    Limit,
    /// It was not sent: the backend did not answer lately, or has enough to do.
    Refused,
}

impl Outcome {
    const ALL: [(Outcome, &'static str); 4] = [
        (Outcome::Answered, "ok"),
        (Outcome::Failed, "failed"),
        (Outcome::Limit, "limit"),
        (Outcome::Refused, "refused"),
    ];
}

/// The counters of one backend.
#[derive(Default)]
pub struct Counters {
    outcomes: [Number; Outcome::ALL.len()],
    micros: Number,
    /// Samples that came.
    pub samples: Number,
    /// Bytes that came.
    pub bytes: Number,
    /// Aggregations that came instead of samples.
    pub aggregates: Number,
}

impl Counters {
    /// Counts a request.
    pub fn note(&self, outcome: Outcome, took: Duration) {
        self.outcomes[outcome as usize].add(1);
        self.micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
}

/// All backends by their URLs.
pub struct All(pub Vec<(String, Arc<Counters>)>);

impl Families for All {
    fn write(&self, page: &mut Page) {
        let help = "Requests to legacy backends, by what became of them.";
        page.family("quipu_legacy_requests_total", "counter", help);
        for (url, counters) in &self.0 {
            for ((_, word), number) in Outcome::ALL.iter().zip(&counters.outcomes) {
                let labels = [("backend", url.as_str()), ("outcome", word)];
                page.sample("", &labels, number.get() as f64);
            }
        }
        let help = "Time that requests to legacy backends took.";
        page.family("quipu_legacy_request_seconds_total", "counter", help);
        for (url, counters) in &self.0 {
            page.sample("", &[("backend", url)], counters.micros.get() as f64 / 1e6);
        }
        type Choose = fn(&Counters) -> &Number;
        let families: [(&str, &str, Choose); 3] = [
            ("quipu_legacy_samples_total", "Samples that legacy backends gave.", |c| &c.samples),
            ("quipu_legacy_bytes_total", "Bytes that legacy backends gave.", |c| &c.bytes),
            (
                "quipu_legacy_aggregates_total",
                "Aggregations that legacy backends made, so that no samples had to come.",
                |c| &c.aggregates,
            ),
        ];
        for (name, help, number) in families {
            page.family(name, "counter", help);
            for (url, counters) in &self.0 {
                page.sample("", &[("backend", url)], number(counters).get() as f64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::metrics_page::check_page;

    #[test]
    fn each_backend_has_its_own() {
        let counters = Arc::new(Counters::default());
        counters.note(Outcome::Failed, Duration::from_millis(1500));
        let mut page = Page::default();
        All(vec![("http://old:1".to_string(), counters)]).write(&mut page);
        check_page(&page.text);
        for line in [
            "quipu_legacy_requests_total{backend=\"http://old:1\",outcome=\"failed\"} 1\n",
            "quipu_legacy_requests_total{backend=\"http://old:1\",outcome=\"ok\"} 0\n",
            "quipu_legacy_request_seconds_total{backend=\"http://old:1\"} 1.5\n",
        ] {
            assert!(page.text.contains(line), "{}", page.text);
        }
    }
}
