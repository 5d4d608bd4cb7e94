//! Samples in, samples out: head, partitions, parts, merge, retention, snapshots.
//!
//! ```text
//! append ► partition ► index (if new) ► arena ► log          select ► view ► read
//!                                         │                             ▲
//!                          seal ► flush ► part ► compact (merge) ───────┘
//! ```
//!
//! Folders are layers, the highest first: a file uses its own folder and those below it. `cargo xtask
//! tidy` checks this.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod store;
mod offline;
mod background;
mod read;
mod write;
mod partition;
mod merge;
mod part;
mod log;
mod base;
#[doc(hidden)]
pub mod inside;
#[cfg(test)]
#[path = "../tests/rows/mod.rs"]
mod rows;

pub use background::scrub::ScrubStats;
pub use base::config::{Durability, LimitScope, SeriesLimit, StoreConfig};
pub use base::damage::{Damage, DamagePlace};
pub use base::directory::identity::store_id;
pub use base::directory::needs::Need;
pub use base::directory::restoring::{
    MARKER as RESTORING_MARKER, begin_restoring, end_restoring, restoring,
};
pub use base::directory::root_manifest::is_file_lost;
pub use base::error::{Error, Limit, Result};
pub use base::file_names::{PARTITIONS_DIR, SNAPSHOTS_DIR, WAL_DIR};
pub use base::period::{PartitionLength, Period};
pub use base::select_limits::SelectLimits;
pub use index::CancelFlag;
pub use log::exemplars::ExemplarSeries;
pub use offline::repair::losses::{LossLine, LostSeries};
pub use offline::repair::{RepairPlan, plan_repair};
pub use offline::verify::report::{Finding, VerifyReport};
pub use offline::verify::{Progress, Snapshots, verify, verify_changed, verify_with};
pub use partition::damaged::DamagedPartition;
pub use partition::partitions::PARTITIONS_MAX;
pub use read::cardinality::{Cardinality, CardinalityRequest, NameCount, NewSeries};
pub use read::elsewhere::fold::{Fold, Folded, FoldedRow, SeriesFold, WindowFold};
pub use read::elsewhere::moved::MovedUntil;
pub use read::elsewhere::waiting::waiting;
pub use read::elsewhere::{Answer, Asked, Elsewhere, Fault, FoundSeries, Grain, Lacks, Taken};
pub use read::missing::Missing;
pub use read::questions::{Asks, Questions, confine};
pub use read::select::selection::{Selection, SeriesKeys};
pub use read::starts::series_of_starts;
pub use store::Store;
pub use store::backup::{
    BackupFile, BackupManifest, BlobHash, HASH_SIZE, MANIFEST_SIZE_MAX, is_below,
};
pub use store::data_directory::{DirectoryState, inspect_directory};
pub use store::opening::StoreOpening;
pub use store::stats::StoreStats;
pub use write::append_exemplars::AppendedExemplars;
pub use write::append_starts::{AppendedStarts, StartBatch};
pub use write::refusal::Appended;
pub use write::series_limits::Refusals;
