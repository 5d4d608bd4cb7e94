//! Graphite's index: which paths and tags there are, for its clients' metric browsers.
//!
//! ```text
//! query ─► model::PathPattern ─► store.label_values (the names of its subtree, of these days)
//!                                   └► paths: cut behind the pattern's last part ─► JSON
//! ```
//!
//! A metric's name is a path; with `label=x` the values of another label are. A path that ends
//! with the delimiter is an inner node, any other a leaf. Answers have the shape that
//! VictoriaMetrics gives them; failures have the shape of the other doors.

mod answers;
mod metrics;
mod moment;
mod paths;
mod tags;

pub use metrics::{expand, find, index};
pub use tags::{complete_tags, complete_values, find_series, tags, values};

use crate::http::request::Request;
use crate::http::request::selection;
use net::failure::Failure;
use net::telemetry::Limit;

/// Paths, names or values in one answer.
const ENTRIES_MAX: usize = 1_000_000;

/// Whether a parameter such as `wildcards=1` asks for something.
fn asks(request: &Request, name: &str) -> bool {
    let value = request.params.filled(name).unwrap_or("0").to_ascii_lowercase();
    !matches!(value.as_str(), "0" | "f" | "false" | "no")
}

/// Scripts for other sites are not made here.
fn refuse_jsonp(request: &Request) -> Result<(), Failure> {
    match request.params.filled("jsonp") {
        None => Ok(()),
        Some(_) => Err(selection::invalid("jsonp", &"not supported; leave it out to get JSON")),
    }
}

fn check_entries(count: usize) -> Result<(), Failure> {
    if ENTRIES_MAX < count {
        let message = format!("{count} entries in one answer, the limit is {ENTRIES_MAX}");
        let failure = Failure::limited(Limit::Other, message);
        return Err(failure.advised("ask with a longer prefix or a shorter time"));
    }
    Ok(())
}
