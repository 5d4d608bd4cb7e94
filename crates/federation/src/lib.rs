//! Legacy backends: a VictoriaMetrics, a Prometheus or an InfluxDB that still has the samples from before Quipu
//! came, asked by every read that begins before `until` (`docs/legacy.md`, decision 41).
//!
//! ```text
//! --legacy 'url=.. kind=.. until=..' ─ rule ─► backend ─ registered ─► store::Elsewhere
//!        DATA/legacy ─ until ──────────────────►│
//!                                                 │ a place, a client, a deadline
//!                                                 ├─ samples     /api/v1/export, remote read
//!                                                 ├─ folding     aggregations that it makes itself
//!                                                 ├─ catalogue   series, labels, values
//!                                                 └─ influx      both in InfluxQL
//! ```
//!
//! The store decides when to ask, whom to believe and what to do without; here is how. Methods
//! block, and the store calls them on threads of their own.

#![allow(clippy::disallowed_methods, reason = "settings, keys and /proc are not the store's files")]

mod backend;
mod catalogue;
mod counters;
mod folding;
mod faults;
mod influx;
mod limits;
mod lists;
mod matrix;
mod remote_store;
pub mod rule;
mod samples;
mod selector;
mod unpacking;
pub mod until;

pub use backend::Backend;
use influx_schema::schema::Lender;
use influx_schema::schema::MeasurementTable;
use influx_schema::strings::TextTable;
pub use limits::TakenLimits;
use net::telemetry::Telemetry;
use rule::Rule;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::{Elsewhere, Store};
use until::{Home, text_of};
use vfs::Vfs;
use wire::influx::TEXT_SUFFIX;

/// What the flags say about legacy backends.
#[derive(Clone, Debug, Default)]
pub struct LegacyConfig {
    /// Each of them.
    pub rules: Vec<Rule>,
    /// Limits of what one query takes from them.
    pub limits: TakenLimits,
}

/// Parts of a server that the backends are registered with.
pub struct Registration<'a> {
    /// Clock and files.
    pub vfs: &'a Arc<dyn Vfs>,
    /// The data directory.
    pub data_dir: &'a Path,
    /// The store whose reads ask the backends.
    pub store: &'a Store,
    /// Strings of InfluxDB's fields.
    pub strings: &'a Arc<TextTable>,
    /// Measurements of InfluxDB.
    pub measurements: &'a Arc<MeasurementTable>,
    /// Label that takes the name of InfluxDB's database.
    pub database_label: &'a str,
    /// Counters.
    pub telemetry: &'a Telemetry,
}

/// All of them.
pub struct Legacy {
    backends: Vec<Arc<Backend>>,
    /// What is wrong with the file of what was moved; held by whoever writes it.
    problem: Mutex<Option<String>>,
}

impl Legacy {
    /// What the flags say; nobody is asked yet.
    ///
    /// # Errors
    /// A URL or a file that cannot be used.
    pub fn new(config: &LegacyConfig) -> anyhow::Result<Legacy> {
        let one = |rule: &Rule| Backend::new(rule.clone(), config.limits).map(Arc::new);
        let backends = config.rules.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Legacy { backends, problem: Mutex::default() })
    }

    /// Lets reads of a store ask the backends, and counts what comes of it.
    pub fn register(&self, at: &Registration<'_>) {
        self.recall(Home { vfs: at.vfs.as_ref(), dir: at.data_dir });
        if self.backends.is_empty() {
            return;
        }
        self.learn(at);
        self.backends.iter().for_each(|one| one.set_clock(Arc::clone(at.vfs)));
        let all = self.backends.iter().map(|one| Arc::clone(one) as Arc<dyn Elsewhere>);
        at.store.ask_too(all.collect());
        let all = self.backends.iter().map(|one| (one.url().to_string(), one.counters())).collect();
        at.telemetry.register(Arc::new(counters::All(all)));
    }

    /// Has an InfluxDB's measurements and strings among those that are here.
    fn learn(&self, at: &Registration<'_>) {
        let known: Vec<_> = self.backends.iter().filter_map(|one| one.influx()).collect();
        for one in &known {
            one.settle(at.database_label, at.strings, at.measurements);
        }
        if !known.is_empty() && at.strings.is_on() {
            at.store.hide_names(TEXT_SUFFIX);
        }
        let lenders = known.into_iter().map(|one| Arc::clone(one) as Arc<dyn Lender>);
        at.measurements.borrow_from(lenders.collect());
    }

    /// Says in the log which of them answer. One that does not is no reason not to start.
    pub fn look(&self) {
        for backend in &self.backends {
            let until = text_of(backend.until_now());
            if until == until::NOTHING {
                tracing::info!(
                    "{} is not asked any more, for all of it is here: --legacy may go",
                    backend.name()
                );
                continue;
            }
            match backend.look() {
                Ok(true) => tracing::info!("{} answers; it is asked up to {until}", backend.name()),
                Ok(false) => tracing::warn!(
                    "{} answers, and has no series in the 30 days before {until}: is it the right \
                     one? (--legacy)",
                    backend.name()
                ),
                Err(reason) => tracing::warn!(
                    "{} does not answer: {reason}; until it does, answers that begin before \
                     {until} are not whole, and say so",
                    backend.name()
                ),
            }
        }
    }
}
