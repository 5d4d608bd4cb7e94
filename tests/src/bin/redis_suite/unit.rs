//! One unit of the suite: a server of its own, and a run of the suite against it.

use crate::report::{Report, SERVER_PANICKED, UNIT_ENDED};
use anyhow::{Context, Result, bail, ensure};
use e2e::Launch;
use e2e::redis::door_port;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// The suite's program, below its directory.
const HELPER: &str = "tests/test_helper.tcl";
/// Seconds without progress after which the suite gives a unit up.
const PROGRESS_SECONDS_MAX: &str = "200";
/// How long a unit may take in all.
const UNIT_TIMEOUT: Duration = Duration::from_secs(900);
/// The first port that the suite looks at for its own use, and how many each unit has.
const PORT_BASE: usize = 23_100;
const PORTS_EACH: usize = 64;
/// What is left out: `slow` tests, which Redis' own gate leaves out too, and what is of replicas.
const TAGS: &str = "-slow -needs:repl";

/// The suite on this machine.
pub struct Suite {
    root: PathBuf,
}

impl Suite {
    /// That of a directory.
    ///
    /// # Errors
    /// When it has none.
    pub fn new(root: &Path) -> Result<Suite> {
        ensure!(root.join(HELPER).is_file(), "{} has no {HELPER}", root.display());
        let root = fs::canonicalize(root)?;
        Ok(Suite { root })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tclsh");
        // Without colours.
        command.arg(HELPER).current_dir(&self.root).env("TERM", "dumb").stdin(Stdio::null());
        command
    }

    /// All units, in the suite's order.
    ///
    /// # Errors
    /// When it does not run.
    pub fn units(&self) -> Result<Vec<String>> {
        let listed = self.command().arg("--list-tests").output();
        let listed = listed.context("cannot start tclsh; is the package tcl installed?")?;
        ensure!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let printed = String::from_utf8(listed.stdout)?;
        let units = printed.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(units.map(str::to_owned).collect())
    }

    /// Runs a unit against a fresh server, some of its tests left out.
    ///
    /// # Errors
    /// When the server or the suite does not start.
    pub fn run(&self, unit: &str, number: usize, left_out: &[&str]) -> Result<Report> {
        let data_dir = self.root.join("quipu-data").join(unit.replace('/', "-"));
        clear(&data_dir)?;
        // Its tests send many wrong passwords.
        let server = Launch::new(&data_dir)
            .flag("redis-listen", "127.0.0.1:0")
            .flag("redis.enable-debug-command", "local")
            .flag("login-delay-max", "0")
            .start()?;
        let port = door_port(&server)?.to_string();
        let base = (PORT_BASE + number * PORTS_EACH).to_string();
        let mut command = self.command();
        command.args(["--host", "127.0.0.1", "--port", &port, "--baseport", &base]);
        command.args(["--single", unit, "--tags", TAGS, "--timeout", PROGRESS_SECONDS_MAX]);
        left_out.iter().for_each(|test| {
            command.args(["--skiptest", test]);
        });
        // An error of Tcl's fails its test, and not the whole unit.
        command.args(["--durable", "--ignore-encoding", "--ignore-digest"]);
        let (printed, is_whole) = finish(command)?;
        let mut report = Report::parse(&printed);
        if !is_whole {
            report.fail(UNIT_ENDED, &format!("it took longer than {UNIT_TIMEOUT:?}"));
        }
        let log = server.log();
        if let Some(line) = log.lines().find(|line| line.contains("panicked")) {
            report.fail(SERVER_PANICKED, line);
        }
        drop(server);
        clear(&data_dir)?;
        Ok(report)
    }
}

fn clear(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot clear {}", dir.display()))?;
    }
    Ok(())
}

/// Runs a command to its end and returns what it printed, and whether it ended in time.
fn finish(mut command: Command) -> Result<(String, bool)> {
    // A group of its own: the suite starts further processes, which end with it.
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().context("cannot start tclsh")?;
    let mut stdout = child.stdout.take().context("piped")?;
    let reader = spawn(move || {
        let mut printed = Vec::new();
        stdout.read_to_end(&mut printed).map(|_| printed)
    });
    let is_whole = ends(&mut child)?;
    end_group(&child);
    child.wait()?;
    let Ok(printed) = reader.join() else { bail!("what the suite printed cannot be read") };
    Ok((String::from_utf8_lossy(&printed?).into_owned(), is_whole))
}

fn ends(child: &mut Child) -> Result<bool> {
    let start = Instant::now();
    loop {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        if UNIT_TIMEOUT < start.elapsed() {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ends what is left of a child and the processes that it started.
fn end_group(child: &Child) {
    let group = format!("-{}", child.id());
    // None may be left, which is what we want.
    let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
}
