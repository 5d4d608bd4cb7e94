//! What a run of the suite printed, line by line.

/// A failure that is of no test.
pub const UNIT_ENDED: &str = "(the unit ended early)";
/// The same, of the server's.
pub const SERVER_PANICKED: &str = "(the server panicked)";
/// What is said of a test that waits for ever.
pub const NO_PROGRESS: &str = "made no progress";

/// What became of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that the suite itself left out: of other servers, or too slow.
    pub skipped: usize,
    /// Tests that failed, each once, with what they said.
    pub failed: Vec<(String, String)>,
}

/// What a line begins with, of those that count.
const OK: &str = "[ok]: ";
const FAILED: &str = "[err]: ";
const EXCEPTION: &str = "[exception]: ";
const SKIPPED: &[&str] = &["[skip]: ", "[ignore]: "];
/// In the report of a run that made no progress: the test that ran.
const HANGING: &str = "=> (IN PROGRESS) ";
/// What stands between a test's name and its file.
const FILE: &str = " in tests/";
/// Lines of words of a test that are kept.
const WORDS_LINES_MAX: usize = 12;

impl Report {
    /// Reads what was printed.
    pub fn parse(printed: &str) -> Report {
        let mut report = Report::default();
        // Whether lines belong to the last failure.
        let mut is_told = false;
        for line in printed.lines() {
            if line.starts_with(OK) {
                report.passed += 1;
                is_told = false;
            } else if let Some(rest) = line.strip_prefix(FAILED) {
                // Outside of tests there is no name, but words.
                match rest.rsplit_once(FILE) {
                    Some((name, _)) => report.fail(name, ""),
                    None => report.fail(UNIT_ENDED, rest),
                }
                is_told = true;
            } else if SKIPPED.iter().any(|start| line.starts_with(start)) {
                report.skipped += 1;
                is_told = false;
            } else if let Some((_, name)) = line.split_once(HANGING) {
                report.fail(name, NO_PROGRESS);
                is_told = false;
            } else if let Some(words) = line.strip_prefix(EXCEPTION) {
                report.fail(UNIT_ENDED, words);
                is_told = true;
            } else if line.starts_with('[') || line.is_empty() {
                is_told = false;
            } else if is_told {
                report.tell(line);
            }
        }
        report
    }

    /// Notes a failure.
    pub fn fail(&mut self, name: &str, words: &str) {
        if !self.failed.iter().any(|(known, _)| known == name) {
            self.failed.push((name.to_owned(), words.to_owned()));
        }
    }

    fn tell(&mut self, line: &str) {
        let Some((_, words)) = self.failed.last_mut() else { return };
        if words.lines().count() < WORDS_LINES_MAX {
            words.push('\n');
            words.push_str(line);
        }
    }

    /// Merges a later try of the same unit: a test fails if it fails in both. A panic of the server in
    /// either try counts.
    #[must_use]
    pub fn merge(&self, later: &Report) -> Report {
        let fails_in =
            |report: &Report, test: &str| report.failed.iter().any(|(name, _)| name == test);
        let mut failed: Vec<_> = later.failed.clone();
        failed.retain(|(test, _)| test == SERVER_PANICKED || fails_in(self, test));
        let panics = self.failed.iter().filter(|(test, _)| test == SERVER_PANICKED);
        failed.extend(panics.filter(|_| !fails_in(later, SERVER_PANICKED)).cloned());
        // A test that fails in one try alone passes.
        let passed_with = |report: &Report| {
            let passes = |name: &str| {
                name != UNIT_ENDED && !failed.iter().any(|(failing, _)| failing == name)
            };
            report.passed + report.failed.iter().filter(|(name, _)| passes(name)).count()
        };
        let passed = passed_with(self).max(passed_with(later));
        Report { passed, skipped: later.skipped, failed }
    }

    /// Adds another unit's.
    pub fn add(&mut self, other: &Report) {
        self.passed += other.passed;
        self.skipped += other.skipped;
        self.failed.extend_from_slice(&other.failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_suite_prints_is_counted() {
        let printed = "\
[ready]: 123
Testing unit/x
[ok]: SET and GET (3 ms)
[ignore]: slow one: Tag: slow denied
[skip]: another
[err]: DEL in two steps in tests/unit/x.tcl
Expected '1' to be equal to '2'
[ok]: EXPIRE (1 ms)
[TIMEOUT]: clients state report follows.
sock55 => (IN PROGRESS) BLPOP waits
*** [err]: DEL in two steps in tests/unit/x.tcl
";
        let report = Report::parse(printed);
        assert_eq!((report.passed, report.skipped), (2, 2));
        let failed: Vec<&str> = report.failed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(failed, ["DEL in two steps", "BLPOP waits"]);
        assert_eq!(report.failed[0].1, "\nExpected '1' to be equal to '2'");
    }

    fn report(passed: usize, failed: &[&str]) -> Report {
        let failed = failed.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        Report { passed, skipped: 0, failed }
    }

    #[test]
    fn a_test_fails_if_it_fails_in_every_try() {
        let merged = report(8, &["A", "B"]).merge(&report(8, &["B", "C"]));
        assert_eq!(merged, report(9, &["B"]));
        assert_eq!(report(9, &["A"]).merge(&report(10, &[])), report(10, &[]));
        assert_eq!(report(3, &[UNIT_ENDED]).merge(&report(10, &[])), report(10, &[]));
        let panicked = report(10, &[SERVER_PANICKED]);
        assert_eq!(panicked.merge(&report(10, &[])), panicked);
        assert_eq!(report(10, &[]).merge(&panicked), panicked);
    }

    #[test]
    fn an_exception_outside_of_tests_fails_the_unit() {
        let report = Report::parse("[exception]: Executing test client: ERR no.\nwhile running\n");
        let words = "Executing test client: ERR no.\nwhile running".to_owned();
        assert_eq!(report.failed, [(UNIT_ENDED.to_owned(), words)]);
    }
}
