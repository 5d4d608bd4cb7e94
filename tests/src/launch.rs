//! Quipu as a child process: started on a free port, ready when it says so, killed when dropped.

use crate::answers::{self, Export, Matrix, Vector};
use crate::http::{Client, Response};
use crate::poll;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::Duration;

/// A server that has not said where it listens after so long has failed.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// A server that does not end after so long is stuck.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// What stands before the address in the first line that the server prints.
const LISTENS: &str = "listens on ";

/// The binary under test: `QUIPU_BINARY`, else what `cargo build` left in this checkout.
///
/// # Errors
/// When there is none.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("QUIPU_BINARY") {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "QUIPU_BINARY is {}, where no file is", path.display());
        return Ok(path);
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let built = ["release/quipu", "debug/quipu"].map(|name| target.join(name));
    let found = built.into_iter().find(|path| path.is_file());
    found.context("no quipu to test: run `cargo build --package quipu`, or set QUIPU_BINARY")
}

/// A command of the binary, with no settings but those of its arguments.
///
/// # Errors
/// When there is no binary.
pub fn quipu(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("QUIPU_") {
            command.env_remove(name);
        }
    }
    command.args(arguments);
    Ok(command)
}

/// How to start a server.
#[derive(Clone)]
pub struct Launch {
    data_dir: PathBuf,
    listen: String,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    raises_file_limit: bool,
}

impl Launch {
    /// A server over that directory, on a free port of loopback, that stores nothing by itself.
    pub fn new(data_dir: &Path) -> Launch {
        let listen = "127.0.0.1:0".to_string();
        let launch = Launch {
            data_dir: data_dir.into(),
            listen,
            flags: vec![],
            environment: vec![],
            raises_file_limit: false,
        };
        launch.flag("self-scrape-interval", "0")
    }

    /// On that port of loopback.
    pub fn port(self, port: u16) -> Launch {
        self.listen(&format!("127.0.0.1:{port}"))
    }

    /// On that address.
    pub fn listen(mut self, address: &str) -> Launch {
        self.listen = address.to_string();
        self
    }

    /// With one more flag; a later one wins.
    pub fn flag(mut self, name: &str, value: &str) -> Launch {
        let start = format!("--{name}=");
        self.flags.retain(|flag| !flag.starts_with(&start));
        self.flags.push(start + value);
        self
    }

    /// With an environment variable.
    pub fn environment(mut self, name: &str, value: &str) -> Launch {
        self.environment.push((name.to_string(), value.to_string()));
        self
    }

    /// With as many open files as the system lets it have.
    pub fn with_many_files(mut self) -> Launch {
        self.raises_file_limit = true;
        self
    }

    fn command(&self) -> Result<Command> {
        let data_dir = format!("--data-dir={}", self.data_dir.display());
        let listen = format!("--http-listen={}", self.listen);
        let mut command = quipu(&["serve", &data_dir, &listen])?;
        for door in ["--redis-listen=", "--postgres-listen="] {
            if !self.flags.iter().any(|flag| flag.starts_with(door)) {
                // Its default port is one for all tests.
                command.arg(door);
            }
        }
        command.args(&self.flags);
        if self.raises_file_limit {
            let mut shell = Command::new("sh");
            shell.args(["-c", "ulimit -n $(ulimit -Hn); exec \"$0\" \"$@\""]);
            shell.arg(command.get_program()).args(command.get_args());
            for (name, _) in command.get_envs() {
                shell.env_remove(name);
            }
            command = shell;
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// Starts it and waits until it serves.
    ///
    /// # Errors
    /// When it ends before; the message has what it said.
    pub fn start(&self) -> Result<Server> {
        let mut child = self.command()?.spawn().context("cannot start quipu")?;
        let log = Arc::new(Mutex::new(String::new()));
        let (listening, address) = channel();
        let stdout = child.stdout.take().context("piped")?;
        let stderr = child.stderr.take().context("piped")?;
        let (shared, other) = (log.clone(), log.clone());
        spawn(move || follow(stdout, &shared, Some(listening)));
        let errors = spawn(move || follow(stderr, &other, None));
        let url = match address.recv_timeout(READY_TIMEOUT) {
            Ok(url) => url,
            Err(_) => {
                let _ = child.kill();
                let status = child.wait()?;
                let _ = errors.join();
                let log = log.lock().map_err(|_| anyhow!("log"))?;
                bail!("quipu did not start: {status}\n{log}");
            }
        };
        Ok(Server { child, url, log, launch: self.clone() })
    }

    /// Starts it where it must refuse to run; returns what it said.
    ///
    /// # Errors
    /// When it runs, or ends without an error.
    pub fn refusal(&self) -> Result<String> {
        let Err(error) = self.start() else { bail!("the server runs") };
        let text = format!("{error:#}");
        ensure!(text.contains("exit status: 1"), "{text}");
        Ok(text)
    }
}

/// Copies lines into the log; tells the address once it is said.
fn follow(output: impl Read, log: &Mutex<String>, mut listening: Option<Sender<String>>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { return };
        if let Some((_, url)) = line.split_once(LISTENS)
            && let Some(listening) = listening.take()
        {
            let _ = listening.send(url.to_string());
        }
        if let Ok(mut log) = log.lock() {
            log.push_str(&line);
            log.push('\n');
        }
    }
}

/// A server that runs.
pub struct Server {
    child: Child,
    url: String,
    log: Arc<Mutex<String>>,
    launch: Launch,
}

impl Server {
    /// `http://127.0.0.1:port`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `127.0.0.1:port`.
    pub fn authority(&self) -> &str {
        self.url.split_once("://").map_or("", |(_, authority)| authority)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        let (_, port) = self.url.rsplit_once(':').unwrap_or_default();
        port.parse().unwrap_or(0)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        self.log.lock().map(|log| log.clone()).unwrap_or_default()
    }

