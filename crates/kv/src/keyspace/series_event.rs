//! Events about keys that are series.

use crate::value::Series;

/// What became of a key that is a series.
#[derive(Clone, Debug)]
pub enum SeriesEvent {
    /// It went.
    Gone(Box<[u8]>, Box<Series>),
    /// It came with a record that was another key's.
    Moved(Box<[u8]>),
}
