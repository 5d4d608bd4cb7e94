//! Samples in, samples out: head, partitions, parts, merge, retention, snapshots.
//!
//! ```text
//! append ► partition ► index (if new) ► arena ► log          select ► view ► read
//!                                         │                             ▲
//!                          seal ► flush ► part ► compact (merge) ───────┘
//! ```
//!
//! Read the files in this order.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

// What the store is, and the parts that it hands on to.
mod store;
mod opening;
mod rebuild;
mod root_manifest;
mod recover;
mod config;
mod error;
// What all parts stand on.
mod ground;
mod file_names;
mod locks;
mod named_log;
mod needs;
mod health;
mod signals;
mod counters;
mod shared;
mod store_log;
mod partitions;
mod retention;
mod retention_clock;
// What is written.
mod appender;
mod append;
mod refusal;
mod refused_rows;
mod row_labels;
mod append_hidden;
mod append_exemplars;
mod histograms;
mod starts;
mod series_limits;
mod activity;
mod active_series;
mod changes;
// A partition.
mod period;
mod partition_length;
mod partition;
mod known_series;
mod new_series;
mod series_map;
mod head;
mod arena;
mod log_record;
mod unflushed;
mod seal;
mod disk_parts;
mod live_part;
mod manifest;
mod part;
// What is asked.
mod questions;
mod reader;
mod elsewhere;
mod missing;
mod path_matcher;
mod select;
mod view;
mod read;
mod glance;
mod page_headers;
mod live;
mod catalog;
mod cardinality;
mod stats;
// What the background does.
mod jobs;
mod backoff;
mod flush;
mod merger;
mod merge;
mod segment_jobs;
mod index_gc;
mod expire;
mod rollover;
mod scrub;
mod partition_files;
mod strays;
// What may be done by hand.
mod delete;
mod emptied;
mod unfinished_deletion;
mod snapshot;
mod backup;
mod restoring;
// Small files beside the partitions.
mod side_file;
mod identity;
mod metadata;
mod metadata_files;
mod exemplar_record;
mod exemplars;
mod dropped;
// What is damaged, and what is done about it.
mod damage;
mod damage_review;
mod damaged;
mod data_directory;
mod verify;
mod repair;
#[cfg(test)]
#[path = "../tests/rows/mod.rs"]
mod rows;
mod string_numbers;

/// What tests, fuzzers and measurements reach inside for.
#[doc(hidden)]
pub mod inside {
    pub use crate::arena::CHUNK_WORDS;
    pub use crate::backup::fuzz_backup_manifest;
    pub use crate::histograms::lower::Lowered;
    pub use crate::histograms::marker::Marker;
    pub use crate::manifest::Manifest;
    pub use crate::merge::fuzzing::fuzz_merge;
    pub use crate::part::fuzzing::fuzz_part;
    pub use crate::series_map::{GROUP_ROWS, SeriesMap, Target};
}

pub use append_exemplars::AppendedExemplars;
pub use backup::{BackupFile, BackupManifest, BlobHash, HASH_SIZE, MANIFEST_SIZE_MAX, is_below};
pub use config::{Durability, StoreConfig};
pub use damage::{Damage, DamagePlace};
pub use damaged::DamagedPartition;
pub use data_directory::{DirectoryState, inspect_directory};
pub use elsewhere::fold::{Fold, Folded, FoldedRow, SeriesFold, WindowFold};
pub use elsewhere::moved::MovedUntil;
pub use elsewhere::waiting::waiting;
pub use elsewhere::{Answer, Asked, Elsewhere, Fault, FoundSeries, Grain, Lacks, Taken};
pub use error::{Error, Limit};
pub use exemplars::ExemplarSeries;
pub use file_names::{PARTITIONS_DIR, SNAPSHOTS_DIR, WAL_DIR};
pub use identity::store_id;
pub use index::CancelFlag;
pub use metadata::{NOTE_START, NOTE_WITHDRAWN};
pub use missing::Missing;
use model::narrow;
pub use needs::Need;
pub use opening::StoreOpening;
pub use partitions::PARTITIONS_MAX;
pub use period::{PartitionLength, Period};
pub use questions::{Asks, Questions, confine};
pub use refusal::Appended;
pub use repair::losses::{LossLine, LostSeries};
pub use repair::{RepairPlan, plan_repair};
pub use restoring::{MARKER as RESTORING_MARKER, begin_restoring, end_restoring, restoring};
pub use root_manifest::is_file_lost;
pub use scrub::ScrubStats;
pub use select::limits::SelectLimits;
pub use select::selection::{Selection, SeriesKeys};
pub use series_limits::{LimitScope, Refusals, SeriesLimit};
pub use starts::append::{AppendedStarts, StartBatch};
pub use starts::select::series_of_starts;
pub use stats::{Cardinality, CardinalityRequest, NameCount, NewSeries, StoreStats};
pub use store::Store;
pub use verify::report::{Finding, VerifyReport};
pub use verify::{Progress, Snapshots, verify, verify_changed, verify_with};

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;
