//! Prometheus as a receiver of remote write. It scrapes nothing, takes samples of any age (its
//! window for those out of order is six years, which the backfill needs), and its bounds on
//! queries are raised. It can be asked neither for a flush nor for a merge.

use super::{
    Installed, Peer, Place, Processes, Ready, WriteDoor, no_environment, nothing_to_set_up,
};
use crate::payload::Protocol;
use crate::tsbs::queries::Language;
use anyhow::{Context, Result};

const CONFIGURATION: &str = "storage:\n  tsdb:\n    out_of_order_time_window: 6y\n";
const CONFIGURATION_FILE: &str = "prometheus.yml";

/// Prometheus.
pub static PROMETHEUS: Peer = Peer {
    name: "Prometheus",
    program: "prometheus",
    program_places: &[],
    version_arguments: &["--version"],
    extension_version: None,
    account: None,
    prepare: write_configuration,
    serve_arguments: |place| {
        vec![
            format!("--config.file={}", place.below(CONFIGURATION_FILE)),
            format!("--storage.tsdb.path={}", place.below("tsdb")),
            format!("--web.listen-address=127.0.0.1:{}", place.port),
            "--web.enable-remote-write-receiver".to_string(),
            "--web.enable-admin-api".to_string(),
            "--storage.tsdb.retention.time=100y".to_string(),
            "--query.max-samples=2000000000".to_string(),
            "--query.timeout=10m".to_string(),
            "--log.level=warn".to_string(),
        ]
    },
    environment: no_environment,
    ready: Ready::Http("/-/ready"),
    set_up: nothing_to_set_up,
    processes: Processes::One,
    stop_signal: "TERM",
    verify_arguments: None,
    flush: None,
    merge: None,
    value_error_max: 0.0,
    doors: &[
        WriteDoor::new(Protocol::RemoteWrite, "/api/v1/write"),
        WriteDoor {
            protocol: Protocol::RemoteWriteV2,
            path: "/api/v1/write",
            major_version_min: 3,
        },
    ],
    doors_missing: "",
    language: Some(Language::PromQl),
};

fn write_configuration(_: &Installed, place: &Place) -> Result<()> {
    let path = place.data_dir.join(CONFIGURATION_FILE);
    std::fs::write(&path, CONFIGURATION).with_context(|| format!("cannot write {}", path.display()))
}
