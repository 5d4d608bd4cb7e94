//! Starts each peer that is installed here, loads a little, counts it, asks each type of query
//! once, and stops it.
//!
//! A peer that is not installed is skipped, and says so: only some machines have all of them.

use super::*;
use crate::instant::{HOUR_NS, parse_rfc3339};
use crate::load::{self, LoadOptions, limits::Limits, settle};
use crate::queries::{self, QueryOptions, QueryReport};
use crate::tsbs::queries::QUERY_TYPES;
use crate::tsbs::{CpuOnly, Scale};
use crate::workload::{RequestFormat, Workload};

/// Ten hosts, six rows, over the twelve hours that the longest query types need.
fn scale() -> Scale {
    let start_ns = parse_rfc3339("2016-01-01T00:00:00Z").unwrap();
    Scale {
        hosts: 10,
        interval_ns: 2 * HOUR_NS,
        start_ns,
        end_ns: start_ns + 12 * HOUR_NS,
        seed: 1,
    }
}

fn options(installed: &Installed, authority: &str, protocol: Protocol) -> LoadOptions {
    LoadOptions {
        authority: authority.to_string(),
        path: installed.write_path(protocol).unwrap().to_string(),
        format: RequestFormat { protocol, lines_max: 7, samples_max: 70 },
        workers: 2,
        give_up_after: Duration::from_secs(5),
        row_interval: Duration::from_secs(1),
        settle: Settle::default(),
        limits: Limits::default(),
    }
}

/// What to run; `None`, with a reason printed, when there is nothing.
fn installed(peer: &'static Peer) -> Option<Installed> {
    let found = peer.find_binary().map(|binary| Installed::new(peer, &binary));
    let reason = match found {
        Some(Ok(installed)) => return Some(installed),
        Some(Err(error)) => format!("{error:#}"),
        None => "it is not installed".to_string(),
    };
    println!("{} is skipped: {reason}", peer.name);
    None
}

fn ask_each_type(peer: &Peer, server: &RunningServer) -> Vec<QueryReport> {
    let authority = server.authority().to_string();
    let language = peer.language.unwrap();
    let options = QueryOptions { authority, language, count: 1, workers: 1, time_max: None };
    let ask = |query_type| queries::run(query_type, &scale(), &options, &server.observed());
    QUERY_TYPES.iter().map(|query_type| ask(query_type).unwrap()).collect()
}

/// Loads the data set by each protocol into a server of its own; gives the reports on queries.
#[track_caller]
fn check(peer: &'static Peer) -> Vec<QueryReport> {
    let Some(installed) = installed(peer) else { return Vec::new() };
    let workload = CpuOnly::new(scale()).unwrap();
    let protocols = peer.doors.iter().map(|door| door.protocol);
    let spoken = protocols.filter(|protocol| installed.unsupported(*protocol).is_none());
    let mut reports = Vec::new();
    for protocol in spoken {
        let dir = tempfile::tempdir().unwrap();
        let (data_dir, log) = (dir.path().join("data"), dir.path().join("server.log"));
        std::fs::create_dir(&data_dir).unwrap();
        let server = RunningServer::start(&installed, &data_dir, &log).unwrap();
        let options = options(&installed, server.authority(), protocol);
        let report = load::run(&workload, &options, &server.observed()).unwrap();
        assert_eq!(report.stopped, None, "{protocol:?}");
        // Called here, because settling would also wait for two quiet seconds.
        if let Some(flush) = peer.flush {
            settle::call(server.authority(), flush, Duration::from_secs(60)).unwrap();
        }
        let used = report.server.unwrap();
        assert!(used.rss_peak_bytes > 1 << 20 && report.disk_flushed.unwrap().files > 0);
        let count = count::stored_samples(peer, server.authority(), workload.span_ns()).unwrap();
        assert_eq!(count, workload.samples() as f64, "{protocol:?}");
        reports = ask_each_type(peer, &server);
        let pid = server.observed().pid.unwrap();
        server.stop().unwrap();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
    reports
}

/// Which types were refused.
fn refused(reports: &[QueryReport]) -> Vec<&str> {
    let refused = reports.iter().filter(|report| report.refused.is_some());
    refused.map(|report| report.query_type.as_str()).collect()
}

#[test]
fn victoria_metrics_runs() {
    assert_eq!(refused(&check(&VICTORIA_METRICS)), [""; 0]);
}

#[test]
fn prometheus_runs_and_refuses_several_metrics_at_once() {
    let reports = check(&PROMETHEUS);
    let refused = refused(&reports);
    assert!(reports.is_empty() || refused.contains(&"double-groupby-all"), "{refused:?}");
    for name in refused {
        let is_of_one_metric = name.starts_with("single-groupby-1") || name == "double-groupby-1";
        assert!(!is_of_one_metric, "{name} refused");
    }
}

#[test]
fn influxdb_runs() {
    let reports = check(&INFLUXDB);
    assert_eq!(refused(&reports), [""; 0]);
    assert!(reports.iter().skip(6).all(|report| report.empty_answers == 0), "{reports:?}");
}

#[test]
fn postgresql_runs() {
    let reports = check(&POSTGRESQL);
    assert_eq!(refused(&reports), [""; 0]);
    assert!(reports.iter().skip(6).all(|report| report.empty_answers == 0), "{reports:?}");
}

#[test]
fn timescaledb_runs() {
    assert_eq!(refused(&check(&TIMESCALEDB)), [""; 0]);
}

#[test]
fn redis_starts_and_stops() {
    let Some(installed) = installed(&REDIS) else { return };
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("server.log");
    let server = RunningServer::start(&installed, dir.path(), &log).unwrap();
    assert!(server.observed().process().unwrap().unwrap().rss_bytes > 1 << 20);
    server.stop().unwrap();
}

#[test]
fn a_dropped_server_leaves_no_process() {
    let Some(installed) = installed(&POSTGRESQL) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (data_dir, log) = (dir.path().join("data"), dir.path().join("server.log"));
    std::fs::create_dir(&data_dir).unwrap();
    let server = RunningServer::start(&installed, &data_dir, &log).unwrap();
    drop(server);
    // A clean end removes it; a killed server would leave it and its descendants behind.
    assert!(!data_dir.join("postmaster.pid").exists());
}

#[test]
fn a_peer_without_doors_says_why() {
    for peer in [&QUIPU, &VICTORIA_METRICS, &PROMETHEUS, &INFLUXDB, &POSTGRESQL, &REDIS] {
        assert_eq!(peer.doors.is_empty(), !peer.doors_missing.is_empty(), "{}", peer.name);
    }
}
