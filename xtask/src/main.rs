//! What the Makefile calls: `cargo xtask ci | tidy | dependencies | setup | bench | fuzz | ...`.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

mod ci;
mod dependencies;
mod fuzz;
mod instructions;
mod layers;
mod process;
mod redis_suite;
mod setup;
mod tidy;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  ci      everything that CI runs: format, lints, documentation, tests, fuzzing, end to end
  tidy    the rules of the repository that no compiler checks
  dependencies
          licences of all crates, and whether a flaw of one is known
  advisories DIR
          takes the known flaws from a checkout of RustSec's database
  setup   install what the end-to-end tests need (Debian and Python packages)
  bench   Quipu and its peers side by side; further arguments go to quipu-bench suite
  fuzz [--seconds N] [TARGET...]
          looks for inputs that reach new code, 60 s for each target, and packs them in fuzz/corpus
  test-redis [--debug] [--quick] [--update] [--words] [UNIT...]
          Redis' own suite against the release binary, compared with tests/redis-suite.toml
  instructions [--update]
          instructions an operation of every hot path, against bench/inside/instructions.toml";

/// Prints an error without its backtrace, so that the log of CI ends with what failed.
fn main() -> ExitCode {
    match run_task() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_task() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("ci") => ci::run(),
        Some("tidy") => tidy::run(),
        Some("dependencies") => dependencies::run(),
        Some("advisories") => dependencies::update(&arguments.collect::<Vec<_>>()),
        Some("setup") => setup::run(),
        Some("bench") => ci::bench(&arguments.collect::<Vec<_>>()),
        Some("fuzz") => fuzz::run(&arguments.collect::<Vec<_>>()),
        Some("test-redis") => redis_suite::run(&arguments.collect::<Vec<_>>()),
        Some("instructions") => instructions::run(&arguments.collect::<Vec<_>>()),
        _ => bail!("{USAGE}"),
    }
}
