//! The 16 matcher cases: an in-process measurement of Quipu's index on one core, by a binary that
//! links it, beside the figures that others published of theirs.

use super::{Planned, Profile, Setting};
use crate::compare::figures::{Better, Figure};
use crate::compare::{Case, Chart, Outcome, Published};
use crate::server::{Installed, QUIPU};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A case's matchers and the published milliseconds: Prometheus and VictoriaMetrics of 2019.
const PUBLISHED: [(&str, f64, f64); 16] = [
    (r#"n="1""#, 272.8, 0.365),
    (r#"n="1",j="foo""#, 138.1, 1.18),
    (r#"j="foo",n="1""#, 134.7, 1.14),
    (r#"n="1",j!="foo""#, 195.8, 1.15),
    (r#"i=~".*""#, 7963.0, 8.72),
    (r#"i=~".+""#, 7590.0, 12.1),
    (r#"i=~"""#, 1142.0, 16.2),
    (r#"i!="""#, 9964.0, 12.2),
    (r#"n="1",i=~".*",j="foo""#, 217.0, 1.17),
    (r#"n="1",i=~".*",i!="2",j="foo""#, 202.5, 1.30),
    (r#"n="1",i!="""#, 486.3, 11.6),
    (r#"n="1",i!="",j="foo""#, 350.8, 5.61),
    (r#"n="1",i=~".+",j="foo""#, 380.9, 6.38),
    (r#"n="1",i=~"1.+",j="foo""#, 89.5, 2.08),
    (r#"n="1",i=~".+",i!="2",j="foo""#, 379.5, 6.56),
    (r#"n="1",i=~".+",i!~"2.*",j="foo""#, 424.6, 6.76),
];

/// The case for a number of series.
struct Matchers {
    series: u64,
    order: Order,
    /// The binary that measures.
    inside: Option<PathBuf>,
}

/// In which order series came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As in the published measurements: neighbours share a label.
    Record,
    /// Neighbours differ in every label.
    Mixed,
}

/// One case as the binary reports it.
#[derive(Deserialize)]
struct Measured {
    expression: String,
    milliseconds: Milliseconds,
}

#[derive(Deserialize)]
struct Milliseconds {
    median: f64,
}

#[derive(Deserialize)]
struct Memory {
    rss_bytes: u64,
}

#[derive(Deserialize)]
struct Report {
    cases: Vec<Measured>,
    memory: Memory,
}

/// 5M series, fewer for a quick run.
pub(super) fn planned(setting: &Setting) -> Result<Vec<Planned>> {
    let (series, repeats) = match setting.profile {
        Profile::Small => (500_000, 1),
        Profile::Full => (5_000_000, 3),
    };
    let case = |order| Matchers { series, order, inside: setting.inside.clone() };
    Ok([Order::Record, Order::Mixed].map(|order| Planned::new(case(order), repeats)).into())
}

impl Case for Matchers {
    fn file_name(&self) -> String {
        match self.order {
            Order::Record => format!("matchers-{}", self.series),
            Order::Mixed => format!("matchers-{}-mixed", self.series),
        }
    }

    fn title(&self) -> String {
        let order = match self.order {
            Order::Record => "registered in the order of record",
            Order::Mixed => "registered in an order in which neighbours differ in every label",
        };
        let series = self.series;
        format!("Matchers over {series} series, {order}; in process, one core, no result cache")
    }

    fn unsupported(&self, contender: &Installed) -> Option<String> {
        if contender.peer.name != QUIPU.name {
            return Some("measured in process: see the published columns".to_string());
        }
        let missing = "no binary that measures from inside: give --inside";
        self.inside.is_none().then(|| missing.to_string())
    }

    fn run(&self, _: &Installed, dir: &Path) -> Result<Outcome> {
        let inside = self.inside.as_ref().context("no binary that measures")?;
        let json = dir.join("matchers.json");
        let status = Command::new(inside)
            .args(["matchers", "--series", &self.series.to_string()])
            .args(["--order", if self.order == Order::Mixed { "mixed" } else { "record" }])
            .arg("--json")
            .arg(&json)
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("cannot start {}", inside.display()))?;
        ensure!(status.success(), "the measurement ended with {status}");
        let raw: serde_json::Value = serde_json::from_slice(&std::fs::read(&json)?)?;
        let report: Report = serde_json::from_value(raw.clone())?;
        let mut figures = report
            .cases
            .iter()
            .map(|one| {
                Figure::new(&figure(&one.expression), one.milliseconds.median, Better::Lower)
            })
            .collect::<Vec<_>>();
        let times = report.cases.iter().map(|one| one.milliseconds.median);
        figures.push(Figure::new("geometric mean, ms", geometric_mean(times), Better::Lower));
        let mib = report.memory.rss_bytes as f64 / f64::from(1 << 20);
        figures.push(Figure::new("RSS, MiB", mib, Better::Lower));
        Ok(Outcome { figures, raw, ..Outcome::default() })
    }

    fn headline(&self) -> Vec<String> {
        vec!["geometric mean, ms".to_string(), "RSS, MiB".to_string()]
    }

    fn charts(&self) -> Vec<Chart> {
        let group = |(matchers, _, _): &(&str, f64, f64)| (matchers.to_string(), figure(matchers));
        let title = "Matchers, ms, less is better".to_string();
        vec![Chart { title, groups: PUBLISHED.iter().map(group).collect() }]
    }

    fn published(&self) -> Vec<Published> {
        let column = |name, time: fn(&(&str, f64, f64)) -> f64, rss_mib| {
            let values = PUBLISHED.iter().map(|one| (figure(one.0), time(one)));
            let mean = geometric_mean(PUBLISHED.iter().map(time));
            let all = [("geometric mean, ms".to_string(), mean), ("RSS, MiB".to_string(), rss_mib)];
            Published { name, values: values.chain(all).collect() }
        };
        vec![
            column("VictoriaMetrics (published 2019, 5M series)", |one| one.2, 400.0),
            column("Prometheus (published 2019, 5M series)", |one| one.1, 3500.0),
        ]
    }
}

fn figure(matchers: &str) -> String {
    format!("`{{{matchers}}}`, ms")
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logarithms = values.map(f64::ln).collect::<Vec<_>>();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_geometric() {
        assert!((geometric_mean([1.0, 100.0].into_iter()) - 10.0).abs() < 1e-9);
    }
}
