//! VictoriaMetrics, single node. Its limit on series in a query is raised, else it refuses what
//! the benchmarks ask; its cache of answers is off, else repeated queries measure the cache.

use super::Peer;
use crate::payload::Protocol;

/// VictoriaMetrics.
pub static VICTORIA_METRICS: Peer = Peer {
    name: "VictoriaMetrics",
    serve_arguments: |data_dir, port| {
        vec![
            format!("-storageDataPath={}", data_dir.display()),
            format!("-httpListenAddr=127.0.0.1:{port}"),
            "-retentionPeriod=100y".to_string(),
            "-search.maxUniqueTimeseries=100000000".to_string(),
            "-search.disableCache".to_string(),
        ]
    },
    environment: &[],
    version_arguments: &["-version"],
    verify_arguments: None,
    ready_path: "/health",
    flush_path: "/internal/force_flush",
    merge_path: "/internal/force_merge",
    value_error_max: 1e-11,
    protocols: &[Protocol::Influx, Protocol::RemoteWrite],
};
