//! Runs every test script of a directory and prints what passed: `scripts DIR [at-once] [FILE]`.
//!
//! The options are those of Prometheus' own runner (metric names are dropped late, experimental
//! functions are known), so a directory of its scripts can be given.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

use engine::script::{Outcome, Runner};
use engine::{NameRemoval, QueryLimits, QueryOptions, StartTimestamps};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = arguments.first() else {
        eprintln!("usage: scripts DIR [at-once] [FILE]");
        return;
    };
    let is_at_once = arguments.iter().any(|argument| argument == "at-once");
    let only = arguments.iter().skip(1).find(|argument| *argument != "at-once");
    let options = QueryOptions {
        experimental_functions: true,
        name_removal: if is_at_once { NameRemoval::AtOnce } else { NameRemoval::Late },
        start_timestamps: StartTimestamps::Used,
        limits: QueryLimits { samples_max: 10_000, ..QueryLimits::default() },
        ..QueryOptions::default()
    };
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "test"))
        .collect();
    files.sort();
    let mut total = [0usize; 2];
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().to_string();
        if only.is_some_and(|only| *only != name) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let report = match Runner::new(options.clone()).run(&text) {
            Ok(report) => report,
            Err(error) => {
                println!("{name}: {error}");
                continue;
            }
        };
        let mut failed = 0;
        for (line, text, outcome) in report.failures() {
            let Outcome::Failed(reason) = outcome else { continue };
            failed += 1;
            if only.is_some() {
                println!("{name}:{line}: FAILED: {text}\n    {reason}");
            }
        }
        let passed = report.passed();
        println!("{name}: {passed} passed, {failed} failed");
        total = [total[0] + passed, total[1] + failed];
    }
    println!("all: {} passed, {} failed", total[0], total[1]);
}
