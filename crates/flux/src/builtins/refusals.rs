//! Packages and functions of Flux that Quipu refuses on purpose, and the reason that clients read.

use super::{Builtin, Call, function};
use crate::error::{Error, Result};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("", "to", refuse_write),
    function("", "wideTo", refuse_write),
    function("experimental", "to", refuse_write),
    function("experimental/prometheus", "scrape", refuse_scrape),
    function("", "die", die),
];

const CONNECTS: &str = "queries open no connections to other servers. Fetch the data with a client \
                        and write it to /api/v2/write";
const NOTIFIES: &str = "queries send no notifications. Alert with Grafana, or with vmalert on the \
                        PromQL API";
const CHECKS: &str = "checks and tasks are not run. Alert with Grafana, or with vmalert on the \
                      PromQL API";
const SECRETS: &str = "there is no store of secrets. Pass the value as a parameter of the query";
const CLOUD: &str = "it reads the accounting of InfluxDB Cloud. GET /metrics has the server's own \
                     metrics";

/// Paths, or prefixes that end in a slash, and the reason.
const PACKAGES: &[(&str, &str)] = &[
    ("http", CONNECTS),
    ("http/requests", CONNECTS),
    ("experimental/http", CONNECTS),
    ("experimental/http/requests", CONNECTS),
    ("experimental/bigtable", CONNECTS),
    ("experimental/iox", CONNECTS),
    ("experimental/mqtt", CONNECTS),
    ("contrib/bonitoo-io/hex", CONNECTS),
    ("kafka", CONNECTS),
    ("socket", CONNECTS),
    ("sql", CONNECTS),
    ("pagerduty", NOTIFIES),
    ("pushbullet", NOTIFIES),
    ("slack", NOTIFIES),
    ("contrib/bonitoo-io/", NOTIFIES),
    ("contrib/chobbs/discord", NOTIFIES),
    ("contrib/RohanSreerama5/", NOTIFIES),
    ("contrib/rhajek/bigpanda", NOTIFIES),
    ("contrib/sranka/", NOTIFIES),
    ("influxdata/influxdb/monitor", CHECKS),
    ("influxdata/influxdb/tasks", CHECKS),
    ("influxdata/influxdb/secrets", SECRETS),
    ("experimental/usage", CLOUD),
];

/// Reason for which a package is refused.
pub(super) fn reason_of(path: &str) -> Option<&'static str> {
    let is_it = |name: &str| match name.ends_with('/') {
        true => path.starts_with(name),
        false => path == name,
    };
    PACKAGES.iter().find(|(name, _)| is_it(name)).map(|(_, reason)| *reason)
}

fn refuse_write(call: Call<'_>) -> Result<Value> {
    let message = format!(
        "{}() is refused: a Flux query writes nothing here. Write its result with POST \
         /api/v2/write, or use SELECT .. INTO of InfluxQL",
        call.name
    );
    Err(Error::name(message))
}

fn refuse_scrape(_: Call<'_>) -> Result<Value> {
    Err(Error::name(format!("prometheus.scrape is refused: {CONNECTS}")))
}

/// `die(msg:)` ends the query with a message of its author.
fn die(call: Call<'_>) -> Result<Value> {
    let message = call.required_text("msg")?;
    call.done()?;
    Err(Error::runtime(&*message))
}
