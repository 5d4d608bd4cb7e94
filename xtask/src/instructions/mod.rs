//! The guard against slow code: instructions an operation of every hot path, compared with the
//! record.
//!
//! ```text
//! quipu-inside path NAME --iterations 1 ─┐ under callgrind   ┌─ bench/inside/instructions.toml
//! quipu-inside path NAME --iterations 3 ─┴─► difference per ─┴─► verdict: same, better, worse
//!                                            operation
//! ```
//!
//! Instructions are counted, not time, so a noisy neighbour changes nothing. The difference of
//! two runs leaves out the start of the process and the making of the data. What remains between
//! machines is code that chooses by the processor (`memcpy`, search for bytes), for which there
//! is a tolerance.

mod measure;
mod record;

use crate::setup;
use anyhow::{Result, bail, ensure};
use record::{Comparison, Record, Verdict};

/// Measures all paths and compares them with the record, or with `--update` writes it anew.
pub fn run(arguments: &[String]) -> Result<()> {
    let is_update = match arguments {
        [] => false,
        [flag] if flag == "--update" => true,
        _ => bail!("usage: cargo xtask instructions [--update]"),
    };
    let architecture = std::env::consts::ARCH;
    if architecture != "x86_64" {
        println!("   skipped: the record is of x86_64 and this machine is {architecture}");
        return Ok(());
    }
    setup::instruction_counter()?;
    let binary = measure::build()?;
    if let Some(reason) = measure::obstacle(&binary)? {
        println!("   skipped: valgrind cannot run on this processor: {reason}");
        return Ok(());
    }
    let measured = measure::all(&binary)?;
    let file = record::file()?;
    if is_update {
        let known = if file.exists() { Record::read(&file)? } else { Record::default() };
        print_table(&known.compare(&measured));
        return known.updated(&measured).write(&file);
    }
    let comparisons = Record::read(&file)?.compare(&measured);
    print_table(&comparisons);
    judge(&comparisons)
}

fn print_table(comparisons: &[Comparison]) {
    println!("   {:24} {:>12} {:>12} {:>9}", "path", "recorded", "now", "change");
    let figure = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.1}"));
    for one in comparisons {
        let change = one.change_percent().map_or("-".to_string(), |p| format!("{p:+.2} %"));
        let (recorded, now) = (figure(one.recorded), figure(one.now));
        let line = format!("{:24} {recorded:>12} {now:>12} {change:>9}  {}", one.path, one.note());
        println!("   {}", line.trim_end());
    }
}

/// Fails with what is wrong and what to do about it.
fn judge(comparisons: &[Comparison]) -> Result<()> {
    let complaints: Vec<String> = comparisons.iter().filter_map(Comparison::complaint).collect();
    ensure!(
        complaints.is_empty(),
        "{}\nif that is meant, `cargo xtask instructions --update` writes the record, which \
         belongs into the same commit",
        complaints.join("\n")
    );
    for one in comparisons.iter().filter(|one| one.verdict() == Verdict::Better) {
        println!("   {} is better: update the record (--update)", one.path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(recorded: Option<f64>, now: Option<f64>) -> Comparison {
        Comparison { path: "append-row".to_string(), recorded, now, tolerance_percent: 3.0 }
    }

    #[test]
    fn only_what_is_worse_or_unknown_fails() {
        judge(&[comparison(Some(100.0), Some(103.0)), comparison(Some(100.0), Some(50.0))])
            .unwrap();
        let error = judge(&[comparison(Some(100.0), Some(103.1))]).unwrap_err().to_string();
        assert!(error.contains("append-row") && error.contains("+3.10 %"), "{error}");
        assert!(error.contains("--update"), "{error}");
        assert!(judge(&[comparison(None, Some(1.0))]).is_err());
        assert!(judge(&[comparison(Some(1.0), None)]).is_err());
    }

    #[test]
    fn unknown_arguments_are_refused() {
        assert!(run(&["--refresh".to_string()]).unwrap_err().to_string().contains("usage"));
    }
}
