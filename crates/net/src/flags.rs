//! The table of flags: one line here is a command-line flag, an environment variable, a key of the
//! configuration file, a row of `/api/v1/status/flags` and a row of `docs/flags.md`.
//!
//! ```text
//! --query.timeout 2m     QUIPU_QUERY_TIMEOUT=2m     [query]
//!                                                   timeout = "2m"
//! ```
//!
//! What the values mean together is decided in the crate `app`.

use crate::flag::{Flag, Group, Kind, flag};
use crate::listeners::table::Listener;
use clap::{Arg, ArgAction, ArgMatches, Command};
use model::similar_name::edit_distance;

/// Every flag of `quipu serve` but those that listeners bring, in the order of `--help`.
#[rustfmt::skip] // one flag, one line
const GROUPS: &[Group] = &[
    Group { heading: "General", flags: &[
        flag("config", Kind::Path, "", "TOML file with any of these flags as keys. Command line and environment win over it."),
        flag("log-level", Kind::Choice(&["error", "warn", "info", "debug", "trace"]), "info", "How much to log to standard error."),
        flag("memory-limit", Kind::Text, "60%", "Memory Quipu may use, as a size or a share of what the machine or its cgroup has. Near it caches shrink, then new series are refused and queries get less; known series go on. 0 is no limit."),
        flag("self-scrape-interval", Kind::Duration, "10s", "How often Quipu stores its own metrics in itself. 0 turns it off."),
        flag("shutdown-timeout", Kind::Duration, "30s", "How long a stop waits for requests that are under way."),
    ]},
    Group { heading: "Storage", flags: &[
        flag("data-dir", Kind::Path, "./quipu-data", "Directory that holds everything. Created if missing; one process at a time."),
        flag("partition", Kind::Choice(&["day", "week", "month", "year"]), "", "How long partitions are. Fixed when the data directory is made: without it an existing one keeps what it has, and a new one gets months. Retention drops whole partitions; each has an index of its own, so day or week suits a short retention, year suits sparse history of many years."),
        flag("retention", Kind::Duration, "0", "Drop samples older than this, such as 90d. 0 keeps them for ever."),
        flag("retention-clock-wait", Kind::Duration, "1d", "How long a clock that jumped ahead must stay ahead before --retention drops anything by it. A jump is waited out, and logged; a clock set back is followed at once. 0 believes every clock at once: so you insist."),
        flag("durability", Kind::Choice(&["synced", "relaxed"]), "synced", "When a write is answered: once it is on disk, or once it is in memory. A request may ask for the other with ?durability=... or the header X-Quipu-Durability."),
        flag("head-size", Kind::Size, "256MiB", "Memory for recent samples. Writes get 503 when flushing cannot keep up with it."),
        flag("wal-size", Kind::Size, "512MiB", "Bytes of log on disk that make Quipu flush recent samples; bounds the time a restart takes."),
        flag("flush-age", Kind::Duration, "1h", "Flush recent samples at the latest after this time."),
        flag("future-retention", Kind::Duration, "2d", "Refuse samples further in the future than this."),
        flag("scrub-interval", Kind::Duration, "30d", "Read every part, index and side file once in this time, to find rot before a query does. 0 turns it off."),
        flag("scrub-rate", Kind::Size, "16MiB", "Bytes a second that are read for it."),
        flag("free-disk-min", Kind::Size, "100MiB", "Below this much free disk space all protocols refuse writes (HTTP 503, Redis MISCONF, PostgreSQL 53100) and /-/ready answers 503; reads go on."),
    ]},
    Group { heading: "Network", flags: &[
        flag("http-listen", Kind::Address, "127.0.0.1:8428", "Address of the HTTP server. Anything but loopback needs credentials or --allow-anonymous."),
        flag("http-allowed-hosts", Kind::Text, "", "Names, apart by commas, by which clients may call a server on loopback that asks for no credentials, besides localhost and addresses of loopback; any other gets 403, so that no site's page can read through a name that it makes mean this machine. * allows all."),
        flag("allow-anonymous", Kind::Switch, "false", "Serve everybody who can reach a non-loopback address, without credentials."),
        flag("http-user", Kind::Text, "", "User name of basic authentication."),
        flag("http-password", Kind::Secret, "", "Password of basic authentication. Prefer the file or QUIPU_HTTP_PASSWORD: command lines are public."),
        flag("http-password-file", Kind::Path, "", "File that holds the password of basic authentication."),
        flag("bearer-token", Kind::Secret, "", "Token for `Authorization: Bearer ...` and InfluxDB's `Token ...`."),
        flag("bearer-token-file", Kind::Path, "", "File that holds the token."),
        flag("login-delay-max", Kind::Duration, "1s", "Longest delay of the answer to a wrong password or token. It grows with each failure of an address; eight answers to an address wait at one time, and further attempts are refused. 0 turns both off."),
        flag("tls-cert", Kind::Path, "", "PEM file with the certificate chain; turns TLS on, together with --tls-key."),
        flag("tls-key", Kind::Path, "", "PEM file with the private key."),
        flag("http.max-connections", Kind::Count, "10000", "Open connections. At the limit the longest idle one is closed; when none is idle, the new one gets 503. All listeners together never have more than half of the process' file limit."),
        flag("http.idle-timeout", Kind::Duration, "90s", "Close a connection that has been without a request for this long."),
        flag("http.header-timeout", Kind::Duration, "10s", "Close a connection whose request head is not complete after this time."),
        flag("http.body-timeout", Kind::Duration, "60s", "Answer 408 when a body has come slower than 64 KiB a second for this long."),
        flag("http.write-timeout", Kind::Duration, "60s", "Give up on a client that takes no byte of an answer for this long."),
    ]},
    Group { heading: "Ingestion", flags: &[
        flag("max-body-size", Kind::Size, "128MiB", "Bytes of a request's body, as sent and again once decompressed. More gets 413. 128 MiB at most."),
        flag("max-bodies-size", Kind::Size, "512MiB", "Bytes of all bodies being received or decompressed at one time. More wait, then get 503."),
        flag("max-concurrent-inserts", Kind::Count, "0", "Write requests being worked on at one time. 0 is 8 per CPU."),
        flag("insert-queue-duration", Kind::Duration, "10s", "How long a write request waits for its turn before it gets 503."),
        flag("max-partitions-per-request", Kind::Count, "1000", "Partitions that one request may make by samples of as many days, weeks, months or years. Its samples for others are refused; sent again they are stored."),
        flag("max-labels-per-series", Kind::Count, "64", "Labels of one series, its name included. Series with more are refused."),
        flag("max-label-name-size", Kind::Size, "1KiB", "Bytes of a label's name."),
        flag("max-label-value-size", Kind::Size, "4KiB", "Bytes of a label's value."),
        flag("max-active-series", Kind::Count, "0", "Series with a sample in the last hour or two. Beyond it new series are refused, known ones go on. 0 is no limit."),
        flag("max-new-series-hourly", Kind::Count, "0", "New series in one clock hour. 0 is no limit."),
        flag("max-new-series-daily", Kind::Count, "0", "New series on one UTC day. 0 is no limit."),
        flag("series-limits", Kind::Text, "", "The same limits for the series of each metric, or for those that a selector matches; rules apart by semicolons: 'each-metric active=100000; {namespace=\"dev\"} active=50000 hourly=10000 daily=20000'."),
        flag("max-exemplars", Kind::Count, "100000", "Exemplars kept, of all series together; the oldest go first. Each takes some 300 bytes of memory, 1 KiB at most. 0 keeps none."),
        flag("start-timestamps", Kind::Switch, "false", "Keep the start timestamps that samples and histograms of remote write 2.0 and JSON lines come with, and those of OpenMetrics' _created lines, which then make no series of their own, for --query.start-timestamps. Each takes as much room as a sample until it is in a part, little there."),
        flag("influx.default-precision", Kind::Choice(&["ns", "us", "ms", "s", "auto"]), "ns", "Unit of timestamps of line protocol that comes without precision=, over HTTP and over sockets. auto tells it by the size of each number: s below 5e9, ms below 5e12, us below 5e15. /api/v3/write_lp is auto always."),
        flag("influx.max-strings", Kind::Count, "100000", "Different strings that fields of line protocol may have in all. A field with one more is left out of its line, and said. 0 leaves all out, without a word."),
        flag("influx.max-string-size", Kind::Size, "1KiB", "Bytes of a string field. A longer one is left out of its line, and said. 64 KiB at most."),
        flag("influx.database-label", Kind::Text, "db", "Label that takes the db= or bucket= of a line-protocol request. Empty: none."),
    ]},
    Group { heading: "Queries", flags: &[
        flag("query.timeout", Kind::Duration, "2m", "Time a query may take, waiting included. ?timeout= may ask for less."),
        flag("query.max-concurrency", Kind::Count, "0", "Queries being worked on at one time; others wait. 0 is 2 per CPU, at least 4."),
        flag("query.max-samples", Kind::Count, "50000000", "Samples one query may hold in memory."),
        flag("query.max-series", Kind::Count, "1000000", "Series one query may select."),
        flag("query.max-memory", Kind::Size, "1GiB", "Memory one query may hold."),
        flag("query.cache-memory", Kind::Size, "64MiB", "Memory for answers to range queries, of which queries that repeat with a moved window reuse what did not change. An eighth of memory-limit at most. ?nocache=1 goes without, 0 turns it off."),
        flag("query.lookback-delta", Kind::Duration, "5m", "How far an instant selector looks back for a sample."),
        flag("query.deny-partial", Kind::Switch, "false", "Answer 503 instead of leaving out what cannot be read. ?deny_partial_response=1 and =0 say so for one request."),
        flag("query.experimental-functions", Kind::Switch, "false", "Know what Prometheus calls experimental in PromQL: functions such as info() and mad_over_time(), limitk and limit_ratio, anchored and smoothed selectors, fill modifiers."),
        flag("query.start-timestamps", Kind::Switch, "false", "Let rate, increase, irate and resets of PromQL go by start timestamps that were kept, and start_timestamp() tell them, as Prometheus' use-start-timestamps does."),
        flag("legacy", Kind::List, "", "A database that has the samples from before this server came, asked by every read that begins before its until, which quipu migrate --move-until moves back over what it has copied: 'url=http://old:8428 kind=victoriametrics until=2026-11-22T00:00:00Z'; kinds are victoriametrics, prometheus and influxdb, other words user=, password-file=, bearer-token-file=, ca= and timeout=10s; aggregates=there or aggregates=here, and export=blocks or export=lines, of a VictoriaMetrics; database= and retention-policy= of an InfluxDB. May be said many times; of equal timestamps what is here counts, then what the first one has. See docs/legacy.md."),
        flag("legacy-max-samples", Kind::Count, "20000000", "Samples that one query may take from all legacy backends, each 16 bytes of memory. More is an error."),
        flag("legacy-max-size", Kind::Size, "1GiB", "Bytes of answers that one query may take from all legacy backends. More is an error."),
        flag("query.dialect", Kind::Choice(&["promql", "metricsql"]), "promql", "Language of queries that do not say dialect=..."),
    ]},
];

