//! A server for keys: started with the flags of a case, watched from outside, stopped or killed.

use super::resp::Connection;
use crate::observe::disk::{self, DiskUse};
use crate::observe::process::{self, ProcessUse};
use anyhow::{Context, Result, bail};
use std::fs::{self, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(2);
const READY_TIMEOUT: Duration = Duration::from_secs(300);
const STOP_TIMEOUT: Duration = Duration::from_secs(300);

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Quipu,
    Redis,
}

/// A server's binary.
#[derive(Clone, Debug)]
pub struct Program {
    pub kind: Kind,
    pub binary: PathBuf,
    pub version: String,
    /// Whether it opens a door for PostgreSQL's clients, too, at a port that only one can have.
    has_sql: bool,
}

impl Program {
    /// Asks a binary for its version.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn new(kind: Kind, binary: &Path) -> Result<Program> {
        let says = |arguments: &[&str]| -> Result<String> {
            let output = clean_command(binary).args(arguments).output();
            let output = output.with_context(|| format!("cannot run {}", binary.display()))?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let version = says(&["--version"])?;
        let version = version.lines().next().unwrap_or("unknown version").to_string();
        let has_sql =
            kind == Kind::Quipu && says(&["serve", "--help"])?.contains("--postgres-listen");
        Ok(Program { kind, binary: binary.to_path_buf(), version, has_sql })
    }

    /// Its name in tables.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Quipu => "Quipu",
            Kind::Redis => "Redis",
        }
    }
}

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Setting {
    /// `always` or `everysec`.
    pub durability: &'static str,
    /// Bytes of memory for Quipu's keys.
    pub memory: u64,
    /// Further flags of Quipu.
    pub flags: Vec<String>,
}

impl Setting {
    /// As users have it, with memory for so many bytes of keys.
    pub fn new(memory: u64) -> Setting {
        Setting { durability: "everysec", memory, flags: Vec::new() }
    }

    /// With a flag more.
    pub fn with(mut self, flag: &str) -> Setting {
        self.flags.push(flag.to_string());
        self
    }

    /// As a reader types it.
    pub fn shown(&self, kind: Kind) -> String {
        match kind {
            Kind::Quipu => {
                let flags = quipu_flags(self).join(" ");
                format!("quipu serve {flags}")
            }
            Kind::Redis => format!("redis-server {}", redis_flags(self).join(" ")),
        }
    }
}

fn quipu_flags(setting: &Setting) -> Vec<String> {
    let mut flags = vec![
        "--self-scrape-interval=0".to_string(),
        "--memory-limit=16GiB".to_string(),
        format!("--kv-memory={}MiB", setting.memory >> 20),
        format!("--kv-durability={}", setting.durability),
    ];
    flags.extend(setting.flags.iter().cloned());
    flags
}

fn redis_flags(setting: &Setting) -> Vec<String> {
    let pairs = ["--appendonly", "yes", "--save", "", "--appendfsync", setting.durability];
    pairs.map(str::to_string).to_vec()
}

/// A server that runs; killed when dropped.
pub struct Server {
    child: Child,
    port: u16,
    dir: PathBuf,
    /// From the start of the process until it answered `PING` with `PONG`.
    pub ready_after: Duration,
}

impl Server {
    /// Starts a server over a directory, which is made if need be, and waits until it serves.
    ///
    /// # Errors
    /// When it ends, or takes too long.
    pub fn start(program: &Program, setting: &Setting, dir: &Path) -> Result<Server> {
        fs::create_dir_all(dir)?;
        let port = free_port()?;
        let log = dir.with_extension("log");
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = clean_command(&program.binary);
        let shown_dir = dir.display().to_string();
        match program.kind {
            Kind::Quipu => {
                let http = format!("127.0.0.1:{}", free_port()?);
                command.args(["serve", "--data-dir", &shown_dir, "--http-listen", &http]);
                if !setting.flags.iter().any(|flag| flag.starts_with("--redis-listen")) {
                    command.arg(format!("--redis-listen=127.0.0.1:{port}"));
                }
                if program.has_sql {
                    command.arg("--postgres-listen=");
                }
                command.args(quipu_flags(setting));
            }
            Kind::Redis => {
                command.args(["--dir", &shown_dir, "--port", &port.to_string()]);
                command.args(redis_flags(setting));
            }
        }
        let started = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn();
        let child = child.with_context(|| format!("cannot start {}", program.binary.display()))?;
        let ready_after = Duration::ZERO;
        let mut server = Server { child, port, dir: dir.to_path_buf(), ready_after };
        if setting.flags.iter().any(|flag| flag == "--redis-listen=") {
            return Ok(server);
        }
        while !server.answers() {
            if let Some(status) = server.child.try_wait()? {
                let end = fs::read_to_string(&log).unwrap_or_default();
                let end: Vec<&str> = end.lines().rev().take(5).collect();
                bail!("{} ended with {status}: {end:?}", program.name());
            }
            if READY_TIMEOUT < started.elapsed() {
                bail!("{} is not ready", program.name());
            }
            std::thread::sleep(POLL);
        }
        server.ready_after = started.elapsed();
        Ok(server)
    }

    fn answers(&self) -> bool {
        // While it loads its keys, Redis answers with an error.
        let asked = Connection::open(self.port).and_then(|mut one| one.ask(&[b"PING"]));
        asked.is_ok_and(|answer| answer.starts_with(b"+PONG"))
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection to it.
    ///
    /// # Errors
    /// When it takes none.
    pub fn connect(&self) -> Result<Connection> {
        Connection::open(self.port)
    }

    /// What its process has used.
    ///
    /// # Errors
    /// When it is gone.
    pub fn used(&self) -> Result<ProcessUse> {
        process::read(self.child.id())
    }

    /// What lies in its directory.
    pub fn disk(&self) -> DiskUse {
        disk::measure(&self.dir)
    }

    /// Times that its threads were put on a core by the kernel, all together, so far.
    pub fn wakeups(&self) -> u64 {
        let tasks = format!("/proc/{}/task", self.child.id());
        let Ok(entries) = fs::read_dir(tasks) else { return 0 };
        let switches = |entry: fs::DirEntry| {
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let line = status.lines().find_map(|one| one.strip_prefix("voluntary_ctxt_switches:"));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        entries.flatten().map(switches).sum()
    }

    /// Ends it at once.
    ///
    /// # Errors
    /// When it had ended by itself.
    pub fn kill(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server had ended with {status}");
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end and waits until it has; how long that took.
    ///
    /// # Errors
    /// When it does not in time.
    pub fn stop(mut self) -> Result<Duration> {
        let started = Instant::now();
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        while started.elapsed() < STOP_TIMEOUT {
            if self.child.try_wait()?.is_some() {
                return Ok(started.elapsed());
            }
            std::thread::sleep(POLL);
        }
        bail!("the server does not stop")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails when the process has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A command of the binary without variables of others, which Quipu would refuse.
fn clean_command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"QUIPU_") {
            command.env_remove(name);
        }
    }
    command
}
