//! Installs what the end-to-end tests and benchmarks start: peers and tools from Debian's packages, clients
//! from PyPI in an environment of their own. Clients in other languages come from their registries, at
//! the versions that `tests/clients` names, where the machine has the language.

use crate::process::command;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that the tests start, and the Debian packages that hold them. PostgreSQL's server is not on the
/// path; `pg_createcluster` of the same package stands for it.
const TEST_PROGRAMS: &[(&str, &str)] = &[
    ("curl", "curl"),
    ("influxd", "influxdb"),
    ("victoria-metrics", "victoria-metrics"),
    ("openssl", "openssl"),
    ("pg_createcluster", "postgresql"),
    ("psql", "postgresql-client"),
    ("prometheus", "prometheus"),
    ("prometheus-node-exporter", "prometheus-node-exporter"),
    ("redis-cli", "redis-tools"),
    ("redis-server", "redis-server"),
];
/// Programs that the benchmarks compare with.
const PEER_PROGRAMS: &[(&str, &str)] = &[
    ("victoria-metrics", "victoria-metrics"),
    ("prometheus", "prometheus"),
    ("influxd", "influxdb"),
    ("pg_createcluster", "postgresql"),
    ("redis-server", "redis-server"),
];
/// What Debian's packages ask before they start a service: 101 forbids it. The benchmarks start
/// every peer themselves, and an idle one would share the cores with them.
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";
const SERVICE_POLICY_SCRIPT: &str = "#!/bin/sh\nexit 101\n";
/// What PostgreSQL's package reads, beside its own settings, before it makes a cluster.
const CLUSTER_POLICY: &str = "/etc/postgresql-common/createcluster.d/quipu-bench.conf";
const CLUSTER_POLICY_TEXT: &str = "create_main_cluster = false\n";
/// What Redis' own suite of tests runs with: Tcl, and Redis' clients.
const REDIS_SUITE_PROGRAMS: &[(&str, &str)] =
    &[("tclsh", "tcl"), ("redis-server", "redis-server"), ("redis-cli", "redis-tools")];
/// What counts instructions.
const COUNTER_PROGRAMS: &[(&str, &str)] = &[("valgrind", "valgrind")];
/// Python packages of the clients the tests use, at the versions they were written with.
const PYTHON_PACKAGES: &[&str] = &[
    "influxdb-client==1.49.0",
    "influxdb==5.3.2",
    "pandas==3.1.1",
    "influxdb3-python==0.21.0",
    "redis==8.1.0",
    "celery==5.7.0",
    "packaging==25.0",
    "psycopg[binary]==3.3.9",
    "SQLAlchemy==2.1.9",
    "asyncpg==0.32.0",
    "pyarrow==26.0.1",
    "duckdb==2.0.0",
    "moto[server]==5.2.5",
    "whisper==1.1.10",
];
/// Their modules, at those versions.
const PYTHON_CHECK: &str = "import influxdb_client, influxdb_client_3, influxdb, pandas, redis, celery, kombu.transport.redis, psycopg, sqlalchemy, asyncpg, \
                            pyarrow, duckdb, moto.server, whisper; assert redis.__version__ == '8.1.0' and \
                            psycopg.__version__ == '3.3.9'";
/// Where they are installed.
const PYTHON_ENVIRONMENT: &str = "target/test-python";

/// Installs what the end-to-end tests need and is not there.
pub fn run() -> Result<()> {
    install_idle(TEST_PROGRAMS)?;
    if !python().exists() {
        command("python3", &["-m", "venv", PYTHON_ENVIRONMENT], &[])?;
    }
    let import = ["-c", PYTHON_CHECK];
    let python = python().display().to_string();
    if command(&python, &import, &[]).is_err() {
        let mut install = vec!["-m", "pip", "install", "--quiet"];
        install.extend(PYTHON_PACKAGES);
        command(&python, &install, &[])?;
    }
    CLIENTS.iter().try_for_each(install_client)
}

/// A client in another language.
struct LanguageClient {
    /// The program without which it is left out.
    needs: &'static str,
    /// Files that say what is installed.
    sources: &'static [&'static str],
    /// Where it is installed, whole or not at all.
    target: &'static str,
    /// What installs it into the place of its last argument; where that is run.
    folder: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// What stands before the place.
    place: &'static str,
}

