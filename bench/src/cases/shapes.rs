//! Ugly shapes, each into an empty server by remote write, which three of the peers speak.

use super::ingest::Ingest;
use super::loading::Loading;
use super::{Planned, Profile, Setting, load_options};
use crate::instant::{DAY_NS, SECOND_NS, parse_rfc3339};
use crate::payload::Protocol;
use crate::shapes::{SHAPES, ShapeScale, ShapeWorkload};
use crate::workload::Workload;
use anyhow::Result;
use std::time::Duration;

const MINUTE_NS: i64 = 60 * SECOND_NS;

/// Every shape.
pub(super) fn planned(setting: &Setting) -> Result<Vec<Planned>> {
    SHAPES.iter().map(|(name, _, _)| plan_shape(name, setting)).collect()
}

fn plan_shape(name: &str, setting: &Setting) -> Result<Planned> {
    let (series, samples_each) = match setting.profile {
        // Some peers need minutes to close ten thousand measurements of one series.
        Profile::Small if name == "unique-names" => (2000, 1),
        Profile::Small => (10_000, 20),
        Profile::Full => (50_000, 50),
    };
    let interval_ns = match name {
        // A tenth of the pods is replaced every hour: the rows must span many hours.
        "churn" => 30 * MINUTE_NS,
        // One sample each, spread over a day.
        "unique-names" => DAY_NS / series as i64,
        _ => MINUTE_NS,
    };
    let start_ns = parse_rfc3339("2026-01-01T00:00:00Z")?;
    let scale = ShapeScale { series, samples_each, interval_ns, start_ns, seed: 123 };
    let workload = ShapeWorkload::new(name, scale)?;
    let samples = workload.samples() / workload.series();
    let case = Ingest {
        file_name: format!("shape-{name}-{}x{samples}", workload.series()),
        first: Box::new(workload),
        second: None,
        loading: Loading {
            protocols: vec![Protocol::RemoteWrite, Protocol::Influx],
            options: load_options(setting),
            idle: Duration::from_secs(2),
        },
    };
    Ok(Planned::new(case, 1))
}
