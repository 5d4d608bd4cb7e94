//! What every door can reach: the store, the settings, the gates and the counters.

use crate::config::Config;
use engine::{CacheLimits, ResultCache};
use federation::Legacy;
use influx_schema::records::SchemaRecords;
use influx_schema::retention_policies::RetentionPolicies;
use influx_schema::schema::{FieldRules, MeasurementTable};
use influx_schema::strings::TextTable;
use influx_schema::tag_keys::TagKeys;
use model::Timestamp;
use model::sample::NANOS_PER_SECOND;
use net::activity::Activity;
use net::admission::{BodyMemory, CONTROLS_MAX, Gate, GateKind};
use net::buffers::Buffers;
use net::login_limiter::LoginLimiter;
use net::memory::Memory;
use net::telemetry::Telemetry;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::Store;
use tokio::sync::Notify;
use vfs::Vfs;

/// Answers that took less are not kept: a whole dashboard of them is nothing.
const KEPT_EVALUATION_MIN: Duration = Duration::from_millis(1);

/// What stands on the data directory.
pub struct Opened {
    /// Where the samples are.
    pub store: Arc<Store>,
    /// The schema of InfluxDB data.
    pub schema: Arc<SchemaRecords>,
    /// Where the keys are, unless they are switched off.
    pub kv: Option<Arc<kv::Kv>>,
    /// Where the tables are; none in tests that open a store alone.
    pub tables: Option<Arc<tables::Tables>>,
    /// Parts that are closed because their files are damaged.
    pub closed: ClosedParts,
}

/// Parts of the data directory that are closed because they are damaged, each with the reason.
#[derive(Clone, Debug, Default)]
pub struct ClosedParts {
    /// Keys: every Redis client is refused.
    pub keys: Option<String>,
    /// Tables: every PostgreSQL client is refused.
    pub tables: Option<String>,
    /// Credentials of Redis clients: every client is refused, and the keys are open.
    pub credentials: OnceLock<String>,
}

impl ClosedParts {
    /// Reasons why a part is closed.
    pub fn reasons(&self) -> impl Iterator<Item = &String> {
        self.keys.iter().chain(&self.tables)
    }

    /// The same, and why clients are refused while the part is open.
    pub fn reasons_for_clients(&self) -> impl Iterator<Item = &String> {
        self.reasons().chain(self.credentials.get())
    }
}

/// One running server, without its sockets.
pub struct App {
    /// What the flags say.
    pub config: Config,
    /// Where the samples are.
    pub store: Arc<Store>,
    /// The schema of InfluxDB data, as it is durable.
    pub schema: Arc<SchemaRecords>,
    /// Where the keys are, unless they are switched off.
    pub kv: Option<Arc<kv::Kv>>,
    /// Where the tables are; none in tests that open a store alone.
    pub tables: Option<Arc<tables::Tables>>,
    /// Parts that are closed because their files are damaged.
    pub closed: ClosedParts,
    /// Databases that have what was before.
    pub legacy: Arc<Legacy>,
    /// What measurements InfluxDB's lines had.
    pub measurements: Arc<MeasurementTable>,
    /// Tag keys of measurements that were asked for lately.
    pub tag_keys: TagKeys,
    /// Which retention policies InfluxDB's databases have.
    pub policies: RetentionPolicies,
    /// The strings that they had.
    pub texts: Arc<TextTable>,
    /// Clock and files.
    pub vfs: Arc<dyn Vfs>,
    /// What is counted.
    pub telemetry: Arc<Telemetry>,
    /// How much memory is used, and may be.
    pub memory: Memory,
    /// Slows down guesses of passwords.
    pub logins: LoginLimiter,
    /// Bounds write requests.
    pub inserts: Gate,
    /// Bounds queries.
    pub queries: Gate,
    /// Bounds short work such as status pages.
    pub controls: Gate,
    /// Answers to range queries, for the next of their kind.
    pub results: ResultCache,
    /// Which queries run, and which did.
    pub activity: Activity,
    /// Bounds the memory of bodies.
    pub body_memory: BodyMemory,
    /// Buffers for bodies.
    pub buffers: Buffers,
    /// Where the server listens, with the port that the system chose.
    pub address: SocketAddr,
    /// Wall clock at start.
    pub started_at: Timestamp,
    /// Whether the server is being stopped and wants no more work.
    pub is_stopping: AtomicBool,
    /// Told when a client has said that the server is to end.
    pub stop_wanted: Notify,
}

impl App {
    /// Puts the pieces together.
    pub fn new(
        config: Config,
        opened: Opened,
        legacy: Arc<Legacy>,
        vfs: Arc<dyn Vfs>,
        address: SocketAddr,
    ) -> App {
        let Opened { store, schema, kv, tables, closed } = opened;
        let telemetry = Arc::new(Telemetry::default());
        let insert = &config.insert;
        let wait = insert.queue_duration_max;
        let inserts = Gate::new(GateKind::Insert, insert.concurrency_max, wait, telemetry.clone());
        let query = &config.query;
        let (places, wait) = (query.concurrency_max, query.timeout);
        let queries = Gate::new(GateKind::Query, places, wait, telemetry.clone());
        let wait = insert.queue_duration_max;
        let controls = Gate::new(GateKind::Control, CONTROLS_MAX, wait, telemetry.clone());
        let results = ResultCache::new(CacheLimits {
            bytes_max: query.cache_size_max,
            evaluation_min: KEPT_EVALUATION_MIN,
        });
        let body_memory = BodyMemory::new(config.http.bodies_size_max, wait, telemetry.clone());
        App {
            started_at: vfs.now(),
            buffers: Buffers::default(),
            is_stopping: AtomicBool::new(false),
            stop_wanted: Notify::new(),
            memory: Memory::new(config.memory_limit),
            logins: LoginLimiter::new(config.login_delay_max),
            texts: Arc::new(TextTable::read(&schema, config.insert.texts)),
            measurements: Arc::new(MeasurementTable::read(
                &schema,
                FieldRules {
                    keeps_texts: config.insert.texts.count_max != 0,
                    name_size_max: config.store.limits.label_value_size_max,
                },
            )),
            policies: RetentionPolicies::read(&schema),
            tag_keys: TagKeys::default(),
            config,
            store,
            schema,
            kv,
            tables,
            closed,
            legacy,
            vfs,
            telemetry,
            inserts,
            queries,
            controls,
            results,
            activity: Activity::default(),
            body_memory,
            address,
        }
    }

    /// Has keys and tables refuse writes for the reason for which the store does.
    pub fn refuse_writes(&self) {
        let reason = self.store.read_only_reason();
        if let Some(kv) = &self.kv {
            kv.set_read_only(reason.clone());
        }
        if let Some(tables) = &self.tables {
            tables.set_read_only(reason);
        }
    }

    /// The text of `/metrics`.
    pub fn exposition(&self) -> String {
        let started = self.started_at as f64 / NANOS_PER_SECOND as f64;
        self.telemetry.exposition(&self.store.stats(), &self.results.stats(), &self.memory, started)
    }

    /// `http://host:port` or `https://host:port`, as the owner can open it.
    pub fn url(&self) -> String {
        let scheme = if self.config.tls.is_some() { "https" } else { "http" };
        let port = self.address.port();
        match self.address.ip() {
            ip if ip.is_unspecified() => format!("{scheme}://localhost:{port}"),
            _ => format!("{scheme}://{}", self.address),
        }
    }
}
