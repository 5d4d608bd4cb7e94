//! Installs what the end-to-end tests and benchmarks start: peers and tools from Debian's packages, clients
//! from PyPI in an environment of their own.

use crate::ci::command;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Programs the tests start, and the Debian packages that hold them.
const TEST_PROGRAMS: &[(&str, &str)] = &[
    ("curl", "curl"),
    ("openssl", "openssl"),
    ("prometheus", "prometheus"),
    ("prometheus-node-exporter", "prometheus-node-exporter"),
];
/// Programs the benchmarks compare with.
const PEER_PROGRAMS: &[(&str, &str)] =
    &[("victoria-metrics", "victoria-metrics"), ("prometheus", "prometheus")];
/// What counts instructions.
const COUNTER_PROGRAMS: &[(&str, &str)] = &[("valgrind", "valgrind")];
/// Python packages of the clients the tests use, at the versions they were written with.
const PYTHON_PACKAGES: &[&str] = &["influxdb-client==1.49.0"];
/// Where they are installed.
const PYTHON_ENVIRONMENT: &str = "target/test-python";

/// Installs what the end-to-end tests need and is not there.
pub fn run() -> Result<()> {
    install(TEST_PROGRAMS)?;
    if !python().exists() {
        command("python3", &["-m", "venv", PYTHON_ENVIRONMENT], &[])?;
    }
    let import = ["-c", "import influxdb_client"];
    let python = python().display().to_string();
    if command(&python, &import, &[]).is_err() {
        let mut install = vec!["-m", "pip", "install", "--quiet"];
        install.extend(PYTHON_PACKAGES);
        command(&python, &install, &[])?;
    }
    Ok(())
}

/// Installs the peers of the benchmarks.
pub fn peers() -> Result<()> {
    install(PEER_PROGRAMS)
}

/// Installs what `cargo xtask instructions` counts with.
pub fn instruction_counter() -> Result<()> {
    install(COUNTER_PROGRAMS)
}

/// The Python that has the clients.
pub fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PYTHON_ENVIRONMENT).join("bin/python")
}

fn install(programs: &[(&str, &str)]) -> Result<()> {
    let is_missing = |program: &&(&str, &str)| !is_on_path(program.0);
    let missing: Vec<&str> = programs.iter().filter(is_missing).map(|(_, name)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    command("apt-get", &["update", "-qq"], &[])?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(missing);
    command("apt-get", &install, &[("DEBIAN_FRONTEND", "noninteractive")])
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
