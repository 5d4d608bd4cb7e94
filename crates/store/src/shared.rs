//! What several parts of a store share: its data, its end of the log, and what counts of it.

use crate::changes::ChangeClock;
use crate::exemplars::ExemplarQueue;
use crate::ground::Ground;
use crate::metadata::MetadataTable;
use crate::partitions::Partitions;
use crate::retention::Retention;
use crate::store_log::StoreLog;
use std::sync::Arc;

/// What parts are made with; each takes what it needs.
pub(crate) struct Shared {
    pub ground: Arc<Ground>,
    pub log: Arc<StoreLog>,
    pub partitions: Arc<Partitions>,
    pub retention: Arc<Retention>,
    /// What readers have missed.
    pub changes: Arc<ChangeClock>,
    pub metadata: Arc<MetadataTable>,
    pub exemplars: Arc<ExemplarQueue>,
}
