//! What Quipu counts about itself, and the text of `/metrics`.
//!
//! Counters are atomics in one struct that every door can reach; nothing here takes a lock on a hot
//! path. [`crate::process`] adds what the operating system knows, the store adds [`StoreStats`].

use crate::listeners::table::Listener;
use crate::memory::Memory;
use crate::metrics_page::{Number, Page};
use crate::process;
use engine::CacheStats;
use std::sync::{Arc, Mutex};
use store::{DamagePlace, StoreStats};

/// An enumeration whose variants are values of a label.
macro_rules! label_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }
        impl $name {
            /// All of them, in order.
            pub const ALL: &[$name] = &[$($name::$variant,)*];
            /// The label's value in `/metrics`.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

label_enum! {
    /// Limits that a client can run into; the label is the flag's name where there is a flag.
    Limit {
        /// Time for a request's head.
        HeaderTimeout = "http.header-timeout",
        /// Time for a body.
        BodyTimeout = "http.body-timeout",
        /// Wrong passwords of an address.
        FailedLogins = "login-delay-max",
        /// Time for the client to take bytes.
        WriteTimeout = "http.write-timeout",
        /// Bytes of one body, as sent or decompressed.
        BodySize = "max-body-size",
        /// Bytes of all bodies.
        BodiesSize = "max-bodies-size",
        /// Write requests at one time.
        InsertQueue = "insert-queue-duration",
        /// Requests for status at one time.
        ControlQueue = "control-queue",
        /// Time for a query, or for its turn.
        QueryTimeout = "query.timeout",
        /// Samples of a query.
        QuerySamples = "query.max-samples",
        /// Series of a query.
        QuerySeries = "query.max-series",
        /// Memory of a query.
        QueryMemory = "query.max-memory",
        /// Samples of a query from legacy backends.
        LegacySamples = "legacy-max-samples",
        /// Bytes of a query from legacy backends.
        LegacySize = "legacy-max-size",
        /// Memory of all of Quipu.
        Memory = "memory-limit",
        /// Bytes of a line over a socket.
        LineSize = "influx.max-line-size",
        /// Time for a command of Redis to arrive.
        CommandTimeout = "redis.command-timeout",
        /// Time that lines over a socket wait for the store.
        LineRetries = "influx.retry-duration",
        /// The store's head.
        HeadSize = "head-size",
        /// The store takes no writes.
        ReadOnly = "read-only",
        /// Anything else with a name of its own in the error's text.
        Other = "other",
    }
}

impl From<engine::Limit> for Limit {
    fn from(limit: engine::Limit) -> Limit {
        match limit {
            engine::Limit::Samples => Limit::QuerySamples,
            engine::Limit::Series => Limit::QuerySeries,
            engine::Limit::QueryMemory => Limit::QueryMemory,
            engine::Limit::Memory => Limit::Memory,
            engine::Limit::ElsewhereSamples => Limit::LegacySamples,
            engine::Limit::ElsewhereSize => Limit::LegacySize,
            engine::Limit::Cost => Limit::Other,
        }
    }
}

impl From<store::Limit> for Limit {
    fn from(limit: store::Limit) -> Limit {
        match limit {
            store::Limit::Series => Limit::QuerySeries,
            store::Limit::ListSize => Limit::QueryMemory,
            store::Limit::ElsewhereSamples => Limit::LegacySamples,
            store::Limit::ElsewhereSize => Limit::LegacySize,
            store::Limit::SelectionCost
            | store::Limit::Partitions
            | store::Limit::RequestPartitions => Limit::Other,
        }
    }
}

impl From<wire::Limit> for Limit {
    fn from(limit: wire::Limit) -> Limit {
        match limit {
            wire::Limit::BodySize | wire::Limit::DecompressedSize => Limit::BodySize,
            wire::Limit::LabelsSize
            | wire::Limit::Samples
            | wire::Limit::Histograms
            | wire::Limit::HistogramBuckets
            | wire::Limit::Exemplars
            | wire::Limit::Symbols
            | wire::Limit::ExtraLabels
            | wire::Limit::Queries
            | wire::Limit::Matchers => Limit::Other,
        }
    }
}

label_enum! {
    /// Protocols that bring samples.
    Protocol {
        /// Line protocol over HTTP.
        Influx = "influx",
        /// Line protocol over TCP.
        InfluxTcp = "influx_tcp",
        /// Line protocol over UDP.
        InfluxUdp = "influx_udp",
        /// Prometheus remote write 1.0.
        RemoteWriteV1 = "remote_write_v1",
        /// Prometheus remote write 2.0.
        RemoteWriteV2 = "remote_write_v2",
        /// Prometheus text and OpenMetrics.
        Exposition = "exposition",
        /// JSON lines.
        JsonLines = "json_lines",
        /// VictoriaMetrics' native format.
        Native = "native",
        /// CSV.
        Csv = "csv",
        /// `COPY` over PostgreSQL's protocol.
        Postgres = "postgres",
        /// Quipu's own metrics.
        SelfScrape = "self_scrape",
    }
}

label_enum! {
    /// Parts of samples that a door refuses or changes, each counted.
    Lossy {
        /// String fields of line protocol, left out of their lines.
        Strings = "influx_string_dropped",
        /// Integers beyond 2^53 that became the nearest float64.
        InexactIntegers = "influx_integer_rounded",
        /// Booleans that became 1 or 0.
        Booleans = "influx_boolean_as_number",
        /// Exemplars that were refused: bad labels, out of order, of no known series.
        Exemplars = "exemplar_refused",
        /// Native histograms, refused.
        Histograms = "native_histogram_refused",
        /// Native histograms whose count became the nearest float64.
        RoundedHistograms = "native_histogram_rounded",
        /// Created timestamps, left aside.
        CreatedTimestamps = "created_timestamp_ignored",
    }
}

/// Counters of one protocol.
#[derive(Default)]
pub struct ProtocolCounters {
    /// Samples stored, native histograms not counted.
    pub samples: Number,
    /// Native histograms stored.
    pub histograms: Number,
    /// Bytes of bodies as sent.
    pub bytes: Number,
    /// Lines or series that the decoder refused.
    pub lines_refused: Number,
    /// Rows that the store refused.
    pub rows_refused: Number,
}

/// Counters of one listener.
#[derive(Default)]
pub struct ListenerCounters {
    /// Connections open now.
    pub open: Number,
    /// Connections accepted since start.
    pub accepted: Number,
    /// Connections that were closed to make room, or for which there was none.
    pub full: Number,
    /// Connections that were closed because nothing was said for too long.
    pub silent: Number,
}

/// Families of `/metrics` that a door has for itself.
pub trait Families: Send + Sync {
    /// Writes all of them.
    fn write(&self, page: &mut Page);
}

/// Everything that is counted.
pub struct Telemetry {
    limits: Vec<Number>,
    protocols: Vec<ProtocolCounters>,
    lossy: Vec<Number>,
    listeners: Vec<ListenerCounters>,
    /// What doors count for themselves.
    families: Mutex<Vec<Arc<dyn Families>>>,
    /// TLS handshakes that failed.
    pub tls_failures: Number,
    /// Write requests being worked on.
    pub inserts_running: Number,
    /// Write requests waiting.
    pub inserts_waiting: Number,
    /// Queries being worked on.
    pub queries_running: Number,
    /// Queries waiting.
    pub queries_waiting: Number,
    /// Requests for status being worked on.
    pub controls_running: Number,
    /// Requests for status waiting.
    pub controls_waiting: Number,
    /// Answers of which something was missing.
    pub partial_answers: Number,
}

impl Default for Telemetry {
    fn default() -> Telemetry {
        fn many<T: Default>(count: usize) -> Vec<T> {
            (0..count).map(|_| T::default()).collect()
        }
        Telemetry {
            limits: many(Limit::ALL.len()),
            protocols: many(Protocol::ALL.len()),
            lossy: many(Lossy::ALL.len()),
            listeners: many(Listener::ALL.len()),
            families: Mutex::default(),
            tls_failures: Number::default(),
            inserts_running: Number::default(),
            inserts_waiting: Number::default(),
            queries_running: Number::default(),
            queries_waiting: Number::default(),
            controls_running: Number::default(),
            controls_waiting: Number::default(),
            partial_answers: Number::default(),
        }
    }
}

impl Telemetry {
    /// Counts a limit that was reached.
    pub fn limit_hit(&self, limit: Limit) {
        self.limits[limit as usize].add(1);
    }

    /// How often a limit was reached.
    pub fn limit_hits(&self, limit: Limit) -> u64 {
        self.limits[limit as usize].get()
    }

    /// The counters of a protocol.
    pub fn protocol(&self, protocol: Protocol) -> &ProtocolCounters {
        &self.protocols[protocol as usize]
    }

    /// The counters of a listener.
    pub fn listener(&self, listener: Listener) -> &ListenerCounters {
        &self.listeners[listener as usize]
    }

    /// Adds what a door counts for itself to `/metrics`.
    pub fn register(&self, families: Arc<dyn Families>) {
        self.families.lock().expect("no panic while held").push(families);
    }

    /// Counts what a door refused or changed; whether it is the first of its kind.
    pub fn lossy(&self, kind: Lossy, count: u64) -> bool {
        let number = &self.lossy[kind as usize];
        let is_first = number.get() == 0;
        number.add(count);
        is_first
    }

    /// The text of `/metrics`.
    pub fn exposition(
        &self,
        stats: &StoreStats,
        results: &CacheStats,
        memory: &Memory,
        started_unix_seconds: f64,
    ) -> String {
        let mut page = Page::default();
        page.family("quipu_build_info", "gauge", "The version, as a label.");
        page.sample("", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        for families in self.families.lock().expect("no panic while held").iter() {
            families.write(&mut page);
        }
        self.write_limits(&mut page);
        self.write_listeners(&mut page);
        self.write_queries(&mut page);
        self.write_inserts(&mut page);
        write_store(&mut page, stats);
        write_damage(&mut page, stats);
        write_results(&mut page, results);
        page.family("quipu_memory_limit_bytes", "gauge", "Memory that may be used.");
        page.sample("", &[], memory.limit() as f64);
        page.family("quipu_memory_used_bytes", "gauge", "Memory of our own in RAM.");
        page.sample("", &[], memory.used() as f64);
        process::write(&mut page, started_unix_seconds);
        page.text
    }

    fn write_limits(&self, page: &mut Page) {
        let help = "Limits that clients ran into, by the limit's name.";
        page.family("quipu_limit_hits_total", "counter", help);
        for (listener, counters) in Listener::ALL.iter().zip(&self.listeners) {
            let name = listener.row().name;
            for (flag, number) in
                [("max-connections", &counters.full), ("idle-timeout", &counters.silent)]
            {
                let limit = format!("{name}.{flag}");
                page.sample("", &[("limit", &limit)], number.get() as f64);
            }
        }
        for (limit, number) in Limit::ALL.iter().zip(&self.limits) {
            page.sample("", &[("limit", limit.as_str())], number.get() as f64);
        }
    }

    fn write_listeners(&self, page: &mut Page) {
        type Choose = fn(&ListenerCounters) -> &Number;
        let families: [(&str, &str, &str, Choose); 2] = [
            ("quipu_connections", "gauge", "Open connections, by listener.", |c| &c.open),
            ("quipu_connections_total", "counter", "Connections accepted, by listener.", |c| {
                &c.accepted
            }),
        ];
        for (name, kind, help, number) in families {
            page.family(name, kind, help);
            for (listener, counters) in Listener::ALL.iter().zip(&self.listeners) {
                let labels = [("listener", listener.row().name)];
                page.sample("", &labels, number(counters).get() as f64);
            }
        }
        let http = self.listener(Listener::Http);
        page.single("quipu_http_connections", "gauge", "Open connections of HTTP.", &http.open);
        let help = "Connections accepted for HTTP.";
        page.single("quipu_http_connections_total", "counter", help, &http.accepted);
        let help = "TLS handshakes that failed.";
        page.single("quipu_tls_failures_total", "counter", help, &self.tls_failures);
    }

    fn write_queries(&self, page: &mut Page) {
        let help = "Queries being worked on.";
        page.single("quipu_queries_running", "gauge", help, &self.queries_running);
        let help = "Queries waiting for their turn.";
        page.single("quipu_queries_waiting", "gauge", help, &self.queries_waiting);
        let help = "Requests for status being worked on.";
        page.single("quipu_controls_running", "gauge", help, &self.controls_running);
        let help = "Requests for status waiting for their turn.";
        page.single("quipu_controls_waiting", "gauge", help, &self.controls_waiting);
        let help = "Answers of which something was missing because it could not be read.";
        page.single("quipu_partial_answers_total", "counter", help, &self.partial_answers);
    }

    fn write_inserts(&self, page: &mut Page) {
        type Choose = fn(&ProtocolCounters) -> &Number;
        let families: [(&str, &str, Choose); 5] = [
            ("quipu_insert_samples_total", "Samples stored, by protocol.", |c| &c.samples),
            ("quipu_insert_histograms_total", "Native histograms stored, by protocol.", |c| {
                &c.histograms
            }),
            ("quipu_insert_bytes_total", "Bytes of bodies as sent, by protocol.", |c| &c.bytes),
            (
                "quipu_insert_lines_refused_total",
                "Lines or series that could not be read, by protocol.",
                |c| &c.lines_refused,
            ),
            (
                "quipu_insert_rows_refused_total",
                "Rows outside the limits on labels or time, by protocol.",
                |c| &c.rows_refused,
            ),
        ];
        for (name, help, number) in families {
            page.family(name, "counter", help);
            for (protocol, counters) in Protocol::ALL.iter().zip(&self.protocols) {
                let labels = [("protocol", protocol.as_str())];
                page.sample("", &labels, number(counters).get() as f64);
            }
        }
        let help = "Pieces of samples that a protocol can say and the store cannot keep.";
        page.family("quipu_insert_lossy_total", "counter", help);
        for (kind, number) in Lossy::ALL.iter().zip(&self.lossy) {
            page.sample("", &[("kind", kind.as_str())], number.get() as f64);
        }
        let help = "Write requests being worked on.";
        page.single("quipu_inserts_running", "gauge", help, &self.inserts_running);
        let help = "Write requests waiting for their turn.";
        page.single("quipu_inserts_waiting", "gauge", help, &self.inserts_waiting);
    }
}

#[rustfmt::skip] // one metric, one line
fn write_store(page: &mut Page, stats: &StoreStats) {
    let families: [(&str, &str, &str, f64); 34] = [
        ("quipu_store_samples_appended_total", "counter", "Samples taken since start.", stats.samples_appended_total as f64),
        ("quipu_store_rows_rejected_total", "counter", "Rows rejected since start.", stats.rows_rejected_total as f64),
        ("quipu_store_series", "gauge", "Series of the newest partition.", stats.series_current as f64),
        ("quipu_store_series_active", "gauge", "Series with a sample in this clock hour, or in the one before if those were more.", stats.series_active as f64),
        ("quipu_store_series_new_total", "counter", "Series registered since start, in each partition anew.", stats.series_new_total as f64),
        ("quipu_store_series_refused_total", "counter", "New series refused since start: a limit on series, or on memory.", stats.series_refused_total as f64),
        ("quipu_store_partitions", "gauge", "Partitions.", stats.partitions as f64),
        ("quipu_store_parts", "gauge", "Parts on disk.", stats.parts as f64),
        ("quipu_store_part_samples", "gauge", "Samples in parts on disk.", stats.part_samples as f64),
        ("quipu_store_part_size_bytes", "gauge", "Bytes of parts on disk.", stats.part_bytes as f64),
        ("quipu_store_index_size_bytes", "gauge", "Bytes of index segments on disk.", stats.index_bytes as f64),
        ("quipu_store_wal_size_bytes", "gauge", "Bytes of the log on disk.", stats.wal_bytes as f64),
        ("quipu_store_head_size_bytes", "gauge", "Bytes of recent samples in memory.", stats.head_bytes as f64),
        ("quipu_store_head_samples", "gauge", "Recent samples in memory.", stats.head_samples as f64),
        ("quipu_store_flushes_total", "counter", "Flushes since start.", stats.flushes_total as f64),
        ("quipu_store_merges_total", "counter", "Merges since start.", stats.merges_total as f64),
        ("quipu_store_corrupt_parts_total", "counter", "Parts set aside as corrupt since start.", stats.corrupt_parts_total as f64),
        ("quipu_store_reencoded_pages_total", "counter", "Pages that did not read back as they were encoded and were encoded again; a fault of Quipu to report.", stats.reencoded_pages_total as f64),
        ("quipu_store_job_failures_total", "counter", "Background jobs that failed since start.", stats.job_failures_total as f64),
        ("quipu_store_wal_commits_total", "counter", "Syncs of the log since start; each serves a group of writes.", stats.wal_commits_total as f64),
        ("quipu_store_wal_commit_seconds_total", "counter", "Time spent in syncs of the log since start.", stats.wal_commit_ns_total as f64 / 1e9),
        ("quipu_store_index_memory_bytes", "gauge", "Memory of the index.", stats.index_memory_bytes as f64),
        ("quipu_store_outline_size_bytes", "gauge", "Parsed headers of columns kept for queries, in memory.", stats.page_header_bytes as f64),
        ("quipu_store_outline_hits_total", "counter", "Headers that a query found parsed since start.", stats.page_header_hits_total as f64),
        ("quipu_store_outline_misses_total", "counter", "Headers that a query had to parse since start.", stats.page_header_misses_total as f64),
        ("quipu_store_exemplars", "gauge", "Exemplars kept.", stats.exemplars.exemplars as f64),
        ("quipu_store_exemplar_series", "gauge", "Series that have exemplars.", stats.exemplars.series as f64),
        ("quipu_store_exemplar_size_bytes", "gauge", "Memory of exemplars.", stats.exemplars.size as f64),
        ("quipu_store_exemplars_taken_total", "counter", "Exemplars taken since start.", stats.exemplars.taken_total as f64),
        ("quipu_store_exemplars_evicted_total", "counter", "Exemplars that went for newer ones since start.", stats.exemplars.evicted_total as f64),
        ("quipu_store_samples_replayed", "gauge", "Samples taken from the log at start.", stats.samples_replayed as f64),
        ("quipu_store_log_cut_bytes", "gauge", "Bytes of an unfinished write that the start cut off the end of the log.", stats.log_cut_bytes as f64),
        ("quipu_store_read_only", "gauge", "Whether writes are refused.", f64::from(u8::from(stats.read_only_reason.is_some()))),
        ("quipu_store_free_disk_bytes", "gauge", "Free bytes on the disk.", stats.free_disk_bytes as f64),
    ];
    for (name, kind, help, value) in families {
        page.family(name, kind, help);
        page.sample("", &[], value);
    }
}

/// What is missing or rotten, and how far the search for it is.
fn write_damage(page: &mut Page, stats: &StoreStats) {
    let help = "Things known to be missing or rotten, by place.";
    page.family("quipu_store_damage", "gauge", help);
    for (place, count) in DamagePlace::ALL.iter().zip(stats.damage) {
        page.sample("", &[("place", place.word())], count as f64);
    }
    let help = "Things ever noticed to be missing or rotten; restarts do not reset it.";
    page.family("quipu_store_damage_noticed_total", "counter", help);
    page.sample("", &[], stats.damage_noticed_total as f64);
    let scrub = &stats.scrub;
    page.family("quipu_store_scrub_bytes_total", "counter", "Bytes read by the scrub since start.");
    page.sample("", &[], scrub.bytes_total as f64);
    let help = "Share of the scrub's pass under way that is done; 1 when there is none.";
    page.family("quipu_store_scrub_pass_ratio", "gauge", help);
    let share = scrub.pass_done as f64 / scrub.pass_bytes.max(1) as f64;
    page.sample("", &[], if scrub.pass_bytes == 0 { 1.0 } else { share.min(1.0) });
    let help = "When the scrub last came to its end, seconds since the epoch; 0 for never.";
    page.family("quipu_store_scrub_finished_timestamp_seconds", "gauge", help);
    page.sample("", &[], scrub.finished_ns.unwrap_or(0) as f64 / 1e9);
}

/// What became of range queries that may reuse kept answers.
fn write_results(page: &mut Page, stats: &CacheStats) {
    let help = "Range queries: hit, no step was evaluated; partial, some were; miss, all were; \
                unfit, all were, and the answer cannot be kept.";
    page.family("quipu_result_cache_queries_total", "counter", help);
    let outcomes = [
        ("hit", stats.hits),
        ("partial", stats.partial),
        ("miss", stats.misses),
        ("unfit", stats.unfit),
    ];
    for (outcome, count) in outcomes {
        page.sample("", &[("outcome", outcome)], count as f64);
    }
    let help = "Steps of range queries that were not evaluated.";
    page.family("quipu_result_cache_steps_reused_total", "counter", help);
    page.sample("", &[], stats.steps_reused as f64);
    let help = "Answers that went because others needed their memory.";
    page.family("quipu_result_cache_evictions_total", "counter", help);
    page.sample("", &[], stats.evictions as f64);
    page.family("quipu_result_cache_entries", "gauge", "Answers kept.");
    page.sample("", &[], stats.entries as f64);
    page.family("quipu_result_cache_size_bytes", "gauge", "Memory of the answers kept.");
    page.sample("", &[], stats.bytes as f64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics_page::check_page;

    #[test]
    fn every_sample_stands_under_its_family() {
        let telemetry = Telemetry::default();
        telemetry.limit_hit(Limit::BodySize);
        telemetry.listener(Listener::Influx).full.add(2);
        telemetry.listener(Listener::Http).open.add(3);
        let text = telemetry.exposition(
            &StoreStats::default(),
            &CacheStats::default(),
            &Memory::new(1),
            1.0,
        );
        check_page(&text);
        assert!(text.contains("quipu_limit_hits_total{limit=\"max-body-size\"} 1\n"));
        assert!(text.contains("quipu_limit_hits_total{limit=\"influx.max-connections\"} 2\n"));
        assert!(text.contains("quipu_connections{listener=\"http\"} 3\n"), "{text}");
        assert!(text.contains("process_resident_memory_bytes"));
    }
}
