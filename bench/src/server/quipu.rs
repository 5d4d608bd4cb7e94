//! Quipu, as a stranger starts it; only its own metrics are left out, so that every sample found
//! is one that was sent.

use super::Peer;
use crate::payload::Protocol;

/// Quipu.
pub static QUIPU: Peer = Peer {
    name: "Quipu",
    serve_arguments: |data_dir, port| {
        let data_dir = data_dir.display().to_string();
        let listen = format!("127.0.0.1:{port}");
        ["serve", "--data-dir", &data_dir, "--http-listen", &listen].map(str::to_string).to_vec()
    },
    environment: &[("QUIPU_SELF_SCRAPE_INTERVAL", "0")],
    version_arguments: &["--version"],
    verify_arguments: Some(|data_dir| {
        let data_dir = data_dir.display().to_string();
        ["verify", "--data-dir", &data_dir].map(str::to_string).to_vec()
    }),
    ready_path: "/-/ready",
    flush_path: "/internal/force_flush",
    merge_path: "/internal/force_merge",
    value_error_max: 0.0,
    protocols: &[Protocol::Influx, Protocol::RemoteWrite, Protocol::RemoteWriteV2],
};
