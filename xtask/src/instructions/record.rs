//! The record of instructions an operation, and how what is measured now compares with it.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Instructions an operation, by path.
pub type Measured = BTreeMap<String, f64>;
/// Where the record is in the checkout.
const FILE: &str = "bench/inside/instructions.toml";
/// How far a new path may be from its record.
const TOLERANCE_PERCENT: f64 = 3.0;
/// What the file begins with.
const HEAD: &str = "\
# Instructions an operation of every hot path of quipu-inside, counted by callgrind on x86_64.
# `cargo xtask instructions` compares; a path that needs more than this and its tolerance fails.
# After a change that is meant to cost or to save, `cargo xtask instructions --update` writes this
# file anew (tolerances stay); commit it together with the change.

";

/// Where the record is on this machine.
pub fn file() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("a workspace above")?;
    Ok(root.join(FILE))
}

/// One path's line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    /// An operation's.
    instructions: f64,
    /// How many more percent are let through.
    tolerance_percent: f64,
}

/// All lines, by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    entries: BTreeMap<String, Entry>,
}

/// What became of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Same,
    /// It needs less than the tolerance lets pass in silence.
    Better,
    /// It needs more than the tolerance allows.
    Worse,
    /// The record does not know it.
    NotRecorded,
    /// Only the record knows it.
    Gone,
}

/// One path, then and now.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The path's name.
    pub path: String,
    /// Instructions an operation as recorded.
    pub recorded: Option<f64>,
    /// Instructions an operation as measured.
    pub now: Option<f64>,
    /// How many percent the two may differ.
    pub tolerance_percent: f64,
}

impl Comparison {
    /// How many percent more than recorded; negative is better.
    pub fn change_percent(&self) -> Option<f64> {
        Some((self.now? / self.recorded? - 1.0) * 100.0)
    }

    /// What that means.
    pub fn verdict(&self) -> Verdict {
        let change = match (self.recorded, self.now) {
            (None, _) => return Verdict::NotRecorded,
            (_, None) => return Verdict::Gone,
            (Some(recorded), Some(now)) => (now / recorded - 1.0) * 100.0,
        };
        // A record of zero gives no number: that is no reason to pass.
        match () {
            () if change.abs() <= self.tolerance_percent + 1e-9 => Verdict::Same,
            () if change < 0.0 => Verdict::Better,
            () => Verdict::Worse,
        }
    }

    /// A word for the table.
    pub fn note(&self) -> &'static str {
        match self.verdict() {
            Verdict::Same => "",
            Verdict::Better => "better: update the record",
            Verdict::Worse => "WORSE",
            Verdict::NotRecorded => "not in the record",
            Verdict::Gone => "no such path any more",
        }
    }

    /// Why the guard fails, if it does.
    pub fn complaint(&self) -> Option<String> {
        let path = &self.path;
        let tolerance = self.tolerance_percent;
        match self.verdict() {
            Verdict::Same | Verdict::Better => None,
            Verdict::NotRecorded => Some(format!("{path} is not in {FILE}")),
            Verdict::Gone => {
                Some(format!("{path} is in {FILE}, but quipu-inside has no such path"))
            }
            Verdict::Worse => {
                let (recorded, now) = (self.recorded.unwrap_or(0.0), self.now.unwrap_or(0.0));
                let change = self.change_percent().unwrap_or(f64::INFINITY);
                Some(format!(
                    "{path} needs {now:.1} instructions an operation, recorded are {recorded:.1}: \
                     {change:+.2} %, allowed are {tolerance} %"
                ))
            }
        }
    }
}

impl Record {
    /// Reads the file.
    pub fn read(file: &Path) -> Result<Record> {
        let text = fs::read_to_string(file)
            .with_context(|| format!("no record {}: write it with --update", file.display()))?;
        Record::parse(&text).with_context(|| format!("in {}", file.display()))
    }

    fn parse(text: &str) -> Result<Record> {
        let mut entries = BTreeMap::new();
        for (path, value) in text.parse::<toml::Table>()? {
            let number = |key: &str| {
                let value = value.get(key).with_context(|| format!("{path} has no {key}"))?;
                let number = value.as_float().or(value.as_integer().map(|whole| whole as f64));
                let number = number.with_context(|| format!("{key} of {path} is no number"))?;
                ensure!(0.0 < number && number.is_finite(), "{key} of {path} is {number}");
                Ok(number)
            };
            let instructions = number("instructions")?;
            let tolerance_percent = number("tolerance_percent")?;
            entries.insert(path, Entry { instructions, tolerance_percent });
        }
        Ok(Record { entries })
    }

