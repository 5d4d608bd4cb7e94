//! InfluxDB 1.x with its default index in memory, as the benchmarks of record ran it. Bounds on
//! series, tag values and its cache are lifted, because reaching one would end the load; what it
//! stores about itself is off, so that every sample found is one that was sent.

use super::{Peer, Place, Processes, Ready, WriteDoor, nothing_to_prepare};
use crate::http::HttpClient;
use crate::payload::Protocol;
use crate::tsbs::queries::{Language, percent_encode};
use anyhow::{Result, ensure};
use std::time::Duration;

/// Making a database may take so long.
const SET_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// InfluxDB.
pub static INFLUXDB: Peer = Peer {
    name: "InfluxDB",
    program: "influxd",
    program_places: &[],
    version_arguments: &["version"],
    extension_version: None,
    account: None,
    prepare: nothing_to_prepare,
    // Without this it would read the file of a service that its package installs.
    serve_arguments: |_| ["run", "-config", "/dev/null"].map(str::to_string).to_vec(),
    environment,
    ready: Ready::Http("/ping"),
    set_up: create_database,
    processes: Processes::One,
    stop_signal: "TERM",
    verify_arguments: None,
    flush: None,
    merge: None,
    value_error_max: 0.0,
    doors: &[WriteDoor::new(Protocol::Influx, "/write?db=benchmark&precision=ns")],
    doors_missing: "",
    language: Some(Language::InfluxQl),
};

fn environment(place: &Place) -> Vec<(String, String)> {
    let fixed = [
        ("REPORTING_DISABLED", "true"),
        ("DATA_INDEX_VERSION", "inmem"),
        ("DATA_MAX_SERIES_PER_DATABASE", "0"),
        ("DATA_MAX_VALUES_PER_TAG", "0"),
        ("DATA_CACHE_MAX_MEMORY_SIZE", "0"),
        ("DATA_QUERY_LOG_ENABLED", "false"),
        ("HTTP_LOG_ENABLED", "false"),
        ("HTTP_MAX_BODY_SIZE", "0"),
        ("MONITOR_STORE_ENABLED", "false"),
        ("LOGGING_LEVEL", "warn"),
    ]
    .map(|(name, value)| (name, value.to_string()));
    let placed = [
        ("BIND_ADDRESS", format!("127.0.0.1:{}", place.spare_port)),
        ("HTTP_BIND_ADDRESS", format!("127.0.0.1:{}", place.port)),
        ("META_DIR", place.below("meta")),
        ("DATA_DIR", place.below("data")),
        ("DATA_WAL_DIR", place.below("wal")),
    ];
    let named = |(name, value)| (format!("INFLUXDB_{name}"), value);
    placed.into_iter().chain(fixed).map(named).collect()
}

fn create_database(authority: &str) -> Result<()> {
    let mut client = HttpClient::new(authority, SET_UP_TIMEOUT);
    let path = format!("/query?q={}", percent_encode("CREATE DATABASE benchmark"));
    let answer = client.post(&path, "", b"")?;
    let is_done = answer.status == 200 && !answer.excerpt().contains("\"error\"");
    ensure!(is_done, "cannot create a database: status {}: {}", answer.status, answer.excerpt());
    Ok(())
}
