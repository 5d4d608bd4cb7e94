//! `quipu migrate` as a child, and what servers hold before and after.

use crate::launch::{Server, quipu};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// What the command said.
pub struct Said {
    /// Its exit code.
    pub code: i32,
    /// All that it printed.
    pub text: String,
}

/// `quipu migrate` with arguments, to a server, with its progress file in a directory.
///
/// # Errors
/// When it cannot be started, or is killed.
pub fn migrate(server: &Server, directory: &Path, arguments: &[&str]) -> Result<Said> {
    let mut command = quipu(&["migrate"])?;
    command.args(arguments).args(["--url", server.url()]).current_dir(directory);
    let output = command.output()?;
    let text = [output.stdout, output.stderr].concat();
    let code = output.status.code().context("a signal")?;
    Ok(Said { code, text: String::from_utf8_lossy(&text).into_owned() })
}

/// The same, which must end well; what it said.
///
/// # Errors
/// As there, and when it does not.
pub fn must(server: &Server, directory: &Path, arguments: &[&str]) -> Result<String> {
    let said = migrate(server, directory, arguments)?;
    ensure!(said.code == 0, "{arguments:?}: {}", said.text);
    Ok(said.text)
}

/// All that a server has, line by line.
///
/// # Errors
/// When it does not answer.
pub fn lines(server: &Server) -> Result<Vec<String>> {
    let answer = server.get("/api/v1/export?match[]=%7B__name__!%3D%22%22%7D")?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    let text = String::from_utf8(answer.body)?;
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    lines.sort();
    Ok(lines)
}
