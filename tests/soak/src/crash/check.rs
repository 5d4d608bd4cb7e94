//! Reads everything back and compares it with what was sent.

use super::ledger::{Fate, Ledger};
use super::sample::{self, FIELDS, LABELS, Place};
use anyhow::{Context, Result, bail};
use quipu_bench::http::HttpClient;
use quipu_bench::percent_encode;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// How many violations of one check are described; one is enough to fail.
const VIOLATIONS_MAX: usize = 20;
const EXPORT_TIMEOUT: Duration = Duration::from_secs(300);

/// What a check found.
#[derive(Debug, Default)]
pub struct Found {
    /// Samples that are there, as they must.
    pub acknowledged_present: u64,
    /// Samples that are there, as they may.
    pub unacknowledged_present: u64,
    /// What must not be.
    pub violations: Vec<String>,
}

/// One line of an export.
#[derive(Deserialize)]
struct ExportedSeries {
    metric: BTreeMap<String, String>,
    /// `null` stands for NaN, which was never sent.
    values: Vec<Option<f64>>,
    timestamps: Vec<i64>,
}

/// Exports all series and checks each sample.
///
/// # Errors
/// When the export fails or is no JSON lines.
pub fn run(authority: &str, ledgers: &[Ledger], value_error_max: f64) -> Result<Found> {
    let mut checker = Checker::new(ledgers, value_error_max);
    let path = format!("/api/v1/export?match[]={}", percent_encode("{__name__=~\".+\"}"));
    let mut client = HttpClient::new(authority, EXPORT_TIMEOUT);
    let mut rest = Vec::new();
    let mut take_line = |line: &[u8]| -> io::Result<()> {
        if !line.is_empty() {
            checker.series(&serde_json::from_slice(line)?);
        }
        Ok(())
    };
    let answer = client
        .get_into(&path, &mut |piece| split_lines(piece, &mut rest, &mut take_line))
        .context("export")?;
    if answer.status != 200 {
        bail!("export: status {}: {}", answer.status, String::from_utf8_lossy(&rest));
    }
    take_line(&rest)?;
    Ok(checker.finish())
}

/// Hands out each whole line of a stream of pieces; `rest` keeps the begun one.
fn split_lines(
    piece: &[u8],
    rest: &mut Vec<u8>,
    take_line: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut lines = piece.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        rest.extend_from_slice(line);
        if rest.ends_with(b"\n") {
            take_line(rest.trim_ascii())?;
            rest.clear();
        } else {
            debug_assert!(lines.peek().is_none(), "only the last line has no end");
        }
    }
    Ok(())
}

struct Checker<'a> {
    ledgers: &'a [Ledger],
    value_error_max: f64,
    /// Per writer and line one bit for each field found.
    seen: Vec<Vec<u8>>,
    found: Found,
}

