//! What is counted of HTTP: answers by route and status, and how exchanges end.

use super::router::Route;
use net::metrics_page::{Number, Page};
use net::telemetry::Families;
use std::time::Duration;

/// Status codes that have a counter of their own, per route.
const CODES: [u16; 15] = [200, 204, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503, 0];

/// Upper bounds of the latency buckets, seconds.
const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

#[derive(Default)]
struct RouteCounters {
    codes: [Number; CODES.len()],
    buckets: [Number; BUCKETS.len() + 1],
    nanos: Number,
}

/// The counters of a table of routes.
pub struct HttpCounters {
    table: &'static [Route],
    /// One per row of `table`, and a last one for unknown paths.
    routes: Vec<RouteCounters>,
    /// Requests with wrong or missing credentials.
    pub unauthorized: Number,
    /// Requests that ended in a panic.
    pub panics: Number,
    /// Clients that went away before their answer was complete.
    pub clients_gone: Number,
}

impl HttpCounters {
    /// Counters for those routes.
    pub fn new(table: &'static [Route]) -> HttpCounters {
        HttpCounters {
            table,
            routes: (0..=table.len()).map(|_| RouteCounters::default()).collect(),
            unauthorized: Number::default(),
            panics: Number::default(),
            clients_gone: Number::default(),
        }
    }

    /// Counts an answered request; `route` is its index in the table, or the table's length if unknown.
    pub fn answered(&self, route: usize, status: u16, took: Duration) {
        let Some(counters) = self.routes.get(route) else { return };
        let code = CODES.iter().position(|code| *code == status).unwrap_or(CODES.len() - 1);
        counters.codes[code].add(1);
        let bucket = BUCKETS.iter().position(|bound| took.as_secs_f64() <= *bound);
        counters.buckets[bucket.unwrap_or(BUCKETS.len())].add(1);
        counters.nanos.add(took.as_nanos() as u64);
    }
}

impl Families for HttpCounters {
    fn write(&self, page: &mut Page) {
        let paths: Vec<(&str, &RouteCounters)> = self
            .table
            .iter()
            .map(|route| route.pattern)
            .chain(["unknown"])
            .zip(&self.routes)
            .filter(|(_, counters)| counters.codes.iter().any(|number| number.get() != 0))
            .collect();
        page.family("quipu_http_requests_total", "counter", "Requests answered.");
        for (path, counters) in &paths {
            for (code, number) in CODES.iter().zip(&counters.codes).filter(|(_, n)| n.get() != 0) {
                let code = if *code == 0 { "other".to_string() } else { code.to_string() };
                page.sample("", &[("path", path), ("code", &code)], number.get() as f64);
            }
        }
        let help = "Time from a request's head to the start of its answer.";
        page.family("quipu_http_request_duration_seconds", "histogram", help);
        for (path, counters) in &paths {
            write_histogram(page, path, counters);
        }
        let help = "Requests with wrong or missing credentials.";
        page.single("quipu_http_unauthorized_total", "counter", help, &self.unauthorized);
        let help = "Requests that ended in a panic, answered with 500.";
        page.single("quipu_http_panics_total", "counter", help, &self.panics);
        let help = "Clients that went away before their answer was complete.";
        page.single("quipu_http_clients_gone_total", "counter", help, &self.clients_gone);
    }
}

fn write_histogram(page: &mut Page, path: &str, counters: &RouteCounters) {
    let mut count = 0;
    for (bucket, number) in counters.buckets.iter().enumerate() {
        count += number.get();
        let bound = BUCKETS.get(bucket).map_or("+Inf".to_string(), f64::to_string);
        page.sample("_bucket", &[("path", path), ("le", &bound)], count as f64);
    }
    page.sample("_sum", &[("path", path)], counters.nanos.get() as f64 / 1e9);
    page.sample("_count", &[("path", path)], count as f64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn every_sample_stands_under_its_family() {
        let counters = HttpCounters::new(ROUTES);
        counters.answered(0, 200, Duration::from_millis(3));
        counters.answered(ROUTES.len(), 404, Duration::from_secs(100));
        let mut page = Page::default();
        counters.write(&mut page);
        net::metrics_page::check_page(&page.text);
        let text = page.text;
        assert!(text.contains("quipu_http_requests_total{path=\"unknown\",code=\"404\"} 1\n"));
        assert!(text.contains("le=\"+Inf\"} 1\n"), "{text}");
    }
}