/// All groups, in the order of `--help`.
pub fn groups() -> impl Iterator<Item = &'static Group> {
    GROUPS.iter().chain(Listener::ALL.iter().filter_map(|listener| listener.row().group.as_ref()))
}

/// All flags, without their groups.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    groups().flat_map(|group| group.flags.iter())
}

/// The flag of that name.
pub fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
}

/// The environment variable that sets a flag: `QUIPU_` and the name in capitals.
pub fn environment_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("QUIPU_{name}")
}

/// The known name that looks most like `name`, for error messages.
pub fn nearest(name: &str) -> &'static str {
    all().map(|flag| flag.name).min_by_key(|known| edit_distance(name, known)).unwrap_or("config")
}

/// The flag whose name is most like that one, if no more than a third of it is different.
pub fn similar(name: &str) -> Option<&'static str> {
    Some(nearest(name)).filter(|known| 3 * edit_distance(name, known) <= name.chars().count())
}

/// The subcommand `serve` with every flag of the table.
pub fn serve_command() -> Command {
    let mut command = Command::new("serve")
        .about("Runs the database until it is told to stop")
        .override_usage("quipu serve [--FLAG VALUE]...")
        .next_line_help(true)
        .after_help(
            "Each flag is also an environment variable (--query.timeout: QUIPU_QUERY_TIMEOUT) and a \
             key of the TOML file. The command line wins over the environment, the environment over \
             the file.\nSizes: 64KiB, 256MiB, 1GiB. Durations: 500ms, 30s, 1h30m, 90d. A BOOL stands behind =, \
             or is left out: --allow-anonymous is --allow-anonymous=true.",
        );
    for group in groups() {
        for flag in group.flags {
            command = command.arg(argument(flag).help_heading(group.heading));
        }
    }
    command
}