    /// Waits until the server has printed `words`: its log arrives through a pipe.
    ///
    /// # Errors
    /// When it does not print them, with all that it printed.
    pub fn wait_for_log(&self, words: &str) -> Result<()> {
        poll(&format!("{words:?} in the log"), READY_TIMEOUT, || {
            let log = self.log();
            ensure!(log.contains(words), "{log}");
            Ok(())
        })
    }

    /// A client with a connection of its own.
    pub fn client(&self) -> Client {
        Client::new(self.authority())
    }

    /// One GET.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn get(&self, path: &str) -> Result<Response> {
        self.client().get(path)
    }

    /// One POST.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Result<Response> {
        self.client().post(path, &[], body.as_ref())
    }

    /// One POST with headers.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Result<Response> {
        self.client().post(path, headers, body.as_ref())
    }

    /// Posts lines that must all be taken.
    ///
    /// # Errors
    /// When they are not.
    pub fn write(&self, path: &str, body: impl AsRef<[u8]>) -> Result<()> {
        let response = self.post(path, body)?;
        ensure!(response.status == 204, "{path}: {}", response.excerpt());
        Ok(())
    }

    /// All samples of a selector.
    ///
    /// # Errors
    /// When the answer is none.
    pub fn export(&self, selector: &str) -> Result<Export> {
        self.get(&format!("/api/v1/export?match[]={}", answers::percent(selector)))?.export()
    }

    /// The result of an instant query at a time in seconds.
    ///
    /// # Errors
    /// When it fails or is no vector.
    pub fn vector(&self, query: &str, time: f64) -> Result<Vector> {
        self.get(&answers::instant_path(query, time))?.vector()
    }

    /// The result of an instant query of a range selector.
    ///
    /// # Errors
    /// When it fails or is no matrix.
    pub fn matrix(&self, query: &str, time: f64) -> Result<Matrix> {
        self.get(&answers::instant_path(query, time))?.matrix()
    }

    /// One sample of `/metrics`, by its name and labels as they stand there.
    ///
    /// # Errors
    /// When it is not there.
    pub fn metric(&self, series: &str) -> Result<f64> {
        self.get("/metrics")?.metric(series)
    }

    /// Memory of the process in bytes: in use now (`VmRSS`), or at most since it started (`VmHWM`).
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn resident_bytes(&self, kind: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let start = format!("{kind}:");
        let line = status.lines().find_map(|line| line.strip_prefix(&start));
        let kib = line.and_then(|text| text.trim().strip_suffix(" kB")).context("no such line")?;
        Ok(kib.trim().parse::<u64>()? << 10)
    }

    /// Sends SIGTERM and waits for the end, which must be a good one.
    ///
    /// # Errors
    /// When the exit code is not 0, or it does not end.
    pub fn stop(mut self) -> Result<()> {
        signal("TERM", self.pid())?;
        let status = self.wait()?;
        ensure!(status.code() == Some(0), "stopped with {status}:\n{}", self.log());
        Ok(())
    }

    /// Stops it and starts it again at the same address.
    ///
    /// # Errors
    /// When one of the two fails.
    pub fn restart(self) -> Result<Server> {
        let launch = self.launch.clone().port(self.port());
        self.stop()?;
        launch.start()
    }

    /// Ends it as a power cut would end it.
    ///
    /// # Errors
    /// When it had ended before.
    pub fn kill(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("had ended with {status}:\n{}", self.log());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        poll("the server's end", STOP_TIMEOUT, || self.child.try_wait()?.context("still runs"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails when the process has ended already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("log of the server at {}:\n{}", self.url, self.log());
        }
    }
}

/// Sends a signal by its name.
///
/// # Errors
/// When there is no such process.
pub fn signal(name: &str, pid: u32) -> Result<()> {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status()?;
    ensure!(status.success(), "cannot send SIG{name} to process {pid}");
    Ok(())
}
