//! One target under libFuzzer, which grows inputs that reach what no input has reached yet. Built
//! with instrumented rooms and started by `cargo xtask fuzz`.
//!
//! Its arguments are libFuzzer's, so the target is named in the environment; where none is named
//! it prints how long an input may be, and the names of all.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_fuzz::{INPUT_SIZE_MAX, TARGETS, Target};
use std::sync::OnceLock;

/// Names the target.
const TARGET_VARIABLE: &str = "QUIPU_FUZZ_TARGET";

static TARGET: OnceLock<&Target> = OnceLock::new();

fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some((_, target)) = TARGET.get() {
        target(data);
    }
});

/// Finds the target before the first input.
fn choose() {
    let Ok(wanted) = std::env::var(TARGET_VARIABLE) else { list() };
    let target = TARGETS.iter().find(|(name, _)| *name == wanted);
    let target = target.unwrap_or_else(|| panic!("there is no target {wanted:?}"));
    TARGET.get_or_init(|| target);
}

#[expect(clippy::disallowed_methods, reason = "`main` is libFuzzer's: no way back from here")]
fn list() -> ! {
    println!("{INPUT_SIZE_MAX}");
    TARGETS.iter().for_each(|(name, _)| println!("{name}"));
    std::process::exit(0);
}
