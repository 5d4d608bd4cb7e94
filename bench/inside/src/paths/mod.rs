//! The hot paths, a file a room, in the order in which a sample and then a query meets them.

mod wire;
mod index;
mod store;
mod codec;
mod promql;
mod engine;
mod influxql;

use crate::path::HotPath;

/// All paths.
pub fn all() -> impl Iterator<Item = &'static HotPath> {
    [
        wire::PATHS,
        index::PATHS,
        store::PATHS,
        codec::PATHS,
        promql::PATHS,
        engine::PATHS,
        influxql::PATHS,
    ]
    .into_iter()
    .flatten()
}
