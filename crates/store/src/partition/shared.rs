//! What several parts of a store share: its data, its end of the log, and what counts of it.

use crate::base::ground::Ground;
use crate::log::exemplars::ExemplarQueue;
use crate::log::metadata::MetadataTable;
use crate::log::store_log::StoreLog;
use crate::partition::changes::ChangeClock;
use crate::partition::partitions::Partitions;
use crate::partition::retention::Retention;
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
