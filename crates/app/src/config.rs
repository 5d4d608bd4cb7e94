//! What the flags mean together: where each value comes from, and the settings that follow.
//!
//! ```text
//! command line > environment > file > default   (per flag)   ->   Settings   ->   Config
//! ```
//!
//! [`Settings`] is text with a source, one per flag, and can be shown (secrets hidden);
//! [`Config`] is the parsed, checked whole that the server runs on.

use crate::series_rules;
use engine::StartTimestamps;
use federation::{LegacyConfig, TakenLimits};
use influx_schema::strings::TextLimits;
use net::auth::Credentials;
use net::hosts::Hosts;
use net::listeners::table::{Asking, Listener, Row};
use net::memory;
use net::memory::parse_limit;
use net::secrets;
pub use net::settings::{ConfigError, Settings};
use promql::Dialect;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;
use store::{Durability, LimitScope, PartitionLength, SeriesLimit, StoreConfig};
use vfs::exchange::Folder;
use wire::influx::Precision;

/// Limits and times of the HTTP server.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// The names that requests may have for the server.
    pub hosts: Hosts,
    /// Time without a request.
    pub idle_timeout: Duration,
    /// Time for a request's head.
    pub header_timeout: Duration,
    /// Time for a body, without the part that grows with its size.
    pub body_timeout: Duration,
    /// Time a client may leave an answer untouched.
    pub write_timeout: Duration,
    /// Bytes of one body.
    pub body_size_max: usize,
    /// Bytes of all bodies being received.
    pub bodies_size_max: u64,
}

/// What every listener has.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Which it is.
    pub listener: Listener,
    /// Where to listen; the port may be 0.
    pub address: SocketAddr,
    /// Open connections.
    pub connections_max: usize,
    /// Time without a byte; `None` is for ever.
    pub idle_timeout: Option<Duration>,
}

/// Line protocol over sockets.
#[derive(Clone, Debug)]
pub struct InfluxConfig {
    /// Bytes of one line over TCP.
    pub line_size_max: usize,
    /// How long lines over TCP wait for the store.
    pub retry_duration: Duration,
}

/// Limits of write requests.
#[derive(Clone, Debug)]
pub struct InsertConfig {
    /// Requests at one time.
    pub concurrency_max: usize,
    /// Time to wait for a turn.
    pub queue_duration_max: Duration,
    /// What a request gets that does not ask.
    pub durability: Durability,
    /// Label that takes the database's name, empty for none.
    pub database_label: String,
    /// Unit of timestamps of line protocol where the sender names none.
    pub default_precision: Precision,
    /// How many strings are kept, and how long they may be.
    pub texts: TextLimits,
    /// Whether start timestamps are kept.
    pub keeps_starts: bool,
}

/// Limits of queries.
#[derive(Clone, Debug)]
pub struct QueryConfig {
    /// Language of queries that do not say.
    pub dialect: Dialect,
    /// Time for one query.
    pub timeout: Duration,
    /// Queries at one time.
    pub concurrency_max: usize,
    /// Samples in memory.
    pub samples_max: usize,
    /// Series selected.
    pub series_max: usize,
    /// Bytes of memory.
    pub memory_max: u64,
    /// Bytes of answers that are kept.
    pub cache_size_max: usize,
    /// How far an instant selector looks back.
    pub lookback: Duration,
    /// Whether what is experimental in PromQL is known.
    pub has_experimental: bool,
    /// Whether answers of which something is missing are denied.
    pub denies_partial: bool,
    /// Whether PromQL goes by start timestamps.
    pub start_timestamps: StartTimestamps,
}

