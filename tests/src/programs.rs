//! Other programs as children: servers that are killed when dropped, tools that run to their end.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A program that runs beside the test.
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts it; its output goes to the file `log`.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn start(name: &str, arguments: &[String], log: &Path) -> Result<Program> {
        let output = File::create(log)?;
        let child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {name}; is its package installed?"))?;
        Ok(Program { child, log: log.to_path_buf() })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails when the process has ended already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("{}:\n{}", self.log.display(), self.log());
        }
    }
}

/// Runs a tool to its end, with its output kept.
///
/// # Errors
/// When it is not installed; a bad exit code is in the output.
pub fn run(name: impl AsRef<Path>, arguments: &[&str]) -> Result<Output> {
    let name = name.as_ref();
    let command = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    command.with_context(|| format!("cannot start {}", name.display()))
}

/// A port of loopback that nobody listens on now, for programs that cannot choose one.
///
/// # Errors
/// When there is none.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Whether a program is on the path.
pub fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The Python that has the client libraries: `QUIPU_TEST_PYTHON`, else `python3`.
///
/// # Errors
/// When it has not got the module.
pub fn python_with(module: &str) -> Result<PathBuf> {
    let python = std::env::var_os("QUIPU_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let python = PathBuf::from(python);
    let import = run(&python, &["-c", &format!("import {module}")])?;
    if !import.status.success() {
        bail!("{} cannot import {module}; set QUIPU_TEST_PYTHON to one that can", python.display());
    }
    Ok(python)
}
