//! The record of what passes, `tests/redis-suite.toml`: for each unit how many tests do, and which
//! ones do not, each with its reason.

use crate::report::{NO_PROGRESS, Report};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the record is in the checkout.
pub const FILE: &str = "tests/redis-suite.toml";
/// The reason of a test that failed in an update, for somebody to write.
const NO_REASON: &str = "?";
/// What the file begins with.
const HEAD: &str = "\
# What passes of Redis' own suite (7.0.15), unit by unit: `passed` tests do, those in `failing` do
# not, each with the reason; those in `endless` wait for ever and are left out. `cargo xtask test-redis` fails when less passes, and when more does:
# then `cargo xtask test-redis --update UNIT` writes this file anew. Reasons stay; that of a new
# line is \"?\", and to be written. What is `quick` runs with --quick.
";

/// What is known of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    passed: usize,
    is_quick: bool,
    /// Reasons by test.
    failing: BTreeMap<String, String>,
    /// The same of tests that wait for ever for what does not happen. They are left out.
    endless: BTreeMap<String, String>,
}

/// All units by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    units: BTreeMap<String, Entry>,
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE)
}

impl Record {
    /// That of this checkout.
    ///
    /// # Errors
    /// When it is none.
    pub fn read() -> Result<Record> {
        match fs::read_to_string(file()) {
            Ok(text) => Record::parse(&text).with_context(|| format!("{FILE} is no record")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Record::default()),
            Err(error) => Err(error).context(FILE),
        }
    }

    fn parse(text: &str) -> Result<Record> {
        let table: toml::Table = text.parse()?;
        let mut record = Record::default();
        for (unit, value) in table {
            let fields = value.as_table().with_context(|| format!("{unit} is no table"))?;
            let mut entry = Entry::default();
            for (name, value) in fields {
                match name.as_str() {
                    "passed" => {
                        let number = value.as_integer().context("passed is no number")?;
                        entry.passed = usize::try_from(number)?;
                    }
                    "quick" => entry.is_quick = value.as_bool().context("quick is no boolean")?,
                    "failing" => entry.failing = reasons(value)?,
                    "endless" => entry.endless = reasons(value)?,
                    other => bail!("{unit}: {other} is no field"),
                }
            }
            record.units.insert(unit, entry);
        }
        Ok(record)
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (unit, entry) in &self.units {
            let _ = write!(text, "\n[\"{unit}\"]\npassed = {}\n", entry.passed);
            if entry.is_quick {
                text += "quick = true\n";
            }
            write_reasons(&mut text, unit, "failing", &entry.failing);
            write_reasons(&mut text, unit, "endless", &entry.endless);
        }
        text
    }

    /// Writes it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self) -> Result<()> {
        let text = self.text();
        ensure!(Record::parse(&text)? == *self, "a record must read back as it was");
        fs::write(file(), text).with_context(|| format!("cannot write {FILE}"))
    }

    /// Whether the unit stands in it.
    pub fn knows(&self, unit: &str) -> bool {
        self.units.contains_key(unit)
    }

    /// Whether the unit runs with every gate.
    pub fn is_quick(&self, unit: &str) -> bool {
        self.units.get(unit).is_some_and(|entry| entry.is_quick)
    }

    /// Whether a test is known to fail.
    pub fn is_failing(&self, unit: &str, test: &str) -> bool {
        self.units.get(unit).is_some_and(|entry| entry.failing.contains_key(test))
    }

    /// Tests of a unit that are left out.
    pub fn endless(&self, unit: &str) -> Vec<&str> {
        let entry = self.units.get(unit);
        entry.into_iter().flat_map(|entry| entry.endless.keys().map(String::as_str)).collect()
    }

    /// Takes over what happened.
    pub fn update(&mut self, unit: &str, report: &Report) {
        let entry = self.units.entry(unit.to_owned()).or_default();
        entry.passed = report.passed;
        let before = std::mem::take(&mut entry.failing);
        for (test, words) in &report.failed {
            let reason = before.get(test).cloned().unwrap_or_else(|| NO_REASON.to_owned());
            let is_endless = words == NO_PROGRESS;
            let list = if is_endless { &mut entry.endless } else { &mut entry.failing };
            list.insert(test.clone(), reason);
        }
    }

    /// What is not as it was.
    pub fn compare(&self, unit: &str, report: &Report) -> Vec<String> {
        let Some(entry) = self.units.get(unit) else {
            return vec![format!("{unit} is not in {FILE}: --update adds it")];
        };
        let mut complaints = Vec::new();
        for (test, _) in &report.failed {
            if !entry.failing.contains_key(test) {
                complaints.push(format!("{unit}: {test} fails, which passed"));
            }
        }
        for (test, reason) in &entry.failing {
            if !report.failed.iter().any(|(failed, _)| failed == test) {
                complaints.push(format!("{unit}: {test} does not fail any more: --update"));
            } else if reason == NO_REASON {
                complaints.push(format!("{unit}: say in {FILE} why {test} fails"));
            }
        }
        for (test, reason) in &entry.endless {
            if reason == NO_REASON {
                complaints.push(format!("{unit}: say in {FILE} why {test} never ends"));
            }
        }
        if report.passed != entry.passed && complaints.is_empty() {
            let (now, before) = (report.passed, entry.passed);
            complaints.push(format!("{unit}: {now} tests passed, {before} are recorded"));
        }
        complaints
    }
}

fn reasons(value: &toml::Value) -> Result<BTreeMap<String, String>> {
    let mut reasons = BTreeMap::new();
    for (test, reason) in value.as_table().context("what fails is no table")? {
        let reason = reason.as_str().context("a reason is no text")?;
        reasons.insert(test.clone(), reason.to_owned());
    }
    Ok(reasons)
}

fn write_reasons(text: &mut String, unit: &str, list: &str, reasons: &BTreeMap<String, String>) {
    if reasons.is_empty() {
        return;
    }
    let _ = writeln!(text, "[\"{unit}\".{list}]");
    for (test, reason) in reasons {
        let _ = writeln!(text, "{} = {}", quoted(test), quoted(reason));
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: usize, failed: &[&str]) -> Report {
        let failed = failed.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        Report { passed, skipped: 0, failed }
    }

    #[test]
    fn a_record_reads_back() -> Result<()> {
        let mut record = Record::default();
        record.update("unit/x", &report(7, &["SET \"a\" \\ 'b'", "(the unit ended early)"]));
        record.update("unit/y", &report(0, &[]));
        assert_eq!(Record::parse(&record.text())?, record);
        Ok(())
    }

    #[test]
    fn what_is_worse_and_what_is_better_is_said() {
        let mut record = Record::default();
        record.update("unit/x", &report(7, &["A"]));
        let check = |now: &Report, words: &[&str]| {
            let complaints = record.compare("unit/x", now);
            assert_eq!(complaints.len(), words.len(), "{complaints:?}");
            complaints.iter().zip(words).for_each(|(said, word)| assert!(said.contains(word)));
        };
        check(&report(7, &["A"]), &["say in"]);
        check(&report(8, &[]), &["any more"]);
        check(&report(6, &["A", "B"]), &["B fails", "say in"]);
        assert_eq!(record.compare("unit/y", &report(1, &[])).len(), 1);
    }
}
