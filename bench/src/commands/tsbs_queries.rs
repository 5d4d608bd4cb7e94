//! `tsbs queries`: the suite's query types against a running server.

use crate::flags;
use crate::queries::{self, QueryOptions};
use crate::tsbs::queries::{Language, QUERY_TYPES, QueryType, names};
use anyhow::{Context, Result, ensure};
use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// The command's flags.
pub fn command() -> Command {
    Command::new("queries")
        .about("Run a query type against a running server and report")
        .args(flags::scale_flags())
        .args(flags::server_flags())
        .args(query_flags())
        .arg(flags::value("json", None, "Write the reports to this file"))
        .after_help(format!("Types: {}", names().join(", ")))
}

/// What every run of queries takes.
pub fn query_flags() -> Vec<clap::Arg> {
    vec![
        flags::value("type", Some("all"), "A query type, several by commas, or all"),
        flags::value("count", Some("1000"), "Queries of each type"),
        flags::value("workers", Some("2"), "Threads, each with a connection"),
    ]
}

/// The types that `--type` names.
///
/// # Errors
/// When it names an unknown one.
pub fn query_types(matches: &ArgMatches) -> Result<Vec<QueryType>> {
    match flags::text(matches, "type")? {
        "all" => Ok(QUERY_TYPES.to_vec()),
        names => names.split(',').map(QueryType::parse).collect(),
    }
}

/// Runs the queries.
///
/// # Errors
/// When flags are malformed or a query fails.
pub fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let scale = flags::scale(matches)?;
    let workers = flags::number(matches, "workers")?;
    ensure!((1..=1000).contains(&workers), "--workers must be 1 to 1000");
    let options = QueryOptions {
        authority: flags::authority(matches)?,
        language: Language::PromQl,
        count: flags::number(matches, "count")?,
        workers,
        time_max: None,
    };
    let observed = flags::observed(matches)?;
    let mut reports = Vec::new();
    println!("{}", queries::QueryReport::HEADER);
    for query_type in query_types(matches)? {
        let report = queries::run(&query_type, &scale, &options, &observed)?;
        println!("{report}");
        reports.push(report);
    }
    if let Some(path) = flags::path(matches, "json") {
        std::fs::write(&path, serde_json::to_string_pretty(&reports)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