    /// Every path of the record or of what was measured, by name.
    pub fn compare(&self, measured: &Measured) -> Vec<Comparison> {
        let mut paths: Vec<&String> = self.entries.keys().chain(measured.keys()).collect();
        paths.sort_unstable();
        paths.dedup();
        let compare = |path: &String| {
            let entry = self.entries.get(path);
            Comparison {
                path: path.clone(),
                recorded: entry.map(|entry| entry.instructions),
                now: measured.get(path).copied(),
                tolerance_percent: entry.map_or(TOLERANCE_PERCENT, |entry| entry.tolerance_percent),
            }
        };
        paths.into_iter().map(compare).collect()
    }

    /// The record of what was measured, with the tolerances of this one.
    pub fn updated(&self, measured: &Measured) -> Record {
        let update = |(path, instructions): (&String, &f64)| {
            let known = self.entries.get(path);
            let tolerance_percent =
                known.map_or(TOLERANCE_PERCENT, |known| known.tolerance_percent);
            (path.clone(), Entry { instructions: *instructions, tolerance_percent })
        };
        Record { entries: measured.iter().map(update).collect() }
    }

    /// Writes the file.
    pub fn write(&self, file: &Path) -> Result<()> {
        fs::write(file, self.to_text()).with_context(|| format!("{}", file.display()))?;
        println!("   {} paths written to {}", self.entries.len(), file.display());
        Ok(())
    }

    fn to_text(&self) -> String {
        let mut text = HEAD.to_string();
        for (path, Entry { instructions, tolerance_percent }) in &self.entries {
            text += &format!(
                "{path} = {{ instructions = {instructions:.1}, tolerance_percent = {tolerance_percent:.1} }}\n"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(recorded: Option<f64>, now: Option<f64>, verdict: Verdict) {
        let path = "x".to_string();
        let one = Comparison { path, recorded, now, tolerance_percent: 3.0 };
        assert_eq!(one.verdict(), verdict);
        assert_eq!(one.complaint().is_none(), matches!(verdict, Verdict::Same | Verdict::Better));
    }

    #[test]
    fn verdicts() {
        check(Some(100.0), Some(100.0), Verdict::Same);
        check(Some(100.0), Some(103.0), Verdict::Same);
        check(Some(100.0), Some(103.2), Verdict::Worse);
        check(Some(100.0), Some(97.0), Verdict::Same);
        check(Some(100.0), Some(96.8), Verdict::Better);
        check(Some(0.0), Some(1.0), Verdict::Worse);
        check(None, Some(1.0), Verdict::NotRecorded);
        check(Some(1.0), None, Verdict::Gone);
    }

    #[test]
    fn a_record_comes_back_as_it_was_written_and_keeps_its_tolerances() {
        let text = "b = { instructions = 7.5, tolerance_percent = 10 }\n\
                    gone = { instructions = 1.0, tolerance_percent = 3.0 }\n";
        let known = Record::parse(text).unwrap();
        let measured = Measured::from([("b".to_string(), 8.04), ("a".to_string(), 123.0)]);
        let updated = known.updated(&measured);
        let text = updated.to_text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "",
                "a = { instructions = 123.0, tolerance_percent = 3.0 }",
                "b = { instructions = 8.0, tolerance_percent = 10.0 }"
            ]
        );
        let again = Record::parse(&text).unwrap();
        assert_eq!(again.entries["b"].tolerance_percent, 10.0);
        assert!(again.compare(&measured).iter().all(|one| one.verdict() == Verdict::Same));
    }

    #[test]
    fn bad_records_are_refused() {
        for text in [
            "a = 7",
            "a = { instructions = 0, tolerance_percent = 3 }",
            "a = {",
            "a = { instructions = 1 }",
        ] {
            assert!(Record::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_record_of_the_checkout_can_be_read() {
        assert!(!Record::read(&file().unwrap()).unwrap().entries.is_empty());
    }
}
