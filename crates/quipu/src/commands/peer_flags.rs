//! Flags of other databases, and the flags of Quipu that do the same.
//!
//! Users who replace VictoriaMetrics or Prometheus type the flags of those programs first, with one
//! dash as Go's flag package allows: `quipu -httpListenAddr=:8428`.

use std::ffi::OsString;

/// A flag of another database, and the flag of Quipu or the reason why there is none.
type Row = (&'static str, &'static str);

/// Flags of VictoriaMetrics, vmagent, Prometheus, InfluxDB and Redis, without dashes.
const ROWS: &[Row] = &[
    ("config.file", NO_SCRAPES),
    ("dedup.minScrapeInterval", "Quipu keeps every sample with a timestamp of its own"),
    ("dir", "--data-dir"),
    ("enable-feature", "--query.experimental-functions"),
    ("engine-path", "--data-dir"),
    (
        "graphiteListenAddr",
        "Quipu takes no plaintext of Graphite: let Telegraf send line protocol to --influx-listen",
    ),
    ("http-bind-address", "--http-listen"),
    ("httpAuth.password", "--http-password-file"),
    ("httpAuth.username", "--http-user"),
    ("httpListenAddr", "--http-listen"),
    ("influxListenAddr", "--influx-listen"),
    ("insert.maxQueueDuration", "--insert-queue-duration"),
    ("log.level", "--log-level"),
    ("loggerLevel", "--log-level"),
    ("maxConcurrentInserts", "--max-concurrent-inserts"),
    ("maxInsertRequestSize", "--max-body-size"),
    ("maxLabelNameLen", "--max-label-name-size"),
    ("maxLabelValueLen", "--max-label-value-size"),
    ("maxLabelsPerTimeseries", "--max-labels-per-series"),
    ("maxclients", "--redis.max-connections"),
    ("maxmemory", "--kv-memory"),
    ("memory.allowedBytes", "--memory-limit"),
    ("memory.allowedPercent", "--memory-limit"),
    ("port", "--redis-listen"),
    ("promscrape.config", NO_SCRAPES),
    ("requirepass", "--http-password-file"),
    ("retentionPeriod", "--retention"),
    ("search.latencyOffset", "Quipu answers with the newest samples"),
    ("search.maxConcurrentRequests", "--query.max-concurrency"),
    ("search.maxMemoryPerQuery", "--query.max-memory"),
    ("search.maxQueryDuration", "--query.timeout"),
    ("search.maxSamplesPerQuery", "--query.max-samples"),
    ("search.maxStalenessInterval", "--query.lookback-delta"),
    ("search.maxUniqueTimeseries", "--query.max-series"),
    ("selfScrapeInterval", "--self-scrape-interval"),
    ("storage.maxDailySeries", "--max-new-series-daily"),
    ("storage.maxHourlySeries", "--max-new-series-hourly"),
    ("storage.minFreeDiskSpaceBytes", "--free-disk-min"),
    ("storage.tsdb.path", "--data-dir"),
    ("storage.tsdb.retention.size", "--retention; Quipu has no bound in bytes"),
    ("storage.tsdb.retention.time", "--retention"),
    ("storageDataPath", "--data-dir"),
    ("tls", "--tls-cert with --tls-key"),
    ("tlsCertFile", "--tls-cert"),
    ("tlsKeyFile", "--tls-key"),
    ("web.config.file", "--tls-cert, --tls-key, --http-user and --http-password-file"),
    ("web.enable-admin-api", "nothing: the API is always on"),
    ("web.enable-remote-write-receiver", "nothing: remote write is always on"),
    ("web.listen-address", "--http-listen"),
];

const NO_SCRAPES: &str = "Quipu does not scrape: let Prometheus, vmagent or an OpenTelemetry \
                          collector send to /api/v1/write";

/// Error for `quipu -flag=value`, which names no command.
pub fn error_for_go_flags(arguments: &[OsString]) -> Option<String> {
    let first = arguments.get(1)?.to_str()?;
    let name = first.strip_prefix('-')?;
    let (is_long, name) = match name.strip_prefix('-') {
        Some(name) => (true, name),
        None => (false, name),
    };
    // -h and --help are Quipu's own.
    let name = name.split('=').next().unwrap_or(name);
    if name.is_empty() || matches!(name, "h" | "help" | "V" | "version") {
        return None;
    }
    let hint = hint(name);
    if is_long && hint.is_none() && net::flags::find(name).is_none() {
        return None;
    }
    let hint = hint.unwrap_or_else(|| {
        "`quipu serve --help` lists the flags, which begin with two dashes".to_string()
    });
    Some(format!("{first} is no command. Start the server with `quipu serve`; {hint}"))
}

/// Names the flag of Quipu that does the same as a flag of another database.
pub fn hint(name: &str) -> Option<String> {
    if net::flags::find(name).is_some() {
        return Some(format!("use --{name}"));
    }
    let (theirs, ours) = ROWS.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(name))?;
    match ours.starts_with("--") {
        true => Some(format!("the flag for -{theirs} is {ours}")),
        false => Some(format!("there is no flag for -{theirs}: {ours}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_flag_exists() {
        for (theirs, ours) in ROWS {
            for word in ours.split([' ', ',', ';']).filter(|word| word.starts_with("--")) {
                let name = word.trim_start_matches('-');
                assert!(net::flags::find(name).is_some(), "{theirs}: {word}");
            }
        }
        assert!(ROWS.is_sorted_by_key(|(theirs, _)| theirs), "sort the rows");
    }

    #[test]
    fn flags_of_other_databases_name_ours() {
        let error = |argument: &str| error_for_go_flags(&["quipu".into(), argument.into()]);
        for (argument, expected) in [
            ("-httpListenAddr=:8428", Some("--http-listen")),
            ("--web.listen-address=:9090", Some("--http-listen")),
            ("--data-dir=/x", Some("use --data-dir")),
            ("-promscrape.config=p.yml", Some("does not scrape")),
            ("-unknownFlag", Some("quipu serve --help")),
            ("--unknown-flag", None),
            ("-h", None),
            ("--help", None),
            ("--version", None),
            ("serve", None),
            ("-", None),
        ] {
            let error = error(argument);
            match expected {
                Some(part) => assert!(
                    error.as_ref().is_some_and(|text| text.contains(part)),
                    "{argument}: {error:?}"
                ),
                None => assert_eq!(error, None, "{argument}"),
            }
        }
        assert_eq!(error_for_go_flags(&["quipu".into()]), None);
    }
}
