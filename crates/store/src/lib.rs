//! Samples in, samples out: head, partitions, parts, merge, retention, snapshots.
//!
//! ```text
//! append ► partition ► index (if new) ► arena ► log          select ► view ► read
//!                                         │                             ▲
//!                          seal ► flush ► part ► compact (merge) ───────┘
//! ```
//!
//! Read the files in this order.

pub mod append;
pub mod arena;
pub mod background;
pub mod cardinality;
pub mod catalog;
pub mod compact;
pub mod config;
pub mod counters;
pub mod delete;
pub mod error;
pub mod flush;
pub mod jobs;
pub mod log_record;
pub mod manifest;
pub mod merge;
pub mod metadata;
pub mod part;
pub mod partition;
pub mod read;
pub mod recover;
pub mod retention;
pub mod seal;
pub mod select;
pub mod series_map;
pub mod snapshot;
pub mod span;
pub mod stats;
pub mod store;
pub mod verify;
pub mod view;

pub use config::{Durability, StoreConfig};
pub use error::Error;
pub use select::{SelectLimits, Selection};
pub use stats::{Cardinality, CardinalityRequest, NameCount, StoreStats, VerifyReport};
pub use store::{Appended, Store};
pub use verify::verify;

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;
