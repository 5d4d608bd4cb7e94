//! VictoriaMetrics, single node. Its limits on series in an answer are raised, else it refuses
//! or cuts what the benchmarks ask for; its cache of answers is off, else repeated queries
//! measure the cache.

use super::{
    Peer, Processes, Ready, WriteDoor, no_environment, nothing_to_prepare, nothing_to_set_up,
};
use crate::load::settle::Call;
use crate::payload::Protocol;
use crate::tsbs::queries::Language;

/// VictoriaMetrics.
pub static VICTORIA_METRICS: Peer = Peer {
    name: "VictoriaMetrics",
    program: "victoria-metrics",
    program_places: &[],
    version_arguments: &["-version"],
    extension_version: None,
    account: None,
    prepare: nothing_to_prepare,
    serve_arguments: |place| {
        vec![
            format!("-storageDataPath={}", place.data_dir.display()),
            format!("-httpListenAddr=127.0.0.1:{}", place.port),
            "-retentionPeriod=100y".to_string(),
            "-search.maxUniqueTimeseries=100000000".to_string(),
            "-search.maxSeries=100000000".to_string(),
            "-search.maxTagKeys=100000000".to_string(),
            "-search.maxTagValues=100000000".to_string(),
            "-search.maxTagValueSuffixesPerSearch=100000000".to_string(),
            "-search.disableCache".to_string(),
        ]
    },
    environment: no_environment,
    ready: Ready::Http("/health"),
    set_up: nothing_to_set_up,
    processes: Processes::One,
    stop_signal: "TERM",
    verify_arguments: None,
    flush: Some(Call::Http("/internal/force_flush")),
    merge: Some(Call::Http("/internal/force_merge")),
    value_error_max: 1e-11,
    doors: &[
        WriteDoor::new(Protocol::Influx, "/write"),
        WriteDoor::new(Protocol::RemoteWrite, "/api/v1/write"),
        WriteDoor::new(Protocol::Exposition, "/api/v1/import/prometheus"),
    ],
    doors_missing: "",
    language: Some(Language::PromQl),
};
