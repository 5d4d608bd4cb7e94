//! Samples in, samples out: head, partitions, parts, merge, retention, snapshots.
//!
//! The way down, for a write: [`Store::append`] > partition by time > index (only if the series is
//! new) > arena > log. For a read: [`Store::select`] > per partition: index search, then arena and
//! parts, slice by slice. Read the files in this order.

pub mod config;
pub mod error;
pub mod select;
pub mod stats;
pub mod store;

pub use config::{Durability, StoreConfig};
pub use error::Error;
pub use select::{SelectLimits, Selection};
pub use stats::{Cardinality, CardinalityRequest, NameCount, StoreStats, VerifyReport};
pub use store::{Appended, Store};

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;