/// Everything `quipu serve` runs on.
#[derive(Clone, Debug)]
pub struct Config {
    /// The texts it was made from.
    pub settings: Settings,
    /// The store's directory.
    pub data_dir: PathBuf,
    /// Bytes of memory to use; `u64::MAX` is no limit.
    pub memory_limit: u64,
    /// The store's settings.
    pub store: StoreConfig,
    /// Those that listen, HTTP the first.
    pub listeners: Vec<ListenerConfig>,
    /// Certificate chain and key, when TLS is on.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Time that a stop waits for what is under way.
    pub shutdown_timeout: Duration,
    /// The HTTP server's.
    pub http: HttpConfig,
    /// Line protocol's over sockets.
    pub influx: InfluxConfig,
    /// The keyspace's.
    pub kv: kv::KvConfig,
    /// Time in which a command of Redis that has begun must be complete.
    pub redis_command_timeout: Duration,
    /// Clients of Redis that may use `DEBUG`: `no`, `local` or `yes`.
    pub redis_debug: String,
    /// Who may come in.
    pub credentials: Credentials,
    /// Longest delay of the answer to wrong credentials.
    pub login_delay_max: Duration,
    /// Whether PostgreSQL's clients need not ask for TLS where it is on.
    pub allows_cleartext: bool,
    /// Write requests.
    pub insert: InsertConfig,
    /// Queries.
    pub query: QueryConfig,
    /// Databases that have what was before.
    pub legacy: LegacyConfig,
    /// Where SQL reads and writes files.
    pub files: Option<Folder>,
    /// How often to store our own metrics; `None` is never.
    pub self_scrape_interval: Option<Duration>,
}

impl Config {
    /// Parses and checks all settings.
    ///
    /// # Errors
    /// The first value that does not parse, is out of range, or does not go with the others.
    pub fn new(settings: Settings) -> Result<Config, ConfigError> {
        let memory_limit =
            settings.parsed("memory-limit", |text| parse_limit(text, memory::available()))?;
        let config = Config {
            data_dir: settings
                .path("data-dir")
                .ok_or_else(|| settings.refuse("data-dir", "is empty"))?,
            memory_limit,
            store: store_config(&settings, memory_limit)?,
            listeners: listeners(&settings)?,
            tls: tls(&settings)?,
            shutdown_timeout: settings.duration("shutdown-timeout")?,
            http: http_config(&settings, memory_limit)?,
            influx: influx_config(&settings)?,
            kv: kv_config(&settings, memory_limit)?,
            redis_command_timeout: settings.timeout("redis.command-timeout")?,
            redis_debug: settings.choice("redis.enable-debug-command")?.to_owned(),
            credentials: secrets::credentials(&settings)?,
            login_delay_max: settings.duration("login-delay-max")?,
            allows_cleartext: cfg!(feature = "sql")
                && settings.switch("postgres.allow-cleartext")?,
            insert: insert_config(&settings)?,
            query: query_config(&settings, memory_limit)?,
            legacy: legacy_config(&settings)?,
            files: files(&settings)?,
            self_scrape_interval: match settings.duration("self-scrape-interval")? {
                Duration::ZERO => None,
                interval if interval < Duration::from_secs(1) => {
                    return Err(settings.refuse("self-scrape-interval", "must be 0 or at least 1s"));
                }
                interval => Some(interval),
            },
            settings,
        };
        config.settings.choice("log-level")?;
        config.check_exposure()?;
        Ok(config)
    }

    /// Nobody is let in without credentials unless they come from this machine or the owner says so.
    fn check_exposure(&self) -> Result<(), ConfigError> {
        if self.settings.switch("allow-anonymous")? {
            return Ok(());
        }
        for ListenerConfig { listener, address, .. } in &self.listeners {
            let Row { name, speaks, allows, asking, .. } = listener.row();
            let is_asked = *asking == Asking::Credentials && self.credentials.are_required();
            if address.ip().is_loopback() || is_asked {
                continue;
            }
            return Err(ConfigError::Together(match asking {
                Asking::Credentials => format!(
                    "refusing to listen on {address} without credentials: everybody who can reach \
                     it could {allows}. Set --http-user with --http-password-file, or \
                     --bearer-token-file; or say --allow-anonymous if that is what you want"
                ),
                Asking::Nobody => format!(
                    "refusing to listen on {address} (--{name}-listen): {speaks} has no \
                     credentials, so everybody who can reach it could {allows}. Say \
                     --allow-anonymous if that is what you want"
                ),
            }));
        }
        Ok(())
    }

    /// Requests that may run at a time.
    pub fn requests_max(&self) -> usize {
        self.insert.concurrency_max.saturating_add(self.query.concurrency_max)
    }

    /// Where HTTP is to listen.
    pub fn http_address(&self) -> SocketAddr {
        self.listener(Listener::Http).expect("its address is never empty").address
    }

