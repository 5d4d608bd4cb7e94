//! The cases of record: what `suite` runs, a file each, and how large each is in a profile.
//!
//! ```text
//! RECORDED ─► plan(profile) ─► Planned { case, repeats, limits } ─► compare::run
//! ```
//!
//! Adding a case is a file with a function `planned` and a line in [`RECORDED`].

mod answers;
pub mod dashboards;
pub mod index_operations;
pub mod index_queries;
pub mod ingest;
pub mod loading;
mod matchers;
pub mod queries;
mod shapes;

use crate::compare::Case;
use crate::load::LoadOptions;
use crate::load::limits::Limits;
use crate::load::settle::Settle;
use crate::payload::Protocol;
use crate::workload::RequestFormat;
use anyhow::{Result, ensure};
use std::path::PathBuf;
use std::time::Duration;

/// How much of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// About 15 minutes.
    Small,
    /// Hours: the numbers of series of record.
    Full,
}

/// What cases are given to plan with.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How much of everything.
    pub profile: Profile,
    /// The binary that measures from inside the process, for the cases that need it.
    pub inside: Option<PathBuf>,
    /// Bounds of every load that are not the profile's own.
    pub limits: Limits,
}

/// A case with how often it is run.
pub struct Planned {
    /// What to run.
    pub case: Box<dyn Case>,
    /// Runs of each server.
    pub repeats: u64,
}

impl Planned {
    fn new(case: impl Case + 'static, repeats: u64) -> Planned {
        Planned { case: Box::new(case), repeats }
    }
}

type Plan = fn(&Setting) -> Result<Vec<Planned>>;

/// All kinds of cases in the order of running: name, what it measures, the cases of a setting.
pub const RECORDED: [(&str, &str, Plan); 6] = [
    (
        "ingest",
        "ingestion into an empty server and after a restart, by each protocol",
        ingest::planned,
    ),
    ("queries", "the query types of TSBS", queries::planned),
    (
        "dashboards",
        "30 queries of dashboards and alerts over what monitors a Kubernetes cluster",
        dashboards::planned,
    ),
    (
        "index",
        "index queries by number of series, by range, and beside deleted series",
        index_queries::planned,
    ),
    ("shapes", "ugly shapes of data", shapes::planned),
    ("matchers", "16 sets of matchers over 5M series, in process, on one core", matchers::planned),
];

/// The cases of a setting in the order of running: all, or those of which the kind or the table's
/// file name is named.
///
/// # Errors
/// When a name is unknown.
pub fn plan(setting: &Setting, only: &[String]) -> Result<Vec<Planned>> {
    let (mut planned, mut names) = (Vec::new(), Vec::new());
    for (kind, _, plan) in RECORDED {
        names.push(kind.to_string());
        for one in plan(setting)? {
            let name = one.case.file_name();
            if only.is_empty() || only.iter().any(|wanted| *wanted == kind || *wanted == name) {
                planned.push(one);
            }
            names.push(name);
        }
    }
    let unknown = only.iter().find(|wanted| !names.contains(wanted));
    ensure!(unknown.is_none(), "no cases {unknown:?}; there are {}", names.join(", "));
    Ok(planned)
}

/// How every case of record loads: two workers, requests of 10,000 lines or samples, bounded.
pub fn load_options(setting: &Setting) -> LoadOptions {
    LoadOptions {
        authority: String::new(),
        path: String::new(),
        format: RequestFormat {
            protocol: Protocol::Influx,
            lines_max: 10_000,
            samples_max: 10_000,
        },
        workers: 2,
        give_up_after: Duration::from_secs(60),
        row_interval: Duration::from_secs(2),
        settle: Settle::default(),
        limits: limits(setting),
    }
}

fn limits(setting: &Setting) -> Limits {
    let (minutes, memory_gib, disk_gib) = match setting.profile {
        Profile::Small => (1, 4, 10),
        Profile::Full => (30, 20, 60),
    };
    let given = setting.limits;
    Limits {
        time: given.time.or(Some(Duration::from_secs(60 * minutes))),
        memory_bytes: given.memory_bytes.or(Some(memory_gib << 30)),
        disk_bytes: given.disk_bytes.or(Some(disk_gib << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_table_of_its_own() {
        for profile in [Profile::Small, Profile::Full] {
            let planned =
                plan(&Setting { profile, inside: None, limits: Limits::default() }, &[]).unwrap();
            let names = planned.iter().map(|one| one.case.file_name()).collect::<Vec<_>>();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
            assert!(planned.iter().all(|one| one.repeats > 0));
        }
    }

    #[test]
    fn unknown_cases_are_refused() {
        let setting = Setting { profile: Profile::Small, inside: None, limits: Limits::default() };
        assert!(plan(&setting, &["nonsense".to_string()]).is_err());
        assert!(!plan(&setting, &["shapes".to_string()]).unwrap().is_empty());
    }
}
