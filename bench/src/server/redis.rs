//! Redis with its append-only file, synced every second. It is started, watched and stopped; it
//! takes none of the protocols that the ingestion cases send.

use super::{Peer, Processes, Ready, no_environment, nothing_to_prepare, nothing_to_set_up};

/// Redis.
pub static REDIS: Peer = Peer {
    name: "Redis",
    program: "redis-server",
    program_places: &[],
    version_arguments: &["--version"],
    extension_version: None,
    account: None,
    prepare: nothing_to_prepare,
    serve_arguments: |place| {
        let (dir, port) = (place.data_dir.display().to_string(), place.port.to_string());
        [
            ["--dir", &dir],
            ["--port", &port],
            ["--bind", "127.0.0.1"],
            ["--save", ""],
            ["--appendonly", "yes"],
            ["--appendfsync", "everysec"],
        ]
        .concat()
        .into_iter()
        .map(str::to_string)
        .collect()
    },
    environment: no_environment,
    ready: Ready::RedisPing,
    set_up: nothing_to_set_up,
    processes: Processes::One,
    stop_signal: "TERM",
    verify_arguments: None,
    flush: None,
    merge: None,
    value_error_max: 0.0,
    doors: &[],
    doors_missing: "speaks none of the ingestion protocols; its own cases send it commands",
    language: None,
};