    /// The settings of a listener, if it listens.
    pub fn listener(&self, listener: Listener) -> Option<&ListenerConfig> {
        self.listeners.iter().find(|one| one.listener == listener)
    }
}

fn legacy_config(settings: &Settings) -> Result<LegacyConfig, ConfigError> {
    Ok(LegacyConfig {
        rules: settings.parsed("legacy", federation::rule::parse)?,
        limits: TakenLimits {
            samples_max: settings.count("legacy-max-samples")? as u64,
            size_max: settings.size_between("legacy-max-size", 1 << 20, 1 << 40)?,
        },
    })
}

/// The share of the memory limit that keys may have.
pub const KV_SHARE: u64 = 4;

fn kv_config(settings: &Settings, memory_limit: u64) -> Result<kv::KvConfig, ConfigError> {
    let memory_max = settings.size_between("kv-memory", 1 << 20, 1 << 44)?;
    let databases = settings.count("kv-databases")?;
    if !(1..=254).contains(&databases) {
        return Err(settings.refuse("kv-databases", "must be 1 to 254"));
    }
    Ok(kv::KvConfig {
        memory_max: memory_max.min(memory_limit / KV_SHARE) as usize,
        durability: match settings.choice("kv-durability")? {
            "always" => kv::KvDurability::Always,
            "no" => kv::KvDurability::No,
            _ => kv::KvDurability::EverySecond,
        },
        databases,
        is_compressed: settings.switch("kv-compression")?,
        // From half of it on the heads of samples are flushed.
        retained_log_size: settings.size_between("wal-size", 1 << 20, 1 << 40)? / 2,
        ..kv::KvConfig::default()
    })
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// The share of the memory limit that the head, bodies and kept answers may have, each.
const SHARE: u64 = 8;

fn store_config(settings: &Settings, memory_limit: u64) -> Result<StoreConfig, ConfigError> {
    let limits = model::limits::Limits {
        labels_per_series_max: settings.count("max-labels-per-series")?,
        label_name_size_max: settings.size("max-label-name-size")? as usize,
        label_value_size_max: settings.size("max-label-value-size")? as usize,
    };
    let retention = settings.duration("retention")?;
    if !retention.is_zero() && retention < Duration::from_secs(86_400) {
        return Err(settings.refuse("retention", "must be 0 or at least 1d"));
    }
    Ok(StoreConfig {
        head_size_max: settings
            .size_between("head-size", 8 << 20, 1 << 40)?
            .min(memory_limit / SHARE) as usize,
        segment_merge_size_max: (memory_limit / (3 * SHARE)).min(192 << 20),
        wal_size_max: settings.size_between("wal-size", 1 << 20, 1 << 40)?,
        partition_length: partition_length(settings)?,
        partitions_per_request_max: settings.count("max-partitions-per-request")?,
        retention_ns: Some(nanos(retention)).filter(|ns| *ns != 0),
        retention_clock_wait_ns: nanos(settings.duration("retention-clock-wait")?),
        future_ns_max: nanos(settings.duration("future-retention")?),
        free_disk_min: settings.size("free-disk-min")?,
        flush_age_ns_max: nanos(settings.timeout("flush-age")?),
        scrub_interval_ns: nanos(settings.duration("scrub-interval")?),
        scrub_rate: settings.size_between("scrub-rate", 64 << 10, 1 << 40)?,
        limits,
        series_limits: series_limits(settings)?,
        exemplars_max: exemplars_max(settings)?,
        ..StoreConfig::standard()
    })
}

/// `None` for what the data directory has.
fn partition_length(settings: &Settings) -> Result<Option<PartitionLength>, ConfigError> {
    match settings.text("partition") {
        "" => Ok(None),
        _ => Ok(PartitionLength::parse(settings.choice("partition")?)),
    }
}

/// Exemplars are in memory, and written as a whole when samples are flushed.
const EXEMPLARS_MAX: usize = 10_000_000;

fn exemplars_max(settings: &Settings) -> Result<usize, ConfigError> {
    match settings.count("max-exemplars")? {
        count if count <= EXEMPLARS_MAX => Ok(count),
        count => {
            let reason = format!("{count} exemplars, the limit is {EXEMPLARS_MAX}");
            Err(settings.refuse("max-exemplars", reason))
        }
    }
}

/// The limit on all series, if there is one, and those of `series-limits`.
fn series_limits(settings: &Settings) -> Result<Vec<SeriesLimit>, ConfigError> {
    let count = |name| Ok(settings.count_or(name, usize::MAX)? as u64);
    let flags = ["max-active-series", "max-new-series-hourly", "max-new-series-daily"];
    let mut limits = Vec::new();
    for (idx, name) in flags.into_iter().enumerate() {
        let max = |place| if place == idx { count(name) } else { Ok(u64::MAX) };
        let limit = SeriesLimit {
            name: name.to_string(),
            scope: LimitScope::All,
            active_max: max(0)?,
            new_hourly_max: max(1)?,
            new_daily_max: max(2)?,
        };
        if settings.count(name)? != 0 {
            limits.push(limit);
        }
    }
    limits.extend(settings.parsed("series-limits", series_rules::parse)?);
    Ok(limits)
}

/// The listeners that have an address; HTTP must.
fn listeners(settings: &Settings) -> Result<Vec<ListenerConfig>, ConfigError> {
    let mut listeners = Vec::new();
    for listener in Listener::ALL {
        let name = listener.row().name;
        let flag = format!("{name}-listen");
        if *listener != Listener::Http && settings.text(&flag).is_empty() {
            continue;
        }
        if *listener == Listener::Postgres && !cfg!(feature = "sql") {
            continue;
        }
        listeners.push(ListenerConfig {
            listener: *listener,
            address: settings.parsed(&flag, parse_address)?,
            connections_max: settings.count(&format!("{name}.max-connections"))?.max(1),
            idle_timeout: Some(settings.duration(&format!("{name}.idle-timeout"))?)
                .filter(|time| !time.is_zero()),
        });
    }
    Ok(listeners)
}

fn tls(settings: &Settings) -> Result<Option<(PathBuf, PathBuf)>, ConfigError> {
    match (settings.path("tls-cert"), settings.path("tls-key")) {
        (Some(cert), Some(key)) => Ok(Some((cert, key))),
        (None, None) => Ok(None),
        _ => Err(ConfigError::Together("--tls-cert and --tls-key belong together".into())),
    }
}

fn influx_config(settings: &Settings) -> Result<InfluxConfig, ConfigError> {
    let line_size_max = settings.size_between(
        "influx.max-line-size",
        1 << 10,
        model::limits::LINE_SIZE_MAX as u64,
    )?;
    let retry_duration = settings.duration("influx.retry-duration")?;
    Ok(InfluxConfig { line_size_max: line_size_max as usize, retry_duration })
}

/// Whether it could be the name in a `Host` header, its port left away.
fn is_host_name(name: &str) -> bool {
    let is_address = name.starts_with('[') && name.ends_with(']');
    is_address || !name.contains(['*', '/', ':', '[', ']']) && !name.contains(char::is_whitespace)
}

/// Names matter where everybody on this machine is trusted: on loopback, without credentials.
fn hosts(settings: &Settings) -> Result<Hosts, ConfigError> {
    let listen = settings.text("http-listen");
    let address = settings.parsed("http-listen", parse_address)?;
    let names = settings.text("http-allowed-hosts").split(',').map(str::trim);
    let mut names: Vec<String> =
        names.filter(|name| !name.is_empty()).map(str::to_string).collect();
    if let Some(bad) = names.iter().find(|name| *name != "*" && !is_host_name(name)) {
        let reason = format!(
            "{bad:?} is no name of a host; write names or addresses only, without http://, port or \
             wildcard, like metrics.example"
        );
        return Err(settings.refuse("http-allowed-hosts", reason));
    }
    let is_trusting = address.ip().is_loopback() && !secrets::credentials(settings)?.are_required();
    if !is_trusting || names.iter().any(|name| name == "*") {
        return Ok(Hosts::Any);
    }
    // Whoever listens on a name is called by it.
    let listen = listen.rsplit_once(':').map(|(name, _)| name.to_string());
    names.extend(listen.filter(|name| !name.is_empty()));
    Ok(Hosts::Local(names))
}

fn http_config(settings: &Settings, memory_limit: u64) -> Result<HttpConfig, ConfigError> {
    let body_size_max =
        settings.size_between("max-body-size", 1 << 10, model::limits::BODY_SIZE_MAX as u64)?;
    let bodies_size_max = settings.size("max-bodies-size")?;
    if bodies_size_max < body_size_max {
        let reason = "must not be smaller than max-body-size";
        return Err(settings.refuse("max-bodies-size", reason));
    }
    Ok(HttpConfig {
        hosts: hosts(settings)?,
        idle_timeout: settings.timeout("http.idle-timeout")?,
        header_timeout: settings.timeout("http.header-timeout")?,
        body_timeout: settings.timeout("http.body-timeout")?,
        write_timeout: settings.timeout("http.write-timeout")?,
        body_size_max: body_size_max as usize,
        bodies_size_max: bodies_size_max.min((memory_limit / SHARE).max(body_size_max)),
    })
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    // `:8428` is how many programs write "all addresses".
    let full = match text.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => text.to_string(),
    };
    full.to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| format!("{text:?} is no address; write it like 127.0.0.1:8428"))
}