fn argument(flag: &'static Flag) -> Arg {
    let mut help = flag.help.to_string();
    if let Kind::Choice(words) = flag.kind {
        help.push_str(&format!(" One of: {}.", words.join(", ")));
    }
    if !flag.default.is_empty() {
        help.push_str(&format!(" [default: {}]", flag.default));
    }
    let argument =
        Arg::new(flag.name).long(flag.name).value_name(flag.kind.placeholder()).help(help);
    match flag.kind {
        Kind::List => argument.num_args(1).allow_hyphen_values(false).action(ArgAction::Append),
        Kind::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => argument.num_args(1).allow_hyphen_values(false),
    }
}

/// What the command line says about a flag.
pub fn from_command_line(matches: &ArgMatches, name: &str) -> Option<String> {
    let all: Vec<&str> = matches.get_many::<String>(name)?.map(String::as_str).collect();
    Some(all.join("; "))
}

/// `docs/flags.md`, generated.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Flags of `quipu serve`\n\n\
         Generated from `crates/net/src/flags.rs`; a test compares.\n\
         Each flag is also an environment variable (`--query.timeout` is `QUIPU_QUERY_TIMEOUT`) and a key of the TOML file that `--config` names (`query.timeout`, or `timeout` under `[query]`).\n\
         The command line wins over the environment, the environment over the file, the file over the default.\n\
         A BOOL of the command line stands behind `=`, or is left out: `--allow-anonymous` is `--allow-anonymous=true`.\n",
    );
    for group in groups() {
        page.push_str(&format!(
            "\n## {}\n\n| flag | value | default | what it does |\n|---|---|---|---|\n",
            group.heading
        ));
        for flag in group.flags {
            let value = match flag.kind {
                Kind::Choice(words) => words.join(", "),
                kind => kind.placeholder().to_string(),
            };
            let default = match flag.default {
                "" => String::new(),
                text => format!("`{text}`"),
            };
            page.push_str(&format!(
                "| `--{}` | {value} | {default} | {} |\n",
                flag.name, flag.help
            ));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_environment_names_too() {
        let mut names: Vec<String> = all().map(|flag| environment_name(flag.name)).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(environment_name("query.max-series"), "QUIPU_QUERY_MAX_SERIES");
    }

    #[test]
    fn the_command_is_sound() {
        serve_command().debug_assert();
    }

    #[test]
    fn a_list_may_be_said_many_times() {
        let said = |arguments: &[&str]| {
            let matches = serve_command().try_get_matches_from(arguments).expect("arguments");
            from_command_line(&matches, "legacy")
        };
        let twice = said(&["serve", "--legacy", "url=a until=1", "--legacy=url=b"]);
        assert_eq!(twice.as_deref(), Some("url=a until=1; url=b"));
        assert_eq!(said(&["serve"]), None);
        let many = ["serve", "--retention", "1d", "--retention", "2d"];
        assert!(serve_command().try_get_matches_from(many).is_err(), "no list");
    }

    #[test]
    fn typing_errors_find_their_flag() {
        assert_eq!(nearest("query.timout"), "query.timeout");
        assert_eq!(nearest("datadir"), "data-dir");
        assert_eq!(similar("query-timeout"), Some("query.timeout"));
        assert_eq!(similar("storage.tsdb.path"), None);
    }

    /// `UPDATE=1 cargo test -p net` writes the page anew.
    #[test]
    fn the_reference_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/flags.md");
        let page = reference_page();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &page).expect("write docs/flags.md");
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(stored == page, "docs/flags.md is old; run UPDATE=1 cargo test -p net");
    }
}
