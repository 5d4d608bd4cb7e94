//! Counting: builds the binary and runs each of its paths under callgrind.

use super::record::Measured;
use crate::process::command;
use anyhow::{Context, Result, ensure};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// What the guard on instructions runs. It alone is built as releases are, so that it counts what
/// users get.
const BUILD_INSIDE: &[&str] = &["build", "--release", "--package", "quipu-inside"];
/// Passes of the two runs. The first pass, which meets cold buffers, is in both.
const PASSES: [u64; 2] = [1, 3];
/// What valgrind says before it gives up on an instruction it does not know.
const UNKNOWN_INSTRUCTION: &str = "unhandled instruction bytes";

/// Builds quipu-inside, and says where it is.
pub fn build() -> Result<PathBuf> {
    command("cargo", BUILD_INSIDE, &[])?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace above")?;
    // Joining an absolute path gives that path.
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root.join(target).join("release/quipu-inside"))
}

/// Why nothing can be counted on this processor, if so.
pub fn obstacle(binary: &Path) -> Result<Option<String>> {
    let output = counted(binary, &["paths"]).spawn().context("cannot start valgrind")?;
    let output = output.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.contains(UNKNOWN_INSTRUCTION));
    match line {
        Some(line) => Ok(Some(line.to_string())),
        None => instructions_of(&output).map(|_| None),
    }
}

/// Instructions an operation, of every path.
pub fn all(binary: &Path) -> Result<Measured> {
    let list = Command::new(binary).arg("paths").output()?;
    ensure!(list.status.success(), "quipu-inside cannot list its paths");
    let text = String::from_utf8(list.stdout)?;
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(|name| Ok((name.to_string(), measure(binary, name)?))).collect()
}

/// Counts one path; both runs at the same time.
fn measure(binary: &Path, name: &str) -> Result<f64> {
    let start = |passes: u64| -> Result<Child> {
        let passes = passes.to_string();
        let mut command = counted(binary, &["path", name, "--iterations", &passes]);
        command.spawn().context("cannot start valgrind")
    };
    let children = [start(PASSES[0])?, start(PASSES[1])?];
    let mut runs = Vec::new();
    for child in children {
        let output = child.wait_with_output()?;
        let run = instructions_of(&output).and_then(|instructions| {
            Ok(Run { instructions, operations: operations_of(&output.stdout)? })
        });
        runs.push(run.with_context(|| format!("path {name} under callgrind"))?);
    }
    per_operation(&runs[0], &runs[1]).with_context(|| format!("path {name}"))
}

/// Callgrind around quipu-inside. The program's own path and the environment are always the same:
/// they move the heap, and on it how far strings are from the borders that `memcpy` likes.
fn counted(binary: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--cache-sim=no", "--callgrind-out-file=/dev/null"])
        .arg("./quipu-inside")
        .args(arguments)
        .current_dir(binary.parent().expect("a file is in a folder"))
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// One run of a path.
#[derive(Clone, Copy, Debug)]
struct Run {
    instructions: u64,
    operations: u64,
}

fn per_operation(short: &Run, long: &Run) -> Result<f64> {
    let operations = long.operations.checked_sub(short.operations).filter(|count| 0 < *count);
    let instructions = long.instructions.checked_sub(short.instructions).filter(|count| 0 < *count);
    let operations = operations.context("more passes were no more operations")?;
    let instructions = instructions.context("more passes needed no more instructions")?;
    Ok(instructions as f64 / operations as f64)
}

fn instructions_of(output: &Output) -> Result<u64> {
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "it failed ({}):\n{text}", output.status);
    collected(&text).with_context(|| format!("callgrind counted nothing:\n{text}"))
}

/// The count in callgrind's line `==PID== Collected : COUNT`.
fn collected(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("==") && line.contains("Collected"))?;
    line.rsplit_once(':')?.1.split_ascii_whitespace().next()?.parse().ok()
}

/// The count in quipu-inside's line `operations COUNT`.
fn operations_of(stdout: &[u8]) -> Result<u64> {
    let text = String::from_utf8_lossy(stdout);
    let count = text.lines().find_map(|line| line.strip_prefix("operations "));
    let count = count.and_then(|count| count.parse().ok());
    count.with_context(|| format!("it did not say how many operations it did: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
==714== Callgrind, a call-graph generating cache profiler
==714== Command: quipu-inside path append-row --iterations 3
==714== For interactive control, run 'callgrind_control -h'.
==714== 
==714== Events    : Ir
==714== Collected : 12345678
==714== 
==714== I   refs:      12,345,678
";

    #[test]
    fn callgrinds_count_is_found() {
        assert_eq!(collected(OUTPUT), Some(12_345_678));
        assert_eq!(collected("==714== Collected : 7 3 1\n"), Some(7), "more events behind it");
        assert_eq!(collected("==714== Events    : Ir\n"), None);
        assert_eq!(collected("==714== Collected :\n"), None);
    }

    #[test]
    fn the_difference_is_divided_by_the_operations() {
        let run = |instructions, operations| Run { instructions, operations };
        let figure = per_operation(&run(1_000_500, 10), &run(1_001_500, 30)).unwrap();
        assert_eq!(figure, 50.0);
        assert!(per_operation(&run(5, 10), &run(9, 10)).is_err());
        assert!(per_operation(&run(9, 10), &run(9, 20)).is_err());
    }

    #[test]
    fn operations_are_read_from_the_output() {
        assert_eq!(operations_of(b"operations 3000\n").unwrap(), 3000);
        assert!(operations_of(b"error: no such path\n").is_err());
    }
}