fn insert_config(settings: &Settings) -> Result<InsertConfig, ConfigError> {
    Ok(InsertConfig {
        concurrency_max: settings.count_or("max-concurrent-inserts", 8 * cpus())?,
        queue_duration_max: settings.duration("insert-queue-duration")?,
        durability: match settings.choice("durability")? {
            "relaxed" => Durability::Relaxed,
            _ => Durability::Synced,
        },
        database_label: settings.text("influx.database-label").to_string(),
        default_precision: Precision::parse(settings.choice("influx.default-precision")?)
            .unwrap_or_default(),
        texts: TextLimits::of(settings)?,
        keeps_starts: settings.switch("start-timestamps")?,
    })
}

/// Where SQL reads and writes files: not among ours.
fn files(settings: &Settings) -> Result<Option<Folder>, ConfigError> {
    let Some(path) = settings.path("sql.files-dir") else { return Ok(None) };
    let folder = Folder::open(&path);
    let folder = folder.map_err(|error| settings.refuse("sql.files-dir", error.to_string()))?;
    let data = settings.path("data-dir").and_then(|path| std::fs::canonicalize(path).ok());
    if data.is_some_and(|data| folder.path().starts_with(data)) {
        return Err(settings.refuse("sql.files-dir", "is within --data-dir"));
    }
    Ok(Some(folder))
}

