//! PostgreSQL, and the same with TimescaleDB: a cluster of its own in the data directory, trusted
//! on loopback, tuned as a careful user would for a machine that does nothing else.
//!
//! ```text
//! tags: id | hostname | region | .. ten tags          one row a host
//! cpu:  time | tags_id | usage_user | .. ten fields   one row a host and instant
//! indexes: cpu (tags_id, time desc), cpu (time desc), tags (hostname)
//! ```
//!
//! That is how the suite's own loader lays the data out. It listens on no socket of the file
//! system: those have short paths, and temporary directories may have long ones.

use super::account::{self, Account};
use super::{Installed, Peer, Place, Processes, Ready, WriteDoor, no_environment};
use crate::load::settle::Call;
use crate::observe::machine;
use crate::payload::Protocol;
use crate::sql::SqlClient;
use crate::tsbs::FIELDS;
use crate::tsbs::fleet::TAG_NAMES;
use crate::tsbs::queries::Language;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Making a table may take so long.
const SET_UP_TIMEOUT: Duration = Duration::from_secs(60);
/// Shared buffers are an eighth of the memory, and at most that.
const SHARED_BUFFERS_MIB_MAX: u64 = 2048;
/// Where packages put the server, the newest version first.
const PLACES: [&str; 4] = [
    "/usr/lib/postgresql/18/bin/postgres",
    "/usr/lib/postgresql/17/bin/postgres",
    "/usr/lib/postgresql/16/bin/postgres",
    "/usr/lib/postgresql/15/bin/postgres",
];

/// PostgreSQL with plain tables.
pub static POSTGRESQL: Peer = PLAIN;

const PLAIN: Peer = Peer {
    name: "PostgreSQL",
    program: "postgres",
    program_places: &PLACES,
    version_arguments: &["--version"],
    extension_version: None,
    account: Some("postgres"),
    prepare: make_cluster,
    serve_arguments,
    environment: no_environment,
    ready: Ready::Sql,
    set_up: |authority| SqlClient::new(authority, SET_UP_TIMEOUT).execute(&create_tables()),
    processes: Processes::Tree,
    // The fast stop; SIGTERM would wait for every client to leave.
    stop_signal: "INT",
    verify_arguments: None,
    flush: Some(Call::Sql("CHECKPOINT")),
    merge: None,
    value_error_max: 0.0,
    doors: &[WriteDoor::new(Protocol::Copy, "")],
    doors_missing: "",
    language: Some(Language::Sql {
        minute: "date_trunc('minute', time)",
        hour: "date_trunc('hour', time)",
    }),
};

/// PostgreSQL with TimescaleDB's hypertables.
pub static TIMESCALEDB: Peer = Peer {
    name: "TimescaleDB",
    extension_version: Some(timescaledb_version),
    serve_arguments: |place| {
        let own = ["shared_preload_libraries=timescaledb", "timescaledb.telemetry_level=off"];
        let own = own.into_iter().flat_map(|setting| ["-c".to_string(), setting.to_string()]);
        serve_arguments(place).into_iter().chain(own).collect()
    },
    set_up: |authority| {
        let mut client = SqlClient::new(authority, SET_UP_TIMEOUT);
        client.execute("CREATE EXTENSION IF NOT EXISTS timescaledb")?;
        client.execute(&create_tables())?;
        client.execute(
            "SELECT create_hypertable('cpu', 'time', chunk_time_interval => INTERVAL '12 hours', \
             create_default_indexes => false, if_not_exists => true)",
        )
    },
    language: Some(Language::Sql {
        minute: "time_bucket('1 minute', time)",
        hour: "time_bucket('1 hour', time)",
    }),
    ..PLAIN
};

fn serve_arguments(place: &Place) -> Vec<String> {
    let memory_mib = machine::describe().memory_bytes >> 20;
    let settings = [
        format!("port={}", place.port),
        "listen_addresses=127.0.0.1".to_string(),
        "unix_socket_directories=".to_string(),
        format!("shared_buffers={}MB", (memory_mib / 8).clamp(128, SHARED_BUFFERS_MIB_MAX)),
        "max_wal_size=8GB".to_string(),
        "synchronous_commit=on".to_string(),
    ];
    let data_dir = place.data_dir.display().to_string();
    let settings = settings.into_iter().flat_map(|setting| ["-c".to_string(), setting]);
    ["-D".to_string(), data_dir].into_iter().chain(settings).collect()
}

/// Makes a cluster, unless there is one.
fn make_cluster(installed: &Installed, place: &Place) -> Result<()> {
    if place.data_dir.join("PG_VERSION").exists() {
        return Ok(());
    }
    let account = Account::of(installed.peer)?;
    let output = account::command(account, &beside(&installed.binary, "initdb"))
        .arg("-D")
        .arg(std::path::absolute(&place.data_dir)?)
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
        .output()
        .context("cannot run initdb")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "initdb ended with {}: {said}", output.status);
    Ok(())
}

/// The tables, unless they are there.
fn create_tables() -> String {
    let tags = TAG_NAMES.map(|name| format!("{name} text")).join(", ");
    let fields = FIELDS.map(|name| format!("{name} double precision")).join(", ");
    format!(
        "CREATE TABLE IF NOT EXISTS tags (id integer PRIMARY KEY, {tags}); \
         CREATE TABLE IF NOT EXISTS cpu (time timestamptz NOT NULL, tags_id integer, {fields}); \
         CREATE INDEX IF NOT EXISTS tags_hostname ON tags (hostname); \
         CREATE INDEX IF NOT EXISTS cpu_tags_time ON cpu (tags_id, time DESC); \
         CREATE INDEX IF NOT EXISTS cpu_time ON cpu (time DESC)"
    )
}

fn timescaledb_version(binary: &Path) -> Result<String> {
    let output = Command::new(beside(binary, "pg_config"))
        .arg("--sharedir")
        .output()
        .context("cannot run pg_config")?;
    let dir = String::from_utf8_lossy(&output.stdout).trim().to_string();
    let path = Path::new(&dir).join("extension/timescaledb.control");
    let control = std::fs::read_to_string(&path)
        .context("the extension timescaledb is not installed beside this PostgreSQL")?;
    let version = control
        .lines()
        .find_map(|line| line.strip_prefix("default_version")?.split('\'').nth(1))
        .unwrap_or("of unknown version");
    Ok(format!("TimescaleDB {version}"))
}

/// Another program of the same installation.
fn beside(binary: &Path, program: &str) -> PathBuf {
    // The path may lead to it by a link, and the others lie beside the link's end.
    let binary = std::fs::canonicalize(binary).unwrap_or_else(|_| binary.to_path_buf());
    binary.with_file_name(program)
}
