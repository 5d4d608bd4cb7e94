//! All checks, in the order in which they fail fastest. Each step prints what it runs and how long
//! it took.

use crate::{instructions, setup, tidy};
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The release binary, which the end-to-end tests start.
const BINARY: &str = "target/release/quipu";
/// The binary that measures from inside the process.
const INSIDE: &str = "target/release/quipu-inside";
/// The fuzzers.
const FUZZ: &str = "target/debug/quipu-fuzz";
/// Builds it and quipu-inside. In one call, because the two alone would have dependencies with
/// different features, and all rooms would be compiled twice.
pub const BUILD_RELEASE: &[&str] = &[
    "build",
    "--release",
    "--package",
    "server",
    "--package",
    "quipu-inside",
    "--features",
    "server/jemalloc",
];

/// Runs everything.
pub fn run() -> Result<()> {
    let start = Instant::now();
    step("house rules", tidy::run)?;
    cargo("format", &["fmt", "--all", "--", "--check"], &[])?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    cargo("lints", &lints, &[])?;
    let doc = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    cargo("documentation", &doc, &[("RUSTDOCFLAGS", "-D warnings")])?;
    cargo("release binary", BUILD_RELEASE, &[])?;
    step("instructions of hot paths", || instructions::run(&[]))?;
    step("packages for end-to-end tests", setup::run)?;
    // All of the workspace in one call: packages alone would have dependencies with other
    // features, and these would be compiled again for each call.
    cargo("programs and tests", &["build", "--workspace", "--all-targets"], &[])?;
    step("short fuzz runs", || command(FUZZ, &["--iterations", "3000"], &[]))?;
    let binary = std::env::current_dir()?.join(BINARY);
    let binary = binary.to_str().context("the checkout's path is UTF-8")?;
    let python = setup::python().display().to_string();
    let environment = [("QUIPU_BINARY", binary), ("QUIPU_TEST_PYTHON", &python)];
    cargo("tests, end to end and beside peers too", &["test", "--workspace"], &environment)?;
    println!("== all checks passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Builds the release binaries, installs the peers and runs the suite; `arguments` go to it.
pub fn bench(arguments: &[String]) -> Result<()> {
    cargo("release binaries", BUILD_RELEASE, &[])?;
    step("packages of the peers", setup::peers)?;
    let mut run = vec!["run", "--release", "--package", "quipu-bench", "--", "suite"];
    run.extend(["--quipu", BINARY, "--inside", INSIDE]);
    run.extend(arguments.iter().map(String::as_str));
    cargo("benchmarks", &run, &[])
}

fn cargo(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    step(name, || command("cargo", arguments, environment))
}

/// Runs a program in the checkout and fails when it does.
pub fn command(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    println!("   {program} {}", arguments.join(" "));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace above")?;
    let mut command = Command::new(program);
    for name in std::env::vars_os().map(|(name, _)| name).filter(|name| is_about_xtask(name)) {
        command.env_remove(name);
    }
    let status = command
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root)
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "{program} {} failed: {status}", arguments.join(" "));
    Ok(())
}

/// Whether cargo set the variable to describe this program. Build scripts look at some of these and
/// run anew when they change: without them a build from here and one from a shell share all.
fn is_about_xtask(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let start = Instant::now();
    work().with_context(|| format!("{name} failed"))?;
    println!("   {name}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