const CLIENTS: &[LanguageClient] = &[
    LanguageClient {
        needs: "npm",
        sources: &["tests/clients/node/package.json", "tests/clients/node/package-lock.json"],
        target: "target/test-node",
        folder: "target/test-node.new",
        program: "npm",
        arguments: &["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
        place: "--prefix=",
    },
    LanguageClient {
        needs: "go",
        sources: &[
            "tests/clients/go/main.go",
            "tests/clients/go/postgres.go",
            "tests/clients/go/go.mod",
            "tests/clients/go/go.sum",
        ],
        target: "target/test-go",
        folder: "tests/clients/go",
        program: "go",
        arguments: &["build"],
        place: "-o=",
    },
    LanguageClient {
        needs: "mvn",
        sources: &["tests/clients/java/pom.xml"],
        target: "target/test-java",
        folder: "tests/clients/java",
        program: "mvn",
        arguments: &["--batch-mode", "--quiet", "dependency:copy-dependencies"],
        place: "-DoutputDirectory=",
    },
];

/// Installs a client unless it is there already, made of the same files.
fn install_client(client: &LanguageClient) -> Result<()> {
    if !is_on_path(client.needs) {
        println!("   left out for want of {}: {}", client.needs, client.target);
        return Ok(());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let mut made_of = String::new();
    for source in client.sources {
        let text = fs::read_to_string(root.join(source));
        made_of += &text.with_context(|| format!("cannot read {source}"))?;
    }
    let target = root.join(client.target);
    let stamp = target.join("made-of");
    if fs::read_to_string(&stamp).is_ok_and(|known| known == made_of) {
        return Ok(());
    }
    let new = root.join(format!("{}.new", client.target));
    for old in [&new, &target] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    fs::create_dir_all(&new)?;
    for source in client.sources.iter().map(Path::new) {
        fs::copy(root.join(source), new.join(source.file_name().context("a file")?))?;
    }
    let place = format!("{}{}", client.place, new.display());
    let folder = root.join(client.folder);
    println!("   {} {} {place}", client.program, client.arguments.join(" "));
    let status = Command::new(client.program)
        .args(client.arguments)
        .arg(place)
        .current_dir(folder)
        .status()
        .with_context(|| format!("cannot start {}", client.program))?;
    ensure!(status.success(), "{} failed: {status}", client.program);
    fs::rename(&new, &target)?;
    fs::write(stamp, made_of)?;
    Ok(())
}

/// Installs the peers of the benchmarks, and starts none of them.
pub fn peers() -> Result<()> {
    install_idle(PEER_PROGRAMS)
}

/// Installs what Redis' own suite runs with, and starts none of it.
pub fn redis_suite() -> Result<()> {
    install_idle(REDIS_SUITE_PROGRAMS)
}

/// Installs programs without starting the services that come with them.
fn install_idle(programs: &[(&str, &str)]) -> Result<()> {
    if programs.iter().all(|(program, _)| is_on_path(program)) {
        return Ok(());
    }
    let policies = [
        Placed::unless_there(SERVICE_POLICY, SERVICE_POLICY_SCRIPT)?,
        Placed::unless_there(CLUSTER_POLICY, CLUSTER_POLICY_TEXT)?,
    ];
    let installed = install(programs);
    drop(policies);
    installed
}

/// A file that is there while packages are installed. Somebody's own stays as it is.
struct Placed(Option<&'static str>);

impl Placed {
    fn unless_there(path: &'static str, text: &str) -> Result<Placed> {
        if Path::new(path).exists() {
            return Ok(Placed(None));
        }
        let context = || format!("cannot write {path}: run as root");
        if let Some(dir) = Path::new(path).parent() {
            fs::create_dir_all(dir).with_context(context)?;
        }
        fs::write(path, text).with_context(context)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).with_context(context)?;
        Ok(Placed(Some(path)))
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // It may be gone; then there is nothing to do.
            let _ = fs::remove_file(path);
        }
    }
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
