//! Clients of other languages. Their scripts are in `tests/clients`, `cargo xtask setup` installs what
//! they need.

use crate::{is_installed, run};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The path of a client's script.
pub fn script(name: &str) -> String {
    format!("{}/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What `cargo xtask setup` installed for a language, if it could.
pub fn installed(name: &str, program: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target").join(name);
    if path.exists() && is_installed(program) {
        return Some(path);
    }
    println!(
        "left out: {} is not there; `cargo xtask setup` makes it of {program}",
        path.display()
    );
    None
}

/// Runs a client to its end, which must be a silent one.
///
/// # Errors
/// When it says something, or fails.
pub fn check(program: impl AsRef<Path>, arguments: &[&str]) -> Result<()> {
    let output = run(program, arguments)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}\n{said}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

/// A script of Node.js with its arguments.
pub fn node(modules: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", modules).args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a script of Node.js to its end; what it printed.
///
/// # Errors
/// When it fails.
pub fn check_node(modules: &Path, arguments: &[&str]) -> Result<String> {
    let output = node(modules, arguments).output()?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(said)
}