impl<'a> Checker<'a> {
    fn new(ledgers: &'a [Ledger], value_error_max: f64) -> Checker<'a> {
        let seen = ledgers.iter().map(|ledger| vec![0; ledger.len() as usize]).collect();
        Checker { ledgers, value_error_max, seen, found: Found::default() }
    }

    fn violation(&mut self, text: String) {
        if self.found.violations.len() < VIOLATIONS_MAX {
            self.found.violations.push(text);
        }
    }

    fn series(&mut self, series: &ExportedSeries) {
        let labels = &series.metric;
        let field = FIELDS.iter().position(|field| {
            labels.get("__name__").and_then(|name| name.strip_prefix("crash_")) == Some(field)
        });
        let writer = labels
            .get("writer")
            .and_then(|writer| writer.strip_prefix('w')?.parse::<u64>().ok())
            .filter(|writer| (*writer as usize) < self.ledgers.len());
        let (Some(field), Some(writer)) = (field, writer) else {
            return self.violation(format!("series that was never sent: {labels:?}"));
        };
        if series.values.len() != series.timestamps.len() {
            return self.violation(format!("{labels:?}: values and timestamps differ in number"));
        }
        for (value, timestamp) in series.values.iter().zip(&series.timestamps) {
            match sample::line_of(writer, *timestamp) {
                Some(line) => self.sample(labels, Place { writer, line, field }, *value),
                None => self.violation(format!("{labels:?}: no sample has time {timestamp}")),
            }
        }
    }

    fn sample(&mut self, labels: &BTreeMap<String, String>, place: Place, value: Option<f64>) {
        let fate = self.ledgers[place.writer as usize].fate(place.line);
        if fate == Fate::Unsent {
            return self.violation(format!("{place:?} was never sent"));
        }
        let has_right_labels = labels.len() == LABELS
            && labels
                .iter()
                .all(|(name, value)| sample::label(place, name).as_ref() == Some(value));
        if !has_right_labels {
            return self.violation(format!("{place:?} has labels {labels:?}"));
        }
        let expected = sample::value(place);
        let is_right = value.is_some_and(|value| {
            let error_max = self.value_error_max * expected.abs();
            value.to_bits() == expected.to_bits() || (value - expected).abs() < error_max
        });
        if !is_right {
            return self.violation(format!("{place:?} has value {value:?}, not {expected}"));
        }
        let bit = 1 << place.field;
        let seen = &mut self.seen[place.writer as usize][place.line as usize];
        if *seen & bit != 0 {
            return self.violation(format!("{place:?} is there twice"));
        }
        *seen |= bit;
        match fate {
            Fate::Acknowledged => self.found.acknowledged_present += 1,
            _ => self.found.unacknowledged_present += 1,
        }
    }

    /// Looks for what is missing.
    fn finish(mut self) -> Found {
        let all = (1 << FIELDS.len()) - 1;
        let mut missing = 0;
        for (writer, ledger) in self.ledgers.iter().enumerate() {
            for line in 0..ledger.len() {
                let seen = self.seen[writer][line as usize];
                if ledger.fate(line) == Fate::Acknowledged && seen != all {
                    missing += 1;
                    self.violation(format!(
                        "writer {writer}, line {line} of {}: acknowledged, fields found {seen:03b}",
                        ledger.len()
                    ));
                }
            }
        }
        if missing > 0 {
            self.found.violations.insert(0, format!("{missing} acknowledged lines are missing"));
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.sending(0..10);
        ledger.acknowledge(0..8);
        ledger
    }

    /// The export of those lines, as a server with no fault would give it.
    fn export(lines: std::ops::Range<u64>) -> Vec<ExportedSeries> {
        let mut exported = Vec::new();
        for line in lines {
            let mut text = Vec::new();
            sample::put_line(0, line, &mut text);
            let text = String::from_utf8(text).unwrap();
            let time: i64 = text.trim().rsplit(' ').next().unwrap().parse().unwrap();
            for field in 0..FIELDS.len() {
                let place = Place { writer: 0, line, field };
                let names = ["__name__", "batch", "host", "writer"];
                let pair = |name: &str| (name.to_string(), sample::label(place, name).unwrap());
                exported.push(ExportedSeries {
                    metric: names.map(pair).into(),
                    values: vec![Some(sample::value(place))],
                    timestamps: vec![time / 1_000_000],
                });
            }
        }
        exported
    }

    #[track_caller]
    fn check(exported: &[ExportedSeries], violation: Option<&str>) -> Found {
        let ledgers = [ledger()];
        let mut checker = Checker::new(&ledgers, 0.0);
        exported.iter().for_each(|series| checker.series(series));
        let found = checker.finish();
        match violation {
            None => assert!(found.violations.is_empty(), "{:?}", found.violations),
            Some(text) => {
                assert!(
                    found.violations.iter().any(|v| v.contains(text)),
                    "{:?}",
                    found.violations
                );
            }
        }
        found
    }

    #[test]
    fn a_sound_server_passes() {
        let found = check(&export(0..8), None);
        assert_eq!((found.acknowledged_present, found.unacknowledged_present), (24, 0));
        let found = check(&export(0..10), None);
        assert_eq!((found.acknowledged_present, found.unacknowledged_present), (24, 6));
    }

    #[test]
    fn each_fault_is_found() {
        check(&export(0..7), Some("1 acknowledged lines are missing"));
        check(&export(0..11), Some("was never sent"));
        let mut twice = export(0..8);
        twice.extend(export(3..4));
        check(&twice, Some("is there twice"));
        let mut wrong = export(0..8);
        wrong[5].values[0] = Some(0.5);
        check(&wrong, Some("has value"));
        let mut nan = export(0..8);
        nan[5].values[0] = None;
        check(&nan, Some("has value"));
        let mut foreign = export(0..8);
        foreign[0].metric.insert("__name__".into(), "other".into());
        check(&foreign, Some("series that was never sent"));
        let mut mislabelled = export(0..8);
        mislabelled[0].metric.insert("host".into(), "h60".into());
        check(&mislabelled, Some("has labels"));
        let mut moved = export(0..8);
        moved[0].timestamps[0] = 5;
        check(&moved, Some("no sample has time"));
    }

    #[test]
    fn numbers_are_read_to_the_last_bit() {
        for line in 0..2000 {
            let expected = sample::value(Place { writer: 0, line, field: 1 });
            let text = format!("{{\"metric\":{{}},\"values\":[{expected}],\"timestamps\":[0]}}");
            let series: ExportedSeries = serde_json::from_str(&text).unwrap();
            assert_eq!(series.values[0].map(f64::to_bits), Some(expected.to_bits()), "{expected}");
        }
    }

    #[test]
    fn lines_are_put_together_again() {
        let text = b"one\ntwo\r\n\nthree\nfour";
        for size in 1..text.len() {
            let (mut rest, mut lines) = (Vec::new(), Vec::new());
            for piece in text.chunks(size) {
                split_lines(piece, &mut rest, &mut |line| {
                    lines.push(String::from_utf8(line.into()).unwrap());
                    Ok(())
                })
                .unwrap();
            }
            assert_eq!((lines.join(","), rest), ("one,two,,three".into(), b"four".to_vec()));
        }
    }
}
