//! All checks, in the order in which they fail fastest. Each step prints what it runs and how long
//! it took.

use crate::process::command;
use crate::{dependencies, instructions, redis_suite, setup, tidy};
use anyhow::{Context, Result};
use std::time::Instant;

/// The binary that the end-to-end tests start.
const BINARY: &str = "target/debug/quipu";
/// The allocator of releases: the end-to-end tests look at the memory it gives back. And SQL.
const FEATURES: [&str; 2] = ["--features", "quipu/jemalloc,quipu/sql,quipu/s3"];
/// The fuzzers.
const FUZZ: &str = "target/debug/quipu-fuzz";
/// What is measured from outside and inside. In one call, because the two alone would have
/// dependencies with different features, and cargo would compile all crates twice.
const BUILD_RELEASE: &[&str] = &[
    "build",
    "--release",
    "--package",
    "quipu",
    "--package",
    "quipu-inside",
    "--features",
    "quipu/jemalloc",
];

/// Runs everything. Unit tests, fuzzers and end-to-end tests share one build: that of
/// `cargo build --all-targets` without what measures.
pub fn run() -> Result<()> {
    let start = Instant::now();
    step("rules of the repository", tidy::run)?;
    step("licences and advisories", dependencies::run)?;
    cargo("format", &["fmt", "--all", "--", "--check"], &[])?;
    let lints = [
        "clippy",
        "--workspace",
        "--all-targets",
        FEATURES[0],
        FEATURES[1],
        "--",
        "-D",
        "warnings",
    ];
    cargo("lints", &lints, &[])?;
    let doc =
        ["doc", "--workspace", "--no-deps", "--document-private-items", FEATURES[0], FEATURES[1]];
    cargo("documentation", &doc, &[("RUSTDOCFLAGS", "-D warnings")])?;
    step("packages for end-to-end tests", setup::run)?;
    cargo("programs and tests", &["build", "--all-targets", FEATURES[0], FEATURES[1]], &[])?;
    step("short fuzz runs", || command(FUZZ, &["--iterations", "3000"], &[]))?;
    let binary = std::env::current_dir()?.join(BINARY);
    let binary = binary.to_str().context("the checkout's path is UTF-8")?;
    let python = setup::python().display().to_string();
    let environment = [("QUIPU_BINARY", binary), ("QUIPU_TEST_PYTHON", &python)];
    cargo(
        "tests, end to end and beside peers too",
        &["test", FEATURES[0], FEATURES[1], "--no-fail-fast"],
        &environment,
    )?;
    step("Redis' own suite, its quick units", || redis_suite::against(BINARY, &["--quick"]))?;
    step("instructions of hot paths", || instructions::run(&[]))?;
    println!("== all checks passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Builds the release binaries, installs the peers and runs the suite; `arguments` go to it.
pub fn bench(arguments: &[String]) -> Result<()> {
    cargo("release binaries", BUILD_RELEASE, &[])?;
    cargo(
        "tests of what measures",
        &["test", "--release", "--package", "quipu-bench", "--package", "soak"],
        &[],
    )?;
    step("packages of the peers", setup::peers)?;
    let mut run = vec!["run", "--release", "--package", "quipu-bench", "--", "suite"];
    run.extend(["--quipu", "target/release/quipu", "--inside", "target/release/quipu-inside"]);
    run.extend(arguments.iter().map(String::as_str));
    cargo("benchmarks", &run, &[])
}

fn cargo(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    step(name, || command("cargo", arguments, environment))
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let start = Instant::now();
    work().with_context(|| format!("{name} failed"))?;
    println!("   {name}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
