//! The record of runs: `runs.jsonl` beside the tables. It holds every run's full result, so that a
//! comparison can be resumed, and the overview can show cases that were not run this time.
//!
//! ```text
//! {"suite":"2026-11-21T12:24:44Z"}                       the last run of the whole suite
//! {"name":"<case>-<server>-<repeat>","run":{...}}        a line for each run, sorted by name
//! ```

use super::Run;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FILE: &str = "runs.jsonl";

/// The runs of a directory of tables.
#[derive(Debug, Default)]
pub struct Record {
    path: PathBuf,
    suite: Option<String>,
    runs: BTreeMap<String, Run>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    suite: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Line<Run> {
    name: String,
    run: Run,
}

impl Record {
    /// Reads the record in that directory. A missing file is an empty record.
    ///
    /// # Errors
    /// When the file cannot be read or a line is malformed; the error names both.
    pub fn read(out_dir: &Path) -> Result<Record> {
        let path = out_dir.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("{}", path.display())),
        };
        let mut record = Record { path, ..Record::default() };
        for (idx, line) in text.lines().enumerate() {
            record
                .read_line(idx, line)
                .with_context(|| format!("{}, line {}", record.path.display(), idx + 1))?;
        }
        Ok(record)
    }

    fn read_line(&mut self, idx: usize, text: &str) -> Result<()> {
        if idx == 0 {
            self.suite = serde_json::from_str::<Head>(text)?.suite;
        } else {
            let line: Line<Run> = serde_json::from_str(text)?;
            self.runs.insert(line.name, line.run);
        }
        Ok(())
    }

    /// Identity of the last run of the whole suite.
    pub fn suite(&self) -> Option<&str> {
        self.suite.as_deref()
    }

    /// The run of that name.
    pub fn get(&self, name: &str) -> Option<&Run> {
        self.runs.get(name)
    }

    /// Notes that a run of the whole suite begins, and writes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin_suite(&mut self, identity: &str) -> Result<()> {
        self.suite = Some(identity.to_string());
        self.write()
    }

    /// Adds a run, or replaces the one of that name, and writes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&mut self, name: &str, run: Run) -> Result<()> {
        self.runs.insert(name.to_string(), run);
        self.write()
    }

    /// Replaces the file in one step: an interruption loses no earlier run.
    fn write(&self) -> Result<()> {
        let mut text = serde_json::to_string(&Head { suite: self.suite.clone() })? + "\n";
        for (name, run) in &self.runs {
            text += &serde_json::to_string(&Line { name: name.clone(), run })?;
            text.push('\n');
        }
        let new = self.path.with_extension("new");
        let write = || {
            fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
            fs::write(&new, text)?;
            fs::rename(&new, &self.path)
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(repeat: u64) -> Run {
        let json = serde_json::json!({
            "contender": "Quipu", "version": "1", "command": "quipu", "repeat": repeat,
            "suite": "s", "ended": "2026-01-01T00:00:00Z",
            "machine": crate::observe::machine::describe(),
            "outcome": { "figures": [], "stopped": null, "raw": { "b": 0.1 }, "timeline": [] },
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_record_keeps_runs_sorted_and_replaces_those_of_equal_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = Record::read(dir.path()).unwrap();
        assert!(record.suite().is_none() && record.get("a-1").is_none());
        record.put("b-1", run(1)).unwrap();
        record.put("a-1", run(1)).unwrap();
        record.put("b-1", run(2)).unwrap();
        record.begin_suite("s").unwrap();

        let read = Record::read(dir.path()).unwrap();
        assert_eq!(read.suite(), Some("s"));
        assert_eq!(read.get("b-1").unwrap().repeat, 2);
        assert_eq!(read.runs.keys().collect::<Vec<_>>(), ["a-1", "b-1"]);
        let before = fs::read(&read.path).unwrap();
        read.write().unwrap();
        assert_eq!(fs::read(&read.path).unwrap(), before);

        fs::write(&read.path, "{\"suite\":null}\n{\"name\":1}\n").unwrap();
        let error = Record::read(dir.path()).unwrap_err();
        assert!(format!("{error:#}").contains("runs.jsonl, line 2"), "{error:#}");
    }

    /// Keeps the published record readable.
    #[test]
    fn the_record_of_the_repository_is_written_as_it_is_read() {
        let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks");
        let mut record = Record::read(&published).unwrap();
        let dir = tempfile::tempdir().unwrap();
        record.path = dir.path().join(FILE);
        record.write().unwrap();
        let [read, written] =
            [published.join(FILE), record.path].map(|path| fs::read_to_string(path).unwrap());
        for (read, written) in read.lines().zip(written.lines()) {
            assert!(read == written, "{}", &read[..read.len().min(80)]);
        }
        assert_eq!(read.len(), written.len());
    }
}