fn query_config(settings: &Settings, memory_limit: u64) -> Result<QueryConfig, ConfigError> {
    Ok(QueryConfig {
        dialect: match settings.choice("query.dialect")? {
            "metricsql" => Dialect::MetricsQl,
            _ => Dialect::PromQl,
        },
        timeout: settings.timeout("query.timeout")?,
        concurrency_max: settings.count_or("query.max-concurrency", (2 * cpus()).max(4))?,
        samples_max: settings.count_or("query.max-samples", usize::MAX)?,
        series_max: settings.count_or("query.max-series", usize::MAX)?,
        memory_max: settings.size_between("query.max-memory", 1 << 20, 1 << 50)?,
        cache_size_max: settings.size("query.cache-memory")?.min(memory_limit / SHARE) as usize,
        lookback: settings.timeout("query.lookback-delta")?,
        has_experimental: settings.switch("query.experimental-functions")?,
        denies_partial: settings.switch("query.deny-partial")?,
        start_timestamps: match settings.switch("query.start-timestamps")? {
            true => StartTimestamps::Used,
            false => StartTimestamps::Ignored,
        },
    })
}

/// CPUs this process may use.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::config_file;
    use net::settings::check_environment;

    #[track_caller]
    fn refused(pairs: &[(&str, &str)], part: &str) {
        let error = Settings::from_pairs(pairs)
            .and_then(Config::new)
            .map(|_| ())
            .expect_err("a refusal")
            .to_string();
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }

    #[test]
    fn lists_of_a_file_are_lists_of_a_flag() {
        let values = config_file::parse("f", "legacy = ['url=a', 'url=b']\n").expect("a file");
        assert_eq!(values["legacy"], "url=a; url=b");
        for bad in ["legacy = [1]", "retention = ['1d']"] {
            assert!(config_file::parse("f", bad).is_err(), "{bad}");
        }
        let rule = "url=http://a kind=prometheus until=1";
        let settings = Settings::from_pairs(&[("legacy", rule), ("legacy-max-size", "2MiB")]);
        let config = Config::new(settings.expect("settings")).expect("a configuration");
        assert_eq!((config.legacy.rules.len(), config.legacy.limits.size_max), (1, 2 << 20));
    }

    #[test]
    fn precedence_is_flag_environment_file_default() {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("quipu.toml");
        let text = "retention = \"7d\"\nhead-size = \"64MiB\"\n[query]\ntimeout = \"7s\"\nmax-series = 7\n";
        std::fs::write(&path, text).expect("write");
        let path = path.display().to_string();
        let command_line = |name: &str| match name {
            "config" => Some(path.clone()),
            "query.timeout" => Some("9s".to_string()),
            _ => None,
        };
        let environment = |name: &str| match name {
            "QUIPU_QUERY_TIMEOUT" => Some("8s".to_string()),
            "QUIPU_QUERY_MAX_SERIES" => Some("8".to_string()),
            _ => None,
        };
        let settings = Settings::collect(&command_line, &environment).expect("settings");
        let config = Config::new(settings).expect("config");
        assert_eq!(config.query.timeout, Duration::from_secs(9), "command line");
        assert_eq!(config.query.series_max, 8, "environment");
        assert_eq!(config.store.head_size_max, 64 << 20, "file");
        assert_eq!(config.store.retention_ns, Some(7 * model::sample::NANOS_PER_DAY), "file");
        assert_eq!(config.query.lookback, Duration::from_secs(300), "default");
        assert!(!config.query.has_experimental, "default");
    }

    #[test]
    fn defaults_are_a_whole() {
        let config = Config::new(Settings::from_pairs(&[]).expect("settings")).expect("config");
        assert!(config.http_address().ip().is_loopback());
        assert_eq!(config.self_scrape_interval, Some(Duration::from_secs(10)));
        assert_eq!(config.store.retention_ns, None);
    }

    #[test]
    fn unknown_keys_name_their_neighbour() {
        let error =
            config_file::parse("quipu.toml", "[query]\ntimout = \"1s\"").expect_err("unknown");
        assert!(error.to_string().contains("did you mean \"query.timeout\""), "{error}");
        let misplaced = config_file::parse("quipu.toml", "[storage]\nretention = \"1d\"");
        let error = misplaced.expect_err("unknown").to_string();
        assert!(error.contains("\"storage.retention\": move \"retention\" to the top"), "{error}");
        let error = config_file::parse("quipu.toml", "retention = ").expect_err("broken");
        assert!(error.to_string().contains("line 1"), "{error}");
        let names = ["PATH", "QUIPU_RETENTOIN"].map(str::to_string);
        let warnings = check_environment(names.into_iter());
        assert!(
            matches!(&warnings[..], [one] if one.contains("mean QUIPU_RETENTION?")),
            "{warnings:?}"
        );
    }

    #[test]
    fn variables_of_kubernetes_services_get_no_warning() {
        let service = [
            "QUIPU_SERVICE_HOST",
            "QUIPU_SERVICE_PORT",
            "QUIPU_SERVICE_PORT_HTTP",
            "QUIPU_PORT",
            "QUIPU_PORT_8428_TCP",
            "QUIPU_PORT_8428_TCP_ADDR",
            "QUIPU_PORT_8428_UDP_PROTO",
            "QUIPU_HEADLESS_SERVICE_HOST",
            "QUIPU_HEADLESS_PORT_5433_TCP_PORT",
        ];
        assert_eq!(check_environment(service.map(str::to_string).into_iter()), [""; 0]);
        let others = ["QUIPU_PORT_X", "QUIPU_SERVICE", "QUIPU_", "QUIPU_PORT_1_TCP_X"];
        let warnings = check_environment(others.map(str::to_string).into_iter());
        assert_eq!(warnings.len(), others.len(), "{warnings:?}");
    }

    #[test]
    fn other_addresses_need_credentials() {
        refused(&[("http-listen", "0.0.0.0:8428")], "--allow-anonymous");
        refused(&[("http-listen", ":8428")], "--allow-anonymous");
        refused(&[("http-listen", "[::]:0")], "--allow-anonymous");
        for good in [("allow-anonymous", "true"), ("bearer-token", "t")] {
            let settings = Settings::from_pairs(&[("http-listen", "0.0.0.0:0"), good]);
            Config::new(settings.expect("settings")).expect("config");
        }
    }

    #[test]
    fn line_protocol_has_no_credentials_to_ask_for() {
        let flag = "(--influx-listen)";
        refused(&[("influx-listen", "0.0.0.0:8089")], flag);
        refused(&[("influx-listen", ":8089"), ("bearer-token", "t")], flag);
        let listeners = |pairs: &[(&str, &str)]| {
            let pairs = [pairs, &[("postgres-listen", "")]].concat();
            let settings = Settings::from_pairs(&pairs).expect("settings");
            Config::new(settings).expect("config").listeners
        };
        let by_itself: Vec<Listener> = listeners(&[]).iter().map(|one| one.listener).collect();
        assert_eq!(by_itself, [Listener::Http, Listener::Redis]);
        assert_eq!(listeners(&[("redis-listen", "")]).len(), 1, "keys are switched off");
        let local = listeners(&[("influx-listen", "127.0.0.1:8089")]);
        assert_eq!((local[1].listener, local[1].idle_timeout), (Listener::Influx, None));
        listeners(&[("influx-listen", ":8089"), ("allow-anonymous", "true")]);
    }

    #[test]
    fn names_matter_on_loopback_without_credentials() {
        let hosts = |pairs: &[(&str, &str)]| {
            Config::new(Settings::from_pairs(pairs).expect("settings")).expect("config").http.hosts
        };
        assert!(!hosts(&[]).allow("evil.test"));
        assert!(hosts(&[("http-allowed-hosts", "a.test, b.test")]).allow("b.test:8428"));
        assert!(hosts(&[("http-listen", "localhost:8428")]).allow("localhost"));
        assert!(hosts(&[("http-allowed-hosts", "[fd00::1]")]).allow("[fd00::1]:8428"));
        for bad in ["a.test:8428", "a.test,http://b.test", "*.test", "a.test b.test", "fd00::1"] {
            refused(&[("http-allowed-hosts", bad)], "no name of a host");
        }
        assert_eq!(hosts(&[("http-allowed-hosts", "*")]), Hosts::Any);
        assert_eq!(hosts(&[("bearer-token", "t")]), Hosts::Any);
        assert_eq!(hosts(&[("http-listen", ":1"), ("allow-anonymous", "true")]), Hosts::Any);
    }

    #[test]
    fn bad_values_are_named() {
        refused(&[("query.timeout", "fast")], "--query.timeout (command line)");
        refused(&[("query.timeout", "0")], "longer than 0");
        refused(&[("head-size", "1")], "8388608");
        refused(&[("max-concurrent-inserts", "-1")], "whole number");
        refused(&[("durability", "maybe")], "synced, relaxed");
        refused(&[("http-listen", "")], "--http-listen");
        refused(&[("influx-listen", "x")], "--influx-listen");
        refused(&[("influx.max-line-size", "32MiB")], "--influx.max-line-size");
        refused(&[("tls-cert", "a")], "belong together");
        refused(&[("http-user", "a")], "belong together");
        refused(&[("bearer-token", "a"), ("bearer-token-file", "b")], "not both");
        refused(&[("bearer-token-file", "/nonexistent/token")], "/nonexistent/token");
        refused(&[("max-bodies-size", "1MiB")], "max-body-size");
        refused(&[("retention", "1h")], "at least 1d");
        refused(&[("series-limits", "each-metric active=")], "--series-limits (command line)");
        refused(&[("series-limits", "{a=~\"(\"} active=1")], "--series-limits (command line)");
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = Settings::from_pairs(&[("bearer-token", "geheim")]).expect("settings");
        assert!(settings.shown().all(|(_, text)| text != "geheim"));
        let config = Config::new(settings).expect("config");
        assert!(!format!("{:?}", config.credentials).contains("geheim"));
    }
}
