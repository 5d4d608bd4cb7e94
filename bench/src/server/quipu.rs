//! Quipu, as a stranger starts it; only its own metrics are left out, so that every sample found
//! is one that was sent, and what a query may select and hold is raised and no answer is kept, as for all peers.

use super::{Peer, Processes, Ready, WriteDoor, nothing_to_prepare, nothing_to_set_up};
use crate::load::settle::Call;
use crate::payload::Protocol;
use crate::tsbs::queries::Language;

/// Quipu, asked in PromQL.
pub static QUIPU: Peer = SERVED;

/// Quipu as InfluxDB's clients see it.
pub static QUIPU_INFLUXQL: Peer = Peer {
    name: "Quipu, InfluxQL",
    doors: &[WriteDoor::new(Protocol::Influx, "/write?db=benchmark&precision=ns")],
    language: Some(Language::InfluxQl),
    ..SERVED
};

/// How it is started, whoever asks.
const SERVED: Peer = Peer {
    name: "Quipu",
    program: "quipu",
    program_places: &[],
    version_arguments: &["--version"],
    extension_version: None,
    account: None,
    prepare: nothing_to_prepare,
    serve_arguments: |place| {
        let data_dir = place.data_dir.display().to_string();
        let listen = format!("127.0.0.1:{}", place.port);
        ["serve", "--data-dir", &data_dir, "--http-listen", &listen].map(str::to_string).to_vec()
    },
    environment: |_| {
        let variables = [
            ("QUIPU_SELF_SCRAPE_INTERVAL", "0"),
            ("QUIPU_REDIS_LISTEN", ""),
            ("QUIPU_QUERY_MAX_SERIES", "100000000"),
            ("QUIPU_QUERY_MAX_SAMPLES", "2000000000"),
            ("QUIPU_QUERY_MAX_MEMORY", "8GiB"),
            ("QUIPU_QUERY_TIMEOUT", "10m"),
            // As for all peers: every query is evaluated.
            ("QUIPU_QUERY_CACHE_MEMORY", "0"),
        ];
        variables.map(|(name, value)| (name.to_string(), value.to_string())).to_vec()
    },
    ready: Ready::Http("/-/ready"),
    set_up: nothing_to_set_up,
    processes: Processes::One,
    stop_signal: "TERM",
    verify_arguments: Some(|data_dir| {
        let data_dir = data_dir.display().to_string();
        ["verify", "--data-dir", &data_dir].map(str::to_string).to_vec()
    }),
    flush: Some(Call::Http("/internal/force_flush")),
    merge: Some(Call::Http("/internal/force_merge")),
    value_error_max: 0.0,
    doors: &[
        WriteDoor::new(Protocol::Influx, "/write"),
        WriteDoor::new(Protocol::RemoteWrite, "/api/v1/write"),
        WriteDoor::new(Protocol::RemoteWriteV2, "/api/v1/write"),
        WriteDoor::new(Protocol::Exposition, "/api/v1/import/prometheus"),
    ],
    doors_missing: "",
    language: Some(Language::PromQl),
};
