//! Runs programs in the checkout.

use anyhow::{Context, Result, ensure};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// The checkout.
pub fn checked_out() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace above")
}

/// Runs a program in the checkout and fails when it does.
pub fn command(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    println!("   {program} {}", arguments.join(" "));
    let root = checked_out()?;
    let mut command = Command::new(program);
    for name in std::env::vars_os().map(|(name, _)| name).filter(|name| is_about_xtask(name)) {
        command.env_remove(name);
    }
    let status = command
        .args(arguments)
        .env("CARGO_INCREMENTAL", incremental())
        .envs(environment.iter().copied())
        .current_dir(root)
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "{program} {} failed: {status}", arguments.join(" "));
    Ok(())
}

/// Switches incremental compilation off unless the environment sets it: its data took two thirds of
/// `target/debug`, and CI ran out of disk.
fn incremental() -> OsString {
    std::env::var_os("CARGO_INCREMENTAL").unwrap_or_else(|| "0".into())
}

/// Whether cargo set the variable to describe this program. Build scripts look at some of these and
/// run anew when they change: without them a build from here and one from a shell share all.
fn is_about_xtask(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}
