//! Samples in, samples out: head, partitions, parts, merge, retention, snapshots.
//!
//! ```text
//! append ► partition ► index (if new) ► arena ► log          select ► view ► read
//!                                         │                             ▲
//!                          seal ► flush ► part ► compact (merge) ───────┘
//! ```
//!
//! Read the files in this order.

pub mod error;
pub mod config;
pub mod store;
pub mod period;
pub mod partition_length;
pub mod partition;
pub mod damaged;
pub mod backoff;
pub mod append;
pub mod histograms;
pub mod starts;
pub mod changes;
pub mod series_limits;
pub mod activity;
pub mod births;
pub mod series_map;
pub mod turn;
pub mod arena;
pub mod log_record;
pub mod seal;
pub mod part;
pub mod merge;
pub mod flush;
pub mod manifest;
pub mod strays;
pub mod compact;
pub mod forget;
pub mod recover;
pub mod opening;
pub mod path_matcher;
pub mod select;
pub mod view;
pub mod outlines;
pub mod damage;
pub mod missing;
pub mod read;
pub mod live;
pub mod catalog;
pub mod cardinality;
pub mod delete;
pub mod retention;
pub mod retention_clock;
pub mod dropped;
pub mod snapshot;
mod book_file;
pub mod metadata;
pub mod exemplar_record;
pub mod exemplars;
pub mod append_exemplars;
pub mod scrub;
pub mod jobs;
pub mod background;
pub mod counters;
pub mod stats;
pub mod verify;
pub mod repair;
#[cfg(test)]
#[path = "../tests/rows/mod.rs"]
mod rows;

pub use append_exemplars::AppendedExemplars;
pub use config::{Durability, StoreConfig};
pub use damage::{Damage, DamagePlace};
pub use damaged::DamagedPartition;
pub use error::{Error, Limit};
pub use exemplars::ExemplarSeries;
pub use missing::{Missing, Noting};
pub use opening::StoreOpening;
pub use period::{PartitionLength, Period};
pub use repair::losses::{LossLine, LostSeries};
pub use repair::{RepairPlan, plan_repair};
pub use scrub::ScrubStats;
pub use select::{SelectLimits, Selection};
pub use series_limits::{LimitScope, Refusals, SeriesLimit};
pub use starts::append::{AppendedStarts, StartBatch};
pub use starts::select::series_of_starts;
pub use stats::{Cardinality, CardinalityRequest, NameCount, NewSeries, StoreStats};
pub use store::{Appended, SNAPSHOTS_DIR, Store, WAL_DIR};
pub use verify::report::{Finding, VerifyReport};
pub use verify::{Progress, Snapshots, verify, verify_with};

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;
